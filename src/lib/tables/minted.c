/*
 * Minted keys: what the store's table registry gives a shared table. Ids are kept by name, because
 * looking one up costs a trip; a kept one may be out of date, so that whoever locks by it looks again
 * once the lock is held. The id cannot change after that: to retire it takes the same lock.
 */
#include "lib/locks/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "lib/tables/name.h"

struct hf__minted {
    struct hf__minted *next;
    int64_t id; /* 0: none that we know of */
    char text[];
};

static struct hf__minted **bucket_of(hf_store *store, const char *text)
{
    return &store->minted[hf__hash_bytes(text, strlen(text)) % MINTED_BUCKETS];
}

static struct hf__minted *entry_of(hf_store *store, const char *text)
{
    struct hf__minted *entry = *bucket_of(store, text);
    while (entry && strcmp(entry->text, text) != 0)
        entry = entry->next;
    return entry;
}

const char *hf__minted_keep(hf_store *store, const char *text, int64_t id)
{
    size_t size = strlen(text) + 1;
    pthread_mutex_lock(&store->mutex);
    struct hf__minted *entry = entry_of(store, text);
    if (!entry && (entry = malloc(sizeof *entry + size))) {
        struct hf__minted **bucket = bucket_of(store, text);
        memcpy(entry->text, text, size);
        entry->next = *bucket;
        *bucket = entry;
    }
    if (entry)
        entry->id = id;
    pthread_mutex_unlock(&store->mutex);
    return entry ? entry->text : NULL;
}

int64_t hf__minted_kept(hf_store *store, const char *text)
{
    pthread_mutex_lock(&store->mutex);
    const struct hf__minted *entry = entry_of(store, text);
    int64_t id = entry ? entry->id : 0;
    pthread_mutex_unlock(&store->mutex);
    return id;
}

void hf__minted_free(hf_store *store)
{
    for (size_t i = 0; i < MINTED_BUCKETS; i++)
        while (store->minted[i]) {
            struct hf__minted *next = store->minted[i]->next;
            free(store->minted[i]);
            store->minted[i] = next;
        }
}

hf_status hf__minted_ask(hf_store *store, const hf__table_name *name, int64_t *id, hf_error *err)
{
    hf__backend *backend = store->backend;
    const hf_table_name parts = {name->cluster, name->database, name->table};
    if (!backend->ops->find_table)
        return hf__fail(err, HF_INVALID, "a borrowed connection knows no shared tables");
    hf_status status = backend->ops->find_table(backend, &parts, id, err);
    if (status == HF_OK && !hf__minted_keep(store, name->text, *id))
        status = hf__no_memory(err);
    return status;
}

hf_status hf__minted_key(hf_store *store, const char *label, size_t size, const char **text,
                         int64_t *key, hf_error *err)
{
    hf__table_name name;
    hf_status status = hf__table_name_parse(label, size, NULL, &name, err);
    if (status != HF_OK)
        return status;
    *key = hf__minted_kept(store, name.text);
    if (!*key)
        status = hf__minted_ask(store, &name, key, err);
    if (status == HF_OK && !*key) {
        status = hf__fail(err, HF_INVALID, "no shared table '%s' is registered on %s", name.text,
                          store->backend->name);
        hf__hint(err, "run 'holdfast table register %s', or call hf_table_register", name.text);
    }
    if (status == HF_OK && !(*text = hf__minted_keep(store, name.text, *key)))
        status = hf__no_memory(err);
    return status;
}

/* The store may have looked in the message that took the lock. */
static hf_status look_again(const struct acquiring *acquiring, const hf__table_name *name,
                            int64_t *id, hf_error *err)
{
    if (!acquiring->has_looked)
        return hf__minted_ask(acquiring->store, name, id, err);
    *id = acquiring->minted_id;
    return hf__minted_keep(acquiring->store, name->text, *id) ? HF_OK : hf__no_memory(err);
}

hf_status hf__minted_confirm(const struct acquiring *acquiring, const hf__claim *claims,
                             size_t count, bool *stale, hf_error *err)
{
    hf_status status = HF_OK;
    *stale = false;
    for (size_t i = 0; status == HF_OK && !*stale && i < count; i++) {
        hf__table_name name;
        int64_t id = 0;
        if (claims[i].derivation != HF_MINTED)
            continue;
        status = hf__table_name_parse(claims[i].label, claims[i].label_size, NULL, &name, err);
        if (status == HF_OK)
            status = look_again(acquiring, &name, &id, err);
        *stale = status == HF_OK && id != claims[i].key;
    }
    return status;
}
