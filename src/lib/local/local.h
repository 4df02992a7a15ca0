/*
 * The local store: OFD locks on bytes of sharded files, SQLite for what is recorded about them.
 *
 *   FOLDER/locks/b+3f    the byte at a key's offset is the lock: b bigint, p pair; + and - its sign
 *   FOLDER/locks/gb+7    gates: a waiter locks a key's byte here until it has got the key
 *   FOLDER/holdfast.db   tokens, holders, leases, waiters, labels, events, schedules
 *   FOLDER/data.db       the caller's own tables, for transactions
 *
 * The kernel frees an OFD lock when the last descriptor of its open file description is closed, so
 * a lock ends with its process, however that dies. The records say who holds a lock; whether it is
 * held, only the kernel knows. Leases alone are rows (leases.c), and their keys' bytes are locked
 * only while they are taken, looked for, or written under.
 *
 * Mutexes are taken in this order: the database's baton (which may be kept for seconds while
 * another process writes), hf__local's, a session's, a wait's, the bell's.
 *
 * "Enters by itself" below means that the function calls hf__local_db_enter and _leave, so the
 * caller must not have entered.
 */
#ifndef HF_LOCAL_LOCAL_H
#define HF_LOCAL_LOCAL_H

#include <sqlite3.h>
#include <sys/types.h>

#include "base/thread.h"
#include "lib/backend/attempt.h"
#include "lib/local/sql.h"

/* ---- files.c: where a key's bytes are -------------------------------------------------------- */

enum {
    HF__LOCAL_FAMILIES = 4, /* two spaces, two signs */
    HF__LOCAL_LOCK_SHARDS = 64,
    HF__LOCAL_GATE_SHARDS = 8,
    HF__LOCAL_GATES = HF__LOCAL_FAMILIES * HF__LOCAL_LOCK_SHARDS, /* files from here on are gates */
    HF__LOCAL_FILES = HF__LOCAL_GATES + HF__LOCAL_FAMILIES * HF__LOCAL_GATE_SHARDS,
};

typedef struct hf__local_file {
    int fd_plus_one; /* 0: not open; zeroed memory is a set of closed files */
    unsigned held;   /* keys held in it */
    dev_t device;
    ino_t inode;
} hf__local_file;

/* The open files of one session. Locks conflict only between different sessions. */
typedef struct hf__local_files {
    hf__local_file file[HF__LOCAL_FILES];
} hf__local_files;

typedef struct hf__local hf__local;

/* The index of the file that has the claim's lock, and of the one that has its gate. */
unsigned hf__local_lock_file(const hf__claim *claim);
unsigned hf__local_gate_file(const hf__claim *claim);

/*
 * Root may use another user's store. What it makes there goes to the owner of the folder around it,
 * who could not open it otherwise. Files that are not empty or have other names stay root's:
 * somebody may have put them there to get at them.
 */
void hf__local_give_away(const char *path);

/* Makes the folders and their parents, for the owner only. HF_CONFIG; HF_UNREACHABLE: disk full. */
HF_MUST_CHECK hf_status hf__local_make_folders(const hf__local *local, hf_error *err);

/*
 * These need the mutex of the session that has the files, unless nobody else uses it. Opening an
 * open file is allowed; *fd is -1 when the file does not exist and create is false. Fails as
 * hf__local_file_fail. Closing a file that is not open does nothing.
 */
HF_MUST_CHECK hf_status hf__local_file_open(const hf__local *local, hf__local_files *files,
                                            unsigned index, bool create, int *fd, hf_error *err);
void hf__local_file_close(hf__local_files *files, unsigned index);
void hf__local_files_close(hf__local_files *files);

/* Is the open file still the one at its path? If not, nobody else sees the locks in it. */
bool hf__local_file_is_current(const hf__local *local, const hf__local_files *files,
                               unsigned index);

/*
 * The claim's byte of an open file. They return 0 or errno; EAGAIN: another session's lock is in
 * the way. Waiting is a cancellation point. *held: a lock in this mode would have to wait.
 */
int hf__local_lock_byte(int fd, const hf__claim *claim, bool wait);
int hf__local_unlock_byte(int fd, const hf__claim *claim);
int hf__local_probe_byte(int fd, const hf__claim *claim, hf_mode mode, bool *held);

/*
 * The failure of an operation ("open", "lock a byte of") on a file: HF_UNREACHABLE, HF_CONFIG or
 * HF_SYSTEM by errno, with a hint.
 */
HF_MUST_CHECK hf_status hf__local_file_fail(const hf__local *local, unsigned index,
                                            int error_number, const char *what, hf_error *err);

/* The path of a lock or gate file. */
void hf__local_file_path(const hf__local *local, unsigned index, char *out, size_t out_size);

/* ---- keys.c: the keys that a session holds --------------------------------------------------- */

typedef struct hf__local_key {
    int64_t key;
    uint8_t space;
    bool used;
} hf__local_key;

/* A hash set. Zeroed memory is an empty one. */
typedef struct hf__local_keys {
    hf__local_key *slot; /* open addressing */
    size_t size;         /* a power of two */
    size_t count;
} hf__local_keys;

/* Reserve room before adding. False: out of memory. */
bool hf__local_keys_reserve(hf__local_keys *keys, size_t more);
void hf__local_keys_add(hf__local_keys *keys, const hf__claim *claim);
bool hf__local_keys_have(const hf__local_keys *keys, const hf__claim *claim);
bool hf__local_keys_remove(hf__local_keys *keys, const hf__claim *claim); /* false: not there */
void hf__local_keys_free(hf__local_keys *keys);

/* ---- session.c ------------------------------------------------------------------------------- */

typedef struct hf__local_session {
    hf__session head;
    int64_t id;            /* its name in records; random */
    bool is_shared;        /* for all locks that did not have to wait; else for one request */
    pthread_mutex_t mutex; /* guards what follows */
    bool closed;           /* lost, and nothing is held any more: only its memory is left */
    bool has_stale;        /* of a lock that it has released, a record could not be deleted */
    hf__local_files files;
    hf__local_keys held;
    /* Of what is leased on it; 0: nothing. Under the database's mutex and hf__local's. */
    int lease_ms;
    struct hf__local_session *next; /* in hf__local.sessions, under its mutex */
} hf__local_session;

/*
 * How a try treats gates. The waiter in a gate may be stopped, and must not keep others from a lock
 * that is free, or held in shared mode as they want it.
 */
typedef struct hf__local_gates {
    bool pass;   /* in: go past a waiter whose lock nobody holds */
    size_t past; /* in: the waiters of the shared claims before this one are known to be stopped */
    bool stood;  /* out: only a waiter whose lock nobody holds was in the way */
    bool shut;   /* out: a waiter was in the way of a shared claim */
} hf__local_gates;

/* Makes a session and adds it to local->sessions. HF_NO_MEMORY, HF_SYSTEM. */
HF_MUST_CHECK hf_status hf__local_session_new(hf__local *local, bool is_shared,
                                              hf__local_session **session, hf_error *err);

/* Closes its files, which releases what it holds, and frees it. hf__local's mutex is not held. */
void hf__local_session_free(hf__local_session *session);

/* The claims are held on the session: raises its holds, and puts it into the request. */
void hf__local_session_grant(hf__local_session *session, hf__request *request);

/*
 * Locks the bytes of all claims, or of none: HF_NOT_ACQUIRED. *again: the session is of no use any
 * more, or lock files were replaced.
 */
HF_MUST_CHECK hf_status hf__local_session_lock(hf__local_session *session, hf__request *request,
                                               hf__local_gates *gates, bool *again, hf_error *err);
void hf__local_session_unlock(hf__local_session *session, const hf__claim *claims, size_t count);

/* The same, and records who holds them; a lease lets go of the bytes then. Enters by itself. */
HF_MUST_CHECK hf_status hf__local_session_try(hf__local_session *session, hf__request *request,
                                              hf__local_gates *gates, bool *again, hf_error *err);

/*
 * Records that the session holds the claims, and gets request->token (0: no records are kept).
 * What the calling thread waited for is not recorded any more. Enters by itself. HF_NOT_ACQUIRED:
 * request->blocked is leased. HF_LOST: a lock file was replaced before the token was given, so a
 * rival may have a smaller one. Nothing is recorded then.
 */
HF_MUST_CHECK hf_status hf__local_session_record(hf__local_session *session, hf__request *request,
                                                 hf_error *err);

/*
 * Marks the session lost when a lock file was removed or replaced while it held keys in it. The
 * session must not be freed meanwhile.
 */
void hf__local_session_check(hf__local_session *session);

/* *held: some session of some process has a lock that conflicts with the claim's mode. */
HF_MUST_CHECK hf_status hf__local_is_held(hf__local *local, const hf__claim *claim, bool *held,
                                          hf_error *err);

/* Operations: see hf__backend_ops. Those that write records enter by themselves. */
hf_status hf__local_try_claims(hf__backend *backend, hf__request *request, hf_error *err);
hf_status hf__local_release_claims(hf__session *session, const hf__claim *claims, size_t count,
                                   bool brief, hf_error *err);
hf_status hf__local_confirm_claims(hf__session *session, const hf__claim *claims, size_t count,
                                   hf_error *err);
hf_status hf__local_renew_claims(hf__session *session, hf__request *request, hf_error *err);
void hf__local_leave_session(hf__session *session, unsigned keys);
hf_status hf__local_is_contended(hf__backend *backend, const hf__claim *claim, bool *contended,
                                 hf_error *err);

/* ---- wait.c, wake.c, deadlock.c -------------------------------------------------------------- */

/* How far a wait has come with one of its keys; numbers of the table waiters. */
typedef enum hf__local_standing {
    HF__LOCAL_TAKEN = 0,   /* has the key, and waits for a later one of its set */
    HF__LOCAL_AT_HEAD = 1, /* has the gate, and waits for the holders */
    HF__LOCAL_QUEUED = 2,  /* waits for the gate */
} hf__local_standing;

/* So long a lock is left to the waiter in its gate, which may be stopped, before others pass. */
enum { HF__LOCAL_STALL_MS = 100 };

/* One call of wait_claims: the caller's thread and a helper, which locks. */
typedef struct hf__local_wait {
    hf__local *local;
    const hf__request *request;
    hf__local_session *session; /* a new one, for this request only */
    pthread_t helper;
    int64_t since_ms; /* Unix time */

    pthread_mutex_t mutex; /* guards what follows */
    hf__cond changed;      /* wakes the caller's thread */
    size_t position;       /* of the claim that is waited for; count: all are held */
    bool at_head;          /* the helper has the gate of that claim */
    bool aside;            /* the helper stands aside for one who asks for the key */
    bool done;             /* the helper has ended by itself */
    int error_number;      /* of the helper, once done */
    bool interrupted;
    bool recorded; /* the wait is in the records: the helper signals progress */

    /* used by the caller's thread only */
    int64_t id; /* in the table waiters; 0: not there */
    size_t recorded_position;
    bool recorded_at_head;
    bool passed;        /* locked a byte past its gate: the helper has to start again behind it */
    bool stands_aside;  /* the helper does, if somebody asks for the key; set before it starts */
    bool starts_over;   /* the helper has to start again, and to stand aside */
    uint64_t suspicion; /* hash of the cycle that the last search found; 0: none */

    struct hf__local_wait *next; /* in hf__local.waits, under its mutex */
} hf__local_wait;

/* Operations: see hf__backend_ops. */
hf_status hf__local_wait_claims(hf__backend *backend, hf__request *request, hf_error *err);
void hf__local_interrupt(hf__backend *backend, bool all);
/* A wait that is on the list can be interrupted. It may have been before: see wait->interrupted. */
void hf__local_enlist(hf__local_wait *wait);
void hf__local_delist(hf__local_wait *wait);
/* All of them, or the call whose handle this is. */
bool hf__local_is_interrupted(hf__local *local, const hf_cancel *cancel);

/*
 * Counts releases of this process, so that await_wake misses none since the last try. Several wakes
 * may share a counter, so await_wake may return early.
 */
void hf__local_count_releases(hf__local *local, const hf__claim *claims, size_t count);
hf_status hf__local_listen(hf__backend *backend, int64_t wake, const hf__request *request,
                           uint64_t *ticket, hf_error *err);
hf_status hf__local_await_wake(hf__backend *backend, int64_t wake, const hf_cancel *cancel,
                               uint64_t *ticket, int ms, hf_error *err);

/*
 * HF_DEADLOCK when the wait is the youngest of a cycle that the last search found, too: the tables
 * may be a moment behind the locks, but a deadlock stays. HF_OK otherwise; a failure to search is
 * only logged. Between enter and leave.
 */
HF_MUST_CHECK hf_status hf__local_find_deadlock(hf__local_wait *wait, hf_error *err);

/* ---- patience.c ------------------------------------------------------------------------------ */

/*
 * How long a call waits for a process that writes a record, and perhaps was stopped there: no
 * longer than its own limit and a moment, and not once it has been cancelled.
 */
typedef struct hf__local_patience {
    int64_t until;           /* hf__now_ms() clock, or HF__FOREVER */
    bool interruptible;      /* hf_store_interrupt ends it, too */
    bool renews;             /* and so does the end of the renewer, which has it */
    const hf_cancel *cancel; /* and this; may be NULL */
} hf__local_patience;

/* For what is written for views alone: behind a release, and when a store is closed; and beside a
 * call, or when it is over. */
enum { HF__LOCAL_CLOSE_MS = 1500, HF__LOCAL_BRIEF_MS = 500 };

hf__local_patience hf__local_patience_of(const hf__local *local, const hf__request *request);
hf__local_patience hf__local_patience_of_plan(const hf__attempt_plan *plan);
hf__local_patience hf__local_patience_for(int ms); /* from now on */

/* ---- database.c ------------------------------------------------------------------------------ */

enum { HF__LOCAL_SCHEMA = 3 }; /* the number of the newest schema_NNN.sql */

typedef struct hf__local_db {
    hf__baton baton;
    sqlite3 *handle; /* opened when first needed, so that opening the store is fast */
    sqlite3_stmt *statement[HF__SQL_LOCAL_PREPARED]; /* by hf__sql.prepared */
    dev_t device;                                    /* of the open file: has it been replaced? */
    ino_t inode;
    hf__local_patience patience; /* of who has the baton */
    int64_t busy_since;          /* the statement that waits for another process */
    int64_t stuck_until;         /* the last such wait was in vain: until then there is no other */
} hf__local_db;

/* patience.c: enter's first step, see there; and, for who has the database, SQLite's busy handler,
 * whether it may go on waiting for another process, and why not. */
HF_MUST_CHECK hf_status hf__local_db_take(hf__local *local, const hf__local_patience *patience,
                                          hf_error *err);
int hf__local_on_busy(void *local, int count);
bool hf__local_db_may_wait(const hf__local *local, int64_t since);
bool hf__local_db_is_interrupted(const hf__local *local);

/*
 * Between enter and leave the caller has the database to itself. Where needed, enter opens it,
 * creates the schema and notices a reboot. All that waits for others there ends with the patience
 * (NULL: as long as a record may take), as HF_UNREACHABLE, or HF_INTERRUPTED. HF_CONFIG,
 * HF_NO_SCHEMA and others; after a failure do not call leave.
 */
HF_MUST_CHECK hf_status hf__local_db_enter(hf__local *local, const hf__local_patience *patience,
                                           hf_error *err);
void hf__local_db_leave(hf__local *local);

/* Between enter and leave, or when no other thread uses the store any more. */
void hf__local_db_close(hf__local_db *db);

/* Is there a file, or might there be? Readers ask first, so that they do not create one. */
bool hf__local_db_exists(const hf__local *local);

/* As hf_store_init. Enters by itself. */
hf_status hf__local_init(hf__backend *backend, int *from, int *to, hf_error *err);

/*
 * A write transaction, between enter and leave. It begins IMMEDIATE: a deferred one that has to
 * wait for its first write fails at once. end commits if status is HF_OK and rolls back otherwise;
 * it returns status, or the failure of the commit.
 */
HF_MUST_CHECK hf_status hf__local_begin(hf__local *local, hf_error *err);
HF_MUST_CHECK hf_status hf__local_end(hf__local *local, hf_status status, hf_error *err);

/*
 * Named statements, between enter and leave. Parameters are bound in order: 'i' int64_t, 't' const
 * char *, 'b' const void * and size_t. run executes. query prepares *rows: call fetch until *more
 * is false, then sqlite3_reset. The database owns *rows. Fail as hf__local_db_fail.
 */
HF_MUST_CHECK hf_status hf__local_run(hf__local *local, const hf__sql *sql, hf_error *err,
                                      const char *types, ...);
HF_MUST_CHECK hf_status hf__local_query(hf__local *local, const hf__sql *sql, sqlite3_stmt **rows,
                                        hf_error *err, const char *types, ...);
HF_MUST_CHECK hf_status hf__local_fetch(hf__local *local, sqlite3_stmt *rows, bool *more,
                                        hf_error *err);

/* The operation ask, on the records. Enters by itself. */
hf_status hf__local_ask(hf__backend *backend, hf__question *question, hf_error *err);

/* The failure that SQLite has just reported for the records. */
HF_MUST_CHECK hf_status hf__local_db_fail(const hf__local *local, hf_error *err);

/* ---- records.c: what is written; all between enter and leave unless said otherwise ----------- */

typedef struct hf__local_known hf__local_known; /* labels that were checked lately */

/*
 * Records in one transaction that the session holds the claims, or leases them, and gets a new
 * token: looks for leases (HF_NOT_ACQUIRED), checks the labels (HF_COLLISION), and drops other
 * holders' records of exclusive keys, which must be stale, and the waits of the calling thread.
 */
HF_MUST_CHECK hf_status hf__local_put_holders(hf__local_session *session, hf__request *request,
                                              hf_error *err);
HF_MUST_CHECK hf_status hf__local_drop_holders(hf__local *local, int64_t session_id,
                                               const hf__claim *claims, size_t count,
                                               hf_error *err);

/* HF_COLLISION when the key of request->blocked has another label in records. Enters by itself. */
HF_MUST_CHECK hf_status hf__local_check_label(hf__local *local, const hf__request *request,
                                              hf_error *err);

/* Forgets the checked labels: the database is another one, or the store is closed. */
void hf__local_known_free(hf__local *local);

/* Brings the table waiters up to date; position and at_head are copies of the wait's. */
HF_MUST_CHECK hf_status hf__local_put_wait(hf__local_wait *wait, size_t position, bool at_head,
                                           hf_error *err);
HF_MUST_CHECK hf_status hf__local_drop_wait(hf__local_wait *wait, hf_error *err);

/* As hf_schedule_claim. Enters by itself. */
hf_status hf__local_claim_schedule(hf__backend *backend, const char *label, int64_t period_ms,
                                   bool *due, int64_t *wait_ms, hf_error *err);

/* ---- leases.c -------------------------------------------------------------------------------- */

/* The clock of leases: since the boot, and the same in every time namespace. */
int64_t hf__local_clock_ms(const hf__local *local);

/*
 * Is a claim leased by somebody, in a mode that conflicts? HF_NOT_ACQUIRED, with request->blocked
 * and free_at. The caller has the bytes of the claims. Between enter and leave; look_for enters by
 * itself. is_leased looks for one claim of the request, needs no byte, and takes a failure to look
 * for a no.
 */
HF_MUST_CHECK hf_status hf__local_refuse_leased(hf__local *local, hf__request *request,
                                                hf_error *err);
HF_MUST_CHECK hf_status hf__local_look_for_leases(hf__local *local, hf__request *request,
                                                  hf_error *err);
bool hf__local_is_leased(hf__local *local, const hf__request *request, const hf__claim *claim);

/* A part of put_holders; and what follows its commit, before leave. */
HF_MUST_CHECK hf_status hf__local_lease(hf__local *local, hf__local_session *session, int lease_ms,
                                        int64_t *until_ms, hf_error *err);
void hf__local_leased(hf__local_session *session, int lease_ms, int64_t until_ms);

/* As the operation release_claims. Enters by itself. */
HF_MUST_CHECK hf_status hf__local_release_lease(hf__local_session *session, const hf__claim *claims,
                                                size_t count, bool brief, hf_error *err);

/* Before the first lease. HF_NO_SCHEMA: no records are kept. end: at the end of the store. */
HF_MUST_CHECK hf_status hf__local_start_renewing(hf__local *local, hf_error *err);
void hf__local_end_leases(hf__local *local, const hf__local_patience *patience);

/* Leaves it to the renewer: the watcher has to tell of losses in time. False: there is none. */
bool hf__local_leave_upkeep(hf__local *local, bool flush, bool sweep);

/* When the next lease is lost, unless it is renewed; of hf__now_ms(). */
int64_t hf__local_next_lease_loss(hf__local *local);

/*
 * Locks the bytes of plan->leases, and then looks whether they are held under their terms: HF_LOST
 * if not. As long as *kept lives, nobody takes them. NULL: there are none, or the transaction only
 * reads. Enters by itself.
 */
HF_MUST_CHECK hf_status hf__local_keep_leases(hf__local *local, const hf__attempt_plan *plan,
                                              hf__local_session **kept, hf_error *err);

/* ---- upkeep.c: the watcher's thread ---------------------------------------------------------- */

enum { HF__LOCAL_EVENTS = 1024, HF__LOCAL_WAKES = 64 };

/* What wakes the watcher, and the events that it is to write. */
typedef struct hf__local_bell {
    pthread_mutex_t mutex;
    pthread_cond_t rung;
    bool woken;
    hf__event *events; /* a ring buffer; the oldest event is dropped when it is full */
    size_t first;
    size_t count;
    size_t dropped;
    int64_t flush_at; /* a second after the oldest event came */
} hf__local_bell;

/* Operations: see hf__backend_ops. */
void hf__local_watch(hf__backend *backend, int ms);
void hf__local_wake(hf__backend *backend);
void hf__local_note(hf__backend *backend, const hf__event *event);

/* Both of the following, as far as they are wanted. */
void hf__local_upkeep(hf__local *local, bool flush, bool sweep);

/* Writes the buffered events; failures are logged. Enters by itself. */
void hf__local_flush(hf__local *local, const hf__local_patience *patience);

/*
 * Deletes old records and those of dead processes, at most once an hour for all processes together;
 * failures are logged. Enters by itself.
 */
void hf__local_sweep(hf__local *local, const hf__local_patience *patience);

/* Deletes the records of dead processes; *dead is how many. Between enter and leave. */
HF_MUST_CHECK hf_status hf__local_bury(hf__local *local, int *dead, hf_error *err);

/* ---- list.c, files.c, examine.c ----------------------------------------------------------- */

/*
 * Is the first in line for the key a process that was stopped, as far as that is recorded and can
 * be seen from here? It locks nothing before it goes on. Enters by itself.
 */
bool hf__local_is_head_stopped(hf__local *local, const hf__claim *claim,
                               const hf__local_patience *patience);

/*
 * Has somebody asked for the key of a lease, who is to get it first? Not if that one was stopped
 * since. Enters by itself.
 */
bool hf__local_is_asked_for(hf__local *local, const hf__request *request);

/* Operations: see hf__backend_ops. They enter by themselves. */
hf_status hf__local_find_holder(hf__backend *backend, const hf__claim *claim, hf__holder *holder,
                                hf_error *err);
hf_status hf__local_probe_claims(hf__backend *backend, const hf__request *request, bool held,
                                 size_t *first, hf_error *err);
hf_status hf__local_list(hf__backend *backend, struct pg_conn *conn, hf__view_sink *sink,
                         hf_error *err);
hf_status hf__local_list_past(hf__backend *backend, int64_t since_ms, hf__view_sink *sink,
                              hf_error *err);

/*
 * Calls add for every key that is locked according to /proc/locks, recorded or not; stops when add
 * fails. Where the kernel does not tell (no /proc, some filesystems) there are none.
 */
typedef hf_status hf__local_locked_fn(void *arg, const hf__claim *claim, hf_error *err);
HF_MUST_CHECK hf_status hf__local_ask_kernel(const hf__local *local, hf__local_locked_fn *add,
                                             void *arg, hf_error *err);

/* As hf_store_examine. Enters by itself. */
hf_status hf__local_examine(hf__backend *backend, hf_finding_fn *report, void *arg, hf_error *err);

/* ---- transaction.c, connection.c: transactions on FOLDER/data.db ----------------------------- */

typedef struct hf__local_connection hf__local_connection;

extern const hf__attempt_ops hf__local_attempt_ops;

/* Closes the idle connections, at the end of the store. */
void hf__local_connections_close(hf__local *local);

/* ---- upkeep.c: who is who -------------------------------------------------------------------- */

/* A process, as records name it. The pid alone is not enough: pids are reused. */
typedef struct hf__local_process {
    int pid;
    int64_t started;   /* clock ticks after boot, from /proc/PID/stat; 0: unknown */
    int64_t pid_space; /* inode of its pid namespace: in another one the pid means nothing */
    const char *host;
} hf__local_process;

/* False only when the process is known to be gone. Any thread. */
bool hf__local_is_alive(const hf__local *local, const hf__local_process *process);

/* ---- local.c --------------------------------------------------------------------------------- */

struct hf__local {
    hf__backend head;
    char *folder; /* absolute */
    char *application;
    char host[256];
    hf__local_process self;
    int64_t boot_offset_ms; /* of CLOCK_BOOTTIME in our time namespace */
    bool keeps_records;
    int check_ms;    /* so often the watcher looks for removed lock files */
    int64_t busy_ms; /* the longest wait for another process that writes a record */
    int kill_ms;     /* so long before the end of a lease its loss is told */

    pthread_mutex_t mutex; /* guards what follows, up to db */
    hf__cond released;     /* wakes the threads in await_wake */
    atomic_bool interrupted;
    unsigned awaiting;                  /* threads in await_wake */
    uint64_t releases[HF__LOCAL_WAKES]; /* releases of this process, hashed by wake */
    hf__local_session *shared_session;
    hf__local_session *sessions;
    hf__local_wait *waits;
    hf__local_connection *idle; /* connections for the next transactions */
    unsigned idle_count;
    int64_t lease_store; /* its name in the table leases; 0: it never had one */
    bool renews;         /* there is a renewer */
    atomic_bool renewing_ends;
    pthread_t renewer;
    hf__cond renewal_due;
    int64_t renew_at; /* hf__now_ms(); 0: nothing is leased */
    bool flush_due;   /* by the renewer */
    bool sweep_due;

    hf__local_db db;
    hf__local_known *known; /* under db.baton */
    hf__local_bell bell;

    /* used by the watcher's thread only; hf__now_ms() */
    int64_t check_at;
    int64_t sweep_at;
};

#endif
