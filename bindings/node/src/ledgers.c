/* Operations: the cursors and gaps of a network. The first text is the name of a cursor. */
#include "operations.h"

#include <stdlib.h>
#include <string.h>

/* numbers: read_wait_ms; texts: name, schema, latest cursor, oldest cursor */
static hf_status network_open(struct hfn_call *call)
{
    hf_network *network = NULL;
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    options.name = hfn_text(call, 0);
    options.schema = hfn_text(call, 1);
    options.latest_cursor = hfn_text(call, 2);
    options.oldest_cursor = hfn_text(call, 3);
    options.read_wait_ms = call->numbers[0];
    hf_status status = hf.network_open(HFN_CONTENT(call, 0), &options, &network, &call->err);
    call->made->content = network;
    return status;
}

/* null: there is no such row */
static hf_status cursor_get(struct hfn_call *call)
{
    bool is_there = false;
    int64_t value = 0;
    hf_status status =
        hf.cursor_get(HFN_CONTENT(call, 0), hfn_text(call, 0), &is_there, &value, &call->err);
    if (is_there)
        hfn_put_bigint(&call->message.cells, value);
    else
        hfn_put_text(&call->message.cells, NULL);
    return status;
}

static hf_status cursor_set(struct hfn_call *call)
{
    return hf.cursor_set(HFN_CONTENT(call, 0), hfn_text(call, 0), call->numbers[0], &call->err);
}

static hf_status cursor_set_min(struct hfn_call *call)
{
    return hf.cursor_set_min(HFN_CONTENT(call, 0), hfn_text(call, 0), call->numbers[0], &call->err);
}

static hf_status cursor_advance(struct hfn_call *call)
{
    return hf.cursor_advance(HFN_CONTENT(call, 0), hfn_text(call, 0), call->numbers[0], &call->err);
}

/* numbers: from, to */
static hf_status cursor_swap(struct hfn_call *call)
{
    return hf.cursor_swap(HFN_CONTENT(call, 0), hfn_text(call, 0), call->numbers[0],
                          call->numbers[1], &call->err);
}

static void add_cursor(void *arg, const char *name, int64_t value)
{
    hfn_put_copy(arg, name, strlen(name));
    hfn_put_bigint(arg, value);
}

static hf_status cursor_list(struct hfn_call *call)
{
    return hf.cursor_list(HFN_CONTENT(call, 0), add_cursor, &call->message.cells, &call->err);
}

/* numbers: from, to; returns the ends of each gap */
static hf_status network_gaps(struct hfn_call *call)
{
    hf_range *gaps = NULL;
    size_t count = 0;
    hf_status status = hf.network_gaps(HFN_CONTENT(call, 0), call->numbers[0], call->numbers[1],
                                       &gaps, &count, &call->err);
    for (size_t i = 0; i < count && status == HF_OK; i++) {
        hfn_put_bigint(&call->message.cells, gaps[i].from);
        hfn_put_bigint(&call->message.cells, gaps[i].to);
    }
    free(gaps);
    return status;
}

const struct hfn_operation hfn_ledger_operations[] = {
    {.name = "networkOpen",
     .run = network_open,
     .kinds = {HFN_STORE},
     .makes = HFN_NETWORK,
     .numbers = 1,
     .texts = 4},
    {.name = "networkGaps", .run = network_gaps, .kinds = {HFN_NETWORK}, .numbers = 2},
    {.name = "cursorGet", .run = cursor_get, .kinds = {HFN_NETWORK}, .texts = 1},
    {.name = "cursorSet", .run = cursor_set, .kinds = {HFN_NETWORK}, .numbers = 1, .texts = 1},
    {.name = "cursorSetMin",
     .run = cursor_set_min,
     .kinds = {HFN_NETWORK},
     .numbers = 1,
     .texts = 1},
    {.name = "cursorAdvance",
     .run = cursor_advance,
     .kinds = {HFN_NETWORK},
     .numbers = 1,
     .texts = 1},
    {.name = "cursorSwap", .run = cursor_swap, .kinds = {HFN_NETWORK}, .numbers = 2, .texts = 1},
    {.name = "cursorList", .run = cursor_list, .kinds = {HFN_NETWORK}},
    {.name = NULL},
};
