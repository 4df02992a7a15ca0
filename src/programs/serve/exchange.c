/* One request: what is wrong with it, or else its answer. */
#include "programs/serve/http.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "programs/serve/http.h"

#define FROM_SNAPSHOT "private, no-cache"

const char *hf__header(const hf__exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

/* ---- making and freeing ---- */

hf__exchange *hf__exchange_make(hf__server *server, const char *target,
                                struct MHD_Connection *connection)
{
    hf__exchange *exchange = calloc(1, sizeof *exchange);

    if (exchange == NULL)
        return NULL;
    exchange->server = server;
    exchange->base = server->base;
    exchange->connection = connection;
    exchange->target = strdup(target);
    if (exchange->target == NULL) {
        free(exchange);
        return NULL;
    }
    return exchange;
}

void hf__exchange_free(hf__exchange *exchange)
{
    if (exchange == NULL)
        return;
    free(exchange->target);
    free(exchange->path);
    hf__query_free(&exchange->query);
    hf__query_free(&exchange->form);
    hf__buf_free(&exchange->body);
    hf__edition_release(exchange->edition);
    hf__answer_release(exchange->answer);
    free(exchange);
}

/* ---- what is asked ---- */

/* A URL in the form for proxies begins with the host. */
static const char *path_of(const char *target)
{
    if (strncasecmp(target, "http://", 7) != 0)
        return target;
    const char *slash = strchr(target + 7, '/');
    return slash != NULL ? slash : "/";
}

/* Takes the first bytes of the path away, which are two at least. */
static void drop(hf__exchange *exchange, size_t size)
{
    memmove(exchange->path, exchange->path + size, strlen(exchange->path + size) + 1);
    if (exchange->path[0] == '\0')
        memcpy(exchange->path, "/", 2);
}

/* A proxy may have taken the base away, or not. */
static void drop_base(hf__exchange *exchange)
{
    size_t size = strlen(exchange->server->base);

    if (size > 0 && strncmp(exchange->path, exchange->server->base, size) == 0 &&
        (exchange->path[size] == '/' || exchange->path[size] == '\0'))
        drop(exchange, size);
}

/* /stores/NAME in front says which store is meant. What follows is as if there were no other. */
static void choose_store(hf__exchange *exchange)
{
    static const char prefix[] = "/stores/";
    hf__server *server = exchange->server;

    exchange->served = server->store_count == 1 ? server->stores : NULL;
    if (server->stores[0].name[0] == '\0' ||
        strncmp(exchange->path, prefix, sizeof prefix - 1) != 0)
        return;
    const char *name = exchange->path + sizeof prefix - 1;
    size_t size = strcspn(name, "/");
    exchange->is_store_unknown = true;
    for (size_t i = 0; i < server->store_count; i++)
        if (strlen(server->stores[i].name) == size &&
            memcmp(server->stores[i].name, name, size) == 0) {
            exchange->is_store_unknown = false;
            exchange->served = &server->stores[i];
            exchange->base = server->stores[i].base;
        }
    drop(exchange, sizeof prefix - 1 + size);
}

static bool parse_target(hf__exchange *exchange)
{
    const char *path = path_of(exchange->target);
    size_t size = strcspn(path, "?#");
    const char *query = path[size] == '?' ? path + size + 1 : "";

    exchange->path = strndup(path, size);
    if (exchange->path == NULL)
        return hf__refuse(&exchange->problem, 500, "out of memory");
    if (strlen(exchange->target) > HF__TARGET_MAX)
        return hf__refuse(&exchange->problem, 414, "the URL is longer than %d bytes",
                          HF__TARGET_MAX);
    if (!hf__percent_decode(exchange->path, false) ||
        (exchange->path[0] != '/' && strcmp(exchange->path, "*") != 0))
        return hf__refuse(&exchange->problem, 400,
                          "the path is not percent-encoded UTF-8 without control characters");
    drop_base(exchange);
    choose_store(exchange);
    return hf__query_parse(query, strcspn(query, "#"), &exchange->query, &exchange->problem);
}

static bool check_headers(hf__exchange *exchange)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const hf__server *server = exchange->server;
    const char *host = hf__header(exchange, "Host");

    if (info != NULL && info->header_size > HF__HEADERS_MAX + HF__TARGET_MAX)
        return hf__refuse(&exchange->problem, 431, "the headers are longer than %d bytes",
                          HF__HEADERS_MAX);
    if (server->loopback && !server->has_token && host != NULL && !hf__is_host_ours(server, host))
        return hf__refuse(&exchange->problem, 421,
                          "this server has another name than the Host header says");
    return true;
}

static void read_wishes(hf__exchange *exchange)
{
    const char *accept = hf__header(exchange, "Accept");

    exchange->wants_json =
        (exchange->path != NULL && strncmp(exchange->path, "/api/", 5) == 0) ||
        (accept != NULL && strstr(accept, "json") != NULL && strstr(accept, "html") == NULL);
    exchange->takes_gzip = hf__takes_gzip(hf__header(exchange, "Accept-Encoding"));
    exchange->wants_openmetrics = accept != NULL && exchange->path != NULL &&
                                  strcmp(exchange->path, "/metrics") == 0 &&
                                  strcasestr(accept, "application/openmetrics-text") != NULL;
}

static bool check_access(hf__exchange *exchange)
{
    exchange->access = hf__auth_check(exchange->server->auth, exchange->connection,
                                      &exchange->viewer, exchange->identity);
    if (exchange->access == HF__ACCESS_OPEN || exchange->access == HF__ACCESS_GRANTED ||
        (exchange->route != NULL && exchange->route->is_open))
        return true;
    return hf__refuse(&exchange->problem, 401,
                      exchange->access == HF__ACCESS_WRONG
                          ? "the token is wrong"
                          : "a token is needed: Authorization: Bearer, or /login");
}

struct framing {
    size_t hosts, lengths;
    bool odd;
};

static bool is_header_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "!#$%&'*+-.^_`|~";

    return name[0] != '\0' && name[strspn(name, letters)] == '\0';
}

static enum MHD_Result look_at_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
    struct framing *framing = arg;

    (void)kind;
    (void)value;
    framing->odd |= !is_header_name(name);
    framing->hosts += strcasecmp(name, "Host") == 0;
    framing->lengths += strcasecmp(name, "Content-Length") == 0;
    return MHD_YES;
}

/*
 * If a proxy in front could see the end of the request elsewhere, the next request could be
 * somebody else's.
 */
static bool check_framing(hf__exchange *exchange, const char *version)
{
    struct framing framing = {0};

    (void)MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, look_at_header,
                                    &framing);
    if (framing.odd)
        return hf__refuse(&exchange->problem, 400, "the name of a header is not one");
    if (framing.hosts > 1 || framing.lengths > 1)
        return hf__refuse(&exchange->problem, 400, "Host or Content-Length is given twice");
    return framing.hosts == 1 || strcmp(version, "HTTP/1.0") == 0 ||
           hf__refuse(&exchange->problem, 400, "the Host header is missing");
}

/* Refuses a body before any of it is read. */
static bool check_body(hf__exchange *exchange)
{
    const char *length = hf__header(exchange, "Content-Length");
    int64_t size = 0;

    if (hf__header(exchange, "Transfer-Encoding") != NULL)
        return hf__refuse(&exchange->problem, 411, "a body needs its Content-Length");
    if (length != NULL &&
        hf__parse_int64(length, "Content-Length", 0, HF__BODY_MAX, &size, NULL) != HF_OK)
        return hf__refuse(&exchange->problem, 413, "the body is longer than %d bytes",
                          HF__BODY_MAX);
    return true;
}

bool hf__exchange_begin(hf__exchange *exchange, const char *method, const char *version)
{
    exchange->begun = true;
    bool fine = parse_target(exchange);
    read_wishes(exchange);
    exchange->misframed = !check_framing(exchange, version) || !check_body(exchange);
    if (exchange->misframed)
        return false;
    if (!fine || !check_headers(exchange))
        return true;
    bool found = hf__route_find(exchange, method);
    hf__problem of_route = exchange->problem;
    exchange->problem = (hf__problem){0};
    if (check_access(exchange) && !found)
        exchange->problem = of_route;
    return true;
}

bool hf__exchange_take(hf__exchange *exchange, const char *data, size_t size)
{
    if (exchange->body.length + size > HF__BODY_MAX)
        return false;
    hf__buf_add(&exchange->body, data, size);
    return true;
}

/* ---- what is answered ---- */

static bool is_compressed(const hf__exchange *exchange)
{
    bool has_secret = exchange->route->render == hf__page_render && exchange->identity[0] != '\0';

    return exchange->takes_gzip &&
           !has_secret; /* a secret is never compressed with text that others chose */
}

static void key_of(const hf__exchange *exchange, hf__buf *key)
{
    hf__route_key(exchange, key);
    if (is_compressed(exchange))
        hf__buf_puts(key, "|gzip");
    if (exchange->route->render == hf__page_render) /* its forms belong to one session */
        hf__buf_printf(key, "|%s", exchange->identity);
    if (exchange->route->render == hf__page_render || exchange->route->render == hf__api_stores)
        hf__buf_printf(key, "|%" PRIx64, exchange->up); /* they say how other stores stand, too */
}

static hf__answer *wrap(const hf__exchange *exchange, hf__buf *text)
{
    const char *vary = exchange->route->render == hf__metrics_render ? "Accept, Accept-Encoding"
                                                                     : "Accept-Encoding";
    const char *type = exchange->wants_openmetrics
                           ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                           : exchange->route->type;
    bool compressed = is_compressed(exchange) && hf__gzip(text);
    const char *bytes = text->data;
    size_t size = text->length;

    hf__answer *answer = hf__answer_make(200, type, FROM_SNAPSHOT, text);
    if (answer == NULL)
        return NULL;
    hf__answer_tag(answer, bytes, size);
    answer->vary = vary;
    if (hf__answer_add(answer, "Vary", vary) &&
        (!compressed || hf__answer_add(answer, "Content-Encoding", "gzip")))
        return answer;
    hf__answer_release(answer);
    return NULL;
}

/* The answer of the edition, or else a new one from the route's render or lookup. */
static hf__answer *find_or_make(hf__exchange *exchange, hf_store *store, hf__problem *problem)
{
    const hf__route *route = exchange->route;
    const hf__snapshot *snapshot = hf__edition_snapshot(exchange->edition);
    hf__buf key = {0}, text = {0};

    key_of(exchange, &key);
    hf__answer *answer =
        key.broken ? NULL : hf__edition_find(exchange->edition, key.data, key.length);
    if (answer == NULL && !key.broken && (store != NULL || route->render != NULL)) {
        int status = store != NULL ? route->lookup(store, exchange, snapshot, &text, problem)
                                   : route->render(exchange, snapshot, &text, problem);
        if (status == 200)
            answer = wrap(exchange, &text);
        if (answer != NULL)
            hf__edition_keep(exchange->edition, key.data, key.length, answer);
        hf__buf_free(&text);
    }
    hf__buf_free(&key);
    return answer;
}

hf__answer *hf__exchange_render(hf__exchange *exchange, hf__problem *problem)
{
    return find_or_make(exchange, NULL, problem);
}

static void look_up(hf_store *store, hf__exchange *exchange)
{
    exchange->answer = find_or_make(exchange, store, &exchange->problem);
}

static hf__answer *answer_options(const hf__exchange *exchange)
{
    hf__buf allowed = {0}, nothing = {0};
    hf__answer *answer = hf__answer_make(204, NULL, "no-store", &nothing);

    if (!hf__route_allows(exchange->path, &allowed))
        hf__buf_puts(&allowed, "GET, HEAD, POST, OPTIONS"); /* "*" asks for the whole server */
    if (answer != NULL && !allowed.broken)
        (void)hf__answer_add(answer, "Allow", allowed.data);
    hf__buf_free(&allowed);
    return answer;
}

/* Adds the headers that belong to the status of a problem. */
static void add_advice(const hf__exchange *exchange, const hf__problem *problem, hf__answer *answer)
{
    hf__buf allowed = {0};

    if (problem->status == 405 && hf__route_allows(exchange->path, &allowed))
        (void)hf__answer_add(answer, "Allow", allowed.data);
    if (problem->status == 401)
        (void)hf__answer_add(answer, "WWW-Authenticate", "Bearer realm=\"holdfast\"");
    if (problem->status == 503)
        (void)hf__answer_add(answer, "Retry-After", "2");
    if (exchange->misframed || problem->status == 501)
        (void)hf__answer_add(answer, "Connection", "close");
    hf__buf_free(&allowed);
}

static bool is_options(const hf__exchange *exchange, const char *method)
{
    hf__buf allowed = {0};
    bool is_one = strcmp(method, "OPTIONS") == 0 && exchange->path != NULL &&
                  (strcmp(exchange->path, "*") == 0 || hf__route_allows(exchange->path, &allowed));

    hf__buf_free(&allowed);
    return is_one && (exchange->problem.status == 405 || exchange->problem.status == 404);
}

static bool is_form(const hf__exchange *exchange)
{
    static const char type[] = "application/x-www-form-urlencoded";
    const char *given = hf__header(exchange, "Content-Type");

    return given != NULL && strncasecmp(given, type, sizeof type - 1) == 0;
}

/*
 * NULL without a problem: the answer comes later. Of a store that was never read there are no
 * lists: an empty one would be a lie.
 */
static hf__answer *act(hf__exchange *exchange, hf__problem *problem)
{
    const hf__route *route = exchange->route;
    const hf__snapshot *snapshot = hf__edition_snapshot(exchange->edition);

    if (route->scope == HF__SCOPE_STORE && snapshot->taken_ms == 0) {
        hf__refuse(problem, 503, "the store cannot be read: %.340s", snapshot->problem);
        return NULL;
    }
    if (strcmp(route->method, "POST") == 0) {
        if (!is_form(exchange)) {
            hf__refuse(problem, 415, "a form is application/x-www-form-urlencoded");
            return NULL;
        }
        if (!hf__route_check_form(exchange))
            return NULL;
    }
    if (route->act != NULL)
        return route->act(exchange, problem);
    hf__answer *answer = find_or_make(exchange, NULL, problem);
    if (answer == NULL && problem->status == 0 && route->lookup != NULL)
        (void)hf__server_ask(exchange, look_up, problem);
    return answer;
}

static bool wants_login_page(const hf__exchange *exchange)
{
    return exchange->problem.status == 401 && exchange->route != NULL && !exchange->wants_json &&
           exchange->route->render == hf__page_render;
}

hf__answer *hf__exchange_refuse(hf__exchange *exchange)
{
    hf__problem problem = exchange->problem;
    hf__answer *answer = wants_login_page(exchange) ? hf__act_login_form(exchange, &problem)
                                                    : hf__answer_problem(exchange, &problem);

    if (answer != NULL)
        add_advice(exchange, &problem, answer);
    return answer;
}

hf__answer *hf__exchange_answer(hf__exchange *exchange, const char *method)
{
    hf__answer *answer = NULL;

    if (exchange->answer != NULL) /* it was looked up meanwhile */
        return hf__answer_hold(exchange->answer);
    if (is_options(exchange, method))
        return answer_options(exchange);
    if (exchange->problem.status != 0)
        return hf__exchange_refuse(exchange);
    if (exchange->resumed) {
        hf__refuse(&exchange->problem, 500, "out of memory");
        return hf__exchange_refuse(exchange);
    }
    if (hf__server_begin_answer(exchange))
        answer = act(exchange, &exchange->problem);
    if (answer != NULL || exchange->suspended)
        return answer;
    if (exchange->problem.status == 0)
        hf__refuse(&exchange->problem, 500, "out of memory");
    return hf__exchange_refuse(exchange);
}
