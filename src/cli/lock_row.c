#include "cli/lock_row.h"

#include <inttypes.h>
#include <stdio.h>

static void split_pair(int64_t key, int32_t pair[2])
{
    uint32_t classid, objid;

    hf_key_split(key, &classid, &objid);
    pair[0] = (int32_t)classid;
    pair[1] = (int32_t)objid;
}

const char *show_key(char out[KEY_SHOWN_MAX], const hf_lock_view *view)
{
    int32_t pair[2];

    split_pair(view->key, pair);
    if (view->space == HF_PAIR)
        snprintf(out, KEY_SHOWN_MAX, "(%" PRId32 ", %" PRId32 ")", pair[0], pair[1]);
    else
        snprintf(out, KEY_SHOWN_MAX, "%" PRId64, view->key);
    return out;
}

const char *shown_name(const hf_lock_view *view)
{
    return view->name[0] != '\0' ? view->name : "(unregistered)";
}

const char *lifetime_name(hf_lifetime lifetime)
{
    return lifetime == HF_TRANSACTION ? "transaction" : "session";
}

const char *lifetime_of(const hf_lock_view *view)
{
    return view->session_known ? lifetime_name(view->lifetime) : "";
}

void set_number(struct table *table, size_t column, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    if (number != 0)
        table_set(table, column, text);
}

void add_number(hf__json *json, const char *key, int64_t number)
{
    if (number != 0)
        hf__json_put_integer(json, key, number);
    else
        hf__json_put_null(json, key);
}

void add_time(hf__json *json, const char *key, int64_t ms)
{
    if (ms >= 0)
        hf__json_put_integer(json, key, ms);
    else
        hf__json_put_null(json, key);
}

void add_key(hf__json *json, const hf_lock_view *view)
{
    int32_t pair[2];

    hf__json_put_integer(json, "key", view->key);
    if (view->space != HF_PAIR) {
        hf__json_put_null(json, "pair");
        return;
    }
    split_pair(view->key, pair);
    hf__json_begin_array(json, "pair");
    hf__json_put_integer(json, NULL, pair[0]);
    hf__json_put_integer(json, NULL, pair[1]);
    hf__json_end_array(json);
}

void add_name(hf__json *json, const hf_lock_view *view)
{
    hf__json_put_text(json, "name", view->name);
    hf__json_put_boolean(json, "registered", view->name[0] != '\0');
    hf__json_put_text(json, "pattern", view->pattern);
}
