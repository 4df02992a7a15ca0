#include "lib/registry/registry.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
    MOST_PER_PATTERN = 100000,
    MOST_IN_ALL = 1000000, /* words that are tried, also of patterns that turn out too large */
    FEW_WORDS = 1000,      /* patterns with so few come first, before large ones use up the room */
    MOST_TEXT = 64 * 1048576, /* of one pattern */
    FIRST_SLOTS = 1024,       /* a power of two */
};

#define NO_LABEL SIZE_MAX

struct slot {
    int64_t key;
    const hf__lock_entry *entry; /* NULL: free */
    size_t label;                /* where it begins in text, or NO_LABEL */
};

struct hf__known {
    struct slot *slots; /* open addressing */
    size_t size;        /* a power of two, or 0 */
    size_t count;
    hf__buf text; /* labels, each ended by NUL */
};

/* ---- the map ---- */

static size_t first_place(const hf__known *known, hf_space space, int64_t key)
{
    return (size_t)hf__hash_int((uint64_t)key + (uint64_t)space) & (known->size - 1);
}

static struct slot *place_of(const hf__known *known, hf_space space, int64_t key)
{
    size_t at = first_place(known, space, key);
    while (known->slots[at].entry &&
           (known->slots[at].key != key || known->slots[at].entry->view.space != space))
        at = (at + 1) & (known->size - 1);
    return &known->slots[at];
}

static bool make_room(hf__known *known)
{
    if (known->count * 2 < known->size)
        return true;
    hf__known grown = {.size = known->size ? known->size * 2 : FIRST_SLOTS};
    grown.slots = calloc(grown.size, sizeof *grown.slots);
    if (!grown.slots)
        return false;
    for (size_t i = 0; i < known->size; i++) {
        const struct slot *old = &known->slots[i];
        if (old->entry)
            *place_of(&grown, old->entry->view.space, old->key) = *old;
    }
    free(known->slots);
    known->slots = grown.slots;
    known->size = grown.size;
    return true;
}

static bool is_label(const hf__known *known, const struct slot *slot, const char *label)
{
    return slot->label != NO_LABEL && strcmp(known->text.data + slot->label, label) == 0;
}

static bool add(hf__known *known, const hf__lock_entry *entry, const char *label)
{
    int64_t key = 0;
    if (hf__entry_key(entry, label, strlen(label), &key, NULL) != HF_OK)
        return true; /* a word without a key is not a label */
    if (!make_room(known))
        return false;
    struct slot *slot = place_of(known, entry->view.space, key);
    if (slot->entry) {
        if (!is_label(known, slot, label))
            slot->label = NO_LABEL;
        return true;
    }
    *slot = (struct slot){.key = key, .entry = entry, .label = known->text.length};
    known->count++;
    hf__buf_add(&known->text, label, strlen(label) + 1);
    return !known->text.broken;
}

const hf__lock_entry *hf__known_find(const hf__known *known, hf_space space, int64_t key,
                                     const char **label)
{
    *label = NULL;
    if (known->size == 0)
        return NULL;
    const struct slot *slot = place_of(known, space, key);
    if (slot->entry && slot->label != NO_LABEL)
        *label = known->text.data + slot->label;
    return slot->entry;
}

void hf__known_each(const hf__known *known, hf__known_fn *fn, void *arg)
{
    for (size_t i = 0; i < known->size; i++) {
        const struct slot *slot = &known->slots[i];
        if (slot->entry && slot->label != NO_LABEL)
            fn(arg, slot->entry, known->text.data + slot->label, slot->key);
    }
}

void hf__known_free(hf__known *known)
{
    if (!known)
        return;
    free(known->slots);
    hf__buf_free(&known->text);
    free(known);
}

/* ---- which labels there are ---- */

/* Tells the obvious cases from the expression alone. For the others the words are counted. */
static bool is_surely_large(const char *regex)
{
    for (const char *at = regex; *at; at++) {
        if (*at == '\\') {
            if (!at[1] || strchr("DWS", at[1]))
                return true;
            at++;
        } else if (*at == '[') {
            if (at[1] == '^')
                return true;
            at += at[1] == ']';
            while (at[1] && at[1] != ']')
                at += at[1] == '\\' && at[2] ? 2 : 1;
        } else if (strchr(".*+", *at)) {
            return true;
        } else if (*at == '{' && strchr(at, '}') && strchr(at, '}')[-1] == ',') {
            return true;
        }
    }
    return false;
}

static bool is_worth_a_try(const hf__lock_entry *entry)
{
    if (!entry->language || entry->view.derivation == HF_MINTED)
        return false;
    for (size_t i = 0; i < entry->placeholder_count; i++) {
        const hf__placeholder *placeholder = &entry->placeholders[i];
        if (!placeholder->values && (!placeholder->regex || is_surely_large(placeholder->regex)))
            return false;
    }
    return true;
}

struct words {
    hf__buf text; /* each ended by NUL */
    size_t count;
};

static bool keep_word(void *arg, const char *word, size_t size)
{
    struct words *words = arg;
    words->count++;
    if (memchr(word, '\0', size))
        return true; /* a label has no NUL */
    hf__buf_add(&words->text, word, size);
    hf__buf_add(&words->text, "", 1);
    return !words->text.broken && words->text.length <= MOST_TEXT;
}

/* *complete says whether all labels of the entry have been added. */
static hf_status add_labels(hf__known *known, const hf__lock_entry *entry, size_t most,
                            size_t *looked_at, bool *complete, hf_error *err)
{
    struct words words = {0};
    hf_status status = hf__language_words(entry->language, most, keep_word, &words, complete, err);

    *looked_at += words.count;
    if (status == HF_OK && words.text.broken)
        status = hf__no_memory(err);
    const char *end = words.text.data ? words.text.data + words.text.length : NULL;
    for (const char *word = words.text.data; status == HF_OK && *complete && word < end;
         word += strlen(word) + 1)
        if (!add(known, entry, word))
            status = hf__no_memory(err);
    hf__buf_free(&words.text);
    return status;
}

static hf_status add_patterns(hf__known *known, const hf_registry *registry, size_t least,
                              size_t most, size_t *looked_at, bool *done, hf_error *err)
{
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < registry->count; i++) {
        const hf__lock_entry *entry = &registry->entries[i];
        size_t left = *looked_at < MOST_IN_ALL ? MOST_IN_ALL - *looked_at : 0;
        if (done[i] || left <= least || !is_worth_a_try(entry))
            continue;
        status = add_labels(known, entry, left < most ? left : most, looked_at, &done[i], err);
    }
    return status;
}

hf_status hf__known_build(const hf_registry *registry, hf__known **out, hf_error *err)
{
    hf_status status = HF_OK;
    size_t looked_at = 0;
    hf__known *known = calloc(1, sizeof *known);
    bool *done = calloc(registry->count ? registry->count : 1, sizeof *done);

    if (!known || !done)
        status = hf__no_memory(err);
    if (status == HF_OK)
        status = add_patterns(known, registry, 0, FEW_WORDS, &looked_at, done, err);
    if (status == HF_OK)
        status = add_patterns(known, registry, FEW_WORDS, MOST_PER_PATTERN, &looked_at, done, err);
    free(done);
    if (status != HF_OK) {
        hf__known_free(known);
        return status;
    }
    *out = known;
    return HF_OK;
}

/* ---- labels that are recorded ---- */

static bool may_own(const hf__lock_entry *entry, hf_space space, int64_t key, const char *label,
                    size_t size)
{
    if (!entry->language || entry->view.space != space)
        return false;
    if (hf__entry_has_class(entry) && entry->view.pair[0] != (int32_t)(key >> 32))
        return false;
    return size >= entry->literal_prefix_size &&
           memcmp(label, entry->literal_prefix, entry->literal_prefix_size) == 0;
}

static bool has_key(const hf__lock_entry *entry, int64_t key, const char *label, size_t size)
{
    int64_t derived = 0;
    if (entry->view.derivation == HF_MINTED)
        return true; /* not computed: the record is what says that the label has this key */
    return hf__entry_key(entry, label, size, &derived, NULL) == HF_OK && derived == key;
}

hf_status hf__registry_owner(const hf_registry *registry, hf_space space, int64_t key,
                             const char *label, size_t size, const hf__lock_entry **owner,
                             hf_error *err)
{
    *owner = NULL;
    for (size_t i = 0; i < registry->count; i++) {
        const hf__lock_entry *entry = &registry->entries[i];
        bool matches = false;
        if (!may_own(entry, space, key, label, size))
            continue;
        hf_status status = hf__language_has(entry->language, label, size, &matches, err);
        if (status != HF_OK && status != HF_QUOTA)
            return status;
        if (status == HF_OK && matches && has_key(entry, key, label, size)) {
            *owner = entry;
            return HF_OK;
        }
    }
    return HF_OK;
}
