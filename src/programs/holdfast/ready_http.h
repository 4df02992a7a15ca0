#ifndef HF_PROGRAMS_HOLDFAST_READY_HTTP_H
#define HF_PROGRAMS_HOLDFAST_READY_HTTP_H

#include "holdfast/holdfast.h"

/*
 * Readiness over HTTP, for probes: GET and HEAD of any path are 200 while a lock is held, and 503
 * otherwise. A thread of its own answers, also while the main thread waits for the lock or for a
 * server that is silent. It asks the lock itself at each request, so it is as quick as the loss.
 */
struct ready_http;

/*
 * Listens on "PORT", "ADDR:PORT" or "[ADDR]:PORT"; without an address on 127.0.0.1. HF_INVALID:
 * text is none of these. HF_CONFIG: it cannot listen there.
 */
HF_MUST_CHECK hf_status ready_http_open(const char *text, struct ready_http **http, hf_error *err);

/* From now on it answers for this lock; NULL: for none. It must be taken away before it is freed.
 * NULL for http is safe. Any thread. */
void ready_http_answer_for(struct ready_http *http, const hf_lock *lock);

void ready_http_close(struct ready_http *http); /* NULL is safe */

#endif
