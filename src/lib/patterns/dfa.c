/* A deterministic automaton as a table: matching neither allocates nor tries anything twice. */
#include "lib/patterns/automaton.h"

#include <stdlib.h>
#include <string.h>

enum {
    ASCII = 128,
    SUBSETS_MAX = 1024,
    STEPS_MAX = 2000000, /* some 20 ms */
    DEAD = 0,            /* the state from which there is no word; the others follow */
};

struct hf__dfa {
    uint32_t count;
    uint32_t start;
    uint32_t class_count;
    uint8_t class_of[ASCII]; /* characters that lead to the same states everywhere */
    uint16_t *next;          /* by state and class */
    bool *accepts;
    uint32_t *wide_from; /* moves beyond ASCII: wide[wide_from[state]...[state + 1]] */
    hf__move *wide;
};

static uint32_t wide_next(const hf__dfa *dfa, uint32_t state, uint32_t character)
{
    uint32_t low = dfa->wide_from[state];
    uint32_t high = dfa->wide_from[state + 1];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (dfa->wide[middle].high < character)
            low = middle + 1;
        else if (dfa->wide[middle].low > character)
            high = middle;
        else
            return dfa->wide[middle].target;
    }
    return DEAD;
}

bool hf__dfa_has(const hf__dfa *dfa, const char *text, size_t size)
{
    uint32_t state = dfa->start;

    for (size_t at = 0; at < size && state != DEAD;) {
        unsigned char byte = (unsigned char)text[at];
        if (byte < ASCII) {
            state = dfa->next[state * dfa->class_count + dfa->class_of[byte]];
            at++;
        } else {
            state = wide_next(dfa, state, hf__character_next(text, size, &at));
        }
    }
    return dfa->accepts[state];
}

/* By character, then by state: a column per character. */
static uint16_t *make_columns(const hf__subsets *subsets, size_t states)
{
    uint16_t *columns = calloc(ASCII * states, sizeof *columns);

    for (size_t i = 0; columns != NULL && i < subsets->count; i++) {
        const hf__move *moves = subsets->moves + subsets->items[i].first_move;
        for (uint32_t k = 0; k < subsets->items[i].move_count; k++)
            for (uint32_t c = moves[k].low; c <= moves[k].high && c < ASCII; c++)
                columns[c * states + i + 1] = (uint16_t)(moves[k].target + 1);
    }
    return columns;
}

/* Characters with the same column share a class; returns the first character of each. */
static void find_classes(hf__dfa *dfa, const uint16_t *columns, uint32_t firsts[ASCII])
{
    size_t column_size = dfa->count * sizeof *columns;

    for (uint32_t c = 0; c < ASCII; c++) {
        uint32_t class = 0;
        while (class < dfa->class_count && memcmp(columns + firsts[class] * dfa->count,
                                                  columns + c * dfa->count, column_size) != 0)
            class ++;
        if (class == dfa->class_count)
            firsts[dfa->class_count++] = c;
        dfa->class_of[c] = (uint8_t) class;
    }
}

static hf_status fill_table(hf__dfa *dfa, const hf__subsets *subsets)
{
    uint32_t firsts[ASCII] = {0};
    uint16_t *columns = make_columns(subsets, dfa->count);

    if (columns == NULL)
        return HF_NO_MEMORY;
    find_classes(dfa, columns, firsts);
    dfa->next = calloc((size_t)dfa->count * dfa->class_count, sizeof *dfa->next);
    for (uint32_t class = 0; dfa->next != NULL && class < dfa->class_count; class ++)
        for (uint32_t state = 0; state < dfa->count; state++)
            dfa->next[state * dfa->class_count + class] =
                columns[firsts[class] * dfa->count + state];
    free(columns);
    return dfa->next != NULL ? HF_OK : HF_NO_MEMORY;
}

static hf_status fill_wide(hf__dfa *dfa, const hf__subsets *subsets)
{
    uint32_t count = 0;

    dfa->wide_from = calloc(dfa->count + 1, sizeof *dfa->wide_from);
    dfa->wide = calloc(subsets->move_count + 1, sizeof *dfa->wide);
    if (dfa->wide_from == NULL || dfa->wide == NULL)
        return HF_NO_MEMORY;
    for (size_t i = 0; i < subsets->count; i++) {
        const hf__move *moves = subsets->moves + subsets->items[i].first_move;
        for (uint32_t k = 0; k < subsets->items[i].move_count; k++)
            if (moves[k].high >= ASCII)
                dfa->wide[count++] = (hf__move){moves[k].low > ASCII ? moves[k].low : ASCII,
                                                moves[k].high, moves[k].target + 1};
        dfa->wide_from[i + 2] = count;
    }
    return HF_OK;
}

static hf_status make_dfa(const hf__subsets *subsets, hf__dfa *dfa)
{
    hf_status status;

    dfa->count = (uint32_t)subsets->count + 1;
    dfa->start = subsets->count > 0 ? 1 : DEAD;
    dfa->accepts = calloc(dfa->count, sizeof *dfa->accepts);
    if (dfa->accepts == NULL)
        return HF_NO_MEMORY;
    for (size_t i = 0; i < subsets->count; i++)
        dfa->accepts[i + 1] = subsets->items[i].accepts;
    status = fill_table(dfa, subsets);
    return status == HF_OK ? fill_wide(dfa, subsets) : status;
}

static hf_status explore_all(hf__subsets *subsets, const hf__automaton *automaton)
{
    if (automaton->start == HF__NOWHERE)
        return HF_OK;
    hf_status status = hf__subsets_open(subsets, automaton, SUBSETS_MAX, STEPS_MAX);
    for (uint32_t i = 0; status == HF_OK && i < subsets->count; i++)
        status = hf__subsets_explore(subsets, i);
    return status;
}

hf_status hf__dfa_build(const hf__automaton *automaton, hf__dfa **dfa)
{
    hf__subsets subsets = {0};
    hf_status status = explore_all(&subsets, automaton);

    *dfa = NULL;
    if (status == HF_OK) {
        *dfa = calloc(1, sizeof **dfa);
        status = *dfa != NULL ? make_dfa(&subsets, *dfa) : HF_NO_MEMORY;
    }
    hf__subsets_free(&subsets);
    if (status == HF_OK)
        return HF_OK;
    hf__dfa_free(*dfa);
    *dfa = NULL;
    return status == HF_QUOTA ? HF_OK : status;
}

void hf__dfa_free(hf__dfa *dfa)
{
    if (dfa == NULL)
        return;
    free(dfa->next);
    free(dfa->accepts);
    free(dfa->wide_from);
    free(dfa->wide);
    free(dfa);
}
