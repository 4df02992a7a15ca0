/* The handle that callers have, and its entries by name and by fixed key. */
#include "lib/registry/registry.h"

#include <stdlib.h>
#include <string.h>

#include "lib/registry/read.h"

/* The entries by name and by fixed key. */
struct hf__names {
    const hf__lock_entry **by_name; /* sorted; equal names in the order of the file */
    size_t name_count;
    const hf__lock_entry **by_key;
    size_t key_count;
};

static void free_text(const char *text)
{
    free((void *)(uintptr_t)text);
}

static void free_placeholder(hf__placeholder *placeholder)
{
    for (size_t i = 0; i < placeholder->value_count; i++)
        free(placeholder->values[i]);
    free(placeholder->values);
    free(placeholder->name);
    free(placeholder->regex);
    hf__language_free(placeholder->language);
}

static void free_entry(hf__lock_entry *entry)
{
    free_text(entry->view.name);
    free_text(entry->view.pattern);
    free_text(entry->view.scope);
    free_text(entry->view.component);
    free_text(entry->view.purpose);
    free_text(entry->view.owner);
    free_text(entry->view.runbook);
    for (size_t i = 0; i < entry->placeholder_count; i++)
        free_placeholder(&entry->placeholders[i]);
    free(entry->placeholders);
    hf__language_free(entry->language);
    free(entry->literal_prefix);
    for (size_t i = 0; i < entry->source_count; i++)
        free(entry->sources[i].path);
    free(entry->sources);
}

static void free_names(struct hf__names *names)
{
    if (!names)
        return;
    free(names->by_name);
    free(names->by_key);
    free(names);
}

void hf_registry_free(hf_registry *registry)
{
    if (!registry)
        return;
    for (size_t i = 0; i < registry->count; i++)
        free_entry(&registry->entries[i]);
    free(registry->entries);
    for (size_t i = 0; i < registry->wrapper_count; i++)
        free(registry->wrappers[i].call);
    free(registry->wrappers);
    for (char **word = registry->conventions.generic; word && *word; word++)
        free(*word);
    free(registry->conventions.generic);
    free(registry->conventions.label);
    free_names(registry->names);
    free(registry->path);
    free(registry);
}

static hf_status refuse(const hf__findings *findings, hf_error *err)
{
    size_t faults = 0;
    const hf__finding *first = NULL;
    for (size_t i = 0; i < findings->count; i++) {
        if (findings->items[i].rule->severity < HF__SEVERITY_ERROR)
            continue;
        if (faults++ == 0)
            first = &findings->items[i];
    }
    if (!first)
        return HF_OK;
    hf_status status = first->line > 0
                           ? hf__fail(err, HF_CONFIG, "%s:%u:%u: %s", first->file, first->line,
                                      first->column, first->message)
                           : hf__fail(err, HF_CONFIG, "%s: %s", first->file, first->message);
    if (faults > 1)
        hf__hint(err, "%s%s'holdfast registry check' shows this and %zu more", first->remedy,
                 first->remedy[0] ? "; " : "", faults - 1);
    else if (first->remedy[0])
        hf__hint(err, "%s", first->remedy);
    return status;
}

hf_status hf_registry_read(const char *path, hf_registry **registry, hf_error *err)
{
    hf__findings findings = {0};
    hf_status status = hf__registry_examine(path, registry, &findings, err);
    if (status == HF_OK)
        status = refuse(&findings, err);
    hf__findings_free(&findings);
    if (status != HF_OK) {
        hf_registry_free(*registry);
        *registry = NULL;
    }
    return status;
}

const char *hf_registry_path(const hf_registry *registry)
{
    return registry->path;
}

hf_strictness hf_registry_strictness(const hf_registry *registry)
{
    return registry->strictness;
}

size_t hf_registry_count(const hf_registry *registry)
{
    return registry->count;
}

const hf_registry_entry *hf_registry_at(const hf_registry *registry, size_t index)
{
    return index < registry->count ? &registry->entries[index].view : NULL;
}

const hf_registry_entry *hf_registry_find(const hf_registry *registry, const char *name)
{
    const hf__lock_entry *entry = hf__registry_by_name(registry, name, strlen(name));
    return entry ? &entry->view : NULL;
}

/* ---- entries by name and by fixed key ---- */

static int by_place(const hf__lock_entry *a, const hf__lock_entry *b)
{
    return a < b ? -1 : a > b;
}

static int compare_names(const void *a, const void *b)
{
    const hf__lock_entry *left = *(const hf__lock_entry *const *)a;
    const hf__lock_entry *right = *(const hf__lock_entry *const *)b;
    int order = strcmp(left->view.name, right->view.name);
    return order != 0 ? order : by_place(left, right);
}

static int64_t fixed_key(const hf__lock_entry *entry)
{
    const hf_registry_entry *view = &entry->view;
    return view->space == HF_PAIR ? hf_key_join((uint32_t)view->pair[0], (uint32_t)view->pair[1])
                                  : view->key;
}

static int compare_key(const hf__lock_entry *entry, hf_space space, int64_t key)
{
    if (entry->view.space != space)
        return entry->view.space < space ? -1 : 1;
    return fixed_key(entry) < key ? -1 : fixed_key(entry) > key;
}

static int compare_keys(const void *a, const void *b)
{
    const hf__lock_entry *left = *(const hf__lock_entry *const *)a;
    const hf__lock_entry *right = *(const hf__lock_entry *const *)b;
    int order = compare_key(left, right->view.space, fixed_key(right));
    return order != 0 ? order : by_place(left, right);
}

bool hf__names_build(hf_registry *registry)
{
    struct hf__names *names = registry->names = calloc(1, sizeof *names);
    if (!names)
        return false;
    names->by_name = calloc(registry->count + 1, sizeof(hf__lock_entry *));
    names->by_key = calloc(registry->count + 1, sizeof(hf__lock_entry *));
    if (!names->by_name || !names->by_key)
        return false;
    for (size_t i = 0; i < registry->count; i++) {
        const hf__lock_entry *entry = &registry->entries[i];
        if (entry->view.name)
            names->by_name[names->name_count++] = entry;
        if (hf__entry_is_id(entry))
            names->by_key[names->key_count++] = entry;
    }
    qsort(names->by_name, names->name_count, sizeof(hf__lock_entry *), compare_names);
    qsort(names->by_key, names->key_count, sizeof(hf__lock_entry *), compare_keys);
    return true;
}

static int compare_text(const char *name, const char *text, size_t size)
{
    size_t name_size = strlen(name);
    int order = memcmp(name, text, name_size < size ? name_size : size);
    return order != 0 ? order : (name_size > size) - (name_size < size);
}

const hf__lock_entry *hf__registry_by_name(const hf_registry *registry, const char *name,
                                           size_t size)
{
    const struct hf__names *names = registry->names;
    size_t low = 0, high = names->name_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_text(names->by_name[middle]->view.name, name, size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found =
        low < names->name_count && compare_text(names->by_name[low]->view.name, name, size) == 0;
    return found ? names->by_name[low] : NULL;
}

const hf__lock_entry *hf__registry_by_key(const hf_registry *registry, hf_space space, int64_t key)
{
    const struct hf__names *names = registry->names;
    size_t low = 0, high = names->key_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_key(names->by_key[middle], space, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < names->key_count && compare_key(names->by_key[low], space, key) == 0;
    return found ? names->by_key[low] : NULL;
}
