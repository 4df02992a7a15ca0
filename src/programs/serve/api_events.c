/* /api/v1/events: what happened lately, the newest first. */
#include <string.h>

#include "programs/serve/api.h"

const hf__shape hf__event_shape[] = {
    HF__SHAPE("id", "integer", "grows with time"),
    HF__SHAPE("at", "string", "when, RFC 3339"),
    HF__SHAPE("at_ms", "integer", "the same as Unix time in milliseconds"),
    HF__SHAPE("event", "string", "acquired, conflict, timeout, lost, released, exit, …"),
    HF__KEY_SHAPE,
    HF__SHAPE("mode", "string", "exclusive or shared"),
    HF__SHAPE_OR_NULL("label", "string", "what people call the lock"),
    HF__SHAPE_OR_NULL("name", "string", "in the registry"),
    HF__SHAPE_OR_NULL("token", "integer", "the fencing token, 64 bits"),
    HF__SHAPE_OR_NULL("token_text", "string", "the same as text"),
    HF__SHAPE_OR_NULL("wait_ms", "integer", "how long it had been waited for"),
    HF__SHAPE_OR_NULL("hold_ms", "integer", "how long it had been held"),
    HF__SHAPE_OR_NULL("application", "string", "who"),
    HF__SHAPE_OR_NULL("host", "string", "where"),
    HF__SHAPE_OR_NULL("pid", "integer", "which process"),
    HF__SHAPE_OR_NULL("detail", "string", "the reason of a loss, the class of an exit, …"),
    {0},
};

static void put_event(hf__json *json, const hf__seen_event *event)
{
    hf__json_begin_object(json, NULL);
    hf__json_put_integer(json, "id", event->id);
    hf__put_when(json, "at", event->at_ms);
    hf__json_put_integer(json, "at_ms", event->at_ms);
    hf__json_put_string(json, "event", event->event);
    hf__put_key(json, event->space, event->key);
    hf__json_put_string(json, "mode", hf__mode_name(event->mode));
    hf__json_put_text(json, "label", event->label);
    hf__json_put_text(json, "name", event->name);
    hf__put_token(json, event->token);
    hf__put_ms(json, "wait_ms", event->wait_ms);
    hf__put_ms(json, "hold_ms", event->hold_ms);
    hf__json_put_text(json, "application", event->application);
    hf__json_put_text(json, "host", event->host);
    hf__put_positive(json, "pid", event->pid);
    hf__json_put_text(json, "detail", event->detail);
    hf__json_end_object(json);
}

static bool fits(const hf__exchange *exchange, const hf__seen_event *event)
{
    const char *const texts[] = {event->label, event->name, event->application, event->host,
                                 event->detail};
    const char *kind = hf__asked(exchange, "event");
    const char *name = hf__asked(exchange, "name");

    return (kind[0] == '\0' || strcmp(kind, event->event) == 0) &&
           (name[0] == '\0' || strcmp(name, event->name) == 0) &&
           (!hf__was_asked(exchange, "since") ||
            event->at_ms >= hf__asked_number(exchange, "since")) &&
           hf__key_fits(exchange, event->key) &&
           hf__text_fits(hf__asked(exchange, "q"), texts, sizeof texts / sizeof texts[0]);
}

int hf__api_events(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                   hf__problem *problem)
{
    hf__list list = hf__list_begin(exchange, snapshot);

    (void)problem;
    for (size_t i = 0; i < snapshot->event_count; i++)
        if (fits(exchange, &snapshot->events[i]) && hf__list_takes(&list))
            put_event(&list.json, &snapshot->events[i]);
    hf__list_end_data(&list);
    return hf__list_end(&list, NULL, out);
}
