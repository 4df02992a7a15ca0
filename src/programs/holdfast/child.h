#ifndef HF_CLI_CHILD_H
#define HF_CLI_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "holdfast/holdfast.h"
#include "programs/holdfast/signals.h"
#include "programs/holdfast/terminal.h"

/* What the command learns about its lock; NULL leaves a variable unset. */
struct lock_facts {
    const char *label;
    const char *key;
    const char *token;
    const char *slot;
};

/*
 * Starts argv in a process group of its own, which it leads. It dies with us (PR_SET_PDEATHSIG).
 * When it cannot be executed the status is HF_SYSTEM and *exec_errno says why; else that is 0.
 */
HF_MUST_CHECK hf_status child_start(char **argv, const struct lock_facts *facts,
                                    const struct signals *signals, struct terminal *terminal,
                                    pid_t *child, int *exec_errno, hf_error *err);

#endif
