/*
 * What tells whether an ATTACH was done. Others write to the table as well, some of them without
 * its lock, so it is never inferred from numbers of rows. In this order:
 *
 * - The server's log of queries has the statement, which names the staging table, and so nobody
 *   else's. It proves as well that the statement never ran, provided that it has the statement
 *   before it, the look at the table, and that the server was not restarted since.
 * - A replicated table remembers every part that it has attached from another table by a checksum
 *   of its files, in ZooKeeper, until the partition is dropped.
 * - The parts of the table: their files, by checksum where the server tells it, else their rows are
 *   read and compared with those that are staged. See hf__plan_judge.
 *
 * Without the log, what is not there was never attached only if the partition shows that nobody has
 * dropped it meanwhile (hf__plan_is_kept).
 */
#include "programs/append/proof.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESTART_SLACK_S = 1, READ_MS = 600000, LONG_AGO_S = 10 * 86400 };

/* Types of entries in system.query_log. */
enum { ENDED = 2, FAILED_BEFORE = 3 };

/* ---- The table as it is now ------------------------------------------------------------------ */

/* A table that is made anew has another uuid; without uuids, or altered, a later time. */
static void put_table_mark(const hf__work *work, hf__buf *sql)
{
    static const char time[] = "concat('m', toString(toUnixTimestamp(metadata_modification_time)))";

    if (work->zookeeper_mark[0] != '\0') /* replicas have files of their own */
        hf__quote_text(sql, work->zookeeper_mark);
    else if (work->is_modern)
        hf__buf_printf(sql,
                       "if(toString(uuid) = '00000000-0000-0000-0000-000000000000', %s, "
                       "toString(uuid))",
                       time);
    else
        hf__buf_puts(sql, time);
}

static void put_question(const hf__work *work, hf__buf *sql)
{
    hf__buf_puts(sql, "SELECT partition_id, toInt64(max(max_block_number)), toInt64(0), '' FROM "
                      "system.parts WHERE ");
    hf__put_table_condition(sql, work->name.database, work->name.table);
    hf__buf_puts(sql,
                 " GROUP BY partition_id UNION ALL SELECT '', toInt64(toUnixTimestamp(now())), "
                 "toInt64(toUnixTimestamp(now())) - toInt64(uptime()), ");
    put_table_mark(work, sql);
    hf__buf_puts(sql, " FROM system.tables WHERE database = ");
    hf__quote_text(sql, work->name.database);
    hf__buf_puts(sql, " AND name = ");
    hf__quote_text(sql, work->name.table);
}

static void take_answer(const hf__grid *grid, hf__plan *plan)
{
    for (size_t i = 0; i < plan->partition_count; i++)
        plan->partitions[i].last_block = 0;
    for (size_t row = 0; row < grid->rows; row++) {
        const char *id = hf__grid_at(grid, row, 0);
        if (id[0] == '\0') {
            plan->at = hf__grid_number(grid, row, 1);
            plan->started = hf__grid_number(grid, row, 2);
            (void)snprintf(plan->table_mark, sizeof plan->table_mark, "%s",
                           hf__grid_at(grid, row, 3));
        }
        for (size_t i = 0; i < plan->partition_count; i++)
            if (strcmp(id, plan->partitions[i].id) == 0)
                plan->partitions[i].last_block = hf__grid_number(grid, row, 1);
    }
}

/* The query id of the look that comes before an ATTACH. */
static void look_id(char out[160], const char *staging)
{
    (void)snprintf(out, 160, "look-%s", staging);
}

static hf_status look(hf__work *work, hf__plan *plan, const char *staging, hf_error *err)
{
    char id[160];
    hf__buf sql = {0};
    hf__grid grid = {0};

    look_id(id, staging);
    put_question(work, &sql);
    const hf__statement statement = {.what = "look at the table",
                                     .query_id = staging[0] != '\0' ? id : NULL,
                                     .settings = hf__settings_for_log(&work->settings)};
    hf_status status = hf__clickhouse_ask_tables(work, &statement, &sql, &grid, err);
    plan->table_mark[0] = '\0';
    if (status == HF_OK)
        take_answer(&grid, plan);
    if (status == HF_OK && plan->table_mark[0] == '\0')
        status = hf__fail(err, HF_CONFIG, "%s has no table %s any more", work->target->name,
                          work->name.text);
    hf__grid_free(&grid);
    return status;
}

/* Whatever the table is found to be, it may be another one. */
static void hide_mark(hf__plan *plan)
{
    (void)snprintf(plan->table_mark, sizeof plan->table_mark, "unknown");
}

/* Was the table made or altered in the very second of the look? */
static bool is_of_this_second(const hf__plan *plan)
{
    return plan->table_mark[0] == 'm' && strtoll(plan->table_mark + 1, NULL, 10) == plan->at;
}

/*
 * A time counts seconds: where it is the table's mark, one that changes later in the second of the
 * look would keep it. Such a look does not count, and is taken again in the next second. A table
 * that is altered every second has no mark.
 */
hf_status hf__proof_look(hf__work *work, hf__plan *plan, const char *staging, hf_error *err)
{
    enum { NEXT_SECOND_MS = 1000, LOOKS = 3 };
    hf_status status = hf__settings_read(work, err);

    if (status == HF_OK)
        status = look(work, plan, staging, err);
    for (int looks = 1; status == HF_OK && staging[0] != '\0' && looks < LOOKS; looks++) {
        if (!is_of_this_second(plan) || hf__stop_pause(work->stop, NEXT_SECOND_MS))
            break;
        status = look(work, plan, staging, err);
    }
    if (status == HF_OK && staging[0] != '\0' && is_of_this_second(plan))
        hide_mark(plan);
    return status;
}

/* When the look before the ATTACH ran, unless the table was altered or made anew since; else 0. */
static int64_t recall_look(hf__work *work, const char *staging)
{
    const hf__statement flush = {.sql = "SYSTEM FLUSH LOGS", .what = "flush the logs"};
    const hf__statement read = {.what = "read system.query_log", .limit_ms = READ_MS};
    char canary[160];
    int64_t at = 0;
    hf__buf sql = {0};
    hf__grid grid = {0};

    look_id(canary, staging);
    hf__buf_puts(&sql, "SELECT toInt64(toUnixTimestamp(max(event_time))) FROM system.query_log "
                       "WHERE event_time > (SELECT max(metadata_modification_time) FROM "
                       "system.tables WHERE database = ");
    hf__quote_text(&sql, work->name.database);
    hf__buf_puts(&sql, " AND name = ");
    hf__quote_text(&sql, work->name.table);
    hf__buf_puts(&sql, ") AND query_id = ");
    hf__quote_text(&sql, canary);
    if (work->target->is_embedded || hf__target_query(work->target, &flush, NULL, NULL) != HF_OK)
        hf__buf_free(&sql);
    else if (hf__target_ask(work->target, &read, &sql, &grid, NULL) == HF_OK && grid.rows > 0)
        at = hf__grid_number(&grid, 0, 0);
    hf__grid_free(&grid);
    return at;
}

hf_status hf__proof_recall(hf__work *work, hf__plan *plan, const char *staging, hf_error *err)
{
    hf_status status = hf__proof_look(work, plan, "", err);
    int64_t at = status == HF_OK ? recall_look(work, staging) : 0;

    for (size_t i = 0; i < plan->partition_count; i++)
        plan->partitions[i].last_block = 0;
    if (at <= plan->started + RESTART_SLACK_S) /* the log says nothing of what came behind it */
        plan->started = 0;
    if (at == 0) /* nor whether this is the same table */
        hide_mark(plan);
    plan->at = at != 0 ? at : LONG_AGO_S;
    return status;
}

/* ---- What is known of one plan --------------------------------------------------------------- */

typedef enum record { SILENT = 0, NEVER_RAN, RAN } record;

struct proof {
    hf__work *work;
    hf__plan *plan;
    const char *attached_from; /* the staging table that the ATTACH has named */
    const char *staging;       /* its name by now; "": it is gone */
    hf__parts now;
    hf__evidence evidence;
    hf__grid entries;   /* of the log of queries: id, type, text, exception */
    bool is_logged;     /* the log reaches back far enough */
    hf__grid block_ids; /* that a replicated table knows */
    bool has_block_ids;
};

/*
 * Equal starts are not enough: a server that is killed as soon as it is up starts twice within the
 * slack. This one must have been up before the look at the table as well. And where that look is
 * still to come by the server's clock, somebody has set the clock back, and it tells nothing.
 */
static bool is_same_run(const hf__plan *plan, const hf__plan *now)
{
    return llabs(now->started - plan->started) <= RESTART_SLACK_S && now->started < plan->at &&
           now->at >= plan->at;
}

static hf_status compare_tables(struct proof *proof, hf_error *err)
{
    hf__plan now = {0};
    hf_status status = hf__proof_look(proof->work, &now, "", err);

    proof->evidence.is_same_run = is_same_run(proof->plan, &now);
    proof->evidence.is_clock_back = now.at < proof->plan->at;
    proof->evidence.started = now.started;
    proof->evidence.is_altered = strcmp(now.table_mark, proof->plan->table_mark) != 0;
    return status;
}

/* ---- The log of queries ---------------------------------------------------------------------- */

/* Failures are no failure: without a log there is other evidence. */
static void read_log(struct proof *proof)
{
    hf__work *work = proof->work;
    const hf__statement flush = {.sql = "SYSTEM FLUSH LOGS", .what = "flush the logs"};
    const hf__statement read = {.what = "read system.query_log", .limit_ms = READ_MS};
    char writer[40], canary[160];
    hf__buf sql = {0};

    if (work->target->is_embedded || proof->attached_from[0] == '\0')
        return;
    bool is_flushed = hf__target_query(work->target, &flush, NULL, NULL) == HF_OK;
    hf__writer_id(work, writer);
    look_id(canary, proof->attached_from);
    hf__buf_printf(
        &sql,
        "SELECT query_id, toInt8(type), query, exception FROM system.query_log WHERE event_date >= "
        "toDate(toDateTime(%" PRId64 ")) - 1 AND (query_id = ",
        proof->plan->at);
    hf__quote_text(&sql, canary);
    hf__buf_puts(&sql, " OR (query_id = ");
    hf__quote_text(&sql, writer);
    hf__buf_puts(&sql, " AND position(query, ");
    hf__quote_text(&sql, proof->attached_from);
    hf__buf_puts(&sql, ") > 0))");
    if (hf__target_ask(work->target, &read, &sql, &proof->entries, NULL) != HF_OK)
        hf__grid_free(&proof->entries);
    for (size_t i = 0; i < proof->entries.rows && is_flushed && proof->evidence.is_same_run; i++)
        proof->is_logged =
            proof->is_logged || strcmp(hf__grid_at(&proof->entries, i, 0), canary) == 0;
}

/*
 * A statement that ran and does not name the partition may have been cut short in the log. One that
 * failed has attached the partitions before the one that it failed at, unless its id was in use.
 */
static record recorded(const struct proof *proof, const hf__plan_partition *partition)
{
    record found = proof->is_logged ? NEVER_RAN : SILENT;
    char canary[160];
    hf__buf command = {0};

    look_id(canary, proof->attached_from);
    hf__put_attach(&command, proof->work->name.database, partition->id, proof->attached_from);
    for (size_t i = 0; i < proof->entries.rows && found != RAN && !command.broken; i++) {
        int64_t type = hf__grid_number(&proof->entries, i, 1);
        bool is_refused =
            type == FAILED_BEFORE &&
            hf__exception_code(hf__grid_at(&proof->entries, i, 3)) == HF__CODE_ID_IN_USE;
        if (is_refused || strcmp(hf__grid_at(&proof->entries, i, 0), canary) == 0)
            continue;
        found = type == ENDED && strstr(hf__grid_at(&proof->entries, i, 2), command.data) != NULL
                    ? RAN
                    : SILENT;
    }
    if (command.broken)
        found = SILENT;
    hf__buf_free(&command);
    return found;
}

static bool is_any_silent(const struct proof *proof)
{
    bool is = false;

    for (size_t i = 0; i < proof->plan->partition_count && !is; i++)
        is = recorded(proof, &proof->plan->partitions[i]) == SILENT;
    return is;
}

/* ---- Rows that are read ---------------------------------------------------------------------- */

/* The rows of a part as one number, which does not depend on their order. */
static void put_sum(const hf__work *work, hf__buf *out)
{
    hf__buf_puts(out, "sum(cityHash64(0");
    for (size_t i = 0; i < work->columns.rows; i++) {
        if (!hf__column_is_stored(&work->columns, i))
            continue;
        hf__buf_puts(out, ", ifNull(cityHash64(");
        hf__quote_name(out, hf__grid_at(&work->columns, i, 0));
        hf__buf_puts(out, "), 1)");
    }
    hf__buf_puts(out, "))");
}

static void fill_in_sums(const hf__grid *sums, hf__parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        for (size_t row = 0; row < sums->rows; row++)
            if (parts->items[i].is_active &&
                strcmp(parts->items[i].name, hf__grid_at(sums, row, 0)) == 0) {
                parts->items[i].has_sum = true;
                parts->items[i].sum = strtoull(hf__grid_at(sums, row, 1), NULL, 10);
            }
}

/* Reads the rows of a table's parts; names: of those that are wanted, NULL: all. */
static hf_status sum_up(struct proof *proof, const char *sum, const char *table,
                        const hf__buf *names, hf__parts *parts, hf_error *err)
{
    const hf__statement read = {.what = "compare rows", .limit_ms = READ_MS};
    hf__buf sql = {0};
    hf__grid sums = {0};

    hf__buf_printf(&sql, "SELECT _part, %s FROM ", sum);
    hf__quote_table(&sql, proof->work->name.database, table);
    if (names != NULL)
        hf__buf_printf(&sql, " WHERE _part IN (%s)", names->data);
    hf__buf_puts(&sql, " GROUP BY _part");
    hf_status status = hf__target_ask(proof->work->target, &read, &sql, &sums, err);
    if (status == HF_OK)
        fill_in_sums(&sums, parts);
    hf__grid_free(&sums);
    return status;
}

/*
 * The sums of a partition's parts as they are staged. Where the server has merged those since, only
 * the sum of them all can be compared.
 */
static void take_staged_sums(struct proof *proof, const hf__plan_partition *partition,
                             const hf__parts *staged)
{
    hf__plan_part *planned = &proof->plan->parts[partition->first];
    uint64_t all = 0, candidates = 0;
    size_t count = 0, matched = 0;

    for (size_t i = 0; i < staged->count; i++) {
        const hf__plan_part *part = &staged->items[i];
        if (!part->has_sum || strcmp(part->partition, partition->id) != 0)
            continue;
        all += part->sum;
        if (count < partition->count && planned[count].rows == part->rows &&
            strcmp(planned[count].files, part->files) == 0) {
            planned[count].sum = part->sum;
            matched++;
        }
        count++;
    }
    bool is_as_planned = count == partition->count && matched == count;
    for (size_t p = 0; p < partition->count && is_as_planned; p++)
        planned[p].has_sum = true;
    if (is_as_planned || count == 0)
        return;
    matched = 0;
    for (size_t i = 0; i < proof->now.count && matched < partition->count; i++)
        if (proof->now.items[i].has_sum &&
            hf__plan_is_alike(&planned[matched], partition, &proof->now.items[i])) {
            candidates += proof->now.items[i].sum;
            planned[matched++].sum = proof->now.items[i].sum;
        }
    for (size_t p = 0; p < partition->count && matched == partition->count && candidates == all;
         p++)
        planned[p].has_sum = true;
}

static size_t name_candidates(const struct proof *proof, hf__buf *names)
{
    size_t count = 0;

    for (size_t i = 0; i < proof->now.count; i++) {
        bool is_one = false;
        for (size_t p = 0; p < proof->plan->partition_count && !is_one; p++) {
            const hf__plan_partition *partition = &proof->plan->partitions[p];
            for (size_t k = 0; k < partition->count && !is_one; k++)
                is_one = proof->now.items[i].is_active &&
                         hf__plan_is_alike(&proof->plan->parts[partition->first + k], partition,
                                           &proof->now.items[i]);
        }
        if (!is_one)
            continue;
        hf__buf_puts(names, count++ > 0 ? ", " : "");
        hf__quote_text(names, proof->now.items[i].name);
    }
    return count;
}

/* Where the server tells no checksums. Parts that cannot be compared are doubtful in the end. */
static void compare_rows(struct proof *proof)
{
    hf__work *work = proof->work;
    hf__parts staged = {0};
    hf__buf names = {0}, sum = {0};
    hf_status status = HF_OK;

    if (proof->staging[0] == '\0' || name_candidates(proof, &names) == 0) {
        hf__buf_free(&names);
        return;
    }
    put_sum(work, &sum);
    if (names.broken || sum.broken)
        status = HF_NO_MEMORY;
    if (status == HF_OK)
        status = hf__parts_read(work->target, work->name.database, proof->staging, work->is_modern,
                                -1, &staged, NULL);
    if (status == HF_OK)
        status = sum_up(proof, sum.data, proof->staging, NULL, &staged, NULL);
    if (status == HF_OK)
        status = sum_up(proof, sum.data, work->name.table, &names, &proof->now, NULL);
    for (size_t i = 0; i < proof->plan->partition_count && status == HF_OK; i++)
        take_staged_sums(proof, &proof->plan->partitions[i], &staged);
    hf__parts_free(&staged);
    hf__buf_free(&names);
    hf__buf_free(&sum);
}

/* ---- The verdict ----------------------------------------------------------------------------- */

static hf__verdict all_are(hf__plan *plan, const hf__plan_partition *partition, hf__found found)
{
    for (size_t p = 0; p < partition->count; p++)
        plan->parts[partition->first + p].found = found;
    return hf__plan_sum_up(plan, partition);
}

static bool has_block_ids(const struct proof *proof, const hf__plan_partition *partition)
{
    bool has = proof->has_block_ids;

    for (size_t p = 0; p < partition->count; p++)
        has = has && proof->plan->parts[partition->first + p].block_id[0] != '\0';
    return has;
}

static hf__verdict judge_by_block_ids(struct proof *proof, const hf__plan_partition *partition)
{
    const hf__evidence *evidence = &proof->evidence;
    /*
     * The oldest are forgotten once there are as many as the table remembers, and those of a
     * partition that is dropped with it.
     */
    bool is_whole =
        evidence->is_answered ||
        (!evidence->is_altered && hf__plan_is_kept(proof->plan, partition, &proof->now, evidence) &&
         (int64_t)proof->block_ids.rows <
             hf__dedup_window(proof->work->engine_full.data, &proof->work->settings));

    for (size_t p = 0; p < partition->count; p++) {
        hf__plan_part *part = &proof->plan->parts[partition->first + p];
        part->found = hf__block_id_is_among(&proof->block_ids, partition->id, part->block_id)
                          ? HF__THERE
                      : is_whole ? HF__ABSENT
                                 : HF__MAYBE;
    }
    return hf__plan_sum_up(proof->plan, partition);
}

static hf__verdict judge_one(struct proof *proof, const hf__plan_partition *partition)
{
    bool is_replicated = hf__engine_is_replicated(proof->work->engine);
    bool is_identified = has_block_ids(proof, partition);
    record found = recorded(proof, partition);

    /* A replicated table may have left parts out, but none that it was asked for before. */
    if (found == RAN && (!is_replicated || is_identified))
        return all_are(proof->plan, partition, HF__THERE);
    if (found == NEVER_RAN) /* but the table may be another one by now */
        return all_are(proof->plan, partition, proof->evidence.is_altered ? HF__MAYBE : HF__ABSENT);
    if (is_identified)
        return judge_by_block_ids(proof, partition);
    return hf__plan_judge(proof->plan, partition, &proof->now, &proof->evidence);
}

hf_status hf__proof_judge(hf__work *work, hf__plan *plan, hf__proof_options *options,
                          hf__verdict *verdicts, hf_error *err)
{
    struct proof proof = {.work = work,
                          .plan = plan,
                          .attached_from = options->attached_from,
                          .staging = options->staging,
                          .evidence = {.is_answered = options->is_answered,
                                       .is_at_once = options->is_at_once,
                                       .has_checksums = work->is_modern}};
    hf_status status = HF_OK;

    if (!options->is_answered)
        status = compare_tables(&proof, err);
    if (status == HF_OK)
        status =
            hf__parts_read(work->target, work->name.database, work->name.table, work->is_modern,
                           options->is_answered ? hf__plan_least_block(plan) : -1, &proof.now, err);
    if (status == HF_OK && hf__engine_is_replicated(work->engine))
        proof.has_block_ids = hf__block_ids_read(work, &proof.block_ids, NULL) == HF_OK;
    if (status == HF_OK && !options->is_answered) {
        read_log(&proof);
        if (!work->is_modern && is_any_silent(&proof))
            compare_rows(&proof);
    }
    options->is_altered = proof.evidence.is_altered;
    for (size_t i = 0; i < plan->partition_count && status == HF_OK; i++)
        verdicts[i] = judge_one(&proof, &plan->partitions[i]);
    hf__parts_free(&proof.now);
    hf__grid_free(&proof.entries);
    hf__grid_free(&proof.block_ids);
    return status;
}
