#include "cli/append/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { BAR_EVERY_MS = 100, LINE_EVERY_MS = 10000, BAR_WIDTH = 24 };

void progress_begin(struct progress *progress, const struct report *report, const char *table)
{
    int64_t now = hf__now_ms();

    *progress = (struct progress){.report = report,
                                  .table = table,
                                  .bar = !report->json && isatty(STDERR_FILENO) == 1,
                                  .began_ms = now,
                                  .shown_ms = now};
    if (progress->bar) /* the first at once */
        progress->shown_ms -= BAR_EVERY_MS;
}

static void clear_bar(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}

static void update_rate(struct progress *progress, const hf__append_progress *now, int64_t moment)
{
    double seconds = (double)(moment - progress->shown_ms) / 1000.0;
    double rate = seconds > 0 ? (double)(now->bytes - progress->shown_bytes) / seconds : 0;

    progress->rate = progress->rate > 0 ? 0.8 * progress->rate + 0.2 * rate : rate;
    progress->shown_ms = moment;
    progress->shown_bytes = now->bytes;
}

static const char *show_amounts(char *out, size_t size, const struct progress *progress,
                                const hf__append_progress *now)
{
    if (now->rows >= 0)
        snprintf(out, size, "%.1f MB, %" PRId64 " rows, %.1f MB/s", (double)now->bytes / 1e6,
                 now->rows, progress->rate / 1e6);
    else
        snprintf(out, size, "%.1f MB, %.1f MB/s", (double)now->bytes / 1e6, progress->rate / 1e6);
    return out;
}

static void draw_bar(struct progress *progress, const hf__append_progress *now)
{
    char amounts[96];
    int filled = now->size > 0 ? (int)(BAR_WIDTH * now->bytes / now->size) : 0;

    filled = filled > BAR_WIDTH ? BAR_WIDTH : filled;
    fprintf(stderr, "\r%s [%.*s%.*s] %s\033[K", progress->table, filled, "########################",
            BAR_WIDTH - filled, "                        ",
            show_amounts(amounts, sizeof amounts, progress, now));
    fflush(stderr);
    progress->drawn = true;
}

void progress_show(struct progress *progress, const hf__append_progress *now)
{
    char amounts[96];
    int64_t moment = hf__now_ms();

    if (moment - progress->shown_ms < (progress->bar ? BAR_EVERY_MS : LINE_EVERY_MS))
        return;
    update_rate(progress, now, moment);
    if (progress->bar)
        draw_bar(progress, now);
    else
        report_note(progress->report, "%s: %s", progress->table,
                    show_amounts(amounts, sizeof amounts, progress, now));
}

void progress_note(struct progress *progress, const char *text)
{
    clear_bar(progress);
    report_note(progress->report, "%s", text);
}

void progress_end(struct progress *progress)
{
    clear_bar(progress);
}
