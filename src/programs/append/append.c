#include "programs/append/append.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "programs/append/work.h"

void hf__work_note(const hf__work *work, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (work->options->events.note != NULL)
        work->options->events.note(work->options->events.arg, text);
}

void hf__work_record(const hf__work *work, int64_t rows)
{
    char count[24];

    (void)snprintf(count, sizeof count, "%" PRId64, rows);
    if (work->lock != NULL)
        hf_lock_note(work->lock, "appended", count);
}

hf_status hf__work_do(hf__work *work, const char *what, hf__buf *sql, hf_error *err)
{
    const hf__statement statement = {.what = what, .is_once = true};

    return hf__target_ask(work->target, &statement, sql, NULL, err);
}

hf_status hf__work_check(hf__work *work, hf_error *err)
{
    hf_status status = hf__stop_check(work->stop, err);

    if (status == HF_LOST && work->why_lost.code != HF_OK && err != NULL) {
        *err = work->why_lost;
        err->code = HF_LOST;
    }
    return status;
}

bool hf__append_needs_no_lock(const char *table)
{
    const char *slash = strrchr(table, '/');
    const char *dot = strrchr(slash != NULL ? slash : table, '.');
    const char *name = dot != NULL ? dot + 1 : slash != NULL ? slash + 1 : table;

    return strncmp(name, "t_", 2) == 0;
}

static hf_status choose_id(hf__work *work, hf_error *err)
{
    unsigned char random[10];
    char *out = work->result->id;

    if (work->options->id != NULL) {
        hf_status status = hf__append_check_id(work->options->id, err);
        if (status == HF_OK)
            (void)snprintf(out, sizeof work->result->id, "%s", work->options->id);
        return status;
    }
    while (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        continue;
    for (size_t i = 0; i < sizeof random; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", random[i]);
    return HF_OK;
}

/* A direct append leaves no trace by which a repeat could tell what was done. */
static hf_status refuse_id(const hf__work *work, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_INVALID, "--id needs a staged append, and %s is direct", work->name.text);

    if (work->is_merge_tree && work->views.length > 0)
        hf__hint(err, "it feeds %s, which staged rows pass by: give --staged if that is meant",
                 work->views.data);
    else if (work->is_merge_tree && work->timed.length > 0)
        hf__hint(err,
                 "staged rows would get the default of %s before the lock: give --staged if that "
                 "is meant",
                 work->timed.data);
    else
        hf__hint(err, "a direct append cannot be made exactly once: leave --id out");
    return status;
}

/*
 * INSERT feeds a view; ATTACH, which ends a staged append, does not. And a default is evaluated by
 * the INSERT, which for staged rows comes before the lock: only the server could tell it from a
 * value that the input has, so it cannot be made good later.
 */
static void note_mode(const hf__work *work, bool staged)
{
    if (!work->is_merge_tree || work->options->mode == HF__DIRECT)
        return;
    if (work->views.length > 0)
        hf__work_note(work,
                      staged
                          ? "%s feeds %s, which staged rows pass by"
                          : "%s feeds %s: appended directly, since staged rows would pass that by",
                      work->name.text, work->views.data);
    if (work->timed.length > 0)
        hf__work_note(work,
                      staged ? "%s has a default that depends on the moment (%s): staged rows get "
                               "it before the lock"
                             : "%s has a default that depends on the moment (%s): appended "
                               "directly, so that it is evaluated under the lock",
                      work->name.text, work->timed.data);
}

static hf_status choose_mode(hf__work *work, bool *staged, hf_error *err)
{
    const hf__append_options *options = work->options;
    bool is_private = hf__append_needs_no_lock(options->table);

    *staged = options->mode == HF__STAGED ||
              (options->mode == HF__AS_FITS && work->is_merge_tree && !is_private &&
               work->views.length == 0 && work->timed.length == 0);
    if (*staged && (!work->is_merge_tree || is_private)) {
        hf_status status =
            is_private ? hf__fail(err, HF_INVALID,
                                  "%s is a temporary table by its name: it is "
                                  "appended to directly",
                                  work->name.text)
                       : hf__fail(err, HF_CONFIG, "%s has the engine %s, which takes no parts",
                                  work->name.text, work->engine);
        hf__hint(err, "leave --staged out");
        return status;
    }
    if (!*staged && options->id != NULL)
        return refuse_id(work, err);
    if (!is_private)
        note_mode(work, *staged);
    return HF_OK;
}

static hf_status run(hf__work *work, hf_error *err)
{
    bool staged = false;
    hf_status status = choose_id(work, err);

    if (status == HF_OK)
        status = hf__clickhouse_check(work, err);
    if (status == HF_OK)
        status = hf__clickhouse_describe(work, err);
    if (status == HF_OK)
        status = choose_mode(work, &staged, err);
    if (status != HF_OK)
        return status;
    if (work->store != NULL && hf_store_is_local(work->store) && !work->target->is_here)
        hf__work_note(work,
                      "%s is on this host alone: appends of other hosts to %s are not excluded by "
                      "its locks",
                      hf_store_name(work->store), work->target->name);
    (void)snprintf(work->result->table, sizeof work->result->table, "%s", work->name.text);
    work->result->is_staged = staged;
    return staged ? hf__staged_run(work, err) : hf__direct_run(work, err);
}

/* Checked first, so that no row is sent in vain. */
static hf_status check_store(const hf_store *store, hf_error *err)
{
    if (store == NULL || hf_store_has_records(store))
        return HF_OK;
    hf_status status =
        hf__fail(err, HF_NO_SCHEMA, "%s: the schema is missing, and ids of shared tables are in it",
                 hf_store_name(store));
    hf__hint(err, "run 'holdfast init'");
    return status;
}

void hf__work_close(hf__work *work)
{
    (void)!hf__work_unlock_table(work, NULL);
    hf_lock_free(work->own);
    hf_rows_free(work->seen);
    hf_rows_free(work->attaching);
    hf__cluster_close(work);
    hf__buf_free(&work->dest);
    hf__buf_free(&work->engine_full);
    hf__buf_free(&work->views);
    hf__buf_free(&work->timed);
    hf__grid_free(&work->columns);
    hf__grid_free(&work->settings);
}

hf_status hf__append_run(hf_store *store, hf__target *target, hf__stop *stop,
                         const hf__append_options *options, hf__append_result *result,
                         hf_error *err)
{
    hf__work work = {
        .store = store, .target = target, .stop = stop, .options = options, .result = result};

    *result = (hf__append_result){0};
    hf_status status = check_store(store, err);
    if (status == HF_OK)
        status = run(&work, err);
    hf__work_close(&work);
    return status;
}
