#include "cli/ingest/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"

enum { BAR_EVERY_MS = 100, LINE_EVERY_MS = 10000, BAR_WIDTH = 24 };

void progress_begin(struct progress *progress, const struct report *report, const char *network)
{
    int64_t now = hf__now_ms();

    *progress = (struct progress){.report = report,
                                  .network = network,
                                  .bar = !report->json && isatty(STDERR_FILENO) == 1,
                                  .began_ms = now,
                                  .shown_ms = now};
}

static void clear_bar(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}

static void update_rate(struct progress *progress, const hf__ingest_progress *now, int64_t moment)
{
    double seconds = (double)(moment - progress->shown_ms) / 1000.0;
    double rate = seconds > 0 ? (double)(now->ledgers - progress->shown_ledgers) / seconds : 0;

    progress->rate = progress->rate > 0 ? 0.8 * progress->rate + 0.2 * rate : rate;
    progress->shown_ms = moment;
    progress->shown_ledgers = now->ledgers;
}

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

static void draw_bar(struct progress *progress, const hf__ingest_progress *now)
{
    char rest[96];
    int64_t span = now->tip - now->first + 1;
    int64_t done = now->latest - now->first + 1;
    int filled = now->tip > 0 && span > 0 ? (int)(BAR_WIDTH * done / span) : 0;

    filled = filled < 0 ? 0 : filled > BAR_WIDTH ? BAR_WIDTH : filled;
    fprintf(stderr, "\r%s [%.*s%.*s] ledger %" PRId64 ", %s\033[K", progress->network, filled,
            "########################", BAR_WIDTH - filled, "                        ", now->latest,
            show_rest(rest, sizeof rest, progress, now));
    fflush(stderr);
    progress->drawn = true;
}

void progress_show(struct progress *progress, const hf__ingest_progress *now)
{
    char rest[96];
    int64_t moment = hf__now_ms();

    if (moment - progress->shown_ms < (progress->bar ? BAR_EVERY_MS : LINE_EVERY_MS))
        return;
    update_rate(progress, now, moment);
    if (progress->bar)
        draw_bar(progress, now);
    else
        report_note(progress->report,
                    "%s: ledger %" PRId64 ", %" PRId64 " ledgers, %" PRId64 " transactions, %s",
                    progress->network, now->latest, now->ledgers, now->transactions,
                    show_rest(rest, sizeof rest, progress, now));
}

void progress_note(struct progress *progress, const char *text)
{
    clear_bar(progress);
    report_note(progress->report, "%s", text);
}

void progress_end(struct progress *progress, const hf__ingest_progress *now)
{
    char time[32];

    if (progress->bar && now->ledgers > 0)
        draw_bar(progress, now);
    clear_bar(progress);
    if (now->ledgers == 0 && now->quarantined == 0) {
        report_note(progress->report, "%s: nothing new", progress->network);
        return;
    }
    report_note(progress->report,
                "%s: %" PRId64 " ledgers up to %" PRId64 ", %" PRId64 " transactions in %s",
                progress->network, now->ledgers, now->latest, now->transactions,
                hf__show_duration(time, sizeof time, hf__now_ms() - progress->began_ms));
}
