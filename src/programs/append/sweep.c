/* What dead appends have left behind. An append is dead when its lock is free. */
#include <inttypes.h>
#include <string.h>

#include "programs/append/staging.h"

static hf_status try_table(hf__work *work, const hf__append_row *row, hf_error *err)
{
    hf__table_name name;
    hf_status status = hf__table_name_parse(row->table, strlen(row->table), NULL, &name, err);

    /* Another table's append is settled by whoever appends to that one next. */
    if (status != HF_OK || strcmp(name.text, work->name.text) != 0)
        return status;
    status = hf__work_lock_table(work, 0, err);
    if (status == HF_NOT_ACQUIRED)
        return HF_OK; /* who has it settles it */
    if (status != HF_OK)
        return status;
    hf__append_row now = {0};
    status = hf__append_load(work->store, row->id, &now, err);
    if (status == HF_OK && now.state == HF__APPEND_ATTACHING)
        status = hf__settle(work, &now, err);
    hf__append_row_free(&now);
    hf_status unlocked = hf__work_unlock_table(work, err);
    return status != HF_OK ? status : unlocked;
}

static hf_status sweep_complete(hf__work *work, const char *name, const char *id, int64_t age_ms,
                                hf_error *err)
{
    hf__append_row row = {0};
    hf_status status = hf__append_load(work->store, id, &row, err);

    if (status == HF_OK && row.state == HF__APPEND_ATTACHING)
        status = try_table(work, &row, err);
    else if (status == HF_OK && row.state == HF__APPEND_DONE)
        status = hf__staging_drop(work, name, err);
    else if (status == HF_OK && age_ms >= work->options->keep_ms) {
        status = hf__staging_drop(work, name, err);
        if (status == HF_OK)
            hf__work_note(work, "dropped %s, which append %s had left complete", name, id);
    }
    hf__append_row_free(&row);
    return status;
}

static hf_status sweep_one(hf__work *work, const char *name, int64_t age_ms, hf_error *err)
{
    bool is_complete = false;
    const char *id = hf__staging_id(name, &is_complete);
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_lock *lock = NULL;

    if (id == NULL || strcmp(id, work->result->id) == 0)
        return HF_OK;
    spec.wait_ms = 0;
    hf_status status = hf__append_lock(work->store, id, &spec, NULL, &lock, err);
    if (status == HF_NOT_ACQUIRED)
        return HF_OK; /* it lives */
    if (status != HF_OK)
        return status;
    if (is_complete) {
        status = sweep_complete(work, name, id, age_ms, err);
    } else {
        status = hf__staging_drop(work, name, err);
        if (status == HF_OK)
            hf__work_note(work, "dropped %s, which a dead append had left", name);
    }
    hf_lock_free(lock);
    return status;
}

static void sweep_here(hf__work *work)
{
    hf__grid grid = {0};
    hf_error err;
    hf_status status = hf__staging_list(work, &grid, &err);

    for (size_t i = 0; i < grid.rows && hf__halt_get(work->halt) == HF__GO_ON; i++) {
        hf_status swept =
            sweep_one(work, hf__grid_at(&grid, i, 0), hf__grid_number(&grid, i, 1), &err);
        if (swept != HF_OK)
            hf__work_note(work, "a dead append's staging table is left for the next sweep: %s",
                          err.message);
    }
    if (status != HF_OK)
        hf__work_note(work, "dead appends are not looked for: %s", err.message);
    hf__grid_free(&grid);
}

void hf__sweep(hf__work *work)
{
    hf__target *const used = work->target;

    for (size_t i = 0; hf__cluster_at(work, i) != NULL; i++) {
        work->target = hf__cluster_at(work, i);
        sweep_here(work);
        work->target = used;
    }
}
