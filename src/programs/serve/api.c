#include "programs/serve/api.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/time.h"
#include "programs/serve/page/html.h"

/* ---- lists ---- */

hf__api_list hf__api_list_begin(const hf__exchange *exchange, const hf__snapshot *snapshot)
{
    hf__api_list list = {
        .exchange = exchange,
        .snapshot = snapshot,
        .limit = hf__asked_number(exchange, "limit"),
        .offset = hf__asked_number(exchange, "offset"),
    };

    hf__json_begin_object(&list.json, NULL);
    hf__json_begin_array(&list.json, "data");
    return list;
}

bool hf__api_list_takes(hf__api_list *list)
{
    if (list->total++ < list->offset || list->shown >= list->limit)
        return false;
    list->shown++;
    return true;
}

void hf__api_list_end_data(hf__api_list *list)
{
    hf__json_end_array(&list->json);
}

/* Writes the URL of this request with another place to begin at. */
static void write_next(const hf__exchange *exchange, const char *name, const char *value,
                       hf__buf *url)
{
    const hf__parameter *parameter = exchange->route->parameters;

    hf__buf_printf(url, "%s%s", exchange->base, exchange->path);
    hf__buf_puts(url, "?");
    for (size_t i = 0; parameter[i].name != NULL; i++) {
        if (exchange->texts[i][0] == '\0' || strcmp(parameter[i].name, name) == 0)
            continue;
        hf__buf_printf(url, "%s=", parameter[i].name);
        hf__html_url(url, exchange->texts[i]);
        hf__buf_puts(url, "&");
    }
    hf__buf_printf(url, "%s=", name);
    hf__html_url(url, value);
}

static void put_next(hf__api_list *list, const char *name, const char *value)
{
    hf__buf url = {0};

    write_next(list->exchange, name, value, &url);
    hf__json_put_text(&list->json, "next", url.data);
    list->json.text.broken |= url.broken;
    hf__buf_free(&url);
}

static void put_page(hf__api_list *list, const char *next_cursor)
{
    char offset[24];

    hf__json_begin_object(&list->json, "page");
    hf__json_put_integer(&list->json, "limit", list->limit);
    if (next_cursor != NULL) {
        hf__json_put_null(&list->json, "offset");
        hf__json_put_text(&list->json, "cursor", hf__asked(list->exchange, "cursor"));
        hf__json_put_null(&list->json, "total");
    } else {
        hf__json_put_integer(&list->json, "offset", list->offset);
        hf__json_put_null(&list->json, "cursor");
        hf__json_put_integer(&list->json, "total", list->total);
    }
    (void)snprintf(offset, sizeof offset, "%" PRId64, list->offset + list->shown);
    if (next_cursor != NULL && next_cursor[0] != '\0')
        put_next(list, "cursor", next_cursor);
    else if (next_cursor == NULL && list->shown > 0 && list->offset + list->shown < list->total)
        put_next(list, "offset", offset);
    else
        hf__json_put_null(&list->json, "next");
    hf__json_end_object(&list->json);
}

static void put_snapshot(hf__json *json, const hf__snapshot *snapshot)
{
    hf__json_begin_object(json, "snapshot");
    hf__json_put_integer(json, "number", (int64_t)snapshot->number);
    hf__put_when(json, "taken_at", snapshot->taken_ms);
    hf__json_put_integer(json, "took_ms", snapshot->took_ms);
    hf__json_put_string(json, "store", snapshot->store);
    hf__json_put_text(json, "problem", snapshot->problem);
    hf__put_when(json, "problem_since",
                 snapshot->problem[0] != '\0' ? snapshot->problem_since_ms : 0);
    hf__json_end_object(json);
}

int hf__api_list_end(hf__api_list *list, const char *next_cursor, hf__buf *out)
{
    put_page(list, next_cursor);
    put_snapshot(&list->json, list->snapshot);
    hf__json_end_object(&list->json);
    hf__buf_puts(&list->json.text, "\n");
    *out = list->json.text;
    return 200;
}

/* ---- filters ---- */

bool hf__text_fits(const char *q, const char *const *texts, size_t count)
{
    if (q[0] == '\0')
        return true;
    for (size_t i = 0; i < count; i++)
        if (texts[i] != NULL && strcasestr(texts[i], q) != NULL)
            return true;
    return false;
}

bool hf__key_fits(const hf__exchange *exchange, int64_t key)
{
    return !hf__was_asked(exchange, "key") || hf__asked_number(exchange, "key") == key;
}

/* ---- values ---- */

const char *hf__lifetime_name(hf_lifetime lifetime)
{
    return lifetime == HF_LEASE ? "lease" : lifetime == HF_TRANSACTION ? "transaction" : "session";
}

const char *hf__mode_name(hf_mode mode)
{
    return mode == HF_SHARED ? "shared" : "exclusive";
}

void hf__put_token(hf__json *json, int64_t token)
{
    if (token != 0) {
        hf__json_put_big(json, "token", token);
    } else {
        hf__json_put_null(json, "token");
        hf__json_put_null(json, "token_text");
    }
}

void hf__put_key(hf__json *json, hf_space space, int64_t key)
{
    uint32_t high, low;

    hf__json_put_string(json, "space", space == HF_PAIR ? "pair" : "bigint");
    hf__json_put_big(json, "key", key);
    if (space != HF_PAIR) {
        hf__json_put_null(json, "pair");
        return;
    }
    hf_key_split(key, &high, &low);
    hf__json_begin_array(json, "pair");
    hf__json_put_integer(json, NULL, (int32_t)high);
    hf__json_put_integer(json, NULL, (int32_t)low);
    hf__json_end_array(json);
}

void hf__put_when(hf__json *json, const char *name, int64_t unix_ms)
{
    char text[HF__TIME_SIZE];

    if (unix_ms == 0)
        hf__json_put_null(json, name);
    else
        hf__json_put_string(json, name, hf__show_time(text, hf__us_from_ms(unix_ms), 3));
}

void hf__put_ms(hf__json *json, const char *name, int64_t ms)
{
    if (ms < 0)
        hf__json_put_null(json, name);
    else
        hf__json_put_integer(json, name, ms);
}

void hf__put_maybe(hf__json *json, const char *name, hf__maybe number)
{
    if (number.known)
        hf__json_put_integer(json, name, number.value);
    else
        hf__json_put_null(json, name);
}

void hf__put_positive(hf__json *json, const char *name, int64_t number)
{
    if (number > 0)
        hf__json_put_integer(json, name, number);
    else
        hf__json_put_null(json, name);
}
