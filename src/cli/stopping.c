#include "cli/stopping.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"

/* A terminal that closes sends several signals. Only one that comes later is a second wish. */
enum { ONE_WISH_MS = 1000 };

static sigset_t stop_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

void block_stop_signals(void)
{
    sigset_t set = stop_signals();

    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Returns the next signal, or 0 when grace_ms have passed since the first one. */
static int await_signal(const struct stopping *stopping)
{
    sigset_t set = stop_signals();
    bool has_grace = atomic_load(&stopping->signal) != 0 && stopping->options.grace_ms > 0;
    int64_t deadline = stopping->told_ms + stopping->options.grace_ms;
    int number = -1;

    while (number <= 0) {
        int left = has_grace ? hf__left_ms(deadline) : 0;
        if (has_grace && left == 0)
            return 0;
        const struct timespec timeout = {left / 1000, left % 1000 * 1000000L};
        number = has_grace ? sigtimedwait(&set, NULL, &timeout) : sigwaitinfo(&set, NULL);
    }
    return number;
}

static void take_signal(struct stopping *stopping, int number)
{
    bool is_first = atomic_load(&stopping->signal) == 0;
    bool is_again = !is_first && hf__now_ms() - stopping->told_ms > ONE_WISH_MS;

    if (!atomic_load(&stopping->works) || (is_again && stopping->options.second_ends))
        _exit(EXIT_SIGNAL_BASE + number);
    if (!is_first)
        return;
    stopping->told_ms = hf__now_ms();
    atomic_store(&stopping->signal, number);
    if (stopping->options.second_ends)
        report_note(stopping->options.report, "told to stop: told again, it ends at once");
    hf__stop_set(&stopping->stop, HF__STOP_ASKED);
    if (stopping->store != NULL)
        hf_store_interrupt(stopping->store);
}

/*
 * If the work has not ended within the grace time, it hangs on a server that does not answer, and
 * is cut off. The server rolls back a transaction that has not committed; the next start finds one
 * that has.
 */
static void *attend_to_signals(void *arg)
{
    struct stopping *stopping = arg;

    for (;;) {
        int number = await_signal(stopping);
        if (atomic_load(&stopping->is_over))
            return NULL;
        if (number == 0)
            _exit(EXIT_OK);
        take_signal(stopping, number);
    }
}

hf_status stopping_init(struct stopping *stopping, const struct stopping_options *options,
                        hf_error *err)
{
    stopping->options = *options;
    stopping->store = NULL;
    stopping->told_ms = 0;
    atomic_init(&stopping->signal, 0);
    atomic_init(&stopping->works, false);
    atomic_init(&stopping->is_over, false);
    return hf__stop_init(&stopping->stop, err);
}

hf_status stopping_start(struct stopping *stopping, hf_error *err)
{
    return pthread_create(&stopping->thread, NULL, attend_to_signals, stopping) == 0
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
    atomic_store(&stopping->is_over, true);
    pthread_kill(stopping->thread, SIGHUP); /* wakes it from its wait */
    pthread_join(stopping->thread, NULL);
}

void stopping_destroy(struct stopping *stopping)
{
    hf__stop_destroy(&stopping->stop);
}
