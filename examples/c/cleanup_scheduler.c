/* Cleans up now and then, in one of many instances: cleanup_scheduler SECONDS TIMES */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static hf_status clean(hf_tx *tx, void *arg, hf_error *err)
{
    (void)arg;
    return hf_tx_query(tx, "DELETE FROM session WHERE expires < 100", 0, NULL, false, NULL, err);
}

static hf_status once(hf_store *store, hf_error *err)
{
    const hf_target target = HF_LABEL("Cleanup:sessions");
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_lock *lock = NULL;
    spec.targets = &target;
    spec.target_count = 1;
    spec.wait_ms = 0;        /* who comes second leaves it to the first */
    spec.flags = HF_PRIVATE; /* its transactions run on the session that holds the lock: */
    hf_status status = hf_lock_acquire(store, &spec, &lock, err);
    if (status == HF_OK) {
        status = hf_lock_transact(lock, NULL, clean, NULL, err); /* under the lock, or not at all */
        printf("%s\n", status == HF_OK ? "cleaned" : err->message);
    }
    hf_lock_free(lock);
    return status;
}

int main(int argc, char **argv)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_store *store = NULL;
    hf_error err;
    if (argc != 3)
        return 64;
    options.environment = true;
    hf_status status = hf_store_open(&options, &store, &err);
    for (int i = 0; status == HF_OK && i < atoi(argv[2]); i++) {
        if (i > 0)
            sleep((unsigned)atoi(argv[1]));
        status = once(store, &err);
        if (status == HF_NOT_ACQUIRED) {
            printf("skipped: %s\n", err.message); /* names the one that cleans */
            status = HF_OK;
        }
    }
    if (status != HF_OK)
        fprintf(stderr, "%s\n", err.message);
    hf_store_close(store);
    return status == HF_OK ? 0 : 1;
}
