/*
 * The routes that answer by themselves: signing in and out, the page and its files, metrics,
 * /terminate, /health and /ready.
 */
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"
#include "programs/serve/api.h"
#include "programs/serve/http.h"
#include "programs/serve/metrics.h"
#include "programs/serve/page/page.h"

#define HTML "text/html; charset=utf-8"

/* ---- signing in and out ---- */

/*
 * Before signing in there is no session to bind a CSRF token to: that this process made it must
 * do.
 */
static const char nobody[] = "login";

static hf__answer *login_page(const hf__exchange *exchange, int status, bool wrong)
{
    char csrf[HF__CSRF_SIZE];
    hf__buf text = {0};

    hf__auth_csrf(exchange->server->auth, nobody, csrf);
    hf__render_login(exchange->server->base, csrf, wrong, &text);
    return hf__answer_make(status, HTML, "no-store", &text);
}

hf__answer *hf__act_login_form(hf__exchange *exchange, hf__problem *problem)
{
    (void)problem;
    if (exchange->access == HF__ACCESS_OPEN || exchange->access == HF__ACCESS_GRANTED)
        return hf__answer_redirect(exchange->server, "/");
    return login_page(exchange, exchange->path[0] == '/' && exchange->path[1] == '\0' ? 401 : 200,
                      false);
}

/* If there is TLS, a proxy in front of us ends it. */
static bool is_over_tls(const hf__exchange *exchange)
{
    const char *scheme = hf__header(exchange, "X-Forwarded-Proto");

    return scheme != NULL && strcasecmp(scheme, "https") == 0;
}

static hf__answer *with_cookie(const hf__exchange *exchange, const char *location, hf__buf *cookie)
{
    hf__answer *answer = cookie->broken ? NULL : hf__answer_redirect(exchange->server, location);

    if (answer != NULL && !hf__answer_add(answer, "Set-Cookie", cookie->data)) {
        hf__answer_release(answer);
        answer = NULL;
    }
    hf__buf_free(cookie);
    return answer;
}

hf__answer *hf__act_login(hf__exchange *exchange, hf__problem *problem)
{
    hf__auth *auth = exchange->server->auth;
    hf__buf cookie = {0};
    size_t number = 0;

    if (!hf__is_same_origin(exchange->connection) ||
        !hf__auth_csrf_fits(auth, nobody, hf__asked(exchange, "csrf"))) {
        hf__refuse(problem, 403, "the form is not of this server, or older than it; load it again");
        return NULL;
    }
    switch (hf__auth_login(auth, hf__asked(exchange, "token"), &number)) {
    case HF__ACCESS_OPEN: return hf__answer_redirect(exchange->server, "/");
    case HF__ACCESS_GRANTED:
        hf__auth_cookie(auth, number, is_over_tls(exchange), &cookie);
        return with_cookie(exchange, "/", &cookie);
    default: return login_page(exchange, 401, true);
    }
}

hf__answer *hf__act_logout(hf__exchange *exchange, hf__problem *problem)
{
    hf__auth *auth = exchange->server->auth;
    hf__buf cookie = {0};

    if (!hf__is_same_origin(exchange->connection) ||
        !hf__auth_csrf_fits(auth, exchange->identity, hf__asked(exchange, "csrf"))) {
        hf__refuse(problem, 403, "the form is not of this session; load the page again");
        return NULL;
    }
    hf__auth_logout(auth, exchange->identity);
    hf__auth_no_cookie(auth, &cookie);
    return with_cookie(exchange, "/login", &cookie);
}

/* ---- the page, the metrics, and the files that the page loads ---- */

int hf__metrics_render(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                       hf__problem *problem)
{
    (void)problem;
    hf__render_metrics(snapshot, exchange->wants_openmetrics, out);
    return 200;
}

static const char mistyped[] = "mistyped";

static const char *notice_of(const char *word)
{
    if (strcmp(word, "terminated") == 0)
        return "The session was ended. The lock is free once the server has noticed.";
    if (strcmp(word, mistyped) == 0)
        return "What was typed is not the lock's label: nothing was done.";
    return "";
}

int hf__page_render(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                    hf__problem *problem)
{
    const hf__server *server = exchange->server;
    bool signed_in = exchange->access == HF__ACCESS_GRANTED;
    char csrf[HF__CSRF_SIZE] = "";

    (void)problem;
    if (signed_in)
        hf__auth_csrf(server->auth, exchange->identity, csrf);
    const hf__page_request request = {
        .base = server->base,
        .q = hf__asked(exchange, "q"),
        .state = hf__asked(exchange, "state"),
        .lock = hf__asked(exchange, "lock"),
        .event = hf__asked(exchange, "event"),
        .network = hf__asked(exchange, "network"),
        .at = hf__asked(exchange, "at"),
        .at_ms = hf__asked_number(exchange, "at"),
        .span = hf__asked(exchange, "span"),
        .sort = hf__asked(exchange, "sort"),
        .page = hf__asked(exchange, "page"),
        .events = hf__asked(exchange, "events"),
        .may_terminate = signed_in && exchange->viewer.is_admin && server->options.allow_terminate,
        .signed_in = signed_in,
        .viewer = exchange->viewer.name,
        .csrf = csrf,
        .notice = notice_of(hf__asked(exchange, "notice")),
        .notice_is_error = strcmp(hf__asked(exchange, "notice"), mistyped) == 0,
        .refresh_ms = hf__server_refresh_ms(server),
    };
    hf__render_page(snapshot, &request, out);
    return 200;
}

hf__answer *hf__act_asset(hf__exchange *exchange, hf__problem *problem)
{
    for (const hf__asset *asset = hf__assets; asset->path != NULL; asset++) {
        if (strcmp(asset->path, exchange->path) != 0)
            continue;
        hf__answer *answer =
            hf__answer_of(asset->type, "public, max-age=300", asset->bytes, asset->size);
        if (answer != NULL)
            hf__answer_tag(answer, asset->bytes, asset->size);
        return answer;
    }
    hf__refuse(problem, 404, "there is no such file");
    return NULL;
}

hf__answer *hf__act_openapi(hf__exchange *exchange, hf__problem *problem)
{
    (void)problem;
    return hf__answer_hold(exchange->server->openapi);
}

/*
 * ---- ending a holder ---- POST /terminate is the only request that changes anything. It needs
 * --allow-terminate, a token, the session's CSRF token, and the title of the lock, which somebody
 * must have typed.
 */

const hf__shape hf__terminated_shape[] = {
    HF__SHAPE("terminated", "boolean", "true"),
    HF__KEY_SHAPE,
    HF__SHAPE("party", "integer", "who held it"),
    {0},
};

static bool check_rights(const hf__exchange *exchange, hf__problem *problem)
{
    const hf__server *server = exchange->server;

    if (!server->options.allow_terminate)
        return hf__refuse(problem, 403, "this server does not end sessions: --allow-terminate");
    if (exchange->access != HF__ACCESS_GRANTED)
        return hf__refuse(problem, 403, "to end a session takes a token: --token-file");
    if (!exchange->viewer.is_admin)
        return hf__refuse(problem, 403, "%s may look, and not end sessions: the role is read",
                          exchange->viewer.name);
    if (!hf__is_same_origin(exchange->connection))
        return hf__refuse(problem, 403, "the request comes from another site");
    return hf__auth_csrf_fits(server->auth, exchange->identity, hf__asked(exchange, "csrf")) ||
           hf__refuse(problem, 403, "the form is not of this session; load the page again");
}

static hf_space asked_space(const hf__exchange *exchange)
{
    return strcmp(hf__asked(exchange, "space"), "p") == 0 ? HF_PAIR : HF_BIGINT;
}

static const hf__seen_lock *find_lock(const hf__snapshot *snapshot, hf_space space, int64_t key)
{
    for (size_t i = 0; i < snapshot->lock_count; i++)
        if (snapshot->locks[i].key == key && snapshot->locks[i].space == space)
            return &snapshot->locks[i];
    return NULL;
}

/* id 0: as a lease, under this term. */
static bool holds(const hf__snapshot *snapshot, const hf__seen_lock *lock, int64_t id, int64_t term)
{
    for (size_t i = lock->first; i < lock->first + lock->count; i++) {
        const hf_lock_view *view = snapshot->views[i];
        size_t party = snapshot->view_party[i];
        if (id == 0 && !view->waiting && view->lifetime == HF_LEASE && view->token == term)
            return true;
        if (!snapshot->views[i]->waiting && party < snapshot->party_count &&
            snapshot->parties[party].id == id)
            return true;
    }
    return false;
}

static bool check_target(const hf__exchange *exchange, hf__problem *problem)
{
    const hf__snapshot *snapshot = hf__edition_snapshot(exchange->edition);
    int64_t key = hf__asked_number(exchange, "key");
    const hf__seen_lock *lock = find_lock(snapshot, asked_space(exchange), key);
    char title[HF__TITLE_ROOM];

    if (lock == NULL)
        return hf__refuse(problem, 404, "nobody holds this lock, or wants it");
    if (strcmp(hf__asked(exchange, "label"), hf__lock_title(title, lock)) != 0)
        return hf__refuse(problem, 422, "what was typed is not the lock's label: nothing was done");
    return holds(snapshot, lock, hf__asked_number(exchange, "party"),
                 hf__asked_number(exchange, "token")) ||
           hf__refuse(problem, 409, "it does not hold the lock any more: nothing was done");
}

static hf__answer *report(const hf__exchange *exchange)
{
    hf__json json = {0};

    if (!exchange->wants_json)
        return hf__answer_redirect(exchange->server, "/?notice=terminated#locks");
    hf__json_begin_object(&json, NULL);
    hf__json_put_boolean(&json, "terminated", true);
    hf__put_key(&json, asked_space(exchange), hf__asked_number(exchange, "key"));
    hf__json_put_integer(&json, "party", hf__asked_number(exchange, "party"));
    hf__json_end_object(&json);
    hf__buf_puts(&json.text, "\n");
    return hf__answer_make(200, "application/json", "no-store", &json.text);
}

/* "alice by serve, from 127.0.0.1": who did it, for the lock's history. */
static void name_client(const hf__exchange *exchange, char *out, size_t size)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    char host[NI_MAXHOST] = "?";

    if (info != NULL && info->client_addr != NULL)
        (void)getnameinfo(info->client_addr,
                          info->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                                   : sizeof(struct sockaddr_in),
                          host, sizeof host, NULL, 0, NI_NUMERICHOST);
    (void)snprintf(out, size, "%s%sserve, from %.45s", exchange->viewer.name,
                   exchange->viewer.name[0] != '\0' ? " by " : "", host);
}

static void run(hf_store *store, hf__exchange *exchange)
{
    char by[128];
    hf__terminate what = {.key = hf__asked_number(exchange, "key"),
                          .space = asked_space(exchange),
                          .party = (int)hf__asked_number(exchange, "party"),
                          .token = hf__asked_number(exchange, "token"),
                          .by = by};
    hf_error err;

    name_client(exchange, by, sizeof by);
    hf_status status = hf__terminate_holder(store, &what, &err);
    if (status == HF_OK)
        exchange->answer = report(exchange);
    else
        hf__refuse(&exchange->problem,
                   status == HF_NOT_ACQUIRED  ? 409
                   : status == HF_CONFIG      ? 403
                   : status == HF_UNREACHABLE ? 503
                                              : 500,
                   "%.380s", err.message);
}

/* Back to the form, which says what was wrong: whoever mistypes will type again. */
static hf__answer *ask_again(const hf__exchange *exchange, hf__problem *problem)
{
    char ref[HF__REF_ROOM], location[160];

    *problem = (hf__problem){0};
    hf__lock_ref(ref, asked_space(exchange), hf__asked_number(exchange, "key"));
    (void)snprintf(location, sizeof location, "/?lock=%s&notice=%s#lock-%s", ref, mistyped, ref);
    return hf__answer_redirect(exchange->server, location);
}

hf__answer *hf__act_terminate(hf__exchange *exchange, hf__problem *problem)
{
    if (check_rights(exchange, problem) && check_target(exchange, problem))
        (void)hf__server_ask(exchange, run, problem);
    else if (problem->status == 422 && !exchange->wants_json)
        return ask_again(exchange, problem);
    return NULL;
}

/*
 * ---- /health and /ready ---- Programs that restart this one, or route to it, ask these. They
 * need no token and are never cached.
 */

enum { REFRESHES = 5, GRACE_MS = 10000 };

const hf__shape hf__health_shape[] = {
    HF__SHAPE("status", "string", "ok, degraded (it works, but see unread) or failing"),
    {"reasons", "array", "why it fails", false, "string", NULL},
    {"unread", "array", "networks that cannot be read: how far behind they are is not known", false,
     "string", NULL},
    HF__SHAPE("snapshot", "integer", "its number"),
    HF__SHAPE_OR_NULL("age_ms", "integer", "since the last refresh that worked"),
    {0},
};

static int64_t age_of(hf__server *server)
{
    pthread_mutex_lock(&server->guard);
    int64_t age = hf__now_ms() - server->good_ms;
    pthread_mutex_unlock(&server->guard);
    return age;
}

/*
 * What the store's server says about itself, its address and its roles is only for those who may
 * look.
 */
static size_t put_store(hf__json *json, const hf__exchange *exchange, int64_t age,
                        int64_t refresh_ms)
{
    const hf__snapshot *snapshot = hf__edition_snapshot(exchange->edition);
    bool may_look = exchange->access == HF__ACCESS_OPEN || exchange->access == HF__ACCESS_GRANTED;
    bool is_late = age > REFRESHES * refresh_ms + GRACE_MS;
    hf__buf text = {0};

    if (snapshot->problem[0] == '\0' && !is_late)
        return 0;
    if (snapshot->problem[0] == '\0')
        hf__buf_printf(&text, "no refresh for %" PRId64 " s", age / 1000);
    else
        hf__buf_printf(&text, "the store cannot be read%s%s", may_look ? ": " : "",
                       may_look ? snapshot->problem : "");
    hf__json_put_string(json, NULL, text.data != NULL ? text.data : "the store cannot be read");
    hf__buf_free(&text);
    return 1;
}

/*
 * To be ahead of what the source said last is no lag. Where nobody has asked a source that told its
 * tip before, or the network cannot be read, the lag is not known, and not to be relied on.
 */
static size_t put_lag(hf__json *json, const hf__snapshot *snapshot, hf__maybe most)
{
    size_t count = 0;

    for (size_t i = 0; most.known && i < snapshot->network_count; i++) {
        const hf__seen_network *network = &snapshot->networks[i];
        bool is_unread = network->problem[0] != '\0';
        bool is_lost = is_unread || (!network->lag.known && network->status.source_tip.known);
        if (!is_lost && (!network->lag.known || network->lag.value <= most.value))
            continue;
        hf__buf text = {0};
        if (is_lost)
            hf__buf_printf(&text, "the lag of %s is not known: %s", network->name,
                           is_unread ? "it cannot be read" : "nobody ingests it");
        else
            hf__buf_printf(&text, "%s is %" PRId64 " ledgers behind, more than %" PRId64,
                           network->name, network->lag.value, most.value);
        hf__json_put_string(json, NULL, text.data != NULL ? text.data : "a network lags");
        hf__buf_free(&text);
        count++;
    }
    return count;
}

/* How far behind these are, nobody knows. */
static size_t put_unread(hf__json *json, const hf__snapshot *snapshot)
{
    size_t count = 0;

    hf__json_begin_array(json, NULL);
    for (size_t i = 0; i < snapshot->network_count; i++)
        if (snapshot->networks[i].problem[0] != '\0') {
            hf__json_put_string(json, NULL, snapshot->networks[i].name);
            count++;
        }
    hf__json_end_array(json);
    return count;
}

static hf__answer *answer(hf__exchange *exchange, bool with_networks)
{
    hf__server *server = exchange->server;
    const hf__snapshot *snapshot = hf__edition_snapshot(exchange->edition);
    int64_t age = age_of(server);
    hf__json reasons = {0}, unread = {0}, json = {0};

    hf__json_begin_array(&reasons, NULL);
    size_t count = put_store(&reasons, exchange, age, hf__server_refresh_ms(server));
    if (with_networks)
        count += put_lag(&reasons, snapshot, server->options.max_lag);
    hf__json_end_array(&reasons);
    bool is_degraded = put_unread(&unread, snapshot) > 0 && with_networks;
    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "status", count > 0 ? "failing" : is_degraded ? "degraded" : "ok");
    hf__json_put_raw(&json, "reasons", reasons.text.data != NULL ? reasons.text.data : "[]");
    hf__json_put_raw(&json, "unread", unread.text.data != NULL ? unread.text.data : "[]");
    hf__json_put_integer(&json, "snapshot", (int64_t)snapshot->number);
    hf__json_put_integer(&json, "age_ms", age);
    hf__json_end_object(&json);
    hf__buf_puts(&json.text, "\n");
    hf__buf_free(&reasons.text);
    hf__buf_free(&unread.text);
    return hf__answer_make(count == 0 ? 200 : 503, "application/json", "no-store", &json.text);
}

hf__answer *hf__act_health(hf__exchange *exchange, hf__problem *problem)
{
    (void)problem;
    return answer(exchange, true);
}

hf__answer *hf__act_ready(hf__exchange *exchange, hf__problem *problem)
{
    (void)problem;
    return answer(exchange, false);
}
