/* How numbers, times, people and locks are written. Pure functions. */
#ifndef HF_TOP_CELL_H
#define HF_TOP_CELL_H

#include "base/buf.h"
#include "programs/view/snapshot.h"

/* "350ms", "12s", "4m 05s", "3h 20m", "5d 2h"; bound adds "at most". Nothing when negative. */
void hf__put_age(hf__buf *out, int64_t ms, bool bound);

/* "42", or "(1, -2)" for two int4. */
void hf__cell_key(hf__buf *out, int64_t key, hf_space space);

/* Local time: "14:03:59" on the same day, otherwise "06-01 14:03". Nothing for 0. */
void hf__put_moment(hf__buf *out, int64_t at_ms, int64_t now_ms);

/* "ingest on db1, pid 4711" as far as it is known. */
void hf__put_who(hf__buf *out, const char *application, const char *host, int pid);
void hf__put_party(hf__buf *out, const hf__snapshot *snapshot, const hf__seen_party *party);

/* The label of a lock, or else its key. */
void hf__put_title(hf__buf *out, const hf__seen_lock *lock);

const char *hf__mode_word(hf_mode mode);

/* These return NULL when it is not in the snapshot, which owns it. */
const hf__seen_lock *hf__find_lock(const hf__snapshot *snapshot, int64_t key, hf_space space);
const hf__seen_party *hf__find_party(const hf__snapshot *snapshot, int id);

/*
 * A bar of what a network has of its ledgers. A cell is full only if all of its ledgers are there,
 * so that every gap is seen.
 */
void hf__put_coverage(hf__buf *out, const hf__seen_network *network, size_t cells);

#endif
