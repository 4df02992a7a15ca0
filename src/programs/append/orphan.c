/*
 * A dead holder's lock is free at once, but its INSERT goes on in the server. Every statement that writes
 * under the table's lock has one query id, so the server itself refuses a second one.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/time.h"
#include "programs/append/quote.h"
#include "programs/append/work.h"

enum { KILL_MS = 10000, LOOK_EVERY_MS = 50 };

/* True as long as the server refuses the id. */
static hf_status is_running(hf__work *work, const char *writer, bool *running, hf_error *err)
{
    const hf__statement probe = {
        .sql = "SELECT 1", .what = "look for an orphan", .query_id = writer};
    hf__grid grid = {0};
    hf_status status = hf__target_query(work->target, &probe, &grid, err);

    hf__grid_free(&grid);
    *running = status != HF_OK && work->target->fault.code == HF__CODE_ID_IN_USE;
    return *running ? HF_OK : status;
}

/* False: it cannot be killed, and why is said. */
static bool kill_it(hf__work *work, const char *writer)
{
    hf__buf sql = {0};
    hf__grid grid = {0};
    hf_error err;

    hf__buf_puts(&sql, "KILL QUERY WHERE query_id = ");
    hf__quote_text(&sql, writer);
    hf__buf_puts(&sql, " SYNC");
    const hf__statement kill = {.sql = sql.data, .what = "kill the orphan", .limit_ms = KILL_MS};
    hf_status status =
        sql.broken ? HF_NO_MEMORY : hf__target_query(work->target, &kill, &grid, &err);
    if (status != HF_OK && status != HF_NO_MEMORY)
        hf__work_note(work, "the orphan is awaited: %s", err.message);
    hf__grid_free(&grid);
    hf__buf_free(&sql);
    return status == HF_OK;
}

static hf_status await_it(hf__work *work, const char *writer, hf_error *err)
{
    char shown[32];
    int64_t wait_ms = work->options->wait_ms;
    int64_t deadline = hf__deadline(wait_ms);
    bool running = true;
    hf_status status = HF_OK;

    while (status == HF_OK && running) {
        struct pollfd halt = {.fd = work->halt->fd, .events = POLLIN};
        status = hf__work_check(work, err);
        if (status == HF_OK)
            status = is_running(work, writer, &running, err);
        if (status == HF_OK && running && hf__left_ms(deadline) == 0) {
            status = hf__fail(
                err, HF_NOT_ACQUIRED,
                "a statement whose client is gone (query id %s) still writes to %s after %s",
                writer, work->name.text, hf__show_duration(shown, sizeof shown, wait_ms));
            hf__hint(err, "wait longer, or end it: KILL QUERY WHERE query_id = '%s'", writer);
        }
        if (status == HF_OK && running)
            (void)poll(&halt, 1, LOOK_EVERY_MS);
    }
    return status;
}

static void describe(hf__work *work, const char *writer)
{
    hf__buf sql = {0};
    hf__grid grid = {0};

    hf__buf_puts(&sql,
                 "SELECT toInt64(elapsed * 1000), written_rows, read_rows FROM system.processes "
                 "WHERE query_id = ");
    hf__quote_text(&sql, writer);
    const hf__statement look = {.sql = sql.data, .what = "describe the orphan"};
    if (!sql.broken && hf__target_query(work->target, &look, &grid, NULL) == HF_OK &&
        grid.rows > 0) {
        char age[32];
        hf__work_note(
            work,
            "an orphan writes to %s: a statement whose client is gone, %s old, %s rows read (query "
            "id %s)",
            work->name.text, hf__show_duration(age, sizeof age, hf__grid_number(&grid, 0, 0)),
            hf__grid_at(&grid, 0, 2), writer);
    } else {
        hf__work_note(work, "an orphan writes to %s: a stream whose client is gone (query id %s)",
                      work->name.text, writer);
    }
    hf__grid_free(&grid);
    hf__buf_free(&sql);
}

static hf_status end_here(hf__work *work, const char *writer, bool is_known, hf_error *err)
{
    bool running = is_known;
    hf_status status = HF_OK;

    if (!is_known)
        status = is_running(work, writer, &running, err);
    if (status != HF_OK || !running)
        return status;
    describe(work, writer);
    bool killed = work->options->orphans == HF__KILL_ORPHANS && kill_it(work, writer);
    status = await_it(work, writer, err);
    if (status != HF_OK)
        return status;
    work->result->orphan = killed ? "killed" : "awaited";
    if (work->lock != NULL)
        hf_lock_note(work->lock, killed ? "orphan_killed" : "orphan_awaited", writer);
    hf__work_note(work, "the orphan was %s; what it had written stays in the table",
                  work->result->orphan);
    return HF_OK;
}

hf_status hf__orphan_end(hf__work *work, bool is_known, hf_error *err)
{
    char writer[40];
    hf__target *const used = work->target;
    hf_status status = HF_OK;

    if (used->is_embedded)
        return HF_OK;
    hf__writer_id(writer, work->result->key);
    for (size_t i = 0; status == HF_OK && hf__cluster_at(work, i) != NULL; i++) {
        work->target = hf__cluster_at(work, i);
        status = end_here(work, writer, is_known && work->target == used, err);
    }
    work->target = used;
    return status;
}
