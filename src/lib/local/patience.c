/*
 * How long a call waits for another process, or for another thread that does: a record takes less
 * than a millisecond, but who writes one may have been stopped in the middle.
 */
#include "lib/local/local.h"

#include <time.h>

#include "base/clock.h"

enum {
    BUSY_MS = 5000, /* the longest, for those who have no limit */
    STEP_MS = 20,   /* how often who waits for another thread looks for an interrupt */
    STUCK_MS = 500, /* so long a file that was kept for too long is not waited for */
};

static int64_t longest_ms(const hf__local *local)
{
    return local->busy_ms < BUSY_MS ? local->busy_ms : BUSY_MS;
}

hf__local_patience hf__local_patience_of(const hf__local *local, const hf__request *request)
{
    return (hf__local_patience){
        .until = hf__answer_due(request, longest_ms(local)),
        .interruptible = request->deadline > request->began,
        .cancel = request->cancel,
    };
}

/* Past its deadline a transaction has a second for the answer that is due, as on a server. */
hf__local_patience hf__local_patience_of_plan(const hf__attempt_plan *plan)
{
    enum { LEAST_MS = 1000 };
    int64_t least = hf__deadline(LEAST_MS);

    return (hf__local_patience){
        .until = plan->deadline > least ? plan->deadline : least,
        .interruptible = true,
        .cancel = plan->cancel,
    };
}

hf__local_patience hf__local_patience_for(int ms)
{
    return (hf__local_patience){.until = hf__deadline(ms)};
}

static bool is_over(const hf__local *local, const hf__local_patience *patience)
{
    return (patience->interruptible && atomic_load(&local->interrupted)) ||
           (patience->renews && atomic_load(&local->renewing_ends)) ||
           hf__is_cancelled(patience->cancel);
}

bool hf__local_db_is_interrupted(const hf__local *local)
{
    return is_over(local, &local->db.patience);
}

bool hf__local_db_may_wait(const hf__local *local, int64_t since)
{
    int64_t now = hf__now_ms();
    return now < since + longest_ms(local) && now < local->db.patience.until &&
           !hf__local_db_is_interrupted(local);
}

/* SQLite's own pauses grow to 100 ms; our transactions take less than 1 ms. */
static void pause_for(int tries)
{
    enum { STEP_US = 100, LONGEST_MS = 5 };
    long us = (long)(tries + 1) * STEP_US;
    const struct timespec brief = {.tv_nsec = us * 1000};

    if (us < 1000)
        (void)nanosleep(&brief, NULL);
    else
        (void)hf__poll(NULL, 0, us / 1000 < LONGEST_MS ? (int)(us / 1000) : LONGEST_MS);
}

/*
 * Who keeps the file for much longer than a record takes may be stopped: it was waited for once,
 * and is not again at once, so that a call with several statements ends in time.
 */
int hf__local_on_busy(void *arg, int count)
{
    hf__local *local = arg;
    hf__local_db *db = &local->db;
    int64_t now = hf__now_ms();

    if (count == 0)
        db->busy_since = now;
    if (now >= db->busy_since + longest_ms(local))
        db->stuck_until = now + STUCK_MS;
    if (now < db->stuck_until || !hf__local_db_may_wait(local, db->busy_since))
        return 0;
    pause_for(count);
    return 1;
}

static int64_t next_look(const hf__local_patience *patience)
{
    int64_t step = hf__deadline(STEP_MS);
    return patience->until < step ? patience->until : step;
}

static hf_status say_busy(const hf__local *local, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_UNREACHABLE, "the records in %s/holdfast.db could not be reached in time",
                 local->folder);
    hf__hint(err, "another process keeps the file locked: find it with fuser(1)");
    return status;
}

/* Another thread may have it, and wait for another process with more patience than this one. */
hf_status hf__local_db_take(hf__local *local, const hf__local_patience *patience, hf_error *err)
{
    static const hf__local_patience none = {.until = HF__FOREVER};

    if (patience == NULL)
        patience = &none;
    while (!hf__baton_take_until(&local->db.baton, next_look(patience))) {
        if (is_over(local, patience))
            return hf__interrupted(err);
        if (hf__left_ms(patience->until) == 0)
            return say_busy(local, err);
    }
    local->db.patience = *patience;
    return HF_OK;
}
