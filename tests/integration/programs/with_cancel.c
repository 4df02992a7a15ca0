/* Cancels a thread inside hf_lock_with and checks that the lock is free afterwards. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/holdfast.h"

struct plan {
    hf_store *store;
    hf_lock_spec spec;
    int inside[2];
};

static hf_status stay(hf_lock *lock, void *arg, hf_error *err)
{
    struct plan *plan = arg;

    (void)lock;
    (void)err;
    if (write(plan->inside[1], "x", 1) != 1)
        return HF_SYSTEM;
    for (;;)
        pause();
}

static void *hold(void *arg)
{
    struct plan *plan = arg;
    hf_error err;

    if (hf_lock_with(plan->store, &plan->spec, stay, plan, &err) != HF_OK)
        fprintf(stderr, "%s\n", err.message);
    return NULL;
}

int main(int argc, char **argv)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    struct plan plan = {.spec = HF_LOCK_SPEC_INIT};
    hf_target target;
    hf_lock *lock = NULL;
    hf_error err = {0};
    pthread_t thread;
    void *end = NULL;
    char byte;

    if (argc != 3 || pipe(plan.inside) != 0)
        return 2;
    options.url = argv[1];
    options.session_pool = true;
    target = HF_LABEL(argv[2]);
    plan.spec.targets = &target;
    plan.spec.target_count = 1;
    if (hf_store_open(&options, &plan.store, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    if (pthread_create(&thread, NULL, hold, &plan) != 0 || read(plan.inside[0], &byte, 1) != 1)
        return 2;
    pthread_cancel(thread);
    pthread_join(thread, &end);
    if (end != PTHREAD_CANCELED)
        return 3;
    plan.spec.wait_ms = 0;
    if (hf_lock_acquire(plan.store, &plan.spec, &lock, &err) != HF_OK) {
        fprintf(stderr, "still held: %s\n", err.message);
        return 1;
    }
    hf_lock_free(lock);
    hf_store_close(plan.store);
    return 0;
}
