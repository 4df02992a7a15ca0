/*
 * POST /terminate: the only thing here that changes anything. It takes --allow-terminate, a token, a
 * CSRF token of the session and the lock's title, typed.
 */
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "programs/serve/api.h"
#include "programs/serve/render.h"

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

static bool holds(const hf__snapshot *snapshot, const hf__seen_lock *lock, int64_t id)
{
    for (size_t i = lock->first; i < lock->first + lock->count; i++) {
        size_t party = snapshot->view_party[i];
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
    return holds(snapshot, lock, hf__asked_number(exchange, "party")) ||
           hf__refuse(problem, 409, "it does not hold the lock any more: nothing was done");
}

static hf__answer *report(const hf__exchange *exchange)
{
    hf__json json = {0};

    if (!exchange->wants_json)
        return hf__answer_redirect("/?notice=terminated#locks");
    hf__json_begin_object(&json, NULL);
    hf__json_put_boolean(&json, "terminated", true);
    hf__put_key(&json, asked_space(exchange), hf__asked_number(exchange, "key"));
    hf__json_put_integer(&json, "party", hf__asked_number(exchange, "party"));
    hf__json_end_object(&json);
    hf__buf_puts(&json.text, "\n");
    return hf__answer_make(200, "application/json", "no-store", &json.text);
}

/* "serve, from 127.0.0.1": who did it, for the history. */
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
    (void)snprintf(out, size, "serve, from %.45s", host);
}

static void run(hf_store *store, hf__exchange *exchange)
{
    char by[64];
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

hf__answer *hf__act_terminate(hf__exchange *exchange, hf__problem *problem)
{
    if (check_rights(exchange, problem) && check_target(exchange, problem))
        (void)hf__server_ask(exchange, run, problem);
    return NULL;
}
