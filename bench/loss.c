/*
 * loss URL plain|records ROUNDS: seconds from before pg_terminate_backend until the client knows.
 */
#include "common.h"

#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

struct news {
    sem_t arrived;
    int64_t at;
};

static void on_lost(hf_lock *lock, const hf_error *why, void *arg)
{
    struct news *news = arg;
    (void)lock;
    (void)why;
    news->at = bench_now_ns();
    (void)sem_post(&news->arrived);
}

static int64_t terminate(PGconn *admin, int64_t backend_pid)
{
    char pid[24];
    (void)snprintf(pid, sizeof pid, "%lld", (long long)backend_pid);
    int64_t began = bench_now_ns();
    (void)bench_ask(admin, "SELECT pg_terminate_backend($1::int)", pid);
    return began;
}

static int64_t holder_of(PGconn *admin, int64_t key)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)key);
    return bench_ask(
        admin,
        "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
        " AND (classid::bigint << 32 | objid::bigint) = $1::bigint",
        text);
}

static double run_library(hf_store *store, PGconn *admin, struct news *news)
{
    hf_target target = HF_LABEL("bench/loss");
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.targets = &target;
    spec.target_count = 1;
    spec.on_lost = on_lost;
    spec.arg = news;
    hf_lock *lock = bench_acquire(store, &spec);
    bench_sleep_ms(30); /* the holder is at its work, the session idle */
    int64_t began = terminate(admin, holder_of(admin, hf_lock_key(lock)));
    (void)sem_wait(&news->arrived);
    hf_lock_free(lock);
    return (double)(news->at - began) / 1e9;
}

/* The floor: a thread that does nothing but poll the socket. */
static double run_control(const char *url, PGconn *admin)
{
    PGconn *conn = bench_connect(url);
    bench_sleep_ms(30);
    int64_t began = terminate(admin, PQbackendPID(conn));
    struct pollfd socket = {.fd = PQsocket(conn), .events = POLLIN};
    while (PQstatus(conn) == CONNECTION_OK) {
        (void)poll(&socket, 1, -1);
        (void)PQconsumeInput(conn);
    }
    double took = (double)(bench_now_ns() - began) / 1e9;
    PQfinish(conn);
    return took;
}

int main(int argc, char **argv)
{
    struct news news = {0};
    if (argc != 4)
        bench_die("usage", "loss URL plain|records ROUNDS");
    hf_store *store = bench_store(argv[1], bench_records(argv[2]));
    PGconn *admin = bench_connect(argv[1]);
    long rounds = strtol(argv[3], NULL, 10);

    (void)sem_init(&news.arrived, 0, 0);
    for (long i = -2; i < rounds; i++) {
        double library = run_library(store, admin, &news);
        double control = run_control(argv[1], admin);
        if (i >= 0)
            bench_print(library, control);
    }
    PQfinish(admin);
    hf_store_close(store);
    return 0;
}
