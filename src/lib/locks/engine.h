/*
 * The lock engine. A process talks to the store only for keys that it does not hold yet: threads
 * that want the same key queue in the process, in order of arrival, and hand the key over.
 *
 * One mutex per store guards all of it and is never held during I/O. A key state is busy while its
 * key is being asked for or released at the store. Until that is decided, everybody else queues.
 */
#ifndef HF_LOCKS_ENGINE_H
#define HF_LOCKS_ENGINE_H

#include <pthread.h>
#include <sys/types.h>

#include "base/fibers/fiber.h"
#include "lib/backend/backend.h"
#include "lib/locks/locks.h"
#include "lib/registry/registry.h"

struct key_state;
struct hf_lock;
struct hf__trace;
struct hf__told; /* a span with its own copies of all strings, to be told later: trace.c */

/* A key held at the store, by one lock, or by several of this process: shared or re-entered. */
struct hold {
    hf__session *session;
    hf_mode mode;
    unsigned refs;
    int64_t token; /* the one given to the most recent lock */
};

/* One key of one lock. */
struct grant {
    struct hf_lock *lock;
    struct key_state *key_state;
    struct hold *hold;
    hf__claim claim;
    struct grant *next; /* in key_state->grants */
};

enum waiter_state {
    WAITER_QUEUED,
    WAITER_JOINS, /* the process already holds the key: shares waiter->hold */
    WAITER_ASKS,  /* has to ask the store for the key */
};

/* A thread that wants one key; it lives on that thread's stack or heap while the call lasts. */
struct waiter {
    struct waiter *next;
    struct key_state *key_state;
    hf_mode mode;
    bool alone; /* never joins a hold: always asks the store */
    bool asks;  /* goes before the others of the process */
    enum waiter_state state;
    bool reenters;     /* HF_REENTRANT: this thread holds the key already */
    unsigned handover; /* key_state->handovers when it was assigned */
    struct hold *hold;
    hf__cond *cond;
    int64_t owner;              /* hf__me() */
    struct waiter *next_queued; /* in store->queued */
};

/* What this process knows of one key. It exists while the key is held, waited for or busy. */
struct key_state {
    struct key_state *next; /* in its bucket of store->key_states */
    int64_t key;
    hf_space space;
    struct waiter *first, *last; /* the queue, in order of arrival */
    unsigned holders[2];         /* by hf_mode */
    struct hold *hold;           /* one that other locks of this process may join; or NULL */
    unsigned busy; /* requests under way at the store: one that acquires, or several that release */
    bool waiting;  /* busy, and the request waits for others: it may take long */
    bool draining; /* other processes wait: nobody joins until the last shared holder is gone */
    bool yields;   /* another process has asked: nobody here gets it before that one */
    unsigned handovers; /* joins and hand-overs since the store was last asked */
    struct grant *grants;
};

enum { KEY_BUCKETS = 1024, THREAD_BUCKETS = 64, WHO_SIZE = 560 };

struct hf_store {
    hf__backend *backend;
    const hf_registry *registry; /* the caller's, our own, or NULL */
    hf_registry *own_registry;   /* found by options.environment */
    hf__lookup *lookup;          /* for keys that are not computed; the store owns it */
    pid_t pid;
    char application[128];
    char host[256];
    bool dispatch;
    int ping_deadline_ms; /* so long a call without a wait may take where the store is silent */
    int64_t patience_ms;  /* with a server that is away; negative: for ever */
    hf_span_fn *on_span;  /* or NULL */
    void *span_arg;

    pthread_mutex_t mutex;
    hf__cond changed; /* a key state is no longer busy, or a callback has ended */
    struct key_state *key_states[KEY_BUCKETS];
    struct hf_lock *locks;
    struct hf_lock *threads[THREAD_BUCKETS]; /* held locks, hashed by owner; greatest key first */
    struct hf_tx *transactions[THREAD_BUCKETS]; /* that run, hashed by owner */
    struct waiter *queued;                      /* all waiters of all key states */
    int keys_held;
    bool interrupted;
    struct hf__known *known; /* labels by key, from the registry; built when first needed */

    /* the watcher */
    pthread_t watcher;
    bool watching;
    pthread_t deliverer; /* runs callbacks */
    bool delivers;       /* it was started */
    pthread_cond_t due;  /* a callback, or its end */
    bool stopping;
    bool delivery_ends;

    /* the scribe: unlike the watcher it may block on the store */
    pthread_t scribe;
    pthread_cond_t scribe_due;
    bool scribing;
    bool record_soon;          /* something is held and not recorded yet */
    int event_fd;              /* readable when losses are to be dispatched */
    struct hf_lock *due_first; /* locks whose callback has not run yet */
    struct hf_lock *due_last;

    /* acquires that were started: see start.c */
    hf__fibers *fibers;
    size_t started;                             /* those that go on */
    struct hf__started *told_first, *told_last; /* whose callbacks have not run yet */

    /* locks that can be asked for: see yield.c */
    size_t attended;       /* how many are held */
    bool attends;          /* their fiber runs */
    uint64_t round;        /* of its looks at the store */
    hf__cond attended_end; /* the last of them has ended */
};

/* Has anybody asked for a lock? Only who still does in the next round is told of. */
enum asked { ASKED_BY_NOBODY, ASKED_JUST_NOW, ASKED_AND_TOLD };

struct hf_lock {
    hf_store *store;
    hf_lock_state state;
    struct grant *grants;
    size_t count;
    size_t room;
    hf__claim name; /* the first target in key order, for messages and events */
    hf__claim last; /* the last one: the order rule compares later acquires with it */
    char *labels;   /* holds the bytes of all labels of the claims */
    int64_t token;
    unsigned slot;
    unsigned flags;
    bool snapshot_stale;
    hf_lifetime lifetime;
    int64_t owner;       /* hf__me() */
    int64_t acquired_ms; /* monotonic */
    int64_t acquired_wall;
    int64_t wait_ms;
    bool recorded; /* the scribe has taken it */
    hf_lost_fn *on_lost;
    void *arg;
    hf_error why;    /* of the loss */
    bool delivering; /* on_lost is running, in the thread deliverer */
    bool free_after; /* on_lost has freed the lock: do it once on_lost has returned */
    pthread_t deliverer;
    struct hf_lock *next, *previous;                     /* in store->locks */
    struct hf_lock *next_of_thread, *previous_of_thread; /* in a bucket of store->threads */
    bool in_order_list;
    struct hf_lock *next_due; /* in store->due_first … due_last */
    bool queued_due;
    bool loss_due;         /* on_lost is to be called, or else on_yield */
    hf_yield_fn *on_yield; /* until it is released or lost */
    hf__claim ask;         /* with on_yield: what those hold who ask for the lock */
    enum asked asked;
    uint64_t heard;          /* store->round in which it was last asked for */
    uint64_t asker_name;     /* a hash */
    hf_error *asker;         /* who asks, once that is to be told */
    bool untold;             /* hf_lock_start has not told of it: its loss is told later */
    struct hf__trace *trace; /* NULL: it is not traced */
};

/* One call of hf_lock_acquire while it runs; used by its thread only. */
struct acquiring {
    hf_store *store;
    struct hf_lock *lock;
    const hf_lock_spec *spec;
    const hf__lock_extra *extra;
    hf__session *on;          /* the session of extra->on, or NULL */
    hf__question **questions; /* for looked-up keys, then extra's; NULL: only extra's */
    size_t lookup_count;      /* how many of the questions are for looked-up keys */
    int64_t began;
    int64_t deadline;
    bool told;                  /* on_wait has been called */
    bool (*give_up)(void *arg); /* see hf__request */
    void *give_up_arg;
    int64_t away_since; /* the store is out of reach, and the log has been told; 0: it is not */
    bool asks;          /* holds what keeps others aside: see yield.c */
    bool quiet;         /* a refusal is expected: do not look for the holder */
    size_t blocked;     /* index of the claim that was refused last */
    char who[WHO_SIZE]; /* its holder, in words; "" when nobody looked */
};

/* Was the store interrupted, or this call cancelled? */
static inline bool hf__is_stopped(const struct acquiring *acquiring)
{
    return acquiring->store->interrupted || hf__is_cancelled(acquiring->spec->cancel);
}

/* Does it never share a hold with another lock of the process? A lease has a term of its own. */
static inline bool hf__is_alone(const hf_lock_spec *spec)
{
    return (spec->flags & HF_PRIVATE) || spec->lifetime == HF_LEASE;
}

/* queue.c: key states and waiters. The mutex is held. */

/* Finds the claim's key state, or makes one; NULL: out of memory. */
struct key_state *hf__key_state_get(hf_store *store, const hf__claim *claim);

/* Lets the first waiters in, as far as the key is free for them. Frees a key state without use. */
void hf__key_state_admit(hf_store *store, struct key_state *key_state);

/* May a waiter of this mode go ahead now? It may still have to ask the store. */
bool hf__key_state_is_free_for(const struct key_state *key_state, hf_mode mode);

/* The hold of a lock of the calling thread that covers the mode, or NULL. */
struct hold *hf__key_state_held_by_me(const struct key_state *key_state, hf_mode mode);
bool hf__held_by_me(const hf_store *store, const hf__claim *claim);
bool hf__is_held(const hf_store *store, const hf__claim *claim); /* by any lock of the store */

/* The waiter goes ahead: it joins the key state's hold, or makes the key busy and asks. */
void hf__waiter_assign(struct waiter *waiter);

/* Enters or leaves the queue. A waiter that has been assigned is no longer in it. */
void hf__waiter_queue(struct waiter *waiter);
void hf__waiter_abandon(struct waiter *waiter);

/* May the first waiter get the hold as it is, without a request to the store? */
bool hf__may_hand_over(const struct key_state *key_state, const struct hold *hold);

/*
 * A step in the life of a lock (lock.c). False: there is no such step from its present state. The
 * mutex is held.
 */
enum life_event { LIFE_LOSE, LIFE_RELEASE };
bool hf__life_step(struct hf_lock *lock, enum life_event event);

/* Is the queued waiter part of a deadlock among threads of this process? The mutex is held. */
bool hf__closes_cycle(const hf_store *store, const struct waiter *waiter);

/* order.c: the order rule. The mutex is held, except for hf__compare_claims. */

int hf__compare_claims(const hf__claim *a, const hf__claim *b); /* by order, space and key */

/*
 * HF_ORDER when first comes before something that the calling thread holds, or is that, where the
 * two are on different sessions: a transaction is never on that of a lock. *by_registry: the
 * registry's order says so, not only the keys.
 */
hf_status hf__order_check(hf_store *store, const hf__claim *first, hf_lifetime lifetime,
                          bool *by_registry, hf_error *err);

/* Adds the lock to the list of its owner. Removing one that is not in the list does nothing. */
void hf__order_add(hf_store *store, struct hf_lock *lock);
void hf__order_remove(hf_store *store, struct hf_lock *lock);

/* Counts the keys that the calling thread holds. The caller frees *keys; short of memory, some are
 * missing. */
size_t hf__order_held(hf_store *store, hf__key **keys);

/* resolve.c */

/*
 * Turns targets into claims, sorted as they are to be acquired and without repeats. The caller
 * frees *claims and *labels, which holds the claims' labels; after a failure there is nothing to
 * free. HF_INVALID, HF_CONFIG (the registry says otherwise), HF_COLLISION, HF_NO_MEMORY, or the
 * failure of a look-up. The mutex is not held.
 */
hf_status hf__resolve(hf_store *store, const hf_lock_spec *spec, hf__claim **claims, size_t *count,
                      char **labels, hf_error *err);

/* Says once that the registry has a lock for sessions which is acquired for a transaction. */
void hf__warn_of_lifetime(hf_store *store, const hf_target *target);

/* Does the registry say that all targets have this lifetime? */
bool hf__are_registered_as(const hf_store *store, const hf_lock_spec *spec, hf_lifetime lifetime);

/* How long a lease of the targets lasts that does not say it itself: see hf_lock_spec.lease_ms. */
int hf__registered_lease_ms(const hf_store *store, const hf_lock_spec *spec);

/* lookup.c: keys that are looked up. The mutex is not held. */

/*
 * Makes the questions that confirm looked-up keys, in acquiring->questions, before the caller's
 * own. Call hf__lookup_finish afterwards, also after a failure.
 */
hf_status hf__lookup_prepare(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                             hf_error *err);

/*
 * Once the claims are held: asks what the request could not answer. *stale: one of the keys is no
 * longer its label's.
 */
hf_status hf__lookup_confirm(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                             bool *stale, hf_error *err);

/* Puts all questions into the request, and frees the rows that an earlier request got. */
void hf__lookup_attach(const struct acquiring *acquiring, hf__request *request);

/* Frees the questions that hf__lookup_prepare made. */
void hf__lookup_finish(struct acquiring *acquiring);

/* acquire.c. After a failure that a wait may outlive: pauses. False: the wait is over. */
bool hf__outlast(struct acquiring *acquiring, const hf_error *failure);
/* When the wait ends: by the caller's deadline, or sooner if the store is away. */
int64_t hf__patience_end(const struct acquiring *acquiring);
/* The store has answered: it is not away, or not any more. */
void hf__is_back(struct acquiring *acquiring);

/* claims.c, release.c: keys and their grants. The mutex is not held, except
 * for hf__drop_grant and hf__quota_check. */

/*
 * Acquires all claims or none, and appends their grants to acquiring->lock, which has room for
 * them. patient: waits until acquiring->deadline. HF_NOT_ACQUIRED names the holder, unless
 * acquiring->quiet is set. Also HF_INTERRUPTED, HF_DEADLOCK, HF_QUOTA, and what the backend fails
 * with.
 */
hf_status hf__claims_acquire(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                             bool patient, hf_error *err);

/* HF_QUOTA when so many more keys are more than the store may hold. The mutex is held. */
hf_status hf__quota_check(hf_store *store, size_t wanted, hf_error *err);

/* Releases grants[from…]. They are gone from the lock even when the store reports a failure. */
hf_status hf__claims_release(struct hf_lock *lock, size_t from, hf_error *err);

/* The same for all grants, when the store has already released them. */
void hf__claims_leave(struct hf_lock *lock);

/* Ends one grant; it is lost, or others share its hold. The mutex is held. */
void hf__drop_grant(hf_store *store, struct grant *grant, bool lost);

/* slots.c */

/* A key of our own beside that of base: 64 bits of SHA-256, as for any label. */
int64_t hf__inner_key(const char *kind, const hf__claim *base, char purpose, unsigned number);
hf__claim hf__inner_claim(int64_t key, hf_mode mode);

/* The keys of a semaphore, computed from the claim of its label; any thread may call these. */
enum { HF__SLOT_DIGITS = 3, HF__SLOT_BASE = 16 };
int64_t hf__slot_key(const hf__claim *base, unsigned slot); /* slot is 1 … slots */
int64_t hf__slot_gate_key(const hf__claim *base);
int64_t hf__slot_digit_key(const hf__claim *base, unsigned place, unsigned digit);

/*
 * Acquires one slot of spec->slots. As hf__claims_acquire; also HF_SLOTS: other holders use another
 * number of slots. The mutex is not held.
 */
hf_status hf__slot_acquire(struct acquiring *acquiring, const hf__claim *base, hf_error *err);

/* yield.c */

/* What those hold who ask for the claim's key, in this mode. */
hf__claim hf__ask_claim(const hf__claim *claim, hf_mode mode);

/* Does this store, its argument, hold the ask? As hf__request.holds_ask. */
bool hf__holds_ask(void *store, const hf__claim *ask);

/* As hf__claims_acquire for one claim, before all others who wait for it. The mutex is not held. */
hf_status hf__ask_acquire(struct acquiring *acquiring, const hf__claim *claim, hf_error *err);

/* The mutex is held. The lock was acquired with on_yield: from now on it can be asked for. A lock
 * that nobody can be told of is held all the same; returns 0, or an errno. */
int hf__attention_start(hf_store *store, struct hf_lock *lock, hf_yield_fn *on_yield);
void hf__attention_end(hf_store *store, struct hf_lock *lock); /* released or lost */
void hf__attention_stop(hf_store *store);                      /* the store closes */

/* describe.c: messages that name the holder. They may ask the store; the mutex is not held. */

/* Returns HF_NOT_ACQUIRED, with err naming the claim's holder. */
hf_status hf__not_acquired(hf_store *store, const hf__claim *claim, hf_error *err);

/* The same, and keeps the holder in acquiring->who. When acquiring->quiet, looks for nobody. */
hf_status hf__refused(struct acquiring *acquiring, const hf__claim *claim, hf_error *err);

/* Fills err: who holds ask, and so wants the claim. */
void hf__name_asker(hf_store *store, const hf__claim *claim, const hf__claim *ask, hf_error *err);

/* Who is in the way of the claim, inside the process or outside. */
void hf__find_holder(hf_store *store, const hf__claim *claim, hf__holder *holder);

/* Notes the conflict and calls on_wait; only the first call of an acquire does something. */
void hf__tell_waiting(struct acquiring *acquiring, const hf__claim *claim);

/* neighbours.c */

/*
 * Reports whether somebody holds, or waits for, what would be the key of a label that is known here
 * by another key. Looks for half a second. The mutex is not held.
 */
hf_status hf__examine_neighbours(hf_store *store, hf_finding_fn *report, void *arg, hf_error *err);

/* watch.c */

/* Starts the watcher and the scribe unless they run; HF_SYSTEM. The mutex is not held. */
hf_status hf__watch_start(hf_store *store, hf_error *err);

/* Ends the watcher's thread and waits for that. The mutex is not held. */
void hf__watch_stop(hf_store *store);

/* A session of the lock that is lost, or NULL. The mutex is held. */
const hf__session *hf__lost_session(const struct hf_lock *lock);

/* Takes the lock out of the queue of callbacks, if it is there. The mutex is held. */
void hf__forget_due(hf_store *store, struct hf_lock *lock);

/* Runs the callbacks that are due and counts them. The mutex is not held. */
int hf__deliver(hf_store *store);

/* The mutex is held for these five. A callback has been queued. */
void hf__callback_due(hf_store *store);
/* A callback of the lock is due: on_lost or on_yield. */
void hf__lock_due(hf_store *store, struct hf_lock *lock);
/* Starts the thread of all fibers, and the deliverer, unless they run. Returns 0 or an errno. */
int hf__runner_start(hf_store *store);
/* Starts the deliverer unless it runs, or callbacks are dispatched. Returns 0 or an errno. */
int hf__deliverer_start(hf_store *store);
/* The end of hf_lock_start is about to be told: a loss comes behind it. */
void hf__loss_may_be_told(hf_store *store, struct hf_lock *lock);

/* start.c */

/* Runs the first callback that is due. The mutex is held, and unlocked meanwhile. */
void hf__started_tell(hf_store *store);
/* on_wait is due. The mutex is not held. */
void hf__started_waits(struct hf__started *started, const hf_error *why);
/* The store closes. Ends what goes on; later, without the deliverer, tells those who wait. */
void hf__started_stop(hf_store *store);
void hf__started_drop(hf_store *store);

/* The span of its wait is to be told, before its end. The mutex is not held. */
void hf__started_span(struct hf__started *started, struct hf__told *told);

/* trace.c: spans. The mutex is not held, unless it says otherwise. */

/* The spans of one lock, or of one transaction. Times are of hf__now_ns(). */
struct hf__trace {
    char own[HF_TRACEPARENT_SIZE]; /* the hold's, or the transaction's */
    char wait[HF_TRACEPARENT_SIZE];
    char parent[HF_TRACEPARENT_SIZE]; /* "": none */
    char link[HF_TRACEPARENT_SIZE];   /* of the wait: the holder's; "": not found */
    bool told;                        /* somebody wants to be told of the spans */
    bool waited;
    unsigned looks;    /* how often the holder was looked for */
    hf__claim awaited; /* what it holds */
    int64_t began_ns;
    int64_t acquired_ns;
    int64_t lost_ns;    /* 0: it was not */
    int64_t to_wall_ns; /* what makes Unix time of a time */
};

/* NULL: nobody traces it, or there is no memory, which is no reason to fail. The caller frees. */
struct hf__trace *hf__trace_start(const hf_store *store, const char *parent);

/* The holder that is in the way; a second one does not count. trace may be NULL. */
void hf__trace_holder(struct hf__trace *trace, const hf__holder *holder);

/* As hf__request.give_up: looks for a holder that had not recorded itself when the wait began. */
bool hf__trace_look(void *acquiring);

/* The span of an acquire that has ended so; NULL: there is none to tell. The lock is not published
 * yet, and its hold begins here. */
struct hf__told *hf__wait_span(struct acquiring *acquiring, hf_status status);
void hf__tell_span(const hf_store *store, struct hf__told *told); /* and frees it; NULL is safe */

/* Tells the span of the hold, which has ended so, at its loss if it was lost. */
void hf__tell_hold(const struct hf_lock *lock, hf_status status);

/* The same for a transaction, of which claim is the first label, or NULL. */
void hf__tell_transaction(const hf_store *store, const struct hf__trace *trace,
                          const hf__claim *claim, hf_status status);

/* scribe.c */

/* Starts the scribe if the store keeps records, unless it runs; HF_SYSTEM. The mutex is held. */
hf_status hf__scribe_start(hf_store *store, hf_error *err);

/* Ends the scribe's thread and waits for that. The mutex is not held. */
void hf__scribe_stop(hf_store *store);

/* A lock with a token has been acquired: the scribe's next round comes soon. The mutex is held. */
void hf__scribe_soon(hf_store *store);

/* lock.c */

/*
 * The session of the lock. It is not freed, even if it gets lost, until the caller leaves it with
 * hf__session_leave(session, 1). HF_LOST; HF_INVALID when the lock was released. The mutex is not
 * held.
 */
hf_status hf__lock_use_session(struct hf_lock *lock, hf__session **session, hf_error *err);
/* The same for a lease, with a copy of its claims, which the caller frees. */
hf_status hf__lock_use_lease(struct hf_lock *lock, hf__session **lease, const hf__claim **claims,
                             size_t *count, hf_error *err);

/* So many keys are no longer held on the session, which may be freed. With or without the mutex. */
void hf__session_leave(hf__session *session, unsigned keys);

/* As hf_lock_release. is_free: a commit on the lock's session has released it at the store. */
hf_status hf__lock_end(struct hf_lock *lock, bool is_free, hf_error *err);

/* Fills lock->why: which lock was lost, and why. The mutex is held. */
void hf__name_loss(struct hf_lock *lock, const hf_error *why);

/* Frees the memory of a lock and releases nothing. NULL is safe. */
void hf__lock_forget(struct hf_lock *lock);

/* Add an event to the history; -1: there is no such time. With or without the mutex. */
void hf__note(const struct hf_lock *lock, hf__event_kind kind, int64_t wait_ms, int64_t hold_ms);
void hf__note_loss(const struct hf_lock *lock, const char *reason);
void hf__note_deadlock(const struct hf_lock *lock, int64_t wait_ms, const char *how);
void hf__note_asked(const struct hf_lock *lock, const char *who);

#endif
