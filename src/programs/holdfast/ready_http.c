/*
 * A server for probes, and no more: one request for each connection, of which only the first line
 * counts. Whoever can reach the port may be slow, send garbage or stay: what is read, how long it
 * takes and how many are served at once is bounded, and who comes last is served first.
 */
#include "programs/holdfast/ready_http.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/thread.h"
#include "cli/report.h"

enum {
    CLIENTS = 16,
    REQUEST_MAX = 2048, /* a probe's headers are some hundred bytes */
    DRAIN_MAX = 65536,  /* what may come behind a request that was refused */
    PATIENCE_MS = 2000, /* from connecting to the end */
    BACKLOG = 64,
};

struct client {
    int fd; /* -1: free */
    int64_t deadline;
    size_t size;
    bool answered; /* what still comes is thrown away, so that the answer is not */
    char request[REQUEST_MAX];
};

struct ready_http {
    int listener;
    int end; /* readable when the thread has to end */
    pthread_t thread;
    pthread_mutex_t mutex;
    const hf_lock *lock; /* mutex */
    struct client clients[CLIENTS];
};

/* ---- requests -------------------------------------------------------------------------------- */

static bool is_held(struct ready_http *http)
{
    pthread_mutex_lock(&http->mutex);
    bool held = http->lock != NULL && hf_lock_get_state(http->lock) == HF_STATE_HELD;
    pthread_mutex_unlock(&http->mutex);
    return held;
}

static void hang_up(struct client *client)
{
    close(client->fd);
    client->fd = -1;
}

static void send_answer(struct client *client, const char *status, const char *more,
                        const char *text, bool body)
{
    char answer[320];
    int size = snprintf(answer, sizeof answer,
                        "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                        "Content-Length: %zu\r\nCache-Control: no-store\r\n%s"
                        "Connection: close\r\n\r\n%s",
                        status, strlen(text), more, body ? text : "");

    /* The first that is sent on a connection, and short: it fits into the socket's buffer. */
    (void)!send(client->fd, answer, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(client->fd, SHUT_WR);
    client->answered = true;
    client->size = 0;
}

static bool begins_with(const struct client *client, const char *method)
{
    size_t length = strlen(method);

    return client->size >= length && memcmp(client->request, method, length) == 0;
}

/* "GET /ready HTTP/1.1": one path between two blanks, and a version that we speak. */
static bool is_request(const struct client *client)
{
    static const char version[] = "HTTP/1.";
    const char *line = client->request;
    const char *end = memchr(line, '\n', client->size);
    const char *path = end != NULL ? memchr(line, ' ', (size_t)(end - line)) : NULL;
    const char *behind = path != NULL ? memchr(path + 1, ' ', (size_t)(end - path - 1)) : NULL;

    return behind != NULL && path > line && path[1] == '/' &&
           (size_t)(end - behind) > sizeof version &&
           memcmp(behind + 1, version, sizeof version - 1) == 0;
}

static void answer(struct ready_http *http, struct client *client)
{
    bool is_head = begins_with(client, "HEAD ");

    if (!is_request(client))
        send_answer(client, "400 Bad Request", "", "this is no request of HTTP/1\n", true);
    else if (!is_head && !begins_with(client, "GET "))
        send_answer(client, "405 Method Not Allowed", "Allow: GET, HEAD\r\n", "only GET and HEAD\n",
                    true);
    else if (is_held(http))
        send_answer(client, "200 OK", "", "the lock is held\n", !is_head);
    else
        send_answer(client, "503 Service Unavailable", "", "the lock is not held\n", !is_head);
}

static bool is_complete(const struct client *client)
{
    return memmem(client->request, client->size, "\r\n\r\n", 4) != NULL ||
           memmem(client->request, client->size, "\n\n", 2) != NULL;
}

static void on_bytes(struct ready_http *http, struct client *client)
{
    char rest[REQUEST_MAX];
    char *into = client->answered ? rest : client->request + client->size;
    size_t room = client->answered ? sizeof rest : REQUEST_MAX - client->size;
    ssize_t got = recv(client->fd, into, room, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        client->size += (size_t)got;
    if (got <= 0 || (client->answered && client->size > DRAIN_MAX))
        hang_up(client);
    else if (!client->answered && is_complete(client))
        answer(http, client);
    else if (!client->answered && client->size == REQUEST_MAX)
        send_answer(client, "431 Request Header Fields Too Large", "", "too much\n", true);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* A free place, or that of the one who is here longest. */
static struct client *make_place(struct ready_http *http)
{
    struct client *oldest = &http->clients[0];

    for (size_t i = 0; i < CLIENTS; i++) {
        struct client *client = &http->clients[i];
        if (client->fd < 0)
            return client;
        if (client->deadline < oldest->deadline)
            oldest = client;
    }
    hang_up(oldest);
    return oldest;
}

static void let_in(struct ready_http *http)
{
    int fd = accept4(http->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            (void)poll(NULL, 0, 100); /* it stays readable, and must not keep a core busy */
        return;
    }
    struct client *client = make_place(http);
    client->fd = fd;
    client->deadline = hf__deadline(PATIENCE_MS);
    client->size = 0;
    client->answered = false;
}

static int time_to_sleep(const struct ready_http *http)
{
    int64_t first = HF__FOREVER;

    for (size_t i = 0; i < CLIENTS; i++)
        if (http->clients[i].fd >= 0 && http->clients[i].deadline < first)
            first = http->clients[i].deadline;
    return hf__left_ms(first);
}

static void *serve(void *arg)
{
    struct ready_http *http = arg;
    struct pollfd events[CLIENTS + 2] = {{.fd = http->end, .events = POLLIN},
                                         {.fd = http->listener, .events = POLLIN}};

    for (;;) {
        for (size_t i = 0; i < CLIENTS; i++)
            events[i + 2] = (struct pollfd){.fd = http->clients[i].fd, .events = POLLIN};
        if (poll(events, CLIENTS + 2, time_to_sleep(http)) < 0)
            continue;
        if (events[0].revents != 0)
            return NULL;
        for (size_t i = 0; i < CLIENTS; i++) {
            struct client *client = &http->clients[i];
            if (client->fd >= 0 && events[i + 2].revents != 0)
                on_bytes(http, client);
            if (client->fd >= 0 && hf__left_ms(client->deadline) == 0)
                hang_up(client);
        }
        if (events[1].revents != 0)
            let_in(http);
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

static hf_status no_address(const char *text, hf_error *err)
{
    char shown[SHOWN_MAX];
    hf_status status =
        hf__fail(err, HF_INVALID, "'%s' is no port to listen on", show_argument(shown, text));

    hf__hint(err, "give PORT or ADDR:PORT, such as 8080, 0.0.0.0:8080 or [::1]:8080");
    return status;
}

static hf_status find_address(const char *text, struct addrinfo **found, hf_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
    const char *colon = strrchr(text, ':');
    size_t size = colon != NULL ? (size_t)(colon - text) : 0;
    bool bracketed = size > 2 && text[0] == '[' && text[size - 1] == ']';
    char host[64] = "127.0.0.1";
    int64_t port = 0;

    if (colon != NULL && !bracketed && memchr(text, ':', size) != NULL)
        return no_address(text, err); /* one of IPv6 has brackets */
    if (colon != NULL && (size == 0 || size >= sizeof host))
        return no_address(text, err);
    if (colon != NULL)
        (void)snprintf(host, sizeof host, "%.*s", (int)(bracketed ? size - 2 : size),
                       bracketed ? text + 1 : text);
    const char *digits = colon != NULL ? colon + 1 : text;
    if (hf__parse_int64(digits, "the port", 1, 65535, &port, NULL) != HF_OK ||
        getaddrinfo(host, digits, &hints, found) != 0)
        return no_address(text, err);
    return HF_OK;
}

/* Two that share a port would answer for each other, so it does not ask for that. */
static hf_status listen_on(struct ready_http *http, const struct addrinfo *where, const char *text,
                           hf_error *err)
{
    char shown[SHOWN_MAX];
    int on = 1;

    http->listener = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (http->listener >= 0)
        (void)setsockopt(http->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (http->listener >= 0 && bind(http->listener, where->ai_addr, where->ai_addrlen) == 0 &&
        listen(http->listener, BACKLOG) == 0)
        return HF_OK;
    int reason = errno;
    hf_status status = hf__fail_errno(err, HF_CONFIG, reason, "--ready-http cannot listen on %s",
                                      show_argument(shown, text));
    hf__hint(err, "%s",
             reason == EADDRINUSE ? "another program listens there: give another port"
                                  : "give an address of this host, and a port that is allowed");
    return status;
}

static hf_status start(struct ready_http *http, hf_error *err)
{
    http->end = eventfd(0, EFD_CLOEXEC);
    if (http->end < 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot make a descriptor");
    int failed = hf__thread_start(&http->thread, 0, serve, http);
    if (failed != 0) {
        close(http->end);
        http->end = -1;
        return hf__fail_errno(err, HF_SYSTEM, failed, "cannot start a thread for --ready-http");
    }
    return HF_OK;
}

hf_status ready_http_open(const char *text, struct ready_http **out, hf_error *err)
{
    struct addrinfo *found = NULL;
    struct ready_http *http = calloc(1, sizeof *http);

    if (http == NULL)
        return hf__no_memory(err);
    pthread_mutex_init(&http->mutex, NULL);
    http->listener = http->end = -1;
    for (size_t i = 0; i < CLIENTS; i++)
        http->clients[i].fd = -1;
    hf_status status = find_address(text, &found, err);
    if (status == HF_OK)
        status = listen_on(http, found, text, err);
    if (status == HF_OK)
        status = start(http, err);
    if (found != NULL)
        freeaddrinfo(found);
    if (status == HF_OK)
        *out = http;
    else
        ready_http_close(http);
    return status;
}

void ready_http_answer_for(struct ready_http *http, const hf_lock *lock)
{
    if (http == NULL)
        return;
    pthread_mutex_lock(&http->mutex);
    http->lock = lock;
    pthread_mutex_unlock(&http->mutex);
}

void ready_http_close(struct ready_http *http)
{
    if (http == NULL)
        return;
    if (http->end >= 0) { /* the thread runs */
        (void)eventfd_write(http->end, 1);
        (void)pthread_join(http->thread, NULL);
        close(http->end);
    }
    for (size_t i = 0; i < CLIENTS; i++)
        if (http->clients[i].fd >= 0)
            hang_up(&http->clients[i]);
    if (http->listener >= 0)
        close(http->listener);
    pthread_mutex_destroy(&http->mutex);
    free(http);
}
