/* Connections that we own: opening, settings, loss, and the shared one ("home"). */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lib/sql.h"

enum { OLDEST_SERVER = 140000, TRANSACTION_TIMEOUT_SINCE = 170000 };

/* name and value are constants of ours. */
static void add_setting(hf__buf *list, const char *name, const char *value)
{
    hf__buf_printf(list, "%spg_catalog.set_config('%s', '%s', false)", list->length ? ", " : "",
                   name, value);
}

static void add_number(hf__buf *list, const char *name, int value)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", value);
    add_setting(list, name, text);
}

/*
 * Timeouts of the role or the database would free locks silently. The server's keepalive must
 * outlast our own ping, deadline and kill time: a holder that is told late is told before a
 * successor can be.
 */
static void settings(const pg_backend *backend, pg_purpose purpose, int version, bool check_client,
                     hf__buf *list)
{
    static const char *const timeouts[] = {"statement_timeout", "lock_timeout",
                                           "idle_session_timeout",
                                           "idle_in_transaction_session_timeout"};
    enum { KEEPALIVE_INTERVAL_S = 5, KEEPALIVE_COUNT = 3 };
    int told_s =
        (backend->ping_interval_ms + backend->ping_deadline_ms + backend->kill_ms + 999) / 1000;

    for (size_t i = 0; i < sizeof timeouts / sizeof *timeouts; i++)
        add_setting(list, timeouts[i], "0");
    if (version >= TRANSACTION_TIMEOUT_SINCE)
        add_setting(list, "transaction_timeout", "0");
    if (purpose != PG_FOR_TRANSACTIONS) {
        add_setting(list, "search_path", "");
        add_setting(list, "default_transaction_isolation", "read committed");
        add_setting(list, "default_transaction_read_only", "off");
        add_setting(list, "default_transaction_deferrable", "off");
        add_setting(list, "synchronous_commit", "off");
    }
    add_number(list, "tcp_keepalives_idle", told_s);
    add_number(list, "tcp_keepalives_interval", KEEPALIVE_INTERVAL_S);
    add_number(list, "tcp_keepalives_count", KEEPALIVE_COUNT);
    add_number(list, "tcp_user_timeout", (told_s + KEEPALIVE_INTERVAL_S * KEEPALIVE_COUNT) * 1000);
    if (check_client)
        add_setting(list, "client_connection_check_interval", "1000");
}

static void connect_statement(hf__buf *sql, const hf__buf *list)
{
    static const char mark[] = "@SETTINGS@";
    const char *at = strstr(hf__sql_postgres_connect, mark);
    hf__buf_add(sql, hf__sql_postgres_connect, (size_t)(at - hf__sql_postgres_connect));
    hf__buf_add(sql, list->data, list->length);
    hf__buf_puts(sql, at + sizeof mark - 1);
}

/* A server on a system that cannot see a closed socket refuses client_connection_check_interval. */
static hf_status introduce(pg_seat *seat, bool check_client, PGresult **result, hf_error *err)
{
    pg_backend *backend = pg_backend_of(seat->base.backend);
    hf__buf list = {0}, sql = {0};
    char pid[16];

    settings(backend, seat->purpose, PQserverVersion(seat->conn), check_client, &list);
    if (!list.broken)
        connect_statement(&sql, &list);
    (void)snprintf(pid, sizeof pid, "%d", PQbackendPID(seat->conn));
    const char *params[] = {pid, backend->session_pool ? "t" : "f"};
    hf_status status = list.broken || sql.broken
                           ? hf__no_memory(err)
                           : hf__pg_query(seat, sql.data, 2, params, result, err);
    hf__buf_free(&list);
    hf__buf_free(&sql);
    if (status == HF_DATABASE && check_client && err && strcmp(err->sqlstate, "22023") == 0)
        return introduce(seat, false, result, err);
    return status;
}

static hf_status refuse_standby(const pg_backend *backend, hf_error *err)
{
    hf_status status = hf__fail(err, HF_CONFIG, "%s is a standby: it would grant locks of its own",
                                backend->base.name);
    hf__hint(err, "connect to the primary, or list all hosts in the URL and let Holdfast choose");
    return status;
}

hf_status hf__pg_refuse_newer(const pg_backend *backend, int version, hf_error *err)
{
    hf_status status = hf__fail(err, HF_NO_SCHEMA,
                                "the holdfast schema on %s has version %d, this program knows %d",
                                backend->base.name, version, HF_SCHEMA_VERSION);
    hf__hint(err, "upgrade this program, or point it to another database");
    return status;
}

static void learn(pg_backend *backend, const PGresult *hello, int version)
{
    backend->server_version = version;
    backend->pooled = !hf__pg_bool(hello, 0, 0);
    bool exists = hf__pg_bool(hello, 0, 2);
    if (!exists || !backend->schema) /* the version is assumed until open_session says otherwise */
        backend->schema = exists ? HF_SCHEMA_VERSION : 0;
    backend->schema_usable = hf__pg_bool(hello, 0, 3);
    backend->capacity =
        (int)(hf__pg_int(hello, 0, 4) * (hf__pg_int(hello, 0, 5) + hf__pg_int(hello, 0, 6)));
    backend->base.max_keys =
        backend->quota_wanted > 0 ? backend->quota_wanted : backend->capacity / 4;
}

static bool wants_records(const pg_backend *backend)
{
    return backend->records_wanted != HF_RECORDS_OFF && backend->schema == HF_SCHEMA_VERSION &&
           backend->schema_usable && (!backend->pooled || backend->session_pool);
}

hf_status hf__pg_require_schema(const pg_backend *backend, const char *what, hf_error *err)
{
    hf_status status = HF_OK;
    if (atomic_load(&backend->base.records))
        return HF_OK;
    if (backend->records_wanted == HF_RECORDS_OFF)
        return hf__fail(err, HF_NO_SCHEMA, "%s: records are switched off for this store", what);
    if (backend->pooled && !backend->session_pool)
        return hf__pg_sessions_allowed(backend, err);
    if (backend->schema == 0) {
        status = hf__fail(err, HF_NO_SCHEMA, "%s: the schema 'holdfast' is not installed on %s",
                          what, backend->base.name);
        hf__hint(err, "run 'holdfast init' once on that database");
    } else if (backend->schema < HF_SCHEMA_VERSION) {
        status = hf__fail(err, HF_NO_SCHEMA, "%s: the schema 'holdfast' on %s is of version %d",
                          what, backend->base.name, backend->schema);
        hf__hint(err, "run 'holdfast init' once to upgrade it to version %d", HF_SCHEMA_VERSION);
    } else {
        status =
            hf__fail(err, HF_NO_SCHEMA, "%s: this role may not use the schema 'holdfast' on %s",
                     what, backend->base.name);
        hf__hint(err, "as its owner: SELECT holdfast.grant_use('ROLE')");
    }
    return status;
}

void hf__pg_opening(const pg_backend *backend, pg_opening *opening)
{
    (void)snprintf(opening->pid, sizeof opening->pid, "%d", (int)backend->pid);
    (void)snprintf(opening->version, sizeof opening->version, "%d", HF_SCHEMA_VERSION);
    opening->params[0] = backend->application;
    opening->params[1] = backend->host;
    opening->params[2] = opening->pid;
    opening->params[3] = opening->version;
}

hf_status hf__pg_opened(pg_seat *seat, const PGresult *opened, hf_error *err)
{
    pg_backend *backend = pg_backend_of(seat->base.backend);
    hf_status status = HF_OK;
    backend->schema = (int)hf__pg_int(opened, 0, 0);
    if (backend->schema == HF_SCHEMA_VERSION)
        seat->token_epoch = hf__pg_int(opened, 0, 1) << 40;
    seat->base.session_id = (int)hf__pg_int(opened, 0, 3);
    if (hf__pg_bool(opened, 0, 2))
        status = hf__pg_query(seat, "SELECT holdfast.drop_leftovers()", 0, NULL, NULL, err);
    if (status == HF_OK && backend->schema > HF_SCHEMA_VERSION)
        status = hf__pg_refuse_newer(backend, backend->schema, err);
    return status;
}

hf_status hf__pg_open_session(pg_seat *seat, hf_error *err)
{
    PGresult *opened = NULL;
    pg_opening opening = {.params = {NULL}};
    hf__pg_opening(pg_backend_of(seat->base.backend), &opening);
    hf_status status =
        hf__pg_query(seat, hf__sql_postgres_open_session, 4, opening.params, &opened, err);
    if (status == HF_OK)
        status = hf__pg_opened(seat, opened, err);
    PQclear(opened);
    return status;
}

static hf_status check_server(pg_seat *seat, hf_error *err)
{
    pg_backend *backend = pg_backend_of(seat->base.backend);
    PGresult *hello = NULL;
    hf_error local_error;
    int version = PQserverVersion(seat->conn);

    if (version < OLDEST_SERVER)
        return hf__fail(err, HF_CONFIG, "%s is PostgreSQL %d; Holdfast needs 14 or later",
                        backend->base.name, version / 10000);
    hf_status status = introduce(seat, true, &hello, err ? err : &local_error);
    if (status != HF_OK)
        return status;
    bool standby = hf__pg_bool(hello, 0, 1);
    learn(backend, hello, version);
    PQclear(hello);
    if (standby)
        return refuse_standby(backend, err);
    if (wants_records(backend) && seat->purpose == PG_FOR_LOCKS) {
        hf_status opened = hf__pg_open_session(seat, err);
        if (opened != HF_OK)
            return opened;
    }
    bool records = wants_records(backend);
    atomic_store(&backend->base.records, records);
    if (backend->records_wanted == HF_RECORDS_REQUIRED && !records)
        return hf__pg_require_schema(backend, "records are required", err);
    return HF_OK;
}

static hf_status cannot_connect(const pg_backend *backend, const PGconn *conn, hf_error *err)
{
    char text[512];
    hf__pg_one_line(text, sizeof text, PQerrorMessage(conn));
    if (strstr(text, "hot standby"))
        return refuse_standby(backend, err);
    hf_status status =
        hf__fail(err, HF_UNREACHABLE, "cannot connect to %s: %s", backend->base.name, text);
    if (strstr(text, "password"))
        hf__hint(err, "check the user and the password (a .pgpass file keeps it out of URLs)");
    else if (strstr(text, "starting up") || strstr(text, "recovery mode"))
        hf__hint(err, "the server is starting; try again in a moment");
    else if (strstr(text, "does not exist"))
        hf__hint(err, "check the database and role names in the URL");
    else
        hf__hint(err, "check that the server runs and that host and port are right");
    return status;
}

/* The server says why it hangs up: in a notice when it was asked nothing, else in place of the answer. */
static void keep_goodbye(pg_seat *seat, const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (severity && message && strcmp(severity, "FATAL") == 0)
        (void)snprintf(seat->goodbye, sizeof seat->goodbye, "%s", message);
}

static void take_notice(void *arg, const PGresult *result)
{
    keep_goodbye(arg, result);
}

PGresult *hf__pg_next_result(pg_seat *seat)
{
    PGresult *result = PQgetResult(seat->conn);
    keep_goodbye(seat, result);
    return result;
}

hf_status hf__pg_seat_open(pg_backend *backend, pg_purpose purpose, pg_seat **out, hf_error *err)
{
    hf_status status = HF_OK;
    pg_seat *seat = calloc(1, sizeof *seat);

    if (!seat)
        return hf__no_memory(err);
    seat->base.backend = &backend->base;
    seat->purpose = purpose;
    pthread_mutex_init(&seat->mutex, NULL);
    seat->conn = PQconnectdbParams((const char *const *)backend->keywords,
                                   (const char *const *)backend->values, 0);
    if (!seat->conn)
        status = hf__no_memory(err);
    else if (PQstatus(seat->conn) != CONNECTION_OK)
        status = cannot_connect(backend, seat->conn, err);
    if (status == HF_OK) {
        PQsetNoticeReceiver(seat->conn, take_notice, seat);
        (void)PQsetnonblocking(seat->conn, 1);
        status = check_server(seat, err);
    }
    if (status != HF_OK) {
        hf__pg_seat_free(seat);
        return status;
    }
    atomic_store(&seat->used_ms, hf__now_ms());
    pthread_mutex_lock(&backend->mutex);
    seat->pins = 1;
    seat->serial = ++backend->serials;
    seat->next = backend->seats;
    backend->seats = seat;
    pthread_mutex_unlock(&backend->mutex);
    hf__pg_wake(&backend->base); /* the watcher has one more to look after */
    *out = seat;
    return HF_OK;
}

void hf__pg_seat_free(pg_seat *seat)
{
    if (!seat)
        return;
    PQfinish(seat->conn);
    pthread_mutex_destroy(&seat->mutex);
    free(seat);
}

/* backend->mutex held. A seat that is lost, or private and empty, goes when nobody looks at it. */
static pg_seat *unlink_if_useless(pg_backend *backend, pg_seat *seat)
{
    bool useless = atomic_load(&seat->base.lost) || (seat->private_seat && !seat->checked_out);
    if (!useless || seat->pins > 0 || atomic_load(&seat->base.holds) > 0)
        return NULL;
    pg_seat **at = &backend->seats;
    while (*at && *at != seat)
        at = &(*at)->next;
    if (!*at)
        return NULL;
    *at = seat->next;
    if (backend->home == seat)
        backend->home = NULL;
    if (backend->listening == seat)
        backend->listening = NULL;
    if (backend->writing == seat)
        backend->writing = NULL;
    if (seat->waiting_seat)
        backend->wait_seats--;
    if (seat->tx_seat)
        backend->tx_seats--;
    pthread_cond_broadcast(&backend->changed);
    return seat;
}

void hf__pg_unpin(pg_seat *seat)
{
    pg_backend *backend = pg_backend_of(seat->base.backend);
    pthread_mutex_lock(&backend->mutex);
    seat->pins--;
    pg_seat *useless = unlink_if_useless(backend, seat);
    pthread_mutex_unlock(&backend->mutex);
    hf__pg_seat_free(useless);
}

void hf__pg_leave_seat(hf__seat *seat, unsigned keys)
{
    pg_backend *backend = pg_backend_of(seat->backend);
    pthread_mutex_lock(&backend->mutex);
    atomic_fetch_sub(&seat->holds, keys); /* under the mutex: whoever sees 0 may free the seat */
    pg_seat *useless = unlink_if_useless(backend, pg_seat_of(seat));
    if (!useless)
        pthread_cond_broadcast(&backend->changed);
    pthread_mutex_unlock(&backend->mutex);
    hf__pg_seat_free(useless);
}

static pg_seat *pin_home(pg_backend *backend)
{
    pthread_mutex_lock(&backend->mutex);
    pg_seat *home = backend->home;
    if (home && atomic_load(&home->base.lost))
        home = backend->home = NULL;
    if (home)
        home->pins++;
    pthread_mutex_unlock(&backend->mutex);
    return home;
}

/* Whoever queued behind an attempt that failed shares its failure: a thousand threads do not wait
 * for a thousand timeouts. */
static hf_status open_home(pg_backend *backend, int64_t queued_ms, pg_seat **seat, hf_error *err)
{
    hf_error local_error = {0};
    hf_error *where = err ? err : &local_error;
    if (backend->home_failed_ms > queued_ms) {
        *where = backend->home_failure;
        return backend->home_failure.code;
    }
    hf_status status = hf__pg_seat_open(backend, PG_FOR_LOCKS, seat, where);
    if (status != HF_OK) {
        backend->home_failure = *where;
        backend->home_failed_ms = hf__now_ms();
        return status;
    }
    pthread_mutex_lock(&backend->mutex);
    backend->home = *seat;
    pthread_mutex_unlock(&backend->mutex);
    return HF_OK;
}

hf_status hf__pg_home(pg_backend *backend, pg_seat **seat, hf_error *err)
{
    hf_status status = HF_OK;
    int64_t queued_ms = hf__now_ms();
    *seat = pin_home(backend);
    if (*seat)
        return HF_OK;
    pthread_mutex_lock(&backend->home_mutex);
    *seat = pin_home(backend);
    if (!*seat)
        status = open_home(backend, queued_ms, seat, err);
    pthread_mutex_unlock(&backend->home_mutex);
    return status;
}

/* A statement that could not be sent has left the server's last words unread. */
static void hear_goodbye(pg_seat *seat)
{
    if (!PQisBusy(seat->conn))
        PQclear(hf__pg_next_result(seat));
}

/* The server says goodbye when it ends a session; a cut line says nothing. */
static const char *loss_reason(const pg_seat *seat, const char *what)
{
    return what ? "no_answer" : seat->goodbye[0] ? "server" : "connection";
}

void hf__pg_seat_fail(pg_seat *seat, const char *what)
{
    hf_error why;
    char text[512];
    const char *reason = what;
    if (!reason) {
        hear_goodbye(seat);
        reason = seat->goodbye[0] ? seat->goodbye
                                  : hf__pg_one_line(text, sizeof text, PQerrorMessage(seat->conn));
    }
    (void)!hf__fail(&why, HF_LOST, "the session with %s ended: %s", seat->base.backend->name,
                    reason && *reason ? reason : "the server closed the connection");
    hf__hint(&why,
             "what was locked through it may be held by another by now; stop, then acquire again");
    if (!hf__seat_lose(&seat->base, loss_reason(seat, what), &why))
        return;
    /* Closing frees the locks at the server, should it still live. */
    PQfinish(seat->conn);
    seat->conn = NULL;
}

static void take_notifications(pg_seat *seat)
{
    PGnotify *notify;
    while ((notify = PQnotifies(seat->conn))) {
        hf__pg_notified(pg_backend_of(seat->base.backend), notify->relname);
        PQfreemem(notify);
    }
}

void hf__pg_seat_readable(pg_seat *seat)
{
    if (atomic_load(&seat->base.lost))
        return;
    bool alive = PQconsumeInput(seat->conn) && PQstatus(seat->conn) == CONNECTION_OK;
    while (alive && seat->ping_deadline && !PQisBusy(seat->conn)) {
        PGresult *answer = hf__pg_next_result(seat);
        if (!answer) {
            seat->ping_deadline = 0;
            atomic_store(&seat->used_ms, hf__now_ms());
        }
        PQclear(answer);
        alive = PQstatus(seat->conn) == CONNECTION_OK;
    }
    if (alive)
        take_notifications(seat);
    else
        hf__pg_seat_fail(seat, NULL);
}

void hf__pg_seat_ping(pg_seat *seat)
{
    const pg_backend *backend = pg_backend_of(seat->base.backend);
    if (!PQsendQuery(seat->conn, "") || PQflush(seat->conn) < 0) {
        hf__pg_seat_fail(seat, NULL);
        return;
    }
    seat->ping_deadline = hf__deadline(backend->ping_deadline_ms);
}
