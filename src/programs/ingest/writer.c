#include "programs/ingest/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/time.h"
#include "base/vec.h"
#include "programs/ingest/sql.h"

enum {
    COPY_BLOCK = 256 * 1024,
    SILENCE_S = 30,             /* of the server in a COPY */
    ROWS_PER_INSERT = 128,      /* of eight values each: far below the limits of the stores */
    LOCAL_ROWS_PER_INSERT = 16, /* SQLite compares each parameter with all before it: O(n^2) */
    TRANSACTION_COLUMNS = 8,
    LEDGER_COLUMNS = 5,
};

/* ---- COPY ------------------------------------------------------------------------------------ */

struct copy {
    PGconn *conn;
    hf__buf block;
    const hf__stop *stop;
    bool is_cut; /* by us, because the server was silent */
};

/* COPY's text format needs a backslash for these four bytes only; all others are copied in runs. */
static void add_escaped(hf__buf *block, hf__slice slice)
{
    const char *at = slice.text, *end = slice.text + slice.size;
    while (at < end) {
        const char *plain = at;
        while (at < end && *at != '\\' && *at != '\t' && *at != '\n' && *at != '\r')
            at++;
        hf__buf_add(block, plain, (size_t)(at - plain));
        if (at == end)
            break;
        const char *escape = *at == '\\'   ? "\\\\"
                             : *at == '\t' ? "\\t"
                             : *at == '\n' ? "\\n"
                                           : "\\r";
        hf__buf_add(block, escape, 2);
        at++;
    }
}

static void add_field(hf__buf *block, hf__slice slice, char end)
{
    if (slice.text)
        add_escaped(block, slice);
    else
        hf__buf_add(block, "\\N", 2);
    hf__buf_add(block, &end, 1);
}

static void add_number(hf__buf *block, int64_t number, char end)
{
    char text[24];
    int size = snprintf(text, sizeof text, "%" PRId64 "%c", number, end);
    hf__buf_add(block, text, (size_t)size);
}

static hf_status copy_failed(const struct copy *copy, const PGresult *result, hf_error *err)
{
    const char *sqlstate = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *text = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    bool gone = PQstatus(copy->conn) != CONNECTION_OK;
    if (copy->is_cut)
        return hf__fail(err, HF_UNREACHABLE,
                        "PostgreSQL has not taken or answered anything for %d s", SILENCE_S);
    hf_status status = hf__fail(err, gone ? HF_UNREACHABLE : HF_DATABASE, "PostgreSQL: %s",
                                text ? text : PQerrorMessage(copy->conn));
    if (err && sqlstate)
        (void)snprintf(err->sqlstate, sizeof err->sqlstate, "%s", sqlstate);
    return status;
}

/* Cuts the connection where the server is silent: all that follows on it fails at once. */
static bool await(struct copy *copy, short events)
{
    struct pollfd one = {.fd = PQsocket(copy->conn), .events = events};
    int64_t until = hf__deadline(SILENCE_S * 1000);
    int ready = 0;
    do
        ready = poll(&one, 1, hf__left_ms(until));
    while (ready < 0 && errno == EINTR);
    copy->is_cut = copy->is_cut || ready == 0;
    if (ready == 0)
        (void)shutdown(one.fd, SHUT_RDWR);
    return PQconsumeInput(copy->conn) == 1;
}

static bool flush(struct copy *copy)
{
    int left = 0;
    while ((left = PQflush(copy->conn)) == 1)
        if (!await(copy, POLLIN | POLLOUT))
            return false;
    return left == 0;
}

static PGresult *next_result(struct copy *copy)
{
    while (PQisBusy(copy->conn))
        if (!await(copy, POLLIN))
            break;
    return PQgetResult(copy->conn);
}

static hf_status send_block(struct copy *copy, size_t least, hf_error *err)
{
    if (copy->block.broken)
        return hf__no_memory(err);
    if (copy->block.length < least || copy->block.length == 0)
        return HF_OK;
    if (copy->stop && hf__stop_is_set(copy->stop))
        return hf__fail(err, HF_INTERRUPTED, "stopped");
    int sent = PQputCopyData(copy->conn, copy->block.data, (int)copy->block.length);
    hf__buf_clear(&copy->block);
    return sent == 1 && flush(copy) ? HF_OK : copy_failed(copy, NULL, err);
}

static hf_status start_copy(struct copy *copy, const hf_network *network, const char *table_columns,
                            hf_error *err)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql, "COPY %s%s FROM STDIN", network->prefix, table_columns);
    if (!PQsendQuery(copy->conn, sql) || !flush(copy))
        return copy_failed(copy, NULL, err);
    PGresult *result = next_result(copy);
    hf_status status =
        PQresultStatus(result) == PGRES_COPY_IN ? HF_OK : copy_failed(copy, result, err);
    while (status != HF_OK && result) {
        PQclear(result);
        result = next_result(copy);
    }
    PQclear(result);
    return status;
}

/* Reads every result of the COPY, also after a failure, so that the connection can be used. */
static hf_status end_copy(struct copy *copy, hf_status status, hf_error *err)
{
    PGresult *result = NULL;
    if (status == HF_OK)
        status = send_block(copy, 0, err);
    bool ended = PQputCopyEnd(copy->conn, status == HF_OK ? NULL : "stopped") == 1 && flush(copy);
    if (!ended && status == HF_OK)
        status = copy_failed(copy, NULL, err);
    while ((result = next_result(copy))) {
        if (status == HF_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
            status = copy_failed(copy, result, err);
        PQclear(result);
    }
    return status;
}

static hf_status copy_ledgers(struct copy *copy, const hf_network *network,
                              hf__ledger *const *ledgers, size_t count, hf_error *err)
{
    char time[HF__TIME_SIZE];
    hf_status status =
        start_copy(copy, network,
                   "ledgers (sequence, hash, previous_hash, closed_at, transaction_count)", err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; status == HF_OK && i < count; i++) {
        const hf__ledger *ledger = ledgers[i];
        add_number(&copy->block, ledger->sequence, '\t');
        add_field(&copy->block, ledger->hash, '\t');
        add_field(&copy->block, ledger->previous_hash, '\t');
        hf__buf_printf(&copy->block, "%s\t", hf__show_time(time, ledger->closed_at_us, 6));
        add_number(&copy->block, (int64_t)ledger->transaction_count, '\n');
        status = send_block(copy, COPY_BLOCK, err);
    }
    return end_copy(copy, status, err);
}

static void add_transaction(hf__buf *block, const hf__ledger *ledger,
                            const hf__transaction *transaction, hf__slice time)
{
    add_number(block, hf__toid(ledger->sequence, transaction->order), '\t');
    add_number(block, ledger->sequence, '\t');
    add_number(block, transaction->order, '\t');
    add_field(block, transaction->hash, '\t');
    add_field(block, transaction->status, '\t');
    if (transaction->has_fee)
        add_number(block, transaction->fee, '\t');
    else
        hf__buf_add(block, "\\N\t", 3);
    hf__buf_add(block, time.text, time.size);
    hf__buf_add(block, "\t", 1);
    add_field(block, transaction->body, '\n');
}

static hf_status copy_transactions(struct copy *copy, const hf_network *network,
                                   hf__ledger *const *ledgers, size_t count, hf_error *err)
{
    char text[HF__TIME_SIZE];
    hf_status status = start_copy(copy, network,
                                  "transactions (to_id, ledger_number, application_order, hash, "
                                  "status, fee, closed_at, body)",
                                  err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; status == HF_OK && i < count; i++) {
        const hf__ledger *ledger = ledgers[i];
        hf__show_time(text, ledger->closed_at_us, 6);
        hf__slice time = {text, strlen(text)};
        for (size_t t = 0; status == HF_OK && t < ledger->transaction_count; t++) {
            add_transaction(&copy->block, ledger, &ledger->transactions[t], time);
            status = send_block(copy, COPY_BLOCK, err);
        }
    }
    return end_copy(copy, status, err);
}

static hf_status write_by_copy(hf_tx *tx, const hf_network *network, hf__ledger *const *ledgers,
                               size_t count, const hf__stop *stop, hf_error *err)
{
    struct copy copy = {.conn = hf__tx_connection(tx, err), .stop = stop};
    if (!copy.conn)
        return err && err->code != HF_OK ? err->code : HF_DATABASE;
    (void)PQsetnonblocking(copy.conn, 1);
    hf_status status = copy_ledgers(&copy, network, ledgers, count, err);
    if (status == HF_OK)
        status = copy_transactions(&copy, network, ledgers, count, err);
    (void)PQsetnonblocking(copy.conn, 0);
    hf__buf_free(&copy.block);
    return status;
}

/* ---- INSERT ---------------------------------------------------------------------------------- */

struct insert {
    const char *into; /* table and columns */
    size_t columns;
    size_t rows;
    hf_value values[ROWS_PER_INSERT * TRANSACTION_COLUMNS];
    /* All values, each with its NUL. It moves while it grows, so until flush_insert a value's size
     * holds its offset here plus 1; 0: NULL. */
    hf__buf texts;
};

static void add_value(struct insert *insert, size_t column, const char *text, size_t size)
{
    hf_value *value = &insert->values[insert->rows * insert->columns + column];
    *value = (hf_value){0};
    if (!text)
        return;
    value->size = insert->texts.length + 1;
    hf__buf_add(&insert->texts, text, size);
    hf__buf_add(&insert->texts, "", 1);
}

static void add_slice(struct insert *insert, size_t column, hf__slice slice)
{
    add_value(insert, column, slice.text, slice.size);
}

/* Up to the end of the text. A ledger of 50 transactions has 600 numbers, too many for printf. */
static char *put_digits(char *end, uint64_t number)
{
    do
        *--end = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return end;
}

static void add_integer(struct insert *insert, size_t column, int64_t number)
{
    char text[24], *end = text + sizeof text;
    char *at = put_digits(end, number < 0 ? -(uint64_t)number : (uint64_t)number);
    if (number < 0)
        *--at = '-';
    add_value(insert, column, at, (size_t)(end - at));
}

static void write_statement(const hf_network *network, const struct insert *insert, size_t rows,
                            hf__buf *sql)
{
    char text[24], *end = text + sizeof text;
    size_t number = 1;
    hf__buf_printf(sql, "INSERT INTO %s%s VALUES ", network->prefix, insert->into);
    for (size_t row = 0; row < rows; row++) {
        hf__buf_puts(sql, row > 0 ? ",(" : "(");
        for (size_t column = 0; column < insert->columns; column++) {
            char *at = put_digits(end, number++);
            *--at = '$';
            if (column > 0)
                *--at = ',';
            hf__buf_add(sql, at, (size_t)(end - at));
        }
        hf__buf_puts(sql, ")");
    }
}

static hf_status queue_rows(hf_tx *tx, const hf_network *network, const struct insert *insert,
                            size_t first, size_t rows, hf_error *err)
{
    hf__buf sql = {0};
    write_statement(network, insert, rows, &sql);
    hf_status status = sql.broken ? hf__no_memory(err)
                                  : hf_tx_queue(tx, sql.data, rows * insert->columns,
                                                insert->values + first * insert->columns, err);
    hf__buf_free(&sql);
    return status;
}

/* By powers of two, so that ledgers of any size need few different statements: those are prepared.
 */
static hf_status flush_insert(hf_tx *tx, const hf_network *network, struct insert *insert,
                              hf_error *err)
{
    hf_status status = insert->texts.broken ? hf__no_memory(err) : HF_OK;
    for (size_t i = 0; status == HF_OK && i < insert->rows * insert->columns; i++) {
        hf_value *value = &insert->values[i];
        if (value->size > 0)
            *value = HF_TEXT(insert->texts.data + value->size - 1);
    }
    size_t done = 0;
    for (size_t rows = ROWS_PER_INSERT; rows > 0; rows /= 2)
        if (status == HF_OK && (insert->rows & rows)) {
            status = queue_rows(tx, network, insert, done, rows, err);
            done += rows;
        }
    hf__buf_clear(&insert->texts);
    insert->rows = 0;
    return status;
}

static hf_status end_row(hf_tx *tx, const hf_network *network, struct insert *insert, hf_error *err)
{
    insert->rows++;
    size_t most = network->local ? LOCAL_ROWS_PER_INSERT : ROWS_PER_INSERT;
    return insert->rows == most ? flush_insert(tx, network, insert, err) : HF_OK;
}

static hf_status insert_ledger(hf_tx *tx, const hf_network *network, struct insert *insert,
                               const hf__ledger *ledger, hf_error *err)
{
    char time[HF__TIME_SIZE];
    add_integer(insert, 0, ledger->sequence);
    add_slice(insert, 1, ledger->hash);
    add_slice(insert, 2, ledger->previous_hash);
    hf__show_time(time, ledger->closed_at_us, 6);
    add_value(insert, 3, time, strlen(time));
    add_integer(insert, 4, (int64_t)ledger->transaction_count);
    return end_row(tx, network, insert, err);
}

static hf_status insert_transaction(hf_tx *tx, const hf_network *network, struct insert *insert,
                                    const hf__ledger *ledger, const hf__transaction *transaction,
                                    hf__slice time, hf_error *err)
{
    add_integer(insert, 0, hf__toid(ledger->sequence, transaction->order));
    add_integer(insert, 1, ledger->sequence);
    add_integer(insert, 2, transaction->order);
    add_slice(insert, 3, transaction->hash);
    add_slice(insert, 4, transaction->status);
    if (transaction->has_fee)
        add_integer(insert, 5, transaction->fee);
    else
        add_value(insert, 5, NULL, 0);
    add_slice(insert, 6, time);
    add_slice(insert, 7, transaction->body);
    return end_row(tx, network, insert, err);
}

static hf_status write_by_insert(hf_tx *tx, const hf_network *network, hf__ledger *const *ledgers,
                                 size_t count, hf_error *err)
{
    hf_status status = HF_OK;
    struct insert *insert = calloc(1, sizeof *insert);
    if (!insert)
        return hf__no_memory(err);
    insert->into = "ledgers (sequence, hash, previous_hash, closed_at, transaction_count)";
    insert->columns = LEDGER_COLUMNS;
    for (size_t i = 0; status == HF_OK && i < count; i++)
        status = insert_ledger(tx, network, insert, ledgers[i], err);
    if (status == HF_OK)
        status = flush_insert(tx, network, insert, err);
    insert->into = "transactions (to_id, ledger_number, application_order, hash, status, fee, "
                   "closed_at, body)";
    insert->columns = TRANSACTION_COLUMNS;
    for (size_t i = 0; i < count; i++) {
        char text[HF__TIME_SIZE];
        hf__show_time(text, ledgers[i]->closed_at_us, 6);
        hf__slice time = {text, strlen(text)};
        for (size_t t = 0; status == HF_OK && t < ledgers[i]->transaction_count; t++)
            status = insert_transaction(tx, network, insert, ledgers[i],
                                        &ledgers[i]->transactions[t], time, err);
    }
    if (status == HF_OK)
        status = flush_insert(tx, network, insert, err);
    hf__buf_free(&insert->texts);
    free(insert);
    return status;
}

hf_status hf__write_rows(hf_tx *tx, const hf_network *network, hf__ledger *const *ledgers,
                         size_t count, bool bulk, const hf__stop *stop, hf_error *err)
{
    if (bulk && !network->local)
        return write_by_copy(tx, network, ledgers, count, stop, err);
    return write_by_insert(tx, network, ledgers, count, err);
}

/* ---- the ledgers of one transaction ---------------------------------------------------------- */

static size_t total(const struct batch *batch)
{
    return batch->count + batch->hidden;
}

bool batch_add(struct batch *batch, hf__ledger *ledger)
{
    size_t start = batch->items ? (size_t)(batch->ledgers - batch->items) : 0;
    if (!hf__grow(&batch->items, &batch->capacity, start + total(batch) + 1, sizeof(hf__ledger *)))
        return false;
    batch->ledgers = batch->items + start;
    batch->ledgers[total(batch)] = ledger;
    batch->count++;
    batch->weight += ledger->weight;
    return true;
}

static void drop_first(struct batch *batch)
{
    batch->weight -= batch->ledgers[0]->weight;
    hf__ledger_free(batch->ledgers[0]);
    batch->ledgers++;
    if (batch->count > 0)
        batch->count--;
    else
        batch->hidden--;
    if (batch->count == 0 && batch->hidden > 0) {
        batch->count = 1;
        batch->hidden--;
    }
    if (total(batch) == 0)
        batch->ledgers = batch->items;
}

void batch_clear(struct batch *batch)
{
    for (size_t left = batch->count; left > 0; left--)
        drop_first(batch);
}

void batch_split(struct batch *batch)
{
    if (batch->count < 2)
        return;
    batch->hidden += batch->count - 1;
    batch->count = 1;
}

void batch_drop_known(struct batch *batch, int64_t latest)
{
    while (total(batch) > 0 && batch->ledgers[0]->sequence <= latest)
        drop_first(batch);
}

void batch_free(struct batch *batch)
{
    while (total(batch) > 0)
        drop_first(batch);
    free(batch->items);
    *batch = (struct batch){0};
}

int64_t batch_first(const struct batch *batch)
{
    return batch->ledgers[0]->sequence;
}

int64_t batch_last(const struct batch *batch)
{
    return batch->ledgers[batch->count - 1]->sequence;
}

int64_t batch_transactions(const struct batch *batch)
{
    size_t transactions = 0;
    for (size_t i = 0; i < batch->count; i++)
        transactions += batch->ledgers[i]->transaction_count;
    return (int64_t)transactions;
}

/* ---- quarantine ------------------------------------------------------------------------------ */

enum { MOST_KEPT = 1024 * 1024 };

/* Escapes the bytes as hf__show does, because they may be anything and the column is text. */
static char *readable(const hf__bad_ledger *bad)
{
    size_t size = bad->size < MOST_KEPT ? bad->size : MOST_KEPT;
    size_t room = 4 * size + 8;
    char *out = malloc(room);
    if (out)
        hf__show(out, room, bad->bytes ? bad->bytes : "", bad->bytes ? size : 0);
    return out;
}

void hf__quarantine_describe(const hf__ledger *ledger, hf__bad_ledger *bad)
{
    hf__buf text = {0};
    for (size_t i = 0; i < ledger->transaction_count; i++) {
        hf__buf_add(&text, ledger->transactions[i].body.text, ledger->transactions[i].body.size);
        hf__buf_puts(&text, "\n");
    }
    *bad = (hf__bad_ledger){.sequence = ledger->sequence, .bytes = text.data, .size = text.length};
    (void)snprintf(bad->where, sizeof bad->where, "ledger %lld", (long long)ledger->sequence);
}

hf_status hf__quarantine_add(hf_tx *tx, const hf_network *network, int64_t sequence,
                             const char *reason, const hf__bad_ledger *bad, hf_error *err)
{
    char number[24], time[HF__TIME_SIZE];
    char *line = readable(bad);
    if (!line)
        return hf__no_memory(err);
    hf_status status = hf__quarantine_drop(tx, network, sequence, sequence, err);
    const hf_value values[] = {hf__number_value(number, sequence), HF_TEXT(reason),
                               HF_TEXT(bad->where), HF_TEXT(line),
                               HF_TEXT(hf__show_time(time, hf__wall_ms() * 1000, 6))};
    if (status == HF_OK)
        status =
            hf__network_query(tx, network, &hf__sql_ingest_add_quarantine, 5, values, NULL, err);
    free(line);
    return status;
}

hf_status hf__quarantine_drop(hf_tx *tx, const hf_network *network, int64_t from, int64_t to,
                              hf_error *err)
{
    char first[24], last[24];
    const hf_value values[] = {hf__number_value(first, from), hf__number_value(last, to)};
    return hf__network_queue(tx, network, &hf__sql_ingest_drop_quarantine, 2, values, err);
}
