/*
 * The direct append: one INSERT under the table's lock. ClickHouse commits an INSERT block by
 * block, so one that is cut short leaves some of its rows in the table. All we can do is stop at
 * once and say how many.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "programs/append/work.h"

enum { MOST_TRIES = 3, PAUSE_MS = 500, BACK_MS = 30000 };

/* ---- Counting rows --------------------------------------------------------------------------- */

/*
 * Asks for a table's parts, or for one row that looks like a part where the engine has none. A
 * writer that acquires no lock may add rows as well, and servers do not say whose a part is: what
 * is counted is the most that can be ours.
 */
static hf_status read_parts(hf__work *work, const char *columns, const char *rest, hf__grid *grid,
                            hf_error *err)
{
    hf__buf sql = {0};

    if (work->is_merge_tree) {
        hf__buf_printf(&sql, "SELECT %s FROM system.parts WHERE ", columns);
        hf__put_table_condition(&sql, work->name.database, work->name.table);
        hf__buf_puts(&sql, rest);
    } else {
        hf__buf_printf(&sql, "SELECT '', 0, count(), 0, 1 FROM %s", work->dest.data);
    }
    const hf__statement count = {.what = "count the rows"};
    return hf__target_ask(work->target, &count, &sql, grid, err);
}

/*
 * Some tables cannot be read, keep no rows, or lose those that are read. One of the engine File
 * hangs for good, on old servers, when it is read before its file is there.
 */
static bool can_be_counted(const hf__work *work)
{
    static const char *const others[] = {"Set", "Null", "File", "URL", "Kafka", "RabbitMQ", "NATS"};
    bool can = true;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        can = can && strcmp(work->engine, others[i]) != 0;
    return can;
}

static hf_status look_before(hf__work *work, hf__grid *before, hf_error *err)
{
    if (!can_be_counted(work))
        return HF_OK;
    return read_parts(work, "partition_id, max(max_block_number), sum(rows * active), 0, 1",
                      " GROUP BY partition_id", before, err);
}

static bool is_later(const hf__grid *before, const char *partition, int64_t block)
{
    for (size_t i = 0; i < before->rows; i++)
        if (strcmp(hf__grid_at(before, i, 0), partition) == 0)
            return block > hf__grid_number(before, i, 1);
    return true;
}

/*
 * Counts the rows that are new: those of new parts as they were written, since a merge may have
 * collapsed them, or how many more rows are active, where the server has forgotten those parts.
 */
static hf_status count_new(hf__work *work, const hf__grid *before, int64_t *rows, int64_t *parts,
                           hf_error *err)
{
    int64_t written = 0, more = 0;
    hf__grid now = {0};
    if (!can_be_counted(work))
        return hf__fail(err, HF_DATABASE, "rows of %s cannot be counted", work->engine);
    hf_status status = read_parts(work,
                                  "partition_id, min_block_number, rows, "
                                  "level = 0 AND min_block_number = max_block_number, active",
                                  "", &now, err);

    *parts = 0;
    for (size_t i = 0; i < before->rows; i++)
        more -= hf__grid_number(before, i, 2);
    for (size_t i = 0; i < now.rows; i++) {
        int64_t count = hf__grid_number(&now, i, 2);
        if (hf__grid_number(&now, i, 3) != 0 &&
            is_later(before, hf__grid_at(&now, i, 0), hf__grid_number(&now, i, 1))) {
            written += count;
            ++*parts;
        }
        if (hf__grid_number(&now, i, 4) != 0)
            more += count;
    }
    *rows = written > more ? written : more;
    hf__grid_free(&now);
    return status;
}

/* ---- Does the server drop repeated blocks? --------------------------------------------------- */

static const char on_insert[] = "insert_deduplicate",
                  token_setting[] = "insert_deduplication_token",
                  replicated_window[] = "replicated_deduplication_window",
                  plain_window[] = "non_replicated_deduplication_window";

/* The table's own value in "… SETTINGS index_granularity = 8192, NAME = 5", or NULL. */
static const char *find_own(const char *engine_full, const char *name)
{
    const char *at = strstr(engine_full, " SETTINGS ");

    while (at != NULL && (at = strstr(at + 1, name)) != NULL)
        if (at[-1] == ' ' && strncmp(at + strlen(name), " = ", 3) == 0)
            return at + strlen(name) + 3;
    return NULL;
}

/* Can a client name its blocks, so that equal ones of two appends are both kept? */
static bool has_token(const hf__grid *settings)
{
    return hf__settings_value(settings, token_setting) != NULL;
}

int64_t hf__dedup_window(const char *engine_full, const hf__grid *settings)
{
    bool is_replicated = hf__engine_is_replicated(engine_full);
    const char *name = is_replicated ? replicated_window : plain_window;
    const char *inserts = hf__settings_value(settings, on_insert);
    const char *window = find_own(engine_full, name);

    if (window == NULL)
        window = hf__settings_value(settings, name);
    if (window == NULL || inserts == NULL || strcmp(inserts, "1") != 0 ||
        (!is_replicated && !has_token(settings)))
        return 0;
    return strtoll(window, NULL, 10);
}

/* ---- Sending again --------------------------------------------------------------------------- */

static bool can_read_again(const hf__append_options *options)
{
    bool can = options->select != NULL || options->concat_count > 0 || options->path_count > 0;

    for (size_t i = 0; i < options->path_count; i++)
        can = can && strcmp(options->paths[i], "-") != 0;
    return can;
}

/*
 * Some servers drop a block that they have seen before. That makes it safe to send the same file
 * twice: it yields the same blocks, and no half block, because a stream that was cut has no seal. A
 * query may return other rows the second time, so it is not sent twice.
 */
static hf_status learn_window(hf__work *work, hf_error *err)
{
    if (work->target->is_embedded || !work->is_merge_tree || work->result->key == 0 ||
        work->options->path_count == 0 || !can_read_again(work->options))
        return HF_OK;
    hf_status status = hf__settings_read(work, err);
    if (status == HF_OK)
        work->dedup_window = hf__dedup_window(work->engine_full.data, &work->settings);
    if (work->dedup_window > 0 && has_token(&work->settings))
        (void)snprintf(work->token, sizeof work->token, "insert_deduplication_token=%s",
                       work->result->id);
    return status;
}

/* The connection broke: the first INSERT must have ended before the second one starts. */
static bool may_send_again(hf__work *work, const hf__grid *before)
{
    int64_t deadline = hf__deadline(BACK_MS), rows = 0, parts = 0;
    hf_status status = HF_UNREACHABLE;

    if (work->dedup_window == 0)
        return false;
    while (status == HF_UNREACHABLE && hf__left_ms(deadline) != 0 && !hf__stop_is_set(work->stop)) {
        (void)hf__stop_pause(work->stop, PAUSE_MS);
        status = hf__orphan_end(work, false, NULL);
    }
    return status == HF_OK && !hf__stop_is_set(work->stop) &&
           count_new(work, before, &rows, &parts, NULL) == HF_OK && parts < work->dedup_window;
}

/* Only if nothing has reached the table, or the server drops what it has seen. */
static bool may_repeat(hf__work *work, hf_status status, const hf__grid *before, hf_error *err)
{
    const hf__fault fault = work->target->fault;

    if (status == HF_OK || !can_read_again(work->options) || hf__stop_is_set(work->stop))
        return false;
    if (fault.code == HF__CODE_ID_IN_USE)
        return hf__orphan_end(work, true, err) == HF_OK;
    if (status != HF_UNREACHABLE || fault.code != 0)
        return false;
    if (!fault.was_sent) {
        (void)hf__stop_pause(work->stop, PAUSE_MS);
        return true;
    }
    bool again = may_send_again(work, before);
    work->target->fault = fault; /* the outcome depends on the INSERT's, not on a later one */
    if (again)
        hf__work_note(work, "sent again, since %s leaves out what it has had: %s", work->name.text,
                      err != NULL ? err->message : "the connection broke");
    return again;
}

static hf_status insert(hf__work *work, const hf__grid *before, hf_error *err)
{
    char writer[HF__APPEND_ID_MAX + 32];
    hf_status status = HF_OK;

    if (work->result->key != 0)
        hf__writer_id(work, writer);
    else /* nobody else writes there, but we watch and kill the INSERT by its id */
        (void)snprintf(writer, sizeof writer, "holdfast-mine-%s", work->result->id);
    for (int i = 0; i < MOST_TRIES; i++) {
        status = hf__work_feed(work, work->dest.data, writer, err);
        if (i + 1 == MOST_TRIES || !may_repeat(work, status, before, err))
            break;
    }
    return status;
}

/* ---- The outcome ----------------------------------------------------------------------------- */

static hf_status say_visible(hf__work *work, hf_status code, bool counted, hf_error *err)
{
    hf_error plain = {0};
    int64_t rows = work->result->rows;

    if (err != NULL)
        plain = *err;
    if (!counted)
        code = hf__fail(err, code, "%s; how many of its rows are visible in %s is not known",
                        plain.message, work->name.text);
    else
        code = hf__fail(err, code, "%s; %s%" PRId64 " of its rows are visible in %s", plain.message,
                        rows > 0 && !work->target->is_embedded ? "at most " : "", rows,
                        work->name.text);
    if (!counted || rows != 0)
        hf__hint(err,
                 "%s%sremove them before it is repeated; staged appends (--staged) are all or "
                 "nothing",
                 plain.hint, plain.hint[0] != '\0' ? "; " : "");
    else if (plain.hint[0] != '\0')
        hf__hint(err, "%s", plain.hint);
    return code;
}

/* As soon as ClickHouse has said anything about the INSERT, its outcome is known. */
static hf_status tell_outcome(hf__work *work, hf_status status, const hf__grid *before,
                              hf_error *err)
{
    const hf__fault fault = work->target->fault;
    bool is_heard = fault.code != 0 || !fault.was_sent;
    int64_t rows = 0, parts = 0;

    /* It may still be running: rows that it writes later would not be counted. */
    if (status == HF_UNREACHABLE && !is_heard && work->result->key != 0 &&
        !hf__stop_is_set(work->stop))
        (void)!hf__orphan_end(work, false, NULL);
    bool counted = count_new(work, before, &rows, &parts, NULL) == HF_OK;

    work->result->rows = counted ? rows : -1;
    if (counted && rows > 0)
        hf__work_record(work, rows);
    if (status == HF_OK)
        return HF_OK;
    return say_visible(work, is_heard || status == HF_LOST ? status : HF_IN_DOUBT, counted, err);
}

hf_status hf__direct_run(hf__work *work, hf_error *err)
{
    hf__grid before = {0};
    hf_status status = HF_OK;

    if (!hf__append_needs_no_lock(work->options->table)) {
        status = hf__work_lock_table(work, work->options->wait_ms, err);
        if (status == HF_OK)
            status = hf__orphan_end(work, false, err);
        if (status == HF_OK)
            status = hf__leftovers_settle(work, err);
    }
    if (status == HF_OK)
        status = look_before(work, &before, err);
    if (status == HF_OK)
        status = learn_window(work, err);
    if (status == HF_OK) {
        status = insert(work, &before, err);
        status = tell_outcome(work, status, &before, err);
    }
    hf__grid_free(&before);
    hf_status unlocked = hf__work_unlock_table(work, status == HF_OK ? err : NULL);
    if (status == HF_OK && unlocked != HF_OK) /* another may have written at the same time */
        status = say_visible(work, unlocked, work->result->rows >= 0, err);
    return status;
}
