/*
 * Ends the holder of a lock, if it is still the one that was meant, and records who asked for it.
 */
#include "programs/view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "lib/locks/locks.h"
#include "lib/transactions/transactions.h"
#include "programs/view/parts.h"
#include "programs/view/sql.h"

enum { DEADLINE_MS = 8000 };

struct ending {
    hf_store *store;
    const hf__terminate *what;
    bool ended;
    /* local: the record of the holder */
    bool found, is_near, shared;
    int64_t started;
    char host[256];
};

static hf_status not_any_more(const hf__terminate *what, hf_error *err)
{
    const hf__claim claim = {.key = what->key, .space = what->space};
    char name[64];
    hf__claim_name(name, sizeof name, &claim);
    hf_status status =
        what->party == 0
            ? hf__fail(err, HF_NOT_ACQUIRED, "the lease of %s is over, or was released", name)
            : hf__fail(err, HF_NOT_ACQUIRED, "%d does not hold %s any more", what->party, name);
    hf__hint(err, "look again who holds it now");
    return status;
}

/* The parameters of all statements here; each uses as many of the first ones as it has. */
enum { KEY, SPACE, PARTY, TOKEN, BY, APPLICATION, HOST, PID, AT, VALUES };

struct values {
    char numbers[VALUES][24];
    hf_value items[VALUES];
};

static void set_number(struct values *values, int at, int64_t number)
{
    (void)snprintf(values->numbers[at], sizeof values->numbers[at], "%" PRId64, number);
    values->items[at] = HF_TEXT(values->numbers[at]);
}

static void fill(const struct ending *ending, struct values *values)
{
    const hf__terminate *what = ending->what;
    set_number(values, KEY, what->key);
    set_number(values, SPACE, (int64_t)what->space);
    set_number(values, PARTY, what->party);
    set_number(values, TOKEN, what->token);
    set_number(values, PID, getpid());
    set_number(values, AT, hf__wall_ms());
    values->items[BY] = HF_TEXT(what->by ? what->by : "");
    values->items[APPLICATION] = HF_TEXT(hf__store_application(ending->store));
    values->items[HOST] = HF_TEXT(hf__store_host(ending->store));
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

static hf_status end_backend(hf_tx *tx, void *arg, hf_error *err)
{
    struct ending *ending = arg;
    bool recorded = hf_store_has_records(ending->store);
    struct values values = {0};
    hf_rows *rows = NULL;
    const hf__sql *how = ending->what->party == 0 ? &hf__sql_view_end_lease
                         : recorded               ? &hf__sql_view_terminate_recorded
                                                  : &hf__sql_view_terminate;
    fill(ending, &values);
    hf_status status = hf__tx_query_sql(tx, how, NULL, VALUES, values.items, &rows, err);
    ending->ended = status == HF_OK && hf_rows_count(rows) > 0;
    hf_rows_free(rows);
    return status;
}

static hf_status not_allowed(hf_error *err)
{
    char said[sizeof err->message - 64];
    (void)snprintf(said, sizeof said, "%.*s", (int)sizeof said - 1, err->message);
    hf_status status = hf__fail(err, HF_CONFIG, "not allowed to end it: %s", said);
    hf__hint(err, "GRANT pg_signal_backend TO the role that this program connects as; only a "
                  "superuser may end a superuser's session");
    return status;
}

static hf_status is_checked(hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_NOT_ACQUIRED, "a transaction under the lease is open: nothing was done");
    hf__hint(err, "SELECT * FROM holdfast.lease_checkers(KEY, SPACE, false) tells whose it is");
    return status;
}

static hf_status end_on_postgres(struct ending *ending, hf_error *err)
{
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    hf_error why = {0};
    options.isolation = HF_READ_COMMITTED;
    options.read_only = !hf_store_has_records(ending->store);
    options.deadline_ms = DEADLINE_MS;
    options.max_attempts = 1; /* a second attempt would find that it holds nothing any more */
    hf_status status = hf_transact(ending->store, &options, end_backend, ending, &why);
    if (strcmp(why.sqlstate, "42501") == 0)
        status = not_allowed(&why);
    else if (strcmp(why.sqlstate, "55006") == 0)
        status = is_checked(&why);
    else if (status == HF_OK && !ending->ended)
        status = not_any_more(ending->what, &why);
    if (status != HF_OK && err)
        *err = why;
    return status;
}

/* ---- the local store ------------------------------------------------------------------------- */

static hf_status find_record(hf_tx *tx, void *arg, hf_error *err)
{
    struct ending *ending = arg;
    struct values values = {0};
    hf_rows *rows = NULL;
    fill(ending, &values);
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_view_find_holder, NULL, VALUES, values.items, &rows, err);
    ending->found = status == HF_OK && hf_rows_count(rows) > 0;
    if (ending->found) {
        ending->started = hf__row_int(rows, 0, 0, 0);
        (void)snprintf(ending->host, sizeof ending->host, "%s", hf__row_text(rows, 0, 2));
        ending->shared = hf__row_bool(rows, 0, 3);
        ending->is_near = hf__row_int(rows, 0, 1, 0) == hf__own_pid_space() &&
                          strcmp(ending->host, hf__store_host(ending->store)) == 0;
    }
    hf_rows_free(rows);
    return status;
}

/* A record may be older than its process. The list shows only what the kernel confirms. */
static hf_status confirm(struct ending *ending, hf_error *err)
{
    hf_lock_list *list = NULL;
    const hf__terminate *what = ending->what;
    bool held = false;
    hf_status status = hf_lock_list_read(ending->store, &list, err);
    for (size_t i = 0; status == HF_OK && !held && i < hf_lock_list_count(list); i++) {
        const hf_lock_view *view = hf_lock_list_at(list, i);
        held = view->key == what->key && view->space == what->space && view->pid == what->party &&
               !view->waiting;
    }
    hf_lock_list_free(list);
    return status == HF_OK && !held ? not_any_more(what, err) : status;
}

/* By a descriptor, which stays with the process even if its pid is given to another one. */
static hf_status signal_process(const struct ending *ending, hf_error *err)
{
    int pid = ending->what->party;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return errno == ESRCH
                   ? not_any_more(ending->what, err)
                   : hf__fail_errno(err, HF_SYSTEM, errno, "cannot reach process %d", pid);
    hf_status status = HF_OK;
    if (hf__process_started(pid) != ending->started)
        status = not_any_more(ending->what, err);
    else if (syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) != 0)
        status = hf__fail_errno(err, errno == EPERM ? HF_CONFIG : HF_SYSTEM, errno,
                                "cannot end process %d", pid);
    close(fd);
    return status;
}

static hf_status write_event(hf_tx *tx, void *arg, hf_error *err)
{
    struct ending *ending = arg;
    struct values values = {0};
    fill(ending, &values);
    set_number(&values, PARTY,
               ending->shared); /* the third parameter of this statement is the mode */
    return hf__tx_query_sql(tx, &hf__sql_view_terminated, NULL, VALUES, values.items, NULL, err);
}

static hf_status end_on_this_host(struct ending *ending, hf_error *err)
{
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    options.isolation = HF_READ_COMMITTED;
    options.deadline_ms = DEADLINE_MS;
    hf_status status =
        hf__transact_at(ending->store, HF__PLACE_OWN, &options, find_record, ending, err);
    if (status == HF_OK && !ending->found)
        status = not_any_more(ending->what, err);
    if (status == HF_OK && !ending->is_near) {
        status = hf__fail(err, HF_CONFIG, "process %d runs on %s, or in another container",
                          ending->what->party, ending->host);
        hf__hint(err, "end it there");
    }
    if (status == HF_OK)
        status = confirm(ending, err);
    if (status == HF_OK)
        status = signal_process(ending, err);
    return status == HF_OK
               ? hf__transact_at(ending->store, HF__PLACE_OWN, &options, write_event, ending, err)
               : status;
}

hf_status hf__terminate_holder(hf_store *store, const hf__terminate *what, hf_error *err)
{
    struct ending ending = {.store = store, .what = what};
    bool is_lease = what->party == 0 && what->token > 0 && !hf_store_is_local(store);
    if (what->party <= 0 && !is_lease)
        return hf__fail(err, HF_INVALID, "a holder is named by its session or process");
    if (!hf_store_is_local(store))
        return end_on_postgres(&ending, err);
    if (!hf_store_has_records(store))
        return hf__fail(err, HF_NO_SCHEMA, "nobody wrote down who holds it");
    return end_on_this_host(&ending, err);
}
