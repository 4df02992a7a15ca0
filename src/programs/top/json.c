
#include "programs/top/list.h"

static void put_pair(hf__json *json, int64_t key)
{
    uint32_t classid, objid;

    hf_key_split(key, &classid, &objid);
    hf__json_begin_array(json, "pair");
    hf__json_put_integer(json, NULL, (int32_t)classid);
    hf__json_put_integer(json, NULL, (int32_t)objid);
    hf__json_end_array(json);
}

/* "held_ms": ages and moments say their unit. */
static void put_number(hf__json *json, const hf__column *column, int64_t number, bool known)
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

static void put_value(hf__json *json, const hf__column *column, const hf__value *value)
{
    switch (column->kind) {
    case HF__TEXT: hf__json_put_text(json, column->word, value->text); break;
    case HF__KEY:
        hf__json_put_integer(json, column->word, value->number);
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
    hf__json_put_integer(json, "losses_24h", (int64_t)seen->losses_24h);
    hf__json_put_integer(json, "unregistered", (int64_t)seen->unregistered);
    hf__json_put_integer(json, "gaps", (int64_t)seen->gaps);
    hf__json_put_integer(json, "missing_ledgers", seen->missing_ledgers);
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
        for (const hf__column *column = list->columns; column->title != NULL; column++) {
            hf__value value = column->value(top, top->rows[row]);
            put_value(json, column, &value);
        }
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
    hf__json_end_object(json);
    json->text.broken |= top->broken;
}
