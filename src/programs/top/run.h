#ifndef HF_TOP_RUN_H
#define HF_TOP_RUN_H

#include "cli/command.h"
#include "programs/top/top.h"
#include "programs/view/view.h"

/* The program: a view, a top, a terminal, until somebody has seen enough. */

typedef struct hf__top_run {
    hf__view_options view; /* its log is set here: nobody else may write to the terminal */
    bool colour;
    const char *by; /* who ends holders, for the records */
} hf__top_run;

/* After hf__screen_check. top is as its owner wants to begin. HF_OK: somebody quit, or a signal asked for it. */
HF_MUST_CHECK hf_status hf__top_run_on(const hf__top_run *run, hf__top *top, hf_error *err);

extern const struct command cmd_top;

#endif
