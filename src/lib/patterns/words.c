/*
 * The words of a language: the shortest first, and words of one length in the order of their
 * characters. At first every set has only its plain characters, so that [^:]+ begins with 0, 1,
 * ... 9, a, ... 00 and not with a million words of one character. What this leaves out comes
 * afterwards.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "lib/patterns/automaton.h"

enum {
    SUBSETS_MAX = 200000,
    STEPS_MAX = 100000000, /* a second or two */
};

struct frame {
    uint32_t subset;
    uint32_t character; /* the next one to try, in its segment of hf__plainest_first */
    uint32_t segment;
    size_t word_length; /* in bytes */
};

struct walk {
    hf__automaton plain;  /* the same language with plain sets */
    bool plain_delivered; /* all words of it */
    size_t most;
    size_t count;
    hf__word_fn *fn;
    void *arg;
    bool is_cut;    /* there are more words than were delivered */
    bool has_stray; /* HF__STRAY_BYTE was delivered, which stands for many bytes */

    hf__subsets subsets;
    hf__buf word;
    struct frame *frames;
    size_t depth, capacity;
    uint32_t length;      /* of the words that are being delivered, in characters */
    uint32_t next_length; /* that words have; HF__NOWHERE: none */
};

/* Ends a walk early, which is not a failure. */
static hf_status cut(struct walk *walk)
{
    walk->is_cut = true;
    return HF_QUOTA;
}

static hf_status deliver(struct walk *walk)
{
    bool is_old = false;

    if (walk->plain_delivered) {
        hf_status status =
            hf__automaton_run(&walk->plain, walk->word.data, walk->word.length, &is_old);
        if (status != HF_OK)
            return status;
    }
    if (is_old)
        return HF_OK;
    if (walk->count == walk->most)
        return cut(walk);
    walk->count++;
    return walk->fn(walk->arg, walk->word.data, walk->word.length) ? HF_OK : cut(walk);
}

static uint32_t distance(const struct walk *walk, const hf__move *move)
{
    return walk->subsets.items[move->target].distance;
}

/*
 * Of the words through this subset that are too long for now, remembers the length of the
 * shortest.
 */
static hf_status look_further(struct walk *walk, uint32_t subset, uint32_t depth)
{
    if (walk->next_length == walk->length + 1 && depth == walk->length)
        return HF_OK;
    hf_status status = hf__subsets_explore(&walk->subsets, subset);
    if (status != HF_OK)
        return status;
    const hf__move *moves = walk->subsets.moves + walk->subsets.items[subset].first_move;
    for (uint32_t i = 0; i < walk->subsets.items[subset].move_count; i++) {
        uint32_t length = depth + 1 + distance(walk, &moves[i]);
        if (length > walk->length && length < walk->next_length)
            walk->next_length = length;
    }
    return HF_OK;
}

static hf_status enter(struct walk *walk, uint32_t subset)
{
    if (walk->word.broken ||
        !hf__grow(&walk->frames, &walk->capacity, walk->depth + 1, sizeof *walk->frames))
        return HF_NO_MEMORY;
    walk->frames[walk->depth] = (struct frame){.subset = subset, .word_length = walk->word.length};
    return look_further(walk, subset, (uint32_t)walk->depth++);
}

static void leave(struct walk *walk)
{
    walk->depth--;
    if (walk->depth > 0)
        walk->word.length = walk->frames[walk->depth - 1].word_length;
}

/* The next character from here that leads to a word of the length, and the subset behind it. */
static bool choose(struct walk *walk, uint32_t *character, uint32_t *subset)
{
    struct frame *frame = &walk->frames[walk->depth - 1];
    const hf__subset *here = &walk->subsets.items[frame->subset];
    const hf__move *moves = walk->subsets.moves + here->first_move;
    uint32_t left = walk->length - (uint32_t)walk->depth; /* characters behind the chosen one */

    for (; frame->segment < HF__PLAINEST_COUNT; frame->segment++, frame->character = 0) {
        hf__range segment = hf__plainest_first[frame->segment];
        uint32_t from = frame->character > segment.low ? frame->character : segment.low;
        for (uint32_t i = 0; i < here->move_count && moves[i].low <= segment.high; i++) {
            *character = moves[i].low > from ? moves[i].low : from;
            if (*character > moves[i].high || *character > segment.high ||
                distance(walk, &moves[i]) > left)
                continue;
            *subset = moves[i].target;
            frame->character = *character + 1;
            return true;
        }
    }
    return false;
}

static void add_character(struct walk *walk, uint32_t character)
{
    char bytes[4];

    hf__buf_add(&walk->word, bytes, hf__character_write(bytes, character));
    if (character == HF__STRAY_BYTE)
        walk->has_stray = true;
}

static hf_status one_step(struct walk *walk)
{
    const struct frame *frame = &walk->frames[walk->depth - 1];
    size_t work = 1 + walk->subsets.items[frame->subset].move_count / 4;
    uint32_t character = 0;
    uint32_t subset = 0;
    hf_status status = HF_OK;

    if (work > walk->subsets.steps_left)
        return HF_QUOTA;
    walk->subsets.steps_left -= work;
    if (walk->depth - 1 == walk->length) {
        if (walk->subsets.items[frame->subset].accepts)
            status = deliver(walk);
        leave(walk);
        return status;
    }
    if (!choose(walk, &character, &subset)) {
        leave(walk);
        return HF_OK;
    }
    add_character(walk, character);
    return enter(walk, subset);
}

/* HF_QUOTA: the walk ended early. */
static hf_status deliver_length(struct walk *walk)
{
    hf__buf_clear(&walk->word);
    hf__buf_add(&walk->word, "", 0);
    walk->depth = 0;
    walk->next_length = HF__NOWHERE;
    hf_status status = enter(walk, 0);
    while (status == HF_OK && walk->depth > 0)
        status = one_step(walk);
    return status;
}

/* Words that are longer than any label are of no use. */
static hf_status walk_words(struct walk *walk, const hf__automaton *automaton)
{
    hf_status status = hf__subsets_open(&walk->subsets, automaton, SUBSETS_MAX, STEPS_MAX);

    if (status == HF_OK)
        walk->next_length = automaton->states[automaton->start].distance;
    while (status == HF_OK && walk->next_length <= HF_LABEL_MAX) {
        walk->length = walk->next_length;
        status = deliver_length(walk);
    }
    if (status == HF_QUOTA || walk->next_length != HF__NOWHERE)
        walk->is_cut = true;
    hf__subsets_free(&walk->subsets);
    return status;
}

/* ---- Plain characters ---- */

static void add_common(hf__charset *to, const hf__range *ranges, size_t count, hf__range within)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t low = ranges[i].low > within.low ? ranges[i].low : within.low;
        uint32_t high = ranges[i].high < within.high ? ranges[i].high : within.high;
        if (low <= high)
            hf__charset_add(to, low, high);
    }
}

/* Adds the digits and letters of the ranges; if there are none, printable ASCII; if none, all. */
static void add_plain(hf__charset *to, const hf__range *ranges, size_t count)
{
    static const hf__range plain[] = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
    size_t before = to->count;

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        add_common(to, ranges, count, plain[i]);
    if (to->count == before)
        add_common(to, ranges, count, (hf__range){' ', '~'});
    if (to->count == before)
        hf__charset_add_ranges(to, ranges, count);
}

/* Makes the same automaton with plain sets. *plain borrows the states, and owns sets and ranges. */
static hf_status make_plain(const hf__automaton *automaton, hf__automaton *plain)
{
    hf__charset all = {0};

    *plain = *automaton;
    plain->sets = calloc(automaton->set_count + 1, sizeof *plain->sets);
    for (uint32_t i = 0; plain->sets != NULL && i < automaton->set_count; i++) {
        size_t first = all.count;
        add_plain(&all, hf__set_ranges(automaton, i), automaton->sets[i].count);
        plain->sets[i] = (hf__set){(uint32_t)first, (uint32_t)(all.count - first)};
    }
    plain->ranges = all.ranges;
    plain->range_count = all.count;
    return plain->sets == NULL || all.broken ? HF_NO_MEMORY : HF_OK;
}

static bool are_equal(const hf__automaton *a, const hf__automaton *b)
{
    return a->range_count == b->range_count &&
           (a->range_count == 0 ||
            memcmp(a->ranges, b->ranges, a->range_count * sizeof *a->ranges) == 0);
}

static hf_status walk_plain_first(struct walk *walk, const hf__automaton *automaton)
{
    hf_status status = make_plain(automaton, &walk->plain);

    if (status == HF_OK)
        status = walk_words(walk, &walk->plain);
    if (status == HF_OK && !walk->is_cut && !are_equal(automaton, &walk->plain)) {
        walk->plain_delivered = true;
        status = walk_words(walk, automaton);
    }
    free(walk->plain.sets);
    free(walk->plain.ranges);
    return status;
}

hf_status hf__language_words(const hf__language *language, size_t most, hf__word_fn *fn, void *arg,
                             bool *complete, hf_error *err)
{
    struct walk walk = {.most = most, .fn = fn, .arg = arg};
    hf_status status = HF_OK;

    if (language->automaton.start != HF__NOWHERE)
        status = walk_plain_first(&walk, &language->automaton);
    hf__buf_free(&walk.word);
    free(walk.frames);
    *complete = !walk.is_cut && !walk.has_stray;
    if (status == HF_OK || status == HF_QUOTA)
        return HF_OK;
    *complete = false;
    return hf__no_memory(err);
}

/* ---- How many there are ---- */

enum visit { UNSEEN, ON_THE_WAY, COUNTED };

struct counting {
    const hf__automaton *automaton;
    uint64_t *counts; /* of the ways from each state to the end */
    unsigned char *visits;
    uint32_t *stack;
    size_t depth;
};

static uint64_t set_size(const hf__automaton *automaton, uint32_t set)
{
    const hf__range *ranges = hf__set_ranges(automaton, set);
    uint64_t size = 0;

    for (uint32_t i = 0; i < automaton->sets[set].count; i++) {
        if (ranges[i].high >= HF__STRAY_BYTE) /* which stands for many */
            return UINT64_MAX;
        size += (uint64_t)ranges[i].high - ranges[i].low + 1;
    }
    return size;
}

static uint64_t count_of(const struct counting *counting, uint32_t state)
{
    return state == HF__NOWHERE ? 0 : counting->counts[state];
}

static uint64_t combine(const struct counting *counting, const hf__state *state)
{
    uint64_t sum = 0;

    if (state->set == HF__ACCEPT)
        return 1;
    if (state->set == HF__EITHER)
        return __builtin_add_overflow(count_of(counting, state->out[0]),
                                      count_of(counting, state->out[1]), &sum)
                   ? UINT64_MAX
                   : sum;
    return __builtin_mul_overflow(set_size(counting->automaton, state->set),
                                  count_of(counting, state->out[0]), &sum)
               ? UINT64_MAX
               : sum;
}

/* False: a state is on its own way, so that there is no end. */
static bool push(struct counting *counting, uint32_t state)
{
    if (state == HF__NOWHERE || counting->visits[state] == COUNTED)
        return true;
    if (counting->visits[state] == ON_THE_WAY)
        return false;
    counting->visits[state] = ON_THE_WAY;
    counting->stack[counting->depth++] = state;
    return true;
}

static uint64_t count_ways(struct counting *counting)
{
    const hf__automaton *automaton = counting->automaton;

    (void)push(counting, automaton->start);
    while (counting->depth > 0) {
        uint32_t index = counting->stack[counting->depth - 1];
        const hf__state *state = &automaton->states[index];
        size_t before = counting->depth;
        size_t outs = state->set == HF__ACCEPT ? 0 : state->set == HF__EITHER ? 2 : 1;
        for (size_t i = 0; i < outs && counting->depth == before; i++)
            if (!push(counting, state->out[i]))
                return UINT64_MAX;
        if (counting->depth > before)
            continue;
        counting->counts[index] = combine(counting, state);
        counting->visits[index] = COUNTED;
        counting->depth--;
    }
    return counting->counts[automaton->start];
}

uint64_t hf__language_most(const hf__language *language)
{
    const hf__automaton *automaton = &language->automaton;
    struct counting counting = {
        .automaton = automaton,
        .counts = calloc(automaton->count + 1, sizeof *counting.counts),
        .visits = calloc(automaton->count + 1, sizeof *counting.visits),
        .stack = calloc(automaton->count + 1, sizeof *counting.stack),
    };
    uint64_t most = UINT64_MAX;

    if (automaton->start == HF__NOWHERE)
        most = 0;
    else if (counting.counts != NULL && counting.visits != NULL && counting.stack != NULL)
        most = count_ways(&counting);
    free(counting.counts);
    free(counting.visits);
    free(counting.stack);
    return most;
}
