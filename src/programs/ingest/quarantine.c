#include "programs/ingest/quarantine.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "programs/ingest/writer.h"

enum { MOST_KEPT = 1024 * 1024 };

/* Escaped as hf__show does it: the bytes may be anything, and the column is text. */
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
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    hf_status status = hf__quarantine_drop(tx, network, sequence, sequence, err);
    const hf_value values[] = {hf__number_value(number, sequence), HF_TEXT(reason),
                               HF_TEXT(bad->where), HF_TEXT(line),
                               HF_TEXT(hf__time_text(time, hf__wall_ms() * 1000))};
    if (status == HF_OK)
        status =
            hf__network_query(tx, network,
                              "INSERT INTO @ingest_quarantine (sequence, reason, source, line, at) "
                              "VALUES ($1, $2, $3, $4, $5)",
                              5, values, NULL, err);
    free(line);
    return status;
}

hf_status hf__quarantine_drop(hf_tx *tx, const hf_network *network, int64_t from, int64_t to,
                              hf_error *err)
{
    char first[24], last[24];
    const hf_value values[] = {hf__number_value(first, from), hf__number_value(last, to)};
    return hf__network_queue(tx, network,
                             "DELETE FROM @ingest_quarantine WHERE sequence BETWEEN $1 AND $2", 2,
                             values, err);
}
