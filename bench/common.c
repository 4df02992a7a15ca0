#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void bench_sleep_ms(int ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&pause, NULL);
}

void bench_print(double library, double control)
{
    printf("%.9g %.9g\n", library, control);
    (void)fflush(stdout);
}

void bench_die(const char *what, const char *why)
{
    (void)fprintf(stderr, "error: %s: %s\n", what, why);
    exit(1);
}

/* ---- the library ----------------------------------------------------------------------------- */

hf_store *bench_store(const char *url, hf_records records)
{
    hf_store *store = NULL;
    hf_error err = {0};
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    options.url = url;
    options.application = BENCH_APPLICATION;
    options.records = records;
    if (hf_store_open(&options, &store, &err) != HF_OK)
        bench_die("hf_store_open", err.message);
    return store;
}

hf_records bench_records(const char *word)
{
    if (strcmp(word, "records") == 0)
        return HF_RECORDS_REQUIRED;
    if (strcmp(word, "plain") != 0)
        bench_die(word, "neither plain nor records");
    return HF_RECORDS_OFF;
}

hf_lock *bench_acquire(hf_store *store, const hf_lock_spec *spec)
{
    hf_lock *lock = NULL;
    hf_error err = {0};
    if (hf_lock_acquire(store, spec, &lock, &err) != HF_OK)
        bench_die("hf_lock_acquire", err.message);
    return lock;
}

void bench_release(hf_lock *lock)
{
    hf_error err = {0};
    if (hf_lock_release(lock, &err) != HF_OK)
        bench_die("hf_lock_release", err.message);
    hf_lock_free(lock);
}

int64_t bench_key(const char *label)
{
    int64_t key = 0;
    hf_error err = {0};
    if (hf_key_derive(HF_SHA256, label, strlen(label), &key, &err) != HF_OK)
        bench_die("hf_key_derive", err.message);
    return key;
}

/* ---- the controls ---------------------------------------------------------------------------- */

PGconn *bench_connect(const char *url)
{
    PGconn *conn = PQconnectdb(url);
    if (PQstatus(conn) != CONNECTION_OK)
        bench_die("PQconnectdb", PQerrorMessage(conn));
    return conn;
}

void bench_prepare(PGconn *conn, const char *name, const char *sql)
{
    PGresult *result = PQprepare(conn, name, sql, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        bench_die(sql, PQerrorMessage(conn));
    PQclear(result);
}

void bench_expect(PGconn *conn, const char *name, int count, const char *const *values,
                  const char *wanted)
{
    PGresult *result = PQexecPrepared(conn, name, count, values, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        bench_die(name, PQerrorMessage(conn));
    if (strcmp(PQgetvalue(result, 0, 0), wanted) != 0)
        bench_die(name, PQgetvalue(result, 0, 0));
    PQclear(result);
}

void bench_run(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        bench_die(sql, PQerrorMessage(conn));
    PQclear(result);
}

int64_t bench_ask(PGconn *conn, const char *sql, const char *value)
{
    PGresult *result = PQexecParams(conn, sql, value ? 1 : 0, NULL, &value, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        bench_die(sql, PQerrorMessage(conn));
    int64_t answer = PQntuples(result) > 0 ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    return answer;
}
