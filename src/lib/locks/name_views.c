/* The registry's names for the locks of a list. */
#include "lib/locks/list.h"

#include <stdlib.h>
#include <string.h>

#include "lib/locks/engine.h"
#include "lib/registry/known.h"

/* Built when the first key without a label comes up, and kept: it is the same for every list. */
static hf_status get_known(hf_store *store, const hf__known **known, hf_error *err)
{
    hf__known *built = NULL;
    pthread_mutex_lock(&store->mutex);
    *known = store->known;
    pthread_mutex_unlock(&store->mutex);
    if (*known)
        return HF_OK;
    hf_status status = hf__known_build(store->registry, &built, err);
    if (status != HF_OK)
        return status;
    pthread_mutex_lock(&store->mutex);
    if (!store->known) {
        store->known = built;
        built = NULL;
    }
    *known = store->known;
    pthread_mutex_unlock(&store->mutex);
    hf__known_free(built);
    return HF_OK;
}

static bool replace(const char **text, const char *by)
{
    char *copy = strdup(by);
    if (!copy)
        return false;
    free((void *)(uintptr_t)*text);
    *text = copy;
    return true;
}

hf_status hf__lock_owner(hf_store *store, const hf_lock_view *view, const hf__lock_entry **entry,
                         const char **label, hf_error *err)
{
    const hf__known *known = NULL;
    *label = NULL;
    *entry = NULL;
    if (!store->registry)
        return HF_OK;
    *entry = hf__registry_by_key(store->registry, view->space, view->key);
    if (*entry)
        return HF_OK;
    if (view->label[0])
        return hf__registry_owner(store->registry, view->space, view->key, view->label,
                                  strlen(view->label), entry, err);
    hf_status status = get_known(store, &known, err);
    if (status == HF_OK)
        *entry = hf__known_find(known, view->space, view->key, label);
    return status;
}

static hf_status name_view(hf_store *store, hf_lock_view *view, hf_error *err)
{
    const hf__lock_entry *entry = NULL;
    const char *label = NULL;
    hf_status status = hf__lock_owner(store, view, &entry, &label, err);
    if (status != HF_OK || !entry)
        return status;
    bool ok = replace(&view->name, entry->view.name) &&
              replace(&view->pattern, entry->view.pattern ? entry->view.pattern : "") &&
              (!label || replace(&view->label, label));
    return ok ? HF_OK : hf__fail(err, HF_NO_MEMORY, "out of memory");
}

hf_status hf__lock_list_name(hf_store *store, hf_lock_list *list, hf_error *err)
{
    hf_status status = HF_OK;
    if (!store->registry)
        return HF_OK;
    for (size_t i = 0; status == HF_OK && i < list->count; i++)
        status = name_view(store, &list->views[i], err);
    return status;
}
