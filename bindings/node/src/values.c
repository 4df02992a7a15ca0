/* Values of JavaScript as cells, and back. */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

struct hfn_memory {
    struct hfn_memory *next;
    char data[];
};

void *hfn_allocate(struct hfn_cells *cells, size_t size)
{
    struct hfn_memory *piece = calloc(1, sizeof *piece + size);
    if (piece == NULL) {
        cells->failed = true;
        return NULL;
    }
    piece->next = cells->memory;
    cells->memory = piece;
    return piece->data;
}

void hfn_clear(struct hfn_cells *cells)
{
    while (cells->memory != NULL) {
        struct hfn_memory *piece = cells->memory;
        cells->memory = piece->next;
        free(piece);
    }
    free(cells->at);
    *cells = (struct hfn_cells){0};
}

static void put(struct hfn_cells *cells, struct hfn_cell cell)
{
    if (cells->count == cells->room) {
        size_t room = cells->room ? cells->room * 2 : 8;
        struct hfn_cell *grown = realloc(cells->at, room * sizeof *grown);
        if (grown == NULL) {
            cells->failed = true;
            return;
        }
        cells->at = grown;
        cells->room = room;
    }
    cells->at[cells->count++] = cell;
}

void hfn_put_bytes(struct hfn_cells *cells, const char *data, size_t size, bool is_text)
{
    put(cells, (struct hfn_cell){.type = data == NULL ? HFN_NULL
                                         : is_text    ? HFN_TEXT
                                                      : HFN_BYTES,
                                 .data = data,
                                 .size = size});
}

void hfn_put_text(struct hfn_cells *cells, const char *text)
{
    hfn_put_bytes(cells, text, text ? strlen(text) : 0, true);
}

void hfn_put_copy(struct hfn_cells *cells, const char *text, size_t size)
{
    char *copy = text ? hfn_allocate(cells, size + 1) : NULL;
    if (copy != NULL)
        memcpy(copy, text, size);
    hfn_put_bytes(cells, copy, size, true);
}

void hfn_put_bigint(struct hfn_cells *cells, int64_t value)
{
    put(cells, (struct hfn_cell){.type = HFN_BIGINT, .number = value});
}

void hfn_put_number(struct hfn_cells *cells, int64_t value)
{
    put(cells, (struct hfn_cell){.type = HFN_NUMBER, .number = value});
}

void hfn_put_boolean(struct hfn_cells *cells, bool value)
{
    put(cells, (struct hfn_cell){.type = HFN_BOOLEAN, .number = value});
}

void hfn_put_error(struct hfn_cells *cells, const hf_error *err)
{
    hfn_put_number(cells, err->code);
    hfn_put_text(cells, hf.status_name(err->code));
    hfn_put_copy(cells, err->message, strlen(err->message));
    hfn_put_copy(cells, err->sqlstate, strlen(err->sqlstate));
    hfn_put_copy(cells, err->hint, strlen(err->hint));
    hfn_put_number(cells, err->position);
}

napi_value hfn_to_javascript(napi_env env, const struct hfn_cell *cell)
{
    napi_value value = NULL;
    napi_status status = napi_ok;
    switch (cell->type) {
    case HFN_NULL: status = napi_get_null(env, &value); break;
    case HFN_TEXT: status = napi_create_string_utf8(env, cell->data, cell->size, &value); break;
    case HFN_BYTES:
        status = napi_create_buffer_copy(env, cell->size, cell->data, NULL, &value);
        break;
    case HFN_BIGINT: status = napi_create_bigint_int64(env, cell->number, &value); break;
    case HFN_NUMBER: status = napi_create_int64(env, cell->number, &value); break;
    case HFN_BOOLEAN: status = napi_get_boolean(env, cell->number != 0, &value); break;
    }
    return status == napi_ok ? value : NULL;
}

static hf_status read_text(napi_env env, napi_value value, struct hfn_cells *cells)
{
    size_t size = 0;
    if (napi_get_value_string_utf8(env, value, NULL, 0, &size) != napi_ok)
        return HF_INVALID;
    char *copy = hfn_allocate(cells, size + 1);
    if (copy == NULL || napi_get_value_string_utf8(env, value, copy, size + 1, &size) != napi_ok)
        return HF_NO_MEMORY;
    hfn_put_bytes(cells, copy, size, true);
    return HF_OK;
}

static hf_status read_bytes(napi_env env, napi_value value, struct hfn_cells *cells)
{
    void *data = NULL;
    size_t size = 0;
    if (napi_get_buffer_info(env, value, &data, &size) != napi_ok)
        return HF_INVALID;
    char *copy = hfn_allocate(cells, size + 1);
    if (copy == NULL)
        return HF_NO_MEMORY;
    if (size > 0)
        memcpy(copy, data, size);
    hfn_put_bytes(cells, copy, size, false);
    return HF_OK;
}

/* Strings, Buffers and null. */
hf_status hfn_read_cells(napi_env env, napi_value array, struct hfn_cells *cells, hf_error *err)
{
    uint32_t count = 0;
    hf_status status = napi_get_array_length(env, array, &count) == napi_ok ? HF_OK : HF_INVALID;
    for (uint32_t i = 0; i < count && status == HF_OK; i++) {
        napi_value value;
        napi_valuetype type = napi_undefined;
        bool is_buffer = false;
        if (napi_get_element(env, array, i, &value) != napi_ok ||
            napi_typeof(env, value, &type) != napi_ok ||
            napi_is_buffer(env, value, &is_buffer) != napi_ok)
            status = HF_INVALID;
        else if (type == napi_string)
            status = read_text(env, value, cells);
        else if (is_buffer)
            status = read_bytes(env, value, cells);
        else if (type == napi_null)
            hfn_put_bytes(cells, NULL, 0, true);
        else
            status = HF_INVALID;
    }
    if (status == HF_INVALID)
        return hfn_fail(err, status, "an argument must be a string, a Buffer or null");
    if (status == HF_NO_MEMORY || cells->failed)
        return hfn_fail(err, HF_NO_MEMORY, "out of memory");
    return HF_OK;
}

static bool read_number(napi_env env, napi_value value, int64_t *number)
{
    napi_valuetype type;
    bool is_exact = true;
    if (napi_typeof(env, value, &type) != napi_ok)
        return false;
    if (type == napi_bigint)
        return napi_get_value_bigint_int64(env, value, number, &is_exact) == napi_ok && is_exact;
    if (type == napi_boolean) {
        bool flag = false;
        napi_status status = napi_get_value_bool(env, value, &flag);
        *number = flag;
        return status == napi_ok;
    }
    return type == napi_number && napi_get_value_int64(env, value, number) == napi_ok;
}

/* Numbers, bigints of 64 bits and booleans. */
hf_status hfn_read_numbers(napi_env env, napi_value array, struct hfn_call *call)
{
    uint32_t count = 0;
    if (napi_get_array_length(env, array, &count) != napi_ok)
        return hfn_fail(&call->err, HF_INVALID, "the numbers must be an array");
    call->numbers = hfn_allocate(&call->texts, (count + 1) * sizeof *call->numbers);
    if (call->numbers == NULL)
        return hfn_fail(&call->err, HF_NO_MEMORY, "out of memory");
    call->number_count = count;
    for (uint32_t i = 0; i < count; i++) {
        napi_value value;
        if (napi_get_element(env, array, i, &value) != napi_ok ||
            !read_number(env, value, &call->numbers[i]))
            return hfn_fail(&call->err, HF_INVALID, "a number is not one of 64 bits");
    }
    return HF_OK;
}
