/* The two locks of an append: of its id as long as it lives, of the table while it writes. */
#include <stdio.h>
#include <time.h>

#include "lib/tables/lock_table.h"
#include "programs/append/state.h"
#include "programs/append/work.h"

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* In the watcher's thread: the append's own looks at the halt. */
static void on_lost(hf_lock *lock, const hf_error *why, void *arg)
{
    hf__work *work = arg;

    (void)lock;
    if (hf__halt_get(work->halt) == HF__GO_ON)
        work->why_lost = *why;
    hf__halt_set(work->halt, HF__HALT_LOST);
}

static void on_wait(const hf_error *why, void *arg)
{
    hf__work_note(arg, "waiting: %s", why->message);
}

static void on_wait_for_id(const hf_error *why, void *arg)
{
    const hf__work *work = arg;

    (void)why;
    hf__work_note(work, "waiting: append %s runs already", work->result->id);
}

static hf_lock_spec spec_of(hf__work *work)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;

    spec.wait_ms = work->options->wait_ms;
    spec.on_lost = on_lost;
    spec.on_wait = on_wait;
    spec.arg = work;
    return spec;
}

/* The table's id and the append's row are asked for in the same message. */
static hf_status lock_and_look(hf__work *work, const hf_lock_spec *spec, hf_error *err)
{
    hf_value name[3];
    const hf_value id = HF_TEXT(work->result->id);
    hf__rider riders[2] = {{0}};
    /* Nobody knows an id that was made up a moment ago. */
    const hf__lock_extra extra = {.riders = riders,
                                  .rider_count = work->options->id != NULL ? 2 : 1};

    hf__table_look(&work->name, name, &riders[0]);
    hf__append_look(&id, &riders[1]);
    hf_status status =
        hf__append_lock(work->store, work->result->id, spec, &extra, &work->own, err);
    hf__table_looked(work->store, &work->name, riders[0].rows);
    hf_rows_free(riders[0].rows);
    work->seen = riders[1].rows;
    return status;
}

hf_status hf__work_load(hf__work *work, hf__append_row *row, hf_error *err)
{
    if (work->seen == NULL)
        return hf__append_load(work->store, work->result->id, row, err);
    return hf__append_looked(work->seen, row, err);
}

hf_status hf__work_lock_id(hf__work *work, hf_error *err)
{
    hf_lock_spec spec = spec_of(work);

    spec.flags =
        HF_PRIVATE; /* the table's goes beside it, and what is written down on their session */
    spec.on_wait = on_wait_for_id;
    hf_status status = lock_and_look(work, &spec, err);
    if (status == HF_NOT_ACQUIRED && err != NULL) {
        hf_error plain = *err;
        status = hf__fail(err, HF_NOT_ACQUIRED, "append %s runs already: %s", work->result->id,
                          plain.message);
    }
    return status;
}

hf_status hf__work_lock_table(hf__work *work, int64_t wait_ms, hf_error *err)
{
    const hf_table_name name = {work->name.cluster, work->name.database, work->name.table};
    hf_lock_spec spec = spec_of(work);
    const hf__lock_extra extra = {.beside = work->own};
    int64_t asked = now_us();

    spec.flags = HF_PRIVATE;
    spec.wait_ms = wait_ms;
    hf_status status = hf__table_lock_with(work->store, &name, &spec, &extra, &work->lock, err);
    work->locked_us = now_us();
    work->result->lock_wait_us = work->locked_us - asked;
    if (status == HF_OK)
        work->result->key = hf_lock_key(work->lock);
    return status;
}

hf_status hf__work_unlock_table(hf__work *work, hf_error *err)
{
    if (work->lock == NULL)
        return HF_OK;
    hf_status status = HF_OK;
    if (hf_lock_get_state(work->lock) != HF_STATE_RELEASED)
        status = hf_lock_release(work->lock, err);
    work->result->lock_held_us = now_us() - work->locked_us;
    hf_lock_free(work->lock);
    work->lock = NULL;
    return status;
}
