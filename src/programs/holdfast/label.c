#include "programs/holdfast/label.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/load.h"
#include "cli/report.h"

static const char *find_control(const char *label)
{
    for (; *label != '\0'; label++)
        if ((unsigned char)*label < 0x20 || *label == 0x7f)
            return label;
    return NULL;
}

hf_status check_label(const char *label, hf_error *err)
{
    char shown[SHOWN_MAX];
    hf_status status = HF_OK;

    if (label[0] == '\0') {
        status = hf__fail(err, HF_INVALID, "the label is empty");
        hf__hint(err, "give the lock a name, such as nightly-report");
    } else if (find_control(label) != NULL) {
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

void named_lock_free(struct named_lock *lock)
{
    free(lock->filled);
    *lock = (struct named_lock){0};
}
