/* Calls, their threads and results; handles; the end of an environment. */
#include "calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long the end of a process or a worker waits for calls that were cancelled. */
enum { END_SECONDS = 2 };

/* One for each environment: the main thread of Node, or a worker. */
struct hfn_binding {
    unsigned refs; /* the environment, calls, messages and handles */
    napi_threadsafe_function wake;
    bool has_ended;
    unsigned busy;    /* calls and drops in the pool */
    unsigned pending; /* what Node stays for: calls and held locks; its thread only */
    struct hfn_message *first, **last;
    struct hfn_handle *handles;
};

/*
 * For all that is above and in handles, but what says otherwise. Never held in a call of
 * libholdfast, whose callbacks come here with locks of their own.
 */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t calmer = PTHREAD_COND_INITIALIZER; /* busy is 0 */

hf_status hfn_fail(hf_error *err, hf_status status, const char *message)
{
    *err = (hf_error){.code = status};
    (void)snprintf(err->message, sizeof err->message, "%s", message);
    return status;
}

const char *hfn_text(const struct hfn_call *call, size_t index)
{
    return index < call->texts.count ? call->texts.at[index].data : NULL;
}

/* Mutex held. */
static void leave_binding(struct hfn_binding *binding)
{
    if (--binding->refs == 0)
        free(binding);
}

/* Mutex held. */
static void become_idle(struct hfn_binding *binding)
{
    if (--binding->busy == 0)
        pthread_cond_broadcast(&calmer);
}

/* ---- Handles --------------------------------------------------------------------------------- */

/* Mutex held. Uses of a handle that has content end in the pool only: to free it may block. */
static void forget_if_done(struct hfn_handle *handle)
{
    if (handle->uses > 0 || handle->is_referred)
        return;
    if (handle->next)
        handle->next->previous = handle->previous;
    if (handle->previous)
        handle->previous->next = handle->next;
    else
        handle->binding->handles = handle->next;
    leave_binding(handle->binding);
    free(handle);
}

static void end_use(struct hfn_handle *handle)
{
    struct hfn_handle *needs[HFN_HANDLES_MAX] = {0};
    pthread_mutex_lock(&mutex);
    bool is_last = handle->uses == 1;
    handle->uses -= !is_last;
    pthread_mutex_unlock(&mutex);
    if (!is_last)
        return;
    hfn_free_content(handle);
    pthread_mutex_lock(&mutex);
    memcpy(needs, handle->needs, sizeof needs);
    handle->content = NULL;
    handle->uses = 0;
    forget_if_done(handle);
    pthread_mutex_unlock(&mutex);
    for (size_t i = 0; i < HFN_HANDLES_MAX; i++)
        if (needs[i] != NULL)
            end_use(needs[i]);
}

struct hfn_handle *hfn_handle_create(struct hfn_binding *binding, enum hfn_kind kind)
{
    struct hfn_handle *handle = calloc(1, sizeof *handle);
    if (handle == NULL)
        return NULL;
    handle->binding = binding;
    handle->kind = kind;
    handle->uses = 1;
    pthread_mutex_lock(&mutex);
    binding->refs++;
    handle->next = binding->handles;
    if (handle->next)
        handle->next->previous = handle;
    binding->handles = handle;
    pthread_mutex_unlock(&mutex);
    return handle;
}

/* Mutex held. True: the use that JavaScript had is the caller's to end now. */
static bool take_from_javascript(struct hfn_handle *handle)
{
    bool was_open = handle->is_open;
    handle->is_open = false;
    return was_open;
}

static void drop(struct hfn_task *task)
{
    struct hfn_handle *handle = (struct hfn_handle *)task; /* its first member */
    struct hfn_binding *binding = handle->binding;
    while (handle != NULL) {
        struct hfn_handle *next = handle->dropped_next;
        end_use(handle);
        handle = next;
    }
    pthread_mutex_lock(&mutex);
    become_idle(binding);
    leave_binding(binding);
    pthread_mutex_unlock(&mutex);
}

static void drop_in_pool(struct hfn_handle *handle)
{
    pthread_mutex_lock(&mutex);
    handle->binding->busy++;
    handle->binding->refs++;
    pthread_mutex_unlock(&mutex);
    handle->drop.run = drop;
    hfn_pool_run_surely(&handle->drop);
}

static void end_use_of_javascript(struct hfn_handle *handle)
{
    if (handle->kind == HFN_CANCEL)
        end_use(handle); /* does not block */
    else
        drop_in_pool(handle);
}

void hfn_handle_close(struct hfn_handle *handle)
{
    pthread_mutex_lock(&mutex);
    bool is_mine = take_from_javascript(handle);
    pthread_mutex_unlock(&mutex);
    if (is_mine)
        end_use_of_javascript(handle);
}

static void forget(napi_env env, void *data, void *hint)
{
    struct hfn_handle *handle = data;
    (void)env;
    (void)hint;
    pthread_mutex_lock(&mutex);
    bool is_mine = take_from_javascript(handle);
    handle->is_referred = false;
    if (!is_mine)
        forget_if_done(handle);
    pthread_mutex_unlock(&mutex);
    if (is_mine)
        end_use_of_javascript(handle);
}

napi_value hfn_handle_external(napi_env env, struct hfn_handle *handle)
{
    napi_value external = NULL;
    handle->is_referred = handle->is_open = true;
    if (napi_create_external(env, handle, forget, NULL, &external) == napi_ok)
        return external;
    handle->is_referred = false;
    hfn_handle_close(handle);
    return NULL;
}

/* ---- Messages to JavaScript ------------------------------------------------------------------ */

static void free_call(struct hfn_call *call)
{
    if (call->free_kept && call->kept)
        call->free_kept(call->kept);
    hfn_clear(&call->message.cells);
    hfn_clear(&call->texts);
    free(call);
}

static void free_message(struct hfn_message *message)
{
    if (message->call != NULL) {
        free_call(message->call);
        return;
    }
    hfn_clear(&message->cells);
    free(message);
}

/* Mutex held. False: nobody is there any more, and the message is still the caller's. */
static bool send(struct hfn_message *message)
{
    struct hfn_binding *binding = message->binding;
    if (binding->has_ended)
        return false;
    bool is_first = binding->first == NULL;
    message->next = NULL;
    *binding->last = message;
    binding->last = &message->next;
    if (is_first)
        (void)napi_call_threadsafe_function(binding->wake, NULL, napi_tsfn_nonblocking);
    return true;
}

void hfn_emit(struct hfn_binding *binding, struct hfn_cells *cells)
{
    struct hfn_message *message = cells->failed ? NULL : calloc(1, sizeof *message);
    if (message == NULL) {
        hfn_clear(cells);
        return;
    }
    message->binding = binding;
    message->cells = *cells;
    *cells = (struct hfn_cells){0};
    pthread_mutex_lock(&mutex);
    bool is_sent = send(message);
    pthread_mutex_unlock(&mutex);
    if (!is_sent)
        free_message(message);
}

static napi_value to_array(napi_env env, napi_value head, const struct hfn_cells *cells)
{
    napi_value array = NULL;
    size_t extra = head != NULL;
    if (napi_create_array_with_length(env, cells->count + extra, &array) != napi_ok)
        return NULL;
    if (head != NULL && napi_set_element(env, array, 0, head) != napi_ok)
        return NULL;
    for (size_t i = 0; i < cells->count; i++) {
        napi_handle_scope scope;
        if (napi_open_handle_scope(env, &scope) != napi_ok)
            return NULL;
        napi_value value = hfn_to_javascript(env, &cells->at[i]);
        bool is_set =
            value != NULL && napi_set_element(env, array, (uint32_t)(i + extra), value) == napi_ok;
        napi_close_handle_scope(env, scope);
        if (!is_set)
            return NULL;
    }
    return array;
}

/* What is too large for a string or an array of JavaScript leaves an exception, or nothing. */
static napi_value take_exception(napi_env env)
{
    napi_value exception = NULL;
    bool is_pending = false;
    if (napi_is_exception_pending(env, &is_pending) == napi_ok && is_pending)
        napi_get_and_clear_last_exception(env, &exception);
    if (exception == NULL)
        napi_get_undefined(env, &exception);
    return exception;
}

static napi_value to_reason(napi_env env, const hf_error *err)
{
    struct hfn_cells cells = {0};
    hfn_put_error(&cells, err);
    napi_value reason = cells.failed ? NULL : to_array(env, NULL, &cells);
    hfn_clear(&cells);
    return reason;
}

static void settle(napi_env env, struct hfn_call *call)
{
    napi_value result = NULL, external = NULL;
    if (call->made != NULL)
        external = hfn_handle_external(env, call->made);
    if (call->status == HF_OK && (call->made == NULL || external != NULL))
        result = to_array(env, external, &call->message.cells);
    else if (call->status != HF_OK)
        result = to_reason(env, &call->err);
    if (result != NULL && call->status == HF_OK)
        napi_resolve_deferred(env, call->deferred, result);
    else
        napi_reject_deferred(env, call->deferred, result ? result : take_exception(env));
}

static void deliver_event(napi_env env, napi_value dispatcher, struct hfn_message *message)
{
    napi_value array = to_array(env, NULL, &message->cells), self;
    if (array == NULL || napi_get_undefined(env, &self) != napi_ok)
        (void)take_exception(env);
    else if (napi_call_function(env, self, dispatcher, 1, &array, NULL) != napi_ok)
        napi_fatal_exception(env, take_exception(env));
}

void hfn_stay(napi_env env, struct hfn_binding *binding, bool stays)
{
    if (stays && binding->pending++ == 0)
        napi_ref_threadsafe_function(env, binding->wake);
    else if (!stays && --binding->pending == 0)
        napi_unref_threadsafe_function(env, binding->wake);
}

static void deliver(napi_env env, napi_value dispatcher, void *context, void *data)
{
    struct hfn_binding *binding = context;
    (void)data;
    if (env == NULL)
        return;
    pthread_mutex_lock(&mutex);
    struct hfn_message *message = binding->first;
    binding->first = NULL;
    binding->last = &binding->first;
    pthread_mutex_unlock(&mutex);
    while (message != NULL) {
        struct hfn_message *next = message->next;
        napi_handle_scope scope;
        napi_open_handle_scope(env, &scope);
        if (message->call == NULL) {
            deliver_event(env, dispatcher, message);
        } else {
            settle(env, message->call);
            hfn_stay(env, binding, false);
        }
        napi_close_handle_scope(env, scope);
        free_message(message);
        message = next;
    }
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* A callback of the store must not close it, which would wait for the callback. */
static void end_use_of(const struct hfn_call *call, struct hfn_handle *handle)
{
    if (!call->operation->starts) {
        end_use(handle);
        return;
    }
    pthread_mutex_lock(&mutex);
    bool is_last = handle->uses == 1;
    handle->uses -= !is_last;
    pthread_mutex_unlock(&mutex);
    if (!is_last)
        return;
    handle->dropped_next = NULL; /* it may have been one of several before, with a use of its own */
    drop_in_pool(handle);
}

/* Uses end before JavaScript hears of the result: when all its calls are done, nothing is in use. */
void hfn_call_end(struct hfn_call *call, hf_status status)
{
    struct hfn_binding *binding = call->message.binding;
    call->status = status;
    if (call->status == HF_OK && call->message.cells.failed)
        call->status = hfn_fail(&call->err, HF_NO_MEMORY, "out of memory");
    call->err.code = call->status;
    if (call->status != HF_OK && call->made != NULL) {
        end_use(call->made); /* no store is closed by that: the call uses it as well */
        call->made = NULL;
    }
    for (size_t i = 0; i < HFN_HANDLES_MAX; i++)
        if (call->handles[i] != NULL)
            end_use_of(call, call->handles[i]);
    if (call->operation->closes && call->handles[0] != NULL)
        end_use(call->handles[0]);
    pthread_mutex_lock(&mutex);
    bool is_sent = send(&call->message);
    pthread_mutex_unlock(&mutex);
    if (!is_sent) {
        if (call->made != NULL)
            end_use_of(call, call->made);
        free_call(call);
    }
    pthread_mutex_lock(&mutex);
    become_idle(binding);
    leave_binding(binding);
    pthread_mutex_unlock(&mutex);
}

static void run_call(struct hfn_task *task)
{
    struct hfn_call *call = (struct hfn_call *)task; /* its first member */
    hfn_call_end(call, call->operation->run(call));
}

static hf_status read_handle(napi_env env, napi_value value, enum hfn_kind kind,
                             struct hfn_handle **handle, hf_error *err)
{
    static const char *const closed[HFN_KINDS] = {
        [HFN_STORE] = "the store is closed",       [HFN_LOCK] = "the lock was released before",
        [HFN_TX] = "the transaction has ended",    [HFN_NETWORK] = "the network is closed",
        [HFN_CANCEL] = "the signal is not in use",
    };
    napi_valuetype type;
    void *data = NULL;
    if (napi_typeof(env, value, &type) == napi_ok && type == napi_external)
        napi_get_value_external(env, value, &data);
    struct hfn_handle *given = data;
    if (given == NULL || given->kind != kind)
        return kind == HFN_CANCEL && given == NULL ? HF_OK
                                                   : hfn_fail(err, HF_INVALID, "not such a handle");
    if (!given->is_open)
        return hfn_fail(err, HF_INVALID, closed[kind]);
    *handle = given;
    return HF_OK;
}

static hf_status read_arguments(napi_env env, struct hfn_call *call, napi_value arguments[3])
{
    const struct hfn_operation *operation = call->operation;
    hf_status status = HF_OK;
    for (uint32_t i = 0; i < HFN_HANDLES_MAX && status == HF_OK; i++) {
        napi_value value;
        if (operation->kinds[i] == HFN_NOTHING)
            continue;
        if (napi_get_element(env, arguments[0], i, &value) != napi_ok)
            return hfn_fail(&call->err, HF_INVALID, "the handles must be an array");
        status = read_handle(env, value, operation->kinds[i], &call->handles[i], &call->err);
    }
    if (status == HF_OK)
        status = hfn_read_numbers(env, arguments[1], call);
    if (status == HF_OK)
        status = hfn_read_cells(env, arguments[2], &call->texts, &call->err);
    if (status == HF_OK &&
        (call->number_count < operation->numbers || call->texts.count < operation->texts))
        status = hfn_fail(&call->err, HF_INVALID, "too few arguments");
    return status;
}

/* A lock needs its store; a transaction also what cancels it, and the lock that it is on. */
static hf_status prepare_made(struct hfn_call *call)
{
    enum hfn_kind kind = call->operation->makes;
    if (kind == HFN_NOTHING)
        return HF_OK;
    call->made = hfn_handle_create(call->message.binding, kind);
    if (call->made == NULL)
        return hfn_fail(&call->err, HF_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < (kind == HFN_TX ? HFN_HANDLES_MAX : 1); i++)
        call->made->needs[i] = call->handles[i];
    return HF_OK;
}

static void start(napi_env env, struct hfn_call *call)
{
    struct hfn_binding *binding = call->message.binding;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < HFN_HANDLES_MAX; i++) {
        if (call->handles[i] != NULL)
            call->handles[i]->uses++;
        if (call->made != NULL && call->made->needs[i] != NULL)
            call->made->needs[i]->uses++;
    }
    if (call->operation->closes && call->handles[0] != NULL)
        call->handles[0]->is_open = false;
    binding->busy++;
    binding->refs++;
    pthread_mutex_unlock(&mutex);
    hfn_stay(env, binding, true);
    call->task.run = run_call;
}

/* No thread can be started. No use is the last one here: JavaScript has the handles still. */
static void take_back(napi_env env, struct hfn_call *call)
{
    struct hfn_binding *binding = call->message.binding;
    for (size_t i = 0; i < HFN_HANDLES_MAX; i++)
        if (call->handles[i] != NULL)
            end_use(call->handles[i]);
    if (call->made != NULL)
        end_use(call->made);
    call->made = NULL;
    hfn_stay(env, binding, false);
    pthread_mutex_lock(&mutex);
    become_idle(binding);
    leave_binding(binding);
    pthread_mutex_unlock(&mutex);
    call->status = hfn_fail(&call->err, HF_SYSTEM, "the system starts no thread for another call");
}

napi_value hfn_call(napi_env env, struct hfn_binding *binding,
                    const struct hfn_operation *operation, napi_value arguments[3])
{
    napi_value promise = NULL;
    struct hfn_call *call = calloc(1, sizeof *call);
    if (call == NULL || napi_create_promise(env, &call->deferred, &promise) != napi_ok) {
        free(call);
        napi_throw_error(env, NULL, "out of memory");
        return NULL;
    }
    call->operation = operation;
    call->message.call = call;
    call->message.binding = binding;
    call->status = read_arguments(env, call, arguments);
    if (call->status == HF_OK)
        call->status = prepare_made(call);
    if (call->status == HF_OK) {
        start(env, call);
        if (operation->starts) {
            hf_status status = operation->run(call);
            if (status != HF_OK)
                hfn_call_end(call, status);
            return promise;
        }
        /* From here on it is the pool's, and may be gone already. */
        if (operation->closes) {
            hfn_pool_run_surely(&call->task);
            return promise;
        }
        if (hfn_pool_run(&call->task))
            return promise;
        take_back(env, call);
    }
    settle(env, call);
    free_call(call);
    return promise;
}

/* ---- The environment ------------------------------------------------------------------------- */

static void await_calm(struct hfn_binding *binding)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_SECONDS;
    pthread_mutex_lock(&mutex);
    int failed = 0;
    while (binding->busy > 0 && failed == 0)
        failed = pthread_cond_timedwait(&calmer, &mutex, &until);
    pthread_mutex_unlock(&mutex);
}

/* All that JavaScript has open, those first that are made of others. */
static struct hfn_handle *take_all(struct hfn_binding *binding)
{
    static const enum hfn_kind order[] = {HFN_STORE, HFN_CANCEL, HFN_NETWORK, HFN_LOCK, HFN_TX};
    struct hfn_handle *all = NULL;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        for (struct hfn_handle *handle = binding->handles; handle; handle = handle->next)
            if (handle->kind == order[i] && take_from_javascript(handle)) {
                handle->dropped_next = all;
                all = handle;
            }
    pthread_mutex_unlock(&mutex);
    return all;
}

/*
 * The process or the worker ends: cancels what runs and frees what is held. Calls that are not done
 * in time free themselves when they are. No message can come from here on, and Node has not begun
 * to take its own part down: hooks run in the opposite order.
 */
static void end(void *data)
{
    struct hfn_binding *binding = data;
    pthread_mutex_lock(&mutex);
    binding->has_ended = true;
    struct hfn_message *message = binding->first;
    binding->first = NULL;
    pthread_mutex_unlock(&mutex);
    while (message != NULL) {
        struct hfn_message *next = message->next;
        if (message->call != NULL && message->call->made != NULL)
            message->call->made->is_open = true; /* to be taken with the others */
        free_message(message);
        message = next;
    }
    struct hfn_handle *all = take_all(binding);
    for (struct hfn_handle *handle = all; handle != NULL; handle = handle->dropped_next)
        if (handle->kind == HFN_CANCEL)
            hf.cancel_trigger(handle->content);
        else if (handle->kind == HFN_STORE)
            hf.store_interrupt(handle->content);
    if (all != NULL)
        drop_in_pool(all);
    await_calm(binding);
    pthread_mutex_lock(&mutex);
    leave_binding(binding);
    pthread_mutex_unlock(&mutex);
}

unsigned hfn_references(const struct hfn_binding *binding)
{
    pthread_mutex_lock(&mutex);
    unsigned count = binding->refs;
    pthread_mutex_unlock(&mutex);
    return count;
}

struct hfn_binding *hfn_binding_create(napi_env env, napi_value dispatcher)
{
    napi_value name;
    struct hfn_binding *binding = calloc(1, sizeof *binding);
    if (binding == NULL)
        return NULL;
    binding->refs = 1;
    binding->last = &binding->first;
    if (napi_create_string_utf8(env, "holdfast", NAPI_AUTO_LENGTH, &name) != napi_ok ||
        napi_create_threadsafe_function(env, dispatcher, NULL, name, 0, 1, NULL, NULL, binding,
                                        deliver, &binding->wake) != napi_ok ||
        napi_unref_threadsafe_function(env, binding->wake) != napi_ok ||
        napi_add_env_cleanup_hook(env, end, binding) != napi_ok) {
        free(binding);
        return NULL;
    }
    return binding;
}
