#include "append/dedup.h"

#include <stdlib.h>
#include <string.h>

static const char on_insert[] = "insert_deduplicate", token[] = "insert_deduplication_token",
                  replicated[] = "replicated_deduplication_window",
                  plain[] = "non_replicated_deduplication_window";

void hf__dedup_ask(hf__buf *sql)
{
    hf__buf_printf(sql,
                   "SELECT name, value FROM system.settings WHERE name IN ('%s', '%s') UNION ALL "
                   "SELECT name, value FROM system.merge_tree_settings WHERE name IN ('%s', '%s')",
                   on_insert, token, replicated, plain);
}

static const char *find(const hf__grid *settings, const char *name)
{
    for (size_t i = 0; i < settings->rows; i++)
        if (strcmp(hf__grid_at(settings, i, 0), name) == 0)
            return hf__grid_at(settings, i, 1);
    return NULL;
}

/* "… SETTINGS index_granularity = 8192, NAME = 5": the table's own, or NULL. */
static const char *find_own(const char *engine_full, const char *name)
{
    const char *at = strstr(engine_full, " SETTINGS ");

    while (at != NULL && (at = strstr(at + 1, name)) != NULL)
        if (at[-1] == ' ' && strncmp(at + strlen(name), " = ", 3) == 0)
            return at + strlen(name) + 3;
    return NULL;
}

int64_t hf__dedup_window(const char *engine_full, const hf__grid *settings)
{
    bool is_replicated = strncmp(engine_full, "Replicated", strlen("Replicated")) == 0;
    const char *name = is_replicated ? replicated : plain;
    const char *inserts = find(settings, on_insert);
    const char *window = find_own(engine_full, name);

    if (window == NULL)
        window = find(settings, name);
    if (window == NULL || inserts == NULL || strcmp(inserts, "1") != 0 ||
        (!is_replicated && !hf__dedup_has_token(settings)))
        return 0;
    return strtoll(window, NULL, 10);
}

bool hf__dedup_has_token(const hf__grid *settings)
{
    return find(settings, token) != NULL;
}
