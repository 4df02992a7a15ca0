/*
 * The local store: OFD locks on bytes of sharded files, SQLite for what is recorded about them.
 *
 *   FOLDER/locks/b+3f    the byte at a key's offset is the lock: b bigint, p pair; + and - its sign
 *   FOLDER/locks/gb+7    gates: who waits for a key holds the gate's byte until it gets the key
 *   FOLDER/holdfast.db   tokens, holders, waiters, labels, events, schedules
 *   FOLDER/data.db       the caller's own tables, for transactions
 *
 * The kernel frees an OFD lock when the last descriptor of its open file description is closed, so
 * a lock ends with its process however that dies; the records say who holds it, never that it is
 * held. Mutexes are taken in this order: the database's (which may be held for seconds while
 * another process writes), hf__local's, a session's, a wait's, the bell's.
 */
#ifndef HF_STORE_LOCAL_LOCAL_H
#define HF_STORE_LOCAL_LOCAL_H

#include <sqlite3.h>
#include <sys/types.h>

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
    int fd_plus_one; /* 0: not open, so that zeroed memory is an empty set of files */
    unsigned held;   /* keys held in it */
    dev_t device;
    ino_t inode;
} hf__local_file;

/* Open file descriptions that never conflict with each other's owner: a session's. */
typedef struct hf__local_files {
    hf__local_file file[HF__LOCAL_FILES];
} hf__local_files;

typedef struct hf__local hf__local;

unsigned hf__local_lock_file(const hf__claim *claim);
unsigned hf__local_gate_file(const hf__claim *claim);

/* Makes the folders, with parents, for the owner only. */
HF_MUST_CHECK hf_status hf__local_make_folders(const hf__local *local, hf_error *err);

/* *fd is -1 when the file does not exist and create is false. */
HF_MUST_CHECK hf_status hf__local_file_open(const hf__local *local, hf__local_files *files,
                                            unsigned index, bool create, int *fd, hf_error *err);
void hf__local_file_close(hf__local_files *files, unsigned index);
void hf__local_files_close(hf__local_files *files);

/* Does the path still name the file that is open? If not, nobody else sees the locks in it. */
bool hf__local_file_is_current(const hf__local *local, const hf__local_files *files,
                               unsigned index);

/* One byte of an open file; returns 0 or errno, EAGAIN where another description is in the way. */
int hf__local_lock_byte(int fd, const hf__claim *claim, bool wait);
int hf__local_unlock_byte(int fd, const hf__claim *claim);
int hf__local_probe_byte(int fd, const hf__claim *claim, hf_mode mode, bool *held);

/* The failure of an operation on a lock file. */
HF_MUST_CHECK hf_status hf__local_file_fail(const hf__local *local, unsigned index,
                                            int error_number, const char *what, hf_error *err);

/* The claim that a byte of a lock file stands for; false for gates. */
void hf__local_file_path(const hf__local *local, unsigned index, char *out, size_t out_size);

/* ---- session.c: the keys that a session holds ---------------------------------------------- */

typedef struct hf__local_key {
    int64_t key;
    uint8_t space;
    bool used;
} hf__local_key;

typedef struct hf__local_keys {
    hf__local_key *slot; /* open addressing, a power of two in size */
    size_t size;
    size_t count;
} hf__local_keys;

bool hf__local_keys_reserve(hf__local_keys *keys, size_t more);        /* false: out of memory */
void hf__local_keys_add(hf__local_keys *keys, const hf__claim *claim); /* room is reserved */
void hf__local_keys_free(hf__local_keys *keys);

/* ---- session.c ------------------------------------------------------------------------------- */

typedef struct hf__local_session {
    hf__session head;
    int64_t id; /* names it in records; random */
    bool is_shared;
    pthread_mutex_t mutex; /* for what follows */
    bool closed;
    hf__local_files files;
    hf__local_keys held;
    struct hf__local_session *next; /* in hf__local.sessions, under its mutex */
} hf__local_session;

HF_MUST_CHECK hf_status hf__local_session_new(hf__local *local, bool is_shared,
                                              hf__local_session **session, hf_error *err);
void hf__local_session_free(hf__local_session *session);

/* The claims are held on the session: the engine lowers its count when they are released. */
void hf__local_session_grant(hf__local_session *session, hf__request *request);

/* Writes down that the claims were granted on the session. wait_id: the wait that ends so, or 0. */
HF_MUST_CHECK hf_status hf__local_session_record(hf__local_session *session,
                                                 const hf__request *request, int64_t wait_id,
                                                 int64_t *token, hf_error *err);

/* Finds lock files that were removed while the session held keys in them: the session is lost. */
void hf__local_session_check(hf__local_session *session);

/* Is the claim's byte locked in a way that conflicts with the claim's mode? On any session. */
HF_MUST_CHECK hf_status hf__local_is_held(hf__local *local, const hf__claim *claim, bool *held,
                                          hf_error *err);

hf_status hf__local_try_claims(hf__backend *backend, hf__request *request, hf_error *err);
hf_status hf__local_release_claims(hf__session *session, const hf__claim *claims, size_t count,
                                   hf_error *err);
hf_status hf__local_renew_claims(hf__session *session, const hf__claim *claims, size_t count,
                                 int64_t *token, hf_error *err);
void hf__local_leave_session(hf__session *session, unsigned keys);
hf_status hf__local_is_contended(hf__backend *backend, const hf__claim *claim, bool *contended,
                                 hf_error *err);

/* ---- wait.c, deadlock.c ---------------------------------------------------------------------- */

/* What stands between a wait and its next key, as the table waiters keeps it. */
typedef enum hf__local_standing {
    HF__LOCAL_TAKEN = 0,   /* by a set that still waits for a later key */
    HF__LOCAL_AT_HEAD = 1, /* holds the gate, waits for the holders */
    HF__LOCAL_QUEUED = 2,  /* waits for whoever holds the gate */
} hf__local_standing;

typedef struct hf__local_wait {
    hf__local *local;
    const hf__request *request;
    hf__local_session *session;
    pthread_t helper;
    int64_t since_ms; /* Unix time */

    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t changed;
    size_t position; /* of the claim that is waited for; count: all are held */
    bool at_head;
    bool done;
    int error_number; /* once done */
    bool interrupted;
    bool recorded; /* progress is told to the caller's thread, too */

    /* only the caller's thread */
    int64_t id; /* in the table waiters; 0: not there */
    size_t recorded_position;
    bool recorded_at_head;
    uint64_t suspicion; /* the cycle that was seen last, 0: none */

    struct hf__local_wait *next; /* in hf__local.waits, under its mutex */
} hf__local_wait;

hf_status hf__local_wait_claims(hf__backend *backend, hf__request *request, hf_error *err);
void hf__local_interrupt(hf__backend *backend);

/* Counts releases, so that none between a try and the await_wake after it is missed. Wakes may
 * share a counter: it may end early. */
void hf__local_count_releases(hf__local *local, const hf__claim *claims, size_t count);
hf_status hf__local_listen(hf__backend *backend, int64_t wake, uint64_t *ticket, hf_error *err);
hf_status hf__local_await_wake(hf__backend *backend, int64_t wake, uint64_t *ticket, int ms,
                               hf_error *err);

/*
 * HF_DEADLOCK when the wait is the youngest of a cycle that was there at the last search, too: the
 * tables may be a moment behind the locks, but a deadlock stays. HF_OK otherwise, also on failure.
 */
HF_MUST_CHECK hf_status hf__local_find_deadlock(hf__local_wait *wait, hf_error *err);

/* ---- database.c ------------------------------------------------------------------------------ */

typedef struct hf__local_db {
    pthread_mutex_t mutex;
    sqlite3 *handle; /* NULL until the first need, so that a start is fast */
    sqlite3_stmt *statement[HF__SQL_LOCAL_PREPARED]; /* by hf__sql.prepared */
    dev_t device;
    ino_t inode;
} hf__local_db;

/*
 * Between enter and leave the calling thread has the database; enter opens it, creates the schema
 * and notices a reboot where needed. A failed enter needs no leave.
 */
HF_MUST_CHECK hf_status hf__local_db_enter(hf__local *local, hf_error *err);
void hf__local_db_leave(hf__local *local);
void hf__local_db_close(hf__local_db *db); /* from inside, or alone */

/* Is there a database, or one open already? Where nothing was ever recorded, nothing is created. */
bool hf__local_db_exists(const hf__local *local);

/* Installs the schema; *from and *to are the versions before and after. Enters by itself. */
hf_status hf__local_init(hf__backend *backend, int *from, int *to, hf_error *err);

/* Write transactions begin IMMEDIATE: a deferred one fails at once when it has to wait (FACTS 35).
 * end commits after HF_OK and rolls back otherwise; it returns the first failure. */
HF_MUST_CHECK hf_status hf__local_begin(hf__local *local, hf_error *err);
HF_MUST_CHECK hf_status hf__local_end(hf__local *local, hf_status status, hf_error *err);

/*
 * Binds the parameters in order: 'i' int64_t, 't' const char *, 'b' const void * and size_t.
 * run executes; query leaves *rows for fetch, which sets *more, and sqlite3_reset.
 */
HF_MUST_CHECK hf_status hf__local_run(hf__local *local, const hf__sql *sql, hf_error *err,
                                      const char *types, ...);
HF_MUST_CHECK hf_status hf__local_query(hf__local *local, const hf__sql *sql, sqlite3_stmt **rows,
                                        hf_error *err, const char *types, ...);
HF_MUST_CHECK hf_status hf__local_fetch(hf__local *local, sqlite3_stmt *rows, bool *more,
                                        hf_error *err);
/* The backend's ask: on the records. Enters by itself. */
hf_status hf__local_ask(hf__backend *backend, hf__question *question, hf_error *err);
HF_MUST_CHECK hf_status hf__local_db_fail(const hf__local *local, hf_error *err);

/* ---- records.c: what is written; all between enter and leave unless said otherwise ----------- */

typedef struct hf__local_known hf__local_known; /* labels that need no look at the table */

/* Labels checked, rivals that must be gone dropped, holders written; one transaction. */
HF_MUST_CHECK hf_status hf__local_put_holders(hf__local *local, int64_t session_id,
                                              const hf__claim *claims, size_t count,
                                              hf_lifetime lifetime, int64_t wait_id, int64_t *token,
                                              hf_error *err);
HF_MUST_CHECK hf_status hf__local_drop_holders(hf__local *local, int64_t session_id,
                                               const hf__claim *claims, size_t count,
                                               hf_error *err);

/* HF_COLLISION when the key is recorded under another label. Enters by itself. */
HF_MUST_CHECK hf_status hf__local_check_label(hf__local *local, const hf__claim *claim,
                                              hf_error *err);
void hf__local_known_free(hf__local *local);

/* Brings the table waiters up to date with the wait. position and at_head are a snapshot. */
HF_MUST_CHECK hf_status hf__local_put_wait(hf__local_wait *wait, size_t position, bool at_head,
                                           hf_error *err);
HF_MUST_CHECK hf_status hf__local_drop_wait(hf__local_wait *wait, hf_error *err);

hf_status hf__local_claim_schedule(hf__backend *backend, const char *label, int64_t period_ms,
                                   bool *due, int64_t *wait_ms, hf_error *err); /* enters */

/* ---- upkeep.c: the watcher's thread ---------------------------------------------------------- */

enum { HF__LOCAL_EVENTS = 1024, HF__LOCAL_WAKES = 64 };

typedef struct hf__local_bell {
    pthread_mutex_t mutex;
    pthread_cond_t rung;
    bool woken;
    hf__event *events; /* a ring */
    size_t first;
    size_t count;
    size_t dropped;
    int64_t flush_at; /* a second after the oldest event came */
} hf__local_bell;

void hf__local_watch(hf__backend *backend, int ms);
void hf__local_wake(hf__backend *backend);
void hf__local_note(hf__backend *backend, const hf__event *event);

/* Writes what is buffered. Enters by itself. */
void hf__local_flush(hf__local *local);

/* Deletes what is old or belongs to the dead, at most once an hour in all processes. Enters. */
void hf__local_sweep(hf__local *local);

/* Deletes the records of processes that are gone, and counts these. Between enter and leave. */
HF_MUST_CHECK hf_status hf__local_bury(hf__local *local, int *dead, hf_error *err);

/* ---- list.c, files.c, examine.c ----------------------------------------------------------- */

hf_status hf__local_find_holder(hf__backend *backend, const hf__claim *claim, hf__holder *holder,
                                hf_error *err);
hf_status hf__local_list(hf__backend *backend, struct pg_conn *conn, hf__view_sink *sink,
                         hf_error *err);
hf_status hf__local_list_past(hf__backend *backend, int64_t since_ms, hf__view_sink *sink,
                              hf_error *err);

/* Calls add for every key that somebody has locked by what the kernel says, known or not. Where the
 * kernel does not tell (no /proc, some filesystems) that is nobody. */
typedef hf_status hf__local_locked_fn(void *arg, const hf__claim *claim, hf_error *err);
HF_MUST_CHECK hf_status hf__local_ask_kernel(const hf__local *local, hf__local_locked_fn *add,
                                             void *arg, hf_error *err);

hf_status hf__local_examine(hf__backend *backend, hf_finding_fn *report, void *arg, hf_error *err);

/* ---- transaction.c, connection.c: transactions on FOLDER/data.db ----------------------------- */

typedef struct hf__local_connection hf__local_connection;

extern const hf__attempt_ops hf__local_attempt_ops;

void hf__local_connections_close(hf__local *local); /* those that no transaction uses */

/* ---- upkeep.c: who is who -------------------------------------------------------------------- */

/* A process, as its records name it: a pid alone is soon somebody else's. */
typedef struct hf__local_process {
    int pid;
    int64_t started;   /* clock ticks after boot, from /proc/PID/stat; 0: unknown */
    int64_t pid_space; /* inode of its pid namespace: elsewhere the pid means nothing */
    const char *host;
} hf__local_process;

/* False only when it is known to be gone. */
bool hf__local_is_alive(const hf__local *local, const hf__local_process *process);

/* ---- local.c --------------------------------------------------------------------------------- */

struct hf__local {
    hf__backend head;
    char *folder; /* absolute */
    char *application;
    char host[256];
    hf__local_process self;
    bool keeps_records;

    pthread_mutex_t mutex;   /* for what follows */
    pthread_cond_t released; /* wakes those in await_wake */
    bool interrupted;
    unsigned awaiting;
    uint64_t releases[HF__LOCAL_WAKES];
    hf__local_session *shared_session;
    hf__local_session *sessions;
    hf__local_wait *waits;
    hf__local_connection *idle; /* to data.db, for the next transactions */
    unsigned idle_count;

    hf__local_db db;
    hf__local_known *known; /* under db.mutex */
    hf__local_bell bell;

    /* only the watcher's thread; monotonic */
    int64_t check_at;
    int64_t sweep_at;
};

#endif
