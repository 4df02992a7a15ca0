/* Who holds what: from pg_locks, with names where the holder recorded them. */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql.h"

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

/* "APP on HOST (pid N)", as our sessions call themselves; false for anybody else's name. */
static bool split_application(const char *name, char *application, size_t application_size,
                              char *host, size_t host_size, int *pid)
{
    const char *tail = strstr(name, " (pid "), *on = NULL;
    for (const char *at = strstr(name, " on "); at && tail && at < tail;
         at = strstr(at + 1, " on "))
        on = at;
    if (!on || !tail || tail[strlen(tail) - 1] != ')')
        return false;
    *pid = (int)strtol(tail + strlen(" (pid "), NULL, 10);
    if (*pid <= 0)
        return false;
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
    bool recorded = atomic_load(&base->records);
    pg_lock_tag tag = hf__pg_lock_tag(claim);
    const char *params[] = {tag.classid, tag.objid, tag.objsubid,
                            claim->mode == HF_SHARED ? "t" : "f"};

    memset(holder, 0, sizeof *holder);
    hf_status status =
        hf__pg_ask(pg_backend_of(base),
                   recorded ? hf__sql_postgres_find_holder_recorded : hf__sql_postgres_find_holder,
                   4, params, &result, err);
    if (status == HF_OK && PQntuples(result) > 0)
        hf__pg_read_holder(result, recorded, holder);
    PQclear(result);
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
    hf_status status =
        hf__pg_ask(pg_backend_of(base), hf__sql_postgres_is_contended, 5, params, &result, err);
    if (status == HF_OK)
        *contended = hf__pg_bool(result, 0, 0);
    PQclear(result);
    return status;
}

/* ------------------------------------------------------------------------------------------------ */

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
};

static bool same_key(const PGresult *result, int a, int b)
{
    return strcmp(hf__pg_text(result, a, C_CLASSID), hf__pg_text(result, b, C_CLASSID)) == 0 &&
           strcmp(hf__pg_text(result, a, C_OBJID), hf__pg_text(result, b, C_OBJID)) == 0 &&
           strcmp(hf__pg_text(result, a, C_OBJSUBID), hf__pg_text(result, b, C_OBJSUBID)) == 0;
}

static bool is_companion(const PGresult *result, int row)
{
    return hf__pg_int(result, row, C_OBJSUBID) == 2 &&
           hf__pg_int(result, row, C_CLASSID) == PG_COMPANION_CLASS;
}

static bool is_edge(const PGresult *result, int row)
{
    return hf__pg_int(result, row, C_OBJSUBID) == 2 &&
           hf__pg_int(result, row, C_CLASSID) == PG_EDGE_CLASS;
}

/* Holders of the same key in the way of a waiter: one pass over neighbours, the rows are sorted. */
static void blockers(const PGresult *result, int row, hf__buf *out)
{
    bool shared = hf__pg_bool(result, row, C_SHARED);
    int first = row;
    while (first > 0 && same_key(result, first - 1, row))
        first--;
    for (int i = first; i < PQntuples(result) && same_key(result, i, row); i++) {
        bool conflicts = !shared || !hf__pg_bool(result, i, C_SHARED);
        if (hf__pg_bool(result, i, C_GRANTED) && conflicts)
            hf__buf_printf(out, "%s%d", out->length ? "," : "",
                           (int)hf__pg_int(result, i, C_BACKEND));
    }
}

static int64_t key_at(const PGresult *result, int row)
{
    return hf_key_join((uint32_t)hf__pg_int(result, row, C_CLASSID),
                       (uint32_t)hf__pg_int(result, row, C_OBJID));
}

/* Without records a sleeping waiter shows only by the companion key it holds. */
static bool sleeper_waits_for(const PGresult *result, int companion_row, int row)
{
    return hf__pg_bool(result, row, C_GRANTED) && !is_companion(result, row) &&
           (uint32_t)hf__pg_companion(key_at(result, row)) ==
               (uint32_t)hf__pg_int(result, companion_row, C_OBJID);
}

/* The same process (its name says which) is shown as a waiter anyway, by its record or by a slice. */
static bool waits_visibly(const PGresult *result, int companion_row, int row)
{
    for (int i = 0; i < PQntuples(result); i++)
        if (!hf__pg_bool(result, i, C_GRANTED) && same_key(result, i, row) &&
            strcmp(hf__pg_text(result, i, C_APPLICATION),
                   hf__pg_text(result, companion_row, C_APPLICATION)) == 0)
            return true;
    return false;
}

static hf_status emit(hf__view_sink *sink, const PGresult *result, int row, int about,
                      hf_error *err)
{
    char application[128], host[256];
    hf__buf blocked_by = {0};
    int pid = (int)hf__pg_int(result, row, C_PID);
    bool exact = !PQgetisnull(result, row, C_AGE);
    bool waiting = row != about || !hf__pg_bool(result, row, C_GRANTED);
    bool prepared = PQgetisnull(result, row, C_BACKEND);
    bool idle = !PQgetisnull(result, row, C_IDLE);
    const char *name =
        prepared ? "a prepared transaction" : hf__pg_text(result, row, C_APPLICATION);

    (void)snprintf(application, sizeof application, "%s", name);
    (void)snprintf(host, sizeof host, "%s", hf__pg_text(result, row, pid ? C_HOST : C_ADDRESS));
    if (!pid)
        (void)split_application(name, application, sizeof application, host, sizeof host, &pid);
    if (waiting)
        blockers(result, about, &blocked_by);

    hf_lock_view view = {
        .key = key_at(result, about),
        .space = hf__pg_int(result, about, C_OBJSUBID) == 2 ? HF_PAIR : HF_BIGINT,
        .mode = row == about && hf__pg_bool(result, row, C_SHARED) ? HF_SHARED : HF_EXCLUSIVE,
        .waiting = waiting,
        .ours = exact,
        .session_known = !waiting && (exact || idle || prepared),
        .lifetime = prepared ? HF_TRANSACTION : HF_SESSION,
        .label = hf__pg_text(result, about, C_LABEL),
        .application = application,
        .host = host,
        .pid = pid,
        .backend_pid = (int)hf__pg_int(result, row, C_BACKEND),
        .age_ms = exact                               ? hf__pg_int(result, row, C_AGE)
                  : PQgetisnull(result, row, C_BOUND) ? -1
                                                      : hf__pg_int(result, row, C_BOUND),
        .age_is_bound = !exact && !(waiting && row == about),
        .token = hf__pg_int(result, row, C_TOKEN),
        .slot = (unsigned)hf__pg_int(result, row, C_SLOT),
        .blocked_by = blocked_by.data ? blocked_by.data : "",
        .idle_ms = idle ? hf__pg_int(result, row, C_IDLE) : -1,
        .idle_hidden = !prepared && hf__pg_bool(result, row, C_IDLE_HIDDEN),
    };
    hf_status status = sink->add(sink, &view, err);
    hf__buf_free(&blocked_by);
    return status;
}

static hf_status emit_sleepers(hf__view_sink *sink, const PGresult *result, int row, hf_error *err)
{
    hf_status status = HF_OK;
    for (int i = 0; status == HF_OK && i < PQntuples(result); i++)
        if (sleeper_waits_for(result, row, i) && !waits_visibly(result, row, i) &&
            (i == 0 || !same_key(result, i - 1, i)))
            status = emit(sink, result, row, i, err);
    return status;
}

static hf_status list_on(PGconn *conn, const char *sql, PGresult **result, hf_error *err)
{
    *result = PQexecParams(conn, sql, 0, NULL, NULL, NULL, NULL, 0);
    return PQresultStatus(*result) == PGRES_TUPLES_OK ? HF_OK : hf__pg_fail_result(*result, err);
}

hf_status hf__pg_list(hf__backend *base, struct pg_conn *conn, hf__view_sink *sink, hf_error *err)
{
    PGresult *result = NULL;
    const char *sql =
        atomic_load(&base->records) ? hf__sql_postgres_list_recorded : hf__sql_postgres_list;
    hf_status status = conn ? list_on(conn, sql, &result, err)
                            : hf__pg_ask(pg_backend_of(base), sql, 0, NULL, &result, err);
    for (int i = 0; status == HF_OK && i < PQntuples(result); i++)
        status = is_edge(result, i)        ? HF_OK
                 : is_companion(result, i) ? emit_sleepers(sink, result, i, err)
                                           : emit(sink, result, i, i, err);
    PQclear(result);
    return status;
}
