/* Opening and closing the local store. */
#include "lib/local/local.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"

enum { MAX_KEYS = 100000 };

/* ---- closing --------------------------------------------------------------------------------- */

static void free_memory(hf__local *local)
{
    hf__local_known_free(local);
    free(local->bell.events);
    free(local->application);
    free(local->folder);
    free(local->head.name);
    free(local);
}

static void free_sessions(hf__local *local)
{
    while (local->sessions != NULL)
        hf__local_session_free(local->sessions);
}

/* Deletes the records of what is still held, and about to be released, and those that stayed. */
static void drop_records(hf__local *local, const hf__local_patience *patience)
{
    hf_error err;

    for (hf__local_session *session = local->sessions; session != NULL; session = session->next) {
        if (session->held.count == 0 && !session->has_stale)
            continue;
        hf_status status = hf__local_db_enter(local, patience, &err);
        if (status == HF_OK) {
            status = hf__local_run(local, &hf__sql_local_drop_session, &err, "i", session->id);
            hf__local_db_leave(local);
        }
        if (status != HF_OK)
            hf__log(&local->head, HF_LOG_WARNING, "records of released locks stay: %s",
                    err.message);
    }
}

static void local_close(hf__backend *backend)
{
    const hf__local_patience patience = hf__local_patience_for(HF__LOCAL_CLOSE_MS);
    hf__local *local = (hf__local *)backend;

    hf__local_flush(local, &patience);
    hf__local_end_leases(local, &patience);
    /* Short-lived programs never get to the watcher's sweep. */
    if (local->db.handle != NULL && local->keeps_records) {
        drop_records(local, &patience);
        hf__local_sweep(local, &patience);
    }
    hf__local_db_close(&local->db);
    hf__local_connections_close(local);
    free_sessions(local);
    pthread_mutex_destroy(&local->mutex);
    hf__cond_destroy(&local->released);
    hf__cond_destroy(&local->renewal_due);
    hf__baton_destroy(&local->db.baton);
    pthread_mutex_destroy(&local->bell.mutex);
    pthread_cond_destroy(&local->bell.rung);
    free_memory(local);
}

/*
 * In the child of a fork. The mutexes may be held by threads that do not exist here, and SQLite
 * must not be used across a fork. It only closes descriptors: an unlock would release the parent's
 * locks, because both share the open file descriptions.
 */
static void local_forget(hf__backend *backend)
{
    hf__local *local = (hf__local *)backend;

    while (local->sessions != NULL) {
        hf__local_session *session = local->sessions;
        local->sessions = session->next;
        hf__local_files_close(&session->files);
        hf__local_keys_free(&session->held);
        free(session);
    }
    free_memory(local);
}

/* ---- what there is nothing to do for --------------------------------------------------------- */

static void local_unlisten(hf__backend *backend, int64_t wake)
{
    (void)backend;
    (void)wake;
}

/* ---- opening --------------------------------------------------------------------------------- */

static const hf__backend_ops operations = {
    .attempt = &hf__local_attempt_ops,
    .close = local_close,
    .forget = local_forget,
    .try_claims = hf__local_try_claims,
    .wait_claims = hf__local_wait_claims,
    .release_claims = hf__local_release_claims,
    .confirm_claims = hf__local_confirm_claims,
    .renew_claims = hf__local_renew_claims,
    .leave_session = hf__local_leave_session,
    .probe_claims = hf__local_probe_claims,
    .is_contended = hf__local_is_contended,
    .ask = hf__local_ask,
    .find_holder = hf__local_find_holder,
    .listen = hf__local_listen,
    .await_wake = hf__local_await_wake,
    .unlisten = local_unlisten,
    .watch = hf__local_watch,
    .wake = hf__local_wake,
    .interrupt = hf__local_interrupt,
    .note = hf__local_note,
    .init = hf__local_init,
    .claim_schedule = hf__local_claim_schedule,
    .list = hf__local_list,
    .list_past = hf__local_list_past,
    .examine = hf__local_examine,
};

static hf_status read_url(const char *url, const char **path, hf_error *err)
{
    static const char scheme[] = "local:";

    if (url == NULL || strncmp(url, scheme, sizeof scheme - 1) != 0)
        return hf__fail(err, HF_INVALID, "'%s' is not the URL of a local store",
                        url != NULL ? url : "");
    *path = url + sizeof scheme - 1;
    /* 64 bytes are left for the names of the files in the folder. */
    if ((*path)[0] != '\0' && strlen(*path) < PATH_MAX - 64)
        return HF_OK;
    hf_status status = hf__fail(err, HF_CONFIG, "the URL of the local store names %s",
                                (*path)[0] == '\0' ? "no folder" : "a path that is too long");
    hf__hint(err, "write local:/path/to/folder");
    return status;
}

static void identify(hf__local *local)
{
    if (gethostname(local->host, sizeof local->host - 1) != 0)
        strcpy(local->host, "localhost");
    local->self = (hf__local_process){
        .pid = (int)getpid(),
        .started = hf__process_started((int)getpid()),
        .pid_space = hf__own_pid_space(),
        .host = local->host,
    };
    local->boot_offset_ms = hf__own_boot_offset_ms();
}

/* Keeps the absolute path, because the process may change its working directory. */
static hf_status name_folder(hf__local *local, const char *path, hf_error *err)
{
    static const char scheme[] = "local:";

    local->folder = strdup(path);
    if (local->folder == NULL)
        return hf__no_memory(err);
    hf_status status = hf__local_make_folders(local, err);
    if (status != HF_OK)
        return status;
    char *absolute = realpath(path, NULL);
    if (absolute == NULL) {
        status = hf__fail_errno(err, errno == ENOMEM ? HF_NO_MEMORY : HF_CONFIG, errno,
                                "cannot use the state folder %s", path);
        hf__hint(err, "choose another folder: local:/path/to/folder");
        return status;
    }
    free(local->folder);
    local->folder = absolute;
    local->head.name = malloc(sizeof scheme + strlen(absolute));
    if (local->head.name == NULL)
        return hf__no_memory(err);
    strcpy(stpcpy(local->head.name, scheme), absolute);
    return HF_OK;
}

static hf_status set_up(hf__local *local, const hf_store_options *options, const char *path,
                        hf_error *err)
{
    local->head.ops = &operations;
    local->head.local = true;
    local->keeps_records = options->records != HF_RECORDS_OFF;
    local->check_ms = options->ping_interval_ms;
    local->kill_ms = options->kill_ms;
    local->busy_ms = options->ping_deadline_ms > 0 ? options->ping_deadline_ms : INT_MAX;
    atomic_store(&local->head.records, local->keeps_records);
    atomic_store(&local->head.readable, local->keeps_records);
    local->head.max_keys = options->max_keys > 0 ? options->max_keys : MAX_KEYS;
    local->head.log = options->log;
    local->head.log_arg = options->log_arg;
    local->application = strdup(options->application != NULL ? options->application : "holdfast");
    if (local->application == NULL)
        return hf__no_memory(err);
    identify(local);
    return name_folder(local, path, err);
}

hf_status hf__local_open(const hf_store_options *options, hf__backend **backend, hf_error *err)
{
    const char *path = "";

    hf_status status = read_url(options->url, &path, err);
    if (status != HF_OK)
        return status;
    hf__local *local = calloc(1, sizeof *local);
    if (local == NULL)
        return hf__no_memory(err);
    status = set_up(local, options, path, err);
    if (status != HF_OK) {
        free_memory(local);
        return status;
    }
    pthread_mutex_init(&local->mutex, NULL);
    hf__cond_init(&local->released);
    hf__cond_init(&local->renewal_due);
    hf__baton_init(&local->db.baton);
    pthread_mutex_init(&local->bell.mutex, NULL);
    pthread_cond_init(&local->bell.rung, NULL);
    *backend = &local->head;
    return HF_OK;
}
