#include "cli/append/stopping.h"

#include <signal.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/stop_signals.h"

enum { LOOK_MS = 100 };

static void *await_signal(void *arg)
{
    struct stopping *stopping = arg;
    sigset_t set = stop_signals();
    struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};

    while (!atomic_load(&stopping->over)) {
        int number = sigtimedwait(&set, NULL, &look);
        if (number <= 0 || atomic_load(&stopping->over))
            continue;
        atomic_store(&stopping->signal, number);
        if (!atomic_load(&stopping->works))
            _exit(EXIT_SIGNAL_BASE + number); /* there is nothing to undo */
        hf__halt_set(&stopping->halt, HF__HALT_ASKED);
        if (stopping->store != NULL)
            hf_store_interrupt(stopping->store);
    }
    return NULL;
}

hf_status stopping_init(struct stopping *stopping, hf_error *err)
{
    atomic_init(&stopping->over, false);
    atomic_init(&stopping->works, false);
    atomic_init(&stopping->signal, 0);
    return hf__halt_init(&stopping->halt, err);
}

hf_status stopping_start(struct stopping *stopping, hf_error *err)
{
    return pthread_create(&stopping->thread, NULL, await_signal, stopping) == 0
               ? HF_OK
               : hf__fail(err, HF_NO_MEMORY, "cannot start a thread for signals");
}

void stopping_work(struct stopping *stopping, hf_store *store)
{
    stopping->store = store;
    atomic_store(&stopping->works, true);
}

void stopping_end(struct stopping *stopping)
{
    atomic_store(&stopping->over, true);
    pthread_kill(stopping->thread, SIGHUP); /* wakes it */
    pthread_join(stopping->thread, NULL);
}
