#include "programs/holdfast/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/report.h"

/* ---- Signals --------------------------------------------------------------------------------- */

static const int caught[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGUSR1,
                             SIGUSR2, SIGCHLD, SIGCONT, SIGTSTP};

/* SIGPIPE: a closed stderr must not end us before the command. SIGTTOU: see struct terminal. */
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

    if (signals->fd >= 0)
        return HF_OK;
    /* When SIGCHLD is ignored, the kernel reaps children and does not keep their exit status. */
    struct sigaction *child_action = signals->left ? NULL : &signals->child_action_before;
    if (sigaction(SIGCHLD, &by_default, child_action) != 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot set up signals");

    sigemptyset(&to_read);
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
        if (!is_ignored(caught[i]))
            sigaddset(&to_read, caught[i]);
    to_block = to_read;
    for (size_t i = 0; i < sizeof blocked / sizeof blocked[0]; i++)
        sigaddset(&to_block, blocked[i]);
    if (pthread_sigmask(SIG_BLOCK, &to_block, signals->left ? NULL : &signals->mask_before) != 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot block signals");

    signals->fd = signalfd(-1, &to_read, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->fd < 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot watch signals");
    return HF_OK;
}

/* Undoes signals_catch in the child, before exec. Async-signal-safe. */
static void signals_restore(const struct signals *signals)
{
    sigaction(SIGCHLD, &signals->child_action_before, NULL);
    pthread_sigmask(SIG_SETMASK, &signals->mask_before, NULL);
}

void signals_leave(struct signals *signals)
{
    sigset_t mask = signals->mask_before;

    if (signals->fd < 0)
        return;
    close(signals->fd);
    signals->fd = -1;
    sigaction(SIGCHLD, &signals->child_action_before, NULL);
    sigaddset(&mask, SIGPIPE); /* a closed standard error must not end us now either */
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    signals->left = true;
}

/* The next signal that has arrived, or 0. Does not wait. */
static int signals_next(const struct signals *signals)
{
    struct signalfd_siginfo info;

    if (read(signals->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    return (int)info.ssi_signo;
}

/* Stops this process, or the whole job, as SIGTSTP does. False: nobody could continue it. */
static bool signals_stop_here(bool whole_job)
{
    sigset_t stop;
    sigset_t pending;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    kill(whole_job ? 0 : getpid(), SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL); /* stops here */
    pthread_sigmask(SIG_BLOCK, &stop, NULL);

    /* The kernel drops SIGTSTP when nobody could continue the group, as in a container. */
    return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
}

int signals_next_end(const struct signals *signals)
{
    int number;

    while ((number = signals_next(signals)) != 0)
        if (number == SIGTSTP)
            (void)signals_stop_here(false);
        else if (number != SIGCHLD && number != SIGCONT)
            break;
    return number;
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

/* ---- The terminal ---------------------------------------------------------------------------- */

/* Is our process group in its foreground? */
static bool terminal_is_ours(const struct terminal *terminal)
{
    return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == getpgrp();
}

void terminal_open(struct terminal *terminal)
{
    terminal->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    terminal->interactive = terminal_is_ours(terminal) && isatty(STDIN_FILENO);
}

void terminal_close(struct terminal *terminal)
{
    if (terminal->fd >= 0)
        close(terminal->fd);
    terminal->fd = -1;
}

/*
 * Should the command get it from the start? Not when its output is redirected: it may be part of a
 * pipeline whose other commands, such as a pager, need the terminal. Then it gets it when it asks.
 */
static bool terminal_wanted_at_once(const struct terminal *terminal)
{
    return terminal->interactive && isatty(STDOUT_FILENO);
}

static void terminal_lend(struct terminal *terminal, pid_t group)
{
    terminal->lent = tcsetpgrp(terminal->fd, group) == 0;
}

/* Does nothing when another group has the terminal by now. */
static void terminal_take_back(struct terminal *terminal, pid_t group)
{
    if (terminal->lent && tcgetpgrp(terminal->fd) == group)
        (void)tcsetpgrp(terminal->fd, getpgrp());
    terminal->lent = false;
}

/* ---- Starting the command -------------------------------------------------------------------- */

enum { FACTS = 6 };

/* The last one is not ours alone, and stays as it is if the lock is not traced. */
static const char *const fact_names[FACTS] = {"HOLDFAST_LABEL",       "HOLDFAST_KEY",
                                              "HOLDFAST_TOKEN",       "HOLDFAST_SLOT",
                                              "HOLDFAST_COMMAND_PID", "TRACEPARENT"};

/* One of our variables: what an outer holdfast has set is not about our lock. */
static bool is_fact(const char *variable, size_t facts)
{
    size_t length = strcspn(variable, "=");

    for (size_t i = 0; i < facts; i++)
        if (strlen(fact_names[i]) == length && memcmp(fact_names[i], variable, length) == 0)
            return true;
    return false;
}

static void free_environment(char **environment, size_t inherited)
{
    if (environment != NULL)
        for (char **v = environment + inherited; *v != NULL; v++)
            free(*v);
    free(environment);
}

/*
 * Made before the child starts, which may not allocate. The first *inherited entries are environ's.
 */
static char **make_environment(const struct lock_facts *facts, size_t *inherited)
{
    const size_t known = facts->traceparent[0] != '\0' ? FACTS : FACTS - 1;
    const char *const values[FACTS] = {facts->label, facts->key,         facts->token,
                                       facts->slot,  facts->command_pid, facts->traceparent};
    size_t count = 0;

    while (environ[count] != NULL)
        count++;
    char **environment = calloc(count + FACTS + 1, sizeof *environment);
    if (environment == NULL)
        return NULL;

    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (!is_fact(environ[i], known))
            environment[used++] = environ[i];
    *inherited = used;
    for (size_t i = 0; i < known; i++) {
        if (values[i] == NULL)
            continue;
        if (asprintf(&environment[used], "%s=%s", fact_names[i], values[i]) < 0) {
            environment[used] = NULL;
            free_environment(environment, *inherited);
            return NULL;
        }
        used++;
    }
    return environment;
}

struct plan {
    char **argv;
    char **environment;
    const struct signals *signals;
    const struct terminal *terminal;
    bool lend_terminal;
    pid_t parent;
    volatile int exec_errno; /* the child writes it: after vfork we share memory */
};

/*
 * Runs in the child, in our memory, while this thread waits (vfork). It may only make
 * async-signal-safe calls, and write only to plan. No signal handler can run here, because we have
 * none; the signal mask and dispositions are the child's own.
 */
static _Noreturn void become(struct plan *plan)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L);
    if (getppid() != plan->parent) /* the parent died before prctl */
        _exit(EXIT_FAILED);
    if (plan->lend_terminal)
        tcsetpgrp(plan->terminal->fd, getpid());
    signals_restore(plan->signals);
    execvpe(plan->argv[0], plan->argv, plan->environment);

    plan->exec_errno = errno;
    _exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* vfork, because a copy of our address space would take longer than a short command. */
static pid_t spawn(struct plan *plan)
{
    pid_t child = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)

    if (child == 0)
        become(plan); // NOLINT(clang-analyzer-unix.Vfork): it never returns
    return child;
}

static hf_status start(struct plan *plan, struct terminal *terminal, pid_t *child, hf_error *err)
{
    char shown[SHOWN_MAX];

    *child = spawn(plan);
    if (*child < 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot start a process");
    if (plan->lend_terminal)
        terminal_lend(terminal, *child); /* the child did it; this notes it here, too */
    if (plan->exec_errno == 0)
        return HF_OK;
    waitpid(*child, NULL, 0);
    terminal_take_back(terminal, *child);
    return hf__fail_errno(err, HF_SYSTEM, plan->exec_errno, "cannot run '%s'",
                          show_argument(shown, plan->argv[0]));
}

hf_status child_start(char **argv, const struct lock_facts *facts, const struct signals *signals,
                      struct terminal *terminal, pid_t *child, int *exec_errno, hf_error *err)
{
    size_t inherited = 0;
    struct plan plan = {
        .argv = argv,
        .environment = make_environment(facts, &inherited),
        .signals = signals,
        .terminal = terminal,
        .lend_terminal = terminal_wanted_at_once(terminal),
        .parent = getpid(),
    };

    *exec_errno = 0;
    if (plan.environment == NULL)
        return hf__no_memory(err);
    hf_status status = start(&plan, terminal, child, err);
    *exec_errno = plan.exec_errno;
    free_environment(plan.environment, inherited);
    return status;
}

/* ---- While the command runs ------------------------------------------------------------------ */

enum {
    GROUP_POLL_MS = 20,       /* there is no event for the end of a group's last member */
    AFTER_KILL_MS = 2 * 1000, /* a member that survives KILL so long cannot be helped */
};

struct watch {
    const struct supervision *s;
    struct outcome outcome;
    bool reaped;
    bool ending;
    bool killed;
    bool wants_terminal; /* it had the terminal when it was stopped */
    int64_t deadline;    /* of the time limit, then for TERM, then for KILL */
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
    kill(-watch->s->child, SIGCONT); /* a stopped process cannot act on TERM */
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
        return; /* SIGCONT is pending and will continue the command */
    if (asks_terminal)
        return; /* if continued, it would only ask again */
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
    /* Otherwise someone stopped only the command, and we go on watching the lock. */
}

static void on_continued(struct watch *watch)
{
    struct terminal *terminal = watch->s->terminal;

    if (watch->wants_terminal && terminal_is_ours(terminal))
        terminal_lend(terminal, watch->s->child);
    kill(-watch->s->child, SIGCONT);
}

/* We also adopt the command's orphans: they are reaped and forgotten. */
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

static bool asks_to_end(int number)
{
    return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

static void on_signal(struct watch *watch, int number)
{
    if (number == SIGCHLD) {
        reap(watch);
        return;
    }
    watch->outcome.asked_to_end |= asks_to_end(number);
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

/* Sleeps until a signal, an event of the store, or for ms; -1 is for ever. */
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

/* Does what the terminal would have done if the command were in our group. */
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

    /*
     * In many containers process 1 reaps nobody, and the dead would count as members of the group.
     */
    prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L); /* it reads all five */
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
