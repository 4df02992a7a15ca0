/*
 * serialise URL PATTERN ISOLATION ROWS CLIENTS SECONDS: read, compute, write on one of ROWS rows,
 * by CLIENTS threads. PATTERN: none (no lock), textbook (lock after BEGIN), holdfast. Prints
 * commits, seconds, retries, and the p50 and p99 of a commit in microseconds.
 */
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum pattern { NONE, TEXTBOOK, HOLDFAST };

struct run {
    const char *url;
    enum pattern pattern;
    hf_isolation isolation;
    int rows;
    double until;
    hf_store *store;
};

struct client {
    pthread_t thread;
    const struct run *run;
    unsigned seed;
    long commits;
    long retries;
    double *times;
    long room;
};

static const char *const begins[] = {"BEGIN ISOLATION LEVEL SERIALIZABLE",
                                     "BEGIN ISOLATION LEVEL REPEATABLE READ",
                                     "BEGIN ISOLATION LEVEL READ COMMITTED"};

static double now_s(void)
{
    return (double)bench_now_ns() / 1e9;
}

static void remember(struct client *client, double seconds)
{
    if (client->commits == client->room) {
        client->room = client->room ? client->room * 2 : 4096;
        client->times = realloc(client->times, (size_t)client->room * sizeof *client->times);
        if (!client->times)
            bench_die("memory", "out of it");
    }
    client->times[client->commits++] = seconds;
}

/* ---- by hand --------------------------------------------------------------------------------- */

static bool command(PGconn *conn, const char *sql, int count, const char *const *params,
                    char *value)
{
    PGresult *result = PQexecParams(conn, sql, count, NULL, params, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);
    bool ok = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    if (ok && value && PQntuples(result) > 0)
        (void)snprintf(value, 32, "%s", PQgetvalue(result, 0, 0));
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (!ok && (!state || (strcmp(state, "40001") != 0 && strcmp(state, "40P01") != 0)))
        bench_die("PostgreSQL", PQerrorMessage(conn));
    PQclear(result);
    return ok;
}

static bool transact_by_hand(PGconn *conn, const struct run *run, int row)
{
    char id[16], label[32], value[32] = "0", next[32];
    (void)snprintf(id, sizeof id, "%d", row);
    (void)snprintf(label, sizeof label, "Row:%d", row);
    const char *by_label[] = {label}, *by_id[] = {id}, *update[] = {next, id};
    bool ok = command(conn, begins[run->isolation], 0, NULL, NULL);
    if (ok && run->pattern == TEXTBOOK)
        ok = command(conn, "SELECT pg_advisory_xact_lock(hashtext($1))", 1, by_label, NULL);
    if (ok)
        ok = command(conn, "SELECT value FROM bench_rows WHERE id = $1", 1, by_id, value);
    (void)snprintf(next, sizeof next, "%lld", strtoll(value, NULL, 10) + 1);
    if (ok)
        ok = command(conn, "UPDATE bench_rows SET value = $1 WHERE id = $2", 2, update, NULL);
    if (ok)
        return command(conn, "COMMIT", 0, NULL, NULL);
    (void)command(conn, "ROLLBACK", 0, NULL, NULL);
    return false;
}

static void work_by_hand(struct client *client)
{
    PGconn *conn = bench_connect(client->run->url);
    while (now_s() < client->run->until) {
        int row = 1 + rand_r(&client->seed) % client->run->rows;
        double began = now_s();
        while (!transact_by_hand(conn, client->run, row))
            client->retries++;
        remember(client, now_s() - began);
    }
    PQfinish(conn);
}

/* ---- through the library --------------------------------------------------------------------- */

static hf_status increment(hf_tx *tx, void *arg, hf_error *err)
{
    const char *id = arg;
    hf_rows *rows = NULL;
    char next[32];
    hf_value by_id = HF_TEXT(id);
    hf_status status =
        hf_tx_query(tx, "SELECT value FROM bench_rows WHERE id = $1", 1, &by_id, false, &rows, err);
    if (status != HF_OK)
        return status;
    (void)snprintf(next, sizeof next, "%lld",
                   strtoll(hf_rows_value(rows, 0, 0, NULL), NULL, 10) + 1);
    hf_rows_free(rows);
    hf_value update[] = {HF_TEXT(next), HF_TEXT(id)};
    return hf_tx_queue(tx, "UPDATE bench_rows SET value = $1 WHERE id = $2", 2, update, err);
}

static void count_retries(const hf_tx_stats *stats, void *arg)
{
    struct client *client = arg;
    client->retries += (long)stats->attempts - 1;
}

static void work_with_holdfast(struct client *client)
{
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    hf_error err;
    char id[16], label[32];
    hf_target target = {.label = label, .derivation = HF_HASHTEXT};
    options.labels = &target;
    options.label_count = 1;
    options.isolation = client->run->isolation;
    options.max_attempts = 1000000;
    options.on_stats = count_retries;
    options.stats_arg = client;
    while (now_s() < client->run->until) {
        int row = 1 + rand_r(&client->seed) % client->run->rows;
        (void)snprintf(id, sizeof id, "%d", row);
        (void)snprintf(label, sizeof label, "Row:%d", row);
        double began = now_s();
        if (hf_transact(client->run->store, &options, increment, id, &err) != HF_OK)
            bench_die("holdfast", err.message);
        remember(client, now_s() - began);
    }
}

/* ---- all clients ----------------------------------------------------------------------------- */

static void *work(void *arg)
{
    struct client *client = arg;
    if (client->run->pattern == HOLDFAST)
        work_with_holdfast(client);
    else
        work_by_hand(client);
    return NULL;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void print_totals(struct client *clients, int count, double seconds)
{
    long commits = 0, retries = 0, at = 0;
    for (int i = 0; i < count; i++) {
        commits += clients[i].commits;
        retries += clients[i].retries;
    }
    double *times = calloc((size_t)commits + 1, sizeof *times);
    if (!times)
        bench_die("memory", "out of it");
    for (int i = 0; i < count; i++)
        for (long j = 0; j < clients[i].commits; j++)
            times[at++] = clients[i].times[j];
    qsort(times, (size_t)commits, sizeof *times, ascending);
    printf("%ld %.3f %ld %.0f %.0f\n", commits, seconds, retries, times[commits / 2] * 1e6,
           times[commits * 99 / 100] * 1e6);
    free(times);
}

static enum pattern pattern_named(const char *name)
{
    if (strcmp(name, "none") == 0)
        return NONE;
    return strcmp(name, "textbook") == 0 ? TEXTBOOK : HOLDFAST;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        bench_die("usage", "bench_serialise URL PATTERN ISOLATION ROWS CLIENTS SECONDS");
    int count = atoi(argv[5]);
    struct run run = {.url = argv[1],
                      .pattern = pattern_named(argv[2]),
                      .isolation = (hf_isolation)atoi(argv[3]),
                      .rows = atoi(argv[4])};
    struct client *clients = calloc((size_t)count, sizeof *clients);
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_error err;
    options.url = run.url;
    options.max_transactions = count;
    if (run.pattern == HOLDFAST && hf_store_open(&options, &run.store, &err) != HF_OK)
        bench_die("holdfast", err.message);
    double began = now_s();
    run.until = began + atof(argv[6]);
    for (int i = 0; i < count; i++) {
        clients[i].run = &run;
        clients[i].seed = (unsigned)i + 1;
        if (pthread_create(&clients[i].thread, NULL, work, &clients[i]) != 0)
            bench_die("thread", "cannot start one");
    }
    for (int i = 0; i < count; i++)
        pthread_join(clients[i].thread, NULL);
    print_totals(clients, count, now_s() - began);
    hf_store_close(run.store);
    return 0;
}
