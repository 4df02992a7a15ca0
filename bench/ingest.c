/*
 * The controls of bench/cases/ingest.py: bare libpq, and the rows that the ingester wrote before.
 *
 *   bench_ingest copy URL SCHEMA      empties the tables, copies all rows back; "ROWS SECONDS"
 *   bench_ingest tip URL SCHEMA       the same by one transaction per ledger; "LEDGERS SECONDS"
 *   bench_ingest prepared URL SCHEMA  likewise, with statements that were prepared
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "common.h"

enum { BLOCK = 256 * 1024, COLUMNS = 8, MOST_ROWS = 1000 };

static const char ledger_columns[] =
    "ledgers (sequence, hash, previous_hash, closed_at, transaction_count)";
static const char transaction_columns[] =
    "transactions (to_id, ledger_number, application_order, hash, status, fee, closed_at, body)";

static PGresult *ask(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        bench_die(sql, PQerrorMessage(conn));
    return result;
}

/* ---- COPY ------------------------------------------------------------------------------------ */

static int64_t copy_out(PGconn *conn, const char *table, hf__buf *rows)
{
    char sql[256];
    char *line = NULL;
    int64_t count = 0;
    (void)snprintf(sql, sizeof sql, "COPY (SELECT * FROM %s ORDER BY 1) TO STDOUT", table);
    PGresult *result = PQexec(conn, sql);
    if (PQresultStatus(result) != PGRES_COPY_OUT)
        bench_die(sql, PQerrorMessage(conn));
    PQclear(result);
    for (int size = 0; (size = PQgetCopyData(conn, &line, 0)) > 0; count++) {
        hf__buf_add(rows, line, (size_t)size);
        PQfreemem(line);
    }
    PQclear(PQgetResult(conn));
    PQclear(PQgetResult(conn));
    if (rows->broken)
        bench_die(table, "out of memory");
    return count;
}

static void copy_in(PGconn *conn, const char *table, const hf__buf *rows)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql, "COPY %s FROM STDIN", table);
    PGresult *result = PQexec(conn, sql);
    if (PQresultStatus(result) != PGRES_COPY_IN)
        bench_die(sql, PQerrorMessage(conn));
    PQclear(result);
    for (size_t at = 0; at < rows->length; at += BLOCK) {
        size_t size = rows->length - at < BLOCK ? rows->length - at : BLOCK;
        if (PQputCopyData(conn, rows->data + at, (int)size) != 1)
            bench_die(sql, PQerrorMessage(conn));
    }
    if (PQputCopyEnd(conn, NULL) != 1)
        bench_die(sql, PQerrorMessage(conn));
    result = PQgetResult(conn);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        bench_die(sql, PQerrorMessage(conn));
    PQclear(result);
    PQclear(PQgetResult(conn));
}

static void bench_copy(PGconn *conn)
{
    hf__buf ledgers = {0}, transactions = {0};
    int64_t rows = copy_out(conn, "ledgers", &ledgers);
    rows += copy_out(conn, "transactions", &transactions);
    bench_run(conn, "TRUNCATE ledgers, transactions");
    bench_run(conn, "CHECKPOINT");
    int64_t began = bench_now_ns();
    bench_run(conn, "BEGIN");
    copy_in(conn, "ledgers", &ledgers);
    copy_in(conn, "transactions", &transactions);
    bench_run(conn, "COMMIT");
    bench_print((double)rows, (double)(bench_now_ns() - began) / 1e9);
    hf__buf_free(&ledgers);
    hf__buf_free(&transactions);
}

/* ---- one transaction per ledger -------------------------------------------------------------- */

enum statement { BEGIN, LEDGER, TRANSACTIONS, LOCK, COVER, MOVE, COMMIT, STATEMENTS };

struct statements {
    PGconn *conn;
    bool prepared;
    char *sql[STATEMENTS];
};

static void execute(const struct statements *statements, enum statement which, int count,
                    const char *const *values)
{
    char name[4];
    (void)snprintf(name, sizeof name, "s%d", (int)which);
    PGresult *result = statements->prepared
                           ? PQexecPrepared(statements->conn, name, count, values, NULL, NULL, 0)
                           : PQexecParams(statements->conn, statements->sql[which], count, NULL,
                                          values, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        bench_die(statements->sql[which], PQerrorMessage(statements->conn));
    PQclear(result);
}

static char *insert_of(const char *table_columns, int rows, int columns)
{
    hf__buf sql = {0};
    hf__buf_printf(&sql, "INSERT INTO %s VALUES ", table_columns);
    for (int i = 0; i < rows * columns; i++)
        hf__buf_printf(&sql, "%s$%d%s",
                       i % columns ? ","
                       : i         ? ",("
                                   : "(",
                       i + 1, i % columns == columns - 1 ? ")" : "");
    return sql.data;
}

static void make_statements(struct statements *statements, int rows)
{
    char **sql = statements->sql;
    sql[BEGIN] = strdup("BEGIN");
    sql[LEDGER] = insert_of(ledger_columns, 1, 5);
    sql[TRANSACTIONS] = insert_of(transaction_columns, rows, COLUMNS);
    sql[LOCK] = strdup("SELECT FROM ingest_coverage WHERE lo = $1 FOR NO KEY UPDATE");
    sql[COVER] =
        strdup("UPDATE ingest_coverage SET hi = $3 WHERE lo = $1 AND hi = $2 AND NOT EXISTS "
               "(SELECT 1 FROM ingest_coverage AS other WHERE other.lo > $1 AND other.lo <= $3)");
    sql[MOVE] = strdup("UPDATE ingest_store SET value = $3 WHERE key = $1 AND value = $2");
    sql[COMMIT] = strdup("COMMIT");
    for (int i = 0; statements->prepared && i < STATEMENTS; i++) {
        char name[4];
        (void)snprintf(name, sizeof name, "s%d", i);
        bench_prepare(statements->conn, name, sql[i]);
    }
}

static void free_statements(struct statements *statements)
{
    for (int i = 0; i < STATEMENTS; i++)
        free(statements->sql[i]);
}

struct replay {
    struct statements statements;
    PGresult *ledgers;
    PGresult *transactions;
    int rows;         /* of each ledger */
    const char *from; /* of the row of coverage that grows */
};

static void take_row(const PGresult *result, int row, int columns, const char **values)
{
    for (int i = 0; i < columns; i++)
        values[i] = PQgetisnull(result, row, i) ? NULL : PQgetvalue(result, row, i);
}

static void commit_ledger(const struct replay *replay, int ledger)
{
    static const char *values[MOST_ROWS * COLUMNS];
    const struct statements *statements = &replay->statements;
    char before[24];
    const char *sequence = PQgetvalue(replay->ledgers, ledger, 0);
    (void)snprintf(before, sizeof before, "%" PRId64, (int64_t)strtoll(sequence, NULL, 10) - 1);

    execute(statements, BEGIN, 0, NULL);
    take_row(replay->ledgers, ledger, 5, values);
    execute(statements, LEDGER, 5, values);
    for (int i = 0; i < replay->rows; i++)
        take_row(replay->transactions, ledger * replay->rows + i, COLUMNS, values + i * COLUMNS);
    execute(statements, TRANSACTIONS, replay->rows * COLUMNS, values);
    execute(statements, LOCK, 1, &replay->from);
    execute(statements, COVER, 3, (const char *[]){replay->from, before, sequence});
    execute(statements, MOVE, 3, (const char *[]){"latestLedgerCursor", before, sequence});
    execute(statements, COMMIT, 0, NULL);
}

static void bench_tip(PGconn *conn, bool prepared)
{
    struct replay replay = {
        .statements = {.conn = conn, .prepared = prepared},
        .ledgers = ask(conn, "SELECT sequence, hash, previous_hash, closed_at, transaction_count "
                             "FROM ledgers ORDER BY sequence"),
        .transactions = ask(conn, "SELECT to_id, ledger_number, application_order, hash, status, "
                                  "fee, closed_at, body FROM transactions ORDER BY to_id")};
    int count = PQntuples(replay.ledgers);
    char sql[256], from[24];
    if (count == 0 || PQntuples(replay.transactions) % count != 0 ||
        PQntuples(replay.transactions) == 0 || PQntuples(replay.transactions) / count > MOST_ROWS)
        bench_die("tip", "ledgers must have equally many transactions, some and not too many");
    replay.rows = PQntuples(replay.transactions) / count;
    int64_t before = strtoll(PQgetvalue(replay.ledgers, 0, 0), NULL, 10) - 1;
    (void)snprintf(from, sizeof from, "%" PRId64, before);
    replay.from = from;
    bench_run(conn, "TRUNCATE ledgers, transactions, ingest_coverage");
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO ingest_coverage VALUES (%s, %s); "
                   "UPDATE ingest_store SET value = '%s' WHERE key = 'latestLedgerCursor'",
                   from, from, from);
    bench_run(conn, sql);
    bench_run(conn, "CHECKPOINT");
    make_statements(&replay.statements, replay.rows);
    int64_t began = bench_now_ns();
    for (int i = 0; i < count; i++)
        commit_ledger(&replay, i);
    bench_print(count, (double)(bench_now_ns() - began) / 1e9);
    free_statements(&replay.statements);
    PQclear(replay.ledgers);
    PQclear(replay.transactions);
}

int main(int argc, char **argv)
{
    char sql[128];
    if (argc != 4)
        bench_die("usage", "bench_ingest copy|tip|prepared URL SCHEMA");
    PGconn *conn = bench_connect(argv[2]);
    (void)snprintf(sql, sizeof sql, "SET search_path TO \"%s\"", argv[3]);
    bench_run(conn, sql);
    if (strcmp(argv[1], "copy") == 0)
        bench_copy(conn);
    else if (strcmp(argv[1], "tip") == 0 || strcmp(argv[1], "prepared") == 0)
        bench_tip(conn, strcmp(argv[1], "prepared") == 0);
    else
        bench_die(argv[1], "neither copy, tip nor prepared");
    PQfinish(conn);
    return 0;
}
