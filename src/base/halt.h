/* Why an append must not go on; set from any thread, awaited through a descriptor. */
#ifndef HF_APPEND_HALT_H
#define HF_APPEND_HALT_H

#include <stdatomic.h>

#include "base/error.h"

typedef enum hf__halt_reason { HF__GO_ON = 0, HF__HALT_LOST, HF__HALT_ASKED } hf__halt_reason;

typedef struct hf__halt {
    atomic_int reason;
    int fd; /* readable once there is a reason */
} hf__halt;

HF_MUST_CHECK hf_status hf__halt_init(hf__halt *halt, hf_error *err);
void hf__halt_destroy(hf__halt *halt);

/* The first reason stays. */
void hf__halt_set(hf__halt *halt, hf__halt_reason reason);
hf__halt_reason hf__halt_get(const hf__halt *halt);

/* HF_OK, or what the reason means: HF_LOST, HF_INTERRUPTED. */
HF_MUST_CHECK hf_status hf__halt_check(const hf__halt *halt, hf_error *err);

#endif
