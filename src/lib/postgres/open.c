/* Opening and closing the PostgreSQL backend, and its table of operations. */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

static void free_backend(pg_backend *backend)
{
    hf__pg_conninfo_free(backend);
    hf__pg_notes_free(backend->notes);
    hf__pg_labels_free(backend->labels);
    if (backend->wake_fd >= 0)
        close(backend->wake_fd);
    pthread_cond_destroy(&backend->changed);
    pthread_mutex_destroy(&backend->mutex);
    pthread_mutex_destroy(&backend->home_mutex);
    pthread_mutex_destroy(&backend->listen_mutex);
    free(backend->base.name);
    free(backend);
}

/* The server frees the locks when the session ends; only our records need a word. */
static void close_session(pg_seat *seat)
{
    hf_error ignored;
    if (!atomic_load(&seat->base.lost) && seat->token_epoch)
        (void)!hf__pg_query(seat, "SELECT holdfast.close_session()", 0, NULL, NULL, &ignored);
}

static void pg_close(hf__backend *base)
{
    pg_backend *backend = pg_backend_of(base);
    hf__pg_flush_at_close(backend);
    while (backend->seats) {
        pg_seat *seat = backend->seats;
        backend->seats = seat->next;
        close_session(seat);
        hf__pg_seat_free(seat);
    }
    free_backend(backend);
}

/* PQfinish would say goodbye in the parent's name: the child only drops its descriptors. */
static void pg_forget(hf__backend *base)
{
    pg_backend *backend = pg_backend_of(base);
    for (pg_seat *seat = backend->seats; seat; seat = seat->next)
        if (seat->conn)
            close(PQsocket(seat->conn));
    close(backend->wake_fd);
}

static const hf__backend_ops postgres_ops = {
    .tx = &hf__pg_tx_ops,
    .close = pg_close,
    .forget = pg_forget,
    .try_claims = hf__pg_try_claims,
    .wait_claims = hf__pg_wait_claims,
    .release_claims = hf__pg_release_claims,
    .renew_claims = hf__pg_renew_claims,
    .leave_seat = hf__pg_leave_seat,
    .is_contended = hf__pg_is_contended,
    .find_table = hf__pg_find_table,
    .find_holder = hf__pg_find_holder,
    .listen = hf__pg_listen,
    .doze = hf__pg_doze,
    .unlisten = hf__pg_unlisten,
    .record = hf__pg_record,
    .flush = hf__pg_flush_notes,
    .watch = hf__pg_watch,
    .wake = hf__pg_wake,
    .interrupt = hf__pg_interrupt,
    .note = hf__pg_note,
    .init = hf__pg_init,
    .claim_schedule = hf__pg_claim_schedule,
    .list = hf__pg_list,
    .list_past = hf__pg_list_past,
    .examine = hf__pg_examine,
};

static void adopt_options(pg_backend *backend, const hf_store_options *options)
{
    (void)snprintf(backend->application, sizeof backend->application, "%s", options->application);
    if (gethostname(backend->host, sizeof backend->host - 1) != 0)
        (void)snprintf(backend->host, sizeof backend->host, "unknown-host");
    backend->pid = getpid();
    backend->ping_interval_ms = options->ping_interval_ms;
    backend->ping_deadline_ms = options->ping_deadline_ms;
    backend->kill_ms = options->kill_ms;
    backend->max_waits = options->max_waits;
    backend->max_transactions = options->max_transactions;
    backend->quota_wanted = options->max_keys;
    backend->session_pool = options->session_pool;
    backend->records_wanted = options->records;
    backend->base.ops = &postgres_ops;
    backend->base.log = options->log;
    backend->base.log_arg = options->log_arg;
}

hf_status hf__postgres_open(const hf_store_options *options, hf__backend **out, hf_error *err)
{
    pg_seat *home = NULL;
    pg_backend *backend = calloc(1, sizeof *backend);
    if (!backend)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    adopt_options(backend, options);
    pthread_mutex_init(&backend->mutex, NULL);
    pthread_mutex_init(&backend->home_mutex, NULL);
    pthread_mutex_init(&backend->listen_mutex, NULL);
    pthread_cond_init(&backend->changed, NULL);
    backend->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    backend->notes = hf__pg_notes_new();
    backend->labels = hf__pg_labels_new();

    hf_status status = HF_OK;
    if (backend->wake_fd < 0 || !backend->notes || !backend->labels)
        status = hf__fail(err, HF_NO_MEMORY, "out of memory or descriptors");
    if (status == HF_OK)
        status = hf__pg_conninfo(backend, options, err);
    if (status == HF_OK)
        status = hf__pg_home(backend, &home, err);
    if (status != HF_OK) {
        free_backend(backend);
        return status;
    }
    hf__pg_unpin(home);
    *out = &backend->base;
    return HF_OK;
}
