/* Ending a holder: whom, what it costs, and the label typed as a proof that it was meant. */
#ifndef HF_TOP_CONFIRM_H
#define HF_TOP_CONFIRM_H

#include "programs/top/top.h"

/* Finds whom the chosen row could end; nobody: a message says why. */
void hf__confirm_open(hf__top *top);
hf__act hf__confirm_press(hf__top *top, int32_t key);
void hf__confirm_put(const hf__top *top, hf__frame *frame);

#endif
