#include "programs/append/dedup.h"

#include <stdlib.h>
#include <string.h>

#include "programs/append/settings.h"

static const char on_insert[] = "insert_deduplicate", token[] = "insert_deduplication_token",
                  replicated[] = "replicated_deduplication_window",
                  plain[] = "non_replicated_deduplication_window";

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
    const char *inserts = hf__settings_value(settings, on_insert);
    const char *window = find_own(engine_full, name);

    if (window == NULL)
        window = hf__settings_value(settings, name);
    if (window == NULL || inserts == NULL || strcmp(inserts, "1") != 0 ||
        (!is_replicated && !hf__dedup_has_token(settings)))
        return 0;
    return strtoll(window, NULL, 10);
}

bool hf__dedup_has_token(const hf__grid *settings)
{
    return hf__settings_value(settings, token) != NULL;
}
