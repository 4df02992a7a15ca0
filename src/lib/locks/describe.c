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

static void find(hf_store *store, const hf__claim *claim, hf__holder *holder)
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

/* Without err nobody wants to know: leaves who as it is. */
static hf_status name_holder(hf_store *store, const hf__claim *claim, char who[WHO_SIZE],
                             hf_error *err)
{
    hf__holder holder;
    char name[200];
    if (!err)
        return HF_NOT_ACQUIRED;
    find(store, claim, &holder);
    describe_holder(who, WHO_SIZE, &holder);
    hf_status status = hf__fail(err, HF_NOT_ACQUIRED, HF__NOT_ACQUIRED_PREFIX "%s is held by %s",
                                hf__claim_name(name, sizeof name, claim), who);
    add_remedy(claim, &holder, err);
    return status;
}

hf_status hf__not_acquired(hf_store *store, const hf__claim *claim, hf_error *err)
{
    char who[WHO_SIZE];
    return name_holder(store, claim, who, err);
}

hf_status hf__refused(struct acquiring *acquiring, const hf__claim *claim, hf_error *err)
{
    if (acquiring->quiet)
        return HF_NOT_ACQUIRED;
    return name_holder(acquiring->store, claim, acquiring->who, err);
}

void hf__name_asker(hf_store *store, const hf__claim *claim, const hf__claim *ask, hf_error *err)
{
    hf__holder holder;
    char name[200], who[WHO_SIZE];
    find(store, ask, &holder);
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
    if (!acquiring->spec->on_wait)
        return;
    find(acquiring->store, claim, &holder);
    describe_holder(who, WHO_SIZE, &holder);
    (void)!hf__fail(&why, HF_NOT_ACQUIRED, "waiting for %s, held by %s",
                    hf__claim_name(name, sizeof name, claim), who);
    add_remedy(claim, &holder, &why);
    if (acquiring->extra && acquiring->extra->started)
        hf__started_waits(acquiring->extra->started, &why);
    else
        acquiring->spec->on_wait(&why, acquiring->spec->arg);
}
