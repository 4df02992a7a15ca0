/* Turns the caller's targets into claims: check labels, ask the registry, find the keys, sort. */
#include "lib/locks/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static hf_status check_label(const char *label, size_t size, hf_error *err)
{
    char shown[128];
    hf_status status = HF_OK;
    if (size == 0) {
        status = hf__fail(err, HF_INVALID, "the label is empty");
        hf__hint(err, "name what is locked, like 'Transfer:acc1:acc2'");
    } else if (size > HF_LABEL_MAX) {
        status =
            hf__fail(err, HF_INVALID, "the label has %zu bytes, more than %d", size, HF_LABEL_MAX);
        hf__hint(err, "use an identifier, not the content, as the label");
    }
    for (size_t i = 0; status == HF_OK && i < size; i++) {
        unsigned char byte = (unsigned char)label[i];
        if (byte >= 0x20 && byte != 0x7f)
            continue;
        status = hf__fail(err, HF_INVALID, "the label '%s' has a control character at byte %zu",
                          hf__show(shown, sizeof shown, label, size), i + 1);
        hf__hint(err, "labels are printable text; a stray newline often comes from the shell");
    }
    return status;
}

static size_t label_size(const hf_target *target)
{
    if (!target->label)
        return 0;
    return target->label_size ? target->label_size : strlen(target->label);
}

static bool is_numbered(const hf_target *target)
{
    return target->space == HF_PAIR || target->derivation == HF_FIXED;
}

static hf_status refuse_derivation(const hf_target *target, const hf_registry_entry *entry,
                                   hf_error *err)
{
    char shown[128];
    hf_status status = hf__fail(
        err, HF_CONFIG, "'%s' is to be locked as %s, and the registry has it as %s (%s)",
        hf__show(shown, sizeof shown, target->label, label_size(target)),
        hf_derivation_name(target->derivation), hf_derivation_name(entry->derivation), entry->name);
    hf__hint(err,
             "two derivations of one label are two locks: leave the derivation to the registry");
    return status;
}

/* The entry of a numbered target: by its key, or by its label if that gives the same key. */
static const hf_registry_entry *find_numbered(const hf_registry *registry, const hf_target *target)
{
    const hf__lock_entry *other = NULL;
    int64_t key = target->key, entry_key = 0;
    if (target->space == HF_PAIR)
        key = hf_key_join((uint32_t)target->pair[0], (uint32_t)target->pair[1]);
    const hf__lock_entry *entry = hf__registry_by_key(registry, target->space, key);
    if (entry || !target->label)
        return entry ? &entry->view : NULL;
    bool same =
        hf__registry_match(registry, target->label, label_size(target), &entry, &other, NULL) ==
            HF_OK &&
        entry && entry->view.space == target->space &&
        hf__entry_key(entry, target->label, label_size(target), &entry_key, NULL) == HF_OK &&
        entry_key == key;
    return same ? &entry->view : NULL;
}

/* The key of a shared table is registered in the store, not in the file. */
static hf_status refuse_stranger(const hf_registry *registry, const hf_target *target,
                                 hf_error *err)
{
    char shown[128];
    if (hf_registry_strictness(registry) != HF_STRICT_ALL || target->derivation == HF_MINTED)
        return HF_OK;
    hf_status status =
        target->label
            ? hf__fail(err, HF_CONFIG, "'%s' is not in the registry, which is strict",
                       hf__show(shown, sizeof shown, target->label, label_size(target)))
            : hf__fail(err, HF_CONFIG, "the key %lld is not in the registry, which is strict",
                       (long long)target->key);
    hf__hint(err, "add it to %s, or say strict: false there", hf_registry_path(registry));
    return status;
}

static hf_status ask_registry(const hf_registry *registry, hf_target *target,
                              const hf_registry_entry **entry, hf_error *err)
{
    hf_target known;
    *entry = NULL;
    if (!registry)
        return HF_OK;
    if (is_numbered(target)) {
        *entry = find_numbered(registry, target);
        return *entry ? HF_OK : refuse_stranger(registry, target, err);
    }
    hf_status status =
        hf_registry_resolve(registry, target->label, target->label_size, &known, entry, err);
    if (status == HF_OK && !*entry)
        status = refuse_stranger(registry, target, err);
    if (status != HF_OK || !*entry)
        return status;
    if (target->derivation != HF_SHA256 && target->derivation != (*entry)->derivation)
        return refuse_derivation(target, *entry, err);
    *target = known;
    return HF_OK;
}

/*
 * Finds the key of a shared table, and replaces the label by the one spelling of the table's name:
 * two spellings would look like two labels for one key.
 */
static hf_status look_up(hf_store *store, hf_target *target, const hf_lock_spec *spec, int64_t *key,
                         hf_error *err)
{
    const char *text = NULL;
    if (spec->lifetime == HF_TRANSACTION) {
        hf_status status =
            hf__fail(err, HF_INVALID, "a shared table is locked for a session, not a transaction");
        hf__hint(err, "use hf_table_lock, or 'holdfast run'");
        return status;
    }
    hf_status status = store->lookup->ops->find(store->lookup, store, target->label,
                                                label_size(target), &text, key, err);
    if (status == HF_OK) {
        target->label = text;
        target->label_size = strlen(text);
    }
    return status;
}

static hf_status resolve_one(hf_store *store, const hf_target *given, const hf_lock_spec *spec,
                             hf__claim *claim, hf_error *err)
{
    hf_status status = HF_OK;
    hf_target known = *given, *target = &known;
    const hf_registry_entry *entry = NULL;

    if (target->label || !is_numbered(target))
        status = check_label(target->label ? target->label : "", label_size(target), err);
    if (status == HF_OK)
        status = ask_registry(store->registry, target, &entry, err);
    if (status != HF_OK)
        return status;
    claim->has_order = entry && entry->has_order;
    claim->order = claim->has_order ? entry->order : 0;
    if (target->space == HF_PAIR)
        claim->key = hf_key_join((uint32_t)target->pair[0], (uint32_t)target->pair[1]);
    else if (target->derivation == HF_FIXED)
        claim->key = target->key;
    else if (target->derivation == HF_MINTED)
        status = look_up(store, target, spec, &claim->key, err);
    else
        status =
            hf_key_derive(target->derivation, target->label, label_size(target), &claim->key, err);
    claim->space = target->space == HF_PAIR ? HF_PAIR : hf_derivation_space(target->derivation);
    claim->mode = spec->mode;
    claim->wake = claim->space == HF_PAIR ? claim->key ^ INT64_C(0x5041495250414952) : claim->key;
    claim->label = target->label;
    claim->label_size = label_size(target);
    claim->derivation = claim->space == HF_PAIR ? HF_FIXED : target->derivation;
    return status;
}

void hf__warn_of_lifetime(hf_store *store, const hf_target *given)
{
    hf_target target = *given;
    const hf_registry_entry *entry = NULL;
    if (ask_registry(store->registry, &target, &entry, NULL) == HF_OK && entry &&
        entry->lifetime_given && entry->lifetime == HF_SESSION)
        hf__log(store->backend, HF_LOG_WARNING,
                "%s is a session lock in the registry, and is taken for one transaction here",
                entry->name);
}

static int by_key(const void *a, const void *b)
{
    const hf__claim *left = a, *right = b;
    if (left->space != right->space)
        return left->space < right->space ? -1 : 1;
    return left->key < right->key ? -1 : left->key > right->key;
}

static bool same_label(const hf__claim *a, const hf__claim *b)
{
    if (!a->label || !b->label)
        return true;
    return a->label_size == b->label_size && memcmp(a->label, b->label, a->label_size) == 0;
}

static hf_status remove_repeats(hf__claim *claims, size_t *count, hf_error *err)
{
    size_t kept = 1;
    for (size_t i = 1; i < *count; i++) {
        if (by_key(&claims[kept - 1], &claims[i]) != 0) {
            claims[kept++] = claims[i];
            continue;
        }
        if (!same_label(&claims[kept - 1], &claims[i])) {
            char one[200], other[200];
            hf_status status =
                hf__fail(err, HF_COLLISION, "%s and %s are two labels for one key, %lld",
                         hf__claim_name(one, sizeof one, &claims[kept - 1]),
                         hf__claim_name(other, sizeof other, &claims[i]), (long long)claims[i].key);
            hf__hint(err, "use the sha256 derivation or another name for one of them");
            return status;
        }
    }
    *count = kept;
    return HF_OK;
}

/* The caller's strings need not outlive the call, but a lock needs its labels until it is freed. */
static hf_status copy_labels(hf__claim *claims, size_t count, char **labels, hf_error *err)
{
    size_t total = 1;
    for (size_t i = 0; i < count; i++)
        total += claims[i].label_size;
    char *at = *labels = malloc(total);
    if (!at)
        return hf__no_memory(err);
    for (size_t i = 0; i < count; i++) {
        if (!claims[i].label)
            continue;
        memcpy(at, claims[i].label, claims[i].label_size);
        claims[i].label = at;
        at += claims[i].label_size;
    }
    return HF_OK;
}

static int by_order(const void *a, const void *b)
{
    return hf__compare_claims(a, b);
}

/* Sorts by key, which finds repeats; then in the order of the registry, if there is one. */
static hf_status sort_claims(const hf_store *store, hf__claim *claims, size_t *count, hf_error *err)
{
    if (*count < 2)
        return HF_OK;
    qsort(claims, *count, sizeof *claims, by_key);
    hf_status status = remove_repeats(claims, count, err);
    if (status == HF_OK && store->registry)
        qsort(claims, *count, sizeof *claims, by_order);
    return status;
}

hf_status hf__resolve(hf_store *store, const hf_lock_spec *spec, hf__claim **out, size_t *count,
                      char **labels, hf_error *err)
{
    hf_status status = HF_OK;
    if (!spec->targets || spec->target_count == 0)
        return hf__fail(err, HF_INVALID, "nothing to lock: the set of targets is empty");
    hf__claim *claims = calloc(spec->target_count, sizeof *claims);
    if (!claims)
        return hf__no_memory(err);
    for (size_t i = 0; status == HF_OK && i < spec->target_count; i++)
        status = resolve_one(store, &spec->targets[i], spec, &claims[i], err);
    *count = spec->target_count;
    if (status == HF_OK)
        status = sort_claims(store, claims, count, err);
    if (status == HF_OK)
        status = copy_labels(claims, *count, labels, err);
    if (status != HF_OK) {
        free(claims);
        return status;
    }
    *out = claims;
    return HF_OK;
}

int hf__registered_lease_ms(const hf_store *store, const hf_lock_spec *spec)
{
    int shortest = 0;
    for (size_t i = 0; spec->targets && i < spec->target_count; i++) {
        hf_target target = spec->targets[i];
        const hf_registry_entry *entry = NULL;
        if ((target.label || is_numbered(&target)) &&
            ask_registry(store->registry, &target, &entry, NULL) != HF_OK)
            entry = NULL;
        int ms = entry && entry->lease_ms ? entry->lease_ms : HF_LEASE_DEFAULT_MS;
        shortest = shortest && shortest < ms ? shortest : ms;
    }
    return shortest ? shortest : HF_LEASE_DEFAULT_MS;
}

bool hf__are_registered_as(const hf_store *store, const hf_lock_spec *spec, hf_lifetime lifetime)
{
    if (!store->registry || !spec->targets || spec->target_count == 0)
        return false;
    for (size_t i = 0; i < spec->target_count; i++) {
        hf_target target = spec->targets[i];
        const hf_registry_entry *entry = NULL;
        if ((!target.label && !is_numbered(&target)) ||
            ask_registry(store->registry, &target, &entry, NULL) != HF_OK || !entry ||
            !entry->lifetime_given || entry->lifetime != lifetime)
            return false;
    }
    return true;
}
