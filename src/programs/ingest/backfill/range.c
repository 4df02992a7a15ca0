/* Fills one range of missing ledgers from the source, in batches, and deals with bad ledgers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "programs/ingest/backfill/parts.h"
#include "programs/ingest/writer.h"

enum {
    COMMIT_EVERY = 1000,
    LOCAL_LEDGERS = 200, /* no other process can write to SQLite meanwhile: 50 ms at most */
    LOCAL_BYTES = 512 * 1024,
    BATCH_AGE_MS = 1000, /* a batch that a slow source does not fill is committed after this time */
    LOOK_MS = 200,
    TROUBLES = 3,           /* failures of the source in a row, with the reader's pauses between */
    READ_AHEAD = 64 * 1024, /* ledgers */
};

/* ---- the stream of ledgers ------------------------------------------------------------------- */

enum { NEAR = 64 }; /* reading past this many ledgers costs less than seeking */

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

bool stream_spec_seeks(const char *spec)
{
    return strncmp(spec, "exec:", 5) != 0 && !ends_with(spec, ".gz") && !ends_with(spec, ".zst");
}

static bool can_go_on(const struct stream *stream, int64_t from)
{
    return stream->reader && stream->next <= from && from <= stream->to &&
           (!stream->seeks || from - stream->next <= NEAR);
}

/*
 * Makes `from`, or the first ledger after it, the next one that stream_take gives. A new reader
 * reads up to `until`, in case the ranges after this one need it.
 */
static hf_status stream_aim(struct stream *stream, int64_t from, int64_t until, hf_error *err)
{
    stream->from = from;
    if (can_go_on(stream, from))
        return HF_OK;
    stream_close(stream);
    stream->next = from;
    stream->to = until;
    return hf__reader_start(stream->options, from, until, stream->memory, stream->stop,
                            &stream->reader, err);
}

static bool is_passed_over(const struct stream *stream, const hf__read *read)
{
    if (read->kind == HF__READ_LEDGER)
        return read->ledger->sequence < stream->from;
    return read->kind == HF__READ_BAD && stream->next < stream->from &&
           read->bad.sequence < stream->from;
}

static hf__read stream_take(struct stream *stream, int ms)
{
    for (;;) {
        hf__read read = hf__reader_take(stream->reader, ms);
        bool passed_over = is_passed_over(stream, &read);
        if (read.kind == HF__READ_LEDGER && read.ledger->sequence >= stream->next)
            stream->next = read.ledger->sequence + 1;
        if (!passed_over)
            return read;
        hf__read_free(&read);
    }
}

void stream_close(struct stream *stream)
{
    hf__reader_stop(stream->reader);
    stream->reader = NULL;
}

static hf_range *range_in_hand(struct worker *worker)
{
    return &worker->missing.items[worker->range];
}

static int64_t expected(struct worker *worker)
{
    const struct batch *batch = &worker->batch;
    int64_t from = range_in_hand(worker)->from;
    return batch->count > 0 && batch_last(batch) >= from ? batch_last(batch) + 1 : from;
}

/* Nothing is to do any more up to this ledger, in the range in hand and those before it. */
static void cut_off(struct worker *worker, int64_t sequence)
{
    for (size_t i = worker->range + 1; i-- > 0;) {
        hf_range *range = &worker->missing.items[i];
        if (range->from > range->to)
            return; /* as in all before it */
        if (range->from <= sequence)
            range->from = (sequence < range->to ? sequence : range->to) + 1;
    }
}

/* ---- committing ------------------------------------------------------------------------------ */

static bool is_class(const hf_error *err, const char *class_name)
{
    return err->code == HF_DATABASE && strncmp(err->sqlstate, class_name, 2) == 0;
}

static void forget_look(struct worker *worker)
{
    free(worker->is_there);
    worker->is_there = NULL;
}

static void count_batch(struct worker *worker)
{
    const struct batch *batch = &worker->batch;
    for (size_t at = 0, end = 0; at < batch->count; at = end) {
        int64_t known = 0, transactions = 0;
        end = backfill_run_end(batch, at);
        for (size_t i = at; i < end; i++) {
            bool is_there = worker->is_there && worker->is_there[i];
            known += is_there;
            transactions += is_there ? 0 : (int64_t)batch->ledgers[i]->transaction_count;
        }
        backfill_count(worker->fill,
                       (hf_range){batch->ledgers[at]->sequence, batch->ledgers[end - 1]->sequence},
                       transactions, known);
    }
    cut_off(worker, batch_last(batch));
}

static hf_status refuse_or_keep(struct worker *worker, int64_t sequence, const hf__bad_ledger *bad,
                                const hf_error *why, hf_error *err)
{
    char text[256];
    if (worker->fill->options->on_bad == HF__BAD_STOPS) {
        *err = *why;
        err->code = HF_BAD_DATA;
        hf__hint(err, "mend the source; --on-bad quarantine keeps such a ledger apart and goes on");
        return HF_BAD_DATA;
    }
    hf_status status = backfill_quarantine(worker, sequence, why->message, bad, err);
    if (status != HF_OK)
        return status;
    worker->quarantined++;
    cut_off(worker, sequence);
    (void)snprintf(text, sizeof text, "ledger %" PRId64 " is in quarantine: %.180s", sequence,
                   why->message);
    backfill_note(worker->fill, text);
    return HF_OK;
}

/* The store refused a batch of one ledger: quarantines it, or ends the run. */
static hf_status blame_ledger(struct worker *worker, const hf_error *why, hf_error *err)
{
    const hf__ledger *ledger = worker->batch.ledgers[0];
    int64_t sequence = ledger->sequence;
    hf__bad_ledger bad;
    hf_error reason = {0};
    hf__quarantine_describe(ledger, &bad);
    (void)!hf__fail(&reason, HF_BAD_DATA, "ledger %" PRId64 " cannot be stored: %.400s", sequence,
                    why->message);
    memcpy(reason.sqlstate, why->sqlstate, sizeof reason.sqlstate);
    hf_status status = refuse_or_keep(worker, sequence, &bad, &reason, err);
    if (status == HF_OK)
        batch_drop_known(&worker->batch, sequence);
    hf__bad_ledger_free(&bad);
    return status;
}

/*
 * Decides what to do with a batch that the store refused. HF_OK: try again with what is in the
 * batch now. SQLSTATE 23505: rows exist already, so find out which. Class 42: a table was altered.
 * 23514: the partition is missing, which worker.c tries again. Classes 22 and 23: a ledger is bad;
 * the batch is split to find out which.
 */
static hf_status handle_refusal(struct worker *worker, hf_error *err)
{
    hf_error why = *err;
    if (strcmp(why.sqlstate, "23505") == 0 && !worker->is_there)
        return backfill_look(worker, err);
    if (is_class(&why, "42")) {
        hf_status status = hf__fail(err, HF_CONFIG,
                                    "the tables of network %s are not as they were "
                                    "made: %.400s",
                                    worker->fill->network->name, why.message);
        memcpy(err->sqlstate, why.sqlstate, sizeof err->sqlstate);
        return status;
    }
    bool lacks_partition = strcmp(why.sqlstate, "23514") == 0;
    if (lacks_partition || !(is_class(&why, "22") || is_class(&why, "23")))
        return why.code;
    forget_look(worker);
    if (worker->batch.count > 1) {
        batch_split(&worker->batch);
        return HF_OK;
    }
    return blame_ledger(worker, &why, err);
}

/* Commits all of the batch: in one transaction, or in several if the store refuses that. */
static hf_status commit_batch(struct worker *worker, hf_error *err)
{
    hf_status status = HF_OK;
    while (status == HF_OK && worker->batch.count > 0) {
        status = backfill_write(worker, err);
        if (status == HF_OK) {
            count_batch(worker);
            batch_clear(&worker->batch);
            forget_look(worker);
        } else {
            err->code = status;
            status = handle_refusal(worker, err);
        }
    }
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The source does not have the next ledgers, up to `to`: leaves them out. */
static hf_status leave_out(struct worker *worker, int64_t to, hf_error *err)
{
    hf_range *range = range_in_hand(worker);
    hf_status status = commit_batch(worker, err);
    if (status != HF_OK || range->from > to)
        return status;
    if (!hf__ranges_add(&worker->lacking, range->from, to))
        return hf__no_memory(err);
    range->from = to + 1;
    return HF_OK;
}

static hf_status refuse_order(struct worker *worker, int64_t sequence, hf_error *err)
{
    hf_status status = hf__fail(
        err, HF_BAD_DATA, "the source goes back to ledger %" PRId64 " where %" PRId64 " is next",
        sequence, expected(worker));
    hf__hint(err, "a source gives ledgers one after the other");
    return status;
}

static hf_status check_link(const struct worker *worker, const hf__ledger *ledger, hf_error *err)
{
    const struct batch *batch = &worker->batch;
    if (batch->count == 0 || batch_last(batch) != ledger->sequence - 1 ||
        !ledger->previous_hash.text)
        return HF_OK; /* write.c checks the first ledger of a run against the store */
    hf__slice before = batch->ledgers[batch->count - 1]->hash;
    if (before.size == ledger->previous_hash.size &&
        memcmp(before.text, ledger->previous_hash.text, before.size) == 0)
        return HF_OK;
    return hf__fail(err, HF_BAD_DATA,
                    "the source contradicts itself: ledger %" PRId64
                    " is %.*s, and %.*s to the one "
                    "behind it",
                    ledger->sequence - 1, (int)before.size, before.text,
                    (int)ledger->previous_hash.size, ledger->previous_hash.text);
}

static bool is_full(const struct worker *worker)
{
    const struct batch *batch = &worker->batch;
    const struct backfill *fill = worker->fill;
    size_t most = fill->options->commit_every > 0 ? (size_t)fill->options->commit_every
                                                  : (size_t)COMMIT_EVERY;
    size_t weight = worker->stream.memory;
    if (fill->network->local && most > LOCAL_LEDGERS)
        most = LOCAL_LEDGERS;
    if (fill->network->local && weight > LOCAL_BYTES)
        weight = LOCAL_BYTES;
    return batch->count >= most || batch->weight >= weight;
}

static hf_status commit_if_old(struct worker *worker, hf_error *err)
{
    bool is_old = hf__now_ms() - worker->batch_since_ms >= BATCH_AGE_MS;
    return is_old ? commit_batch(worker, err) : HF_OK;
}

/* Waits until the rate allows one more ledger. Commits the batch if it gets old meanwhile. */
static hf_status keep_rate(struct worker *worker, hf_error *err)
{
    struct backfill *fill = worker->fill;
    int64_t until = hf__now_ms() + hf__rate_take(&fill->rate, hf__now_ms());
    hf_status status = HF_OK;
    while (status == HF_OK && hf__now_ms() < until) {
        int64_t left = until - hf__now_ms();
        if (hf__stop_pause(&fill->halt, left < BATCH_AGE_MS ? (int)left : BATCH_AGE_MS))
            return hf__fail(err, HF_INTERRUPTED, "stopped");
        status = commit_if_old(worker, err);
    }
    return status;
}

/* Owns the ledger from here on. */
static hf_status add_ledger(struct worker *worker, hf__ledger *ledger, hf_error *err)
{
    hf_range *range = range_in_hand(worker);
    hf_status status = HF_OK;
    int64_t sequence = ledger->sequence;
    if (sequence > expected(worker))
        status = leave_out(worker, sequence <= range->to ? sequence - 1 : range->to, err);
    else if (sequence < expected(worker))
        status = refuse_order(worker, sequence, err);
    if (status == HF_OK && sequence <= range->to)
        status = keep_rate(worker, err);
    if (status == HF_OK && sequence <= range->to)
        status = check_link(worker, ledger, err);
    if (status != HF_OK || sequence > range->to) {
        hf__ledger_free(ledger);
        return status;
    }
    if (worker->batch.count == 0)
        worker->batch_since_ms = hf__now_ms();
    if (!batch_add(&worker->batch, ledger)) {
        hf__ledger_free(ledger);
        return hf__no_memory(err);
    }
    worker->troubles = 0;
    return is_full(worker) ? commit_batch(worker, err) : HF_OK;
}

static hf_status take_bad(struct worker *worker, const hf__read *read, hf_error *err)
{
    hf_range *range = range_in_hand(worker);
    hf_status status = commit_batch(worker, err); /* the ledgers before the bad one */
    if (status != HF_OK)
        return status;
    int64_t sequence = read->bad.sequence > 0 ? read->bad.sequence : range->from;
    if (sequence > range->to || sequence < range->from)
        return HF_OK; /* outside of the range: nobody asked for it */
    if (sequence > range->from)
        status = leave_out(worker, sequence - 1, err);
    return status == HF_OK ? refuse_or_keep(worker, sequence, &read->bad, &read->why, err) : status;
}

/* The reader would try again for ever; a range gives up after three failures. */
static hf_status take_trouble(struct worker *worker, const hf_error *why, hf_error *err)
{
    backfill_note(worker->fill, why->message);
    worker->is_doubtful = worker->is_doubtful || why->code != HF_OK;
    if (why->code == HF_OK || ++worker->troubles < TROUBLES)
        return HF_OK;
    hf_status status = commit_batch(worker, err);
    if (status != HF_OK)
        return status;
    worker->source_failed = true;
    *err = *why;
    return err->code = HF_UNREACHABLE;
}

static hf_status take_failure(struct worker *worker, const hf_error *why, hf_error *err)
{
    hf_status status = commit_batch(worker, err);
    if (status != HF_OK)
        return status;
    worker->source_failed = true;
    *err = *why;
    return why->code;
}

static hf_status take_one(struct worker *worker, hf__read *read, hf_error *err)
{
    hf__ledger *ledger = read->ledger;
    switch (read->kind) {
    case HF__READ_LEDGER: read->ledger = NULL; return add_ledger(worker, ledger, err);
    case HF__READ_BAD: return take_bad(worker, read, err);
    case HF__READ_NOTE: return take_trouble(worker, &read->why, err);
    case HF__READ_END:
        stream_close(&worker->stream);
        return leave_out(worker, range_in_hand(worker)->to, err);
    case HF__READ_FAILED: return take_failure(worker, &read->why, err);
    case HF__READ_NOTHING: break;
    }
    return worker->batch.count > 0 ? commit_if_old(worker, err) : HF_OK;
}

/* How far a new reader should read: as far as ledgers are missing without a hole worth a seek. */
static int64_t read_until(const struct worker *worker, const hf_range *range)
{
    const struct backfill *fill = worker->fill;
    int64_t until = range->to;
    if (!worker->stream.seeks)
        return fill->window.to;
    for (size_t at = backfill_find_missing(fill, range->to);
         at < fill->missing.count && fill->missing.items[at].from <= until + NEAR &&
         until - range->from < READ_AHEAD;
         at++)
        until = fill->missing.items[at].to;
    return until - range->from < READ_AHEAD ? until : range->from + READ_AHEAD;
}

/* What comes after a trouble may be of another chain: it is read again, after a new proof. */
static hf_status aim(struct worker *worker, hf_error *err)
{
    hf_range *range = range_in_hand(worker);
    hf_status status = HF_OK;
    if (worker->is_doubtful) {
        status = commit_batch(worker, err);
        stream_close(&worker->stream);
        if (status == HF_OK)
            status = backfill_prove(worker, err);
        worker->is_doubtful = status != HF_OK;
    }
    if (status != HF_OK || range->from > range->to)
        return status;
    return stream_aim(&worker->stream, range->from, read_until(worker, range), err);
}

hf_status backfill_range(struct worker *worker, hf_error *err)
{
    hf_range *range = range_in_hand(worker);
    hf_status status = aim(worker, err);
    while (status == HF_OK && expected(worker) <= range->to) {
        if (backfill_is_halted(worker->fill)) {
            status = hf__fail(err, HF_INTERRUPTED, "stopped");
            break;
        }
        hf__read read = stream_take(&worker->stream, LOOK_MS);
        if (read.kind == HF__READ_LEDGER && worker->is_doubtful)
            status = aim(worker, err);
        else
            status = take_one(worker, &read, err);
        hf__read_free(&read);
    }
    if (status == HF_OK && worker->range + 1 == worker->missing.count)
        status = commit_batch(worker, err);
    return status;
}
