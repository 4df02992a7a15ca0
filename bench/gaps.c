/*
 * gaps URL answer ROUNDS LEDGERS ROWS GAPS: seconds to find the gaps of so many ledgers with so
 * many transactions each; the control finds them by a window function over the transactions. gaps
 * URL commit ROUNDS COMMITS RANGES: seconds for so many commits of a live ingester, coverage and
 * cursor alone, beside so many ranges; the control is the same beside one.
 */
#include "common.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ledgers/ledgers.h"

static void check(hf_status status, const hf_error *err)
{
    if (status != HF_OK)
        bench_die("gaps", err->message);
}

static hf_network *open_network(hf_store *store, PGconn *conn, const char *name, int64_t ledgers)
{
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf_network *network = NULL;
    hf_error err;
    char sql[128];
    options.name = name;
    check(hf_network_open(store, &options, &network, &err), &err);
    (void)snprintf(sql, sizeof sql, "DROP SCHEMA IF EXISTS \"%s\" CASCADE", network->schema);
    bench_run(conn, sql);
    check(hf__tables_install(network, &err), &err);
    check(hf__partitions_ensure(network, 0, ledgers, HF__PARTITION_LEDGERS, &err), &err);
    return network;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Every so many ledgers three in a row are left out. */
static void fill(PGconn *conn, long ledgers, long rows, long gaps)
{
    char sql[1024];
    long each = ledgers / (gaps + 1);
    bench_run(conn, "DROP INDEX ingest_gaps.transactions_hash");
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO ingest_gaps.transactions (to_id, ledger_number, application_order, "
                   "hash, closed_at) SELECT (l << 32) | (t << 12), l, t, 'h', now() FROM "
                   "generate_series(1::bigint, %ld) l, generate_series(1, %ld) t "
                   "WHERE l %% %ld NOT IN (0, 1, 2) OR l < 3 OR l > %ld",
                   ledgers, rows, each, each * gaps + 2);
    bench_run(conn, sql);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO ingest_gaps.ingest_coverage SELECT i * %ld + 3 - 2 * (i = 0)::int, "
                   "CASE WHEN i = %ld THEN %ld ELSE (i + 1) * %ld - 1 END "
                   "FROM generate_series(0, %ld) i",
                   each, gaps, ledgers, each, gaps);
    bench_run(conn, sql);
    bench_run(conn,
              "INSERT INTO ingest_gaps.ingest_store SELECT 'latestLedgerCursor', max(hi) FROM "
              "ingest_gaps.ingest_coverage");
    bench_run(conn, "VACUUM ANALYZE ingest_gaps.transactions");
    bench_run(conn, "VACUUM ANALYZE ingest_gaps.ingest_coverage");
}

static const char by_window_function[] =
    "SELECT before + 1, ledger_number - 1 FROM (SELECT ledger_number, lag(ledger_number) OVER "
    "(ORDER BY ledger_number) AS before FROM (SELECT DISTINCT ledger_number FROM "
    "ingest_gaps.transactions) AS there) AS pairs WHERE ledger_number > before + 1 ORDER BY 1";

static void compare(const PGresult *result, const hf_range *gaps, size_t count, long expected)
{
    bool same = (size_t)PQntuples(result) == count && count == (size_t)expected;
    for (size_t i = 0; same && i < count; i++)
        same = strtoll(PQgetvalue(result, (int)i, 0), NULL, 10) == gaps[i].from &&
               strtoll(PQgetvalue(result, (int)i, 1), NULL, 10) == gaps[i].to;
    if (!same)
        bench_die("gaps", "the two ways do not give the same answer");
}

static void measure_answer(hf_store *store, PGconn *conn, char **argv)
{
    long rounds = strtol(argv[3], NULL, 10), ledgers = strtol(argv[4], NULL, 10);
    long rows = strtol(argv[5], NULL, 10), expected = strtol(argv[6], NULL, 10);
    hf_network *network = open_network(store, conn, "gaps", ledgers);
    hf_error err;
    fill(conn, ledgers, rows, expected);
    for (long round = 0; round < rounds; round++) {
        hf_range *gaps = NULL;
        size_t count = 0;
        int64_t began = bench_now_ns();
        check(hf_network_gaps(network, 0, 0, &gaps, &count, &err), &err);
        int64_t middle = bench_now_ns();
        PGresult *result = PQexec(conn, by_window_function);
        int64_t end = bench_now_ns();
        compare(result, gaps, count, expected);
        bench_print((double)(middle - began) / 1e9, (double)(end - middle) / 1e9);
        PQclear(result);
        free(gaps);
    }
    hf_network_free(network);
    bench_run(conn, "DROP SCHEMA ingest_gaps CASCADE");
}

/* ---- commits --------------------------------------------------------------------------------- */

struct live {
    hf_network *network;
    hf_lock *lock;
    int64_t from, latest;
};

static hf_status step(hf_tx *tx, void *arg, hf_error *err)
{
    const struct live *live = arg;
    hf_status status =
        hf__coverage_extend(tx, live->network, live->from, live->latest, live->latest + 1, err);
    if (status == HF_OK)
        status = hf__cursor_move(tx, live->network, live->network->latest, live->latest,
                                 live->latest + 1, err);
    return status;
}

static double run_live(struct live *live, long commits)
{
    hf_tx_options options = hf__network_tx_options(live->network);
    hf_error err;
    int64_t began = bench_now_ns();
    for (long i = 0; i < commits; i++) {
        check(hf_lock_transact(live->lock, &options, step, live, &err), &err);
        live->latest++;
    }
    return (double)(bench_now_ns() - began) / 1e9;
}

static struct live start_live(hf_store *store, PGconn *conn, const char *name, long ranges)
{
    struct live live = {.network = open_network(store, conn, name, 0), .from = 10 * ranges};
    hf_target target = {.label = live.network->label, .derivation = HF_FNV1A64};
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_error err;
    char sql[256];
    spec.targets = &target;
    spec.target_count = 1;
    spec.flags = HF_PRIVATE | HF_ANY_ORDER;
    live.latest = live.from;
    live.lock = bench_acquire(store, &spec);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO %singest_coverage SELECT 10 * i, 10 * i + 5 * (i < %ld)::int "
                   "FROM generate_series(1, %ld) i",
                   live.network->prefix, ranges, ranges);
    bench_run(conn, sql);
    (void)snprintf(sql, sizeof sql, "VACUUM ANALYZE %singest_coverage", live.network->prefix);
    bench_run(conn, sql);
    check(hf_cursor_set(live.network, live.network->latest, live.latest, &err), &err);
    return live;
}

static void measure_commits(hf_store *store, PGconn *conn, char **argv)
{
    long rounds = strtol(argv[3], NULL, 10), commits = strtol(argv[4], NULL, 10);
    struct live many = start_live(store, conn, "many", strtol(argv[5], NULL, 10));
    struct live one = start_live(store, conn, "one", 1);
    (void)run_live(&many, commits);
    (void)run_live(&one, commits);
    for (long round = 0; round < rounds; round++) {
        double with_many = run_live(&many, commits);
        bench_print(with_many, run_live(&one, commits));
    }
    bench_release(many.lock);
    bench_release(one.lock);
    hf_network_free(many.network);
    hf_network_free(one.network);
}

int main(int argc, char **argv)
{
    bool answer = argc == 7 && strcmp(argv[2], "answer") == 0;
    if (!answer && !(argc == 6 && strcmp(argv[2], "commit") == 0))
        bench_die("usage",
                  "gaps URL answer ROUNDS LEDGERS ROWS GAPS | commit ROUNDS COMMITS RANGES");
    hf_store *store = bench_store(argv[1], HF_RECORDS_OFF);
    PGconn *conn = bench_connect(argv[1]);
    bench_run(conn, "SET client_min_messages = warning");
    if (answer)
        measure_answer(store, conn, argv);
    else
        measure_commits(store, conn, argv);
    PQfinish(conn);
    hf_store_close(store);
    return 0;
}
