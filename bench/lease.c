/*
 * lease URL pair ROUNDS PAIRS: seconds for PAIRS acquires and releases of one label as a lease, and
 * as a session lock.
 * lease URL renew ROUNDS LEASES: seconds for one renewal while so many leases are held, and while
 * one is.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 600000 };

static double run_pairs(hf_store *store, hf_lifetime lifetime, long pairs)
{
    hf_target target = HF_LABEL("bench/lease");
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.targets = &target;
    spec.target_count = 1;
    spec.lifetime = lifetime;
    int64_t began = bench_now_ns();
    for (long i = 0; i < pairs; i++)
        bench_release(bench_acquire(store, &spec));
    return (double)(bench_now_ns() - began) / 1e9;
}

static void hold(hf_store *store, long leases, int lease_ms)
{
    for (long i = 0; i < leases; i++) {
        char label[48];
        (void)snprintf(label, sizeof label, "bench/lease/%d/%ld", lease_ms, i);
        hf_target target = HF_LABEL(label);
        hf_lock_spec spec = HF_LOCK_SPEC_INIT;
        spec.targets = &target;
        spec.target_count = 1;
        spec.wait_ms = 0; /* in any order */
        spec.lifetime = HF_LEASE;
        spec.lease_ms = lease_ms;
        (void)bench_acquire(store, &spec); /* held until the end of the program */
    }
}

/* As the library renews: the tenures have different lengths, so that they can be told apart. */
static double renew(PGconn *conn, int lease_ms)
{
    char ms[16];
    (void)snprintf(ms, sizeof ms, "%d", lease_ms);
    const char *const values[] = {ms};
    int64_t began = bench_now_ns();
    bench_expect(conn, "renew", 1, values, "t");
    return (double)(bench_now_ns() - began) / 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        bench_die("usage", "lease URL pair|renew ROUNDS PAIRS|LEASES");
    hf_store *store = bench_store(argv[1], HF_RECORDS_AUTO);
    PGconn *conn = bench_connect(argv[1]);
    long rounds = strtol(argv[3], NULL, 10), count = strtol(argv[4], NULL, 10);
    bool pair = strcmp(argv[2], "pair") == 0;

    if (pair) {
        (void)run_pairs(store, HF_LEASE, 200);
        (void)run_pairs(store, HF_SESSION, 200);
    } else {
        hold(store, count, LEASE_MS);
        hold(store, 1, LEASE_MS + 1);
        bench_prepare(conn, "renew",
                      "SELECT holdfast.renew_tenure(id) > 0 FROM holdfast.tenures"
                      " WHERE lease_ms = $1::int");
        (void)renew(conn, LEASE_MS);
    }
    for (long i = 0; i < rounds; i++) {
        double library = pair ? run_pairs(store, HF_LEASE, count) : renew(conn, LEASE_MS);
        double control = pair ? run_pairs(store, HF_SESSION, count) : renew(conn, LEASE_MS + 1);
        bench_print(library, control);
    }
    PQfinish(conn);
    if (pair)
        hf_store_close(store);
    return 0;
}
