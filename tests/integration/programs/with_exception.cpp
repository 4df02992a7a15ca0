/* Throws through hf_lock_with and checks that the lock is free afterwards. */
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "holdfast/holdfast.h"

static hf_status fail(hf_lock *, void *, hf_error *) { throw std::runtime_error("out of the body"); }

int main(int argc, char **argv) {
    hf_store_options options{};
    hf_lock_spec spec{};
    hf_target target{};
    hf_store *store = nullptr;
    hf_lock *lock = nullptr;
    hf_error err{};
    bool caught = false;

    if (argc != 3)
        return 2;
    options.size = sizeof options;
    options.url = argv[1];
    options.session_pool = true;
    target.label = argv[2];
    spec.size = sizeof spec;
    spec.targets = &target;
    spec.target_count = 1;
    if (hf_store_open(&options, &store, &err) != HF_OK) {
        std::fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    try {
        if (hf_lock_with(store, &spec, fail, nullptr, &err) != HF_OK)
            std::fprintf(stderr, "%s\n", err.message);
    } catch (const std::runtime_error &) {
        caught = true;
    }
    if (!caught)
        return 3;
    if (hf_lock_acquire(store, &spec, &lock, &err) != HF_OK) {
        std::fprintf(stderr, "still held: %s\n", err.message);
        return 1;
    }
    hf_lock_free(lock);
    hf_store_close(store);
    return 0;
}
