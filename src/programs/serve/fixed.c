/* The page, the metrics and the files that the page loads, as routes. */
#include <string.h>

#include "programs/serve/http.h"
#include "programs/serve/render.h"

int hf__metrics_render(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                       hf__problem *problem)
{
    (void)problem;
    hf__render_metrics(snapshot, exchange->wants_openmetrics, out);
    return 200;
}

static const char *notice_of(const char *word)
{
    if (strcmp(word, "terminated") == 0)
        return "The session was ended. The lock is free once the server has noticed.";
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
        .q = hf__asked(exchange, "q"),
        .state = hf__asked(exchange, "state"),
        .lock = hf__asked(exchange, "lock"),
        .event = hf__asked(exchange, "event"),
        .network = hf__asked(exchange, "network"),
        .span = hf__asked(exchange, "span"),
        .sort = hf__asked(exchange, "sort"),
        .page = hf__asked(exchange, "page"),
        .may_terminate = signed_in && server->options.allow_terminate,
        .signed_in = signed_in,
        .csrf = csrf,
        .notice = notice_of(hf__asked(exchange, "notice")),
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
