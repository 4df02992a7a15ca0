/* Who holds and who waits: from the records, as far as the kernel confirms them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/vec.h"
#include "lib/local/local.h"

static int64_t age_of(int64_t since_ms)
{
    int64_t age = hf__wall_ms() - since_ms;
    return age > 0 ? age : 0;
}

/* ---- one holder ------------------------------------------------------------------------------ */

static hf__local_process process_at(sqlite3_stmt *rows, int column)
{
    return (hf__local_process){
        .pid = sqlite3_column_int(rows, column),
        .started = sqlite3_column_int64(rows, column + 1),
        .pid_space = sqlite3_column_int64(rows, column + 2),
        .host = (const char *)sqlite3_column_text(rows, column + 3),
    };
}

static void fill_holder(sqlite3_stmt *rows, hf__holder *holder)
{
    holder->found = true;
    holder->pid = sqlite3_column_int(rows, 0);
    (void)snprintf(holder->host, sizeof holder->host, "%s", sqlite3_column_text(rows, 3));
    (void)snprintf(holder->application, sizeof holder->application, "%s",
                   sqlite3_column_text(rows, 4));
    holder->age_ms = age_of(sqlite3_column_int64(rows, 5));
    if (sqlite3_column_type(rows, 7) != SQLITE_NULL)
        (void)snprintf(holder->traceparent, sizeof holder->traceparent, "%s",
                       sqlite3_column_text(rows, 7));
}

/*
 * Finds one who holds the key in a way that conflicts with the mode. Waiters are never named: a
 * lock that nobody holds is not refused for long.
 */
static hf_status find_rival(hf__local *local, const hf__claim *claim, hf_mode mode, bool is_locked,
                            hf__holder *holder, hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    bool more = true;

    hf_status status = hf__local_query(
        local, &hf__sql_local_find_rivals, &rows, err, "iiiii", (int64_t)claim->space, claim->key,
        (int64_t)(mode == HF_SHARED), hf__local_clock_ms(local), (int64_t)is_locked);
    while (status == HF_OK && more && !holder->found) {
        status = hf__local_fetch(local, rows, &more, err);
        if (status != HF_OK || !more)
            break;
        const hf__local_process process = process_at(rows, 0);
        bool is_lease = sqlite3_column_type(rows, 6) != SQLITE_NULL;
        if (is_lease || hf__local_is_alive(local, &process))
            fill_holder(rows, holder);
    }
    if (rows != NULL)
        sqlite3_reset(rows);
    return status;
}

bool hf__local_is_head_stopped(hf__local *local, const hf__claim *claim,
                               const hf__local_patience *patience)
{
    sqlite3_stmt *rows = NULL;
    size_t stopped = 0;
    size_t alive = 0;
    bool more = true;
    hf_error why;

    if (!local->keeps_records || hf__local_db_enter(local, patience, &why) != HF_OK)
        return false;
    hf_status status = hf__local_query(local, &hf__sql_local_heads_of_line, &rows, &why, "ii",
                                       (int64_t)claim->space, claim->key);
    while (status == HF_OK && more) {
        status = hf__local_fetch(local, rows, &more, &why);
        if (status != HF_OK || !more)
            break;
        const hf__local_process process = process_at(rows, 0);
        if (!hf__local_is_alive(local, &process))
            continue;
        alive++;
        stopped +=
            process.pid_space == local->self.pid_space && hf__process_is_stopped(process.pid);
    }
    if (rows != NULL)
        sqlite3_reset(rows);
    hf__local_db_leave(local);
    return status == HF_OK && alive > 0 && stopped == alive;
}

bool hf__local_is_asked_for(hf__local *local, const hf__request *request)
{
    const hf__local_patience patience = hf__local_patience_of(local, request);
    hf__holder holder = {0};
    bool held = false;
    hf_error ignored;

    if (!hf__stands_aside(request) ||
        hf__local_is_held(local, request->ask, &held, &ignored) != HF_OK || !held ||
        hf__local_db_enter(local, &patience, &ignored) != HF_OK)
        return held;
    (void)!find_rival(local, request->ask, HF_SHARED, true, &holder, &ignored);
    hf__local_db_leave(local);
    return !holder.found || strcmp(holder.host, local->host) != 0 ||
           !hf__process_is_stopped(holder.pid);
}

hf_status hf__local_find_holder(hf__backend *backend, const hf__claim *claim, hf__holder *holder,
                                hf_error *err)
{
    const hf__local_patience brief = hf__local_patience_for(HF__LOCAL_BRIEF_MS);
    hf__local *local = (hf__local *)backend;
    hf__claim alone = *claim;
    bool conflicts = false;
    bool held = false;

    *holder = (hf__holder){.age_ms = -1};
    if (!local->keeps_records || !hf__local_db_exists(local))
        return HF_OK;
    alone.mode = HF_EXCLUSIVE;
    hf_status status = hf__local_is_held(local, claim, &conflicts, err);
    if (status == HF_OK)
        status = hf__local_is_held(local, &alone, &held, err);
    if (status == HF_OK)
        status = hf__local_db_enter(local, &brief, err);
    if (status != HF_OK)
        return status;
    /* A shared claim may be refused for the sake of a waiter: then name who keeps that waiting. */
    status = find_rival(local, claim, conflicts ? claim->mode : HF_EXCLUSIVE, held, holder, err);
    hf__local_db_leave(local);
    return status;
}

/* Also what is leased, which no lock of the kernel tells of. */
hf_status hf__local_probe_claims(hf__backend *backend, const hf__request *request, bool held,
                                 size_t *first, hf_error *err)
{
    const hf__claim *claims = request->claims;
    hf__local *local = (hf__local *)backend;
    hf_status status = HF_OK;

    for (*first = 0; *first < request->count; ++*first) {
        bool is = false;
        status = hf__local_is_held(local, &claims[*first], &is, err);
        is = is || hf__local_is_leased(local, request, &claims[*first]);
        if (status != HF_OK || is == held)
            break;
    }
    return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct row {
    hf_lock_view view; /* its strings are those below */
    hf__local_standing standing;
    bool is_holder;
    char *label;
    char *application;
    char *host;
    char *traceparent;
};

struct table {
    const hf__local *local;
    struct row *rows;
    size_t count;
    size_t capacity;
    size_t recorded; /* so many rows are from the records, sorted; then come the kernel's */
};

static struct row *new_row(struct table *table)
{
    if (!hf__grow(&table->rows, &table->capacity, table->count + 1, sizeof *table->rows))
        return NULL;
    struct row *row = &table->rows[table->count++];
    memset(row, 0, sizeof *row);
    return row;
}

static void table_free(struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free(table->rows[i].label);
        free(table->rows[i].application);
        free(table->rows[i].host);
        free(table->rows[i].traceparent);
    }
    free(table->rows);
}

static char *copy_text(sqlite3_stmt *rows, int column)
{
    const void *bytes = sqlite3_column_blob(rows, column);
    size_t size = (size_t)sqlite3_column_bytes(rows, column);
    char *copy = malloc(size + 1);

    if (copy == NULL)
        return NULL;
    if (size > 0)
        memcpy(copy, bytes, size);
    copy[size] = '\0';
    return copy;
}

/* What is left of a lease; 0: it is over, or none. */
static int64_t left_of(const hf__local *local, sqlite3_stmt *rows)
{
    int64_t left_ms = sqlite3_column_int64(rows, 14) - hf__local_clock_ms(local);
    return sqlite3_column_type(rows, 14) != SQLITE_NULL && left_ms > 0 ? left_ms : 0;
}

static hf_status keep_row(struct table *table, sqlite3_stmt *rows, hf_error *err)
{
    struct row *row = new_row(table);
    if (row == NULL)
        return hf__no_memory(err);
    row->standing = (hf__local_standing)sqlite3_column_int(rows, 3);
    row->is_holder = sqlite3_column_int(rows, 3) < 0;
    row->host = copy_text(rows, 11);
    row->application = copy_text(rows, 12);
    row->label = copy_text(rows, 13);
    row->traceparent = copy_text(rows, 15);
    if (row->host == NULL || row->application == NULL || row->label == NULL ||
        row->traceparent == NULL)
        return hf__no_memory(err);
    row->view = (hf_lock_view){
        .space = sqlite3_column_int(rows, 0) == HF_PAIR ? HF_PAIR : HF_BIGINT,
        .key = sqlite3_column_int64(rows, 1),
        .mode = sqlite3_column_int(rows, 2) != 0 ? HF_SHARED : HF_EXCLUSIVE,
        .waiting = !row->is_holder && row->standing != HF__LOCAL_TAKEN,
        .ours = true,
        .session_known = true,
        .lifetime = (hf_lifetime)sqlite3_column_int(rows, 5),
        .slot = (unsigned)sqlite3_column_int(rows, 4),
        .token = sqlite3_column_int64(rows, 6),
        .age_ms = age_of(sqlite3_column_int64(rows, 7)),
        .left_ms = row->is_holder ? left_of(table->local, rows) : 0,
        .pid = sqlite3_column_int(rows, 8),
        .label = row->label,
        .application = row->application,
        .host = row->host,
        .traceparent = row->traceparent,
        .blocked_by = "",
        .idle_ms = -1,
        .idle_hidden = true,
    };
    return HF_OK;
}

/* Is the record still right: its process lives, and a holder's key is really locked, or leased? */
static hf_status is_true(hf__local *local, sqlite3_stmt *rows, bool *is, hf_error *err)
{
    const hf__local_process process = {
        .pid = sqlite3_column_int(rows, 8),
        .started = sqlite3_column_int64(rows, 9),
        .pid_space = sqlite3_column_int64(rows, 10),
        .host = (const char *)sqlite3_column_text(rows, 11),
    };
    const hf__claim claim = {
        .space = sqlite3_column_int(rows, 0) == HF_PAIR ? HF_PAIR : HF_BIGINT,
        .key = sqlite3_column_int64(rows, 1),
    };

    *is = left_of(local, rows) > 0;
    if (*is)
        return HF_OK;
    *is = hf__local_is_alive(local, &process) && sqlite3_column_int(rows, 5) != HF_LEASE;
    if (!*is || sqlite3_column_int(rows, 3) >= 0)
        return HF_OK;
    return hf__local_is_held(local, &claim, is, err);
}

static hf_status read_records(hf__local *local, struct table *table, hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    bool more = true;

    hf_status status = hf__local_query(local, &hf__sql_local_list_locks, &rows, err, "");
    while (status == HF_OK) {
        bool is = false;
        status = hf__local_fetch(local, rows, &more, err);
        if (status != HF_OK || !more)
            break;
        status = is_true(local, rows, &is, err);
        if (status == HF_OK && is)
            status = keep_row(table, rows, err);
    }
    if (rows != NULL)
        sqlite3_reset(rows);
    table->recorded = table->count;
    return status;
}

static bool is_same_key(const hf_lock_view *view, const hf__claim *claim)
{
    return view->key == claim->key && view->space == claim->space;
}

/* Adds a lock that the kernel knows, without a holder's name, unless it is recorded. */
static hf_status keep_unrecorded(void *arg, const hf__claim *claim, hf_error *err)
{
    struct table *table = arg;

    for (size_t i = 0; i < table->recorded; i++)
        if (!table->rows[i].view.waiting && is_same_key(&table->rows[i].view, claim))
            return HF_OK;
    struct row *row = new_row(table);
    if (row == NULL)
        return hf__no_memory(err);
    row->is_holder = true;
    row->view = (hf_lock_view){
        .key = claim->key,
        .space = claim->space,
        .mode = claim->mode,
        .session_known = true,
        .lifetime = HF_SESSION,
        .age_ms = -1,
        .label = "",
        .application = "",
        .host = "",
        .blocked_by = "",
        .idle_ms = -1,
        .idle_hidden = true,
    };
    return HF_OK;
}

static bool is_in_the_way(const struct row *row, const struct row *waiter)
{
    if (row == waiter || row->view.pid == 0 || row->view.key != waiter->view.key ||
        row->view.space != waiter->view.space)
        return false;
    if (row->view.mode == HF_SHARED && waiter->view.mode == HF_SHARED)
        return false;
    return row->is_holder || row->standing == HF__LOCAL_TAKEN ||
           (row->standing == HF__LOCAL_AT_HEAD && waiter->standing == HF__LOCAL_QUEUED);
}

/* "4711,4712". Recorded rows of one key are neighbours. */
static void name_blockers(const struct table *table, size_t at, hf__buf *out)
{
    const struct row *waiter = &table->rows[at];
    size_t first = at;

    while (first > 0 && table->rows[first - 1].view.key == waiter->view.key &&
           table->rows[first - 1].view.space == waiter->view.space)
        first--;
    for (size_t i = first; i < table->recorded; i++) {
        if (table->rows[i].view.key != waiter->view.key)
            break;
        if (is_in_the_way(&table->rows[i], waiter))
            hf__buf_printf(out, "%s%d", out->length > 0 ? "," : "", table->rows[i].view.pid);
    }
}

static hf_status show(struct table *table, hf__view_sink *sink, hf_error *err)
{
    hf__buf blockers = {0};
    hf_status status = HF_OK;

    for (size_t i = 0; i < table->count && status == HF_OK; i++) {
        hf_lock_view *view = &table->rows[i].view;
        hf__buf_clear(&blockers);
        if (view->waiting)
            name_blockers(table, i, &blockers);
        if (blockers.data != NULL && blockers.length > 0)
            view->blocked_by = blockers.data;
        status = sink->add(sink, view, err);
        view->blocked_by = "";
    }
    hf__buf_free(&blockers);
    return status;
}

hf_status hf__local_list(hf__backend *backend, struct pg_conn *conn, hf__view_sink *sink,
                         hf_error *err)
{
    (void)conn;
    hf__local *local = (hf__local *)backend;
    struct table table = {.local = local};
    hf_status status = HF_OK;

    if (local->keeps_records && hf__local_db_exists(local)) {
        status = hf__local_db_enter(local, NULL, err);
        if (status != HF_OK)
            return status;
        status = read_records(local, &table, err);
        hf__local_db_leave(local);
    }
    if (status == HF_OK)
        status = hf__local_ask_kernel(local, keep_unrecorded, &table, err);
    if (status == HF_OK)
        status = show(&table, sink, err);
    table_free(&table);
    return status;
}

/* ---- what was held: keys of the past ------------------------------------------------------ */

enum past_column { SPACE, KEY, LABEL, TIMES, AT_MS, SHARED, APPLICATION, HOST, PID };

static const char *text_at(sqlite3_stmt *rows, int past_column)
{
    const unsigned char *text = sqlite3_column_text(rows, past_column);
    return text != NULL ? (const char *)text : "";
}

static hf_status show_past(sqlite3_stmt *rows, int64_t now_ms, hf__view_sink *sink, hf_error *err)
{
    int64_t seen_ms = now_ms - sqlite3_column_int64(rows, AT_MS);
    const hf_lock_view view = {
        .key = sqlite3_column_int64(rows, KEY),
        .space = sqlite3_column_int(rows, SPACE) == HF_PAIR ? HF_PAIR : HF_BIGINT,
        .mode = sqlite3_column_int(rows, SHARED) != 0 ? HF_SHARED : HF_EXCLUSIVE,
        .ours = true,
        .label = text_at(rows, LABEL),
        .application = text_at(rows, APPLICATION),
        .host = text_at(rows, HOST),
        .pid = sqlite3_column_int(rows, PID),
        .age_ms = -1,
        .blocked_by = "",
        .idle_ms = -1,
        .idle_hidden = true,
        .seen_ms = seen_ms > 0 ? seen_ms : 0,
        .times = sqlite3_column_int64(rows, TIMES),
    };
    return sink->add(sink, &view, err);
}

static hf_status read_rows(hf__local *local, int64_t since_ms, hf__view_sink *sink, hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    int64_t now_ms = hf__wall_ms();
    bool more = true;

    hf_status status = hf__local_query(local, &hf__sql_local_list_past, &rows, err, "i",
                                       since_ms < 0 ? INT64_C(0) : now_ms - since_ms);
    while (status == HF_OK) {
        status = hf__local_fetch(local, rows, &more, err);
        if (status != HF_OK || !more)
            break;
        status = show_past(rows, now_ms, sink, err);
    }
    if (rows != NULL)
        sqlite3_reset(rows);
    return status;
}

hf_status hf__local_list_past(hf__backend *backend, int64_t since_ms, hf__view_sink *sink,
                              hf_error *err)
{
    hf__local *local = (hf__local *)backend;

    if (!local->keeps_records)
        return hf__fail(err, HF_NO_SCHEMA, "records are switched off for this store");
    if (!hf__local_db_exists(local))
        return HF_OK;
    hf_status status = hf__local_db_enter(local, NULL, err);
    if (status != HF_OK)
        return status;
    status = read_rows(local, since_ms, sink, err);
    hf__local_db_leave(local);
    return status;
}
