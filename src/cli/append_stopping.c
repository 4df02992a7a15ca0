#include "cli/append_stopping.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/stopping.h"

enum { LOOK_MS = 100, ONE_WISH_MS = 1000 };

/* A terminal that goes away tells it more than once; who means it says so again after a while. */
static void take(struct stopping *stopping, int number)
{
    bool is_first = atomic_load(&stopping->signal) == 0;

    if (!atomic_load(&stopping->works)) /* there is nothing to undo */
        _exit(EXIT_SIGNAL_BASE + number);
    if (!is_first && hf__now_ms() - stopping->told_ms > ONE_WISH_MS) /* or no time for it */
        _exit(EXIT_SIGNAL_BASE + number);
    if (!is_first)
        return;
    atomic_store(&stopping->signal, number);
    stopping->told_ms = hf__now_ms();
    report_note(stopping->report, "told to stop: told again, it ends at once");
    hf__stop_set(&stopping->stop, HF__STOP_ASKED);
    if (stopping->store != NULL)
        hf_store_interrupt(stopping->store);
}

static void *await_signal(void *arg)
{
    struct stopping *stopping = arg;
    sigset_t set = stop_signals();
    struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};

    while (!atomic_load(&stopping->over)) {
        int number = sigtimedwait(&set, NULL, &look);
        if (number <= 0 || atomic_load(&stopping->over))
            continue;
        take(stopping, number);
    }
    return NULL;
}

hf_status stopping_init(struct stopping *stopping, const struct report *report, hf_error *err)
{
    stopping->report = report;
    atomic_init(&stopping->over, false);
    atomic_init(&stopping->works, false);
    atomic_init(&stopping->signal, 0);
    return hf__stop_init(&stopping->stop, err);
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
