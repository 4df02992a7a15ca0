/* Names of shared tables. A name has only one reading, here and in SQL that quotes it. */
#include "lib/tables/name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { FIRST_C1 = 0x80, LAST_C1 = 0x9f, LINE_SEPARATOR = 0x2028, PARAGRAPH_SEPARATOR = 0x2029 };

#define DEFAULT_DATABASE "default"

static bool is_control(int32_t c)
{
    return c < 0x20 || c == 0x7f || (c >= FIRST_C1 && c <= LAST_C1) || c == LINE_SEPARATOR ||
           c == PARAGRAPH_SEPARATOR;
}

/* Says what is wrong with a character, or returns NULL. */
static const char *fault_of(int32_t c)
{
    switch (c) {
    case '\'':
    case '"': return "a quote";
    case '`': return "a backtick";
    case '\\': return "a backslash";
    case '.': return "a dot inside";
    case '/': return "a slash inside";
    case -1: return "bytes that are no UTF-8";
    default: return is_control(c) ? "a control character" : NULL;
    }
}

static hf_status check_part(const char *what, const char *part, size_t size, hf_error *err)
{
    char shown[80];
    const char *fault = NULL;
    hf_status status = HF_OK;
    if (size == 0) {
        status = hf__fail(err, HF_INVALID, "the name of the %s is empty", what);
        hf__hint(err, "name it as 'database.table' or 'cluster/database.table'");
        return status;
    }
    (void)hf__show(shown, sizeof shown, part, size);
    if (size > HF_TABLE_PART_MAX) {
        status = hf__fail(err, HF_INVALID, "the name of the %s '%s' has %zu bytes, more than %d",
                          what, shown, size, HF_TABLE_PART_MAX);
        hf__hint(err, "ClickHouse keeps tables in files of their names: choose a shorter one");
        return status;
    }
    for (size_t at = 0; !fault && at < size;)
        fault = fault_of(hf__utf8_next((const unsigned char *)part, size, &at));
    if (!fault && (part[0] == ' ' || part[size - 1] == ' '))
        fault = "a space at an end";
    if (!fault)
        return HF_OK;
    status = hf__fail(err, HF_INVALID, "the name of the %s '%s' has %s", what, shown, fault);
    hf__hint(err,
             "write it as 'database.table' or 'cluster/database.table', each part without quotes, "
             "backticks, backslashes, dots, slashes and control characters");
    return status;
}

static void copy_part(char out[HF_TABLE_PART_MAX + 1], const char *part, size_t size)
{
    memcpy(out, part, size);
    out[size] = '\0';
}

static void write_text(hf__table_name *name)
{
    (void)snprintf(name->text, sizeof name->text, "%s%s%s.%s", name->cluster,
                   name->cluster[0] ? "/" : "", name->database, name->table);
}

struct part {
    const char *text;
    size_t size;
};

static hf_status take_parts(struct part cluster, struct part database, struct part table,
                            hf__table_name *name, hf_error *err)
{
    hf_status status = HF_OK;
    if (cluster.text)
        status = check_part("cluster", cluster.text, cluster.size, err);
    if (status == HF_OK)
        status = check_part("database", database.text, database.size, err);
    if (status == HF_OK)
        status = check_part("table", table.text, table.size, err);
    if (status != HF_OK)
        return status;
    copy_part(name->cluster, cluster.text ? cluster.text : "", cluster.text ? cluster.size : 0);
    copy_part(name->database, database.text, database.size);
    copy_part(name->table, table.text, table.size);
    write_text(name);
    return HF_OK;
}

static struct part part_or(const char *text, const char *otherwise)
{
    const char *chosen = text && *text ? text : otherwise;
    return (struct part){chosen, chosen ? strlen(chosen) : 0};
}

hf_status hf__table_name_check(const hf_table_name *given, hf__table_name *name, hf_error *err)
{
    if (!given || !given->table)
        return hf__fail(err, HF_INVALID, "the shared table needs a name");
    return take_parts(part_or(given->cluster, NULL), part_or(given->database, DEFAULT_DATABASE),
                      (struct part){given->table, strlen(given->table)}, name, err);
}

/* Cuts off what stands before the mark, if the mark is there. */
static struct part cut_before(struct part *rest, char mark, struct part otherwise)
{
    const char *at = memchr(rest->text, mark, rest->size);
    if (!at)
        return otherwise;
    struct part before = {rest->text, (size_t)(at - rest->text)};
    rest->size -= before.size + 1;
    rest->text = at + 1;
    return before;
}

hf_status hf__table_name_parse(const char *text, size_t size, const hf_table_name *defaults,
                               hf__table_name *name, hf_error *err)
{
    struct part rest = {text, size};
    struct part cluster =
        cut_before(&rest, '/', part_or(defaults ? defaults->cluster : NULL, NULL));
    struct part database =
        cut_before(&rest, '.', part_or(defaults ? defaults->database : NULL, DEFAULT_DATABASE));
    return take_parts(cluster, database, rest, name, err);
}

hf_status hf_table_name_parse(const char *text, hf_table_name *name, char **memory, hf_error *err)
{
    hf__table_name parsed;
    if (!text || !name || !memory)
        return hf__fail(err, HF_INVALID,
                        "hf_table_name_parse needs a text and a place for the name");
    *memory = NULL;
    hf_status status = hf__table_name_parse(text, strlen(text), NULL, &parsed, err);
    if (status != HF_OK)
        return status;
    hf__table_name *kept = malloc(sizeof *kept);
    if (!kept)
        return hf__no_memory(err);
    *kept = parsed;
    *memory = (char *)kept;
    *name = (hf_table_name){kept->cluster, kept->database, kept->table};
    return HF_OK;
}

hf_status hf_table_name_text(const hf_table_name *name, char text[HF_TABLE_TEXT_MAX], hf_error *err)
{
    hf__table_name checked;
    hf_status status = hf__table_name_check(name, &checked, err);
    if (status == HF_OK)
        memcpy(text, checked.text, sizeof checked.text);
    return status;
}
