/* Following every way through the automaton at once: slow but small. */
#include "lib/patterns/automaton.h"

#include <stdlib.h>

enum { STEPS_MAX = 10000000 };

void hf__automaton_free(hf__automaton *automaton)
{
    free(automaton->states);
    free(automaton->sets);
    free(automaton->ranges);
    *automaton = (hf__automaton){0};
}

struct run {
    const hf__automaton *automaton;
    uint32_t *now; /* states, each once */
    size_t now_count;
    uint32_t *then;
    size_t then_count;
    uint32_t *marks; /* the round in which a state was last added */
    uint32_t round;
    size_t steps;
};

static void add(struct run *run, uint32_t state)
{
    if (state == HF__NOWHERE || run->marks[state] == run->round)
        return;
    run->marks[state] = run->round;
    run->then[run->then_count++] = state;
}

/* What can be reached without a character is behind in the list, and its turn comes. */
static void follow_forks(struct run *run)
{
    for (size_t i = 0; i < run->then_count; i++) {
        const hf__state *state = &run->automaton->states[run->then[i]];
        if (state->set != HF__EITHER)
            continue;
        add(run, state->out[0]);
        add(run, state->out[1]);
    }
}

static void next_round(struct run *run)
{
    uint32_t *spare = run->now;

    run->now = run->then;
    run->now_count = run->then_count;
    run->then = spare;
    run->then_count = 0;
    run->steps += run->now_count;
    run->round++;
}

static void take(struct run *run, uint32_t character)
{
    const hf__automaton *automaton = run->automaton;

    for (size_t i = 0; i < run->now_count; i++) {
        const hf__state *state = &automaton->states[run->now[i]];
        if (state->set < HF__ACCEPT &&
            hf__ranges_have(hf__set_ranges(automaton, state->set),
                            automaton->sets[state->set].count, character))
            add(run, state->out[0]);
    }
    follow_forks(run);
    next_round(run);
}

static bool is_accepting(const struct run *run)
{
    for (size_t i = 0; i < run->now_count; i++)
        if (run->automaton->states[run->now[i]].set == HF__ACCEPT)
            return true;
    return false;
}

hf_status hf__automaton_run(const hf__automaton *automaton, const char *text, size_t size,
                            bool *has)
{
    size_t count = automaton->count;

    *has = false;
    if (automaton->start == HF__NOWHERE)
        return HF_OK;
    uint32_t *memory = calloc(3 * count, sizeof *memory);
    if (memory == NULL)
        return HF_NO_MEMORY;
    struct run run = {.automaton = automaton,
                      .now = memory,
                      .then = memory + count,
                      .marks = memory + 2 * count,
                      .round = 1};
    add(&run, automaton->start);
    follow_forks(&run);
    next_round(&run);
    for (size_t at = 0; at < size && run.now_count > 0 && run.steps <= STEPS_MAX;)
        take(&run, hf__character_next(text, size, &at));
    *has = run.steps <= STEPS_MAX && is_accepting(&run);
    free(memory);
    return run.steps <= STEPS_MAX ? HF_OK : HF_QUOTA;
}
