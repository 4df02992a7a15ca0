/* What the benchmarks share. A failure ends the program: a figure after one would mean nothing. */
#ifndef HF_BENCH_COMMON_H
#define HF_BENCH_COMMON_H

#include <libpq-fe.h>
#include <stdint.h>

#include "holdfast/holdfast.h"

#define BENCH_APPLICATION "holdfast-bench"

int64_t bench_now_ns(void);
void bench_sleep_ms(int ms);

/* On standard output, flushed: bench/world.py reads one round a line, "LIBRARY CONTROL". */
void bench_print(double library, double control);

_Noreturn void bench_die(const char *what, const char *why);

/* The library. */
hf_store *bench_store(const char *url, hf_records records);
hf_records bench_records(const char *word); /* "plain" or "records" */
hf_lock *bench_acquire(hf_store *store, const hf_lock_spec *spec);
void bench_release(hf_lock *lock); /* and frees it */
int64_t bench_key(const char *label);

/* The controls: bare libpq. */
PGconn *bench_connect(const char *url);
void bench_prepare(PGconn *conn, const char *name, const char *sql);
/*
 * Runs a prepared statement; ends the program unless the first column of the first row is wanted.
 */
void bench_expect(PGconn *conn, const char *name, int count, const char *const *values,
                  const char *wanted);
void bench_run(PGconn *conn, const char *sql);
int64_t bench_ask(PGconn *conn, const char *sql, const char *value); /* $1, or NULL; 0 for no row */

#endif
