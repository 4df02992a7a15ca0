/* What a network has of its ledgers, as a bar. */
#ifndef HF_TOP_COVERAGE_H
#define HF_TOP_COVERAGE_H

#include "base/buf.h"
#include "programs/view/snapshot.h"

/* Full where all of a cell's ledgers are there; a gap is never too small to be seen. */
void hf__put_coverage(hf__buf *out, const hf__seen_network *network, size_t cells);

#endif
