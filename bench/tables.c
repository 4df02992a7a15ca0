/*
 * tables URL ROUNDS PAIRS TABLES: seconds for PAIRS locks of one of TABLES shared tables, and their
 * releases; the control finds the id in a table of its own and locks it, by prepared statements.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

static long tables;

static double run_library(hf_store *store, long pairs)
{
    char table[32];
    hf_table_name name = {.database = "bench", .table = table};
    hf_error err = {0};
    int64_t began = bench_now_ns();
    for (long i = 0; i < pairs; i++) {
        hf_lock *lock = NULL;
        (void)snprintf(table, sizeof table, "t%ld", i * 7919 % tables);
        if (hf_table_lock(store, &name, NULL, &lock, &err) != HF_OK)
            bench_die("hf_table_lock", err.message);
        bench_release(lock);
    }
    return (double)(bench_now_ns() - began) / 1e9;
}

static double run_control(PGconn *conn, long pairs)
{
    char table[32], id[24];
    const char *const names[] = {table}, *const ids[] = {id};
    int64_t began = bench_now_ns();
    for (long i = 0; i < pairs; i++) {
        (void)snprintf(table, sizeof table, "t%ld", i * 7919 % tables);
        PGresult *found = PQexecPrepared(conn, "find", 1, names, NULL, NULL, 0);
        if (PQresultStatus(found) != PGRES_TUPLES_OK || PQntuples(found) != 1)
            bench_die("find", PQerrorMessage(conn));
        (void)snprintf(id, sizeof id, "%s", PQgetvalue(found, 0, 0));
        PQclear(found);
        bench_expect(conn, "lock", 1, ids, "t");
        bench_expect(conn, "unlock", 1, ids, "t");
    }
    return (double)(bench_now_ns() - began) / 1e9;
}

static void fill(hf_store *store, PGconn *conn)
{
    char sql[256];
    hf_error err = {0};
    int64_t id = 0;
    for (long i = 0; i < tables; i++) {
        char table[32];
        hf_table_name name = {.database = "bench", .table = table};
        (void)snprintf(table, sizeof table, "t%ld", i);
        if (hf_table_register(store, &name, &id, NULL, &err) != HF_OK)
            bench_die("hf_table_register", err.message);
    }
    (void)snprintf(sql, sizeof sql,
                   "CREATE TEMPORARY TABLE by_hand AS SELECT 't' || i AS name, i AS id "
                   "FROM generate_series(0, %ld - 1) i",
                   tables);
    bench_run(conn, sql);
    bench_run(conn, "CREATE UNIQUE INDEX ON by_hand (name)");
    bench_run(conn, "ANALYZE by_hand");
}

int main(int argc, char **argv)
{
    if (argc != 5)
        bench_die("usage", "tables URL ROUNDS PAIRS TABLES");
    hf_store *store = bench_store(argv[1], HF_RECORDS_REQUIRED);
    PGconn *conn = bench_connect(argv[1]);
    long rounds = strtol(argv[2], NULL, 10), pairs = strtol(argv[3], NULL, 10);
    tables = strtol(argv[4], NULL, 10);

    fill(store, conn);
    bench_prepare(conn, "find", "SELECT id FROM by_hand WHERE name = $1");
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
