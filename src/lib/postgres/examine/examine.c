/* What `holdfast doctor` says about a server: one function for each topic. */
#include "lib/postgres/postgres.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* Columns of the statement examine. Names come quoted for use in SQL. */
enum fact {
    F_ROLE,
    F_DATABASE,
    F_READS_STATS,
    F_MAY_CREATE,
    F_STANDBY,
    F_READ_ONLY,
    F_LOCKS,
    F_SOCKET_FILE,
    F_KEEPALIVE_IDLE_S,
    F_KEEPALIVE_INTERVAL_S,
    F_KEEPALIVE_COUNT,
    F_USER_TIMEOUT_MS,
    F_CLIENT_CHECK_MS,
    F_SCHEMA,
    F_SCHEMA_USABLE,
    F_ROLE_LITERAL,
    F_SYNCHRONOUS_COMMIT,
    F_HAS_SYNCHRONOUS,
    F_STANDBYS,
};

typedef struct examination {
    pg_backend *backend;
    hf_finding_fn *report;
    void *arg;
    int64_t trip_us;
    int64_t ahead_us; /* how far the server's clock is ahead of ours */
    int port_here;    /* of our socket, and as the server sees it; 0: on a Unix socket */
    int port_there;
    PGresult *facts;
    PGresult *timeouts;
} examination;

static const char *fact(const examination *of, enum fact which)
{
    return hf__pg_text(of->facts, 0, (int)which);
}

static int64_t number(const examination *of, enum fact which)
{
    return hf__pg_int(of->facts, 0, (int)which);
}

static bool is_true(const examination *of, enum fact which)
{
    return hf__pg_bool(of->facts, 0, (int)which);
}

static bool owns_sessions(const examination *of)
{
    return !of->backend->pooled || of->backend->session_pool;
}

__attribute__((format(printf, 5, 6))) static void say(const examination *of, hf_level level,
                                                      const char *topic, const char *remedy,
                                                      const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    of->report(of->arg, level, topic, text, remedy);
}

static hf_level grade(int64_t value, int64_t warning, int64_t problem)
{
    return value > problem ? HF_LEVEL_PROBLEM : value > warning ? HF_LEVEL_WARNING : HF_LEVEL_OK;
}

static int64_t now_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/*
 * The server reads its clock about half a round trip after we send. The shortest round trip gives
 * the most exact result.
 */
static hf_status measure(examination *of, hf_error *err)
{
    enum { SAMPLES = 5 };
    hf_status status = HF_OK;
    for (int i = 0; status == HF_OK && i < SAMPLES; i++) {
        PGresult *answer = NULL;
        int64_t wall = now_us(CLOCK_REALTIME), sent = now_us(CLOCK_MONOTONIC);
        status =
            hf__pg_ask(of->backend, pg_sql(&hf__sql_postgres_examine_clock), 0, NULL, &answer, err);
        int64_t trip = now_us(CLOCK_MONOTONIC) - sent;
        if (status == HF_OK && (i == 0 || trip < of->trip_us)) {
            of->trip_us = trip;
            of->ahead_us = hf__pg_int(answer, 0, 0) - (wall + trip / 2);
        }
        PQclear(answer);
    }
    return status;
}

/* An address, also one of a family that has no port. */
union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage room;
};

static int local_port(int socket)
{
    union address here = {0};
    socklen_t size = sizeof here;
    if (getsockname(socket, &here.any, &size) != 0)
        return 0;
    return here.any.sa_family == AF_INET    ? ntohs(here.v4.sin_port)
           : here.any.sa_family == AF_INET6 ? ntohs(here.v6.sin6_port)
                                            : 0;
}

/* Both on one session: a proxy has a connection of its own to the server, from another port. */
static hf_status compare_ports(examination *of, hf_error *err)
{
    pg_session *session = NULL;
    PGresult *answer = NULL;
    hf_status status = hf__pg_shared_session(of->backend, &session, err);
    if (status != HF_OK)
        return status;
    hf__baton_take(&session->baton);
    of->port_here = session->conn ? local_port(PQsocket(session->conn)) : 0;
    status = hf__pg_query(session, pg_sql(&hf__sql_postgres_examine_port), 0, NULL, &answer, err);
    if (status == HF_OK)
        of->port_there = (int)hf__pg_int(answer, 0, 0);
    hf__baton_give(&session->baton);
    PQclear(answer);
    hf__pg_unpin(session);
    return status;
}

static bool has_proxy(const examination *of)
{
    return !of->backend->pooled && of->port_here != of->port_there;
}

static void examine_connection(const examination *of)
{
    say(of, HF_LEVEL_OK, "connection", "", "%s, round trip %.2f ms", of->backend->base.name,
        (double)of->trip_us / 1e3);
}

static void examine_version(const examination *of)
{
    int version = of->backend->server_version;
    say(of, HF_LEVEL_OK, "version", "", "PostgreSQL %d.%d, 14 or later is needed", version / 10000,
        version % 10000);
}

static void examine_role(const examination *of)
{
    const char *role = fact(of, F_ROLE);
    bool blind = !is_true(of, F_READS_STATS);
    bool cannot_install = number(of, F_SCHEMA) == 0 && !is_true(of, F_MAY_CREATE);
    char see[192] = "", install[448] = "", remedy[sizeof see + sizeof install];

    if (blind)
        (void)snprintf(see, sizeof see, "GRANT pg_read_all_stats TO %s%s", role,
                       cannot_install ? "; " : "");
    if (cannot_install)
        (void)snprintf(install, sizeof install,
                       "GRANT CREATE ON DATABASE %s TO %s, or run 'holdfast init' as its owner",
                       fact(of, F_DATABASE), role);
    (void)snprintf(remedy, sizeof remedy, "%s%s", see, install);
    say(of, remedy[0] ? HF_LEVEL_WARNING : HF_LEVEL_OK, "role", remedy, "%s %s%s", role,
        blind ? "does not see since when and from where other roles hold locks"
              : "sees the sessions of all roles",
        cannot_install ? ", and may not create the schema" : "");
}

static void examine_pooler(const examination *of)
{
    if (has_proxy(of))
        say(of, HF_LEVEL_WARNING, "pooler",
            "connect to PostgreSQL directly, or make sure that no timeout of the proxy ends idle "
            "clients",
            "none, but a proxy or an address translation is in between: the server sees port %d, "
            "not %d",
            of->port_there, of->port_here);
    else if (!of->backend->pooled)
        say(of, HF_LEVEL_OK, "pooler", "", "none, the connection is direct");
    else if (of->backend->session_pool)
        say(of, HF_LEVEL_WARNING, "pooler",
            "make sure that pool_mode is session and that no timeout of the pooler ends clients",
            "there is one, in session mode as stated, which cannot be checked from here");
    else
        say(of, HF_LEVEL_PROBLEM, "pooler",
            "connect to PostgreSQL directly, use transaction locks, or say --session-pool "
            "(session_pool) if the pooler is in session mode",
            "there is one: session locks would leak to its other clients and are refused");
}

static void examine_recovery(const examination *of)
{
    if (is_true(of, F_STANDBY))
        say(of, HF_LEVEL_PROBLEM, "recovery", "connect to the primary",
            "a standby: it grants locks of its own");
    else
        say(of, HF_LEVEL_OK, "recovery", "", "primary%s",
            is_true(of, F_READ_ONLY) ? "; default_transaction_read_only is on for this role" : "");
}

/* Which commits that were reported as done can be lost all the same? */
static void examine_replication(const examination *of)
{
    const char *commit = fact(of, F_SYNCHRONOUS_COMMIT);
    int64_t standbys = number(of, F_STANDBYS);
    bool is_local = strcmp(commit, "local") == 0;

    if (strcmp(commit, "off") == 0)
        say(of, HF_LEVEL_WARNING, "replication", "leave synchronous_commit on where it matters",
            "synchronous_commit is off: a crash loses the last commits that were reported as done");
    else if (!is_true(of, F_READS_STATS))
        say(of, HF_LEVEL_OK, "replication", "", "%s does not see whether standbys are connected",
            fact(of, F_ROLE));
    else if (standbys == 0 && !is_local && is_true(of, F_HAS_SYNCHRONOUS))
        say(of, HF_LEVEL_PROBLEM, "replication",
            "start a standby, or take it out of synchronous_standby_names",
            "no standby is connected, and synchronous_standby_names is set: commits wait for ever");
    else if (standbys == 0)
        say(of, HF_LEVEL_OK, "replication", "", "no standby is connected");
    else if (is_local || !is_true(of, F_HAS_SYNCHRONOUS))
        say(of, HF_LEVEL_WARNING, "replication",
            is_local ? "leave synchronous_commit on where it matters"
                     : "where a commit must outlive the primary, set synchronous_standby_names",
            "asynchronous, %lld standby%s: a failover loses the last commits that were reported as "
            "done",
            (long long)standbys, standbys == 1 ? "" : "s");
    else
        say(of, HF_LEVEL_OK, "replication", "", "synchronous, %lld standby%s connected",
            (long long)standbys, standbys == 1 ? "" : "s");
}

static void examine_capacity(const examination *of)
{
    int64_t used = number(of, F_LOCKS), room = of->backend->capacity;
    hf_level level = grade(used * 100, room * 50, room * 80);
    say(of, level, "capacity",
        level == HF_LEVEL_OK ? ""
                             : "hold fewer locks, or raise max_locks_per_transaction and restart "
                               "the server: a full lock table fails every session",
        "%lld locks in a table with nominal room for %lld; this store takes at most %d",
        (long long)used, (long long)room, of->backend->base.max_keys);
}

static void examine_timeouts(const examination *of)
{
    hf__buf list = {0};
    char remedy[320];

    if (PQntuples(of->timeouts) == 0) {
        say(of, HF_LEVEL_OK, "timeouts", "", "none that would free locks");
        return;
    }
    for (int i = 0; i < PQntuples(of->timeouts); i++)
        hf__buf_printf(&list, "%s%s %s (%s)", i ? ", " : "", hf__pg_text(of->timeouts, i, 0),
                       hf__pg_text(of->timeouts, i, 1), hf__pg_text(of->timeouts, i, 2));
    (void)snprintf(remedy, sizeof remedy,
                   "where such connections hold locks: ALTER ROLE %s IN DATABASE %s SET %s = 0%s",
                   fact(of, F_ROLE), fact(of, F_DATABASE), hf__pg_text(of->timeouts, 0, 0),
                   PQntuples(of->timeouts) > 1 ? ", and likewise the others" : "");
    say(of, HF_LEVEL_WARNING, "timeouts", remedy, "%s: %s", list.data ? list.data : "some are set",
        owns_sessions(of) ? "off in sessions of Holdfast, not in borrowed and other connections"
                          : "connections through the pooler are subject to them");
    hf__buf_free(&list);
}

/* The server must not release the locks of a lost host before a holder there has stopped. */
static void examine_tcp_keepalives(const examination *of)
{
    const pg_backend *ours = of->backend;
    int64_t idle_s = number(of, F_KEEPALIVE_IDLE_S);
    int64_t drop_s = idle_s + number(of, F_KEEPALIVE_INTERVAL_S) * number(of, F_KEEPALIVE_COUNT);
    int64_t user_s = number(of, F_USER_TIMEOUT_MS) / 1000;
    int64_t stop_s = (ours->ping_interval_ms + ours->ping_deadline_ms + ours->kill_ms + 999) / 1000;
    if (user_s > 0 && user_s < drop_s)
        drop_s = user_s;
    if (idle_s == 0)
        say(of, HF_LEVEL_WARNING, "keepalives", "shorten them in the server's operating system",
            "the server leaves them to its system: a dead host may keep its locks for hours");
    else
        say(of, drop_s < stop_s ? HF_LEVEL_WARNING : HF_LEVEL_OK, "keepalives",
            drop_s < stop_s ? "shorten the ping interval and deadline of the store" : "",
            "the server drops a dead host after %lld s (user timeout %lld s), a holder that is cut "
            "off stops within %lld s",
            (long long)drop_s, (long long)user_s, (long long)stop_s);
}

static void examine_keepalives(const examination *of)
{
    if (of->backend->pooled)
        say(of, HF_LEVEL_WARNING, "keepalives",
            "set the pooler's own (PgBouncer: tcp_keepidle, tcp_keepintvl, tcp_keepcnt)",
            "the server sees only the pooler, which has to notice a dead host");
    else if (has_proxy(of))
        say(of, HF_LEVEL_WARNING, "keepalives",
            "set the proxy's own (HAProxy: option clitcpka, with clitcpka-idle and the like)",
            "the server sees only what is in between: if it is a proxy, that has to notice a dead "
            "host");
    else if (is_true(of, F_SOCKET_FILE))
        say(of, HF_LEVEL_OK, "keepalives", "", "not needed on a Unix socket");
    else
        examine_tcp_keepalives(of);
}

static void examine_client_check(const examination *of)
{
    int64_t interval_ms = number(of, F_CLIENT_CHECK_MS);
    if (interval_ms > 0)
        say(of, HF_LEVEL_OK, "client_check", "",
            "the server looks for waiters that died every %lld ms", (long long)interval_ms);
    else
        say(of, HF_LEVEL_WARNING, "client_check",
            "set client_connection_check_interval = '1s' on the server, where its system allows it",
            "off: a waiter that died stays queued and may be granted the lock");
}

static void examine_schema(const examination *of)
{
    int version = (int)number(of, F_SCHEMA);
    char remedy[256];

    (void)snprintf(remedy, sizeof remedy, "as its owner: SELECT holdfast.grant_use(%s)",
                   fact(of, F_ROLE_LITERAL));
    if (version == 0)
        say(of, HF_LEVEL_WARNING, "schema", "run 'holdfast init' once on this database",
            "not installed: plain locks work; tokens, names, history and schedules do not");
    else if (version < 0)
        say(of, HF_LEVEL_WARNING, "schema", "rename it, or use another database",
            "a schema 'holdfast' exists that Holdfast did not make");
    else if (version != HF_SCHEMA_VERSION)
        say(of, HF_LEVEL_WARNING, "schema",
            version < HF_SCHEMA_VERSION ? "run 'holdfast init' to upgrade it"
                                        : "upgrade this program",
            "version %d, this program needs %d", version, HF_SCHEMA_VERSION);
    else if (!is_true(of, F_SCHEMA_USABLE))
        say(of, HF_LEVEL_WARNING, "schema", remedy, "version %d, but %s may not use it", version,
            fact(of, F_ROLE));
    else
        say(of, HF_LEVEL_OK, "schema", "", "version %d, %s", version,
            atomic_load(&of->backend->base.records) ? "in use" : "not used by this store");
}

/* What was adopted and is not followed any more, such as a relation that was made anew. */
static hf_status examine_adopted(const examination *of, hf_error *err)
{
    PGresult *result = NULL;
    if (number(of, F_SCHEMA) != HF_SCHEMA_VERSION || !is_true(of, F_SCHEMA_USABLE))
        return HF_OK;
    hf_status status =
        hf__pg_ask(of->backend, pg_sql(&hf__sql_postgres_examine_adopted), 0, NULL, &result, err);
    int64_t count = status == HF_OK ? hf__pg_int(result, 0, 0) : 0;
    if (count > 0) {
        const char *lost = hf__pg_text(result, 0, 1);
        if (lost[0])
            say(of, HF_LEVEL_PROBLEM, "adopted",
                "run 'holdfast table adopt' again, or 'holdfast table leave'",
                "%s is not followed any more: its program may lock by other ids", lost);
        if (hf__pg_int(result, 0, 2) > 0)
            say(of, HF_LEVEL_WARNING, "adopted",
                "run 'holdfast table adopt' on the one that has replaced it",
                "a table that was adopted is gone");
        if (!lost[0] && hf__pg_int(result, 0, 2) == 0)
            say(of, HF_LEVEL_OK, "adopted", "", "%lld followed", (long long)count);
    }
    PQclear(result);
    return status;
}

static void examine_clock(const examination *of)
{
    enum { WARNING_US = 1000000, PROBLEM_US = 30000000 };
    int64_t apart_us = llabs(of->ahead_us);
    hf_level level = grade(apart_us, WARNING_US, PROBLEM_US);
    say(of, level, "clock",
        level == HF_LEVEL_OK ? "" : "keep both clocks with NTP (chrony, systemd-timesyncd)",
        "the server is %.3f s %s this host", (double)apart_us / 1e6,
        of->ahead_us < 0 ? "behind" : "ahead of");
}

hf_status hf__pg_examine(hf__backend *base, hf_finding_fn *report, void *arg, hf_error *err)
{
    static void (*const topics[])(const examination *) = {
        examine_version,      examine_role,     examine_pooler,   examine_recovery,
        examine_replication,  examine_capacity, examine_timeouts, examine_keepalives,
        examine_client_check, examine_schema,   examine_clock,
    };
    pg_backend *backend = pg_backend_of(base);
    examination of = {.backend = backend, .report = report, .arg = arg};
    hf_status status = measure(&of, err);
    if (status != HF_OK)
        return status;
    status = compare_ports(&of, err);
    if (status != HF_OK)
        return status;
    examine_connection(&of);
    status = hf__pg_ask(backend, pg_sql(&hf__sql_postgres_examine), 0, NULL, &of.facts, err);
    if (status == HF_OK)
        status = hf__pg_ask(backend, pg_sql(&hf__sql_postgres_examine_timeouts), 0, NULL,
                            &of.timeouts, err);
    for (size_t i = 0; status == HF_OK && i < sizeof topics / sizeof *topics; i++)
        topics[i](&of);
    if (status == HF_OK)
        status = examine_adopted(&of, err);
    PQclear(of.facts);
    PQclear(of.timeouts);
    return status;
}
