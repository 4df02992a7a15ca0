/* Named statements: the only place where a dialect is chosen. */
#include "lib/transactions/transactions.h"

#include "lib/transactions/sql.h"

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
