#include "programs/append/staging.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

enum {
    NONCE = 8,
    MARK = 8,
    MARKS = 2,
    HEX = NONCE + MARKS * MARK,
    MERGES_MS = 60000,
    LOOK_EVERY_MS = 20
};

/* ---- Names ----------------------------------------------------------------------------------- */

/* A hash that tells for which table the staged rows are, or by which store. */
static unsigned mark_of(const char *text)
{
    int64_t key = 0;

    (void)!hf_key_derive(HF_SHA256, text, strlen(text), &key, NULL);
    return (unsigned)((uint64_t)key & UINT32_MAX);
}

void hf__staging_name(char out[128], bool is_complete, const char *id, const char *store,
                      const char *table)
{
    unsigned nonce = 0;

    while (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        continue;
    (void)snprintf(out, 128, "%s%0*x%0*x%0*x_%s",
                   is_complete ? HF__STAGED_PREFIX : HF__STAGING_PREFIX, NONCE, nonce, MARK,
                   mark_of(store), MARK, mark_of(table), id);
}

bool hf__staging_has_begun(const char *name)
{
    return strncmp(name, HF__BEGUN_PREFIX, sizeof HF__BEGUN_PREFIX - 1) == 0;
}

void hf__staging_begun_name(char out[128], const char *name)
{
    const char *rest = hf__staging_has_begun(name) ? name + sizeof HF__BEGUN_PREFIX - 1
                                                   : name + sizeof HF__STAGED_PREFIX - 1;

    (void)snprintf(out, 128, HF__BEGUN_PREFIX "%.100s", rest);
}

const char *hf__staging_id(const char *name, bool *is_complete)
{
    static const char open[] = HF__STAGING_PREFIX, complete[] = HF__STAGED_PREFIX;
    size_t prefix = 0;

    if (strncmp(name, open, sizeof open - 1) == 0)
        prefix = sizeof open - 1;
    else if (hf__staging_has_begun(name))
        prefix = sizeof HF__BEGUN_PREFIX - 1;
    else if (strncmp(name, complete, sizeof complete - 1) == 0)
        prefix = sizeof complete - 1;
    *is_complete = prefix != 0 && prefix != sizeof open - 1;
    const char *nonce = name + prefix;
    if (prefix == 0 || strspn(nonce, "0123456789abcdef") != HEX || nonce[HEX] != '_')
        return NULL;
    const char *id = nonce + HEX + 1;
    return hf__append_check_id(id, NULL) == HF_OK ? id : NULL;
}

/* Are the rows of this staging table for that table? */
static bool is_for(const char *name, const char *table)
{
    char mark[MARK + 1];
    bool is_complete = false;
    const char *id = hf__staging_id(name, &is_complete);

    (void)snprintf(mark, sizeof mark, "%0*x", MARK, mark_of(table));
    return strncmp(id - 1 - MARK, mark, MARK) == 0;
}

/* ---- Creating and renaming ------------------------------------------------------------------- */

/* Returns the comma after the argument at text, or the closing parenthesis. */
static const char *skip_argument(const char *text)
{
    int depth = 0;

    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            for (text++; *text != '\0' && *text != '\''; text++)
                if (*text == '\\' && text[1] != '\0')
                    text++;
            if (*text == '\0')
                break;
        } else if (*text == '(') {
            depth++;
        } else if (*text == ')' && depth-- == 0) {
            break;
        } else if (*text == ',' && depth == 0) {
            break;
        }
    }
    return text;
}

void hf__staging_engine(const char *engine_full, hf__buf *out)
{
    static const char replicated[] = "Replicated";
    const char *rest = engine_full + sizeof replicated - 1;

    if (strncmp(engine_full, replicated, sizeof replicated - 1) != 0)
        return;
    size_t name = strcspn(rest, "( ");
    hf__buf_puts(out, " ENGINE = ");
    hf__buf_add(out, rest, name);
    rest += name;
    if (*rest == '(' && rest[1] == '\'') { /* leave out the path in ZooKeeper and the replica */
        const char *end = skip_argument(rest + 1);
        if (*end == ',')
            end = skip_argument(end + 1);
        hf__buf_puts(out, "(");
        rest = *end == ',' ? end + 1 + strspn(end + 1, " ") : end;
    }
    hf__buf_puts(out, rest);
}

void hf__staging_quote(const hf__work *work, hf__buf *out)
{
    hf__quote_table(out, work->name.database, work->staging);
}

hf_status hf__staging_create(hf__work *work, hf_error *err)
{
    hf__buf sql = {0};

    hf__staging_name(work->staging, false, work->result->id, work->store_id, work->name.text);
    hf__buf_puts(&sql, "CREATE TABLE ");
    hf__staging_quote(work, &sql);
    hf__buf_printf(&sql, " AS %s", work->dest.data);
    hf__staging_engine(work->engine_full.data, &sql);
    return hf__work_do(work, "create the staging table", &sql, err);
}

hf_status hf__staging_rename(hf__work *work, const char *from, const char *to, hf_error *err)
{
    hf__buf sql = {0};

    hf__buf_puts(&sql, "RENAME TABLE ");
    hf__quote_table(&sql, work->name.database, from);
    hf__buf_puts(&sql, " TO ");
    hf__quote_table(&sql, work->name.database, to);
    return hf__work_do(work, "rename the staging table", &sql, err);
}

/* ---- Stopping merges ------------------------------------------------------------------------- */

static hf_status set_merges(hf__work *work, const char *verb, const char *name, hf_error *err)
{
    hf__buf sql = {0};

    hf__buf_printf(&sql, "SYSTEM %s MERGES ", verb);
    hf__quote_table(&sql, work->name.database, name);
    return hf__work_do(work, "stop the merges of the staging table", &sql, err);
}

hf_status hf__staging_try_freeze(hf__work *work, hf_error *err)
{
    hf_status status = set_merges(work, "STOP", work->staging, err);

    /* Merges must go on while rows come in: a table with too many parts refuses more. */
    return status == HF_OK ? set_merges(work, "START", work->staging, err) : status;
}

/* A merge that was nearly done when merges were stopped still ends. */
static hf_status await_merges(hf__work *work, const char *name, hf_error *err)
{
    int64_t deadline = hf__deadline(MERGES_MS);
    bool are_over = false;
    hf__buf sql = {0};
    hf_status status = HF_OK;

    hf__buf_puts(&sql, "SELECT count() FROM system.merges WHERE ");
    hf__put_table_condition(&sql, work->name.database, name);
    const hf__statement look = {.sql = sql.data, .what = "read system.merges"};
    if (sql.broken)
        status = hf__no_memory(err);
    while (status == HF_OK && !are_over) {
        hf__grid grid = {0};
        status = hf__target_query(work->target, &look, &grid, err);
        are_over = status == HF_OK && hf__grid_number(&grid, 0, 0) == 0;
        hf__grid_free(&grid);
        if (status == HF_OK && !are_over && hf__left_ms(deadline) == 0)
            status = hf__fail(err, HF_DATABASE, "%s: merges of %s go on after they were stopped",
                              work->target->name, name);
        if (status == HF_OK && !are_over)
            status = hf__work_check(work, err);
        if (status == HF_OK && !are_over)
            (void)hf__stop_pause(work->stop, LOOK_EVERY_MS);
    }
    hf__buf_free(&sql);
    return status;
}

hf_status hf__staging_freeze(hf__work *work, const char *name, hf__parts *parts, hf_error *err)
{
    hf_status status = set_merges(work, "STOP", name, err);

    if (status == HF_OK)
        status = await_merges(work, name, err);
    return status == HF_OK ? hf__parts_read(work->target, work->name.database, name,
                                            work->is_modern, -1, parts, err)
                           : status;
}

hf_status hf__staging_merge(hf__work *work, const char *name, const hf__plan *plan, hf_error *err)
{
    hf_status status = set_merges(work, "START", name, err);

    for (size_t i = 0; i < plan->partition_count && status == HF_OK; i++) {
        const hf__statement merge = {.what = "merge equal parts", .limit_ms = -1};
        hf__buf sql = {0};
        if (plan->partitions[i].count < 2)
            continue;
        hf__buf_puts(&sql, "OPTIMIZE TABLE ");
        hf__quote_table(&sql, work->name.database, name);
        hf__buf_puts(&sql, " PARTITION ID ");
        hf__quote_text(&sql, plan->partitions[i].id);
        hf__buf_puts(&sql, " FINAL");
        status = hf__target_ask(work->target, &merge, &sql, NULL, err);
    }
    return status;
}

/* ---- Dropping and finding -------------------------------------------------------------------- */

hf_status hf__staging_drop(hf__work *work, const char *name, hf_error *err)
{
    bool is_complete = false;
    hf__buf sql = {0};

    if (hf__staging_id(name, &is_complete) == NULL)
        return hf__fail(err, HF_INVALID, "'%s' is no staging table", name);
    /* DROP waits for what writes into the table. */
    if (!is_complete && !work->target->is_embedded)
        (void)!hf__target_kill(work->target, name, "kill a dead append's statement", NULL);
    hf__buf_puts(&sql, "DROP TABLE IF EXISTS ");
    hf__quote_table(&sql, work->name.database, name);
    return hf__work_do(work, "drop the staging table", &sql, err);
}

void hf__staging_discard(hf__work *work, const char *name)
{
    if (hf__staging_drop(work, name, NULL) != HF_OK)
        hf__work_note(work, "%s could not be dropped; the next append to the database does it",
                      name);
}

hf_status hf__staging_list(hf__work *work, hf__grid *grid, hf_error *err)
{
    hf__buf sql = {0};

    hf__buf_printf(
        &sql,
        "SELECT name, (toInt64(toUnixTimestamp(now())) - "
        "toInt64(toUnixTimestamp(metadata_modification_time))) * 1000 FROM "
        "system.tables WHERE match(name, "
        "'^holdfast_stag(ing|ed|ed_begun)_[0-9a-f]{%d}%0*x[0-9a-f]{%d}_') AND database = ",
        NONCE, MARK, mark_of(work->store_id), MARK);
    hf__quote_text(&sql, work->name.database);
    return hf__clickhouse_tables(work, &sql, grid, err);
}

static hf_status refuse_other(const hf__work *work, const char *id, const char *name, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_INVALID, "append %s has staged rows for another table than %s", id,
                 work->name.text);

    hf__hint(err, "every append has an id of its own; the rows are in %s", name);
    return status;
}

static hf_status take_found(hf__work *work, const char *name, const char *known, char out[128],
                            hf_error *err)
{
    bool is_better = out[0] == '\0' || strcmp(name, known) == 0 ||
                     (known[0] == '\0' && hf__staging_has_begun(name));
    char other[128];

    (void)snprintf(other, sizeof other, "%s", is_better ? out : name);
    if (is_better)
        (void)snprintf(out, 128, "%s", name);
    return other[0] != '\0' && (known[0] == '\0' || strcmp(out, known) == 0)
               ? hf__staging_drop(work, other, err)
               : HF_OK;
}

hf_status hf__staging_find(hf__work *work, const char *id, const char *known, char out[128],
                           hf_error *err)
{
    hf__grid grid = {0};
    hf_status status = hf__staging_list(work, &grid, err);

    out[0] = '\0';
    for (size_t i = 0; i < grid.rows && status == HF_OK; i++) {
        const char *name = hf__grid_at(&grid, i, 0);
        bool is_complete = false;
        const char *found = hf__staging_id(name, &is_complete);
        if (found == NULL || strcmp(found, id) != 0)
            continue;
        if (is_complete && !is_for(name, work->name.text))
            status = refuse_other(work, id, name, err);
        else if (is_complete)
            status = take_found(work, name, known, out, err);
        else if (hf__staging_drop(work, name, NULL) != HF_OK) /* it does no harm */
            hf__work_note(work, "%s could not be dropped; a later append does it", name);
    }
    hf__grid_free(&grid);
    return status;
}
