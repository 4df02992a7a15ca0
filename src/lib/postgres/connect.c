/* A connection that is new: what it is told, what it tells, and which servers are refused. */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST_SERVER = 140000 };

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
 * Timeouts that are set for the role or the database could end a session and release its locks, so
 * they are switched off. The server's keepalive must take longer than our ping interval, ping
 * deadline and kill time together: a holder that is cut off has then stopped before the server
 * gives its lock to another.
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
    if (version >= PG_TRANSACTION_TIMEOUT_SINCE)
        add_setting(list, "transaction_timeout", "0");
    if (purpose != PG_FOR_TRANSACTIONS) {
        add_setting(list, "search_path", "");
        add_setting(list, "default_transaction_isolation", "read committed");
        add_setting(list, "default_transaction_read_only", "off");
        add_setting(list, "default_transaction_deferrable", "off");
        add_setting(list, "synchronous_commit", "off");
    }
    /* A commit that did not wait for its standby is told by a warning alone. */
    add_setting(list, "client_min_messages", "warning");
    add_number(list, "tcp_keepalives_idle", told_s);
    add_number(list, "tcp_keepalives_interval", KEEPALIVE_INTERVAL_S);
    add_number(list, "tcp_keepalives_count", KEEPALIVE_COUNT);
    add_number(list, "tcp_user_timeout", (told_s + KEEPALIVE_INTERVAL_S * KEEPALIVE_COUNT) * 1000);
    if (check_client)
        add_setting(list, "client_connection_check_interval", "1000");
}

bool hf__pg_connect_sql(const pg_session *session, bool check_client, hf__buf *sql)
{
    const pg_backend *backend = (const pg_backend *)session->base.backend;
    hf__buf list = {0};
    settings(backend, session->purpose, PQserverVersion(session->conn), check_client, &list);
    const hf__sql_part parts[] = {{"settings", list.data}, {0}};
    if (!list.broken)
        hf__sql_expand(sql, pg_sql(&hf__sql_postgres_connect), parts);
    bool made = !list.broken && !sql->broken;
    hf__buf_free(&list);
    return made;
}

/* A server on a system that cannot see a closed socket refuses client_connection_check_interval. */
static hf_status introduce(pg_session *session, bool check_client, PGresult **result, hf_error *err)
{
    const pg_backend *backend = pg_backend_of(session->base.backend);
    hf__buf sql = {0};
    char pid[16];
    (void)snprintf(pid, sizeof pid, "%d", PQbackendPID(session->conn));
    const char *params[] = {pid, backend->session_pool ? "t" : "f"};
    hf_status status = hf__pg_connect_sql(session, check_client, &sql)
                           ? hf__pg_query(session, sql.data, 2, params, result, err)
                           : hf__no_memory(err);
    hf__buf_free(&sql);
    session->checks_client = check_client;
    if (status == HF_DATABASE && check_client && err && strcmp(err->sqlstate, "22023") == 0)
        return introduce(session, false, result, err);
    return status;
}

/* In a failover there is a moment without a primary: only a single host that never was one is taken
 * for a mistake. */
static hf_status refuse_standby(const pg_backend *backend, hf_error *err)
{
    hf_status status;
    if (backend->hosts > 1 || atomic_load(&backend->was_primary)) {
        status = hf__fail(err, HF_UNREACHABLE, "no primary at %s: a standby grants its own locks",
                          backend->base.name);
        hf__hint(err, "if a failover is under way, try again in a moment");
        return status;
    }
    status = hf__fail(err, HF_CONFIG, "%s is a standby: it would grant locks of its own",
                      backend->base.name);
    hf__hint(err, "connect to the primary, or list all hosts in the URL and let Holdfast choose");
    if (err)
        memcpy(err->sqlstate, PG_SQLSTATE_READ_ONLY, sizeof PG_SQLSTATE_READ_ONLY);
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
    if (!exists || !backend->schema) /* an assumption: open_session returns the real version */
        backend->schema = exists ? HF_SCHEMA_VERSION : 0;
    backend->schema_usable = hf__pg_int(hello, 0, 3) > 1;
    backend->schema_readable = hf__pg_int(hello, 0, 3) > 0;
    backend->capacity =
        (int)(hf__pg_int(hello, 0, 4) * (hf__pg_int(hello, 0, 5) + hf__pg_int(hello, 0, 6)));
    backend->base.max_keys =
        backend->quota_wanted > 0 ? backend->quota_wanted : backend->capacity / 4;
}

/* Column numbers of the statement connect. */
enum { HELLO_TIMEOUTS = 7, HELLO_SEEN = HELLO_TIMEOUTS + PG_TIMEOUTS };

static pg_seen read_seen(const PGresult *hello)
{
    return (pg_seen){
        .system = strtoull(hf__pg_text(hello, 0, HELLO_SEEN), NULL, 10),
        .timeline = strtoll(hf__pg_text(hello, 0, HELLO_SEEN + 1), NULL, 16),
        .flushed = hf__pg_int(hello, 0, HELLO_SEEN + 2),
    };
}

static bool is_behind(const pg_seen *now, const pg_seen *before)
{
    return now->timeline < before->timeline ||
           (now->timeline == before->timeline && now->flushed < before->flushed);
}

static pg_seen furthest_seen(pg_backend *backend)
{
    pthread_mutex_lock(&backend->mutex);
    pg_seen seen = backend->seen;
    pthread_mutex_unlock(&backend->mutex);
    return seen;
}

static void keep_furthest(pg_backend *backend, const pg_seen *now)
{
    pthread_mutex_lock(&backend->mutex);
    if (!backend->seen.system || is_behind(&backend->seen, now))
        backend->seen = *now;
    pthread_mutex_unlock(&backend->mutex);
}

/*
 * A primary that was replaced while it was stopped goes on as if nothing had happened: it would
 * grant locks that others hold, and deny commits that were made elsewhere. before is what was known
 * when the server was asked: another thread may have come further since.
 */
static hf_status refuse_stale(pg_backend *backend, const pg_seen *before, const pg_seen *now,
                              hf_error *err)
{
    hf_status status = HF_OK;
    if (before->system && before->system != now->system) {
        status = hf__fail(err, HF_CONFIG, "%s is another database cluster than before",
                          backend->base.name);
        hf__hint(err, "if that is meant to be, start this program anew");
    } else if (before->system && is_behind(now, before)) {
        status =
            hf__fail(err, HF_CONFIG,
                     "%s has stepped down: it is on timeline %lld at %llX, others were seen on "
                     "timeline %lld at %llX",
                     backend->base.name, (long long)now->timeline, (unsigned long long)now->flushed,
                     (long long)before->timeline, (unsigned long long)before->flushed);
        hf__hint(err, "connect to the present primary; after a restore from a backup, start this "
                      "program anew");
    }
    return status;
}

static void keep_timeouts(pg_session *session, const PGresult *hello)
{
    for (int i = 0; i < PG_TIMEOUTS; i++) {
        const char *value = hf__pg_text(hello, 0, HELLO_TIMEOUTS + i);
        (void)snprintf(session->timeouts[i], sizeof session->timeouts[i], "%s", value);
        session->has_timeouts = session->has_timeouts || (*value && strcmp(value, "0") != 0);
    }
}

/* Those of others, at least. */
static bool wants_to_read(const pg_backend *backend)
{
    return backend->records_wanted != HF_RECORDS_OFF && backend->schema == HF_SCHEMA_VERSION &&
           backend->schema_readable && (!backend->pooled || backend->session_pool);
}

static bool wants_records(const pg_backend *backend)
{
    return wants_to_read(backend) && backend->schema_usable;
}

/* Events need no session of their own: those of leases are kept through any pooler. */
static bool wants_history(const pg_backend *backend)
{
    return backend->records_wanted != HF_RECORDS_OFF && backend->schema == HF_SCHEMA_VERSION &&
           backend->schema_usable;
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

int64_t hf__pg_token(pg_session *session, const PGresult *result, int column)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    long long token = session->token_epoch + hf__pg_int(result, 0, column);
    long long newest = atomic_load(&backend->newest_token);
    while (newest < token && !atomic_compare_exchange_weak(&backend->newest_token, &newest, token))
        continue;
    return token;
}

/* The server that this process was connected to before has given a token that is above all of this
 * one's: its clock was ahead. */
static hf_status lift_token(pg_session *session, hf_error *err)
{
    char newest[24];
    hf__pg_format(newest, atomic_load(&pg_backend_of(session->base.backend)->newest_token));
    const char *params[] = {newest};
    session->lifted = true;
    return hf__pg_query(session, pg_sql(&hf__sql_postgres_lift_token), 1, params, NULL, err);
}

hf_status hf__pg_opened(pg_session *session, const PGresult *opened, hf_error *err)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    hf_status status = HF_OK;
    backend->schema = (int)hf__pg_int(opened, 0, 0);
    backend->schema_known = true;
    if (backend->schema == HF_SCHEMA_VERSION) {
        session->token_epoch = hf__pg_int(opened, 0, 1) << 40;
        if (session->token_epoch + hf__pg_int(opened, 0, 4) < atomic_load(&backend->newest_token))
            status = lift_token(session, err);
    }
    session->base.session_id = (int)hf__pg_int(opened, 0, 3);
    if (status == HF_OK && hf__pg_bool(opened, 0, 2))
        status =
            hf__pg_query(session, pg_sql(&hf__sql_postgres_drop_leftovers), 0, NULL, NULL, err);
    if (status == HF_OK && backend->schema > HF_SCHEMA_VERSION)
        status = hf__pg_refuse_newer(backend, backend->schema, err);
    return status;
}

/*
 * The first session after a server's start commits where its tokens begin, and all others wait for
 * it. If it did not get there in time, its commit is likely to wait for a standby.
 */
static hf_status say_stuck(pg_session *session, hf_error *err)
{
    const char *name = session->base.backend->name;
    PGresult *setting = NULL;
    hf_status status =
        hf__pg_query(session, pg_sql(&hf__sql_postgres_synchronous_names), 0, NULL, &setting, err);
    if (status != HF_OK)
        return status;
    const char *names = PQgetvalue(setting, 0, 0);
    if (*names) {
        status = hf__fail(err, HF_UNREACHABLE,
                          "%s opens no session: a commit waits for a synchronous standby (%s)",
                          name, names);
        hf__hint(err, "start that standby, or take it out of synchronous_standby_names");
    } else {
        status = hf__fail(err, HF_UNREACHABLE,
                          "%s opens no session: another one keeps holdfast.boot locked", name);
        hf__hint(err, "look for a transaction that stays open, in pg_locks");
    }
    PQclear(setting);
    return status;
}

hf_status hf__pg_session_register(pg_session *session, hf_error *err)
{
    PGresult *opened = NULL;
    pg_opening opening = {.params = {NULL}};
    hf_error local_error = {0};
    hf_error *where = err ? err : &local_error;
    hf__pg_opening(pg_backend_of(session->base.backend), &opening);
    hf_status status = hf__pg_query(session, pg_sql(&hf__sql_postgres_open_session), 4,
                                    opening.params, &opened, where);
    if (status == HF_OK)
        status = hf__pg_opened(session, opened, where);
    else if (strcmp(where->sqlstate, "55P03") == 0)
        status = say_stuck(session, where);
    PQclear(opened);
    return status;
}

static hf_status ask_version(pg_session *session, hf_error *err)
{
    PGresult *result = NULL;
    hf_status status =
        hf__pg_query(session, pg_sql(&hf__sql_postgres_schema_version), 0, NULL, &result, err);
    if (status == HF_OK)
        pg_backend_of(session->base.backend)->schema = (int)hf__pg_int(result, 0, 0);
    pg_backend_of(session->base.backend)->schema_known = status == HF_OK;
    PQclear(result);
    return status;
}

hf_status hf__pg_check_server(pg_session *session, hf_error *err)
{
    pg_backend *backend = pg_backend_of(session->base.backend);
    PGresult *hello = NULL;
    hf_error local_error;
    int version = PQserverVersion(session->conn);

    if (version < OLDEST_SERVER)
        return hf__fail(err, HF_CONFIG, "%s is PostgreSQL %d; Holdfast needs 14 or later",
                        backend->base.name, version / 10000);
    const pg_seen before = furthest_seen(backend);
    hf_status status = introduce(session, true, &hello, err ? err : &local_error);
    if (status != HF_OK)
        return status;
    bool standby = hf__pg_bool(hello, 0, 1);
    const pg_seen now = read_seen(hello);
    learn(backend, hello, version);
    keep_timeouts(session, hello);
    PQclear(hello);
    if (standby)
        return refuse_standby(backend, err);
    status = refuse_stale(backend, &before, &now, err);
    if (status != HF_OK)
        return status;
    keep_furthest(backend, &now);
    atomic_store(&backend->was_primary, true);
    if (wants_records(backend) && session->purpose == PG_FOR_LOCKS) {
        hf_status opened = hf__pg_session_register(session, err);
        if (opened != HF_OK)
            return opened;
    }
    if (backend->schema && backend->schema_readable && !backend->schema_known)
        status = ask_version(session, err);
    bool records = wants_records(backend);
    atomic_store(&backend->base.records, records);
    atomic_store(&backend->base.history, wants_history(backend));
    atomic_store(&backend->base.readable, wants_to_read(backend));
    if (status != HF_OK)
        return status;
    if (backend->records_wanted == HF_RECORDS_REQUIRED && !records)
        return hf__pg_require_schema(backend, "records are required", err);
    return HF_OK;
}

/* libpq keeps the SQLSTATE of a refused connection to itself, so that only its words are left. */
static const struct refusal {
    const char *words, *sqlstate, *hint;
} refusals[] = {
    {"starting up", "57P03", "the server is starting; try again in a moment"},
    {"recovery mode", "57P03", "the server is starting; try again in a moment"},
    {"too many clients", "53300", NULL},
    {"connection slots", "53300", NULL},
    {"too many connections", "53300", NULL},
    {"password", "28P01", "check the user and the password (a .pgpass file keeps it out of URLs)"},
    {"pg_hba.conf", "28000", "let pg_hba.conf of the server admit this user from this host"},
    {"not permitted to log in", "28000", "use a role that may log in"},
    {"does not exist", "3D000", "check the database and role names in the URL"},
    {"permission denied for database", "42501", "let this role connect to that database"},
};

hf_status hf__pg_cannot_connect(const pg_backend *backend, const PGconn *conn, hf_error *err)
{
    static const char slots[] =
        "all connections of the server are taken; Holdfast needs one for a process, and up to %d "
        "more while it waits: raise max_connections, or lower max_waits";
    char text[512];
    hf__pg_one_line(text, sizeof text, PQerrorMessage(conn));
    if (strstr(text, "hot standby"))
        return refuse_standby(backend, err);
    hf_status status =
        hf__fail(err, HF_UNREACHABLE, "cannot connect to %s: %s", backend->base.name, text);
    hf__hint(err, "check that the server runs and that host and port are right");
    if (strstr(text, "refused") || strstr(text, "timeout"))
        return status; /* of several hosts: that one may come back */
    for (size_t i = 0; err && i < sizeof refusals / sizeof *refusals; i++)
        if (strstr(text, refusals[i].words)) {
            (void)snprintf(err->sqlstate, sizeof err->sqlstate, "%s", refusals[i].sqlstate);
            if (refusals[i].hint)
                hf__hint(err, "%s", refusals[i].hint);
            else
                hf__hint(err, slots, backend->max_waits + 2);
            break;
        }
    return status;
}
