/*
 * Waiting without polling. A helper thread blocks in the kernel, on open file descriptions of its
 * own. The caller's thread waits for the helper, the deadline or an interrupt. To give up, it
 * cancels the helper and closes the descriptors. This releases what the helper got at the last
 * moment, so no timeout leaves a lock behind.
 *
 * Whoever is in the gate of a key may be stopped (SIGSTOP, Ctrl-Z) while the key becomes free. The
 * callers' threads behind it look at the key now and then, and pass the gate if nobody locks it.
 */
#include "lib/local/local.h"

#include <errno.h>

#include "base/clock.h"
#include "base/thread.h"

enum {
    STACK_SIZE = 128 * 1024,
    RECORD_AFTER_MS = 100,     /* shorter waits are not recorded */
    RECORD_INTERVAL_MS = 100,  /* between updates of the record while a set makes progress */
    SEARCH_INTERVAL_MS = 1000, /* for deadlocks */
    CONFIRM_AFTER_MS = 250,    /* the second search, when the first has found a cycle */
    GLANCE_MS = 500,           /* between looks whether the key is free behind a taken gate */
    LEASE_LOW_MS = 20,         /* between looks whether a lease is over */
    LEASE_HIGH_MS = 40,
    PATIENCE = 16, /* so often it starts over because lock files were replaced */
};

/* ---- the helper: nothing but fcntl in it is a cancellation point ----------------------------- */

static void report_progress(hf__local_wait *wait, size_t position, bool at_head)
{
    pthread_mutex_lock(&wait->mutex);
    wait->position = position;
    wait->at_head = at_head;
    if (wait->recorded)
        hf__cond_signal(&wait->changed);
    pthread_mutex_unlock(&wait->mutex);
}

static int open_fd(const hf__local_wait *wait, unsigned index)
{
    return wait->session->files.file[index].fd_plus_one - 1;
}

static void report_aside(hf__local_wait *wait, bool aside)
{
    pthread_mutex_lock(&wait->mutex);
    wait->aside = aside;
    pthread_mutex_unlock(&wait->mutex);
}

/* Waits while somebody asks for the key. */
static int stand_aside(hf__local_wait *wait)
{
    const hf__claim *ask = wait->request->ask;
    int fd = open_fd(wait, hf__local_lock_file(ask));
    report_aside(wait, true);
    int error_number = hf__local_lock_byte(fd, ask, true);
    report_aside(wait, false);
    return error_number == 0 ? hf__local_unlock_byte(fd, ask) : error_number;
}

/*
 * Who asks for the key does not wait for the gate: who has it stands aside. If nobody has it, it is
 * locked all the same, or newcomers would take the key for one that nobody waits for.
 */
static int lock_one(hf__local_wait *wait, size_t position)
{
    const hf__claim *claim = &wait->request->claims[position];
    int gate = open_fd(wait, hf__local_gate_file(claim));
    bool asks = wait->request->asks;

    int error_number = hf__local_lock_byte(gate, claim, !asks);
    if (error_number != 0 && !(asks && error_number == EAGAIN))
        return error_number;
    bool gated = error_number == 0;
    error_number = 0;
    report_progress(wait, position, true);
    if (wait->stands_aside)
        error_number = stand_aside(wait);
    if (error_number != 0)
        return error_number;
    error_number = hf__local_lock_byte(open_fd(wait, hf__local_lock_file(claim)), claim, true);
    /* The last gate is kept until the wait is over: the key may be leased still. */
    if (error_number == 0 && gated && position + 1 < wait->request->count)
        error_number = hf__local_unlock_byte(gate, claim);
    if (error_number == 0)
        report_progress(wait, position + 1, false);
    return error_number;
}

static void *lock_all(void *arg)
{
    hf__local_wait *wait = arg;
    int error_number = 0;

    for (size_t i = wait->position; i < wait->request->count && error_number == 0; i++)
        error_number = lock_one(wait, i);

    pthread_mutex_lock(&wait->mutex);
    wait->error_number = error_number;
    wait->done = true;
    hf__cond_signal(&wait->changed);
    pthread_mutex_unlock(&wait->mutex);
    return NULL;
}

static hf_status start_helper(hf__local_wait *wait, hf_error *err)
{
    int error_number = hf__thread_start(&wait->helper, STACK_SIZE, lock_all, wait);
    if (error_number == 0)
        return HF_OK;
    hf_status status =
        hf__fail_errno(err, HF_SYSTEM, error_number, "cannot start a thread to wait");
    hf__hint(err, "raise the limit of threads (ulimit -u, TasksMax=), or wait for fewer locks");
    return status;
}

/* ---- the caller's thread --------------------------------------------------------------------- */

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Records the wait and searches for a deadlock. Other failures than HF_DEADLOCK are logged. */
static hf_status look_around(hf__local_wait *wait, size_t position, bool at_head, bool search,
                             hf_error *err)
{
    hf__local_patience patience = hf__local_patience_of(wait->local, wait->request);
    hf_error why;

    /* The wait itself needs no record. */
    patience.until = min_of(patience.until, hf__deadline(HF__LOCAL_BRIEF_MS));
    hf_status status = hf__local_db_enter(wait->local, &patience, &why);
    if (status == HF_OK) {
        status = hf__local_put_wait(wait, position, at_head, &why);
        if (status == HF_OK && search && position < wait->request->count)
            status = hf__local_find_deadlock(wait, err);
        hf__local_db_leave(wait->local);
    }
    if (status == HF_DEADLOCK)
        return HF_DEADLOCK;
    if (status != HF_OK)
        hf__log(&wait->local->head, HF_LOG_WARNING, "a wait is not recorded: %s", why.message);
    return HF_OK;
}

static bool is_record_old(const hf__local_wait *wait)
{
    return wait->id != 0 &&
           (wait->position != wait->recorded_position || wait->at_head != wait->recorded_at_head);
}

/* What a wait behind a gate saw when it looked at the key last. */
struct glance {
    int64_t next_at;
    bool idle; /* nobody held it */
    size_t position;
};

/* wait->mutex is held, and unlocked while the database is used. */
static bool is_leased(hf__local_wait *wait, const hf__claim *claim)
{
    pthread_mutex_unlock(&wait->mutex);
    bool leased = hf__local_is_leased(wait->local, wait->request, claim);
    pthread_mutex_lock(&wait->mutex);
    return leased || wait->at_head || claim != &wait->request->claims[wait->position];
}

/* Likewise. The key is held: does only a stopped waiter keep the shared claim from joining? */
static bool joins_past_stopped(hf__local_wait *wait, const hf__claim *claim)
{
    if (claim->mode != HF_SHARED)
        return false;
    pthread_mutex_unlock(&wait->mutex);
    const hf__local_patience patience = hf__local_patience_of(wait->local, wait->request);
    bool stopped = hf__local_is_head_stopped(wait->local, claim, &patience);
    pthread_mutex_lock(&wait->mutex);
    return stopped && !wait->at_head && claim == &wait->request->claims[wait->position];
}

/* wait->mutex is held. True when the key could be had for long enough, and has been locked now. */
static bool passes_gate(hf__local_wait *wait, struct glance *last, int64_t now)
{
    struct glance glance = {.position = wait->position};

    if (!wait->at_head && wait->position < wait->request->count) {
        const hf__claim *claim = &wait->request->claims[wait->position];
        int fd = open_fd(wait, hf__local_lock_file(claim));
        bool held = true;
        glance.idle = hf__local_probe_byte(fd, claim, HF_EXCLUSIVE, &held) == 0 && !held &&
                      !is_leased(wait, claim);
        if ((glance.idle && last->idle && last->position == glance.position) ||
            (!glance.idle && joins_past_stopped(wait, claim)))
            wait->passed = hf__local_lock_byte(fd, claim, false) == 0;
    }
    glance.next_at = now + (glance.idle ? HF__LOCAL_STALL_MS : GLANCE_MS);
    *last = glance;
    return wait->passed;
}

/*
 * wait->mutex is held, and unlocked while the engine is asked. Must the helper, which waits for the
 * key, stand aside for one who asks? Or not any more, because that one is of this process, and may
 * stand behind this wait there?
 */
static bool must_start_over(hf__local_wait *wait)
{
    const hf__claim *ask = wait->request->ask;
    bool held = false;

    if (ask == NULL || wait->request->asks || !wait->at_head)
        return false;
    pthread_mutex_unlock(&wait->mutex);
    bool stands_aside = hf__stands_aside(wait->request);
    pthread_mutex_lock(&wait->mutex);
    if (wait->done || !wait->at_head)
        return false;
    if (!stands_aside)
        return wait->aside;
    return !wait->aside &&
           hf__local_probe_byte(open_fd(wait, hf__local_lock_file(ask)), ask, HF_SHARED, &held) ==
               0 &&
           held;
}

/* wait->mutex is held, and unlocked while the caller is asked. */
static bool gives_up(hf__local_wait *wait)
{
    if (wait->request->give_up == NULL)
        return false;
    pthread_mutex_unlock(&wait->mutex);
    bool stop = wait->request->give_up(wait->request->give_up_arg);
    pthread_mutex_lock(&wait->mutex);
    return stop && !wait->done;
}

/*
 * wait->mutex is held, and unlocked while the database is used. HF_OK: done, past a gate, or to
 * start over.
 */
static hf_status await(hf__local_wait *wait, hf_error *err)
{
    const int64_t deadline = wait->request->deadline;
    int64_t looked_at = hf__now_ms();
    int64_t search_at = looked_at + SEARCH_INTERVAL_MS;
    int64_t look_at = wait->local->keeps_records ? looked_at + RECORD_AFTER_MS : HF__FOREVER;
    struct glance glance = {.next_at = looked_at + GLANCE_MS};

    while (!wait->done && !wait->interrupted) {
        int64_t now = hf__now_ms();
        if (now >= deadline)
            return HF_NOT_ACQUIRED;
        if (is_record_old(wait))
            look_at = min_of(look_at, looked_at + RECORD_INTERVAL_MS);
        if (now >= glance.next_at) {
            if (passes_gate(wait, &glance, now))
                return HF_OK;
            if (must_start_over(wait)) {
                wait->starts_over = true;
                return HF_OK;
            }
            if (gives_up(wait))
                return HF_NOT_ACQUIRED;
        }
        if (now < look_at) {
            (void)hf__cond_wait(&wait->changed, &wait->mutex,
                                min_of(deadline, min_of(look_at, glance.next_at)));
            continue;
        }

        bool search = now >= search_at;
        size_t position = wait->position;
        bool at_head = wait->at_head;
        wait->recorded = true;
        pthread_mutex_unlock(&wait->mutex);
        hf_status status = look_around(wait, position, at_head, search, err);
        pthread_mutex_lock(&wait->mutex);
        if (status == HF_DEADLOCK && !wait->done)
            return status;
        looked_at = hf__now_ms();
        if (search)
            search_at = looked_at + (wait->suspicion != 0 ? CONFIRM_AFTER_MS : SEARCH_INTERVAL_MS);
        look_at = search_at;
    }
    return wait->done ? HF_OK : hf__interrupted(err);
}

/* The helper must not open files: a cancellation in between would leak the descriptor. */
static hf_status open_files(hf__local_wait *wait, hf_error *err)
{
    hf__local_files *files = &wait->session->files;
    const hf__request *request = wait->request;
    hf_status status = HF_OK;
    int fd = -1;

    pthread_mutex_lock(&wait->session->mutex);
    if (!hf__local_keys_reserve(&wait->session->held, request->count))
        status = hf__no_memory(err);
    for (size_t i = 0; i < request->count && status == HF_OK; i++) {
        unsigned gate = hf__local_gate_file(&request->claims[i]);
        unsigned lock = hf__local_lock_file(&request->claims[i]);
        status = hf__local_file_open(wait->local, files, gate, true, &fd, err);
        if (status == HF_OK)
            status = hf__local_file_open(wait->local, files, lock, true, &fd, err);
    }
    if (status == HF_OK && request->ask != NULL)
        status = hf__local_file_open(wait->local, files, hf__local_lock_file(request->ask), true,
                                     &fd, err);
    pthread_mutex_unlock(&wait->session->mutex);
    return status;
}

/*
 * All bytes are locked. Adds them to the session, and checks that the lock files were not replaced:
 * other processes would lock the new ones.
 */
static bool is_current(hf__local_wait *wait)
{
    hf__local_session *session = wait->session;
    const hf__request *request = wait->request;
    unsigned checked = HF__LOCAL_FILES;
    bool current = true;

    pthread_mutex_lock(&session->mutex);
    for (size_t i = 0; i < request->count && current; i++) {
        unsigned index = hf__local_lock_file(&request->claims[i]);
        if (index != checked)
            current = hf__local_file_is_current(wait->local, &session->files, index);
        checked = index;
        hf__local_keys_add(&session->held, &request->claims[i]);
        session->files.file[index].held++;
    }
    pthread_mutex_unlock(&session->mutex);
    return current;
}

/* What it has waited for is its own now. */
static void close_gates(hf__local_wait *wait)
{
    hf__local_session *session = wait->session;
    const hf__claim *ask = wait->request->ask;

    pthread_mutex_lock(&session->mutex);
    for (unsigned index = HF__LOCAL_GATES; index < HF__LOCAL_FILES; index++)
        hf__local_file_close(&session->files, index);
    if (ask != NULL && session->files.file[hf__local_lock_file(ask)].held == 0)
        hf__local_file_close(&session->files, hf__local_lock_file(ask));
    pthread_mutex_unlock(&session->mutex);
}

/* The helper has ended. It may have got into the gate, and further, before it was cancelled. */
static void go_on_behind_gate(hf__local_wait *wait, size_t position)
{
    const hf__claim *claim = &wait->request->claims[position];

    if (wait->position == position) {
        (void)hf__local_unlock_byte(open_fd(wait, hf__local_gate_file(claim)), claim);
        wait->position = position + 1;
    }
    wait->at_head = false;
    wait->done = wait->error_number != 0 || wait->position == wait->request->count;
    wait->passed = false;
}

/* The helper has ended. It keeps the gate, and lets go of the key if it got that just now. */
static void start_over(hf__local_wait *wait, size_t position)
{
    const hf__claim *claim = &wait->request->claims[position];

    wait->starts_over = false;
    if (wait->done)
        return;
    (void)hf__local_unlock_byte(open_fd(wait, hf__local_lock_file(claim)), claim);
}

static hf_status wait_for_helper(hf__local_wait *wait, hf_error *err)
{
    hf_status status = HF_OK;
    size_t position = 0;

    while (status == HF_OK && !wait->done) {
        wait->aside = false;
        wait->stands_aside = hf__stands_aside(wait->request);
        status = start_helper(wait, err);
        if (status != HF_OK)
            return status;

        pthread_mutex_lock(&wait->mutex);
        status = await(wait, err);
        position = wait->position;
        pthread_mutex_unlock(&wait->mutex);

        if (status != HF_OK || wait->passed || wait->starts_over)
            pthread_cancel(wait->helper);
        pthread_join(wait->helper, NULL);
        if (wait->passed)
            go_on_behind_gate(wait, position);
        if (wait->starts_over)
            start_over(wait, position);
    }
    if (status == HF_OK && wait->error_number != 0)
        status =
            hf__local_file_fail(wait->local, hf__local_lock_file(&wait->request->claims[position]),
                                wait->error_number, "lock a byte of", err);
    return status;
}

static void forget_record(hf__local_wait *wait)
{
    const hf__local_patience brief = hf__local_patience_for(HF__LOCAL_BRIEF_MS);
    hf_error err;

    if (wait->id == 0)
        return;
    hf_status status = hf__local_db_enter(wait->local, &brief, &err);
    if (status == HF_OK) {
        status = hf__local_drop_wait(wait, &err);
        hf__local_db_leave(wait->local);
    }
    if (status != HF_OK)
        hf__log(&wait->local->head, HF_LOG_WARNING, "the record of a wait stays: %s", err.message);
}

/* ---- leases in the way, which the kernel tells nobody of ------------------------------------ */

/* When the wait looks again: soon, and when the lease in the way is over. */
static int64_t next_look(const hf__request *request)
{
    int64_t next = hf__deadline(hf__jitter_ms(LEASE_LOW_MS, LEASE_HIGH_MS));
    next = request->free_at != 0 ? min_of(next, request->free_at) : next;
    return min_of(next, request->deadline);
}

/* Sleeps, and records the wait now and then. HF_NOT_ACQUIRED: it is over. */
static hf_status pause_wait(hf__local_wait *wait, const hf__request *request, int64_t *look_at,
                            hf_error *err)
{
    hf_status status = HF_OK;

    pthread_mutex_lock(&wait->mutex);
    if (!wait->interrupted)
        (void)hf__cond_wait(&wait->changed, &wait->mutex, next_look(request));
    bool interrupted = wait->interrupted;
    bool over = hf__left_ms(request->deadline) == 0 || (!interrupted && gives_up(wait));
    pthread_mutex_unlock(&wait->mutex);
    if (interrupted || over)
        return interrupted ? hf__interrupted(err) : HF_NOT_ACQUIRED;
    if (wait->local->keeps_records && hf__left_ms(*look_at) == 0) {
        bool search = wait->id != 0; /* not at the first look: most leases end, or are given back */
        status = look_around(wait, request->blocked, true, search, err);
        *look_at = hf__deadline(wait->suspicion != 0 ? CONFIRM_AFTER_MS : SEARCH_INTERVAL_MS);
    }
    return status;
}

/* The session has locked the bytes, and a key is leased: lets go of them, but not of its place. */
static hf_status await_end_of_lease(hf__local_wait *wait, hf__request *request, hf_error *err)
{
    const hf__claim *claim = &request->claims[request->blocked];
    int64_t look_at = hf__deadline(RECORD_AFTER_MS);
    hf_status status = HF_OK;

    hf__local_session_unlock(wait->session, request->claims, request->count);
    wait->position = 0;
    wait->at_head = true;
    wait->done = false;
    do
        status = pause_wait(wait, request, &look_at, err);
    while (status == HF_OK && hf__local_is_leased(wait->local, request, claim));
    return status;
}

/* Nobody who only tries gets the key before who is in its gate. Nothing if somebody else is. */
static void enter_gate(hf__local_wait *wait)
{
    const hf__claim *claim = wait->request->claims;
    int fd = -1;

    pthread_mutex_lock(&wait->session->mutex);
    if (hf__local_file_open(wait->local, &wait->session->files, hf__local_gate_file(claim), true,
                            &fd, NULL) == HF_OK)
        (void)hf__local_lock_byte(fd, claim, false);
    pthread_mutex_unlock(&wait->session->mutex);
}

/*
 * A lease is tried for again and again, as on a server. Who is in the gate of its key, and does not
 * take it although it is free, may be stopped; who asks goes before that one in any case.
 */
static hf_status wait_for_lease(hf__local_wait *wait, hf__request *request, hf_error *err)
{
    int64_t look_at = hf__deadline(RECORD_AFTER_MS), stood_since = 0;
    bool again = true, asked = false;
    hf_status status = hf__local_session_new(wait->local, false, &wait->session, err);

    while (status == HF_OK && again) {
        hf__local_gates gates = {
            .pass = request->asks ||
                    (stood_since != 0 && hf__now_ms() - stood_since >= HF__LOCAL_STALL_MS)};
        enter_gate(wait);
        again = false;
        asked = hf__local_is_asked_for(wait->local, request);
        if (!asked)
            status = hf__local_session_try(wait->session, request, &gates, &again, err);
        if (status == HF_NOT_ACQUIRED || asked) {
            again = true;
            stood_since = !gates.stood ? 0 : stood_since != 0 ? stood_since : hf__now_ms();
            status = pause_wait(wait, request, &look_at, err);
        }
    }
    if (status == HF_OK) {
        wait->id = 0; /* as below */
        hf__local_session_grant(wait->session, request);
    } else if (wait->session != NULL) {
        hf__local_session_free(wait->session);
    }
    return status;
}

/* Waits until nobody has the keys, neither as locks of the kernel nor as leases. */
static hf_status hold_all(hf__local_wait *wait, hf__request *request, bool *again, hf_error *err)
{
    for (;;) {
        hf_status status = wait_for_helper(wait, err);
        *again = status == HF_OK && !is_current(wait);
        if (status != HF_OK || *again)
            return status;
        status = hf__local_session_record(wait->session, request, err);
        if (status != HF_NOT_ACQUIRED)
            return status;
        status = await_end_of_lease(wait, request, err);
        if (status != HF_OK)
            return status;
    }
}

/* *again: lock files were replaced meanwhile, so the locks that it got are worth nothing. */
static hf_status wait_once(hf__local_wait *wait, hf__request *request, bool *again, hf_error *err)
{
    wait->position = 0;
    wait->at_head = false;
    wait->done = false;
    *again = false;
    hf_status status = hf__local_session_new(wait->local, false, &wait->session, err);
    if (status != HF_OK)
        return status;
    status = open_files(wait, err);
    if (status == HF_OK)
        status = hold_all(wait, request, again, err);
    if (status == HF_LOST) {
        wait->id = 0; /* as below */
        *again = true;
        status = HF_OK;
    }
    if (status != HF_OK || *again) {
        request->blocked = wait->position < request->count ? wait->position : 0;
        hf__local_session_free(wait->session); /* closes the files, which releases their locks */
        return status;
    }
    wait->id = 0; /* recording the holders has deleted the wait's record */
    close_gates(wait);
    hf__local_session_grant(wait->session, request);
    return HF_OK;
}

hf_status hf__local_wait_claims(hf__backend *backend, hf__request *request, hf_error *err)
{
    hf__local_wait wait = {
        .local = (hf__local *)backend,
        .request = request,
        .since_ms = hf__wall_ms(),
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .changed = HF__COND_INITIALIZER,
    };
    hf_status status = HF_OK;
    int cancel_state = 0;
    bool again = request->lifetime != HF_LEASE;

    /* A cancelled caller would leave the helper behind. hf_store_interrupt ends waits. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    hf__local_enlist(&wait);
    if (!again)
        status = wait_for_lease(&wait, request, err);
    for (int attempt = 0; again && attempt < PATIENCE; attempt++)
        status = wait_once(&wait, request, &again, err);
    if (again)
        status = hf__fail(err, HF_CONFIG, "the files in %s/locks are replaced all the time",
                          wait.local->folder);
    hf__local_delist(&wait);
    forget_record(&wait);
    hf__cond_destroy(&wait.changed);
    pthread_mutex_destroy(&wait.mutex);
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}
