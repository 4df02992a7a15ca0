#include "programs/registry/import/import_columns.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "programs/registry/import/inline.h"

static const struct {
    const char *title;
    hf__column column;
} known[] = {
    {"lock id", HF__COLUMN_ID},
    {"lock ids", HF__COLUMN_ID},
    {"advisory lock id", HF__COLUMN_ID},
    {"fixed id", HF__COLUMN_ID},
    {"fixed key", HF__COLUMN_ID},
    {"fixed lock id", HF__COLUMN_ID},
    {"lock number", HF__COLUMN_ID},
    {"numeric id", HF__COLUMN_ID},
    {"id", HF__COLUMN_ID},
    {"number", HF__COLUMN_ID},
    {"object id", HF__COLUMN_ID},
    {"objid", HF__COLUMN_ID},
    {"key2", HF__COLUMN_ID},
    {"key 2", HF__COLUMN_ID},
    {"class", HF__COLUMN_CLASS},
    {"class id", HF__COLUMN_CLASS},
    {"classid", HF__COLUMN_CLASS},
    {"key1", HF__COLUMN_CLASS},
    {"key 1", HF__COLUMN_CLASS},
    {"hash input pattern", HF__COLUMN_PATTERN},
    {"hash input", HF__COLUMN_PATTERN},
    {"hash pattern", HF__COLUMN_PATTERN},
    {"hashed pattern", HF__COLUMN_PATTERN},
    {"hashed key", HF__COLUMN_PATTERN},
    {"hash key", HF__COLUMN_PATTERN},
    {"lock pattern", HF__COLUMN_PATTERN},
    {"lock key pattern", HF__COLUMN_PATTERN},
    {"key pattern", HF__COLUMN_PATTERN},
    {"label pattern", HF__COLUMN_PATTERN},
    {"lock label", HF__COLUMN_PATTERN},
    {"input pattern", HF__COLUMN_PATTERN},
    {"pattern", HF__COLUMN_PATTERN},
    {"label", HF__COLUMN_PATTERN},
    {"lock key", HF__COLUMN_KEY},
    {"lock keys", HF__COLUMN_KEY},
    {"advisory lock key", HF__COLUMN_KEY},
    {"advisory lock", HF__COLUMN_KEY},
    {"advisory key", HF__COLUMN_KEY},
    {"key", HF__COLUMN_KEY},
    {"name", HF__COLUMN_NAME},
    {"lock name", HF__COLUMN_NAME},
    {"lock", HF__COLUMN_NAME},
    {"constant", HF__COLUMN_SYMBOL},
    {"constant name", HF__COLUMN_SYMBOL},
    {"identifier", HF__COLUMN_SYMBOL},
    {"symbol", HF__COLUMN_SYMBOL},
    {"component", HF__COLUMN_COMPONENT},
    {"service", HF__COLUMN_COMPONENT},
    {"module", HF__COLUMN_COMPONENT},
    {"subsystem", HF__COLUMN_COMPONENT},
    {"application", HF__COLUMN_COMPONENT},
    {"used by", HF__COLUMN_COMPONENT},
    {"purpose", HF__COLUMN_PURPOSE},
    {"description", HF__COLUMN_PURPOSE},
    {"reason", HF__COLUMN_PURPOSE},
    {"usage", HF__COLUMN_PURPOSE},
    {"use", HF__COLUMN_PURPOSE},
    {"used for", HF__COLUMN_PURPOSE},
    {"what", HF__COLUMN_PURPOSE},
    {"why", HF__COLUMN_PURPOSE},
    {"protects", HF__COLUMN_PURPOSE},
    {"scope", HF__COLUMN_SCOPE},
    {"granularity", HF__COLUMN_SCOPE},
    {"lock type", HF__COLUMN_TYPE},
    {"type", HF__COLUMN_TYPE},
    {"lock mode", HF__COLUMN_TYPE},
    {"mode", HF__COLUMN_TYPE},
    {"lock level", HF__COLUMN_TYPE},
    {"level", HF__COLUMN_TYPE},
    {"kind", HF__COLUMN_TYPE},
    {"lifetime", HF__COLUMN_TYPE},
    {"function", HF__COLUMN_TYPE},
    {"lock function", HF__COLUMN_TYPE},
    {"file reference", HF__COLUMN_FILE},
    {"file references", HF__COLUMN_FILE},
    {"file", HF__COLUMN_FILE},
    {"files", HF__COLUMN_FILE},
    {"file path", HF__COLUMN_FILE},
    {"location", HF__COLUMN_FILE},
    {"locations", HF__COLUMN_FILE},
    {"source", HF__COLUMN_FILE},
    {"sources", HF__COLUMN_FILE},
    {"source file", HF__COLUMN_FILE},
    {"source files", HF__COLUMN_FILE},
    {"code", HF__COLUMN_FILE},
    {"where", HF__COLUMN_FILE},
    {"reference", HF__COLUMN_FILE},
    {"references", HF__COLUMN_FILE},
    {"path", HF__COLUMN_FILE},
    {"owner", HF__COLUMN_OWNER},
    {"owners", HF__COLUMN_OWNER},
    {"owned by", HF__COLUMN_OWNER},
    {"team", HF__COLUMN_OWNER},
    {"responsible", HF__COLUMN_OWNER},
    {"contact", HF__COLUMN_OWNER},
    {"runbook", HF__COLUMN_RUNBOOK},
    {"run book", HF__COLUMN_RUNBOOK},
    {"playbook", HF__COLUMN_RUNBOOK},
    {"derivation", HF__COLUMN_DERIVATION},
    {"hash", HF__COLUMN_DERIVATION},
    {"hash function", HF__COLUMN_DERIVATION},
    {"hash algorithm", HF__COLUMN_DERIVATION},
    {"algorithm", HF__COLUMN_DERIVATION},
    {"hashing", HF__COLUMN_DERIVATION},
    {"placeholders", HF__COLUMN_PLACEHOLDERS},
    {"expected", HF__COLUMN_EXPECTED},
    {"expected labels", HF__COLUMN_EXPECTED},
    {"order", HF__COLUMN_ORDER},
    {"acquisition order", HF__COLUMN_ORDER},
    {"lock order", HF__COLUMN_ORDER},
    {"histogram", HF__COLUMN_HISTOGRAM},
};

/* "Lock_ID (decimal)" → "lock id": what is in parentheses explains, and does not name. */
static void normalise(const char *title, char *out, size_t out_size)
{
    size_t used = 0;
    bool gap = false;

    for (; *title != '\0' && *title != '(' && used + 2 < out_size; title++) {
        if (!isalnum((unsigned char)*title)) {
            gap = used > 0;
            continue;
        }
        if (gap)
            out[used++] = ' ';
        gap = false;
        out[used++] = (char)tolower((unsigned char)*title);
    }
    out[used] = '\0';
}

static hf__column column_of(const char *title)
{
    char plain[64];

    normalise(title, plain, sizeof plain);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].title, plain) == 0)
            return known[i].column;
    return HF__COLUMN_OTHER;
}

static bool has(const hf__table *table, hf__column column)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->columns[i] == column)
            return true;
    return false;
}

/* "ID" and "Key" head many tables: "Lock ID" speaks for itself. */
static bool names_locks(const hf__table *table)
{
    char plain[64];

    for (size_t i = 0; i < table->count; i++) {
        normalise(table->titles[i], plain, sizeof plain);
        if (strstr(plain, "lock") != NULL || strstr(plain, "hash") != NULL)
            return true;
    }
    return has(table, HF__COLUMN_TYPE) &&
           (has(table, HF__COLUMN_SCOPE) || has(table, HF__COLUMN_FILE));
}

/* "| Lock | Purpose | Type |" has its keys under "Lock", if anywhere. */
static void take_lock_for_key(hf__table *table)
{
    bool complete = has(table, HF__COLUMN_TYPE) &&
                    (has(table, HF__COLUMN_PURPOSE) || has(table, HF__COLUMN_COMPONENT));

    if (!complete || has(table, HF__COLUMN_ID) || has(table, HF__COLUMN_PATTERN) ||
        has(table, HF__COLUMN_KEY))
        return;
    for (size_t i = 0; i < table->count; i++)
        if (strcasecmp(table->titles[i], "lock") == 0)
            table->columns[i] = HF__COLUMN_KEY;
}

/* Says more about its keys than "| Key | Value |". */
static bool describes(const hf__table *table)
{
    static const hf__column telling[] = {HF__COLUMN_NAME,  HF__COLUMN_COMPONENT, HF__COLUMN_PURPOSE,
                                         HF__COLUMN_SCOPE, HF__COLUMN_TYPE,      HF__COLUMN_FILE,
                                         HF__COLUMN_OWNER};

    for (size_t i = 0; i < sizeof telling / sizeof telling[0]; i++)
        if (has(table, telling[i]))
            return true;
    return false;
}

static hf__table_kind kind_of(const hf__table *table, bool about_locks)
{
    bool has_key =
        has(table, HF__COLUMN_ID) || has(table, HF__COLUMN_PATTERN) || has(table, HF__COLUMN_KEY);
    bool has_more = has(table, HF__COLUMN_OWNER) || has(table, HF__COLUMN_RUNBOOK) ||
                    has(table, HF__COLUMN_ORDER);

    if (has_key)
        return names_locks(table) || (about_locks && describes(table)) ? HF__TABLE_LOCKS
                                                                       : HF__TABLE_STRANGE;
    return has(table, HF__COLUMN_NAME) && has_more ? HF__TABLE_MORE : HF__TABLE_STRANGE;
}

static bool read_titles(hf__table *table, const hf__row *header)
{
    hf__inline title = {0};

    for (size_t i = 0; i < header->count; i++) {
        hf__inline_read(&title, header->cells[i]);
        char *text = title.text.broken ? NULL : strdup(title.text.data);
        if (text == NULL)
            break;
        hf__column column = column_of(text);
        bool again = column != HF__COLUMN_TYPE && column != HF__COLUMN_FILE && has(table, column);
        table->titles[i] = text;
        table->columns[i] = again ? HF__COLUMN_OTHER : column;
        table->count++;
    }
    hf__inline_free(&title);
    return table->count == header->count;
}

bool hf__table_read(hf__table *table, const hf__row *header, bool about_locks)
{
    *table = (hf__table){.line = header->line};
    if (!read_titles(table, header))
        return false;
    take_lock_for_key(table);
    table->kind = kind_of(table, about_locks);
    return true;
}

void hf__table_free(hf__table *table)
{
    for (size_t i = 0; i < HF__CELLS_MAX; i++)
        free(table->titles[i]);
    *table = (hf__table){0};
}
