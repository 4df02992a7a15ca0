#ifndef HF_TOP_HELP_H
#define HF_TOP_HELP_H

#include "programs/top/frame.h"

void hf__help_put(hf__frame *frame);

#endif
