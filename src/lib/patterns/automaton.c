/*
 * Runs an automaton by following every way through it at once, which is slow but needs little
 * memory, and trims one that was just drafted.
 */
#include "lib/patterns/automaton.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 10000000 };

void hf__automaton_free(hf__automaton *automaton)
{
    free(automaton->states);
    free(automaton->sets);
    free(automaton->ranges);
    *automaton = (hf__automaton){0};
}

bool hf__index_table_renew(hf__index_table *table)
{
    enum { FIRST_SIZE = 64 };
    size_t size = table->size > 0 ? 2 * table->size : FIRST_SIZE;
    uint32_t *places = malloc(size * sizeof *places);

    if (places == NULL)
        return false;
    free(table->places);
    *table = (hf__index_table){places, size};
    for (size_t i = 0; i < size; i++)
        places[i] = HF__NOWHERE;
    return true;
}

/* ---- Running ---- */

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

/* What a fork leads to is appended to the list, so that the loop comes to it. */
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

/* ---- Trimming: keep what lies on the way of a word, and measure how far its end is ---- */

struct trim {
    hf__state *states;
    size_t count;
    const hf__set *sets;
    bool *is_reached;
    uint32_t *queue;
    uint32_t *sources_from; /* the states that lead to i: sources[sources_from[i]...[i + 1]] */
    uint32_t *sources;
    uint32_t *renamed;
};

static bool takes_character(const struct trim *trim, uint32_t index)
{
    return trim->states[index].set < HF__ACCEPT;
}

/* A class without characters leads nowhere. */
static size_t target_count(const struct trim *trim, uint32_t index)
{
    const hf__state *state = &trim->states[index];

    if (state->set == HF__EITHER)
        return state->out[1] != HF__NOWHERE ? 2 : 1;
    return state->set != HF__ACCEPT && trim->sets[state->set].count > 0 ? 1 : 0;
}

static void reach(struct trim *trim, uint32_t start)
{
    size_t count = 0;

    trim->queue[count++] = start;
    trim->is_reached[start] = true;
    for (size_t i = 0; i < count; i++) {
        uint32_t index = trim->queue[i];
        for (size_t k = 0; k < target_count(trim, index); k++) {
            uint32_t target = trim->states[index].out[k];
            if (trim->is_reached[target])
                continue;
            trim->is_reached[target] = true;
            trim->queue[count++] = target;
        }
    }
}

static void list_sources(struct trim *trim)
{
    uint32_t *from = trim->sources_from;

    for (uint32_t i = 0; i < trim->count; i++)
        for (size_t k = 0; trim->is_reached[i] && k < target_count(trim, i); k++)
            from[trim->states[i].out[k]]++;
    for (size_t i = 1; i <= trim->count; i++)
        from[i] += from[i - 1]; /* where they end; filling them backwards leaves where they begin */
    for (uint32_t i = 0; i < trim->count; i++)
        for (size_t k = 0; trim->is_reached[i] && k < target_count(trim, i); k++)
            trim->sources[--from[trim->states[i].out[k]]] = i;
}

static size_t step_back(struct trim *trim, uint32_t index, bool by_character, size_t count)
{
    uint32_t distance = trim->states[index].distance + (by_character ? 1 : 0);

    for (uint32_t k = trim->sources_from[index]; k < trim->sources_from[index + 1]; k++) {
        uint32_t source = trim->sources[k];
        if (takes_character(trim, source) != by_character ||
            trim->states[source].distance != HF__NOWHERE)
            continue;
        trim->states[source].distance = distance;
        trim->queue[count++] = source;
    }
    return count;
}

/* Backwards from the end, one character at a time; steps without one come first. */
static void measure(struct trim *trim, uint32_t end)
{
    size_t count = 0;

    for (size_t i = 0; i < trim->count; i++)
        trim->states[i].distance = HF__NOWHERE;
    if (!trim->is_reached[end])
        return;
    trim->states[end].distance = 0;
    trim->queue[count++] = end;
    for (size_t from = 0; from < count;) {
        size_t i = from;
        for (; i < count; i++)
            count = step_back(trim, trim->queue[i], false, count);
        for (size_t level_end = i; from < level_end; from++)
            count = step_back(trim, trim->queue[from], true, count);
    }
}

static uint32_t useful(const struct trim *trim, uint32_t target)
{
    if (target == HF__NOWHERE || trim->states[target].distance == HF__NOWHERE)
        return HF__NOWHERE;
    return target;
}

/* Drops ways that end nowhere; what is left of a fork is its out[0]. */
static void drop_dead_ways(struct trim *trim)
{
    for (size_t i = 0; i < trim->count; i++) {
        hf__state *state = &trim->states[i];
        state->out[0] = useful(trim, state->out[0]);
        state->out[1] = useful(trim, state->out[1]);
        if (state->set == HF__EITHER && state->out[0] == HF__NOWHERE) {
            state->out[0] = state->out[1];
            state->out[1] = HF__NOWHERE;
        }
    }
}

static bool is_passage(const hf__state *state)
{
    return state->set == HF__EITHER && state->out[1] == HF__NOWHERE;
}

/* Where the passages from here lead. Those on the way are shortened; they never form a circle. */
static uint32_t follow(struct trim *trim, uint32_t index)
{
    uint32_t end = index;

    if (index == HF__NOWHERE)
        return index;
    while (is_passage(&trim->states[end]))
        end = trim->states[end].out[0];
    while (index != end) {
        uint32_t next = trim->states[index].out[0];
        trim->states[index].out[0] = end;
        index = next;
    }
    return end;
}

static uint32_t rename_state(const struct trim *trim, uint32_t index)
{
    return index == HF__NOWHERE ? HF__NOWHERE : trim->renamed[index];
}

static size_t compact(struct trim *trim, uint32_t *start)
{
    uint32_t kept = 0;

    *start = follow(trim, useful(trim, *start));
    for (size_t i = 0; i < trim->count; i++) {
        hf__state *state = &trim->states[i];
        trim->renamed[i] = HF__NOWHERE;
        if (state->distance == HF__NOWHERE || is_passage(state))
            continue;
        state->out[0] = follow(trim, state->out[0]);
        state->out[1] = follow(trim, state->out[1]);
        trim->renamed[i] = kept++;
    }
    *start = rename_state(trim, *start);
    for (size_t i = 0; i < trim->count; i++) {
        hf__state state = trim->states[i];
        if (trim->renamed[i] == HF__NOWHERE)
            continue;
        state.out[0] = rename_state(trim, state.out[0]);
        state.out[1] = rename_state(trim, state.out[1]);
        trim->states[trim->renamed[i]] = state;
    }
    return kept;
}

hf_status hf__automaton_trim(hf__automaton *automaton)
{
    size_t count = automaton->count;
    struct trim trim = {
        .states = automaton->states,
        .count = count,
        .sets = automaton->sets,
        .is_reached = calloc(count, sizeof *trim.is_reached),
        .queue = calloc(count, sizeof *trim.queue),
        .sources_from = calloc(count + 1, sizeof *trim.sources_from),
        .sources = calloc(2 * count, sizeof *trim.sources),
        .renamed = calloc(count, sizeof *trim.renamed),
    };
    hf_status status = HF_NO_MEMORY;

    if (trim.is_reached != NULL && trim.queue != NULL && trim.sources_from != NULL &&
        trim.sources != NULL && trim.renamed != NULL) {
        reach(&trim, automaton->start);
        list_sources(&trim);
        measure(&trim, (uint32_t)count - 1);
        drop_dead_ways(&trim);
        automaton->count = compact(&trim, &automaton->start);
        status = HF_OK;
    }
    free(trim.is_reached);
    free(trim.queue);
    free(trim.sources_from);
    free(trim.sources);
    free(trim.renamed);
    return status;
}
