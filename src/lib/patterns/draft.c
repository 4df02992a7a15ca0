/*
 * Thompson's construction: a fragment of an automaton for each part of an expression. The states
 * of a fragment stand next to each other, so that they can be copied to repeat it.
 */
#include "lib/patterns/automaton.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"

static const hf__fragment no_fragment = {0, 0, 0};

static bool fail(hf__draft *draft, hf_status status)
{
    if (draft->status == HF_OK)
        draft->status = status;
    return false;
}

static bool reserve_states(hf__draft *draft, size_t more)
{
    hf__automaton *made = &draft->made;

    if (draft->status != HF_OK)
        return false;
    if (more > HF__STATES_MAX - made->count)
        return fail(draft, HF_QUOTA);
    if (!hf__grow(&made->states, &draft->state_capacity, made->count + more, sizeof *made->states))
        return fail(draft, HF_NO_MEMORY);
    return true;
}

/* Returns 0 in a failed draft. */
static uint32_t add_state(hf__draft *draft, uint32_t set, uint32_t first, uint32_t second)
{
    hf__automaton *made = &draft->made;

    if (!reserve_states(draft, 1))
        return 0;
    made->states[made->count] = (hf__state){set, {first, second}, 0};
    return (uint32_t)made->count++;
}

static void link_states(hf__draft *draft, uint32_t from, uint32_t to)
{
    if (draft->status == HF_OK)
        draft->made.states[from].out[0] = to;
}

/* The place in the table where the set stands, or the free one where it belongs. */
static uint32_t *find_set(hf__draft *draft, const hf__range *ranges, size_t count)
{
    const hf__automaton *made = &draft->made;
    size_t mask = draft->set_table.size - 1;
    size_t start = (size_t)hf__hash_bytes(ranges, count * sizeof *ranges);

    for (size_t at = start & mask;; at = (at + 1) & mask) {
        uint32_t *place = &draft->set_table.places[at];
        if (*place == HF__NOWHERE)
            return place;
        if (made->sets[*place].count == count &&
            (count == 0 ||
             memcmp(hf__set_ranges(made, *place), ranges, count * sizeof *ranges) == 0))
            return place;
    }
}

static bool grow_set_table(hf__draft *draft)
{
    hf__automaton *made = &draft->made;

    if (!hf__index_table_renew(&draft->set_table))
        return fail(draft, HF_NO_MEMORY);
    for (uint32_t i = 0; i < made->set_count; i++)
        *find_set(draft, hf__set_ranges(made, i), made->sets[i].count) = i;
    return true;
}

static bool append_set(hf__draft *draft, const hf__range *ranges, size_t count)
{
    hf__automaton *made = &draft->made;

    if (!hf__grow(&made->sets, &draft->set_capacity, made->set_count + 1, sizeof *made->sets) ||
        !hf__grow(&made->ranges, &draft->range_capacity, made->range_count + count + 1,
                  sizeof *made->ranges))
        return fail(draft, HF_NO_MEMORY);
    if (count > 0)
        memcpy(made->ranges + made->range_count, ranges, count * sizeof *ranges);
    made->sets[made->set_count++] = (hf__set){(uint32_t)made->range_count, (uint32_t)count};
    made->range_count += count;
    return true;
}

static bool intern_set(hf__draft *draft, const hf__range *ranges, size_t count, uint32_t *set)
{
    if (draft->status != HF_OK)
        return false;
    if (!hf__index_table_has_room(&draft->set_table, draft->made.set_count) &&
        !grow_set_table(draft))
        return false;
    uint32_t *place = find_set(draft, ranges, count);
    if (*place == HF__NOWHERE) {
        if (!append_set(draft, ranges, count))
            return false;
        *place = (uint32_t)draft->made.set_count - 1;
    }
    *set = *place;
    return true;
}

hf__fragment hf__draft_nothing(hf__draft *draft)
{
    uint32_t state = add_state(draft, HF__EITHER, HF__NOWHERE, HF__NOWHERE);

    return (hf__fragment){state, state, state};
}

hf__fragment hf__draft_one_of(hf__draft *draft, const hf__range *ranges, size_t count)
{
    uint32_t set = 0;

    if (!intern_set(draft, ranges, count, &set))
        return no_fragment;
    uint32_t state = add_state(draft, set, HF__NOWHERE, HF__NOWHERE);
    return (hf__fragment){state, state, state};
}

hf__fragment hf__draft_then(hf__draft *draft, hf__fragment first, hf__fragment second)
{
    link_states(draft, first.exit, second.entry);
    return (hf__fragment){first.begin, first.entry, second.exit};
}

hf__fragment hf__draft_or(hf__draft *draft, hf__fragment first, bool is_choice, hf__fragment second)
{
    uint32_t entry = add_state(draft, HF__EITHER, first.entry, second.entry);
    uint32_t exit = first.exit;

    if (!is_choice) {
        exit = add_state(draft, HF__EITHER, HF__NOWHERE, HF__NOWHERE);
        link_states(draft, first.exit, exit);
    }
    link_states(draft, second.exit, exit);
    return (hf__fragment){first.begin, entry, exit};
}

static uint32_t shift(uint32_t target, uint32_t by)
{
    return target == HF__NOWHERE ? HF__NOWHERE : target + by;
}

/* The body has size states at the end of the draft: copies them until it is there `total` times. */
static bool copy_body(hf__draft *draft, hf__fragment body, size_t size, size_t total)
{
    if (draft->status != HF_OK)
        return false;
    if (total > HF__STATES_MAX / size)
        return fail(draft, HF_QUOTA);
    if (!reserve_states(draft, (total - 1) * size))
        return false;
    for (uint32_t by = (uint32_t)size; by < total * size; by += (uint32_t)size) {
        for (size_t i = 0; i < size; i++) {
            hf__state state = draft->made.states[body.begin + i];
            state.out[0] = shift(state.out[0], by);
            state.out[1] = shift(state.out[1], by);
            draft->made.states[draft->made.count++] = state;
        }
    }
    return true;
}

static hf__fragment nth_copy(hf__fragment body, size_t size, size_t index)
{
    uint32_t by = (uint32_t)(index * size);

    return (hf__fragment){body.begin + by, body.entry + by, body.exit + by};
}

/* A way back from the end of the last copy; with least 0 also a way around it. */
static hf__fragment loop(hf__draft *draft, hf__fragment before, hf__fragment last, uint32_t least)
{
    uint32_t fork = add_state(draft, HF__EITHER, HF__NOWHERE, last.entry);

    link_states(draft, last.exit, fork);
    return (hf__fragment){before.begin, least == 0 ? fork : before.entry, fork};
}

/* After `least` copies each further one may be left out, with all that follow it. */
static hf__fragment up_to(hf__draft *draft, hf__fragment body, size_t size, uint32_t least,
                          uint32_t most)
{
    uint32_t end = add_state(draft, HF__EITHER, HF__NOWHERE, HF__NOWHERE);
    hf__fragment whole = {body.begin, body.entry, body.exit};

    for (uint32_t i = 0; i < most; i++) {
        hf__fragment copy = nth_copy(body, size, i);
        uint32_t entry = copy.entry;
        if (i >= least)
            entry = add_state(draft, HF__EITHER, copy.entry, end);
        if (i == 0)
            whole.entry = entry;
        else
            link_states(draft, whole.exit, entry);
        whole.exit = copy.exit;
    }
    link_states(draft, whole.exit, end);
    whole.exit = end;
    return whole;
}

hf__fragment hf__draft_repeat(hf__draft *draft, hf__fragment body, uint32_t least, uint32_t most)
{
    bool is_endless = most == HF__WITHOUT_END;
    uint32_t copies = is_endless ? (least > 0 ? least : 1) : most;
    size_t size = draft->made.count - body.begin;
    hf__fragment whole = body;

    if (draft->status != HF_OK)
        return no_fragment;
    if (copies == 0) {
        draft->made.count = body.begin;
        return hf__draft_nothing(draft);
    }
    if (!copy_body(draft, body, size, copies))
        return no_fragment;
    if (!is_endless && least < most)
        return up_to(draft, body, size, least, most);
    for (uint32_t i = 1; i < copies; i++)
        whole = hf__draft_then(draft, whole, nth_copy(body, size, i));
    if (is_endless)
        whole = loop(draft, whole, nth_copy(body, size, copies - 1), least);
    return whole;
}

hf_status hf__draft_finish(hf__draft *draft, hf__fragment whole, hf__automaton *automaton)
{
    uint32_t end = add_state(draft, HF__ACCEPT, HF__NOWHERE, HF__NOWHERE);

    if (draft->status != HF_OK)
        return draft->status;
    link_states(draft, whole.exit, end);
    draft->made.start = whole.entry;
    *automaton = draft->made;
    draft->made = (hf__automaton){0};
    return hf__automaton_trim(automaton);
}

void hf__draft_free(hf__draft *draft)
{
    hf__automaton_free(&draft->made);
    free(draft->set_table.places);
    *draft = (hf__draft){0};
}
