#include "programs/top/top.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/top/list.h"

void hf__top_init(hf__top *top)
{
    *top = (hf__top){.refresh_ms = 2000};
    for (hf__tab tab = 0; tab < HF__TAB_COUNT; tab++)
        top->standings[tab].sort = hf__list_at(tab)->sort;
}

void hf__top_free(hf__top *top)
{
    hf__tree_free(&top->tree);
    free(top->rows);
    free(top->victims);
    *top = (hf__top){0};
}

bool hf__top_choose_tab(hf__top *top, const char *word)
{
    for (hf__tab tab = 0; tab < HF__TAB_COUNT; tab++)
        if (strcmp(hf__list_at(tab)->word, word) == 0) {
            top->tab = tab;
            return true;
        }
    return false;
}

bool hf__top_choose_sort(hf__top *top, const char *word)
{
    const hf__list_column *columns = hf__list_of(top)->columns;
    bool reversed = word[0] == '-';

    for (size_t i = 0; columns[i].title != NULL; i++)
        if (strcmp(columns[i].word, word + reversed) == 0) {
            top->standings[top->tab].sort = i;
            top->standings[top->tab].reversed = reversed;
            return true;
        }
    return false;
}

void hf__top_choose_filter(hf__top *top, const char *text)
{
    hf__entry_set(&top->filter, text);
}

void hf__top_list_tabs(hf__buf *out)
{
    for (hf__tab tab = 0; tab < HF__TAB_COUNT; tab++)
        hf__buf_printf(out, "%s%s", tab > 0 ? ", " : "", hf__list_at(tab)->word);
}

void hf__top_list_columns(const hf__top *top, hf__buf *out)
{
    const hf__list_column *columns = hf__list_of(top)->columns;

    for (size_t i = 0; columns[i].title != NULL; i++)
        hf__buf_printf(out, "%s%s", i > 0 ? ", " : "", columns[i].word);
}

void hf__top_see(hf__top *top, const hf__snapshot *snapshot)
{
    top->snapshot = snapshot;
    hf__list_rebuild(top);
}

void hf__top_say(hf__top *top, hf__ink ink, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(top->message, sizeof top->message, format, args);
    va_end(args);
    top->message_ink = ink;
}

const char *hf__top_copied(const hf__top *top, hf__buf *out)
{
    const hf__standing *standing = &top->standings[top->tab];

    hf__buf_clear(out);
    hf__buf_puts(out, "");
    if (standing->index < top->row_count)
        hf__list_of(top)->copy(top, top->rows[standing->index], out);
    return out->broken ? "" : out->data;
}

/* ---- for scripts: JSON ---- */

static void put_pair(hf__json *json, int64_t key)
{
    uint32_t classid, objid;

    hf_key_split(key, &classid, &objid);
    hf__json_begin_array(json, "pair");
    hf__json_put_integer(json, NULL, (int32_t)classid);
    hf__json_put_integer(json, NULL, (int32_t)objid);
    hf__json_end_array(json);
}

/* The names of ages and moments end with their unit: "held_ms". */
static void put_number(hf__json *json, const hf__list_column *column, int64_t number, bool known)
{
    bool is_time = column->kind == HF__AGE || column->kind == HF__MOMENT;
    hf__buf key = {0};

    hf__buf_printf(&key, "%s%s", column->word, is_time ? "_ms" : "");
    if (key.broken)
        json->text.broken = true;
    else if (known)
        hf__json_put_integer(json, key.data, number);
    else
        hf__json_put_null(json, key.data);
    hf__buf_free(&key);
}

static void put_value(hf__json *json, const hf__list_column *column, const hf__value *value)
{
    switch (column->kind) {
    case HF__TEXT: hf__json_put_text(json, column->word, value->text); break;
    case HF__KEY:
        hf__json_put_big(json, column->word, value->number);
        if (value->space == HF_PAIR)
            put_pair(json, value->number);
        else
            hf__json_put_null(json, "pair");
        break;
    case HF__RATE:
        if (value->number >= 0)
            hf__json_put_real(json, column->word, (double)value->number / 1000);
        else
            hf__json_put_null(json, column->word);
        break;
    case HF__MOMENT: put_number(json, column, value->number, value->number != 0); break;
    default: put_number(json, column, value->number, value->number >= 0); break;
    }
}

static void put_figures(const hf__snapshot *seen, hf__json *json)
{
    hf__json_put_string(json, "store", seen->store);
    hf__json_put_integer(json, "at_ms", seen->taken_ms);
    hf__json_put_text(json, "problem", seen->problem);
    hf__json_put_integer(json, "held", (int64_t)seen->held);
    hf__json_put_integer(json, "waiting", (int64_t)seen->waiting);
    hf__json_put_integer(json, "longest_wait_ms", seen->longest_wait_ms);
    if (seen->losses_unknown)
        hf__json_put_null(json, "losses_24h");
    else
        hf__json_put_integer(json, "losses_24h", (int64_t)seen->losses_24h);
    if (seen->registry != NULL)
        hf__json_put_integer(json, "unregistered", (int64_t)seen->unregistered);
    else
        hf__json_put_null(json, "unregistered");
    if (seen->gaps_unknown) {
        hf__json_put_null(json, "gaps");
        hf__json_put_null(json, "missing_ledgers");
    } else {
        hf__json_put_integer(json, "gaps", (int64_t)seen->gaps);
        hf__json_put_integer(json, "missing_ledgers", seen->missing_ledgers);
    }
}

void hf__top_print_json(const hf__top *top, hf__json *json)
{
    const hf__list *list = hf__list_of(top);

    hf__json_begin_object(json, NULL);
    put_figures(top->snapshot, json);
    hf__json_begin_array(json, list->word);
    for (size_t row = 0; row < top->row_count; row++) {
        hf__json_begin_object(json, NULL);
        if (top->tab == HF__TAB_WAITS)
            hf__json_put_integer(json, "depth", (int64_t)top->tree.nodes[top->rows[row]].depth);
        for (const hf__list_column *column = list->columns; column->title != NULL; column++) {
            hf__value value = column->value(top, top->rows[row]);
            put_value(json, column, &value);
        }
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
    hf__json_end_object(json);
    json->text.broken |= top->broken;
}
