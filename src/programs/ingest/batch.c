#include "programs/ingest/batch.h"

#include <stdlib.h>
#include <string.h>

static size_t total(const struct batch *batch)
{
    return batch->count + batch->hidden;
}

bool batch_add(struct batch *batch, hf__ledger *ledger)
{
    size_t used = (size_t)(batch->ledgers - batch->items) + total(batch);
    if (used == batch->capacity) {
        size_t capacity = batch->capacity ? batch->capacity * 2 : 64;
        size_t start = batch->items ? (size_t)(batch->ledgers - batch->items) : 0;
        hf__ledger **grown = realloc(batch->items, capacity * sizeof(hf__ledger *));
        if (!grown)
            return false;
        batch->items = grown;
        batch->ledgers = grown + start;
        batch->capacity = capacity;
    }
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
