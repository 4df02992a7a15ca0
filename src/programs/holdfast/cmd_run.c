#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/choice.h"
#include "cli/notify.h"
#include "cli/options.h"
#include "programs/holdfast/commands.h"
#include "programs/holdfast/label.h"
#include "programs/holdfast/supervise.h"

enum { KILL_AFTER_MS = 5000, PING_LEAST_MS = 100 };

struct run_values {
    bool no_wait;
    struct number wait;
    bool shared;
    struct number slots;
    struct number key;
    const char *derivation;
    bool unregistered;
    struct number conflict_exit_code;
    struct number time_limit;
    struct number kill_after;
    struct number every;
    struct number at_least;
    struct number ping;
    struct number ping_deadline;
};

static const struct option run_options[] = {
    {
        .letter = 'n',
        .name = "no-wait",
        .help = "fail at once when the lock is taken",
        .offset = offsetof(struct run_values, no_wait),
    },
    {
        .letter = 'w',
        .name = "wait",
        .value = "TIME",
        .help = "wait at most so long (default: for ever)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct run_values, wait),
    },
    {
        .letter = 's',
        .name = "shared",
        .help = "share the lock with other shared holders",
        .offset = offsetof(struct run_values, shared),
    },
    {
        .name = "slots",
        .value = "N",
        .help = "let N holders in at once",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct run_values, slots),
        .low = 1,
        .high = HF_SLOTS_MAX,
    },
    {
        .name = "key",
        .value = "INT",
        .help = "lock this number; LABEL is only its name",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct run_values, key),
        .low = INT64_MIN,
        .high = INT64_MAX,
    },
    {
        .name = "as",
        .value = "DERIVATION",
        .help = "how LABEL becomes a key (default: sha256)",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct run_values, derivation),
    },
    UNREGISTERED_OPTION(struct run_values, unregistered),
    {
        .letter = 'E',
        .name = "conflict-exit-code",
        .value = "CODE",
        .help = "exit with CODE when the lock was not acquired (default: 75)",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct run_values, conflict_exit_code),
        .low = 0,
        .high = 255,
    },
    {
        .letter = 't',
        .name = "time-limit",
        .value = "TIME",
        .help = "end the command after so long and exit with 124",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct run_values, time_limit),
    },
    {
        .letter = 'k',
        .name = "kill-after",
        .value = "TIME",
        .help = "from TERM to KILL when ending the command (default: 5s)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct run_values, kill_after),
        .low = 0,
        .high = INT_MAX,
    },
    {
        .name = "every",
        .value = "TIME",
        .help = "run at most once in so long over all hosts, else skip",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct run_values, every),
        .low = 1,
        .high = HF__DURATION_MAX_MS,
    },
    {
        .name = "at-least",
        .value = "TIME",
        .help = "with --every: keep the lock so long even if the command ends sooner",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct run_values, at_least),
    },
    {
        .name = "ping",
        .value = "TIME",
        .help = "probe the session that holds the lock so often (default: 5s)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct run_values, ping),
        .low = PING_LEAST_MS,
        .high = INT_MAX,
    },
    {
        .name = "ping-deadline",
        .value = "TIME",
        .help = "without an answer for so long the lock counts as lost (default: 10s)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct run_values, ping_deadline),
        .low = PING_LEAST_MS,
        .high = INT_MAX,
    },
    {0},
};

struct run {
    struct run_values values;
    struct invocation in;
    hf_registry *registry; /* NULL: none */
    struct named_lock lock_name;
    hf_target target;
    char **command;
    char name[128]; /* the label, safe to print */
    hf_store *store;
    hf_lock *lock;
    int64_t acquired_at;
    bool lost;
    hf_error why_lost; /* a loss that is not reported yet, unless its code is HF_OK */
    struct signals signals;
    struct terminal terminal;
    int interrupted_by; /* the signal that must end us visibly, or 0 */
};

static const char *contradiction(const struct run_values *values)
{
    if (values->no_wait && values->wait.given)
        return "-n and -w exclude each other";
    if (values->shared && values->slots.given)
        return "-s and --slots exclude each other";
    if (values->key.given && values->derivation != NULL)
        return "--key and --as exclude each other";
    if (values->every.given && values->wait.given)
        return "--every does not wait: it and -w exclude each other";
    if (values->every.given && (values->shared || values->slots.given))
        return "--every runs one at a time: neither -s nor --slots go with it";
    if (values->at_least.given && !values->every.given)
        return "--at-least needs --every";
    return NULL;
}

static hf_status read_number(struct run *run, const char *label, hf_error *err)
{
    const hf_registry_entry *entry = run->registry ? hf_registry_find(run->registry, label) : NULL;
    hf_status status = check_label(label, err);

    run->target = HF_KEY(run->values.key.value);
    run->target.label = label;
    if (status == HF_OK && entry != NULL &&
        (entry->derivation != HF_FIXED || entry->space != HF_BIGINT ||
         entry->key != run->values.key.value)) {
        status = hf__fail(err, HF_CONFIG, "the registry has %s under another key than %" PRId64,
                          entry->name, run->values.key.value);
        hf__hint(err, "leave --key out, or use another name");
    }
    return status;
}

static hf_status find_target(struct run *run, char **words, int count, int *used, hf_error *err)
{
    *used = 1;
    hf_status status = open_registry(&run->in.common, &run->registry, err);
    const int64_t *number = run->values.key.given ? &run->values.key.value : NULL;
    if (status == HF_OK && number != NULL)
        status = read_number(run, words[0], err);
    else if (status == HF_OK)
        status = read_lock_name(run->registry, words, count, run->values.derivation,
                                &run->lock_name, used, err);
    if (number == NULL)
        run->target = run->lock_name.target;
    if (status == HF_OK && !run->values.unregistered)
        status = refuse_stranger(run->registry, run->lock_name.entry, words[0], number, err);
    return status;
}

/* LABEL [NAME=VALUE...] [--] COMMAND [ARG...] */
static int read_operands(struct run *run, const struct command *self)
{
    const struct report *report = &run->in.report;
    char **operands = run->in.operands;
    int count = run->in.count;
    int used = 1;
    char shown[SHOWN_MAX];
    hf_error err;

    if (count == 0)
        return report_usage(report, self, "LABEL and COMMAND are missing");
    if (find_target(run, operands, count, &used, &err) != HF_OK)
        return report_error(report, &err);
    hf__show(run->name, sizeof run->name, run->target.label, strlen(run->target.label));

    operands += used;
    count -= used;
    if (count > 0 && strcmp(operands[0], "--") == 0) {
        operands++;
        count--;
    } else if (count > 0 && operands[0][0] == '-') {
        return report_usage(report, self, "options stand before LABEL: %s",
                            show_argument(shown, operands[0]));
    }
    if (count == 0)
        return report_usage(report, self, "COMMAND is missing");
    run->command = operands;
    return EXIT_OK;
}

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
    run->lost = true;
    run->why_lost = *why;
    if (!report_would_block()) /* else we end the command first */
        report_loss(run);
}

static void on_wait(const hf_error *why, void *arg)
{
    const struct run *run = arg;

    report_note(&run->in.report, "%s", why->message);
    notify_service_manager("STATUS=%s", why->message);
}

static hf_status open_for_run(struct run *run, hf_error *err)
{
    const struct run_values *values = &run->values;
    hf_store_options options = HF_STORE_OPTIONS_INIT;

    options.application = "holdfast run";
    options.ping_interval_ms = (int)values->ping.value;
    options.ping_deadline_ms = (int)values->ping_deadline.value;
    options.kill_ms = values->kill_after.value > 0 ? (int)values->kill_after.value : 1;
    options.dispatch = true;
    options.registry = run->registry;
    return open_store(&run->in, &options, &run->store, err);
}

static hf_status acquire(struct run *run, hf_error *err)
{
    const struct run_values *values = &run->values;
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;

    spec.targets = &run->target;
    spec.target_count = 1;
    spec.mode = values->shared ? HF_SHARED : HF_EXCLUSIVE;
    spec.slots = (unsigned)values->slots.value;
    spec.on_lost = on_lost;
    spec.on_wait = on_wait;
    spec.arg = run;
    if (values->no_wait || values->every.given)
        spec.wait_ms = 0;
    else if (values->wait.given)
        spec.wait_ms = values->wait.value;
    hf_status status = hf_lock_acquire(run->store, &spec, &run->lock, err);
    run->acquired_at = hf__now_ms();
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
        run->interrupted_by = outcome->interrupted ? SIGINT : 0;
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

static hf_status start_command(struct run *run, pid_t *child, int *exec_errno, hf_error *err)
{
    char key[24], token[24], slot[24];
    int64_t number = 0;
    struct lock_facts facts = {.label = run->target.label, .key = key};

    snprintf(key, sizeof key, "%" PRId64, hf_lock_key(run->lock));
    if (hf_lock_token(run->lock, &number, NULL) == HF_OK) {
        snprintf(token, sizeof token, "%" PRId64, number);
        facts.token = token;
    }
    if (hf_lock_slot(run->lock) > 0) {
        snprintf(slot, sizeof slot, "%u", hf_lock_slot(run->lock));
        facts.slot = slot;
    }
    hf_status status = signals_catch(&run->signals, err);
    if (status != HF_OK)
        return status;
    terminal_open(&run->terminal);
    return child_start(run->command, &facts, &run->signals, &run->terminal, child, exec_errno, err);
}

static int run_command(struct run *run)
{
    int exec_errno = 0;
    hf_error err;
    struct supervision supervision = {
        .store = run->store,
        .signals = &run->signals,
        .terminal = &run->terminal,
        .lost = &run->lost,
        .limit_ms = run->values.time_limit.value,
        .kill_ms = run->values.kill_after.value,
    };

    notify_service_manager("READY=1\nSTATUS=holding '%s'", run->name);
    if (start_command(run, &supervision.child, &exec_errno, &err) != HF_OK) {
        report_error(&run->in.report, &err);
        hf_lock_note(run->lock, "exit", "not_started");
        return exec_errno == 0        ? EXIT_FAILED
               : exec_errno == ENOENT ? EXIT_NOT_FOUND
                                      : EXIT_NOT_EXECUTABLE;
    }
    struct outcome outcome = supervise(&supervision);
    int code = exit_code_of_outcome(run, &outcome);
    hf_lock_note(run->lock, "exit", class_of_outcome(&outcome));
    if (outcome.cause == END_BY_ITSELF && run->values.at_least.given)
        keep_lock_until(&supervision, run->acquired_at + run->values.at_least.value);
    return code;
}

/*
 * A lock that was lost before the release was not held to the end, whatever the command returned.
 */
static int release(struct run *run, int code)
{
    hf_error err;

    if (!run->lost && hf_lock_release(run->lock, &err) == HF_OK)
        return code;
    run->interrupted_by = 0;
    if (!run->lost)
        return report_error(&run->in.report, &err);
    report_loss(run);
    return EXIT_LOST;
}

static int run_under_lock(struct run *run)
{
    int code = EXIT_OK;
    hf_error err;

    if (open_for_run(run, &err) != HF_OK)
        return report_error(&run->in.report, &err);
    if (acquire(run, &err) != HF_OK)
        return on_not_acquired(run, &err);
    if (!run->values.every.given || is_due(run, &code))
        code = run_command(run);
    notify_service_manager("STOPPING=1\nSTATUS=releasing '%s'", run->name);
    return release(run, code);
}

static int run_main(const struct command *self, int argc, char **argv)
{
    int code = EXIT_OK;
    struct run run = {
        .values.kill_after.value = KILL_AFTER_MS,
        .signals = SIGNALS_INIT,
        .terminal = TERMINAL_INIT,
    };

    if (!parse_options(self, argc, argv, &run.values, &run.in, &code))
        return code;
    const char *wrong = contradiction(&run.values);
    if (wrong != NULL)
        return report_usage(&run.in.report, self, "%s", wrong);
    code = read_operands(&run, self);
    if (code == EXIT_OK)
        code = run_under_lock(&run);
    hf_lock_free(run.lock);
    hf_store_close(run.store);
    named_lock_free(&run.lock_name);
    hf_registry_free(run.registry);
    terminal_close(&run.terminal);
    if (run.interrupted_by != 0)
        signals_die_of(run.interrupted_by);
    return code;
}

const struct command cmd_run = {
    .name = "run",
    .summary = "Hold a lock while a command runs.",
    .usage = "[-n | -w TIME] [-s | --slots N] [OPTION...] LABEL [--] COMMAND [ARG...]\n"
             "--every TIME [--at-least TIME] [OPTION...] LABEL [--] COMMAND [ARG...]\n"
             "[OPTION...] NAME [PLACEHOLDER=VALUE...] [--] COMMAND [ARG...]",
    .options = run_options,
    .takes_operands = true,
    .operands_end_options = true,
    .main = run_main,
};
