#include "programs/ingest/sources/source.h"

#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "programs/ingest/sources/unpack.h"

enum {
    TRANSACTIONS = 4, /* unless TX says otherwise */
    TRANSACTIONS_MAX = 100000,
    CLOSE_SECONDS = 5, /* from one ledger to the next */
    HASH_SIZE = 2 * SHA256_DIGEST_LENGTH,
    HASH_WORDS = SHA256_DIGEST_LENGTH / 8,
    ACCOUNT_SIZE = 56,
    BODY_MAX = 512,
    LOOKS = 256, /* ledgers between two checks of stop_fd */
};

static const char prefix[] = "generate:";
static const int64_t first_close = INT64_C(1704067200); /* 2024-01-01T00:00:00Z */

struct generator {
    hf__source head;
    int stop_fd;
    int64_t count;        /* ledgers */
    int64_t transactions; /* of each */
    int64_t at;           /* the next ledger */
    int64_t hashed;       /* the ledger of `hash`, which the next one needs as previous_hash */
    char hash[HASH_SIZE];
};

static char *put_number(char *to, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    memcpy(to, digits + at, sizeof digits - at);
    return to + sizeof digits - at;
}

static char *put_hex(char *to, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < size; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 0xF];
    }
    return to;
}

/* Puts what looks like a Stellar account: G and 55 characters of base32. */
static char *put_account(char *to, uint64_t seed)
{
    static const char base32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

    *to++ = 'G';
    for (int i = 1; i < ACCOUNT_SIZE; i++) {
        *to++ = base32[seed >> 59];
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    }
    return to;
}

/* SplitMix64: distinct inputs give distinct outputs. */
static uint64_t mix(uint64_t number)
{
    number += UINT64_C(0x9E3779B97F4A7C15);
    number = (number ^ number >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    number = (number ^ number >> 27) * UINT64_C(0x94D049BB133111EB);
    return number ^ number >> 31;
}

static char *put_ledger_hash(struct generator *generator, char *to, int64_t sequence)
{
    if (generator->hashed != sequence) {
        unsigned char digest[SHA256_DIGEST_LENGTH];
        unsigned char name[24];
        size_t size = (size_t)(put_number((char *)name, (uint64_t)sequence) - (char *)name);
        SHA256(name, size, digest);
        put_hex(generator->hash, digest, sizeof digest);
        generator->hashed = sequence;
    }
    memcpy(to, generator->hash, HASH_SIZE);
    return to + HASH_SIZE;
}

static char *put_transaction_hash(char *to, uint64_t id)
{
    for (uint64_t i = 0; i < HASH_WORDS; i++) {
        uint64_t word = mix(id * HASH_WORDS + i);
        unsigned char bytes[8];
        for (int k = 0; k < 8; k++)
            bytes[k] = (unsigned char)(word >> 8 * k);
        to = put_hex(to, bytes, sizeof bytes);
    }
    return to;
}

/* Puts about 330 bytes. */
static char *put_transaction(char *to, int64_t sequence, int32_t order,
                             hf__transaction *transaction)
{
    uint64_t id = (uint64_t)hf__toid(sequence, order) >> 12;
    uint64_t seed = mix(id);
    char *start = to;

    *transaction = (hf__transaction){.order = order, .has_fee = true};
    transaction->fee = 100 + (int64_t)(seed % 9900);
    to = stpcpy(to, "{\"hash\":\"");
    transaction->hash = (hf__slice){to, HASH_SIZE};
    to = put_transaction_hash(to, id);
    to = put_number(stpcpy(to, "\",\"order\":"), (uint64_t)order);
    to = stpcpy(to, ",\"status\":\"");
    transaction->status = (hf__slice){to, seed % 16 == 0 ? 6 : 7};
    to = stpcpy(to, seed % 16 == 0 ? "FAILED" : "SUCCESS");
    to = put_number(stpcpy(to, "\",\"fee\":"), (uint64_t)transaction->fee);
    to = put_account(stpcpy(to, ",\"source\":\""), seed % 5000);
    to = put_number(stpcpy(to, "\",\"account_sequence\":\""), id);
    to = stpcpy(to, "\",\"operations\":[{\"type\":\"payment\",\"destination\":\"");
    to = put_account(to, seed / 5000 % 5000);
    to = put_number(stpcpy(to, "\",\"asset\":\"native\",\"amount\":\""), seed % 1000000);
    to = put_number(stpcpy(to, ".00\"}],\"memo\":{\"type\":\"text\",\"value\":\"invoice "),
                    seed % 100000);
    to = stpcpy(to, "\"}}");
    transaction->body = (hf__slice){start, (size_t)(to - start)};
    return to;
}

static hf__ledger *new_ledger(const struct generator *generator, size_t *room)
{
    size_t count = (size_t)generator->transactions;
    hf__ledger *ledger = calloc(1, sizeof *ledger);

    *room = 2 * HASH_SIZE + count * BODY_MAX;
    if (ledger == NULL)
        return NULL;
    ledger->bytes = malloc(*room);
    ledger->transactions = count > 0 ? calloc(count, sizeof *ledger->transactions) : NULL;
    if (ledger->bytes == NULL || (count > 0 && ledger->transactions == NULL)) {
        hf__ledger_free(ledger);
        return NULL;
    }
    ledger->transaction_count = count;
    return ledger;
}

static void fill_ledger(struct generator *generator, hf__ledger *ledger, int64_t sequence)
{
    char *at = ledger->bytes;

    ledger->sequence = sequence;
    ledger->closed_at_us = (first_close + (sequence - 1) * CLOSE_SECONDS) * 1000000;
    ledger->tip = generator->count;
    generator->head.tip = generator->count;
    if (sequence > 1) {
        ledger->previous_hash = (hf__slice){at, HASH_SIZE};
        at = put_ledger_hash(generator, at, sequence - 1);
    }
    ledger->hash = (hf__slice){at, HASH_SIZE};
    at = put_ledger_hash(generator, at, sequence);
    for (size_t i = 0; i < ledger->transaction_count; i++)
        at = put_transaction(at, sequence, (int32_t)i + 1, &ledger->transactions[i]);
}

static hf_status next(hf__source *source, hf__ledger **ledger, hf__bad_ledger *bad, hf_error *err)
{
    struct generator *generator = (struct generator *)source;
    size_t room = 0;

    (void)bad;
    *ledger = NULL;
    if (generator->at % LOOKS == 0) {
        hf_status status = hf__input_wait(-1, generator->stop_fd, 0, err);
        if (status != HF_OK)
            return status;
    }
    if (generator->at > generator->count)
        return HF_OK;
    hf__ledger *made = new_ledger(generator, &room);
    if (made == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for a ledger");
    fill_ledger(generator, made, generator->at++);
    made->weight = sizeof *made + made->transaction_count * sizeof *made->transactions + room;
    *ledger = made;
    return HF_OK;
}

static hf_status extent(hf__source *source, int64_t *oldest, int64_t *latest, hf_error *err)
{
    (void)err;
    *oldest = 1;
    *latest = ((struct generator *)source)->count;
    return HF_OK;
}

static hf_status seek(hf__source *source, int64_t from, hf_error *err)
{
    (void)err;
    ((struct generator *)source)->at = from > 1 ? from : 1;
    return HF_OK;
}

static void close_generator(hf__source *source)
{
    free(source->name);
    free(source);
}

static const hf__source_ops generator_ops = {
    .extent = extent,
    .seek = seek,
    .next = next,
    .close = close_generator,
};

/* Parses N[,TX]. */
static hf_status read_numbers(struct generator *generator, const char *text, hf_error *err)
{
    char count[32];
    size_t size = strcspn(text, ",");

    snprintf(count, sizeof count, "%.*s", (int)(size < sizeof count ? size : sizeof count), text);
    hf_status status = hf__parse_int64(count, "the number of ledgers to generate", 1,
                                       HF__LEDGER_MAX, &generator->count, err);
    generator->transactions = TRANSACTIONS;
    if (status == HF_OK && text[size] == ',')
        status = hf__parse_int64(text + size + 1, "the number of transactions in a ledger", 0,
                                 TRANSACTIONS_MAX, &generator->transactions, err);
    return status;
}

hf_status hf__source_generate(const hf__source_options *options, hf__source **source, hf_error *err)
{
    const char *text = options->spec;

    *source = NULL;
    if (strncmp(text, prefix, strlen(prefix)) == 0)
        text += strlen(prefix);
    struct generator *generator = calloc(1, sizeof *generator);
    if (generator == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for a source");
    generator->head.ops = &generator_ops;
    generator->head.name = strdup(options->spec);
    generator->stop_fd = options->stop_fd;
    generator->at = 1;
    hf_status status = generator->head.name != NULL
                           ? read_numbers(generator, text, err)
                           : hf__fail(err, HF_NO_MEMORY, "out of memory for a source");
    if (status != HF_OK) {
        close_generator(&generator->head);
        return status;
    }
    *source = &generator->head;
    return HF_OK;
}
