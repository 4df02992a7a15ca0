#include "cli/ingest_stopping.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/stopping.h"

enum { GRACE_MS = 1700, LOOK_MS = 100 };

/*
 * What hangs on a server that does not answer is cut off: a transaction that has not committed is rolled
 * back with its session, and one that has is found in the store by the next start.
 */
static void wait_for_end(struct stopping *stopping)
{
    int64_t deadline = hf__deadline(GRACE_MS);
    struct timespec look = {.tv_nsec = LOOK_MS * 1000000L / 10};

    while (!atomic_load(&stopping->over) && hf__left_ms(deadline) > 0)
        (void)nanosleep(&look, NULL);
    if (!atomic_load(&stopping->over))
        _exit(EXIT_OK);
}

static void *await_signal(void *arg)
{
    struct stopping *stopping = arg;
    sigset_t set = stop_signals();
    struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};

    while (!atomic_load(&stopping->over)) {
        if (sigtimedwait(&set, NULL, &look) < 0)
            continue;
        hf__stop_set(&stopping->stop, HF__STOP_ASKED);
        if (stopping->store != NULL)
            hf_store_interrupt(stopping->store);
        wait_for_end(stopping);
    }
    return NULL;
}

hf_status stopping_start(struct stopping *stopping, hf_store *store, hf_error *err)
{
    hf_status status = hf__stop_init(&stopping->stop, err);

    atomic_init(&stopping->over, false);
    stopping->store = store;
    if (status == HF_OK && pthread_create(&stopping->thread, NULL, await_signal, stopping) != 0) {
        hf__stop_destroy(&stopping->stop);
        status = hf__fail(err, HF_NO_MEMORY, "cannot start a thread for signals");
    }
    return status;
}

void stopping_end(struct stopping *stopping)
{
    atomic_store(&stopping->over, true);
    pthread_join(stopping->thread, NULL);
    hf__stop_destroy(&stopping->stop);
}
