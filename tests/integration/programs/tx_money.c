/*
 * tx_money URL ISOLATION WORKERS TRANSFERS ACCOUNTS LABELS: random transfers between accounts under
 * the labels of both (LABELS 2) or none (0), by as many threads on one store. New balances are
 * computed here, so that an update that was lost would show. Prints "committed refused attempts".
 */
#include <holdfast/holdfast.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hf_store *store;
static hf_isolation isolation;
static int accounts;
static size_t label_count;
static atomic_int left, committed, refused, attempts, failed;

struct transfer {
    int from, to;
    long amount;
};

static hf_status move(hf_tx *tx, void *arg, hf_error *err)
{
    const struct transfer *transfer = arg;
    char from[16], to[16], less[32], more[32];
    hf_rows *rows = NULL;

    atomic_fetch_add(&attempts, 1);
    snprintf(from, sizeof from, "%d", transfer->from);
    snprintf(to, sizeof to, "%d", transfer->to);
    const hf_value both[] = {HF_TEXT(from), HF_TEXT(to)};
    hf_status status = hf_tx_query(tx,
                                   "SELECT a.balance, b.balance FROM accounts a, accounts b "
                                   "WHERE a.id = $1::int AND b.id = $2::int",
                                   2, both, false, &rows, err);
    if (status != HF_OK)
        return status;
    long has = atol(hf_rows_value(rows, 0, 0, NULL)), other = atol(hf_rows_value(rows, 0, 1, NULL));
    hf_rows_free(rows);
    if (has < transfer->amount) {
        err->code = HF_BAD_DATA;
        snprintf(err->message, sizeof err->message, "overdraft");
        return HF_BAD_DATA;
    }
    snprintf(less, sizeof less, "%ld", has - transfer->amount);
    snprintf(more, sizeof more, "%ld", other + transfer->amount);
    static const char update[] = "UPDATE accounts SET balance = $2::bigint WHERE id = $1::int";
    const hf_value debit[] = {HF_TEXT(from), HF_TEXT(less)};
    const hf_value credit[] = {HF_TEXT(to), HF_TEXT(more)};
    status = hf_tx_queue(tx, update, 2, debit, err);
    return status == HF_OK ? hf_tx_queue(tx, update, 2, credit, err) : status;
}

static void run_one(unsigned *seed)
{
    struct transfer transfer = {.from = rand_r(seed) % accounts, .amount = 1 + rand_r(seed) % 150};
    transfer.to = (transfer.from + 1 + rand_r(seed) % (accounts - 1)) % accounts;
    char names[2][32];
    snprintf(names[0], sizeof names[0], "Transfer:%d", transfer.from);
    snprintf(names[1], sizeof names[1], "Transfer:%d", transfer.to);
    const hf_target labels[] = {HF_LABEL(names[0]), HF_LABEL(names[1])};

    hf_tx_options options = HF_TX_OPTIONS_INIT;
    options.labels = labels;
    options.label_count = label_count;
    options.isolation = isolation;
    options.max_attempts = 1000;
    options.backoff_max_ms = 20;
    hf_error err;
    hf_status status = hf_transact(store, &options, move, &transfer, &err);
    if (status == HF_OK)
        atomic_fetch_add(&committed, 1);
    else if (status == HF_BAD_DATA && strcmp(err.message, "overdraft") == 0)
        atomic_fetch_add(&refused, 1);
    else if (atomic_fetch_add(&failed, 1) == 0)
        fprintf(stderr, "%s: %s (%s)\n", hf_status_name(status), err.message, err.hint);
}

static void *work(void *arg)
{
    unsigned seed = (unsigned)(size_t)arg;
    while (atomic_fetch_sub(&left, 1) > 0)
        run_one(&seed);
    return NULL;
}

int main(int argc, char **argv)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    hf_error err;
    if (argc != 7)
        return 2;
    isolation = (hf_isolation)atoi(argv[2]);
    int workers = atoi(argv[3]);
    atomic_store(&left, atoi(argv[4]));
    accounts = atoi(argv[5]);
    label_count = (size_t)atoi(argv[6]);

    hf_store_options options = HF_STORE_OPTIONS_INIT;
    options.url = argv[1];
    options.max_transactions = workers;
    if (workers > MOST || hf_store_open(&options, &store, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (int i = 0; i < workers; i++)
        pthread_create(&threads[i], NULL, work, (void *)(size_t)(i + 1));
    for (int i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
    hf_store_close(store);
    printf("%d %d %d\n", committed, refused, attempts);
    return failed > 0;
}
