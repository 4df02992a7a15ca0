/* The signals of `holdfast run`, read from a descriptor while the command runs. */
#ifndef HF_CLI_SIGNALS_H
#define HF_CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "holdfast/holdfast.h"

struct signals {
    int fd;
    sigset_t mask_before;
    struct sigaction child_action_before;
};

#define SIGNALS_INIT                                                                               \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* From here on the signals of the table in signals.c wait on fd. One that was ignored stays so. */
HF_MUST_CHECK hf_status signals_catch(struct signals *signals, hf_error *err);

/* In the child, before exec: as if we had never been there. Async-signal-safe. */
void signals_restore(const struct signals *signals);

/* The next signal that waits, or 0. */
int signals_next(const struct signals *signals);

/* Stops this process (the whole job, if so) as SIGTSTP does; false when nobody could continue it. */
bool signals_stop_here(bool whole_job);

/* Ends this process with the signal's default action. */
_Noreturn void signals_die_of(int number);

#endif
