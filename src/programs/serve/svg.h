/* Pictures for the page: only attributes and classes, since its policy allows no inline style. */
#ifndef HF_SERVE_SVG_H
#define HF_SERVE_SVG_H

#include "base/buf.h"
#include "programs/serve/page_graph.h"
#include "programs/view/snapshot.h"

/*
 * svg_coverage.c: what is there and what is missing from the oldest wanted ledger to the newest known
 * one. Places are percentages and the marks of gaps pixels, so that each is 2 px wide or wider on any
 * screen; gaps that would overlap are one mark with their count.
 */
void hf__svg_coverage(hf__buf *out, const hf__seen_network *network);
/* The ledgers that the bar goes from and to; false when there is nothing to draw. */
bool hf__svg_coverage_range(const hf__seen_network *network, hf_range *range);

/* svg_heat.c: one lock over time, one mark per run of equal cells. */
void hf__svg_heat(hf__buf *out, const hf__heat_row *row, size_t columns, const char *label);

/* svg_graph.c */
void hf__svg_graph(hf__buf *out, const hf__snapshot *seen, const hf__graph *graph);

#endif
