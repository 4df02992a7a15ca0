#include "programs/holdfast/print_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/print.h"

static const char *skip_digits(const char *text)
{
    return text + strspn(text, "0123456789");
}

static bool is_number(const char *text)
{
    const char *start = text + (*text == '-');
    const char *end = skip_digits(start);

    if (end == start)
        return false;
    if (*end == '.')
        end = skip_digits(end + 1);
    if (*end == 'e' && (end[1] == '-' || end[1] == '+'))
        end = skip_digits(end + 2);
    return *end == '\0';
}

/* The types are not known here, but a column of numbers is easier to read on the right. */
static bool is_column_of_numbers(const hf_rows *rows, size_t column)
{
    size_t numbers = 0;

    for (size_t row = 0; row < hf_rows_count(rows); row++) {
        const char *value = hf_rows_value(rows, row, column, NULL);
        if (value != NULL && !is_number(value))
            return false;
        numbers += value != NULL;
    }
    return numbers > 0;
}

static struct table *table_for(const hf_rows *rows)
{
    size_t count = hf_rows_columns(rows);
    struct column *columns = calloc(count + 1, sizeof *columns);
    struct table *table = NULL;

    if (columns == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        columns[i].title = hf_rows_column(rows, i);
        columns[i].to_the_right = is_column_of_numbers(rows, i);
    }
    table = table_new(columns);
    free(columns);
    return table;
}

/* SQLite allows NUL in text, where a table's cell would end: shows it by its symbol. */
static bool set_with_nul(struct table *table, size_t column, const char *value, size_t size)
{
    hf__buf text = {0};

    for (size_t at = 0; at < size; at++) {
        if (value[at] == '\0')
            hf__buf_puts(&text, "␀");
        else
            hf__buf_add(&text, value + at, 1);
    }
    bool ok = !text.broken;
    if (ok)
        table_set(table, column, text.data);
    hf__buf_free(&text);
    return ok;
}

bool print_rows_as_table(const hf_rows *rows)
{
    struct table *table = table_for(rows);
    bool ok = true;

    for (size_t row = 0; row < hf_rows_count(rows); row++) {
        table_add_row(table);
        for (size_t i = 0; i < hf_rows_columns(rows); i++) {
            size_t size = 0;
            const char *value = hf_rows_value(rows, row, i, &size);
            if (value != NULL && memchr(value, '\0', size) != NULL)
                ok = set_with_nul(table, i, value, size) && ok;
            else if (value != NULL)
                table_set(table, i, value);
        }
    }
    bool printed = ok && table_print(table);
    table_free(table);
    return printed;
}

/* The column's name, with a number when an earlier column has the same name. */
static void add_column_key(hf__buf *keys, const hf_rows *rows, size_t column)
{
    const char *name = hf_rows_column(rows, column);
    size_t same = 1;

    for (size_t i = 0; i < column; i++)
        same += strcmp(hf_rows_column(rows, i), name) == 0;
    hf__buf_puts(keys, name);
    if (same > 1)
        hf__buf_printf(keys, "_%zu", same);
    hf__buf_add(keys, "", 1);
}

static void add_row(hf__json *json, const hf_rows *rows, size_t row, const char *keys)
{
    hf__json_begin_object(json, NULL);
    for (size_t i = 0; i < hf_rows_columns(rows); i++) {
        size_t size = 0;
        const char *value = hf_rows_value(rows, row, i, &size);
        if (value != NULL)
            hf__json_put_bytes(json, keys, value, size);
        else
            hf__json_put_null(json, keys);
        keys += strlen(keys) + 1;
    }
    hf__json_end_object(json);
}

bool print_rows_as_json(const hf_rows *rows)
{
    hf__json json = {0};
    hf__buf keys = {0}; /* one after the other, each ended by NUL */

    for (size_t i = 0; i < hf_rows_columns(rows); i++)
        add_column_key(&keys, rows, i);
    hf__json_begin_array(&json, NULL);
    json.text.broken |= keys.broken || keys.data == NULL;
    for (size_t row = 0; !json.text.broken && row < hf_rows_count(rows); row++)
        add_row(&json, rows, row, keys.data);
    hf__json_end_array(&json);
    hf__buf_free(&keys);
    return print_document(&json, stdout);
}
