/* `holdfast run` from acquire to release: the hooks, the command, and all again after a loss. */
#include "programs/holdfast/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/choice.h"
#include "cli/notify.h"
#include "programs/holdfast/ready_http.h"

/* ---- readiness ------------------------------------------------------------------------------- */

/* Only what may be ours: somebody may have named a device. */
static void remove_ready_file(const struct run *run)
{
    const char *path = run->values.ready_file;
    struct stat found;

    if (path != NULL && lstat(path, &found) == 0 && S_ISREG(found.st_mode))
        (void)unlink(path);
}

static void set_unready(const struct run *run)
{
    ready_http_answer_for(run->http, NULL);
    remove_ready_file(run);
}

/* Whoever watches the file must never see it while somebody else may hold the lock. */
static hf_status set_ready(const struct run *run, hf_error *err)
{
    const char *path = run->values.ready_file;
    int64_t token = 0;
    char shown[SHOWN_MAX];

    notify_service_manager("READY=1\nSTATUS=holding '%s'", run->name);
    ready_http_answer_for(run->http, run->lock);
    if (path == NULL)
        return HF_OK;
    if (hf_lock_token(run->lock, &token, NULL) != HF_OK)
        token = 0;
    remove_ready_file(run);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || dprintf(fd, "%s %" PRId64 "\n", run->name, token) < 0) {
        hf_status status = hf__fail_errno(err, HF_SYSTEM, errno, "cannot write the file %s",
                                          show_argument(shown, path));
        if (fd >= 0)
            close(fd);
        return status;
    }
    close(fd);
    return HF_OK;
}

/* ---- starting a command -------------------------------------------------------------------- */

static hf_status start_child(struct run *run, char **argv, struct terminal *terminal, pid_t *child,
                             int *exec_errno, hf_error *err)
{
    char key[24], token[24], slot[24], pid[24];
    int64_t number = 0;
    struct lock_facts facts = {.label = run->target.label, .key = key};

    facts.traceparent = hf_lock_traceparent(run->lock);
    snprintf(key, sizeof key, "%" PRId64, hf_lock_key(run->lock));
    if (hf_lock_token(run->lock, &number, NULL) == HF_OK) {
        snprintf(token, sizeof token, "%" PRId64, number);
        facts.token = token;
    }
    if (hf_lock_slot(run->lock) > 0) {
        snprintf(slot, sizeof slot, "%u", hf_lock_slot(run->lock));
        facts.slot = slot;
    }
    if (run->child != 0) {
        snprintf(pid, sizeof pid, "%d", (int)run->child);
        facts.command_pid = pid;
    }
    return child_start(argv, &facts, &run->acquire.signals, terminal, child, exec_errno, err);
}

/* ---- the lock -------------------------------------------------------------------------------- */

static void report_loss(struct run *run)
{
    if (run->why_lost.code != HF_OK)
        report_error(&run->in.report, &run->why_lost);
    run->why_lost.code = HF_OK;
}

static void on_lost(hf_lock *lock, const hf_error *why, void *arg)
{
    struct run *run = arg;

    (void)lock;
    set_unready(run);
    run->lost = true;
    run->why_lost = *why;
    if (!report_would_block()) /* else we end the command first */
        report_loss(run);
}

/* "TERM" or "SIGTERM"; 0: it is no signal of these, but a command. */
static int signal_of(const char *text)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"TERM", SIGTERM}, {"INT", SIGINT},   {"HUP", SIGHUP},
                   {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};
    const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (strcmp(signals[i].name, name) == 0)
            return signals[i].number;
    return 0;
}

bool is_wrong_signal(const char *text)
{
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    bool is_signal = name[0] != '\0' && strspn(name, "0123456789") == strlen(name);

    for (int number = 1; number < NSIG && !is_signal; number++) {
        const char *known = sigabbrev_np(number);
        is_signal = known != NULL && strcasecmp(known, name) == 0;
    }
    return is_signal && signal_of(text) == 0;
}

/* The command ends by itself, in its own time: whoever is asked may also go on. */
static void pass_ask_on(struct run *run)
{
    int number = signal_of(run->values.on_yield);
    char *argv[] = {"/bin/sh", "-c", (char *)(uintptr_t)run->values.on_yield, NULL};
    struct terminal none = TERMINAL_INIT;
    int exec_errno = 0;
    pid_t hook = 0;
    hf_error err;

    if (number == 0) {
        if (start_child(run, argv, &none, &hook, &exec_errno, &err) != HF_OK)
            report_error(&run->in.report, &err);
        return;
    }
    kill(-run->child, number);
    kill(-run->child, SIGCONT); /* a stopped process cannot act on it */
}

static void on_yield(hf_lock *lock, const hf_error *who, void *arg)
{
    struct run *run = arg;

    (void)lock;
    report_note(&run->in.report, "%s", who->message);
    run->asked_for = true;
    if (run->child != 0)
        pass_ask_on(run);
}

static void on_wait(const hf_error *why, void *arg)
{
    const struct run *run = arg;

    report_note(&run->in.report, "%s", why->message);
    notify_service_manager("STATUS=%s", why->message);
}

/*
 * From TERM to KILL. Of a lease the loss is told at most a third of its length before another may
 * have it, and all of the command must have ended by then.
 */
static int64_t kill_after(const struct run *run)
{
    enum { SLACK_MS = 100 };
    int64_t wanted = run->values.kill_after.value;
    int64_t length = lease_length(&run->values.lease, run->lock_name.entry);
    int64_t most = length / 3 - SLACK_MS;

    return length > 0 && most < wanted ? most : wanted;
}

/* A server that does not answer must not cost more than the time that was given, or a second. */
static int connect_timeout(const struct run_values *values)
{
    enum { LEAST_MS = 1000, MOST_MS = 10000 };
    int64_t most = MOST_MS;

    if (values->wait.given && values->wait.value < most)
        most = values->wait.value;
    if (values->patience.given && values->patience.value < most)
        most = values->patience.value;
    return most < LEAST_MS ? LEAST_MS : (int)most;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static bool is_file(const char *path)
{
    struct stat found;

    return path != NULL && path[0] != '-' && stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

/*
 * "backup.sh (holdfast run)". Arguments may be secrets, so that none is shown, except a first one
 * that is a file: what an interpreter runs.
 */
static const char *make_title(struct run *run)
{
    static const char by[] = " (holdfast run)";
    char *const *command = run->command;
    char job[sizeof run->title - sizeof by + 1];
    hf__buf text = {0};

    hf__buf_puts(&text, run->values.title != NULL ? run->values.title : base_name(command[0]));
    if (run->values.title == NULL && is_file(command[1]))
        hf__buf_printf(&text, " %s", base_name(command[1]));
    if (text.broken)
        return "holdfast run";
    hf__show(job, sizeof job, text.data, text.length);
    (void)snprintf(run->title, sizeof run->title, "%s%s", job, by);
    hf__buf_free(&text);
    return run->title;
}

static hf_status open_for_run(struct run *run, hf_error *err)
{
    const struct run_values *values = &run->values;
    hf_store_options options = HF_STORE_OPTIONS_INIT;

    options.application = make_title(run);
    options.ping_interval_ms = (int)values->ping.value;
    options.ping_deadline_ms = (int)values->ping_deadline.value;
    options.kill_ms = values->kill_after.value > 0 ? (int)values->kill_after.value : 1;
    options.dispatch = true;
    options.registry = run->registry;
    options.connect_timeout_ms = connect_timeout(values);
    options.patience_ms = values->leader && !values->patience.given ? -1
                          : values->patience.value > 0              ? values->patience.value
                          : values->patience.given                  ? 1
                                                                    : 0;
    hf_status status = span_file_open(&run->spans, values->spans, &run->in.report, &options, err);
    return status == HF_OK ? open_store(&run->in, &options, &run->store, err) : status;
}

/* As a wait does: a server that refuses the user or the database will not come back otherwise. */
static bool may_come_back(const hf_error *err)
{
    return err->code == HF_UNREACHABLE && strncmp(err->sqlstate, "28", 2) != 0 &&
           strncmp(err->sqlstate, "3D", 2) != 0 && strncmp(err->sqlstate, "42", 2) != 0;
}

/* Only who asks for patience waits for a server that was not there to begin with. */
static hf_status open_patiently(struct run *run, hf_error *err)
{
    enum { PAUSE_MS = 500 };
    const struct run_values *values = &run->values;
    int64_t until = values->patience.given ? hf__deadline(values->patience.value)
                    : values->leader       ? HF__FOREVER
                                           : hf__now_ms();
    int64_t waits_until = values->wait.given ? hf__deadline(values->wait.value) : HF__FOREVER;
    if (waits_until < until)
        until = waits_until;
    hf_status status = open_for_run(run, err);
    bool away = status != HF_OK && may_come_back(err) && hf__left_ms(until) != 0;

    if (away)
        report_warning(&run->in.report, "%s; waiting for it", err->message);
    while (status != HF_OK && may_come_back(err) && hf__left_ms(until) != 0) {
        (void)poll(NULL, 0, PAUSE_MS);
        status = open_for_run(run, err);
    }
    if (away && status == HF_OK)
        report_note(&run->in.report, "%s answers", hf_store_name(run->store));
    return status;
}

static hf_status acquire(struct run *run, hf_error *err)
{
    const struct run_values *values = &run->values;
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;

    spec.targets = &run->target;
    spec.target_count = 1;
    spec.mode = values->shared ? HF_SHARED : HF_EXCLUSIVE;
    spec.slots = (unsigned)values->slots.value;
    spec.lease_ms = lease_length(&values->lease, run->lock_name.entry);
    spec.lifetime = spec.lease_ms > 0 ? HF_LEASE : HF_SESSION;
    if (values->ask && !run->has_asked)
        spec.flags |= HF_ASK;
    spec.on_yield = values->on_yield != NULL ? on_yield : NULL;
    spec.on_lost = on_lost;
    spec.on_wait = on_wait;
    spec.arg = run;
    spec.traceparent = getenv("TRACEPARENT");
    if (values->no_wait || values->every.given)
        spec.wait_ms = 0;
    else if (values->wait.given)
        spec.wait_ms = values->wait.value;
    hf_status status = spec.lease_ms > 0
                           ? acquire_lease(run->store, &run->acquire, &spec, &run->lock, err)
                           : hf_lock_acquire(run->store, &spec, &run->lock, err);
    run->acquired_at = hf__now_ms();
    run->has_asked = true; /* two who yield to each other must not ask each time */
    return status;
}

static int skip(const struct run *run, const char *why)
{
    report_note(&run->in.report, "skipped: %s", why);
    return (int)run->values.conflict_exit_code.value;
}

static int on_not_acquired(const struct run *run, const hf_error *err)
{
    if (run->values.every.given && err->code == HF_NOT_ACQUIRED) /* no failure: it skips */
        return skip(run, hf__error_detail(err));
    int code = report_error(&run->in.report, err);
    if (code == EXIT_NOT_ACQUIRED && run->values.conflict_exit_code.given)
        code = (int)run->values.conflict_exit_code.value;
    return code;
}

/* Records the start before the command runs: a crash in between counts as a run. */
static bool is_due(const struct run *run, int *code)
{
    char left[32];
    char why[sizeof run->name + 64];
    bool due = false;
    int64_t wait_ms = 0;
    hf_error err;

    hf_status status = hf_schedule_claim(run->store, run->target.label, run->values.every.value,
                                         &due, &wait_ms, &err);
    if (status != HF_OK) {
        *code = report_error(&run->in.report, &err);
        return false;
    }
    if (!due) {
        snprintf(why, sizeof why, "'%s' is not due for another %s", run->name,
                 hf__show_duration(left, sizeof left, wait_ms));
        *code = skip(run, why);
    }
    return due;
}

static int exit_code_of_child(int wait_status)
{
    return WIFSIGNALED(wait_status) ? EXIT_SIGNAL_BASE + WTERMSIG(wait_status)
                                    : WEXITSTATUS(wait_status);
}

static int report_time_limit(const struct run *run)
{
    char limit[32];
    hf_error err = {.code = HF_INTERRUPTED};

    snprintf(err.message, sizeof err.message, "the command under '%s' was ended after %s",
             run->name, hf__show_duration(limit, sizeof limit, run->values.time_limit.value));
    report_error(&run->in.report, &err);
    return EXIT_TIME_LIMIT;
}

static int exit_code_of_outcome(struct run *run, const struct outcome *outcome)
{
    switch (outcome->cause) {
    case END_BY_LOSS: return EXIT_LOST;
    case END_BY_LIMIT: return report_time_limit(run);
    default:
        run->acquire.interrupted_by = outcome->interrupted ? SIGINT : 0;
        return exit_code_of_child(outcome->wait_status);
    }
}

/* How the command ended, for the history and the metrics. */
static const char *class_of_outcome(const struct outcome *outcome)
{
    switch (outcome->cause) {
    case END_BY_LOSS: return "lost";
    case END_BY_LIMIT: return "time_limit";
    default:
        return WIFSIGNALED(outcome->wait_status)        ? "signal"
               : WEXITSTATUS(outcome->wait_status) == 0 ? "ok"
                                                        : "failed";
    }
}

/* ---- what runs under it ---------------------------------------------------------------------- */

static struct supervision supervision_of(struct run *run, const bool *lost)
{
    return (struct supervision){
        .store = run->store,
        .signals = &run->acquire.signals,
        .terminal = &run->terminal,
        .lost = lost,
        .kill_ms = kill_after(run),
    };
}

static int report_start(struct run *run, int exec_errno, const hf_error *err)
{
    report_error(&run->in.report, err);
    hf_lock_note(run->lock, "exit", "not_started");
    return exec_errno == 0        ? EXIT_FAILED
           : exec_errno == ENOENT ? EXIT_NOT_FOUND
                                  : EXIT_NOT_EXECUTABLE;
}

/* A hook is a line for sh. lost, or the limit, ends it early. Returns its exit status. */
static int run_hook(struct run *run, const char *line, const bool *lost, int64_t limit_ms)
{
    char *argv[] = {"/bin/sh", "-c", (char *)(uintptr_t)line, NULL};
    struct supervision supervision = supervision_of(run, lost);
    int exec_errno = 0;
    hf_error err;

    supervision.limit_ms = limit_ms;
    if (start_child(run, argv, &run->terminal, &supervision.child, &exec_errno, &err) != HF_OK)
        return report_start(run, exec_errno, &err);
    struct outcome outcome = supervise(&supervision);
    run->asked_to_end |= outcome.asked_to_end;
    return outcome.cause == END_BY_LOSS ? EXIT_LOST : exit_code_of_child(outcome.wait_status);
}

static int run_command(struct run *run)
{
    struct supervision supervision = supervision_of(run, &run->lost);
    int exec_errno = 0;
    hf_error err;

    supervision.limit_ms = run->values.time_limit.value;
    if (start_child(run, run->command, &run->terminal, &supervision.child, &exec_errno, &err) !=
        HF_OK)
        return report_start(run, exec_errno, &err);
    run->child = supervision.child;
    if (run->asked_for) /* while a hook ran */
        pass_ask_on(run);
    struct outcome outcome = supervise(&supervision);
    run->child = 0;
    int code = exit_code_of_outcome(run, &outcome);
    run->asked_to_end |= outcome.asked_to_end;
    hf_lock_note(run->lock, "exit", class_of_outcome(&outcome));
    if (outcome.cause == END_BY_ITSELF && run->values.at_least.given)
        keep_lock_until(&supervision, run->acquired_at + run->values.at_least.value);
    return code;
}

/* A lock whose hook fails is not worth having: the command does not run. */
static int run_all(struct run *run)
{
    int code = EXIT_OK;
    hf_error err;

    if (signals_catch(&run->acquire.signals, &err) != HF_OK || set_ready(run, &err) != HF_OK)
        return report_error(&run->in.report, &err);
    terminal_open(&run->terminal);
    if (run->values.on_gain != NULL)
        code = run_hook(run, run->values.on_gain, &run->lost, 0);
    if (code != EXIT_OK && code != EXIT_LOST)
        report_warning(&run->in.report, "the command of --on-gain ended with status %d", code);
    if (code == EXIT_OK && !run->asked_to_end)
        code = run_command(run);
    return code;
}

/*
 * A lock that was lost before the release was not held to the end, whatever the command returned.
 */
static int release(struct run *run, int code)
{
    hf_error err;

    set_unready(run);
    if (!run->lost && hf_lock_release(run->lock, &err) == HF_OK)
        return code;
    run->acquire.interrupted_by = 0;
    if (!run->lost)
        return report_error(&run->in.report, &err);
    report_loss(run);
    return EXIT_LOST;
}

/* ---- again and again ------------------------------------------------------------------------- */

static int hold_once(struct run *run)
{
    enum { ON_LOSS_MS = 60000 }; /* a hook that hangs must not keep it from standing by again */
    int code = EXIT_OK;
    hf_error err;

    if (acquire(run, &err) != HF_OK)
        return run->acquire.interrupted_by != 0 ? EXIT_SIGNAL_BASE + run->acquire.interrupted_by
                                                : on_not_acquired(run, &err);
    if (!run->values.every.given || is_due(run, &code))
        code = run_all(run);
    if (!run->values.leader)
        notify_service_manager("STOPPING=1\nSTATUS=releasing '%s'", run->name);
    code = release(run, code);
    if (run->lost && run->values.on_loss != NULL) {
        const bool never = false;
        int hook = run_hook(run, run->values.on_loss, &never, ON_LOSS_MS);
        if (hook != EXIT_OK)
            report_warning(&run->in.report, "the command of --on-loss ended with status %d", hook);
    }
    return code;
}

/* The first loss costs no pause; one that comes soon after the other doubles it. */
static void pause_after_loss(struct run *run)
{
    enum { LEAST_MS = 100, MOST_MS = 10000, LONG_HELD_MS = 60000 };
    char shown[32];

    if (hf__now_ms() - run->acquired_at >= LONG_HELD_MS)
        run->pause_ms = 0;
    (void)poll(NULL, 0, (int)run->pause_ms);
    run->pause_ms = run->pause_ms == 0            ? LEAST_MS
                    : run->pause_ms * 2 < MOST_MS ? run->pause_ms * 2
                                                  : MOST_MS;
    report_note(&run->in.report, "acquiring '%s' again, which was held for %s", run->name,
                hf__show_duration(shown, sizeof shown, hf__now_ms() - run->acquired_at));
}

int run_under_lock(struct run *run)
{
    bool again = run->values.reacquire || run->values.leader;
    hf_error err;

    set_unready(run);
    if (run->values.ready_http != NULL &&
        ready_http_open(run->values.ready_http, &run->http, &err) != HF_OK)
        return report_error(&run->in.report, &err);
    if (open_patiently(run, &err) != HF_OK)
        return report_error(&run->in.report, &err);
    if (run->values.leader)
        notify_service_manager("READY=1\nSTATUS=standing by for '%s'", run->name);
    for (;;) {
        int code = hold_once(run);
        if ((!run->lost && !run->asked_for) || !again || run->asked_to_end)
            return code;
        signals_leave(&run->acquire.signals); /* while it waits they have their usual effect */
        terminal_close(&run->terminal);
        hf_lock_free(run->lock);
        run->lock = NULL;
        notify_service_manager("STATUS=standing by for '%s'", run->name);
        if (run->lost)
            pause_after_loss(run);
        else
            report_note(&run->in.report, "'%s' was yielded; standing by", run->name);
        run->lost = run->asked_for = false;
    }
}
