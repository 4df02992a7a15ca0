/* set URL plain|records ROUNDS LABELS: seconds to acquire and release a set of LABELS labels. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

static double run_library(hf_store *store, const hf_lock_spec *spec)
{
    int64_t began = bench_now_ns();
    bench_release(bench_acquire(store, spec));
    return (double)(bench_now_ns() - began) / 1e9;
}

static double run_control(PGconn *conn, const char *keys, const char *all)
{
    const char *const values[] = {keys};
    int64_t began = bench_now_ns();
    bench_expect(conn, "lock", 1, values, all);
    bench_expect(conn, "unlock", 1, values, all);
    return (double)(bench_now_ns() - began) / 1e9;
}

static hf_target *make_targets(long count)
{
    hf_target *targets = calloc((size_t)count, sizeof *targets);
    for (long i = 0; i < count; i++) {
        char *label = NULL;
        if (!targets || asprintf(&label, "bench/set/%ld", i) < 0)
            bench_die("set", "out of memory");
        targets[i] = HF_LABEL(label);
    }
    return targets;
}

/* Text, made once: what a program that has keys, not labels, would send. */
static char *make_keys(long count)
{
    char *keys = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&keys, &size);
    if (!out)
        bench_die("set", "out of memory");
    for (long i = 0; i < count; i++) {
        char label[48];
        (void)snprintf(label, sizeof label, "bench/set, bare/%ld", i);
        (void)fprintf(out, "%c%lld", i ? ',' : '{', (long long)bench_key(label));
    }
    (void)fputc('}', out);
    (void)fclose(out);
    return keys;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        bench_die("usage", "set URL plain|records ROUNDS LABELS");
    hf_store *store = bench_store(argv[1], bench_records(argv[2]));
    PGconn *conn = bench_connect(argv[1]);
    long rounds = strtol(argv[3], NULL, 10), count = strtol(argv[4], NULL, 10);
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.targets = make_targets(count);
    spec.target_count = (size_t)count;
    char *keys = make_keys(count);

    bench_prepare(
        conn, "lock",
        "SELECT count(*) FROM unnest($1::bigint[]) AS key WHERE pg_try_advisory_lock(key)");
    bench_prepare(conn, "unlock",
                  "SELECT count(*) FROM unnest($1::bigint[]) AS key WHERE pg_advisory_unlock(key)");
    for (long i = -5; i < rounds; i++) {
        double library = run_library(store, &spec);
        double control = run_control(conn, keys, argv[4]);
        if (i >= 0)
            bench_print(library, control);
    }
    PQfinish(conn);
    hf_store_close(store);
    return 0;
}
