/* Who holds what: from pg_locks, with the names that holders have recorded. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "lib/postgres/postgres.h"

pg_lock_tag hf__pg_lock_tag(const hf__claim *claim)
{
    pg_lock_tag tag;
    uint32_t classid, objid;
    hf_key_split(claim->key, &classid, &objid);
    (void)snprintf(tag.classid, sizeof tag.classid, "%u", classid);
    (void)snprintf(tag.objid, sizeof tag.objid, "%u", objid);
    (void)snprintf(tag.objsubid, sizeof tag.objsubid, "%d", claim->space == HF_PAIR ? 2 : 1);
    return tag;
}

/* Splits "APP on HOST (pid N)", the name of our sessions; false: it is another program's. */
static bool split_application(const char *name, char *application, size_t application_size,
                              char *host, size_t host_size, int *pid)
{
    const char *tail = strstr(name, " (pid "), *on = NULL;
    for (const char *at = strstr(name, " on "); at && tail && at < tail;
         at = strstr(at + 1, " on "))
        on = at;
    if (!on || !tail || tail[strlen(tail) - 1] != ')')
        return false;
    int number = (int)strtol(tail + strlen(" (pid "), NULL, 10);
    if (number <= 0)
        return false;
    *pid = number;
    (void)snprintf(application, application_size, "%.*s", (int)(on - name), name);
    (void)snprintf(host, host_size, "%.*s", (int)(tail - on - 4), on + 4);
    return true;
}

void hf__pg_read_holder(const PGresult *result, bool recorded, hf__holder *holder)
{
    const char *application = hf__pg_text(result, 0, 0);
    bool exact = recorded && hf__pg_bool(result, 0, 6);

    holder->found = true;
    holder->backend_pid = (int)hf__pg_int(result, 0, 2);
    holder->age_ms = PQgetisnull(result, 0, 3) ? -1 : hf__pg_int(result, 0, 3);
    holder->age_is_bound = !exact;
    holder->pid = recorded ? (int)hf__pg_int(result, 0, 5) : 0;
    if (recorded)
        (void)snprintf(holder->traceparent, sizeof holder->traceparent, "%s",
                       hf__pg_text(result, 0, 7));
    if (holder->pid ||
        !split_application(application, holder->application, sizeof holder->application,
                           holder->host, sizeof holder->host, &holder->pid)) {
        (void)snprintf(holder->application, sizeof holder->application, "%s", application);
        (void)snprintf(holder->host, sizeof holder->host, "%s", hf__pg_text(result, 0, 1));
    }
}

hf_status hf__pg_find_holder(hf__backend *base, const hf__claim *claim, hf__holder *holder,
                             hf_error *err)
{
    PGresult *result = NULL;
    bool recorded = atomic_load(&base->readable);
    pg_lock_tag tag = hf__pg_lock_tag(claim);
    const char *params[] = {tag.classid, tag.objid, tag.objsubid,
                            claim->mode == HF_SHARED ? "t" : "f"};

    /* A name in a message is not worth a longer wait for a silent server. */
    enum { BRIEF_MS = 1000 };
    const pg_patience patience = {.until = hf__deadline(BRIEF_MS)};
    memset(holder, 0, sizeof *holder);
    hf_status status = hf__pg_ask_for(pg_backend_of(base), &patience,
                                      recorded ? pg_sql(&hf__sql_postgres_find_holder_recorded)
                                               : pg_sql(&hf__sql_postgres_find_holder),
                                      4, params, &result, err);
    if (status == HF_OK && PQntuples(result) > 0)
        hf__pg_read_holder(result, recorded, holder);
    bool is_held = status == HF_OK && PQntuples(result) > 0 && hf__pg_bool(result, 0, 4);
    PQclear(result);
    return status == HF_OK && !is_held ? hf__pg_find_lease(pg_backend_of(base), claim, holder, err)
                                       : status;
}

hf_status hf__pg_probe_claims(hf__backend *base, const hf__request *request, bool held,
                              size_t *first, hf_error *err)
{
    const pg_patience patience = hf__pg_patience(pg_backend_of(base), request);
    PGresult *result = NULL;
    pg_arrays arrays = {0};
    hf_status status = hf__pg_key_arrays(&arrays, request->claims, request->count, err);

    *first = request->count;
    if (status == HF_OK) {
        const char *params[] = {arrays.keys.data, held ? "true" : "false",
                                request->claims->mode == HF_SHARED ? "true" : "false"};
        const hf__sql *probe = hf__pg_may_be_leased(pg_backend_of(base))
                                   ? &hf__sql_postgres_probe_leased
                                   : &hf__sql_postgres_probe;
        status =
            hf__pg_ask_for(pg_backend_of(base), &patience, pg_sql(probe), 3, params, &result, err);
    }
    if (status == HF_OK && hf__pg_int(result, 0, 0) > 0)
        *first = (size_t)hf__pg_int(result, 0, 0) - 1;
    PQclear(result);
    hf__pg_arrays_free(&arrays);
    return status;
}

hf_status hf__pg_is_contended(hf__backend *base, const hf__claim *claim, bool *contended,
                              hf_error *err)
{
    PGresult *result = NULL;
    pg_lock_tag tag = hf__pg_lock_tag(claim);
    char class_text[16], companion[16];
    (void)snprintf(class_text, sizeof class_text, "%u", (unsigned)PG_COMPANION_CLASS);
    (void)snprintf(companion, sizeof companion, "%u", (unsigned)hf__pg_companion(claim->wake));
    const char *params[] = {tag.classid, tag.objid, tag.objsubid, class_text, companion};
    const pg_patience patience = {.until = hf__deadline(PG_BRIEF_MS)};
    hf_status status =
        hf__pg_ask_for(pg_backend_of(base), &patience, pg_sql(&hf__sql_postgres_is_contended), 5,
                       params, &result, err);
    if (status == HF_OK)
        *contended = hf__pg_bool(result, 0, 0);
    PQclear(result);
    return status;
}

/* Columns of the statements list and list_recorded. */
enum column {
    C_CLASSID,
    C_OBJID,
    C_OBJSUBID,
    C_SHARED,
    C_GRANTED,
    C_BACKEND,
    C_APPLICATION,
    C_ADDRESS,
    C_BOUND,
    C_IDLE,
    C_IDLE_HIDDEN,
    C_LABEL,
    C_HOST,
    C_PID,
    C_AGE,
    C_TOKEN,
    C_SLOT,
    C_DATABASE,
    C_LEFT,
    C_TRACEPARENT,
};

/* The numbers of a row, read once for sorting and comparing. */
struct row {
    int at; /* index in the result */
    int64_t age_ms;
    uint32_t classid, objid;
    uint32_t companion; /* of the key; a pair is taken as one bigint */
    int objsubid;
    bool shared, granted;
};

struct rows {
    const PGresult *result;
    struct row *items; /* sorted by key, holders first, then waiters in their order */
    int count;
};

#define DIFFER(a, b) ((a) < (b) ? -1 : 1)

/* Sorting here is faster than ORDER BY. */
static int by_key(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    if (left->objsubid != right->objsubid)
        return DIFFER(left->objsubid, right->objsubid);
    if (left->classid != right->classid)
        return DIFFER(left->classid, right->classid);
    if (left->objid != right->objid)
        return DIFFER(left->objid, right->objid);
    if (left->granted != right->granted)
        return left->granted ? -1 : 1;
    if (left->age_ms != right->age_ms)
        return DIFFER(right->age_ms, left->age_ms);
    return DIFFER(left->at, right->at);
}

static bool read_rows(const PGresult *result, struct rows *rows)
{
    rows->result = result;
    rows->count = PQntuples(result);
    rows->items = calloc((size_t)rows->count + 1, sizeof *rows->items);
    for (int i = 0; rows->items && i < rows->count; i++) {
        struct row *row = &rows->items[i];
        row->at = i;
        row->age_ms = PQgetisnull(result, i, C_BOUND) ? -1 : hf__pg_int(result, i, C_BOUND);
        row->classid = (uint32_t)hf__pg_int(result, i, C_CLASSID);
        row->objid = (uint32_t)hf__pg_int(result, i, C_OBJID);
        row->companion = (uint32_t)hf__pg_companion(hf_key_join(row->classid, row->objid));
        row->objsubid = (int)hf__pg_int(result, i, C_OBJSUBID);
        row->shared = hf__pg_bool(result, i, C_SHARED);
        row->granted = hf__pg_bool(result, i, C_GRANTED);
    }
    if (rows->items)
        qsort(rows->items, (size_t)rows->count, sizeof *rows->items, by_key);
    return rows->items != NULL;
}

static bool same_key(const struct rows *rows, int a, int b)
{
    const struct row *left = &rows->items[a], *right = &rows->items[b];
    return left->classid == right->classid && left->objid == right->objid &&
           left->objsubid == right->objsubid;
}

static bool is_first(const struct rows *rows, int row)
{
    return row == 0 || !same_key(rows, row - 1, row);
}

static bool is_pair_of(const struct row *row, uint32_t class_number)
{
    return row->objsubid == 2 && row->classid == class_number;
}

/* Our own bookkeeping of waits, which is nobody's lock. */
static bool is_internal(const struct row *row)
{
    return is_pair_of(row, PG_EDGE_CLASS) ||
           (row->objsubid == 2 && row->classid - PG_PLACE_CLASS < PG_PLACES);
}

static bool is_companion(const struct row *row)
{
    return is_pair_of(row, PG_COMPANION_CLASS);
}

/* The holders that block a waiter; first is the index of the first row of its key. */
static void blockers(const struct rows *rows, int first, bool shared, hf__buf *out)
{
    for (int i = first; i < rows->count && rows->items[i].granted && same_key(rows, i, first); i++)
        if (!shared || !rows->items[i].shared)
            hf__buf_printf(out, "%s%d", out->length ? "," : "",
                           (int)hf__pg_int(rows->result, rows->items[i].at, C_BACKEND));
}

/* Without records, all that shows of a sleeping waiter is the companion key that it holds. */
static bool sleeper_waits_for(const struct row *companion, const struct row *row)
{
    return row->companion == companion->objid && row->granted && !is_companion(row);
}

/*
 * Is the process shown as a waiter anyway, by its record or because it is in a slice? Its
 * application name tells which process it is.
 */
static bool waits_visibly(const struct rows *rows, int companion_row, int first)
{
    for (int i = first; i < rows->count && same_key(rows, i, first); i++)
        if (!rows->items[i].granted &&
            strcmp(hf__pg_text(rows->result, rows->items[i].at, C_APPLICATION),
                   hf__pg_text(rows->result, rows->items[companion_row].at, C_APPLICATION)) == 0)
            return true;
    return false;
}

/*
 * Adds the view of one row. sleeps: the row is a companion key, and the view says that its holder
 * waits for the key whose rows begin at first.
 */
static hf_status emit(hf__view_sink *sink, const struct rows *rows, int at, int first, bool sleeps,
                      hf_error *err)
{
    const PGresult *result = rows->result;
    const struct row *of = &rows->items[at], *about = &rows->items[first];
    int row = of->at;
    char application[128], host[256];
    hf__buf blocked_by = {0};
    int pid = (int)hf__pg_int(result, row, C_PID);
    bool exact = !PQgetisnull(result, row, C_AGE);
    bool waiting = sleeps || !of->granted;
    bool shared = of->shared && !sleeps;
    bool is_lease = !PQgetisnull(result, row, C_LEFT);
    bool prepared = PQgetisnull(result, row, C_BACKEND) && !is_lease;
    bool idle = !PQgetisnull(result, row, C_IDLE);
    const char *name =
        prepared ? "a prepared transaction" : hf__pg_text(result, row, C_APPLICATION);

    (void)snprintf(application, sizeof application, "%s", name);
    (void)snprintf(host, sizeof host, "%s", hf__pg_text(result, row, pid ? C_HOST : C_ADDRESS));
    if (!pid)
        (void)split_application(name, application, sizeof application, host, sizeof host, &pid);
    if (waiting)
        blockers(rows, first, shared, &blocked_by);

    hf_lock_view view = {
        .key = hf_key_join(about->classid, about->objid),
        .space = about->objsubid == 2 ? HF_PAIR : HF_BIGINT,
        .mode = shared ? HF_SHARED : HF_EXCLUSIVE,
        .waiting = waiting,
        .ours = exact,
        .session_known = !waiting && (exact || idle || prepared),
        .lifetime = is_lease   ? HF_LEASE
                    : prepared ? HF_TRANSACTION
                               : HF_SESSION,
        .label = hf__pg_text(result, about->at, C_LABEL),
        .application = application,
        .host = host,
        .pid = pid,
        .backend_pid = (int)hf__pg_int(result, row, C_BACKEND),
        .age_ms = exact                               ? hf__pg_int(result, row, C_AGE)
                  : PQgetisnull(result, row, C_BOUND) ? -1
                                                      : hf__pg_int(result, row, C_BOUND),
        .age_is_bound = !exact && (sleeps || !waiting),
        .token = hf__pg_int(result, row, C_TOKEN),
        .slot = (unsigned)hf__pg_int(result, row, C_SLOT),
        .blocked_by = blocked_by.data ? blocked_by.data : "",
        .idle_ms = idle ? hf__pg_int(result, row, C_IDLE) : -1,
        .idle_hidden = !prepared && hf__pg_bool(result, row, C_IDLE_HIDDEN),
        .left_ms = hf__pg_int(result, row, C_LEFT),
        .traceparent = sleeps ? "" : hf__pg_text(result, row, C_TRACEPARENT),
    };
    sink->database = hf__pg_text(result, about->at, C_DATABASE);
    hf_status status = sink->add(sink, &view, err);
    hf__buf_free(&blocked_by);
    return status;
}

static hf_status emit_sleepers(hf__view_sink *sink, const struct rows *rows, int row, hf_error *err)
{
    hf_status status = HF_OK;
    for (int i = 0; status == HF_OK && i < rows->count; i++)
        if (sleeper_waits_for(&rows->items[row], &rows->items[i]) && is_first(rows, i) &&
            !waits_visibly(rows, row, i))
            status = emit(sink, rows, row, i, true, err);
    return status;
}

static hf_status emit_all(hf__view_sink *sink, const PGresult *result, hf_error *err)
{
    struct rows rows;
    hf_status status = HF_OK;
    int first = 0;
    if (!read_rows(result, &rows))
        return hf__no_memory(err);
    for (int i = 0; status == HF_OK && i < rows.count; i++) {
        if (is_first(&rows, i))
            first = i;
        if (is_companion(&rows.items[i]))
            status = emit_sleepers(sink, &rows, i, err);
        else if (!is_internal(&rows.items[i]))
            status = emit(sink, &rows, i, first, false, err);
    }
    free(rows.items);
    return status;
}

/*
 * Runs the statement on the caller's connection, with the same deadline as on our own. If no answer
 * comes in time, it shuts the connection down, because nothing else can be sent before the answer.
 */
static hf_status list_on(PGconn *conn, const char *sql, int64_t deadline, PGresult **result,
                         hf_error *err)
{
    bool late = false;
    bool sent = PQsendQueryParams(conn, sql, 0, NULL, NULL, NULL, NULL, 0);
    while (sent && !late && PQisBusy(conn)) {
        short events = PQflush(conn) == 0 ? POLLIN : POLLIN | POLLOUT;
        struct pollfd pollfd = {.fd = PQsocket(conn), .events = events};
        int ready = poll(&pollfd, 1, hf__left_ms(deadline));
        late = ready == 0;
        sent = ready < 0 ? errno == EINTR : late || PQconsumeInput(conn);
    }
    if (late) {
        (void)shutdown(PQsocket(conn), SHUT_RDWR);
        (void)PQconsumeInput(conn);
        return hf__fail(err, HF_UNREACHABLE, "the server has not answered in time");
    }
    *result = PQgetResult(conn);
    if (!*result)
        return hf__fail(err, HF_UNREACHABLE, "the server is gone: %s", PQerrorMessage(conn));
    for (PGresult *end = PQgetResult(conn); end; end = PQgetResult(conn))
        PQclear(end);
    return PQresultStatus(*result) == PGRES_TUPLES_OK ? HF_OK : hf__pg_fail_result(*result, err);
}

hf_status hf__pg_list(hf__backend *base, struct pg_conn *conn, hf__view_sink *sink, hf_error *err)
{
    pg_backend *backend = pg_backend_of(base);
    PGresult *result = NULL;
    bool leases_only = hf__pg_is_transaction_pooled(backend) && hf__pg_may_be_leased(backend) &&
                       backend->schema == HF_SCHEMA_VERSION;
    const char *sql = atomic_load(&base->readable) || leases_only
                          ? pg_sql(&hf__sql_postgres_list_recorded)
                          : pg_sql(&hf__sql_postgres_list);
    hf_status status =
        conn ? list_on(conn, sql, hf__deadline(backend->ping_deadline_ms), &result, err)
             : hf__pg_ask(backend, sql, 0, NULL, &result, err);
    if (status == HF_OK)
        status = emit_all(sink, result, err);
    PQclear(result);
    return status;
}

/* ---- what was held: keys of the past ------------------------------------------------------ */

/* Reading a month of events may take longer than the deadline of other statements. */
enum { DEADLINE_MS = 120000 };

enum past_column {
    PAST_SPACE,
    PAST_KEY,
    PAST_LABEL,
    PAST_TIMES,
    PAST_SEEN,
    PAST_SHARED,
    PAST_APPLICATION,
    PAST_HOST,
    PAST_PID,
};

/* Only session locks are recorded, so the lifetime is always HF_SESSION. */
static hf_status show_past(const PGresult *result, int row, hf__view_sink *sink, hf_error *err)
{
    const hf_lock_view view = {
        .key = hf__pg_int(result, row, PAST_KEY),
        .space = hf__pg_int(result, row, PAST_SPACE) == HF_PAIR ? HF_PAIR : HF_BIGINT,
        .mode = hf__pg_bool(result, row, PAST_SHARED) ? HF_SHARED : HF_EXCLUSIVE,
        .ours = true,
        .session_known = true,
        .lifetime = HF_SESSION,
        .label = hf__pg_text(result, row, PAST_LABEL),
        .application = hf__pg_text(result, row, PAST_APPLICATION),
        .host = hf__pg_text(result, row, PAST_HOST),
        .pid = (int)hf__pg_int(result, row, PAST_PID),
        .age_ms = -1,
        .blocked_by = "",
        .idle_ms = -1,
        .seen_ms = hf__pg_int(result, row, PAST_SEEN),
        .times = hf__pg_int(result, row, PAST_TIMES),
    };
    return sink->add(sink, &view, err);
}

/* On a session that holds nothing, because the shared one would be blocked for too long. */
static hf_status ask(pg_backend *backend, int64_t since_ms, PGresult **result, hf_error *err)
{
    pg_session *session = NULL;
    char since[24];
    const char *params[] = {NULL};

    hf_status status = hf__pg_checkout(backend, true, PG_IF_IDLE, NULL, &session, err);
    if (status != HF_OK)
        return status;
    (void)snprintf(since, sizeof since, "%lld", (long long)since_ms);
    if (since_ms >= 0)
        params[0] = since;
    status = hf__pg_query_until(session, pg_sql(&hf__sql_postgres_list_past), 1, params,
                                hf__deadline(DEADLINE_MS), result, err);
    hf__pg_checkin(session);
    return status;
}

hf_status hf__pg_list_past(hf__backend *base, int64_t since_ms, hf__view_sink *sink, hf_error *err)
{
    pg_backend *backend = pg_backend_of(base);
    PGresult *result = NULL;

    hf_status status = HF_OK;
    if (!atomic_load(&base->readable))
        status = hf__pg_require_schema(backend, "what was locked is recorded in it", err);
    if (status == HF_OK)
        status = ask(backend, since_ms, &result, err);
    for (int i = 0; status == HF_OK && i < PQntuples(result); i++)
        status = show_past(result, i, sink, err);
    PQclear(result);
    return status;
}
