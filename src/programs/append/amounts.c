#include "programs/append/amounts.h"

#include <inttypes.h>
#include <stdio.h>

static const char *describe(char *out, size_t size, const struct progress *progress,
                            const hf__append_progress *now)
{
    if (now->rows >= 0)
        snprintf(out, size, "%.1f MB, %" PRId64 " rows, %.1f MB/s", (double)now->bytes / 1e6,
                 now->rows, progress->rate / 1e6);
    else
        snprintf(out, size, "%.1f MB, %.1f MB/s", (double)now->bytes / 1e6, progress->rate / 1e6);
    return out;
}

void show_amounts(struct progress *progress, const hf__append_progress *now)
{
    char text[96];

    if (!progress_is_due(progress, now->bytes))
        return;
    describe(text, sizeof text, progress, now);
    if (progress->bar)
        progress_draw(progress, now->bytes, now->size, text);
    else
        report_note(progress->report, "%s: %s", progress->name, text);
}
