/* Operations: locks. */
#include "operations.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

int64_t hfn_fresh_owner(void)
{
    static atomic_int_least64_t last = INT64_C(1) << 61;
    return atomic_fetch_add(&last, 1) + 1;
}

static void tell(const struct hfn_handle *lock, const char *what, const hf_error *why)
{
    struct hfn_cells cells = {0};
    hfn_put_text(&cells, what);
    hfn_put_number(&cells, lock->event);
    hfn_put_error(&cells, why);
    hfn_emit(lock->binding, &cells);
}

static void tell_lost(hf_lock *lock, const hf_error *why, void *arg)
{
    (void)lock;
    tell(arg, "lost", why);
}

static void tell_asked(hf_lock *lock, const hf_error *who, void *arg)
{
    (void)lock;
    tell(arg, "asked", who);
}

static void tell_wait(const hf_error *why, void *arg)
{
    tell(arg, "wait", why);
}

hf_status hfn_read_targets(struct hfn_call *call, size_t numbers, size_t texts, hf_target **targets,
                           size_t *count)
{
    size_t wanted = call->texts.count - texts;
    hf_target *made = hfn_allocate(&call->texts, (wanted + 1) * sizeof *made);
    if (made == NULL)
        return hfn_fail(&call->err, HF_NO_MEMORY, "out of memory");
    if (call->number_count < numbers + wanted * HFN_TARGET_NUMBERS)
        return hfn_fail(&call->err, HF_INVALID, "too few numbers for the targets");
    for (size_t i = 0; i < wanted; i++) {
        const int64_t *number = &call->numbers[numbers + i * HFN_TARGET_NUMBERS];
        const struct hfn_cell *label = &call->texts.at[texts + i];
        made[i] = (hf_target){.label = label->data,
                              .label_size = label->size,
                              .derivation = (hf_derivation)number[0],
                              .space = (hf_space)number[1],
                              .key = number[2],
                              .pair = {(int32_t)number[3], (int32_t)number[4]}};
    }
    *targets = made;
    *count = wanted;
    return HF_OK;
}

void hfn_read_spec(struct hfn_call *call, size_t traceparent, hf_lock_spec *spec)
{
    const int64_t *numbers = call->numbers;
    *spec = (hf_lock_spec)HF_LOCK_SPEC_INIT;
    call->made->event = numbers[0];
    call->made->also = call;
    spec->mode = (hf_mode)numbers[1];
    spec->wait_ms = numbers[2];
    spec->flags = (unsigned)numbers[3];
    spec->slots = (unsigned)numbers[4];
    spec->lifetime = numbers[7] ? HF_LEASE : HF_SESSION;
    spec->lease_ms = (int)numbers[7];
    spec->owner = numbers[5] ? numbers[5] : hfn_fresh_owner();
    spec->on_lost = tell_lost;
    spec->on_wait = numbers[6] ? tell_wait : NULL;
    spec->on_yield = numbers[8] ? tell_asked : NULL;
    spec->arg = call->made;
    spec->cancel = HFN_CONTENT(call, 1);
    spec->traceparent = hfn_text(call, traceparent);
}

/* Of what the lock is known by: key, token or null, slot, traceparent. */
static hf_status put_lock(struct hfn_call *call, hf_lock *lock)
{
    int64_t token = 0;
    hf_error ignored = {0};
    const char *traceparent = hf.lock_traceparent(lock);
    call->made->content = lock;
    hfn_put_bigint(&call->message.cells, hf.lock_key(lock));
    if (hf.lock_token(lock, &token, &ignored) == HF_OK)
        hfn_put_bigint(&call->message.cells, token);
    else
        hfn_put_text(&call->message.cells, NULL);
    hfn_put_number(&call->message.cells, hf.lock_slot(lock));
    hfn_put_copy(&call->message.cells, traceparent, strlen(traceparent));
    return HF_OK;
}

void hfn_lock_ended(hf_lock *lock, hf_status status, const hf_error *why, void *arg)
{
    struct hfn_handle *made = arg;
    struct hfn_call *call = made->also;
    made->also = NULL;
    if (status == HF_OK)
        status = put_lock(call, lock);
    else
        call->err = *why;
    hfn_call_end(call, status);
}

/* texts: traceparent; then the labels */
static hf_status lock_acquire(struct hfn_call *call)
{
    hf_lock_spec spec;
    hf_target *targets = NULL;
    size_t count = 0;
    hf_status status = hfn_read_targets(call, HFN_SPEC_NUMBERS, 1, &targets, &count);
    if (status != HF_OK)
        return status;
    hfn_read_spec(call, 0, &spec);
    spec.targets = targets;
    spec.target_count = count;
    return hf.lock_start(HFN_CONTENT(call, 0), &spec, hfn_lock_ended, &call->err);
}

static hf_status lock_release(struct hfn_call *call)
{
    return hf.lock_release(HFN_CONTENT(call, 0), &call->err);
}

/* texts: event, detail */
static hf_status lock_note(struct hfn_call *call)
{
    hf.lock_note(HFN_CONTENT(call, 0), hfn_text(call, 0), hfn_text(call, 1));
    return HF_OK;
}

/* The registry of the store says how, where the target does not. */
static hf_status resolve_key(struct hfn_call *call)
{
    const hf_registry *registry = hf.store_registry(HFN_CONTENT(call, 0));
    const hf_registry_entry *entry = NULL;
    hf_target *targets = NULL, target = {0};
    size_t count = 0;
    hf_status status = hfn_read_targets(call, 0, 0, &targets, &count);
    if (status == HF_OK && count != 1)
        status = hfn_fail(&call->err, HF_INVALID, "one label has one key");
    if (status != HF_OK || targets == NULL)
        return status;
    target = targets[0];
    if (registry != NULL && target.label != NULL && target.derivation == HF_SHA256 &&
        target.space == HF_BIGINT)
        status = hf.registry_resolve(registry, target.label, target.label_size, &target, &entry,
                                     &call->err);
    if (status == HF_OK && target.space == HF_BIGINT && target.derivation != HF_FIXED) {
        status = hf.key_derive(target.derivation, target.label, target.label_size, &target.key,
                               &call->err);
        target.space = hf.derivation_space(target.derivation);
        target.pair[0] = (int32_t)(target.key >> 32);
        target.pair[1] = (int32_t)(target.key & 0xffffffff);
    }
    hfn_put_boolean(&call->message.cells, target.space == HF_PAIR);
    hfn_put_bigint(&call->message.cells, target.key);
    hfn_put_number(&call->message.cells, target.pair[0]);
    hfn_put_number(&call->message.cells, target.pair[1]);
    return status;
}

/* texts: the name of an entry, then "NAME=VALUE" for each of its placeholders */
static hf_status fill_label(struct hfn_call *call)
{
    const hf_registry *registry = hf.store_registry(HFN_CONTENT(call, 0));
    size_t count = call->texts.count - 1;
    char *label = NULL;
    if (registry == NULL)
        return hfn_fail(&call->err, HF_INVALID, "the store has no registry");
    const hf_registry_entry *entry = hf.registry_find(registry, hfn_text(call, 0));
    if (entry == NULL)
        return hfn_fail(&call->err, HF_INVALID, "no lock of the registry has this name");
    const char **values = hfn_allocate(&call->texts, (count + 1) * sizeof *values);
    if (values == NULL)
        return hfn_fail(&call->err, HF_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++)
        values[i] = hfn_text(call, i + 1);
    hf_status status = hf.registry_fill(entry, values, count, &label, &call->err);
    if (status == HF_OK)
        hfn_put_copy(&call->message.cells, label, strlen(label));
    free(label);
    return status;
}

const struct hfn_operation hfn_lock_operations[] = {
    {.name = "lockAcquire",
     .run = lock_acquire,
     .kinds = {HFN_STORE, HFN_CANCEL},
     .makes = HFN_LOCK,
     .starts = true,
     .numbers = HFN_SPEC_NUMBERS,
     .texts = 2},
    {.name = "lockRelease", .run = lock_release, .kinds = {HFN_LOCK}, .closes = true},
    {.name = "lockNote", .run = lock_note, .kinds = {HFN_LOCK}, .texts = 2},
    {.name = "fillLabel", .run = fill_label, .kinds = {HFN_STORE}, .texts = 1},
    {.name = "resolveKey", .run = resolve_key, .kinds = {HFN_STORE}, .texts = 1},
    {.name = NULL},
};
