/* The program: a view, a top and a terminal. */
#ifndef HF_TOP_RUN_H
#define HF_TOP_RUN_H

#include "cli/command.h"
#include "programs/top/top.h"
#include "programs/view/view.h"

typedef struct hf__top_run {
    hf__view_options view; /* its log is replaced, since it must not write to the terminal */
    bool colour;
    const char *by; /* who ends holders, for the records */
} hf__top_run;

/*
 * Runs until somebody quits or a signal ends it, which is HF_OK. Call hf__screen_check first. top
 * says what to begin with, and stays the caller's.
 */
HF_MUST_CHECK hf_status hf__top_run_on(const hf__top_run *run, hf__top *top, hf_error *err);

extern const struct command cmd_top;

#endif
