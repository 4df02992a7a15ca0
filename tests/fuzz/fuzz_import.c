/* A team's Markdown: what is imported is a registry that can be read, or there is a reason. */
#include "fuzz.h"

#include <string.h>

#include "lib/registry/registry.h"
#include "programs/registry/import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hf__buf yaml = {0};
    hf__findings notes = {0}, faults = {0};
    hf_registry *registry = NULL;
    hf_error err = {0};
    hf_status status =
        hf__import_markdown("locks.md", (const char *)data, size, &yaml, &notes, &err);

    require(status == HF_OK || (status == HF_BAD_DATA && err.message[0] != '\0'), "no reason");
    for (size_t i = 0; i < notes.count; i++)
        require(notes.items[i].message[0] != '\0', "a note says nothing");
    if (status == HF_OK) {
        require(hf__registry_examine_text("locks.yaml", yaml.data, yaml.length, &registry, &faults,
                                          NULL) == HF_OK,
                "it cannot be examined");
        require(registry != NULL, "what was imported is no registry");
        require(hf__findings_worst(&faults) < HF__SEVERITY_ERROR, "what was imported is wrong");
    }
    hf_registry_free(registry);
    hf__findings_free(&faults);
    hf__findings_free(&notes);
    hf__buf_free(&yaml);
    return 0;
}
