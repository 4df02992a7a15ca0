/* What was held or wanted, from the records. */
#include "lib/local/local.h"

#include "base/clock.h"

enum column { SPACE, KEY, LABEL, TIMES, AT_MS, SHARED, APPLICATION, HOST, PID };

static const char *text_at(sqlite3_stmt *rows, int column)
{
    const unsigned char *text = sqlite3_column_text(rows, column);
    return text != NULL ? (const char *)text : "";
}

static hf_status show(sqlite3_stmt *rows, int64_t now_ms, hf__view_sink *sink, hf_error *err)
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

    hf_status status = hf__local_query(local, HF__LOCAL_SQL_list_past, &rows, err, "i",
                                       since_ms < 0 ? INT64_C(0) : now_ms - since_ms);
    while (status == HF_OK) {
        status = hf__local_fetch(local, rows, &more, err);
        if (status != HF_OK || !more)
            break;
        status = show(rows, now_ms, sink, err);
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
    hf_status status = hf__local_db_enter(local, err);
    if (status != HF_OK)
        return status;
    status = read_rows(local, since_ms, sink, err);
    hf__local_db_leave(local);
    return status;
}
