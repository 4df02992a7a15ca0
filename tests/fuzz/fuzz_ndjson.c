/*
 * One line: it is a ledger by every rule, or refused with a reason; nothing may be read outside it.
 */
#include "fuzz.h"

#include <string.h>

#include "programs/ingest/sources/ndjson.h"

static bool is_inside(const hf__ledger *ledger, size_t size, hf__slice slice)
{
    return slice.text >= ledger->bytes && slice.size <= size &&
           slice.text + slice.size <= ledger->bytes + size;
}

static void check_transaction(const hf__ledger *ledger, size_t size,
                              const hf__transaction *transaction)
{
    hf__json_value body;
    hf__json_value hash;

    require(is_inside(ledger, size, transaction->body), "a body is outside the line");
    require(is_inside(ledger, size, transaction->hash), "a hash is outside the line");
    require(is_inside(ledger, size, transaction->status), "a status is outside the line");
    require(transaction->order >= 1 && transaction->order <= HF__ORDER_MAX, "an order is outside");
    require(hf__json_parse(transaction->body.text, transaction->body.size, &body, NULL) == HF_OK &&
                body.kind == HF__JSON_OBJECT && body.text.size == transaction->body.size,
            "a body is no object");
    require(hf__json_get(&body, "hash", &hash) && hash.text.text == transaction->hash.text,
            "a hash is another one's");
}

static void check_ledger(const hf__ledger *ledger, size_t size)
{
    require(ledger->sequence >= 1 && ledger->sequence <= HF__LEDGER_MAX, "a sequence is outside");
    require(is_inside(ledger, size, ledger->hash), "the hash is outside the line");
    require(ledger->previous_hash.text == NULL || is_inside(ledger, size, ledger->previous_hash),
            "the previous hash is outside the line");
    for (size_t i = 0; i < ledger->transaction_count; i++) {
        check_transaction(ledger, size, &ledger->transactions[i]);
        require(i == 0 || ledger->transactions[i - 1].order < ledger->transactions[i].order,
                "transactions are out of order");
        for (size_t k = 0; k < i; k++)
            require(ledger->transactions[k].hash.size != ledger->transactions[i].hash.size ||
                        memcmp(ledger->transactions[k].hash.text, ledger->transactions[i].hash.text,
                               ledger->transactions[i].hash.size) != 0,
                    "a hash comes twice");
    }
}

/* The way that checks, and the way over what was checked, see the same. */
static void check_json(const hf__json_value *value, int depth)
{
    hf__json_value each;
    hf__json_value again;
    hf__json_walk walk;
    hf__slice key;

    hf__json_walk_begin(&walk, value);
    while (depth < 4 && hf__json_walk_next(&walk, &key, &each)) {
        bool is_string = each.kind == HF__JSON_STRING;
        const char *start = each.text.text - (is_string ? 1 : 0);
        require(hf__json_parse(start, each.text.size + (is_string ? 2 : 0), &again, NULL) == HF_OK,
                "a part of a value is none");
        require(again.kind == each.kind && again.escaped == each.escaped &&
                    again.text.text == each.text.text && again.text.size == each.text.size,
                "a part of a value is two");
        require((key.text != NULL) == (value->kind == HF__JSON_OBJECT), "a key is out of place");
        check_json(&each, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size > 0 ? size : 1);
    hf__ledger *ledger = NULL;
    hf__json_value value;
    hf_error err = {0};

    require(bytes != NULL, "out of memory");
    memcpy(bytes, data, size);
    bool is_json = hf__json_parse(bytes, size, &value, NULL) == HF_OK;
    if (is_json)
        check_json(&value, 0);
    int64_t sequence = hf__ndjson_sequence(bytes, size);
    require(sequence >= 0 && sequence <= HF__LEDGER_MAX, "a sequence is outside");

    hf_status status = hf__ndjson_parse(bytes, size, &ledger, &err);
    require((status == HF_OK) == (ledger != NULL), "a failure without a reason");
    if (status == HF_OK) {
        require(is_json, "a ledger is no JSON");
        check_ledger(ledger, size);
        hf__ledger_free(ledger);
    } else {
        require(status == HF_BAD_DATA && err.message[0] != '\0', "a refusal says nothing");
        free(bytes);
    }
    return 0;
}
