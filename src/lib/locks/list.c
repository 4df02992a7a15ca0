/* Lists of locks: views collected from a backend, without the inner keys of slots, with names. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "lib/keys/keys.h"
#include "lib/locks/engine.h"
#include "lib/locks/locks.h"
#include "lib/registry/registry.h"

struct collector {
    hf__view_sink sink;
    hf_lock_list *list;
};

enum { STRINGS = 7 };

static void view_strings(hf_lock_view *view, const char **strings[STRINGS])
{
    strings[0] = &view->label;
    strings[1] = &view->application;
    strings[2] = &view->host;
    strings[3] = &view->blocked_by;
    strings[4] = &view->name;
    strings[5] = &view->pattern;
    strings[6] = &view->traceparent;
}

static void free_view(hf_lock_view *view)
{
    const char **strings[STRINGS];
    view_strings(view, strings);
    for (size_t i = 0; i < STRINGS; i++)
        free((void *)(uintptr_t)*strings[i]);
}

static bool own_strings(hf_lock_view *view)
{
    const char **strings[STRINGS];
    bool ok = true;
    view_strings(view, strings);
    for (size_t i = 0; i < STRINGS; i++) {
        *strings[i] = strdup(*strings[i] ? *strings[i] : "");
        ok = ok && *strings[i];
    }
    return ok;
}

static bool make_room(hf_lock_list *list)
{
    if (!hf__grow(&list->views, &list->view_room, list->count + 1, sizeof *list->views) ||
        !hf__grow(&list->hidden, &list->hidden_room, list->count + 1, sizeof *list->hidden))
        return false;
    list->hidden[list->count] = false;
    return true;
}

static hf_status add(hf__view_sink *sink, const hf_lock_view *view, hf_error *err)
{
    hf_lock_list *list = ((struct collector *)sink)->list;
    if (!make_room(list))
        return hf__no_memory(err);
    hf_lock_view *copy = &list->views[list->count];
    *copy = *view;
    copy->known_as = "";
    if (sink->database && !view->label[0])
        copy->known_as = hf__well_known(view->space, view->key, sink->database);
    if (!own_strings(copy)) {
        free_view(copy);
        return hf__no_memory(err);
    }
    list->count++;
    return HF_OK;
}

static void hide_view(hf_lock_list *list, const hf_lock_view *view)
{
    list->hidden[view - list->views] = true;
}

/* Drops the hidden views. */
static void compact(hf_lock_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->hidden[i])
            free_view(&list->views[i]);
        else
            list->views[kept++] = list->views[i];
    }
    list->count = kept;
}

/* ---- what was locked, without the keys of slots ---------------------------------------------- */

/*
 * The keys of a semaphore's slots are recorded under its label (slots.c), so that collisions are
 * found. They are no locks of their own, so a list of the past leaves them out.
 */

/* Within a label, keys with events come first: only the label's own key has them. */
static int by_label(const void *a, const void *b)
{
    const hf_lock_view *left = *(hf_lock_view *const *)a, *right = *(hf_lock_view *const *)b;
    int order = strcmp(left->label, right->label);
    if (order != 0)
        return order;
    if (left->times != right->times)
        return left->times > right->times ? -1 : 1;
    return left < right ? -1 : left > right;
}

static bool is_hidden(const hf_lock_list *list, const hf_lock_view *view)
{
    return list->hidden[view - list->views];
}

static void hide_key(hf_lock_list *list, hf_lock_view *const *group, size_t count, int64_t key)
{
    for (size_t i = 0; i < count; i++)
        if (group[i]->key == key && group[i]->space == HF_BIGINT)
            hide_view(list, group[i]);
}

/* The views have the same label: hides those whose key is a slot of another one. */
static void hide_slots(hf_lock_list *list, hf_lock_view *const *group, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hf__claim base = {.key = group[i]->key, .space = group[i]->space};
        if (is_hidden(list, group[i]))
            continue;
        for (unsigned slot = 1; slot <= HF_SLOTS_MAX; slot++)
            hide_key(list, group, count, hf__slot_key(&base, slot));
    }
}

static hf_status drop_slots(hf_lock_list *list, hf_error *err)
{
    size_t end = 0;
    hf_lock_view **sorted = calloc(list->count ? list->count : 1, sizeof(hf_lock_view *));
    if (!sorted)
        return hf__no_memory(err);
    for (size_t i = 0; i < list->count; i++)
        sorted[i] = &list->views[i];
    qsort((void *)sorted, list->count, sizeof(hf_lock_view *), by_label);
    for (size_t first = 0; first < list->count; first = end) {
        for (end = first + 1; end < list->count; end++)
            if (strcmp(sorted[end]->label, sorted[first]->label) != 0)
                break;
        if (end - first > 1 && sorted[first]->label[0])
            hide_slots(list, &sorted[first], end - first);
    }
    free((void *)sorted);
    compact(list);
    return HF_OK;
}

/* ---- one row for the many keys of a slot ----------------------------------------------------- */

/*
 * A semaphore uses several keys per holder (slots.c). People think of it as one lock, so the list
 * shows one view per holder, with its slot, and one per waiter, under the label's own key.
 */

struct place {
    int64_t key;
    size_t view;
};

struct index {
    struct place *places; /* sorted by key; HF_BIGINT only, as all inner keys are */
    size_t count;
};

static int by_key(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    return left->key < right->key ? -1 : left->key > right->key;
}

static size_t lower_bound(const struct index *index, int64_t key)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (index->places[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool contains(const struct index *index, int64_t key)
{
    size_t at = lower_bound(index, key);
    return at < index->count && index->places[at].key == key;
}

static bool same_owner(const hf_lock_view *a, const hf_lock_view *b)
{
    return a->backend_pid == b->backend_pid && a->pid == b->pid && strcmp(a->host, b->host) == 0;
}

/* The number of slots that the held digit keys spell; 0: base is not a semaphore's key. */
static unsigned spelled_slots(const struct index *index, const hf__claim *base)
{
    unsigned slots = 0;
    for (unsigned place = 0; place < HF__SLOT_DIGITS; place++) {
        unsigned digit = 0;
        while (digit < HF__SLOT_BASE && !contains(index, hf__slot_digit_key(base, place, digit)))
            digit++;
        if (digit == HF__SLOT_BASE)
            return 0;
        slots += digit << (4 * place);
    }
    return slots;
}

typedef void visit_fn(hf_lock_list *list, hf_lock_view *view, const hf_lock_view *base,
                      unsigned number);

static void visit(hf_lock_list *list, const struct index *index, int64_t key,
                  const hf_lock_view *base, unsigned number, visit_fn *fn)
{
    for (size_t at = lower_bound(index, key); at < index->count && index->places[at].key == key;
         at++)
        fn(list, &list->views[index->places[at].view], base, number);
}

static void take_label(hf_lock_view *view, const hf_lock_view *base)
{
    char *label = strdup(base->label);
    if (!label || view->label[0]) {
        free(label);
        return;
    }
    free((void *)(uintptr_t)view->label);
    view->label = label;
}

static void show_slot(hf_lock_list *list, hf_lock_view *view, const hf_lock_view *base,
                      unsigned slot)
{
    (void)list;
    view->slot = slot;
    view->key = base->key;
    view->space = base->space;
    take_label(view, base);
}

/* All at the gate wait for a slot, also the one that holds it. */
static void show_waiter(hf_lock_list *list, hf_lock_view *view, const hf_lock_view *base,
                        unsigned number)
{
    (void)list, (void)number;
    view->waiting = true;
    view->key = base->key;
    view->space = base->space;
    view->token = 0;
    take_label(view, base);
}

static void hide(hf_lock_list *list, hf_lock_view *view, const hf_lock_view *base, unsigned number)
{
    (void)base, (void)number;
    hide_view(list, view);
}

/* Every holder and waiter also has the label's own key; its slot or gate view says more. */
static void hide_base_rows(hf_lock_list *list, const hf_lock_view *base)
{
    hf_lock_view pattern = *base;
    for (size_t i = 0; i < list->count; i++) {
        hf_lock_view *row = &list->views[i];
        if (row->key != pattern.key || row->space != pattern.space || row->waiting ||
            row->mode != HF_SHARED)
            continue;
        for (size_t j = 0; j < list->count; j++) {
            const hf_lock_view *other = &list->views[j];
            if ((other->slot > 0 || (other->waiting && other->key == pattern.key)) &&
                same_owner(row, other)) {
                hide_view(list, row);
                break;
            }
        }
    }
}

static void fold_semaphore(hf_lock_list *list, const struct index *index, const hf_lock_view *base,
                           unsigned slots)
{
    hf__claim claim = {.key = base->key, .space = base->space};
    for (unsigned slot = 1; slot <= slots; slot++)
        visit(list, index, hf__slot_key(&claim, slot), base, slot, show_slot);
    visit(list, index, hf__slot_gate_key(&claim), base, 0, show_waiter);
    for (unsigned place = 0; place < HF__SLOT_DIGITS; place++)
        for (unsigned digit = 0; digit < HF__SLOT_BASE; digit++)
            visit(list, index, hf__slot_digit_key(&claim, place, digit), base, 0, hide);
    hide_base_rows(list, base);
}

static bool build_index(const hf_lock_list *list, struct index *index)
{
    index->places = calloc(list->count ? list->count : 1, sizeof *index->places);
    if (!index->places)
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (list->views[i].space == HF_BIGINT)
            index->places[index->count++] = (struct place){list->views[i].key, i};
    qsort(index->places, index->count, sizeof *index->places, by_key);
    return true;
}

static hf_status fold_slots(hf_lock_list *list, hf_error *err)
{
    struct index index = {0};
    if (!build_index(list, &index))
        return hf__no_memory(err);
    for (size_t i = 0; i < list->count; i++) {
        const hf_lock_view *view = &list->views[i];
        hf__claim base = {.key = view->key, .space = view->space};
        bool candidate = view->mode == HF_SHARED && !view->waiting && !view->slot;
        bool first = i == 0 || list->views[i - 1].key != view->key ||
                     list->views[i - 1].space != view->space;
        unsigned slots = candidate && first ? spelled_slots(&index, &base) : 0;
        if (slots > 0)
            fold_semaphore(list, &index, view, slots);
        if (view->waiting) /* what one of them holds who asks for the key says nothing more */
            visit(list, &index, hf__ask_claim(&base, HF_EXCLUSIVE).key, view, 0, hide);
    }
    free(index.places);
    compact(list);
    return HF_OK;
}

/* ---- the registry's names -------------------------------------------------------------------- */

/* Built for the first key without a label, and kept: the registry does not change. */
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
    view->known_as = "";
    return ok ? HF_OK : hf__no_memory(err);
}

/* Fills in names and patterns, and labels that the registry knows from the key. */
static hf_status name_list(hf_store *store, hf_lock_list *list, hf_error *err)
{
    hf_status status = HF_OK;
    if (!store->registry)
        return HF_OK;
    for (size_t i = 0; status == HF_OK && i < list->count; i++)
        status = name_view(store, &list->views[i], err);
    return status;
}

/* ---- reading a list -------------------------------------------------------------------------- */

/* Which locks to list: those of now, or those of the past. */
struct selection {
    bool past;
    struct pg_conn *conn; /* of now: the connection to ask on; NULL: one of the store's */
    int64_t since_ms;     /* of the past */
};

static hf_status read_list(hf_store *store, const struct selection *wanted, hf_lock_list **out,
                           hf_error *err)
{
    hf__backend *backend = store->backend;
    struct collector collector = {.sink = {.add = add}};
    *out = NULL;
    hf_status status = hf__check_process(store, err);
    if (status == HF_OK && !(collector.list = calloc(1, sizeof *collector.list)))
        status = hf__no_memory(err);
    if (status == HF_OK && wanted->past)
        status = backend->ops->list_past(backend, wanted->since_ms, &collector.sink, err);
    else if (status == HF_OK)
        status = backend->ops->list(backend, wanted->conn, &collector.sink, err);
    if (status == HF_OK)
        status = wanted->past ? drop_slots(collector.list, err) : fold_slots(collector.list, err);
    if (status == HF_OK)
        status = name_list(store, collector.list, err);
    if (status == HF_OK)
        *out = collector.list;
    else
        hf_lock_list_free(collector.list);
    return status;
}

hf_status hf__lock_list_read_on(hf_store *store, struct pg_conn *conn, hf_lock_list **out,
                                hf_error *err)
{
    return read_list(store, &(struct selection){.conn = conn}, out, err);
}

hf_status hf_lock_list_read(hf_store *store, hf_lock_list **out, hf_error *err)
{
    return hf__lock_list_read_on(store, NULL, out, err);
}

hf_status hf_lock_list_read_past(hf_store *store, int64_t since_ms, hf_lock_list **out,
                                 hf_error *err)
{
    return read_list(store, &(struct selection){.past = true, .since_ms = since_ms}, out, err);
}

size_t hf_lock_list_count(const hf_lock_list *list)
{
    return list->count;
}

const hf_lock_view *hf_lock_list_at(const hf_lock_list *list, size_t index)
{
    return index < list->count ? &list->views[index] : NULL;
}

void hf_lock_list_free(hf_lock_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->count; i++)
        free_view(&list->views[i]);
    free(list->views);
    free(list->hidden);
    free(list);
}
