#include "programs/append/state.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "lib/tables/tables.h"
#include "lib/transactions/transactions.h"
#include "programs/append/sql.h"
#include "programs/append/work.h"

#define PATH_KEYS (INT64_C(1) << 60)
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const char *const words[] = {"", "attaching", "done", "doubtful"};

void hf__append_row_free(hf__append_row *row)
{
    hf__buf_free(&row->plan);
}

hf_status hf__append_check_id(const char *id, hf_error *err)
{
    char shown[80];
    size_t size = strlen(id);

    if (size > 0 && size <= HF__APPEND_ID_MAX && id[strspn(id, LETTERS "._:-")] == '\0')
        return HF_OK;
    hf_status status = hf__fail(err, HF_INVALID, "'%s' is no id for an append",
                                hf__show(shown, sizeof shown, id, size));
    hf__hint(err, "letters, digits, '.', '_', ':' and '-', at most %d", HF__APPEND_ID_MAX);
    return status;
}

hf_status hf__append_lock(hf_store *store, const char *id, const hf_lock_spec *spec,
                          const hf__lock_extra *extra, hf_lock **lock, hf_error *err)
{
    char label[HF__APPEND_ID_MAX + 32];
    hf_lock_spec own = *spec;
    /* Without a label: the store keeps every label for ever, and every append would add one. */
    hf_target target = {.derivation = HF_FIXED};
    int size = snprintf(label, sizeof label, "holdfast:append:%s", id);
    hf_status status = hf_key_derive(HF_SHA256, label, (size_t)size, &target.key, err);

    target.key |= INT64_MIN;
    own.targets = &target;
    own.target_count = 1;
    return status == HF_OK ? hf__lock_acquire_with(store, &own, extra, lock, err) : status;
}

/* ---- Reading the row of an append ------------------------------------------------------------ */

static hf_tx_options tx_options(void)
{
    hf_tx_options options = HF_TX_OPTIONS_INIT;

    options.isolation = HF_READ_COMMITTED;
    options.database = "appends";
    return options;
}

static bool is_local(const hf_tx *tx)
{
    return hf__tx_dialect(tx) == HF__SQLITE;
}

/* The local store keeps them in a file of their own. */
static hf_status make_local_tables(hf_tx *tx, hf_error *err)
{
    static const hf__sql *const columns[] = {&hf__sql_append_add_server, &hf__sql_append_add_reason,
                                             NULL};
    static const hf__sql *const indexes[] = {&hf__sql_append_drop_attaching,
                                             &hf__sql_append_create_attaching,
                                             &hf__sql_append_create_at, NULL};
    hf_rows *rows = NULL;
    hf_status status = hf__tx_query_sql(tx, &hf__sql_append_create_table, NULL, 0, NULL, NULL, err);

    if (status == HF_OK)
        status = hf__tx_query_sql(tx, &hf__sql_append_has_server, NULL, 0, NULL, &rows, err);
    for (size_t i = 0; status == HF_OK && hf_rows_count(rows) == 0 && columns[i] != NULL; i++)
        status = hf__tx_query_sql(tx, columns[i], NULL, 0, NULL, NULL, err);
    for (size_t i = 0; status == HF_OK && indexes[i] != NULL; i++)
        status = hf__tx_query_sql(tx, indexes[i], NULL, 0, NULL, NULL, err);
    hf_rows_free(rows);
    return status;
}

struct loading {
    const hf__sql *sql;
    const char *value;
    hf_rows *rows;
};

static void copy_text(char *out, size_t size, const hf_rows *rows, size_t at, size_t column)
{
    const char *text = hf_rows_value(rows, at, column, NULL);

    (void)snprintf(out, size, "%s", text != NULL ? text : "");
}

hf_status hf__append_row_read(const hf_rows *rows, size_t at, hf__append_row *row, hf_error *err)
{
    char state[16];

    *row = (hf__append_row){0};
    if (hf_rows_count(rows) <= at)
        return HF_OK;
    copy_text(row->id, sizeof row->id, rows, at, 0);
    copy_text(row->table, sizeof row->table, rows, at, 1);
    copy_text(state, sizeof state, rows, at, 2);
    for (size_t i = 1; i < sizeof words / sizeof *words; i++)
        if (strcmp(state, words[i]) == 0)
            row->state = (hf__append_state)i;
    copy_text(row->staging, sizeof row->staging, rows, at, 3);
    hf__buf_puts(&row->plan, hf_rows_value(rows, at, 4, NULL));
    row->rows = strtoll(hf_rows_value(rows, at, 5, NULL), NULL, 10);
    copy_text(row->server, sizeof row->server, rows, at, 6);
    copy_text(row->reason, sizeof row->reason, rows, at, 7);
    row->at_ms = strtoll(hf_rows_value(rows, at, 8, NULL), NULL, 10);
    return row->plan.broken ? hf__no_memory(err) : HF_OK;
}

static hf_status load(hf_tx *tx, void *arg, hf_error *err)
{
    struct loading *loading = arg;
    hf_value value = HF_TEXT(loading->value != NULL ? loading->value : "");
    hf_status status = is_local(tx) ? make_local_tables(tx, err) : HF_OK;

    hf_rows_free(loading->rows);
    loading->rows = NULL;
    if (status == HF_OK)
        status = hf__tx_query_sql(tx, loading->sql, NULL, loading->value != NULL ? 1 : 0, &value,
                                  &loading->rows, err);
    return status;
}

/* Hands a failure over to the caller, with a remedy when the schema is missing. */
static hf_status explain(hf_status status, const hf_error *failure, hf_error *err)
{
    if (status == HF_OK || err == NULL)
        return status;
    *err = *failure;
    if (strcmp(err->sqlstate, "42P01") != 0 && strcmp(err->sqlstate, "3F000") != 0)
        return status;
    status = hf__fail(err, HF_NO_SCHEMA, "the store has no holdfast.appends");
    hf__hint(err, "run 'holdfast init'");
    return status;
}

static hf_status load_by(hf_store *store, const hf__sql *sql, const char *value, hf_rows **rows,
                         hf_error *err)
{
    struct loading loading = {.sql = sql, .value = value};
    hf_tx_options options = tx_options();
    hf_error failure;

    options.read_only = !hf_store_is_local(store);
    hf_status status = hf_transact(store, &options, load, &loading, &failure);
    *rows = loading.rows;
    return explain(status, &failure, err);
}

/* A question that is asked in the message that acquires a lock, where the store can. */
static void make_question(const hf__sql *sql, const hf_value *value, hf__question *question)
{
    *question = (hf__question){
        .sql = sql->text[HF__POSTGRES], .count = value != NULL ? 1 : 0, .values = value};
}

hf_status hf__append_load(hf_store *store, const char *id, hf__append_row *row, hf_error *err)
{
    hf_rows *rows = NULL;
    hf_status status = load_by(store, &hf__sql_append_find, id, &rows, err);

    *row = (hf__append_row){0};
    if (status == HF_OK)
        status = hf__append_row_read(rows, 0, row, err);
    hf_rows_free(rows);
    return status;
}

hf_status hf__append_check_held(hf_lock *lock, hf_error *err)
{
    struct loading loading = {.sql = &hf__sql_append_find, .value = ""};
    hf_tx_options options = tx_options();

    options.read_only = true;
    hf_status status = hf_lock_transact(lock, &options, load, &loading, err);
    hf_rows_free(loading.rows);
    return status;
}

hf_status hf__append_load_attaching(hf_store *store, const char *table, hf_rows **rows,
                                    hf_error *err)
{
    return load_by(store, &hf__sql_append_find_attaching, table, rows, err);
}

hf_status hf__append_list(hf_store *store, bool is_all, hf_rows **rows, hf_error *err)
{
    return load_by(store, is_all ? &hf__sql_append_list_all : &hf__sql_append_list, NULL, rows,
                   err);
}

const char *hf__append_state_word(hf__append_state state)
{
    return words[state];
}

/* ---- Writing it ------------------------------------------------------------------------------ */

/* Queues its statements, so that they go out in one message. Forgets appends of long ago. */
static hf_status save(hf_tx *tx, void *arg, hf_error *err)
{
    const hf__append_row *row = arg;
    char rows[24];
    const hf_value values[] = {HF_TEXT(row->id),
                               HF_TEXT(row->table),
                               HF_TEXT(words[row->state]),
                               HF_TEXT(row->staging),
                               HF_TEXT(row->plan.data != NULL ? row->plan.data : ""),
                               HF_TEXT(rows),
                               HF_TEXT(row->server),
                               HF_TEXT(row->reason)};

    (void)snprintf(rows, sizeof rows, "%" PRId64, row->rows);
    hf_status status = is_local(tx) ? make_local_tables(tx, err) : hf__tx_make_durable(tx, err);
    if (status == HF_OK)
        status = hf__tx_queue_sql(tx, &hf__sql_append_save, NULL, 8, values, err);
    if (status == HF_OK && row->state == HF__APPEND_DONE)
        status = hf__tx_queue_sql(tx, &hf__sql_append_forget, NULL, 0, NULL, err);
    return status;
}

hf_status hf__append_save_last(hf_lock *const locks[2], const hf__append_row *row, hf_error *err)
{
    hf_tx_options options = tx_options();
    hf_error failure;

    return explain(hf__lock_transact_last(locks, &options, save, (void *)row, &failure), &failure,
                   err);
}

hf_status hf__append_save(hf_lock *lock, const hf__append_row *row, bool *in_the_way, hf_error *err)
{
    hf_tx_options options = tx_options();
    hf_error failure;
    hf_status status = hf_lock_transact(lock, &options, save, (void *)row, &failure);

    *in_the_way = status == HF_DATABASE && strcmp(failure.sqlstate, "23505") == 0;
    return *in_the_way ? HF_OK : explain(status, &failure, err);
}

static hf_status remove_row(hf_tx *tx, void *arg, hf_error *err)
{
    const hf_value id = HF_TEXT((const char *)arg);
    hf_status status = hf__tx_make_durable(tx, err);

    return status != HF_OK ? status
                           : hf__tx_query_sql(tx, &hf__sql_append_remove, NULL, 1, &id, NULL, err);
}

hf_status hf__append_remove(hf_lock *lock, const char *id, hf_error *err)
{
    hf_tx_options options = tx_options();
    hf_error failure;

    return explain(hf_lock_transact(lock, &options, remove_row, (void *)id, &failure), &failure,
                   err);
}

/*
 * The two locks of an append: the lock of its id, which it holds as long as it lives, and the
 * table's lock, which it holds while it writes to the table. Both are on one private session.
 */

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Runs in the thread that watches locks. The append's own thread sees the stop. */
static void on_lost(hf_lock *lock, const hf_error *why, void *arg)
{
    hf__work *work = arg;

    (void)lock;
    if (!hf__stop_is_set(work->stop))
        work->why_lost = *why;
    hf__stop_set(work->stop, HF__STOP_LOST);
}

static void on_wait(const hf_error *why, void *arg)
{
    hf__work_note(arg, "waiting: %s", why->message);
}

static void on_wait_for_id(const hf_error *why, void *arg)
{
    const hf__work *work = arg;

    (void)why;
    hf__work_note(work, "waiting: append %s runs already", work->result->id);
}

static hf_lock_spec spec_of(hf__work *work)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;

    spec.wait_ms = work->options->wait_ms;
    spec.on_lost = on_lost;
    spec.on_wait = on_wait;
    spec.arg = work;
    return spec;
}

/*
 * Acquires the lock of the id and asks for the table's id and the append's row in the same message.
 */
static hf_status lock_and_ask(hf__work *work, const hf_lock_spec *spec, hf_error *err)
{
    const hf_value id = HF_TEXT(work->result->id);
    hf__table_question table;
    hf__question store, row;
    hf__question *const questions[] = {&table.base, &store, &row};
    /* The store has no row of an id that we have just made up. */
    const hf__lock_extra extra = {.questions = questions,
                                  .question_count = work->options->id != NULL ? 3 : 2};

    hf__table_question_init(&table, work->store, &work->name);
    make_question(&hf__sql_append_find, &id, &row);
    make_question(&hf__sql_append_identify, NULL, &store);
    hf_status status =
        hf__append_lock(work->store, work->result->id, spec, &extra, &work->own, err);
    hf__table_question_finish(&table, work->store);
    work->seen = row.rows;
    if (status == HF_OK && store.rows != NULL && hf_rows_count(store.rows) > 0)
        copy_text(work->store_id, sizeof work->store_id, store.rows, 0, 0);
    hf_rows_free(store.rows);
    return status == HF_OK ? hf__work_know_store(work, err) : status;
}

/* A local store is one of this host: elsewhere its folder has the same name. */
static void identify_local(hf__work *work)
{
    char host[HOST_NAME_MAX + 1] = "";

    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(work->store_id, sizeof work->store_id, "%s:%s", host,
                   hf_store_name(work->store));
}

hf_status hf__work_know_store(hf__work *work, hf_error *err)
{
    hf_rows *rows = NULL;

    if (work->store_id[0] != '\0')
        return HF_OK;
    if (hf_store_is_local(work->store)) {
        identify_local(work);
        return HF_OK;
    }
    hf_status status = load_by(work->store, &hf__sql_append_identify, NULL, &rows, err);
    if (status == HF_OK)
        copy_text(work->store_id, sizeof work->store_id, rows, 0, 0);
    hf_rows_free(rows);
    return status;
}

hf_status hf__work_load(hf__work *work, hf__append_row *row, hf_error *err)
{
    if (work->seen == NULL)
        return hf__append_load(work->store, work->result->id, row, err);
    return hf__append_row_read(work->seen, 0, row, err);
}

hf_status hf__work_lock_id(hf__work *work, int64_t wait_ms, hf_error *err)
{
    hf_lock_spec spec = spec_of(work);

    spec.wait_ms = wait_ms;
    spec.flags = HF_PRIVATE; /* the table's lock and our transactions share its session */
    spec.on_wait = on_wait_for_id;
    hf_status status = lock_and_ask(work, &spec, err);
    if (status == HF_NOT_ACQUIRED && err != NULL) {
        hf_error plain = *err;
        status = hf__fail(err, HF_NOT_ACQUIRED, "append %s runs already: %s", work->result->id,
                          plain.message);
    }
    return status;
}

static hf_status lock_name(hf__work *work, const hf_lock_spec *spec, hf_error *err)
{
    const hf_table_name name = {work->name.cluster, work->name.database, work->name.table};
    const hf_value table = HF_TEXT(work->name.text);
    hf__question attaching;
    hf__question *const questions[] = {&attaching};
    const hf__lock_extra extra = {.on = work->own != NULL ? work->own : work->path_lock,
                                  .questions = questions,
                                  .question_count = 1};

    make_question(&hf__sql_append_find_attaching, &table, &attaching);
    hf_status status = hf__table_lock_with(work->store, &name, spec, &extra, &work->lock, err);
    hf_rows_free(work->attaching);
    work->attaching = attaching.rows;
    return status;
}

static hf_status lock_path(hf__work *work, const hf_lock_spec *spec, hf_error *err)
{
    char label[HF__SERVER_MAX + 32];
    hf_lock_spec own = *spec;
    hf_target target = {.derivation = HF_FIXED};
    const hf__lock_extra extra = {.on = work->own};
    int size = snprintf(label, sizeof label, "holdfast:replicated:%s", work->zookeeper_path);
    hf_status status = hf_key_derive(HF_SHA256, label, (size_t)size, &target.key, err);

    /* It is acquired between the other two: above the keys of ids, below all that are minted. */
    target.key = (target.key & (PATH_KEYS - 1)) | PATH_KEYS;
    own.targets = &target;
    own.target_count = 1;
    return status == HF_OK ? hf__lock_acquire_with(work->store, &own, &extra, &work->path_lock, err)
                           : status;
}

hf_status hf__work_lock_table(hf__work *work, int64_t wait_ms, hf_error *err)
{
    hf_lock_spec spec = spec_of(work);
    int64_t asked = now_us();

    spec.flags = HF_PRIVATE;
    spec.wait_ms = wait_ms;
    hf_status status = HF_OK;
    if (work->zookeeper_path[0] != '\0')
        status = lock_path(work, &spec, err);
    if (status == HF_OK)
        status = lock_name(work, &spec, err);
    if (status == HF_OK)
        work->result->key = hf_lock_key(work->lock);
    else
        (void)!hf__work_unlock_table(work, NULL);
    work->locked_us = now_us();
    work->result->lock_wait_us = work->locked_us - asked;
    return status;
}

hf_status hf__work_unlock_table(hf__work *work, hf_error *err)
{
    hf_status status = HF_OK;

    if (work->path_lock != NULL && hf_lock_get_state(work->path_lock) != HF_STATE_RELEASED)
        status = hf_lock_release(work->path_lock, err);
    hf_lock_free(work->path_lock);
    work->path_lock = NULL;
    if (work->lock == NULL)
        return status;
    if (status != HF_OK)
        err = NULL; /* the first one tells */
    if (hf_lock_get_state(work->lock) != HF_STATE_RELEASED) {
        hf_status released = hf_lock_release(work->lock, err);
        status = status != HF_OK ? status : released;
    }
    work->result->lock_held_us = now_us() - work->locked_us;
    hf_lock_free(work->lock);
    work->lock = NULL;
    return status;
}
