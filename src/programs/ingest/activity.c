#include "programs/ingest/activity.h"

#include <string.h>

enum { ROWS = 5 };

static const char *const names[ROWS] = {HF__SOURCE_TIP, HF__LAST_SUCCESS, HF__LIVE_LEDGERS,
                                        HF__LIVE_COUNTED, HF__BACKFILL_LEDGERS};

/* In the order of names. */
struct numbers {
    hf__maybe of[ROWS];
};

static void take(const hf_rows *rows, size_t row, struct numbers *numbers)
{
    const char *name = hf_rows_value(rows, row, 0, NULL);
    int64_t value = 0;
    if (!name || hf__row_number(rows, row, 1, name, &value, NULL) != HF_OK || value < 0 ||
        value > INT64_MAX / 2) /* sums must fit too */
        return;
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(names[i], name) == 0)
            numbers->of[i] = (hf__maybe){true, value};
}

static hf_status read_numbers(hf_tx *tx, const hf_network *network, struct numbers *numbers,
                              hf_error *err)
{
    hf_value values[ROWS];
    hf_rows *rows = NULL;
    *numbers = (struct numbers){0};
    for (size_t i = 0; i < ROWS; i++)
        values[i] = HF_TEXT(names[i]);
    hf_status status = hf__network_query(
        tx, network, "SELECT key, value FROM @ingest_store WHERE key IN ($1, $2, $3, $4, $5)", ROWS,
        values, &rows, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++)
        take(rows, i, numbers);
    hf_rows_free(rows);
    return status;
}

hf_status hf__activity_write(hf_tx *tx, const hf_network *network, const hf__activity *activity,
                             hf_error *err)
{
    char tip[24], at[24], ledgers[24], counted[24];
    const hf_value values[] = {
        HF_TEXT(HF__SOURCE_TIP),   hf__number_value(tip, activity->source_tip),
        HF_TEXT(HF__LAST_SUCCESS), hf__number_value(at, activity->last_success_ms),
        HF_TEXT(HF__LIVE_LEDGERS), hf__number_value(ledgers, activity->ledgers),
        HF_TEXT(HF__LIVE_COUNTED), hf__number_value(counted, activity->counted_to),
    };
    return hf__network_queue(tx, network,
                             "INSERT INTO @ingest_store (key, value) VALUES ($1, $2), ($3, $4), "
                             "($5, $6), ($7, $8) "
                             "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                             8, values, err);
}

hf_status hf__activity_add_backfill(hf_tx *tx, const hf_network *network, int64_t ledgers,
                                    hf_error *err)
{
    static const char on_postgres[] =
        "INSERT INTO @ingest_store AS s (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE "
        "SET value = (CASE WHEN s.value ~ '^[0-9]{1,18}$' THEN s.value::bigint ELSE 0 END + "
        "$3::bigint)::text";
    static const char on_sqlite[] =
        "INSERT INTO @ingest_store AS s (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE "
        "SET value = CAST(CAST(s.value AS INTEGER) + $3 AS TEXT)";
    char first[24], added[24];
    const hf_value values[] = {HF_TEXT(HF__BACKFILL_LEDGERS), hf__number_value(first, ledgers),
                               hf__number_value(added, ledgers)};
    return hf__network_queue(tx, network, network->local ? on_sqlite : on_postgres, 3, values, err);
}

/* ---- reading ------------------------------------------------------------------------------------ */

struct resuming {
    const hf_network *network;
    struct numbers numbers;
};

static hf_status resume(hf_tx *tx, void *arg, hf_error *err)
{
    struct resuming *resuming = arg;
    return read_numbers(tx, resuming->network, &resuming->numbers, err);
}

hf_status hf__activity_resume(hf_network *network, int64_t latest, hf__activity *written,
                              hf__activity *actual, hf_error *err)
{
    struct resuming resuming = {.network = network};
    hf_status status = hf__network_transact(network, resume, &resuming, err);
    const hf__maybe *of = resuming.numbers.of;
    *written = (hf__activity){.source_tip = of[0].value,
                              .last_success_ms = of[1].value,
                              .ledgers = of[2].value,
                              .counted_to = of[3].value};
    *actual = *written;
    actual->counted_to = latest;
    if (of[3].known && of[3].value < latest)
        actual->ledgers += latest - of[3].value;
    return status;
}

hf_status hf__activity_show(hf_tx *tx, const hf_network *network, hf__network_status *status,
                            hf_error *err)
{
    struct numbers numbers;
    hf_status result = read_numbers(tx, network, &numbers, err);
    status->source_tip = numbers.of[0];
    status->last_success_ms = numbers.of[1];
    status->live_ledgers = numbers.of[2];
    status->backfill_ledgers = numbers.of[4];
    status->source_tip.known = status->source_tip.value > 0;
    status->last_success_ms.known = status->last_success_ms.value > 0;
    return result;
}
