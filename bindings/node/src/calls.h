/*
 * How a call of JavaScript becomes one of libholdfast: its arguments are copied in the thread of
 * JavaScript, a thread of the pool makes the call, and its result goes back by a queue that one
 * thread-safe function empties. Locks are waited for without a thread: see hfn_operation.starts. Operations know nothing of Node, and the rest nothing of locks.
 */
#ifndef HOLDFAST_NODE_CALLS_H
#define HOLDFAST_NODE_CALLS_H

#define NAPI_VERSION 8
#include <node_api.h>

#include "library.h"
#include "pool.h"

enum { HFN_HANDLES_MAX = 2 };

enum hfn_kind { HFN_NOTHING = 0, HFN_STORE, HFN_LOCK, HFN_TX, HFN_NETWORK, HFN_CANCEL, HFN_KINDS };

struct hfn_binding;

/*
 * Something of libholdfast that JavaScript refers to. Its content is freed, by a thread of the
 * pool, when nothing uses it: JavaScript until it closes it, the calls that run with it, and
 * handles that need it, as a lock needs its store. The struct lasts until JavaScript forgets it.
 */
struct hfn_handle {
    struct hfn_task drop;
    struct hfn_binding *binding;
    struct hfn_handle *next, *previous; /* of the binding */
    struct hfn_handle *dropped_next;    /* one task may drop several */
    struct hfn_handle *needs[HFN_HANDLES_MAX];
    enum hfn_kind kind;
    unsigned uses;
    bool is_open;     /* JavaScript may use it */
    bool is_referred; /* JavaScript still knows it */
    void *content;    /* hf_store, hf_lock, ... */
    void *also;       /* hf_registry of an hf_store, database of an hf_tx, hfn_call of a wait */
    int64_t event;    /* by which JavaScript knows whom an event is for */
};

/* A value that was given or is returned. */
struct hfn_cell {
    enum { HFN_NULL, HFN_TEXT, HFN_BYTES, HFN_BIGINT, HFN_NUMBER, HFN_BOOLEAN } type;
    const char *data;
    size_t size;
    int64_t number;
};

/* Cells with the memory that they point to. */
struct hfn_cells {
    struct hfn_cell *at;
    size_t count, room;
    struct hfn_memory *memory;
    bool failed; /* no memory */
};

/* What goes to JavaScript: the result of a call, or an event. */
struct hfn_message {
    struct hfn_message *next;
    struct hfn_binding *binding;
    struct hfn_call *call; /* NULL: an event */
    struct hfn_cells cells;
};

struct hfn_call {
    struct hfn_task task;
    struct hfn_message message; /* its cells are the result */
    const struct hfn_operation *operation;
    napi_deferred deferred;
    struct hfn_handle *handles[HFN_HANDLES_MAX];
    struct hfn_handle *made; /* without content if the operation has failed */
    int64_t *numbers;
    size_t number_count;
    struct hfn_cells texts;
    hf_error err;
    hf_status status;
    void *kept; /* owns what cells point to, until they have been delivered */
    void (*free_kept)(void *kept);
};

struct hfn_operation {
    const char *name;
    hf_status (*run)(struct hfn_call *call);
    enum hfn_kind kinds[HFN_HANDLES_MAX]; /* HFN_CANCEL may be null */
    enum hfn_kind makes;
    bool closes;           /* handles[0]: the last call with it */
    bool starts;           /* run does not block, and hfn_call_end comes later unless it fails */
    size_t numbers, texts; /* at least so many */
};

/* Arguments. */
#define HFN_CONTENT(call, index) ((call)->handles[index] ? (call)->handles[index]->content : NULL)
const char *hfn_text(const struct hfn_call *call, size_t index); /* NULL: null */

/* Results, one after the other. Text is not copied, but by hfn_put_copy. */
void hfn_put_text(struct hfn_cells *cells, const char *text);
void hfn_put_copy(struct hfn_cells *cells, const char *text, size_t size);
void hfn_put_bytes(struct hfn_cells *cells, const char *data, size_t size, bool is_text);
void hfn_put_bigint(struct hfn_cells *cells, int64_t value);
void hfn_put_number(struct hfn_cells *cells, int64_t value);
void hfn_put_boolean(struct hfn_cells *cells, bool value);
void hfn_put_error(struct hfn_cells *cells, const hf_error *err); /* six cells */
void *hfn_allocate(struct hfn_cells *cells, size_t size);         /* zeroed; NULL: no memory */
void hfn_clear(struct hfn_cells *cells);

/* Calls the dispatcher of JavaScript with the cells, which are cleared. Any thread. */
void hfn_emit(struct hfn_binding *binding, struct hfn_cells *cells);

hf_status hfn_fail(hf_error *err, hf_status status, const char *message);

/* The last has no name. */
extern const struct hfn_operation hfn_store_operations[], hfn_lock_operations[],
    hfn_tx_operations[], hfn_table_operations[], hfn_ledger_operations[];

/* Frees what the handle stands for, if anything: hf_lock_free and its like, which may block. */
void hfn_free_content(struct hfn_handle *handle);

/* values.c: between cells and values of JavaScript. */
napi_value hfn_to_javascript(napi_env env, const struct hfn_cell *cell);
hf_status hfn_read_cells(napi_env env, napi_value array, struct hfn_cells *cells, hf_error *err);
hf_status hfn_read_numbers(napi_env env, napi_value array, struct hfn_call *call);

/* calls.c */
struct hfn_binding *hfn_binding_create(napi_env env, napi_value dispatcher);
/* Calls operation with (handles, numbers, texts); gives a promise of [handle, cells...]. */
napi_value hfn_call(napi_env env, struct hfn_binding *binding,
                    const struct hfn_operation *operation, napi_value arguments[3]);
/* How many calls and handles there are, with one for the environment: tests look for leaks by it. */
unsigned hfn_references(const struct hfn_binding *binding);
/* The end of a call that was started, in a thread of libholdfast. */
void hfn_call_end(struct hfn_call *call, hf_status status);
/* Something that Node stays for, as for a call, has come or gone. */
void hfn_stay(napi_env env, struct hfn_binding *binding, bool stays);
/* A handle without content, not open yet; NULL: no memory. */
struct hfn_handle *hfn_handle_create(struct hfn_binding *binding, enum hfn_kind kind);
napi_value hfn_handle_external(napi_env env, struct hfn_handle *handle);
/* Ends what JavaScript has of it; the content goes when its calls are done. */
void hfn_handle_close(struct hfn_handle *handle);

#endif
