#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "cli/choice.h"
#include "cli/options.h"
#include "programs/holdfast/commands.h"
#include "programs/holdfast/ready_http.h"
#include "programs/holdfast/run.h"

enum { KILL_AFTER_MS = 5000, PING_LEAST_MS = 100 };

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
        .name = "lease",
        .value = "TIME",
        .help = "hold a lease of so long, renewed while the command runs: through any pooler",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct run_values, lease),
        .low = HF_LEASE_MIN_MS,
        .high = HF_LEASE_MAX_MS,
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
    {
        .name = "patience",
        .value = "TIME",
        .help = "outlast a server that is away for so long (default: 1m while waiting)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct run_values, patience),
    },
    {
        .name = "reacquire",
        .help = "when the lock is lost, acquire it again and start the command anew",
        .offset = offsetof(struct run_values, reacquire),
    },
    {
        .name = "leader",
        .help = "one active, the others stand by: wait for ever, and --reacquire",
        .offset = offsetof(struct run_values, leader),
    },
    {
        .name = "on-gain",
        .value = "COMMAND",
        .help = "run this by sh when the lock was acquired, before the command",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct run_values, on_gain),
    },
    {
        .name = "on-loss",
        .value = "COMMAND",
        .help = "run this by sh when the lock was lost and the command has ended",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct run_values, on_loss),
    },
    {
        .name = "ask",
        .help = "go before all who wait, and ask the holder to yield",
        .offset = offsetof(struct run_values, ask),
    },
    {
        .name = "on-yield",
        .value = "ACTION",
        .help = "when asked for the lock, send this signal to the command, or run this by sh",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct run_values, on_yield),
    },
    {
        .name = "title",
        .value = "TEXT",
        .help = "what others are shown as the holder (default: the command's name)",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct run_values, title),
    },
    {
        .name = "ready-file",
        .value = "FILE",
        .help = "keep this file while the lock is held, for probes of readiness",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct run_values, ready_file),
    },
    {
        .name = "spans",
        .value = "FILE",
        .help = "append the spans of wait and hold to this file, for OpenTelemetry",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct run_values, spans),
    },
    {
        .name = "ready-http",
        .value = "ADDRESS",
        .help = "answer GET on this [ADDR:]PORT with 200 while the lock is held, else 503",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct run_values, ready_http),
    },
    {0},
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
    if (values->leader && (values->no_wait || values->wait.given || values->every.given))
        return "--leader waits for ever: neither -n, -w nor --every go with it";
    if (values->ask && (values->no_wait || values->every.given))
        return "--ask waits for the holder: neither -n nor --every go with it";
    if ((values->ask || values->on_yield != NULL) && values->slots.given)
        return "slots are not asked for: neither --ask nor --on-yield go with --slots";
    if (values->on_yield != NULL && values->on_yield[0] == '\0')
        return "--on-yield is empty";
    if (values->on_yield != NULL && is_wrong_signal(values->on_yield))
        return "--on-yield sends TERM, INT, HUP, QUIT, USR1 or USR2, or runs a command";
    if (values->title != NULL && values->title[0] == '\0')
        return "--title is empty";
    if (values->ready_file != NULL && values->ready_file[0] == '\0')
        return "--ready-file is empty";
    if (values->reacquire && values->every.given)
        return "--every runs once: it and --reacquire exclude each other";
    return NULL;
}

static hf_status find_target(struct run *run, char **words, int count, int *used, hf_error *err)
{
    const struct run_values *values = &run->values;
    *used = 1;
    hf_status status = open_registry(&run->in.common, &run->registry, err);
    if (status == HF_OK)
        status = read_target(run->registry, words, count, values->derivation,
                             values->key.given ? &values->key.value : NULL, values->unregistered,
                             &run->lock_name, used, err);
    run->target = run->lock_name.target;
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

static int run_main(const struct command *self, int argc, char **argv)
{
    int code = EXIT_OK;
    struct run run = {
        .values.kill_after.value = KILL_AFTER_MS,
        .acquire.signals = SIGNALS_INIT,
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
    ready_http_close(run.http);
    hf_lock_free(run.lock);
    hf_store_close(run.store);
    span_file_close(&run.spans);
    named_lock_free(&run.lock_name);
    hf_registry_free(run.registry);
    terminal_close(&run.terminal);
    if (run.acquire.interrupted_by != 0)
        signals_die_of(run.acquire.interrupted_by);
    return code;
}

const struct command cmd_run = {
    .name = "run",
    .summary = "Hold a lock while a command runs.",
    .usage = "[-n | -w TIME] [-s | --slots N] [OPTION...] LABEL [--] COMMAND [ARG...]\n"
             "--every TIME [--at-least TIME] [OPTION...] LABEL [--] COMMAND [ARG...]\n"
             "--leader [OPTION...] LABEL [--] COMMAND [ARG...]\n"
             "[OPTION...] NAME [PLACEHOLDER=VALUE...] [--] COMMAND [ARG...]",
    .options = run_options,
    .takes_operands = true,
    .operands_end_options = true,
    .main = run_main,
};
