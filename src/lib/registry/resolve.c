/* Finds what a name or a label stands for, and makes labels from patterns. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "lib/registry/registry.h"

enum { SHOWN = 128 };

bool hf__registry_is_generic(const hf_registry *registry, const char *label, size_t size)
{
    static const char *const built_in[] = {"lock", "global", "test", "mutex", "default", NULL};
    const char *const *word = registry && registry->conventions.generic
                                  ? (const char *const *)registry->conventions.generic
                                  : built_in;
    for (; *word; word++)
        if (strlen(*word) == size && strncasecmp(*word, label, size) == 0)
            return true;
    return false;
}

hf_status hf__entry_key(const hf__lock_entry *entry, const char *label, size_t size, int64_t *key,
                        hf_error *err)
{
    const hf_registry_entry *view = &entry->view;
    if (view->derivation == HF_FIXED) {
        *key = view->space == HF_PAIR
                   ? hf_key_join((uint32_t)view->pair[0], (uint32_t)view->pair[1])
                   : view->key;
        return HF_OK;
    }
    hf_status status = hf_key_derive(view->derivation, label, size, key, err);
    if (status == HF_OK && hf__entry_has_class(entry))
        *key = hf_key_join((uint32_t)view->pair[0], (uint32_t)*key);
    return status;
}

static hf_status matches(const hf__lock_entry *entry, const char *label, size_t size, bool *has,
                         hf_error *err)
{
    *has = false;
    if (!entry->language || size < entry->literal_prefix_size ||
        memcmp(label, entry->literal_prefix, entry->literal_prefix_size) != 0)
        return HF_OK;
    hf_status status = hf__language_has(entry->language, label, size, has, err);
    if (status != HF_OK && err) {
        hf_error why = *err;
        (void)hf__fail(err, status, "cannot match the pattern of %s: %s", entry->view.name,
                       why.message);
        hf__hint(err, "simplify its placeholders");
    }
    return status;
}

static bool same_key(const hf__lock_entry *a, const hf__lock_entry *b)
{
    return a->view.derivation == b->view.derivation && a->view.space == b->view.space &&
           (a->view.space == HF_BIGINT || a->view.pair[0] == b->view.pair[0]);
}

hf_status hf__registry_match(const hf_registry *registry, const char *label, size_t size,
                             const hf__lock_entry **first, const hf__lock_entry **second,
                             hf_error *err)
{
    *second = NULL;
    *first = hf__registry_by_name(registry, label, size);
    if (*first)
        return HF_OK;
    for (size_t i = 0; i < registry->count; i++) {
        const hf__lock_entry *entry = &registry->entries[i];
        bool has = false;
        hf_status status = matches(entry, label, size, &has, err);
        if (status != HF_OK)
            return status;
        if (has && !*first)
            *first = entry;
        else if (has && !*second && !same_key(*first, entry))
            *second = entry;
    }
    return HF_OK;
}

static hf_status refuse_unfilled(const hf__lock_entry *entry, hf_error *err)
{
    hf__buf names = {0};
    for (size_t i = 0; i < entry->placeholder_count; i++)
        hf__buf_printf(&names, " %s=…", entry->placeholders[i].name);
    hf_status status =
        hf__fail(err, HF_INVALID, "%s is a pattern, '%s': its placeholders have no values",
                 entry->view.name, entry->view.pattern);
    hf__hint(err, "give them as%s", names.broken ? " NAME=VALUE" : names.data);
    hf__buf_free(&names);
    return status;
}

static hf_status refuse_ambiguous(const char *label, size_t size, const hf__lock_entry *first,
                                  const hf__lock_entry *second, hf_error *err)
{
    char shown[SHOWN];
    hf_status status =
        hf__fail(err, HF_CONFIG, "'%s' matches two locks of the registry, %s and %s",
                 hf__show(shown, sizeof shown, label, size), first->view.name, second->view.name);
    hf__hint(err, "narrow one pattern; 'holdfast registry check' shows where they meet");
    return status;
}

static hf_status aim(const hf__lock_entry *entry, const char *label, size_t size, hf_target *target,
                     hf_error *err)
{
    const hf_registry_entry *view = &entry->view;
    int64_t key = 0;
    *target = (hf_target){
        .label = label, .label_size = size, .derivation = view->derivation, .space = view->space};
    if (view->derivation != HF_FIXED && view->space == HF_BIGINT)
        return HF_OK; /* derived when it is locked */
    hf_status status = hf__entry_key(entry, label, size, &key, err);
    target->key = key;
    target->pair[0] = (int32_t)(key >> 32);
    target->pair[1] = (int32_t)(uint32_t)key;
    return status;
}

hf_status hf_registry_resolve(const hf_registry *registry, const char *label, size_t label_size,
                              hf_target *target, const hf_registry_entry **view, hf_error *err)
{
    const hf__lock_entry *entry = NULL, *second = NULL;
    size_t size = label_size ? label_size : strlen(label);
    *view = NULL;
    *target = (hf_target){.label = label, .label_size = size};
    hf_status status = hf__registry_match(registry, label, size, &entry, &second, err);
    if (status != HF_OK || !entry)
        return status;
    if (second)
        return refuse_ambiguous(label, size, entry, second, err);
    bool by_name = entry == hf__registry_by_name(registry, label, size);
    if (by_name && entry->placeholder_count > 0)
        return refuse_unfilled(entry, err);
    if (by_name && entry->view.pattern) { /* a label without placeholders: its only word */
        label = entry->literal_prefix;
        size = entry->literal_prefix_size;
    }
    *view = &entry->view;
    return aim(entry, label, size, target, err);
}

/* ---- filling a pattern ---- */

static hf_status refuse_value(const hf__lock_entry *entry, const char *why, const char *given,
                              hf_error *err)
{
    char shown[SHOWN];
    hf__buf names = {0};
    for (size_t i = 0; i < entry->placeholder_count; i++)
        hf__buf_printf(&names, " %s=…", entry->placeholders[i].name);
    hf_status status = hf__fail(err, HF_INVALID, "%s %s '%s'", entry->view.name, why,
                                hf__show(shown, sizeof shown, given, strlen(given)));
    if (entry->placeholder_count > 0)
        hf__hint(err, "it takes%s", names.broken ? " NAME=VALUE" : names.data);
    else
        hf__hint(err, "it has no placeholders");
    hf__buf_free(&names);
    return status;
}

static const char *value_for(const hf__placeholder *placeholder, const char *assignment)
{
    size_t size = strlen(placeholder->name);
    bool same = strncmp(assignment, placeholder->name, size) == 0 && assignment[size] == '=';
    return same ? assignment + size + 1 : NULL;
}

static hf_status check_values(const hf__lock_entry *entry, const char *const *values, size_t count,
                              hf_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const hf__placeholder *known = NULL;
        for (size_t p = 0; p < entry->placeholder_count && !known; p++)
            known = value_for(&entry->placeholders[p], values[i]) ? &entry->placeholders[p] : NULL;
        if (!known)
            return refuse_value(entry, "has no placeholder for", values[i], err);
        for (size_t earlier = 0; earlier < i; earlier++)
            if (value_for(known, values[earlier]))
                return refuse_value(entry, "is given twice the placeholder of", values[i], err);
    }
    return HF_OK;
}

static hf_status check_value(const hf__lock_entry *entry, const hf__placeholder *placeholder,
                             const char *value, hf_error *err)
{
    char shown[SHOWN];
    bool fits = false;
    if (!value) {
        hf_status missing = hf__fail(err, HF_INVALID, "%s needs a value for {%s}", entry->view.name,
                                     placeholder->name);
        hf__hint(err, "give it as %s=VALUE; the pattern is '%s'", placeholder->name,
                 entry->view.pattern);
        return missing;
    }
    hf_status status = hf__language_has(placeholder->language, value, strlen(value), &fits, err);
    if (status != HF_OK || fits)
        return status;
    status = hf__fail(err, HF_INVALID, "'%s' is no value for {%s} of %s",
                      hf__show(shown, sizeof shown, value, strlen(value)), placeholder->name,
                      entry->view.name);
    if (placeholder->regex)
        hf__hint(err, "it must match %s", placeholder->regex);
    else
        hf__hint(err, "it may be anything but empty, and has no ':'");
    return status;
}

static const char *find_value(const hf__placeholder *placeholder, const char *const *values,
                              size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (value_for(placeholder, values[i]))
            return value_for(placeholder, values[i]);
    return NULL;
}

static void write_label(const hf__lock_entry *entry, const char *const *values, size_t count,
                        hf__buf *label)
{
    size_t placeholder = 0;
    for (const char *at = entry->view.pattern; *at;) {
        size_t size = strcspn(at, "{}");
        hf__buf_add(label, at, size);
        at += size;
        if (*at && at[1] == at[0]) {
            hf__buf_add(label, at, 1);
            at += 2;
        } else if (*at) {
            const hf__placeholder *next = &entry->placeholders[placeholder++];
            hf__buf_puts(label, find_value(next, values, count));
            at += strlen(next->name) + 2;
        }
    }
}

hf_status hf_registry_fill(const hf_registry_entry *view, const char *const *values, size_t count,
                           char **label, hf_error *err)
{
    const hf__lock_entry *entry = hf__entry_of(view);
    hf__buf text = {0};
    *label = NULL;
    if (!view->pattern)
        return count > 0 ? refuse_value(entry, "has no placeholder for", values[0], err)
                         : hf__fail(err, HF_INVALID, "%s is a number, not a pattern", view->name);
    hf_status status = check_values(entry, values, count, err);
    for (size_t i = 0; status == HF_OK && i < entry->placeholder_count; i++) {
        const hf__placeholder *placeholder = &entry->placeholders[i];
        status = check_value(entry, placeholder, find_value(placeholder, values, count), err);
    }
    if (status != HF_OK)
        return status;
    write_label(entry, values, count, &text);
    if (text.broken || !text.data) {
        hf__buf_free(&text);
        return hf__no_memory(err);
    }
    *label = text.data;
    return HF_OK;
}
