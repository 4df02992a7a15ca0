/* Appends to a shared table under its lock, as one block: table_insert_lock TABLE FILE LINE... */
#include <holdfast/holdfast.h>

#include <stdio.h>

static volatile bool is_lost; /* set in a thread of the library */

static void on_lost(hf_lock *lock, const hf_error *why, void *arg)
{
    (void)lock, (void)arg;
    is_lost = true;
    fprintf(stderr, "stop writing: %s\n", why->message);
}

int main(int argc, char **argv)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_store *store = NULL;
    hf_lock *lock = NULL;
    hf_error err;
    if (argc < 4)
        return 64;
    const hf_table_name name = {.table = argv[1]};
    spec.wait_ms = 30000;
    spec.on_lost = on_lost;
    options.environment = true;
    hf_status status = hf_store_open(&options, &store, &err);
    if (status == HF_OK)
        status = hf_table_lock(store, &name, &spec, &lock, &err); /* mints the id, if it has none */
    if (status != HF_OK) {
        fprintf(stderr, "%s (%s)\n", err.message, err.hint);
        hf_store_close(store);
        return 1;
    }
    FILE *file = fopen(argv[2], "a"); /* stands for the table; `holdfast append` does ClickHouse */
    for (int i = 3; file && i < argc && !is_lost; i++)
        fprintf(file, "%lld %s\n", (long long)hf_lock_key(lock), argv[i]);
    bool is_written = file && fclose(file) == 0 && !is_lost;
    status = hf_lock_release(lock, &err); /* HF_LOST: others may have written in between */
    hf_lock_free(lock);
    hf_store_close(store);
    return status == HF_OK && is_written ? 0 : 1;
}
