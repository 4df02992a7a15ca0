#include "programs/holdfast/label.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/report.h"

/* Refuses a label that no lock may have, before a store is opened. HF_INVALID. */
static hf_status check_label(const char *label, hf_error *err)
{
    char shown[SHOWN_MAX];
    hf_status status = HF_OK;

    if (label[0] == '\0') {
        status = hf__fail(err, HF_INVALID, "the label is empty");
        hf__hint(err, "give the lock a name, such as nightly-report");
    } else if (hf__has_control(label, strlen(label))) {
        status = hf__fail(err, HF_INVALID, "the label has a control character: '%s'",
                          hf__show(shown, sizeof shown, label, strlen(label)));
        hf__hint(err, "labels are printable text; a newline may come from a file or a variable");
    }
    return status;
}

hf_status target_label(const char *label, const char *derivation, hf_target *target, hf_error *err)
{
    hf_status status = check_label(label, err);

    *target = (hf_target){.label = label};
    if (status == HF_OK && derivation != NULL)
        status = hf_derivation_parse(derivation, &target->derivation, err);
    if (status == HF_OK)
        status = load_libcrypto(err);
    if (status == HF_OK)
        status = hf_key_derive(target->derivation, label, strlen(label), &target->key, err);
    return status;
}

/* Like tenant=7, but not ./a=b or --x=y. */
static bool is_assignment(const char *word)
{
    size_t size = 0;

    while (isalnum((unsigned char)word[size]) || word[size] == '_')
        size++;
    return size > 0 && word[size] == '=';
}

static int count_assignments(char **words, int count)
{
    int found = 0;

    while (found < count && is_assignment(words[found]))
        found++;
    return found;
}

static hf_status fill(const hf_registry *registry, char **words, int count, struct named_lock *lock,
                      int *used, hf_error *err)
{
    const hf_registry_entry *entry = registry ? hf_registry_find(registry, words[0]) : NULL;
    int values = entry != NULL ? count_assignments(words + 1, count - 1) : 0;

    *used = 1 + values;
    if (entry == NULL || (entry->pattern == NULL && values == 0))
        return HF_OK;
    return hf_registry_fill(entry, (const char *const *)words + 1, (size_t)values, &lock->filled,
                            err);
}

static hf_status refuse_derivation(const char *label, hf_derivation derivation,
                                   const hf_registry_entry *entry, hf_error *err)
{
    char shown[SHOWN_MAX];
    hf_status status = hf__fail(err, HF_CONFIG, "'%s' is %s in the registry (%s), not %s",
                                show_argument(shown, label), hf_derivation_name(entry->derivation),
                                entry->name, hf_derivation_name(derivation));

    hf__hint(err, "leave --as out: two derivations of one label are two locks");
    return status;
}

/* --as may repeat what the registry says, or say it for a label that the registry does not know. */
static hf_status choose_derivation(const char *name, struct named_lock *lock, hf_error *err)
{
    hf_derivation derivation = HF_SHA256;
    hf_status status = name != NULL ? hf_derivation_parse(name, &derivation, err) : HF_OK;

    if (status != HF_OK || name == NULL)
        return status;
    if (lock->entry != NULL && lock->entry->derivation != derivation)
        return refuse_derivation(lock->target.label, derivation, lock->entry, err);
    lock->target.derivation = derivation;
    return HF_OK;
}

static hf_status derive(struct named_lock *lock, hf_error *err)
{
    hf_target *target = &lock->target;

    if (target->space == HF_PAIR || (lock->entry != NULL && target->derivation == HF_FIXED) ||
        target->derivation == HF_MINTED) /* only the store knows that key */
        return HF_OK;
    return hf_key_derive(target->derivation, target->label, target->label_size, &target->key, err);
}

hf_status read_lock_name(const hf_registry *registry, char **words, int count,
                         const char *derivation, struct named_lock *lock, int *used, hf_error *err)
{
    hf_status status = check_label(words[0], err);

    *lock = (struct named_lock){0};
    if (status == HF_OK)
        status = load_libcrypto(err);
    if (status == HF_OK)
        status = fill(registry, words, count, lock, used, err);
    if (status != HF_OK)
        return status;
    const char *label = lock->filled != NULL ? lock->filled : words[0];
    lock->target = (hf_target){.label = label, .label_size = strlen(label)};
    if (registry != NULL)
        status = hf_registry_resolve(registry, label, 0, &lock->target, &lock->entry, err);
    if (status == HF_OK)
        status = choose_derivation(derivation, lock, err);
    return status == HF_OK ? derive(lock, err) : status;
}

/* ---- what the registry does not have --------------------------------------------------------- */

static const hf_registry_entry *entry_with_id(const hf_registry *registry, int64_t key)
{
    for (size_t i = 0; i < hf_registry_count(registry); i++) {
        const hf_registry_entry *entry = hf_registry_at(registry, i);
        if (entry->derivation == HF_FIXED && entry->space == HF_BIGINT && entry->key == key)
            return entry;
    }
    return NULL;
}

/* The pattern whose beginning is nearest to that of the label; NULL: none is near. */
static const hf_registry_entry *nearest_pattern(const hf_registry *registry, const char *label)
{
    const hf_registry_entry *nearest = NULL;
    size_t distance = SIZE_MAX;

    for (size_t i = 0; i < hf_registry_count(registry); i++) {
        const hf_registry_entry *entry = hf_registry_at(registry, i);
        size_t size = entry->pattern != NULL ? strcspn(entry->pattern, "{") : 0;
        size_t head = strcspn(label, ":/-_.") + 1 < strlen(label) ? strcspn(label, ":/-_.") + 1 : 0;
        char *beginning = size > 0 ? strndup(entry->pattern, size) : NULL;
        char *given = entry->pattern != NULL && strchr(entry->pattern, '{') != NULL && head > 0
                          ? strndup(label, head)
                          : strdup(label);
        struct suggestion suggestion = {.word = given};
        if (beginning != NULL && given != NULL)
            suggest(&suggestion, beginning);
        if (suggestion.nearest != NULL && suggestion.distance < distance) {
            nearest = entry;
            distance = suggestion.distance;
        }
        free(beginning);
        free(given);
    }
    return nearest;
}

static void hint_at_nearest(const hf_registry *registry, const char *label, hf_error *err)
{
    struct suggestion suggestion = {.word = label};
    const hf_registry_entry *same = NULL, *pattern = NULL;
    int64_t number = 0;

    for (size_t i = 0; i < hf_registry_count(registry); i++)
        suggest(&suggestion, hf_registry_at(registry, i)->name);
    if (hf__parse_int64(label, "LABEL", INT64_MIN, INT64_MAX, &number, NULL) == HF_OK)
        same = entry_with_id(registry, number);
    if (same == NULL && suggestion.nearest == NULL)
        pattern = nearest_pattern(registry, label);
    if (same != NULL)
        hf__hint(err, "%s is the number of %s: say %s, or --key %s", label, same->name, same->name,
                 label);
    else if (suggestion.nearest != NULL)
        hf__hint(err, "did you mean %s? --unregistered takes it as it is", suggestion.nearest);
    else if (pattern != NULL)
        hf__hint(err, "did you mean %s (%s)? --unregistered takes it as it is", pattern->pattern,
                 pattern->name);
    else
        hf__hint(err, "add it there, or give --unregistered");
}

hf_status refuse_stranger(const hf_registry *registry, const hf_registry_entry *entry,
                          const char *label, const int64_t *key, hf_error *err)
{
    char shown[SHOWN_MAX], path[SHOWN_MAX];

    if (registry == NULL || entry != NULL || hf_registry_strictness(registry) == HF_STRICT_NOBODY ||
        (key != NULL && entry_with_id(registry, *key) != NULL))
        return HF_OK;
    show_argument(path, hf_registry_path(registry));
    if (key != NULL) {
        hf_status status = hf__fail(err, HF_CONFIG, "the registry %s has no lock with the key %lld",
                                    path, (long long)*key);
        hf__hint(err, "add it there, or give --unregistered");
        return status;
    }
    hf_status status = hf__fail(err, HF_CONFIG, "'%s' is not in the registry %s",
                                show_argument(shown, label), path);
    hint_at_nearest(registry, label, err);
    return status;
}

void named_lock_free(struct named_lock *lock)
{
    free(lock->filled);
    *lock = (struct named_lock){0};
}

static hf_status read_number(const hf_registry *registry, const char *label, int64_t key,
                             struct named_lock *lock, hf_error *err)
{
    const hf_registry_entry *entry = registry != NULL ? hf_registry_find(registry, label) : NULL;
    hf_status status = check_label(label, err);

    lock->target = HF_KEY(key);
    lock->target.label = label;
    if (status == HF_OK && entry != NULL &&
        (entry->derivation != HF_FIXED || entry->space != HF_BIGINT || entry->key != key)) {
        status = hf__fail(err, HF_CONFIG, "the registry has %s under another key than %" PRId64,
                          entry->name, key);
        hf__hint(err, "leave --key out, or use another name");
    }
    if (registry != NULL)
        lock->entry = entry_with_id(registry, key);
    return status;
}

hf_status read_target(const hf_registry *registry, char **words, int count, const char *derivation,
                      const int64_t *key, bool unregistered, struct named_lock *lock, int *used,
                      hf_error *err)
{
    *used = 1;
    hf_status status = key != NULL
                           ? read_number(registry, words[0], *key, lock, err)
                           : read_lock_name(registry, words, count, derivation, lock, used, err);
    if (status == HF_OK && !unregistered)
        status = refuse_stranger(registry, lock->entry, words[0], key, err);
    return status;
}
