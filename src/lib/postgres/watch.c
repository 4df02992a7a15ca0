/*
 * The watcher's work. It polls the sockets of idle sessions, so it sees a closed connection at
 * once, and pings sessions that have been silent for long. A busy session is covered by the
 * deadline of its statement.
 */
#include "lib/postgres/postgres.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"

enum { QUIET_MS = 20 }; /* a busy session is left alone for this long */

struct round {
    struct pollfd *fds; /* [0] is the descriptor that wakes the watcher */
    pg_session **sessions;
    size_t fd_room, session_room;
    size_t count;
    int64_t until;
};

void hf__pg_wake(hf__backend *base)
{
    pg_backend *backend = pg_backend_of(base);
    uint64_t one = 1;
    (void)!write(backend->wake_fd, &one, sizeof one);
}

static void no_later_than(struct round *round, int64_t moment)
{
    if (moment < round->until)
        round->until = moment;
}

/* Out of memory, the round looks after as many as there is room for. */
static bool has_room(struct round *round)
{
    return hf__grow(&round->fds, &round->fd_room, round->count + 1, sizeof *round->fds) &&
           hf__grow(&round->sessions, &round->session_room, round->count + 1, sizeof(pg_session *));
}

static void collect_sessions(pg_backend *backend, struct round *round)
{
    if (!has_room(round))
        return;
    round->fds[0] = (struct pollfd){.fd = backend->wake_fd, .events = POLLIN};
    round->count = 1;
    pthread_mutex_lock(&backend->mutex);
    for (pg_session *session = backend->sessions; session && has_room(round);
         session = session->next) {
        if (atomic_load(&session->base.lost))
            continue;
        session->pins++;
        round->sessions[round->count++] = session;
    }
    pthread_mutex_unlock(&backend->mutex);
}

static bool needs_ping(const pg_backend *backend, const pg_session *session)
{
    bool matters = atomic_load(&session->base.holds) > 0 || session->listens;
    return matters && hf__now_ms() - atomic_load(&session->used_ms) >= backend->ping_interval_ms;
}

/*
 * The session is idle and the watcher has its baton. Pings it when that is due, marks it lost when
 * a ping has no answer in time, and makes the round end when there is something to do again.
 */
static void attend(pg_backend *backend, pg_session *session, struct round *round)
{
    int64_t now = hf__now_ms();
    if (session->answer_due && now >= session->answer_due)
        hf__pg_session_fail(session, "no answer to a ping within the deadline");
    else if (!session->answer_due && !hf__pg_send_errands(session) && needs_ping(backend, session))
        hf__pg_session_ping(session);
    if (atomic_load(&session->base.lost))
        return;
    int64_t next_ping = atomic_load(&session->used_ms) + backend->ping_interval_ms;
    no_later_than(round, session->answer_due ? session->answer_due
                                             : (next_ping > now ? next_ping : now + QUIET_MS));
}

/*
 * A transaction of the caller's may take its time on the session of a lock, with or without a
 * statement under way, so that no ping gets through. Then another connection asks after its
 * backend: the loss must be told in the same time as for an idle session. Behind a pooler that
 * connection might be kept waiting for reasons of its own.
 */
static void attend_busy(pg_backend *backend, pg_session *session, struct round *round)
{
    int64_t now = hf__now_ms();
    int64_t used = atomic_load(&session->used_ms), probed = atomic_load(&session->probed_ms);
    int64_t silent = now - (used > probed ? used : probed);
    hf_error why;

    no_later_than(round, now + QUIET_MS);
    if (backend->pooled || atomic_load(&session->base.holds) == 0 ||
        silent < backend->ping_interval_ms)
        return;
    if (hf__pg_probe(backend, session)) {
        atomic_store(&session->probed_ms, now);
    } else if (silent >= backend->ping_interval_ms + backend->ping_deadline_ms) {
        (void)!hf__fail(&why, HF_LOST,
                        "the session with %s is busy, and the server does not answer for it",
                        backend->base.name);
        hf__hint(&why, "what was locked through it may be held by another by now; stop, then "
                       "acquire again");
        (void)hf__session_lose(&session->base, "no_answer", &why);
    }
}

static void prepare_session(pg_backend *backend, struct round *round, size_t i)
{
    pg_session *session = round->sessions[i];
    round->fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    int64_t quiet_until = atomic_load(&session->quiet_until);
    if (quiet_until > hf__now_ms()) {
        no_later_than(round, quiet_until);
        return;
    }
    if (!hf__baton_try(&session->baton)) {
        attend_busy(backend, session, round);
        return;
    }
    attend(backend, session, round);
    if (!atomic_load(&session->base.lost))
        round->fds[i].fd = PQsocket(session->conn);
    hf__baton_give(&session->baton);
}

static void hear(pg_session *session)
{
    if (!hf__baton_try(&session->baton)) {
        atomic_store(&session->quiet_until, hf__now_ms() + QUIET_MS);
        return;
    }
    hf__pg_session_readable(session);
    hf__baton_give(&session->baton);
}

void hf__pg_watch(hf__backend *base, int ms)
{
    pg_backend *backend = pg_backend_of(base);
    struct round round = {.until = hf__deadline(ms)};
    uint64_t ignored;

    no_later_than(&round, hf__pg_next_lease_loss(backend));
    collect_sessions(backend, &round);
    for (size_t i = 1; i < round.count; i++)
        prepare_session(backend, &round, i);
    if (poll(round.fds, round.count, hf__left_ms(round.until)) > 0) {
        if (round.fds[0].revents)
            (void)!read(backend->wake_fd, &ignored, sizeof ignored);
        for (size_t i = 1; i < round.count; i++)
            if (round.fds[i].revents)
                hear(round.sessions[i]);
    }
    bool listening_lost = false;
    for (size_t i = 1; i < round.count; i++) {
        pthread_mutex_lock(&backend->mutex);
        listening_lost |=
            backend->listening == round.sessions[i] && atomic_load(&round.sessions[i]->base.lost);
        pthread_mutex_unlock(&backend->mutex);
        hf__pg_unpin(round.sessions[i]);
    }
    free(round.fds);
    free(round.sessions);
    if (listening_lost)
        hf__pg_listeners_wake_all(backend);
}
