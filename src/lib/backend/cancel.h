/* What ends one call early: the caller's handle, asked by every place where the call may wait. */
#ifndef HF_BACKEND_CANCEL_H
#define HF_BACKEND_CANCEL_H

#include "holdfast/locks.h"

/* A call that may be cancelled, while it runs. wake makes it look at the handle. */
typedef struct hf__cancellable {
    void (*wake)(void *arg);
    void *arg;
    struct hf__cancellable *next;
} hf__cancellable;

/* cancel may be NULL: then nothing is ever cancelled. */
void hf__cancel_enter(hf_cancel *cancel, hf__cancellable *call);
void hf__cancel_leave(hf_cancel *cancel, hf__cancellable *call);
bool hf__is_cancelled(const hf_cancel *cancel);
int hf__cancel_fd(const hf_cancel *cancel); /* readable from then on; -1: none */

#endif
