/* Who is in the way, in one line. */
#include "lib/locks/engine.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/time.h"

/* Mutex not held. Finds a holder in this process. */
static bool holder_inside(hf_store *store, const hf__claim *claim, hf__holder *holder)
{
    memset(holder, 0, sizeof *holder);
    pthread_mutex_lock(&store->mutex);
    struct key_state *key_state = hf__key_state_get(store, claim);
    for (struct grant *grant = key_state ? key_state->grants : NULL; grant; grant = grant->next) {
        if (claim->mode == HF_SHARED && grant->claim.mode == HF_SHARED)
            continue;
        holder->found = true;
        if (grant->claim.traceparent)
            memcpy(holder->traceparent, grant->claim.traceparent, HF_TRACEPARENT_SIZE);
        holder->age_ms =
            grant->lock->acquired_wall ? hf__wall_ms() - grant->lock->acquired_wall : 0;
    }
    if (key_state)
        hf__key_state_admit(store, key_state); /* frees it if the search has just made it */
    pthread_mutex_unlock(&store->mutex);
    if (!holder->found)
        return false;
    (void)snprintf(holder->application, sizeof holder->application, "%s", store->application);
    (void)snprintf(holder->host, sizeof holder->host, "%s", store->host);
    holder->pid = (int)getpid();
    return true;
}

static void describe_since(char *out, size_t out_size, const hf__holder *holder)
{
    char age[48], clock_text[32];
    struct tm parts;
    out[0] = '\0';
    if (holder->age_ms < 0)
        return;
    time_t since = (time_t)((hf__wall_ms() - holder->age_ms) / 1000);
    if (!localtime_r(&since, &parts))
        return;
    bool long_ago = holder->age_ms > INT64_C(20) * 3600 * 1000;
    (void)strftime(clock_text, sizeof clock_text, long_ago ? "%Y-%m-%d %H:%M" : "%H:%M", &parts);
    (void)snprintf(out, out_size, "%s %s, %s",
                   holder->age_is_bound ? ", connected since" : " since", clock_text,
                   hf__show_duration(age, sizeof age, holder->age_ms));
}

static void describe_holder(char *out, size_t out_size, const hf__holder *holder)
{
    char where[300] = "", pid[48] = "", since[128];
    if (!holder->found) {
        (void)snprintf(out, out_size, "another session");
        return;
    }
    if (holder->host[0])
        (void)snprintf(where, sizeof where, " on %s", holder->host);
    if (holder->pid)
        (void)snprintf(pid, sizeof pid, " (pid %d)", holder->pid);
    else if (holder->backend_pid)
        (void)snprintf(pid, sizeof pid, " (backend pid %d)", holder->backend_pid);
    describe_since(since, sizeof since, holder);
    (void)snprintf(out, out_size, "%s%s%s%s%s",
                   holder->application[0] ? holder->application : "another session", where, pid,
                   since,
                   holder->checks_lease ? ", by a transaction under a lease that is over" : "");
}

void hf__find_holder(hf_store *store, const hf__claim *claim, hf__holder *holder)
{
    hf_error ignored;
    if (!holder_inside(store, claim, holder))
        (void)!store->backend->ops->find_holder(store->backend, claim, holder, &ignored);
}

static void add_remedy(const hf__claim *claim, const hf__holder *holder, hf_error *err)
{
    if (holder->backend_pid)
        hf__hint(err, "key %lld; wait for it, or end the holder: SELECT pg_terminate_backend(%d)",
                 (long long)claim->key, holder->backend_pid);
    else if (holder->term)
        hf__hint(err,
                 "key %lld; wait for it, or end the lease: SELECT holdfast.end_lease(%lld, %lld%s)",
                 (long long)claim->key, (long long)claim->key, (long long)holder->term,
                 claim->space == HF_PAIR ? ", 1" : "");
    else
        hf__hint(err, "key %lld; wait for it, or end the holder", (long long)claim->key);
}

static hf_status name_holder(const hf__claim *claim, const hf__holder *holder, char who[WHO_SIZE],
                             hf_error *err)
{
    char name[200];
    describe_holder(who, WHO_SIZE, holder);
    hf_status status = hf__fail(err, HF_NOT_ACQUIRED, HF__NOT_ACQUIRED_PREFIX "%s is held by %s",
                                hf__claim_name(name, sizeof name, claim), who);
    add_remedy(claim, holder, err);
    return status;
}

hf_status hf__not_acquired(hf_store *store, const hf__claim *claim, hf_error *err)
{
    hf__holder holder;
    char who[WHO_SIZE];
    if (!err) /* nobody wants to know */
        return HF_NOT_ACQUIRED;
    hf__find_holder(store, claim, &holder);
    return name_holder(claim, &holder, who, err);
}

/* Is the holder wanted for the span of the wait? */
static bool is_traced(const struct acquiring *acquiring)
{
    const struct hf__trace *trace = acquiring->lock->trace;
    return trace && trace->told;
}

hf_status hf__refused(struct acquiring *acquiring, const hf__claim *claim, hf_error *err)
{
    hf__holder holder;
    if (acquiring->quiet || (!err && !is_traced(acquiring)))
        return HF_NOT_ACQUIRED;
    hf__find_holder(acquiring->store, claim, &holder);
    hf__trace_holder(acquiring->lock->trace, &holder);
    return name_holder(claim, &holder, acquiring->who, err);
}

void hf__name_asker(hf_store *store, const hf__claim *claim, const hf__claim *ask, hf_error *err)
{
    hf__holder holder;
    char name[200], who[WHO_SIZE];
    hf__find_holder(store, ask, &holder);
    holder.age_ms = -1; /* how long it has asked does not matter */
    describe_holder(who, WHO_SIZE, &holder);
    (void)!hf__fail(err, HF_NOT_ACQUIRED, "%s is wanted by %s",
                    hf__claim_name(name, sizeof name, claim), who);
    hf__hint(err, "release it when what it protects is done, and it goes there; or go on");
}

void hf__tell_waiting(struct acquiring *acquiring, const hf__claim *claim)
{
    hf__holder holder;
    hf_error why;
    char name[200], who[WHO_SIZE];
    if (acquiring->told)
        return;
    acquiring->told = true;
    hf__note(acquiring->lock, HF__EVENT_CONFLICT, hf__now_ms() - acquiring->began, -1);
    if (acquiring->lock->trace) {
        acquiring->lock->trace->waited = true;
        acquiring->lock->trace->awaited = *claim;
    }
    if (!acquiring->spec->on_wait && !is_traced(acquiring))
        return;
    hf__find_holder(acquiring->store, claim, &holder);
    hf__trace_holder(acquiring->lock->trace, &holder);
    if (!acquiring->spec->on_wait)
        return;
    describe_holder(who, WHO_SIZE, &holder);
    (void)!hf__fail(&why, HF_NOT_ACQUIRED, "waiting for %s, held by %s",
                    hf__claim_name(name, sizeof name, claim), who);
    add_remedy(claim, &holder, &why);
    if (acquiring->extra && acquiring->extra->started)
        hf__started_waits(acquiring->extra->started, &why);
    else
        acquiring->spec->on_wait(&why, acquiring->spec->arg);
}
