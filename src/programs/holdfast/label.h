#ifndef HF_CLI_LABEL_H
#define HF_CLI_LABEL_H

#include "holdfast/holdfast.h"

/* Refuses what no lock may be called, before a store is opened. */
HF_MUST_CHECK hf_status check_label(const char *label, hf_error *err);

/* Fills target from a label and the name of a derivation (NULL: the default), for any bytes. */
HF_MUST_CHECK hf_status target_label(const char *label, const char *derivation, hf_target *target,
                                     hf_error *err);

/* A lock that a command line names. */
struct named_lock {
    hf_target target;               /* with the key, also where it is derived */
    const hf_registry_entry *entry; /* NULL: the registry does not know it */
    char *filled;                   /* the label of a pattern; owned */
};

/*
 * Reads a name of the registry with the NAME=VALUE words behind it, or a label; *used is how many
 * words that took. registry and derivation may be NULL.
 */
HF_MUST_CHECK hf_status read_lock_name(const hf_registry *registry, char **words, int count,
                                       const char *derivation, struct named_lock *lock, int *used,
                                       hf_error *err);
void named_lock_free(struct named_lock *lock);

#endif
