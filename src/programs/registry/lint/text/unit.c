#include "programs/registry/lint/text/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* A limit, since a file may be one long string with thousands of calls. */
enum { RUN_MAX = 16 * 1024 };

static bool find_lines(hf__unit *unit)
{
    const char *end;

    for (size_t at = 0;; at = (size_t)(end - unit->text) + 1) {
        if (!hf__grow(&unit->lines, &unit->line_capacity, unit->line_count + 1,
                      sizeof *unit->lines))
            return false;
        unit->lines[unit->line_count++] = at;
        end = memchr(unit->text + at, '\n', unit->size - at);
        if (end == NULL)
            return true;
    }
}

hf_status hf__unit_open(hf__unit *unit, const char *path, const hf__syntax *syntax,
                        const char *text, size_t size, hf_error *err)
{
    hf_status status;

    *unit = (hf__unit){.path = path, .text = text, .size = size, .syntax = syntax};
    unit->classes = malloc(size + 1);
    if (unit->classes == NULL || !find_lines(unit)) {
        hf__unit_close(unit);
        return hf__no_memory(err);
    }
    unit->classes[size] = HF__CODE;
    hf__scan(syntax, text, size, unit->classes);
    status = hf__find_blocks(unit, err);
    if (status != HF_OK)
        hf__unit_close(unit);
    return status;
}

void hf__unit_close(hf__unit *unit)
{
    free(unit->classes);
    free(unit->lines);
    free(unit->blocks);
    *unit = (hf__unit){0};
}

static size_t line_index(const hf__unit *unit, size_t at)
{
    size_t low = 0;
    size_t high = unit->line_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (unit->lines[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

unsigned hf__unit_line(const hf__unit *unit, size_t at)
{
    return (unsigned)line_index(unit, at) + 1;
}

unsigned hf__unit_column(const hf__unit *unit, size_t at)
{
    unsigned column = 1;

    for (size_t i = unit->lines[line_index(unit, at)]; i < at; i++)
        column += ((unsigned char)unit->text[i] & 0xC0) != 0x80;
    return column;
}

bool hf__unit_is_sql(const hf__unit *unit, size_t at)
{
    return unit->classes[at] == HF__TEXT ||
           (unit->classes[at] == HF__CODE && unit->syntax->id == HF__LANG_SQL);
}

size_t hf__unit_run_start(const hf__unit *unit, size_t at)
{
    unsigned char kind = unit->classes[at];

    for (size_t left = RUN_MAX; left > 0 && at > 0 && unit->classes[at - 1] == kind; left--)
        at--;
    return at;
}

size_t hf__unit_run_end(const hf__unit *unit, size_t at)
{
    unsigned char kind = unit->classes[at];

    for (size_t left = RUN_MAX; left > 0 && at < unit->size && unit->classes[at] == kind; left--)
        at++;
    return at;
}

size_t hf__unit_block(const hf__unit *unit, size_t at)
{
    size_t low = 0;
    size_t high = unit->block_count;

    while (low < high) { /* find the last one that starts at or before it */
        size_t middle = low + (high - low) / 2;
        if (unit->blocks[middle].start <= at)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t block = low > 0 ? low - 1 : HF__NO_BLOCK; block != HF__NO_BLOCK;
         block = unit->blocks[block].parent)
        if (at < unit->blocks[block].end)
            return block;
    return HF__NO_BLOCK;
}

bool hf__unit_encloses(const hf__unit *unit, size_t outer, size_t inner)
{
    if (outer == HF__NO_BLOCK || inner == HF__NO_BLOCK)
        return outer == inner;
    while (inner != HF__NO_BLOCK && inner != outer)
        inner = unit->blocks[inner].parent;
    return inner == outer;
}
