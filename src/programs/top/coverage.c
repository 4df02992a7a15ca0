#include "programs/top/coverage.h"

/* From the first ledger that is there or wanted to the last. */
static bool extent(const hf__seen_network *network, hf_range *whole)
{
    bool found = false;
    const hf_range *lists[] = {network->coverage, network->gaps};
    const size_t counts[] = {network->coverage_count, network->gap_count};

    for (size_t i = 0; i < 2; i++) {
        if (counts[i] == 0)
            continue;
        hf_range ends = {.from = lists[i][0].from, .to = lists[i][counts[i] - 1].to};
        if (!found || ends.from < whole->from)
            whole->from = ends.from;
        if (!found || ends.to > whole->to)
            whole->to = ends.to;
        found = true;
    }
    return found;
}

static size_t cell_of(const hf_range *whole, int64_t ledger, size_t cells)
{
    double length = (double)whole->to - (double)whole->from + 1;
    double at = ((double)ledger - (double)whole->from) / length * (double)cells;

    return at < (double)(cells - 1) ? (size_t)at : cells - 1;
}

/* The ranges ascend, so one look at the next of them is enough for each cell. */
void hf__put_coverage(hf__buf *out, const hf__seen_network *network, size_t cells)
{
    hf_range whole = {0};
    size_t gap = 0;

    if (cells == 0 || !extent(network, &whole))
        return;
    for (size_t cell = 0; cell < cells; cell++) {
        while (gap < network->gap_count && cell_of(&whole, network->gaps[gap].to, cells) < cell)
            gap++;
        bool is_gap =
            gap < network->gap_count && cell_of(&whole, network->gaps[gap].from, cells) <= cell;
        hf__buf_puts(out, is_gap ? "░" : "█");
    }
}
