#include "programs/ingest/sources/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void hf__ledger_free(hf__ledger *ledger)
{
    if (ledger == NULL)
        return;
    free(ledger->transactions);
    free(ledger->bytes);
    free(ledger);
}

void hf__bad_ledger_free(hf__bad_ledger *bad)
{
    if (bad == NULL)
        return;
    free(bad->bytes);
    *bad = (hf__bad_ledger){0};
}

/* head is the first 8 bytes as a number: it decides most comparisons without memcmp. */
typedef struct known_hash {
    uint64_t head;
    hf__slice text;
} known_hash;

static int by_hash(const void *a, const void *b)
{
    const known_hash *first = a;
    const known_hash *second = b;

    if (first->head != second->head)
        return first->head < second->head ? -1 : 1;
    if (first->text.size != second->text.size)
        return first->text.size < second->text.size ? -1 : 1;
    return memcmp(first->text.text, second->text.text, first->text.size);
}

hf_status hf__ledger_check_hashes(const hf__ledger *ledger, hf_error *err)
{
    char shown[HF__HASH_MAX + 1];
    hf_status status = HF_OK;
    size_t count = ledger->transaction_count;

    if (count < 2)
        return HF_OK;
    known_hash *hashes = calloc(count, sizeof *hashes);
    if (hashes == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for the hashes of a ledger");
    for (size_t i = 0; i < count; i++) {
        hashes[i].text = ledger->transactions[i].hash;
        size_t size = hashes[i].text.size;
        memcpy(&hashes[i].head, hashes[i].text.text, size < 8 ? size : 8);
    }
    qsort(hashes, count, sizeof *hashes, by_hash);
    for (size_t i = 1; i < count && status == HF_OK; i++)
        if (by_hash(&hashes[i - 1], &hashes[i]) == 0)
            status =
                hf__fail(err, HF_BAD_DATA, "two transactions have the hash %s",
                         hf__show(shown, sizeof shown, hashes[i].text.text, hashes[i].text.size));
    free(hashes);
    return status;
}
