/*
 * uncontended URL plain|records ROUNDS PAIRS: seconds for PAIRS acquires and releases of one label.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

static double run_library(hf_store *store, long pairs)
{
    hf_target target = HF_LABEL("bench/uncontended");
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.targets = &target;
    spec.target_count = 1;
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

int main(int argc, char **argv)
{
    if (argc != 5)
        bench_die("usage", "uncontended URL plain|records ROUNDS PAIRS");
    hf_store *store = bench_store(argv[1], bench_records(argv[2]));
    PGconn *conn = bench_connect(argv[1]);
    long rounds = strtol(argv[3], NULL, 10), pairs = strtol(argv[4], NULL, 10);

    bench_prepare(conn, "lock", "SELECT pg_try_advisory_lock($1::bigint)");
    bench_prepare(conn, "unlock", "SELECT pg_advisory_unlock($1::bigint)");
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
