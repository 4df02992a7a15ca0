#include "programs/registry/risk.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/registry/birthday.h"

enum part_kind { FIXED, LABELS32, LABELS64, MINTED };

/* What one entry adds to its space of keys. */
struct part {
    const hf__lock_entry *entry;
    enum part_kind kind;
    int64_t space; /* ANY_BIGINT, ANY_PAIR, or the class */
    int64_t key;   /* of FIXED */
    uint64_t labels;
    bool exact; /* its labels are known, and have been compared */
};

#define ANY_BIGINT INT64_MIN
#define ANY_PAIR (INT64_MIN + 1) /* of derivations that give both numbers */

/* The parts that share one space; they are side by side. */
struct group {
    struct part *parts;
    size_t count;
    struct hf__crowd crowd;
    struct hf__crowd exact; /* of these, the labels that have been compared */
    size_t unknown;
    uint64_t shared;
};

static enum part_kind kind_of(const hf_registry_entry *view)
{
    if (view->derivation == HF_FIXED)
        return FIXED;
    if (view->derivation == HF_DISTRIBUTEDLOCK_ASCII) /* no two labels have the same key */
        return MINTED;
    if (view->space == HF_PAIR)
        return LABELS32;
    if (view->derivation == HF_MINTED)
        return MINTED;
    return hf__has_32_bits(view->derivation) ? LABELS32 : LABELS64;
}

/* One that could not be read is none. */
static uint64_t labels_of(const hf__lock_entry *entry, const struct hf__own_count *own)
{
    if (entry->view.pattern == NULL)
        return 0;
    if (entry->placeholder_count == 0)
        return 1;
    return entry->view.expected > 0 || !own->enumerated ? (uint64_t)entry->view.expected
                                                        : own->labels;
}

static struct part part_of(const hf__lock_entry *entry, const struct hf__own_count *own)
{
    const hf_registry_entry *view = &entry->view;
    bool pair = view->space == HF_PAIR;

    return (struct part){
        .entry = entry,
        .kind = kind_of(view),
        .space = !pair                                                        ? ANY_BIGINT
                 : hf__entry_has_class(entry) || view->derivation == HF_FIXED ? view->pair[0]
                                                                              : ANY_PAIR,
        .key = pair ? view->pair[1] : view->key,
        .labels = labels_of(entry, own),
        .exact = own->enumerated,
    };
}

static bool is_unknown(const struct part *part)
{
    return part->kind != FIXED && part->labels == 0 && part->entry->language != NULL &&
           !part->exact;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* By space and kind; then ids by number, and labels from the most to the fewest. */
static int compare_parts(const void *left, const void *right)
{
    const struct part *a = left;
    const struct part *b = right;

    if (a->space != b->space)
        return compare(a->space, b->space);
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->exact != b->exact)
        return a->exact ? 1 : -1;
    if (a->kind == FIXED && a->key != b->key)
        return compare(a->key, b->key);
    if (a->kind != FIXED && a->labels != b->labels)
        return a->labels > b->labels ? -1 : 1;
    return a->entry < b->entry ? -1 : a->entry > b->entry;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t subtract(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static bool is_small(const struct part *part)
{
    return part->key >= INT32_MIN && part->key <= INT32_MAX;
}

static void add_fixed(struct hf__crowd *crowd, const struct part *part)
{
    crowd->fixed++;
    crowd->fixed_small += is_small(part) ? 1 : 0;
}

/* Minted ids are far beyond 32 bits, and differ from one another. */
static void add_part(struct hf__crowd *crowd, const struct part *part)
{
    switch (part->kind) {
    case FIXED: add_fixed(crowd, part); break;
    case LABELS32: crowd->labels32 = add(crowd->labels32, part->labels); break;
    case LABELS64: crowd->labels64 = add(crowd->labels64, part->labels); break;
    case MINTED: crowd->fixed = add(crowd->fixed, part->labels); break;
    }
}

static struct group first_group(struct part *parts, size_t count)
{
    struct group group = {.parts = parts};

    while (group.count < count && parts[group.count].space == parts[0].space) {
        const struct part *part = &parts[group.count++];
        bool repeated = part->kind == FIXED && part != parts && part[-1].kind == FIXED &&
                        part[-1].key == part->key;
        if (!repeated)
            add_part(&group.crowd, part);
        if (part->exact && part->kind != FIXED)
            add_part(&group.exact, part);
        group.unknown += is_unknown(part) ? 1 : 0;
    }
    return group;
}

/* Is the key known to be shared, and not only with a sample, a label that may never be used? */
static bool is_shared(const struct hf__collision *collision)
{
    size_t sure = 0;

    for (size_t i = 0; i < collision->kept; i++)
        sure += collision->colliders[i].is_sample ? 0 : 1;
    return sure > 1;
}

static bool is_in(const struct hf__collision *collision, int64_t space)
{
    if (collision->space != HF_PAIR)
        return space == ANY_BIGINT;
    return space == ANY_PAIR || (int32_t)(collision->key >> 32) == space;
}

/* Does one of the labels have this derivation? */
static bool concerns(const struct hf__collision *collision, hf_derivation derivation)
{
    for (size_t i = 0; i < collision->kept; i++)
        if (collision->colliders[i].entry->view.derivation == derivation &&
            !collision->colliders[i].is_sample)
            return true;
    return false;
}

/* derivation is NULL for all of them. */
static uint64_t count_shared(const struct hf__risk *risk, int64_t space,
                             const hf_derivation *derivation)
{
    uint64_t count = 0;

    for (size_t i = 0; i < risk->shared.kept; i++) {
        const struct hf__collision *collision = &risk->shared.items[i];
        if (is_in(collision, space) && is_shared(collision) &&
            (derivation == NULL || concerns(collision, *derivation)))
            count++;
    }
    return count;
}

/*
 * Labels that have been compared are keys that are there. What is left to chance is whether others
 * meet them, or one another.
 */
static struct hf__crowd left_to_chance(const struct hf__crowd *crowd, const struct hf__crowd *exact)
{
    return (struct hf__crowd){
        .fixed = add(crowd->fixed, add(exact->labels32, exact->labels64)),
        .fixed_small = add(crowd->fixed_small, exact->labels32),
        .labels32 = subtract(crowd->labels32, exact->labels32),
        .labels64 = subtract(crowd->labels64, exact->labels64),
    };
}

/* --- rows: how likely keys collide ---------------------------------------------------------- */

static void measure(struct hf__risk_row *row, const struct hf__crowd *crowd,
                    const struct hf__crowd *exact, double limit)
{
    struct hf__crowd growing = *crowd;
    struct hf__crowd rest = left_to_chance(crowd, exact);

    if (crowd->labels32 == 0 && crowd->labels64 == 0)
        *(row->bits == 32 ? &growing.labels32 : &growing.labels64) = 1;
    row->fixed = row->bits == 32 ? crowd->fixed_small : crowd->fixed;
    row->labels = add(crowd->labels32, crowd->labels64);
    row->probability = row->shared > 0 ? 1 : hf__crowd_probability(&rest);
    row->count_1pc = hf__crowd_size_at(&growing, 0.01);
    row->count_50pc = hf__crowd_size_at(&growing, 0.5);
    row->too_likely = row->probability > limit;
}

static void add_space_row(struct hf__risk *risk, const struct group *group)
{
    struct hf__risk_row *row = &risk->rows[risk->row_count++];
    int64_t space = group->parts[0].space;

    row->kind = space == ANY_BIGINT ? HF__RISK_BIGINT
                : space == ANY_PAIR ? HF__RISK_PAIR
                                    : HF__RISK_CLASS;
    row->bits = space == ANY_BIGINT ? 64 : 32;
    row->unknown = group->unknown;
    if (space == ANY_BIGINT)
        snprintf(row->name, sizeof row->name, "all bigint");
    else if (space == ANY_PAIR)
        snprintf(row->name, sizeof row->name, "all pairs");
    else
        snprintf(row->name, sizeof row->name, "class %" PRId64, space);
    row->shared = group->shared;
    measure(row, &group->crowd, &group->exact, risk->limit);
}

/* Finds the parts of one derivation, and counts all fixed keys. False when there are none. */
static bool pick_derivation(const struct group *group, hf_derivation derivation,
                            struct hf__crowd *crowd, struct hf__crowd *exact,
                            struct hf__risk_row *row)
{
    bool found = false;

    *crowd =
        (struct hf__crowd){.fixed = group->crowd.fixed, .fixed_small = group->crowd.fixed_small};
    *exact = (struct hf__crowd){0};
    for (size_t i = 0; i < group->count; i++) {
        const struct part *part = &group->parts[i];
        if (part->kind == FIXED || part->entry->view.derivation != derivation)
            continue;
        found = true;
        row->labels = add(row->labels, part->labels);
        row->unknown += is_unknown(part) ? 1 : 0;
        if (part->kind != MINTED)
            add_part(crowd, part);
        if (part->exact)
            add_part(exact, part);
    }
    return found;
}

static void add_derivation_rows(struct hf__risk *risk, const struct group *group)
{
    for (int i = HF_SHA256; hf_derivation_name((hf_derivation)i) != NULL; i++) {
        hf_derivation derivation = (hf_derivation)i;
        struct hf__risk_row row = {.kind = HF__RISK_DERIVATION,
                                   .bits = hf__has_32_bits(derivation) ? 32 : 64};
        struct hf__crowd crowd, exact;
        if (!pick_derivation(group, derivation, &crowd, &exact, &row))
            continue;
        row.shared = count_shared(risk, ANY_BIGINT, &derivation);
        snprintf(row.name, sizeof row.name, "%s", hf_derivation_name(derivation));
        if (derivation != HF_MINTED) /* the store gives these out, each once */
            measure(&row, &crowd, &exact, risk->limit);
        risk->rows[risk->row_count++] = row;
    }
}

/* --- advice: which entries to derive in another way ----------------------------------------- */

static void advise(struct hf__risk *risk, const struct part *part, hf_derivation instead)
{
    risk->advice[risk->advice_count++] = (struct hf__risk_advice){
        .entry = part->entry,
        .labels = part->labels,
        .instead = instead,
        .leaves_class = hf__entry_has_class(part->entry),
    };
}

/* Parts whose labels have been compared come behind those that are left to chance. */
static const struct part *largest(const struct group *group, enum part_kind kind)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->parts[i].kind == kind && !group->parts[i].exact)
            return &group->parts[i];
    return NULL;
}

/* Moves a part out of the range of 32 bits. */
static void widen(struct hf__risk *risk, const struct part *part, struct hf__crowd *crowd)
{
    uint64_t labels64 = add(crowd->labels64, part->labels);
    uint64_t labels32 = subtract(crowd->labels32, part->labels);
    bool fits = hf__birthday_probability(64, add(crowd->fixed, labels32), labels64) <= risk->limit;

    crowd->labels32 = labels32;
    if (part->space == ANY_BIGINT && fits)
        crowd->labels64 = labels64;
    else if (part->space == ANY_BIGINT)
        crowd->fixed = add(crowd->fixed, part->labels);
    advise(risk, part, fits ? HF_SHA256 : HF_MINTED);
}

static void mint(struct hf__risk *risk, const struct part *part, struct hf__crowd *crowd)
{
    crowd->labels64 = subtract(crowd->labels64, part->labels);
    crowd->fixed = add(crowd->fixed, part->labels);
    advise(risk, part, HF_MINTED);
}

/* Begins with the most labels, and stops when the rest is unlikely enough to collide. */
static void advise_group(struct hf__risk *risk, const struct group *group)
{
    const struct part *end = group->parts + group->count;
    const struct part *narrow = largest(group, LABELS32);
    const struct part *wide = largest(group, LABELS64);
    struct hf__crowd crowd = left_to_chance(&group->crowd, &group->exact);

    while (hf__crowd_probability(&crowd) > risk->limit) {
        bool has_narrow =
            narrow != NULL && narrow < end && narrow->kind == LABELS32 && !narrow->exact;
        bool has_wide = wide != NULL && wide < end && wide->kind == LABELS64 && !wide->exact;
        double of_narrow = hf__birthday_probability(32, crowd.fixed_small, crowd.labels32);
        double of_wide =
            hf__birthday_probability(64, add(crowd.fixed, crowd.labels32), crowd.labels64);
        if (has_narrow && (of_narrow >= of_wide || !has_wide))
            widen(risk, narrow++, &crowd);
        else if (has_wide)
            mint(risk, wide++, &crowd);
        else
            break;
    }
}

/* --- the whole registry --------------------------------------------------------------------- */

static void assess_groups(struct hf__risk *risk, struct part *parts, size_t count)
{
    for (size_t at = 0; at < count;) {
        struct group group = first_group(parts + at, count - at);
        group.shared = count_shared(risk, group.parts[0].space, NULL);
        if (group.parts[0].space == ANY_BIGINT)
            add_derivation_rows(risk, &group);
        add_space_row(risk, &group);
        advise_group(risk, &group);
        at += group.count;
    }
}

hf_status hf__risk_assess(const hf_registry *registry, double limit, struct hf__risk *risk,
                          hf_error *err)
{
    size_t count = registry->count;
    struct part *parts = calloc(count + 1, sizeof *parts);

    *risk = (struct hf__risk){.limit = limit};
    risk->rows =
        calloc(2 * count + 1, sizeof *risk->rows); /* for each space and derivation at most */
    risk->advice = calloc(count + 1, sizeof *risk->advice);
    risk->unknown = calloc(count + 1, sizeof(const hf__lock_entry *));
    if (parts == NULL || risk->rows == NULL || risk->advice == NULL || risk->unknown == NULL) {
        free(parts);
        hf__risk_free(risk);
        return hf__fail(err, HF_NO_MEMORY, "out of memory for %zu locks", count);
    }
    hf_status status = hf__own_labels_list(registry, true, &risk->own, err);
    if (status == HF_OK)
        status = hf__collisions_among(&risk->own, &risk->shared, err);
    for (size_t i = 0; status == HF_OK && i < count; i++) {
        parts[i] = part_of(&registry->entries[i], &risk->own.counts[i]);
        if (is_unknown(&parts[i]))
            risk->unknown[risk->unknown_count++] = &registry->entries[i];
    }
    if (status == HF_OK) {
        qsort(parts, count, sizeof *parts, compare_parts);
        assess_groups(risk, parts, count);
    } else {
        hf__risk_free(risk);
    }
    free(parts);
    return status;
}

void hf__risk_free(struct hf__risk *risk)
{
    free(risk->rows);
    free(risk->advice);
    free(risk->unknown);
    hf__collisions_free(&risk->shared);
    hf__own_labels_free(&risk->own);
    *risk = (struct hf__risk){0};
}

/* --- probabilities as people say them ------------------------------------------------------- */

/* Digit by digit: printf would write the decimal point of the locale. */

/* About digits × 10^exponent, where digits has `count` places. */
struct rounded {
    uint64_t digits;
    int exponent;
};

static struct rounded round_to(double value, int count)
{
    int exponent = (int)floor(log10(value)) - count + 1;
    double scaled = value * pow(10, -exponent);
    struct rounded rounded = {(uint64_t)llround(scaled), exponent};

    if (rounded.digits >= (uint64_t)llround(pow(10, count))) {
        rounded.digits /= 10;
        rounded.exponent++;
    }
    return rounded;
}

const char *hf__risk_count(char *out, size_t out_size, uint64_t count)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t used = 0;

    for (int i = 0; i < length && used + 2 < out_size; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[used++] = ' ';
        out[used++] = digits[i];
    }
    if (out_size > 0)
        out[used] = '\0';
    return out;
}

/* Three places, without zeros at the end: "0.0116", "50", "12.3". */
static void write_percent(hf__buf *out, double p)
{
    struct rounded r = round_to(p * 100, 3);

    if (r.exponent >= 0) { /* 100 × 10^0 */
        hf__buf_puts(out, "more than 99.9");
        return;
    }
    for (; r.digits % 10 == 0 && r.exponent < 0; r.exponent++)
        r.digits /= 10;
    uint64_t one = 1;
    for (int i = r.exponent; i < 0; i++)
        one *= 10;
    hf__buf_printf(out, "%" PRIu64, r.digits / one);
    if (r.exponent < 0)
        hf__buf_printf(out, ".%0*" PRIu64, -r.exponent, r.digits % one);
}

static void write_rarely(hf__buf *out, double p)
{
    struct rounded r = round_to(1 / p, 2);

    hf__buf_printf(out, "practically never (1 in %" PRIu64 ".%" PRIu64 "e%d)", r.digits / 10,
                   r.digits % 10, r.exponent + 1);
}

static void write_one_in(hf__buf *out, double p)
{
    char count[32];
    struct rounded r = round_to(1 / p, 1 / p < 10 ? 1 : 2);

    for (; r.exponent > 0; r.exponent--)
        r.digits *= 10;
    hf__buf_printf(out, "about 1 in %s", hf__risk_count(count, sizeof count, r.digits));
}

static void write_words(hf__buf *out, double p)
{
    if (p < 0.4)
        write_one_in(out, p);
    else
        hf__buf_puts(out, p < 0.6 ? "as likely as not" : p < 0.9 ? "likely" : "almost certain");
    hf__buf_puts(out, " (");
    write_percent(out, p);
    hf__buf_puts(out, " %)");
}

const char *hf__risk_words(char *out, size_t out_size, double p)
{
    hf__buf text = {0};

    if (!(p > 0))
        hf__buf_puts(&text, "never");
    else if (p < 1e-300)
        hf__buf_puts(&text, "practically never");
    else if (p < 1e-9)
        write_rarely(&text, p);
    else if (p < 1)
        write_words(&text, p);
    else
        hf__buf_puts(&text, "certain");
    snprintf(out, out_size, "%s", text.broken ? "?" : text.data);
    hf__buf_free(&text);
    return out;
}

const char *hf__risk_row_words(char *out, size_t out_size, const struct hf__risk_row *row)
{
    char words[HF__WORDS_MAX];

    if (row->shared > 0)
        snprintf(out, out_size, "certain: %s shared already",
                 row->shared == 1 ? "one key is" : "several keys are");
    else if (row->unknown > 0 && row->labels == 0)
        snprintf(out, out_size, "unknown");
    else
        snprintf(out, out_size, "%s%s", hf__risk_words(words, sizeof words, row->probability),
                 row->unknown > 0 ? " or more" : "");
    return out;
}
