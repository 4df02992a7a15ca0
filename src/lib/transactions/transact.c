/*
 * Serialised transactions: labels, attempts, pauses, and the outcome that is reported. The backend
 * runs each attempt. If it cannot lock the labels together with the transaction, they are held as
 * session locks around the attempt.
 */
#include "lib/transactions/transaction.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    DEFAULT_ATTEMPTS = 20,
    DEFAULT_BACKOFF_MIN_MS = 2,
    DEFAULT_BACKOFF_MAX_MS = 1000,
    MOST_DOUBLINGS = 16,
};

/* The transaction whose callback the thread is in. */
static _Thread_local struct hf_tx *innermost;

/* ---- statements ------------------------------------------------------------------------------ */

static hf_status lock_around(struct hf_tx *tx, hf_error *err)
{
    if (tx->ops->locks_labels || tx->lock || tx->target_count == 0)
        return HF_OK;
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.targets = tx->targets;
    spec.target_count = tx->target_count;
    spec.wait_ms = hf__left_ms(tx->plan.deadline);
    spec.cancel = tx->options.cancel;
    hf_status status = hf_lock_acquire(tx->store, &spec, &tx->lock, err);
    if (status == HF_OK)
        tx->attempt->locked_ms = hf__now_ms();
    else
        tx->attempt->fault = status == HF_NOT_ACQUIRED ? HF__FAULT_LOCKED : HF__FAULT_FINAL;
    return status;
}

hf_status hf_tx_query(hf_tx *tx, const char *sql, size_t count, const hf_value *values,
                      bool binary_rows, hf_rows **rows, hf_error *err)
{
    if (rows)
        *rows = NULL;
    if (!sql || (count > 0 && !values))
        return hf__fail(err, HF_INVALID, "hf_tx_query needs a statement and its values");
    int before;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    hf_status status = lock_around(tx, err);
    if (status == HF_OK)
        status = tx->ops->query(tx->attempt, &tx->plan, sql, count, values, binary_rows, rows, err);
    (void)pthread_setcancelstate(before, NULL);
    return status;
}

hf_status hf_tx_queue(hf_tx *tx, const char *sql, size_t count, const hf_value *values,
                      hf_error *err)
{
    if (!sql || (count > 0 && !values))
        return hf__fail(err, HF_INVALID, "hf_tx_queue needs a statement and its values");
    return tx->ops->queue(tx->attempt, sql, count, values, err);
}

static struct pg_conn *lend_connection(struct hf_tx *tx, bool trusted, hf_error *err)
{
    int before;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    tx->plan.trusts_callback = trusted;
    struct pg_conn *conn = tx->ops->connection(tx->attempt, &tx->plan, err);
    tx->lent = tx->lent || conn;
    (void)pthread_setcancelstate(before, NULL);
    return conn;
}

struct pg_conn *hf_tx_connection(hf_tx *tx, hf_error *err)
{
    return lend_connection(tx, false, err);
}

struct pg_conn *hf__tx_connection(hf_tx *tx, hf_error *err)
{
    return lend_connection(tx, true, err);
}

hf__dialect hf__tx_dialect(const hf_tx *tx)
{
    return tx->store->backend->local ? HF__SQLITE : HF__POSTGRES;
}

unsigned hf_tx_attempt(const hf_tx *tx)
{
    return tx->attempts;
}

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
    tx->ops->close(tx->attempt);
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
            holder.found)
            return hf__not_acquired(tx->store, claim, err);
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
    switch (tx->attempt->fault) {
    case HF__FAULT_RETRY: return AGAIN;
    case HF__FAULT_UNIQUE: return tx->options.retry_unique ? AGAIN : DONE;
    case HF__FAULT_BROKEN: return judge_broken(tx, status, err);
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

static void free_tx(struct hf_tx *tx)
{
    innermost = tx->outer;
    if (tx->plan.session) {
        atomic_store(&tx->plan.session->transacts, 0);
        hf__session_leave(tx->plan.session, 1);
    }
    hf__tx_leave_order(tx);
    hf__tx_drop_labels(tx, 0);
    free(tx->targets);
    free(tx->claims);
    free(tx->labels);
}

/* An exception or a cancel has ended the callback, and the transaction with it. */
static void abandon(void *arg)
{
    int before;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    end_attempt(arg);
    free_tx(arg);
    (void)pthread_setcancelstate(before, NULL);
}

static hf_status call_back(struct hf_tx *tx, hf_tx_fn *fn, void *arg, hf_error *err)
{
    hf_status status;
    pthread_cleanup_push(abandon, tx);
    (void)pthread_setcancelstate(tx->cancel_state, NULL);
    status = fn(tx, arg, err);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_pop(0);
    return status;
}

/*
 * If a statement failed, its fault decides about another attempt, whatever the callback returns:
 * after HF_OK the commit reports the same failure again. A callback that fails for its own reasons
 * is final.
 */
static enum verdict run_attempt(struct hf_tx *tx, hf_tx_fn *fn, void *arg, hf_status *status,
                                hf_error *err)
{
    *err = (hf_error){.code = HF_OK};
    tx->attempt->fault = HF__FAULT_FINAL;
    tx->lent = false;
    *status = call_back(tx, fn, arg, err);
    if (*status != HF_OK) {
        if (tx->lent && tx->attempt->fault == HF__FAULT_FINAL)
            judge_lent(tx, status, err);
        if (err->code == HF_OK)
            (void)!hf__fail(err, *status, "the transaction's callback failed: %s",
                            hf_status_text(*status));
    } else {
        tx->attempt->fault = HF__FAULT_FINAL;
        *status =
            hf__is_cancelled(tx->options.cancel) ? hf__interrupted(err) : lock_around(tx, err);
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
    int left = hf__left_ms(tx->plan.deadline);
    if (left >= 0 && bound > left)
        bound = left;
    struct pollfd cancel = {.fd = hf__cancel_fd(tx->options.cancel), .events = POLLIN};
    (void)poll(&cancel, 1, hf__jitter_ms(0, (int)bound + 1));
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

static hf_status attempt_until_done(struct hf_tx *tx, hf_tx_fn *fn, void *arg, hf_error *err)
{
    hf_status status = HF_OK;
    bool reached = false;
    for (;;) {
        if (hf__is_cancelled(tx->options.cancel))
            return hf__interrupted(err);
        tx->attempts++;
        tx->opened_ms = hf__now_ms();
        status = hf__tx_resolve_labels(tx, err);
        if (status == HF_OK)
            status = tx->ops->open(tx->store->backend, &tx->plan, &tx->attempt, err);
        enum verdict verdict = DONE;
        if (status == HF_OK) {
            verdict = run_attempt(tx, fn, arg, &status, err);
            end_attempt(tx);
            reached = true;
        } else if (!tx->store->backend->local && hf__may_pass(err)) {
            verdict = AGAIN; /* it was there when the store was opened */
        }
        if (verdict == DONE)
            return status;
        if (tx->attempts >= tx->options.max_attempts || hf__left_ms(tx->plan.deadline) == 0)
            return reached ? exhausted(tx, err) : status;
        pause_before_retry(tx);
    }
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
    return status;
}

static bool is_nested(const struct hf_tx *tx)
{
    for (const struct hf_tx *outer = tx->outer; outer; outer = outer->outer)
        if (outer->store == tx->store)
            return true;
    return false;
}

static hf_status run(struct hf_tx *tx, hf_tx_fn *fn, void *arg, hf_error *err)
{
    hf__cancellable call = {.wake = hf__interrupt_cancelled, .arg = tx->store};
    hf_status status = HF_OK;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &tx->cancel_state);
    tx->outer = innermost;
    innermost = tx;
    tx->plan.is_nested = is_nested(tx);
    hf_error last; /* of the attempts; err stays untouched if a later one succeeds */
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
    if (status == HF_OK) {
        for (size_t i = 0; i < tx->fixed; i++)
            hf__tx_warn_if_generic(tx, &tx->targets[i]);
        hf__cancel_enter(tx->options.cancel, &call);
        status = attempt_until_done(tx, fn, arg, &last);
        hf__cancel_leave(tx->options.cancel, &call);
        report(tx, status);
        if (status != HF_OK && err)
            *err = last;
    }
    free_tx(tx);
    (void)pthread_setcancelstate(tx->cancel_state, NULL);
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

static hf_status transact_on(hf_lock *lock, struct hf_tx *tx, const hf_tx_options *options,
                             hf_tx_fn *fn, void *arg, hf_error *err)
{
    hf_status status = start(tx, options, err);
    if (status == HF_OK && (!(lock->flags & HF_PRIVATE) || tx->options.label_count > 0)) {
        status = hf__fail(err, HF_INVALID,
                          "a transaction on a lock's session needs an HF_PRIVATE lock, no labels");
        hf__hint(err, "acquire it with HF_PRIVATE, and everything else that must be held before");
    }
    if (status == HF_OK)
        status = hf__lock_use_session(lock, &tx->plan.session, err);
    if (status != HF_OK)
        return status;
    atomic_store(&tx->plan.session->transacts, gettid());
    return run(tx, fn, arg, err);
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
