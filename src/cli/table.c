#include "cli/table.h"

#include <langinfo.h>
#include <libsmartcols/libsmartcols.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct table {
    struct libscols_table *table;
    struct libscols_line *line;
    bool broken;
};

void prepare_for_tables(void)
{
    const char *locale = setlocale(LC_CTYPE, "");

    /* Services and containers have no locale set, and labels are UTF-8 all the same. */
    if (locale == NULL || strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0)
        setlocale(LC_CTYPE, "C.UTF-8");
}

bool output_is_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static int flags_of(const struct column *column)
{
    return (column->to_the_right ? SCOLS_FL_RIGHT : 0) | (column->may_be_cut ? SCOLS_FL_TRUNC : 0);
}

struct table *table_new(const struct column *columns)
{
    struct table *table = calloc(1, sizeof *table);

    if (table == NULL)
        return NULL;
    table->table = scols_new_table();
    if (table->table == NULL) {
        free(table);
        return NULL;
    }
    for (; columns->title != NULL; columns++)
        if (scols_table_new_column(table->table, columns->title, 0, flags_of(columns)) == NULL)
            table->broken = true;
    return table;
}

void table_add_row(struct table *table)
{
    if (table == NULL || table->broken)
        return;
    table->line = scols_table_new_line(table->table, NULL);
    table->broken = table->line == NULL;
}

void table_set(struct table *table, size_t column, const char *text)
{
    if (table == NULL || table->broken)
        return;
    if (scols_line_set_data(table->line, column, text) != 0)
        table->broken = true;
}

bool table_print(struct table *table)
{
    if (table == NULL || table->broken)
        return false;
    if (scols_table_get_nlines(table->table) == 0)
        return true;
    return scols_print_table(table->table) == 0 && fflush(stdout) == 0;
}

void table_free(struct table *table)
{
    if (table != NULL)
        scols_unref_table(table->table);
    free(table);
}
