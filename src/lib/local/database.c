/* The SQLite file of the records: opening, schema, statements, failures. */
#include "lib/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "lib/local/transaction.h"

/* Small, because every process reads the whole log when it opens the file. */
enum { CHECKPOINT_PAGES = 200 };

static void database_path(const hf__local *local, char *out, size_t out_size)
{
    (void)snprintf(out, out_size, "%s/holdfast.db", local->folder);
}

/* ---- failures -------------------------------------------------------------------------------- */

typedef struct failure {
    int code; /* SQLite's primary result code */
    hf_status status;
    const char *hint;
} failure;

static const failure failures[] = {
    {SQLITE_NOTADB, HF_CONFIG,
     "move it away and holdfast makes a new one, or choose another folder"},
    {SQLITE_CORRUPT, HF_CONFIG,
     "move it away and holdfast makes a new one; locks need nothing in it"},
    {SQLITE_CANTOPEN, HF_CONFIG, "choose a folder that you may write to: local:/path/to/folder"},
    {SQLITE_READONLY, HF_CONFIG, "choose a folder that you may write to: local:/path/to/folder"},
    {SQLITE_PERM, HF_CONFIG, "choose a folder that you may write to: local:/path/to/folder"},
    {SQLITE_FULL, HF_UNREACHABLE, "make room on its filesystem, or choose another folder"},
    {SQLITE_IOERR, HF_UNREACHABLE, "check its filesystem and disk, or choose another folder"},
    {SQLITE_BUSY, HF_UNREACHABLE, "another process keeps the file locked: find it with fuser(1)"},
    {SQLITE_NOMEM, HF_NO_MEMORY, ""},
};

static hf_status fail_with(const hf__local *local, sqlite3 *handle, int code, hf_error *err)
{
    int error_number = handle != NULL ? sqlite3_system_errno(handle) : 0;
    bool full = error_number == ENOSPC || error_number == EDQUOT;
    failure found = {code, HF_DATABASE, ""};
    char path[PATH_MAX];

    if ((code & 0xff) == SQLITE_BUSY && hf__local_db_is_interrupted(local))
        return hf__interrupted(err);
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if (failures[i].code == (full ? SQLITE_FULL : code & 0xff))
            found = failures[i];

    database_path(local, path, sizeof path);
    hf_status status = hf__fail(err, found.status, "the records in %s failed: %s", path,
                                handle != NULL ? sqlite3_errmsg(handle) : sqlite3_errstr(code));
    hf__hint(err, "%s", found.hint);
    return status;
}

hf_status hf__local_db_fail(const hf__local *local, hf_error *err)
{
    return fail_with(local, local->db.handle, sqlite3_errcode(local->db.handle), err);
}

/* ---- statements ------------------------------------------------------------------------------ */

static int bind(sqlite3_stmt *statement, const char *types, va_list args)
{
    int code = SQLITE_OK;

    for (int i = 1; *types != '\0' && code == SQLITE_OK; i++, types++) {
        if (*types == 'i') {
            code = sqlite3_bind_int64(statement, i, va_arg(args, int64_t));
        } else if (*types == 't') {
            code = sqlite3_bind_text(statement, i, va_arg(args, const char *), -1, SQLITE_STATIC);
        } else {
            const void *bytes = va_arg(args, const void *);
            code = sqlite3_bind_blob64(statement, i, bytes, va_arg(args, size_t), SQLITE_STATIC);
        }
    }
    return code;
}

static hf_status query(hf__local *local, const hf__sql *sql, sqlite3_stmt **rows, hf_error *err,
                       const char *types, va_list args)
{
    sqlite3_stmt **statement = &local->db.statement[sql->prepared];
    int code = SQLITE_OK;

    if (*statement == NULL)
        code = sqlite3_prepare_v3(local->db.handle, sql->text[HF__SQLITE], -1,
                                  SQLITE_PREPARE_PERSISTENT, statement, NULL);
    if (code == SQLITE_OK)
        code = bind(*statement, types, args);
    if (code != SQLITE_OK)
        return hf__local_db_fail(local, err);
    *rows = *statement;
    return HF_OK;
}

hf_status hf__local_query(hf__local *local, const hf__sql *sql, sqlite3_stmt **rows, hf_error *err,
                          const char *types, ...)
{
    va_list args;

    va_start(args, types);
    hf_status status = query(local, sql, rows, err, types, args);
    va_end(args);
    return status;
}

hf_status hf__local_fetch(hf__local *local, sqlite3_stmt *rows, bool *more, hf_error *err)
{
    int code = sqlite3_step(rows);

    *more = code == SQLITE_ROW;
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        return HF_OK;
    hf_status status = hf__local_db_fail(local, err);
    sqlite3_reset(rows);
    return status;
}

hf_status hf__local_run(hf__local *local, const hf__sql *sql, hf_error *err, const char *types, ...)
{
    sqlite3_stmt *rows = NULL;
    bool more = true;
    va_list args;

    va_start(args, types);
    hf_status status = query(local, sql, &rows, err, types, args);
    va_end(args);
    while (status == HF_OK && more)
        status = hf__local_fetch(local, rows, &more, err);
    if (rows != NULL)
        sqlite3_reset(rows);
    return status;
}

hf_status hf__local_begin(hf__local *local, hf_error *err)
{
    return hf__local_run(local, &hf__sql_local_begin, err, "");
}

hf_status hf__local_end(hf__local *local, hf_status status, hf_error *err)
{
    if (status == HF_OK)
        status = hf__local_run(local, &hf__sql_local_commit, err, "");
    /* After some failures, such as a full disk, SQLite has rolled back by itself. */
    if (status != HF_OK && sqlite3_get_autocommit(local->db.handle) == 0) {
        hf_status undone = hf__local_run(local, &hf__sql_local_rollback, NULL, "");
        (void)undone;
    }
    return status;
}

/* ---- schema ---------------------------------------------------------------------------------- */

static hf_status execute(const hf__local *local, const char *sql, hf_error *err)
{
    if (sqlite3_exec(local->db.handle, sql, NULL, NULL, NULL) != SQLITE_OK)
        return hf__local_db_fail(local, err);
    return HF_OK;
}

static int keep_number(void *arg, int count, char **values, char **names)
{
    (void)names;
    *(int *)arg = count > 0 && values[0] != NULL ? (int)strtol(values[0], NULL, 10) : 0;
    return 0;
}

static hf_status read_version(const hf__local *local, int *version, hf_error *err)
{
    if (sqlite3_exec(local->db.handle, "PRAGMA user_version", keep_number, version, NULL) !=
        SQLITE_OK)
        return hf__local_db_fail(local, err);
    if (*version <= HF__LOCAL_SCHEMA)
        return HF_OK;
    hf_status status =
        hf__fail(err, HF_NO_SCHEMA, "%s/holdfast.db has schema version %d, this program knows %d",
                 local->folder, *version, HF__LOCAL_SCHEMA);
    hf__hint(err, "upgrade holdfast");
    return status;
}

/*
 * The first token of a new file: 2^24 for each second of the clock, more than a store gives, so
 * that tokens do not start again from an old number when somebody removes the folder.
 */
static int64_t first_token(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return ((int64_t)now.tv_sec << 24) + ((int64_t)now.tv_nsec << 24) / 1000000000;
}

static hf_status run_script(const hf__local *local, const hf__sql *script, hf_error *err)
{
    char token[24], now[24], newest[16];
    const hf__sql_part parts[] = {{"token", token}, {"now", now}, {"version", newest}, {0}};
    hf__buf sql = {0};

    (void)snprintf(token, sizeof token, "%" PRId64, first_token());
    (void)snprintf(now, sizeof now, "%" PRId64, hf__wall_ms());
    (void)snprintf(newest, sizeof newest, "%d", HF__LOCAL_SCHEMA);
    hf__sql_expand(&sql, script->text[HF__SQLITE], parts);
    hf_status status = sql.broken ? hf__no_memory(err) : execute(local, sql.data, err);
    hf__buf_free(&sql);
    return status;
}

static hf_status install(hf__local *local, hf_error *err)
{
    int version = 0;

    hf_status status = read_version(local, &version, err);
    if (status != HF_OK || version == HF__LOCAL_SCHEMA)
        return status;
    if (version < 1)
        status = execute(local, hf__sql_local_schema_001, err);
    if (version < 1 && status == HF_OK)
        status = run_script(local, &hf__sql_local_install, err);
    if (version < 2 && status == HF_OK)
        status = execute(local, hf__sql_local_schema_002, err);
    if (status == HF_OK)
        status = execute(local, hf__sql_local_schema_003, err);
    return status == HF_OK ? run_script(local, &hf__sql_local_mark, err) : status;
}

/*
 * Turning on WAL fails at once when another process does it too, with or without a busy timeout.
 * So processes that create the file take turns, with a lock on another file. This happens once in
 * the life of a folder, so polling is good enough.
 */
static hf_status create_schema(hf__local *local, hf_error *err)
{
    const hf__claim gate = {.mode = HF_EXCLUSIVE};
    int64_t since = hf__now_ms();
    char path[PATH_MAX];
    int version = 0;

    (void)snprintf(path, sizeof path, "%s/locks/create", local->folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return hf__fail_errno(err, errno == ENOSPC ? HF_UNREACHABLE : HF_CONFIG, errno,
                              "cannot open %s", path);
    hf__local_give_away(path);
    while (hf__local_lock_byte(fd, &gate, false) != 0 && hf__local_db_may_wait(local, since))
        (void)hf__poll(NULL, 0, 2);

    hf_status status = read_version(local, &version, err);
    if (status == HF_OK && version < HF__LOCAL_SCHEMA) {
        status = execute(local,
                         "PRAGMA page_size = 1024; PRAGMA journal_mode = WAL;"
                         "PRAGMA synchronous = FULL;"
                         "BEGIN IMMEDIATE",
                         err);
        if (status == HF_OK)
            status = hf__local_end(local, install(local, err), err);
    }
    close(fd);
    return status;
}

/* ---- a reboot -------------------------------------------------------------------------------- */

static hf_status is_same_boot(hf__local *local, const char *boot_id, bool *same, hf_error *err)
{
    sqlite3_stmt *rows = NULL;
    bool more = false;

    *same = false;
    hf_status status = hf__local_query(local, &hf__sql_local_get_boot, &rows, err, "");
    if (status == HF_OK)
        status = hf__local_fetch(local, rows, &more, err);
    if (status != HF_OK)
        return status;
    if (more && boot_id[0] != '\0')
        *same = strcmp((const char *)sqlite3_column_text(rows, 0), boot_id) == 0;
    sqlite3_reset(rows);
    return HF_OK;
}

static hf_status enter_boot(hf__local *local, const char *boot_id, hf_error *err)
{
    bool same = false;

    hf_status status = is_same_boot(local, boot_id, &same, err);
    if (status != HF_OK || same)
        return status; /* another process was faster */
    status = hf__local_run(local, &hf__sql_local_jump_token, err, "t", boot_id);
    if (status == HF_OK && boot_id[0] != '\0')
        status = execute(local, hf__sql_local_drop_everybody.text[HF__SQLITE], err);
    return status;
}

/*
 * Commits are not synced, so after a power cut the file may have forgotten tokens that were in use.
 * After a boot the sequence jumps past all that could have been forgotten, and that jump is synced
 * before a token is given out.
 */
static hf_status notice_boot(hf__local *local, hf_error *err)
{
    char boot_id[64];
    bool same = false;

    hf__read_boot_id(boot_id, sizeof boot_id);
    hf_status status = is_same_boot(local, boot_id, &same, err);
    if (status != HF_OK || same)
        return status;
    status = execute(local, "PRAGMA synchronous = FULL", err);
    if (status == HF_OK)
        status = hf__local_begin(local, err);
    if (status == HF_OK)
        status = hf__local_end(local, enter_boot(local, boot_id, err), err);
    return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

/*
 * Creates the file for the owner only, whatever the umask. It must not open an existing file:
 * closing any descriptor of it drops the POSIX locks of all SQLite connections of this process.
 */
static hf_status create_file(const hf__local *local, const char *path, hf_error *err)
{
    struct stat found;

    if (stat(path, &found) == 0)
        return HF_OK;
    hf_status status = hf__local_make_folders(local, err);
    if (status != HF_OK)
        return status;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
        hf__local_give_away(path);
    }
    return HF_OK; /* if this failed, opening the file with SQLite says why */
}

static hf_status open_handle(hf__local *local, hf_error *err)
{
    hf__local_db *db = &local->db;
    char path[PATH_MAX];
    struct stat found;

    database_path(local, path, sizeof path);
    hf_status status = create_file(local, path, err);
    if (status != HF_OK)
        return status;
    int code = sqlite3_open_v2(path, &db->handle,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                   SQLITE_OPEN_NOFOLLOW,
                               NULL);
    if (code != SQLITE_OK)
        return fail_with(local, db->handle, code, err);
    if (stat(path, &found) == 0) {
        db->device = found.st_dev;
        db->inode = found.st_ino;
    }
    sqlite3_busy_handler(db->handle, hf__local_on_busy, local);
    sqlite3_wal_autocheckpoint(db->handle, CHECKPOINT_PAGES);
    /* Closing the last connection would copy the log into the file and sync, for no benefit. */
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return HF_OK;
}

static hf_status open_database(hf__local *local, int *from, hf_error *err)
{
    hf_status status = open_handle(local, err);
    if (status == HF_OK)
        status = read_version(local, from, err);
    if (status == HF_OK && *from < HF__LOCAL_SCHEMA)
        status = create_schema(local, err);
    if (status == HF_OK)
        status = notice_boot(local, err);
    if (status == HF_OK)
        status = execute(local, "PRAGMA synchronous = NORMAL", err);
    if (status != HF_OK)
        hf__local_db_close(&local->db);
    return status;
}

void hf__local_db_close(hf__local_db *db)
{
    for (int i = 0; i < HF__SQL_LOCAL_PREPARED; i++) {
        sqlite3_finalize(db->statement[i]);
        db->statement[i] = NULL;
    }
    sqlite3_close(db->handle);
    db->handle = NULL;
}

bool hf__local_db_exists(const hf__local *local)
{
    char path[PATH_MAX];
    struct stat found;

    database_path(local, path, sizeof path);
    return stat(path, &found) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* A file that was removed or replaced must not be used: nobody else would see the records. */
static bool was_replaced(const hf__local *local)
{
    char path[PATH_MAX];
    struct stat found;

    database_path(local, path, sizeof path);
    return stat(path, &found) != 0 || found.st_dev != local->db.device ||
           found.st_ino != local->db.inode;
}

static hf_status enter(hf__local *local, const hf__local_patience *patience, int *from,
                       hf_error *err)
{
    hf_status status = hf__local_db_take(local, patience, err);

    *from = HF__LOCAL_SCHEMA;
    if (status != HF_OK)
        return status;
    if (local->db.handle != NULL && was_replaced(local)) {
        hf__local_db_close(&local->db);
        hf__local_known_free(local);
    }
    if (local->db.handle == NULL)
        status = open_database(local, from, err);
    if (status != HF_OK)
        hf__local_db_leave(local);
    return status;
}

hf_status hf__local_db_enter(hf__local *local, const hf__local_patience *patience, hf_error *err)
{
    int from = 0;
    return enter(local, patience, &from, err);
}

void hf__local_db_leave(hf__local *local)
{
    hf__baton_give(&local->db.baton);
}

hf_status hf__local_init(hf__backend *backend, int *from, int *to, hf_error *err)
{
    hf__local *local = (hf__local *)backend;

    hf_status status = enter(local, NULL, from, err);
    if (status != HF_OK)
        return status;
    hf__local_db_leave(local);
    *to = HF__LOCAL_SCHEMA;
    return HF_OK;
}

/* ---- questions ------------------------------------------------------------------------------- */

static hf_status bind_values(hf__local *local, sqlite3_stmt *statement,
                             const hf__question *question, hf_error *err)
{
    for (size_t i = 0; i < question->count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "$%zu", i + 1);
        int index = sqlite3_bind_parameter_index(statement, name);
        if (sqlite3_bind_text(statement, index, question->values[i].data, -1, SQLITE_STATIC) !=
            SQLITE_OK)
            return hf__local_db_fail(local, err);
    }
    return HF_OK;
}

static hf_status copy_rows(hf__local *local, sqlite3_stmt *statement, hf_rows **out, hf_error *err)
{
    hf_rows *rows = hf__local_rows_new(statement);
    hf_status status = rows != NULL ? HF_OK : hf__no_memory(err);
    int64_t count = 0;

    for (bool more = true; status == HF_OK && more; count += more) {
        status = hf__local_fetch(local, statement, &more, err);
        if (status == HF_OK && more && !hf__local_rows_add(rows, statement, false))
            status = hf__no_memory(err);
    }
    if (status != HF_OK) {
        hf__local_rows_free(rows);
        return status;
    }
    hf__local_rows_finish(rows, count);
    *out = rows;
    return HF_OK;
}

hf_status hf__local_ask(hf__backend *backend, hf__question *question, hf_error *err)
{
    hf__local *local = (hf__local *)backend;
    sqlite3_stmt *statement = NULL;

    hf_status status = hf__local_db_enter(local, NULL, err);
    if (status != HF_OK)
        return status;
    if (sqlite3_prepare_v3(local->db.handle, question->sql, -1, 0, &statement, NULL) != SQLITE_OK)
        status = hf__local_db_fail(local, err);
    if (status == HF_OK)
        status = bind_values(local, statement, question, err);
    if (status == HF_OK)
        status = copy_rows(local, statement, &question->rows, err);
    sqlite3_finalize(statement);
    hf__local_db_leave(local);
    return status;
}
