/*
 * Holds a label, then releases it and acquires it again at once, over and over.
 * Usage: retake URL LABEL FIRST_MS KEEP_MS. Prints "held" when it first holds; ends when killed.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "holdfast/holdfast.h"

int main(int argc, char **argv)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_target target;
    hf_store *store = NULL;
    hf_lock *lock = NULL;
    hf_error err = {0};

    if (argc != 5 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return 2;
    options.url = argv[1];
    target = HF_LABEL(argv[2]);
    spec.targets = &target;
    spec.target_count = 1;
    if (hf_store_open(&options, &store, &err) != HF_OK ||
        hf_lock_acquire(store, &spec, &lock, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    puts("held");
    fflush(stdout);
    usleep((useconds_t)atoi(argv[3]) * 1000);
    for (;;) {
        hf_lock_free(lock);
        if (hf_lock_acquire(store, &spec, &lock, &err) != HF_OK) {
            fprintf(stderr, "%s\n", err.message);
            return 1;
        }
        usleep((useconds_t)atoi(argv[4]) * 1000);
    }
}
