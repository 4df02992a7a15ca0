/* Session locks that an idle session has held for too long, and what ends them. */
#ifndef HF_CLI_LEAKS_H
#define HF_CLI_LEAKS_H

#include "cli/report.h"
#include "holdfast/holdfast.h"

/*
 * An idle session's lock is a session lock, and as old as the idleness at least. A session of Holdfast
 * is there for its locks, and pinged while it holds some: the recorded age says it all.
 */
bool is_leak(const hf_lock_view *view, int64_t held_ms);

/* Nobody can tell whether it is one. */
bool may_be_leak(const hf_lock_view *view);

enum { END_SHOWN_MAX = 64 };

/* "SELECT pg_terminate_backend(4711);" or "kill 4711". Returns out. */
const char *end_statement(char out[END_SHOWN_MAX], const hf_lock_view *view, bool local);

/* named: with the registry's names. False when memory or the stream failed. */
bool print_leaks(const hf_store *store, const hf_lock_view *const *leaks, size_t count, bool named);

/* The notes below: what ending costs, and how many locks nobody can tell about. */
void explain_leaks(const struct report *report, const hf_store *store, int64_t held_ms,
                   size_t count, size_t untold);

#endif
