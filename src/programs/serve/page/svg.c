#include "programs/serve/page/svg.h"

#include "base/time.h"
#include "programs/serve/page/html.h"
#include "programs/serve/page/page.h"

/* ---- who waits for whom ---- */

/*
 * Roots are in the first column, where one with many levels behind it is seen too. A lock stands
 * between those who wait and its holder. A graph that would be wider than a screen is drawn in
 * steps instead: each node has a row of its own, a step to the right of what it waits for.
 */
enum {
    DEPTH_IN_COLUMNS = 4, /* deeper ones go in steps */
    STEP = 26,
    STEP_ROW = 44,
    PARTY_WIDTH = 214,
    LOCK_WIDTH = 206,
    SPACE = 36,
    BOX = 40,
    LOCK_BOX = 26,
    ROW = 50,
    MARGIN = 6,
};

static int width_of(const hf__graph_node *node)
{
    return node->kind == HF__NODE_LOCK ? LOCK_WIDTH : PARTY_WIDTH;
}

static int height_of(const hf__graph_node *node)
{
    return node->kind == HF__NODE_PARTY ? BOX : LOCK_BOX;
}

static bool is_in_steps(const hf__graph *graph)
{
    return graph->depth > DEPTH_IN_COLUMNS;
}

/* Parties are at even depths, locks at odd ones. */
static int left_at(const hf__graph *graph, size_t depth)
{
    int x = graph->has_cycle ? SPACE : MARGIN;

    if (is_in_steps(graph))
        return MARGIN + (int)depth * STEP;
    for (size_t at = 0; at < depth; at++)
        x += (at % 2 == 0 ? PARTY_WIDTH : LOCK_WIDTH) + SPACE;
    return x;
}

static int left_of(const hf__graph *graph, const hf__graph_node *node)
{
    return left_at(graph, node->depth);
}

static double middle_of(const hf__graph *graph, const hf__graph_node *node)
{
    if (is_in_steps(graph))
        return MARGIN + (double)((node - graph->nodes) * STEP_ROW) + (double)BOX / 2;
    return MARGIN + node->row * ROW + (double)BOX / 2;
}

static void put_name(hf__buf *out, const hf__snapshot *seen, const hf__graph_node *node)
{
    const hf__seen_lock *lock = NULL;
    char ref[HF__REF_ROOM];

    switch (node->kind) {
    case HF__NODE_PARTY: hf__html(out, "party:%d", seen->parties[node->index].id); break;
    case HF__NODE_LOCK:
        lock = &seen->locks[node->index];
        hf__html(out, "lock:%s", hf__lock_ref(ref, lock->space, lock->key));
        break;
    case HF__NODE_MORE: hf__buf_puts(out, "more");
    }
}

/* The row below everything that is in one tree with the node. */
static double below_all(const hf__graph *graph, size_t node)
{
    double last = 0;

    while (graph->nodes[node].parent != SIZE_MAX)
        node = graph->nodes[node].parent;
    for (size_t i = node; i < graph->nodes[node].end; i++)
        if (graph->nodes[i].row > last)
            last = graph->nodes[i].row;
    return MARGIN + last * ROW + BOX + (double)(ROW - BOX) * 2;
}

/* The right end of everything. */
static int right_of_all(const hf__graph *graph)
{
    int right = 0;

    for (size_t i = 0; i < graph->count; i++) {
        int end = left_of(graph, &graph->nodes[i]) + width_of(&graph->nodes[i]);
        right = end > right ? end : right;
    }
    return right;
}

/*
 * Up to what stands a step to the left; to others around all on the right, where no row but those
 * of both ends is crossed.
 */
static void put_step(hf__buf *out, const hf__graph *graph, const hf__graph_link *link)
{
    const hf__graph_node *from = &graph->nodes[link->from];
    const hf__graph_node *to = &graph->nodes[link->to];
    double y1 = middle_of(graph, from);
    double y2 = middle_of(graph, to);
    int foot = left_of(graph, to) + STEP / 2;

    if (from->parent == link->to)
        hf__html(out, "d=\"M%d %.1fL%d %.1fL%d %.1f\"/>", left_of(graph, from), y1, foot, y1, foot,
                 y2 + (double)height_of(to) / 2 + 2);
    else
        hf__html(out, "d=\"M%d %.1fL%d %.1fL%d %.1fL%d %.1f\"/>",
                 left_of(graph, from) + width_of(from), y1, right_of_all(graph) + SPACE / 2, y1,
                 right_of_all(graph) + SPACE / 2, y2, left_of(graph, to) + width_of(to) + 2, y2);
}

/*
 * Goes from the left side of the waiter to the right side of what it waits for, or around all if
 * that is not further left.
 */
static void put_curve(hf__buf *out, const hf__graph *graph, const hf__graph_link *link)
{
    const hf__graph_node *from = &graph->nodes[link->from];
    const hf__graph_node *to = &graph->nodes[link->to];
    int x1 = left_of(graph, from);
    int x2 = left_of(graph, to) + width_of(to) + 2;
    double y1 = middle_of(graph, from);
    double y2 = middle_of(graph, to);
    double below = below_all(graph, link->from);
    int bend = x1 > x2 ? (x1 - x2) / 2 : SPACE;

    if (x1 > x2)
        hf__html(out, "d=\"M%d %.1fC%d %.1f %d %.1f %d %.1f\"/>", x1, y1, x1 - bend, y1, x2 + bend,
                 y2, x2, y2);
    else
        hf__html(out, "d=\"M%d %.1fC%d %.1f %d %.1f %d %.1fL%d %.1fC%d %.1f %d %.1f %d %.1f\"/>",
                 x1, y1, x1 - bend, y1, x1 - bend, below, x1, below, x2, below, x2 + bend, below,
                 x2 + bend, y2, x2, y2);
}

static void put_link(hf__buf *out, const hf__snapshot *seen, const hf__graph *graph,
                     const hf__graph_link *link)
{
    hf__html(out, "<path class=\"edge%s\" data-from=\"", link->in_cycle ? " cycle" : "");
    put_name(out, seen, &graph->nodes[link->from]);
    hf__buf_puts(out, "\" data-to=\"");
    put_name(out, seen, &graph->nodes[link->to]);
    hf__html(out, "\" marker-end=\"url(#%s)\" ", link->in_cycle ? "tip-cycle" : "tip");
    if (is_in_steps(graph))
        put_step(out, graph, link);
    else
        put_curve(out, graph, link);
}

/* Its end may be cut. */
static void put_detail(hf__buf *out, const hf__seen_party *party, const hf__graph_node *node)
{
    char wait[40];
    hf__buf text = {0};

    if (party->root)
        hf__buf_printf(&text, "keeps %zu waiting", party->kept);
    else if (node->wait_ms >= 0)
        hf__buf_printf(&text, "waits %s", hf__show_duration(wait, sizeof wait, node->wait_ms));
    else
        hf__buf_puts(&text, "waits");
    hf__buf_printf(&text, party->pid != 0 ? " · pid %d" : " · backend %d",
                   party->pid != 0 ? party->pid : party->id);
    if (party->host[0] != '\0')
        hf__buf_printf(&text, ", %s", party->host);
    if (text.broken)
        out->broken = true;
    else
        hf__html(out, "%.33s", text.data);
    hf__buf_free(&text);
}

static void put_party(hf__buf *out, const hf__seen_party *party, const hf__graph_node *node)
{
    const char *name = party->application[0] != '\0' ? party->application : "unnamed";

    hf__html(out, "<title>%.100s", name);
    if (party->host[0] != '\0')
        hf__html(out, " on %.100s", party->host);
    hf__html(out, party->pid != 0 ? ", pid %d</title>" : ", backend %d</title>",
             party->pid != 0 ? party->pid : party->id);
    hf__html(out, "<rect class=\"box\" x=\"1\" y=\"1\" width=\"%d\" height=\"%d\" rx=\"5\"/>",
             PARTY_WIDTH - 2, BOX - 2);
    if (party->root)
        hf__html(out, "<rect class=\"mark\" x=\"1\" y=\"1\" width=\"5\" height=\"%d\"/>", BOX - 2);
    hf__html(out, "<text x=\"12\" y=\"17\">%.27s</text><text class=\"sub\" x=\"12\" y=\"32\">",
             name);
    put_detail(out, party, node);
    hf__buf_puts(out, "</text>");
}

static void put_lock(hf__buf *out, const hf__seen_lock *lock)
{
    char title[HF__TITLE_ROOM];

    hf__buf_puts(out, "<title>");
    hf__html_value(out, hf__lock_title(title, lock));
    hf__html(out,
             "</title><rect class=\"box\" x=\"1\" y=\"1\" width=\"%d\" height=\"%d\" rx=\"12\"/>"
             "<text x=\"12\" y=\"17\">",
             LOCK_WIDTH - 2, LOCK_BOX - 2);
    hf__html(out, "%.25s</text>", lock->label[0] != '\0' ? lock->label : title);
}

/* Each node is an <svg> of its own, which clips text that is too long. */
static void put_node(hf__buf *out, const hf__snapshot *seen, const hf__graph *graph,
                     const hf__graph_node *node)
{
    static const char *const kinds[] = {"party", "lock", "rest"};
    bool root = node->kind == HF__NODE_PARTY && seen->parties[node->index].root;

    hf__html(out, "<svg class=\"node %s%s%s\" data-node=\"", kinds[node->kind], root ? " root" : "",
             node->in_cycle ? " cycle" : "");
    put_name(out, seen, node);
    hf__html(out, "\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\">", left_of(graph, node),
             middle_of(graph, node) - (double)height_of(node) / 2, width_of(node), height_of(node));
    if (node->kind == HF__NODE_PARTY)
        put_party(out, &seen->parties[node->index], node);
    else if (node->kind == HF__NODE_LOCK)
        put_lock(out, &seen->locks[node->index]);
    else
        hf__html(out, "<text class=\"sub\" x=\"12\" y=\"17\">and %zu more</text>", node->index);
    hf__buf_puts(out, "</svg>");
}

void hf__svg_graph(hf__buf *out, const hf__snapshot *seen, const hf__graph *graph)
{
    bool in_steps = is_in_steps(graph);
    int width = right_of_all(graph) + (in_steps || graph->has_cycle ? SPACE : MARGIN);
    int height = 2 * MARGIN + (in_steps ? (int)graph->count * STEP_ROW : (int)(graph->rows * ROW)) -
                 (ROW - BOX);

    hf__html(out,
             "<svg class=\"graph\" aria-hidden=\"true\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %d %d\"><defs>"
             "<marker id=\"tip\" class=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
             "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/>"
             "</marker><marker id=\"tip-cycle\" class=\"tip cycle\" viewBox=\"0 0 8 8\" refX=\"7\" "
             "refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">"
             "<path d=\"M0 0L8 4L0 8z\"/></marker></defs>",
             width, height, width, height);
    for (size_t i = 0; i < graph->link_count; i++)
        put_link(out, seen, graph, &graph->links[i]);
    for (size_t i = 0; i < graph->count; i++)
        put_node(out, seen, graph, &graph->nodes[i]);
    hf__buf_puts(out, "</svg>");
}

/* ---- coverage of a network ---- */

/* On a wide screen 2 px are two thousandths of the bar. */
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

static void put_rect(hf__buf *out, const char *style, double from, double to)
{
    hf__html(out, "<rect class=\"%s\" x=\"%.4f%%\" width=\"%.4f%%\" height=\"100%%\"/>", style,
             from, to - from);
}

/* Ranges that no screen tells apart are drawn as one; the gaps between them are drawn over it. */
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

/* Draws so many gaps as one: its true width, and in the middle a mark of 2 px. */
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
             "aria-label=\"Coverage of %.132s, ledgers %ld to %ld: %zu gaps, %ld ledgers "
             "missing\">",
             network->name, range.from, range.to, network->gap_count, network->status.missing);
    put_rect(out, "track", 0, 100);
    put_covered(out, network, &scale);
    put_gaps(out, network, &scale);
    hf__buf_puts(out, "</svg>");
}

/* ---- contention over time ---- */

enum level { UNKNOWN, IDLE, HELD, ONE, FEW, MANY, CROWD };

static const char *const classes[] = {"", "idle", "h0", "h1", "h2", "h3", "h4"};

static enum level level_of(const hf__heat_cell *cell)
{
    if (cell->samples == 0)
        return UNKNOWN;
    if (cell->waiters == 0)
        return cell->held > 0 ? HELD : IDLE;
    return cell->waiters == 1 ? ONE : cell->waiters < 5 ? FEW : cell->waiters < 10 ? MANY : CROWD;
}

void hf__svg_heat(hf__buf *out, const hf__heat_row *row, size_t columns, const char *label)
{
    hf__html(out,
             "<svg class=\"heat\" role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %zu 10\" "
             "preserveAspectRatio=\"none\" shape-rendering=\"crispEdges\">",
             label, columns);
    for (size_t i = 0; i < columns;) {
        size_t start = i;
        enum level level = level_of(&row->cells[i]);
        while (i < columns && level_of(&row->cells[i]) == level)
            i++;
        if (level != UNKNOWN)
            hf__html(out, "<rect class=\"%s\" x=\"%zu\" width=\"%zu\" height=\"10\"/>",
                     classes[level], start, i - start);
    }
    hf__buf_puts(out, "</svg>");
}
