/*
 * The staged append. Rows go into a private table first, without a lock: many appends can stream at
 * once, and nobody sees their rows. Then the parts of that table are attached to the real one,
 * under its lock. Each step is written into the store before it is done, so that a crash can be
 * judged.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/append/proof.h"
#include "programs/append/staging.h"

/* ---- An id that was used before -------------------------------------------------------------- */

static hf_status refuse_doubtful(const hf__append_row *row, hf_error *err)
{
    hf_status status = hf__fail(
        err, HF_IN_DOUBT,
        "append %s to %s did not come to its end, and nothing tells any more whether its %lld rows "
        "are there",
        row->id, row->table, (long long)row->rows);

    if (row->reason[0] != '\0')
        hf__set_error(
            err, status,
            "append %s of %lld rows to %s did not come to its end, and nothing proves what "
            "it did: %s",
            row->id, (long long)row->rows, row->table, row->reason);
    if (row->staging[0] != '\0')
        hf__hint(err,
                 "look for its rows in the table: they are also in %s; then 'holdfast append "
                 "resolve' or 'forget' it",
                 row->staging);
    else
        hf__hint(err, "look for its rows in the table; append what lacks under another --id");
    return status;
}

static hf_status refuse_elsewhere(const hf__work *work, const hf__append_row *row, hf_error *err)
{
    hf_status status = hf__fail(err, HF_INVALID, "append %s to %s is one on %s, and this is %s",
                                row->id, row->table, row->server, work->server);

    hf__hint(err, "every append has an id of its own");
    return status;
}

static hf_status finish_own(hf__work *work, hf__append_row *row, hf_error *err)
{
    hf_status status = hf__work_lock_table(work, work->options->wait_ms, err);

    if (status != HF_OK)
        return status;
    hf__append_row_free(row);
    status = hf__leftovers_settle(work, err);
    if (status == HF_OK) /* that, or another before it, has settled ours */
        status = hf__append_load(work->store, work->result->id, row, err);
    if (status == HF_OK && row->state == HF__APPEND_ATTACHING)
        status = refuse_elsewhere(work, row, err);
    work->result->outcome = HF__FINISHED;
    hf_status unlocked = hf__work_unlock_table(work, status == HF_OK ? err : NULL);
    if (status == HF_OK)
        status = unlocked;
    if (status == HF_OK && row->state == HF__APPEND_DOUBTFUL)
        status = refuse_doubtful(row, err);
    return status;
}

static void describe(const hf__work *work, int64_t rows, hf__append_row *row)
{
    row->rows = rows;
    (void)snprintf(row->id, sizeof row->id, "%s", work->result->id);
    (void)snprintf(row->table, sizeof row->table, "%s", work->name.text);
    (void)snprintf(row->staging, sizeof row->staging, "%s", work->staging);
    (void)snprintf(row->server, sizeof row->server, "%s", work->server);
}

static hf_status freeze_and_plan(hf__work *work, hf__plan *plan, hf_error *err)
{
    hf__parts parts = {0};
    hf_status status = hf__staging_freeze(work, work->staging, &parts, err);

    if (status == HF_OK)
        status = hf__plan_make(&parts, plan, err);
    hf__parts_free(&parts);
    return status;
}

static hf_status write_again(hf__work *work, hf__append_row *row, hf_error *err)
{
    hf__plan plan = {0};
    bool in_the_way = true, are_equal = false;
    hf_status status = freeze_and_plan(work, &plan, err);

    if (status == HF_OK)
        status = hf__replicated_identify(work, work->staging, &plan, &are_equal, err);
    if (status == HF_OK)
        status = hf__proof_recall(work, &plan, work->staging, err);
    describe(work, plan.rows, row);
    row->state = HF__APPEND_ATTACHING;
    hf__plan_write(&plan, &row->plan);
    if (status == HF_OK && row->plan.broken)
        status = hf__no_memory(err);
    if (status == HF_OK)
        status = hf__append_save(work->lock, row, &in_the_way, err);
    if (status == HF_OK && in_the_way)
        status =
            hf__fail(err, HF_EXHAUSTED, "another append to %s stays in the way", work->name.text);
    hf__plan_free(&plan);
    return status;
}

/*
 * The store knows nothing of an append that had begun to attach: it went back, as a standby does
 * that lagged and was promoted. Only the server can tell what was done.
 */
static hf_status recall(hf__work *work, bool *over, hf_error *err)
{
    hf__append_row row = {0};
    hf_status status = hf__work_lock_table(work, work->options->wait_ms, err);

    if (status != HF_OK)
        return status;
    hf__work_note(work, "the store has lost what append %s did; the server is asked",
                  work->result->id);
    status = hf__leftovers_settle(work, err);
    if (status == HF_OK)
        status = write_again(work, &row, err);
    if (status == HF_OK)
        status = hf__leftover_finish(work, &row, err);
    hf_status unlocked = hf__work_unlock_table(work, status == HF_OK ? err : NULL);
    if (status == HF_OK)
        status = unlocked;
    *over = status != HF_OK || row.state != HF__APPEND_UNKNOWN;
    work->result->outcome = HF__FINISHED;
    work->result->rows = row.rows;
    if (status == HF_OK && row.state == HF__APPEND_DOUBTFUL)
        status = refuse_doubtful(&row, err);
    if (status == HF_OK && !*over)
        status = hf__staging_find(work, work->result->id, "", work->staging, err);
    hf__append_row_free(&row);
    return status;
}

/*
 * *over: nothing is left to do. Otherwise work->staging is what an earlier run has staged, or "".
 */
static hf_status resume(hf__work *work, bool *over, hf_error *err)
{
    hf__append_row row = {0};
    hf_status status = hf__work_load(work, &row, err);

    *over = status == HF_OK && row.state != HF__APPEND_UNKNOWN;
    if (*over && strcmp(row.table, work->name.text) != 0) {
        status = hf__fail(err, HF_INVALID, "append %s is one to %s, not to %s", row.id, row.table,
                          work->name.text);
        hf__hint(err, "every append has an id of its own");
    } else if (*over && row.state != HF__APPEND_ATTACHING && row.server[0] != '\0' &&
               strcmp(row.server, work->server) != 0) {
        status = refuse_elsewhere(work, &row, err);
    } else if (*over && row.state == HF__APPEND_DONE) {
        work->result->outcome = HF__NOTHING;
    } else if (*over && row.state == HF__APPEND_DOUBTFUL) {
        status = refuse_doubtful(&row, err);
    } else if (*over) {
        status = finish_own(work, &row, err);
        *over = row.state != HF__APPEND_UNKNOWN; /* else nothing is attached, and it starts anew */
    }
    if (*over)
        work->result->rows = row.rows;
    hf__append_row_free(&row);
    if (status == HF_OK) {
        char left[128];
        status = hf__cluster_follow(work, work->result->id, "", err);
        if (status == HF_OK)
            status = hf__staging_find(work, work->result->id, "", left, err);
        if (status == HF_OK && *over && left[0] != '\0')
            status = hf__staging_drop(work, left, err);
        else if (status == HF_OK && !*over)
            memcpy(work->staging, left, sizeof left);
        if (status == HF_OK && !*over && hf__staging_has_begun(left))
            status = recall(work, over, err);
    }
    return status;
}

/* ---- Filling the staging table --------------------------------------------------------------- */

static hf_status stage(hf__work *work, hf_error *err)
{
    hf__buf into = {0};
    char complete[128];
    bool is_fed = false;
    hf_status status = hf__staging_create(work, err);

    if (status != HF_OK)
        return status;
    status = hf__staging_try_freeze(work, err);
    if (status == HF_OK)
        status = hf__feed_halves(work, &is_fed, err);
    hf__staging_quote(work, &into);
    if (status == HF_OK && into.broken)
        status = hf__no_memory(err);
    if (status == HF_OK && !is_fed)
        status = hf__work_feed(work, into.data, work->staging, err);
    hf__buf_free(&into);
    if (status == HF_OK) {
        (void)snprintf(complete, sizeof complete, HF__STAGED_PREFIX "%s",
                       work->staging + sizeof HF__STAGING_PREFIX - 1);
        status = hf__staging_rename(work, work->staging, complete, err);
    }
    if (status == HF_OK)
        memcpy(work->staging, complete, sizeof complete);
    else
        hf__staging_discard(work, work->staging);
    return status;
}

/* ---- Attaching its parts --------------------------------------------------------------------- */

static hf_status write_plan(hf__work *work, hf__append_row *row, hf__plan *plan, hf_error *err)
{
    bool in_the_way = true;
    hf_status status = HF_OK;

    if (work->replica_count > 1) { /* other replicas do not refuse our id: look for orphans there */
        status = hf__orphan_end(work, false, err);
        if (status == HF_OK)
            status = hf__clickhouse_sync(work, err);
    }
    if (status == HF_OK)
        status = hf__leftovers_settle(work, err);
    if (status == HF_OK)
        status = hf__attach_write_plan(work, row, plan, &in_the_way, err);
    if (status == HF_OK && in_the_way)
        status =
            hf__fail(err, HF_EXHAUSTED, "another append to %s stays in the way", work->name.text);
    return status;
}

/* The rows are in the table; only the store does not say so yet. */
static hf_status say_attached(hf_status status, hf_error *err)
{
    hf_error plain = {0};

    if (err != NULL)
        plain = *err;
    hf__set_error(err, status, "%s; all of its rows are in the table", plain.message);
    hf__hint(err, "repeat with the same --id: it finds them");
    return status;
}

/*
 * Told to stop before it attached anything. What has begun is finished by whoever comes next; this
 * must be as if it had never begun.
 */
static hf_status go_back(hf__work *work, const hf__append_row *row, const char *staged,
                         hf_error *err)
{
    hf_error why = {0};
    hf_status status = HF_OK;

    if (strcmp(staged, row->staging) != 0)
        status = hf__staging_rename(work, row->staging, staged, &why);
    if (status == HF_OK)
        status = hf__append_remove(work->lock, row->id, &why);
    return status == HF_OK
               ? hf__fail(err, HF_INTERRUPTED, "told to stop; nothing is attached")
               : hf__fail(err, HF_INTERRUPTED,
                          "told to stop; nothing is attached, but the next append to %s will do "
                          "that: %s",
                          row->table, why.message);
}

/* What the store says of an append that failed while it attached. Failures leave it to a repeat. */
static void save_failure(hf__work *work, hf__append_row *row, bool is_none, const hf_error *why)
{
    bool in_the_way = false;

    if (is_none && work->target->fault.code != 0) { /* the server refuses it: it blocks nobody */
        (void)!hf__append_remove(work->lock, row->id, NULL);
    } else if (work->was_deduplicated && row->state == HF__APPEND_ATTACHING) {
        row->state = HF__APPEND_DOUBTFUL;
        (void)snprintf(row->reason, sizeof row->reason, "%.*s", HF__REASON_MAX - 1,
                       why != NULL ? why->message : "");
        (void)!hf__append_save(work->lock, row, &in_the_way, NULL);
    }
}

static hf_status attach_locked(hf__work *work, hf__append_row *row, hf__plan *plan, hf_error *err)
{
    hf__verdict *verdicts = calloc(plan->partition_count + 1, sizeof *verdicts);
    hf_lock *const locks[] = {work->lock, work->own};
    bool is_none = false;
    char staged[sizeof row->staging];

    if (verdicts == NULL)
        return hf__no_memory(err);
    memcpy(staged, row->staging, sizeof staged);
    hf_status status = write_plan(work, row, plan, err);
    memcpy(work->staging, row->staging, sizeof work->staging);
    if (status == HF_OK) {
        status = hf__attach_missing(work, plan, verdicts, work->staging, &is_none, err);
        if (status == HF_INTERRUPTED && is_none)
            status = go_back(work, row, staged, err);
        else if (status != HF_OK)
            save_failure(work, row, is_none, err);
    }
    free(verdicts);
    row->state = HF__APPEND_DONE;
    if (status == HF_OK) {
        status = hf__append_save_last(locks, row, err);
        if (status != HF_OK)
            status = say_attached(status, err);
    }
    return status;
}

static void remind_of_id(const hf__work *work, hf_error *err)
{
    if (err != NULL && err->hint[0] == '\0')
        hf__hint(err, "repeat with --id %s: the rows are staged, and it goes on from there",
                 work->result->id);
}

static hf_status attach(hf__work *work, hf__plan *plan, hf_error *err)
{
    hf__append_row row = {0};
    hf_status status = hf__work_lock_table(work, work->options->wait_ms, err);

    describe(work, plan->rows, &row);
    if (status == HF_OK) {
        status = attach_locked(work, &row, plan, err);
        if (status == HF_OK)
            hf__work_record(work, row.rows);
        /* The append is done: a lock that gets lost now changes nothing. */
        (void)!hf__work_unlock_table(work, NULL);
    }
    hf__append_row_free(&row);
    if (status != HF_OK)
        remind_of_id(work, err);
    return status;
}

/* *is_equal, with HF_OK or not: nothing was attached, since parts are equal to others. */
static hf_status try_to_attach(hf__work *work, hf__plan *plan, bool is_kept, bool *is_equal,
                               hf_error *err)
{
    *is_equal = false;
    hf_status status = freeze_and_plan(work, plan, err);
    if (status == HF_OK && plan->part_count > plan->partition_count && !is_kept) {
        status = hf__staging_keep(work, plan, err);
        hf__plan_free(plan);
        if (status == HF_OK)
            status = freeze_and_plan(work, plan, err);
    }
    if (status == HF_OK) {
        work->result->rows = plan->rows;
        work->result->parts = (int64_t)plan->part_count;
        work->result->partitions = (int64_t)plan->partition_count;
        status = hf__work_check(work, err);
    }
    if (status == HF_OK)
        status = hf__replicated_identify(work, work->staging, plan, is_equal, err);
    if (status == HF_OK && !*is_equal) {
        status = attach(work, plan, err);
        *is_equal = status != HF_OK && work->is_equal_to_known;
    }
    return status;
}

static hf_status attach_staged(hf__work *work, hf_error *err)
{
    hf__plan plan = {0};
    bool is_equal = false;
    hf_status status = try_to_attach(work, &plan, false, &is_equal, err);

    /* Merged, the parts of a partition are another part than those that they are equal to. */
    if (is_equal && plan.part_count > plan.partition_count) {
        status = hf__staging_merge(work, work->staging, &plan, err);
        hf__plan_free(&plan);
        if (status == HF_OK)
            status = try_to_attach(work, &plan, true, &is_equal, err);
    }
    if (status == HF_OK && is_equal)
        status = hf__fail(err, HF_DATABASE, "%s: equal parts of %s could not be merged",
                          work->target->name, work->staging);
    if (status != HF_OK)
        work->result->rows = 0;
    hf__plan_free(&plan);
    return status;
}

/*
 * Without its locks an append may fail in ways of its own: another one has settled it, and dropped
 * its staging table. What that one has recorded counts then, and not what the server said.
 */
static hf_status look_for_loss(hf__work *work, hf_status status, hf_error *err)
{
    hf__append_row row = {0};
    hf_error why = {0};

    if (status == HF_OK || status == HF_INTERRUPTED || work->own == NULL || err == NULL)
        return status;
    hf_error plain = *err;
    if (status != HF_LOST &&
        (hf_store_is_local(work->store) || hf__append_check_held(work->own, &why) != HF_LOST))
        return status;
    if (status != HF_LOST)
        status =
            hf__fail(err, HF_LOST, "%s; what it did last failed: %s", why.message, plain.message);
    if (hf__append_load(work->store, work->result->id, &row, NULL) == HF_OK &&
        row.state == HF__APPEND_DONE) {
        plain = *err;
        hf__set_error(err, status,
                      "%s; another append has finished this one: all of its rows are in the table",
                      plain.message);
    }
    hf__hint(err, "repeat with --id %s: it finds what was done", work->result->id);
    hf__append_row_free(&row);
    return status;
}

static hf_status run(hf__work *work, hf_error *err)
{
    bool over = false;
    if (work->options->id == NULL)
        hf__work_note(work, "append %s to %s", work->result->id, work->name.text);
    hf_status status = hf__work_lock_id(work, work->options->wait_ms, err);

    work->result->is_staged = true;
    if (status == HF_OK && work->options->id != NULL)
        status = resume(work, &over, err);
    if (status != HF_OK || over)
        return status;
    hf__leftovers_sweep(work);
    bool is_staged = work->staging[0] != '\0';
    if (is_staged)
        work->result->outcome = HF__RESUMED;
    else
        status = stage(work, err);
    if (status == HF_OK)
        status = attach_staged(work, err);
    if (status == HF_OK)
        hf__staging_discard(work, work->staging);
    return status;
}

hf_status hf__staged_run(hf__work *work, hf_error *err)
{
    return look_for_loss(work, run(work, err), err);
}
