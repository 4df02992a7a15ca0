#include "programs/ingest/backfilling.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "programs/ingest/backfill.h"

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

int backfill(const struct invocation *in, hf_store *store, hf_network *network,
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
    if (done.failure_count > 0)
        code = EXIT_FINDINGS;
    hf__backfill_report_free(&done);
    return code;
}
