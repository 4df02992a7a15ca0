#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/stop.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/choice.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stopping.h"
#include "programs/ingest/backfill/backfill.h"
#include "programs/ingest/ingest.h"
#include "programs/ingest/live.h"
#include "programs/ingest/retention.h"

struct backfilling {
    const char *range; /* "FROM-TO", or NULL */
    bool all_gaps;
    unsigned workers;
    double rate; /* ledgers a second; 0: no limit */
    const hf__ingest_options *options;
};

enum {
    WORKERS_MOST = 32,
    MEMORY_LEAST_MB = 4,
    MEMORY_MOST_MB = 65536,
    LEDGER_MOST_MB = 64,
    GRACE_MS = 1700, /* ingest promises to end within two seconds of a signal */
};

/* ---- --backfill and --gaps ------------------------------------------------------------------- */

enum { RANGES_SHOWN = 20 };

static hf_status read_range(const char *text, hf_range *range, hf_error *err)
{
    char from[24] = "", shown[SHOWN_MAX];
    const char *dash = strchr(text, '-');
    size_t size = dash != NULL ? (size_t)(dash - text) : sizeof from;
    hf_status status = HF_INVALID;

    if (size < sizeof from) {
        memcpy(from, text, size);
        status = hf__parse_int64(from, "FROM", 1, HF__LEDGER_MAX, &range->from, NULL);
        if (status == HF_OK)
            status = hf__parse_int64(dash + 1, "TO", 1, HF__LEDGER_MAX, &range->to, NULL);
    }
    if (status == HF_OK && range->from <= range->to)
        return HF_OK;
    status = hf__fail(err, HF_INVALID, "--backfill cannot be '%s'", show_argument(shown, text));
    hf__hint(err, "give FROM-TO, such as 1-100000");
    return status;
}

static void report_failures(const struct report *report, const struct hf__backfill_report *done)
{
    for (size_t i = 0; i < done->failure_count && i < RANGES_SHOWN; i++) {
        const struct hf__backfill_failure *failure = &done->failures[i];
        report_warning(report, "not filled: %" PRId64 "-%" PRId64 ": %s", failure->range.from,
                       failure->range.to, failure->why.message);
    }
    if (done->failure_count > RANGES_SHOWN)
        report_warning(report, "and %zu ranges more", done->failure_count - RANGES_SHOWN);
}

static void report_done(const struct report *report, const struct hf__backfill_report *done)
{
    if (done->missing == 0)
        report_note(report, "nothing is missing from %" PRId64 " to %" PRId64, done->window.from,
                    done->window.to);
    else
        report_note(report,
                    "filled %" PRId64 " of %" PRId64 " missing ledgers, %" PRId64 " transactions",
                    done->ledgers + done->known, done->missing, done->transactions);
    if (done->quarantined > 0)
        report_note(report, "%" PRId64 " ledgers are in quarantine", done->quarantined);
}

/* Returns the exit code. */
static int backfill(const struct invocation *in, hf_store *store, hf_network *network,
                    const struct backfilling *backfilling, hf__stop *stop)
{
    const hf__ingest_options *live = backfilling->options;
    struct hf__backfill_options options = {
        .source = live->source,
        .all_gaps = backfilling->all_gaps,
        .workers = backfilling->workers,
        .rate = backfilling->rate,
        .commit_every = live->commit_every,
        .memory = live->memory,
        .partition_ledgers = live->partition_ledgers,
        .on_bad = live->on_bad,
        .events = live->events,
    };
    struct hf__backfill_report done = {0};
    hf_error err;

    if (backfilling->range != NULL &&
        read_range(backfilling->range, &options.window, &err) != HF_OK)
        return report_error(&in->report, &err);
    hf_status status = hf__backfill_run(store, network, &options, stop, &done, &err);
    if (status == HF_OK || done.ledgers > 0)
        report_done(&in->report, &done);
    report_failures(&in->report, &done);
    int code = status == HF_OK ? EXIT_OK : report_error(&in->report, &err);
    if (done.failure_count > 0 && (status == HF_OK || status == HF_UNREACHABLE))
        code = EXIT_FINDINGS;
    hf__backfill_report_free(&done);
    return code;
}

/* ---- progress, for people -------------------------------------------------------------------- */

/* A source that has lost ledgers may have less than we do: that is no lag. */
static int64_t lag_of(const hf__ingest_progress *now)
{
    return now->tip > now->latest ? now->tip - now->latest : 0;
}

static const char *show_rest(char *out, size_t size, const struct progress *progress,
                             const hf__ingest_progress *now)
{
    char left[32];
    int64_t lag = lag_of(now);

    if (now->tip == 0)
        snprintf(out, size, "%.0f/s", progress->rate);
    else if (lag == 0 || progress->rate < 0.01)
        snprintf(out, size, "lag %" PRId64 ", %.0f/s", lag, progress->rate);
    else
        snprintf(out, size, "lag %" PRId64 ", %.0f/s, %s left", lag, progress->rate,
                 hf__show_duration(left, sizeof left,
                                   (int64_t)((double)lag / progress->rate) * 1000 + 1000));
    return out;
}

static void draw(struct progress *progress, const hf__ingest_progress *now)
{
    char rest[96], text[128];
    int64_t span = now->tip > 0 ? now->tip - now->first + 1 : 0;

    snprintf(text, sizeof text, "ledger %" PRId64 ", %s", now->latest,
             show_rest(rest, sizeof rest, progress, now));
    progress_draw(progress, now->latest - now->first + 1, span, text);
}

static void show_ledgers(struct progress *progress, const hf__ingest_progress *now)
{
    char rest[96];

    if (!progress_is_due(progress, now->ledgers))
        return;
    if (progress->bar)
        draw(progress, now);
    else
        report_note(progress->report,
                    "%s: ledger %" PRId64 ", %" PRId64 " ledgers, %" PRId64 " transactions, %s",
                    progress->name, now->latest, now->ledgers, now->transactions,
                    show_rest(rest, sizeof rest, progress, now));
}

static void sum_up_ledgers(struct progress *progress, const hf__ingest_progress *now)
{
    char time[32];

    if (progress->bar && now->ledgers > 0)
        draw(progress, now);
    progress_clear(progress);
    if (now->ledgers == 0 && now->quarantined == 0) {
        report_note(progress->report, "%s: nothing new", progress->name);
        return;
    }
    report_note(progress->report,
                "%s: %" PRId64 " ledgers up to %" PRId64 ", %" PRId64 " transactions in %s",
                progress->name, now->ledgers, now->latest, now->transactions,
                hf__show_duration(time, sizeof time, hf__now_ms() - progress->began_ms));
}

/* ---- the command ----------------------------------------------------------------------------- */

struct ingest_values {
    struct network_values network;
    const char *source;
    struct number start_ledger;
    struct number commit_every;
    struct number memory_mb;
    struct number partition_ledgers;
    bool follow;
    bool standby;
    bool ask;
    bool no_yield;
    const char *on_bad;
    const char *keep;
    const char *backfill;
    bool gaps;
    struct number workers;
    struct number rate;
};

static const struct option ingest_options[] = {
    NETWORK_OPTIONS(offsetof(struct ingest_values, network)),
    {
        .name = "source",
        .value = "SOURCE",
        .help = "file.ndjson, a folder, -, exec:COMMAND, rpc+http(s)://…, generate:N[,TX]",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct ingest_values, source),
    },
    {
        .name = "start-ledger",
        .value = "N",
        .help = "where a first run begins (default: the tip of rpc, the start of the rest)",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct ingest_values, start_ledger),
        .low = 1,
        .high = HF__LEDGER_MAX,
    },
    {
        .name = "follow",
        .help = "wait for more at the end of a file or folder",
        .offset = offsetof(struct ingest_values, follow),
    },
    {
        .name = "standby",
        .help = "wait for the ingester that runs, and take over",
        .offset = offsetof(struct ingest_values, standby),
    },
    {
        .name = "ask",
        .help = "with --standby: go before all who wait, and ask the ingester to yield",
        .offset = offsetof(struct ingest_values, ask),
    },
    {
        .name = "no-yield",
        .help = "go on when a successor asks for the network",
        .offset = offsetof(struct ingest_values, no_yield),
    },
    {
        .name = "commit-every",
        .value = "N",
        .help = "ledgers in one transaction at most, behind the tip (default: 1000)",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct ingest_values, commit_every),
        .low = 1,
        .high = 100000,
    },
    {
        .name = "memory",
        .value = "MB",
        .help = "for ledgers in flight (default: 64)",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct ingest_values, memory_mb),
        .low = MEMORY_LEAST_MB,
        .high = MEMORY_MOST_MB,
    },
    {
        .name = "partition-ledgers",
        .value = "N",
        .help = "ledgers in one partition (default: 131072)",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct ingest_values, partition_ledgers),
        .low = 1,
        .high = HF__LEDGER_MAX,
    },
    {
        .name = "on-bad",
        .value = "WHAT",
        .help = "stop (default) at a ledger that cannot be taken, or quarantine it",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct ingest_values, on_bad),
    },
    {
        .name = "keep",
        .value = "HOW",
        .help = "drop what is older: 30d, or 1000-ledgers",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct ingest_values, keep),
    },
    {
        .name = "backfill",
        .value = "RANGE",
        .help = "fill what lacks in FROM-TO, beside the live ingester",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct ingest_values, backfill),
    },
    {
        .name = "gaps",
        .help = "fill all gaps, as 'holdfast gaps' lists them",
        .offset = offsetof(struct ingest_values, gaps),
    },
    {
        .name = "workers",
        .value = "N",
        .help = "that backfill at once (default: 2)",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct ingest_values, workers),
        .low = 1,
        .high = WORKERS_MOST,
    },
    {
        .name = "rate",
        .value = "N",
        .help = "ledgers a second at most, of all workers together",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct ingest_values, rate),
        .low = 1,
        .high = INT_MAX,
    },
    {0},
};

struct ingest {
    struct ingest_values values;
    struct invocation in;
    hf__ingest_options options;
    hf_store *store;
    hf_network *network;
    struct stopping stopping;
    struct progress progress;
};

static void on_note(void *arg, const char *text)
{
    progress_note(&((struct ingest *)arg)->progress, text);
}

static void on_progress(void *arg, const hf__ingest_progress *progress)
{
    show_ledgers(&((struct ingest *)arg)->progress, progress);
}

static hf_status read_on_bad(const char *word, hf__on_bad *on_bad, hf_error *err)
{
    char shown[SHOWN_MAX];
    hf_status status = HF_OK;

    *on_bad = HF__BAD_STOPS;
    if (word == NULL || strcmp(word, "stop") == 0)
        return HF_OK;
    *on_bad = HF__BAD_IS_QUARANTINED;
    if (strcmp(word, "quarantine") == 0)
        return HF_OK;
    status = hf__fail(err, HF_INVALID, "--on-bad cannot be '%s'", show_argument(shown, word));
    hf__hint(err, "give stop or quarantine");
    return status;
}

static hf_status read_values(struct ingest *ingest, hf_error *err)
{
    const struct ingest_values *values = &ingest->values;
    hf__ingest_options *options = &ingest->options;

    options->source.spec = values->source;
    options->source.network = values->network.network;
    options->source.follow = values->follow;
    options->source.stop_fd = -1;
    options->source.line_max = (size_t)LEDGER_MOST_MB * 1024 * 1024;
    options->start_ledger = values->start_ledger.value;
    options->commit_every = values->commit_every.value;
    options->memory = (size_t)values->memory_mb.value * 1024 * 1024;
    options->partition_ledgers = values->partition_ledgers.value;
    options->standby = values->standby;
    options->ask = values->ask;
    options->refuses = values->no_yield;
    options->events = (hf__ingest_events){.note = on_note, .progress = on_progress, .arg = ingest};
    hf_status status = read_on_bad(values->on_bad, &options->on_bad, err);
    if (status == HF_OK && values->keep != NULL)
        status = read_keep(values->keep, &options->keep, err);
    return status;
}

static const char *contradiction(const struct ingest_values *values)
{
    bool fills = values->backfill != NULL || values->gaps;

    if (values->network.network == NULL)
        return "--network is missing";
    if (values->source == NULL)
        return "--source is missing";
    if (values->backfill != NULL && values->gaps)
        return "--backfill and --gaps exclude each other";
    if (fills && (values->follow || values->standby || values->no_yield ||
                  values->start_ledger.given || values->keep != NULL))
        return "--follow, --standby, --no-yield, --start-ledger and --keep are for the live "
               "ingester";
    if (values->ask && !values->standby)
        return "--ask goes with --standby";
    if (!fills && (values->workers.given || values->rate.given))
        return "--workers and --rate go with --backfill or --gaps";
    return NULL;
}

static int run_live(struct ingest *ingest)
{
    hf__ingest_progress progress;
    hf_error err;
    hf_status status = hf__live_run(ingest->store, ingest->network, &ingest->options,
                                    &ingest->stopping.stop, &progress, &err);

    if (status == HF_OK || progress.ledgers > 0)
        sum_up_ledgers(&ingest->progress, &progress);
    return status == HF_OK ? EXIT_OK : report_error(&ingest->in.report, &err);
}

static int run_backfill(struct ingest *ingest)
{
    const struct ingest_values *values = &ingest->values;
    struct backfilling backfilling = {
        .range = values->backfill,
        .all_gaps = values->gaps,
        .workers = (unsigned)(values->workers.given ? values->workers.value : 2),
        .rate = (double)values->rate.value,
        .options = &ingest->options,
    };

    return backfill(&ingest->in, ingest->store, ingest->network, &backfilling,
                    &ingest->stopping.stop);
}

static int run_ingest(struct ingest *ingest)
{
    const struct report *report = &ingest->in.report;
    const struct stopping_options stopping = {.grace_ms = GRACE_MS};
    hf_error err;

    if (read_values(ingest, &err) != HF_OK)
        return report_error(report, &err);
    if (open_network(&ingest->in, "holdfast ingest", &ingest->values.network, 0, &ingest->store,
                     &ingest->network, &err) != HF_OK ||
        stopping_init(&ingest->stopping, &stopping, &err) != HF_OK)
        return report_error(report, &err);
    stopping_work(&ingest->stopping, ingest->store); /* a pending signal then stops the work */
    if (stopping_start(&ingest->stopping, &err) != HF_OK)
        return report_error(report, &err);
    progress_begin(&ingest->progress, report, ingest->values.network.network);
    bool fills = ingest->values.backfill != NULL || ingest->values.gaps;
    int code = fills ? run_backfill(ingest) : run_live(ingest);
    stopping_end(&ingest->stopping);
    return code;
}

static int ingest_main(const struct command *self, int argc, char **argv)
{
    struct ingest ingest = {.stopping = {.stop = {.fd = -1}}};
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &ingest.values, &ingest.in, &code))
        return code;
    const char *wrong = contradiction(&ingest.values);
    if (wrong != NULL)
        return report_usage(&ingest.in.report, self, "%s", wrong);
    block_stop_signals();
    code = run_ingest(&ingest);
    hf_network_free(ingest.network);
    hf_store_close(ingest.store);
    stopping_destroy(&ingest.stopping);
    return code;
}

const struct command cmd_ingest = {
    .name = "ingest",
    .summary = "Ingest a network's ledgers, alone, and go on where it stopped.",
    .usage = "--network NET --source SOURCE [--start-ledger N] [--follow] [--standby] [OPTION...]\n"
             "--network NET --source SOURCE (--backfill FROM-TO | --gaps) [--workers N] [--rate N]",
    .options = ingest_options,
    .main = ingest_main,
};
