/* Internals of the PostgreSQL backend; nothing outside this folder includes it. */
#ifndef HF_LIB_POSTGRES_POSTGRES_H
#define HF_LIB_POSTGRES_POSTGRES_H

#include <libpq-fe.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/thread.h"
#include "lib/backend/attempt.h"
#include "lib/postgres/sql.h"

/*
 * classid of the companion keys ("HOLD"), in the two-int space so that views can tell them apart.
 */
#define PG_COMPANION_CLASS 1213156420
/*
 * classids of the places in a line, see line.c: one for each number of 16 bits ("HQ" and the
 * number).
 */
#define PG_PLACE_CLASS 1213267968u
#define PG_PLACES 65536u
/* classid of the edges of the wait-for graph ("HOLE"), see deadlock.c. */
#define PG_EDGE_CLASS 1213156421
/* Held shared by every listener besides its companions: free means that nobody listens at all. */
#define PG_ANY_LISTENER 1
#define PG_SQLSTATE_NO_MEMORY "53200"
#define PG_SQLSTATE_LEASE_OVER "HF002" /* by check_lease */
#define PG_SQLSTATE_LEASED "HF003"     /* by refuse_leased */
#define PG_SQLSTATE_READ_ONLY "25006"  /* and of a server that is a standby */

enum {
    PG_TRANSACTION_TIMEOUT_SINCE = 170000,
    PG_TIMEOUTS = 4, /* statement, lock, idle in transaction, transaction */
};

/* How often a question of this name was asked on a session. */
enum { PG_QUESTIONS = 4 };
struct pg_asked {
    char name[24];
    unsigned uses;
};

typedef struct pg_backend pg_backend;

/* How far a server had come: what is behind this has stepped down, or is another one. */
typedef struct pg_seen {
    uint64_t system; /* 0: none was seen yet */
    int64_t timeline;
    int64_t flushed; /* WAL, within the timeline */
} pg_seen;

/* The caller's statements run under the caller's settings, ours under our own. */
typedef enum pg_purpose {
    PG_FOR_LOCKS,
    PG_FOR_TRANSACTIONS,
    PG_FOR_FIRST_LOCK, /* its session is opened by the message that tries the lock: see private.c */
} pg_purpose;

/*
 * Looks after a session while a statement runs that may take any time. If nothing comes for as long
 * as a ping may take, another connection asks whether its backend is at work.
 */
typedef struct pg_vigil {
    int64_t heard; /* when the session last said something, or its backend was last seen at work */
    int64_t asked; /* when the probe was started */
    struct pg_aside *probe;
    bool is_lost; /* nobody answers for it any more */
} pg_vigil;

/* How long a caller waits for an answer of the server; counts from the call. */
typedef struct pg_patience {
    int64_t until;           /* hf__now_ms() clock, or HF__FOREVER */
    bool interruptible;      /* hf_store_interrupt ends it, too */
    const hf_cancel *cancel; /* and this; may be NULL */
    pg_vigil *vigil;         /* and this, once it is lost; may be NULL */
} pg_patience;

/* What a call that is over leaves on the server is waited for so long, then left to an errand. */
enum { PG_BRIEF_MS = 500 };

/* How far a transaction may go beyond its deadline, or its cancel: for the answer that is due, and
 * to find out what became of a COMMIT that was not answered. */
enum { PG_BEYOND_MS = 1000, PG_FIND_OUT_MS = 4000 };

/* Closing a store waits so long for a silent server, not for a ping's deadline. So does the scribe
 * when it connects, because closing waits for the scribe. */
enum { PG_CLOSE_MS = 1500 };

/* But so long for one that says that it is away, as in a restart, if a loss is not written yet. */
enum { PG_CLOSE_LOSS_MS = 5000 };

/* A statement of a caller's on one session: transactions/prepared.c. */
typedef struct pg_known {
    char *sql;
    size_t size;
    unsigned uses;
    unsigned name; /* a number; 0: not prepared */
} pg_known;

enum { PG_KNOWN = 32 };

/*
 * A connection that we own. baton serialises statements on it; whoever has it may use conn.
 * An idle session is looked after by the watcher, a busy one by the deadline of its statement.
 */
typedef struct pg_session {
    hf__session base;
    PGconn *conn;
    hf__baton baton;
    struct pg_session *next;                  /* in pg_backend.sessions */
    unsigned uses[HF__SQL_POSTGRES_PREPARED]; /* a statement is prepared at its third use */
    struct pg_asked asked[PG_QUESTIONS];      /* likewise for questions */
    atomic_llong used_ms;                     /* when it last answered */
    atomic_llong quiet_until; /* the watcher saw it busy: leave it alone till then */
    int64_t answer_due;       /* of a ping, an errand or an abandoned statement; 0: none is owed */
    bool on_errand;           /* what is owed answers an errand */
    hf__buf errands;          /* pg_backend.mutex: SQL to run before anything else, see query.c */
    const pg_patience *patience; /* of who has the baton, or NULL */
    bool impatient;              /* its patience is over, and an answer is still owed */
    int64_t token_epoch;         /* already shifted into place */
    bool lifted;                 /* tokens that came with its opening were too small */
    char goodbye[256];           /* why the server hung up, in its own words */
    char generation[64];         /* tx sessions: changes when the server crashes */
    char backend_pid[16]; /* with it: who runs the transactions; set under pg_backend.mutex */
    char backend_start[32];
    char host[256], address[64], port[16]; /* where the connection leads */
    atomic_llong probed_ms;                /* when a probe last found its backend alive */
    bool is_callers;   /* a session for locks that has the caller's settings by now */
    bool has_timeouts; /* the role, the database or the URL sets some of these */
    char timeouts[PG_TIMEOUTS][16];
    bool checks_client;   /* the server looks whether we are still there */
    bool listens_to_lent; /* results of a lent connection are looked at */
    bool ended_by_lent;   /* one of them was of a command that commits, prepares or begins */
    bool unreplicated;    /* the server has told that it did not wait for its standby */
    bool waiting_session; /* one of the bounded pool */
    bool private_session;
    bool tx_session;
    pg_known known[PG_KNOWN];
    size_t known_count;
    unsigned prepared; /* of those, so many names are in use at the server */
    bool knows_none;   /* preparing failed here once, and is not tried again */
    pg_purpose purpose;
    bool checked_out;
    atomic_bool listens;
    bool crowded;    /* waits and holds at once */
    unsigned pins;   /* under pg_backend.mutex: not to be freed */
    uint64_t serial; /* never given twice, unlike an address */
} pg_session;

struct listener;

/* One request for leases: its number, which the server keeps with its rows, and what came of it. */
struct pg_take {
    int64_t number;
    int64_t term; /* 0: it goes on */
    size_t keys;
};

enum { TENURE_ID_SIZE = 40 };

/* The leases of one length, for the engine a session: see leases/lease.c. */
typedef struct pg_tenure {
    hf__session base;
    char id[TENURE_ID_SIZE];
    int lease_ms;
    atomic_bool has_strays; /* the server may have rows of it that are not held */

    /* pg_backend.mutex */
    struct pg_tenure *next;
    atomic_bool is_new; /* the server has not said yet that it knows it */
    unsigned pins;
    int64_t numbers; /* of takes that were begun */
    struct pg_take *takes;
    size_t count, room;
    int64_t renew_at;

    uint64_t renewed_on; /* the renewer's: the serial of the session */
} pg_tenure;

/* A key that this process released while others listened for it: they come first. */
enum { PG_PASSED = 16 };
struct pg_passed {
    int64_t wake;
    int64_t at_ms;
};

struct pg_backend {
    hf__backend base;
    char **keywords; /* NULL-terminated, for PQconnectdbParams */
    char **values;
    char ***rotated; /* values once for each host, with that host first */
    size_t hosts;
    atomic_uint first_host; /* which of them is tried first */
    char application[64];
    char host[256];
    pid_t pid;
    int ping_interval_ms;
    int ping_deadline_ms;
    int kill_ms;
    int max_waits;
    int max_transactions;
    int quota_wanted; /* options.max_keys */
    bool session_pool;
    hf_records records_wanted;

    /* learned at connect */
    atomic_int server_version;
    atomic_bool pooled;          /* somebody sits between us and the server */
    atomic_int capacity;         /* nominal room of the server's lock table */
    atomic_int schema;           /* installed version, 0 none */
    atomic_bool schema_known;    /* the server has told its version, else it is assumed */
    atomic_bool schema_usable;   /* our role may read and write in it */
    atomic_bool schema_readable; /* it may read at least */
    atomic_bool was_primary;     /* a server that was connected to has been */

    atomic_llong newest_token; /* of all that this process has been given, by whatever server */

    pthread_mutex_t mutex; /* all below */
    pg_seen seen;          /* the furthest */
    hf__cond changed;      /* a wait session came free, a key was released, or an interrupt */
    pg_session *sessions;
    pg_session *shared_session;
    unsigned wait_sessions;
    unsigned tx_sessions;
    pg_session *listening;
    pg_session *writing; /* records and events */
    pg_session *leasing; /* renewals */
    pg_tenure *tenures;
    uint64_t serials;                 /* given to sessions */
    int64_t shared_session_failed_ms; /* when opening the shared session failed last, and how */
    hf_error shared_session_failure;
    struct listener *listeners;
    atomic_bool interrupted;
    int interrupt_fd;       /* readable from then on */
    struct pg_aside *probe; /* the watcher's: looks after a session that is busy */
    uint64_t probed;        /* the serial of that session */
    struct pg_passed passed[PG_PASSED];
    unsigned passes;
    unsigned urgent;                /* waits for a session whose key was released */
    hf__baton shared_session_baton; /* one thread at a time opens the shared session */
    hf__baton listen_baton;
    int wake_fd;

    /* the renewer of leases */
    pthread_t renewer;
    bool renews;                /* it was started and is to be joined */
    bool renewer_idles;         /* there is nothing to renew */
    bool renewing_ends;         /* it has to end */
    pthread_cond_t renewal_due; /* with mutex */
    hf_cancel *renewing_end;    /* ends what it waits for */

    struct pg_events *unwritten; /* events and released records that are to be written */
    struct pg_labels *labels;    /* keys whose label has been confirmed */
};

static inline pg_backend *pg_backend_of(hf__backend *backend)
{
    return (pg_backend *)backend;
}

static inline pg_tenure *pg_tenure_of(hf__session *session)
{
    return (pg_tenure *)session;
}

static inline pg_session *pg_session_of(hf__session *session)
{
    return (pg_session *)session;
}

/* open.c */
/* A backend that knows how to connect and has not done so yet. It is freed by hf__pg_free, or by
 * its close once it has. */
hf_status hf__pg_new(const hf_store_options *options, pg_backend **backend, hf_error *err);
void hf__pg_free(pg_backend *backend);
/* The value of an option; NULL for "". */
const char *hf__pg_option(const PQconninfoOption *options, const char *keyword);
/* Copies text, such as a message of libpq's, with its lines joined by "; ". Returns out. */
const char *hf__pg_one_line(char *out, size_t out_size, const char *text);

/* hosts.c: several hosts in one URL */
/* The store's name for messages, a URL without password. The caller frees it; NULL: no memory. */
char *hf__pg_name(const PQconninfoOption *options);
size_t hf__pg_count_hosts(const PQconninfoOption *options);
bool hf__pg_hosts_open(pg_backend *backend); /* once keywords and values are complete */
void hf__pg_hosts_free(pg_backend *backend);
void hf__pg_words_free(char **words);
/* The values of backend->keywords, with the host that was the primary last in front. */
const char *const *hf__pg_values(const pg_backend *backend);
/* The next connection starts with the host of this one, or with the one after it. conn may be NULL:
 * then nothing is known. */
void hf__pg_prefer_host(pg_backend *backend, PGconn *conn, bool usable);
/*
 * libpq goes on to the next host where one cannot be reached, and stops at one that accepts the
 * connection and then fails: a proxy without a server, a server that starts up. Did it stop before
 * the last? Then the next connection starts behind it.
 */
bool hf__pg_skip_host(pg_backend *backend, PGconn *conn);

/* connect.c */
/* The statement that gives a new session its settings; false: no memory. The caller frees sql. */
bool hf__pg_connect_sql(const pg_session *session, bool check_client, hf__buf *sql);
/*
 * Gives a new connection its settings, learns what the server is, and refuses it where it cannot
 * hold locks. Mutex held.
 */
hf_status hf__pg_check_server(pg_session *session, hf_error *err);
/* Why there is no connection, as a failure with a hint. */
hf_status hf__pg_cannot_connect(const pg_backend *backend, const PGconn *conn, hf_error *err);

/* session.c */
/*
 * Connects, prepares the session for its purpose and adds it to backend->sessions, where the
 * watcher looks after it. It is pinned; its baton is free. HF_UNREACHABLE when nobody answers,
 * HF_CONFIG when the server is not one that can hold locks.
 */
hf_status hf__pg_session_open(pg_backend *backend, pg_purpose purpose, pg_session **session,
                              hf_error *err);
/* The same within the caller's patience. */
hf_status hf__pg_session_open_for(pg_backend *backend, pg_purpose purpose,
                                  const pg_patience *patience, pg_session **session, hf_error *err);
/* Connects and no more: no settings, no check of the server, in no list. */
hf_status hf__pg_session_connect(pg_backend *backend, pg_purpose purpose,
                                 const pg_patience *patience, pg_session **session, hf_error *err);
/* Disconnects and frees. The session must be in no list any more. */
void hf__pg_session_free(pg_session *session);
/*
 * The session that carries every uncontended lock, opened if there is none or if it is lost.
 * Pinned: the caller takes its baton before each use and ends with hf__pg_unpin.
 */
hf_status hf__pg_shared_session(pg_backend *backend, pg_session **session, hf_error *err);
hf_status hf__pg_shared_session_for(pg_backend *backend, const pg_patience *patience,
                                    pg_session **session, hf_error *err);
/* Takes one pin away; frees the session if it is of no use any more. Call it without its baton. */
void hf__pg_unpin(pg_session *session);
/* The same for a session that was opened to be used once, which frees it. */
void hf__pg_discard(pg_session *session);
/* Reads what the server has sent: the answer to a ping, notifications, a goodbye. Mutex held. */
void hf__pg_session_readable(pg_session *session);
/* Sends an empty query and sets answer_due; does not wait for the answer. Mutex held. */
void hf__pg_session_ping(pg_session *session);
/* Marks the session lost; what says why (NULL: what the server or libpq said). Mutex held. */
void hf__pg_session_fail(pg_session *session, const char *what);
/* The backend's leave_session. */
void hf__pg_leave_session(hf__session *session, unsigned keys);
/* Enters the session in the table of sessions, which also tells the epoch of its tokens. Mutex
 * held. HF_NO_SCHEMA when the schema is newer than this program. */
hf_status hf__pg_session_register(pg_session *session, hf_error *err);
typedef struct pg_opening {
    char pid[16], version[16];
    const char *params[4];
} pg_opening;
/* The parameters of the statement open_session, for those who send it as part of a message. params
 * point into *opening and *backend. */
void hf__pg_opening(const pg_backend *backend, pg_opening *opening);
/* Takes in the answer of open_session, as hf__pg_session_register does. Mutex held. */
hf_status hf__pg_opened(pg_session *session, const PGresult *opened, hf_error *err);
/* The token of the number that the sequence gave. */
int64_t hf__pg_token(pg_session *session, const PGresult *result, int column);
/* Returns HF_NO_SCHEMA and says that the schema has a version that this program does not know. */
hf_status hf__pg_refuse_newer(const pg_backend *backend, int version, hf_error *err);

/* patience.c. NULL stands for the patience of those who wait as long as a statement may take. */
pg_patience hf__pg_patience(const pg_backend *backend, const hf__request *request);
/* HF_OK while it lasts, else HF_INTERRUPTED or HF_UNREACHABLE. */
hf_status hf__pg_patience_check(const pg_backend *backend, const pg_patience *patience,
                                hf_error *err);
hf_status hf__pg_take_baton(pg_backend *backend, hf__baton *baton, const pg_patience *patience,
                            hf_error *err);
/* The session's baton; statements on it then end with the caller's patience. */
hf_status hf__pg_session_lock(pg_session *session, const pg_patience *patience, hf_error *err);
void hf__pg_session_unlock(pg_session *session);
/* PQconnectdb; *conn is NULL when patience ended first. */
hf_status hf__pg_connect(pg_backend *backend, const pg_patience *patience, PGconn **conn,
                         hf_error *err);
/*
 * For the watcher, again and again: is the backend of a session that is busy alive? A connection to
 * the same server asks. False: not known yet, or not.
 */
bool hf__pg_probe(pg_backend *backend, const pg_session *busy);
void hf__pg_forget_probe(pg_backend *backend);
/* The next moment to look, and the look: false once nobody answers for the session. */
int64_t hf__pg_vigil_next(const pg_session *session, const pg_vigil *vigil);
bool hf__pg_vigil_look(const pg_session *session, pg_vigil *vigil);
void hf__pg_vigil_end(pg_vigil *vigil);
/* PQcancel, which it takes over; waits for it no longer than until. */
void hf__pg_cancel_aside(PGcancel *cancel, int64_t until);

/*
 * query.c: the one way to talk to a server; the caller has session->baton. A statement that
 * fails leaves its SQLSTATE in err. HF_UNREACHABLE: the connection broke, or the deadline passed;
 * the session is lost then, and so is what it held. Or the caller's patience is over, as with
 * HF_INTERRUPTED: the session lives, and session->answer_due tells of the answer that it owes.
 * *result is the caller's, to PQclear; result may be NULL.
 */
static inline const char *pg_sql(const hf__sql *statement)
{
    return statement->text[HF__POSTGRES];
}
/* Runs one of our own statements. It is prepared at its third use, where the session allows it. */
hf_status hf__pg_run(pg_session *session, const hf__sql *statement, int count,
                     const char *const *values, PGresult **result, hf_error *err);
/* The same with a key for $1 and, unless it is NULL, a companion for $2: binary, unlike others. */
hf_status hf__pg_run_key(pg_session *session, const hf__sql *statement, int64_t key,
                         const int32_t *companion, PGresult **result, hf_error *err);
/* The same with the keys of hf__pg_binary_keys for $1, and shared for $2. */
hf_status hf__pg_run_keys(pg_session *session, const hf__sql *statement, const hf__buf *keys,
                          bool shared, PGresult **result, hf_error *err);
/* Runs any one statement, unprepared, with text values. The deadline is that of a ping. */
hf_status hf__pg_query(pg_session *session, const char *sql, int count, const char *const *values,
                       PGresult **result, hf_error *err);
/* The same with a deadline of its own. */
hf_status hf__pg_query_until(pg_session *session, const char *sql, int count,
                             const char *const *values, int64_t deadline, PGresult **result,
                             hf_error *err);
/* Several statements in one message; *result is the last one that returned rows. */
hf_status hf__pg_script(pg_session *session, const char *sql, int64_t deadline, PGresult **result,
                        hf_error *err);
/* Prepares one of our statements now, unless it is prepared on this session already. */
hf_status hf__pg_prepare(pg_session *session, const hf__sql *statement, hf_error *err);
/* The backend's ask: on the shared session, whose baton it takes. */
hf_status hf__pg_answer(hf__backend *backend, hf__question *question, hf_error *err);
/* Takes in what a ping left to be answered; HF_UNREACHABLE when the session has gone. */
hf_status hf__pg_ready(pg_session *session, hf_error *err);
/*
 * SQL to be run on the session before anything else is, by the next who uses it or by the watcher.
 * Nobody waits for it; if it fails, the session is lost.
 */
void hf__pg_errand(pg_session *session, const char *sql); /* pg_backend.mutex held */
bool hf__pg_send_errands(pg_session *session); /* with its baton; false: there were none */
/* Did the statement fail? NULL, which libpq gives at the end of the results, counts as failed. */
bool hf__pg_is_error(const PGresult *result);
/* Sends all that libpq has buffered; false: the connection broke, or the deadline passed. */
bool hf__pg_flush(pg_session *session, int64_t deadline);
/* True once a result (or the end of them) can be taken without blocking. */
bool hf__pg_await_result(pg_session *session, int64_t deadline, bool *timed_out);
/* The next one, or NULL after the last; remembers why the server hung up, should it say so. */
PGresult *hf__pg_next_result(pg_session *session);
/* Fills err from a failed result. HF_QUOTA, HF_CONFIG and HF_DEADLOCK where the SQLSTATE means
 * that, else HF_DATABASE. */
hf_status hf__pg_fail_result(const PGresult *result, hf_error *err);
/* One value of a result. NULL is read as 0, false and "". The text lives as long as the result. */
int64_t hf__pg_int(const PGresult *result, int row, int column);
bool hf__pg_bool(const PGresult *result, int row, int column);
const char *hf__pg_text(const PGresult *result, int row, int column);
/* One statement on the shared session, whose baton it takes, for everything that is not in the hot
 * path. */
hf_status hf__pg_ask(pg_backend *backend, const char *sql, int count, const char *const *values,
                     PGresult **result, hf_error *err);
hf_status hf__pg_ask_for(pg_backend *backend, const pg_patience *patience, const char *sql,
                         int count, const char *const *values, PGresult **result, hf_error *err);

/* Rows for the caller. Takes the result over, also when it fails. */
hf_status hf__pg_rows(PGresult *result, hf_rows **rows, hf_error *err);

/* params.c: claims as array parameters */
typedef struct pg_arrays {
    hf__buf keys, spaces, companions, channels, labels, derivations, terms,
        slots; /* only buffers */
} pg_arrays;
/*
 * These fill keys and spaces; with companions and channels; with labels and derivations; with
 * companions, channels, terms and slots. The rest stays empty. *arrays is all zero before.
 * hf__pg_arrays_free frees it, also after a failure, which can only be want of memory.
 */
hf_status hf__pg_key_arrays(pg_arrays *arrays, const hf__claim *claims, size_t count,
                            hf_error *err);
hf_status hf__pg_wake_arrays(pg_arrays *arrays, const hf__claim *claims, size_t count,
                             hf_error *err);
hf_status hf__pg_label_arrays(pg_arrays *arrays, const hf__claim *claims, size_t count,
                              hf_error *err);
hf_status hf__pg_lease_arrays(pg_arrays *arrays, const hf__claim *claims, size_t count,
                              hf_error *err);
/* Appends one element to an array in text form; the caller appends the closing brace. */
void hf__pg_array_int(hf__buf *buf, int64_t value);
/* Appends the keys as a bigint[] in binary form, whole. */
void hf__pg_binary_keys(hf__buf *buf, const hf__claim *claims, size_t count);
/* Writes the number in decimal; returns a pointer to the NUL at its end. */
char *hf__pg_format(char out[24], int64_t value);
/* Frees the buffers, not *arrays. */
void hf__pg_arrays_free(pg_arrays *arrays);
/* Appends one element, quoted; the text may hold any byte but NUL. */
void hf__pg_array_text(hf__buf *buf, const void *text, size_t size);
/* The objid of the companion key that listeners for this wake hold shared. */
int32_t hf__pg_companion(int64_t wake);
/* The name of the channel on which releases of this wake are notified. */
void hf__pg_channel(char out[24], int64_t wake);

/* claims.c */
/* The backend's try_claims, release_claims and renew_claims. They take the session's baton. */
hf_status hf__pg_try_claims(hf__backend *backend, hf__request *request, hf_error *err);
hf_status hf__pg_try_now(pg_backend *backend, hf__request *request, const pg_patience *patience,
                         hf_error *err); /* on the shared session */
hf_status hf__pg_release_claims(hf__session *session, const hf__claim *claims, size_t count,
                                bool brief, hf_error *err);
hf_status hf__pg_renew_claims(hf__session *session, hf__request *request, hf_error *err);
/* The next token of the sequence. Mutex held. */
hf_status hf__pg_next_token(pg_session *session, int64_t *token, hf_error *err);
/* The backend's confirm_claims: is the session that holds them alive? */
hf_status hf__pg_confirm_claims(hf__session *session, const hf__claim *claims, size_t count,
                                hf_error *err);
/* Unlocks whichever of these keys a failed statement may have locked. If that fails too, the
 * session is lost: better that than a key that stays locked and nobody knows of. Mutex held. */
void hf__pg_undo(pg_session *session, const hf__claim *claims, size_t count);
/*
 * After an error that leaves open which of the keys are locked: unlocks those that are, and returns
 * how many. own of the session's holds stand for these claims. Where a key may be another holder's
 * as well, the session is given up instead.
 */
size_t hf__pg_clean_up(pg_session *session, const hf__claim *claims, size_t count, size_t own);
/* Registers the session if the schema was installed only after it was opened. Mutex held. */
hf_status hf__pg_start_recording(pg_session *session, hf_error *err);
/* HF_CONFIG behind a pooler, where session locks would leak; HF_OK if the user vouches for it. */
hf_status hf__pg_sessions_allowed(const pg_backend *backend, hf_error *err);

/* leases/lease.c */
/* Does the store have what leases need, so that a key may be leased to somebody? */
bool hf__pg_may_be_leased(const pg_backend *backend);
/* Behind a pooler that gives the server away after each transaction? */
bool hf__pg_is_transaction_pooled(const pg_backend *backend);
hf_status hf__pg_try_leases(pg_backend *backend, hf__request *request, const pg_patience *patience,
                            hf_error *err);
/* Where nobody can listen. */
hf_status hf__pg_wait_leases(pg_backend *backend, hf__request *request, const pg_patience *patience,
                             hf_error *err);
/* Sleeps; HF_INTERRUPTED when it is ended. */
hf_status hf__pg_pause(const pg_backend *backend, const hf_cancel *cancel, int64_t until,
                       hf_error *err);
hf_status hf__pg_release_leases(hf__session *tenure, const hf__claim *claims, size_t count,
                                bool brief, hf_error *err);
void hf__pg_leave_tenure(hf__session *tenure, unsigned keys);
void hf__pg_unpin_tenure(pg_tenure *tenure);
/*
 * The request's advisory locks have just been got, as taken says if records are kept. HF_OK if no
 * lease stands against them. HF_NOT_ACQUIRED: the caller has to give them all back. Mutex held.
 */
hf_status hf__pg_refuse_leased(pg_session *session, hf__request *request, const PGresult *taken,
                               bool records, hf_error *err);
/* Fills *holder if somebody holds a lease that is in the way of the claim. */
hf_status hf__pg_find_lease(pg_backend *backend, const hf__claim *claim, hf__holder *holder,
                            hf_error *err);
/* When the watcher has to tell of a loss, by hf__now_ms(), unless a renewal comes first. */
int64_t hf__pg_next_lease_loss(pg_backend *backend);
/* How long before its end a lease counts as lost. */
int hf__pg_lease_margin(const pg_tenure *tenure);
/* The server has confirmed that so much is left of it, to a statement sent at hf__boot_ms(). */
void hf__pg_put_off_loss(pg_tenure *tenure, int64_t sent, int64_t left_ms);
/* A session for leases that holds nothing, pinned. */
hf_status hf__pg_leasing_session(pg_backend *backend, const pg_patience *patience,
                                 pg_session **session, hf_error *err);
/* The same, or the shared session if that holds nothing; with its baton, until it is given back. */
hf_status hf__pg_lease_checkout(pg_backend *backend, const pg_patience *patience,
                                pg_session **session, hf_error *err);
void hf__pg_lease_checkin(pg_session *session);
void hf__pg_free_tenure(pg_tenure *tenure);

/* leases/renew.c */
/* A take on the session was given up, and may be granted yet: the session deletes it then. */
void hf__pg_sweep_later(pg_session *session, pg_tenure *tenure);
/* At close: deletes what is left of them at the server, and frees them. */
void hf__pg_end_tenures(pg_backend *backend, const pg_patience *patience);
hf_status hf__pg_start_renewing(pg_backend *backend, hf_error *err);
void hf__pg_renew_later(pg_tenure *tenure); /* it holds something new */
void hf__pg_stop_renewing(pg_backend *backend);

/* labels.c: which label stands for a key */
/*
 * Writes down the labels that are not known to stand for their keys yet. HF_COLLISION when a key is
 * known under another label. Does nothing where no records are kept. Mutex held.
 */
hf_status hf__pg_confirm_labels(pg_session *session, const hf__claim *claims, size_t count,
                                hf_error *err);
/* The same whether records are kept or not. */
hf_status hf__pg_note_labels(pg_session *session, const hf__claim *claims, size_t count,
                             hf_error *err);
/* A small cache in this process saves asking again; any thread, with no mutex of ours. */
bool hf__pg_label_is_confirmed(pg_backend *backend, const hf__claim *claim);
void hf__pg_label_confirm(pg_backend *backend, const hf__claim *claim);
/* How many ms the statement knows_label may wait for another session, as text. */
void hf__pg_label_patience(const pg_backend *backend, char out[16]);
/* The cache; NULL: no memory. The backend owns it. */
struct pg_labels *hf__pg_labels_new(void);
void hf__pg_labels_free(struct pg_labels *labels);

/* private.c: on a session of its own, or beside another lock, all in one message. HF_OK with *done
 * false: it cannot be done so, and nothing was. */
hf_status hf__pg_try_in_one(pg_backend *backend, hf__request *request, const pg_patience *patience,
                            bool *done, hf_error *err);
/* The same for a label that this process has not seen, on a session that holds nothing. It has the
 * caller's patience, and is lost if that is over. Mutex held. */
hf_status hf__pg_try_unknown(pg_session *session, hf__request *request, bool *done, hf_error *err);

/* wait.c */
typedef enum pg_hurry {
    PG_IF_IDLE,  /* a session that is free now, or none */
    PG_IN_ORDER, /* wait for one */
    PG_URGENT,   /* likewise, before all others */
} pg_hurry;
/* The backend's wait_claims. */
hf_status hf__pg_wait_claims(hf__backend *backend, hf__request *request, hf_error *err);
/*
 * A session to wait and hold on: a new one for a private lock, else one of the pool, for which it
 * waits as its hurry is. The caller has its baton and a pin; hf__pg_checkin gives both back.
 * HF_NOT_ACQUIRED when no session came free, HF_INTERRUPTED after hf__pg_interrupt.
 */
hf_status hf__pg_checkout(pg_backend *backend, bool private_session, pg_hurry hurry,
                          const pg_patience *patience, pg_session **session, hf_error *err);
/* The same for a private lock whose session is registered by the message that tries the lock. */
hf_status hf__pg_checkout_first(pg_backend *backend, const pg_patience *patience,
                                pg_session **session, hf_error *err);
/* The same for a session that holds a lock already: HF_LOST when it is gone. */
hf_status hf__pg_checkout_held(hf__session *held, const pg_patience *patience, pg_session **session,
                               hf_error *err);
/* Gives the baton back, puts the session back where it came from and wakes one who waits for it. */
void hf__pg_checkin(pg_session *session);
/* The backend's interrupt. */
void hf__pg_interrupt(hf__backend *backend, bool all);
/* Others listen for the key that was just released: for a moment this process does not take it. */
void hf__pg_pass(pg_backend *backend, int64_t wake);
bool hf__pg_has_passed(pg_backend *backend, const hf__request *request);

/* listen.c */
/* The backend's listen, await_wake and unlisten. They run on the one connection that listens. */
hf_status hf__pg_listen(hf__backend *backend, int64_t wake, const hf__request *request,
                        uint64_t *ticket, hf_error *err);
hf_status hf__pg_listen_for(pg_backend *backend, int64_t wake, const pg_patience *patience,
                            uint64_t *ticket, hf_error *err);
hf_status hf__pg_await_wake(hf__backend *backend, int64_t wake, const hf_cancel *cancel,
                            uint64_t *ticket, int ms, hf_error *err);
void hf__pg_unlisten(hf__backend *backend, int64_t wake);
/* A notification came: wakes who listens for it. Ignores channels that are not ours. */
void hf__pg_notified(pg_backend *backend, const char *channel);
/* Wakes everybody who listens: notifications may have been missed. */
void hf__pg_listeners_wake_all(pg_backend *backend);
/*
 * A statement on the session that listens. *serial: the one that what was said before is known to;
 * 0: none. Where another session listens by now, that is gone, *serial becomes 0, and the statement
 * is not run.
 */
hf_status hf__pg_on_listening(pg_backend *backend, const pg_patience *patience, uint64_t *serial,
                              const char *sql, int count, const char *const *values,
                              PGresult **result, hf_error *err);
/* An errand for it, where it is still the session of that serial. */
void hf__pg_errand_on_listening(pg_backend *backend, uint64_t serial, const char *sql);
/* Record who waits, for the views, and delete that again. Where it fails, the view lacks it.
 * *serial: of the session that says so; 0: none. */
void hf__pg_record_waiter(pg_backend *backend, const hf__claim *claim, int64_t waited_ms,
                          const pg_patience *patience, uint64_t *serial);
void hf__pg_forget_waiter(pg_backend *backend, const hf__claim *claim, uint64_t serial);

/* line.c: the line of long waits for a key, over all processes. Starts as {0}. */
typedef struct pg_place {
    uint64_t serial; /* of the session that holds the place; 0: there is none */
    int64_t wake;
    int number, ahead; /* places from ahead to number - 1 may be taken */
    int64_t moved_ms;  /* when the line last moved */
} pg_place;
/* Takes the last place, or keeps the one that it has. *first: nobody is ahead. */
hf_status hf__pg_line_up(pg_backend *backend, pg_place *place, int64_t wake,
                         const pg_patience *patience, bool *first, hf_error *err);
void hf__pg_line_leave(pg_backend *backend, pg_place *place);

/* deadlock.c */
/* Show all processes that the thread behind the request waits for a key while it holds others, and
 * take that back. *serial: of the session that says so. */
void hf__pg_publish_wait(pg_backend *backend, const hf__request *request, const hf__claim *wanted,
                         const pg_patience *patience, uint64_t *serial);
void hf__pg_retract_wait(pg_backend *backend, const hf__request *request, const hf__claim *wanted,
                         uint64_t serial);
/* Does a chain of such waits lead back to a key that the request's own thread holds? False also
 * when the server could not be asked. */
bool hf__pg_in_cycle(pg_backend *backend, const hf__request *request, const hf__claim *wanted,
                     const pg_patience *patience);

/* watch.c: the backend's watch and wake */
void hf__pg_watch(hf__backend *backend, int ms);
void hf__pg_wake(hf__backend *backend);

/* records.c */
/* The buffer of events that are to be written; NULL: no memory. The backend owns it. */
struct pg_events *hf__pg_events_new(void);
void hf__pg_events_free(struct pg_events *unwritten);
/* The backend's note, record and flush. */
void hf__pg_note(hf__backend *backend, const hf__event *event);
bool hf__pg_record(hf__backend *backend, const hf__record *held, size_t count);
void hf__pg_flush_events(hf__backend *backend);
/* Writes all that is buffered, before the backend closes. What cannot be written is dropped. True:
 * the server has answered. */
bool hf__pg_flush_at_close(pg_backend *backend);

/* list.c */
/* The backend's find_holder. */
hf_status hf__pg_find_holder(hf__backend *backend, const hf__claim *claim, hf__holder *holder,
                             hf_error *err);
/* pg_locks shows both halves of a key unsigned; objsubid tells the two key spaces apart. */
typedef struct pg_lock_tag {
    char classid[16], objid[16], objsubid[4];
} pg_lock_tag;
/* How pg_locks shows the claim's key, as text parameters. */
pg_lock_tag hf__pg_lock_tag(const hf__claim *claim);
/* Fills *holder from the first row of find_holder, or with recorded of find_holder_recorded. */
void hf__pg_read_holder(const PGresult *result, bool recorded, hf__holder *holder);
/* The backend's probe_claims, is_contended and list. */
hf_status hf__pg_probe_claims(hf__backend *base, const hf__request *request, bool held,
                              size_t *first, hf_error *err);
hf_status hf__pg_is_contended(hf__backend *backend, const hf__claim *claim, bool *contended,
                              hf_error *err);
hf_status hf__pg_list(hf__backend *backend, struct pg_conn *conn, hf__view_sink *sink,
                      hf_error *err);

/* list.c: what was held; the backend's list_past. HF_NO_SCHEMA where no records are kept. */
hf_status hf__pg_list_past(hf__backend *backend, int64_t since_ms, hf__view_sink *sink,
                           hf_error *err);

/* schema.c */
/* The backend's init and claim_schedule. */
hf_status hf__pg_init(hf__backend *backend, int *from, int *to, hf_error *err);
hf_status hf__pg_claim_schedule(hf__backend *backend, const char *label, int64_t period_ms,
                                bool *due, int64_t *wait_ms, hf_error *err);
/* HF_OK if records are kept; else the failure, which begins with what and says what is amiss with
 * the schema. */
hf_status hf__pg_require_schema(const pg_backend *backend, const char *what, hf_error *err);

/* transactions/command.c: what a statement does to the transaction and the session it runs in. */
typedef enum pg_command {
    PG_COMMAND_PLAIN,    /* nothing */
    PG_COMMAND_ALTERS,   /* may leave something behind in the session */
    PG_COMMAND_ROLLS_TO, /* ROLLBACK TO a savepoint */
    PG_COMMAND_ENDS,     /* begins, ends or prepares a transaction */
    PG_COMMAND_COPIES,   /* COPY */
} pg_command;
pg_command hf__pg_command(const char *sql);
/*
 * Where the text has this part, in any case, or NULL. The part has one of "_&m", for which it
 * looks: strcasestr takes long for the parameters of many rows.
 */
const char *hf__pg_mention(const char *sql, const char *part);

/* transactions/prepared.c: the session's statements go by their text again. */
void hf__pg_known_forget(pg_session *session);

/* transactions/: transaction.c, outcome.c */
extern const hf__attempt_ops hf__pg_attempt_ops;

typedef struct pg_queued {
    struct pg_queued *next;
    char *sql;
    size_t count;
    hf_value *values; /* with their data behind them, in the same allocation */
} pg_queued;

typedef struct pg_attempt {
    hf__attempt base;
    pg_session *session; /* checked out, with its baton; NULL after a break */
    pg_queued *first, *last;
    bool open; /* the server has answered the opening: labels held, transaction begun */
    bool commit_sent;
    bool committed;
    bool interrupted; /* while it waited for the labels */
    bool lent;        /* the callback has had the connection */
    bool mutes;       /* the callback may have turned the server's warnings off */
    bool altered;     /* the callback may have left something behind in the session */
    bool failed;
    hf_error failure; /* of the first statement that failed */
    hf__attempt_fault failure_fault;
    bool marked;     /* the transaction writes a marker row */
    char marker[40]; /* its UUID */
    char xid[24];
    char backend_pid[16];
    char backend_start[32]; /* with backend_pid it names the backend for good; "" unknown */
    char generation[64];    /* of the server's crash counter, "" unknown */
} pg_attempt;

/* outcome.c: what became of a transaction whose connection broke; see attempt.h. Takes no mutex of
 * the attempt's: its session is gone. */
hf__attempt_outcome hf__pg_attempt_outcome(hf__attempt *attempt, const hf__attempt_plan *plan,
                                           hf_error *err);
/* Ends the server process of one that has no session any more and has not sent COMMIT: it might
 * keep the labels. Within the moment that a call has beyond its time. */
void hf__pg_attempt_end_backend(const pg_attempt *attempt);

/*
 * transactions/pool.c: a session for one transaction. If all are in use it waits until the
 * deadline, unless the transaction is nested. On success the caller has the session's baton, so
 * that the watcher leaves it alone, and gives it back with hf__pg_checkin.
 */
hf_status hf__pg_tx_checkout(pg_backend *backend, const hf__attempt_plan *plan,
                             pg_session **session, hf_error *err);
/* The same on the session plan->session, which holds a lock: HF_LOST when it is gone. */
hf_status hf__pg_tx_checkout_held(const hf__attempt_plan *plan, pg_session **session,
                                  hf_error *err);
/* Keeps the answer of tx_generation: which run of the server this is, and which backend. */
void hf__pg_keep_generation(pg_session *session, const PGresult *result);
/* What is prepared on each session for transactions. */
enum { PG_TX_PREPARED = 3 };
const hf__sql *hf__pg_tx_prepared(const pg_backend *backend, size_t index);
/* The one that keeps a label's lock, if it is not leased. */
const hf__sql *hf__pg_tx_keep(const pg_backend *backend);
/* May our statements be prepared on its sessions? Not behind a pooler of transactions. */
bool hf__pg_tx_prepares(const pg_backend *backend);

/* examine/examine.c: the backend's examine */
hf_status hf__pg_examine(hf__backend *backend, hf_finding_fn *report, void *arg, hf_error *err);

#endif
