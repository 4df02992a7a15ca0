#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/report.h"

enum { FACTS = 4 };

static const char *const fact_names[FACTS] = {"HOLDFAST_LABEL", "HOLDFAST_KEY", "HOLDFAST_TOKEN",
                                              "HOLDFAST_SLOT"};

/* One that an outer holdfast has set says nothing about our lock. */
static bool is_fact(const char *variable)
{
    size_t length = strcspn(variable, "=");

    for (size_t i = 0; i < FACTS; i++)
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

/* Made before the fork: other threads may hold the allocator's lock. The first *inherited entries
 * belong to environ. */
static char **make_environment(const struct lock_facts *facts, size_t *inherited)
{
    const char *const values[FACTS] = {facts->label, facts->key, facts->token, facts->slot};
    size_t count = 0;

    while (environ[count] != NULL)
        count++;
    char **environment = calloc(count + FACTS + 1, sizeof *environment);
    if (environment == NULL)
        return NULL;

    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (!is_fact(environ[i]))
            environment[used++] = environ[i];
    *inherited = used;
    for (size_t i = 0; i < FACTS; i++) {
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
    int failure; /* the pipe that carries errno of exec */
};

/* Between fork and exec of a process with threads: only async-signal-safe calls. */
static _Noreturn void become(const struct plan *plan)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan->parent) /* it died before prctl */
        _exit(EXIT_FAILED);
    if (plan->lend_terminal)
        tcsetpgrp(plan->terminal->fd, getpid());
    signals_restore(plan->signals);
    execvpe(plan->argv[0], plan->argv, plan->environment);

    int reason = errno;
    if (write(plan->failure, &reason, sizeof reason) < 0)
        _exit(EXIT_FAILED);
    _exit(reason == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* 0 once the command runs: exec has closed the pipe. */
static int read_failure(int fd)
{
    int reason = 0;
    ssize_t size;

    do
        size = read(fd, &reason, sizeof reason);
    while (size < 0 && errno == EINTR);
    return size == (ssize_t)sizeof reason ? reason : 0;
}

static hf_status start(struct plan *plan, struct terminal *terminal, pid_t *child, int *exec_errno,
                       hf_error *err)
{
    char shown[SHOWN_MAX];
    int failure[2];

    if (pipe2(failure, O_CLOEXEC) != 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot make a pipe");
    plan->failure = failure[1];
    *child = fork();
    if (*child == 0)
        become(plan);
    int fork_errno = errno;
    close(failure[1]);
    if (*child < 0) {
        close(failure[0]);
        return hf__fail_errno(err, HF_SYSTEM, fork_errno, "cannot start a process");
    }

    /* Both sides set the group and the terminal, so that neither can be too early. */
    setpgid(*child, *child);
    if (plan->lend_terminal)
        terminal_lend(terminal, *child);
    *exec_errno = read_failure(failure[0]);
    close(failure[0]);
    if (*exec_errno == 0)
        return HF_OK;
    waitpid(*child, NULL, 0);
    terminal_take_back(terminal, *child);
    return hf__fail_errno(err, HF_SYSTEM, *exec_errno, "cannot run '%s'",
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
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    hf_status status = start(&plan, terminal, child, exec_errno, err);
    free_environment(plan.environment, inherited);
    return status;
}
