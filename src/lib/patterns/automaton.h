/*
 * A nondeterministic automaton over characters, how it is drafted (draft.c) and trimmed (trim.c), and
 * the deterministic ones that are made of it: bit by bit (subsets.c) or as a table (dfa.c).
 */
#ifndef HF_REGISTRY_AUTOMATON_H
#define HF_REGISTRY_AUTOMATON_H

#include "base/error.h"
#include "lib/patterns/charset.h"
#include "lib/patterns/patterns.h"

enum { HF__STATES_MAX = 20000 };

#define HF__EITHER UINT32_MAX /* instead of a set: on to out[0] and out[1] without a character */
#define HF__ACCEPT (UINT32_MAX - 1) /* instead of a set: a word may end here */

typedef struct hf__state {
    uint32_t set;      /* its characters lead to out[0] */
    uint32_t out[2];   /* HF__NOWHERE: none */
    uint32_t distance; /* the fewest characters to the accepting state; once trimmed */
} hf__state;

typedef struct hf__set {
    uint32_t first; /* of the ranges */
    uint32_t count;
} hf__set;

typedef struct hf__automaton {
    hf__state *states; /* once trimmed, each lies on the way of some word */
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

/* Is the text a word? HF_OK, HF_QUOTA (too many steps) or HF_NO_MEMORY. */
HF_MUST_CHECK hf_status hf__automaton_run(const hf__automaton *automaton, const char *text,
                                          size_t size, bool *has);

/*
 * ---- Drafting ----
 * After the first failure its status says why and it ignores what comes, so that only the end of a
 * step needs a check.
 */
typedef struct hf__draft {
    hf__automaton made;
    size_t state_capacity;
    size_t set_capacity;
    size_t range_capacity;
    uint32_t *set_table; /* a hash table of the sets' indexes */
    size_t set_table_size;
    hf_status status;
} hf__draft;

/* States from `begin` to the end of the draft; out[0] of the exit leads nowhere yet. */
typedef struct hf__fragment {
    uint32_t begin;
    uint32_t entry;
    uint32_t exit;
} hf__fragment;

#define HF__WITHOUT_END UINT32_MAX /* as the most of a repetition */

uint32_t hf__draft_place(const hf__draft *draft); /* where the next state will stand */
hf__fragment hf__draft_nothing(hf__draft *draft); /* the empty word */
hf__fragment hf__draft_one_of(hf__draft *draft, const hf__range *ranges, size_t count);
hf__fragment hf__draft_then(hf__draft *draft, hf__fragment first, hf__fragment second);
/* Both end in the exit of `first` when it was made by this function (is_choice). */
hf__fragment hf__draft_or(hf__draft *draft, hf__fragment first, bool is_choice,
                          hf__fragment second);
/* The fragment must be the last thing in the draft. */
hf__fragment hf__draft_repeat(hf__draft *draft, hf__fragment body, uint32_t least, uint32_t most);

/* Trims what the fragment stands for into *automaton. HF_OK or HF_NO_MEMORY. */
HF_MUST_CHECK hf_status hf__draft_finish(hf__draft *draft, hf__fragment whole,
                                         hf__automaton *automaton);
void hf__draft_free(hf__draft *draft);

/* Reads an expression into the draft. Fails as hf__language_build does. */
HF_MUST_CHECK hf_status hf__regex_read(hf__draft *draft, const char *text, size_t size,
                                       hf__fragment *fragment, hf_error *err);

/* Keeps the states that lie on the way of a word; states must end with the accepting one. */
HF_MUST_CHECK hf_status hf__automaton_trim(hf__automaton *automaton);

/* ---- Deterministic ---- */

typedef struct hf__move {
    uint32_t low;
    uint32_t high;
    uint32_t target; /* a subset */
} hf__move;

/* What the automaton may be in after some text: the states that take a character or accept. */
typedef struct hf__subset {
    uint32_t first; /* of the members */
    uint32_t count;
    uint32_t first_move; /* sorted by their characters; once explored */
    uint32_t move_count;
    uint32_t distance;
    bool accepts;
    bool is_explored;
} hf__subset;

typedef struct hf__subsets {
    const hf__automaton *automaton;
    size_t most;       /* subsets */
    size_t steps_left; /* of work and, with it, of memory */
    hf__subset *items; /* the first is where it starts */
    size_t count, capacity;
    uint32_t *members;
    size_t member_count, member_capacity;
    hf__move *moves;
    size_t move_count, move_capacity;
    uint32_t *table; /* a hash table of the subsets' indexes */
    size_t table_size;
    struct hf__subsets_scratch *scratch;
} hf__subsets;

/* The automaton must have a word. HF_OK, HF_QUOTA or HF_NO_MEMORY; hf__subsets_free in any case. */
HF_MUST_CHECK hf_status hf__subsets_open(hf__subsets *subsets, const hf__automaton *automaton,
                                         size_t most, size_t steps);
HF_MUST_CHECK hf_status hf__subsets_explore(hf__subsets *subsets, uint32_t index);
void hf__subsets_free(hf__subsets *subsets);

typedef struct hf__dfa hf__dfa;

/* *dfa is NULL when the table would be too large. HF_OK or HF_NO_MEMORY. */
HF_MUST_CHECK hf_status hf__dfa_build(const hf__automaton *automaton, hf__dfa **dfa);
bool hf__dfa_has(const hf__dfa *dfa, const char *text, size_t size);
void hf__dfa_free(hf__dfa *dfa);

struct hf__language {
    hf__automaton automaton;
    hf__dfa *dfa; /* NULL: too large */
};

#endif
