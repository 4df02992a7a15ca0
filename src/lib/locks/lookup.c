/*
 * Keys that are looked up in the store's records instead of computed. A key that was seen earlier
 * may be out of date, so it is asked for again once the lock is held: in the message that acquires
 * it, where the backend can, else in one of its own. After that it cannot change, because a change
 * needs the same lock.
 */
#include "lib/locks/engine.h"

#include <stdlib.h>

#include "base/process.h"

/* ---- what other rooms may know of a store ---------------------------------------------------- */

hf_status hf__check_process(const hf_store *store, hf_error *err)
{
    if (store->pid == hf__own_pid())
        return HF_OK;
    hf_status status = hf__fail(
        err, HF_FORKED, "this store was opened by process %d, before a fork", (int)store->pid);
    hf__hint(err, "close it in the child, and open one there if the child needs locks");
    return status;
}

bool hf_store_is_local(const hf_store *store)
{
    return store->backend->local;
}

const char *hf_store_name(const hf_store *store)
{
    return store->backend->name;
}

const char *hf__store_application(const hf_store *store)
{
    return store->application;
}

bool hf__store_reads_records(const hf_store *store)
{
    return atomic_load(&store->backend->readable);
}

const char *hf__store_host(const hf_store *store)
{
    return store->host;
}

hf__lookup *hf__store_lookup(const hf_store *store)
{
    return store->lookup;
}

bool hf__store_is_borrowed(const hf_store *store)
{
    return store->backend->borrowed;
}

hf_status hf__store_ask(hf_store *store, hf__question *question, hf_error *err)
{
    hf__backend *backend = store->backend;
    if (!backend->ops->ask)
        return hf__fail(err, HF_INVALID, "a borrowed connection answers no questions");
    return backend->ops->ask(backend, question, err);
}

/* ---- questions about keys -------------------------------------------------------------------- */

static size_t count_looked_up(const hf__claim *claims, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += claims[i].derivation == HF_MINTED;
    return found;
}

hf_status hf__lookup_prepare(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                             hf_error *err)
{
    hf__lookup *lookup = acquiring->store->lookup;
    const hf__lock_extra *extra = acquiring->extra;
    size_t others = extra ? extra->question_count : 0, own = count_looked_up(claims, count);
    hf_status status = HF_OK;

    if (own == 0)
        return HF_OK;
    acquiring->questions = calloc(own + others, sizeof(hf__question *));
    if (!acquiring->questions)
        return hf__no_memory(err);
    for (size_t i = 0; status == HF_OK && i < count; i++) {
        if (claims[i].derivation != HF_MINTED)
            continue;
        status =
            lookup->ops->question(lookup, acquiring->store, claims[i].label, claims[i].label_size,
                                  &acquiring->questions[acquiring->lookup_count], err);
        acquiring->lookup_count += status == HF_OK;
    }
    for (size_t i = 0; i < others; i++)
        acquiring->questions[own + i] = extra->questions[i];
    return status;
}

void hf__lookup_attach(const struct acquiring *acquiring, hf__request *request)
{
    const hf__lock_extra *extra = acquiring->extra;
    if (extra) {
        request->questions = extra->questions;
        request->question_count = extra->question_count;
    }
    if (acquiring->questions) {
        request->questions = acquiring->questions;
        request->question_count += acquiring->lookup_count;
    }
    for (size_t i = 0; i < request->question_count; i++) /* answers of an earlier, refused try */
        hf__question_forget(request->questions[i]);
}

static hf_status ask_now(struct acquiring *acquiring, hf__question *question, hf_error *err)
{
    hf__lookup *lookup = acquiring->store->lookup;
    hf_error failure;
    hf_status status = hf__store_ask(acquiring->store, question, &failure);
    return status == HF_OK ? HF_OK : lookup->ops->explain(lookup, acquiring->store, &failure, err);
}

hf_status hf__lookup_confirm(struct acquiring *acquiring, const hf__claim *claims, size_t count,
                             bool *stale, hf_error *err)
{
    hf__lookup *lookup = acquiring->store->lookup;
    hf_status status = HF_OK;
    size_t at = 0;

    *stale = false;
    for (size_t i = 0; status == HF_OK && !*stale && i < count; i++) {
        if (claims[i].derivation != HF_MINTED)
            continue;
        hf__question *question = acquiring->questions[at++];
        if (!question->rows)
            status = ask_now(acquiring, question, err);
        if (status == HF_OK)
            status = lookup->ops->judge(lookup, acquiring->store, claims[i].label,
                                        claims[i].label_size, question, claims[i].key, stale, err);
    }
    return status;
}

void hf__lookup_finish(struct acquiring *acquiring)
{
    for (size_t i = 0; i < acquiring->lookup_count; i++) {
        hf__question_forget(acquiring->questions[i]);
        free(acquiring->questions[i]);
    }
    free(acquiring->questions);
    acquiring->questions = NULL;
    acquiring->lookup_count = 0;
}
