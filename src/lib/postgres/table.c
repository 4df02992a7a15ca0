#include "lib/postgres/postgres.h"

#include <string.h>

/* Asked on the shared session in one trip: whoever holds a table's lock asks again each time. */
hf_status hf__pg_find_table(hf__backend *base, const hf_table_name *name, int64_t *id,
                            hf_error *err)
{
    pg_backend *backend = pg_backend_of(base);
    const char *params[] = {name->cluster, name->database, name->table};
    PGresult *result = NULL;
    pg_session *shared_session = NULL;
    hf_error failure;

    *id = 0;
    hf_status status = hf__pg_shared_session(backend, &shared_session, err);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&shared_session->mutex);
    status = hf__pg_run(shared_session, &hf__sql_postgres_find_table, 3, params, &result, &failure);
    pthread_mutex_unlock(&shared_session->mutex);
    hf__pg_unpin(shared_session);
    if (status == HF_OK && PQntuples(result) > 0)
        *id = hf__pg_int(result, 0, 0);
    else if (status != HF_OK)
        status = hf__say_no_tables(base, &failure, err);
    PQclear(result);
    return status;
}
