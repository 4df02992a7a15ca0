/* Looks after the command while the lock is held: signals, limits, and the loss of the lock. */
#ifndef HF_CLI_SUPERVISE_H
#define HF_CLI_SUPERVISE_H

#include <stdint.h>
#include <sys/types.h>

#include "holdfast/holdfast.h"
#include "programs/holdfast/signals.h"
#include "programs/holdfast/terminal.h"

struct supervision {
    hf_store *store;
    const struct signals *signals;
    struct terminal *terminal;
    const bool *lost; /* set by the lock's on_lost, in hf_store_dispatch */
    pid_t child;
    int64_t limit_ms; /* 0: none */
    int64_t kill_ms;  /* between TERM and KILL */
};

/* The graver cause is the greater one. */
enum end_cause {
    END_BY_ITSELF,
    END_BY_LIMIT,
    END_BY_LOSS,
};

struct outcome {
    enum end_cause cause;
    int wait_status;  /* as waitpid gives it */
    bool interrupted; /* from the keyboard: whoever started us should see us die of SIGINT */
};

/*
 * Returns when the command has ended. On the loss of the lock and at the limit its whole process
 * group gets TERM, and KILL when kill_ms later anything of it is left.
 */
struct outcome supervise(const struct supervision *supervision);

/* Keeps the lock until deadline, its loss, or one of TERM, INT, HUP and QUIT. */
void keep_lock_until(const struct supervision *supervision, int64_t deadline);

#endif
