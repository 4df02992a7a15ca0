/*
 * The target of a request on the first line, and a form behind it: a route takes them with values
 * that keep its rules, or there is a reason.
 */
#include "fuzz.h"

#include <string.h>

#include "base/text.h"
#include "programs/serve/http.h"

static const char *const choices[] = {"held", "waiting", NULL};
static const hf__parameter parameters[] = {
    {"q", HF__PARAMETER_TEXT, "", NULL, 0, 0, 0, false},
    {"state", HF__PARAMETER_CHOICE, "", choices, 0, 0, 0, false},
    {"limit", HF__PARAMETER_NUMBER, "", NULL, 1, 1000, 50, false},
    {"since", HF__PARAMETER_TIME, "", NULL, 0, 0, 0, false},
    {0},
};
const hf__route hf__routes[] = {
    {.method = "GET", .path = "/", .parameters = parameters},
    {.method = "GET", .path = "/api/{name}/gaps", .parameters = parameters},
    {.method = "POST", .path = "/do", .parameters = parameters},
    {0},
};

static void check_texts(const hf__exchange *exchange)
{
    for (size_t i = 0; parameters[i].name != NULL; i++) {
        const char *text = exchange->texts[i];
        require(hf__utf8_valid(text, strlen(text)), "a value is no UTF-8");
        for (; *text != '\0'; text++)
            require((unsigned char)*text >= 0x20 && *text != 0x7f, "a control character came in");
    }
    int64_t limit = hf__asked_number(exchange, "limit");
    require(limit >= 1 && limit <= 1000, "a number is outside");
    const char *state = hf__asked(exchange, "state");
    require(*state == '\0' || strcmp(state, "held") == 0 || strcmp(state, "waiting") == 0,
            "a choice is none");
    require(strchr(exchange->segment, '/') == NULL, "a segment has a slash");
}

static void ask(char *target, const char *method, const char *form, size_t form_size)
{
    hf__served only = {0};
    hf__exchange exchange = {.served = &only, .base = ""};
    hf__buf key = {0};
    char *query = strchr(target, '?');
    char *path = strndup(target, query != NULL ? (size_t)(query - target) : strlen(target));

    require(path != NULL, "out of memory");
    exchange.path = path;
    hf__buf_add(&exchange.body, form, form_size);
    bool good =
        hf__percent_decode(path, false) &&
        hf__query_parse(query != NULL ? query + 1 : "", query != NULL ? strlen(query + 1) : 0,
                        &exchange.query, &exchange.problem) &&
        hf__route_find(&exchange, method);
    if (good && strcmp(method, "POST") == 0)
        good = hf__route_check_form(&exchange);
    if (good) {
        check_texts(&exchange);
        hf__route_key(&exchange, &key);
    }
    hf__buf_free(&key);
    hf__buf_free(&exchange.body);
    hf__query_free(&exchange.query);
    hf__query_free(&exchange.form);
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *newline = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t first = newline != NULL ? (size_t)(newline - (const char *)data) : size;
    const char *form = newline != NULL ? newline + 1 : "";
    char *target = strndup((const char *)data, first);

    require(target != NULL, "out of memory");
    ask(target, "GET", form, newline != NULL ? size - first - 1 : 0);
    ask(target, "POST", form, newline != NULL ? size - first - 1 : 0);
    free(target);
    return 0;
}
