/* /api/v1/ingest, its gaps, /api/v1/tables, and the lookups /api/v1/ledgers and /transactions. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "base/text.h"
#include "lib/ledgers/ledgers.h"
#include "programs/serve/api.h"
#include "programs/serve/sql.h"

const hf__shape hf__network_shape[] = {
    HF__SHAPE(
        "network", "string",
        "its name; NAME@SCHEMA where the schema is not ingest_NAME, @SCHEMA where nobody wrote "
        "the name down"),
    HF__SHAPE("schema", "string", "that its tables are in; local: their file"),
    HF__SHAPE("exists", "boolean", "there are tables"),
    HF__SHAPE_OR_NULL("problem", "string", "why it could not be read: the rest is not known then"),
    HF__SHAPE_OR_NULL("ingester", "string", "who holds the network's lock"),
    HF__SHAPE_OR_NULL("latest", "integer", "ledger"),
    HF__SHAPE_OR_NULL("oldest", "integer", "ledger"),
    HF__SHAPE_OR_NULL("wanted_from", "integer", "ledger"),
    HF__SHAPE_OR_NULL("floor", "integer", "below it nothing is kept"),
    HF__SHAPE_OR_NULL("closed_at", "string", "of the latest ledger"),
    HF__SHAPE_OR_NULL("age_ms", "integer", "since then"),
    HF__SHAPE_OR_NULL("source_tip", "integer", "the newest ledger that the source spoke of"),
    HF__SHAPE_OR_NULL("lag", "integer", "ledgers behind that; negative: ahead of what it said"),
    HF__SHAPE_OR_NULL("rate", "number", "ledgers a second over the last minute"),
    HF__SHAPE_OR_NULL("last_success", "string", "time of the last commit"),
    HF__SHAPE_OR_NULL("live_ledgers", "integer", "committed since the network began"),
    HF__SHAPE_OR_NULL("backfill_ledgers", "integer", "likewise by backfills"),
    HF__SHAPE_OR_NULL("covered", "integer", "ledgers that are there"),
    HF__SHAPE_OR_NULL("ranges", "integer", "of them"),
    HF__SHAPE_OR_NULL("gaps", "integer", "ranges that are wanted and not there"),
    HF__SHAPE_OR_NULL("missing", "integer", "ledgers in them"),
    HF__SHAPE_OR_NULL("quarantined", "integer", "lines that the ingester refused"),
    HF__SHAPE_OR_NULL("transactions_estimate", "integer", "PostgreSQL's own estimate"),
    HF__SHAPE("disagrees", "boolean", "cursor and coverage do"),
    {0},
};

const hf__shape hf__gap_shape[] = {
    HF__SHAPE("from", "integer", "first ledger that is missing"),
    HF__SHAPE("to", "integer", "last one"),
    HF__SHAPE("ledgers", "integer", "how many"),
    {0},
};

const hf__shape hf__table_shape[] = {
    HF__SHAPE("table", "string", "cluster/database.table"),
    HF__SHAPE_OR_NULL("cluster", "string", "first part"),
    HF__SHAPE("database", "string", "second part"),
    HF__SHAPE("name", "string", "third part"),
    HF__SHAPE("id", "integer", "minted, 64 bits; the key of its lock"),
    HF__SHAPE("id_text", "string", "the same as text"),
    HF__SHAPE_OR_NULL("created_at", "string", "when its id was minted"),
    HF__SHAPE("references", "integer", "contexts that own it"),
    HF__SHAPE("appends", "integer", "as recorded"),
    HF__SHAPE("appended_rows", "integer", "as recorded"),
    HF__SHAPE_OR_NULL("last_append_at", "string", "when"),
    HF__SHAPE_OR_NULL("state", "string", "of its last append"),
    HF__SHAPE("held", "boolean", "somebody holds its lock"),
    HF__SHAPE("waiters", "integer", "who wait for its lock"),
    {0},
};

/* ---- networks ---- */

static void put_progress(hf__json *json, const hf__seen_network *network)
{
    const hf__network_status *status = &network->status;
    hf__maybe success = status->last_success_ms;

    hf__json_put_text(json, "closed_at", status->closed_at);
    hf__put_ms(json, "age_ms", status->closed_at[0] != '\0' ? status->age_ms : -1);
    hf__put_maybe(json, "source_tip", status->source_tip);
    hf__put_maybe(json, "lag", network->lag);
    if (network->rate >= 0)
        hf__json_put_real(json, "rate", network->rate);
    else
        hf__json_put_null(json, "rate");
    hf__put_when(json, "last_success", success.known ? success.value : 0);
    hf__put_maybe(json, "live_ledgers", status->live_ledgers);
    hf__put_maybe(json, "backfill_ledgers", status->backfill_ledgers);
}

static void put_coverage(hf__json *json, const hf__network_status *status)
{
    hf__put_maybe(json, "covered", (hf__maybe){status->has_coverage, status->covered});
    hf__put_maybe(json, "ranges", (hf__maybe){status->has_coverage, (int64_t)status->ranges});
    hf__put_maybe(json, "gaps", status->gaps);
    hf__put_maybe(json, "missing", (hf__maybe){status->gaps.known, status->missing});
    hf__put_maybe(json, "quarantined", status->quarantined);
    hf__put_maybe(json, "transactions_estimate", status->transactions);
    hf__json_put_boolean(json, "disagrees", status->disagrees);
}

static void put_network(hf__json *json, const hf__seen_network *network)
{
    const hf__network_status *status = &network->status;

    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "network", network->name);
    hf__json_put_string(json, "schema", network->schema);
    hf__json_put_boolean(json, "exists", status->exists);
    hf__json_put_text(json, "problem", network->problem);
    hf__json_put_text(json, "ingester", network->ingester);
    hf__put_maybe(json, "latest", status->latest);
    hf__put_maybe(json, "oldest", status->oldest);
    hf__put_maybe(json, "wanted_from", status->wanted_from);
    hf__put_maybe(json, "floor", status->floor);
    put_progress(json, network);
    put_coverage(json, status);
    hf__json_end_object(json);
}

int hf__api_ingest(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                   hf__problem *problem)
{
    hf__api_list list = hf__api_list_begin(exchange, snapshot);
    const char *name = hf__asked(exchange, "network");

    (void)problem;
    for (size_t i = 0; i < snapshot->network_count; i++) {
        const hf__seen_network *network = &snapshot->networks[i];
        if ((name[0] == '\0' || strcmp(name, network->name) == 0) && hf__api_list_takes(&list))
            put_network(&list.json, network);
    }
    hf__api_list_end_data(&list);
    return hf__api_list_end(&list, NULL, out);
}

/* ---- gaps ---- */

static const hf__seen_network *find_network(const hf__snapshot *snapshot, const char *name)
{
    for (size_t i = 0; i < snapshot->network_count; i++)
        if (strcmp(snapshot->networks[i].name, name) == 0)
            return &snapshot->networks[i];
    return NULL;
}

static void put_gap(hf__json *json, hf_range gap)
{
    hf__json_begin_object(json, NULL);
    hf__json_put_integer(json, "from", gap.from);
    hf__json_put_integer(json, "to", gap.to);
    hf__json_put_integer(json, "ledgers", gap.to - gap.from + 1);
    hf__json_end_object(json);
}

int hf__api_gaps(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                 hf__problem *problem)
{
    const hf__seen_network *network = find_network(snapshot, exchange->segment);
    int64_t from = hf__asked_number(exchange, "from"), to = hf__asked_number(exchange, "to");

    if (network == NULL) {
        hf__refuse(problem, 404, "there is no network of this name");
        return problem->status;
    }
    if (network->problem[0] != '\0' ||
        (network->status.latest.known && !network->status.gaps.known)) {
        hf__refuse(problem, 503, "the gaps are not known: %.300s",
                   network->problem[0] != '\0' ? network->problem
                                               : "the network has cursors and no coverage");
        return problem->status;
    }
    hf__api_list list = hf__api_list_begin(exchange, snapshot);
    for (size_t i = 0; i < network->gap_count; i++)
        if (network->gaps[i].to >= from && network->gaps[i].from <= to && hf__api_list_takes(&list))
            put_gap(&list.json, network->gaps[i]);
    hf__api_list_end_data(&list);
    return hf__api_list_end(&list, NULL, out);
}

/* ---- tables ---- */

static void put_table(hf__json *json, const hf__snapshot *snapshot, const hf__seen_table *table)
{
    const hf__seen_lock *lock =
        table->lock < snapshot->lock_count ? &snapshot->locks[table->lock] : NULL;

    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "table", table->text);
    hf__json_put_text(json, "cluster", table->cluster);
    hf__json_put_string(json, "database", table->database);
    hf__json_put_string(json, "name", table->table);
    hf__json_put_big(json, "id", table->id);
    hf__put_when(json, "created_at", table->created_ms);
    hf__json_put_integer(json, "references", table->references);
    hf__json_put_integer(json, "appends", table->appends);
    hf__json_put_integer(json, "appended_rows", table->appended_rows);
    hf__put_when(json, "last_append_at", table->last_append_ms);
    hf__json_put_text(json, "state", table->state);
    hf__json_put_boolean(json, "held", lock != NULL && lock->holders > 0);
    hf__json_put_integer(json, "waiters", lock != NULL ? (int64_t)lock->waiters : 0);
    hf__json_end_object(json);
}

int hf__api_tables(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                   hf__problem *problem)
{
    hf__api_list list = hf__api_list_begin(exchange, snapshot);
    const char *state = hf__asked(exchange, "state");

    (void)problem;
    for (size_t i = 0; i < snapshot->table_count; i++) {
        const hf__seen_table *table = &snapshot->tables[i];
        if ((state[0] == '\0' || strcmp(state, table->state) == 0) &&
            hf__text_fits(hf__asked(exchange, "q"), &table->text, 1) && hf__api_list_takes(&list))
            put_table(&list.json, snapshot, table);
    }
    hf__api_list_end_data(&list);
    return hf__api_list_end(&list, NULL, out);
}

/*
 * ---- lookups ---- Ledgers and transactions are read from the store, on the collector's thread.
 * They come by primary key from the cursor on, so that no page costs more than another.
 */

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

enum { LOOKUP_MS = 5000 };

/* One page of rows of a table. */
struct lookup {
    const hf__exchange *exchange;
    const hf__snapshot *snapshot;
    hf_network *network;
    const hf__sql *sql;
    hf_value values[3];
    size_t count;
    bool (*is_there)(const hf__tables_there *there);
    void (*put)(hf__api_list *list, const hf_rows *rows, size_t row);
    hf__api_list list;
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

/* If the page is full, its last row says where the next page begins. */
static hf_status write_rows(struct lookup *lookup, const hf_rows *rows)
{
    size_t limit = (size_t)lookup->list.limit;

    for (size_t i = 0; i < hf_rows_count(rows) && i < limit; i++) {
        lookup->put(&lookup->list, rows, i);
        lookup->list.shown++;
    }
    if (hf_rows_count(rows) > limit)
        (void)snprintf(lookup->next, sizeof lookup->next, "%s", hf__row_text(rows, limit - 1, 0));
    return HF_OK;
}

static hf_status read_page(hf_tx *tx, void *arg, hf_error *err)
{
    struct lookup *lookup = arg;
    hf__tables_there there = {0};
    hf_rows *rows = NULL;

    hf__buf_free(&lookup->list.json.text); /* of an attempt before */
    lookup->list = hf__api_list_begin(lookup->exchange, lookup->snapshot);
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

static int refuse(hf__problem *problem, int status, const char *detail)
{
    hf__refuse(problem, status, "%s", detail);
    return status;
}

/*
 * The collector waits for this, and so does the end of the program. Therefore the lookup gives up
 * soon when somebody's ALTER TABLE is in its way. With SQLite a reader never waits.
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

    lookup->list = hf__api_list_begin(lookup->exchange, lookup->snapshot);
    hf_status status = read_rows(store, lookup, &err);
    if (status != HF_OK) {
        bool may_pass = status == HF_UNREACHABLE || status == HF_EXHAUSTED;
        hf__buf_free(&lookup->list.json.text);
        return refuse(problem, may_pass ? 503 : 500, err.message);
    }
    hf__api_list_end_data(&lookup->list);
    return hf__api_list_end(&lookup->list, lookup->next, out);
}

static int open_and_run(hf_store *store, struct lookup *lookup, hf__buf *out, hf__problem *problem)
{
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf_error err;
    const hf__seen_network *seen =
        find_network(lookup->snapshot, hf__asked(lookup->exchange, "network"));

    if (seen == NULL)
        return refuse(problem, 404, "there is no network of this name");
    options.name = seen->network;
    options.schema = seen->schema;
    if (hf_network_open(store, &options, &lookup->network, &err) != HF_OK)
        return refuse(problem, 500, err.message);
    int status = run(store, lookup, out, problem);
    hf_network_free(lookup->network);
    return status;
}

/* ---- ledgers ---- */

static bool has_ledgers(const hf__tables_there *there)
{
    return there->ledgers;
}

static void put_ledger(hf__api_list *list, const hf_rows *rows, size_t row)
{
    hf__json *json = &list->json;

    hf__json_begin_object(json, NULL);
    put_number(json, "sequence", rows, row, 0);
    hf__json_put_string(json, "hash", hf__row_text(rows, row, 1));
    hf__json_put_text(json, "previous_hash", hf__row_text(rows, row, 2));
    hf__json_put_string(json, "closed_at", hf__row_text(rows, row, 4));
    put_number(json, "transaction_count", rows, row, 3);
    hf__json_end_object(json);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Where to go on: the cursor is the last one that was shown. */
static int64_t after_cursor(const hf__exchange *exchange)
{
    return hf__was_asked(exchange, "cursor") ? hf__asked_number(exchange, "cursor") + 1 : 0;
}

int hf__api_ledgers(hf_store *store, const hf__exchange *exchange, const hf__snapshot *snapshot,
                    hf__buf *out, hf__problem *problem)
{
    char from[24], to[24], limit[24];
    struct lookup lookup = {.exchange = exchange,
                            .snapshot = snapshot,
                            .sql = &hf__sql_serve_ledgers,
                            .count = 3,
                            .is_there = has_ledgers,
                            .put = put_ledger};

    lookup.values[0] =
        hf__number_value(from, later(hf__asked_number(exchange, "from"), after_cursor(exchange)));
    lookup.values[1] = hf__number_value(to, hf__asked_number(exchange, "to"));
    lookup.values[2] = hf__number_value(limit, hf__asked_number(exchange, "limit") + 1);
    return open_and_run(store, &lookup, out, problem);
}

/* ---- transactions ---- */

/* An id has the ledger in its high bits, and order and operation in its low bits. */
enum { LEDGER_SHIFT = 32 };

static bool has_transactions(const hf__tables_there *there)
{
    return there->transactions;
}

/* JSON as it is. An adopted table may have other text, which becomes a string. */
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

static void put_transaction(hf__api_list *list, const hf_rows *rows, size_t row)
{
    hf__json *json = &list->json;
    size_t body_size = 0;
    const char *body = hf_rows_value(rows, row, 6, &body_size);
    int64_t id = 0;

    hf__json_begin_object(json, NULL);
    if (hf__row_number(rows, row, 0, "id", &id, NULL) == HF_OK)
        hf__json_put_big(json, "id", id);
    put_number(json, "ledger", rows, row, 4);
    put_number(json, "application_order", rows, row, 3);
    hf__json_put_string(json, "hash", hf__row_text(rows, row, 1));
    hf__json_put_text(json, "status", hf__row_text(rows, row, 2));
    put_number(json, "fee", rows, row, 5);
    hf__json_put_string(json, "closed_at", hf__row_text(rows, row, 7));
    put_body(json, body, body_size);
    hf__json_end_object(json);
}

static int64_t first_id(int64_t ledger)
{
    return ledger > INT32_MAX ? INT64_MAX : ledger << LEDGER_SHIFT;
}

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
    bool has_hash = hf__was_asked(exchange, "hash");
    char numbers[3][24];
    struct lookup lookup = {.exchange = exchange,
                            .snapshot = snapshot,
                            .sql = has_hash ? &hf__sql_serve_transactions_by_hash
                                            : &hf__sql_serve_transactions,
                            .count = 3,
                            .is_there = has_transactions,
                            .put = put_transaction};

    if (hf__was_asked(exchange, "from") + hf__was_asked(exchange, "to") > 0
            ? has_hash || hf__was_asked(exchange, "id")
            : has_hash && hf__was_asked(exchange, "id"))
        return refuse(problem, 400, "give hash, id, or from and to");
    if (has_hash)
        ask_for_hash(&lookup, numbers);
    else
        ask_for_range(&lookup, numbers);
    lookup.values[2] = hf__number_value(numbers[2], hf__asked_number(exchange, "limit") + 1);
    return open_and_run(store, &lookup, out, problem);
}
