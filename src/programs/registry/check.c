#include "programs/registry/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "programs/registry/risk.h"

enum {
    STATES_MAX = 1000000, /* of two patterns together; beyond it is not decided if they meet */
    LABELS_NAMED = 4,     /* of those that share a key */
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
    SAME_KEY,
    NOT_ENUMERATED,
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
    [SAME_KEY] = {"same-key", HF__SEVERITY_WARNING, "Two labels have two keys."},
    [NOT_ENUMERATED] = {"not-enumerated", HF__SEVERITY_NOTE,
                        "The labels of a pattern are few enough to compare their keys."},
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

/* --- keys that two labels have -------------------------------------------------------------- */

static const struct hf__collider *id_among(const struct hf__collision *collision)
{
    for (size_t i = 0; i < collision->kept; i++)
        if (hf__entry_is_id(collision->colliders[i].entry))
            return &collision->colliders[i];
    return NULL;
}

/* Two ids are reported as duplicates, not here. */
static void report_hits(const struct check *check, const struct hf__collision *collision,
                        const hf__lock_entry *id)
{
    char label[SHOWN], shown[SHOWN];

    for (size_t i = 0; i < collision->kept; i++) {
        const struct hf__collider *one = &collision->colliders[i];
        if (!hf__entry_is_id(one->entry))
            find(check, ID_IS_HIT, id->key_at, "give it another id",
                 "the id %s of %s is the key of '%s', a label of %s (line %u)", show_id(shown, id),
                 id->view.name, hf__show(label, sizeof label, one->label, one->size),
                 one->entry->view.name, one->entry->key_at.line);
    }
}

static void put_label(hf__buf *text, const struct hf__collider *one, bool is_first)
{
    char label[SHOWN];

    hf__buf_printf(text, "%s'%s' of %s (line %u)", is_first ? "" : ", ",
                   hf__show(label, sizeof label, one->label, one->size), one->entry->view.name,
                   one->entry->key_at.line);
}

/* The labels of patterns that share the key, as one finding at the last of them in the file. */
static void report_same_key(const struct check *check, const struct hf__collision *collision)
{
    const hf__lock_entry *last = NULL;
    hf__buf text = {0};
    size_t labels = 0, sure = 0;
    char key[SHOWN];

    for (size_t i = 0; i < collision->kept; i++) {
        const struct hf__collider *one = &collision->colliders[i];
        if (hf__entry_is_id(one->entry))
            continue;
        sure += one->is_sample ? 0 : 1;
        if (labels++ < LABELS_NAMED)
            put_label(&text, one, labels == 1);
        last = last == NULL || one->entry > last ? one->entry : last;
    }
    labels += collision->count - collision->kept;
    if (labels > LABELS_NAMED)
        hf__buf_printf(&text, " and %zu more", labels - LABELS_NAMED);
    if (collision->space == HF_PAIR)
        (void)snprintf(key, sizeof key, "(%" PRId32 ", %" PRId32 ")",
                       (int32_t)(collision->key >> 32), (int32_t)collision->key);
    else
        (void)snprintf(key, sizeof key, "%" PRId64, collision->key);
    if (labels > 1 && sure > 0)
        find(check, SAME_KEY, last->key_at, "derive one of them as sha256, or rename it",
             "%s have the same key, %s: whoever holds one keeps out the others",
             text.broken ? "labels" : text.data, key);
    check->findings->broken = check->findings->broken || text.broken;
    hf__buf_free(&text);
}

static void check_keys(const struct check *check, const struct hf__risk *risk)
{
    for (size_t i = 0; i < risk->shared.kept; i++) {
        const struct hf__collision *collision = &risk->shared.items[i];
        const struct hf__collider *id = id_among(collision);
        if (id != NULL)
            report_hits(check, collision, id->entry);
        report_same_key(check, collision);
    }
    check->findings->dropped += risk->shared.count - risk->shared.kept;
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
        bool mine = entry->view.space != HF_PAIR ? row->kind == HF__RISK_BIGINT
                    : hf__entry_has_class(entry)
                        ? row->kind == HF__RISK_CLASS && strcmp(row->name, name) == 0
                        : row->kind == HF__RISK_PAIR;
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

/* Labels that end, but not soon enough. That others do not end is no surprise to anybody. */
static void report_not_enumerated(const struct check *check, const struct hf__risk *risk,
                                  const hf__lock_entry *entry, uint64_t most)
{
    char labels[HF__WORDS_MAX], odds[HF__WORDS_MAX];
    const struct hf__risk_row *row = row_of(risk, entry);

    find(check, NOT_ENUMERATED, entry->key_at, "list the values of its placeholders",
         "%s has up to %s labels, too many to compare their keys: that two locks share one is %s",
         entry->view.name, hf__risk_count(labels, sizeof labels, most),
         row ? hf__risk_row_words(odds, sizeof odds, row) : "unknown");
}

/* Keys that are compared, and the odds for all that are not. */
static void compare_keys(const struct check *check, const struct hf__risk *risk,
                         struct hf__compared *compared)
{
    const hf_registry *registry = check->registry;

    *compared = (struct hf__compared){0};
    for (size_t i = 0; i < registry->count; i++) {
        const hf__lock_entry *entry = &registry->entries[i];
        const struct hf__own_count *own = &risk->own.counts[i];
        compared->keys += own->labels;
        if (own->enumerated || !entry->view.name || !entry->language ||
            entry->view.derivation == HF_MINTED)
            continue;
        compared->not_enumerated++;
        if (own->most < UINT64_MAX)
            report_not_enumerated(check, risk, entry, own->most);
    }
    for (size_t i = 0; i < risk->row_count; i++) {
        const struct hf__risk_row *row = &risk->rows[i];
        if (row->kind == HF__RISK_DERIVATION)
            continue;
        compared->unknown += row->unknown;
        if (row->probability > compared->probability)
            compared->probability = row->probability;
    }
    check_keys(check, risk);
}

static hf_status check_risk(const struct check *check, double limit, struct hf__compared *compared,
                            hf_error *err)
{
    struct hf__risk risk;
    struct hf__compared unused;
    hf_status status = hf__risk_assess(check->registry, limit, &risk, err);
    if (status != HF_OK)
        return status;
    compare_keys(check, &risk, compared ? compared : &unused);
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

static hf_status check_entry(const struct check *check, size_t index, hf_error *err)
{
    const hf__lock_entry *entry = &check->registry->entries[index];
    hf_status status = HF_OK;
    if (!entry->view.name)
        return HF_OK; /* reported when it was read; the findings below need a name */
    if (hf__entry_is_id(entry))
        check_id(check, entry);
    check_conventions(check, entry);
    status = check_sources(check, entry, err);
    if (status == HF_OK && entry->language)
        status = check_pattern(check, index, err);
    return status;
}

hf_status hf__check_registry(const hf_registry *registry, double max_risk, hf__findings *findings,
                             struct hf__compared *compared, hf_error *err)
{
    struct check check = {.registry = registry, .findings = findings};
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < registry->count; i++)
        status = check_entry(&check, i, err);
    if (status == HF_OK)
        status = check_risk(&check, max_risk < 0 ? registry->conventions.max_risk : max_risk,
                            compared, err);
    hf__findings_sort(findings);
    if (status == HF_OK && findings->broken)
        status = hf__no_memory(err);
    return status;
}
