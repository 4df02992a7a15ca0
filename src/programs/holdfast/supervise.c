#include "programs/holdfast/supervise.h"

#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    GROUP_POLL_MS = 20,       /* no event tells when the last member of a group is gone */
    AFTER_KILL_MS = 2 * 1000, /* nothing more can be done about a member that survives so long */
};

struct watch {
    const struct supervision *s;
    struct outcome outcome;
    bool reaped;
    bool ending;
    bool killed;
    bool wants_terminal; /* had it when it was stopped */
    int64_t deadline;    /* of the limit, then of the grace, then of our patience */
};

static bool group_is_alive(pid_t group)
{
    return kill(-group, 0) == 0 || errno == EPERM;
}

static void end_group(struct watch *watch, enum end_cause cause)
{
    if (watch->outcome.cause < cause)
        watch->outcome.cause = cause;
    if (watch->ending)
        return;
    watch->ending = true;
    watch->deadline = hf__deadline(watch->s->kill_ms);
    kill(-watch->s->child, SIGTERM);
    kill(-watch->s->child, SIGCONT); /* one that is stopped could not obey */
}

static void kill_group(struct watch *watch)
{
    watch->killed = true;
    watch->deadline = hf__deadline(AFTER_KILL_MS);
    kill(-watch->s->child, SIGKILL);
}

static void suspend_with_child(struct watch *watch, bool asks_terminal)
{
    struct terminal *terminal = watch->s->terminal;
    bool had_terminal = terminal->lent;

    terminal_take_back(terminal, watch->s->child);
    watch->wants_terminal = had_terminal;
    if (signals_stop_here(had_terminal))
        return; /* SIGCONT is on its way and continues the command */
    if (asks_terminal)
        return; /* continued, it would only ask again */
    if (had_terminal)
        terminal_lend(terminal, watch->s->child);
    kill(-watch->s->child, SIGCONT);
}

static void on_child_stopped(struct watch *watch, int number)
{
    struct terminal *terminal = watch->s->terminal;
    bool asks_terminal = number == SIGTTIN || number == SIGTTOU;

    if (asks_terminal && terminal_is_ours(terminal)) {
        terminal_lend(terminal, watch->s->child);
        kill(-watch->s->child, SIGCONT);
    } else if (terminal->lent || (terminal->fd >= 0 && (asks_terminal || number == SIGTSTP))) {
        suspend_with_child(watch, asks_terminal);
    }
    /* Otherwise somebody stopped the command alone, and we had better go on watching the lock. */
}

static void on_continued(struct watch *watch)
{
    struct terminal *terminal = watch->s->terminal;

    if (watch->wants_terminal && terminal_is_ours(terminal))
        terminal_lend(terminal, watch->s->child);
    kill(-watch->s->child, SIGCONT);
}

/* Orphans of the command, which we adopt, are reaped and forgotten. */
static void reap(struct watch *watch)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid != watch->s->child)
            continue;
        if (WIFSTOPPED(status)) {
            on_child_stopped(watch, WSTOPSIG(status));
            continue;
        }
        watch->reaped = true;
        watch->outcome.wait_status = status;
    }
}

static void on_signal(struct watch *watch, int number)
{
    if (number == SIGCHLD) {
        reap(watch);
        return;
    }
    if (watch->reaped)
        return;
    if (number == SIGCONT) {
        on_continued(watch);
        return;
    }
    if (number == SIGINT)
        watch->outcome.interrupted = true;
    kill(-watch->s->child, number);
}

static bool is_over(const struct watch *watch)
{
    if (!watch->reaped)
        return false;
    return !watch->ending || !group_is_alive(watch->s->child) ||
           (watch->killed && hf__left_ms(watch->deadline) == 0);
}

static void on_deadline(struct watch *watch)
{
    if (hf__left_ms(watch->deadline) != 0)
        return;
    if (!watch->ending)
        end_group(watch, END_BY_LIMIT);
    else if (!watch->killed)
        kill_group(watch);
}

/* Sleeps until a signal, a report of the store, or ms have passed; -1 means for ever. */
static void sleep_until_event(const struct supervision *s, int ms)
{
    struct pollfd events[] = {
        {.fd = s->signals->fd, .events = POLLIN},
        {.fd = hf_store_fd(s->store), .events = POLLIN},
    };

    if (poll(events, 2, ms) > 0 && events[1].revents != 0)
        hf_store_dispatch(s->store);
}

static int time_to_sleep(const struct watch *watch)
{
    int left = watch->killed && !watch->reaped ? -1 : hf__left_ms(watch->deadline);

    if (watch->ending && watch->reaped && (left < 0 || left > GROUP_POLL_MS))
        return GROUP_POLL_MS;
    return left;
}

/* What the terminal would have done, had the command been in our group. */
static void pass_interrupt_on(struct watch *watch)
{
    const struct terminal *terminal = watch->s->terminal;
    bool killed_by_it =
        WIFSIGNALED(watch->outcome.wait_status) && WTERMSIG(watch->outcome.wait_status) == SIGINT;
    bool from_keyboard = terminal->lent || (terminal->interactive && watch->outcome.interrupted);

    watch->outcome.interrupted = killed_by_it && from_keyboard;
    if (watch->outcome.interrupted && terminal->lent)
        kill(0, SIGINT);
}

struct outcome supervise(const struct supervision *supervision)
{
    struct watch watch = {
        .s = supervision,
        .deadline = supervision->limit_ms > 0 ? hf__deadline(supervision->limit_ms) : HF__FOREVER,
    };
    int number;

    /* Where process 1 reaps nobody, as in many a container, the dead would count as members left. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    while (!is_over(&watch)) {
        sleep_until_event(supervision, time_to_sleep(&watch));
        while ((number = signals_next(supervision->signals)) != 0)
            on_signal(&watch, number);
        if (*supervision->lost)
            end_group(&watch, END_BY_LOSS);
        on_deadline(&watch);
    }
    pass_interrupt_on(&watch);
    terminal_take_back(supervision->terminal, supervision->child);
    return watch.outcome;
}

static bool asks_to_end(int number)
{
    return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

void keep_lock_until(const struct supervision *supervision, int64_t deadline)
{
    int number;

    while (!*supervision->lost && hf__left_ms(deadline) != 0) {
        sleep_until_event(supervision, hf__left_ms(deadline));
        while ((number = signals_next(supervision->signals)) != 0)
            if (asks_to_end(number))
                return;
    }
}
