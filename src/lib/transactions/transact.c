/*
 * Serialised transactions: labels, attempts, pauses, and the outcome that is reported. The backend
 * runs each attempt. If it cannot lock the labels together with the transaction, they are held as
 * session locks around the attempt.
 */
#include "lib/transactions/transaction.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fibers/fiber.h"
#include "base/hash.h"

enum {
    DEFAULT_ATTEMPTS = 20,
    DEFAULT_BACKOFF_MIN_MS = 2,
    DEFAULT_BACKOFF_MAX_MS = 1000,
    MOST_DOUBLINGS = 16,
    LEASED_MS = 250, /* a look whether a leased label is free */
};

#define LEASE_OVER "HF002" /* the SQLSTATE */

/* ---- attempts -------------------------------------------------------------------------------- */

static void add_times(struct hf_tx *tx)
{
    int64_t now = hf__now_ms(), locked = tx->attempt->locked_ms;
    tx->wait_ms += (locked ? locked : now) - tx->opened_ms;
    if (locked)
        tx->hold_ms += now - locked;
}

static void end_attempt(struct hf_tx *tx)
{
    add_times(tx);
    tx->released = tx->attempt->released;
    tx->ops->close(tx->attempt, &tx->plan);
    tx->attempt = NULL;
    hf_lock_free(tx->lock); /* only after the rollback or commit: the labels protect it */
    tx->lock = NULL;
    hf__tx_drop_labels(tx, tx->fixed);
}

enum verdict { DONE, AGAIN };

static hf_status name_blocked_label(struct hf_tx *tx, hf_error *err)
{
    for (size_t i = 0; err && i < tx->plan.count; i++) {
        hf__holder holder;
        hf_error ignored;
        hf__claim *claim = &tx->claims[i];
        if (tx->store->backend->ops->find_holder(tx->store->backend, claim, &holder, &ignored) ==
                HF_OK &&
            holder.found) {
            hf__trace_holder(tx->trace, &holder);
            return hf__not_acquired(tx->store, claim, err);
        }
    }
    return tx->plan.count > 0 ? hf__not_acquired(tx->store, tx->claims, err) : HF_NOT_ACQUIRED;
}

static enum verdict judge_broken(struct hf_tx *tx, hf_status *status, hf_error *err)
{
    switch (tx->ops->outcome(tx->attempt, &tx->plan, err)) {
    case HF__OUTCOME_COMMITTED: *status = HF_OK; return DONE;
    case HF__OUTCOME_NOT_COMMITTED: return AGAIN;
    case HF__OUTCOME_IN_DOUBT: break;
    }
    *status = HF_IN_DOUBT;
    return DONE;
}

static enum verdict judge(struct hf_tx *tx, hf_status *status, hf_error *err)
{
    tx->waits_for_lease = false;
    switch (tx->attempt->fault) {
    case HF__FAULT_RETRY: return AGAIN;
    case HF__FAULT_UNIQUE: return tx->options.retry_unique ? AGAIN : DONE;
    case HF__FAULT_BROKEN: return judge_broken(tx, status, err);
    case HF__FAULT_LEASED:
        tx->waits_for_lease = true;
        tx->attempts--; /* it has only waited */
        return AGAIN;
    case HF__FAULT_LOCKED: *status = name_blocked_label(tx, err); return DONE;
    case HF__FAULT_FINAL: break;
    }
    return DONE;
}

/* We have not seen what failed on a lent connection: its state and the SQLSTATE in err tell. */
static void judge_lent(struct hf_tx *tx, hf_status *status, hf_error *err)
{
    bool passes = strcmp(err->sqlstate, "40001") == 0 || strcmp(err->sqlstate, "40P01") == 0;
    hf_error found;
    hf_status is = tx->ops->inspect ? tx->ops->inspect(tx->attempt, &found) : HF_OK;
    if (is == HF_OK) {
        tx->attempt->fault = passes ? HF__FAULT_RETRY : HF__FAULT_FINAL;
    } else if (is == HF_INVALID) {
        *status = is;
        *err = found;
    }
}

static struct hf_tx **running(const struct hf_tx *tx)
{
    return &tx->store->transactions[hf__hash_int((uint64_t)tx->owner) % THREAD_BUCKETS];
}

/* One that the same owner runs around it, on the same store, cannot end before it. */
static void enter(struct hf_tx *tx)
{
    pthread_mutex_lock(&tx->store->mutex);
    for (const struct hf_tx *at = *running(tx); at; at = at->next)
        tx->plan.is_nested = tx->plan.is_nested || at->owner == tx->owner;
    tx->next = *running(tx);
    *running(tx) = tx;
    pthread_mutex_unlock(&tx->store->mutex);
}

static void leave(struct hf_tx *tx)
{
    pthread_mutex_lock(&tx->store->mutex);
    struct hf_tx **at = running(tx);
    while (*at != tx)
        at = &(*at)->next;
    *at = tx->next;
    pthread_mutex_unlock(&tx->store->mutex);
}

static void clear(struct hf_tx *tx)
{
    hf__cancel_leave(tx->options.cancel, &tx->call);
    leave(tx);
    if (tx->plan.session) {
        atomic_store(&tx->plan.session->transacts, 0);
        hf__session_leave(tx->plan.session, 1);
    }
    if (tx->lease)
        hf__session_leave(tx->lease, 1);
    free((void *)(uintptr_t)tx->plan.leases);
    hf__tx_leave_order(tx);
    hf__tx_drop_labels(tx, 0);
    free(tx->targets);
    free(tx->claims);
    free(tx->labels);
    free(tx->trace);
}

/* An exception or a cancel has ended the callback, and the transaction with it. */
static void abandon(void *arg)
{
    struct hf_tx *tx = arg;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    end_attempt(tx);
    clear(tx);
    hf__tx_leave(&tx->use);
}

/* HF_AGAIN is ours to say. */
static hf_status check_result(hf_status status, hf_error *err)
{
    return status == HF_AGAIN ? hf__fail(err, HF_INVALID, "HF_AGAIN is not for applications")
                              : status;
}

static hf_status call_back(struct hf_tx *tx, hf_tx_fn *fn, void *arg, hf_error *err)
{
    hf_status status;
    pthread_cleanup_push(abandon, tx);
    (void)pthread_setcancelstate(tx->use.cancel_state, NULL);
    status = fn(tx, arg, err);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_pop(0);
    return check_result(status, err);
}

/*
 * If a statement failed, its fault decides about another attempt, whatever the callback returns:
 * after HF_OK the commit reports the same failure again. A callback that fails for its own reasons
 * is final.
 */
static enum verdict decide(struct hf_tx *tx, hf_status *status, hf_error *err)
{
    if (*status != HF_OK) {
        if (tx->lent && tx->attempt->fault == HF__FAULT_FINAL)
            judge_lent(tx, status, err);
        if (err->code == HF_OK)
            (void)!hf__fail(err, *status, "the work of the transaction failed: %s",
                            hf_status_text(*status));
    } else {
        tx->attempt->fault = HF__FAULT_FINAL;
        *status = hf__is_cancelled(tx->options.cancel) ? hf__interrupted(err)
                                                       : hf__tx_lock_around(tx, err);
        if (*status == HF_OK)
            *status = tx->ops->commit(tx->attempt, &tx->plan, err);
    }
    return *status == HF_OK ? DONE : judge(tx, status, err);
}

static void pause_before_retry(const struct hf_tx *tx)
{
    unsigned doublings = tx->attempts < MOST_DOUBLINGS ? tx->attempts : MOST_DOUBLINGS;
    int64_t bound = (int64_t)tx->options.backoff_min_ms << doublings;
    if (bound > tx->options.backoff_max_ms)
        bound = tx->options.backoff_max_ms;
    if (tx->waits_for_lease)
        bound = LEASED_MS;
    int left = hf__left_ms(tx->plan.deadline);
    if (left >= 0 && bound > left)
        bound = left;
    struct pollfd cancel = {.fd = hf__cancel_fd(tx->options.cancel), .events = POLLIN};
    (void)hf__poll(&cancel, 1, hf__jitter_ms(0, (int)bound + 1));
}

static hf_status exhausted(const struct hf_tx *tx, hf_error *err)
{
    hf_error last;
    if (!err)
        return HF_EXHAUSTED;
    last = *err;
    bool late = hf__left_ms(tx->plan.deadline) == 0;
    hf_status status = hf__fail(err, HF_EXHAUSTED, "not committed after %u attempt%s%s: %s",
                                tx->attempts, tx->attempts == 1 ? "" : "s",
                                late ? ", the deadline has passed" : "", last.message);
    memcpy(err->sqlstate, last.sqlstate, sizeof err->sqlstate);
    hf__hint(err, "%s",
             last.hint[0] ? last.hint
                          : "conflicts come from transactions that do not share a label with this "
                            "one; allow more attempts, or give them a common label");
    return status;
}

static bool may_try_again(const struct hf_tx *tx)
{
    return tx->attempts < tx->options.max_attempts && hf__left_ms(tx->plan.deadline) != 0;
}

/* Opens the next attempt. Else all is over, and the status is what came of it. */
static hf_status open_attempt(struct hf_tx *tx, hf_error *err)
{
    for (;;) {
        if (hf__is_cancelled(tx->options.cancel))
            return hf__interrupted(err);
        tx->attempts++;
        tx->opened_ms = hf__now_ms();
        hf_status status = hf__tx_resolve_labels(tx, err);
        if (status == HF_OK)
            status = tx->ops->open(tx->store->backend, &tx->plan, &tx->attempt, err);
        if (status == HF_OK) {
            *err = (hf_error){.code = HF_OK};
            tx->attempt->fault = HF__FAULT_FINAL;
            tx->lent = false;
            tx->reached = true;
            return HF_OK;
        }
        if (tx->store->backend->local || !hf__may_pass(err))
            return status; /* else it was there when the store was opened */
        if (!may_try_again(tx))
            return tx->reached ? exhausted(tx, err) : status;
        pause_before_retry(tx);
    }
}

/*
 * Commits the attempt, or rolls it back for what the callback returned. HF_AGAIN: the next one is
 * open. Else all is over.
 */
static hf_status settle_attempt(struct hf_tx *tx, hf_status status, hf_error *err)
{
    enum verdict verdict = decide(tx, &status, err);
    end_attempt(tx);
    if (verdict == DONE)
        return status;
    if (!may_try_again(tx))
        return tx->waits_for_lease ? name_blocked_label(tx, err) : exhausted(tx, err);
    pause_before_retry(tx);
    status = open_attempt(tx, err);
    return status == HF_OK ? HF_AGAIN : status;
}

/* ---- the call -------------------------------------------------------------------------------- */

static hf_status complete(const hf_tx_options *given, hf_tx_options *options, hf_error *err)
{
    const hf_tx_options defaults = HF_TX_OPTIONS_INIT;
    hf_status status = hf__options_copy(options, sizeof *options, given ? given : &defaults,
                                        offsetof(hf_tx_options, isolation), "hf_tx_options",
                                        "HF_TX_OPTIONS_INIT", err);
    if (status != HF_OK)
        return status;
    status = hf__check_task(options->owner, err);
    if (status != HF_OK)
        return status;
    if (options->isolation > HF_READ_COMMITTED || options->deadline_ms < 0)
        return hf__fail(err, HF_INVALID, "unknown isolation level, or a negative deadline");
    if (options->label_count > 0 && !options->labels)
        return hf__fail(err, HF_INVALID, "label_count is %zu, but labels is NULL",
                        options->label_count);
    if (!options->max_attempts)
        options->max_attempts = DEFAULT_ATTEMPTS;
    if (options->backoff_min_ms <= 0)
        options->backoff_min_ms = DEFAULT_BACKOFF_MIN_MS;
    if (options->backoff_max_ms <= 0)
        options->backoff_max_ms = DEFAULT_BACKOFF_MAX_MS;
    return HF_OK;
}

static void report(const struct hf_tx *tx, hf_status outcome)
{
    hf_tx_stats stats = {.attempts = tx->attempts,
                         .wait_ms = tx->wait_ms,
                         .hold_ms = tx->hold_ms,
                         .outcome = outcome};
    hf__tell_transaction(tx->store, tx->trace, tx->plan.count > 0 ? tx->claims : NULL, outcome);
    if (!tx->options.on_stats)
        return;
    if (tx->plan.count == 0)
        tx->options.on_stats(&stats, tx->options.stats_arg);
    for (size_t i = 0; i < tx->plan.count; i++) {
        stats.label = tx->claims[i].label;
        stats.label_size = tx->claims[i].label_size;
        stats.key = tx->claims[i].key;
        tx->options.on_stats(&stats, tx->options.stats_arg);
    }
}

static hf_status start(struct hf_tx *tx, const hf_tx_options *options, hf_error *err)
{
    hf_status status = hf__check_process(tx->store, err);
    if (status == HF_OK && !(tx->ops = tx->store->backend->ops->attempt))
        status = hf__fail(err, HF_INVALID, "this store runs no transactions of its own");
    if (status == HF_OK)
        status = complete(options, &tx->options, err);
    tx->owner = hf__me_or(tx->options.owner);
    return status;
}

/* HF_OK: the first attempt is open. *err is of the attempts. */
static hf_status begin(struct hf_tx *tx, hf_error *err)
{
    hf_status status = HF_OK;
    tx->call = (hf__cancellable){.wake = hf__interrupt_cancelled, .arg = tx->store};
    enter(tx);
    hf__cancel_enter(tx->options.cancel, &tx->call);
    if (tx->options.traceparent || tx->options.label_count > 0)
        tx->trace = hf__trace_start(tx->store, tx->options.traceparent);
    for (size_t i = 0; status == HF_OK && i < tx->options.label_count; i++)
        if (!hf__tx_add_label(tx, &tx->options.labels[i]))
            status = hf__no_memory(err);
    tx->fixed = tx->target_count;
    tx->plan.isolation = tx->options.isolation;
    tx->plan.read_only = tx->options.read_only;
    tx->plan.deadline =
        tx->options.deadline_ms > 0 ? hf__deadline(tx->options.deadline_ms) : HF__FOREVER;
    tx->plan.cancel = tx->options.cancel;
    tx->plan.database = tx->options.database ? tx->options.database : "data";
    if (status == HF_OK)
        status = hf__tx_resolve_labels(tx, err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < tx->fixed; i++)
        hf__tx_warn_if_generic(tx, &tx->targets[i]);
    status = open_attempt(tx, err);
    if (status != HF_OK)
        report(tx, status);
    return status;
}

/* After the last attempt. err stays untouched by one that failed before another succeeded. */
static hf_status finish(struct hf_tx *tx, hf_status status, const hf_error *last, hf_error *err)
{
    if (status == HF_LOST && tx->lease && strcmp(last->sqlstate, LEASE_OVER) == 0)
        (void)hf__session_lose(tx->lease, "lease", last); /* the server knows before we do */
    clear(tx);
    if (status != HF_OK && err)
        *err = *last;
    return status;
}

static hf_status run(struct hf_tx *tx, hf_tx_fn *fn, void *arg, hf_error *err)
{
    hf_error last;
    hf__tx_use_thread(tx->owner, &tx->use);
    hf_status status = begin(tx, &last);
    if (status == HF_OK) {
        do
            status = settle_attempt(tx, call_back(tx, fn, arg, &last), &last);
        while (status == HF_AGAIN);
        report(tx, status);
    }
    status = finish(tx, status, &last, err);
    hf__tx_leave(&tx->use);
    return status;
}

hf_status hf_transact(hf_store *store, const hf_tx_options *options, hf_tx_fn *fn, void *arg,
                      hf_error *err)
{
    return hf__transact_at(store, HF__PLACE_DATA, options, fn, arg, err);
}

hf_status hf__transact_at(hf_store *store, hf__attempt_place place, const hf_tx_options *options,
                          hf_tx_fn *fn, void *arg, hf_error *err)
{
    struct hf_tx tx = {.store = store, .plan = {.place = place}};
    if (!store || !fn)
        return hf__fail(err, HF_INVALID, "hf_transact needs a store and a callback");
    hf_status status = start(&tx, options, err);
    return status == HF_OK ? run(&tx, fn, arg, err) : status;
}

hf_status hf_lock_transact(hf_lock *lock, const hf_tx_options *options, hf_tx_fn *fn, void *arg,
                           hf_error *err)
{
    return hf__lock_transact_at(lock, HF__PLACE_DATA, options, fn, arg, err);
}

static hf_status start_on(hf_lock *lock, struct hf_tx *tx, const hf_tx_options *options,
                          hf_error *err)
{
    hf_status status = start(tx, options, err);
    bool is_lease = lock->lifetime == HF_LEASE;
    bool fits = is_lease || (lock->flags & HF_PRIVATE);
    if (status == HF_OK && (!fits || tx->options.label_count > 0)) {
        status =
            hf__fail(err, HF_INVALID,
                     "a transaction on a lock needs a lease, or an HF_PRIVATE lock, and no labels");
        hf__hint(err, "acquire it with HF_PRIVATE, and everything else that must be held before");
    }
    if (status != HF_OK)
        return status;
    if (!tx->options.traceparent && lock->trace)
        tx->options.traceparent = lock->trace->own; /* for begin(), which copies it */
    struct hf__tx_use use; /* an owner in a transaction on the session would wait for itself */
    hf__tx_use_thread(tx->owner, &use);
    status = is_lease ? hf__lock_use_lease(lock, &tx->lease, &tx->plan.leases,
                                           &tx->plan.lease_count, err)
                      : hf__lock_use_session(lock, &tx->plan.session, err);
    hf__tx_leave(&use);
    if (status == HF_OK && !is_lease)
        atomic_store(&tx->plan.session->transacts, tx->owner);
    return status;
}

static hf_status transact_on(hf_lock *lock, struct hf_tx *tx, const hf_tx_options *options,
                             hf_tx_fn *fn, void *arg, hf_error *err)
{
    hf_status status = start_on(lock, tx, options, err);
    return status == HF_OK ? run(tx, fn, arg, err) : status;
}

hf_status hf__lock_transact_at(hf_lock *lock, hf__attempt_place place, const hf_tx_options *options,
                               hf_tx_fn *fn, void *arg, hf_error *err)
{
    if (!lock || !fn)
        return hf__fail(err, HF_INVALID, "hf_lock_transact needs a lock and a callback");
    struct hf_tx tx = {.store = lock->store, .plan = {.place = place}};
    return transact_on(lock, &tx, options, fn, arg, err);
}

/* Mutex held. Can the commit release the lock? It is on the same session, and nobody shares it. */
static bool goes_with(const hf_lock *lock, const hf_lock *first)
{
    return (lock->flags & HF_PRIVATE) && lock->state == HF_STATE_HELD && lock->count == 1 &&
           lock->name.mode == HF_EXCLUSIVE && lock->name.space == HF_BIGINT &&
           lock->grants[0].hold->refs == 1 &&
           lock->grants[0].hold->session == first->grants[0].hold->session;
}

hf_status hf__lock_transact_last(hf_lock *const locks[2], const hf_tx_options *options,
                                 hf_tx_fn *fn, void *arg, hf_error *err)
{
    hf_store *store = locks[0]->store;
    hf__claim claims[2];
    struct hf_tx tx = {.store = store, .plan = {.place = HF__PLACE_DATA, .release = claims}};

    pthread_mutex_lock(&store->mutex);
    bool together = goes_with(locks[0], locks[0]) && goes_with(locks[1], locks[0]);
    for (size_t i = 0; together && i < 2; i++)
        claims[i] = locks[i]->grants[0].claim;
    pthread_mutex_unlock(&store->mutex);
    tx.plan.release_count = together ? 2 : 0;
    hf_status status = transact_on(locks[0], &tx, options, fn, arg, err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < 2; i++) /* a loss from here on does no harm: it is committed */
        (void)!hf__lock_end(locks[i], tx.released, NULL);
    return HF_OK;
}

/* ---- driven by the caller -------------------------------------------------------------------- */

static hf_status begin_apart(hf_store *store, hf_lock *lock, const hf_tx_options *options,
                             hf_tx **out, hf_error *err)
{
    hf_error last;
    struct hf_tx *tx = calloc(1, sizeof *tx);
    if (!tx)
        return hf__no_memory(err);
    tx->store = store;
    tx->plan.place = HF__PLACE_DATA;
    hf_status status = lock ? start_on(lock, tx, options, err) : start(tx, options, err);
    if (status != HF_OK) {
        free(tx);
        return status;
    }
    struct hf__tx_use use;
    hf__tx_use_thread(tx->owner, &use);
    status = begin(tx, &last);
    if (status == HF_OK) {
        *out = tx;
    } else {
        status = finish(tx, status, &last, err);
        free(tx);
    }
    hf__tx_leave(&use);
    return status;
}

hf_status hf_tx_begin(hf_store *store, const hf_tx_options *options, hf_tx **tx, hf_error *err)
{
    if (!store || !tx)
        return hf__fail(err, HF_INVALID, "hf_tx_begin needs a store and a place for the handle");
    *tx = NULL;
    return begin_apart(store, NULL, options, tx, err);
}

hf_status hf_tx_begin_on(hf_lock *lock, const hf_tx_options *options, hf_tx **tx, hf_error *err)
{
    if (!lock || !tx)
        return hf__fail(err, HF_INVALID, "hf_tx_begin_on needs a lock and a place for the handle");
    *tx = NULL;
    return begin_apart(lock->store, lock, options, tx, err);
}

hf_status hf_tx_end(hf_tx *tx, hf_status result, hf_error *err)
{
    hf_error last = {.code = HF_OK};
    struct hf__tx_use use;
    hf_status status = hf__tx_enter(tx, &use, err);
    if (status != HF_OK)
        return status;
    if (result != HF_OK && result != HF_ROLLED_BACK && err)
        last = *err;
    status = settle_attempt(tx, check_result(result, &last), &last);
    if (status != HF_AGAIN) {
        report(tx, status);
        status = finish(tx, status, &last, err);
    }
    hf__tx_leave(&use);
    return status;
}

void hf_tx_free(hf_tx *tx)
{
    struct hf__tx_use use;
    if (tx && hf__tx_enter(tx, &use, NULL) == HF_OK) {
        end_attempt(tx);
        report(tx, HF_ROLLED_BACK);
        clear(tx);
        hf__tx_leave(&use);
    }
    free(tx);
}
