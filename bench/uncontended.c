/*
 * uncontended URL plain|records ROUNDS PAIRS [HELD]: seconds for PAIRS acquires and releases of one
 * label, while the same session holds HELD others.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

static long held;

static double run_library(hf_store *store, long pairs)
{
    hf_target target = HF_LABEL("bench/uncontended");
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.targets = &target;
    spec.target_count = 1;
    spec.flags = held > 0 ? HF_ANY_ORDER : 0;
    int64_t began = bench_now_ns();
    for (long i = 0; i < pairs; i++)
        bench_release(bench_acquire(store, &spec));
    return (double)(bench_now_ns() - began) / 1e9;
}

static double run_control(PGconn *conn, long pairs)
{
    char key[24];
    (void)snprintf(key, sizeof key, "%lld", (long long)bench_key("bench/uncontended, bare"));
    const char *const values[] = {key};
    int64_t began = bench_now_ns();
    for (long i = 0; i < pairs; i++) {
        bench_expect(conn, "lock", 1, values, "t");
        bench_expect(conn, "unlock", 1, values, "t");
    }
    return (double)(bench_now_ns() - began) / 1e9;
}

static void hold_others(hf_store *store, PGconn *conn)
{
    char sql[96];
    for (long i = 0; i < held; i++) {
        char label[48];
        hf_target target = HF_LABEL(label);
        hf_lock_spec spec = HF_LOCK_SPEC_INIT;
        spec.targets = &target;
        spec.target_count = 1;
        spec.flags = HF_ANY_ORDER;
        (void)snprintf(label, sizeof label, "bench/held/%ld", i);
        (void)bench_acquire(store, &spec); /* until the store is closed */
    }
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(pg_advisory_lock(key)) FROM generate_series(1, %ld) key", held);
    (void)bench_ask(conn, sql, NULL);
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6)
        bench_die("usage", "uncontended URL plain|records ROUNDS PAIRS [HELD]");
    hf_store *store = bench_store(argv[1], bench_records(argv[2]));
    PGconn *conn = bench_connect(argv[1]);
    long rounds = strtol(argv[3], NULL, 10), pairs = strtol(argv[4], NULL, 10);

    bench_prepare(conn, "lock", "SELECT pg_try_advisory_lock($1::bigint)");
    bench_prepare(conn, "unlock", "SELECT pg_advisory_unlock($1::bigint)");
    held = argc == 6 ? strtol(argv[5], NULL, 10) : 0;
    hold_others(store, conn);
    (void)run_library(store, pairs);
    (void)run_control(conn, pairs);
    for (long i = 0; i < rounds; i++) {
        double library = run_library(store, pairs);
        bench_print(library, run_control(conn, pairs));
    }
    PQfinish(conn);
    hf_store_close(store);
    return 0;
}
