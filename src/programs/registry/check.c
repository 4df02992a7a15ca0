#include "programs/registry/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "programs/registry/risk.h"

enum {
    STATES_MAX = 1000000,  /* of two patterns together; beyond it is not decided if they meet */
    SAMPLE = 10000,        /* labels of one pattern that are compared with the fixed ids */
    SAMPLES_MAX = 2000000, /* of all patterns */
    SHOWN = 128,
};

enum check_rule {
    DUPLICATE_ID,
    COMMON_ID,
    PATTERNS_MEET,
    PATTERNS_AMBIGUOUS,
    PATTERNS_UNDECIDED,
    NAME_IS_LABEL,
    ID_IS_HIT,
    LABEL_CONVENTION,
    GENERIC_LABEL,
    MISSING_SOURCE,
    RISK,
    RISK_UNKNOWN,
};

const hf__rule hf__check_rules[] = {
    [DUPLICATE_ID] = {"duplicate-id", HF__SEVERITY_WARNING, "An id is for one lock."},
    [COMMON_ID] = {"common-id", HF__SEVERITY_WARNING,
                   "Ids that others are likely to choose too are a collision in waiting."},
    [PATTERNS_MEET] = {"patterns-meet", HF__SEVERITY_WARNING,
                       "A label that two patterns stand for is one key for two locks."},
    [PATTERNS_AMBIGUOUS] = {"patterns-ambiguous", HF__SEVERITY_WARNING,
                            "A label that two patterns stand for under different keys cannot be "
                            "resolved."},
    [PATTERNS_UNDECIDED] = {"patterns-undecided", HF__SEVERITY_WARNING,
                            "Whether two patterns meet must be decidable with a bounded effort."},
    [NAME_IS_LABEL] = {"name-is-label", HF__SEVERITY_WARNING,
                       "A name that is a label of another lock hides that label."},
    [ID_IS_HIT] = {"id-is-hit", HF__SEVERITY_WARNING, "A fixed id must not be the key of a label."},
    [LABEL_CONVENTION] = {"label-convention", HF__SEVERITY_WARNING,
                          "Labels follow the convention of the file."},
    [GENERIC_LABEL] = {"generic-label", HF__SEVERITY_WARNING,
                       "A label says what it is about: unrelated work waits for a generic one."},
    [MISSING_SOURCE] = {"missing-source", HF__SEVERITY_WARNING, "Source files exist."},
    [RISK] = {"risk", HF__SEVERITY_WARNING, "Collisions are unlikely."},
    [RISK_UNKNOWN] = {"risk-unknown", HF__SEVERITY_NOTE,
                      "A pattern says how many labels are alive at once."},
    {0},
};

struct check {
    const hf_registry *registry;
    hf__findings *findings;
};

#define find(check, rule, at, remedy, ...)                                                         \
    ((void)hf__findings_add((check)->findings, &hf__check_rules[rule], (check)->registry->path,    \
                            (at).line, (at).column, (remedy), __VA_ARGS__))

/* --- fixed ids ------------------------------------------------------------------------------ */

static bool is_fixed(const hf__lock_entry *entry)
{
    return entry->view.derivation == HF_FIXED && !entry->view.pattern;
}

static const char *show_id(char out[SHOWN], const hf__lock_entry *entry)
{
    if (entry->view.space == HF_PAIR)
        (void)snprintf(out, SHOWN, "(%" PRId32 ", %" PRId32 ")", entry->view.pair[0],
                       entry->view.pair[1]);
    else
        (void)snprintf(out, SHOWN, "%" PRId64, entry->view.key);
    return out;
}

/* Numbers that people type when any number will do. */
static bool is_popular(int64_t id)
{
    static const int64_t popular[] = {
        1234,       12345,     123456,     1234567,    12345678,   123456789,  1234567890,
        4321,       54321,     654321,     987654321,  1111,       11111,      111111,
        1111111,    11111111,  1111111111, 9999,       99999,      999999,     99999999,
        999999999,  1337,      31337,      0xdeadbeef, 0xcafebabe, 0xdeadc0de, 0xbadf00d,
        0xfeedface, INT32_MAX, INT32_MIN,  UINT32_MAX, INT64_MAX,  INT64_MIN,  -559038737,
        100000,     1000000,   10000000,   1000000000, 2147483646, 65535,      65536,
    };
    for (size_t i = 0; i < sizeof popular / sizeof *popular; i++)
        if (popular[i] == id)
            return true;
    return false;
}

static void check_id(const struct check *check, const hf__lock_entry *entry)
{
    char id[SHOWN];
    const hf_registry *registry = check->registry;
    int64_t key = entry->view.key, least = registry->conventions.min_fixed;
    if (entry->view.space == HF_PAIR)
        key = hf_key_join((uint32_t)entry->view.pair[0], (uint32_t)entry->view.pair[1]);
    const hf__lock_entry *first = hf__registry_by_key(registry, entry->view.space, key);
    if (first && first != entry)
        find(check, DUPLICATE_ID, entry->key_at, "give one of them another id",
             "%s has the id %s, which %s in line %u has too", entry->view.name, show_id(id, entry),
             first->view.name, first->key_at.line);
    if (entry->view.space == HF_PAIR)
        return; /* nobody else uses the team's class */
    if (key > -least && key < least)
        find(check, COMMON_ID, entry->key_at,
             "take a random 64-bit number, or a pattern with sha256",
             "%s has the id %" PRId64 ", below %" PRId64 ": others are likely to use it",
             entry->view.name, key, least);
    else if (is_popular(key))
        find(check, COMMON_ID, entry->key_at,
             "take a random 64-bit number, or a pattern with sha256",
             "%s has the id %" PRId64 ", which is suspiciously common", entry->view.name, key);
}

/* --- patterns that meet --------------------------------------------------------------------- */

static bool same_keys(const hf__lock_entry *a, const hf__lock_entry *b)
{
    return a->view.derivation == b->view.derivation && a->view.space == b->view.space &&
           (a->view.space == HF_BIGINT || a->view.pair[0] == b->view.pair[0]);
}

static bool prefixes_agree(const hf__lock_entry *a, const hf__lock_entry *b)
{
    size_t size = a->literal_prefix_size < b->literal_prefix_size ? a->literal_prefix_size
                                                                  : b->literal_prefix_size;
    return memcmp(a->literal_prefix, b->literal_prefix, size) == 0;
}

static void report_meeting(const struct check *check, const hf__lock_entry *first,
                           const hf__lock_entry *entry, const hf__buf *witness)
{
    char label[SHOWN];
    hf__show(label, sizeof label, witness->data ? witness->data : "", witness->length);
    if (same_keys(first, entry))
        find(check, PATTERNS_MEET, entry->key_at,
             "begin one of the patterns with a word of its own, or narrow a placeholder",
             "'%s' is a label of %s and of %s (line %u): one key for two locks", label,
             entry->view.name, first->view.name, first->key_at.line);
    else
        find(check, PATTERNS_AMBIGUOUS, entry->key_at,
             "begin one of the patterns with a word of its own, or narrow a placeholder",
             "'%s' is a label of %s and of %s (line %u), which have different keys for it", label,
             entry->view.name, first->view.name, first->key_at.line);
}

static hf_status compare_patterns(const struct check *check, const hf__lock_entry *first,
                                  const hf__lock_entry *entry, hf_error *err)
{
    hf__buf witness = {0};
    hf__meeting meeting = HF__MEET_NEVER;
    if (!prefixes_agree(first, entry))
        return HF_OK;
    hf_status status =
        hf__language_meet(first->language, entry->language, STATES_MAX, &meeting, &witness, err);
    if (status == HF_OK && meeting == HF__MEET)
        report_meeting(check, first, entry, &witness);
    if (status == HF_OK && meeting == HF__MEET_UNDECIDED)
        find(check, PATTERNS_UNDECIDED, entry->key_at, "simplify the expressions of one of them",
             "whether %s and %s (line %u) have a label in common takes more than %d states to tell",
             entry->view.name, first->view.name, first->key_at.line, STATES_MAX);
    hf__buf_free(&witness);
    return status;
}

static hf_status check_name(const struct check *check, const hf__lock_entry *named,
                            const hf__lock_entry *entry, hf_error *err)
{
    const char *name = named->view.name;
    size_t size = strlen(name);
    bool has = false;
    if (size < entry->literal_prefix_size ||
        memcmp(name, entry->literal_prefix, entry->literal_prefix_size) != 0)
        return HF_OK;
    hf_status status = hf__language_has(entry->language, name, size, &has, err);
    if (status == HF_OK && has)
        find(check, NAME_IS_LABEL, named->name_at, "rename it, or narrow the pattern",
             "the name %s is a label of %s (line %u) too, and stands for this lock instead", name,
             entry->view.name, entry->key_at.line);
    return status == HF_QUOTA ? HF_OK : status;
}

static hf_status check_pattern(const struct check *check, size_t index, hf_error *err)
{
    const hf_registry *registry = check->registry;
    const hf__lock_entry *entry = &registry->entries[index];
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < index; i++)
        if (registry->entries[i].language)
            status = compare_patterns(check, &registry->entries[i], entry, err);
    for (size_t i = 0; status == HF_OK && i < registry->count; i++)
        if (i != index && registry->entries[i].view.name)
            status = check_name(check, &registry->entries[i], entry, err);
    return status;
}

/* --- labels whose key is a fixed id --------------------------------------------------------- */

struct sample {
    const struct check *check;
    const hf__lock_entry *entry;
};

static bool try_label(void *arg, const char *label, size_t size)
{
    const struct sample *sample = arg;
    const hf__lock_entry *entry = sample->entry;
    char shown[SHOWN], id[SHOWN];
    int64_t key = 0;
    if (hf__entry_key(entry, label, size, &key, NULL) != HF_OK)
        return true; /* a label that the derivation refuses has no key */
    const hf__lock_entry *hit =
        hf__registry_by_key(sample->check->registry, entry->view.space, key);
    if (!hit)
        return true;
    find(sample->check, ID_IS_HIT, hit->key_at, "give it another id",
         "the id %s of %s is the key of '%s', a label of %s (line %u)", show_id(id, hit),
         hit->view.name, hf__show(shown, sizeof shown, label, size), entry->view.name,
         entry->key_at.line);
    return false;
}

static hf_status check_hits(const struct check *check, const hf__lock_entry *entry, size_t most,
                            hf_error *err)
{
    struct sample sample = {.check = check, .entry = entry};
    bool complete = false;
    if (entry->view.derivation == HF_MINTED)
        return HF_OK;
    return hf__language_words(entry->language, most, try_label, &sample, &complete, err);
}

/* --- conventions and source files ----------------------------------------------------------- */

static void check_conventions(const struct check *check, const hf__lock_entry *entry)
{
    const hf_registry *registry = check->registry;
    const char *pattern = entry->view.pattern;
    bool is_label = pattern && entry->placeholder_count == 0;
    if (is_label && entry->literal_prefix &&
        hf__registry_is_generic(registry, entry->literal_prefix, entry->literal_prefix_size))
        find(check, GENERIC_LABEL, entry->key_at,
             "name the operation and what it is about, like Transfer:acc1:acc2",
             "the label '%s' of %s is too generic", pattern, entry->view.name);
    if (hf__registry_is_generic(registry, entry->view.name, strlen(entry->view.name)))
        find(check, GENERIC_LABEL, entry->name_at, "name what it protects",
             "the name '%s' is too generic", entry->view.name);
    if (registry->conventions.operation_labels && pattern &&
        (!strchr(pattern, ':') || pattern[0] == ':'))
        find(check, LABEL_CONVENTION, entry->key_at,
             "put the operation before a colon, like Transfer:{account}",
             "the pattern '%s' of %s does not follow the convention '%s'", pattern,
             entry->view.name, registry->conventions.label);
}

static hf_status check_sources(const struct check *check, const hf__lock_entry *entry,
                               hf_error *err)
{
    hf__buf full = {0};
    for (size_t i = 0; i < entry->source_count; i++) {
        const hf__source_file *source = &entry->sources[i];
        char shown[SHOWN];
        hf__buf_clear(&full);
        hf__put_sibling_path(&full, check->registry->path, source->path);
        if (!full.broken && access(full.data, F_OK) != 0)
            find(check, MISSING_SOURCE, source->at, "mend the path, or remove it",
                 "the source file '%s' of %s is not there",
                 hf__show(shown, sizeof shown, source->path, strlen(source->path)),
                 entry->view.name);
    }
    bool broken = full.broken;
    hf__buf_free(&full);
    return broken ? hf__no_memory(err) : HF_OK;
}

/* --- risk ----------------------------------------------------------------------------------- */

static hf__place expected_place(const hf__lock_entry *entry)
{
    return entry->expected_at.line > 0 ? entry->expected_at : entry->key_at;
}

/* The row of the space that the keys of the entry are in. */
static const struct hf__risk_row *row_of(const struct hf__risk *risk, const hf__lock_entry *entry)
{
    char name[sizeof risk->rows->name];
    const struct hf__risk_row *found = NULL;
    (void)snprintf(name, sizeof name, "class %" PRId32, entry->view.pair[0]);
    for (size_t i = 0; i < risk->row_count; i++) {
        const struct hf__risk_row *row = &risk->rows[i];
        bool mine = entry->view.space == HF_PAIR
                        ? row->kind == HF__RISK_CLASS && strcmp(row->name, name) == 0
                        : row->kind == HF__RISK_BIGINT;
        if (mine)
            found = row;
    }
    return found;
}

static void report_risk(const struct check *check, const struct hf__risk *risk,
                        const struct hf__risk_advice *advice)
{
    const hf__lock_entry *entry = advice->entry;
    const struct hf__risk_row *row = row_of(risk, entry);
    char labels[HF__WORDS_MAX], odds[HF__WORDS_MAX], most[HF__WORDS_MAX], remedy[SHOWN];
    (void)snprintf(remedy, sizeof remedy, "derive it as %s%s", hf_derivation_name(advice->instead),
                   advice->leaves_class ? ", without a class" : "");
    find(check, RISK, expected_place(entry), remedy,
         "%s expects %s labels under %s: that two locks share a key is %s, more than the limit, %s",
         entry->view.name, hf__risk_count(labels, sizeof labels, advice->labels),
         hf_derivation_name(entry->view.derivation),
         hf__risk_words(odds, sizeof odds, row ? row->probability : 1),
         hf__risk_words(most, sizeof most, risk->limit));
}

static hf_status check_risk(const struct check *check, double limit, hf_error *err)
{
    struct hf__risk risk;
    hf_status status = hf__risk_assess(check->registry, limit, &risk, err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < risk.advice_count; i++)
        report_risk(check, &risk, &risk.advice[i]);
    for (size_t i = 0; i < risk.unknown_count; i++)
        find(check, RISK_UNKNOWN, risk.unknown[i]->key_at, "add expected: NUMBER",
             "%s does not say how many labels are alive at once, so its risk is not known",
             risk.unknown[i]->view.name);
    hf__risk_free(&risk);
    return HF_OK;
}

/* --- the whole registry --------------------------------------------------------------------- */

static hf_status check_entry(const struct check *check, size_t index, size_t sample, hf_error *err)
{
    const hf__lock_entry *entry = &check->registry->entries[index];
    hf_status status = HF_OK;
    if (!entry->view.name)
        return HF_OK; /* reported when it was read; the findings below need a name */
    if (is_fixed(entry))
        check_id(check, entry);
    check_conventions(check, entry);
    status = check_sources(check, entry, err);
    if (status == HF_OK && entry->language)
        status = check_pattern(check, index, err);
    if (status == HF_OK && entry->language && sample > 0)
        status = check_hits(check, entry, sample, err);
    return status;
}

static size_t sample_size(const hf_registry *registry)
{
    size_t patterns = 0, fixed = 0;
    for (size_t i = 0; i < registry->count; i++) {
        patterns += registry->entries[i].language != NULL;
        fixed += is_fixed(&registry->entries[i]);
    }
    if (patterns == 0 || fixed == 0)
        return 0;
    return SAMPLES_MAX / patterns < SAMPLE ? SAMPLES_MAX / patterns : SAMPLE;
}

hf_status hf__check_registry(const hf_registry *registry, double max_risk, hf__findings *findings,
                             hf_error *err)
{
    struct check check = {.registry = registry, .findings = findings};
    size_t sample = sample_size(registry);
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < registry->count; i++)
        status = check_entry(&check, i, sample, err);
    if (status == HF_OK)
        status = check_risk(&check, max_risk < 0 ? registry->conventions.max_risk : max_risk, err);
    hf__findings_sort(findings);
    if (status == HF_OK && findings->broken)
        status = hf__no_memory(err);
    return status;
}
