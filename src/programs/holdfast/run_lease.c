/*
 * Acquiring a lease. Nobody but its holder gives one back before its time is over, so no signal may
 * end this process between the grant and the release. A thread awaits signals while the main thread
 * acquires, and cancels the acquire.
 */
#include "programs/holdfast/run_lease.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"

struct awaiting {
    struct lease_acquire *acquire;
    hf_cancel *cancel;
    int end; /* readable when the acquire has ended */
    pthread_t thread;
};

static void *await_signals(void *arg)
{
    const struct awaiting *awaiting = arg;
    struct lease_acquire *acquire = awaiting->acquire;
    struct pollfd events[] = {
        {.fd = awaiting->end, .events = POLLIN},
        {.fd = acquire->signals.fd, .events = POLLIN},
    };

    while (acquire->interrupted_by == 0) {
        if (poll(events, 2, -1) < 0)
            continue;
        if (events[1].revents != 0)
            acquire->interrupted_by = signals_next_end(&acquire->signals);
        if (acquire->interrupted_by == 0 && events[0].revents != 0)
            return NULL;
    }
    hf_cancel_trigger(awaiting->cancel);
    return NULL;
}

static hf_status begin(struct awaiting *awaiting, hf_error *err)
{
    hf_status status = signals_catch(&awaiting->acquire->signals, err);

    if (status == HF_OK)
        status = hf_cancel_create(&awaiting->cancel, err);
    if (status == HF_OK && (awaiting->end = eventfd(0, EFD_CLOEXEC)) < 0)
        status = hf__fail_errno(err, HF_SYSTEM, errno, "cannot make a descriptor");
    if (status != HF_OK)
        return status;
    int failed = hf__thread_start(&awaiting->thread, 0, await_signals, awaiting);
    return failed == 0
               ? HF_OK
               : hf__fail_errno(err, HF_SYSTEM, failed, "cannot start a thread for signals");
}

/* What is granted in spite of the signal must not outlive us. */
static hf_status give_back(hf_lock **lock, hf_error *err)
{
    hf_error ignored;

    if (*lock != NULL)
        (void)!hf_lock_release(*lock, &ignored);
    hf_lock_free(*lock);
    *lock = NULL;
    return hf__fail(err, HF_INTERRUPTED, "a signal ended the acquire");
}

hf_status acquire_lease(hf_store *store, struct lease_acquire *acquire, hf_lock_spec *spec,
                        hf_lock **lock, hf_error *err)
{
    struct awaiting awaiting = {.acquire = acquire, .end = -1};

    *lock = NULL;
    hf_status status = begin(&awaiting, err);
    if (status == HF_OK) {
        spec->cancel = awaiting.cancel;
        status = hf_lock_acquire(store, spec, lock, err);
        (void)eventfd_write(awaiting.end, 1);
        (void)pthread_join(awaiting.thread, NULL);
        if (acquire->interrupted_by != 0)
            status = give_back(lock, err);
    }
    spec->cancel = NULL;
    hf_cancel_free(awaiting.cancel);
    if (awaiting.end >= 0)
        close(awaiting.end);
    return status;
}

int lease_length(const struct number *given, const hf_registry_entry *entry)
{
    if (given->given)
        return (int)given->value;
    if (entry == NULL || !entry->lifetime_given || entry->lifetime != HF_LEASE)
        return 0;
    return entry->lease_ms > 0 ? entry->lease_ms : HF_LEASE_DEFAULT_MS;
}
