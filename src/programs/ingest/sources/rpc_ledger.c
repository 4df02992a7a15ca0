#include "programs/ingest/sources/rpc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum { STATUS_MAX = 32 };

static const char envelope_key[] = "envelopeJson";
static const char meta_key[] = "resultMetaJson";

/* ---- an item of getTransactions -------------------------------------------------------------- */

static hf__slice first_key(const hf__json_value *value)
{
    hf__json_walk walk;
    hf__json_value arm;
    hf__slice key = {0};

    if (value->text.text == NULL || value->kind != HF__JSON_OBJECT)
        return key;
    hf__json_walk_begin(&walk, value);
    if (!hf__json_walk_next(&walk, &key, &arm))
        return (hf__slice){0};
    return key;
}

static bool is_envelope(const hf__json_value *value)
{
    hf__slice key = first_key(value);

    return hf__slice_is(key, "tx") || hf__slice_is(key, "tx_v0") ||
           hf__slice_is(key, "tx_fee_bump");
}

static bool is_meta(const hf__json_value *value)
{
    hf__slice key = first_key(value);

    return key.size == 2 && key.text[0] == 'v' && key.text[1] >= '0' && key.text[1] <= '9';
}

/* Finds where the two names stand in the text of the item. */
static void find_names(const hf__json_value *value, hf__rpc_item *item)
{
    hf__json_walk walk;
    hf__json_value member;
    hf__slice name;

    hf__json_walk_begin(&walk, value);
    while (hf__json_walk_next(&walk, &name, &member)) {
        if (hf__slice_is(name, envelope_key))
            item->envelope_name = name;
        else if (hf__slice_is(name, meta_key))
            item->meta_name = name;
    }
}

static bool is_short_text(const hf__json_value *value, size_t most)
{
    return value->text.text != NULL && value->kind == HF__JSON_STRING && !value->escaped &&
           value->text.size > 0 && value->text.size <= most;
}

static bool is_whole(const hf__json_value *value, int64_t low, int64_t high, int64_t *number)
{
    return value->text.text != NULL && hf__json_integer(value, true, low, high, number);
}

static hf_status read_fee(const hf__json_value *result, hf__rpc_item *item, hf_error *err)
{
    static const char *const names[] = {"fee_charged"};
    hf__json_value fee;

    hf__rpc_pick(result, names, 1, &fee);
    if (fee.text.text == NULL || fee.kind == HF__JSON_NULL)
        return HF_OK;
    item->has_fee = is_whole(&fee, INT64_MIN, INT64_MAX, &item->fee);
    return item->has_fee ? HF_OK : hf__fail(err, HF_BAD_DATA, "fee_charged is not a whole number");
}

hf_status hf__rpc_read_item(const hf__json_value *value, hf__rpc_item *item, hf_error *err)
{
    enum { LEDGER, ORDER, HASH, STATUS, RESULT, ENVELOPE, ENVELOPE_XDR, META, COUNT };
    static const char *const names[COUNT] = {
        "ledger",     "applicationOrder", "txHash",      "status",
        "resultJson", envelope_key,       "envelopeXdr", meta_key,
    };
    hf__json_value members[COUNT];
    int64_t order = 0;

    *item = (hf__rpc_item){.body = value->text};
    hf__rpc_pick(value, names, COUNT, members);
    if (members[ENVELOPE].text.text == NULL && members[ENVELOPE_XDR].text.size > 0) {
        hf_status status = hf__fail(err, HF_CONFIG, "the server gives XDR instead of JSON");
        hf__hint(err, "it needs a version that knows xdrFormat \"json\"");
        return status;
    }
    if (!is_whole(&members[LEDGER], 1, HF__LEDGER_MAX, &item->ledger))
        return hf__fail(err, HF_BAD_DATA, "a transaction without a ledger");
    if (!is_whole(&members[ORDER], 1, HF__ORDER_MAX, &order))
        return hf__fail(err, HF_BAD_DATA, "a transaction without an applicationOrder");
    if (!is_short_text(&members[HASH], HF__HASH_MAX))
        return hf__fail(err, HF_BAD_DATA, "transaction %" PRId64 " has no txHash", order);
    if (!is_short_text(&members[STATUS], STATUS_MAX))
        return hf__fail(err, HF_BAD_DATA, "transaction %" PRId64 " has no status", order);
    item->order = (int32_t)order;
    item->hash = members[HASH].text;
    item->status = members[STATUS].text;
    if (is_meta(&members[ENVELOPE]) || is_envelope(&members[META]))
        find_names(value, item);
    return read_fee(&members[RESULT], item, err);
}

/* ---- making the ledger ----------------------------------------------------------------------- */

/* Adds the text from `from` up to the name, then the other name. Returns where the text goes on. */
static const char *add_renamed(hf__buf *bytes, const char *from, hf__slice name, const char *other)
{
    hf__buf_add(bytes, from, (size_t)(name.text - from));
    hf__buf_puts(bytes, other);
    return name.text + name.size;
}

static void add_body(hf__buf *bytes, const hf__rpc_item *item)
{
    const char *from = item->body.text, *end = from + item->body.size;
    hf__slice envelope = item->envelope_name, meta = item->meta_name;
    bool meta_is_first = meta.text != NULL && (envelope.text == NULL || meta.text < envelope.text);

    if (meta_is_first)
        from = add_renamed(bytes, from, meta, envelope_key);
    if (envelope.text != NULL)
        from = add_renamed(bytes, from, envelope, meta_key);
    if (meta.text != NULL && !meta_is_first)
        from = add_renamed(bytes, from, meta, envelope_key);
    hf__buf_add(bytes, from, (size_t)(end - from));
}

hf_status hf__rpc_draft_add(hf__rpc_draft *draft, const hf__rpc_item *item, hf_error *err)
{
    hf__buf *bytes = &draft->bytes;

    if (!hf__grow(&draft->entries, &draft->capacity, draft->count + 1, sizeof *draft->entries))
        return hf__no_memory(err);
    hf__rpc_entry *entry = &draft->entries[draft->count];
    *entry = (hf__rpc_entry){
        .hash = bytes->length,
        .hash_size = item->hash.size,
        .status = bytes->length + item->hash.size,
        .status_size = item->status.size,
        .body = bytes->length + item->hash.size + item->status.size,
        .has_fee = item->has_fee,
        .fee = item->fee,
    };
    hf__buf_add(bytes, item->hash.text, item->hash.size);
    hf__buf_add(bytes, item->status.text, item->status.size);
    add_body(bytes, item);
    entry->body_size = bytes->length - entry->body;
    if (bytes->broken)
        return hf__no_memory(err);
    draft->count++;
    return HF_OK;
}

uint64_t hf__rpc_digest(hf__slice hash)
{
    int64_t digest = 0;

    (void)!hf_key_derive(HF_FNV1A64, hash.text, hash.size, &digest, NULL); /* 0 if there is none */
    return (uint64_t)digest;
}

bool hf__rpc_draft_fits(const hf__rpc_draft *draft, const hf__rpc_head *head)
{
    uint64_t hashes = 0;

    for (size_t i = 0; i < draft->count; i++) {
        const hf__rpc_entry *entry = &draft->entries[i];
        hashes += hf__rpc_digest((hf__slice){draft->bytes.data + entry->hash, entry->hash_size});
    }
    return !head->has_hashes || hashes == head->hashes;
}

/* Appends text, and returns its offset. */
static size_t append(hf__buf *bytes, const char *text)
{
    size_t at = bytes->length;

    hf__buf_puts(bytes, text);
    return at;
}

static void fill_transactions(const hf__rpc_draft *draft, const char *bytes,
                              hf__transaction *transactions)
{
    for (size_t i = 0; i < draft->count; i++) {
        const hf__rpc_entry *entry = &draft->entries[i];
        transactions[i] = (hf__transaction){
            .order = (int32_t)(i + 1),
            .hash = {bytes + entry->hash, entry->hash_size},
            .status = {bytes + entry->status, entry->status_size},
            .has_fee = entry->has_fee,
            .fee = entry->fee,
            .body = {bytes + entry->body, entry->body_size},
        };
    }
}

hf_status hf__rpc_draft_finish(hf__rpc_draft *draft, const hf__rpc_head *head, int64_t tip,
                               hf__ledger **ledger, hf_error *err)
{
    size_t hash = append(&draft->bytes, head->hash);
    size_t previous = append(&draft->bytes, head->previous_hash);
    hf__ledger *made = calloc(1, sizeof *made);
    hf__transaction *transactions =
        calloc(draft->count > 0 ? draft->count : 1, sizeof *transactions);

    if (draft->bytes.broken || made == NULL || transactions == NULL) {
        free(made);
        free(transactions);
        return hf__no_memory(err);
    }
    char *bytes = realloc(draft->bytes.data, draft->bytes.length + 1);
    if (bytes == NULL)
        bytes = draft->bytes.data;
    fill_transactions(draft, bytes, transactions);
    *made = (hf__ledger){
        .sequence = head->sequence,
        .hash = {bytes + hash, strlen(head->hash)},
        .closed_at_us = head->closed_at_us,
        .transactions = transactions,
        .transaction_count = draft->count,
        .weight = sizeof *made + draft->count * sizeof *transactions + draft->bytes.length + 1,
        .bytes = bytes,
        .tip = tip > head->sequence ? tip : head->sequence,
    };
    if (head->previous_hash[0] != '\0')
        made->previous_hash = (hf__slice){bytes + previous, strlen(head->previous_hash)};
    draft->bytes = (hf__buf){0};
    hf__rpc_draft_clear(draft);
    *ledger = made;
    return HF_OK;
}

void hf__rpc_draft_clear(hf__rpc_draft *draft)
{
    hf__buf_free(&draft->bytes);
    free(draft->entries);
    *draft = (hf__rpc_draft){0};
}
