/*
 * Calls on a transaction that runs, and named statements: the only place where a dialect is chosen.
 */
#include "lib/transactions/transaction.h"

#include "base/clock.h"
#include "lib/transactions/sql.h"

/* ---- statements ------------------------------------------------------------------------------ */

void hf__tx_use_thread(int64_t me, struct hf__tx_use *use)
{
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &use->cancel_state);
    use->acted_as = hf__act_as(me);
}

hf_status hf__tx_enter(const struct hf_tx *tx, struct hf__tx_use *use, hf_error *err)
{
    if (!tx || !tx->attempt)
        return hf__fail(err, HF_INVALID, "the transaction has ended, or has not begun");
    hf_status status = hf__check_process(tx->store, err);
    if (status == HF_OK)
        hf__tx_use_thread(tx->owner, use);
    return status;
}

void hf__tx_leave(const struct hf__tx_use *use)
{
    hf__act_as(use->acted_as);
    (void)pthread_setcancelstate(use->cancel_state, NULL);
}

hf_status hf__tx_lock_around(struct hf_tx *tx, hf_error *err)
{
    if (tx->ops->locks_labels || tx->lock || tx->target_count == 0)
        return HF_OK;
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.targets = tx->targets;
    spec.target_count = tx->target_count;
    spec.wait_ms = hf__left_ms(tx->plan.deadline);
    spec.cancel = tx->options.cancel;
    spec.traceparent = hf_tx_traceparent(tx);
    hf_status status = hf_lock_acquire(tx->store, &spec, &tx->lock, err);
    if (status == HF_OK)
        tx->attempt->locked_ms = hf__now_ms();
    else
        tx->attempt->fault = status == HF_NOT_ACQUIRED ? HF__FAULT_LOCKED : HF__FAULT_FINAL;
    return status;
}

hf_status hf_tx_query(hf_tx *tx, const char *sql, size_t count, const hf_value *values,
                      bool binary_rows, hf_rows **rows, hf_error *err)
{
    if (rows)
        *rows = NULL;
    if (!sql || (count > 0 && !values))
        return hf__fail(err, HF_INVALID, "hf_tx_query needs a statement and its values");
    struct hf__tx_use use;
    hf_status status = hf__tx_enter(tx, &use, err);
    if (status != HF_OK)
        return status;
    status = hf__tx_lock_around(tx, err);
    if (status == HF_OK)
        status = tx->ops->query(tx->attempt, &tx->plan, sql, count, values, binary_rows, rows, err);
    hf__tx_leave(&use);
    return status;
}

hf_status hf_tx_queue(hf_tx *tx, const char *sql, size_t count, const hf_value *values,
                      hf_error *err)
{
    if (!sql || (count > 0 && !values))
        return hf__fail(err, HF_INVALID, "hf_tx_queue needs a statement and its values");
    struct hf__tx_use use;
    hf_status status = hf__tx_enter(tx, &use, err);
    if (status != HF_OK)
        return status;
    status = tx->ops->queue(tx->attempt, sql, count, values, err);
    hf__tx_leave(&use);
    return status;
}

static struct pg_conn *lend_connection(struct hf_tx *tx, bool trusted, hf_error *err)
{
    struct hf__tx_use use;
    if (hf__tx_enter(tx, &use, err) != HF_OK)
        return NULL;
    tx->plan.trusts_callback = trusted;
    struct pg_conn *conn = tx->ops->connection(tx->attempt, &tx->plan, err);
    tx->lent = tx->lent || conn;
    hf__tx_leave(&use);
    return conn;
}

struct pg_conn *hf_tx_connection(hf_tx *tx, hf_error *err)
{
    return lend_connection(tx, false, err);
}

struct pg_conn *hf__tx_connection(hf_tx *tx, hf_error *err)
{
    return lend_connection(tx, true, err);
}

void hf__tx_repeats(hf_tx *tx)
{
    tx->plan.repeats = true;
}

hf__dialect hf__tx_dialect(const hf_tx *tx)
{
    return tx->store->backend->local ? HF__SQLITE : HF__POSTGRES;
}

unsigned hf_tx_attempt(const hf_tx *tx)
{
    return tx ? tx->attempts : 0;
}

const char *hf_tx_traceparent(const hf_tx *tx)
{
    return tx && tx->trace ? tx->trace->own : "";
}

/* ---- named statements ------------------------------------------------------------------------ */

/* What a named statement is sent as. */
struct chosen {
    const char *text;
    size_t count;     /* how many of the values are sent */
    hf__buf expanded; /* owns the text if there are words to replace */
};

static hf_status choose(const hf_tx *tx, const hf__sql *sql, const hf__sql_part *parts,
                        size_t count, struct chosen *chosen, hf_error *err)
{
    hf__dialect dialect = hf__tx_dialect(tx);
    *chosen = (struct chosen){.text = sql->text[dialect]};
    if (!chosen->text)
        return hf__fail(err, HF_INVALID, "the statement '%s' is not for this kind of store",
                        sql->name);
    chosen->count = count < sql->parameters[dialect] ? count : sql->parameters[dialect];
    if (!parts)
        return HF_OK;
    hf__sql_expand(&chosen->expanded, chosen->text, parts);
    chosen->text = chosen->expanded.data;
    return chosen->expanded.broken ? hf__no_memory(err) : HF_OK;
}

hf_status hf__tx_query_sql(hf_tx *tx, const hf__sql *sql, const hf__sql_part *parts, size_t count,
                           const hf_value *values, hf_rows **rows, hf_error *err)
{
    struct chosen chosen;
    hf_status status = choose(tx, sql, parts, count, &chosen, err);
    if (rows)
        *rows = NULL;
    if (status == HF_OK)
        status = hf_tx_query(tx, chosen.text, chosen.count, values, false, rows, err);
    hf__buf_free(&chosen.expanded);
    return status;
}

hf_status hf__tx_queue_sql(hf_tx *tx, const hf__sql *sql, const hf__sql_part *parts, size_t count,
                           const hf_value *values, hf_error *err)
{
    struct chosen chosen;
    hf_status status = choose(tx, sql, parts, count, &chosen, err);
    if (status == HF_OK)
        status = hf_tx_queue(tx, chosen.text, chosen.count, values, err);
    hf__buf_free(&chosen.expanded);
    return status;
}

hf_status hf__tx_make_durable(hf_tx *tx, hf_error *err)
{
    if (hf__tx_dialect(tx) != HF__POSTGRES)
        return HF_OK; /* a local store's commits always are */
    return hf__tx_queue_sql(tx, &hf__sql_transactions_make_durable, NULL, 0, NULL, err);
}
