#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { BAR_EVERY_MS = 100, LINE_EVERY_MS = 10000, BAR_WIDTH = 24 };

void progress_begin(struct progress *progress, const struct report *report, const char *name)
{
    int64_t now = hf__now_ms();

    *progress = (struct progress){.report = report,
                                  .name = name,
                                  .bar = !report->json && isatty(STDERR_FILENO) == 1,
                                  .began_ms = now,
                                  .shown_ms = now};
    if (progress->bar) /* the first at once */
        progress->shown_ms -= BAR_EVERY_MS;
}

bool progress_is_due(struct progress *progress, int64_t amount)
{
    int64_t now = hf__now_ms(), passed = now - progress->shown_ms;

    if (passed < (progress->bar ? BAR_EVERY_MS : LINE_EVERY_MS))
        return false;
    double rate = (double)(amount - progress->shown_amount) * 1000.0 / (double)passed;
    progress->rate = progress->rate > 0 ? 0.8 * progress->rate + 0.2 * rate : rate;
    progress->shown_ms = now;
    progress->shown_amount = amount;
    return true;
}

void progress_draw(struct progress *progress, int64_t done, int64_t whole, const char *text)
{
    int filled =
        whole > 0 && done > 0 ? (int)(BAR_WIDTH * (done < whole ? done : whole) / whole) : 0;

    fprintf(stderr, "\r%s [%.*s%.*s] %s\033[K", progress->name, filled, "########################",
            BAR_WIDTH - filled, "                        ", text);
    fflush(stderr);
    progress->drawn = true;
}

void progress_note(struct progress *progress, const char *text)
{
    progress_clear(progress);
    report_note(progress->report, "%s", text);
}

void progress_clear(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}
