#include "programs/serve/svg.h"

#include "programs/serve/html.h"

/* A thousandth of the bar: 2 px of a wide screen are two of them. */
static const double overlap_percent = 0.2;
static const double hairline_percent = 0.05;

struct scale {
    double from, width;
};

static double percent(const struct scale *scale, int64_t ledger, int add)
{
    double at = ((double)ledger + add - scale->from) / scale->width * 100;

    return at < 0 ? 0 : at > 100 ? 100 : at;
}

bool hf__svg_coverage_range(const hf__seen_network *network, hf_range *range)
{
    const hf__network_status *status = &network->status;
    bool any = false;

    *range = (hf_range){INT64_MAX, INT64_MIN};
    if (status->wanted_from.known)
        range->from = status->wanted_from.value;
    else if (network->coverage_count > 0)
        range->from = network->coverage[0].from;
    if (network->gap_count > 0 && network->gaps[0].from < range->from)
        range->from = network->gaps[0].from;
    if (network->coverage_count > 0) {
        range->to = network->coverage[network->coverage_count - 1].to;
        any = true;
    }
    if (network->gap_count > 0 && network->gaps[network->gap_count - 1].to > range->to)
        range->to = network->gaps[network->gap_count - 1].to;
    if (status->source_tip.known && status->source_tip.value > range->to)
        range->to = status->source_tip.value;
    return (any || network->gap_count > 0) && range->from <= range->to;
}

static void put_rect(hf__buf *out, const char *class, double from, double to)
{
    hf__html(out, "<rect class=\"%s\" x=\"%.4f%%\" width=\"%.4f%%\" height=\"100%%\"/>", class,
             from, to - from);
}

/* Neighbours that no screen tells apart are one; the gaps between are drawn over it. */
static void put_covered(hf__buf *out, const hf__seen_network *network, const struct scale *scale)
{
    for (size_t i = 0; i < network->coverage_count;) {
        double from = percent(scale, network->coverage[i].from, 0);
        double to = percent(scale, network->coverage[i].to, 1);
        for (i++; i < network->coverage_count; i++) {
            if (percent(scale, network->coverage[i].from, 0) > to + hairline_percent)
                break;
            to = percent(scale, network->coverage[i].to, 1);
        }
        put_rect(out, "covered", from, to);
    }
}

static double ledgers_in(const hf_range *gap)
{
    return (double)gap->to - (double)gap->from + 1;
}

/* Gaps first..last-1 in one: its true width, and in its middle a mark of 2 px. */
static void put_gap(hf__buf *out, const hf_range *gaps, size_t count, double from, double to,
                    double missing)
{
    hf__html(out, "<g class=\"gap\" data-gaps=\"%zu\"><title>", count);
    if (count > 1)
        hf__html(out, "%zu gaps, ", count);
    hf__html(out, "%.0f missing between %ld and %ld</title>", missing, gaps[0].from,
             gaps[count - 1].to);
    hf__html(
        out,
        "<rect x=\"%.4f%%\" width=\"%.4f%%\" height=\"100%%\"/>"
        "<svg x=\"%.4f%%\" height=\"100%%\"><rect x=\"-1\" width=\"2\" height=\"100%%\"/></svg>"
        "</g>",
        from, to - from, (from + to) / 2);
}

static void put_gaps(hf__buf *out, const hf__seen_network *network, const struct scale *scale)
{
    for (size_t i = 0; i < network->gap_count;) {
        size_t first = i;
        double from = percent(scale, network->gaps[i].from, 0);
        double to = percent(scale, network->gaps[i].to, 1);
        double missing = ledgers_in(&network->gaps[i]);
        for (i++; i < network->gap_count; i++) {
            if (percent(scale, network->gaps[i].from, 0) > to + overlap_percent)
                break;
            to = percent(scale, network->gaps[i].to, 1);
            missing += ledgers_in(&network->gaps[i]);
        }
        put_gap(out, &network->gaps[first], i - first, from, to, missing);
    }
}

void hf__svg_coverage(hf__buf *out, const hf__seen_network *network)
{
    hf_range range;

    if (!hf__svg_coverage_range(network, &range))
        return;
    struct scale scale = {(double)range.from, (double)range.to - (double)range.from + 1};
    hf__html(out,
             "<svg class=\"coverage\" width=\"100%%\" height=\"22\" role=\"img\" "
             "aria-label=\"Coverage of %.80s, ledgers %ld to %ld: %zu gaps, %ld ledgers "
             "missing\">",
             network->name, range.from, range.to, network->gap_count, network->status.missing);
    put_rect(out, "track", 0, 100);
    put_covered(out, network, &scale);
    put_gaps(out, network, &scale);
    hf__buf_puts(out, "</svg>");
}
