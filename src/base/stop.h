/* One wish to stop, seen by waits on a descriptor and by loops on a flag. */
#ifndef HF_INGEST_STOP_H
#define HF_INGEST_STOP_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

typedef struct hf__stop {
    atomic_bool requested;
    int fd; /* readable from then on */
} hf__stop;

HF_MUST_CHECK hf_status hf__stop_init(hf__stop *stop, hf_error *err);
void hf__stop_request(hf__stop *stop); /* any thread, more than once */
void hf__stop_destroy(hf__stop *stop);

/* Sleeps unless it is requested meanwhile; true: it was. */
bool hf__stop_pause(const hf__stop *stop, int ms);

/* 1, 2, 4 … seconds, at most `most`: how long to pause before the next try. */
int hf__backoff_ms(unsigned failures, int most_ms);

#endif
