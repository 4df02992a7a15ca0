/* Sessions: locking keys that are free, releasing them, and noticing removed lock files. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "lib/local/local.h"

/* So often an acquire starts over because lock files were replaced; then it fails. */
enum { PATIENCE = 16 };

/* How often a try looks again at a lock that is free while somebody is in its gate. */
enum { GLANCE_MS = 5 };

static hf__local_session *session_of(hf__session *head)
{
    return (hf__local_session *)head;
}

static hf__local *local_of(hf__backend *backend)
{
    return (hf__local *)backend;
}

/* ---- life of a session ----------------------------------------------------------------------- */

/* local->mutex is held. */
static hf_status add_session(hf__local *local, bool is_shared, hf__local_session **out,
                             hf_error *err)
{
    hf__local_session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return hf__no_memory(err);
    if (getrandom(&session->id, sizeof session->id, 0) != (ssize_t)sizeof session->id) {
        int error_number = errno;
        free(session);
        return hf__fail_errno(err, HF_SYSTEM, error_number, "no random number for a seat");
    }
    session->head.backend = &local->head;
    session->is_shared = is_shared;
    pthread_mutex_init(&session->mutex, NULL);
    session->next = local->sessions;
    local->sessions = session;
    *out = session;
    return HF_OK;
}

hf_status hf__local_session_new(hf__local *local, bool is_shared, hf__local_session **session,
                                hf_error *err)
{
    pthread_mutex_lock(&local->mutex);
    hf_status status = add_session(local, is_shared, session, err);
    pthread_mutex_unlock(&local->mutex);
    return status;
}

void hf__local_session_free(hf__local_session *session)
{
    hf__local *local = local_of(session->head.backend);

    pthread_mutex_lock(&local->mutex);
    for (hf__local_session **link = &local->sessions; *link != NULL; link = &(*link)->next) {
        if (*link == session) {
            *link = session->next;
            break;
        }
    }
    pthread_mutex_unlock(&local->mutex);
    hf__local_files_close(&session->files);
    hf__local_keys_free(&session->held);
    pthread_mutex_destroy(&session->mutex);
    free(session);
}

/* The session that uncontended locks share. When it is lost, a new one takes its place. */
static hf_status pick_shared_session(hf__local *local, hf__local_session **session, hf_error *err)
{
    hf_status status = HF_OK;

    pthread_mutex_lock(&local->mutex);
    if (local->shared_session == NULL || atomic_load(&local->shared_session->head.losing))
        status = add_session(local, true, &local->shared_session, err);
    *session = local->shared_session;
    pthread_mutex_unlock(&local->mutex);
    return status;
}

void hf__local_leave_session(hf__session *head, unsigned keys)
{
    hf__local_session *session = session_of(head);

    if (atomic_fetch_sub(&head->holds, keys) != keys)
        return;

    if (!session->is_shared) {
        hf__local_session_free(session);
        return;
    }
    if (!atomic_load(&head->lost))
        return;
    /* Another thread may just have picked this session, so its memory stays until the store is
     * closed. */
    pthread_mutex_lock(&session->mutex);
    session->closed = true;
    hf__local_files_close(&session->files);
    hf__local_keys_free(&session->held);
    pthread_mutex_unlock(&session->mutex);
}

static void lose(hf__local_session *session, unsigned index)
{
    hf__local *local = local_of(session->head.backend);
    char path[PATH_MAX];
    hf_error why;

    hf__local_file_path(local, index, path, sizeof path);
    hf_status lost = hf__fail(&why, HF_LOST, "the lock file %s was removed or replaced", path);
    hf__hint(&why, "nothing but holdfast may touch the files in %s/locks", local->folder);
    if (lost == HF_LOST)
        hf__session_lose(&session->head, "lock_file", &why);
}

void hf__local_session_check(hf__local_session *session)
{
    hf__local *local = local_of(session->head.backend);

    pthread_mutex_lock(&session->mutex);
    for (unsigned index = 0; index < HF__LOCAL_FILES; index++) {
        hf__local_file *file = &session->files.file[index];
        if (file->fd_plus_one == 0 || (file->held == 0 && index < HF__LOCAL_GATES) ||
            hf__local_file_is_current(local, &session->files, index))
            continue;
        if (file->held > 0)
            lose(session, index);
        else if (session->is_shared)
            hf__local_file_close(&session->files, index); /* a gate, which is only probed */
    }
    pthread_mutex_unlock(&session->mutex);
}

/* ---- taking; the session's mutex is held ----------------------------------------------------- */

/* A waiter at the gate goes first, as in PostgreSQL; otherwise mere tries could starve it. */
static hf_status is_gate_taken(hf__local *local, hf__local_files *files, const hf__claim *claim,
                               hf_mode mode, bool *taken, hf_error *err)
{
    unsigned index = hf__local_gate_file(claim);
    int fd = -1;

    *taken = false;
    hf_status status = hf__local_file_open(local, files, index, false, &fd, err);
    if (status != HF_OK || fd < 0)
        return status;
    int error_number = hf__local_probe_byte(fd, claim, mode, taken);
    if (error_number != 0)
        return hf__local_file_fail(local, index, error_number, "look at", err);
    return HF_OK;
}

/* Somebody is in the gate of claims[position], and the lock is held or free. */
static bool stops_at_gate(const hf__request *request, size_t position, bool held,
                          hf__local_gates *gates)
{
    bool shared = request->claims[position].mode == HF_SHARED;

    gates->stood = !held && !gates->pass;
    gates->shut = held && shared && position >= gates->past;
    return gates->stood || gates->shut || (held && !shared);
}

static hf_status lock_one(hf__local *local, hf__local_session *session, const hf__request *request,
                          size_t position, hf__local_gates *gates, hf_error *err)
{
    const hf__claim *claim = &request->claims[position];
    unsigned index = hf__local_lock_file(claim);
    bool waited_for = false;
    bool held = false;
    int error_number = 0;
    int fd = -1;

    /* The kernel would grant the session its own key again, and hide a mistake of the engine. */
    if (hf__local_keys_have(&session->held, claim))
        return HF_NOT_ACQUIRED;
    hf_status status = is_gate_taken(local, &session->files, claim, claim->mode, &waited_for, err);
    if (status == HF_OK)
        status = hf__local_file_open(local, &session->files, index, true, &fd, err);
    if (status != HF_OK)
        return status;

    if (waited_for) {
        /* Exclusively, whatever the claim: with any holder the waiter may have reason to wait. */
        error_number = hf__local_probe_byte(fd, claim, HF_EXCLUSIVE, &held);
        if (error_number == 0 && stops_at_gate(request, position, held, gates))
            return HF_NOT_ACQUIRED;
    }
    if (error_number == 0)
        error_number = hf__local_lock_byte(fd, claim, false);
    if (error_number == EAGAIN)
        return HF_NOT_ACQUIRED;
    if (error_number != 0)
        return hf__local_file_fail(local, index, error_number, "lock a byte of", err);
    hf__local_keys_add(&session->held, claim);
    session->files.file[index].held++;
    return HF_OK;
}

/* False: the session did not hold the key, or the unlock failed. */
static bool drop_one(hf__local_session *session, const hf__claim *claim)
{
    hf__local_file *file = &session->files.file[hf__local_lock_file(claim)];

    if (!hf__local_keys_remove(&session->held, claim))
        return false;
    file->held--;
    return hf__local_unlock_byte(file->fd_plus_one - 1, claim) == 0;
}

static void drop_all(hf__local_session *session, const hf__claim *claims, size_t count)
{
    for (size_t i = count; i > 0; i--)
        (void)drop_one(session, &claims[i - 1]);
}

/*
 * Looks for files of the claims that were replaced since they were opened. If there are any, it
 * unlocks all claims and closes those files, so that the next try opens the new ones. If the
 * session holds other keys in such a file, it is lost. True: try again.
 */
static bool drop_replaced(hf__local *local, hf__local_session *session, const hf__claim *claims,
                          size_t count)
{
    bool seen[HF__LOCAL_GATES] = {false};
    bool replaced[HF__LOCAL_GATES] = {false};
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        unsigned index = hf__local_lock_file(&claims[i]);
        if (seen[index])
            continue;
        seen[index] = true;
        replaced[index] = !hf__local_file_is_current(local, &session->files, index);
        any = any || replaced[index];
    }
    if (!any)
        return false;

    drop_all(session, claims, count);
    for (unsigned index = 0; index < HF__LOCAL_GATES; index++) {
        if (!replaced[index])
            continue;
        if (session->files.file[index].held > 0)
            lose(session, index);
        else
            hf__local_file_close(&session->files, index);
    }
    for (unsigned index = HF__LOCAL_GATES; index < HF__LOCAL_FILES; index++)
        hf__local_file_close(&session->files, index);
    return true;
}

static hf_status lock_all(hf__local *local, hf__local_session *session, hf__request *request,
                          hf__local_gates *gates, bool *again, hf_error *err)
{
    hf_status status = HF_OK;
    size_t taken = 0;

    *again = session->closed || atomic_load(&session->head.losing);
    if (*again)
        return HF_OK;
    if (!hf__local_keys_reserve(&session->held, request->count))
        return hf__no_memory(err);
    while (status == HF_OK && taken < request->count) {
        status = lock_one(local, session, request, taken, gates, err);
        if (status == HF_OK)
            taken++;
    }
    if (status != HF_OK) {
        request->blocked = taken;
        drop_all(session, request->claims, taken);
        return status;
    }
    *again = drop_replaced(local, session, request->claims, request->count);
    return HF_OK;
}

hf_status hf__local_session_lock(hf__local_session *session, hf__request *request,
                                 hf__local_gates *gates, bool *again, hf_error *err)
{
    pthread_mutex_lock(&session->mutex);
    hf_status status =
        lock_all(local_of(session->head.backend), session, request, gates, again, err);
    pthread_mutex_unlock(&session->mutex);
    return status;
}

void hf__local_session_unlock(hf__local_session *session, const hf__claim *claims, size_t count)
{
    pthread_mutex_lock(&session->mutex);
    if (!drop_replaced(local_of(session->head.backend), session, claims, count))
        drop_all(session, claims, count);
    pthread_mutex_unlock(&session->mutex);
}

void hf__local_session_grant(hf__local_session *session, hf__request *request)
{
    atomic_fetch_add(&session->head.holds, (unsigned)request->count);
    request->session = &session->head;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* The lock has been released already, so nobody waits for long, and a failure is only logged:
 * closing tries it again. */
static void drop_records(hf__local *local, hf__local_session *session, const hf__claim *claims,
                         size_t count, bool brief)
{
    const hf__local_patience patience =
        hf__local_patience_for(brief ? HF__LOCAL_BRIEF_MS : HF__LOCAL_CLOSE_MS);
    hf_error err;
    hf_status status;

    if (!local->keeps_records)
        return;
    status = hf__local_db_enter(local, &patience, &err);
    if (status == HF_OK) {
        status = hf__local_drop_holders(local, session->id, claims, count, &err);
        hf__local_db_leave(local);
    }
    if (status == HF_OK)
        return;
    pthread_mutex_lock(&session->mutex);
    session->has_stale = true;
    pthread_mutex_unlock(&session->mutex);
    hf__log(&local->head, HF_LOG_WARNING, "the record of a released lock stays: %s", err.message);
}

static bool are_current(hf__local_session *session, const hf__claim *claims, size_t count)
{
    const hf__local *local = local_of(session->head.backend);
    bool current = true;

    pthread_mutex_lock(&session->mutex);
    for (size_t i = 0; i < count && current; i++)
        current =
            hf__local_file_is_current(local, &session->files, hf__local_lock_file(&claims[i]));
    pthread_mutex_unlock(&session->mutex);
    return current;
}

hf_status hf__local_session_record(hf__local_session *session, hf__request *request, hf_error *err)
{
    hf__local *local = local_of(session->head.backend);
    const hf__local_patience patience = hf__local_patience_of(local, request);

    request->token = 0;
    if (!local->keeps_records)
        return hf__local_look_for_leases(local, request, err);
    hf_status status = hf__local_db_enter(local, &patience, err);
    if (status != HF_OK)
        return status;
    status = hf__local_put_holders(session, request, err);
    hf__local_db_leave(local);
    if (status == HF_OK && !are_current(session, request->claims, request->count)) {
        if (request->lifetime == HF_LEASE)
            (void)!hf__local_release_lease(session, request->claims, request->count, true, NULL);
        else
            drop_records(local, session, request->claims, request->count, true);
        status = hf__fail(err, HF_LOST, "the files in %s/locks were replaced", local->folder);
    }
    return status;
}

/* A lease is held by its row. Its gate, too, is open from now on. */
static void close_files(hf__local_session *session)
{
    pthread_mutex_lock(&session->mutex);
    hf__local_files_close(&session->files);
    pthread_mutex_unlock(&session->mutex);
}

hf_status hf__local_session_try(hf__local_session *session, hf__request *request,
                                hf__local_gates *gates, bool *again, hf_error *err)
{
    hf_status status = hf__local_session_lock(session, request, gates, again, err);
    if (status != HF_OK || *again)
        return status;
    status = hf__local_session_record(session, request, err);
    bool is_lease = request->lifetime == HF_LEASE;
    if (status != HF_OK || is_lease)
        hf__local_session_unlock(session, request->claims, request->count);
    if (status == HF_OK && is_lease)
        close_files(session);
    *again = status == HF_LOST;
    return *again ? HF_OK : status;
}

static hf_status try_once(hf__local *local, hf__request *request, hf__local_gates *gates,
                          hf_error *err)
{
    bool is_private = request->private_session || request->lifetime == HF_LEASE;
    hf__local_session *session = NULL;
    hf_status status = HF_OK;
    bool again = true;

    for (int attempt = 0; again && attempt < PATIENCE; attempt++) {
        status = is_private ? hf__local_session_new(local, false, &session, err)
                            : pick_shared_session(local, &session, err);
        if (status != HF_OK || session == NULL)
            return status;
        status = hf__local_session_try(session, request, gates, &again, err);
        if (status != HF_OK)
            again = false;
        if (is_private && (again || status != HF_OK))
            hf__local_session_free(session);
    }
    if (again)
        return hf__fail(err, HF_CONFIG, "the files in %s/locks are replaced all the time",
                        local->folder);
    if (status == HF_OK)
        hf__local_session_grant(session, request);
    return status;
}

/* May the try start over, because it was only a waiter in a gate that stopped it? */
static bool goes_on(hf__local *local, const hf__request *request, int64_t until,
                    hf__local_gates *gates)
{
    const hf__local_patience patience = hf__local_patience_of(local, request);
    const hf__claim *blocked = &request->claims[request->blocked];
    hf__local_gates next = {.past = gates->past};

    if (gates->stood && hf__local_is_leased(local, request, blocked))
        return false;
    if (gates->stood) {
        (void)hf__poll(NULL, 0, GLANCE_MS);
        next.pass = hf__left_ms(until) == 0;
    } else if (gates->shut && hf__local_is_head_stopped(local, blocked, &patience)) {
        next.past = request->blocked + 1;
        next.pass = gates->pass;
    } else {
        return false;
    }
    *gates = next;
    return true;
}

/* Where a lock is free, the waiter in its gate is given a moment to lock it. */
hf_status hf__local_try_claims(hf__backend *backend, hf__request *request, hf_error *err)
{
    hf__local *local = local_of(backend);
    int64_t until = hf__deadline(HF__LOCAL_STALL_MS);
    hf__local_gates gates = {0};
    hf_status status = HF_OK;

    if (request->lifetime == HF_LEASE) {
        status = hf__local_start_renewing(local, err);
        if (status != HF_OK)
            return status;
        request->blocked = 0;
        if (hf__local_is_asked_for(local, request))
            return HF_NOT_ACQUIRED;
    }
    status = try_once(local, request, &gates, err);
    while (status == HF_NOT_ACQUIRED && goes_on(local, request, until, &gates))
        status = try_once(local, request, &gates, err);
    if (status != HF_NOT_ACQUIRED || !local->keeps_records)
        return status;
    /* If two labels share the key, say so: "held by another" would mislead. */
    hf_status label = hf__local_check_label(local, request, err);
    return label == HF_OK ? HF_NOT_ACQUIRED : label;
}

/* Is the key held, in a file that still has its name? If not, the session is lost. */
static bool is_still_held(hf__local_session *session, const hf__claim *claim)
{
    const hf__local *local = local_of(session->head.backend);
    unsigned index = hf__local_lock_file(claim);

    if (!hf__local_keys_have(&session->held, claim))
        return false;
    if (hf__local_file_is_current(local, &session->files, index))
        return true;
    lose(session, index);
    return false;
}

static hf_status say_lost(const hf__local_session *session, const hf__claim *claim, hf_error *err)
{
    const hf__session *head = &session->head;
    char name[256];

    return hf__fail(err, HF_LOST, "%s was lost: %s", hf__claim_name(name, sizeof name, claim),
                    atomic_load(&head->lost) ? head->why.message : "it was not held");
}

hf_status hf__local_release_claims(hf__session *head, const hf__claim *claims, size_t count,
                                   bool brief, hf_error *err)
{
    hf__local_session *session = session_of(head);
    hf__local *local = local_of(head->backend);
    hf_status status = HF_OK;

    if (head->lifetime == HF_LEASE)
        return hf__local_release_lease(session, claims, count, brief, err);
    pthread_mutex_lock(&session->mutex);
    for (size_t i = 0; i < count; i++) {
        bool held = is_still_held(session, &claims[i]);
        if ((!drop_one(session, &claims[i]) || !held) && status == HF_OK)
            status = say_lost(session, &claims[i], err);
    }
    pthread_mutex_unlock(&session->mutex);
    hf__local_count_releases(local, claims, count);
    drop_records(local, session, claims, count, brief);
    return status;
}

hf_status hf__local_confirm_claims(hf__session *head, const hf__claim *claims, size_t count,
                                   hf_error *err)
{
    hf__local_session *session = session_of(head);
    hf_status status = HF_OK;

    if (head->lifetime == HF_LEASE)
        return hf__session_is_lost(head) ? say_lost(session, claims, err) : HF_OK;
    pthread_mutex_lock(&session->mutex);
    for (size_t i = 0; i < count && status == HF_OK; i++)
        if (!is_still_held(session, &claims[i]))
            status = say_lost(session, &claims[i], err);
    pthread_mutex_unlock(&session->mutex);
    return status;
}

/* Before the record, which would drop a rival's; and behind it, so that no rival's token is smaller
 * than that of who is told that it holds the lock. */
hf_status hf__local_renew_claims(hf__session *head, hf__request *request, hf_error *err)
{
    request->token = 0;
    hf_status status = hf__local_confirm_claims(head, request->claims, request->count, err);
    if (status == HF_OK)
        status = hf__local_session_record(session_of(head), request, err);
    if (status == HF_LOST && err != NULL)
        err->code = HF_UNREACHABLE;
    return status == HF_LOST ? HF_UNREACHABLE : status;
}

hf_status hf__local_is_contended(hf__backend *backend, const hf__claim *claim, bool *contended,
                                 hf_error *err)
{
    const hf__local_patience brief = hf__local_patience_for(HF__LOCAL_BRIEF_MS);
    hf__local *local = local_of(backend);
    hf__local_session *shared_session = NULL;

    hf_status status = pick_shared_session(local, &shared_session, err);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&shared_session->mutex);
    status = is_gate_taken(local, &shared_session->files, claim, HF_EXCLUSIVE, contended, err);
    pthread_mutex_unlock(&shared_session->mutex);
    *contended = *contended && !hf__local_is_head_stopped(local, claim, &brief);
    return status;
}

hf_status hf__local_is_held(hf__local *local, const hf__claim *claim, bool *held, hf_error *err)
{
    unsigned index = hf__local_lock_file(claim);
    hf__local_session *shared_session = NULL;
    int error_number = 0;
    int fd = -1;

    *held = false;
    hf_status status = pick_shared_session(local, &shared_session, err);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&shared_session->mutex);
    if (hf__local_keys_have(&shared_session->held, claim)) {
        *held = true; /* a probe through the same open file description would not see it */
    } else {
        status = hf__local_file_open(local, &shared_session->files, index, false, &fd, err);
        if (status == HF_OK && fd >= 0)
            error_number = hf__local_probe_byte(fd, claim, claim->mode, held);
    }
    pthread_mutex_unlock(&shared_session->mutex);
    if (error_number != 0)
        return hf__local_file_fail(local, index, error_number, "look at", err);
    return status;
}
