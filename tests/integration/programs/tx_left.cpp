/*
 * Leaves the callback of a transaction by an exception or by a cancel of its thread, and checks that
 * the one connection of the store and the label are free afterwards: tx_left throw|cancel URL LABEL.
 */
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "holdfast/holdfast.h"

struct Plan {
    hf_store *store = nullptr;
    hf_tx_options options{};
    bool throws = false;
    int inside[2] = {-1, -1};
};

static hf_status leave(hf_tx *tx, void *arg, hf_error *err) {
    Plan *plan = static_cast<Plan *>(arg);
    hf_status status = hf_tx_query(tx, "create table left_behind (a int)", 0, nullptr, false, nullptr, err);
    if (status != HF_OK)
        return status;
    if (plan->throws)
        throw std::runtime_error("out of the callback");
    if (write(plan->inside[1], "x", 1) != 1)
        return HF_SYSTEM;
    for (;;)
        pause();
}

static void *run(void *arg) {
    Plan *plan = static_cast<Plan *>(arg);
    hf_error err{};
    if (hf_transact(plan->store, &plan->options, leave, plan, &err) != HF_OK)
        std::fprintf(stderr, "%s\n", err.message);
    return nullptr;
}

static bool is_left(Plan *plan) {
    pthread_t thread;
    void *end = nullptr;
    char byte;
    if (plan->throws) {
        try {
            run(plan);
        } catch (const std::runtime_error &) {
            return true;
        }
        return false;
    }
    if (pthread_create(&thread, nullptr, run, plan) != 0 || read(plan->inside[0], &byte, 1) != 1)
        return false;
    pthread_cancel(thread);
    pthread_join(thread, &end);
    return end == PTHREAD_CANCELED;
}

/* The table is not there, so the transaction was rolled back. */
static hf_status again(hf_tx *tx, void *, hf_error *err) {
    return hf_tx_query(tx, "create table left_behind (b int)", 0, nullptr, false, nullptr, err);
}

int main(int argc, char **argv) {
    hf_store_options options{};
    hf_target target{};
    hf_error err{};
    Plan plan;

    if (argc != 4 || pipe(plan.inside) != 0)
        return 2;
    plan.throws = std::strcmp(argv[1], "throw") == 0;
    options.size = sizeof options;
    options.url = argv[2];
    options.max_transactions = 1;
    target.label = argv[3];
    plan.options.size = sizeof plan.options;
    plan.options.labels = &target;
    plan.options.label_count = 1;
    if (hf_store_open(&options, &plan.store, &err) != HF_OK) {
        std::fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    if (!is_left(&plan))
        return 3;
    plan.options.deadline_ms = 20000;
    if (hf_transact(plan.store, &plan.options, again, nullptr, &err) != HF_OK) {
        std::fprintf(stderr, "still held: %s\n", err.message);
        return 1;
    }
    hf_store_close(plan.store);
    return 0;
}
