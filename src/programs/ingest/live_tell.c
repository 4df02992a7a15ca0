/*
 * What the live ingester tells those who look on. It rides with a commit when the last time is a second
 * ago, so that it costs no round trip at the tip and next to nothing behind it; and it has a transaction
 * of its own only where a burst was followed by silence, where the source speaks of ledgers that do not
 * come, and at the end.
 */
#include "base/clock.h"
#include "programs/ingest/live_parts.h"

enum {
    TELL_MS = 1000,
    TELL_TIP_MS = 5000, /* without a commit */
};

hf_status hf__live_resume_telling(struct live *live, hf_error *err)
{
    int64_t latest = live->state.started ? live->state.latest : 0;
    live->written_at_ms = 0;
    return hf__activity_resume(live->network, latest, &live->written, &live->activity, err);
}

static bool has_caught_up(const hf__activity *activity)
{
    return activity->source_tip > 0 && activity->counted_to >= activity->source_tip;
}

void hf__live_prepare_telling(struct live *live)
{
    int64_t tip = hf__reader_tip(live->reader);
    int64_t latest = batch_last(&live->batch);
    live->next = (hf__activity){
        .source_tip = tip > 0 && tip < latest ? latest : tip,
        .last_success_ms = hf__wall_ms(),
        .ledgers = live->activity.ledgers + (int64_t)live->batch.count,
        .counted_to = latest,
    };
    live->is_told = live->written_at_ms == 0 || live->ended ||
                    hf__now_ms() - live->written_at_ms >= TELL_MS ||
                    (has_caught_up(&live->next) && !has_caught_up(&live->written));
}

static void note_written(struct live *live)
{
    live->written = live->activity;
    live->written_at_ms = hf__now_ms();
}

void hf__live_has_told(struct live *live)
{
    live->activity = live->next;
    if (live->is_told)
        note_written(live);
}

static bool lacks_count(const struct live *live)
{
    return live->written.ledgers != live->activity.ledgers;
}

int hf__live_silence_ms(const struct live *live)
{
    int64_t due = live->written_at_ms + (lacks_count(live) ? TELL_MS : TELL_TIP_MS);
    int left = hf__left_ms(due);
    return left > 0 ? left : TELL_TIP_MS;
}

static hf_status tell(hf_tx *tx, void *arg, hf_error *err)
{
    const struct live *live = arg;
    return hf__activity_write(tx, live->network, &live->activity, err);
}

static hf_status tell_alone(struct live *live, hf_error *err)
{
    hf_tx_options options = hf__network_tx_options(live->network);
    hf_status status = hf_lock_transact(live->lock, &options, tell, live, err);
    if (status == HF_OK)
        note_written(live);
    return status;
}

hf_status hf__live_tell_idle(struct live *live, hf_error *err)
{
    int64_t tip = hf__reader_tip(live->reader);
    if (tip > 0)
        live->activity.source_tip = tip;
    if (hf__live_is_stopped(live) ||
        (!lacks_count(live) && live->activity.source_tip == live->written.source_tip))
        return HF_OK;
    return tell_alone(live, err);
}

/* Whoever looks on must live without it if it fails: the store is the same as before. */
void hf__live_tell_last(struct live *live)
{
    if (live->lock && lacks_count(live))
        (void)!tell_alone(live, NULL);
}
