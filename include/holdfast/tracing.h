/*
 * Tracing: spans of waits, holds and transactions, as OpenTelemetry has them. The library makes
 * their ids and tells of each that has ended (hf_store_options.on_span); what exports it is the
 * caller's. A holder's record has the span of its hold, and the span of a wait links to it.
 */
#ifndef HOLDFAST_TRACING_H
#define HOLDFAST_TRACING_H

#include <holdfast/transactions.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "00-TRACE-SPAN-FLAGS" and its NUL, as W3C Trace Context has it in version 00. */
#define HF_TRACEPARENT_SIZE 56

typedef enum hf_span_kind {
    HF_SPAN_WAIT = 0,    /* an acquire that had to wait, or failed */
    HF_SPAN_HOLD,        /* from the acquire to the release, or to the loss (HF_LOST) */
    HF_SPAN_TRANSACTION, /* one with labels, or with a traceparent; all attempts together */
} hf_span_kind;

/* Its strings live as long as the call, and are "" where there is none. */
typedef struct hf_span {
    hf_span_kind kind;
    hf_status status;  /* what the acquire, the release or the transaction returns */
    const char *label; /* of the first target in key order, without a NUL; NULL: there is none */
    size_t label_size;
    int64_t key;
    hf_space space;
    hf_mode mode;
    unsigned slot;           /* of a hold, or 0 */
    int64_t token;           /* of a hold, or 0 */
    int64_t start_ns;        /* Unix time */
    int64_t end_ns;          /* never before start_ns, whatever is done to the clock */
    const char *traceparent; /* its own: trace id, span id and flags */
    const char *parent;      /* what the lock or the transaction was given; "": it is a root */
    /* Of a wait: the hold that was in its way first. Of a transaction: that of a label it was
     * refused. */
    const char *link;
} hf_span;

/*
 * on_span is called once for each span that has ended and is sampled, with no mutex of the library
 * held: of a wait in the thread of its acquire, before that returns (with hf_lock_start, where done
 * is called, before it); of a hold in the thread that releases or frees the lock, also if it was
 * lost long before; of a transaction in its thread, before it returns. The caller is kept waiting
 * by it, so it should only put the span into a queue. It must not close the store, nor release or
 * free the lock that the span is of.
 */

/* The span of the hold, for what is done under the lock; "": it is not traced. The lock owns it. */
HF_API const char *hf_lock_traceparent(const hf_lock *lock);

/* The span of the transaction; "": it is not traced. The transaction owns it. */
HF_API const char *hf_tx_traceparent(const hf_tx *tx);

#ifdef __cplusplus
}
#endif

#endif
