#include "programs/holdfast/child.h"

#include <errno.h>
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

/* Made before the child: it may not allocate. The first *inherited entries belong to environ. */
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
    volatile int exec_errno; /* written by the child: its memory is ours */
};

/*
 * In the child, in our memory, while this thread waits (vfork): only async-signal-safe calls, and no
 * write but to plan. No handler of ours can run here, for we have none; dispositions and the mask
 * are the child's own.
 */
static _Noreturn void become(struct plan *plan)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan->parent) /* it died before prctl */
        _exit(EXIT_FAILED);
    if (plan->lend_terminal)
        tcsetpgrp(plan->terminal->fd, getpid());
    signals_restore(plan->signals);
    execvpe(plan->argv[0], plan->argv, plan->environment);

    plan->exec_errno = errno;
    _exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* A copy of our address space, libpq's libraries and all, would take longer than a short command. */
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
        terminal_lend(terminal, *child); /* it did so itself: this is for our books */
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
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    hf_status status = start(&plan, terminal, child, err);
    *exec_errno = plan.exec_errno;
    free_environment(plan.environment, inherited);
    return status;
}
