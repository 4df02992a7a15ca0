#include "lib/local/local.h"

hf_status hf__local_find_table(hf__backend *backend, const hf_table_name *name, int64_t *id,
                               hf_error *err)
{
    hf__local *local = (hf__local *)backend;
    sqlite3_stmt *rows = NULL;
    bool found = false;

    *id = 0;
    hf_status status = hf__local_db_enter(local, err);
    if (status != HF_OK)
        return status;
    status = hf__local_query(local, &hf__sql_local_find_table, &rows, err, "ttt", name->cluster,
                             name->database, name->table);
    if (status == HF_OK)
        status = hf__local_fetch(local, rows, &found, err);
    if (status == HF_OK && found)
        *id = sqlite3_column_int64(rows, 0);
    if (rows != NULL)
        sqlite3_reset(rows);
    hf__local_db_leave(local);
    return status;
}
