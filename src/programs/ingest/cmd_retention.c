#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/time.h"
#include "cli/choice.h"
#include "cli/print.h"
#include "programs/ingest/ingest.h"
#include "programs/ingest/reconcile.h"
#include "programs/ingest/retention.h"

enum { EVERY_LEAST_MS = 1000 };

struct retention_values {
    struct network_values network;
    const char *keep;
    struct number every;
};

static const struct option retention_options[] = {
    NETWORK_OPTIONS(offsetof(struct retention_values, network)),
    {
        .name = "keep",
        .value = "HOW",
        .help = "what stays: 30d, counted from the latest ledger, or 1000-ledgers",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct retention_values, keep),
    },
    {
        .name = "every",
        .value = "TIME",
        .help = "do nothing if it ran within TIME, wherever that was",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct retention_values, every),
        .low = EVERY_LEAST_MS,
        .high = HF__DURATION_MAX_MS,
    },
    {0},
};

static const struct option reconcile_options[] = {
    NETWORK_OPTIONS(0),
    {0},
};

static void add_ledger(hf__json *json, const char *key, int64_t ledger)
{
    if (ledger > 0)
        hf__json_put_integer(json, key, ledger);
    else
        hf__json_put_null(json, key);
}

static int finish(const struct invocation *in, hf__json *json)
{
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write the result"};

    return print_document(json, stdout) ? EXIT_OK : report_error(&in->report, &err);
}

/* ---- retention ------------------------------------------------------------------------------- */

static int print_retention_json(const struct invocation *in, const char *network,
                                const hf__retention_report *done)
{
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "network", network);
    hf__json_put_boolean(&json, "ran", !done->too_early);
    add_ledger(&json, "latest", done->latest);
    add_ledger(&json, "floor_before", done->floor_before);
    add_ledger(&json, "floor", done->floor);
    add_ledger(&json, "oldest_before", done->oldest_before);
    add_ledger(&json, "oldest", done->oldest);
    hf__json_put_integer(&json, "partitions_dropped", (int64_t)done->dropped);
    hf__json_put_integer(&json, "partitions_left", (int64_t)done->left);
    hf__json_put_integer(&json, "rows_deleted", done->rows);
    hf__json_end_object(&json);
    return finish(in, &json);
}

static void print_retention(const char *network, const hf__retention_report *done)
{
    char left[32];

    if (done->too_early) {
        printf("%s: it ran a moment ago; due in %s\n", network,
               hf__show_duration(left, sizeof left, done->wait_ms));
    } else if (done->latest == 0) {
        printf("%s: nothing has been ingested yet\n", network);
    } else {
        printf("%s: ledgers from %" PRId64 " on are kept; oldest %" PRId64 ", latest %" PRId64,
               network, done->floor, done->oldest, done->latest);
        if (done->rows > 0)
            printf("; %" PRId64 " rows deleted\n", done->rows);
        else
            printf("; %zu %s dropped\n", done->dropped,
                   done->dropped == 1 ? "partition" : "partitions");
    }
}

static int run_retention(const struct invocation *in, hf_store *store, hf_network *network,
                         void *arg)
{
    const struct retention_values *values = arg;
    hf__retention_report done = {0};
    hf__keep keep = {0};
    hf_error err = {0};
    int code = EXIT_OK;
    hf_status status = read_keep(values->keep, &keep, &err);

    keep.every_ms = values->every.value;
    if (status == HF_OK)
        status = hf__retention_run(store, network, &keep, NULL, &done, &err);
    bool came_far = status == HF_OK || done.floor > 0; /* coverage was clipped and committed */
    if (came_far && in->common.json)
        code = print_retention_json(in, values->network.network, &done);
    else if (came_far)
        print_retention(values->network.network, &done);
    return status == HF_OK ? code : report_error(&in->report, &err);
}

static int retention_main(const struct command *self, int argc, char **argv)
{
    struct retention_values values = {0};
    struct invocation in = {0};
    hf__keep ignored;
    hf_error err;
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    if (values.keep == NULL)
        return report_usage(&in.report, self, "--keep is missing");
    if (read_keep(values.keep, &ignored, &err) != HF_OK)
        return report_error(&in.report, &err);
    return with_network(&in, "holdfast retention", &values.network, run_retention, &values);
}

const struct command cmd_retention = {
    .name = "retention",
    .summary = "Drop old ledgers, without stalling anybody.",
    .usage = "--network NET --keep 30d|N-ledgers [--every TIME]",
    .options = retention_options,
    .main = retention_main,
};

/* ---- reconcile ------------------------------------------------------------------------------- */

static int print_reconciled(const struct invocation *in, const char *network,
                            const hf__reconcile_report *done)
{
    hf__json json = {0};

    if (!in->common.json) {
        printf("%s: the data begins at ledger %" PRId64 "; oldest %" PRId64, network,
               done->data_from, done->oldest);
        if (done->oldest != done->oldest_before)
            printf(" (was %" PRId64 ")", done->oldest_before);
        printf("; %" PRId64 " %s not covered any more\n", done->uncovered,
               done->uncovered == 1 ? "ledger is" : "ledgers are");
        return EXIT_OK;
    }
    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "network", network);
    hf__json_put_integer(&json, "data_from", done->data_from);
    hf__json_put_integer(&json, "oldest_before", done->oldest_before);
    hf__json_put_integer(&json, "oldest", done->oldest);
    hf__json_put_integer(&json, "uncovered", done->uncovered);
    hf__json_end_object(&json);
    return finish(in, &json);
}

static int reconcile(const struct invocation *in, hf_store *store, hf_network *network, void *arg)
{
    const struct network_values *values = arg;
    hf__reconcile_report done;
    hf_error err;

    (void)store;
    return hf__reconcile(network, &done, &err) == HF_OK
               ? print_reconciled(in, values->network, &done)
               : report_error(&in->report, &err);
}

static int reconcile_main(const struct command *self, int argc, char **argv)
{
    struct network_values values = {0};
    struct invocation in = {0};
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    return with_network(&in, "holdfast retention", &values, reconcile, &values);
}

const struct command cmd_retention_reconcile = {
    .name = "retention reconcile",
    .summary = "Set the oldest cursor to what the data says, where something else drops data.",
    .usage = "--network NET",
    .options = reconcile_options,
    .main = reconcile_main,
};
