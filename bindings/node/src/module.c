/*
 * What JavaScript sees of the addon: start(dispatcher), which gives an object with one function for
 * each operation, and a few that do not block.
 */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

struct function {
    struct hfn_binding *binding;
    const struct hfn_operation *operation;
};

static void free_function(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    free(data);
}

/* (handles, numbers, texts) */
static napi_value call_operation(napi_env env, napi_callback_info info)
{
    napi_value arguments[3];
    size_t count = 3;
    void *data = NULL;
    if (napi_get_cb_info(env, info, &count, arguments, NULL, &data) != napi_ok)
        return NULL;
    const struct function *function = data;
    return hfn_call(env, function->binding, function->operation, arguments);
}

static bool add_function(napi_env env, napi_value object, const char *name, napi_callback callback,
                         struct hfn_binding *binding, const struct hfn_operation *operation)
{
    napi_value value;
    struct function *function = malloc(sizeof *function);
    if (function == NULL)
        return false;
    *function = (struct function){binding, operation};
    if (napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, function, &value) != napi_ok ||
        napi_add_finalizer(env, value, function, free_function, NULL, NULL) != napi_ok) {
        free(function);
        return false;
    }
    return napi_set_named_property(env, object, name, value) == napi_ok;
}

static struct hfn_handle *get_handle(napi_env env, napi_callback_info info)
{
    napi_value argument;
    size_t count = 1;
    void *data = NULL;
    napi_valuetype type = napi_undefined;
    if (napi_get_cb_info(env, info, &count, &argument, NULL, NULL) == napi_ok &&
        napi_typeof(env, argument, &type) == napi_ok && type == napi_external)
        napi_get_value_external(env, argument, &data);
    return data;
}

/* Ends waits: close(handle) alone lets them go on. */
static napi_value interrupt(napi_env env, napi_callback_info info)
{
    const struct hfn_handle *handle = get_handle(env, info);
    if (handle != NULL && handle->is_open && handle->kind == HFN_CANCEL)
        hf.cancel_trigger(handle->content);
    else if (handle != NULL && handle->is_open && handle->kind == HFN_STORE)
        hf.store_interrupt(handle->content);
    return NULL;
}

static napi_value close_handle(napi_env env, napi_callback_info info)
{
    struct hfn_handle *handle = get_handle(env, info);
    if (handle != NULL)
        hfn_handle_close(handle);
    return NULL;
}

/* (boolean): a lock is held, or is not any more */
static napi_value stay(napi_env env, napi_callback_info info)
{
    napi_value argument;
    size_t count = 1;
    void *data = NULL;
    bool stays = false;
    if (napi_get_cb_info(env, info, &count, &argument, NULL, &data) == napi_ok &&
        napi_get_value_bool(env, argument, &stays) == napi_ok)
        hfn_stay(env, ((const struct function *)data)->binding, stays);
    return NULL;
}

static napi_value count_references(napi_env env, napi_callback_info info)
{
    napi_value value = NULL;
    size_t count = 0;
    void *data = NULL;
    if (napi_get_cb_info(env, info, &count, NULL, NULL, &data) == napi_ok)
        napi_create_uint32(env, hfn_references(((const struct function *)data)->binding), &value);
    return value;
}

static napi_value create_cancel(napi_env env, napi_callback_info info)
{
    size_t count = 0;
    void *data = NULL;
    hf_error err = {0};
    hf_cancel *cancel = NULL;
    if (napi_get_cb_info(env, info, &count, NULL, NULL, &data) != napi_ok)
        return NULL;
    if (hf.cancel_create(&cancel, &err) != HF_OK) {
        napi_throw_error(env, hf.status_name(err.code), err.message);
        return NULL;
    }
    struct hfn_handle *handle =
        hfn_handle_create(((const struct function *)data)->binding, HFN_CANCEL);
    if (handle == NULL) {
        hf.cancel_free(cancel);
        napi_throw_error(env, "HF_NO_MEMORY", "out of memory");
        return NULL;
    }
    handle->content = cancel;
    return hfn_handle_external(env, handle);
}

/* (derivation, Buffer): a bigint, or the message of why not */
static napi_value derive_key(napi_env env, napi_callback_info info)
{
    napi_value arguments[2], value = NULL;
    size_t count = 2, size = 0;
    int32_t derivation = -1;
    void *label = NULL;
    int64_t key = 0;
    hf_error err = {0};
    if (napi_get_cb_info(env, info, &count, arguments, NULL, NULL) != napi_ok ||
        napi_get_value_int32(env, arguments[0], &derivation) != napi_ok ||
        napi_get_buffer_info(env, arguments[1], &label, &size) != napi_ok) {
        napi_throw_type_error(env, NULL, "derive takes a number and a Buffer");
        return NULL;
    }
    if (hf.key_derive((hf_derivation)derivation, label ? label : "", size, &key, &err) == HF_OK)
        napi_create_bigint_int64(env, key, &value);
    else
        napi_create_string_utf8(env, err.message, NAPI_AUTO_LENGTH, &value);
    return value;
}

/* Adds the names of derivations, and whether the keys of each are two int4. */
static bool add_derivations(napi_env env, napi_value object)
{
    napi_value names, pairs, name, is_pair;
    if (napi_create_array(env, &names) != napi_ok || napi_create_array(env, &pairs) != napi_ok)
        return false;
    for (uint32_t i = 0; hf.derivation_name((hf_derivation)i) != NULL; i++) {
        bool in_pairs = hf.derivation_space((hf_derivation)i) == HF_PAIR;
        if (napi_create_string_utf8(env, hf.derivation_name((hf_derivation)i), NAPI_AUTO_LENGTH,
                                    &name) != napi_ok ||
            napi_set_element(env, names, i, name) != napi_ok ||
            napi_get_boolean(env, in_pairs, &is_pair) != napi_ok ||
            napi_set_element(env, pairs, i, is_pair) != napi_ok)
            return false;
    }
    return napi_set_named_property(env, object, "derivations", names) == napi_ok &&
           napi_set_named_property(env, object, "pairs", pairs) == napi_ok;
}

static bool add_all(napi_env env, napi_value object, struct hfn_binding *binding)
{
    static const struct hfn_operation *const rooms[] = {
        hfn_store_operations, hfn_lock_operations,   hfn_tx_operations,
        hfn_table_operations, hfn_ledger_operations, NULL,
    };
    for (size_t room = 0; rooms[room] != NULL; room++)
        for (const struct hfn_operation *one = rooms[room]; one->name != NULL; one++)
            if (!add_function(env, object, one->name, call_operation, binding, one))
                return false;
    napi_value version;
    return add_function(env, object, "interrupt", interrupt, binding, NULL) &&
           add_function(env, object, "close", close_handle, binding, NULL) &&
           add_function(env, object, "stay", stay, binding, NULL) &&
           add_function(env, object, "references", count_references, binding, NULL) &&
           add_function(env, object, "cancel", create_cancel, binding, NULL) &&
           add_function(env, object, "derive", derive_key, binding, NULL) &&
           napi_create_string_utf8(env, hf.version(), NAPI_AUTO_LENGTH, &version) == napi_ok &&
           napi_set_named_property(env, object, "version", version) == napi_ok &&
           add_derivations(env, object);
}

static napi_value start(napi_env env, napi_callback_info info)
{
    napi_value dispatcher, object = NULL;
    size_t count = 1;
    if (napi_get_cb_info(env, info, &count, &dispatcher, NULL, NULL) != napi_ok)
        return NULL;
    struct hfn_binding *binding = hfn_binding_create(env, dispatcher);
    if (binding == NULL || napi_create_object(env, &object) != napi_ok ||
        !add_all(env, object, binding)) {
        napi_throw_error(env, NULL, "cannot start the addon of Holdfast");
        return NULL;
    }
    return object;
}

NAPI_MODULE_INIT()
{
    const char *why;
    napi_value function;
    if (!hfn_load_library(&why))
        napi_throw_error(env, "HF_CONFIG", why);
    else if (napi_create_function(env, "start", NAPI_AUTO_LENGTH, start, NULL, &function) ==
                 napi_ok &&
             napi_set_named_property(env, exports, "start", function) == napi_ok)
        return exports;
    return NULL;
}
