#include "programs/append/resolve.h"

#include <stdio.h>
#include <string.h>

#include "programs/append/staging.h"

/* A process that was killed may have its lock for a moment still. */
enum { DYING_MS = 5000 };

static hf_status refuse_unknown(const hf_store *store, const char *id, hf_error *err)
{
    hf_status status = hf__fail(err, HF_INVALID, "%s knows no append %s that began to attach",
                                hf_store_name(store), id);

    hf__hint(err, "'holdfast append list' shows those that it knows; rows that are staged only are "
                  "dropped by a later append");
    return status;
}

static hf_status lock_id(hf__work *work, hf_error *err)
{
    int64_t wait_ms = work->options->wait_ms;

    return hf__work_lock_id(work, wait_ms >= 0 ? wait_ms : DYING_MS, err);
}

/* Under both locks nobody else changes the row. */
static hf_status lock_both(hf__work *work, hf__append_row *row, hf_error *err)
{
    hf_status status = lock_id(work, err);

    if (status == HF_OK && row->state != HF__APPEND_UNKNOWN)
        status = hf__work_lock_table(work, work->options->wait_ms, err);
    hf__append_row_free(row);
    return status == HF_OK ? hf__append_load(work->store, work->result->id, row, err) : status;
}

static hf_status say_what_it_is(hf__work *work, const hf__append_row *row, hf_error *err)
{
    hf_status status = HF_OK;

    if (row->state == HF__APPEND_ATTACHING)
        status = hf__fail(err, HF_INVALID, "append %s to %s is one on %s, and this is %s", row->id,
                          row->table, row->server, work->server);
    else if (row->state == HF__APPEND_UNKNOWN)
        status = hf__fail(err, HF_DATABASE, "append %s: nothing is attached, and %s refuses it",
                          row->id, work->target->name);
    else if (row->state == HF__APPEND_DOUBTFUL)
        status = hf__fail(err, HF_IN_DOUBT, "append %s stays doubtful: %s", row->id, row->reason);
    if (row->state == HF__APPEND_UNKNOWN)
        hf__hint(err, "its rows are staged: repeat it, or 'holdfast append forget' it");
    else if (row->state == HF__APPEND_DOUBTFUL)
        hf__hint(err,
                 "look for its rows in the table, then say --attached or --missing; they are also "
                 "in %s",
                 row->staging[0] != '\0' ? row->staging : "no table any more");
    return status;
}

static hf_status resolve(hf__work *work, hf__append_row *row, hf_error *err)
{
    hf_status status = hf__clickhouse_check(work, err);

    if (status == HF_OK)
        status = hf__clickhouse_describe(work, err);
    if (status == HF_OK)
        status = lock_both(work, row, err);
    if (status == HF_OK && row->state == HF__APPEND_UNKNOWN)
        status = refuse_unknown(work->store, work->result->id, err);
    if (status == HF_OK && row->state != HF__APPEND_DONE) {
        status = hf__leftover_finish(work, row, err);
        if (status == HF_OK)
            status = say_what_it_is(work, row, err);
    }
    return status;
}

static hf_status drop_staged(hf__work *work, size_t *count, hf_error *err)
{
    hf__target *const used = work->target;
    hf_status status = HF_OK;

    for (size_t i = 0; status == HF_OK && hf__cluster_at(work, i) != NULL; i++) {
        hf__grid grid = {0};
        work->target = hf__cluster_at(work, i);
        status = hf__staging_list(work, &grid, err);
        for (size_t row = 0; row < grid.rows && status == HF_OK; row++) {
            bool is_complete = false;
            const char *id = hf__staging_id(hf__grid_at(&grid, row, 0), &is_complete);
            if (id == NULL || strcmp(id, work->result->id) != 0)
                continue;
            status = hf__staging_drop(work, hf__grid_at(&grid, row, 0), err);
            ++*count;
        }
        hf__grid_free(&grid);
    }
    work->target = used;
    return status;
}

/* An append that has only staged its rows has no row in the store, and no table that we know of. */
static hf_status forget(hf__work *work, hf__append_row *row, hf_error *err)
{
    size_t dropped = 0;
    hf_status status = HF_OK;

    if (work->target != NULL)
        status = hf__clickhouse_check(work, err);
    else
        status = hf__table_name_parse(work->options->table, strlen(work->options->table), NULL,
                                      &work->name, err);
    if (status == HF_OK)
        status = lock_both(work, row, err);
    if (status == HF_OK && work->target != NULL)
        status = drop_staged(work, &dropped, err);
    if (status == HF_OK && row->state != HF__APPEND_UNKNOWN)
        return hf__append_remove(work->lock, row->id, err);
    return status == HF_OK && dropped == 0 ? refuse_unknown(work->store, work->result->id, err)
                                           : status;
}

static hf_status check_known(hf__work *work, hf__append_row *row, hf_error *err)
{
    hf_status status = HF_OK;

    if (row->state != HF__APPEND_UNKNOWN)
        return HF_OK;
    status = lock_id(work, err);
    if (status == HF_OK) {
        hf__append_row_free(row);
        status = hf__append_load(work->store, work->result->id, row, err);
    }
    return status == HF_OK && row->state == HF__APPEND_UNKNOWN
               ? refuse_unknown(work->store, work->result->id, err)
               : status;
}

static hf_status run(hf_store *store, hf__target *target, hf__stop *stop,
                     const hf__resolve_options *options, hf__append_row *row,
                     hf_status (*act)(hf__work *work, hf__append_row *row, hf_error *err),
                     hf_error *err)
{
    hf__append_result result = {0};
    hf__append_options append = {
        .id = options->id, .wait_ms = options->wait_ms, .events = options->events};
    hf__work work = {.store = store,
                     .target = target,
                     .stop = stop,
                     .options = &append,
                     .result = &result,
                     .assumed = options->assumed};
    char table[HF_TABLE_TEXT_MAX];
    hf_status status = hf__append_load(store, options->id, row, err);

    (void)snprintf(result.id, sizeof result.id, "%s", options->id);
    (void)snprintf(table, sizeof table, "%s", row->table); /* row is read again */
    append.table = row->state != HF__APPEND_UNKNOWN ? table : "unknown";
    if (status == HF_OK && row->state == HF__APPEND_UNKNOWN && act == resolve)
        status = refuse_unknown(store, options->id, err);
    if (status == HF_OK)
        status = act(&work, row, err);
    hf__work_close(&work);
    return status;
}

hf_status hf__append_known(hf_store *store, hf__stop *stop, const hf__resolve_options *options,
                           hf_error *err)
{
    hf__append_row row = {0};
    hf_status status = run(store, NULL, stop, options, &row, check_known, err);

    hf__append_row_free(&row);
    return status;
}

hf_status hf__append_resolve(hf_store *store, hf__target *target, hf__stop *stop,
                             const hf__resolve_options *options, hf__append_row *row, hf_error *err)
{
    return run(store, target, stop, options, row, resolve, err);
}

hf_status hf__append_forget(hf_store *store, hf__target *target, hf__stop *stop,
                            const hf__resolve_options *options, hf__append_row *row, hf_error *err)
{
    return run(store, target, stop, options, row, forget, err);
}
