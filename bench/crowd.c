/*
 * crowd URL one|each|bare drain CLIENTS HOLD_MS: one more, with a store or connection of its own,
 * holds a label for so long while CLIENTS threads wait for it; then each gets it once. Prints the
 * seconds from the release until the last one had it, the share of pairs that got it in the order
 * in which they came, the most connections of those who wait, and the age in seconds of the oldest
 * snapshot that anybody kept meanwhile.
 *
 * crowd URL one|each|bare rate CLIENTS SECONDS LABELS: CLIENTS threads acquire and release one of
 * LABELS labels by chance. Prints how often, and the seconds.
 *
 * one: all threads through one store; each: a store of its own for each, as processes have; bare: a
 * connection of its own for each, and pg_advisory_lock.
 */
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK = 256 * 1024, APART_MS = 1, LOOK_MS = 20 };

struct client {
    pthread_t thread;
    hf_store *store;
    PGconn *conn; /* bare */
    char label[48], key[24];
    unsigned seed;
    long pairs;
    int64_t came_at, got_at;
};

static const char *url;
static long labels = 1;
static atomic_bool looking = true;
static atomic_llong until;

/* The label is client->label; *lock is for release alone, and NULL when bare. */
static void acquire(struct client *client, hf_lock **lock)
{
    const char *const values[] = {client->key};
    hf_target target = HF_LABEL(client->label);
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.targets = &target;
    spec.target_count = 1;
    (void)snprintf(client->label, sizeof client->label, "bench/crowd/%ld",
                   rand_r(&client->seed) % labels);
    client->came_at = bench_now_ns();
    if (client->conn) {
        (void)snprintf(client->key, sizeof client->key, "%lld",
                       (long long)bench_key(client->label));
        bench_expect(client->conn, "lock", 1, values, "");
    } else {
        *lock = bench_acquire(client->store, &spec);
    }
    client->got_at = bench_now_ns();
}

static void release(const struct client *client, hf_lock *lock)
{
    const char *const values[] = {client->key};
    if (client->conn)
        bench_expect(client->conn, "unlock", 1, values, "t");
    else
        bench_release(lock);
}

static void lock_once(struct client *client)
{
    hf_lock *lock = NULL;
    acquire(client, &lock);
    release(client, lock);
}

static void *wait_in_line(void *arg)
{
    lock_once(arg);
    return NULL;
}

static void *lock_often(void *arg)
{
    struct client *client = arg;
    for (; bench_now_ns() < atomic_load(&until); client->pairs++)
        lock_once(client);
    return NULL;
}

static struct client *make_clients(const char *kind, long count)
{
    struct client *clients = calloc((size_t)count, sizeof *clients);
    hf_store *shared = strcmp(kind, "one") == 0 ? bench_store(url, HF_RECORDS_OFF) : NULL;
    if (!clients)
        bench_die("crowd", "out of memory");
    for (long i = 0; i < count; i++) {
        clients[i].seed = (unsigned)i + 1;
        if (strcmp(kind, "bare") == 0) {
            clients[i].conn = bench_connect(url);
            bench_prepare(clients[i].conn, "lock", "SELECT pg_advisory_lock($1::bigint)");
            bench_prepare(clients[i].conn, "unlock", "SELECT pg_advisory_unlock($1::bigint)");
        } else {
            clients[i].store = shared ? shared : bench_store(url, HF_RECORDS_OFF);
        }
    }
    return clients;
}

static void start(struct client *client, void *(*work)(void *))
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    if (pthread_create(&client->thread, &small, work, client) != 0)
        bench_die("pthread_create", "failed");
    pthread_attr_destroy(&small);
}

/* ---- drain ----------------------------------------------------------------------------------- */

struct seen {
    int64_t connections;
    int64_t oldest_us;
};

static int64_t connections(PGconn *conn)
{
    return bench_ask(
        conn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()", NULL);
}

static void *look(void *arg)
{
    static struct seen most;
    PGconn *conn = arg;
    while (atomic_load(&looking)) {
        int64_t now = connections(conn);
        int64_t oldest = bench_ask(
            conn,
            "SELECT (1e6 * extract(epoch FROM clock_timestamp() - min(xact_start)))::bigint FROM "
            "pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()",
            NULL);
        most.connections = now > most.connections ? now : most.connections;
        most.oldest_us = oldest > most.oldest_us ? oldest : most.oldest_us;
        bench_sleep_ms(LOOK_MS);
    }
    return &most;
}

static double share_in_order(const struct client *clients, long count)
{
    double in_order = 0, pairs = (double)count * (double)(count - 1) / 2;
    for (long i = 0; i < count; i++)
        for (long j = i + 1; j < count; j++)
            in_order += (clients[i].came_at < clients[j].came_at) ==
                        (clients[i].got_at < clients[j].got_at);
    return count > 1 ? in_order / pairs : 1;
}

static void drain(const char *kind, long count, int hold_ms)
{
    struct client *holder = make_clients(kind, 1), *clients = make_clients(kind, count);
    PGconn *watcher = bench_connect(url);
    pthread_t looker;
    hf_lock *lock = NULL;
    void *most = NULL;
    int64_t last = 0, others = connections(watcher) - (clients->conn ? count : 0);
    acquire(holder, &lock);
    if (pthread_create(&looker, NULL, look, watcher) != 0)
        bench_die("pthread_create", "failed");
    for (long i = 0; i < count; i++) {
        start(&clients[i], wait_in_line);
        bench_sleep_ms(APART_MS);
    }
    bench_sleep_ms(hold_ms);
    int64_t released = bench_now_ns();
    release(holder, lock);
    for (long i = 0; i < count; i++) {
        (void)pthread_join(clients[i].thread, NULL);
        last = clients[i].got_at > last ? clients[i].got_at : last;
    }
    atomic_store(&looking, false);
    (void)pthread_join(looker, &most);
    const struct seen *seen = most;
    printf("%.6f %.4f %lld %.3f\n", (double)(last - released) / 1e9, share_in_order(clients, count),
           (long long)(seen->connections - others), (double)seen->oldest_us / 1e6);
}

static void rate(const char *kind, long count, double seconds)
{
    struct client *clients = make_clients(kind, count);
    long pairs = 0;
    for (long i = 0; i < count; i++)
        lock_once(&clients[i]); /* opens what is opened at first use */
    int64_t began = bench_now_ns();
    atomic_store(&until, began + (int64_t)(seconds * 1e9));
    for (long i = 0; i < count; i++)
        start(&clients[i], lock_often);
    for (long i = 0; i < count; i++) {
        (void)pthread_join(clients[i].thread, NULL);
        pairs += clients[i].pairs;
    }
    printf("%ld %.6f\n", pairs, (double)(bench_now_ns() - began) / 1e9);
}

int main(int argc, char **argv)
{
    bool drains = argc == 6 && strcmp(argv[3], "drain") == 0;
    if (!drains && !(argc == 7 && strcmp(argv[3], "rate") == 0))
        bench_die("usage", "crowd URL one|each|bare drain CLIENTS HOLD_MS | rate CLIENTS SECONDS "
                           "LABELS");
    long count = strtol(argv[4], NULL, 10);
    url = argv[1];
    labels = drains ? 1 : strtol(argv[6], NULL, 10);
    if (drains)
        drain(argv[2], count, (int)strtol(argv[5], NULL, 10));
    else
        rate(argv[2], count, strtod(argv[5], NULL));
    return 0; /* the sessions end with the process */
}
