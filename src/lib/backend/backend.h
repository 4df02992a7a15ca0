/*
 * What a backend (PostgreSQL, the local folder) provides to the lock engine.
 *
 * A session of the backend is a connection, or an open file description. What is held on a
 * session is lost with it, and a session never conflicts with itself, so the engine counts holders
 * inside the process and asks the backend only for keys that the process does not hold yet.
 *
 * All operations may be called from any thread at once, and never with the engine's mutex held. A
 * backend that finds a session dead calls hf__session_lose and goes on; the engine does the rest.
 */
#ifndef HF_BACKEND_BACKEND_H
#define HF_BACKEND_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"

typedef struct hf__backend hf__backend;

/* One key that is wanted or held. Strings belong to the caller. */
typedef struct hf__claim {
    int64_t key; /* HF_PAIR: first int4 in the high half, second in the low */
    hf_space space;
    hf_mode mode;
    /* whoever listens to this key is told of the release: the key, or a semaphore's */
    int64_t wake;
    const char *label; /* for records; NULL when only the number is known */
    size_t label_size;
    hf_derivation derivation;
    unsigned slot;
    bool has_order; /* in the registry; locks without one come after all that have */
    int64_t order;
} hf__claim;

typedef struct hf__session {
    hf__backend *backend;
    int session_id; /* how the store's own records name it */
    atomic_bool losing;
    atomic_bool lost;

    const char *reason; /* one word for history, a literal; written once, before lost is set */
    hf_error why;       /* likewise */
    atomic_uint holds;  /* keys held: raised by the backend on success, lowered by leave_session;
                         * only at 0 may the session be reused or freed */
} hf__session;

/* Marks the session lost once and wakes the watcher. Returns false when it was lost before. */
bool hf__session_lose(hf__session *session, const char *reason, const hf_error *why);

/* Who is in the way of a claim; strings may be "". */
typedef struct hf__holder {
    bool found;
    char application[128];
    char host[256];
    int pid;         /* the client's process, or 0 */
    int backend_pid; /* PostgreSQL's, or 0 */
    int64_t age_ms;  /* -1: unknown */
    bool age_is_bound;
} hf__holder;

typedef struct hf__key {
    int64_t key;
    hf_space space;
} hf__key;

/* One SELECT on the store's records. With a request it goes in the message that acquires the lock,
 * where the backend can do that, and is answered under the lock. */
typedef struct hf__question {
    /* what the statement may be prepared as, where it is asked by itself; or NULL */
    const char *name;
    const char *sql; /* for the store's kind */
    size_t count;
    const hf_value *values; /* text */
    hf_rows *rows;          /* the answer, the asker's to free; NULL: not asked yet */
} hf__question;

void hf__question_forget(hf__question *question); /* frees the rows */

/* A request for keys, sorted by (order, space, key) without repeats, all or none. */
typedef struct hf__request {
    const hf__claim *claims;
    size_t count;
    hf_lifetime lifetime;
    bool private_session; /* a session that holds nothing else */
    /* to be answered under the lock, if it can be done on the way */
    hf__question *const *questions;
    size_t question_count;
    bool any_order;      /* the caller may deadlock: search for cycles while waiting */
    const hf__key *held; /* what the calling thread holds already; only for wait */
    size_t held_count;
    int64_t deadline; /* hf__now_ms() clock, HF__FOREVER; only for wait */

    /* In: the private session to acquire them on, where the backend can, or NULL. Out, with HF_OK:
     * the one that holds them; the backend has raised its holds by count. */
    hf__session *session;

    /* results */
    int64_t token;       /* 0: the backend records nothing */
    size_t blocked;      /* index of the claim in the way, with HF_NOT_ACQUIRED */
    bool snapshot_stale; /* transaction locks only */
} hf__request;

typedef enum hf__event_kind {
    HF__EVENT_ACQUIRED,
    HF__EVENT_CONFLICT,
    HF__EVENT_TIMEOUT,
    HF__EVENT_LOST,
    HF__EVENT_RELEASED,
    HF__EVENT_NOTED, /* the caller's own: see hf__event.name */
} hf__event_kind;

typedef struct hf__event {
    hf__event_kind kind;
    int64_t at_ms; /* Unix time */
    int64_t key;
    hf_space space;
    hf_mode mode;
    int64_t token;
    int64_t wait_ms;                     /* how long the acquire took, -1 where it says nothing */
    int64_t hold_ms;                     /* how long it was held, -1 likewise */
    char name[HF_NOTE_EVENT_MAX + 1];    /* of HF__EVENT_NOTED */
    char detail[HF_NOTE_DETAIL_MAX + 1]; /* why it was lost, what the caller noted; or "" */
} hf__event;

const char *hf__event_name(const hf__event *event);

/* A key that has been held for longer than a moment. */
typedef struct hf__record {
    int session_id;
    int64_t key;
    hf_space space;
    hf_mode mode;
    unsigned slot;
    int64_t age_ms;
    int64_t token;
} hf__record;

typedef struct hf__view_sink {
    hf_status (*add)(struct hf__view_sink *sink, const hf_lock_view *view, hf_error *err);
} hf__view_sink;

struct hf__attempt_ops; /* attempt.h */

typedef struct hf__backend_ops {
    const struct hf__attempt_ops *attempt; /* NULL: no transactions of its own */

    void (*close)(hf__backend *backend);  /* releases all, flushes events, frees */
    void (*forget)(hf__backend *backend); /* in a fork's child: drops descriptors, tells nobody */

    /* HF_OK, HF_NOT_ACQUIRED with request->blocked (err untouched), or the failure. All or none. */
    hf_status (*try_claims)(hf__backend *backend, hf__request *request, hf_error *err);

    /* The same, waiting until request->deadline; also HF_INTERRUPTED and HF_DEADLOCK. */
    hf_status (*wait_claims)(hf__backend *backend, hf__request *request, hf_error *err);

    /* HF_LOST when a key turns out not to be held. Session locks only. */
    hf_status (*release_claims)(hf__session *session, const hf__claim *claims, size_t count,
                                hf_error *err);

    /* Keys held on session change hands inside the process: a fresh token. */
    hf_status (*renew_claims)(hf__session *session, const hf__claim *claims, size_t count,
                              int64_t *token, hf_error *err);

    /* So many keys are held no more on the session, released or lost: lowers holds, and at 0 reuses
     * or frees the session. NULL: the engine lowers it. */
    void (*leave_session)(hf__session *session, unsigned keys);

    /* Does anybody outside this process wait for the claim? */
    hf_status (*is_contended)(hf__backend *backend, const hf__claim *claim, bool *contended,
                              hf_error *err);

    /* Answers the question by itself, in one trip. NULL: the store has no records of its own. */
    hf_status (*ask)(hf__backend *backend, hf__question *question, hf_error *err);

    hf_status (*find_holder)(hf__backend *backend, const hf__claim *claim, hf__holder *holder,
                             hf_error *err);

    /* Wake-ups by key, for waits that no queue serves: between listen and unlisten, await_wake
     * returns when the key was released since the last listen or await_wake with this ticket, or
     * when ms have passed; it may return early. */
    hf_status (*listen)(hf__backend *backend, int64_t wake, uint64_t *ticket, hf_error *err);
    hf_status (*await_wake)(hf__backend *backend, int64_t wake, uint64_t *ticket, int ms,
                            hf_error *err);
    void (*unlisten)(hf__backend *backend, int64_t wake);

    /* Writes down who holds what, and what note has buffered, from the scribe's thread; NULL where
     * acquiring and watching do it. Most locks are released before it comes to that, which is what
     * makes records cheap. */
    bool (*record)(hf__backend *backend, const hf__record *records, size_t count);
    void (*flush)(hf__backend *backend);

    /* Runs in the watcher's thread: looks after all sessions for at most ms, sooner after wake. */
    void (*watch)(hf__backend *backend, int ms);
    void (*wake)(hf__backend *backend);

    /* Ends all waits for good. */
    void (*interrupt)(hf__backend *backend);

    /* Buffers an event for history. */
    void (*note)(hf__backend *backend, const hf__event *event);

    hf_status (*init)(hf__backend *backend, int *from, int *to, hf_error *err);
    hf_status (*claim_schedule)(hf__backend *backend, const char *label, int64_t period_ms,
                                bool *due, int64_t *wait_ms, hf_error *err);
    hf_status (*list)(hf__backend *backend, struct pg_conn *conn, hf__view_sink *sink,
                      hf_error *err); /* on conn, where it is given */
    /* One view per key that was recorded since since_ms ago (-1: ever), sorted by space and key. */
    hf_status (*list_past)(hf__backend *backend, int64_t since_ms, hf__view_sink *sink,
                           hf_error *err);
    hf_status (*examine)(hf__backend *backend, hf_finding_fn *report, void *arg, hf_error *err);
} hf__backend_ops;

/* The common head of every backend. */
struct hf__backend {
    const hf__backend_ops *ops;
    char *name; /* without a password */
    bool local;
    bool borrowed;       /* transaction locks on the caller's connection: no watcher, no counting */
    atomic_bool records; /* tokens, holders, labels and events are kept */
    atomic_int max_keys;
    hf_log_fn *log;
    void *log_arg;
};

void hf__log(const hf__backend *backend, hf_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "'nightly'" or "key 42" or "key (1, 2)", as messages name a claim. Returns out. */
const char *hf__claim_name(char *out, size_t out_size, const hf__claim *claim);

/* HF_DEADLOCK, told to the one whose wait for claim would close a cycle. */
HF_MUST_CHECK hf_status hf__say_deadlock(const hf__claim *claim, hf_error *err);

/* options have been completed with their defaults. */
HF_MUST_CHECK hf_status hf__postgres_open(const hf_store_options *options, hf__backend **backend,
                                          hf_error *err);
HF_MUST_CHECK hf_status hf__postgres_borrow(struct pg_conn *conn, const hf_store_options *options,
                                            hf__backend **backend, hf_error *err);
HF_MUST_CHECK hf_status hf__local_open(const hf_store_options *options, hf__backend **backend,
                                       hf_error *err);

#endif
