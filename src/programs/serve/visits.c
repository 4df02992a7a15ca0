/*
 * libmicrohttpd cuts who is silent for too long; this cuts who sends or reads a byte now and then, and who
 * has left in the middle of a request, which it may miss behind the request before. A connection that is
 * shut down here libmicrohttpd then closes by itself.
 */
#include "programs/serve/visits.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"

enum {
    FIRST_MS =
        60 * 1000, /* to the end of a request's first line, from the end of the last request */
    REST_MS = 15 * 1000, /* from there to its end */
    ANSWER_MS = 120 * 1000,
    LOOK_MS = 1000,
};

struct hf__visit {
    int fd;
    hf__visit_step step;
    int64_t since_ms; /* of the step; HF__FOREVER: it was cut */
    hf__visit *next, **back;
};

struct hf__visits {
    pthread_mutex_t guard;
    pthread_cond_t over_now;
    pthread_t thread;
    bool over;
    hf__visit *first;
};

static bool has_left(const hf__visit *visit)
{
    struct pollfd ending = {.fd = visit->fd, .events = POLLRDHUP};

    return poll(&ending, 1, 0) == 1 && (ending.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static bool is_late(const hf__visit *visit, int64_t now)
{
    static const int64_t times[] = {FIRST_MS, REST_MS, ANSWER_MS};

    if (visit->since_ms == HF__FOREVER)
        return false;
    return now - visit->since_ms >= times[visit->step] ||
           (visit->step != HF__VISIT_ANSWERED && now - visit->since_ms >= LOOK_MS &&
            has_left(visit));
}

static void *watch(void *arg)
{
    hf__visits *visits = arg;

    pthread_mutex_lock(&visits->guard);
    while (!visits->over) {
        int64_t now = hf__now_ms();
        for (hf__visit *visit = visits->first; visit != NULL; visit = visit->next)
            if (is_late(visit, now)) {
                (void)shutdown(visit->fd, SHUT_RDWR);
                visit->since_ms = HF__FOREVER;
            }
        struct timespec next = hf__timespec(now + LOOK_MS);
        (void)pthread_cond_clockwait(&visits->over_now, &visits->guard, CLOCK_MONOTONIC, &next);
    }
    pthread_mutex_unlock(&visits->guard);
    return NULL;
}

hf_status hf__visits_open(hf__visits **out, hf_error *err)
{
    hf__visits *visits = calloc(1, sizeof *visits);

    if (visits == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    pthread_mutex_init(&visits->guard, NULL);
    pthread_cond_init(&visits->over_now, NULL);
    if (pthread_create(&visits->thread, NULL, watch, visits) == 0) {
        *out = visits;
        return HF_OK;
    }
    pthread_cond_destroy(&visits->over_now);
    pthread_mutex_destroy(&visits->guard);
    free(visits);
    return hf__fail(err, HF_NO_MEMORY, "cannot start a thread that watches connections");
}

void hf__visits_close(hf__visits *visits)
{
    if (visits == NULL)
        return;
    pthread_mutex_lock(&visits->guard);
    visits->over = true;
    pthread_cond_signal(&visits->over_now);
    pthread_mutex_unlock(&visits->guard);
    pthread_join(visits->thread, NULL);
    pthread_cond_destroy(&visits->over_now);
    pthread_mutex_destroy(&visits->guard);
    free(visits);
}

static void begin(hf__visits *visits, hf__visit *visit)
{
    visit->since_ms = hf__now_ms();
    pthread_mutex_lock(&visits->guard);
    visit->next = visits->first;
    visit->back = &visits->first;
    if (visit->next != NULL)
        visit->next->back = &visit->next;
    visits->first = visit;
    pthread_mutex_unlock(&visits->guard);
}

/* The socket is closed only after this. */
static void end(hf__visits *visits, hf__visit *visit)
{
    pthread_mutex_lock(&visits->guard);
    *visit->back = visit->next;
    if (visit->next != NULL)
        visit->next->back = visit->back;
    pthread_mutex_unlock(&visits->guard);
    free(visit);
}

void hf__visits_notify(void *arg, struct MHD_Connection *connection, void **state,
                       enum MHD_ConnectionNotificationCode code)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (code == MHD_CONNECTION_NOTIFY_STARTED && info != NULL) {
        hf__visit *visit = calloc(1, sizeof *visit);
        if (visit != NULL) { /* without it the connection has no deadline */
            visit->fd = info->connect_fd;
            begin(arg, visit);
        }
        *state = visit;
    } else if (code == MHD_CONNECTION_NOTIFY_CLOSED && *state != NULL) {
        end(arg, *state);
        *state = NULL;
    }
}

void hf__visits_step(hf__visits *visits, struct MHD_Connection *connection, hf__visit_step step)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    hf__visit *visit = info != NULL ? info->socket_context : NULL;

    if (visit == NULL)
        return;
    pthread_mutex_lock(&visits->guard);
    visit->step = step;
    if (visit->since_ms != HF__FOREVER)
        visit->since_ms = hf__now_ms();
    pthread_mutex_unlock(&visits->guard);
}
