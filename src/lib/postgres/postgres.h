/* Internals of the PostgreSQL backend; nothing outside this folder includes it. */
#ifndef HF_STORE_POSTGRES_PG_H
#define HF_STORE_POSTGRES_PG_H

#include <libpq-fe.h>
#include <sys/types.h>

#include "base/buf.h"
#include "lib/backend/attempt.h"
#include "lib/postgres/sql.h"

/*
 * classid of the companion keys ("HOLD"), in the two-int space so that views can tell them apart.
 */
#define PG_COMPANION_CLASS 1213156420
/* classid of the edges of the wait-for graph ("HOLE"), see deadlock.c. */
#define PG_EDGE_CLASS 1213156421
/* Held shared by every listener besides its companions: free means that nobody listens at all. */
#define PG_ANY_LISTENER 1
#define PG_SQLSTATE_NO_MEMORY "53200"

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

/* The caller's statements run under the caller's settings, ours under our own. */
typedef enum pg_purpose {
    PG_FOR_LOCKS,
    PG_FOR_TRANSACTIONS,
    PG_FOR_FIRST_LOCK, /* its session is opened by the message that tries the lock: see private.c */
} pg_purpose;

/*
 * A connection that we own. mutex serialises statements on it; whoever holds it may use conn.
 * An idle session is looked after by the watcher, a busy one by the deadline of its statement.
 */
typedef struct pg_session {
    hf__session base;
    PGconn *conn;
    pthread_mutex_t mutex;
    struct pg_session *next;                  /* in pg_backend.sessions */
    unsigned uses[HF__SQL_POSTGRES_PREPARED]; /* a statement is prepared at its third use */
    struct pg_asked asked[PG_QUESTIONS];      /* likewise for questions */
    atomic_llong used_ms;                     /* when it last answered */
    atomic_llong quiet_until; /* the watcher saw it busy: leave it alone till then */
    int64_t ping_deadline;    /* 0: no ping under way */
    int64_t token_epoch;      /* already shifted into place */
    char goodbye[256];        /* why the server hung up, in its own words */
    char generation[64];      /* tx sessions: changes when the server crashes */
    char backend_pid[16];     /* with it: who runs the transactions */
    char backend_start[32];
    bool is_callers;   /* a session for locks that has the caller's settings by now */
    bool has_timeouts; /* the role, the database or the URL sets some of these */
    char timeouts[PG_TIMEOUTS][16];
    bool checks_client;   /* the server looks whether we are still there */
    bool unreplicated;    /* the server has told that it did not wait for its standby */
    bool waiting_session; /* one of the bounded pool */
    bool private_session;
    bool tx_session;
    pg_purpose purpose;
    bool checked_out;
    atomic_bool listens;
    bool crowded;    /* waits and holds at once */
    unsigned pins;   /* under pg_backend.mutex: not to be freed */
    uint64_t serial; /* never given twice, unlike an address */
} pg_session;

struct listener;

struct pg_backend {
    hf__backend base;
    char **keywords; /* NULL-terminated, for PQconnectdbParams */
    char **values;
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
    atomic_bool pooled;  /* somebody sits between us and the server */
    atomic_int capacity; /* nominal room of the server's lock table */
    atomic_int schema;   /* installed version, 0 none */
    atomic_bool schema_usable;

    pthread_mutex_t mutex;  /* all below */
    pthread_cond_t changed; /* a wait session came free, a key was released, or an interrupt */
    pg_session *sessions;
    pg_session *shared_session;
    unsigned wait_sessions;
    unsigned tx_sessions;
    pg_session *listening;
    pg_session *writing;              /* records and events */
    uint64_t serials;                 /* given to sessions */
    int64_t shared_session_failed_ms; /* when opening the shared session failed last, and how */
    hf_error shared_session_failure;
    struct listener *listeners;
    bool interrupted;
    pthread_mutex_t shared_session_mutex; /* one thread at a time opens the shared session */
    pthread_mutex_t listen_mutex;
    int wake_fd;

    struct pg_events *unwritten; /* events and released records that are to be written */
    struct pg_labels *labels;    /* keys whose label has been confirmed */
};

static inline pg_backend *pg_backend_of(hf__backend *backend)
{
    return (pg_backend *)backend;
}

static inline pg_session *pg_session_of(hf__session *session)
{
    return (pg_session *)session;
}

/* open.c */
char *hf__pg_name(const PQconninfoOption *options); /* malloc'd, no password */
const char *hf__pg_one_line(char *out, size_t out_size, const char *text);

/* session.c */
hf_status hf__pg_session_open(pg_backend *backend, pg_purpose purpose, pg_session **session,
                              hf_error *err);
void hf__pg_session_free(pg_session *session); /* not in any list any more */
hf_status hf__pg_shared_session(pg_backend *backend, pg_session **session,
                                hf_error *err); /* pinned */
void hf__pg_unpin(pg_session *session);
void hf__pg_session_readable(pg_session *session); /* mutex held: takes in what the server sent */
void hf__pg_session_ping(pg_session *session);     /* mutex held */
void hf__pg_session_fail(pg_session *session, const char *what); /* mutex held: marks it lost */
void hf__pg_leave_session(hf__session *session, unsigned keys);
hf_status hf__pg_session_register(pg_session *session, hf_error *err);
typedef struct pg_opening {
    char pid[16], version[16];
    const char *params[4];
} pg_opening;
void hf__pg_opening(const pg_backend *backend, pg_opening *opening); /* of open_session */
hf_status hf__pg_opened(pg_session *session, const PGresult *opened, hf_error *err);
/* The statement that gives a new session its settings; false: no memory. The caller frees sql. */
bool hf__pg_connect_sql(const pg_session *session, bool check_client, hf__buf *sql);
hf_status hf__pg_refuse_newer(const pg_backend *backend, int version, hf_error *err);

/* query.c: the one way to talk to a server; session->mutex is held by the caller */
static inline const char *pg_sql(const hf__sql *statement)
{
    return statement->text[HF__POSTGRES];
}
/* One of the statements that are prepared. */
hf_status hf__pg_run(pg_session *session, const hf__sql *statement, int count,
                     const char *const *values, PGresult **result, hf_error *err);
/* Keys as one binary array for $1, and $2 shared. */
hf_status hf__pg_run_keys(pg_session *session, const hf__sql *statement, const hf__buf *keys,
                          bool shared, PGresult **result, hf_error *err);
hf_status hf__pg_query(pg_session *session, const char *sql, int count, const char *const *values,
                       PGresult **result, hf_error *err);
/* The same with a deadline of its own. */
hf_status hf__pg_query_until(pg_session *session, const char *sql, int count,
                             const char *const *values, int64_t deadline, PGresult **result,
                             hf_error *err);
/* Several statements in one message; *result is the last one that returned rows. */
hf_status hf__pg_script(pg_session *session, const char *sql, int64_t deadline, PGresult **result,
                        hf_error *err);
hf_status hf__pg_prepare(pg_session *session, const hf__sql *statement, hf_error *err);
/* The backend's ask: on the shared session. */
hf_status hf__pg_answer(hf__backend *backend, hf__question *question, hf_error *err);
/* Takes in what a ping left to be answered; HF_LOST or HF_UNREACHABLE when the session has gone. */
hf_status hf__pg_ready(pg_session *session, hf_error *err);
bool hf__pg_is_error(const PGresult *result);
bool hf__pg_flush(pg_session *session, int64_t deadline);
/* True once a result (or the end of them) can be taken without blocking. */
bool hf__pg_await_result(pg_session *session, int64_t deadline, bool *timed_out);
/* The next one; remembers why the server hung up, should it say so. */
PGresult *hf__pg_next_result(pg_session *session);
hf_status hf__pg_fail_result(const PGresult *result, hf_error *err);
int64_t hf__pg_int(const PGresult *result, int row, int column);
bool hf__pg_bool(const PGresult *result, int row, int column);
const char *hf__pg_text(const PGresult *result, int row, int column); /* "" for NULL */
/* One statement on a pinned shared session, for everything that is not in the hot path. */
hf_status hf__pg_ask(pg_backend *backend, const char *sql, int count, const char *const *values,
                     PGresult **result, hf_error *err);

/* Rows for the caller. Takes the result over, also when it fails. */
hf_status hf__pg_rows(PGresult *result, hf_rows **rows, hf_error *err);

/* params.c: claims as array parameters */
typedef struct pg_arrays {
    hf__buf keys, spaces, companions, channels, labels, derivations; /* nothing but buffers */
} pg_arrays;
/* keys and spaces; with companions and channels; with labels and derivations. The rest is empty. */
hf_status hf__pg_key_arrays(pg_arrays *arrays, const hf__claim *claims, size_t count,
                            hf_error *err);
hf_status hf__pg_wake_arrays(pg_arrays *arrays, const hf__claim *claims, size_t count,
                             hf_error *err);
hf_status hf__pg_label_arrays(pg_arrays *arrays, const hf__claim *claims, size_t count,
                              hf_error *err);
void hf__pg_array_int(hf__buf *buf, int64_t value);
void hf__pg_binary_keys(hf__buf *buf, const hf__claim *claims,
                        size_t count);            /* bigint[] on the wire */
char *hf__pg_format(char out[24], int64_t value); /* decimal; returns the end */
void hf__pg_arrays_free(pg_arrays *arrays);
void hf__pg_array_text(hf__buf *buf, const void *text, size_t size); /* one quoted element */
int32_t hf__pg_companion(int64_t wake);
void hf__pg_channel(char out[24], int64_t wake);

/* claims.c */
hf_status hf__pg_try_claims(hf__backend *backend, hf__request *request, hf_error *err);
hf_status hf__pg_release_claims(hf__session *session, const hf__claim *claims, size_t count,
                                hf_error *err);
hf_status hf__pg_renew_claims(hf__session *session, const hf__claim *claims, size_t count,
                              int64_t *token, hf_error *err);
/* On a session that the caller holds the mutex of: all or none, now. */
void hf__pg_undo(pg_session *session, const hf__claim *claims, size_t count);
hf_status hf__pg_start_recording(pg_session *session, hf_error *err);
hf_status hf__pg_sessions_allowed(const pg_backend *backend, hf_error *err);

/* labels.c */
hf_status hf__pg_confirm_labels(pg_session *session, const hf__claim *claims, size_t count,
                                hf_error *err);
bool hf__pg_label_is_confirmed(pg_backend *backend, const hf__claim *claim);
void hf__pg_label_confirm(pg_backend *backend, const hf__claim *claim);
void hf__pg_label_patience(const pg_backend *backend, char out[16]); /* ms, for knows_label */
struct pg_labels *hf__pg_labels_new(void);
void hf__pg_labels_free(struct pg_labels *labels);

/* private.c: on a session of its own, or beside another lock, all in one message. HF_OK with *done
 * false: it cannot be done so, and nothing was. */
hf_status hf__pg_try_in_one(pg_backend *backend, hf__request *request, bool *done, hf_error *err);

/* wait.c */
hf_status hf__pg_wait_claims(hf__backend *backend, hf__request *request, hf_error *err);
hf_status hf__pg_checkout(pg_backend *backend, bool private_session, int64_t deadline,
                          pg_session **session, hf_error *err); /* mutex held, pinned */
hf_status hf__pg_checkout_first(pg_backend *backend, pg_session **session, hf_error *err);
/* One that holds a lock: HF_LOST when it is gone. */
hf_status hf__pg_checkout_held(hf__session *held, pg_session **session, hf_error *err);
void hf__pg_checkin(pg_session *session);
void hf__pg_interrupt(hf__backend *backend);

/* listen.c */
hf_status hf__pg_listen(hf__backend *backend, int64_t wake, uint64_t *ticket, hf_error *err);
hf_status hf__pg_await_wake(hf__backend *backend, int64_t wake, uint64_t *ticket, int ms,
                            hf_error *err);
void hf__pg_unlisten(hf__backend *backend, int64_t wake);
void hf__pg_notified(pg_backend *backend, const char *channel);
void hf__pg_listeners_wake_all(pg_backend *backend);
/* A statement on the connection that listens. */
void hf__pg_on_listening(pg_backend *backend, const char *sql, hf_error *err);
void hf__pg_record_waiter(pg_backend *backend, const hf__claim *claim, int64_t waited_ms);
void hf__pg_forget_waiter(pg_backend *backend, const hf__claim *claim);

/* deadlock.c */
void hf__pg_publish_wait(pg_backend *backend, const hf__request *request, const hf__claim *wanted);
void hf__pg_retract_wait(pg_backend *backend, const hf__request *request, const hf__claim *wanted);
bool hf__pg_in_cycle(pg_backend *backend, const hf__request *request, const hf__claim *wanted);

/* watch.c */
void hf__pg_watch(hf__backend *backend, int ms);
void hf__pg_wake(hf__backend *backend);

/* records.c */
struct pg_events *hf__pg_events_new(void);
void hf__pg_events_free(struct pg_events *unwritten);
void hf__pg_note(hf__backend *backend, const hf__event *event);
bool hf__pg_record(hf__backend *backend, const hf__record *held, size_t count);
void hf__pg_flush_events(hf__backend *backend);
void hf__pg_flush_at_close(pg_backend *backend);

/* list.c */
hf_status hf__pg_find_holder(hf__backend *backend, const hf__claim *claim, hf__holder *holder,
                             hf_error *err);
/* pg_locks shows both halves of a key unsigned; objsubid tells the two key spaces apart. */
typedef struct pg_lock_tag {
    char classid[16], objid[16], objsubid[4];
} pg_lock_tag;
pg_lock_tag hf__pg_lock_tag(const hf__claim *claim);
void hf__pg_read_holder(const PGresult *result, bool recorded, hf__holder *holder);
hf_status hf__pg_is_contended(hf__backend *backend, const hf__claim *claim, bool *contended,
                              hf_error *err);
hf_status hf__pg_list(hf__backend *backend, struct pg_conn *conn, hf__view_sink *sink,
                      hf_error *err);

/* list.c: what was held */
hf_status hf__pg_list_past(hf__backend *backend, int64_t since_ms, hf__view_sink *sink,
                           hf_error *err);

/* schema.c */
hf_status hf__pg_init(hf__backend *backend, int *from, int *to, hf_error *err);
hf_status hf__pg_claim_schedule(hf__backend *backend, const char *label, int64_t period_ms,
                                bool *due, int64_t *wait_ms, hf_error *err);
hf_status hf__pg_require_schema(const pg_backend *backend, const char *what, hf_error *err);

/* command.c: what a statement does to the transaction and the session that it runs in. */
typedef enum pg_command {
    PG_COMMAND_PLAIN,    /* nothing */
    PG_COMMAND_ALTERS,   /* may leave something behind in the session */
    PG_COMMAND_ROLLS_TO, /* ROLLBACK TO a savepoint */
    PG_COMMAND_ENDS,     /* begins, ends or prepares a transaction */
    PG_COMMAND_COPIES,   /* COPY */
} pg_command;
pg_command hf__pg_command(const char *sql);

/* transaction.c, pool.c, outcome.c */
extern const hf__attempt_ops hf__pg_attempt_ops;

typedef struct pg_queued {
    struct pg_queued *next;
    char *sql;
    size_t count;
    hf_value *values; /* with their data behind them, in the same allocation */
} pg_queued;

typedef struct pg_attempt {
    hf__attempt base;
    pg_session *session; /* checked out, its mutex held; NULL after a break */
    pg_queued *first, *last;
    bool open; /* the server has answered the opening: labels held, transaction begun */
    bool commit_sent;
    bool committed;
    bool interrupted; /* while it waited for the labels */
    bool lent;        /* the callback has had the connection */
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

hf__attempt_outcome hf__pg_attempt_outcome(hf__attempt *attempt, const hf__attempt_plan *plan,
                                           hf_error *err);

/* On success the session's mutex is held, so that the watcher leaves it to the caller. */
hf_status hf__pg_tx_checkout(pg_backend *backend, const hf__attempt_plan *plan,
                             pg_session **session, hf_error *err);
/* The same on a session that holds a lock; given back with hf__pg_checkin like any. */
hf_status hf__pg_tx_checkout_held(hf__session *held, pg_session **session, hf_error *err);
void hf__pg_keep_generation(pg_session *session, const PGresult *result); /* of tx_generation */
/* What is prepared on each session for transactions. */
enum { PG_TX_PREPARED = 3 };
extern const hf__sql *const hf__pg_tx_prepared[PG_TX_PREPARED];
bool hf__pg_tx_prepares(
    const pg_backend *backend); /* are our statements prepared on its sessions? */

/* examine.c */
hf_status hf__pg_examine(hf__backend *backend, hf_finding_fn *report, void *arg, hf_error *err);

#endif
