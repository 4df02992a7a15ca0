#include <holdfast/holdfast.h>
#include <libpq-fe.h>

#define STRAY 1000001

/* PQexec(conn, "SELECT pg_advisory_lock(1)"); */
void stray(PGconn *conn)
{
    char sql[64];

    snprintf(sql, sizeof sql, "SELECT pg_advisory_xact_lock(%d)", STRAY); // expect: unregistered-id
    PQclear(PQexec(conn, "SELECT "
                         "pg_advisory_xact_lock(1000002)")); // expect: unregistered-id
    PQclear(PQexec(conn, "SELECT pg_advisory_lock(42424242)"));
    PQclear(PQexec(conn, "SELECT pg_advisory_unlock(42424242)")); // expect: unlock-result-ignored
}

void ours(hf_store *store)
{
    hf_target targets[] = {
        HF_LABEL("global"),                  // expect: generic-label, unregistered-label
        HF_KEY(1000003),                     // expect: unregistered-id
        HF_LABEL_AS("stray:7", HF_HASHTEXT), // expect: unregistered-label
        HF_LABEL("import:7"),
        HF_KEY(42424242), // expect: lock-order
    };
}
