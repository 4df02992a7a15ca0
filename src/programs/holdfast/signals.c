#include "programs/holdfast/signals.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"

static const int caught[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGUSR1,
                             SIGUSR2, SIGCHLD, SIGCONT, SIGTSTP};

/* SIGPIPE: a closed stderr must not end us before the command is ended. SIGTTOU: see terminal.h. */
static const int blocked[] = {SIGPIPE, SIGTTOU};

static bool is_ignored(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

hf_status signals_catch(struct signals *signals, hf_error *err)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t to_read;
    sigset_t to_block;

    /* While SIGCHLD is ignored, the kernel reaps children and forgets how they ended. */
    if (sigaction(SIGCHLD, &by_default, &signals->child_action_before) != 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot set up signals");

    sigemptyset(&to_read);
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
        if (!is_ignored(caught[i]))
            sigaddset(&to_read, caught[i]);
    to_block = to_read;
    for (size_t i = 0; i < sizeof blocked / sizeof blocked[0]; i++)
        sigaddset(&to_block, blocked[i]);
    if (pthread_sigmask(SIG_BLOCK, &to_block, &signals->mask_before) != 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot block signals");

    signals->fd = signalfd(-1, &to_read, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->fd < 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot watch signals");
    return HF_OK;
}

void signals_restore(const struct signals *signals)
{
    sigaction(SIGCHLD, &signals->child_action_before, NULL);
    pthread_sigmask(SIG_SETMASK, &signals->mask_before, NULL);
}

int signals_next(const struct signals *signals)
{
    struct signalfd_siginfo info;

    if (read(signals->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    return (int)info.ssi_signo;
}

bool signals_stop_here(bool whole_job)
{
    sigset_t stop;
    sigset_t pending;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    kill(whole_job ? 0 : getpid(), SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL); /* stops here */
    pthread_sigmask(SIG_BLOCK, &stop, NULL);

    /* The kernel drops SIGTSTP for a group that nobody could continue, as in a container. */
    return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
}

void signals_die_of(int number)
{
    sigset_t mask;

    signal(number, SIG_DFL);
    sigemptyset(&mask);
    sigaddset(&mask, number);
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
    raise(number);
    _exit(128 + number);
}
