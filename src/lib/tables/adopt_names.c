#include "lib/tables/adopt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMN_NAME,
    COLUMN_ROWS,
    COLUMN_WITH_ID,
    COLUMN_LOW,
    COLUMN_HIGH,
    COLUMN_ODD,
    COLUMN_TYPE,
    COLUMN_CONTEXT
};

bool hf__adopt_blame(char **problem, const char *format, ...)
{
    char text[512];
    va_list args;
    if (*problem)
        return true;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *problem = strdup(text);
    return *problem != NULL;
}

void hf__adopt_names_free(hf__adopt_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->spellings[i].raw);
        free(names->spellings[i].text);
        free(names->spellings[i].problem);
    }
    for (size_t i = 0; i < names->table_count; i++)
        free(names->tables[i].problem);
    free(names->spellings);
    free(names->tables);
    *names = (hf__adopt_names){0};
}

/* ---- one spelling ---------------------------------------------------------------------------- */

static hf_status read_name(const hf_rows *rows, size_t row, const hf_table_name *defaults,
                           hf__adopt_spelling *spelling, hf_error *err)
{
    hf__table_name name;
    hf_error why;
    const char *raw = hf_rows_value(rows, row, COLUMN_NAME, &spelling->raw_size);
    const char *type = hf_rows_value(rows, row, COLUMN_TYPE, NULL);
    if (!raw)
        return hf__adopt_blame(&spelling->problem, "no table name") ? HF_OK : hf__no_memory(err);
    spelling->raw = malloc(spelling->raw_size + 1);
    if (!spelling->raw)
        return hf__no_memory(err);
    memcpy(spelling->raw, raw, spelling->raw_size);
    spelling->raw[spelling->raw_size] = '\0';
    bool kept = true;
    if (!type || strcmp(type, "text") != 0)
        kept = hf__adopt_blame(&spelling->problem, "the table name is no text");
    else if (hf__table_name_parse(raw, spelling->raw_size, defaults, &name, &why) != HF_OK)
        kept = hf__adopt_blame(&spelling->problem, "%s", why.message);
    else
        kept = (spelling->text = strdup(name.text)) != NULL;
    return kept ? HF_OK : hf__no_memory(err);
}

static hf_status read_ids(const hf_rows *rows, size_t row, hf__adopt_spelling *spelling,
                          hf_error *err)
{
    int64_t odd = 0;
    bool kept = true;
    hf_status status = hf__row_number(rows, row, COLUMN_ODD, "the number of odd ids", &odd, err);
    if (status != HF_OK || spelling->with_id == 0)
        return status;
    if (odd == 0)
        status = hf__row_number(rows, row, COLUMN_LOW, "advisory_id", &spelling->low, err);
    if (status == HF_OK && odd == 0)
        status = hf__row_number(rows, row, COLUMN_HIGH, "advisory_id", &spelling->high, err);
    if (status != HF_OK)
        return status;
    if (odd > 0)
        kept = hf__adopt_blame(&spelling->problem, "an id is not a whole number");
    else if (spelling->low <= 0)
        kept = hf__adopt_blame(&spelling->problem, "an id is not positive");
    else if (spelling->low != spelling->high)
        kept = hf__adopt_blame(&spelling->problem, "different ids for one name");
    return kept ? HF_OK : hf__no_memory(err);
}

static hf_status read_contexts(const hf_rows *rows, size_t row, hf__adopt_spelling *spelling,
                               hf_error *err)
{
    int64_t longest = 0;
    hf_status status =
        hf__row_number(rows, row, COLUMN_CONTEXT, "the size of the contexts", &longest, err);
    if (status != HF_OK || longest <= HF__CONTEXT_MAX)
        return status;
    return hf__adopt_blame(&spelling->problem, "a context id has more than %d bytes",
                           HF__CONTEXT_MAX)
               ? HF_OK
               : hf__no_memory(err);
}

static hf_status read_spelling(const hf_rows *rows, size_t row, const hf_table_name *defaults,
                               hf__adopt_spelling *spelling, hf_error *err)
{
    hf_status status =
        hf__row_number(rows, row, COLUMN_ROWS, "the number of rows", &spelling->rows, err);
    if (status == HF_OK)
        status =
            hf__row_number(rows, row, COLUMN_WITH_ID, "the number of ids", &spelling->with_id, err);
    if (status == HF_OK)
        status = read_name(rows, row, defaults, spelling, err);
    if (status == HF_OK)
        status = read_ids(rows, row, spelling, err);
    return status == HF_OK ? read_contexts(rows, row, spelling, err) : status;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* By table; spellings that name no table come last. */
static int by_text(const void *a, const void *b)
{
    const hf__adopt_spelling *left = a, *right = b;
    if (!left->text || !right->text)
        return !left->text - !right->text;
    return strcmp(left->text, right->text);
}

static bool join_table(hf__adopt_table *table, hf__adopt_spelling *spelling)
{
    int64_t id = spelling->with_id > 0 && !spelling->problem ? spelling->low : 0;
    if (!id || id == table->id)
        return true;
    if (!table->id) {
        table->id = id;
        return true;
    }
    return hf__adopt_blame(&table->problem, "different ids for spellings of '%s'", table->text);
}

static hf_status find_tables(hf__adopt_names *names, hf_error *err)
{
    qsort(names->spellings, names->count, sizeof *names->spellings, by_text);
    names->tables = calloc(names->count + 1, sizeof *names->tables);
    if (!names->tables)
        return hf__no_memory(err);
    for (size_t i = 0; i < names->count && names->spellings[i].text; i++) {
        hf__adopt_spelling *spelling = &names->spellings[i];
        if (i == 0 || strcmp(spelling->text, spelling[-1].text) != 0)
            names->tables[names->table_count++].text = spelling->text;
        spelling->table = names->table_count - 1;
        if (!join_table(&names->tables[spelling->table], spelling))
            return hf__no_memory(err);
    }
    return HF_OK;
}

struct known_id {
    int64_t id;
    hf__adopt_table *table;
};

static int by_id(const void *a, const void *b)
{
    const struct known_id *left = a, *right = b;
    return left->id < right->id ? -1 : left->id > right->id;
}

static hf_status find_shared_ids(hf__adopt_names *names, hf_error *err)
{
    bool kept = true;
    size_t count = 0;
    struct known_id *known = calloc(names->table_count + 1, sizeof *known);
    if (!known)
        return hf__no_memory(err);
    for (size_t i = 0; i < names->table_count; i++)
        if (names->tables[i].id)
            known[count++] = (struct known_id){names->tables[i].id, &names->tables[i]};
    qsort(known, count, sizeof *known, by_id);
    for (size_t i = 1; kept && i < count; i++) {
        hf__adopt_table *one = known[i - 1].table, *other = known[i].table;
        if (one->id != other->id)
            continue;
        kept = hf__adopt_blame(&one->problem, "the id is also that of '%s'", other->text) &&
               hf__adopt_blame(&other->problem, "the id is also that of '%s'", one->text);
    }
    free(known);
    return kept ? HF_OK : hf__no_memory(err);
}

hf_status hf__adopt_read_names(const hf_rows *rows, const hf_table_name *defaults,
                               hf__adopt_names *names, hf_error *err)
{
    hf_status status = HF_OK;
    names->count = hf_rows_count(rows);
    names->spellings = calloc(names->count + 1, sizeof *names->spellings);
    if (!names->spellings) {
        names->count = 0;
        return hf__no_memory(err);
    }
    for (size_t i = 0; status == HF_OK && i < names->count; i++)
        status = read_spelling(rows, i, defaults, &names->spellings[i], err);
    if (status == HF_OK)
        status = find_tables(names, err);
    return status == HF_OK ? find_shared_ids(names, err) : status;
}

hf_status hf__adopt_count_problems(hf__adopt_names *names, int64_t *count, hf_error *err)
{
    *count = 0;
    for (size_t i = 0; i < names->count; i++) {
        hf__adopt_spelling *spelling = &names->spellings[i];
        const char *shared = spelling->text ? names->tables[spelling->table].problem : NULL;
        if (shared && !hf__adopt_blame(&spelling->problem, "%s", shared))
            return hf__no_memory(err);
        *count += spelling->problem != NULL;
    }
    return HF_OK;
}
