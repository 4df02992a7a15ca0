/*
 * One wish to stop, with its reason: loops look at a flag, waits poll a descriptor. Any thread may
 * set or read it, and no mutex is taken.
 */
#ifndef HF_BASE_STOP_H
#define HF_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

typedef enum hf__stop_reason {
    HF__STOP_NONE = 0, /* go on */
    HF__STOP_ASKED,    /* by a signal, or by whoever started the work */
    HF__STOP_LOST,     /* a lock that the work needs is gone */
} hf__stop_reason;

typedef struct hf__stop {
    atomic_int reason; /* hf__stop_reason */
    int fd;            /* readable as soon as there is a reason, and from then on */
} hf__stop;

/* HF_SYSTEM when there is no descriptor left. */
HF_MUST_CHECK hf_status hf__stop_init(hf__stop *stop, hf_error *err);

/* When nobody uses it any more. Safe on one whose fd is -1, and twice. */
void hf__stop_destroy(hf__stop *stop);

/* The first reason stays. */
void hf__stop_set(hf__stop *stop, hf__stop_reason reason);

/* The reason, and whether there is one yet. */
hf__stop_reason hf__stop_why(const hf__stop *stop);
bool hf__stop_is_set(const hf__stop *stop);

/* HF_OK, or what the reason means: HF_INTERRUPTED, HF_LOST. */
HF_MUST_CHECK hf_status hf__stop_check(const hf__stop *stop, hf_error *err);

/* Sleeps for ms (negative: for ever), or until it is set; true: it is. */
bool hf__stop_pause(const hf__stop *stop, int ms);

/* How long to pause after so many failures in a row: 1, 2, 4 … seconds, but at most most_ms. */
int hf__backoff_ms(unsigned failures, int most_ms);

#endif
