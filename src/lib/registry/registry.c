/* The handle that callers have. */
#include "lib/registry/registry.h"

#include <stdlib.h>
#include <string.h>

#include "lib/registry/read.h"

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

void hf_registry_free(hf_registry *registry)
{
    if (!registry)
        return;
    for (size_t i = 0; i < registry->count; i++)
        free_entry(&registry->entries[i]);
    free(registry->entries);
    for (char **word = registry->conventions.generic; word && *word; word++)
        free(*word);
    free(registry->conventions.generic);
    free(registry->conventions.label);
    hf__names_free(registry->names);
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
