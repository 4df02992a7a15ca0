#include "cli/load.h"

#include <sqlite3.h>
#include <stdarg.h>

typedef void free_fn(void *);
typedef int busy_fn(void *, int);
typedef int progress_fn(void *);
typedef int row_fn(void *, int, char **, char **);
typedef int authorizer_fn(void *, int, const char *, const char *, const char *, const char *);

/* clang-format off */
#define SQLITE_CALLS(ASK, DO) \
    ASK(int, sqlite3_bind_blob64, (sqlite3_stmt *statement, int index, const void *data, \
        sqlite3_uint64 size, free_fn *free_it), (statement, index, data, size, free_it)) \
    ASK(int, sqlite3_bind_int64, (sqlite3_stmt *statement, int index, sqlite3_int64 value), \
        (statement, index, value)) \
    ASK(int, sqlite3_bind_null, (sqlite3_stmt *statement, int index), (statement, index)) \
    ASK(int, sqlite3_bind_parameter_count, (sqlite3_stmt *statement), (statement)) \
    ASK(int, sqlite3_bind_parameter_index, (sqlite3_stmt *statement, const char *name), \
        (statement, name)) \
    ASK(const char *, sqlite3_bind_parameter_name, (sqlite3_stmt *statement, int index), \
        (statement, index)) \
    ASK(int, sqlite3_bind_text, (sqlite3_stmt *statement, int index, const char *text, int size, \
        free_fn *free_it), (statement, index, text, size, free_it)) \
    ASK(int, sqlite3_bind_text64, (sqlite3_stmt *statement, int index, const char *text, \
        sqlite3_uint64 size, free_fn *free_it, unsigned char encoding), \
        (statement, index, text, size, free_it, encoding)) \
    ASK(int, sqlite3_busy_handler, (sqlite3 *db, busy_fn *handler, void *arg), \
        (db, handler, arg)) \
    ASK(sqlite3_int64, sqlite3_changes64, (sqlite3 *db), (db)) \
    ASK(int, sqlite3_close, (sqlite3 *db), (db)) \
    ASK(const void *, sqlite3_column_blob, (sqlite3_stmt *statement, int column), \
        (statement, column)) \
    ASK(int, sqlite3_column_bytes, (sqlite3_stmt *statement, int column), (statement, column)) \
    ASK(int, sqlite3_column_count, (sqlite3_stmt *statement), (statement)) \
    ASK(double, sqlite3_column_double, (sqlite3_stmt *statement, int column), \
        (statement, column)) \
    ASK(int, sqlite3_column_int, (sqlite3_stmt *statement, int column), (statement, column)) \
    ASK(sqlite3_int64, sqlite3_column_int64, (sqlite3_stmt *statement, int column), \
        (statement, column)) \
    ASK(const char *, sqlite3_column_name, (sqlite3_stmt *statement, int column), \
        (statement, column)) \
    ASK(const unsigned char *, sqlite3_column_text, (sqlite3_stmt *statement, int column), \
        (statement, column)) \
    ASK(int, sqlite3_column_type, (sqlite3_stmt *statement, int column), (statement, column)) \
    ASK(sqlite3 *, sqlite3_db_handle, (sqlite3_stmt *statement), (statement)) \
    ASK(int, sqlite3_errcode, (sqlite3 *db), (db)) \
    ASK(const char *, sqlite3_errmsg, (sqlite3 *db), (db)) \
    ASK(int, sqlite3_error_offset, (sqlite3 *db), (db)) \
    ASK(const char *, sqlite3_errstr, (int code), (code)) \
    ASK(int, sqlite3_exec, (sqlite3 *db, const char *sql, row_fn *on_row, void *arg, \
        char **message), (db, sql, on_row, arg, message)) \
    ASK(int, sqlite3_extended_result_codes, (sqlite3 *db, int on), (db, on)) \
    ASK(int, sqlite3_finalize, (sqlite3_stmt *statement), (statement)) \
    ASK(int, sqlite3_get_autocommit, (sqlite3 *db), (db)) \
    ASK(const char *, sqlite3_libversion, (void), ()) \
    ASK(int, sqlite3_open_v2, (const char *name, sqlite3 **db, int flags, const char *vfs), \
        (name, db, flags, vfs)) \
    ASK(int, sqlite3_prepare_v3, (sqlite3 *db, const char *sql, int size, unsigned int flags, \
        sqlite3_stmt **statement, const char **rest), (db, sql, size, flags, statement, rest)) \
    DO(sqlite3_progress_handler, (sqlite3 *db, int steps, progress_fn *handler, void *arg), \
        (db, steps, handler, arg)) \
    ASK(int, sqlite3_reset, (sqlite3_stmt *statement), (statement)) \
    ASK(int, sqlite3_set_authorizer, (sqlite3 *db, authorizer_fn *authorizer, void *arg), \
        (db, authorizer, arg)) \
    ASK(int, sqlite3_step, (sqlite3_stmt *statement), (statement)) \
    ASK(int, sqlite3_stmt_readonly, (sqlite3_stmt *statement), (statement)) \
    ASK(int, sqlite3_stricmp, (const char *a, const char *b), (a, b)) \
    ASK(int, sqlite3_system_errno, (sqlite3 *db), (db)) \
    ASK(sqlite3_int64, sqlite3_total_changes64, (sqlite3 *db), (db)) \
    ASK(int, sqlite3_wal_autocheckpoint, (sqlite3 *db, int pages), (db, pages))
/* clang-format on */

LAZY_LIBRARY(SQLITE_CALLS)

static int (*db_config)(sqlite3 *db, int option, ...);

/* Not in the list: it is variadic. libholdfast only uses options that take an int and an int *. */
int sqlite3_db_config(sqlite3 *db, int option, ...)
{
    va_list arguments;

    va_start(arguments, option);
    int on = va_arg(arguments, int);
    int *was = va_arg(arguments, int *);
    va_end(arguments);
    return db_config(db, option, on, was);
}

hf_status load_sqlite(hf_error *err)
{
    const struct lazy_call variadic[] = {{"sqlite3_db_config", (void **)&db_config}, {0}};
    hf_status status = load_library("libsqlite3.so.0", "libsqlite3-0", lazy_calls, err);

    return status == HF_OK ? load_library("libsqlite3.so.0", "libsqlite3-0", variadic, err)
                           : status;
}
