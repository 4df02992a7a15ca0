/*
 * The lock engine. A process talks to the store only for keys that it does not hold yet: threads
 * that want the same key queue in the process, in order of arrival, and hand the key over.
 *
 * One mutex per store guards all of it and is never held during I/O. A key state whose key is being
 * asked for or released at the store is busy: everybody else queues until that is decided.
 */
#ifndef HF_LOCKS_ENGINE_H
#define HF_LOCKS_ENGINE_H

#include <pthread.h>
#include <sys/types.h>

#include "lib/backend/backend.h"
#include "lib/locks/locks.h"
#include "lib/registry/registry.h"

struct key_state;
struct hf_lock;

/* A key held at the store, by one holder or (shared, or handed over) by several of this process. */
struct hold {
    hf__session *session;
    hf_mode mode;
    unsigned refs;
    int64_t token; /* of whoever got it last */
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
    WAITER_JOINS, /* the process holds the key already: hold says where */
    WAITER_ASKS,  /* the key has to be asked for at the store */
};

/* A place in the queue of a key state. */
struct waiter {
    struct waiter *next;
    struct key_state *key_state;
    hf_mode mode;
    bool alone; /* must ask the store itself */
    enum waiter_state state;
    bool reenters;
    unsigned handover; /* key_state->handovers when it was assigned */
    struct hold *hold;
    pthread_cond_t *cond;
    pid_t owner;
    struct waiter *next_queued; /* in store->queued */
};

struct key_state {
    struct key_state *next;
    int64_t key;
    hf_space space;
    struct waiter *first, *last;
    unsigned holders[2]; /* by hf_mode */
    struct hold *hold;   /* one that others of this process may join or inherit */
    unsigned busy; /* requests under way at the store: one that claims, or several that release */
    bool waiting;  /* busy, and in a wait that may last */
    bool draining; /* others wait outside: no more joining until it is empty */
    unsigned handovers; /* joins and hand-overs since the store was last asked */
    struct grant *grants;
};

enum { KEY_BUCKETS = 1024, THREAD_BUCKETS = 64, WHO_SIZE = 560 };

struct hf_store {
    hf__backend *backend;
    const hf_registry *registry; /* the caller's, or NULL */
    hf__lookup *lookup;          /* for keys that are not computed; the store's own */
    pid_t pid;
    char application[128];
    char host[256];
    bool dispatch;

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a key state is not busy any more, or a callback has ended */
    struct key_state *key_states[KEY_BUCKETS];
    struct hf_lock *locks;
    struct hf_lock *threads[THREAD_BUCKETS]; /* held locks by owner, greatest key first */
    struct waiter *queued;                   /* all waiters */
    int keys_held;
    bool interrupted;
    struct hf__known *known; /* labels that the registry gives away; built at the first need */

    /* the watcher */
    pthread_t watcher;
    bool watching;
    bool stopping;

    /* the scribe, who may be kept waiting by the store while the watcher may not */
    pthread_t scribe;
    pthread_cond_t scribe_due;
    bool scribing;
    bool record_soon;           /* something is held that has not been recorded yet */
    int event_fd;               /* readable: losses are to be dispatched */
    struct hf_lock *lost_first; /* with a callback that has not run */
    struct hf_lock *lost_last;
};

struct hf_lock {
    hf_store *store;
    hf_lock_state state;
    struct grant *grants;
    size_t count;
    size_t room;
    hf__claim name; /* the first target in key order, for messages and events */
    hf__claim last; /* the last one: what comes next must come after it */
    char *labels;   /* what the claims point into */
    int64_t token;
    unsigned slot;
    unsigned flags;
    bool snapshot_stale;
    hf_lifetime lifetime;
    pid_t owner;         /* gettid(): pthread_t is reused at once */
    int64_t acquired_ms; /* monotonic */
    int64_t acquired_wall;
    int64_t wait_ms;
    bool recorded;
    hf_lost_fn *on_lost;
    void *arg;
    hf_error why;
    bool delivering;
    bool free_after;
    pthread_t deliverer;
    struct hf_lock *next, *previous; /* store->locks */
    struct hf_lock *next_of_thread, *previous_of_thread;
    bool in_order_list;
    struct hf_lock *next_lost;
    bool queued_lost;
};

/* An acquire while it goes on. */
struct acquiring {
    hf_store *store;
    struct hf_lock *lock;
    const hf_lock_spec *spec;
    const hf__lock_extra *extra;
    hf__session *on;          /* of extra->on */
    hf__question **questions; /* those of looked-up keys, then extra's; NULL: extra's alone */
    size_t lookup_count;
    int64_t began;
    int64_t deadline;
    bool told;          /* on_wait has been called */
    bool alone;         /* joins nobody: see hf__claims_acquire */
    bool quiet;         /* a refusal is expected: nobody asks who holds the key */
    size_t blocked;     /* which claim was in the way last */
    char who[WHO_SIZE]; /* and who held it, as people are told; "": nobody asked */
};

/* queue.c: key states and waiters; the mutex is held unless said otherwise */
struct key_state *hf__key_state_get(hf_store *store,
                                    const hf__claim *claim); /* NULL: out of memory */
void hf__key_state_admit(hf_store *store,
                         struct key_state *key_state); /* lets the next in, or frees it */
bool hf__key_state_is_free_for(const struct key_state *key_state, hf_mode mode);
struct hold *hf__key_state_held_by_me(const struct key_state *key_state, hf_mode mode);
bool hf__held_by_me(const hf_store *store, const hf__claim *claim);
void hf__waiter_assign(struct waiter *waiter);
void hf__waiter_queue(struct waiter *waiter);
void hf__waiter_abandon(struct waiter *waiter);
bool hf__may_hand_over(const struct key_state *key_state, const struct hold *hold);

/* lock.c: the mutex is held. False: there is no such step from where it is. */
enum life_event { LIFE_LOSE, LIFE_RELEASE };
bool hf__life_step(struct hf_lock *lock, enum life_event event);

/* queue.c: the mutex is held */
bool hf__closes_cycle(const hf_store *store, const struct waiter *waiter);

/* order.c: the mutex is held, but for hf__compare_claims */
int hf__compare_claims(const hf__claim *a, const hf__claim *b); /* by order, space and key */
/* HF_ORDER when first comes before something that this thread holds; *by_registry: by its order. */
hf_status hf__order_check(hf_store *store, const hf__claim *first, bool *by_registry,
                          hf_error *err);
void hf__order_add(hf_store *store, struct hf_lock *lock);
void hf__order_remove(hf_store *store, struct hf_lock *lock);
size_t hf__order_held(hf_store *store, hf__key **keys); /* by this thread; the caller frees them */

/* resolve.c: targets → claims, sorted, without repeats, with their labels copied */
hf_status hf__resolve(hf_store *store, const hf_lock_spec *spec, hf__claim **claims, size_t *count,
                      char **labels, hf_error *err);

/* Does the registry say that all targets are transaction locks? */
bool hf__are_for_transactions(const hf_store *store, const hf_lock_spec *spec);

/* lookup.c: keys that are looked up; the mutex is not held */
/* The questions that are to be answered under the lock of these claims, before the caller's own. */
hf_status hf__lookup_prepare(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                             hf_error *err);
/* The claims are held. *stale: one of the keys is not its label's any more. */
hf_status hf__lookup_confirm(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                             bool *stale, hf_error *err);
/* Puts the questions into a request, without the answers of an earlier one. */
void hf__lookup_attach(const struct acquiring *acquiring, hf__request *request);
void hf__lookup_finish(struct acquiring *acquiring); /* frees its questions */

/* claims.c: the mutex is not held */
hf_status hf__claims_acquire(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                             bool patient, hf_error *err);
hf_status hf__claims_release(struct hf_lock *lock, size_t from, hf_error *err); /* grants[from…] */
void hf__claims_leave(struct hf_lock *lock); /* all of them; the store has let go of them already */
void hf__drop_grant(hf_store *store, struct grant *grant, bool lost); /* mutex held */

/* slots.c */
enum { HF__SLOT_DIGITS = 3, HF__SLOT_BASE = 16 };
int64_t hf__slot_key(const hf__claim *base, unsigned slot);
int64_t hf__slot_gate_key(const hf__claim *base);
int64_t hf__slot_digit_key(const hf__claim *base, unsigned place, unsigned digit);
hf_status hf__slot_acquire(struct acquiring *acquiring, const hf__claim *base, hf_error *err);

/* describe.c */
hf_status hf__not_acquired(hf_store *store, const hf__claim *claim, hf_error *err);
hf_status hf__refused(struct acquiring *acquiring, const hf__claim *claim, hf_error *err);
void hf__tell_waiting(struct acquiring *acquiring, const hf__claim *claim);

/* watch.c */
hf_status hf__watch_start(hf_store *store, hf_error *err);
void hf__watch_stop(hf_store *store);
const hf__session *hf__lost_session(const struct hf_lock *lock); /* mutex held */
void hf__forget_loss(hf_store *store, struct hf_lock *lock);     /* mutex held */
int hf__deliver_losses(hf_store *store);                         /* mutex not held */

/* scribe.c */
hf_status hf__scribe_start(hf_store *store, hf_error *err); /* mutex held */
void hf__scribe_stop(hf_store *store);
void hf__scribe_soon(hf_store *store); /* mutex held */

/* lock.c */
/* Its session, which is not freed until it is left; HF_LOST where it is gone. */
hf_status hf__lock_use_session(struct hf_lock *lock, hf__session **session, hf_error *err);
void hf__session_leave(hf__session *session, unsigned keys);
/* hf_lock_release; is_free: the store has let go of it already, with a commit on its session. */
hf_status hf__lock_end(struct hf_lock *lock, bool is_free, hf_error *err);
void hf__name_loss(struct hf_lock *lock, const hf_error *why); /* lock->why: which lock, and why */
void hf__lock_forget(struct hf_lock *lock);                    /* frees memory, releases nothing */
void hf__note(const struct hf_lock *lock, hf__event_kind kind, int64_t wait_ms, int64_t hold_ms);
void hf__note_loss(const struct hf_lock *lock, const char *reason);

#endif
