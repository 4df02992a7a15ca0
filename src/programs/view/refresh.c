/* One refresh: reads the store, and makes a snapshot of what it read. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/locks/locks.h"
#include "lib/transactions/transactions.h"
#include "programs/registry/check.h"
#include "programs/view/parts.h"
#include "programs/view/sql.h"

enum { REOPEN_MS = 60 * 1000, CONNECT_MS = 5000 };

/* ---- memory ---------------------------------------------------------------------------------- */

/* Copies the options: the store may be opened again when the caller has freed them. */
static bool own_options(hf__memory *memory)
{
    hf_store_options *options = &memory->options;
    options->url = strdup(options->url ? options->url : "");
    options->application = strdup(options->application ? options->application : "holdfast");
    if (options->connect_timeout_ms <= 0)
        options->connect_timeout_ms = CONNECT_MS;
    return options->url && options->application;
}

hf_status hf__memory_open(hf__memory *memory, hf_error *err)
{
    hf_status status = HF_OK;
    memory->common = hf__common_new();
    memory->registry = memory->options.registry;
    bool ok = own_options(memory) && memory->common &&
              hf__counters_init(&memory->counters, memory->registry) &&
              hf__history_init(&memory->history, memory->counters.lock_count);
    if (!ok)
        return hf__no_memory(err);
    if (memory->registry)
        status = hf__check_registry(memory->registry, -1, &memory->common->findings, NULL, err);
    return status;
}

void hf__memory_clear(hf__memory *memory)
{
    hf__tail_reset(&memory->tail);
    hf__counters_free(&memory->counters);
    hf__history_free(&memory->history);
    hf__past_clear(&memory->past);
    hf__networks_clear(&memory->networks);
    hf__view_tables_clear(&memory->tables);
    hf__common_release(memory->common);
    hf_store_close(memory->store);
    free((void *)(uintptr_t)memory->options.url);
    free((void *)(uintptr_t)memory->options.application);
    *memory = (hf__memory){0};
}

/* The schema has been installed. If the store still cannot use it, this is tried now and then. */
static void reopen(hf__memory *memory)
{
    hf_store *store = NULL;
    hf_error ignored;
    if (memory->options.records == HF_RECORDS_OFF ||
        (memory->reopened_ms > 0 && hf__now_ms() - memory->reopened_ms < REOPEN_MS))
        return;
    memory->reopened_ms = hf__now_ms();
    if (hf_store_open(&memory->options, &store, &ignored) != HF_OK)
        return;
    hf_store_close(memory->store);
    memory->store = store;
}

/*
 * Reading.
 *
 * PostgreSQL is read in one transaction with one snapshot, so that everything is from the same
 * moment. The local store has several files, and takes a transaction for each.
 */

enum {
    DEADLINE_MS = 8000, /* a server that takes longer is a problem */
    ATTEMPTS = 2,
    DAY_MS = 24 * 60 * 60 * 1000,
};

struct gathering {
    hf__memory *memory;
    hf__view_reading *reading;
    bool again; /* try again, without the network that failed */
};

static void clear_reading(hf__view_reading *reading)
{
    hf_lock_list_free(reading->list);
    hf_rows_free(reading->events);
    hf_rows_free(reading->losses);
    hf_rows_free(reading->history);
    hf_rows_free(reading->tables);
    hf_rows_free(reading->appends);
    hf_rows_free(reading->queries);
    hf__networks_reading_free(reading);
    *reading = (hf__view_reading){0};
}

hf_tx_options hf__gather_options(void)
{
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    options.isolation = HF_REPEATABLE_READ;
    options.read_only = true;
    options.deadline_ms = DEADLINE_MS;
    options.max_attempts = ATTEMPTS;
    return options;
}

/* What a new collector reads of the time before its start. */
static hf_status first_events(hf_tx *tx, hf__view_reading *reading, hf_error *err)
{
    char limit[24], from[24];
    const hf_value since = hf__number_value(from, hf__wall_ms() - DAY_MS);
    const hf_value shown = hf__number_value(limit, HF__EVENTS_SHOWN);
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_view_losses, NULL, 1, &since, &reading->losses, err);
    if (status == HF_OK)
        status =
            hf__tx_query_sql(tx, &hf__sql_view_contention, NULL, 1, &since, &reading->history, err);
    return status == HF_OK ? hf__tx_query_sql(tx, &hf__sql_view_last_events, NULL, 1, &shown,
                                              &reading->events, err)
                           : status;
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

static hf_status new_events(hf_tx *tx, const hf__tail *tail, hf__view_reading *reading,
                            hf_error *err)
{
    char limit[24], top[24];
    hf__buf missing = {0};
    hf__tail_write_missing(tail, &missing);
    const hf_value values[] = {hf__number_value(top, tail->top), HF_TEXT(missing.data),
                               hf__number_value(limit, HF__TAIL_ROWS)};
    hf_status status = missing.broken ? hf__no_memory(err)
                                      : hf__tx_query_sql(tx, &hf__sql_view_events, NULL, 3, values,
                                                         &reading->events, err);
    hf__buf_free(&missing);
    return status;
}

static hf_status ask_for_lack(hf_tx *tx, hf__view_reading *reading, hf_error *err)
{
    hf_rows *rows = NULL;
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_view_may_lack_losses, NULL, 0, NULL, &rows, err);
    reading->may_lack_losses = status == HF_OK && hf__row_bool(rows, 0, 0);
    hf_rows_free(rows);
    return status;
}

static hf_status gather_records(hf_tx *tx, struct gathering *gathering, hf_error *err)
{
    hf__memory *memory = gathering->memory;
    hf__view_reading *reading = gathering->reading;
    hf_status status = memory->tail.started ? new_events(tx, &memory->tail, reading, err)
                                            : first_events(tx, reading, err);
    if (status == HF_OK)
        status = ask_for_lack(tx, reading, err);
    return status == HF_OK
               ? hf__view_tables_gather(&memory->tables, memory->store, tx, reading, err)
               : status;
}

static hf_status look_for_schema(hf_tx *tx, hf__view_reading *reading, hf_error *err)
{
    hf_rows *rows = NULL;
    hf_status status = hf__tx_query_sql(tx, &hf__sql_view_has_schema, NULL, 0, NULL, &rows, err);
    reading->schema_appeared = status == HF_OK && hf__row_bool(rows, 0, 0);
    hf_rows_free(rows);
    return status;
}

static hf_status gather_in(hf_tx *tx, void *arg, hf_error *err)
{
    struct gathering *gathering = arg;
    hf__memory *memory = gathering->memory;
    hf__view_reading *reading = gathering->reading;
    clear_reading(reading); /* of an attempt before */
    struct pg_conn *conn = hf__tx_connection(tx, err);
    if (!conn)
        return err->code;
    hf_status status = hf__lock_list_read_on(memory->store, conn, &reading->list, err);
    if (status == HF_OK && memory->show_queries)
        status = hf__tx_query_sql(tx, &hf__sql_view_queries, NULL, 0, NULL, &reading->queries, err);
    if (status == HF_OK)
        status = hf__store_reads_records(memory->store) ? gather_records(tx, gathering, err)
                                                        : look_for_schema(tx, reading, err);
    if (status == HF_OK)
        status = hf__networks_gather(&memory->networks, memory->store, tx, reading,
                                     &gathering->again, err);
    return status;
}

static hf_status gather_on_postgres(struct gathering *gathering, hf_error *err)
{
    hf_tx_options options = hf__gather_options();
    hf_status status = HF_OK;
    for (size_t i = 0; i <= HF__NETWORKS_SKIPPED; i++) {
        gathering->again = false;
        status = hf_transact(gathering->memory->store, &options, gather_in, gathering, err);
        if (status == HF_OK || !gathering->again)
            break;
    }
    return status;
}

/* ---- the local store ------------------------------------------------------------------------- */

static hf_status events_in_file(hf_tx *tx, void *arg, hf_error *err)
{
    struct gathering *gathering = arg;
    const hf__tail *tail = &gathering->memory->tail;
    hf__view_reading *reading = gathering->reading;
    char limit[24], from[24];
    hf_rows **const results[] = {&reading->events, &reading->losses, &reading->history};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        hf_rows_free(*results[i]);
        *results[i] = NULL;
    }
    if (tail->started) {
        const hf_value values[] = {hf__number_value(from, tail->top),
                                   hf__number_value(limit, HF__TAIL_ROWS)};
        return hf__tx_query_sql(tx, &hf__sql_view_events, NULL, 2, values, &reading->events, err);
    }
    return first_events(tx, reading, err);
}

bool hf__has_file(const hf_store *store, const char *name)
{
    hf__buf path = {0};
    hf__buf_printf(&path, "%s/%s.db", hf_store_name(store) + strlen("local:"), name);
    bool there = !path.broken && access(path.data, F_OK) == 0;
    hf__buf_free(&path);
    return there;
}

static hf_status gather_files(struct gathering *gathering, hf_error *err)
{
    hf__memory *memory = gathering->memory;
    hf_store *store = memory->store;
    hf__view_reading *reading = gathering->reading;
    hf_tx_options options = hf__gather_options();
    hf_status status = hf_lock_list_read(store, &reading->list, err);
    if (status == HF_OK && hf__store_reads_records(store) && hf__has_file(store, "holdfast")) {
        status = hf__transact_at(store, HF__PLACE_OWN, &options, events_in_file, gathering, err);
        if (status == HF_OK)
            status = hf__view_tables_gather(&memory->tables, store, NULL, reading, err);
    }
    if (status == HF_OK)
        status =
            hf__networks_gather(&memory->networks, store, NULL, reading, &gathering->again, err);
    return status;
}

/* Reads everything: in one transaction on PostgreSQL, in one for each file of a local store. */
static hf_status gather(hf__memory *memory, hf__view_reading *reading, hf_error *err)
{
    struct gathering gathering = {.memory = memory, .reading = reading};
    return hf_store_is_local(memory->store) ? gather_files(&gathering, err)
                                            : gather_on_postgres(&gathering, err);
}

/* ---- a snapshot ------------------------------------------------------------------------------ */

static void count_event(void *arg, const hf__kept_event *event)
{
    hf__counters_add(arg, event);
}

static void show_queries(const hf__view_reading *reading, hf__view_draft *draft)
{
    hf__snapshot *seen = &draft->seen;
    for (size_t i = 0; reading->queries && i < hf_rows_count(reading->queries); i++) {
        int64_t pid = hf__row_int(reading->queries, i, 0, 0);
        for (size_t p = 0; p < seen->party_count; p++)
            if (seen->parties[p].id == pid)
                seen->parties[p].query =
                    hf__arena_text(&draft->arena, hf__row_text(reading->queries, i, 1));
    }
}

static void worry(const hf__memory *memory, hf__view_draft *draft, const char *problem)
{
    hf__worries worries = {
        .losses_1h = hf__tail_losses(&memory->tail, hf__wall_ms(), 60),
        .max_lag = memory->max_lag,
        .problem = problem,
    };
    for (size_t i = 0; i < memory->tables.count; i++)
        worries.doubtful += memory->tables.appended[i].doubtful;
    hf__attention_gather(draft, &worries);
}

static hf_status take_records(hf__memory *memory, const hf__view_reading *reading,
                              const hf__view_draft *draft, hf_error *err)
{
    bool ok = true;
    if (!reading->events) {
        memory->tail.started = true; /* there is no history yet, so all that comes is new */
        return HF_OK;
    }
    if (reading->history)
        ok = hf__history_load(&memory->history, reading->history, &memory->counters,
                              memory->registry, draft->seen.taken_ms);
    ok = hf__view_tables_take(&memory->tables, reading) && ok;
    if (!ok)
        return hf__no_memory(err);
    return hf__tail_take(&memory->tail, memory->store, reading->events, reading->losses,
                         draft->seen.taken_ms, count_event, &memory->counters, err);
}

static hf_status digest(hf__memory *memory, hf__view_reading *reading, hf__view_draft *draft,
                        hf_error *err)
{
    hf_lock_list *list = reading->list;
    reading->list = NULL;
    hf__locks_sort(draft, list, memory->registry);
    hf__graph_draw(draft);
    show_queries(reading, draft);
    hf_status status = take_records(memory, reading, draft, err);
    if (status != HF_OK || draft->arena.broken)
        return status == HF_OK ? hf__no_memory(err) : status;
    hf__tail_show(&memory->tail, draft);
    draft->seen.losses_unknown =
        draft->seen.losses_24h == 0 &&
        (reading->may_lack_losses || !hf__store_reads_records(memory->store));
    hf__networks_show(&memory->networks, reading, draft);
    hf__view_tables_show(&memory->tables, reading, draft);
    hf__locks_count_unregistered(draft);
    for (size_t i = 0; i < draft->seen.table_count; i++)
        hf__counters_know_table(&memory->counters, draft->seen.tables[i].text);
    hf__counters_show(&memory->counters, draft);
    bool noted = hf__history_note(&memory->history, &draft->seen);
    hf__history_show(&memory->history, draft);
    noted = hf__past_note(&memory->past, &draft->seen, memory->common) && noted;
    hf__past_show(&memory->past, draft);
    worry(memory, draft, "");
    return draft->arena.broken || !noted ? hf__no_memory(err) : HF_OK;
}

static void describe(const hf__memory *memory, hf__view_draft *draft, uint64_t number)
{
    hf__snapshot *seen = &draft->seen;
    seen->number = number;
    seen->taken_ms = hf__wall_ms();
    seen->store = hf__arena_text(&draft->arena, hf_store_name(memory->store));
    seen->local = hf_store_is_local(memory->store);
    seen->has_records = hf__store_reads_records(memory->store);
    seen->findings = memory->registry ? &draft->common->findings : NULL;
}

/* A column that cannot be written is lost. The snapshots matter more. */
static void keep_history(hf__memory *memory)
{
    if (memory->keep_history && hf__store_reads_records(memory->store))
        (void)!hf__history_write(&memory->history, memory->store, NULL);
}

void hf__memory_end(hf__memory *memory, const hf__snapshot *latest)
{
    if (latest->problem[0]) /* the store is down: do not wait for it */
        return;
    hf__history_end(&memory->history, latest);
    keep_history(memory);
}

static void finish(hf__memory *memory, const hf__view_reading *reading)
{
    keep_history(memory);
    if (reading->schema_appeared)
        reopen(memory);
}

hf_status hf__refresh(hf__memory *memory, uint64_t number, hf__snapshot **snapshot, hf_error *err)
{
    hf__view_reading reading = {0};
    int64_t began = hf__now_ms();
    hf__view_draft *draft = hf__view_draft_new(memory->common);
    if (!draft)
        return hf__no_memory(err);
    hf_status status = HF_OK;
    if (!memory->store)
        status = hf_store_open(&memory->options, &memory->store, err);
    if (status == HF_OK)
        status = gather(memory, &reading, err);
    if (status == HF_OK) {
        describe(memory, draft, number);
        status = digest(memory, &reading, draft, err);
    }
    draft->seen.took_ms = hf__now_ms() - began;
    if (status == HF_OK) {
        finish(memory, &reading);
        *snapshot = &draft->seen;
    } else {
        hf__snapshot_release(&draft->seen);
    }
    clear_reading(&reading);
    return status;
}

hf__snapshot *hf__blank(const hf__memory *memory)
{
    hf__view_draft *draft = hf__view_draft_new(memory->common);
    if (!draft)
        return NULL;
    draft->seen.local = strncmp(memory->options.url, "local:", strlen("local:")) == 0;
    draft->seen.problem = "the first attempt to read it goes on";
    draft->seen.problem_since_ms = hf__wall_ms();
    worry(memory, draft, draft->seen.problem);
    return &draft->seen;
}

/* The reason goes into sentences, which have full stops of their own. Returns its length. */
static int reason_length(const char *reason)
{
    size_t length = strlen(reason);
    while (length > 0 && (reason[length - 1] == '.' || reason[length - 1] == ' '))
        length--;
    return (int)length;
}

hf__snapshot *hf__repeat(const hf__memory *memory, hf__snapshot *older, uint64_t number,
                         const hf_error *why)
{
    hf__view_draft *draft = hf__view_draft_again(older, number);
    if (!draft)
        return NULL;
    hf__snapshot *seen = &draft->seen;
    const char *reason = why->message[0] ? why->message : hf_status_text(why->code);
    seen->problem = hf__arena_printf(&draft->arena, "%.*s", reason_length(reason), reason);
    seen->problem_since_ms = older->problem[0] ? older->problem_since_ms : hf__wall_ms();
    worry(memory, draft, seen->problem);
    return seen;
}
