#include "local_tx_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

hf__backend *store;

const hf__attempt_plan writing = {.deadline = HF__FOREVER};
const hf__attempt_plan reading = {.read_only = true, .deadline = HF__FOREVER};

hf__attempt *begin(const hf__attempt_plan *plan)
{
    hf__attempt *attempt = NULL;
    hf_error err = {0};

    if (store->ops->attempt->open(store, plan, &attempt, &err) != HF_OK)
        fail_msg("%s", err.message);
    assert_false(attempt->started);
    return attempt;
}

void finish(hf__attempt *attempt)
{
    store->ops->attempt->close(attempt, &writing);
}

hf_status query(hf__attempt *attempt, const hf__attempt_plan *plan, const char *sql, hf_error *err)
{
    return store->ops->attempt->query(attempt, plan, sql, 0, NULL, false, NULL, err);
}

void must(hf__attempt *attempt, const char *sql)
{
    hf_error err = {0};

    if (query(attempt, &writing, sql, &err) != HF_OK)
        fail_msg("%s: %s", sql, err.message);
}

void must_queue(hf__attempt *attempt, const char *sql, size_t count, const hf_value *values)
{
    assert_int_equal(store->ops->attempt->queue(attempt, sql, count, values, NULL), HF_OK);
}

void must_commit(hf__attempt *attempt, const hf__attempt_plan *plan)
{
    hf_error err = {0};

    if (store->ops->attempt->commit(attempt, plan, &err) != HF_OK)
        fail_msg("COMMIT: %s", err.message);
}

void run(const char *sql)
{
    hf__attempt *attempt = begin(&writing);

    must(attempt, sql);
    must_commit(attempt, &writing);
    finish(attempt);
}

const char *value(const hf_rows *rows, size_t row, size_t column)
{
    return rows->ops->value(rows, row, column, NULL);
}

hf_rows *ask(hf__attempt *attempt, const hf__attempt_plan *plan, const char *sql, bool binary)
{
    hf_rows *rows = NULL;
    hf_error err = {0};

    if (store->ops->attempt->query(attempt, plan, sql, 0, NULL, binary, &rows, &err) != HF_OK)
        fail_msg("%s: %s", sql, err.message);
    return rows;
}

int64_t number(const char *sql)
{
    hf__attempt *attempt = begin(&reading);
    hf_rows *rows = ask(attempt, &reading, sql, false);

    assert_int_equal(rows->ops->count(rows), 1);
    int64_t found = strtoll(value(rows, 0, 0), NULL, 10);
    rows->ops->free(rows);
    finish(attempt);
    return found;
}

hf_status failure(const hf__attempt_plan *plan, const char *sql, size_t count,
                  const hf_value *values, hf__attempt_fault *fault, hf_error *err)
{
    hf__attempt *attempt = begin(plan);
    hf_status status =
        store->ops->attempt->query(attempt, plan, sql, count, values, false, NULL, err);

    *fault = attempt->fault;
    finish(attempt);
    return status;
}

int set_up(void **state)
{
    if (make_folder(state) != 0)
        return -1;
    store = open_store();
    run("CREATE TABLE account (id integer PRIMARY KEY, name text UNIQUE,"
        " balance integer NOT NULL CHECK (balance >= 0), note blob)");
    run("INSERT INTO account VALUES (1, 'ann', 100, NULL), (2, 'bob', 50, x'00ff')");
    return 0;
}

int tear_down(void **state)
{
    close_store(store);
    return drop_folder(state);
}

static void (*doing)(void);

static void do_and_stay(int hear, int say)
{
    store = open_store();
    doing();
    write_word(say, 0);
    (void)read_word(hear);
}

void kill_after(void (*act)(void))
{
    doing = act;
    peer child = spawn(do_and_stay);
    assert_int_equal(read_word(child.says), 0);
    kill_and_reap(child);
}
