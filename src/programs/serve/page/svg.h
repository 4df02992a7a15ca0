/*
 * Pictures for the page. They have attributes and classes only: the page's policy forbids inline
 * style.
 */
#ifndef HF_SERVE_SVG_H
#define HF_SERVE_SVG_H

#include "base/buf.h"
#include "programs/serve/page/graph.h"
#include "programs/view/snapshot.h"

/*
 * What is there and what is missing, from the oldest wanted ledger to the newest known one. Places
 * are percentages, but the marks of gaps are pixels, so that each is at least 2 px wide on any
 * screen. Gaps whose marks would overlap are one mark with their count.
 */
void hf__svg_coverage(hf__buf *out, const hf__seen_network *network);
/* The ledgers that the bar goes from and to; false when there is nothing to draw. */
bool hf__svg_coverage_range(const hf__seen_network *network, hf_range *range);

/* One lock over time. Equal cells next to each other are one mark. */
void hf__svg_heat(hf__buf *out, const hf__heat_row *row, size_t columns, const char *label);

/* Who waits for whom, as the graph has placed it. */
void hf__svg_graph(hf__buf *out, const hf__snapshot *seen, const hf__graph *graph);

#endif
