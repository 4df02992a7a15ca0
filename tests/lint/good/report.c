#include <holdfast/holdfast.h>

/* "SELECT pg_advisory_lock(1)" */
const char quote = '"';

void close_invoice(PGconn *conn, const char *const *values)
{
    /* holdfast-ignore: unresolved-key the caller gives the key */
    PQclear(PQexecParams(conn, "SELECT pg_advisory_xact_lock($1)", 1, NULL, values, NULL, NULL, 0));
}

bool report(PGconn *conn)
{
    PGresult *result = PQexec(conn, "SELECT pg_advisory_lock(42424242)");
    PQclear(result);
    result = PQexec(conn, "SELECT pg_advisory_unlock(42424242)");
    hf_target target = HF_LABEL("import:7"), beside = HF_LABEL_AS("cleanup:orders", HF_HASHTEXT);
    bool freed = strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return freed;
}
