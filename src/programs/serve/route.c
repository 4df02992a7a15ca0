/* Finds the row of the table that answers a URL, and checks its parameters. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "programs/serve/http.h"

enum { TEXT_MAX = 512 };

/* ---- the path ---- */

/* *segment is what stands in the place of {name}: it is not empty and has no slash. */
static bool fits(const char *pattern, const char *path, const char **segment, size_t *size)
{
    const char *brace = strchr(pattern, '{');

    *segment = "";
    *size = 0;
    if (brace == NULL)
        return strcmp(pattern, path) == 0;
    size_t before = (size_t)(brace - pattern);
    const char *after = strchr(brace, '}') + 1;
    if (strncmp(pattern, path, before) != 0)
        return false;
    *segment = path + before;
    *size = strcspn(*segment, "/");
    return *size > 0 && strcmp(*segment + *size, after) == 0;
}

bool hf__route_allows(const char *path, hf__buf *methods)
{
    const char *segment;
    size_t size;

    for (const hf__route *route = hf__routes; route->method != NULL; route++) {
        if (!fits(route->path, path, &segment, &size))
            continue;
        if (methods->length > 0)
            hf__buf_puts(methods, ", ");
        hf__buf_puts(methods, strcmp(route->method, "GET") == 0 ? "GET, HEAD" : route->method);
    }
    if (methods->length == 0)
        return false;
    hf__buf_puts(methods, ", OPTIONS");
    return true;
}

static const hf__route *find_route(hf__exchange *exchange, const char *method)
{
    const char *segment;
    size_t size;

    for (const hf__route *route = hf__routes; route->method != NULL; route++)
        if (strcmp(route->method, method) == 0 &&
            fits(route->path, exchange->path, &segment, &size) && size < HF__SEGMENT_MAX) {
            memcpy(exchange->segment, segment, size);
            exchange->segment[size] = '\0';
            return route;
        }
    return NULL;
}

/* ---- the parameters ---- */

static bool check_choice(const hf__parameter *parameter, const char *text, hf__problem *problem)
{
    hf__buf choices = {0};

    for (const char *const *choice = parameter->choices; *choice != NULL; choice++) {
        if (strcmp(*choice, text) == 0) {
            hf__buf_free(&choices);
            return true;
        }
        hf__buf_printf(&choices, "%s%s", choices.length > 0 ? ", " : "", *choice);
    }
    hf__refuse(problem, 400, "%s is one of: %s", parameter->name,
               choices.data != NULL ? choices.data : "");
    hf__buf_free(&choices);
    return false;
}

static bool check_value(const hf__parameter *parameter, const char *text, int64_t *number,
                        hf__problem *problem)
{
    hf_error err;

    switch (parameter->type) {
    case HF__PARAMETER_CHOICE: return check_choice(parameter, text, problem);
    case HF__PARAMETER_NUMBER:
        if (hf__parse_int64(text, parameter->name, parameter->low, parameter->high, number, &err) !=
            HF_OK)
            return hf__refuse(problem, 400, "%s; %s", err.message, err.hint);
        return true;
    case HF__PARAMETER_TIME:
        if (!hf__query_time(text, number))
            return hf__refuse(problem, 400,
                              "%s is a time such as 2024-06-01T12:00:00Z, or Unix time in ms",
                              parameter->name);
        return true;
    default:
        return strlen(text) <= TEXT_MAX ||
               hf__refuse(problem, 400, "%s is longer than %d bytes", parameter->name, TEXT_MAX);
    }
}

static bool is_known(const hf__parameter *parameters, const char *name)
{
    for (; parameters != NULL && parameters->name != NULL; parameters++)
        if (strcmp(parameters->name, name) == 0)
            return true;
    return false;
}

static bool refuse_unknown(const hf__route *route, const char *name, hf__problem *problem)
{
    char shown[64];
    hf__buf names = {0};

    for (const hf__parameter *p = route->parameters; p != NULL && p->name != NULL; p++)
        hf__buf_printf(&names, "%s%s", names.length > 0 ? ", " : "; it takes ", p->name);
    hf__refuse(problem, 400, "unknown parameter '%s'%s",
               hf__show(shown, sizeof shown, name, strlen(name)),
               names.data != NULL ? names.data : "; it takes none");
    hf__buf_free(&names);
    return false;
}

static bool check_parameters(hf__exchange *exchange, const hf__query *given)
{
    const hf__route *route = exchange->route;

    for (size_t i = 0; i < given->count; i++)
        if (!is_known(route->parameters, given->pairs[i].name))
            return refuse_unknown(route, given->pairs[i].name, &exchange->problem);
    for (size_t i = 0; route->parameters != NULL && route->parameters[i].name != NULL; i++) {
        const hf__parameter *parameter = &route->parameters[i];
        const char *text = hf__query_find(given, parameter->name);
        exchange->texts[i] = text != NULL ? text : "";
        exchange->numbers[i] = parameter->fallback;
        if (exchange->texts[i][0] == '\0') { /* a field of a form that was not filled in */
            if (parameter->required)
                return hf__refuse(&exchange->problem, 400, "%s is missing", parameter->name);
            continue;
        }
        if (!check_value(parameter, text, &exchange->numbers[i], &exchange->problem))
            return false;
    }
    return true;
}

static bool is_method_of_http(const char *method)
{
    static const char *const methods[] = {"GET",     "HEAD",  "POST",  "PUT",    "DELETE",
                                          "OPTIONS", "PATCH", "TRACE", "CONNECT"};

    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(method, methods[i]) == 0)
            return true;
    return false;
}

static bool refuse_method(hf__exchange *exchange, const char *method)
{
    hf__buf allowed = {0};
    bool there = hf__route_allows(exchange->path, &allowed);

    hf__buf_free(&allowed);
    if (!is_method_of_http(method))
        return hf__refuse(&exchange->problem, 501, "this method is not known here");
    if (there)
        return hf__refuse(&exchange->problem, 405, "%s is not for this", method);
    return hf__refuse(&exchange->problem, 404, "there is nothing at this address");
}

/* Says which stores there are, and how their addresses begin. */
static bool refuse_store(hf__exchange *exchange, const char *why)
{
    const hf__server *server = exchange->server;
    hf__buf names = {0};

    for (size_t i = 0; i < server->store_count; i++)
        hf__buf_printf(&names, "%s%s", i > 0 ? ", " : "", server->stores[i].name);
    hf__refuse(&exchange->problem, 404, "%s: %s/stores/NAME%.80s, where NAME is one of: %.200s",
               why, server->base, exchange->path, names.data != NULL ? names.data : "");
    hf__buf_free(&names);
    return false;
}

bool hf__route_find(hf__exchange *exchange, const char *method)
{
    exchange->is_head = strcmp(method, "HEAD") == 0;
    if (exchange->is_store_unknown) /* no route: which stores there are is for those who may look */
        return refuse_store(exchange, "there is no such store");
    exchange->route = find_route(exchange, exchange->is_head ? "GET" : method);
    if (exchange->route == NULL)
        return refuse_method(exchange, method);
    if (exchange->served == NULL && exchange->route->scope == HF__SCOPE_STORE)
        return refuse_store(exchange, "this is of one store");
    if (strcmp(exchange->route->method, "GET") == 0)
        return check_parameters(exchange, &exchange->query);
    return exchange->query.count == 0 ||
           hf__refuse(&exchange->problem, 400, "a form is posted without parameters in the URL");
}

bool hf__route_check_form(hf__exchange *exchange)
{
    const char *body = exchange->body.data != NULL ? exchange->body.data : "";

    return hf__query_parse(body, exchange->body.length, &exchange->form, &exchange->problem) &&
           check_parameters(exchange, &exchange->form);
}

void hf__route_key(const hf__exchange *exchange, hf__buf *key)
{
    const hf__parameter *parameter = exchange->route->parameters;

    hf__buf_printf(key, "%s%s%s", exchange->base, exchange->path,
                   exchange->wants_openmetrics ? "#openmetrics" : "");
    for (size_t i = 0; parameter != NULL && parameter[i].name != NULL; i++)
        if (exchange->texts[i][0] != '\0')
            hf__buf_printf(key, "&%zu=%s\n", i, exchange->texts[i]); /* no value has a newline */
}

/* ---- what was asked for ---- */

static size_t index_of(const hf__exchange *exchange, const char *name)
{
    const hf__parameter *parameter = exchange->route->parameters;

    for (size_t i = 0; parameter != NULL && parameter[i].name != NULL; i++)
        if (strcmp(parameter[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

const char *hf__asked(const hf__exchange *exchange, const char *name)
{
    size_t index = index_of(exchange, name);

    return index != SIZE_MAX ? exchange->texts[index] : "";
}

bool hf__was_asked(const hf__exchange *exchange, const char *name)
{
    return hf__asked(exchange, name)[0] != '\0';
}

int64_t hf__asked_number(const hf__exchange *exchange, const char *name)
{
    size_t index = index_of(exchange, name);

    return index != SIZE_MAX ? exchange->numbers[index] : 0;
}
