/*
 * load URL: mixed load on a store by the public API, until its input ends. A line of its input is
 * answered by the operations so far and by those that failed; failures are told on stderr.
 *
 * The store must have its schema, and a table soak(n).
 */
#include <holdfast/holdfast.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 8, LABELS = 5, WAIT_MS = 60000, PAUSE_US = 2000 };

static const char *url;
static hf_store *shared_store;
static atomic_bool is_over;
static atomic_long operations, failures;

struct worker {
    pthread_t thread;
    unsigned seed;
};

static hf_status open_store(hf_store **store, hf_error *err)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    options.url = url;
    options.application = "soak";
    return hf_store_open(&options, store, err);
}

/* ---- operations ------------------------------------------------------------------------------ */

static hf_target pick(struct worker *worker)
{
    static const char *const labels[LABELS] = {"soak:a", "soak:b", "soak:c", "soak:d", "soak:e"};
    return HF_LABEL(labels[(unsigned)rand_r(&worker->seed) % LABELS]);
}

static hf_status acquire_and_release(hf_store *store, const hf_target *targets, size_t count,
                                     hf_lock_spec spec, hf_error *err)
{
    hf_lock *lock = NULL;
    spec.size = sizeof spec;
    spec.targets = targets;
    spec.target_count = count;
    hf_status status = hf_lock_acquire(store, &spec, &lock, err);
    if (status == HF_OK)
        status = hf_lock_release(lock, err);
    hf_lock_free(lock);
    return status;
}

static hf_status lock_alone(struct worker *worker, hf_error *err)
{
    const hf_target target = pick(worker);
    return acquire_and_release(shared_store, &target, 1, (hf_lock_spec){.wait_ms = WAIT_MS}, err);
}

static hf_status lock_shared(struct worker *worker, hf_error *err)
{
    const hf_target target = pick(worker);
    const hf_lock_spec spec = {.mode = HF_SHARED, .wait_ms = WAIT_MS};
    return acquire_and_release(shared_store, &target, 1, spec, err);
}

static hf_status lock_slot(struct worker *worker, hf_error *err)
{
    const hf_target target = HF_LABEL("soak:slots");
    const hf_lock_spec spec = {.slots = 3, .wait_ms = WAIT_MS};
    (void)worker;
    return acquire_and_release(shared_store, &target, 1, spec, err);
}

static hf_status lock_set(struct worker *worker, hf_error *err)
{
    const hf_target targets[] = {HF_LABEL("soak:a"), HF_LABEL("soak:c"), pick(worker)};
    return acquire_and_release(shared_store, targets, 3, (hf_lock_spec){.wait_ms = WAIT_MS}, err);
}

/* To be refused is as good as to get it. */
static hf_status try_lock(struct worker *worker, hf_error *err)
{
    const hf_target target = pick(worker);
    hf_status status =
        acquire_and_release(shared_store, &target, 1, (hf_lock_spec){.wait_ms = 0}, err);
    return status == HF_NOT_ACQUIRED ? HF_OK : status;
}

static hf_status insert(hf_tx *tx, void *arg, hf_error *err)
{
    hf_rows *rows = NULL;
    (void)arg;
    hf_status status = hf_tx_query(tx, "DELETE FROM soak", 0, NULL, false, NULL, err);
    if (status == HF_OK)
        status = hf_tx_query(tx, "INSERT INTO soak VALUES (1)", 0, NULL, false, NULL, err);
    if (status == HF_OK)
        status = hf_tx_query(tx, "SELECT n FROM soak", 0, NULL, false, &rows, err);
    hf_rows_free(rows);
    return status;
}

static hf_status transact(struct worker *worker, hf_error *err)
{
    const hf_target target = HF_LABEL("soak:transaction");
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    (void)worker;
    options.labels = &target;
    options.label_count = 1;
    options.deadline_ms = WAIT_MS;
    return hf_transact(shared_store, &options, insert, NULL, err);
}

static hf_status look(struct worker *worker, hf_error *err)
{
    hf_lock_list *list = NULL;
    (void)worker;
    hf_status status = hf_lock_list_read(shared_store, &list, err);
    hf_lock_list_free(list);
    return status;
}

static hf_status move_cursor(struct worker *worker, hf_error *err)
{
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf_network *network = NULL;
    hf_range *gaps = NULL;
    size_t count = 0;
    options.name = "soaknet";
    hf_status status = hf_network_open(shared_store, &options, &network, err);
    if (status == HF_OK)
        status = hf_cursor_set(network, "soak", rand_r(&worker->seed), err);
    if (status == HF_OK)
        status = hf_network_gaps(network, 1, 1000, &gaps, &count, err);
    free(gaps);
    hf_network_free(network);
    return status;
}

/* A store of its own: connections, threads and descriptors come and go. */
static hf_status come_and_go(struct worker *worker, hf_error *err)
{
    const hf_target target = pick(worker);
    hf_store *store = NULL;
    hf_status status = open_store(&store, err);
    if (status == HF_OK)
        status = acquire_and_release(store, &target, 1, (hf_lock_spec){.wait_ms = WAIT_MS}, err);
    hf_store_close(store);
    return status;
}

static const struct {
    const char *name;
    hf_status (*run)(struct worker *worker, hf_error *err);
} kinds[] = {{"lock", lock_alone}, {"shared", lock_shared}, {"slot", lock_slot},
             {"set", lock_set},    {"try", try_lock},       {"transact", transact},
             {"list", look},       {"cursor", move_cursor}, {"store", come_and_go}};

/* ---- threads --------------------------------------------------------------------------------- */

static void *work(void *arg)
{
    struct worker *worker = arg;
    while (!atomic_load(&is_over)) {
        hf_error err = {0};
        size_t kind = (size_t)rand_r(&worker->seed) % (sizeof kinds / sizeof *kinds);
        if (kinds[kind].run(worker, &err) != HF_OK) {
            atomic_fetch_add(&failures, 1);
            fprintf(stderr, "%s: %s\n", kinds[kind].name, err.message);
        }
        atomic_fetch_add(&operations, 1);
        (void)usleep(PAUSE_US);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct worker workers[THREADS];
    char line[16];
    hf_error err = {0};

    url = argc > 1 ? argv[1] : "";
    if (open_store(&shared_store, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].seed = i;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        printf("%ld %ld\n", atomic_load(&operations), atomic_load(&failures));
        fflush(stdout);
    }
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    hf_store_close(shared_store);
    return atomic_load(&failures) > 0;
}
