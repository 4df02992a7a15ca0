/* One live ingester per network; the others stand by: ingester_guard NETWORK LEDGERS */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>

static void say_wait(const hf_error *why, void *arg)
{
    (void)arg;
    printf("standing by: %s\n", why->message);
    fflush(stdout);
}

static hf_status ingest(hf_tx *tx, void *arg, hf_error *err)
{
    hf_value ledger[] = {HF_TEXT(arg)};
    return hf_tx_queue(tx, "INSERT INTO ledger (sequence) VALUES ($1)", 1, ledger, err);
}

int main(int argc, char **argv)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_store *store = NULL;
    hf_lock *lock = NULL;
    hf_error err;
    char label[100], ledger[24];
    if (argc != 3)
        return 64;
    snprintf(label, sizeof label, "Ingest:%s", argv[1]);
    const hf_target target = HF_LABEL(label);
    spec.targets = &target;
    spec.target_count = 1;
    spec.flags = HF_PRIVATE;
    spec.on_wait = say_wait;
    options.environment = true;
    hf_status status = hf_store_open(&options, &store, &err);
    if (status == HF_OK)
        status = hf_lock_acquire(store, &spec, &lock, &err);
    if (status == HF_OK)
        printf("ingesting\n");
    for (int i = 1; status == HF_OK && i <= atoi(argv[2]); i++) {
        snprintf(ledger, sizeof ledger, "%d", i); /* a lost lock commits nothing: HF_LOST */
        status = hf_lock_transact(lock, NULL, ingest, ledger, &err);
    }
    if (status != HF_OK)
        fprintf(stderr, "%s (%s)\n", err.message, err.hint);
    hf_lock_free(lock);
    hf_store_close(store);
    return status == HF_OK ? 0 : 1;
}
