#ifndef HF_CLI_SUPERVISE_H
#define HF_CLI_SUPERVISE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "holdfast/holdfast.h"

/* The signals of `holdfast run`, read from a descriptor while the command runs. */

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

/*
 * The controlling terminal, which the command's process group needs while it reads from it or sets
 * its modes. All of this runs with SIGTTOU blocked.
 */

struct terminal {
    int fd;           /* -1: there is none */
    bool interactive; /* we were started in its foreground with standard input from it */
    bool lent;
};

#define TERMINAL_INIT                                                                              \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

void terminal_open(struct terminal *terminal);
void terminal_close(struct terminal *terminal);

/* Are we in its foreground process group? */
bool terminal_is_ours(const struct terminal *terminal);

/*
 * Should the command have it from the start? Not when its output is redirected: then it may be
 * part of a pipeline, whose other commands (a pager) need it, and gets it once it asks.
 */
bool terminal_wanted_at_once(const struct terminal *terminal);

void terminal_lend(struct terminal *terminal, pid_t group);

/* Leaves it alone when somebody else has it by now. */
void terminal_take_back(struct terminal *terminal, pid_t group);

/* Looks after the command while the lock is held: signals, limits, and the loss of the lock. */

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
