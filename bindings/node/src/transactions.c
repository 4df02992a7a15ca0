/* Operations: transactions, step by step. JavaScript runs one step of a transaction at a time. */
#include "operations.h"

#include <stdlib.h>
#include <string.h>

static void tell_stats(const hf_tx_stats *stats, void *arg)
{
    const struct hfn_handle *tx = arg;
    struct hfn_cells cells = {0};
    hfn_put_text(&cells, "stats");
    hfn_put_number(&cells, tx->event);
    hfn_put_copy(&cells, stats->label, stats->label_size);
    hfn_put_bigint(&cells, stats->key);
    hfn_put_number(&cells, stats->attempts);
    hfn_put_number(&cells, stats->wait_ms);
    hfn_put_number(&cells, stats->hold_ms);
    hfn_put_text(&cells, hf.status_name(stats->outcome));
    hfn_emit(tx->binding, &cells);
}

/*
 * numbers: event, isolation, read_only, retry_unique, deadline_ms, max_attempts, backoff_min_ms,
 * backoff_max_ms, expect_operation, owner, wants_stats; then those of the labels
 * texts: database, traceparent; then the labels
 */
enum { BEGIN_NUMBERS = 11, BEGIN_TEXTS = 2 };

static hf_status tx_begin(struct hfn_call *call)
{
    const int64_t *numbers = call->numbers;
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    hf_target *labels = NULL;
    hf_tx *tx = NULL;
    hf_status status =
        hfn_read_targets(call, BEGIN_NUMBERS, BEGIN_TEXTS, &labels, &options.label_count);
    if (status != HF_OK)
        return status;
    call->made->event = numbers[0];
    options.labels = labels;
    options.isolation = (hf_isolation)numbers[1];
    options.read_only = numbers[2] != 0;
    options.retry_unique = numbers[3] != 0;
    options.deadline_ms = numbers[4];
    options.max_attempts = (unsigned)numbers[5];
    options.backoff_min_ms = (int)numbers[6];
    options.backoff_max_ms = (int)numbers[7];
    options.expect_operation = numbers[8] != 0;
    options.owner = numbers[9] ? numbers[9] : hfn_fresh_owner();
    if (numbers[10]) {
        options.on_stats = tell_stats;
        options.stats_arg = call->made;
    }
    /* It must last as long as the transaction does. */
    const char *database = hfn_text(call, 0);
    if (database != NULL && (call->made->also = strdup(database)) == NULL)
        return hfn_fail(&call->err, HF_NO_MEMORY, "out of memory");
    options.database = call->made->also;
    options.cancel = HFN_CONTENT(call, 1);
    options.traceparent = hfn_text(call, 1);
    status = call->handles[0]->kind == HFN_LOCK
                 ? hf.tx_begin_on(HFN_CONTENT(call, 0), &options, &tx, &call->err)
                 : hf.tx_begin(HFN_CONTENT(call, 0), &options, &tx, &call->err);
    call->made->content = tx;
    const char *traceparent = hf.tx_traceparent(tx);
    hfn_put_copy(&call->message.cells, traceparent, strlen(traceparent));
    return status;
}

/* texts: SQL, then the values */
static hf_status read_values(struct hfn_call *call, hf_value **values, size_t *count)
{
    *count = call->texts.count - 1;
    *values = hfn_allocate(&call->texts, (*count + 1) * sizeof **values);
    if (*values == NULL)
        return hfn_fail(&call->err, HF_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < *count; i++) {
        const struct hfn_cell *cell = &call->texts.at[i + 1];
        (*values)[i] =
            (hf_value){.data = cell->data, .size = cell->size, .binary = cell->type == HFN_BYTES};
    }
    return HF_OK;
}

static void free_rows(void *rows)
{
    hf.rows_free(rows);
}

/* numbers: binary. Returns rows affected, columns, their names, then the values row by row. */
static hf_status tx_query(struct hfn_call *call)
{
    struct hfn_cells *cells = &call->message.cells;
    bool is_binary = call->numbers[0] != 0;
    hf_value *values = NULL;
    size_t count = 0;
    hf_rows *rows = NULL;
    hf_status status = read_values(call, &values, &count);
    if (status == HF_OK)
        status = hf.tx_query(HFN_CONTENT(call, 0), hfn_text(call, 0), count, values, is_binary,
                             &rows, &call->err);
    if (status != HF_OK)
        return status;
    call->kept = rows;
    call->free_kept = free_rows;
    size_t columns = hf.rows_columns(rows);
    hfn_put_number(cells, hf.rows_affected(rows));
    hfn_put_number(cells, (int64_t)columns);
    for (size_t column = 0; column < columns; column++)
        hfn_put_text(cells, hf.rows_column(rows, column));
    for (size_t row = 0; row < hf.rows_count(rows); row++)
        for (size_t column = 0; column < columns; column++) {
            size_t size = 0;
            const char *value = hf.rows_value(rows, row, column, &size);
            hfn_put_bytes(cells, value, size, !is_binary);
        }
    return HF_OK;
}

static hf_status tx_queue(struct hfn_call *call)
{
    hf_value *values = NULL;
    size_t count = 0;
    hf_status status = read_values(call, &values, &count);
    if (status == HF_OK)
        status = hf.tx_queue(HFN_CONTENT(call, 0), hfn_text(call, 0), count, values, &call->err);
    return status;
}

static hf_status tx_serialize(struct hfn_call *call)
{
    hf_target *targets = NULL;
    size_t count = 0;
    hf_status status = hfn_read_targets(call, 0, 0, &targets, &count);
    for (size_t i = 0; i < count && status == HF_OK; i++)
        status = hf.tx_serialize(HFN_CONTENT(call, 0), &targets[i], &call->err);
    return status;
}

/*
 * numbers: what came of the work; texts: message, SQLSTATE, hint. Returns true when the work is to
 * be done anew, and the number of the attempt.
 */
static hf_status tx_end(struct hfn_call *call)
{
    hf_status result = (hf_status)call->numbers[0];
    call->err.code = result;
    if (hfn_text(call, 0))
        strncpy(call->err.message, hfn_text(call, 0), sizeof call->err.message - 1);
    if (hfn_text(call, 1))
        strncpy(call->err.sqlstate, hfn_text(call, 1), sizeof call->err.sqlstate - 1);
    if (hfn_text(call, 2))
        strncpy(call->err.hint, hfn_text(call, 2), sizeof call->err.hint - 1);
    hf_status status = hf.tx_end(HFN_CONTENT(call, 0), result, &call->err);
    if (status != HF_OK && status != HF_AGAIN)
        return status;
    hfn_put_boolean(&call->message.cells, status == HF_AGAIN);
    hfn_put_number(&call->message.cells, hf.tx_attempt(HFN_CONTENT(call, 0)));
    return HF_OK;
}

const struct hfn_operation hfn_tx_operations[] = {
    {.name = "txBegin",
     .run = tx_begin,
     .kinds = {HFN_STORE, HFN_CANCEL},
     .makes = HFN_TX,
     .numbers = BEGIN_NUMBERS,
     .texts = BEGIN_TEXTS},
    {.name = "txBeginOn",
     .run = tx_begin,
     .kinds = {HFN_LOCK, HFN_CANCEL},
     .makes = HFN_TX,
     .numbers = BEGIN_NUMBERS,
     .texts = BEGIN_TEXTS},
    {.name = "txQuery", .run = tx_query, .kinds = {HFN_TX}, .numbers = 1, .texts = 1},
    {.name = "txQueue", .run = tx_queue, .kinds = {HFN_TX}, .numbers = 1, .texts = 1},
    {.name = "txSerialize", .run = tx_serialize, .kinds = {HFN_TX}, .texts = 1},
    {.name = "txEnd", .run = tx_end, .kinds = {HFN_TX}, .numbers = 1, .texts = 3},
    {.name = NULL},
};
