#include "programs/ingest/sources/ndjson.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/text.h"
#include "base/time.h"
#include "base/vec.h"

enum { SHOWN = 80 };

/* The text of a member that is missing is NULL. */
typedef struct ledger_members {
    hf__json_value sequence, hash, previous_hash, closed_at;
    bool has_transactions;
} ledger_members;

typedef struct transaction_members {
    hf__json_value hash, order, status, fee, fee_charged;
} transaction_members;

typedef struct reader {
    hf__json_cursor cursor;
    hf__ledger *ledger;
    size_t room; /* of ledger->transactions */
    hf_error *err;
} reader;

static bool is_given(const hf__json_value *value)
{
    return value->text.text != NULL && value->kind != HF__JSON_NULL;
}

static hf_status refuse_value(const char *what, const hf__json_value *value, const char *wanted,
                              hf_error *err)
{
    char shown[SHOWN];

    if (value->text.text == NULL)
        return hf__fail(err, HF_BAD_DATA, "%s is missing", what);
    hf__show(shown, sizeof shown, value->text.text, value->text.size);
    return hf__fail(err, HF_BAD_DATA, "%s is %s, not %s", what,
                    value->text.size > 0 ? shown : "empty", wanted);
}

static hf_status read_sequence(const hf__json_value *value, int64_t *sequence, hf_error *err)
{
    if (is_given(value) && hf__json_integer(value, true, 1, HF__LEDGER_MAX, sequence))
        return HF_OK;
    return refuse_value("sequence", value, "a whole number from 1 to 2147483647", err);
}

static bool is_visible_ascii(hf__slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.text[i] <= ' ' || text.text[i] > '~')
            return false;
    return true;
}

static hf_status read_hash(const char *what, const hf__json_value *value, hf__slice *hash,
                           hf_error *err)
{
    *hash = value->text;
    if (value->kind == HF__JSON_STRING && !value->escaped && hash->size > 0 &&
        hash->size <= HF__HASH_MAX && is_visible_ascii(*hash))
        return HF_OK;
    return refuse_value(what, value, "a text of 1 to 128 visible ASCII characters", err);
}

static hf_status read_status(const hf__json_value *value, hf__slice *status, hf_error *err)
{
    *status = value->text;
    if (value->kind == HF__JSON_STRING && !value->escaped && status->size > 0 &&
        status->size <= HF__HASH_MAX)
        return HF_OK;
    return refuse_value("status of a transaction", value,
                        "a text of 1 to 128 bytes without escapes", err);
}

static hf_status read_order(const hf__json_value *value, size_t position, int32_t *order,
                            hf_error *err)
{
    int64_t number = (int64_t)position;

    if (position > HF__ORDER_MAX)
        return hf__fail(err, HF_BAD_DATA, "more than %d transactions", HF__ORDER_MAX);
    if (is_given(value) && !hf__json_integer(value, true, 1, HF__ORDER_MAX, &number))
        return refuse_value("order of a transaction", value, "a whole number from 1 to 1048575",
                            err);
    *order = (int32_t)number;
    return HF_OK;
}

static hf_status read_fee(const transaction_members *members, hf__transaction *transaction,
                          hf_error *err)
{
    const hf__json_value *fee = is_given(&members->fee) ? &members->fee : &members->fee_charged;

    transaction->has_fee = is_given(fee);
    if (!transaction->has_fee || hf__json_integer(fee, true, 0, INT64_MAX, &transaction->fee))
        return HF_OK;
    return refuse_value("fee of a transaction", fee, "a whole number from 0", err);
}

static hf_status interpret_transaction(const transaction_members *members, size_t position,
                                       hf__transaction *transaction, hf_error *err)
{
    hf_status status = read_hash("hash of a transaction", &members->hash, &transaction->hash, err);

    if (status == HF_OK)
        status = read_status(&members->status, &transaction->status, err);
    if (status == HF_OK)
        status = read_order(&members->order, position, &transaction->order, err);
    if (status == HF_OK)
        status = read_fee(members, transaction, err);
    return status;
}

static hf__transaction *new_transaction(reader *in)
{
    hf__ledger *ledger = in->ledger;

    if (!hf__grow(&ledger->transactions, &in->room, ledger->transaction_count + 1,
                  sizeof *ledger->transactions))
        return NULL;
    hf__transaction *transaction = &ledger->transactions[ledger->transaction_count++];
    *transaction = (hf__transaction){0};
    return transaction;
}

static hf__json_value *transaction_member(transaction_members *members, hf__slice key)
{
    return hf__slice_is(key, "hash")          ? &members->hash
           : hf__slice_is(key, "order")       ? &members->order
           : hf__slice_is(key, "status")      ? &members->status
           : hf__slice_is(key, "fee")         ? &members->fee
           : hf__slice_is(key, "fee_charged") ? &members->fee_charged
                                              : NULL;
}

/* A syntax error is HF_OK here, with a fault in the cursor: read_members reports it. */
static hf_status read_transaction(reader *in)
{
    hf__transaction *transaction = new_transaction(in);
    transaction_members members = {0};
    hf__json_value other;
    hf__slice key;

    if (transaction == NULL)
        return hf__fail(in->err, HF_NO_MEMORY, "out of memory for the transactions of a ledger");
    const char *start = in->cursor.at;
    if (!hf__json_enter(&in->cursor, '{'))
        return HF_OK;
    while (hf__json_member(&in->cursor, &key)) {
        hf__json_value *member = transaction_member(&members, key);
        if (!hf__json_take(&in->cursor, member != NULL ? member : &other))
            return HF_OK;
    }
    if (in->cursor.fault != NULL)
        return HF_OK;
    transaction->body = (hf__slice){start, (size_t)(in->cursor.at - start)};
    return interpret_transaction(&members, in->ledger->transaction_count, transaction, in->err);
}

static hf_status read_transactions(reader *in)
{
    hf_status status = HF_OK;

    in->ledger->transaction_count = 0;
    if (!hf__json_enter(&in->cursor, '['))
        return HF_OK;
    while (status == HF_OK && in->cursor.fault == NULL && hf__json_item(&in->cursor))
        status = read_transaction(in);
    return status;
}

static hf__json_value *ledger_member(ledger_members *members, hf__slice key)
{
    return hf__slice_is(key, "sequence")        ? &members->sequence
           : hf__slice_is(key, "hash")          ? &members->hash
           : hf__slice_is(key, "previous_hash") ? &members->previous_hash
           : hf__slice_is(key, "closed_at")     ? &members->closed_at
                                                : NULL;
}

static hf_status read_members(reader *in, ledger_members *members)
{
    const char *start = in->cursor.at;
    hf_status status = HF_OK;
    hf__json_value other;
    hf__slice key;

    if (hf__json_enter(&in->cursor, '{')) {
        while (status == HF_OK && in->cursor.fault == NULL && hf__json_member(&in->cursor, &key)) {
            hf__json_value *member = ledger_member(members, key);
            if (hf__slice_is(key, "transactions")) {
                members->has_transactions = true;
                status = read_transactions(in);
            } else if (!hf__json_take(&in->cursor, member != NULL ? member : &other)) {
                break;
            }
        }
    }
    if (status != HF_OK)
        return status;
    if (in->cursor.fault != NULL || !hf__json_finish(&in->cursor))
        return hf__json_refuse(&in->cursor, start, in->err);
    return HF_OK;
}

bool hf__ndjson_time(const hf__json_value *value, int64_t *unix_us)
{
    const int64_t second_us = 1000000;
    int64_t seconds = 0;

    if (hf__json_integer(value, true, 0, HF__TIME_LAST_US / second_us, &seconds)) {
        *unix_us = seconds * second_us;
        return true;
    }
    return value->kind == HF__JSON_STRING && hf__parse_time(value->text, unix_us);
}

static hf_status interpret_ledger(const ledger_members *members, hf__ledger *ledger, hf_error *err)
{
    hf_status status = read_sequence(&members->sequence, &ledger->sequence, err);

    if (status == HF_OK)
        status = read_hash("hash", &members->hash, &ledger->hash, err);
    if (status == HF_OK && is_given(&members->previous_hash) &&
        members->previous_hash.text.size > 0)
        status = read_hash("previous_hash", &members->previous_hash, &ledger->previous_hash, err);
    if (status == HF_OK && !hf__ndjson_time(&members->closed_at, &ledger->closed_at_us))
        status = refuse_value("closed_at", &members->closed_at,
                              "a time such as 2024-05-01T12:00:00Z, or Unix seconds", err);
    if (status == HF_OK && !members->has_transactions)
        status = hf__fail(err, HF_BAD_DATA, "transactions is missing");
    return status;
}

static int by_order(const void *a, const void *b)
{
    int32_t first = ((const hf__transaction *)a)->order;
    int32_t second = ((const hf__transaction *)b)->order;

    return (first > second) - (first < second);
}

static bool ascends(const hf__transaction *transactions, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (transactions[i].order <= transactions[i - 1].order)
            return false;
    return true;
}

static hf_status sort_transactions(hf__ledger *ledger, hf_error *err)
{
    hf__transaction *transactions = ledger->transactions;

    if (ascends(transactions, ledger->transaction_count))
        return HF_OK;
    qsort(transactions, ledger->transaction_count, sizeof *transactions, by_order);
    for (size_t i = 1; i < ledger->transaction_count; i++)
        if (transactions[i].order == transactions[i - 1].order)
            return hf__fail(err, HF_BAD_DATA, "two transactions have the order %" PRId32,
                            transactions[i].order);
    return HF_OK;
}

/* Frees the unused part of the array, since ledgers wait in memory. */
static void trim_transactions(hf__ledger *ledger)
{
    size_t size = ledger->transaction_count * sizeof *ledger->transactions;
    hf__transaction *trimmed = size > 0 ? realloc(ledger->transactions, size) : NULL;

    if (trimmed != NULL)
        ledger->transactions = trimmed;
}

hf_status hf__ndjson_parse(char *bytes, size_t size, hf__ledger **ledger, hf_error *err)
{
    hf__ledger *parsed = calloc(1, sizeof *parsed);
    reader in = {.cursor = {.at = bytes, .end = bytes + size}, .ledger = parsed, .err = err};
    ledger_members members = {0};

    if (parsed == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for a ledger");
    hf_status status = read_members(&in, &members);
    if (status == HF_OK)
        status = interpret_ledger(&members, parsed, err);
    if (status == HF_OK)
        status = sort_transactions(parsed, err);
    if (status == HF_OK)
        status = hf__ledger_check_hashes(parsed, err);
    if (status != HF_OK) {
        hf__ledger_free(parsed);
        return status;
    }
    trim_transactions(parsed);
    parsed->bytes = bytes;
    parsed->weight =
        sizeof *parsed + parsed->transaction_count * sizeof *parsed->transactions + size;
    *ledger = parsed;
    return HF_OK;
}

int64_t hf__ndjson_sequence(const char *text, size_t size)
{
    const char *end = text + size;
    hf__json_value whole = {.kind = HF__JSON_OBJECT};
    hf__json_value value;
    hf__json_walk walk;
    hf__slice key;
    int64_t sequence = 0;

    while (text < end && (*text == ' ' || *text == '\t'))
        text++;
    if (text == end || *text != '{')
        return 0;
    whole.text = (hf__slice){text, (size_t)(end - text)};
    hf__json_walk_begin(&walk, &whole);
    while (hf__json_walk_next(&walk, &key, &value)) {
        if (!hf__slice_is(key, "sequence"))
            continue;
        /* If the text ends right after the number, the number may be cut. */
        bool is_whole = walk.at < walk.end || *walk.end == '}' || *walk.end == ',';
        return is_whole && hf__json_integer(&value, true, 1, HF__LEDGER_MAX, &sequence) ? sequence
                                                                                        : 0;
    }
    return 0;
}
