/*
 * A nondeterministic automaton over characters (automaton.c), the draft that it is made from
 * (draft.c, regex.c), and the deterministic automata that are made from it (subsets.c): either as
 * far as they are asked for, or whole, as a table.
 *
 * Nothing here has a lock. What is being built belongs to one thread; a finished automaton or
 * table does not change any more, and any thread may read it.
 */
#ifndef HF_PATTERNS_AUTOMATON_H
#define HF_PATTERNS_AUTOMATON_H

#include "base/error.h"
#include "lib/patterns/charset.h"
#include "lib/patterns/patterns.h"

enum { HF__STATES_MAX = 20000 };

/* These stand in place of a set. A fork goes on to out[0] and out[1] without a character. */
#define HF__EITHER UINT32_MAX
#define HF__ACCEPT (UINT32_MAX - 1) /* a word may end here */

typedef struct hf__state {
    uint32_t set;      /* its characters lead to out[0] */
    uint32_t out[2];   /* HF__NOWHERE: none */
    uint32_t distance; /* the fewest characters to the accepting state; set by trimming */
} hf__state;

typedef struct hf__set {
    uint32_t first; /* of the ranges */
    uint32_t count;
} hf__set;

typedef struct hf__automaton {
    hf__state *states; /* after trimming, each lies on the way of some word */
    size_t count;
    uint32_t start; /* HF__NOWHERE: there is no word */
    hf__set *sets;  /* no two are equal */
    size_t set_count;
    hf__range *ranges;
    size_t range_count;
} hf__automaton;

void hf__automaton_free(hf__automaton *automaton);

static inline const hf__range *hf__set_ranges(const hf__automaton *automaton, uint32_t set)
{
    return automaton->ranges + automaton->sets[set].first;
}

/* Is the text a word? Returns HF_OK, HF_QUOTA after too many steps, or HF_NO_MEMORY. */
HF_MUST_CHECK hf_status hf__automaton_run(const hf__automaton *automaton, const char *text,
                                          size_t size, bool *has);

/*
 * Keeps only the states that lie on the way of a word. The last state must be the accepting one.
 * Returns HF_OK or HF_NO_MEMORY, with the automaton as it was.
 */
HF_MUST_CHECK hf_status hf__automaton_trim(hf__automaton *automaton);

/* ---- Tables of indexes ---- */

/*
 * A hash table whose entries are indexes of an array. Whoever searches it compares the items that
 * the indexes stand for; HF__NOWHERE marks a free place. Zero-initialise it, and free its places.
 */
typedef struct hf__index_table {
    uint32_t *places;
    size_t size; /* a power of two, or 0 */
} hf__index_table;

/* Is there room for one more item while half of the places stay free? */
static inline bool hf__index_table_has_room(const hf__index_table *table, size_t count)
{
    return 2 * (count + 1) <= table->size;
}

/*
 * Makes the table twice as large and empty: add all items again. False, and no change, without
 * memory.
 */
HF_MUST_CHECK bool hf__index_table_renew(hf__index_table *table);

/* ---- Drafting ---- */

/*
 * Zero-initialise it. After the first failure its status says why, and it ignores what comes, so
 * that only the end of a step needs a check.
 */
typedef struct hf__draft {
    hf__automaton made;
    size_t state_capacity;
    size_t set_capacity;
    size_t range_capacity;
    hf__index_table set_table;
    hf_status status;
} hf__draft;

/* States from `begin` to the end of the draft; out[0] of the exit leads nowhere yet. */
typedef struct hf__fragment {
    uint32_t begin;
    uint32_t entry;
    uint32_t exit;
} hf__fragment;

#define HF__WITHOUT_END UINT32_MAX /* the `most` of a repetition that has no upper bound */

hf__fragment hf__draft_nothing(hf__draft *draft); /* the empty word */
hf__fragment hf__draft_one_of(hf__draft *draft, const hf__range *ranges, size_t count);
hf__fragment hf__draft_then(hf__draft *draft, hf__fragment first, hf__fragment second);
/* is_choice: this function made `first`, so that its exit can serve `second` too. */
hf__fragment hf__draft_or(hf__draft *draft, hf__fragment first, bool is_choice,
                          hf__fragment second);
/* The fragment must be the last thing in the draft. */
hf__fragment hf__draft_repeat(hf__draft *draft, hf__fragment body, uint32_t least, uint32_t most);

/*
 * Moves what the fragment stands for into *automaton, trimmed. Zero-initialise *automaton; the
 * caller frees it and the draft in any case. Returns HF_OK, HF_NO_MEMORY, or what the draft failed
 * with.
 */
HF_MUST_CHECK hf_status hf__draft_finish(hf__draft *draft, hf__fragment whole,
                                         hf__automaton *automaton);
void hf__draft_free(hf__draft *draft);

/* Reads a regular expression into the draft. Fails as hf__language_build does. */
HF_MUST_CHECK hf_status hf__regex_read(hf__draft *draft, const char *text, size_t size,
                                       hf__fragment *fragment, hf_error *err);

/* ---- Deterministic automata ---- */

typedef struct hf__move {
    uint32_t low;
    uint32_t high;
    uint32_t target; /* a subset */
} hf__move;

/* The states in which the automaton can be after some text, without the forks. */
typedef struct hf__subset {
    uint32_t first; /* of the members */
    uint32_t count;
    uint32_t first_move; /* of the moves, sorted by their characters; set by exploring */
    uint32_t move_count;
    uint32_t distance;
    bool accepts;
    bool is_explored;
} hf__subset;

typedef struct hf__subsets {
    const hf__automaton *automaton;
    size_t most;       /* how many subsets there may be */
    size_t steps_left; /* of work, which bounds the memory too */
    hf__subset *items; /* the first is where it starts */
    size_t count, capacity;
    uint32_t *members;
    size_t member_count, member_capacity;
    hf__move *moves;
    size_t move_count, move_capacity;
    hf__index_table table;
    struct hf__subsets_scratch *scratch;
} hf__subsets;

/*
 * Starts with the subset of the start state. The automaton must have a word, and outlive the
 * subsets. Returns HF_OK, HF_QUOTA or HF_NO_MEMORY; call hf__subsets_free in any case.
 */
HF_MUST_CHECK hf_status hf__subsets_open(hf__subsets *subsets, const hf__automaton *automaton,
                                         size_t most, size_t steps);

/*
 * Finds the moves from this subset, and adds the subsets that they lead to. Fails as
 * hf__subsets_open.
 */
HF_MUST_CHECK hf_status hf__subsets_explore(hf__subsets *subsets, uint32_t index);
void hf__subsets_free(hf__subsets *subsets);

typedef struct hf__dfa hf__dfa;

/*
 * *dfa is the caller's, or NULL when the table would be too large. Returns HF_OK or HF_NO_MEMORY.
 */
HF_MUST_CHECK hf_status hf__dfa_build(const hf__automaton *automaton, hf__dfa **dfa);
bool hf__dfa_has(const hf__dfa *dfa, const char *text, size_t size);
void hf__dfa_free(hf__dfa *dfa);

struct hf__language {
    hf__automaton automaton;
    hf__dfa *dfa; /* NULL: too large */
};

#endif
