/* Any bytes as a registry: no crash, findings that say where, and a registry that can be asked. */
#include <stdlib.h>
#include <string.h>

#include "programs/registry/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static void ask(const hf_registry *registry, const char *text, size_t size)
{
    for (size_t i = 0; i < hf_registry_count(registry); i++) {
        const hf_registry_entry *entry = hf_registry_at(registry, i);
        hf_target target;
        const hf_registry_entry *found = NULL;
        char *label = NULL;
        expect(entry->name == NULL || hf_registry_find(registry, entry->name) != NULL);
        if (size > 0 && entry->pattern != NULL)
            (void)!hf_registry_resolve(registry, text, size < 64 ? size : 64, &target, &found,
                                       NULL);
        if (hf__entry_of(entry)->language != NULL &&
            hf_registry_fill(entry, NULL, 0, &label, NULL) == HF_OK)
            expect(hf__entry_of(entry)->placeholder_count == 0);
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
    expect(status == HF_OK);
    for (size_t i = 0; i < findings.count; i++) {
        expect(findings.items[i].message[0] != '\0');
        expect(strcmp(findings.items[i].file, "fuzz.yaml") == 0);
    }
    expect(registry != NULL || hf__findings_worst(&findings) == HF__SEVERITY_BROKEN);
    if (registry != NULL) {
        bool usable = hf__findings_worst(&findings) < HF__SEVERITY_ERROR;
        if (usable)
            ask(registry, text, size);
        expect(hf__check_registry(registry, 0.01, &findings, NULL) == HF_OK);
    }
    hf_registry_free(registry);
    hf__findings_free(&findings);
    return 0;
}
