#include "programs/ingest/ledgers.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/time.h"

/* Being ahead of a source that has forgotten is no lag. */
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

void show_ledgers(struct progress *progress, const hf__ingest_progress *now)
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

void sum_up_ledgers(struct progress *progress, const hf__ingest_progress *now)
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
