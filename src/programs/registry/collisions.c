#include "programs/registry/collisions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "programs/registry/matcher.h"

/*
 * Multiplying by SPREAD spreads keys over the high bits, where the sort begins; GATHER undoes it.
 */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)
#define GATHER UINT64_C(0xf1de83e19937733d) /* SPREAD × GATHER = 1 (mod 2^64) */

/* A place is an offset into the list or, with OWN, the index of a label of the registry. */
#define IN_PAIR (UINT64_C(1) << 63)
#define OWN (UINT64_C(1) << 62)
#define OFFSET (OWN - 1)

struct finder {
    const struct hf__label_list *list;
    const hf_registry *registry;
    const hf_derivation *as;
    const struct hf__own_labels *own;
    hf__matcher *matcher; /* NULL: the registry does not decide */
    hf__keyed *items;
    size_t count;
    size_t capacity;
    size_t most; /* of collisions that are kept */
    struct hf__collisions *found;
};

/* --- the key of a label --------------------------------------------------------------------- */

struct derived {
    int64_t key;
    hf_space space;
    bool minted;
};

static hf_status derive_by_registry(const hf__matcher *matcher, hf__slice label,
                                    struct derived *derived, hf_error *err)
{
    const hf_registry_entry *entry = NULL;
    hf_target target;
    hf_status status = hf__matcher_resolve(matcher, label.text, label.size, &target, &entry, err);

    if (status != HF_OK)
        return status;
    derived->space = target.space;
    derived->minted = target.derivation == HF_MINTED;
    derived->key = target.key;
    if (target.space == HF_PAIR)
        derived->key = hf_key_join((uint32_t)target.pair[0], (uint32_t)target.pair[1]);
    else if (target.derivation != HF_FIXED && !derived->minted)
        status =
            hf_key_derive(target.derivation, target.label, target.label_size, &derived->key, err);
    return status;
}

static hf_status derive(const struct finder *f, hf__slice label, struct derived *derived,
                        hf_error *err)
{
    *derived = (struct derived){0};
    if (f->matcher != NULL)
        return derive_by_registry(f->matcher, label, derived, err);
    return hf_key_derive(f->as != NULL ? *f->as : HF_SHA256, label.text, label.size, &derived->key,
                         err);
}

static hf_status add_item(struct finder *f, const struct derived *derived, uint64_t place,
                          hf_error *err)
{
    if (f->count == f->capacity) {
        size_t capacity = f->capacity + f->capacity / 2 + 1024;
        hf__keyed *items = reallocarray(f->items, capacity, sizeof *items);
        if (items == NULL)
            return hf__fail(err, HF_NO_MEMORY, "out of memory after %zu labels", f->count);
        f->items = items;
        f->capacity = capacity;
    }
    f->items[f->count++] = (hf__keyed){
        .key = (uint64_t)derived->key * SPREAD,
        .place = place | (derived->space == HF_PAIR ? IN_PAIR : 0),
    };
    return HF_OK;
}

/* --- the labels of the list ----------------------------------------------------------------- */

/* The label at an offset, without its separator. */
static hf__slice line_at(const struct hf__label_list *list, size_t offset)
{
    hf__slice line = {.text = list->text + offset, .size = list->size - offset};
    const char *end = memchr(line.text, list->separator, line.size);

    if (end != NULL)
        line.size = (size_t)(end - line.text);
    return line;
}

static hf__slice label_of(const struct hf__label_list *list, hf__slice line)
{
    if (list->separator == '\n' && line.size > 0 && line.text[line.size - 1] == '\r')
        line.size--;
    return line;
}

static hf__slice label_at(const struct hf__label_list *list, size_t offset)
{
    return label_of(list, line_at(list, offset));
}

static hf_status check(hf__slice label, hf_error *err)
{
    hf_status status = HF_OK;

    if (label.size > HF_LABEL_MAX) {
        status = hf__fail(err, HF_BAD_DATA, "the label has %zu bytes, more than %d", label.size,
                          HF_LABEL_MAX);
        hf__hint(err, "one label a line; --null for labels that end with NUL");
    } else if (hf__has_control(label.text, label.size)) {
        char shown[128];
        status = hf__fail(err, HF_BAD_DATA, "the label has a control character: '%s'",
                          hf__show(shown, sizeof shown, label.text, label.size));
        hf__hint(err, "labels are printable text, one a line; --null for labels that end with NUL");
    }
    return status;
}

/* The same failure with its place. Text that cannot be a label is bad data here. */
static hf_status fail_at(const struct finder *f, uint64_t line, hf_status status, hf_error *err)
{
    char name[256];
    hf_error why = {0};

    if (err != NULL)
        why = *err;
    if (status == HF_NO_MEMORY)
        return status;
    status = hf__fail(err, status == HF_INVALID ? HF_BAD_DATA : status, "%s:%" PRIu64 ": %s",
                      hf__show(name, sizeof name, f->list->name, strlen(f->list->name)), line,
                      why.message);
    if (why.hint[0] != '\0')
        hf__hint(err, "%s", why.hint);
    return status;
}

static hf_status add_label(struct finder *f, hf__slice label, hf_error *err)
{
    struct derived derived;
    hf_status status = check(label, err);

    if (status == HF_OK)
        status = derive(f, label, &derived, err);
    if (status != HF_OK)
        return status;
    f->found->labels++;
    if (derived.minted) {
        f->found->minted++;
        return HF_OK;
    }
    return add_item(f, &derived, (uint64_t)(label.text - f->list->text), err);
}

static hf_status add_list(struct finder *f, hf_error *err)
{
    hf_status status = HF_OK;
    uint64_t number = 0;

    for (size_t at = 0; at < f->list->size;) {
        hf__slice line = line_at(f->list, at);
        hf__slice label = label_of(f->list, line);
        number++;
        if (label.size > 0)
            status = add_label(f, label, err);
        if (status != HF_OK)
            return fail_at(f, number, status, err);
        at += line.size + 1;
    }
    return HF_OK;
}

/* --- the keys of the registry --------------------------------------------------------------- */

static hf_status add_own(struct finder *f, hf_error *err)
{
    hf_status status = HF_OK;

    for (size_t i = 0; status == HF_OK && i < f->own->count; i++) {
        const struct hf__own_label *label = &f->own->items[i];
        struct derived derived = {.key = label->key, .space = label->entry->view.space};
        status = add_item(f, &derived, OWN | i, err);
    }
    return status;
}

static const struct hf__own_label *own_label(const struct finder *f, uint64_t place)
{
    return (place & OWN) != 0 ? &f->own->items[place & OFFSET] : NULL;
}

static const hf__lock_entry *entry_named(const struct finder *f, hf__slice label)
{
    return f->matcher != NULL ? hf__registry_by_name(f->registry, label.text, label.size) : NULL;
}

/* The name of an entry in the list means its label: the two do not collide. */
static hf__slice meant_at(const struct finder *f, uint64_t place)
{
    if ((place & OWN) != 0)
        return hf__own_text(f->own, place & OFFSET);
    hf__slice label = label_at(f->list, place & OFFSET);
    const hf__lock_entry *entry = entry_named(f, label);
    if (entry != NULL && entry->view.pattern != NULL && entry->placeholder_count == 0)
        return (hf__slice){entry->literal_prefix, entry->literal_prefix_size};
    return label;
}

/* --- different labels with the same key ----------------------------------------------------- */

static bool same_label(const struct finder *f, uint64_t a, uint64_t b)
{
    return (a & IN_PAIR) == (b & IN_PAIR) && hf__compare_text(meant_at(f, a), meant_at(f, b)) == 0;
}

/* By space, label and place. What comes from the registry is last. */
static bool comes_before(const struct finder *f, uint64_t a, uint64_t b)
{
    int order = 0;

    if ((a & IN_PAIR) != (b & IN_PAIR))
        return (a & IN_PAIR) < (b & IN_PAIR);
    order = hf__compare_text(meant_at(f, a), meant_at(f, b));
    return order != 0 ? order < 0 : a < b;
}

static void sift_down(const struct finder *f, hf__keyed *items, size_t at, size_t count)
{
    hf__keyed item = items[at];

    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && comes_before(f, items[child].place, items[child + 1].place))
            child++;
        if (!comes_before(f, item.place, items[child].place))
            break;
        items[at] = items[child];
    }
    items[at] = item;
}

/* Heap sort needs no memory, even for a list that was made so that all labels have one key. */
static void sort_by_label(const struct finder *f, hf__keyed *items, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sift_down(f, items, i, count);
    for (size_t last = count; last-- > 1;) {
        hf__keyed greatest = items[0];
        items[0] = items[last];
        items[last] = greatest;
        sift_down(f, items, 0, last);
    }
}

/* How many items have the label of the first one, and how many of those the list has. */
static size_t first_label(const struct finder *f, const hf__keyed *items, size_t count,
                          uint64_t *listed)
{
    size_t same = 0;

    *listed = 0;
    while (same < count && same_label(f, items[0].place, items[same].place))
        *listed += (items[same++].place & OWN) == 0 ? 1 : 0;
    return same;
}

static const hf__lock_entry *entry_for(const struct finder *f, hf__slice label)
{
    const hf_registry_entry *entry = NULL;
    hf_target target;

    if (f->matcher == NULL ||
        hf__matcher_resolve(f->matcher, label.text, label.size, &target, &entry, NULL) != HF_OK ||
        entry == NULL)
        return NULL;
    return hf__entry_of(entry);
}

static struct hf__collider collider_at(const struct finder *f, uint64_t place, uint64_t listed)
{
    const struct hf__own_label *own = own_label(f, place);
    hf__slice label =
        own != NULL ? hf__own_text(f->own, place & OFFSET) : label_at(f->list, place & OFFSET);

    return (struct hf__collider){
        .label = label.text,
        .size = label.size,
        .times = listed,
        .entry = own != NULL ? own->entry : entry_for(f, label),
        .is_sample = own != NULL && own->is_sample,
    };
}

static hf_status keep(struct finder *f, const hf__keyed *items, size_t count, size_t labels,
                      hf_error *err)
{
    size_t room = labels < HF__COLLIDERS_MAX ? labels : HF__COLLIDERS_MAX;
    uint64_t listed = 0;

    if (!hf__grow(&f->found->items, &f->found->capacity, f->found->kept + 1,
                  sizeof *f->found->items))
        return hf__fail(err, HF_NO_MEMORY, "out of memory for collisions");
    struct hf__collision *collision = &f->found->items[f->found->kept];
    *collision = (struct hf__collision){
        .key = (int64_t)(items[0].key * GATHER),
        .space = (items[0].place & IN_PAIR) != 0 ? HF_PAIR : HF_BIGINT,
        .count = labels,
        .colliders = calloc(room, sizeof *collision->colliders),
    };
    if (collision->colliders == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for collisions");
    f->found->kept++;
    for (size_t i = 0; i < count && collision->kept < room;) {
        size_t same = first_label(f, items + i, count - i, &listed);
        collision->colliders[collision->kept++] = collider_at(f, items[i].place, listed);
        i += same;
    }
    return HF_OK;
}

/* Judges the items of one key and one space, which are sorted by label. */
static hf_status judge(struct finder *f, const hf__keyed *items, size_t count, hf_error *err)
{
    size_t labels = 0;
    bool matters = false;
    uint64_t listed = 0;

    for (size_t i = 0; i < count; labels++) {
        const struct hf__own_label *own = own_label(f, items[i].place);
        i += first_label(f, items + i, count - i, &listed);
        matters = matters || (f->list != NULL ? listed > 0 : !own->is_sample);
        f->found->duplicates += listed > 0 ? listed - 1 : 0;
    }
    if (labels < 2 || !matters)
        return HF_OK;
    f->found->count++;
    return f->found->kept < f->most ? keep(f, items, count, labels, err) : HF_OK;
}

static hf_status judge_key(struct finder *f, hf__keyed *items, size_t count, hf_error *err)
{
    uint64_t listed = 0;
    size_t in_bigint = 0;

    if (first_label(f, items, count, &listed) < count)
        sort_by_label(f, items, count);
    while (in_bigint < count && (items[in_bigint].place & IN_PAIR) == 0)
        in_bigint++;
    hf_status status = judge(f, items, in_bigint, err);
    return status != HF_OK ? status : judge(f, items + in_bigint, count - in_bigint, err);
}

static hf_status find_shared_keys(struct finder *f, hf_error *err)
{
    hf_status status = HF_OK;

    hf__keyed_sort(f->items, f->count);
    for (size_t i = 0, next; status == HF_OK && i < f->count; i = next) {
        for (next = i + 1; next < f->count && f->items[next].key == f->items[i].key;)
            next++;
        if (next - i > 1)
            status = judge_key(f, f->items + i, next - i, err);
    }
    return status;
}

/* --- line numbers --------------------------------------------------------------------------- */

static int compare_places(const void *left, const void *right)
{
    const struct hf__collider *a = *(struct hf__collider *const *)left;
    const struct hf__collider *b = *(struct hf__collider *const *)right;

    return a->label < b->label ? -1 : a->label > b->label;
}

/* A label that only the registry has comes last. */
static int compare_lines(const void *left, const void *right)
{
    uint64_t a = ((const struct hf__collider *)left)->line - 1;
    uint64_t b = ((const struct hf__collider *)right)->line - 1;

    return a < b ? -1 : a > b;
}

static int compare_first_lines(const void *left, const void *right)
{
    const struct hf__collision *a = left;
    const struct hf__collision *b = right;

    return compare_lines(a->colliders, b->colliders);
}

/* Walks over the list once. The colliders are in the order of their places. */
static void count_lines(const struct hf__label_list *list, struct hf__collider **colliders,
                        size_t count)
{
    uint64_t number = 0;
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        size_t place = (size_t)(colliders[i]->label - list->text);
        for (; at <= place; number++)
            at += line_at(list, at).size + 1;
        colliders[i]->line = number;
    }
}

static hf_status number_lines(struct finder *f, hf_error *err)
{
    size_t count = 0;
    struct hf__collisions *found = f->found;
    struct hf__collider **listed = NULL;

    for (size_t i = 0; i < found->kept; i++)
        count += found->items[i].kept;
    listed = calloc(count + 1, sizeof(struct hf__collider *));
    if (listed == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for collisions");
    count = 0;
    for (size_t i = 0; i < found->kept; i++)
        for (size_t j = 0; j < found->items[i].kept; j++)
            if (found->items[i].colliders[j].times > 0)
                listed[count++] = &found->items[i].colliders[j];
    qsort(listed, count, sizeof(struct hf__collider *), compare_places);
    count_lines(f->list, listed, count);
    free(listed);
    return HF_OK;
}

static void sort_by_line(struct hf__collisions *found)
{
    for (struct hf__collision *c = found->items; c < found->items + found->kept; c++)
        if (c->colliders != NULL)
            qsort(c->colliders, c->kept, sizeof *c->colliders, compare_lines);
    if (found->kept > 0)
        qsort(found->items, found->kept, sizeof *found->items, compare_first_lines);
}

/* --- the whole search ----------------------------------------------------------------------- */

static hf_status search(struct finder *f, hf_error *err)
{
    hf_status status = add_own(f, err);

    if (status == HF_OK && f->list != NULL)
        status = add_list(f, err);
    if (status == HF_OK)
        status = find_shared_keys(f, err);
    free(f->items);
    if (status == HF_OK && f->list != NULL)
        status = number_lines(f, err);
    if (status == HF_OK && f->list != NULL)
        sort_by_line(f->found);
    if (status != HF_OK)
        hf__collisions_free(f->found);
    return status;
}

hf_status hf__collisions_find(const struct hf__label_list *list, const hf_registry *registry,
                              const struct hf__own_labels *own, const hf_derivation *as,
                              struct hf__collisions *collisions, hf_error *err)
{
    static const struct hf__own_labels none = {0};
    bool by_number = as != NULL && *as == HF_FIXED; /* numbers are themselves */
    struct finder f = {
        .list = list,
        .registry = registry,
        .own = own != NULL && !by_number ? own : &none,
        .as = as,
        .most = HF__COLLISIONS_MAX,
        .found = collisions,
    };

    *collisions = (struct hf__collisions){0};
    hf_status status =
        as == NULL && registry != NULL ? hf__matcher_new(registry, &f.matcher, err) : HF_OK;
    if (status == HF_OK)
        status = search(&f, err);
    hf__matcher_free(f.matcher);
    return status;
}

hf_status hf__collisions_among(const struct hf__own_labels *own, struct hf__collisions *collisions,
                               hf_error *err)
{
    struct finder f = {.own = own, .most = HF__FINDINGS_MAX, .found = collisions};

    *collisions = (struct hf__collisions){0};
    return search(&f, err);
}

void hf__collisions_free(struct hf__collisions *collisions)
{
    for (size_t i = 0; i < collisions->kept; i++)
        free(collisions->items[i].colliders);
    free(collisions->items);
    *collisions = (struct hf__collisions){0};
}
