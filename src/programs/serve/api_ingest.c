/* /api/v1/ingest, its gaps, and /api/v1/tables. */
#include <string.h>

#include "programs/serve/api.h"

const hf__shape hf__network_shape[] = {
    HF__SHAPE("network", "string", "its name"),
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

/* ---- networks -------------------------------------------------------------------------------------------- */

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
    hf__list list = hf__list_begin(exchange, snapshot);
    const char *name = hf__asked(exchange, "network");

    (void)problem;
    for (size_t i = 0; i < snapshot->network_count; i++) {
        const hf__seen_network *network = &snapshot->networks[i];
        if ((name[0] == '\0' || strcmp(name, network->name) == 0) && hf__list_takes(&list))
            put_network(&list.json, network);
    }
    hf__list_end_data(&list);
    return hf__list_end(&list, NULL, out);
}

/* ---- gaps ------------------------------------------------------------------------------------------------- */

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
    hf__list list = hf__list_begin(exchange, snapshot);
    for (size_t i = 0; i < network->gap_count; i++)
        if (network->gaps[i].to >= from && network->gaps[i].from <= to && hf__list_takes(&list))
            put_gap(&list.json, network->gaps[i]);
    hf__list_end_data(&list);
    return hf__list_end(&list, NULL, out);
}

/* ---- tables ------------------------------------------------------------------------------------------------- */

static void put_table(hf__json *json, const hf__snapshot *snapshot, const hf__seen_table *table)
{
    const hf__seen_lock *lock =
        table->lock < snapshot->lock_count ? &snapshot->locks[table->lock] : NULL;

    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "table", table->text);
    hf__json_put_text(json, "cluster", table->cluster);
    hf__json_put_string(json, "database", table->database);
    hf__json_put_string(json, "name", table->table);
    hf__put_big(json, "id", "id_text", table->id);
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
    hf__list list = hf__list_begin(exchange, snapshot);
    const char *state = hf__asked(exchange, "state");

    (void)problem;
    for (size_t i = 0; i < snapshot->table_count; i++) {
        const hf__seen_table *table = &snapshot->tables[i];
        if ((state[0] == '\0' || strcmp(state, table->state) == 0) &&
            hf__text_fits(hf__asked(exchange, "q"), &table->text, 1) && hf__list_takes(&list))
            put_table(&list.json, snapshot, table);
    }
    hf__list_end_data(&list);
    return hf__list_end(&list, NULL, out);
}
