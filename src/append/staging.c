/* Staging tables: their names, their making and their end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "append/quote.h"
#include "append/staging.h"

enum { NONCE = 8 };

void hf__staging_name(char out[128], bool is_complete, const char *id)
{
    unsigned nonce = 0;

    while (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        continue;
    (void)snprintf(out, 128, "%s%0*x_%s", is_complete ? HF__STAGED_PREFIX : HF__STAGING_PREFIX,
                   NONCE, nonce, id);
}

const char *hf__staging_id(const char *name, bool *is_complete)
{
    static const char open[] = HF__STAGING_PREFIX, complete[] = HF__STAGED_PREFIX;
    size_t prefix = 0;

    if (strncmp(name, open, sizeof open - 1) == 0)
        prefix = sizeof open - 1;
    else if (strncmp(name, complete, sizeof complete - 1) == 0)
        prefix = sizeof complete - 1;
    *is_complete = prefix == sizeof complete - 1;
    const char *nonce = name + prefix;
    if (prefix == 0 || strspn(nonce, "0123456789abcdef") != NONCE || nonce[NONCE] != '_')
        return NULL;
    const char *id = nonce + NONCE + 1;
    return hf__append_check_id(id, NULL) == HF_OK ? id : NULL;
}

/* ---- engines ------------------------------------------------------------------------------------------- */

/* Behind the argument at text: its comma, or the closing parenthesis. */
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
    if (*rest == '(' && rest[1] == '\'') { /* the path in ZooKeeper, and the replica */
        const char *end = skip_argument(rest + 1);
        if (*end == ',')
            end = skip_argument(end + 1);
        hf__buf_puts(out, "(");
        rest = *end == ',' ? end + 1 + strspn(end + 1, " ") : end;
    }
    hf__buf_puts(out, rest);
}

/* ---- tables -------------------------------------------------------------------------------------------- */

void hf__staging_quote(const hf__work *work, hf__buf *out)
{
    hf__quote_table(out, work->name.database, work->staging);
}

hf_status hf__staging_create(hf__work *work, hf_error *err)
{
    hf__buf sql = {0};

    hf__staging_name(work->staging, false, work->result->id);
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

/* DROP waits for what writes into the table: that is ended first, if it can be. */
static void kill_writer(hf__work *work, const char *name)
{
    hf__buf sql = {0};
    hf__grid grid = {0};

    hf__buf_puts(&sql, "KILL QUERY WHERE query_id = ");
    hf__quote_text(&sql, name);
    hf__buf_puts(&sql, " SYNC");
    const hf__statement kill = {
        .sql = sql.data, .what = "kill a dead append's statement", .limit_ms = 10000};
    if (!sql.broken)
        (void)!hf__target_query(work->target, &kill, &grid, NULL);
    hf__grid_free(&grid);
    hf__buf_free(&sql);
}

hf_status hf__staging_drop(hf__work *work, const char *name, hf_error *err)
{
    bool is_complete = false;
    hf__buf sql = {0};

    if (hf__staging_id(name, &is_complete) == NULL)
        return hf__fail(err, HF_INVALID, "'%s' is no staging table", name);
    if (!is_complete && !work->target->is_embedded)
        kill_writer(work, name);
    hf__buf_puts(&sql, "DROP TABLE IF EXISTS ");
    hf__quote_table(&sql, work->name.database, name);
    return hf__work_do(work, "drop the staging table", &sql, err);
}

hf_status hf__staging_list(hf__work *work, hf__grid *grid, hf_error *err)
{
    hf__buf sql = {0};

    hf__buf_puts(&sql,
                 "SELECT name, (toInt64(toUnixTimestamp(now())) - "
                 "toInt64(toUnixTimestamp(metadata_modification_time))) * 1000 FROM system.tables "
                 "WHERE name LIKE 'holdfast\\\\_stag%' AND database = ");
    hf__quote_text(&sql, work->name.database);
    const hf__statement list = {.sql = sql.data, .what = "read system.tables"};
    hf_status status = sql.broken ? hf__fail(err, HF_NO_MEMORY, "out of memory")
                                  : hf__target_query(work->target, &list, grid, err);
    hf__buf_free(&sql);
    return status;
}

hf_status hf__staging_find(hf__work *work, const char *id, char out[128], hf_error *err)
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
        if (is_complete)
            (void)snprintf(out, 128, "%s", name);
        else if (hf__staging_drop(work, name, NULL) != HF_OK) /* it is in nobody's way */
            hf__work_note(work, "%s could not be dropped; a later append does it", name);
    }
    hf__grid_free(&grid);
    return status;
}
