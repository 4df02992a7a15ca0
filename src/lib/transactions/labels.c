/* The labels of a transaction: their claims, their order, and those that join later. */
#include "lib/transactions/transaction.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"

/* "Transfer:acc1" does; "acc1" and ":acc1" do not. */
static bool names_operation(const hf__claim *claim)
{
    const char *colon = claim->label ? memchr(claim->label, ':', claim->label_size) : NULL;
    return !claim->label || (colon && colon > claim->label);
}

static hf__claim claim_to_name(const hf_target *target)
{
    size_t size = target->label_size || !target->label ? target->label_size : strlen(target->label);
    return (hf__claim){.label = target->label, .label_size = size, .key = target->key};
}

void hf__tx_warn_if_generic(const struct hf_tx *tx, const hf_target *target)
{
    hf__claim claim = claim_to_name(target);
    const hf_registry *registry = tx->store->registry;
    char name[200];
    hf__warn_of_lifetime(tx->store, target);
    if (registry && claim.label && hf__registry_by_name(registry, claim.label, claim.label_size))
        return; /* a name of the registry, not a label */
    bool expects_operation =
        tx->options.expect_operation || (registry && registry->conventions.operation_labels);
    if ((claim.label && hf__registry_is_generic(registry, claim.label, claim.label_size)) ||
        (expects_operation && !names_operation(&claim)))
        hf__log(
            tx->store->backend, HF_LOG_WARNING,
            "the label %s is too generic: unrelated work will wait for it; name the operation and "
            "what it is about, like 'Transfer:acc1:acc2'",
            hf__claim_name(name, sizeof name, &claim));
}

/* Mutex held. */
static void leave(struct hf_tx *tx)
{
    hf__order_remove(tx->store, &tx->place);
    tx->store->keys_held -= (int)tx->counted;
    tx->counted = 0;
}

/*
 * Checks the labels against the order of what the thread holds already. Where they are session
 * locks around the transaction, acquiring those checks all but the registry's order.
 */
static hf_status keep_order(struct hf_tx *tx, hf_error *err)
{
    hf_store *store = tx->store;
    bool by_registry = false;
    hf_error order;
    hf_status status = HF_OK;
    pthread_mutex_lock(&store->mutex);
    leave(tx);
    if (tx->plan.count > 0)
        status = hf__order_check(store, &tx->claims[0], HF_TRANSACTION, &by_registry, &order);
    if (!tx->ops->locks_labels && !by_registry)
        status = HF_OK;
    if (status == HF_OK && tx->ops->locks_labels)
        status = hf__quota_check(store, tx->plan.count, &order);
    if (status == HF_OK && tx->plan.count > 0 && tx->ops->locks_labels) {
        tx->counted = tx->plan.count;
        store->keys_held += (int)tx->counted;
        tx->place.owner = hf__me();
        tx->place.lifetime = HF_TRANSACTION;
        tx->place.last = tx->claims[tx->plan.count - 1];
        hf__order_add(store, &tx->place);
    }
    pthread_mutex_unlock(&store->mutex);
    if (status != HF_OK && err)
        *err = order;
    return status;
}

void hf__tx_leave_order(struct hf_tx *tx)
{
    pthread_mutex_lock(&tx->store->mutex);
    leave(tx);
    pthread_mutex_unlock(&tx->store->mutex);
}

hf_status hf__tx_resolve_labels(struct hf_tx *tx, hf_error *err)
{
    free(tx->claims);
    free(tx->labels);
    tx->claims = NULL;
    tx->labels = NULL;
    tx->plan.count = 0;
    tx->plan.claims = NULL;
    if (tx->target_count == 0)
        return keep_order(tx, err);
    hf_lock_spec spec = {
        .targets = tx->targets, .target_count = tx->target_count, .lifetime = HF_TRANSACTION};
    hf_status status =
        hf__resolve(tx->store, &spec, &tx->claims, &tx->plan.count, &tx->labels, err);
    tx->plan.claims = tx->claims;
    return status == HF_OK ? keep_order(tx, err) : status;
}

bool hf__tx_add_label(struct hf_tx *tx, const hf_target *target)
{
    if (!hf__grow(&tx->targets, &tx->target_room, tx->target_count + 1, sizeof *tx->targets))
        return false;
    hf_target *added = &tx->targets[tx->target_count];
    *added = *target;
    if (target->label) {
        size_t size = target->label_size ? target->label_size : strlen(target->label);
        char *copy = malloc(size + 1);
        if (!copy)
            return false;
        memcpy(copy, target->label, size);
        copy[size] = '\0';
        added->label = copy;
        added->label_size = size;
    }
    tx->target_count++;
    return true;
}

void hf__tx_drop_labels(struct hf_tx *tx, size_t keep)
{
    while (tx->target_count > keep)
        free((void *)(uintptr_t)tx->targets[--tx->target_count].label);
}

static hf_status serialize(struct hf_tx *tx, const hf_target *label, hf_error *err)
{
    if (tx->plan.session)
        return hf__fail(err, HF_INVALID, "a transaction on a lock's session takes no labels");
    if (tx->attempt->started) {
        hf__claim claim = claim_to_name(label);
        char name[200];
        hf_status status =
            hf__fail(err, HF_ORDER, "%s cannot be locked after the transaction's first statement",
                     hf__claim_name(name, sizeof name, &claim));
        hf__hint(
            err,
            "the snapshot is taken: what the label's last holder commits stays invisible, and the "
            "lock protects nothing; ask for the label first, or pass it in the options");
        return status;
    }
    if (!hf__tx_add_label(tx, label))
        return hf__no_memory(err);
    hf_status status = hf__tx_resolve_labels(tx, err);
    if (status != HF_OK) {
        hf__tx_drop_labels(tx, tx->target_count - 1);
        (void)!hf__tx_resolve_labels(tx, NULL);
    } else if (tx->attempts == 1) {
        hf__tx_warn_if_generic(tx, label);
    }
    return status;
}

hf_status hf_tx_serialize(hf_tx *tx, const hf_target *label, hf_error *err)
{
    struct hf__tx_use use;
    hf_status status = hf__tx_enter(tx, &use, err);
    if (status != HF_OK)
        return status;
    status = serialize(tx, label, err);
    hf__tx_leave(&use);
    return status;
}
