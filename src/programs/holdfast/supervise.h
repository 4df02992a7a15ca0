#ifndef HF_CLI_SUPERVISE_H
#define HF_CLI_SUPERVISE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "holdfast/holdfast.h"

/*
 * What `holdfast run` needs to look after its command: signals, the terminal, starting the command,
 * and ending it when its lock is lost. All of it runs in the main thread.
 */

/* ---- Signals, read from a descriptor while the command runs ---------------------------------- */

struct signals {
    int fd;
    sigset_t mask_before;
    struct sigaction child_action_before;
    bool left; /* they were caught and left before: what was before that is known */
};

#define SIGNALS_INIT                                                                               \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/*
 * From now on signals arrive on fd: see `caught` in supervise.c. A signal that was ignored stays
 * ignored. Does nothing if they are caught. HF_SYSTEM: it cannot be set up.
 */
HF_MUST_CHECK hf_status signals_catch(struct signals *signals, hf_error *err);

/* Signals have the effect again that they had before signals_catch. */
void signals_leave(struct signals *signals);

/*
 * The next one that would have ended this process, if it were not caught, or 0. Does not wait.
 * Stops here at SIGTSTP. For as long as there is no command to pass signals on to.
 */
int signals_next_end(const struct signals *signals);

/* Ends this process with the signal's default action. */
_Noreturn void signals_die_of(int number);

/* ---- The terminal ---------------------------------------------------------------------------- */

/*
 * The controlling terminal. The command's process group must be in its foreground to read from it
 * or to set its modes. SIGTTOU is blocked throughout.
 */

struct terminal {
    int fd;           /* -1: there is none */
    bool interactive; /* we were started in its foreground, with standard input from it */
    bool lent;        /* the command's group has it */
};

#define TERMINAL_INIT                                                                              \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

void terminal_open(struct terminal *terminal);
void terminal_close(struct terminal *terminal);

/* ---- The command ----------------------------------------------------------------------------- */

struct supervision {
    hf_store *store;
    const struct signals *signals;
    struct terminal *terminal;
    const bool *lost; /* on_lost of the lock sets it, during hf_store_dispatch */
    pid_t child;
    int64_t limit_ms; /* 0: none */
    int64_t kill_ms;  /* between TERM and KILL */
};

/* In order of weight: a loss counts more than a time limit. */
enum end_cause {
    END_BY_ITSELF,
    END_BY_LIMIT,
    END_BY_LOSS,
};

struct outcome {
    enum end_cause cause;
    int wait_status;   /* from waitpid */
    bool interrupted;  /* from the keyboard: our parent should see us die of SIGINT */
    bool asked_to_end; /* somebody wants the command to end, and us with it */
};

/*
 * Returns when the command has ended. When the lock is lost, or the time limit is reached, the
 * whole process group gets TERM, and KILL if any of it is left kill_ms later.
 */
struct outcome supervise(const struct supervision *supervision);

/* Keeps the lock until the deadline, its loss, or one of TERM, INT, HUP and QUIT. */
void keep_lock_until(const struct supervision *supervision, int64_t deadline);

/* What the command learns about its lock, in HOLDFAST_LABEL and the like. NULL: not set. */
struct lock_facts {
    const char *label;
    const char *key;
    const char *token;
    const char *slot;
    const char *traceparent; /* "": the command inherits what we were given */
    const char *command_pid; /* for a command that runs beside the one under the lock */
};

/*
 * Starts argv as the leader of a new process group. It dies with us (PR_SET_PDEATHSIG). When it
 * cannot be executed the status is HF_SYSTEM and *exec_errno says why; otherwise *exec_errno is 0.
 */
HF_MUST_CHECK hf_status child_start(char **argv, const struct lock_facts *facts,
                                    const struct signals *signals, struct terminal *terminal,
                                    pid_t *child, int *exec_errno, hf_error *err);

#endif
