/*
 * What a backend (PostgreSQL, the local folder) provides to the lock engine.
 *
 * A session of the backend is a connection, or a set of open file descriptions. What is held on a
 * session is lost with it, and a session never conflicts with itself, so the engine counts holders
 * inside the process and asks the backend only for keys that the process does not hold yet.
 *
 * Several threads may call the operations at once. The engine's mutex is not held, except during
 * leave_session and note, which must not wait for the store. A backend that finds a session dead
 * calls hf__session_lose and goes on; the engine does the rest.
 */
#ifndef HF_BACKEND_BACKEND_H
#define HF_BACKEND_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "lib/backend/cancel.h"

typedef struct hf__backend hf__backend;

/* One key that is wanted or held. Strings belong to the caller. */
typedef struct hf__claim {
    int64_t key; /* HF_PAIR: first int4 in the high half, second in the low */
    hf_space space;
    hf_mode mode;
    int64_t wake;      /* a release wakes those who listen for this number: see listen below */
    const char *label; /* for records; NULL when only the number is known */
    size_t label_size;
    hf_derivation derivation;
    unsigned slot;
    const char *traceparent; /* of the hold, for records; NULL: it is not traced */
    int64_t term;            /* of a lease that is held */
    bool has_order;          /* the registry gives it an order; claims without one come last */
    int64_t order;
} hf__claim;

/* The first member of every backend's sessions. */
typedef struct hf__session {
    hf__backend *backend;
    int session_id;     /* its number in the store's records */
    atomic_bool losing; /* somebody is filling reason and why */
    atomic_bool lost;

    const char *reason; /* one word for history, a literal; written once, before lost is set */
    hf_error why;       /* likewise */
    atomic_uint holds;  /* keys held: raised by the backend on success, lowered by leave_session;
                         * only at 0 may the session be reused or freed */
    _Atomic int64_t transacts; /* hf__me() of who runs a transaction on it; 0: nobody */
    hf_lifetime lifetime;      /* of what is held on it: HF_LEASE, or HF_SESSION */
    _Atomic int64_t lost_at; /* by hf__boot_ms(): it is lost then, unless that is put off; 0: no */
} hf__session;

/*
 * Who asks: the thread, or the task that it acts for (hf_lock_spec.owner). A pthread_t would not
 * do: it may be used again as soon as its thread has ended.
 */
int64_t hf__me(void);

int64_t hf__me_or(int64_t task); /* 0: hf__me() */
int64_t hf__task_of(int64_t me); /* 0: it is a thread */
/* From now on the thread is that one. Returns what ends it: whom it was before, 0: itself. */
int64_t hf__act_as(int64_t me);
HF_MUST_CHECK hf_status hf__check_task(int64_t task, hf_error *err); /* HF_INVALID */

/*
 * Marks the session lost and wakes the watcher. Only the first call counts; the others return
 * false. reason is a literal, *why is copied and may be NULL. Any thread.
 */
bool hf__session_lose(hf__session *session, const char *reason, const hf_error *why);

/* Is it lost? Also when nobody has noticed yet that its time is over. Any thread. */
bool hf__session_is_lost(hf__session *session);

/* Who is in the way of a claim; strings may be "". */
typedef struct hf__holder {
    bool found;
    char application[128];
    char host[256];
    int pid;         /* the client's process, or 0 */
    int backend_pid; /* PostgreSQL's, or 0 */
    int64_t age_ms;  /* -1: unknown */
    bool age_is_bound;
    int64_t term;      /* of a lease, or 0 */
    bool checks_lease; /* no holder: its transaction keeps a lease that is over from being taken */
    char traceparent[HF_TRACEPARENT_SIZE]; /* of the hold, or "" */
} hf__holder;

typedef struct hf__key {
    int64_t key;
    hf_space space;
} hf__key;

/*
 * One SELECT on the store's records. As part of a request it is sent in the message that acquires
 * the lock, where the backend can do that, and is answered while the lock is held.
 */
typedef struct hf__question {
    const char *name; /* of the prepared statement, when it is asked on its own; NULL: do not */
    const char *sql;  /* in the dialect of the store */
    size_t count;
    const hf_value *values; /* text */
    hf_rows *rows;          /* the answer, which the asker frees; NULL: not asked yet */
} hf__question;

/* Frees the rows, so that the question can be asked again. */
void hf__question_forget(hf__question *question);

/* A request for keys, sorted by (order, space, key) without repeats: all are acquired, or none. */
typedef struct hf__request {
    const hf__claim *claims;
    size_t count;
    hf_lifetime lifetime;
    int lease_ms;         /* with HF_LEASE */
    bool private_session; /* on a session that holds nothing else */
    /* to be asked in the same message, where the backend can */
    hf__question *const *questions;
    size_t question_count;
    bool any_order;      /* the caller may deadlock: search for cycles while waiting */
    const hf__key *held; /* what the calling thread holds already; for wait_claims only */
    size_t held_count;
    int64_t began;    /* the call, by hf__now_ms(): every limit counts from here */
    int64_t deadline; /* likewise, or HF__FOREVER; not after began: the call does not wait */

    /* NULL, or asked now and then by a wait, which keeps its place meanwhile, with no mutex held.
     * True ends the wait with HF_NOT_ACQUIRED. */
    bool (*give_up)(void *arg);
    void *give_up_arg;
    const hf_cancel *cancel; /* ends the call with HF_INTERRUPTED; may be NULL */

    /* A wait for one key. asks: it goes before all others. Otherwise it stands aside while somebody
     * holds ask, which is shared here: that one has asked for the key. NULL: nobody can. */
    bool asks;
    const hf__claim *ask;
    bool (*holds_ask)(void *arg, const hf__claim *ask); /* this process does; no mutex is held */
    void *holds_ask_arg;

    /* In: the private session to acquire the keys on, where the backend can, or NULL. Out, with
     * HF_OK: the session that holds them; the backend has raised its holds by count. */
    hf__session *session;

    /* results */
    int64_t token;       /* 0: the backend records nothing */
    size_t blocked;      /* index of the claim in the way, with HF_NOT_ACQUIRED */
    int64_t free_at;     /* hf__now_ms() when that ends, if it is a lease; 0: not known */
    bool snapshot_stale; /* transaction locks only */
} hf__request;

/*
 * Until when a call waits for the store itself, by hf__now_ms(): its own limit and a moment, at
 * least as long as a store that is busy may take; one that does not wait, longest_ms.
 */
int64_t hf__answer_due(const hf__request *request, int64_t longest_ms);

/* Must it stand aside while somebody holds the ask? Not for one of its own process, behind which
 * it may stand in line there. No mutex is held. */
static inline bool hf__stands_aside(const hf__request *request)
{
    return request->ask && !request->asks &&
           !request->holds_ask(request->holds_ask_arg, request->ask);
}

typedef enum hf__event_kind {
    HF__EVENT_ACQUIRED,
    HF__EVENT_CONFLICT,
    HF__EVENT_TIMEOUT,
    HF__EVENT_DEADLOCK,
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
    int64_t wait_ms;                  /* how long the acquire took; -1: does not apply */
    int64_t hold_ms;                  /* how long it was held; -1: does not apply */
    char name[HF_NOTE_EVENT_MAX + 1]; /* of HF__EVENT_NOTED */
    /* why it was lost, which deadlock it was, or what was noted; or "" */
    char detail[HF_NOTE_DETAIL_MAX + 1];
} hf__event;

/* "acquired", "lost", …; a literal, or event->name. */
const char *hf__event_name(const hf__event *event);

/* A held key, as it is written to the store's records. */
typedef struct hf__record {
    int session_id;
    int64_t key;
    hf_space space;
    hf_mode mode;
    unsigned slot;
    int64_t age_ms;
    int64_t token;
    char traceparent[HF_TRACEPARENT_SIZE]; /* or "" */
} hf__record;

/* Where a backend puts the views of a list, one by one; add copies the strings. */
typedef struct hf__view_sink {
    hf_status (*add)(struct hf__view_sink *sink, const hf_lock_view *view, hf_error *err);
    const char *database; /* that the views are of, while add is called; NULL: none */
} hf__view_sink;

struct hf__attempt_ops; /* attempt.h */

typedef struct hf__backend_ops {
    const struct hf__attempt_ops *attempt; /* NULL: no transactions of its own */

    /* Releases everything, writes buffered events and frees the backend. */
    void (*close)(hf__backend *backend);

    /* In the child of a fork: closes the child's descriptors and tells the store nothing. */
    void (*forget)(hf__backend *backend);

    /* HF_OK, HF_NOT_ACQUIRED with request->blocked (err untouched), or the failure. All or none. */
    hf_status (*try_claims)(hf__backend *backend, hf__request *request, hf_error *err);

    /* The same, but waits until request->deadline. Also HF_INTERRUPTED and HF_DEADLOCK. */
    hf_status (*wait_claims)(hf__backend *backend, hf__request *request, hf_error *err);

    /* Session locks only. HF_LOST: a key turned out not to be held. brief: the call that acquired
     * them has failed, and its limit may be over. What a store that is silent does not hear of
     * within a moment, it hears of later. */
    hf_status (*release_claims)(hf__session *session, const hf__claim *claims, size_t count,
                                bool brief, hf_error *err);

    /* Are the keys still held? If not, HF_LOST, and the session is lost. Called before a release
     * inside the process, which the store is not told of. NULL: there is nothing to look at. */
    hf_status (*confirm_claims)(hf__session *session, const hf__claim *claims, size_t count,
                                hf_error *err);

    /* Keys held on the session go to another lock of the process: gets a new request->token for
     * it. HF_UNREACHABLE when the session turns out to be dead: the keys have to be asked for
     * again. */
    hf_status (*renew_claims)(hf__session *session, hf__request *request, hf_error *err);

    /* So many keys are no longer held on the session, released or lost: lowers holds, and at 0
     * reuses or frees the session. NULL: the engine lowers it. */
    void (*leave_session)(hf__session *session, unsigned keys);

    /* Looks without keeping anything: *first is the index of the first bigint claim that somebody
     * holds in the way of its mode, which all have (held), or that nobody does, or count. What this
     * store holds may look free. The request has claims and limits. NULL: no session locks. */
    hf_status (*probe_claims)(hf__backend *backend, const hf__request *request, bool held,
                              size_t *first, hf_error *err);

    /* Does anybody outside of this process wait for the claim? */
    hf_status (*is_contended)(hf__backend *backend, const hf__claim *claim, bool *contended,
                              hf_error *err);

    /* Asks one question in a message of its own. NULL: a borrowed connection answers none. */
    hf_status (*ask)(hf__backend *backend, hf__question *question, hf_error *err);

    /* Fills *holder with one who is in the way of the claim; holder->found is false if it is not
     * known. */
    hf_status (*find_holder)(hf__backend *backend, const hf__claim *claim, hf__holder *holder,
                             hf_error *err);

    /*
     * Wake-ups, for waits that have no queue at the store. Between listen and unlisten, await_wake
     * returns when a claim with this wake has been released since the last listen or await_wake
     * with the same ticket, or when ms have passed. It may also return early. Of the request,
     * listen wants the limits.
     */
    hf_status (*listen)(hf__backend *backend, int64_t wake, const hf__request *request,
                        uint64_t *ticket, hf_error *err);
    hf_status (*await_wake)(hf__backend *backend, int64_t wake, const hf_cancel *cancel,
                            uint64_t *ticket, int ms, hf_error *err);
    void (*unlisten)(hf__backend *backend, int64_t wake);

    /*
     * The scribe's thread: record writes who holds what (false: it failed, try again later), flush
     * writes what note has buffered. Both are NULL where the backend writes records when it
     * acquires and events when it watches. Most locks are released before the scribe gets to them,
     * and that makes records cheap.
     */
    bool (*record)(hf__backend *backend, const hf__record *records, size_t count);
    void (*flush)(hf__backend *backend);

    /* The watcher's thread: looks after all sessions for at most ms, and returns sooner after wake,
     * which any thread may call. */
    void (*watch)(hf__backend *backend, int ms);
    void (*wake)(hf__backend *backend);

    /* Ends waits with HF_INTERRUPTED: all of them, now and later, or those whose handle says so. */
    void (*interrupt)(hf__backend *backend, bool all);

    /* Copies an event into the buffer for history. Never waits for the store. */
    void (*note)(hf__backend *backend, const hf__event *event);

    /* As hf_store_init, hf_schedule_claim and hf_store_examine. */
    hf_status (*init)(hf__backend *backend, int *from, int *to, hf_error *err);
    hf_status (*claim_schedule)(hf__backend *backend, const char *label, int64_t period_ms,
                                bool *due, int64_t *wait_ms, hf_error *err);

    /* Every lock that is held or waited for; on the caller's conn, unless it is NULL. */
    hf_status (*list)(hf__backend *backend, struct pg_conn *conn, hf__view_sink *sink,
                      hf_error *err);

    /* One view per key recorded in the last since_ms (-1: ever), sorted by space and key. */
    hf_status (*list_past)(hf__backend *backend, int64_t since_ms, hf__view_sink *sink,
                           hf_error *err);
    hf_status (*examine)(hf__backend *backend, hf_finding_fn *report, void *arg, hf_error *err);
} hf__backend_ops;

/* The first member of every backend. */
struct hf__backend {
    const hf__backend_ops *ops;
    char *name; /* see hf_store_name */
    bool local;
    bool borrowed;       /* transaction locks on the caller's connection: no watcher, no counting */
    atomic_bool records; /* tokens, holders, labels and events are kept */
    atomic_bool history; /* events are kept, also where sessions cannot be recorded */
    atomic_bool readable; /* what others keep can be read, whether or not we may keep anything */
    atomic_int max_keys;
    hf_log_fn *log;
    void *log_arg;
};

/* Calls the caller's log function, if there is one. Longer messages are cut at 1023 bytes. */
void hf__log(const hf__backend *backend, hf_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "'nightly'" or "key 42" or "key (1, 2)", as messages name a claim. Returns out. */
const char *hf__claim_name(char *out, size_t out_size, const hf__claim *claim);

/*
 * May a wait outlive this failure, because the server will be back or another takes its place? Not
 * when it refuses the user or the database.
 */
bool hf__may_pass(const hf_error *failure);

/* Returns HF_DEADLOCK, with a message for the thread whose wait for claim closes a cycle. */
HF_MUST_CHECK hf_status hf__say_deadlock(const hf__claim *claim, hf_error *err);

/*
 * These make a backend, which ops->close frees. options are complete: store.c has filled in the
 * defaults. hf__postgres_borrow never closes conn.
 */
HF_MUST_CHECK hf_status hf__postgres_open(const hf_store_options *options, hf__backend **backend,
                                          hf_error *err);
HF_MUST_CHECK hf_status hf__postgres_borrow(struct pg_conn *conn, const hf_store_options *options,
                                            hf__backend **backend, hf_error *err);
HF_MUST_CHECK hf_status hf__local_open(const hf_store_options *options, hf__backend **backend,
                                       hf_error *err);

/* As hf_store_prove, with complete options. They open no store: it might refuse what is there. */
HF_MUST_CHECK hf_status hf__postgres_prove(const hf_store_options *options, hf_finding_fn *report,
                                           void *arg, hf_error *err);
HF_MUST_CHECK hf_status hf__local_prove(const hf_store_options *options, hf_finding_fn *report,
                                        void *arg, hf_error *err);

#endif
