/* Any bytes as a registry: no crash, findings that say where, and a registry that can be asked. */
#include "fuzz.h"

#include <string.h>

#include "programs/registry/check.h"

static void ask(const hf_registry *registry, const char *text, size_t size)
{
    for (size_t i = 0; i < hf_registry_count(registry); i++) {
        const hf_registry_entry *entry = hf_registry_at(registry, i);
        hf_target target;
        const hf_registry_entry *found = NULL;
        char *label = NULL;
        require(entry->name == NULL || hf_registry_find(registry, entry->name) != NULL,
                "a lock is not found by its name");
        if (size > 0 && entry->pattern != NULL)
            (void)!hf_registry_resolve(registry, text, size < 64 ? size : 64, &target, &found,
                                       NULL);
        if (hf__entry_of(entry)->language != NULL &&
            hf_registry_fill(entry, NULL, 0, &label, NULL) == HF_OK)
            require(hf__entry_of(entry)->placeholder_count == 0,
                    "a pattern is filled with nothing");
        free(label);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hf_registry *registry = NULL;
    hf__findings findings = {0};
    const char *text = (const char *)data;

    hf_status status =
        hf__registry_examine_text("fuzz.yaml", text, size, &registry, &findings, NULL);
    require(status == HF_OK, "a text cannot be examined");
    for (size_t i = 0; i < findings.count; i++) {
        require(findings.items[i].message[0] != '\0', "a finding says nothing");
        require(strcmp(findings.items[i].file, "fuzz.yaml") == 0, "a finding is elsewhere");
    }
    require(registry != NULL || hf__findings_worst(&findings) == HF__SEVERITY_BROKEN,
            "no registry, and no reason");
    if (registry != NULL) {
        bool usable = hf__findings_worst(&findings) < HF__SEVERITY_ERROR;
        if (usable)
            ask(registry, text, size);
        require(hf__check_registry(registry, 0.01, &findings, NULL, NULL) == HF_OK,
                "a registry cannot be checked");
    }
    hf_registry_free(registry);
    hf__findings_free(&findings);
    return 0;
}
