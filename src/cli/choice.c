#include "cli/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/load.h"
#include "lib/environment/environment.h"

/* A script may say --url "$URL" with URL unset: that must not lead to another store. */
static hf_status choose_store(const struct common *common, struct store_choice *choice,
                              hf_error *err)
{
    *choice = (struct store_choice){0};
    if (common->url == NULL)
        return hf__environment_url(&choice->url, &choice->variable, err);
    if (common->url[0] == '\0') {
        hf_status status = hf__fail(err, HF_INVALID, "--url is empty");
        hf__hint(err, "give it a URL, or leave it out to use the next choice");
        return status;
    }
    choice->url = strdup(common->url);
    return choice->url != NULL ? HF_OK : hf__no_memory(err);
}

void store_choice_free(struct store_choice *choice)
{
    free(choice->url);
    choice->url = NULL;
}

hf_status prepare_store(const struct invocation *in, hf_store_options *options,
                        struct store_choice *choice, hf_error *err)
{
    options->session_pool = in->common.session_pool;
    hf_status status = hf__environment_options(options, err);

    *choice = (struct store_choice){0};
    if (status == HF_OK)
        status = choose_store(&in->common, choice, err);
    if (status != HF_OK)
        return status;
    options->url = choice->url;
    options->log = report_log;
    options->log_arg = (void *)&in->report;
    status = strncmp(choice->url, "local:", 6) == 0 ? load_sqlite(err) : load_libpq(err);
    return status == HF_OK ? load_libcrypto(err) : status;
}

hf_status name_store_choice(const struct store_choice *choice, hf_error *err)
{
    return hf__environment_blame(choice->variable, err);
}

hf_status open_store(const struct invocation *in, hf_store_options *options, hf_store **store,
                     hf_error *err)
{
    struct store_choice choice;
    hf_status status = prepare_store(in, options, &choice, err);

    if (status == HF_OK)
        status = hf_store_open(options, store, err);
    if (status == HF_OK && in->common.verbose)
        report_note(&in->report, "store: %s (%s)", hf_store_name(*store),
                    choice.variable != NULL  ? choice.variable
                    : in->common.url != NULL ? "--url"
                                             : "by default");
    options->url = NULL;
    if (status != HF_OK && choice.url != NULL)
        status = name_store_choice(&choice, err);
    store_choice_free(&choice);
    return status;
}

/* ---- which registry -------------------------------------------------------------------------- */

const char *registry_chooser(const struct common *common)
{
    if (common->registry != NULL)
        return "--registry";
    return getenv(HF__REGISTRY_VARIABLE) != NULL ? HF__REGISTRY_VARIABLE : "found here or above";
}

static hf_status choose_registry(const struct common *common, char **path, hf_error *err)
{
    *path = NULL;
    return common->registry != NULL ? hf__registry_named("--registry", common->registry, path, err)
                                    : hf__environment_registry(path, err);
}

hf_status demand_registry(const struct common *common, char **path, hf_error *err)
{
    hf_status status = choose_registry(common, path, err);

    if (status != HF_OK || *path != NULL)
        return status;
    const char *switched_off = getenv(HF__REGISTRY_VARIABLE);
    if (switched_off != NULL)
        status = hf__fail(err, HF_CONFIG, "no registry: %s is empty", HF__REGISTRY_VARIABLE);
    else
        status = hf__fail(err, HF_CONFIG, "no registry: there is no %s here or in a folder above",
                          HF__REGISTRY_FILE);
    hf__hint(err, "give --registry FILE, or set %s", HF__REGISTRY_VARIABLE);
    return status;
}

static void tell_registry(const struct common *common, const hf_registry *registry)
{
    struct report report = report_to_stderr(common->json);
    char shown[SHOWN_MAX];

    if (registry != NULL)
        report_note(&report, "registry: %s (%s)", show_argument(shown, hf_registry_path(registry)),
                    registry_chooser(common));
    else
        report_note(&report, "registry: none");
}

hf_status open_registry(const struct common *common, hf_registry **registry, hf_error *err)
{
    char *path = NULL;
    hf_status status = choose_registry(common, &path, err);

    *registry = NULL;
    if (status == HF_OK && path != NULL) {
        status = load_libyaml(err);
        if (status == HF_OK)
            status = load_libcrypto(err);
        if (status == HF_OK)
            status = hf_registry_read(path, registry, err);
    }
    if (status == HF_OK && common->verbose)
        tell_registry(common, *registry);
    free(path);
    return status;
}

/* ---- which network --------------------------------------------------------------------------- */

enum { TRANSACTIONS = 40 }; /* enough for the workers of an ingest and what supervises them */

/* The names of stellar/wallet-backend, whose network locks are ours. */
static const char *const their_cursors[] = {"latest_ingest_ledger", "oldest_ingest_ledger"};

struct cursors_there {
    bool ours, theirs;
};

static void see_cursor(void *arg, const char *name, int64_t value)
{
    struct cursors_there *there = arg;

    (void)value;
    there->ours = there->ours || strcmp(name, "latestLedgerCursor") == 0;
    there->theirs = there->theirs || strcmp(name, their_cursors[0]) == 0;
}

hf_status recognise_cursors(hf_store *store, hf_network_options *options, hf_error *err)
{
    struct cursors_there there = {0};
    hf_network *network = NULL;

    if (options->latest_cursor != NULL || options->oldest_cursor != NULL)
        return HF_OK;
    hf_status status = hf_network_open(store, options, &network, err);
    if (status == HF_OK)
        status = hf_cursor_list(network, see_cursor, &there, err);
    hf_network_free(network);
    if (status == HF_OK && there.theirs && !there.ours) {
        options->latest_cursor = their_cursors[0];
        options->oldest_cursor = their_cursors[1];
    }
    return status;
}

hf_status open_network(const struct invocation *in, const char *application,
                       const struct network_values *values, int64_t read_wait_ms, hf_store **store,
                       hf_network **network, hf_error *err)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_network_options of_network = HF_NETWORK_OPTIONS_INIT;

    if (values->network == NULL) {
        hf_status status = hf__fail(err, HF_INVALID, "--network is missing");
        hf__hint(err, "name the network, such as testnet");
        return status;
    }
    options.application = application;
    options.max_transactions = TRANSACTIONS;
    options.patience_ms = -1; /* an ingester that stands by outlasts any outage */
    hf_status status = open_store(in, &options, store, err);
    if (status != HF_OK)
        return status;
    of_network.name = values->network;
    of_network.schema = values->schema;
    of_network.latest_cursor = values->latest;
    of_network.oldest_cursor = values->oldest;
    of_network.read_wait_ms = read_wait_ms;
    status = recognise_cursors(*store, &of_network, err);
    return status == HF_OK ? hf_network_open(*store, &of_network, network, err) : status;
}

int with_network(const struct invocation *in, const char *application,
                 const struct network_values *values, network_fn *fn, void *arg)
{
    hf_store *store = NULL;
    hf_network *network = NULL;
    hf_error err;
    hf_status status = open_network(in, application, values, READ_WAIT_MS, &store, &network, &err);
    int code = status == HF_OK ? fn(in, store, network, arg) : report_error(&in->report, &err);

    hf_network_free(network);
    hf_store_close(store);
    return code;
}
