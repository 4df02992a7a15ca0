#include "cli/print.h"

#include <langinfo.h>
#include <libsmartcols/libsmartcols.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { LEAST_OF_CUT = 10 }; /* less of a text says nothing */

struct shape {
    size_t title;
    size_t widest; /* of the cells */
    bool may_be_cut;
    unsigned rank;
};

struct table {
    struct libscols_table *table;
    struct libscols_line *line;
    struct shape *shapes;
    size_t count; /* of columns */
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

static size_t width_of(const char *text)
{
    wchar_t wide[256];
    size_t count = mbstowcs(wide, text, sizeof wide / sizeof wide[0]);
    int width = count == (size_t)-1 ? -1 : wcswidth(wide, count);

    return width >= 0 ? (size_t)width : strlen(text); /* what is escaped is longer still */
}

static void add_column(struct table *table, const struct column *column)
{
    table->shapes[table->count++] = (struct shape){
        .title = width_of(column->title),
        .may_be_cut = column->may_be_cut,
        .rank = column->rank,
    };
    if (scols_table_new_column(table->table, column->title, 0, flags_of(column)) == NULL)
        table->broken = true;
}

struct table *table_new(const struct column *columns)
{
    struct table *table = calloc(1, sizeof *table);
    size_t count = 0;

    if (table == NULL)
        return NULL;
    while (columns[count].title != NULL)
        count++;
    table->table = scols_new_table();
    table->shapes = calloc(count + 1, sizeof *table->shapes);
    if (table->table == NULL || table->shapes == NULL) {
        table_free(table);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        add_column(table, &columns[i]);
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
    size_t width = width_of(text);
    if (column < table->count && width > table->shapes[column].widest)
        table->shapes[column].widest = width;
}

static size_t least_width(const struct shape *shape)
{
    bool cut = shape->may_be_cut && shape->widest > LEAST_OF_CUT;
    size_t least = cut ? LEAST_OF_CUT : shape->widest;

    return least > shape->title ? least : shape->title;
}

static bool is_hidden(const struct table *table, size_t column)
{
    return scols_column_is_hidden(scols_table_get_column(table->table, column)) != 0;
}

static size_t least_room(const struct table *table)
{
    size_t room = 0;

    for (size_t i = 0; i < table->count; i++)
        if (!is_hidden(table, i))
            room += least_width(&table->shapes[i]) + (room > 0);
    return room;
}

/* The column that can be done without best; count: none. */
static size_t least_wanted(const struct table *table)
{
    size_t found = table->count;

    for (size_t i = 0; i < table->count; i++) {
        const struct shape *shape = &table->shapes[i];
        const struct shape *best = found < table->count ? &table->shapes[found] : NULL;
        if (shape->rank == 0 || is_hidden(table, i))
            continue;
        if (best == NULL || (best->widest > 0 && shape->widest == 0) ||
            ((best->widest == 0) == (shape->widest == 0) && shape->rank > best->rank))
            found = i;
    }
    return found;
}

/* On a terminal lines that are broken are worse than columns that are missing. */
static void fit_to_terminal(const struct table *table)
{
    size_t room = scols_table_get_termwidth(table->table);

    while (isatty(STDOUT_FILENO) && least_room(table) > room) {
        size_t column = least_wanted(table);
        if (column == table->count)
            break;
        struct libscols_column *hidden = scols_table_get_column(table->table, column);
        (void)scols_column_set_flags(hidden, scols_column_get_flags(hidden) | SCOLS_FL_HIDDEN);
    }
}

bool table_print(struct table *table)
{
    if (table == NULL || table->broken)
        return false;
    if (scols_table_get_nlines(table->table) == 0)
        return true;
    fit_to_terminal(table);
    return scols_print_table(table->table) == 0 && fflush(stdout) == 0;
}

void table_free(struct table *table)
{
    if (table == NULL)
        return;
    scols_unref_table(table->table);
    free(table->shapes);
    free(table);
}
