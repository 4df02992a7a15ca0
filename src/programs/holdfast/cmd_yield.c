/* `holdfast yield`: asks the holder of a lock to let go, for whoever comes next. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "cli/choice.h"
#include "cli/options.h"
#include "programs/holdfast/commands.h"
#include "programs/holdfast/label.h"
#include "programs/holdfast/run_lease.h"

enum { WAIT_MS = 60 * 1000 };

struct yield_values {
    struct number wait;
    struct number lease;
    struct number key;
    const char *derivation;
    bool unregistered;
};

static const struct option yield_options[] = {
    {
        .letter = 'w',
        .name = "wait",
        .value = "TIME",
        .help = "wait at most so long for the holder (default: 1m)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct yield_values, wait),
        .low = 1,
        .high = HF__DURATION_MAX_MS,
    },
    {
        .name = "lease",
        .value = "TIME",
        .help = "ask by a lease of so long: through any pooler",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct yield_values, lease),
        .low = HF_LEASE_MIN_MS,
        .high = HF_LEASE_MAX_MS,
    },
    {
        .name = "key",
        .value = "INT",
        .help = "the lock of this number; LABEL is only its name",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct yield_values, key),
        .low = INT64_MIN,
        .high = INT64_MAX,
    },
    {
        .name = "as",
        .value = "DERIVATION",
        .help = "how LABEL becomes a key (default: sha256)",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct yield_values, derivation),
    },
    UNREGISTERED_OPTION(struct yield_values, unregistered),
    {0},
};

struct yielding {
    struct lease_acquire acquire;
    struct yield_values values;
    struct invocation in;
    hf_registry *registry; /* NULL: none */
    struct named_lock lock_name;
    bool waited;
};

static void on_wait(const hf_error *why, void *arg)
{
    struct yielding *yielding = arg;

    yielding->waited = true;
    report_note(&yielding->in.report, "%s", why->message);
}

/* Holding the lock for a moment is the proof that its holder has let go. */
static hf_status ask(struct yielding *yielding, hf_store *store, hf_error *err)
{
    const struct yield_values *values = &yielding->values;
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_lock *lock = NULL;

    spec.targets = &yielding->lock_name.target;
    spec.target_count = 1;
    spec.flags = HF_ASK;
    spec.wait_ms = values->wait.value;
    spec.on_wait = on_wait;
    spec.arg = yielding;
    spec.lease_ms = lease_length(&values->lease, yielding->lock_name.entry);
    spec.lifetime = spec.lease_ms > 0 ? HF_LEASE : HF_SESSION;
    hf_status status = spec.lease_ms > 0
                           ? acquire_lease(store, &yielding->acquire, &spec, &lock, err)
                           : hf_lock_acquire(store, &spec, &lock, err);
    if (status == HF_OK)
        status = hf_lock_release(lock, err);
    hf_lock_free(lock);
    return status;
}

static hf_status open_and_ask(struct yielding *yielding, hf_error *err)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_store *store = NULL;

    options.application = "holdfast yield";
    options.registry = yielding->registry;
    hf_status status = open_store(&yielding->in, &options, &store, err);
    if (status == HF_OK)
        status = ask(yielding, store, err);
    hf_store_close(store);
    return status;
}

static int yield_main(const struct command *self, int argc, char **argv)
{
    struct yielding yielding = {.acquire.signals = SIGNALS_INIT, .values.wait.value = WAIT_MS};
    const struct yield_values *values = &yielding.values;
    char name[128];
    int code = EXIT_OK, used = 0;
    hf_error err;

    if (!parse_options(self, argc, argv, &yielding.values, &yielding.in, &code))
        return code;
    if (yielding.in.count == 0)
        return report_usage(&yielding.in.report, self, "LABEL is missing");
    if (values->key.given && values->derivation != NULL)
        return report_usage(&yielding.in.report, self, "--key and --as exclude each other");
    hf_status status = open_registry(&yielding.in.common, &yielding.registry, &err);
    if (status == HF_OK)
        status = read_target(yielding.registry, yielding.in.operands, yielding.in.count,
                             values->derivation, values->key.given ? &values->key.value : NULL,
                             values->unregistered, &yielding.lock_name, &used, &err);
    if (status == HF_OK && used < yielding.in.count)
        code = report_usage(&yielding.in.report, self, "one LABEL at a time");
    else if (status == HF_OK)
        status = open_and_ask(&yielding, &err);
    if (yielding.acquire.interrupted_by != 0)
        signals_die_of(yielding.acquire.interrupted_by);
    if (status != HF_OK)
        code = report_error(&yielding.in.report, &err);
    else if (code == EXIT_OK && !yielding.waited)
        report_note(&yielding.in.report, "nobody holds '%s'",
                    hf__show(name, sizeof name, yielding.lock_name.target.label,
                             strlen(yielding.lock_name.target.label)));
    named_lock_free(&yielding.lock_name);
    hf_registry_free(yielding.registry);
    return code;
}

const struct command cmd_yield = {
    .name = "yield",
    .summary = "Ask the holder of a lock to hand over.",
    .usage = "[-w TIME] [OPTION...] LABEL\n"
             "[-w TIME] [OPTION...] NAME [PLACEHOLDER=VALUE...]",
    .options = yield_options,
    .takes_operands = true,
    .main = yield_main,
};
