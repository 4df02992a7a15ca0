#ifndef HF_CLI_LABEL_H
#define HF_CLI_LABEL_H

#include "holdfast/holdfast.h"

/*
 * Fills target from a label, which need not be UTF-8, and the name of a derivation (NULL: the
 * default). target points to the label. HF_INVALID also for one that no lock may have.
 */
HF_MUST_CHECK hf_status target_label(const char *label, const char *derivation, hf_target *target,
                                     hf_error *err);

/* A lock as the command line names it. */
struct named_lock {
    hf_target target;               /* with its key, unless only the store knows that */
    const hf_registry_entry *entry; /* owned by the registry; NULL: it does not know the lock */
    char *filled;                   /* the label that a pattern was filled to; owned */
};

/*
 * Reads a name of the registry and the NAME=VALUE words after it, or a label. *used is how many
 * words that used. registry and derivation may be NULL. lock points into words; free it after a
 * failure, too. Check with refuse_stranger whether the registry had to have it.
 */
HF_MUST_CHECK hf_status read_lock_name(const hf_registry *registry, char **words, int count,
                                       const char *derivation, struct named_lock *lock, int *used,
                                       hf_error *err);

/*
 * Refuses with HF_CONFIG what the registry does not have, with the nearest spelling, unless there
 * is no registry or it says strict: false. entry is what was found for the label; key is that of
 * --key, or NULL.
 */
HF_MUST_CHECK hf_status refuse_stranger(const hf_registry *registry, const hf_registry_entry *entry,
                                        const char *label, const int64_t *key, hf_error *err);

/*
 * The lock of a command line, as read_lock_name and refuse_stranger; key is that of --key, for
 * which the label is only a name, or NULL.
 */
HF_MUST_CHECK hf_status read_target(const hf_registry *registry, char **words, int count,
                                    const char *derivation, const int64_t *key, bool unregistered,
                                    struct named_lock *lock, int *used, hf_error *err);

/* A row of an option table: names that the registry does not have are taken. */
#define UNREGISTERED_OPTION(values, member)                                                        \
    {                                                                                              \
        .name = "unregistered", .help = "take a lock that the registry does not have",             \
        .offset = offsetof(values, member),                                                        \
    }
void named_lock_free(struct named_lock *lock);

#endif
