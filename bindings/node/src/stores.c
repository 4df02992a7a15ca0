/* Operations: stores, keys and what they know of locks. */
#include "operations.h"

#include <stdlib.h>
#include <string.h>

static void log_line(void *arg, hf_log_level level, const char *message)
{
    const struct hfn_handle *store = arg;
    struct hfn_cells cells = {0};
    hfn_put_text(&cells, "log");
    hfn_put_number(&cells, store->event);
    hfn_put_number(&cells, level);
    hfn_put_copy(&cells, message, strlen(message));
    hfn_emit(store->binding, &cells);
}

static void tell_span(const hf_span *span, void *arg)
{
    const struct hfn_handle *store = arg;
    struct hfn_cells cells = {0};
    hfn_put_text(&cells, "span");
    hfn_put_number(&cells, store->event);
    hfn_put_number(&cells, span->kind);
    hfn_put_text(&cells, hf.status_name(span->status));
    hfn_put_copy(&cells, span->label, span->label_size);
    hfn_put_bigint(&cells, span->key);
    hfn_put_boolean(&cells, span->mode == HF_SHARED);
    hfn_put_number(&cells, span->slot);
    hfn_put_bigint(&cells, span->token);
    hfn_put_bigint(&cells, span->start_ns);
    hfn_put_bigint(&cells, span->end_ns);
    hfn_put_copy(&cells, span->traceparent, strlen(span->traceparent));
    hfn_put_copy(&cells, span->parent, strlen(span->parent));
    hfn_put_copy(&cells, span->link, strlen(span->link));
    hfn_emit(store->binding, &cells);
}

/*
 * numbers: event, records, ping_interval_ms, ping_deadline_ms, kill_ms, connect_timeout_ms,
 * max_waits, max_keys, session_pool, max_transactions, machine, wants_log,
 * environment, patience_ms, wants_spans; texts: url, application, path of a registry
 */
static hf_status store_open(struct hfn_call *call)
{
    const int64_t *numbers = call->numbers;
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_registry *registry = NULL;
    hf_store *store = NULL;
    hf_status status = HF_OK;

    call->made->event = numbers[0];
    options.url = hfn_text(call, 0);
    options.application = hfn_text(call, 1);
    options.records = (hf_records)numbers[1];
    options.ping_interval_ms = (int)numbers[2];
    options.ping_deadline_ms = (int)numbers[3];
    options.kill_ms = (int)numbers[4];
    options.connect_timeout_ms = (int)numbers[5];
    options.max_waits = (int)numbers[6];
    options.max_keys = (int)numbers[7];
    options.session_pool = numbers[8] != 0;
    options.max_transactions = (int)numbers[9];
    options.machine = (int)numbers[10];
    options.environment = numbers[12] != 0;
    options.patience_ms = numbers[13];
    if (numbers[14]) {
        options.on_span = tell_span;
        options.span_arg = call->made;
    }
    if (numbers[11]) {
        options.log = log_line;
        options.log_arg = call->made;
    }
    if (hfn_text(call, 2))
        status = hf.registry_read(hfn_text(call, 2), &registry, &call->err);
    options.registry = registry;
    if (status == HF_OK)
        status = hf.store_open(&options, &store, &call->err);
    if (status != HF_OK) {
        hf.registry_free(registry);
        return status;
    }
    call->made->content = store;
    call->made->also = registry;
    hfn_put_text(&call->message.cells, hf.store_name(store));
    hfn_put_boolean(&call->message.cells, hf.store_is_local(store));
    hfn_put_boolean(&call->message.cells, hf.store_has_records(store));
    return HF_OK;
}

/* The end of its last use does it. */
static hf_status close_it(struct hfn_call *call)
{
    (void)call;
    return HF_OK;
}

static hf_status store_init(struct hfn_call *call)
{
    int from = 0, to = 0;
    hf_status status = hf.store_init(HFN_CONTENT(call, 0), &from, &to, &call->err);
    hfn_put_number(&call->message.cells, from);
    hfn_put_number(&call->message.cells, to);
    return status;
}

static void add_finding(void *arg, hf_level level, const char *topic, const char *text,
                        const char *remedy)
{
    struct hfn_cells *cells = arg;
    hfn_put_number(cells, level);
    hfn_put_copy(cells, topic, strlen(topic));
    hfn_put_copy(cells, text, strlen(text));
    hfn_put_copy(cells, remedy, strlen(remedy));
}

static hf_status store_examine(struct hfn_call *call)
{
    return hf.store_examine(HFN_CONTENT(call, 0), add_finding, &call->message.cells, &call->err);
}

/* numbers: period_ms; texts: label */
static hf_status schedule_claim(struct hfn_call *call)
{
    bool is_due = false;
    int64_t wait_ms = 0;
    hf_status status = hf.schedule_claim(HFN_CONTENT(call, 0), hfn_text(call, 0), call->numbers[0],
                                         &is_due, &wait_ms, &call->err);
    hfn_put_boolean(&call->message.cells, is_due);
    hfn_put_number(&call->message.cells, wait_ms);
    return status;
}

static void put_view(struct hfn_cells *cells, const hf_lock_view *view)
{
    hfn_put_bigint(cells, view->key);
    hfn_put_boolean(cells, view->space == HF_PAIR);
    hfn_put_boolean(cells, view->mode == HF_SHARED);
    hfn_put_boolean(cells, view->waiting);
    hfn_put_boolean(cells, view->ours);
    hfn_put_boolean(cells, view->session_known);
    hfn_put_boolean(cells, view->lifetime == HF_TRANSACTION);
    hfn_put_text(cells, view->label);
    hfn_put_text(cells, view->application);
    hfn_put_text(cells, view->host);
    hfn_put_number(cells, view->pid);
    hfn_put_number(cells, view->backend_pid);
    hfn_put_number(cells, view->age_ms);
    hfn_put_boolean(cells, view->age_is_bound);
    hfn_put_bigint(cells, view->token);
    hfn_put_number(cells, view->slot);
    hfn_put_text(cells, view->blocked_by);
    hfn_put_text(cells, view->name);
    hfn_put_text(cells, view->pattern);
    hfn_put_number(cells, view->idle_ms);
    hfn_put_boolean(cells, view->idle_hidden);
    hfn_put_number(cells, view->seen_ms);
    hfn_put_number(cells, view->times);
    hfn_put_text(cells, view->known_as);
    hfn_put_boolean(cells, view->lifetime == HF_LEASE);
    hfn_put_number(cells, view->left_ms);
    hfn_put_text(cells, view->traceparent);
}

static void free_list(void *list)
{
    hf.lock_list_free(list);
}

/* numbers: 0 now, 1 the past; since_ms */
static hf_status list_locks(struct hfn_call *call)
{
    hf_lock_list *list = NULL;
    hf_status status =
        call->numbers[0]
            ? hf.lock_list_read_past(HFN_CONTENT(call, 0), call->numbers[1], &list, &call->err)
            : hf.lock_list_read(HFN_CONTENT(call, 0), &list, &call->err);
    if (status != HF_OK)
        return status;
    call->kept = list;
    call->free_kept = free_list;
    for (size_t i = 0; i < hf.lock_list_count(list); i++)
        put_view(&call->message.cells, hf.lock_list_at(list, i));
    return HF_OK;
}

void hfn_free_content(struct hfn_handle *handle)
{
    switch (handle->kind) {
    case HFN_STORE:
        if (handle->content != NULL)
            hf.store_close(handle->content);
        hf.registry_free(handle->also);
        break;
    case HFN_LOCK: hf.lock_free(handle->content); break;
    case HFN_TX:
        hf.tx_free(handle->content);
        free(handle->also);
        break;
    case HFN_NETWORK: hf.network_free(handle->content); break;
    case HFN_CANCEL: hf.cancel_free(handle->content); break;
    case HFN_NOTHING:
    case HFN_KINDS: break;
    }
}

const struct hfn_operation hfn_store_operations[] = {
    {.name = "storeOpen", .run = store_open, .makes = HFN_STORE, .numbers = 15, .texts = 3},
    {.name = "storeClose", .run = close_it, .kinds = {HFN_STORE}, .closes = true},
    {.name = "lockClose", .run = close_it, .kinds = {HFN_LOCK}, .closes = true},
    {.name = "txClose", .run = close_it, .kinds = {HFN_TX}, .closes = true},
    {.name = "networkClose", .run = close_it, .kinds = {HFN_NETWORK}, .closes = true},
    {.name = "storeInit", .run = store_init, .kinds = {HFN_STORE}},
    {.name = "storeExamine", .run = store_examine, .kinds = {HFN_STORE}},
    {.name = "scheduleClaim",
     .run = schedule_claim,
     .kinds = {HFN_STORE},
     .numbers = 1,
     .texts = 1},
    {.name = "listLocks", .run = list_locks, .kinds = {HFN_STORE}, .numbers = 2},
    {.name = NULL},
};
