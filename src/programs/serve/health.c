/* /health and /ready: never cached, and without the token, for whoever restarts or routes. */
#include <inttypes.h>

#include "base/clock.h"
#include "programs/serve/api.h"

enum { REFRESHES = 5, GRACE_MS = 10000 };

const hf__shape hf__health_shape[] = {
    HF__SHAPE("status", "string", "ok or failing"),
    {"reasons", "array", "why it fails", false, "string", NULL},
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

/* What the server says of itself, its address and its roles, is only for who may look. */
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

/* Being ahead of what the source last said is no lag. */
static size_t put_lag(hf__json *json, const hf__snapshot *snapshot, hf__maybe most)
{
    size_t count = 0;

    for (size_t i = 0; most.known && i < snapshot->network_count; i++) {
        const hf__seen_network *network = &snapshot->networks[i];
        if (!network->lag.known || network->lag.value <= most.value)
            continue;
        hf__buf text = {0};
        hf__buf_printf(&text, "%s is %" PRId64 " ledgers behind, more than %" PRId64, network->name,
                       network->lag.value, most.value);
        hf__json_put_string(json, NULL, text.data != NULL ? text.data : "a network lags");
        hf__buf_free(&text);
        count++;
    }
    return count;
}

static hf__answer *answer(hf__exchange *exchange, bool with_lag)
{
    hf__server *server = exchange->server;
    const hf__snapshot *snapshot = hf__edition_snapshot(exchange->edition);
    int64_t age = age_of(server);
    hf__json reasons = {0}, json = {0};

    hf__json_begin_array(&reasons, NULL);
    size_t count = put_store(&reasons, exchange, age, hf__server_refresh_ms(server));
    if (with_lag)
        count += put_lag(&reasons, snapshot, server->options.max_lag);
    hf__json_end_array(&reasons);
    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "status", count == 0 ? "ok" : "failing");
    hf__json_put_raw(&json, "reasons", reasons.text.data != NULL ? reasons.text.data : "[]");
    hf__json_put_integer(&json, "snapshot", (int64_t)snapshot->number);
    hf__json_put_integer(&json, "age_ms", age);
    hf__json_end_object(&json);
    hf__buf_puts(&json.text, "\n");
    hf__buf_free(&reasons.text);
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
