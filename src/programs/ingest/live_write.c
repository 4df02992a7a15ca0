/* Commits a batch of the live ingester in one transaction. */
#include <inttypes.h>
#include <stdio.h>

#include "programs/ingest/live.h"
#include "programs/ingest/writer.h"

enum {
    PATIENCE_MS = 30000, /* for one transaction */
    AHEAD = 2, /* quarters of a partition's width: so far ahead of need partitions are created */
};

void hf__live_note(const struct live *live, const char *text)
{
    const hf__ingest_events *events = &live->options->events;
    if (events->note)
        events->note(events->arg, text);
}

/*
 * No ping gets through while a transaction runs, so only its deadline ends one whose server is
 * silent. One that is merely slow gets more time at each try.
 */
hf_tx_options hf__live_tx_options(const struct live *live)
{
    hf_tx_options options = hf__network_tx_options(live->network);
    options.deadline_ms = PATIENCE_MS * (1 + (int64_t)live->failures);
    return options;
}

/*
 * When a backfill fills the gap before the last row, it merges the two, and the row begins
 * elsewhere. Then its start is looked up again.
 */
static hf_status grow_coverage(struct live *live, hf_tx *tx, int64_t to, hf_error *err)
{
    hf__ingest_state *state = &live->state;
    hf_range last = {0};
    bool found = false;
    hf_status status =
        hf__coverage_extend(tx, live->network, state->row_from, state->latest, to, err);
    if (status != HF_CURSOR)
        return status;
    status = hf__coverage_last(tx, live->network, &found, &last, &state->row_from, err);
    if (status != HF_OK)
        return status;
    if (!found || last.to != state->latest)
        return hf__fail(err, HF_CURSOR,
                        "coverage of network %s does not end at ledger %" PRId64 " any more",
                        live->network->name, state->latest);
    return hf__coverage_extend(tx, live->network, state->row_from, state->latest, to, err);
}

hf_status hf__live_want(hf_tx *tx, const struct live *live, int64_t from, hf_error *err)
{
    bool found = false;
    int64_t row = 0;
    if (live->wanted > 0 && live->wanted < from)
        from = live->wanted;
    hf_status status =
        hf__cursor_read(tx, live->network, HF__WANTED_FROM, false, &found, &row, err);
    if (status != HF_OK || (found && row <= from))
        return status;
    return hf__cursor_write(tx, live->network, HF__WANTED_FROM, from, err);
}

/* Starts a new run: with the first ledger of the network, or after one that was quarantined. */
static hf_status begin_coverage(struct live *live, hf_tx *tx, int64_t from, int64_t to,
                                hf_error *err)
{
    const hf_network *network = live->network;
    hf_status status = hf__coverage_add(tx, network, from, to, err);
    if (status == HF_OK)
        status = hf__cursor_write(tx, network, network->oldest, from, err);
    return status == HF_OK ? hf__live_want(tx, live, from, err) : status;
}

static hf_status write_batch(hf_tx *tx, void *arg, hf_error *err)
{
    struct live *live = arg;
    const hf_network *network = live->network;
    const struct batch *batch = &live->batch;
    hf__ingest_state *state = &live->state;
    int64_t from = batch_first(batch), to = batch_last(batch);
    bool bulk = batch->count > 1;

    hf__tx_repeats(tx);
    hf_status status = live->is_linked ? HF_OK : hf__live_check_predecessor(live, tx, err);
    if (status == HF_OK)
        status = hf__write_rows(tx, network, batch->ledgers, batch->count, bulk, live->stop, err);
    if (status == HF_OK && state->started && from == state->latest + 1)
        status = grow_coverage(live, tx, to, err);
    else if (status == HF_OK)
        status = begin_coverage(live, tx, from, to, err);
    if (status == HF_OK && state->started)
        status = hf__cursor_move(tx, network, network->latest, state->latest, to, err);
    else if (status == HF_OK)
        status = hf__cursor_write(tx, network, network->latest, to, err);
    if (status == HF_OK && from <= state->quarantined_to)
        status = hf__quarantine_drop(tx, network, from, to, err);
    if (status == HF_OK && live->is_told)
        status = hf__activity_write(tx, network, &live->next, err);
    return status;
}

/* What the operator wanted and the source does not have is a gap from the start. */
static void note_late_start(const struct live *live)
{
    char text[160];
    int64_t first = batch_first(&live->batch);
    if (live->state.started || live->wanted == 0 || live->wanted >= first)
        return;
    (void)snprintf(text, sizeof text,
                   "it begins with ledger %" PRId64 ": ledgers %" PRId64 "-%" PRId64
                   " are missing, and stay a gap",
                   first, live->wanted, first - 1);
    hf__live_note(live, text);
}

static void count_batch(struct live *live)
{
    const struct batch *batch = &live->batch;
    hf__ingest_state *state = &live->state;
    hf__ingest_progress *progress = live->progress;
    const hf__ledger *last = batch->ledgers[batch->count - 1];

    note_late_start(live);
    if (!state->started || batch_first(batch) != state->latest + 1)
        state->row_from = state->oldest = batch_first(batch);
    state->started = true;
    state->latest = last->sequence;
    (void)snprintf(state->tip_hash, sizeof state->tip_hash, "%.*s", (int)last->hash.size,
                   last->hash.text);
    progress->first = progress->first ? progress->first : batch_first(batch);
    progress->latest = last->sequence;
    progress->tip = last->tip > progress->tip ? last->tip : progress->tip;
    progress->ledgers += (int64_t)batch->count;
    progress->transactions += batch_transactions(batch);
    if (live->options->events.progress)
        live->options->events.progress(live->options->events.arg, progress);
}

static hf_status ensure_partitions(struct live *live, int64_t from, int64_t to, hf_error *err)
{
    int64_t width =
        live->options->partition_ledgers ? live->options->partition_ledgers : HF__PARTITION_LEDGERS;
    int64_t until = to + AHEAD * width / 4;
    if (to <= live->ensured_to)
        return HF_OK;
    hf_status status = hf__partitions_ensure(
        live->network, from, until < HF__LEDGER_MAX ? until : HF__LEDGER_MAX, width, err);
    if (status == HF_OK)
        live->ensured_to = until;
    return status;
}

hf_status hf__live_commit(struct live *live, hf_error *err)
{
    hf_tx_options options = hf__live_tx_options(live);
    hf_status status = HF_OK;
    if (live->batch.count == 0)
        return HF_OK;
    status = ensure_partitions(live, batch_first(&live->batch), batch_last(&live->batch), err);
    hf__live_prepare_telling(live);
    if (status == HF_OK)
        status = hf_lock_transact(live->lock, &options, write_batch, live, err);
    if (status == HF_OK) {
        hf__live_has_told(live);
        count_batch(live);
        batch_clear(&live->batch);
        live->failures = 0;
        live->is_linked = true;
        live->one_by_one = live->one_by_one && live->batch.count > 0;
    }
    return status;
}
