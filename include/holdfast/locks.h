/* Status and errors, keys, the registry, stores, locks, and who holds what. */
#ifndef HOLDFAST_LOCKS_H
#define HOLDFAST_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HF_API __attribute__((visibility("default")))
#define HF_MUST_CHECK __attribute__((warn_unused_result))
#else
#define HF_API
#define HF_MUST_CHECK
#endif

#define HF_VERSION "0.1.0"

/* The version of the library that is loaded, which may be newer than HF_VERSION. */
HF_API const char *hf_version(void);

/* ---- Status and errors ----------------------------------------------------------------------- */

/* Append only: the numbers are part of the ABI. */
#define HF_STATUS_MAP(X)                                                                           \
    X(OK, 0, "success")                                                                            \
    X(INVALID, 1, "invalid argument")                                                              \
    X(BAD_DATA, 2, "bad input data")                                                               \
    X(NO_MEMORY, 3, "out of memory")                                                               \
    X(UNREACHABLE, 4, "the store cannot be reached")                                               \
    X(CONFIG, 5, "the store or its configuration is not fit for this")                             \
    X(NO_SCHEMA, 6, "the holdfast schema is missing, too old or too new")                          \
    X(NOT_ACQUIRED, 7, "the lock was not acquired")                                                \
    X(LOST, 8, "the lock was lost")                                                                \
    X(ORDER, 9, "locks taken out of order")                                                        \
    X(DEADLOCK, 10, "deadlock")                                                                    \
    X(COLLISION, 11, "two labels share one key")                                                   \
    X(SLOTS, 12, "other holders use another number of slots")                                      \
    X(QUOTA, 13, "too many locks")                                                                 \
    X(NO_TRANSACTION, 14, "no open transaction")                                                   \
    X(FORKED, 15, "the store belongs to the parent process")                                       \
    X(INTERRUPTED, 16, "the wait was interrupted")                                                 \
    X(DATABASE, 17, "the database reported an error")                                              \
    X(SYSTEM, 18, "the operating system reported an error")                                        \
    X(IN_DOUBT, 19, "the transaction may or may not have committed")                               \
    X(EXHAUSTED, 20, "the attempts or the time for a transaction are spent")                       \
    X(CURSOR, 21, "the cursor does not stand where it should")                                     \
    X(ROLLED_BACK, 22, "the application rolled the transaction back")                              \
    X(AGAIN, 23, "the transaction is to be run again")

typedef enum hf_status {
#define X(name, number, text) HF_##name = number,
    HF_STATUS_MAP(X)
#undef X
} hf_status;

HF_API const char *hf_status_name(hf_status status); /* "HF_NOT_ACQUIRED" */
HF_API const char *hf_status_text(hf_status status);

/* Owned by the caller; filled by the call that failed, untouched by one that succeeds. */
typedef struct hf_error {
    hf_status code;
    char sqlstate[6];   /* "" when it is not from a server */
    char message[1024]; /* one line: what, where, who */
    char hint[512];     /* what to do, or "" */
    int position;       /* the character of the SQL statement it is about, from 1; 0: none */
} hf_error;

/* ---- Keys: pure functions, any thread -------------------------------------------------------- */

#define HF_LABEL_MAX 65536

typedef enum hf_derivation {
    HF_SHA256 = 0, /* first 8 bytes of SHA-256, big endian: the default */
    HF_FNV1A64,
    HF_FNV1A32,               /* sign-extended, as PostgreSQL casts int4 to bigint */
    HF_FNV1A32_JS,            /* over UTF-16 code units, as charCodeAt returns them */
    HF_HASHTEXT,              /* PostgreSQL's hashtext(), for a UTF-8 database */
    HF_HASHTEXTEXTENDED,      /* PostgreSQL's hashtextextended(label, 0) */
    HF_FIXED,                 /* the number itself */
    HF_MINTED,                /* from the store's table registry: the label names a shared table */
    HF_CRC32,                 /* as django-pglocks: CRC-32, sign-extended */
    HF_CRC32_SQLX,            /* as sqlx::migrate derives it from the name of the database */
    HF_MD5,                   /* first 8 bytes of MD5, big endian */
    HF_JAVA_HASHCODE,         /* Java's String.hashCode(), sign-extended */
    HF_WITH_ADVISORY_LOCK,    /* as the Ruby gem with_advisory_lock: two int4 */
    HF_DISTRIBUTEDLOCK_ASCII, /* as .NET's DistributedLock: at most 9 ASCII characters, two int4 */
    HF_DISTRIBUTEDLOCK_HASH,  /* the same for longer names, with allowHashing */
} hf_derivation;

HF_API const char *hf_derivation_name(hf_derivation derivation); /* NULL: there is none */
HF_API HF_MUST_CHECK hf_status hf_derivation_parse(const char *name, hf_derivation *derivation,
                                                   hf_error *err);

/*
 * label is any byte string of at most HF_LABEL_MAX bytes. HF_FIXED parses a decimal int64;
 * HF_MINTED is refused: such keys are not computed. HF_FNV1A32_JS and HF_JAVA_HASHCODE refuse
 * invalid UTF-8, HF_DISTRIBUTEDLOCK_... what that library takes in the other way. Where the
 * derivation is of HF_PAIR (see hf_derivation_space) the first int4 is the high half of *key.
 */
HF_API HF_MUST_CHECK hf_status hf_key_derive(hf_derivation derivation, const void *label,
                                             size_t label_size, int64_t *key, hf_error *err);

/* How pg_locks shows a bigint key: classid = high half, objid = low half, both unsigned. */
HF_API void hf_key_split(int64_t key, uint32_t *classid, uint32_t *objid);
HF_API int64_t hf_key_join(uint32_t classid, uint32_t objid);

/* ---- What to lock, and the registry (locks.yaml) that names every lock ----------------------- */

typedef enum hf_mode { HF_EXCLUSIVE = 0, HF_SHARED } hf_mode;
typedef enum hf_lifetime { HF_SESSION = 0, HF_TRANSACTION, HF_LEASE } hf_lifetime;
typedef enum hf_space { HF_BIGINT = 0, HF_PAIR } hf_space;

/* The space in which a derivation has its keys, unless the registry puts them beside a class. */
HF_API hf_space hf_derivation_space(hf_derivation derivation);

/* What to lock: a label under a derivation, a number, or two int4. */
typedef struct hf_target {
    const char *label;        /* may be NULL with HF_FIXED and HF_PAIR */
    size_t label_size;        /* 0: strlen(label) */
    hf_derivation derivation; /* HF_FIXED uses .key */
    hf_space space;           /* HF_PAIR uses .pair and ignores .derivation */
    int64_t key;
    int32_t pair[2];
} hf_target;

#define HF_LABEL(text) ((hf_target){.label = (text)})
/* Where other programs lock the same label by a key of their own, such as HF_HASHTEXT. */
#define HF_LABEL_AS(text, how) ((hf_target){.label = (text), .derivation = (how)})
#define HF_KEY(number) ((hf_target){.derivation = HF_FIXED, .key = (number)})

/* Immutable once read, so any thread may use it. It must outlive the stores that use it. */
typedef struct hf_registry hf_registry;

/* One lock of the registry, which owns its strings. They are NULL where the file says nothing. */
typedef struct hf_registry_entry {
    const char *name;
    const char *pattern;      /* "{tenant}:{date}", or a label without placeholders; NULL: fixed */
    hf_derivation derivation; /* HF_FIXED for a number or a pair */
    hf_space space;
    int64_t key;     /* HF_FIXED in HF_BIGINT */
    int32_t pair[2]; /* HF_PAIR: both, or with a pattern only the first: the class */
    hf_lifetime lifetime;
    bool lifetime_given;
    hf_mode mode;
    bool has_order;
    int64_t order;    /* locks of a smaller order are acquired first */
    int64_t expected; /* different labels in use at once; 0: not stated */
    bool histogram;   /* its times of waiting and holding get a histogram of their own */
    const char *scope;
    const char *component;
    const char *purpose;
    const char *owner;
    const char *runbook;
    int lease_ms; /* with HF_LEASE: how long it lasts; 0: not stated */
} hf_registry_entry;

/*
 * Reads and checks the file. The caller frees *registry. HF_CONFIG names the first fault as
 * FILE:LINE:COLUMN; `holdfast registry check` lists them all.
 */
HF_API HF_MUST_CHECK hf_status hf_registry_read(const char *path, hf_registry **registry,
                                                hf_error *err);
HF_API void hf_registry_free(hf_registry *registry);
HF_API const char *hf_registry_path(const hf_registry *registry);

/*
 * Does the file allow locks that it does not have (strict: false), forbid them to every program
 * (strict: true; hf_lock_acquire refuses them with HF_CONFIG), or say nothing? Then the library
 * takes any label, and the commands refuse what the registry does not have.
 */
typedef enum hf_strictness {
    HF_STRICT_COMMANDS = 0,
    HF_STRICT_ALL,
    HF_STRICT_NOBODY
} hf_strictness;
HF_API hf_strictness hf_registry_strictness(const hf_registry *registry);
HF_API size_t hf_registry_count(const hf_registry *registry);
HF_API const hf_registry_entry *hf_registry_at(const hf_registry *registry, size_t index);
HF_API const hf_registry_entry *hf_registry_find(const hf_registry *registry, const char *name);

/*
 * Finds what a name or a label stands for. *entry is NULL, and *target the label under the default
 * derivation, when the registry does not know it. The name of a pattern with placeholders is
 * HF_INVALID (see hf_registry_fill); a label that matches two entries with different keys is
 * HF_CONFIG. label_size 0: strlen(label). target->label points to label, or into the registry.
 */
HF_API HF_MUST_CHECK hf_status hf_registry_resolve(const hf_registry *registry, const char *label,
                                                   size_t label_size, hf_target *target,
                                                   const hf_registry_entry **entry, hf_error *err);

/*
 * The label of an entry with its placeholders filled from "NAME=VALUE"; missing, unknown, repeated
 * and ill-formed values are HF_INVALID. The caller frees *label with free().
 */
HF_API HF_MUST_CHECK hf_status hf_registry_fill(const hf_registry_entry *entry,
                                                const char *const *values, size_t count,
                                                char **label, hf_error *err);

/* ---- Stores ---------------------------------------------------------------------------------- */

struct pg_conn; /* libpq's PGconn */
struct hf_span;

/* All threads of a process may use one store at once; a borrowed store is for one at a time. */
typedef struct hf_store hf_store;
typedef struct hf_lock hf_lock;

typedef enum hf_log_level { HF_LOG_DEBUG, HF_LOG_INFO, HF_LOG_WARNING } hf_log_level;
typedef void hf_log_fn(void *arg, hf_log_level level, const char *message);

typedef enum hf_records {
    HF_RECORDS_AUTO = 0, /* tokens, holders and events when the schema is there */
    HF_RECORDS_OFF,      /* plain locks: no write, no token */
    HF_RECORDS_REQUIRED, /* opening fails with HF_NO_SCHEMA without the schema */
} hf_records;

/* One span that has ended: see <holdfast/tracing.h>. */
typedef void hf_span_fn(const struct hf_span *span, void *arg);

typedef struct hf_store_options {
    size_t size;     /* sizeof(hf_store_options): lets the struct grow */
    const char *url; /* postgresql://…, a libpq conninfo string, or local:/path/to/folder */
    const char *application; /* shown to others who wait or are refused; default "holdfast" */
    hf_records records;
    int ping_interval_ms;   /* a session that holds locks is probed this often; default 5 000 */
    int ping_deadline_ms;   /* no answer for this long is a loss; default 10 000 */
    int kill_ms;            /* how long the caller needs to stop after a loss; default 5 000 */
    int connect_timeout_ms; /* for all hosts of the URL together; default 10 000 */
    /* Connections that wait or hold, besides the shared one; default 2. A process that waits long
     * has one more that listens, and with the schema one that writes records: five at most. */
    int max_waits;
    int max_keys;      /* keys held at once; default a quarter of the server's lock table */
    bool session_pool; /* the pooler in between is in session mode: only the caller can know */
    bool dispatch;     /* callbacks run in hf_store_dispatch, not in a thread of the library */
    hf_log_fn *log;    /* may be called from any thread */
    void *log_arg;
    int max_transactions; /* connections for hf_transact; more callers wait for one; default 16 */
    /*
     * Labels and names that it knows get its derivation instead of the default one, and `order` is
     * checked at every acquire. A target with another derivation is HF_CONFIG.
     */
    const hf_registry *registry;
    int machine; /* in the ids that this process mints, 1 to 1023; 0: leased from the store */
    /*
     * What is not given is found as the holdfast command finds it: url by HOLDFAST_URL,
     * HOLDFAST_URL_FILE, DATABASE_URL or libpq's variables, else a local folder; the registry,
     * which the store then owns, by HOLDFAST_REGISTRY, else locks.yaml in the working folder or one
     * above; session_pool and machine by their variables.
     */
    bool environment;
    /*
     * For so long a wait outlasts a server that is away: it is logged once when the server goes and
     * once when it answers again. Then the wait ends with HF_UNREACHABLE. 0: 60 000; -1: for ever.
     */
    int64_t patience_ms;
    /*
     * NULL: spans are not told. With it an acquire that has to wait asks the store who holds the
     * lock, as on_wait does, so that the span of the wait links to the span of that hold.
     */
    hf_span_fn *on_span;
    void *span_arg;
} hf_store_options;

#define HF_STORE_OPTIONS_INIT                                                                      \
    {                                                                                              \
        .size = sizeof(hf_store_options)                                                           \
    }

/*
 * Connects and checks the store. A standby is HF_CONFIG; several hosts without a primary among them
 * are HF_UNREACHABLE, as in a failover. The caller closes the store.
 */
HF_API HF_MUST_CHECK hf_status hf_store_open(const hf_store_options *options, hf_store **store,
                                             hf_error *err);

/*
 * A store on a connection that the caller lends and keeps: the store never closes or resets it, and
 * uses it in the calling thread only. For transaction locks; there is no watcher. options may be
 * NULL. The caller closes the store, and then the connection.
 */
HF_API HF_MUST_CHECK hf_status hf_store_borrow(struct pg_conn *conn,
                                               const hf_store_options *options, hf_store **store,
                                               hf_error *err);

/*
 * Releases what is still held and frees the store. All hf_lock handles must have been freed, and
 * all calls must have returned: end waits with hf_store_interrupt, and join their threads. A silent
 * server, or a local store whose records are locked, is waited for up to 1.5 s, and as long once
 * more if the library is writing a record just then; a server that restarts up to 5 s if a loss is
 * not written yet.
 * In a child of fork() it only drops the child's descriptors: the parent's session and locks stay.
 * Do that (or exec) in the child at once: a descriptor that the child keeps open can keep the
 * locks of a parent that has died.
 */
HF_API void hf_store_close(hf_store *store);

/*
 * Ends every wait of this store, now and later, with HF_INTERRUPTED. Any thread; in a child of
 * fork() it does nothing.
 */
HF_API void hf_store_interrupt(hf_store *store);

/*
 * For event loops: the descriptor turns readable when callbacks are due, and hf_store_dispatch runs
 * them in the calling thread (needs options.dispatch). It returns how many ran.
 */
HF_API int hf_store_fd(const hf_store *store);
HF_API int hf_store_dispatch(hf_store *store);

/* "postgresql://user@host:5432/db" or "local:/path", never with a password. The store owns it. */
HF_API const char *hf_store_name(const hf_store *store);
HF_API bool hf_store_is_local(const hf_store *store);
HF_API bool hf_store_has_records(const hf_store *store);
HF_API const hf_registry *hf_store_registry(const hf_store *store); /* NULL: it has none */

/* ---- Cancelling one call --------------------------------------------------------------------- */

/*
 * A handle by which another thread ends a call early: its wait, the statement that runs for it, or
 * its connecting. The call then returns HF_INTERRUPTED, and nothing is committed or kept: what the
 * server grants to a statement that was given up is given back when its answer comes. A call that
 * was done before, or whose COMMIT is on its way, returns what came of it, as hf_transact says. A
 * call that begins with a handle that was triggered returns at once. One handle may serve many
 * calls, on several stores.
 */
typedef struct hf_cancel hf_cancel;

HF_API HF_MUST_CHECK hf_status hf_cancel_create(hf_cancel **cancel, hf_error *err);
/* Any thread; not in a signal handler. It cannot be taken back. */
HF_API void hf_cancel_trigger(hf_cancel *cancel);
HF_API bool hf_cancel_is_triggered(const hf_cancel *cancel);
/* All calls that were given it, and all that trigger it, must have returned; NULL is safe. */
HF_API void hf_cancel_free(hf_cancel *cancel);

/* ---- Locks ----------------------------------------------------------------------------------- */

enum hf_lock_flags {
    HF_REENTRANT = 1,  /* a thread that holds the same lock gets it again at once */
    HF_ANY_ORDER = 2,  /* allow a wait for a smaller key while holding a greater one; a deadlock
                        * that is found ends with HF_DEADLOCK */
    HF_PRIVATE = 4,    /* on a session of its own, so it is not lost with other locks */
    HF_NEED_TOKEN = 8, /* fail with HF_NO_SCHEMA rather than hold without a fencing token */
    HF_ASK = 16,       /* go before all who wait, and ask the holder to yield: see hf_yield_fn */
};

typedef enum hf_lock_state { HF_STATE_HELD = 0, HF_STATE_LOST, HF_STATE_RELEASED } hf_lock_state;

/*
 * Called exactly once for each lost lock, perhaps before the acquire has returned, in a thread of
 * the library or in hf_store_dispatch, one after the other; not for one whose release has told of
 * it before. It may release or free the lock.
 */
typedef void hf_lost_fn(hf_lock *lock, const hf_error *why, void *arg);

/*
 * Called once for each who asks for the lock (HF_ASK), a second or two after it began to. who names
 * it. The holder finishes what it is at, and releases the lock, here or later: then it goes to the
 * one that asked, whoever else waits. It may also refuse, by going on. Runs as on_lost does.
 */
typedef void hf_yield_fn(hf_lock *lock, const hf_error *who, void *arg);

/* Called at most once for each acquire, in its thread, before it waits. why names the holder. */
typedef void hf_wait_fn(const hf_error *why, void *arg);

typedef struct hf_lock_spec {
    size_t size;              /* sizeof(hf_lock_spec) */
    const hf_target *targets; /* more than one make a set: sorted by key, all or none */
    size_t target_count;
    hf_mode mode;
    /*
     * HF_TRANSACTION: on a borrowed connection inside a transaction. HF_LEASE: for lease_ms, and
     * renewed until it is released; no session holds it, so it goes through any pooler and
     * survives a restart, or a failover to a synchronous standby, within that time. It needs the
     * schema, or the records of a local store. The token is its term: see hf_lock_transact and
     * holdfast.check_lease.
     */
    hf_lifetime lifetime;
    int64_t wait_ms; /* -1 for ever, 0 not at all */
    unsigned flags;
    /* > 0: at most this many holders (HF_SLOTS_MAX); one target, exclusive, session */
    unsigned slots;
    hf_lost_fn *on_lost;
    hf_wait_fn *on_wait;
    void *arg;         /* for the callbacks */
    hf_cancel *cancel; /* NULL: nobody ends this call but hf_store_interrupt */
    /*
     * Who asks, for the order rule, HF_REENTRANT and deadlocks. 0: the calling thread. Programs
     * whose tasks move between threads give each task a number, from 1 to 2^62 - 1.
     */
    int64_t owner;
    /*
     * With HF_LEASE: how long it lasts without a renewal, by the database's clock (of a local
     * store: the kernel's, since the boot), from
     * HF_LEASE_MIN_MS to HF_LEASE_MAX_MS. 0: what the registry says, of a set the shortest, else
     * HF_LEASE_DEFAULT_MS. It is renewed every third of that. If no renewal is
     * confirmed it is lost, and that is told kill_ms (at most a third of lease_ms) before the
     * database may give it to another. The leases of one length of a store are renewed together.
     */
    int lease_ms;
    /*
     * NULL: asks are not heard. With it the store is looked at once a second while the lock is
     * held. HF_ASK and on_yield go with one target and without slots; HF_ASK needs a wait.
     */
    hf_yield_fn *on_yield;
    /*
     * The caller's span, as W3C Trace Context writes it: the parent of the spans of this lock. The
     * hold gets a span of its own (hf_lock_traceparent), which is recorded with the holder where
     * there are records. One that is not sampled is passed on, but its spans are not told. What is
     * not valid is ignored, as the W3C says: it often comes from outside. NULL: none; with on_span
     * the lock begins a trace of its own.
     */
    const char *traceparent;
} hf_lock_spec;

#define HF_SLOTS_MAX 4095
#define HF_LEASE_MIN_MS 1000
#define HF_LEASE_MAX_MS 86400000
#define HF_LEASE_DEFAULT_MS 30000
#define HF_LOCK_SPEC_INIT                                                                          \
    {                                                                                              \
        .size = sizeof(hf_lock_spec), .wait_ms = -1                                                \
    }

/*
 * Returns HF_OK with *lock held, HF_NOT_ACQUIRED with err naming the holder, or the failure. The
 * caller frees *lock. A second acquire of a held label in the same process waits like any other.
 * With wait_ms, a key smaller than one that this thread holds is HF_ORDER, free or not: two
 * processes that wait in opposite orders would deadlock, and PostgreSQL could not see it. A set
 * that waits acquires its keys in their order, and holds those that it has. Any thread may release
 * a lock. A thread that is cancelled finishes the call; use spec->cancel to end a wait.
 *
 * Who has waited for more than a moment is granted the lock in the order of arrival, over all
 * processes; a lease goes to whoever tries first. A wait goes on while the store is out of reach,
 * as in a restart or a failover, and ends with HF_UNREACHABLE when its time is over, or at once
 * when the store refuses the user or the database. A server that does not answer, or a local store
 * whose records somebody keeps locked, holds up a call with a wait by wait_ms and half a second, or
 * by a second at least; one without (wait_ms 0) by ping_deadline_ms, on a local store 5 s at most.
 * To name the holder it may take a second more. To give back what it has already, a set takes half
 * a second beyond that, or its cancel, and one with slots a second and a half.
 */
HF_API HF_MUST_CHECK hf_status hf_lock_acquire(hf_store *store, const hf_lock_spec *spec,
                                               hf_lock **lock, hf_error *err);

/*
 * Tells once how hf_lock_start ended, as hf_lock_acquire returns. lock is held, and the caller's to
 * free, with HF_OK; otherwise it is NULL. A loss is told after this. It may release or free it.
 */
typedef void hf_started_fn(hf_lock *lock, hf_status status, const hf_error *why, void *arg);

/*
 * hf_lock_acquire for programs with many tasks and few threads: returns at once, and calls done
 * with spec->arg when the lock is acquired or will not be. Same waits, same order, same outcomes.
 * However many wait, one thread of the library serves them all; only on a local store a wait for
 * another process has a small thread for each key. spec and its targets are copied; spec->cancel
 * must live until done is called. owner 0 is the calling thread. done and on_wait run as on_lost
 * does: one after the other, in a thread of the library or in hf_store_dispatch. Closing the store
 * ends those that still wait (HF_INTERRUPTED). A failure that is returned here is not told to done:
 * HF_INVALID, HF_FORKED, HF_NO_MEMORY, HF_SYSTEM. Not for borrowed connections.
 */
HF_API HF_MUST_CHECK hf_status hf_lock_start(hf_store *store, const hf_lock_spec *spec,
                                             hf_started_fn *done, hf_error *err);

/*
 * Returns HF_LOST when the lock had been lost before. A silent server is waited for as long as
 * ping_deadline_ms, the record on a local store 1.5 s. A transaction lock stays until its
 * transaction ends; releasing it only ends the handle. Releasing twice is HF_INVALID.
 */
HF_API HF_MUST_CHECK hf_status hf_lock_release(hf_lock *lock, hf_error *err);

/* Releases the lock if it is still held, then frees it; NULL is safe. */
HF_API void hf_lock_free(hf_lock *lock);

HF_API hf_lock_state hf_lock_get_state(const hf_lock *lock);

/* The fencing token: greater than every earlier one. HF_NO_SCHEMA: there are no tokens. */
HF_API HF_MUST_CHECK hf_status hf_lock_token(const hf_lock *lock, int64_t *token, hf_error *err);

/*
 * Adds an event to the lock's history. event is a word of at most HF_NOTE_EVENT_MAX small letters
 * and '_' ("exit"), detail at most HF_NOTE_DETAIL_MAX bytes of UTF-8 or NULL; longer text is cut.
 * It is written in the background, like every event. Without records it does nothing, and when the
 * store cannot write, only history is lost.
 */
#define HF_NOTE_EVENT_MAX 23
#define HF_NOTE_DETAIL_MAX 63
HF_API void hf_lock_note(const hf_lock *lock, const char *event, const char *detail);

HF_API int64_t hf_lock_key(const hf_lock *lock);   /* of the first target in key order */
HF_API unsigned hf_lock_slot(const hf_lock *lock); /* 1 … slots, or 0 */

/*
 * True for a transaction lock under REPEATABLE READ or SERIALIZABLE: the snapshot of the first
 * statement, ours at the latest, is older than the lock, whether it had to wait or not. What the
 * last holder committed may be invisible to it.
 */
HF_API bool hf_lock_snapshot_is_stale(const hf_lock *lock);

typedef hf_status hf_locked_fn(hf_lock *lock, void *arg, hf_error *err);

/*
 * Acquires, calls fn, and releases on every path, thread cancellation and C++ exceptions included.
 * Returns fn's failure, else HF_LOST if the lock was lost while fn ran, else HF_OK.
 */
HF_API HF_MUST_CHECK hf_status hf_lock_with(hf_store *store, const hf_lock_spec *spec,
                                            hf_locked_fn *fn, void *arg, hf_error *err);

/* ---- The schema, schedules and views --------------------------------------------------------- */

#define HF_SCHEMA_VERSION 7 /* on PostgreSQL; a local store has numbers of its own */

/*
 * Installs or upgrades the schema. Several processes may do so at once. from and to are the
 * versions before (0: none) and after. The store uses the schema from then on.
 */
HF_API HF_MUST_CHECK hf_status hf_store_init(hf_store *store, int *from, int *to, hf_error *err);

/*
 * Claims a run of a periodic job by the store's clock: *due is true and the start is recorded if
 * period_ms or more have passed since the last recorded start of label, else *wait_ms is what is
 * left. Call it while holding the job's lock. HF_UNREACHABLE: the start is not recorded, and the
 * job still due; HF_IN_DOUBT: it may be.
 */
HF_API HF_MUST_CHECK hf_status hf_schedule_claim(hf_store *store, const char *label,
                                                 int64_t period_ms, bool *due, int64_t *wait_ms,
                                                 hf_error *err);

/* One advisory lock that is held or waited for; strings are "" when unknown. */
typedef struct hf_lock_view {
    int64_t key;
    hf_space space;
    hf_mode mode;
    bool waiting;
    bool ours;          /* acquired by Holdfast with records: label, host, pid, age are exact */
    bool session_known; /* lifetime is known: it is recorded, or the session is idle */
    hf_lifetime lifetime;
    const char *label;
    const char *application;
    const char *host;
    int pid;           /* the client process, or 0 */
    int backend_pid;   /* PostgreSQL's, or 0 */
    int64_t age_ms;    /* since granted, or since the wait began; -1 unknown */
    bool age_is_bound; /* true: at most age_ms */
    int64_t token;     /* 0: none */
    unsigned slot;
    const char *blocked_by; /* "4711,4712": backend pids (local: pids) that a waiter waits for */
    const char *name;       /* in the store's registry; "": unregistered, or no registry */
    const char *pattern;    /* of that entry, or "" */
    int64_t idle_ms;  /* how long the session has been idle outside of a transaction; -1: it is not,
                       * or that is not known */
    bool idle_hidden; /* it is not known: another role's session, or a local store */
    int64_t seen_ms;  /* in a list of the past: how long ago it was seen last; else 0 */
    int64_t times;    /* in a list of the past: how often it was acquired; else 0 */
    const char
        *known_as;   /* without label and name: the well-known program that locks this key, such
                           * as "Prisma Migrate"; else "". A guess: anybody may use the number */
    int64_t left_ms; /* of a lease: what is left of it if it is not renewed; else 0 */
    const char *traceparent; /* of a recorded hold that is traced; else "" */
} hf_lock_view;

typedef struct hf_lock_list hf_lock_list;

/*
 * Every advisory lock that is held or waited for now. The caller frees *list, which owns its views.
 */
HF_API HF_MUST_CHECK hf_status hf_lock_list_read(hf_store *store, hf_lock_list **list,
                                                 hf_error *err);

/*
 * What was recorded in the last since_ms (-1: everything), one view for each key, held now or not.
 * Of locks that were acquired as a set the first is in the history; the others are known by their
 * label, whose time may be a day behind. HF_NO_SCHEMA: there are no records.
 */
HF_API HF_MUST_CHECK hf_status hf_lock_list_read_past(hf_store *store, int64_t since_ms,
                                                      hf_lock_list **list, hf_error *err);
HF_API size_t hf_lock_list_count(const hf_lock_list *list);
HF_API const hf_lock_view *hf_lock_list_at(const hf_lock_list *list, size_t index);
HF_API void hf_lock_list_free(hf_lock_list *list);

typedef enum hf_level { HF_LEVEL_OK = 0, HF_LEVEL_WARNING, HF_LEVEL_PROBLEM } hf_level;

/* topic is "connection", "pooler", …; remedy is "" when all is well. Strings are the library's. */
typedef void hf_finding_fn(void *arg, hf_level level, const char *topic, const char *text,
                           const char *remedy);

/* Examines the store and reports each topic once; what `holdfast doctor` prints. */
HF_API HF_MUST_CHECK hf_status hf_store_examine(hf_store *store, hf_finding_fn *report, void *arg,
                                                hf_error *err);

/*
 * Finds out by trying whether locks work on the store that the options name: some servers and
 * poolers accept advisory locks and lock nothing. Opens connections of its own, tries a key chosen
 * at random, and reports the evidence topic by topic, then a verdict for each lifetime: "session",
 * "transaction" and "lease". HF_LEVEL_PROBLEM: it does not work; HF_LEVEL_WARNING: that is not
 * known, or it works less well. Takes up to some 30 s where the server does not answer. What
 * `holdfast doctor --prove` prints.
 */
HF_API HF_MUST_CHECK hf_status hf_store_prove(const hf_store_options *options,
                                              hf_finding_fn *report, void *arg, hf_error *err);

#ifdef __cplusplus
}
#endif

#endif
