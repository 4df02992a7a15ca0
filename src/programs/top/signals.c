#include "programs/top/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/error.h"

enum { BY_SIGNAL = 128 };

static sigset_t awaited(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&set, numbers[i]);
    return set;
}

static bool stops(int number)
{
    return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

static void *await_signals(void *arg)
{
    hf__signals *signals = arg;
    sigset_t set = awaited();

    while (!atomic_load(&signals->over)) {
        int number = sigwaitinfo(&set, NULL);
        if (number <= 0 || atomic_load(&signals->over))
            continue;
        if (!atomic_load(&signals->works) && stops(number))
            _exit(BY_SIGNAL + number);
        unsigned char byte = (unsigned char)number;
        (void)!write(signals->write_fd, &byte, 1); /* a full pipe wakes the reader too */
    }
    return NULL;
}

hf_status hf__signals_start(hf__signals *signals, hf_error *err)
{
    sigset_t set = awaited();
    int ends[2];

    atomic_init(&signals->works, false);
    atomic_init(&signals->over, false);
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return hf__fail(err, HF_SYSTEM, "cannot make a pipe for signals");
    signals->fd = ends[0];
    signals->write_fd = ends[1];
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (pthread_create(&signals->thread, NULL, await_signals, signals) == 0)
        return HF_OK;
    close(ends[0]);
    close(ends[1]);
    return hf__fail(err, HF_NO_MEMORY, "cannot start a thread for signals");
}

void hf__signals_work(hf__signals *signals)
{
    atomic_store(&signals->works, true);
}

void hf__signals_end(hf__signals *signals)
{
    atomic_store(&signals->over, true);
    pthread_kill(signals->thread, SIGWINCH); /* wakes it */
    pthread_join(signals->thread, NULL);
    close(signals->fd);
    close(signals->write_fd);
}

int hf__signals_next(hf__signals *signals)
{
    unsigned char number = 0;

    return read(signals->fd, &number, 1) == 1 ? number : 0;
}

void hf__signals_stop_here(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    signal(SIGTSTP, SIG_DFL); /* ncurses has a handler of its own, which is not for threads */
    raise(SIGTSTP);           /* stays pending until it is unblocked */
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}
