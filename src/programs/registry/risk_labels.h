/* `holdfast registry risk --labels`: the collisions that a list of labels really has. */
#ifndef HF_PROGRAMS_REGISTRY_RISK_LABELS_H
#define HF_PROGRAMS_REGISTRY_RISK_LABELS_H

#include "cli/options.h"
#include "lib/registry/registry.h"

struct label_choice {
    const char *path; /* "-": standard input */
    bool null_separated;
    const hf_derivation *as;     /* NULL: as the registry says */
    const hf_registry *registry; /* may be NULL */
};

/* Prints the collisions and returns the exit code. */
int examine_labels(const struct invocation *in, const struct label_choice *choice);

#endif
