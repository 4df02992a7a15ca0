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
    hf__render_login(exchange->base, csrf, wrong, &text);
    return hf__answer_make(status, HTML, "no-store", &text);
}

hf__answer *hf__act_login_form(hf__exchange *exchange, hf__problem *problem)
{
    (void)problem;
    if (exchange->access == HF__ACCESS_OPEN || exchange->access == HF__ACCESS_GRANTED)
        return hf__answer_redirect(exchange, "/");
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
    hf__answer *answer = cookie->broken ? NULL : hf__answer_redirect(exchange, location);

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
    case HF__ACCESS_OPEN: return hf__answer_redirect(exchange, "/");
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
    hf__metric_store stores[HF__STORES_MAX];
    size_t count;
    const hf__served *served = hf__exchange_stores(exchange, &count);
    hf__snapshot *const *snapshots = hf__edition_snapshots(exchange->edition, &count);

    (void)snapshot;
    (void)problem;
    for (size_t i = 0; i < count; i++)
        stores[i] = (hf__metric_store){
            .name = exchange->server->store_count > 1 ? served[i].name : "", .seen = snapshots[i]};
    hf__render_metrics(stores, count, exchange->wants_openmetrics, out);
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

/* How each store stands; what was read of them is known where the page is about all. */
static size_t list_stores(const hf__exchange *exchange, hf__page_store stores[HF__STORES_MAX])
{
    const hf__server *server = exchange->server;
    size_t count;
    hf__snapshot *const *snapshots = hf__edition_snapshots(exchange->edition, &count);

    for (size_t i = 0; server->store_count > 1 && i < server->store_count; i++)
        stores[i] = (hf__page_store){.name = server->stores[i].name,
                                     .base = server->stores[i].base,
                                     .is_up = hf__is_up(exchange, &server->stores[i]),
                                     .seen = exchange->served == NULL ? snapshots[i] : NULL};
    return server->store_count > 1 ? server->store_count : 0;
}

int hf__page_render(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                    hf__problem *problem)
{
    const hf__server *server = exchange->server;
    bool signed_in = exchange->access == HF__ACCESS_GRANTED;
    char csrf[HF__CSRF_SIZE] = "";
    hf__page_store stores[HF__STORES_MAX];
    size_t count = list_stores(exchange, stores);

    (void)problem;
    if (signed_in)
        hf__auth_csrf(server->auth, exchange->identity, csrf);
    const hf__page_request request = {
        .base = exchange->base,
        .root = server->base,
        .store = count > 0 && exchange->served != NULL ? exchange->served->name : "",
        .stores = stores,
        .store_count = count,
        .now_ms = hf__wall_ms(),
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
    if (exchange->served != NULL)
        hf__render_page(snapshot, &request, out);
    else
        hf__render_overview(&request, out);
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

/* "" where there is but one: it goes without saying then. */
static const char *store_name(const hf__exchange *exchange)
{
    return exchange->server->store_count > 1 ? exchange->served->name : "";
}

static bool check_target(const hf__exchange *exchange, hf__problem *problem)
{
    const hf__snapshot *snapshot = hf__edition_snapshot(exchange->edition);
    int64_t key = hf__asked_number(exchange, "key");
    const hf__seen_lock *lock = find_lock(snapshot, asked_space(exchange), key);
    char title[HF__TYPED_ROOM];

    if (lock == NULL)
        return hf__refuse(problem, 404, "nobody holds this lock, or wants it");
    if (strcmp(hf__asked(exchange, "label"), hf__lock_typed(title, store_name(exchange), lock)) !=
        0)
        return hf__refuse(problem, 422, "what was typed is not the lock's label: nothing was done");
    return holds(snapshot, lock, hf__asked_number(exchange, "party"),
                 hf__asked_number(exchange, "token")) ||
           hf__refuse(problem, 409, "it does not hold the lock any more: nothing was done");
}

static hf__answer *report(const hf__exchange *exchange)
{
    hf__json json = {0};

    if (!exchange->wants_json)
        return hf__answer_redirect(exchange, "/?notice=terminated#locks");
    hf__json_begin_object(&json, NULL);
    hf__json_put_boolean(&json, "terminated", true);
    hf__put_key(&json, asked_space(exchange), hf__asked_number(exchange, "key"));
    hf__json_put_integer(&json, "party", hf__asked_number(exchange, "party"));
    hf__json_end_object(&json);
    hf__buf_puts(&json.text, "\n");
    return hf__answer_make(200, "application/json", "no-store", &json.text);
}

/* "alice by serve, from 127.0.0.1, store eu": who did it, for the lock's history. */
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
    const char *store = store_name(exchange);
    (void)snprintf(out, size, "%s%sserve, from %.45s%s%s", exchange->viewer.name,
                   exchange->viewer.name[0] != '\0' ? " by " : "", host,
                   store[0] != '\0' ? ", store " : "", store);
}

static void run(hf_store *store, hf__exchange *exchange)
{
    char by[160];
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
    return hf__answer_redirect(exchange, location);
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

const hf__shape hf__health_shape[] = {
    HF__SHAPE("status", "string", "ok, degraded (it works, but see unread) or failing"),
    {"reasons", "array", "why it fails", false, "string", NULL},
    {"unread", "array", "networks that cannot be read: how far behind they are is not known", false,
     "string", NULL},
    HF__SHAPE("snapshot", "integer", "its number; of several stores that of the oldest"),
    HF__SHAPE_OR_NULL("age_ms", "integer",
                      "since the last refresh that worked; null: of a store none did"),
    {0},
};

/* What /health says, while the stores are looked at one after the other. */
struct health {
    const hf__exchange *exchange;
    hf__json reasons, unread;
    size_t down, lags, unread_count;
    int64_t snapshot, age; /* of the store that was read longest ago; -1: one was never read */
};

/* Of several stores each sentence begins with the name of one. */
static void put_sentence(hf__json *json, const hf__served *served, const hf__buf *text,
                         const char *without_memory)
{
    const char *name = served->server->store_count > 1 ? served->name : "";
    hf__buf whole = {0};

    hf__buf_printf(&whole, "%s%s%s", name, name[0] != '\0' ? ": " : "",
                   text->data != NULL ? text->data : without_memory);
    hf__json_put_string(json, NULL, whole.data != NULL ? whole.data : without_memory);
    hf__buf_free(&whole);
}

/*
 * What the store's server says about itself, its address and its roles is only for those who may
 * look.
 */
static void put_store(struct health *health, const hf__served *served, const hf__snapshot *snapshot,
                      int64_t age)
{
    const hf__exchange *exchange = health->exchange;
    bool may_look = exchange->access == HF__ACCESS_OPEN || exchange->access == HF__ACCESS_GRANTED;
    hf__buf text = {0};

    if (hf__is_up(exchange, served))
        return;
    if (snapshot->problem[0] == '\0')
        hf__buf_printf(&text, "no refresh for %" PRId64 " s", age / 1000);
    else
        hf__buf_printf(&text, "the store cannot be read%s%s", may_look ? ": " : "",
                       may_look ? snapshot->problem : "");
    put_sentence(&health->reasons, served, &text, "the store cannot be read");
    hf__buf_free(&text);
    health->down++;
}

/*
 * To be ahead of what the source said last is no lag. Where nobody has asked a source that told its
 * tip before, or the network cannot be read, the lag is not known, and not to be relied on.
 */
static void put_lag(struct health *health, const hf__served *served, const hf__snapshot *snapshot)
{
    hf__maybe most = served->server->options.max_lag;

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
        put_sentence(&health->reasons, served, &text, "a network lags");
        hf__buf_free(&text);
        health->lags++;
    }
}

/* How far behind these are, nobody knows. */
static void put_unread(struct health *health, const hf__served *served,
                       const hf__snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->network_count; i++)
        if (snapshot->networks[i].problem[0] != '\0') {
            hf__buf name = {0};
            hf__buf_puts(&name, snapshot->networks[i].name);
            put_sentence(&health->unread, served, &name, "a network");
            hf__buf_free(&name);
            health->unread_count++;
        }
}

static void examine(struct health *health, hf__served *served, const hf__snapshot *snapshot,
                    bool with_networks)
{
    int64_t age = hf__served_age(served);
    bool is_oldest = health->age >= 0 && (age < 0 || age >= health->age);

    put_store(health, served, snapshot, age);
    if (with_networks)
        put_lag(health, served, snapshot);
    put_unread(health, served, snapshot);
    if (is_oldest) {
        health->snapshot = (int64_t)snapshot->number;
        health->age = age;
    }
}

/*
 * /health fails for each store that is down. /ready is for those who send people here: of several
 * stores one that can be read is reason enough to do so.
 */
static hf__answer *answer(hf__exchange *exchange, bool with_networks)
{
    struct health health = {.exchange = exchange};
    hf__json json = {0};
    size_t count;
    hf__served *served = hf__exchange_stores(exchange, &count);
    hf__snapshot *const *snapshots = hf__edition_snapshots(exchange->edition, &count);

    hf__json_begin_array(&health.reasons, NULL);
    hf__json_begin_array(&health.unread, NULL);
    for (size_t i = 0; i < count; i++)
        examine(&health, &served[i], snapshots[i], with_networks);
    hf__json_end_array(&health.reasons);
    hf__json_end_array(&health.unread);
    bool fails = with_networks ? health.down + health.lags > 0 : health.down == count;
    bool is_degraded = health.down > 0 || (health.unread_count > 0 && with_networks);
    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "status", fails ? "failing" : is_degraded ? "degraded" : "ok");
    hf__json_put_raw(&json, "reasons",
                     health.reasons.text.data != NULL ? health.reasons.text.data : "[]");
    hf__json_put_raw(&json, "unread",
                     health.unread.text.data != NULL ? health.unread.text.data : "[]");
    hf__json_put_integer(&json, "snapshot", health.snapshot);
    hf__put_ms(&json, "age_ms", health.age);
    hf__json_end_object(&json);
    hf__buf_puts(&json.text, "\n");
    hf__buf_free(&health.reasons.text);
    hf__buf_free(&health.unread.text);
    return hf__answer_make(fails ? 503 : 200, "application/json", "no-store", &json.text);
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
