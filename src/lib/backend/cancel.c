/* Handles by which a caller ends calls of its own from another thread. */
#include "lib/backend/cancel.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"

struct hf_cancel {
    atomic_bool is_triggered;
    int fd;
    pthread_mutex_t mutex;
    hf__cancellable *calls; /* that run now */
};

hf_status hf_cancel_create(hf_cancel **cancel, hf_error *err)
{
    if (cancel == NULL)
        return hf__fail(err, HF_INVALID, "hf_cancel_create needs a place for the handle");
    *cancel = NULL;
    struct hf_cancel *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hf__no_memory(err);
    made->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made->fd < 0) {
        hf_status status = hf__fail_errno(err, HF_SYSTEM, errno, "cannot make a cancel handle");
        free(made);
        return status;
    }
    pthread_mutex_init(&made->mutex, NULL);
    *cancel = made;
    return HF_OK;
}

void hf_cancel_free(hf_cancel *cancel)
{
    if (cancel == NULL)
        return;
    close(cancel->fd);
    pthread_mutex_destroy(&cancel->mutex);
    free(cancel);
}

/* The flag comes before the wake-ups: whoever looks after its wake-up sees it. */
void hf_cancel_trigger(hf_cancel *cancel)
{
    uint64_t one = 1;

    if (cancel == NULL)
        return;
    atomic_store(&cancel->is_triggered, true);
    (void)!write(cancel->fd, &one, sizeof one);
    pthread_mutex_lock(&cancel->mutex);
    for (hf__cancellable *call = cancel->calls; call != NULL; call = call->next)
        call->wake(call->arg);
    pthread_mutex_unlock(&cancel->mutex);
}

bool hf_cancel_is_triggered(const hf_cancel *cancel)
{
    return hf__is_cancelled(cancel);
}

bool hf__is_cancelled(const hf_cancel *cancel)
{
    return cancel != NULL && atomic_load(&cancel->is_triggered);
}

int hf__cancel_fd(const hf_cancel *cancel)
{
    return cancel != NULL ? cancel->fd : -1;
}

void hf__cancel_enter(hf_cancel *cancel, hf__cancellable *call)
{
    if (cancel == NULL)
        return;
    pthread_mutex_lock(&cancel->mutex);
    call->next = cancel->calls;
    cancel->calls = call;
    pthread_mutex_unlock(&cancel->mutex);
}

void hf__cancel_leave(hf_cancel *cancel, hf__cancellable *call)
{
    if (cancel == NULL)
        return;
    pthread_mutex_lock(&cancel->mutex);
    hf__cancellable **at = &cancel->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    pthread_mutex_unlock(&cancel->mutex);
}
