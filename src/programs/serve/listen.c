#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "programs/serve/http.h"

/* "HOST:PORT" or "[HOST]:PORT" */
static hf_status split(const char *text, hf__address *address, hf_error *err)
{
    char shown[80];
    const char *colon = strrchr(text, ':');
    const char *host = text, *end = colon;
    int64_t port = 0;

    if (colon != NULL && text[0] == '[' && colon > text && colon[-1] == ']') {
        host = text + 1;
        end = colon - 1;
    } else if (colon != NULL && memchr(text, ':', (size_t)(colon - text)) != NULL) {
        colon = NULL;
    }
    if (colon == NULL || end <= host || (size_t)(end - host) >= sizeof address->host ||
        hf__parse_int64(colon + 1, "the port", 0, 65535, &port, NULL) != HF_OK) {
        hf_status status = hf__fail(err, HF_INVALID, "'%s' is no address to listen on",
                                    hf__show(shown, sizeof shown, text, strlen(text)));
        hf__hint(err, "give HOST:PORT, such as 127.0.0.1:7433 or [::1]:7433");
        return status;
    }
    memcpy(address->host, host, (size_t)(end - host));
    address->host[end - host] = '\0';
    address->port = (unsigned)port;
    return HF_OK;
}

static bool is_loopback(const struct sockaddr *name)
{
    if (name->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)name;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)name;
    return name->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static hf_status demand_token(const char *text, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_CONFIG, "to listen on %s, which others can reach, takes a token", text);

    hf__hint(err, "give --token-file FILE, or listen on 127.0.0.1");
    return status;
}

/* Returns 0, or errno. */
static int bind_to(const struct addrinfo *found, hf__address *address)
{
    int on = 1;

    address->socket = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (address->socket < 0)
        return errno;
    (void)setsockopt(address->socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(address->socket, found->ai_addr, found->ai_addrlen) == 0)
        return 0;
    int reason = errno;
    close(address->socket);
    address->socket = -1;
    return reason;
}

/*
 * Binds to the first address that this host has: localhost is often ::1 first, even where there is
 * no IPv6. An address that another program uses is an error: viewers would reach that program
 * instead.
 */
static hf_status bind_first(const char *text, const struct addrinfo *found, hf__address *address,
                            hf_error *err)
{
    int reason = bind_to(found, address);

    while ((reason == EADDRNOTAVAIL || reason == EAFNOSUPPORT) && found->ai_next != NULL) {
        found = found->ai_next;
        reason = bind_to(found, address);
    }
    if (reason == 0)
        return HF_OK;
    hf_status status = hf__fail_errno(err, HF_CONFIG, reason, "cannot listen on %s", text);
    hf__hint(err, "%s",
             reason == EADDRINUSE ? "another program listens there; give another port, or 0"
                                  : "give an address of this host");
    return status;
}

static bool are_loopback(const struct addrinfo *found)
{
    for (; found != NULL; found = found->ai_next)
        if (!is_loopback(found->ai_addr))
            return false;
    return true;
}

/* Asks which port was picked for port 0, and writes the URL. */
static hf_status name_it(hf__address *address, hf_error *err)
{
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    char host[NI_MAXHOST], port[NI_MAXSERV];

    if (getsockname(address->socket, (struct sockaddr *)&name, &size) != 0 ||
        getnameinfo((struct sockaddr *)&name, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return hf__fail(err, HF_SYSTEM, "cannot tell the address that was bound");
    address->port = (unsigned)strtoul(port, NULL, 10);
    (void)snprintf(address->url, sizeof address->url,
                   strchr(host, ':') != NULL ? "http://[%.64s]:%u/" : "http://%.64s:%u/", host,
                   address->port);
    return HF_OK;
}

bool hf__is_base_path(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._~-/";
    size_t size = strlen(text);

    return size == 0 || (text[0] == '/' && text[size - 1] != '/' && strspn(text, letters) == size &&
                         strstr(text, "//") == NULL && strstr(text, "/.") == NULL && size <= 200);
}

hf_status hf__address_bind(const char *text, bool has_token, hf__address *address, hf_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char port[8];

    *address = (hf__address){.socket = -1};
    hf_status status = split(text, address, err);
    if (status != HF_OK)
        return status;
    (void)snprintf(port, sizeof port, "%u", address->port);
    int problem = getaddrinfo(address->host, port, &hints, &found);
    if (problem != 0)
        return hf__fail(err, HF_CONFIG, "cannot listen on %s: %s", address->host,
                        gai_strerror(problem));
    address->loopback = are_loopback(found);
    if (!address->loopback && !has_token)
        status = demand_token(text, err);
    if (status == HF_OK)
        status = bind_first(text, found, address, err);
    freeaddrinfo(found);
    if (status == HF_OK)
        status = name_it(address, err);
    if (status != HF_OK && address->socket >= 0)
        close(address->socket);
    return status;
}

/*
 * ---- connections and their deadlines ---- libmicrohttpd ends connections that are silent for too
 * long. This ends those that send or read a byte now and then, and those that were left in the
 * middle of a request, which libmicrohttpd may miss after an earlier request. It shuts a
 * connection down, and libmicrohttpd closes it.
 */

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
    int64_t since_ms; /* when the step began; HF__FOREVER: it was ended */
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
        return hf__no_memory(err);
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

/* libmicrohttpd closes the socket only after this. */
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
