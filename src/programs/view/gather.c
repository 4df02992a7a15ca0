/*
 * One refresh's reading. PostgreSQL is asked in one transaction with one snapshot, so that what belongs
 * together is told as of one moment; the local store has a file, and so a transaction, for each thing.
 */
#include "programs/view/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/locks/list.h"
#include "lib/transactions/transactions.h"
#include "programs/view/rows.h"
#include "programs/view/sql.h"

enum {
    DEADLINE_MS = 8000, /* a server that takes longer is told of as a problem */
    ATTEMPTS = 2,
    DAY_MS = 24 * 60 * 60 * 1000,
};

struct gathering {
    hf__memory *memory;
    hf__reading *reading;
    bool again; /* without a network that has failed */
};

void hf__reading_clear(hf__reading *reading)
{
    hf_lock_list_free(reading->list);
    hf_rows_free(reading->events);
    hf_rows_free(reading->losses);
    hf_rows_free(reading->history);
    hf_rows_free(reading->tables);
    hf_rows_free(reading->appends);
    hf_rows_free(reading->queries);
    hf__networks_reading_free(reading);
    *reading = (hf__reading){0};
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

hf_value hf__gather_number(char out[24], int64_t value)
{
    (void)snprintf(out, 24, "%" PRId64, value);
    return HF_TEXT(out);
}

/* ---- PostgreSQL ---------------------------------------------------------------------------------- */

static hf_status first_events(hf_tx *tx, hf__reading *reading, hf_error *err)
{
    char limit[24];
    const hf_value shown = hf__gather_number(limit, HF__EVENTS_SHOWN);
    hf_status status =
        hf_tx_query(tx, hf__sql_view_postgres_losses, 0, NULL, false, &reading->losses, err);
    if (status == HF_OK)
        status = hf_tx_query(tx, hf__sql_view_postgres_contention, 0, NULL, false,
                             &reading->history, err);
    return status == HF_OK ? hf_tx_query(tx, hf__sql_view_postgres_last_events, 1, &shown, false,
                                         &reading->events, err)
                           : status;
}

static hf_status new_events(hf_tx *tx, const hf__tail *tail, hf__reading *reading, hf_error *err)
{
    char limit[24], top[24];
    hf__buf missing = {0};
    hf__tail_write_missing(tail, &missing);
    const hf_value values[] = {hf__gather_number(top, tail->top), HF_TEXT(missing.data),
                               hf__gather_number(limit, HF__TAIL_ROWS)};
    hf_status status = missing.broken ? hf__fail(err, HF_NO_MEMORY, "out of memory")
                                      : hf_tx_query(tx, hf__sql_view_postgres_events, 3, values,
                                                    false, &reading->events, err);
    hf__buf_free(&missing);
    return status;
}

static hf_status gather_records(hf_tx *tx, struct gathering *gathering, hf_error *err)
{
    hf__memory *memory = gathering->memory;
    hf__reading *reading = gathering->reading;
    hf_status status = memory->tail.started ? new_events(tx, &memory->tail, reading, err)
                                            : first_events(tx, reading, err);
    return status == HF_OK ? hf__tables_gather(&memory->tables, memory->store, tx, reading, err)
                           : status;
}

/* Somebody may have run `holdfast init` since. */
static hf_status look_for_schema(hf_tx *tx, hf__reading *reading, hf_error *err)
{
    hf_rows *rows = NULL;
    hf_status status =
        hf_tx_query(tx, "SELECT pg_catalog.to_regclass('holdfast.contention') IS NOT NULL", 0, NULL,
                    false, &rows, err);
    reading->schema_appeared = status == HF_OK && hf__row_bool(rows, 0, 0);
    hf_rows_free(rows);
    return status;
}

static hf_status gather_in(hf_tx *tx, void *arg, hf_error *err)
{
    struct gathering *gathering = arg;
    hf__memory *memory = gathering->memory;
    hf__reading *reading = gathering->reading;
    hf__reading_clear(reading); /* of an attempt before */
    struct pg_conn *conn = hf_tx_connection(tx, err);
    if (!conn)
        return err->code;
    hf_status status = hf__lock_list_read_on(memory->store, conn, &reading->list, err);
    if (status == HF_OK && memory->show_queries)
        status =
            hf_tx_query(tx, hf__sql_view_postgres_queries, 0, NULL, false, &reading->queries, err);
    if (status == HF_OK)
        status = hf_store_has_records(memory->store) ? gather_records(tx, gathering, err)
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

/* ---- the local store ----------------------------------------------------------------------------- */

static hf_status events_in_file(hf_tx *tx, void *arg, hf_error *err)
{
    struct gathering *gathering = arg;
    const hf__tail *tail = &gathering->memory->tail;
    hf__reading *reading = gathering->reading;
    char limit[24], from[24];
    hf_rows **const results[] = {&reading->events, &reading->losses, &reading->history};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        hf_rows_free(*results[i]);
        *results[i] = NULL;
    }
    if (tail->started) {
        const hf_value values[] = {hf__gather_number(from, tail->top),
                                   hf__gather_number(limit, HF__TAIL_ROWS)};
        return hf_tx_query(tx, hf__sql_view_local_events, 2, values, false, &reading->events, err);
    }
    const hf_value since = hf__gather_number(from, hf__wall_ms() - DAY_MS);
    const hf_value shown = hf__gather_number(limit, HF__EVENTS_SHOWN);
    hf_status status =
        hf_tx_query(tx, hf__sql_view_local_losses, 1, &since, false, &reading->losses, err);
    if (status == HF_OK)
        status = hf_tx_query(tx, hf__sql_view_local_contention, 1, &since, false, &reading->history,
                             err);
    return status == HF_OK ? hf_tx_query(tx, hf__sql_view_local_last_events, 1, &shown, false,
                                         &reading->events, err)
                           : status;
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
    hf__reading *reading = gathering->reading;
    hf_tx_options options = hf__gather_options();
    hf_status status = hf_lock_list_read(store, &reading->list, err);
    if (status == HF_OK && hf_store_has_records(store) && hf__has_file(store, "holdfast")) {
        status = hf__transact_at(store, HF__TX_OWN, &options, events_in_file, gathering, err);
        if (status == HF_OK)
            status = hf__tables_gather(&memory->tables, store, NULL, reading, err);
    }
    if (status == HF_OK)
        status =
            hf__networks_gather(&memory->networks, store, NULL, reading, &gathering->again, err);
    return status;
}

hf_status hf__gather(hf__memory *memory, hf__reading *reading, hf_error *err)
{
    struct gathering gathering = {.memory = memory, .reading = reading};
    return hf_store_is_local(memory->store) ? gather_files(&gathering, err)
                                            : gather_on_postgres(&gathering, err);
}
