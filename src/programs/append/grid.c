#include "programs/append/grid.h"

#include <stdlib.h>
#include <string.h>

static char unescaped(char c)
{
    static const char from[] = "tnrb0f", to[] = "\t\n\r\b\0\f";
    const char *at = strchr(from, c);

    return c != '\0' && at != NULL ? to[at - from] : c;
}

/* In place; returns the end. */
static char *unescape(char *cell, const char *end)
{
    char *out = cell;

    for (const char *at = cell; at < end; at++)
        *out++ = *at == '\\' && at + 1 < end ? unescaped(*++at) : *at;
    *out = '\0';
    return out;
}

static size_t count(const char *text, size_t size, char wanted)
{
    size_t found = 0;

    for (const char *at = text; (at = memchr(at, wanted, size - (size_t)(at - text))) != NULL; at++)
        found++;
    return found;
}

static bool take_row(hf__grid *grid, char *row, const char *end)
{
    for (size_t column = 0; column < grid->columns; column++) {
        char *cell_end = memchr(row, '\t', (size_t)(end - row));
        bool is_last = cell_end == NULL;
        if (is_last != (column + 1 == grid->columns))
            return false;
        if (is_last)
            cell_end = row + (end - row);
        grid->cells[grid->rows * grid->columns + column] = row;
        (void)unescape(row, cell_end);
        row = is_last ? row : cell_end + 1;
    }
    grid->rows++;
    return true;
}

hf_status hf__grid_read(char *text, size_t size, hf__grid *grid, hf_error *err)
{
    size_t lines = size > 0 ? count(text, size, '\n') : 0;
    char *at = text;

    *grid = (hf__grid){.text = text};
    if (size > 0 && (text[size - 1] != '\n' || memchr(text, '\0', size) != NULL))
        return hf__fail(err, HF_BAD_DATA, "the answer is no table of texts");
    if (lines == 0)
        return HF_OK;
    grid->columns = count(text, (size_t)((char *)memchr(text, '\n', size) - text), '\t') + 1;
    grid->cells = calloc(lines * grid->columns, sizeof *grid->cells);
    if (grid->cells == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    while (at < text + size) {
        char *end = memchr(at, '\n', size - (size_t)(at - text));
        if (end == NULL || !take_row(grid, at, end))
            return hf__fail(err, HF_BAD_DATA, "the answer has rows of different width");
        at = end + 1;
    }
    return HF_OK;
}

void hf__grid_free(hf__grid *grid)
{
    free(grid->text);
    free(grid->cells);
    *grid = (hf__grid){0};
}

const char *hf__grid_at(const hf__grid *grid, size_t row, size_t column)
{
    return row < grid->rows && column < grid->columns ? grid->cells[row * grid->columns + column]
                                                      : "";
}

int64_t hf__grid_number(const hf__grid *grid, size_t row, size_t column)
{
    return strtoll(hf__grid_at(grid, row, column), NULL, 10);
}
