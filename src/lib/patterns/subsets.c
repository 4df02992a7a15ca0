/* The subset construction, as far as it is asked for, and the table that is made of all subsets. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "lib/patterns/automaton.h"

enum { MEMBERS_MAX = 4000000, MOVES_MAX = 4000000 }; /* some 64 MB */

struct hf__subsets_scratch {
    uint32_t *marks; /* the round in which a state was last added */
    uint32_t round;
    uint32_t *forks; /* states to follow */
    size_t fork_count;
    uint64_t *keys; /* a subset in the making: the set above, the state below */
    size_t key_count;
    size_t visited;   /* states, forks among them */
    uint32_t *sorted; /* the same, as it is stored */
    uint32_t *cuts;   /* the characters at which the moves may change */
    size_t cut_count, cut_capacity;
};

static void free_scratch(struct hf__subsets_scratch *scratch)
{
    if (scratch == NULL)
        return;
    free(scratch->marks);
    free(scratch->forks);
    free(scratch->keys);
    free(scratch->sorted);
    free(scratch->cuts);
    free(scratch);
}

static struct hf__subsets_scratch *make_scratch(size_t states)
{
    struct hf__subsets_scratch *scratch = calloc(1, sizeof *scratch);

    if (scratch == NULL)
        return NULL;
    scratch->marks = calloc(states, sizeof *scratch->marks);
    scratch->forks = calloc(states, sizeof *scratch->forks);
    scratch->keys = calloc(states, sizeof *scratch->keys);
    scratch->sorted = calloc(states, sizeof *scratch->sorted);
    if (scratch->marks != NULL && scratch->forks != NULL && scratch->keys != NULL &&
        scratch->sorted != NULL)
        return scratch;
    free_scratch(scratch);
    return NULL;
}

static bool spend(hf__subsets *subsets, size_t steps)
{
    if (steps >= subsets->steps_left) {
        subsets->steps_left = 0;
        return false;
    }
    subsets->steps_left -= steps;
    return true;
}

static void begin_subset(hf__subsets *subsets)
{
    subsets->scratch->round++;
    subsets->scratch->key_count = 0;
    subsets->scratch->visited = 0;
}

/* Adds the state, or what it forks to. */
static void add_state(hf__subsets *subsets, uint32_t state)
{
    struct hf__subsets_scratch *scratch = subsets->scratch;

    if (state == HF__NOWHERE || scratch->marks[state] == scratch->round)
        return;
    scratch->marks[state] = scratch->round;
    scratch->visited++;
    uint32_t set = subsets->automaton->states[state].set;
    if (set == HF__EITHER)
        scratch->forks[scratch->fork_count++] = state;
    else
        scratch->keys[scratch->key_count++] = (uint64_t)set << 32 | state;
}

static void add_with_forks(hf__subsets *subsets, uint32_t state)
{
    struct hf__subsets_scratch *scratch = subsets->scratch;

    add_state(subsets, state);
    while (scratch->fork_count > 0) {
        const hf__state *fork = &subsets->automaton->states[scratch->forks[--scratch->fork_count]];
        add_state(subsets, fork->out[0]);
        add_state(subsets, fork->out[1]);
    }
}

static int by_key(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static uint32_t *find(const hf__subsets *subsets, const uint32_t *members, size_t count)
{
    size_t mask = subsets->table.size - 1;
    size_t start = (size_t)hf__hash_bytes(members, count * sizeof *members);

    for (size_t at = start & mask;; at = (at + 1) & mask) {
        uint32_t *place = &subsets->table.places[at];
        if (*place == HF__NOWHERE)
            return place;
        const hf__subset *subset = &subsets->items[*place];
        if (subset->count == count &&
            memcmp(subsets->members + subset->first, members, count * sizeof *members) == 0)
            return place;
    }
}

static hf_status grow_table(hf__subsets *subsets)
{
    if (!hf__index_table_renew(&subsets->table))
        return HF_NO_MEMORY;
    for (uint32_t i = 0; i < subsets->count; i++) {
        const hf__subset *subset = &subsets->items[i];
        *find(subsets, subsets->members + subset->first, subset->count) = i;
    }
    return HF_OK;
}

static hf_status reserve(hf__subsets *subsets, size_t members)
{
    bool has_room =
        hf__grow(&subsets->items, &subsets->capacity, subsets->count + 1, sizeof *subsets->items) &&
        hf__grow(&subsets->members, &subsets->member_capacity, subsets->member_count + members,
                 sizeof *subsets->members);

    return has_room ? HF_OK : HF_NO_MEMORY;
}

static hf_status append(hf__subsets *subsets, const uint32_t *members, size_t count)
{
    const hf__state *states = subsets->automaton->states;
    hf__subset subset = {.first = (uint32_t)subsets->member_count,
                         .count = (uint32_t)count,
                         .distance = HF__NOWHERE};

    if (subsets->count >= subsets->most || count > MEMBERS_MAX - subsets->member_count ||
        !spend(subsets, count))
        return HF_QUOTA;
    hf_status status = reserve(subsets, count);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        const hf__state *state = &states[members[i]];
        subset.accepts = subset.accepts || state->set == HF__ACCEPT;
        if (state->distance < subset.distance)
            subset.distance = state->distance;
        subsets->members[subsets->member_count++] = members[i];
    }
    subsets->items[subsets->count++] = subset;
    return HF_OK;
}

/* *index is the subset with the members in the scratch, which is added if there is none yet. */
static hf_status intern(hf__subsets *subsets, uint32_t *index)
{
    struct hf__subsets_scratch *scratch = subsets->scratch;
    size_t count = scratch->key_count;
    hf_status status = HF_OK;

    if (!hf__index_table_has_room(&subsets->table, subsets->count))
        status = grow_table(subsets);
    if (status != HF_OK)
        return status;
    qsort(scratch->keys, count, sizeof scratch->keys[0], by_key);
    for (size_t i = 0; i < count; i++)
        scratch->sorted[i] = (uint32_t)scratch->keys[i];
    uint32_t *place = find(subsets, scratch->sorted, count);
    if (*place == HF__NOWHERE) {
        status = append(subsets, scratch->sorted, count);
        if (status != HF_OK)
            return status;
        *place = (uint32_t)subsets->count - 1;
    }
    *index = *place;
    return HF_OK;
}

static uint32_t set_of(const hf__subsets *subsets, size_t member)
{
    return subsets->automaton->states[subsets->members[member]].set;
}

/* Members stand in the order of their sets. Returns the first one that has another set. */
static size_t next_set(const hf__subsets *subsets, size_t member, size_t end)
{
    uint32_t set = set_of(subsets, member);

    while (member < end && set_of(subsets, member) == set)
        member++;
    return member;
}

static hf_status add_cuts(hf__subsets *subsets, uint32_t set)
{
    struct hf__subsets_scratch *scratch = subsets->scratch;
    const hf__automaton *automaton = subsets->automaton;
    size_t count = automaton->sets[set].count;

    if (!hf__grow(&scratch->cuts, &scratch->cut_capacity, scratch->cut_count + 2 * count,
                  sizeof *scratch->cuts))
        return HF_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        scratch->cuts[scratch->cut_count++] = hf__set_ranges(automaton, set)[i].low;
        scratch->cuts[scratch->cut_count++] = hf__set_ranges(automaton, set)[i].high + 1;
    }
    return spend(subsets, count) ? HF_OK : HF_QUOTA;
}

static int by_character(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

static void sort_cuts(struct hf__subsets_scratch *scratch)
{
    size_t kept = 0;

    if (scratch->cut_count == 0)
        return;
    qsort(scratch->cuts, scratch->cut_count, sizeof scratch->cuts[0], by_character);
    for (size_t i = 1; i < scratch->cut_count; i++)
        if (scratch->cuts[i] != scratch->cuts[kept])
            scratch->cuts[++kept] = scratch->cuts[i];
    scratch->cut_count = kept + 1;
}

static hf_status find_cuts(hf__subsets *subsets, size_t first, size_t end)
{
    hf_status status = HF_OK;

    subsets->scratch->cut_count = 0;
    for (size_t i = first; i < end && status == HF_OK; i = next_set(subsets, i, end))
        if (set_of(subsets, i) < HF__ACCEPT)
            status = add_cuts(subsets, set_of(subsets, i));
    sort_cuts(subsets->scratch);
    return status;
}

/* Puts what the character makes of the members into the scratch. Returns the work that it took. */
static size_t advance(hf__subsets *subsets, size_t first, size_t end, uint32_t character)
{
    const hf__automaton *automaton = subsets->automaton;

    begin_subset(subsets);
    for (size_t i = first; i < end;) {
        uint32_t set = set_of(subsets, i);
        size_t next = next_set(subsets, i, end);
        if (set < HF__ACCEPT &&
            hf__ranges_have(hf__set_ranges(automaton, set), automaton->sets[set].count, character))
            for (; i < next; i++)
                add_with_forks(subsets, automaton->states[subsets->members[i]].out[0]);
        i = next;
    }
    return end - first + subsets->scratch->visited;
}

static hf_status add_move(hf__subsets *subsets, size_t first_move, hf__move move)
{
    if (subsets->move_count >= MOVES_MAX)
        return HF_QUOTA;
    if (!hf__grow(&subsets->moves, &subsets->move_capacity, subsets->move_count + 1,
                  sizeof *subsets->moves))
        return HF_NO_MEMORY;
    hf__move *end = subsets->moves + subsets->move_count;
    if (subsets->move_count > first_move && end[-1].high + 1 == move.low &&
        end[-1].target == move.target) {
        end[-1].high = move.high;
    } else {
        *end = move;
        subsets->move_count++;
    }
    return HF_OK;
}

static hf_status find_moves(hf__subsets *subsets, size_t first, size_t end)
{
    struct hf__subsets_scratch *scratch = subsets->scratch;
    size_t first_move = subsets->move_count;

    for (size_t i = 0; i + 1 < scratch->cut_count; i++) {
        hf__move move = {scratch->cuts[i], scratch->cuts[i + 1] - 1, 0};
        if (!spend(subsets, advance(subsets, first, end, move.low)))
            return HF_QUOTA;
        if (scratch->key_count == 0)
            continue;
        hf_status status = intern(subsets, &move.target);
        if (status == HF_OK)
            status = add_move(subsets, first_move, move);
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

hf_status hf__subsets_explore(hf__subsets *subsets, uint32_t index)
{
    size_t first = subsets->items[index].first;
    size_t end = first + subsets->items[index].count;
    size_t first_move = subsets->move_count;

    if (subsets->items[index].is_explored)
        return HF_OK;
    hf_status status = find_cuts(subsets, first, end);
    if (status == HF_OK)
        status = find_moves(subsets, first, end);
    if (status != HF_OK)
        return status;
    subsets->items[index].first_move = (uint32_t)first_move;
    subsets->items[index].move_count = (uint32_t)(subsets->move_count - first_move);
    subsets->items[index].is_explored = true;
    return HF_OK;
}

hf_status hf__subsets_open(hf__subsets *subsets, const hf__automaton *automaton, size_t most,
                           size_t steps)
{
    uint32_t start = 0;

    *subsets = (hf__subsets){.automaton = automaton, .most = most, .steps_left = steps};
    subsets->scratch = make_scratch(automaton->count);
    if (subsets->scratch == NULL)
        return HF_NO_MEMORY;
    if (!hf__grow(&subsets->moves, &subsets->move_capacity, 1, sizeof *subsets->moves))
        return HF_NO_MEMORY;
    begin_subset(subsets);
    add_with_forks(subsets, automaton->start);
    return intern(subsets, &start);
}

void hf__subsets_free(hf__subsets *subsets)
{
    free(subsets->items);
    free(subsets->members);
    free(subsets->moves);
    free(subsets->table.places);
    free_scratch(subsets->scratch);
    *subsets = (hf__subsets){0};
}

/* ---- All subsets as a table: matching neither allocates nor tries anything twice ---- */

enum {
    ASCII = 128,
    SUBSETS_MAX = 1024,
    STEPS_MAX = 2000000, /* some 20 ms */
    DEAD = 0,            /* the state from which there is no word; subset i is state i + 1 */
};

struct hf__dfa {
    uint32_t count;
    uint32_t start;
    uint32_t kind_count;
    uint8_t kind_of[ASCII]; /* characters of one kind lead to the same states everywhere */
    uint16_t *next;         /* by state and kind */
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
            state = dfa->next[state * dfa->kind_count + dfa->kind_of[byte]];
            at++;
        } else {
            state = wide_next(dfa, state, hf__character_next(text, size, &at));
        }
    }
    return dfa->accepts[state];
}

/* The state behind each state, in one column per ASCII character. */
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

/* Characters with the same column are of one kind; firsts gets the first character of each kind. */
static void find_kinds(hf__dfa *dfa, const uint16_t *columns, uint32_t firsts[ASCII])
{
    size_t column_size = dfa->count * sizeof *columns;

    for (uint32_t c = 0; c < ASCII; c++) {
        uint32_t kind = 0;
        while (kind < dfa->kind_count && memcmp(columns + firsts[kind] * dfa->count,
                                                columns + c * dfa->count, column_size) != 0)
            kind++;
        if (kind == dfa->kind_count)
            firsts[dfa->kind_count++] = c;
        dfa->kind_of[c] = (uint8_t)kind;
    }
}

static hf_status fill_table(hf__dfa *dfa, const hf__subsets *subsets)
{
    uint32_t firsts[ASCII] = {0};
    uint16_t *columns = make_columns(subsets, dfa->count);

    if (columns == NULL)
        return HF_NO_MEMORY;
    find_kinds(dfa, columns, firsts);
    dfa->next = calloc((size_t)dfa->count * dfa->kind_count, sizeof *dfa->next);
    for (uint32_t kind = 0; dfa->next != NULL && kind < dfa->kind_count; kind++)
        for (uint32_t state = 0; state < dfa->count; state++)
            dfa->next[state * dfa->kind_count + kind] = columns[firsts[kind] * dfa->count + state];
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
