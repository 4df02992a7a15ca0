/*
 * handoff URL plain|records ROUNDS LANES WAIT_MS|ask: seconds from before the holder's release
 * until the waiter's acquire returns. With WAIT_MS 0 the waiter stands in PostgreSQL's queue, and
 * with ask it asks for the lock; else it has waited so long and sleeps. In each of LANES a waiter
 * with a store of its own waits for a label of its own, so that long waits can go on side by side;
 * they are released one after another.
 */
#include "common.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTLE_MS = 2 };

/* One waiter: through the library, or bare when conn is set. */
struct waiter {
    hf_store *store;
    PGconn *conn;
    char label[48];
    char key[24];
    bool asks;
    pthread_t thread;
    sem_t go, done;
    int64_t got_at;
};

static hf_lock *acquire(hf_store *store, const struct waiter *waiter)
{
    hf_target target = HF_LABEL(waiter->label);
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.targets = &target;
    spec.target_count = 1;
    /* One thread holds the labels of all lanes. What is free is had without an ask. */
    spec.flags = HF_ANY_ORDER | (waiter->asks ? HF_ASK : 0);
    return bench_acquire(store, &spec);
}

static void wait_once(struct waiter *waiter)
{
    const char *const values[] = {waiter->key};
    if (waiter->conn) {
        bench_expect(waiter->conn, "lock", 1, values, "");
        waiter->got_at = bench_now_ns();
        bench_expect(waiter->conn, "unlock", 1, values, "t");
    } else {
        hf_lock *lock = acquire(waiter->store, waiter);
        waiter->got_at = bench_now_ns();
        bench_release(lock);
    }
}

static void *wait_again_and_again(void *arg)
{
    struct waiter *waiter = arg;
    for (;;) {
        (void)sem_wait(&waiter->go);
        wait_once(waiter);
        (void)sem_post(&waiter->done);
    }
    return NULL;
}

static PGconn *connect_bare(const char *url)
{
    PGconn *conn = bench_connect(url);
    bench_prepare(conn, "lock", "SELECT pg_advisory_lock($1::bigint)");
    bench_prepare(conn, "unlock", "SELECT pg_advisory_unlock($1::bigint)");
    return conn;
}

static void start(struct waiter *waiter, const char *url, const char *records, long lane)
{
    (void)snprintf(waiter->label, sizeof waiter->label, "bench/handoff/%s/%ld",
                   records ? records : "bare", lane);
    (void)snprintf(waiter->key, sizeof waiter->key, "%lld", (long long)bench_key(waiter->label));
    if (records)
        waiter->store = bench_store(url, bench_records(records));
    else
        waiter->conn = connect_bare(url);
    (void)sem_init(&waiter->go, 0, 0);
    (void)sem_init(&waiter->done, 0, 0);
    if (pthread_create(&waiter->thread, NULL, wait_again_and_again, waiter) != 0)
        bench_die("pthread_create", "failed");
}

static bool is_queued(PGconn *probe, const struct waiter *waiter)
{
    return bench_ask(probe,
                     "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                     " AND objsubid = 1 AND (classid::bigint << 32 | objid::bigint) = $1::bigint",
                     waiter->key) == 1;
}

struct bench {
    hf_store *holder;
    PGconn *bare_holder;
    PGconn *probe;
    long lanes;
    int wait_ms;
    struct waiter *waiters; /* two for each lane: library, control */
    hf_lock **locks;
};

static void hold(struct bench *bench, long i)
{
    struct waiter *waiter = &bench->waiters[i];
    const char *const values[] = {waiter->key};
    if (waiter->conn)
        bench_expect(bench->bare_holder, "lock", 1, values, "");
    else
        bench->locks[i] = acquire(bench->holder, waiter);
    (void)sem_post(&waiter->go);
}

static double hand_over(struct bench *bench, long i)
{
    struct waiter *waiter = &bench->waiters[i];
    const char *const values[] = {waiter->key};
    bool queued = bench->wait_ms == 0 || waiter->conn;
    while (is_queued(bench->probe, waiter) != queued)
        bench_sleep_ms(1);
    bench_sleep_ms(SETTLE_MS);
    int64_t began = bench_now_ns();
    if (waiter->conn)
        bench_expect(bench->bare_holder, "unlock", 1, values, "t");
    else
        bench_release(bench->locks[i]);
    (void)sem_wait(&waiter->done);
    return (double)(waiter->got_at - began) / 1e9;
}

static void run_round(struct bench *bench, bool print)
{
    for (long i = 0; i < 2 * bench->lanes; i++)
        hold(bench, i);
    bench_sleep_ms(bench->wait_ms);
    for (long i = 0; i < bench->lanes; i++) {
        double library = hand_over(bench, 2 * i);
        double control = hand_over(bench, 2 * i + 1);
        if (print)
            bench_print(library, control);
    }
}

int main(int argc, char **argv)
{
    if (argc != 6)
        bench_die("usage", "handoff URL plain|records ROUNDS LANES WAIT_MS|ask");
    const char *url = argv[1];
    long rounds = strtol(argv[3], NULL, 10), lanes = strtol(argv[4], NULL, 10);
    struct bench bench = {.holder = bench_store(url, bench_records(argv[2])),
                          .bare_holder = connect_bare(url),
                          .probe = bench_connect(url),
                          .lanes = lanes,
                          .wait_ms = (int)strtol(argv[5], NULL, 10),
                          .waiters = calloc(2 * (size_t)lanes, sizeof(struct waiter)),
                          .locks = calloc(2 * (size_t)lanes, sizeof(hf_lock *))};
    if (!bench.waiters || !bench.locks)
        bench_die("handoff", "out of memory");
    for (long i = 0; i < 2 * lanes; i++)
        bench.waiters[i].asks = strcmp(argv[5], "ask") == 0;
    for (long i = 0; i < 2 * lanes; i++)
        start(&bench.waiters[i], url, i % 2 == 0 ? argv[2] : NULL, i / 2);

    long warm_up = bench.wait_ms == 0 ? 10 : 0; /* statements are prepared at their third use */
    for (long i = -warm_up; i < rounds; i++)
        run_round(&bench, i >= 0);
    return 0; /* the waiters' threads and sessions end with the process */
}
