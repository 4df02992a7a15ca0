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
    FILES_SPARED = 48,  /* for each store, which may have to be connected again, and for threads */
    IDLE_S = 60,
    MEMORY = 32768, /* of a connection */
    BACKLOG = 1024,
    KEEP_MAKING_MS = 60 * 1000,
    LATE_REFRESHES = 5, /* after so many, and this time, a store is taken for down */
    LATE_MS = 10 * 1000,
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

hf__served *hf__exchange_stores(const hf__exchange *exchange, size_t *count)
{
    *count = exchange->served != NULL ? 1 : exchange->server->store_count;
    return exchange->served != NULL ? exchange->served : exchange->server->stores;
}

/* Guard held. */
static int64_t age_of(const hf__served *served)
{
    return served->good_ms > 0 ? hf__now_ms() - served->good_ms : -1;
}

int64_t hf__served_age(hf__served *served)
{
    pthread_mutex_lock(&served->server->guard);
    int64_t age = age_of(served);
    pthread_mutex_unlock(&served->server->guard);
    return age;
}

/* Guard held. */
static bool stands_well(const hf__served *served)
{
    return hf__edition_snapshot(served->edition)->problem[0] == '\0' &&
           age_of(served) <= LATE_REFRESHES * hf__server_refresh_ms(served->server) + LATE_MS;
}

bool hf__is_up(const hf__exchange *exchange, const hf__served *served)
{
    return (exchange->up >> (served - exchange->server->stores) & 1) != 0;
}

/* Guard held. NULL: out of memory. */
static hf__edition *edition_of_all(hf__server *server)
{
    hf__snapshot *snapshots[HF__STORES_MAX];
    size_t one;

    if (server->of_all != NULL)
        return server->of_all;
    for (size_t i = 0; i < server->store_count; i++)
        snapshots[i] = *hf__edition_snapshots(server->stores[i].edition, &one);
    server->of_all = hf__edition_make(snapshots, server->store_count);
    return server->of_all;
}

bool hf__server_begin_answer(hf__exchange *exchange)
{
    hf__server *server = exchange->server;

    pthread_mutex_lock(&server->guard);
    for (size_t i = 0; i < server->store_count && exchange->route->scope != HF__SCOPE_STORE; i++)
        exchange->up |= (uint64_t)stands_well(&server->stores[i]) << i; /* lists do not say it */
    hf__edition *edition =
        exchange->served != NULL ? exchange->served->edition : edition_of_all(server);
    if (edition != NULL)
        exchange->edition = hf__edition_hold(edition);
    pthread_mutex_unlock(&server->guard);
    return edition != NULL;
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
    if (exchange->route == NULL || exchange->route->render == NULL || exchange->query.count > 0 ||
        exchange->served == NULL)
        return;
    for (size_t i = 0; i < HF__AHEAD; i++)
        if (ahead[i].openmetrics == exchange->wants_openmetrics &&
            ahead[i].gzip == exchange->takes_gzip && strcmp(ahead[i].path, exchange->path) == 0)
            atomic_store(&exchange->served->asked_ms[i], hf__now_ms());
}

/* Which stores stand well, with this one, whose edition is to come. */
static uint64_t standing(hf__served *served, hf__edition *edition)
{
    hf__server *server = served->server;
    uint64_t up = 0;

    pthread_mutex_lock(&server->guard);
    for (size_t i = 0; i < server->store_count; i++) {
        hf__served *other = &server->stores[i];
        bool well = other == served ? hf__edition_snapshot(edition)->problem[0] == '\0'
                                    : stands_well(other);
        up |= (uint64_t)well << i;
    }
    pthread_mutex_unlock(&server->guard);
    return up;
}

static void make_ahead(hf__served *served, hf__edition *edition, size_t which)
{
    hf__server *server = served->server;
    hf__exchange exchange = {.server = server,
                             .served = served,
                             .base = server->store_count > 1 ? served->base : server->base,
                             .up = standing(served, edition),
                             .wants_openmetrics = ahead[which].openmetrics,
                             .takes_gzip = ahead[which].gzip};
    hf__problem problem = {0};

    exchange.path = strdup(ahead[which].path);
    exchange.edition = edition;
    if (exchange.path != NULL && hf__route_find(&exchange, "GET"))
        hf__answer_release(hf__exchange_render(&exchange, &problem));
    free(exchange.path);
}

/* On the collector's thread, and once at the start for what came before it listened. */
static void on_snapshot(void *arg, hf__snapshot *snapshot)
{
    hf__served *served = arg;
    hf__server *server = served->server;
    hf__edition *edition = hf__edition_make(&snapshot, 1);

    if (edition == NULL)
        return; /* the last edition stays */
    for (size_t i = 0; i < HF__AHEAD; i++) {
        int64_t asked = atomic_load(&served->asked_ms[i]);
        bool is_for_all = !server->has_token || strcmp(ahead[i].path, "/") != 0;
        if (is_for_all && asked != 0 && hf__now_ms() - asked < KEEP_MAKING_MS)
            make_ahead(served, edition, i);
    }
    hf__edition *last = edition, *last_of_all = NULL;
    pthread_mutex_lock(&server->guard);
    if (snapshot->number > hf__edition_snapshot(served->edition)->number) {
        last = served->edition;
        served->edition = edition;
        last_of_all = server->of_all;
        server->of_all = NULL;
        if (snapshot->problem[0] == '\0')
            served->good_ms = hf__now_ms();
    }
    pthread_mutex_unlock(&server->guard);
    hf__edition_release(last);
    hf__edition_release(last_of_all);
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

static hf_status ask(hf__served *served, struct errand *errand, hf_error *err)
{
    hf__server *server = served->server;

    pthread_mutex_lock(&server->asking);
    hf_status status = server->stopping
                           ? hf__fail(err, HF_INTERRUPTED, "the server ends")
                           : hf__view_ask(served->view, run_errand, end_errand, errand, err);
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
    hf_status status = ask(exchange->served, errand, &err);
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
static unsigned connection_limit(const hf__server *server)
{
    rlim_t spared = FILES_SPARED * server->store_count;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= CONNECTIONS + spared)
        return CONNECTIONS;
    return (unsigned)(files.rlim_cur >= 2 * spared ? files.rlim_cur - spared : files.rlim_cur / 2);
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
        connection_limit(server), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
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

    hf__openapi_write(server->base, server->store_count > 1, &text);
    const char *bytes = text.data;
    size_t size = text.length;
    server->openapi = hf__answer_make(200, "application/json", "private, no-cache", &text);
    if (server->openapi == NULL)
        return hf__no_memory(err);
    hf__answer_tag(server->openapi, bytes, size);
    return HF_OK;
}

static hf_status open_store(hf__served *served, const hf__server_store *store, hf_error *err)
{
    const hf__server *server = served->server;
    bool is_named = store->name[0] != '\0';

    served->name = strdup(store->name);
    if (served->name == NULL || asprintf(&served->base, "%s%s%s", server->base,
                                         is_named ? "/stores/" : "", store->name) < 0)
        return hf__no_memory(err);
    hf_status status = hf__view_open(&store->view, &served->view, err);
    if (status != HF_OK)
        return status;
    hf__snapshot *first = hf__view_latest(served->view);
    served->edition = hf__edition_make(&first, 1);
    served->good_ms = first->taken_ms != 0 ? hf__now_ms() : 0;
    hf__snapshot_release(first);
    return served->edition != NULL ? HF_OK : hf__no_memory(err);
}

static hf_status open_stores(hf__server *server, const hf__server_store *stores, size_t count,
                             hf_error *err)
{
    hf_status status = HF_OK;

    server->stores = calloc(count, sizeof *server->stores);
    if (server->stores == NULL)
        return hf__no_memory(err);
    server->store_count = count;
    for (size_t i = 0; status == HF_OK && i < count; i++) {
        server->stores[i].server = server;
        status = open_store(&server->stores[i], &stores[i], err);
    }
    for (size_t i = 0; status == HF_OK && i < count; i++) { /* each may look at all of them */
        hf__served *served = &server->stores[i];
        hf__view_listen(served->view, on_snapshot, served);
        hf__snapshot *missed = hf__view_latest(served->view);
        on_snapshot(served, missed);
        hf__snapshot_release(missed);
    }
    return status;
}

static hf_status start(hf__server *server, hf_error *err)
{
    if (listen(server->socket, BACKLOG) != 0)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot listen on %s", server->url);
    hf_status status = hf__visits_open(&server->visits, err);
    if (status != HF_OK)
        return status;
    server->daemon = start_daemon(server);
    return server->daemon != NULL ? HF_OK
                                  : hf__fail(err, HF_SYSTEM, "cannot start the HTTP server");
}

hf_status hf__server_open(const hf__server_options *options, const hf__server_store *stores,
                          size_t count, hf__server **out, hf_error *err)
{
    hf__server *server = calloc(1, sizeof *server);

    if (server == NULL)
        return hf__no_memory(err);
    server->socket = -1;
    pthread_mutex_init(&server->guard, NULL);
    pthread_mutex_init(&server->asking, NULL);
    hf_status status = prepare(server, options, err);
    if (status == HF_OK)
        status = open_stores(server, stores, count, err);
    if (status == HF_OK)
        status = make_openapi(server, err);
    if (status == HF_OK)
        status = start(server, err);
    if (status == HF_OK)
        *out = server;
    else
        hf__server_close(server);
    return status;
}

/*
 * libmicrohttpd must not be stopped while a connection is suspended: the views end all jobs first.
 * They are paused before, or one could begin to wait for its store while another one ends.
 */
static void stop(hf__server *server)
{
    pthread_mutex_lock(&server->asking);
    server->stopping = true;
    pthread_mutex_unlock(&server->asking);
    for (size_t i = 0; i < server->store_count && server->stores[i].view != NULL; i++) {
        hf__view_listen(server->stores[i].view, NULL, NULL);
        hf__view_pause(server->stores[i].view, true);
    }
    for (size_t i = 0; i < server->store_count; i++)
        hf__view_close(server->stores[i].view);
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
    for (size_t i = 0; i < server->store_count; i++) {
        hf__edition_release(server->stores[i].edition);
        free(server->stores[i].name);
        free(server->stores[i].base);
    }
    hf__edition_release(server->of_all);
    free(server->stores);
    hf__answer_release(server->openapi);
    hf__auth_close(server->auth);
    free(server->listen_host);
    free(server->base);
    free(server->url);
    pthread_mutex_destroy(&server->guard);
    pthread_mutex_destroy(&server->asking);
    free(server);
}
