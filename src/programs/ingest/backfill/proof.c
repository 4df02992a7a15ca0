/*
 * What the source has, and the proof that it is of the chain that is stored: a ledger of it must be
 * stored with the same hash, or be the neighbour of a stored one by its hash. Without that, the
 * ledgers of a network that was reset would be filled in below those of the old one, where no hash
 * connects the two.
 */
#include <inttypes.h>
#include <stdio.h>

#include "programs/ingest/backfill/parts.h"
#include "programs/ingest/reconcile.h"
#include "programs/ingest/sql.h"

enum {
    TRIES = 3,
    MOST_PAUSE_MS = 30000,
    PLACES = 4, /* of the source where a proof is looked for */
};

struct proving {
    const struct backfill *fill;
    hf_range extent;    /* of the source */
    int64_t behind;     /* the first covered ledger behind what is missing; 0: there is none */
    int64_t last;       /* the last covered ledger that the source may have; 0: there is none */
    hf__ledger *ledger; /* of the source */
    struct anchor *anchor;
    bool is_proven;
};

/* ---- one ledger against the store ------------------------------------------------------------ */

/* Takes a stored ledger, a row of (sequence, hash, previous_hash), at most one away from ours. */
static hf_status compare_row(struct proving *proving, const hf_rows *rows, size_t row,
                             hf_error *err)
{
    const hf__ledger *ledger = proving->ledger;
    const char *hash = hf_rows_value(rows, row, 1, NULL);
    const char *previous = hf_rows_value(rows, row, 2, NULL);
    struct anchor *anchor = proving->anchor;
    int64_t sequence = 0;
    hf_status status = hf__row_number(rows, row, 0, "ledgers.sequence", &sequence, err);
    if (status != HF_OK || !hash)
        return status;
    hf__slice theirs = sequence < ledger->sequence ? ledger->previous_hash : ledger->hash;
    const char *ours = sequence > ledger->sequence ? previous : hash;
    if (!theirs.text || !ours)
        return HF_OK; /* it names no previous ledger: this one proves nothing */
    if (!hf__slice_is(theirs, ours))
        return backfill_refuse_chain(proving->fill->network,
                                     sequence < ledger->sequence ? sequence : ledger->sequence,
                                     ours, theirs, err);
    proving->is_proven = true;
    anchor->sequence = sequence;
    (void)snprintf(anchor->hash, sizeof anchor->hash, "%s", hash);
    return HF_OK;
}

static hf_status compare_ledger(hf_tx *tx, void *arg, hf_error *err)
{
    struct proving *proving = arg;
    const hf_network *network = proving->fill->network;
    int64_t sequence = proving->ledger->sequence;
    char list[80];
    hf_rows *rows = NULL;
    (void)snprintf(list, sizeof list,
                   network->local ? "[%" PRId64 ",%" PRId64 ",%" PRId64 "]"
                                  : "{%" PRId64 ",%" PRId64 ",%" PRId64 "}",
                   sequence - 1, sequence, sequence + 1);
    hf_value value = HF_TEXT(list);
    proving->is_proven = false;
    hf_status status =
        hf__network_query(tx, network, &hf__sql_ingest_neighbours, 1, &value, &rows, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++)
        status = compare_row(proving, rows, i, err);
    hf_rows_free(rows);
    return status;
}

/* ---- where to look --------------------------------------------------------------------------- */

static hf_status find_covered(hf_tx *tx, void *arg, hf_error *err)
{
    struct proving *proving = arg;
    const struct backfill *fill = proving->fill;
    char behind[24], last[24];
    bool found = false;
    hf_value value = hf__number_value(behind, fill->missing.items[fill->missing.count - 1].to);
    proving->behind = proving->last = 0;
    hf_status status = hf__query_number(tx, fill->network, &hf__sql_ingest_covered_behind, 1,
                                        &value, &found, &proving->behind, err);
    value = hf__number_value(last, proving->extent.to);
    if (status == HF_OK)
        status = hf__query_number(tx, fill->network, &hf__sql_ingest_covered_up_to, 1, &value,
                                  &found, &proving->last, err);
    return status;
}

/* A hash stands for all ledgers before it, so the best place is behind all that is missing. */
static void list_places(const struct proving *proving, int64_t places[PLACES])
{
    const hf__ranges *missing = &proving->fill->missing;
    places[0] = proving->behind;
    places[1] = proving->last;
    places[2] = missing->items[missing->count - 1].to;
    places[3] = missing->items[0].from;
}

static hf_status look_at_place(struct proving *proving, hf__source *source, int64_t place,
                               hf_error *err)
{
    bool there = true;
    hf_status status = source->ops->seek(source, place, err);
    if (status == HF_OK)
        status = source->ops->next(source, &proving->ledger, NULL, err);
    if (status == HF_BAD_DATA)
        return HF_OK; /* it proves nothing; if it is missing, it is told when its turn comes */
    if (status == HF_OK && proving->ledger)
        status = hf__network_read(proving->fill->network, compare_ledger, proving, &there, err);
    hf__ledger_free(proving->ledger);
    proving->ledger = NULL;
    return status;
}

static hf_status refuse_unproven(const struct backfill *fill, hf_error *err)
{
    hf_status status = hf__fail(err, HF_CONFIG,
                                "nothing proves that the source is of the chain of network %s: it "
                                "has no ledger that is stored here, nor the neighbour of one",
                                fill->network->name);
    hf__hint(err, "give a source that reaches up to the stored ledgers, or was the network reset?");
    return status;
}

static hf_status look_everywhere(struct proving *proving, hf__source *source, hf_error *err)
{
    int64_t places[PLACES];
    bool there = true;
    const hf_range *extent = &proving->extent;
    hf_status status = hf__network_read(proving->fill->network, find_covered, proving, &there, err);
    if (status != HF_OK)
        return status;
    list_places(proving, places);
    for (size_t i = 0; status == HF_OK && !proving->is_proven && i < PLACES; i++)
        if (places[i] > 0 && places[i] >= extent->from && places[i] <= extent->to)
            status = look_at_place(proving, source, places[i], err);
    if (status == HF_OK && !proving->is_proven)
        status = refuse_unproven(proving->fill, err);
    return status;
}

/* ---- asking the source ----------------------------------------------------------------------- */

/* Ledgers outside of the source's extent fail at once: no worker asks for them. */
static hf_status clip_to_source(struct backfill *fill, int64_t oldest, int64_t latest,
                                hf_error *err)
{
    hf__ranges within = {0};
    hf_error why = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < fill->missing.count; i++) {
        hf_range range = fill->missing.items[i];
        int64_t from = range.from > oldest ? range.from : oldest;
        int64_t to = range.to < latest ? range.to : latest;
        (void)!hf__fail(&why, HF_UNREACHABLE, "the source begins at ledger %" PRId64, oldest);
        backfill_fail(fill, (hf_range){range.from, range.to < oldest ? range.to : oldest - 1},
                      &why);
        (void)!hf__fail(&why, HF_UNREACHABLE, "the source ends at ledger %" PRId64, latest);
        backfill_fail(fill, (hf_range){range.from > latest ? range.from : latest + 1, range.to},
                      &why);
        ok = from > to || hf__ranges_add(&within, from, to);
    }
    hf__ranges_free(&fill->missing);
    fill->missing = within;
    return ok ? HF_OK : hf__no_memory(err);
}

/* Before the workers run, `clips` is the backfill, and loses what the source does not have. */
static hf_status ask(const struct backfill *fill, struct backfill *clips, int stop_fd,
                     struct anchor *anchor, hf_error *err)
{
    struct proving proving = {.fill = fill, .anchor = anchor};
    hf_range *extent = &proving.extent;
    hf__source_options options = fill->source;
    hf__source *source = NULL;
    options.stop_fd = stop_fd;
    hf_status status = hf__source_open(&options, &source, err);
    if (status == HF_OK)
        status = source->ops->extent(source, &extent->from, &extent->to, err);
    if (extent->to <= 0)
        extent->to = HF__LEDGER_MAX;
    if (status == HF_OK && clips)
        status = clip_to_source(clips, extent->from, extent->to, err);
    if (status == HF_OK && fill->missing.count > 0)
        status = look_everywhere(&proving, source, err);
    hf__source_close(source);
    return status;
}

hf_status backfill_ask_source(struct backfill *fill, hf__stop *stop, hf_error *err)
{
    for (unsigned tries = 1;; tries++) {
        hf_status status = ask(fill, fill, stop->fd, &fill->anchor, err);
        if (status != HF_UNREACHABLE || tries == TRIES)
            return status;
        backfill_tell(fill, err->message);
        if (hf__stop_pause(stop, hf__backoff_ms(tries, MOST_PAUSE_MS)))
            return hf__fail(err, HF_INTERRUPTED, "stopped");
    }
}

hf_status backfill_prove(struct worker *worker, hf_error *err)
{
    return ask(worker->fill, NULL, worker->fill->halt.fd, &worker->anchor, err);
}
