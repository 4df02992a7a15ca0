/* Whether two languages share a word: a search through the pairs of their states. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "lib/patterns/automaton.h"

/*
 * No label is empty, so that the empty word is no meeting. A pair that was reached without any
 * character has this mark in a, and is another one than the same pair behind a character.
 */
#define EMPTY (UINT32_C(1) << 31)

struct pair {
    uint32_t a; /* maybe with EMPTY */
    uint32_t b;
    uint32_t from;      /* the index of the pair before it */
    uint32_t character; /* the one that led here; HF__NOWHERE: none was needed */
};

struct search {
    const hf__automaton *a;
    const hf__automaton *b;
    size_t most;
    struct pair *pairs; /* in the order in which they were found */
    size_t count, capacity;
    hf__index_table table;
    uint32_t end; /* the pair where both accept, or HF__NOWHERE */
};

static uint32_t *find(const struct search *search, uint32_t a, uint32_t b)
{
    size_t mask = search->table.size - 1;
    size_t start = (size_t)hf__hash_int((uint64_t)a << 32 | b);

    for (size_t at = start & mask;; at = (at + 1) & mask) {
        uint32_t *place = &search->table.places[at];
        if (*place == HF__NOWHERE)
            return place;
        if (search->pairs[*place].a == a && search->pairs[*place].b == b)
            return place;
    }
}

static hf_status grow_table(struct search *search)
{
    if (!hf__index_table_renew(&search->table))
        return HF_NO_MEMORY;
    for (uint32_t i = 0; i < search->count; i++)
        *find(search, search->pairs[i].a, search->pairs[i].b) = i;
    return HF_OK;
}

/* HF_QUOTA when there are too many. */
static hf_status add_pair(struct search *search, struct pair pair)
{
    hf_status status = HF_OK;

    if (!hf__index_table_has_room(&search->table, search->count))
        status = grow_table(search);
    if (status != HF_OK)
        return status;
    uint32_t *place = find(search, pair.a, pair.b);
    if (*place != HF__NOWHERE)
        return HF_OK;
    if (search->count >= search->most || search->count >= HF__NOWHERE - 1)
        return HF_QUOTA;
    if (!hf__grow(&search->pairs, &search->capacity, search->count + 1, sizeof *search->pairs))
        return HF_NO_MEMORY;
    *place = (uint32_t)search->count;
    if ((pair.a & EMPTY) == 0 && search->a->states[pair.a].set == HF__ACCEPT &&
        search->b->states[pair.b].set == HF__ACCEPT && search->end == HF__NOWHERE)
        search->end = *place;
    search->pairs[search->count++] = pair;
    return HF_OK;
}

/* Forks of a are followed first, then those of b: any other order reaches the same pairs. */
static hf_status fork_pair(struct search *search, uint32_t index)
{
    struct pair pair = search->pairs[index];
    uint32_t empty = pair.a & EMPTY;
    const hf__state *a = &search->a->states[pair.a - empty];
    const hf__state *b = &search->b->states[pair.b];
    hf_status status = HF_OK;

    for (int i = 0; i < 2 && status == HF_OK; i++) {
        if (a->set == HF__EITHER)
            status = add_pair(search, (struct pair){a->out[i] | empty, pair.b, index, HF__NOWHERE});
        else if (b->set == HF__EITHER)
            status = add_pair(search, (struct pair){pair.a, b->out[i], index, HF__NOWHERE});
    }
    return status;
}

static hf_status step_pair(struct search *search, uint32_t index)
{
    struct pair pair = search->pairs[index];
    const hf__state *a = &search->a->states[pair.a & ~EMPTY];
    const hf__state *b = &search->b->states[pair.b];

    if (a->set >= HF__ACCEPT || b->set >= HF__ACCEPT)
        return HF_OK;
    uint32_t character =
        hf__ranges_common(hf__set_ranges(search->a, a->set), search->a->sets[a->set].count,
                          hf__set_ranges(search->b, b->set), search->b->sets[b->set].count);
    if (character == HF__NOWHERE)
        return HF_OK;
    return add_pair(search, (struct pair){a->out[0], b->out[0], index, character});
}

/* One character at a time; what is reached without one belongs to the same level. */
static hf_status search_pairs(struct search *search)
{
    hf_status status = add_pair(search, (struct pair){search->a->start | EMPTY, search->b->start,
                                                      HF__NOWHERE, HF__NOWHERE});

    for (uint32_t from = 0; status == HF_OK && from < search->count;) {
        uint32_t level_end = from;
        for (; status == HF_OK && level_end < search->count; level_end++)
            status = fork_pair(search, level_end);
        if (search->end != HF__NOWHERE)
            return HF_OK;
        for (; status == HF_OK && from < level_end; from++)
            status = step_pair(search, from);
    }
    return search->end != HF__NOWHERE ? HF_OK : status;
}

/* Links the pairs forwards instead of backwards, so that the word can be read off. */
static hf_status write_witness(struct search *search, hf__buf *witness)
{
    uint32_t next = HF__NOWHERE;
    uint32_t index = search->end;

    while (index != HF__NOWHERE) {
        uint32_t before = search->pairs[index].from;
        search->pairs[index].from = next;
        next = index;
        index = before;
    }
    hf__buf_add(witness, "", 0);
    for (; next != HF__NOWHERE; next = search->pairs[next].from) {
        char bytes[4];
        if (search->pairs[next].character != HF__NOWHERE)
            hf__buf_add(witness, bytes, hf__character_write(bytes, search->pairs[next].character));
    }
    return witness->broken ? HF_NO_MEMORY : HF_OK;
}

hf_status hf__language_meet(const hf__language *a, const hf__language *b, size_t most_states,
                            hf__meeting *meeting, hf__buf *witness, hf_error *err)
{
    struct search search = {
        .a = &a->automaton, .b = &b->automaton, .most = most_states, .end = HF__NOWHERE};
    hf_status status = HF_OK;

    *meeting = HF__MEET_NEVER;
    hf__buf_clear(witness);
    if (search.a->start != HF__NOWHERE && search.b->start != HF__NOWHERE)
        status = search_pairs(&search);
    if (status == HF_QUOTA) {
        *meeting = HF__MEET_UNDECIDED;
        status = HF_OK;
    } else if (status == HF_OK && search.end != HF__NOWHERE) {
        *meeting = HF__MEET;
        status = write_witness(&search, witness);
    }
    free(search.pairs);
    free(search.table.places);
    return status == HF_OK ? HF_OK : hf__no_memory(err);
}
