#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/time.h"
#include "cli/choice.h"
#include "cli/options.h"
#include "cli/print.h"
#include "lib/ledgers/ledgers.h"
#include "programs/ingest/ingest.h"
#include "programs/ingest/status.h"

struct status_values {
    struct texts networks;
    const char *schema;
    const char *latest;
    const char *oldest;
};

static const struct option status_options[] = {
    {
        .name = "network",
        .value = "NET",
        .help = "only this one; may be repeated (default: all)",
        .kind = OPTION_TEXTS,
        .offset = offsetof(struct status_values, networks),
    },
    {
        .name = "schema",
        .value = "NAME",
        .help = "its schema (default: ingest_NET)",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct status_values, schema),
    },
    {
        .name = "latest-cursor",
        .value = "NAME",
        .help = "the cursor of the latest ledger (default: latestLedgerCursor)",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct status_values, latest),
    },
    {
        .name = "oldest-cursor",
        .value = "NAME",
        .help = "the cursor of the oldest ledger (default: oldestLedgerCursor)",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct status_values, oldest),
    },
    {0},
};

struct view {
    const struct invocation *in;
    const struct status_values *values;
    hf_store *store;
    hf_lock_list *locks;
    hf__json json;
    size_t shown;
};

static const hf_lock_view *find_holder(const struct view *view, int64_t key)
{
    for (size_t i = 0; i < hf_lock_list_count(view->locks); i++) {
        const hf_lock_view *lock = hf_lock_list_at(view->locks, i);
        if (lock->key == key && lock->space == HF_BIGINT && !lock->waiting)
            return lock;
    }
    return NULL;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_holder(const hf_lock_view *holder)
{
    char age[32];

    if (holder == NULL) {
        printf("  ingester      none runs\n");
        return;
    }
    printf("  ingester      %s", holder->application[0] != '\0' ? holder->application : "unknown");
    if (holder->host[0] != '\0')
        printf(" on %s", holder->host);
    if (holder->pid > 0)
        printf(" (pid %d)", holder->pid);
    else if (holder->backend_pid > 0)
        printf(" (backend pid %d)", holder->backend_pid);
    if (holder->age_ms >= 0)
        printf(", for %s%s", holder->age_is_bound ? "at most " : "",
               hf__show_duration(age, sizeof age, holder->age_ms));
    putchar('\n');
}

static void print_ledger(const char *what, const hf__maybe *ledger)
{
    if (ledger->known)
        printf("  %-13s %" PRId64 "\n", what, ledger->value);
}

static void print_latest(const hf__network_status *status)
{
    char age[32];

    if (!status->latest.known)
        printf("  latest        none yet\n");
    else if (status->closed_at[0] == '\0')
        print_ledger("latest", &status->latest);
    else
        printf("  latest        %" PRId64 ", closed %s ago (%s)\n", status->latest.value,
               hf__show_duration(age, sizeof age, status->age_ms), status->closed_at);
}

/* The source's tip is as last written, so latest may be ahead of it: that is caught up too. */
static void print_source(const hf__network_status *status, bool is_ingested)
{
    hf__maybe lag = hf__network_lag(status, is_ingested, hf__wall_ms());

    if (!status->source_tip.known || !status->latest.known)
        return;
    printf("  source        at %" PRId64, status->source_tip.value);
    if (!lag.known)
        printf(" when it was last read; where it is now is unknown\n");
    else if (lag.value > 0)
        printf(", %" PRId64 " %s ahead\n", lag.value, lag.value == 1 ? "ledger" : "ledgers");
    else
        printf(", caught up\n");
}

static void print_coverage(const hf__network_status *status)
{
    if (status->has_coverage)
        printf("  covered       %" PRId64 " %s in %zu %s\n", status->covered,
               status->covered == 1 ? "ledger" : "ledgers", status->ranges,
               status->ranges == 1 ? "range" : "ranges");
    if (status->gaps.known && status->gaps.value == 0)
        printf("  gaps          none\n");
    else if (status->gaps.known)
        printf("  gaps          %" PRId64 ", %" PRId64 " %s\n", status->gaps.value, status->missing,
               status->missing == 1 ? "ledger" : "ledgers");
    if (status->quarantined.known && status->quarantined.value > 0)
        print_ledger("quarantined", &status->quarantined);
    if (status->transactions.known)
        printf("  transactions  about %" PRId64 "\n", status->transactions.value);
}

static void print_network(const struct view *view, const hf_network *network,
                          const hf__network_status *status, const hf_lock_view *holder)
{
    if (view->shown > 0)
        putchar('\n');
    printf("%s (%s %s)\n", network->name, network->local ? "file" : "schema", network->schema);
    if (!status->exists)
        printf("  nothing is there yet: 'holdfast ingest --network %s --source SOURCE' begins\n",
               network->name);
    print_holder(holder);
    if (!status->exists)
        return;
    print_latest(status);
    print_source(status, holder != NULL);
    print_ledger("oldest", &status->oldest);
    print_ledger("wanted from", &status->wanted_from);
    print_ledger("kept from", &status->floor);
    print_coverage(status);
    if (status->disagrees)
        printf("  cursor and coverage disagree: 'holdfast ingest adopt --network %s'\n",
               network->name);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void add_maybe(hf__json *json, const char *key, const hf__maybe *number)
{
    if (number->known)
        hf__json_put_integer(json, key, number->value);
    else
        hf__json_put_null(json, key);
}

static void add_holder(hf__json *json, const hf_lock_view *holder)
{
    if (holder == NULL) {
        hf__json_put_null(json, "ingester");
        return;
    }
    hf__json_begin_object(json, "ingester");
    hf__json_put_text(json, "application", holder->application);
    hf__json_put_text(json, "host", holder->host);
    add_number(json, "pid", holder->pid);
    add_number(json, "backend_pid", holder->backend_pid);
    add_time(json, "age_ms", holder->age_ms);
    hf__json_put_boolean(json, "age_is_bound", holder->age_is_bound);
    add_token(json, holder->token);
    hf__json_end_object(json);
}

static void write_network(hf__json *json, const hf_network *network,
                          const hf__network_status *status, const hf_lock_view *holder)
{
    hf__maybe ranges = {status->has_coverage, (int64_t)status->ranges};
    hf__maybe covered = {status->has_coverage, status->covered};
    hf__maybe missing = {status->gaps.known, status->missing};
    hf__maybe lag = hf__network_lag(status, holder != NULL, hf__wall_ms());

    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "network", network->name);
    hf__json_put_string(json, "schema", network->schema);
    hf__json_put_boolean(json, "exists", status->exists);
    hf__json_put_string(json, "lock", network->label);
    hf__json_put_big(json, "key", network->lock_key);
    add_holder(json, holder);
    add_maybe(json, "latest", &status->latest);
    hf__json_put_text(json, "closed_at", status->closed_at);
    add_time(json, "lag_ms", status->closed_at[0] != '\0' ? status->age_ms : -1);
    add_maybe(json, "source_tip", &status->source_tip);
    add_maybe(json, "lag_ledgers", &lag);
    add_maybe(json, "last_success_ms", &status->last_success_ms);
    add_maybe(json, "live_ledgers", &status->live_ledgers);
    add_maybe(json, "backfill_ledgers", &status->backfill_ledgers);
    add_maybe(json, "oldest", &status->oldest);
    add_maybe(json, "wanted_from", &status->wanted_from);
    add_maybe(json, "floor", &status->floor);
    add_maybe(json, "ranges", &ranges);
    add_maybe(json, "covered", &covered);
    add_maybe(json, "gaps", &status->gaps);
    add_maybe(json, "missing", &missing);
    add_maybe(json, "quarantined", &status->quarantined);
    add_maybe(json, "transactions_estimate", &status->transactions);
    hf__json_put_boolean(json, "disagrees", status->disagrees);
    hf__json_end_object(json);
}

static hf_status show(struct view *view, hf_network_options *options, hf_error *err)
{
    hf__network_status status;
    hf_network *network = NULL;
    options->read_wait_ms = READ_WAIT_MS;
    hf_status result = recognise_cursors(view->store, options, err);

    if (result == HF_OK)
        result = hf_network_open(view->store, options, &network, err);
    if (result == HF_OK)
        result = hf__network_status_read(network, &status, err);
    if (result == HF_OK) {
        const hf_lock_view *holder = find_holder(view, network->lock_key);
        if (view->in->common.json)
            write_network(&view->json, network, &status, holder);
        else
            print_network(view, network, &status, holder);
        view->shown++;
    }
    hf_network_free(network);
    return result;
}

/* Names a network that is there and cannot be shown: left out, it would seem that all is well. */
static void show_problem(struct view *view, const char *schema, const char *problem)
{
    hf__json *json = &view->json;

    if (view->in->common.json) {
        hf__json_begin_object(json, NULL);
        hf__json_put_null(json, "network");
        hf__json_put_string(json, "schema", schema);
        hf__json_put_string(json, "problem", problem);
        hf__json_end_object(json);
    } else {
        printf("%s%s %s\n  cannot be shown: %s\n", view->shown > 0 ? "\n" : "",
               hf_store_is_local(view->store) ? "file" : "schema", schema, problem);
    }
    view->shown++;
}

struct finding {
    struct view *view;
    const char *schema;
    hf_network *network;
};

static hf_status find(hf_tx *tx, void *arg, hf_error *err)
{
    struct finding *finding = arg;

    hf_network_free(finding->network); /* of an attempt before */
    finding->network = NULL;
    return hf__network_find(finding->view->store, tx, finding->schema, &finding->network, err);
}

/* Shows what the schema holds. A failure is shown, too, and *failed keeps the first one. */
static void show_entry(struct view *view, const hf__network_entry *entry, hf_error *failed)
{
    const struct status_values *values = view->values;
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    struct finding finding = {.view = view, .schema = entry->schema};
    hf_error err = {0};

    if (!entry->readable) {
        show_problem(view, entry->schema, "this role may not read its tables");
        return;
    }
    hf_status status =
        hf__schema_read(view->store, entry->schema, READ_WAIT_MS, find, &finding, &err);
    if (status == HF_OK) {
        bool usual = strcmp(finding.network->latest, HF__LATEST_CURSOR) == 0 &&
                     strcmp(finding.network->oldest, HF__OLDEST_CURSOR) == 0;
        options.name = finding.network->name;
        options.schema = entry->schema;
        options.latest_cursor = values->latest || usual ? values->latest : finding.network->latest;
        options.oldest_cursor = values->oldest || usual ? values->oldest : finding.network->oldest;
        status = show(view, &options, &err);
    }
    if (status != HF_OK)
        show_problem(view, entry->schema, err.message);
    if (status != HF_OK && status != HF_CONFIG && failed->code == HF_OK)
        *failed = err;
    hf_network_free(finding.network);
}

static hf_status show_all(struct view *view, hf_error *err)
{
    hf__network_entry *entries = NULL;
    size_t count = 0;
    hf_error failed = {0};
    hf_status status = hf__networks_list(view->store, NULL, &entries, &count, err);

    for (size_t i = 0; status == HF_OK && i < count; i++)
        show_entry(view, &entries[i], &failed);
    if (status == HF_OK && count == 0 && !view->in->common.json)
        printf("%s has no networks yet: 'holdfast ingest --network NET --source SOURCE' begins\n",
               hf_store_name(view->store));
    free(entries);
    if (status == HF_OK && failed.code != HF_OK) {
        *err = failed;
        status = failed.code;
    }
    return status;
}

static hf_status show_named(struct view *view, hf_error *err)
{
    const struct status_values *values = view->values;
    hf_status status = HF_OK;

    for (size_t i = 0; status == HF_OK && i < values->networks.count; i++) {
        hf_network_options options = HF_NETWORK_OPTIONS_INIT;
        options.name = values->networks.items[i];
        options.schema = values->schema;
        options.latest_cursor = values->latest;
        options.oldest_cursor = values->oldest;
        status = show(view, &options, err);
    }
    return status;
}

static hf_status run(struct view *view, hf_error *err)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;

    options.application = "holdfast ingest status";
    hf_status status = open_store(view->in, &options, &view->store, err);
    if (status == HF_OK)
        status = hf_lock_list_read(view->store, &view->locks, err);
    if (status != HF_OK)
        return status;
    hf__json_begin_object(&view->json, NULL);
    hf__json_put_string(&view->json, "store", hf_store_name(view->store));
    hf__json_put_integer(&view->json, "at_ms", hf__wall_ms());
    hf__json_begin_array(&view->json, "networks");
    status = view->values->networks.count > 0 ? show_named(view, err) : show_all(view, err);
    hf__json_end_array(&view->json);
    hf__json_end_object(&view->json);
    if (view->in->common.json &&
        (status == HF_OK || (view->shown > 0 && view->values->networks.count == 0)) &&
        !print_document(&view->json, stdout))
        status = hf__fail(err, HF_SYSTEM, "cannot write the result");
    return status;
}

static int status_main(const struct command *self, int argc, char **argv)
{
    struct status_values values = {0};
    struct invocation in = {0};
    struct view view = {.in = &in, .values = &values};
    hf_error err;
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    if (values.schema != NULL && values.networks.count != 1)
        code = report_usage(&in.report, self, "--schema goes with one --network");
    else if (run(&view, &err) != HF_OK)
        code = report_error(&in.report, &err);
    hf__buf_free(&view.json.text);
    hf_lock_list_free(view.locks);
    hf_store_close(view.store);
    free(values.networks.items);
    return code;
}

const struct command cmd_ingest_status = {
    .name = "ingest status",
    .summary = "Show how networks stand, from the store alone.",
    .usage = "[--network NET...] [--schema NAME]",
    .options = status_options,
    .main = status_main,
};
