/* What the files of `holdfast run` share. */
#ifndef HF_PROGRAMS_HOLDFAST_RUN_H
#define HF_PROGRAMS_HOLDFAST_RUN_H

#include "cli/options.h"
#include "cli/spans.h"
#include "programs/holdfast/label.h"
#include "programs/holdfast/run_lease.h"

struct run_values {
    bool no_wait;
    struct number wait;
    bool shared;
    struct number slots;
    struct number lease;
    struct number key;
    const char *derivation;
    bool unregistered;
    struct number conflict_exit_code;
    struct number time_limit;
    struct number kill_after;
    struct number every;
    struct number at_least;
    struct number ping;
    struct number ping_deadline;
    struct number patience;
    bool reacquire;
    bool leader;
    const char *on_gain;
    const char *on_loss;
    bool ask;
    const char *on_yield;
    const char *title;
    const char *ready_file;
    const char *spans;
    const char *ready_http;
};

struct run {
    struct lease_acquire acquire;
    struct run_values values;
    struct invocation in;
    hf_registry *registry; /* NULL: none */
    struct named_lock lock_name;
    hf_target target;
    char **command;
    char name[128]; /* the label, safe to print */
    char title[64]; /* as whom others see it */
    hf_store *store;
    hf_lock *lock;
    struct ready_http *http; /* NULL: nobody asked for it */
    struct span_file spans;
    int64_t acquired_at;
    bool lost;
    hf_error why_lost; /* a loss that is not reported yet, unless its code is HF_OK */
    struct terminal terminal;
    int64_t pause_ms;  /* before the next acquire, after a loss */
    bool asked_to_end; /* by a signal that the command was given */
    pid_t child;       /* the command while it runs, or 0 */
    bool asked_for;    /* a successor wants the lock */
    bool has_asked;    /* for the lock, as --ask says: once is enough */
};

/* Is it a signal, but none that --on-yield sends? */
bool is_wrong_signal(const char *text);

/* Holds the lock while the command runs, again and again if it is to. Returns the exit status. */
int run_under_lock(struct run *run);

#endif
