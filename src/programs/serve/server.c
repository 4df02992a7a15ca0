/*
 * The server around libmicrohttpd: connections, opening and closing, and one edition after the
 * other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "programs/serve/http.h"

enum {
    THREADS = 2,
    CONNECTIONS = 4096, /* libmicrohttpd divides them among the threads */
    FILES_SPARED = 48,  /* for the store, which may have to be connected again, and for threads */
    IDLE_S = 60,
    MEMORY = 32768, /* of a connection */
    BACKLOG = 1024,
    KEEP_MAKING_MS = 60 * 1000,
};

/* These are made ahead for each snapshot, as long as somebody keeps asking for them. */
static const struct {
    const char *path;
    bool openmetrics, gzip;
} ahead[HF__AHEAD] = {
    {"/", false, false},
    {"/", false, true},
    {"/api/v1/locks", false, false},
    {"/api/v1/locks", false, true},
    {"/metrics", false, false},
    {"/metrics", false, true},
    {"/metrics", true, false},
    {"/metrics", true, true},
};

hf__edition *hf__server_edition(hf__server *server)
{
    pthread_mutex_lock(&server->guard);
    hf__edition *edition = hf__edition_hold(server->edition);
    pthread_mutex_unlock(&server->guard);
    return edition;
}

int64_t hf__server_refresh_ms(const hf__server *server)
{
    return server->options.refresh_ms > 0 ? server->options.refresh_ms : 2000;
}

const char *hf__server_url(const hf__server *server)
{
    return server->url;
}

/* ---- editions ---- */

static void note_demand(const hf__exchange *exchange)
{
    if (exchange->route == NULL || exchange->route->render == NULL || exchange->query.count > 0)
        return;
    for (size_t i = 0; i < HF__AHEAD; i++)
        if (ahead[i].openmetrics == exchange->wants_openmetrics &&
            ahead[i].gzip == exchange->takes_gzip && strcmp(ahead[i].path, exchange->path) == 0)
            atomic_store(&exchange->server->asked_ms[i], hf__now_ms());
}

static void make_ahead(hf__server *server, hf__edition *edition, size_t which)
{
    hf__exchange exchange = {.server = server,
                             .wants_openmetrics = ahead[which].openmetrics,
                             .takes_gzip = ahead[which].gzip};
    hf__problem problem = {0};

    exchange.path = strdup(ahead[which].path);
    exchange.edition = edition;
    if (exchange.path != NULL && hf__route_find(&exchange, "GET"))
        hf__answer_release(hf__exchange_render(&exchange, &problem));
    free(exchange.path);
}

/* Called on the collector's thread. */
static void on_snapshot(void *arg, hf__snapshot *snapshot)
{
    hf__server *server = arg;
    hf__edition *edition = hf__edition_make(snapshot);

    if (edition == NULL)
        return; /* the last edition stays */
    for (size_t i = 0; i < HF__AHEAD; i++) {
        int64_t asked = atomic_load(&server->asked_ms[i]);
        bool is_for_all = !server->has_token || strcmp(ahead[i].path, "/") != 0;
        if (is_for_all && asked != 0 && hf__now_ms() - asked < KEEP_MAKING_MS)
            make_ahead(server, edition, i);
    }
    pthread_mutex_lock(&server->guard);
    hf__edition *last = server->edition;
    server->edition = edition;
    if (snapshot->problem[0] == '\0')
        server->good_ms = hf__now_ms();
    pthread_mutex_unlock(&server->guard);
    hf__edition_release(last);
}

/* ---- jobs that need the store ---- */

struct errand {
    hf__exchange *exchange;
    hf__job_fn *job;
};

static hf_status run_errand(hf_store *store, void *arg, hf_error *err)
{
    const struct errand *errand = arg;

    (void)err;
    errand->job(store, errand->exchange);
    return HF_OK;
}

/* Called when the job has run: from here on the exchange belongs to its connection again. */
static void end_errand(void *arg, hf_status status, const hf_error *err)
{
    struct errand *errand = arg;
    hf__exchange *exchange = errand->exchange;

    free(errand);
    if (status != HF_OK)
        hf__refuse(&exchange->problem, 503, "%.380s",
                   err != NULL ? err->message : hf_status_text(status));
    MHD_resume_connection(exchange->connection);
}

static hf_status ask(hf__server *server, struct errand *errand, hf_error *err)
{
    pthread_mutex_lock(&server->asking);
    hf_status status = server->stopping
                           ? hf__fail(err, HF_INTERRUPTED, "the server ends")
                           : hf__view_ask(server->view, run_errand, end_errand, errand, err);
    pthread_mutex_unlock(&server->asking);
    return status;
}

bool hf__server_ask(hf__exchange *exchange, hf__job_fn *job, hf__problem *problem)
{
    const char *away = hf__edition_snapshot(exchange->edition)->problem;
    hf_error err;

    if (away[0] != '\0') /* nobody should wait while it is being connected */
        return hf__refuse(problem, 503, "the store cannot be read: %.340s", away);
    struct errand *errand = calloc(1, sizeof *errand);
    if (errand == NULL)
        return hf__refuse(problem, 500, "out of memory");
    *errand = (struct errand){.exchange = exchange, .job = job};
    exchange->suspended = true;
    MHD_suspend_connection(exchange->connection);
    hf_status status = ask(exchange->server, errand, &err);
    if (status != HF_OK)
        end_errand(errand, status, &err);
    return true;
}

/* ---- libmicrohttpd ---- */

static void *on_target(void *arg, const char *target, struct MHD_Connection *connection)
{
    hf__server *server = arg;

    hf__visits_step(server->visits, connection, HF__VISIT_REQUESTS);
    return hf__exchange_make(server, target, connection);
}

/* The exchange decodes escapes, and refuses wrong ones. */
static size_t leave_escaped(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg;
    (void)connection;
    return strlen(text);
}

static void on_end(void *arg, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode code)
{
    const hf__server *server = arg;

    (void)code;
    hf__visits_step(server->visits, connection, HF__VISIT_IDLE);
    hf__exchange_free(*state);
    *state = NULL;
}

static enum MHD_Result respond(hf__exchange *exchange, hf__answer *answer)
{
    if (answer == NULL)
        return exchange->suspended ? MHD_YES : MHD_NO;
    enum MHD_Result sent = hf__answer_send(exchange->connection, answer);
    hf__answer_release(answer);
    hf__edition_release(exchange->edition); /* a slow reader keeps one answer, not all of them */
    exchange->edition = NULL;
    return sent;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **state)
{
    const hf__server *server = arg;
    hf__exchange *exchange = *state;

    (void)url;
    if (exchange == NULL)
        return MHD_NO; /* out of memory */
    if (!exchange->begun) {
        bool goes_on = hf__exchange_begin(exchange, method, version);
        note_demand(exchange);
        return goes_on ? MHD_YES : respond(exchange, hf__exchange_refuse(exchange));
    }
    if (*size > 0) {
        bool fits = hf__exchange_take(exchange, data, *size);
        *size = 0;
        return fits ? MHD_YES : MHD_NO;
    }
    exchange->resumed = exchange->suspended;
    exchange->suspended = false;
    hf__visits_step(server->visits, connection, HF__VISIT_ANSWERED);
    return respond(exchange, hf__exchange_answer(exchange, method));
}

/* How many viewers leave the collector the descriptors that it needs. */
static unsigned connection_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= CONNECTIONS + FILES_SPARED)
        return CONNECTIONS;
    return files.rlim_cur >= 2 * FILES_SPARED ? (unsigned)files.rlim_cur - FILES_SPARED
                                              : (unsigned)files.rlim_cur / 2;
}

/*
 * When libmicrohttpd is told to be strict, it refuses twice in one answer. check_framing does it
 * instead.
 */
static struct MHD_Daemon *start_daemon(hf__server *server)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;

    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, server->socket,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_CONNECTION_LIMIT,
        connection_limit(), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 0,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped,
        NULL, MHD_OPTION_NOTIFY_COMPLETED, on_end, server, MHD_OPTION_NOTIFY_CONNECTION,
        hf__visits_notify, server->visits, MHD_OPTION_END);
}

/* ---- opening and closing ---- */

static hf_status prepare(hf__server *server, const hf__server_options *options, hf_error *err)
{
    hf__address address;
    hf_status status = hf__address_bind(options->listen, options->tokens->count > 0, &address, err);

    if (status != HF_OK)
        return status;
    server->options = *options;
    server->socket = address.socket;
    server->loopback = address.loopback;
    server->listen_host = strdup(address.host);
    server->base = strdup(options->base != NULL ? options->base : "");
    if (server->listen_host == NULL || server->base == NULL ||
        asprintf(&server->url, "%s%s%s", address.url, server->base + (server->base[0] == '/'),
                 server->base[0] != '\0' ? "/" : "") < 0)
        return hf__no_memory(err);
    server->has_token = options->tokens->count > 0;
    server->options.tokens = NULL;
    server->options.listen = server->options.base = NULL;
    return hf__auth_open(options->tokens, address.port, server->base, &server->auth, err);
}

static hf_status make_openapi(hf__server *server, hf_error *err)
{
    hf__buf text = {0};

    hf__openapi_write(server->base, &text);
    const char *bytes = text.data;
    size_t size = text.length;
    server->openapi = hf__answer_make(200, "application/json", "private, no-cache", &text);
    if (server->openapi == NULL)
        return hf__no_memory(err);
    hf__answer_tag(server->openapi, bytes, size);
    return HF_OK;
}

static hf_status start(hf__server *server, hf_error *err)
{
    hf__snapshot *first = hf__view_latest(server->view);

    server->edition = hf__edition_make(first);
    server->good_ms = hf__now_ms();
    hf__snapshot_release(first);
    if (server->edition == NULL)
        return hf__no_memory(err);
    hf__view_listen(server->view, on_snapshot, server);
    if (listen(server->socket, BACKLOG) != 0)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot listen on %s", server->url);
    hf_status status = hf__visits_open(&server->visits, err);
    if (status != HF_OK)
        return status;
    server->daemon = start_daemon(server);
    return server->daemon != NULL ? HF_OK
                                  : hf__fail(err, HF_SYSTEM, "cannot start the HTTP server");
}

hf_status hf__server_open(const hf__server_options *options, const hf__view_options *view,
                          hf__server **out, hf_error *err)
{
    hf__server *server = calloc(1, sizeof *server);

    if (server == NULL)
        return hf__no_memory(err);
    server->socket = -1;
    pthread_mutex_init(&server->guard, NULL);
    pthread_mutex_init(&server->asking, NULL);
    hf_status status = prepare(server, options, err);
    if (status == HF_OK)
        status = make_openapi(server, err);
    if (status == HF_OK)
        status = hf__view_open(view, &server->view, err);
    if (status == HF_OK)
        status = start(server, err);
    if (status == HF_OK)
        *out = server;
    else
        hf__server_close(server);
    return status;
}

/*
 * libmicrohttpd must not be stopped while a connection is suspended: the view ends all jobs first.
 */
static void stop(hf__server *server)
{
    pthread_mutex_lock(&server->asking);
    server->stopping = true;
    pthread_mutex_unlock(&server->asking);
    if (server->view != NULL)
        hf__view_listen(server->view, NULL, NULL);
    hf__view_close(server->view);
    if (server->daemon != NULL)
        MHD_stop_daemon(server->daemon); /* closes the socket */
    else if (server->socket >= 0)
        close(server->socket);
}

void hf__server_close(hf__server *server)
{
    if (server == NULL)
        return;
    stop(server);
    hf__visits_close(server->visits);
    hf__edition_release(server->edition);
    hf__answer_release(server->openapi);
    hf__auth_close(server->auth);
    free(server->listen_host);
    free(server->base);
    free(server->url);
    pthread_mutex_destroy(&server->guard);
    pthread_mutex_destroy(&server->asking);
    free(server);
}
