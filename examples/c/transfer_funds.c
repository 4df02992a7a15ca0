/* Moves money, one transfer of an account at a time: transfer_funds FROM TO SUM */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>

struct transfer {
    const char *from, *to, *sum;
};

static const char read[] = "SELECT balance FROM account WHERE name = $1";
static const char debit[] = "UPDATE account SET balance = balance - $2 WHERE name = $1";
static const char credit[] = "UPDATE account SET balance = balance + $2 WHERE name = $1";

static hf_status work(hf_tx *tx, void *arg, hf_error *err)
{
    const struct transfer *transfer = arg;
    hf_value from[] = {HF_TEXT(transfer->from), HF_TEXT(transfer->sum)};
    hf_value to[] = {HF_TEXT(transfer->to), HF_TEXT(transfer->sum)};
    hf_rows *rows = NULL;
    hf_status status = hf_tx_query(tx, read, 1, from, false, &rows, err);
    if (status != HF_OK)
        return status;
    bool can_pay =
        hf_rows_count(rows) == 1 && atol(hf_rows_value(rows, 0, 0, NULL)) >= atol(transfer->sum);
    hf_rows_free(rows);
    if (!can_pay)
        return HF_ROLLED_BACK; /* our own reason: nothing is written, nothing is tried again */
    status = hf_tx_queue(tx, debit, 2, from, err);
    return status == HF_OK ? hf_tx_queue(tx, credit, 2, to, err) : status;
}

int main(int argc, char **argv)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_tx_options how = HF_TX_OPTIONS_INIT;
    hf_store *store = NULL;
    hf_error err;
    if (argc != 4)
        return 64;
    struct transfer transfer = {argv[1], argv[2], argv[3]};
    char labels[2][200];
    snprintf(labels[0], sizeof labels[0], "Account:%s", transfer.from);
    snprintf(labels[1], sizeof labels[1], "Account:%s", transfer.to);
    const hf_target targets[] = {HF_LABEL(labels[0]), HF_LABEL(labels[1])};
    how.labels = targets; /* locked in the order of their keys, before the snapshot */
    how.label_count = 2;
    options.environment = true; /* HOLDFAST_URL, or a local folder */
    hf_status status = hf_store_open(&options, &store, &err);
    if (status == HF_OK)
        status = hf_transact(store, &how, work, &transfer, &err);
    if (status == HF_ROLLED_BACK)
        fprintf(stderr, "%s cannot pay %s\n", transfer.from, transfer.sum);
    else if (status != HF_OK)
        fprintf(stderr, "%s (%s)\n", err.message, err.hint);
    hf_store_close(store);
    return status == HF_OK ? 0 : 1;
}
