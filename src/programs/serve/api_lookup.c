/*
 * /api/v1/ledgers and /api/v1/transactions: read from the store in the collector's thread, by primary key
 * from the cursor on, so that no page costs more than another.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "base/text.h"
#include "lib/ledgers/ledgers.h"
#include "lib/ledgers/names.h"
#include "programs/serve/api.h"

const hf__shape hf__ledger_shape[] = {
    HF__SHAPE("sequence", "integer", "of the ledger"),
    HF__SHAPE("hash", "string", "of the ledger"),
    HF__SHAPE_OR_NULL("previous_hash", "string", "of the one before"),
    HF__SHAPE("closed_at", "string", "RFC 3339"),
    HF__SHAPE("transaction_count", "integer", "in it"),
    {0},
};

const hf__shape hf__transaction_shape[] = {
    HF__SHAPE("id", "integer", "64 bits: ledger, order and operation"),
    HF__SHAPE("id_text", "string", "the same as text"),
    HF__SHAPE("ledger", "integer", "that it is in"),
    HF__SHAPE("application_order", "integer", "in that ledger"),
    HF__SHAPE("hash", "string", "of the transaction"),
    HF__SHAPE_OR_NULL("status", "string", "what became of it"),
    HF__SHAPE_OR_NULL("fee", "integer", "that was charged"),
    HF__SHAPE("closed_at", "string", "RFC 3339"),
    HF__SHAPE_OR_NULL("body", "any", "as the source gave it"),
    {0},
};

#define PG_TIME                                                                                    \
    "to_char(closed_at::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
#define LITE_TIME "strftime('%Y-%m-%dT%H:%M:%fZ', closed_at)"
#define LEDGER_COLUMNS "SELECT sequence, hash, previous_hash, transaction_count, "
#define TRANSACTION_COLUMNS                                                                        \
    "SELECT to_id, hash, status, application_order, ledger_number, fee, body, "

enum { LOOKUP_MS = 5000 };

/* One page of rows of a table. */
struct lookup {
    const hf__exchange *exchange;
    const hf__snapshot *snapshot;
    hf_network *network;
    const char *sql;
    hf_value values[3];
    size_t count;
    bool (*is_there)(const hf__tables_there *there);
    void (*put)(hf__list *list, const hf_rows *rows, size_t row);
    hf__list list;
    char next[24];
};

static void put_number(hf__json *json, const char *name, const hf_rows *rows, size_t row,
                       size_t column)
{
    int64_t number = 0;
    hf__maybe value = {.known = hf__row_number(rows, row, column, name, &number, NULL) == HF_OK};

    value.value = number;
    hf__put_maybe(json, name, value);
}

static const char *text_at(const hf_rows *rows, size_t row, size_t column)
{
    const char *text = hf_rows_value(rows, row, column, NULL);

    return text != NULL ? text : "";
}

/* The last row of a page that is full tells where the next begins. */
static hf_status write_rows(struct lookup *lookup, const hf_rows *rows)
{
    size_t limit = (size_t)lookup->list.limit;

    for (size_t i = 0; i < hf_rows_count(rows) && i < limit; i++) {
        lookup->put(&lookup->list, rows, i);
        lookup->list.shown++;
    }
    if (hf_rows_count(rows) > limit)
        (void)snprintf(lookup->next, sizeof lookup->next, "%s", text_at(rows, limit - 1, 0));
    return HF_OK;
}

static hf_status read_page(hf_tx *tx, void *arg, hf_error *err)
{
    struct lookup *lookup = arg;
    hf__tables_there there = {0};
    hf_rows *rows = NULL;

    hf__buf_free(&lookup->list.json.text); /* of an attempt before */
    lookup->list = hf__list_begin(lookup->exchange, lookup->snapshot);
    lookup->next[0] = '\0';
    hf_status status = hf__tables_look(tx, lookup->network, &there, err);
    if (status != HF_OK || !lookup->is_there(&there))
        return status;
    status = hf__network_query(tx, lookup->network, lookup->sql, lookup->count, lookup->values,
                               &rows, err);
    if (status == HF_OK)
        status = write_rows(lookup, rows);
    hf_rows_free(rows);
    return status;
}

static bool knows_network(const hf__snapshot *snapshot, const char *name)
{
    for (size_t i = 0; i < snapshot->network_count; i++)
        if (strcmp(snapshot->networks[i].name, name) == 0)
            return true;
    return false;
}

static int refuse(hf__problem *problem, int status, const char *detail)
{
    hf__refuse(problem, status, "%s", detail);
    return status;
}

/*
 * The collector waits meanwhile, and so does the end of the program: nobody's ALTER TABLE may hold them
 * up. SQLite has nothing that a reader waits for.
 */
static hf_status read_rows(hf_store *store, struct lookup *lookup, hf_error *err)
{
    hf_tx_options options = hf__network_tx_options(lookup->network);
    bool there = false;

    if (hf_store_is_local(store))
        return hf__network_read(lookup->network, read_page, lookup, &there, err);
    options.read_only = true;
    options.isolation = HF_REPEATABLE_READ;
    options.deadline_ms = LOOKUP_MS;
    options.max_attempts = 1;
    return hf_transact(store, &options, read_page, lookup, err);
}

static int run(hf_store *store, struct lookup *lookup, hf__buf *out, hf__problem *problem)
{
    hf_error err;

    lookup->list = hf__list_begin(lookup->exchange, lookup->snapshot);
    hf_status status = read_rows(store, lookup, &err);
    if (status != HF_OK) {
        bool may_pass = status == HF_UNREACHABLE || status == HF_EXHAUSTED;
        hf__buf_free(&lookup->list.json.text);
        return refuse(problem, may_pass ? 503 : 500, err.message);
    }
    hf__list_end_data(&lookup->list);
    return hf__list_end(&lookup->list, lookup->next, out);
}

static int open_and_run(hf_store *store, struct lookup *lookup, hf__buf *out, hf__problem *problem)
{
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf_error err;

    options.name = hf__asked(lookup->exchange, "network");
    if (!knows_network(lookup->snapshot, options.name))
        return refuse(problem, 404, "there is no network of this name");
    if (hf_network_open(store, &options, &lookup->network, &err) != HF_OK)
        return refuse(problem, 500, err.message);
    int status = run(store, lookup, out, problem);
    hf_network_free(lookup->network);
    return status;
}

/* ---- ledgers ------------------------------------------------------------------------------------------------ */

static bool has_ledgers(const hf__tables_there *there)
{
    return there->ledgers;
}

static void put_ledger(hf__list *list, const hf_rows *rows, size_t row)
{
    hf__json *json = &list->json;

    hf__json_begin_object(json, NULL);
    put_number(json, "sequence", rows, row, 0);
    hf__json_put_string(json, "hash", text_at(rows, row, 1));
    hf__json_put_text(json, "previous_hash", text_at(rows, row, 2));
    hf__json_put_string(json, "closed_at", text_at(rows, row, 4));
    put_number(json, "transaction_count", rows, row, 3);
    hf__json_end_object(json);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What comes after the cursor, which is the last that was shown. */
static int64_t after_cursor(const hf__exchange *exchange)
{
    return hf__was_asked(exchange, "cursor") ? hf__asked_number(exchange, "cursor") + 1 : 0;
}

int hf__api_ledgers(hf_store *store, const hf__exchange *exchange, const hf__snapshot *snapshot,
                    hf__buf *out, hf__problem *problem)
{
    static const char by_range[] = " FROM @ledgers WHERE sequence BETWEEN $1 AND $2 "
                                   "ORDER BY sequence LIMIT $3";
    char from[24], to[24], limit[24], sql[512];
    struct lookup lookup = {.exchange = exchange,
                            .snapshot = snapshot,
                            .sql = sql,
                            .count = 3,
                            .is_there = has_ledgers,
                            .put = put_ledger};

    (void)snprintf(sql, sizeof sql, LEDGER_COLUMNS "%s%s",
                   hf_store_is_local(store) ? LITE_TIME : PG_TIME, by_range);
    lookup.values[0] =
        hf__number_value(from, later(hf__asked_number(exchange, "from"), after_cursor(exchange)));
    lookup.values[1] = hf__number_value(to, hf__asked_number(exchange, "to"));
    lookup.values[2] = hf__number_value(limit, hf__asked_number(exchange, "limit") + 1);
    return open_and_run(store, &lookup, out, problem);
}

/* ---- transactions ------------------------------------------------------------------------------------------- */

/* As the ids of the network are made: the ledger above, its order and the operation below. */
enum { LEDGER_SHIFT = 32 };

static bool has_transactions(const hf__tables_there *there)
{
    return there->transactions;
}

/* As it stands. A table that was adopted may hold what is no JSON: that is text. */
static void put_body(hf__json *json, const char *body, size_t size)
{
    hf__json_value value;

    if (body == NULL)
        hf__json_put_null(json, "body");
    else if (hf__json_parse(body, size, &value, NULL) == HF_OK)
        hf__json_put_raw(json, "body", body);
    else
        hf__json_put_string(json, "body", body);
}

static void put_transaction(hf__list *list, const hf_rows *rows, size_t row)
{
    hf__json *json = &list->json;
    size_t body_size = 0;
    const char *body = hf_rows_value(rows, row, 6, &body_size);
    int64_t id = 0;

    hf__json_begin_object(json, NULL);
    if (hf__row_number(rows, row, 0, "id", &id, NULL) == HF_OK)
        hf__put_big(json, "id", "id_text", id);
    put_number(json, "ledger", rows, row, 4);
    put_number(json, "application_order", rows, row, 3);
    hf__json_put_string(json, "hash", text_at(rows, row, 1));
    hf__json_put_text(json, "status", text_at(rows, row, 2));
    put_number(json, "fee", rows, row, 5);
    hf__json_put_string(json, "closed_at", text_at(rows, row, 7));
    put_body(json, body, body_size);
    hf__json_end_object(json);
}

static int64_t first_id(int64_t ledger)
{
    return ledger > INT32_MAX ? INT64_MAX : ledger << LEDGER_SHIFT;
}

/* A hash has an index of its own, which an order by the primary key would make PostgreSQL pass by. */
static void ask_for_hash(struct lookup *lookup, char numbers[3][24])
{
    lookup->values[0] = HF_TEXT(hf__asked(lookup->exchange, "hash"));
    lookup->values[1] = hf__number_value(numbers[1], after_cursor(lookup->exchange));
}

static void ask_for_range(struct lookup *lookup, char numbers[3][24])
{
    const hf__exchange *exchange = lookup->exchange;
    int64_t from = later(first_id(hf__asked_number(exchange, "from")), after_cursor(exchange));
    int64_t to = hf__asked_number(exchange, "to");

    to = to >= INT32_MAX ? INT64_MAX : first_id(to + 1) - 1;
    if (hf__was_asked(exchange, "id"))
        from = to = hf__asked_number(exchange, "id");
    lookup->values[0] = hf__number_value(numbers[0], from);
    lookup->values[1] = hf__number_value(numbers[1], to);
}

int hf__api_transactions(hf_store *store, const hf__exchange *exchange,
                         const hf__snapshot *snapshot, hf__buf *out, hf__problem *problem)
{
    static const char by_hash[] = "hash = $1 AND to_id >= $2 ORDER BY to_id + 0 LIMIT $3";
    static const char by_range[] = "to_id BETWEEN $1 AND $2 ORDER BY to_id LIMIT $3";
    bool has_hash = hf__was_asked(exchange, "hash");
    char numbers[3][24], sql[640];
    struct lookup lookup = {.exchange = exchange,
                            .snapshot = snapshot,
                            .sql = sql,
                            .count = 3,
                            .is_there = has_transactions,
                            .put = put_transaction};

    if (hf__was_asked(exchange, "from") + hf__was_asked(exchange, "to") > 0
            ? has_hash || hf__was_asked(exchange, "id")
            : has_hash && hf__was_asked(exchange, "id"))
        return refuse(problem, 400, "give hash, id, or from and to");
    (void)snprintf(sql, sizeof sql, TRANSACTION_COLUMNS "%s FROM @transactions WHERE %s",
                   hf_store_is_local(store) ? LITE_TIME : PG_TIME, has_hash ? by_hash : by_range);
    if (has_hash)
        ask_for_hash(&lookup, numbers);
    else
        ask_for_range(&lookup, numbers);
    lookup.values[2] = hf__number_value(numbers[2], hf__asked_number(exchange, "limit") + 1);
    return open_and_run(store, &lookup, out, problem);
}
