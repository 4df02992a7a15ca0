/* What appends that died have left: statements that still run, half an ATTACH, staging tables. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/time.h"
#include "programs/append/proof.h"
#include "programs/append/staging.h"
#include "programs/append/target/target.h"
#include "programs/append/work.h"

enum { LOOK_EVERY_MS = 50 };

/*
 * Orphans: statements of a dead append. Its lock is free at once, but its INSERT goes on in the
 * server. Everything that writes under the table's lock has the same query id, so the server itself
 * refuses to run a second statement beside it.
 */

/* A statement is running under the id as long as the server refuses another one. */
static hf_status is_running(hf__work *work, const char *writer, bool *running, hf_error *err)
{
    const hf__statement probe = {
        .sql = "SELECT 1", .what = "look for an orphan", .query_id = writer};
    hf__grid grid = {0};
    hf_status status = hf__target_query(work->target, &probe, &grid, err);

    hf__grid_free(&grid);
    /* Who kills the orphan by its id may hit this question, too. */
    *running = status != HF_OK && (work->target->fault.code == HF__CODE_ID_IN_USE ||
                                   work->target->fault.code == HF__CODE_CANCELLED);
    return *running ? HF_OK : status;
}

/* False: it cannot be killed, and the user has been told why. */
static bool kill_orphan(hf__work *work, const char *writer)
{
    hf_error err;
    hf_status status = hf__target_kill(work->target, writer, "kill the orphan", &err);

    if (status != HF_OK && status != HF_NO_MEMORY)
        hf__work_note(work, "the orphan is awaited: %s", err.message);
    return status == HF_OK;
}

static hf_status await_orphan(hf__work *work, const char *writer, hf_error *err)
{
    char shown[32];
    int64_t wait_ms = work->options->wait_ms;
    int64_t deadline = hf__deadline(wait_ms);
    bool running = true;
    hf_status status = HF_OK;

    while (status == HF_OK && running) {
        status = hf__work_check(work, err);
        if (status == HF_OK)
            status = is_running(work, writer, &running, err);
        if (status == HF_OK && running && hf__left_ms(deadline) == 0) {
            status = hf__fail(
                err, HF_NOT_ACQUIRED,
                "a statement whose client is gone (query id %s) still writes to %s after %s",
                writer, work->name.text, hf__show_duration(shown, sizeof shown, wait_ms));
            hf__hint(err, "wait longer, or end it: KILL QUERY WHERE query_id = '%s'", writer);
        }
        if (status == HF_OK && running)
            (void)hf__stop_pause(work->stop, LOOK_EVERY_MS);
    }
    return status;
}

static void describe_orphan(hf__work *work, const char *writer)
{
    hf__buf sql = {0};
    hf__grid grid = {0};

    hf__buf_puts(&sql,
                 "SELECT toInt64(elapsed * 1000), written_rows, read_rows FROM system.processes "
                 "WHERE query_id = ");
    hf__quote_text(&sql, writer);
    const hf__statement look = {.what = "describe the orphan"};
    if (hf__target_ask(work->target, &look, &sql, &grid, NULL) == HF_OK && grid.rows > 0) {
        char age[32];
        hf__work_note(
            work,
            "an orphan writes to %s: a statement whose client is gone, %s old, %s rows read (query "
            "id %s)",
            work->name.text, hf__show_duration(age, sizeof age, hf__grid_number(&grid, 0, 0)),
            hf__grid_at(&grid, 0, 2), writer);
    } else {
        hf__work_note(work, "an orphan writes to %s: a stream whose client is gone (query id %s)",
                      work->name.text, writer);
    }
    hf__grid_free(&grid);
}

static hf_status end_orphan_here(hf__work *work, const char *writer, bool is_known, hf_error *err)
{
    bool running = is_known;
    hf_status status = HF_OK;

    if (!is_known)
        status = is_running(work, writer, &running, err);
    if (status != HF_OK || !running)
        return status;
    describe_orphan(work, writer);
    bool killed = work->options->orphans == HF__KILL_ORPHANS && kill_orphan(work, writer);
    status = await_orphan(work, writer, err);
    if (status != HF_OK)
        return status;
    work->result->orphan = killed ? "killed" : "awaited";
    if (work->lock != NULL)
        hf_lock_note(work->lock, killed ? "orphan_killed" : "orphan_awaited", writer);
    hf__work_note(work, "the orphan was %s; what it had written stays in the table",
                  work->result->orphan);
    return HF_OK;
}

hf_status hf__orphan_end(hf__work *work, bool is_known, hf_error *err)
{
    char writer[40];
    hf__target *const used = work->target;
    hf_status status = HF_OK;

    if (used->is_embedded)
        return HF_OK;
    hf__writer_id(work, writer);
    for (size_t i = 0; status == HF_OK && hf__cluster_at(work, i) != NULL; i++) {
        work->target = hf__cluster_at(work, i);
        status = end_orphan_here(work, writer, is_known && work->target == used, err);
    }
    work->target = used;
    return status;
}

/*
 * Appends that died while they attached. Their ATTACH may still be on its way, and must not arrive
 * after we have looked at the table. So the staging table is renamed first: a statement that names
 * the old one then fails, and one that is running delays the rename until it has ended.
 */

/* Renames the staging table of an append; fenced is "" when there is none left. */
static hf_status fence(hf__work *work, const char *id, const char *known, char fenced[128],
                       hf_error *err)
{
    char found[128];
    hf_status status = hf__staging_find(work, id, known, found, err);

    fenced[0] = '\0';
    if (status != HF_OK || found[0] == '\0')
        return status;
    char fresh[128];
    hf__staging_name(fresh, true, id, work->store_id, work->name.text);
    if (hf__staging_has_begun(found))
        hf__staging_begun_name(fenced, fresh);
    else
        memcpy(fenced, fresh, sizeof fresh);
    return hf__staging_rename(work, found, fenced, err);
}

/* Why it stays doubtful, for people. */
static void say_why(const hf__plan *plan, const hf__verdict *verdicts, const hf__proof_options *how,
                    hf__append_row *row)
{
    size_t at = 0;

    while (at + 1 < plan->partition_count && verdicts[at] != HF__UNSURE)
        at++;
    if (hf__count_verdicts(plan, verdicts, HF__UNSURE) == 0)
        (void)snprintf(row->reason, sizeof row->reason,
                       "%zu of %zu partitions are proven to be attached, and the staging "
                       "table is not here",
                       hf__count_verdicts(plan, verdicts, HF__ATTACHED), plan->partition_count);
    else
        (void)snprintf(row->reason, sizeof row->reason,
                       "%zu of %zu partitions are proven to be attached; %s in partition %.64s",
                       hf__count_verdicts(plan, verdicts, HF__ATTACHED), plan->partition_count,
                       how->is_altered
                           ? "the table was altered or made anew since, so nobody can tell"
                           : "others may have changed or dropped parts since, so nobody can tell",
                       plan->partitions[at].id);
}

/* People have looked, and say what nothing proves. */
static void assume(const hf__work *work, hf__plan *plan, hf__verdict *verdicts)
{
    for (size_t i = 0; i < plan->part_count && work->assumed != HF__ASSUME_NOTHING; i++)
        if (plan->parts[i].found == HF__MAYBE)
            plan->parts[i].found = work->assumed == HF__ASSUME_ATTACHED ? HF__THERE : HF__ABSENT;
    for (size_t i = 0; i < plan->partition_count; i++)
        verdicts[i] = hf__plan_sum_up(plan, &plan->partitions[i]);
}

static hf__append_state decide(const hf__plan *plan, const hf__verdict *verdicts, bool has_staging)
{
    bool is_known = hf__count_verdicts(plan, verdicts, HF__UNSURE) == 0;
    bool is_whole = hf__count_verdicts(plan, verdicts, HF__ATTACHED) == plan->partition_count;

    return is_known && (is_whole || has_staging) ? HF__APPEND_DONE : HF__APPEND_DOUBTFUL;
}

/* Drops the parts of partitions that are in the table already from the list. */
static void leave_out_attached(const hf__plan *plan, const hf__verdict *verdicts, hf__parts *staged)
{
    for (size_t i = 0; i < plan->partition_count; i++)
        for (size_t p = 0; p < staged->count && verdicts[i] == HF__ATTACHED; p++)
            if (strcmp(staged->items[p].partition, plan->partitions[i].id) == 0)
                staged->items[p].is_active = false;
}

/*
 * The server refuses the parts, and will go on to do so. They must not be in the way of all other
 * appends: the rows stay staged, and if none are attached that is all there is to it.
 */
static hf_status give_up(hf__work *work, hf__append_row *row, bool is_none, const hf_error *why,
                         hf_error *err)
{
    hf__work_note(work, "append %s, which had died while it attached, cannot be finished: %s",
                  row->id, why->message);
    if (!is_none) {
        row->state = HF__APPEND_DOUBTFUL;
        (void)snprintf(row->reason, sizeof row->reason, "%.*s", HF__REASON_MAX - 1, why->message);
        return HF_OK;
    }
    row->state = HF__APPEND_UNKNOWN;
    return hf__append_remove(work->lock, row->id, err);
}

/*
 * Some parts of a partition are there and some are not: the server was killed while it attached.
 * The store names one staging table at any time, so that it is clear after another crash which of
 * the two counts.
 */
static hf_status pick_rest(hf__work *work, hf__append_row *row, const hf__plan *plan, hf_error *err)
{
    char rest[128];
    bool in_the_way = false;

    row->state = HF__APPEND_ATTACHING;
    hf_status status = hf__append_save(work->lock, row, &in_the_way, err);
    if (status == HF_OK)
        status = hf__staging_pick(work, plan, row->id, row->staging, rest, err);
    if (status == HF_OK && rest[0] == '\0')
        status = hf__fail(err, HF_BAD_DATA, "the parts of %s are no longer those that were staged",
                          row->staging);
    if (status == HF_OK) /* the other one is dropped when the append is done */
        (void)snprintf(row->staging, sizeof row->staging, "%s", rest);
    return status;
}

/* The server may have merged staged parts since the plan was written, so a new plan is made. */
static hf_status attach_rest(hf__work *work, hf__append_row *row, const hf__plan *plan,
                             hf__verdict *verdicts, hf_error *err)
{
    hf__parts staged = {0};
    hf__plan fresh = {0};
    bool in_the_way = false; /* cannot be: this append is the one that attaches */
    bool is_none = true, are_equal = false;
    size_t missing = plan->partition_count - hf__count_verdicts(plan, verdicts, HF__ATTACHED);
    bool missing_all =
        hf__count_verdicts(plan, verdicts, HF__NOT_ATTACHED) == plan->partition_count;
    hf_error why = {0};

    if (missing == 0)
        return HF_OK;
    hf_status status = HF_OK;
    if (hf__count_verdicts(plan, verdicts, HF__PARTLY) > 0) {
        status = pick_rest(work, row, plan, &why);
    }
    if (status == HF_OK)
        status = hf__staging_freeze(work, row->staging, &staged, &why);
    if (status == HF_OK) {
        leave_out_attached(plan, verdicts, &staged);
        status = hf__plan_make(&staged, &fresh, &why);
    }
    if (status == HF_OK && fresh.partition_count != missing) {
        row->state = HF__APPEND_DOUBTFUL;
        (void)snprintf(row->reason, sizeof row->reason, "somebody has changed %s", row->staging);
    } else if (status == HF_OK) {
        status = hf__replicated_identify(work, row->staging, &fresh, &are_equal, &why);
        if (status == HF_OK && are_equal)
            status = hf__fail(&why, HF_DATABASE, "it has equal parts: repeat it under its id");
        if (status == HF_OK)
            status = hf__attach_write_plan(work, row, &fresh, &in_the_way, &why);
        for (size_t i = 0; i < missing; i++)
            verdicts[i] = HF__NOT_ATTACHED;
        if (status == HF_OK)
            status = hf__attach_missing(work, &fresh, verdicts, row->staging, &is_none, &why);
        if (status == HF_OK)
            row->state = HF__APPEND_DONE;
    }
    if (status != HF_OK && (status == HF_BAD_DATA || work->was_deduplicated ||
                            work->is_equal_to_known || are_equal || work->target->fault.code != 0))
        status = give_up(work, row, is_none && missing_all, &why, err);
    else if (status != HF_OK && err != NULL)
        *err = why;
    hf__plan_free(&fresh);
    hf__parts_free(&staged);
    return status;
}

static hf_status finish_parts(hf__work *work, hf__append_row *row, hf__plan *plan,
                              const char *staging, hf_error *err)
{
    hf__verdict *verdicts = calloc(plan->partition_count + 1, sizeof *verdicts);
    hf__proof_options how = {.attached_from = row->staging, .staging = staging};
    bool in_the_way = false;

    if (verdicts == NULL)
        return hf__no_memory(err);
    hf_status status = hf__proof_judge(work, plan, &how, verdicts, err);
    if (status == HF_OK) {
        assume(work, plan, verdicts);
        row->state = decide(plan, verdicts, staging[0] != '\0');
        if (row->state == HF__APPEND_DOUBTFUL)
            say_why(plan, verdicts, &how, row);
    }
    (void)snprintf(row->staging, sizeof row->staging, "%s", staging);
    if (status == HF_OK && row->state == HF__APPEND_DONE)
        status = attach_rest(work, row, plan, verdicts, err);
    free(verdicts);
    if (status == HF_OK && row->state != HF__APPEND_UNKNOWN)
        status = hf__append_save(work->lock, row, &in_the_way, err);
    return status;
}

static void note_finished(const hf__work *work, const hf__append_row *row)
{
    if (strcmp(row->id, work->result->id) == 0)
        return;
    if (row->state == HF__APPEND_DONE)
        hf__work_note(work, "finished append %s, which had died while it attached", row->id);
    else if (row->state == HF__APPEND_DOUBTFUL)
        hf__work_note(work,
                      "append %s had died while it attached: nobody can tell what it had "
                      "done: %s",
                      row->id, row->reason);
}

static hf_status finish_here(hf__work *work, hf__append_row *row, hf__plan *plan, hf_error *err)
{
    char staging[128] = "";
    hf_status status = hf__orphan_end(work, false, err);

    if (status == HF_OK)
        status = fence(work, row->id, row->staging, staging, err);
    if (status == HF_OK && staging[0] == '\0' && row->server[0] != '\0' &&
        strcmp(row->server, work->server) != 0)
        return HF_OK; /* on that server somebody finishes it */
    if (status == HF_OK)
        status = hf__clickhouse_sync(work, err);
    if (status == HF_OK)
        status = finish_parts(work, row, plan, staging, err);
    if (status != HF_OK)
        return status;
    note_finished(work, row);
    if (row->state == HF__APPEND_DONE)
        hf__work_record(work, row->rows);
    if (row->state == HF__APPEND_DONE && staging[0] != '\0')
        (void)!hf__staging_drop(work, staging, NULL); /* else a later sweep drops it */
    if (row->state == HF__APPEND_DONE && strcmp(row->staging, staging) != 0)
        (void)!hf__staging_drop(work, row->staging, NULL);
    return HF_OK;
}

hf_status hf__leftover_finish(hf__work *work, hf__append_row *row, hf_error *err)
{
    hf__target *const used = work->target;
    hf__plan plan = {0};
    bool in_the_way = false;
    hf_status status = hf__plan_parse(row->plan.data != NULL ? row->plan.data : "", &plan, err);

    if (status == HF_BAD_DATA) { /* another version's, perhaps */
        row->state = work->assumed == HF__ASSUME_ATTACHED ? HF__APPEND_DONE : HF__APPEND_DOUBTFUL;
        (void)snprintf(row->reason, sizeof row->reason, "what it was about to do cannot be read");
        note_finished(work, row);
        return hf__append_save(work->lock, row, &in_the_way, err);
    }
    if (status == HF_OK)
        status = hf__cluster_follow(work, row->id, row->staging, err);
    if (status == HF_OK)
        status = finish_here(work, row, &plan, err);
    work->target = used;
    hf__plan_free(&plan);
    return status;
}

hf_status hf__leftovers_settle(hf__work *work, hf_error *err)
{
    hf_status status = HF_OK;

    if (work->attaching == NULL)
        status = hf__append_load_attaching(work->store, work->name.text, &work->attaching, err);
    if (status == HF_OK && hf_rows_count(work->attaching) > 0)
        status = hf__work_know_store(work, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(work->attaching); i++) {
        hf__append_row row = {0};
        status = hf__append_row_read(work->attaching, i, &row, err);
        if (status == HF_OK)
            status = hf__leftover_finish(work, &row, err);
        hf__append_row_free(&row);
    }
    return status;
}

/* Staging tables that dead appends have left. An append is dead when the lock of its id is free. */

static hf_status finish_if_free(hf__work *work, const hf__append_row *row, hf_error *err)
{
    hf__table_name name;
    hf_status status = hf__table_name_parse(row->table, strlen(row->table), NULL, &name, err);

    /* The next append to that other table finishes it. */
    if (status != HF_OK || strcmp(name.text, work->name.text) != 0)
        return status;
    status = hf__work_lock_table(work, 0, err);
    if (status == HF_NOT_ACQUIRED)
        return HF_OK; /* the holder finishes it */
    if (status != HF_OK)
        return status;
    hf__append_row now = {0};
    status = hf__append_load(work->store, row->id, &now, err);
    if (status == HF_OK && now.state == HF__APPEND_ATTACHING)
        status = hf__leftover_finish(work, &now, err);
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
        status = finish_if_free(work, &row, err);
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
        return HF_OK; /* it is alive */
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

    for (size_t i = 0; i < grid.rows && !hf__stop_is_set(work->stop); i++) {
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

void hf__leftovers_sweep(hf__work *work)
{
    hf__target *const used = work->target;

    for (size_t i = 0; hf__cluster_at(work, i) != NULL; i++) {
        work->target = hf__cluster_at(work, i);
        sweep_here(work);
        work->target = used;
    }
}
