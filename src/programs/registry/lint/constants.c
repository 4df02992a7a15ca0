#include "programs/registry/lint/constants.h"

#include <stdlib.h>
#include <string.h>

#include "programs/registry/lint/grow.h"

enum { CONSTANTS_MAX = 50000 };

#define NAME "([A-Za-z_]\\w*)"
#define STRING "\"(?:[^\"\\\\\\n]|\\\\.)*+\"|'(?:[^'\\\\\\n]|\\\\.)*+'"
#define NUMBER "[-+]?(?:0x[0-9a-f_]+|\\d[\\d_]*+)(?:[uln]+|_?i64)?"
#define LITERAL "(" STRING "|" NUMBER ")"

const char *const hf__constant_patterns[HF__CONSTANT_PATTERNS] = {
    /* x = 42; X: i64 = 42; x := int64(42); and, to know that x is not constant, x = f() and x++ */
    "\\b" NAME
    "(?:\\s*:\\s*[\\w.:<>]+|\\s+(?:constant\\s+)?(?:u?int(?:eger)?\\d*|bigint|long|string|text))?"
    "\\s*"
    "(?:(?::=|(?<![-+*/%|&^=!<>])=(?![=>~]))\\s*(?:[a-z_][\\w.:]*\\(\\s*)?+"
    "(?:" LITERAL "\\)?(?=[ \\t]*(?:[;,}\\r\\n#]|//|--|/\\*|\\z)))?|\\+\\+|--|[-+*/|&^]=)",
    /* #define X 42, define('X', 42), @x 42 */
    "(?:#[ \\t]*define[ \\t]+|\\bdefine\\(\\s*['\"]|^[ \\t]*@)" NAME
    "(?:['\"]\\s*,)?[ \\t]+\\(?" LITERAL,
};

static int compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);

    return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

static int by_name(const void *a, const void *b, void *text)
{
    const hf__constant *x = a;
    const hf__constant *y = b;
    int order = compare((const char *)text + x->name, x->name_size, (const char *)text + y->name,
                        y->name_size);

    return order != 0 ? order : (x->name > y->name) - (x->name < y->name);
}

static hf_status add(hf__constants *constants, const hf__match *match, hf_error *err)
{
    hf__constant constant = {match->start[1], match->end[1] - match->start[1], 0, 0};

    if (hf__match_has(match, 2)) {
        constant.value = match->start[2];
        constant.value_size = match->end[2] - match->start[2];
    }
    if (!HF__GROW(constants->items, constants->count, constants->capacity))
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    constants->items[constants->count++] = constant;
    return HF_OK;
}

/* Names that are given two values are given none. */
static void merge(hf__constants *constants, const char *text)
{
    size_t kept = 0;

    for (size_t i = 0; i < constants->count; i++) {
        hf__constant *next = &constants->items[i];
        hf__constant *last = kept > 0 ? &constants->items[kept - 1] : NULL;
        if (last == NULL ||
            compare(text + last->name, last->name_size, text + next->name, next->name_size) != 0)
            constants->items[kept++] = *next;
        else if (compare(text + last->value, last->value_size, text + next->value,
                         next->value_size) != 0)
            last->value_size = 0;
    }
    constants->count = kept;
}

hf_status hf__constants_read(hf__constants *constants, const hf__unit *unit,
                             hf__regex *const *patterns, hf_error *err)
{
    hf_status status = HF_OK;
    hf__match match;

    for (size_t i = 0; i < HF__CONSTANT_PATTERNS; i++) {
        for (size_t at = 0;
             status == HF_OK && constants->count < CONSTANTS_MAX &&
             hf__regex_find(patterns[i], unit->text, unit->size, at, &match) == HF__FOUND;
             at = match.end[0] > at ? match.end[0] : at + 1)
            if (unit->classes[match.start[1]] == HF__CODE || i > 0)
                status = add(constants, &match, err);
    }
    if (constants->count > 1)
        qsort_r(constants->items, constants->count, sizeof *constants->items, by_name,
                (void *)unit->text);
    merge(constants, unit->text);
    constants->read = true;
    return status;
}

void hf__constants_free(hf__constants *constants)
{
    free(constants->items);
    *constants = (hf__constants){0};
}

const char *hf__constants_find(const hf__constants *constants, const hf__unit *unit,
                               const char *name, size_t size, size_t *value_size)
{
    size_t low = 0;
    size_t high = constants->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const hf__constant *item = &constants->items[middle];
        int order = compare(name, size, unit->text + item->name, item->name_size);
        if (order == 0) {
            *value_size = item->value_size;
            return item->value_size > 0 ? unit->text + item->value : NULL;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
