/*
 * Connections to data.db and other files of callers: opening, reuse, what statements may not do,
 * failures.
 */
#include "lib/local/transaction.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

enum {
    BUSY_MS = 200,         /* for others, once a transaction has begun; then it is tried again */
    PROGRESS_STEPS = 1000, /* of SQLite's machine: some 10 us */
    OPEN_MS = 5000,        /* for others that create the file or recover it */
    MAX_IDLE = 8,
};

static void data_path(const hf__local_connection *connection, char *out, size_t out_size)
{
    if (connection->file != NULL)
        (void)snprintf(out, out_size, "%s", connection->file);
    else
        (void)snprintf(out, out_size, "%s/%s.db", connection->local->folder, connection->database);
}

/* The name becomes part of a path, and must not be that of the store's own file. */
static hf_status check_database(const char *name, hf_error *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t size = strlen(name);

    if (size > 0 && size < sizeof((hf__local_connection *)0)->database && name[0] != '-' &&
        name[strspn(name, allowed)] == '\0' && strcmp(name, "holdfast") != 0)
        return HF_OK;
    return hf__fail(err, HF_INVALID,
                    "a database of the local store is named by letters, digits, '_' and '-'");
}

bool hf__local_connection_is_over(const hf__local_connection *connection)
{
    return hf__left_ms(connection->deadline) == 0 || hf__is_cancelled(connection->cancel);
}

/* ---- failures -------------------------------------------------------------------------------- */

typedef struct failure {
    int code; /* an extended result code, or a primary one for all others of its kind */
    hf_status status;
    hf__attempt_fault fault;
    const char *sqlstate; /* what PostgreSQL reports in this case */
    const char *hint;
} failure;

static const failure failures[] = {
    {SQLITE_CONSTRAINT_UNIQUE, HF_DATABASE, HF__FAULT_UNIQUE, "23505", ""},
    {SQLITE_CONSTRAINT_PRIMARYKEY, HF_DATABASE, HF__FAULT_UNIQUE, "23505", ""},
    {SQLITE_CONSTRAINT_ROWID, HF_DATABASE, HF__FAULT_UNIQUE, "23505", ""},
    {SQLITE_CONSTRAINT_FOREIGNKEY, HF_DATABASE, HF__FAULT_FINAL, "23503", ""},
    {SQLITE_CONSTRAINT_NOTNULL, HF_DATABASE, HF__FAULT_FINAL, "23502", ""},
    {SQLITE_CONSTRAINT_CHECK, HF_DATABASE, HF__FAULT_FINAL, "23514", ""},
    {SQLITE_CONSTRAINT, HF_DATABASE, HF__FAULT_FINAL, "23000", ""},
    {SQLITE_MISMATCH, HF_DATABASE, HF__FAULT_FINAL, "22P02", ""},
    {SQLITE_TOOBIG, HF_DATABASE, HF__FAULT_FINAL, "54000", ""},
    {SQLITE_BUSY_SNAPSHOT, HF_DATABASE, HF__FAULT_RETRY, "40001", ""},
    {SQLITE_BUSY, HF_DATABASE, HF__FAULT_RETRY, "55P03", ""},
    {SQLITE_LOCKED, HF_DATABASE, HF__FAULT_RETRY, "55P03", ""},
    {SQLITE_SCHEMA, HF_DATABASE, HF__FAULT_RETRY, "40001", ""},
    {SQLITE_INTERRUPT, HF_EXHAUSTED, HF__FAULT_FINAL, "57014",
     "it was rolled back; allow more time or do less in it"},
    {SQLITE_CORRUPT, HF_DATABASE, HF__FAULT_FINAL, "XX001", "restore the file from a backup"},
    {SQLITE_NOTADB, HF_CONFIG, HF__FAULT_FINAL, "", "move it away, or choose another folder"},
    {SQLITE_CANTOPEN, HF_CONFIG, HF__FAULT_FINAL, "",
     "choose a folder that you may write to: local:/path/to/folder"},
    {SQLITE_PERM, HF_CONFIG, HF__FAULT_FINAL, "",
     "choose a folder that you may write to: local:/path/to/folder"},
    {SQLITE_READONLY, HF_CONFIG, HF__FAULT_FINAL, "",
     "choose a folder that you may write to: local:/path/to/folder"},
    {SQLITE_FULL, HF_UNREACHABLE, HF__FAULT_FINAL, "", "make room on its filesystem"},
    {SQLITE_IOERR, HF_UNREACHABLE, HF__FAULT_FINAL, "", "check its filesystem and disk"},
    {SQLITE_NOMEM, HF_NO_MEMORY, HF__FAULT_FINAL, "", ""},
};

static failure find_failure(const hf__local_connection *connection, int code)
{
    if ((code & 0xff) == SQLITE_READONLY && connection->read_only)
        return (failure){code, HF_DATABASE, HF__FAULT_FINAL, "25006",
                         "the transaction was asked for as read-only"};
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if (failures[i].code == code || failures[i].code == (code & 0xff))
            return failures[i];
    return (failure){code, HF_DATABASE, HF__FAULT_FINAL, "", ""};
}

hf_status hf__local_connection_fail(const hf__local_connection *connection, int code,
                                    hf__attempt_fault *fault, hf_error *err)
{
    failure found = find_failure(connection, code);
    const char *text =
        connection->handle != NULL ? sqlite3_errmsg(connection->handle) : sqlite3_errstr(code);
    hf_status status = HF_OK;
    char path[PATH_MAX];

    *fault = found.fault;
    data_path(connection, path, sizeof path);
    if (found.status == HF_EXHAUSTED && hf__is_cancelled(connection->cancel))
        status = hf__interrupted(err);
    else if (found.status == HF_EXHAUSTED)
        status =
            hf__fail(err, HF_EXHAUSTED, "the transaction's deadline passed while a statement ran");
    else if (found.status == HF_DATABASE)
        status = hf__fail(err, found.status, "%s", text);
    else
        status = hf__fail(err, found.status, "%s failed: %s", path, text);
    hf__hint(err, "%s", found.hint);
    if (err != NULL)
        strcpy(err->sqlstate, found.sqlstate);
    return status;
}

/* ---- what statements may not do -------------------------------------------------------------- */

/*
 * SQLite calls this while it prepares a statement, so a refused one has not done anything. A
 * statement that changes the connection beyond the transaction is allowed, but then the connection
 * is not reused.
 */
static int guard(void *arg, int action, const char *first, const char *second, const char *database,
                 const char *trigger)
{
    hf__local_connection *connection = arg;

    (void)database;
    (void)trigger;
    if (connection->trusted)
        return SQLITE_OK;
    switch (action) {
    case SQLITE_TRANSACTION:
        connection->refused = "it would begin or end the transaction: return, or call hf_tx_end";
        return SQLITE_DENY;
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
        connection->refused = "a crash would tear a transaction over several files apart";
        return SQLITE_DENY;
    case SQLITE_PRAGMA:
        if (second != NULL && sqlite3_stricmp(first, "query_only") == 0) {
            connection->refused = "the options of the transaction say whether it is read-only";
            return SQLITE_DENY;
        }
        connection->altered = connection->altered || second != NULL;
        return SQLITE_OK;
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_CREATE_TEMP_TABLE:
    case SQLITE_CREATE_TEMP_TRIGGER:
    case SQLITE_CREATE_TEMP_VIEW: connection->altered = true; return SQLITE_OK;
    default: return SQLITE_OK;
    }
}

int hf__local_connection_run(hf__local_connection *connection, const char *sql)
{
    connection->trusted = true;
    int code = sqlite3_exec(connection->handle, sql, NULL, NULL, NULL);
    connection->trusted = false;
    return code;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void pause_us(long us)
{
    struct timespec pause = {.tv_nsec = us * 1000};
    (void)nanosleep(&pause, NULL);
}

/* SQLite's own pauses grow to 100 ms, which is much longer than most transactions. */
static int on_busy(void *arg, int count)
{
    enum { STEP_US = 100, LONGEST_US = 5000 };
    hf__local_connection *connection = arg;
    long us = count < LONGEST_US / STEP_US ? (long)(count + 1) * STEP_US : LONGEST_US;

    if (count == 0) {
        int64_t until = connection->patient ? HF__FOREVER : hf__deadline(BUSY_MS);
        connection->busy_until = until < connection->deadline ? until : connection->deadline;
    }
    if (hf__now_ms() >= connection->busy_until ||
        hf__local_is_interrupted(connection->local, connection->cancel))
        return 0;
    pause_us(us);
    return 1;
}

/* Called every so many steps of a statement; 1 ends it. Never ROLLBACK or COMMIT. */
static int on_progress(void *arg)
{
    const hf__local_connection *connection = arg;
    return !connection->trusted && hf__local_connection_is_over(connection);
}

static void add_escaped(hf__buf *uri, const char *path)
{
    for (const char *at = path; *at != '\0'; at++) {
        bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                     (*at >= '0' && *at <= '9') || strchr("/._-", *at) != NULL;
        hf__buf_printf(uri, plain ? "%c" : "%%%02X", (unsigned char)*at);
    }
}

/*
 * A new file is for the owner only, whatever the umask: "modeof" makes SQLite copy the mode of
 * another file. We must not create the file ourselves, because closing our descriptor would drop
 * the POSIX locks of other SQLite connections that this process may have opened meanwhile.
 */
static hf_status data_uri(const hf__local *local, const char *path, bool foreign, hf__buf *uri,
                          hf_error *err)
{
    char model[PATH_MAX];
    struct stat found;

    hf__buf_puts(uri, "file:");
    add_escaped(uri, path);
    if (!foreign && stat(path, &found) != 0) {
        hf_status status = hf__local_make_folders(local, err);
        if (status != HF_OK)
            return status;
        (void)snprintf(model, sizeof model, "%s/locks/create", local->folder);
        int fd = open(model, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return hf__fail_errno(err, errno == ENOSPC ? HF_UNREACHABLE : HF_CONFIG, errno,
                                  "cannot open %s", model);
        close(fd);
        hf__local_give_away(model);
        hf__buf_puts(uri, "?modeof=");
        add_escaped(uri, model);
    }
    return uri->broken ? hf__no_memory(err) : HF_OK;
}

static int keep_mode(void *arg, int count, char **values, char **names)
{
    (void)names;
    *(bool *)arg = count > 0 && values[0] != NULL && strcmp(values[0], "wal") == 0;
    return 0;
}

/* Turning on WAL fails at once when another process does it too; on_busy cannot change that. */
static int set_up(hf__local_connection *connection, bool *wal)
{
    int64_t deadline = hf__deadline(OPEN_MS);
    int code = SQLITE_OK;

    sqlite3_extended_result_codes(connection->handle, 1);
    sqlite3_busy_handler(connection->handle, on_busy, connection);
    sqlite3_progress_handler(connection->handle, PROGRESS_STEPS, on_progress, connection);
    /* "x" is a column, as in PostgreSQL. By default SQLite takes a misspelled one as a string. */
    sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    *wal = connection->file != NULL; /* a file outside of the folder keeps its journal mode */
    for (;;) {
        code = sqlite3_exec(connection->handle,
                            connection->file != NULL
                                ? "PRAGMA synchronous = FULL"
                                : "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                                  "PRAGMA foreign_keys = ON",
                            connection->file != NULL ? NULL : keep_mode, wal, NULL);
        if ((code & 0xff) != SQLITE_BUSY || hf__now_ms() >= deadline ||
            hf__now_ms() >= connection->deadline ||
            hf__local_is_interrupted(connection->local, connection->cancel))
            break;
        pause_us(2000);
    }
    sqlite3_set_authorizer(connection->handle, guard, connection);
    return code;
}

static hf_status open_connection(hf__local_connection *connection, hf_error *err)
{
    hf__buf uri = {0};
    hf__attempt_fault fault = HF__FAULT_FINAL;
    char path[PATH_MAX];
    struct stat found;
    bool wal = false;

    data_path(connection, path, sizeof path);
    int create = connection->file == NULL ? SQLITE_OPEN_CREATE : 0;
    hf_status status = data_uri(connection->local, path, create == 0, &uri, err);
    if (status != HF_OK)
        goto out;
    int code = sqlite3_open_v2(uri.data, &connection->handle,
                               SQLITE_OPEN_READWRITE | create | SQLITE_OPEN_NOMUTEX |
                                   SQLITE_OPEN_URI | (create != 0 ? SQLITE_OPEN_NOFOLLOW : 0),
                               NULL);
    if (create != 0)
        hf__local_give_away(path);
    if (code == SQLITE_OK)
        code = set_up(connection, &wal);
    if (code != SQLITE_OK) {
        status = hf__local_connection_fail(connection, code, &fault, err);
    } else if (!wal) {
        status = hf__fail(err, HF_CONFIG, "%s cannot have a write-ahead log", path);
        hf__hint(err, "choose a folder on a local disk: local:/path/to/folder");
    } else if (stat(path, &found) == 0) {
        connection->device = found.st_dev;
        connection->inode = found.st_ino;
    }
out:
    hf__buf_free(&uri);
    return status;
}

static void free_connection(hf__local_connection *connection)
{
    sqlite3_close(connection->handle);
    free(connection->file);
    free(connection);
}

/* ---- after a COMMIT that failed -------------------------------------------------------------- */

static int keep_number(void *arg, int count, char **values, char **names)
{
    (void)names;
    *(long long *)arg = count > 0 && values[0] != NULL ? strtoll(values[0], NULL, 10) : 0;
    return 0;
}

/* Setting user_version to its own value writes the first page and changes nothing. */
static int write_header(hf__local_connection *connection)
{
    char sql[64];
    long long version = 0;

    int code = sqlite3_exec(connection->handle, "PRAGMA user_version", keep_number, &version, NULL);
    if (code != SQLITE_OK)
        return code;
    (void)snprintf(sql, sizeof sql, "PRAGMA user_version = %lld", version);
    return sqlite3_exec(connection->handle, sql, NULL, NULL, NULL);
}

bool hf__local_connection_seal(hf__local_connection *connection)
{
    int64_t deadline = hf__deadline(OPEN_MS);
    int code = SQLITE_OK;

    connection->deadline = deadline;
    do
        code = hf__local_connection_run(connection, hf__sql_local_begin.text[HF__SQLITE]);
    while ((code & 0xff) == SQLITE_BUSY && hf__now_ms() < deadline);
    if (code != SQLITE_OK)
        return false;
    connection->trusted = true;
    code = write_header(connection);
    connection->trusted = false;
    if (code == SQLITE_OK)
        code = hf__local_connection_run(connection, hf__sql_local_commit.text[HF__SQLITE]);
    return code == SQLITE_OK;
}

/* ---- reuse ----------------------------------------------------------------------------------- */

/* A file that was removed or replaced must not be written to: nobody would see it. */
static bool is_current(const hf__local_connection *connection)
{
    char path[PATH_MAX];
    struct stat found;

    data_path(connection, path, sizeof path);
    return stat(path, &found) == 0 && found.st_dev == connection->device &&
           found.st_ino == connection->inode;
}

/* Takes a connection to this database out of the list; database NULL: to any. */
static hf__local_connection *pick_idle(hf__local *local, const char *database)
{
    pthread_mutex_lock(&local->mutex);
    hf__local_connection **place = &local->idle;
    while (*place != NULL && database != NULL && strcmp((*place)->database, database) != 0)
        place = &(*place)->next;
    hf__local_connection *connection = *place;
    if (connection != NULL) {
        *place = connection->next;
        local->idle_count--;
    }
    pthread_mutex_unlock(&local->mutex);
    return connection;
}

static bool keep_idle(hf__local_connection *connection)
{
    hf__local *local = connection->local;

    pthread_mutex_lock(&local->mutex);
    bool room = local->idle_count < MAX_IDLE;
    if (room) {
        connection->next = local->idle;
        local->idle = connection;
        local->idle_count++;
    }
    pthread_mutex_unlock(&local->mutex);
    return room;
}

static hf_status new_connection(hf__local *local, const hf__attempt_plan *plan,
                                const char *database, hf__local_connection **out, hf_error *err)
{
    hf__local_connection *connection = calloc(1, sizeof *connection);

    if (connection == NULL)
        return hf__no_memory(err);
    connection->local = local;
    connection->deadline = plan->deadline;
    connection->cancel = plan->cancel;
    if (plan->place == HF__PLACE_FILE)
        connection->file = strdup(database);
    else
        (void)snprintf(connection->database, sizeof connection->database, "%s", database);
    hf_status status = plan->place == HF__PLACE_FILE && connection->file == NULL
                           ? hf__no_memory(err)
                           : open_connection(connection, err);
    if (status != HF_OK) {
        free_connection(connection);
        return status;
    }
    *out = connection;
    return HF_OK;
}

/* Makes holdfast.db and its schema if they do not exist yet. */
static hf_status prepare_own(hf__local *local, const hf__attempt_plan *plan, hf_error *err)
{
    const hf__local_patience patience = hf__local_patience_of_plan(plan);
    hf_status status = hf__local_db_enter(local, &patience, err);

    if (status == HF_OK)
        hf__local_db_leave(local);
    return status;
}

hf_status hf__local_connection_get(hf__local *local, const hf__attempt_plan *plan,
                                   hf__local_connection **out, hf_error *err)
{
    const char *given = plan->database != NULL ? plan->database : "data";
    const char *database = plan->place == HF__PLACE_OWN ? "holdfast" : given;
    hf_status status = HF_OK;

    if (plan->place == HF__PLACE_DATA)
        status = check_database(database, err);
    else if (plan->place == HF__PLACE_OWN)
        status = prepare_own(local, plan, err);
    if (status != HF_OK)
        return status;
    hf__local_connection *connection =
        plan->place == HF__PLACE_FILE ? NULL : pick_idle(local, database);
    while (connection != NULL && !is_current(connection)) {
        free_connection(connection);
        connection = pick_idle(local, database);
    }
    if (connection == NULL)
        return new_connection(local, plan, database, out, err);
    connection->deadline = plan->deadline;
    connection->cancel = plan->cancel;
    *out = connection;
    return HF_OK;
}

void hf__local_connection_put(hf__local_connection *connection)
{
    connection->cancel = NULL; /* the caller may free it now */
    bool clean =
        sqlite3_get_autocommit(connection->handle) != 0 ||
        hf__local_connection_run(connection, hf__sql_local_rollback.text[HF__SQLITE]) == SQLITE_OK;

    if (!clean || connection->altered || connection->file != NULL || !keep_idle(connection))
        free_connection(connection);
}

void hf__local_connections_close(hf__local *local)
{
    hf__local_connection *connection = pick_idle(local, NULL);

    while (connection != NULL) {
        free_connection(connection);
        connection = pick_idle(local, NULL);
    }
}
