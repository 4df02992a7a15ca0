/*
 * threads URL plain|records ROUNDS THREADS EACH: seconds in which THREADS threads acquire and
 * release one label EACH times through one store, against one thread that does as many. At first a
 * stranger holds the label for long, so that waiting and listening connections are opened as well.
 * The last line is "connections N": the most that the store ever had.
 */
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { STRANGER_HOLDS_MS = 2000, STACK = 256 * 1024 };

static hf_store *store;
static long each;
static atomic_bool counting;

static void *lock_often(void *arg)
{
    long times = arg ? *(const long *)arg : each;
    hf_target target = HF_LABEL("bench/threads");
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.targets = &target;
    spec.target_count = 1;
    for (long i = 0; i < times; i++)
        bench_release(bench_acquire(store, &spec));
    return NULL;
}

static void *count_connections(void *arg)
{
    static int64_t most;
    PGconn *conn = bench_connect(arg);
    while (atomic_load(&counting)) {
        int64_t now =
            bench_ask(conn, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE $1",
                      BENCH_APPLICATION "%");
        most = now > most ? now : most;
        bench_sleep_ms(10);
    }
    PQfinish(conn);
    return &most;
}

static double run_threads(long count, PGconn *stranger)
{
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    pthread_attr_t small;
    int64_t began = bench_now_ns();
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (long i = 0; i < count; i++)
        if (!threads || pthread_create(&threads[i], &small, lock_often, NULL) != 0)
            bench_die("pthread_create", "failed");
    if (stranger) {
        bench_sleep_ms(STRANGER_HOLDS_MS);
        (void)bench_ask(stranger, "SELECT pg_advisory_unlock_all()", NULL);
    }
    for (long i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    free(threads);
    pthread_attr_destroy(&small);
    return (double)(bench_now_ns() - began) / 1e9;
}

int main(int argc, char **argv)
{
    pthread_t counter;
    void *most = NULL;
    char key[24];
    if (argc != 6)
        bench_die("usage", "threads URL plain|records ROUNDS THREADS EACH");
    store = bench_store(argv[1], bench_records(argv[2]));
    PGconn *stranger = bench_connect(argv[1]);
    long rounds = strtol(argv[3], NULL, 10), count = strtol(argv[4], NULL, 10);
    each = strtol(argv[5], NULL, 10);
    long as_many = count * each;

    (void)snprintf(key, sizeof key, "%lld", (long long)bench_key("bench/threads"));
    (void)bench_ask(stranger, "SELECT pg_advisory_lock($1::bigint)", key);
    atomic_store(&counting, true);
    if (pthread_create(&counter, NULL, count_connections, argv[1]) != 0)
        bench_die("pthread_create", "failed");
    (void)run_threads(count, stranger);
    atomic_store(&counting, false);
    (void)pthread_join(counter, &most);

    for (long i = 0; i < rounds; i++) {
        double library = run_threads(count, NULL);
        int64_t began = bench_now_ns();
        (void)lock_often(&as_many);
        bench_print(library, (double)(bench_now_ns() - began) / 1e9);
    }
    printf("connections %lld\n", (long long)*(int64_t *)most);
    PQfinish(stranger);
    hf_store_close(store);
    return 0;
}
