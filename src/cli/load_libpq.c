#include "cli/load.h"

#include <libpq-events.h>
#include <libpq-fe.h>

/* clang-format off */
#define LIBPQ_CALLS(ASK, DO) \
    ASK(int, PQbackendPID, (const PGconn *conn), (conn)) \
    ASK(int, PQcancel, (PGcancel *cancel, char *text, int size), (cancel, text, size)) \
    DO(PQclear, (PGresult *result), (result)) \
    ASK(char *, PQcmdStatus, (PGresult *result), (result)) \
    ASK(char *, PQcmdTuples, (PGresult *result), (result)) \
    ASK(PQconninfoOption *, PQconndefaults, (void), ()) \
    ASK(PGconn *, PQconnectdbParams, (const char *const *keywords, const char *const *values, \
        int expand), (keywords, values, expand)) \
    ASK(PQconninfoOption *, PQconninfo, (PGconn *conn), (conn)) \
    DO(PQconninfoFree, (PQconninfoOption *options), (options)) \
    ASK(PQconninfoOption *, PQconninfoParse, (const char *conninfo, char **message), \
        (conninfo, message)) \
    ASK(int, PQconsumeInput, (PGconn *conn), (conn)) \
    ASK(int, PQenterPipelineMode, (PGconn *conn), (conn)) \
    ASK(char *, PQerrorMessage, (const PGconn *conn), (conn)) \
    ASK(PGresult *, PQexecParams, (PGconn *conn, const char *sql, int count, const Oid *types, \
        const char *const *values, const int *lengths, const int *formats, int result_format), \
        (conn, sql, count, types, values, lengths, formats, result_format)) \
    ASK(int, PQexitPipelineMode, (PGconn *conn), (conn)) \
    DO(PQfinish, (PGconn *conn), (conn)) \
    ASK(int, PQflush, (PGconn *conn), (conn)) \
    ASK(char *, PQfname, (const PGresult *result, int column), (result, column)) \
    DO(PQfreeCancel, (PGcancel *cancel), (cancel)) \
    DO(PQfreemem, (void *memory), (memory)) \
    ASK(PGcancel *, PQgetCancel, (PGconn *conn), (conn)) \
    ASK(PGresult *, PQgetResult, (PGconn *conn), (conn)) \
    ASK(int, PQgetisnull, (const PGresult *result, int row, int column), (result, row, column)) \
    ASK(int, PQgetlength, (const PGresult *result, int row, int column), (result, row, column)) \
    ASK(char *, PQgetvalue, (const PGresult *result, int row, int column), (result, row, column)) \
    ASK(char *, PQhost, (const PGconn *conn), (conn)) \
    ASK(char *, PQhostaddr, (const PGconn *conn), (conn)) \
    ASK(int, PQisBusy, (PGconn *conn), (conn)) \
    ASK(int, PQnfields, (const PGresult *result), (result)) \
    ASK(PGnotify *, PQnotifies, (PGconn *conn), (conn)) \
    ASK(int, PQntuples, (const PGresult *result), (result)) \
    ASK(int, PQpipelineSync, (PGconn *conn), (conn)) \
    ASK(char *, PQport, (const PGconn *conn), (conn)) \
    ASK(char *, PQresultErrorField, (const PGresult *result, int field), (result, field)) \
    ASK(int, PQregisterEventProc, (PGconn *conn, PGEventProc proc, const char *name, void *arg), \
        (conn, proc, name, arg)) \
    ASK(char *, PQresultErrorMessage, (const PGresult *result), (result)) \
    ASK(ExecStatusType, PQresultStatus, (const PGresult *result), (result)) \
    ASK(int, PQsendPrepare, (PGconn *conn, const char *name, const char *sql, int count, \
        const Oid *types), (conn, name, sql, count, types)) \
    ASK(int, PQsendQuery, (PGconn *conn, const char *sql), (conn, sql)) \
    ASK(int, PQsendQueryParams, (PGconn *conn, const char *sql, int count, const Oid *types, \
        const char *const *values, const int *lengths, const int *formats, int result_format), \
        (conn, sql, count, types, values, lengths, formats, result_format)) \
    ASK(int, PQsendQueryPrepared, (PGconn *conn, const char *name, int count, \
        const char *const *values, const int *lengths, const int *formats, int result_format), \
        (conn, name, count, values, lengths, formats, result_format)) \
    ASK(int, PQserverVersion, (const PGconn *conn), (conn)) \
    ASK(PQnoticeReceiver, PQsetNoticeReceiver, (PGconn *conn, PQnoticeReceiver receiver, \
        void *arg), (conn, receiver, arg)) \
    ASK(int, PQsetnonblocking, (PGconn *conn, int arg), (conn, arg)) \
    ASK(int, PQsocket, (const PGconn *conn), (conn)) \
    ASK(ConnStatusType, PQstatus, (const PGconn *conn), (conn)) \
    ASK(PGTransactionStatusType, PQtransactionStatus, (const PGconn *conn), (conn)) \
    ASK(char *, PQuser, (const PGconn *conn), (conn))
/* clang-format on */

LAZY_LIBRARY(LIBPQ_CALLS)

hf_status load_libpq(hf_error *err)
{
    return load_library("libpq.so.5", "libpq5", lazy_calls, err);
}
