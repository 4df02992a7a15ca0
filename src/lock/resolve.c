/* From what the caller names to keys: checked, derived, sorted by key, without repeats. */
#include "lock/engine.h"

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

static hf_status resolve_one(const hf_target *target, hf_mode mode, hf__claim *claim, hf_error *err)
{
    hf_status status = HF_OK;
    size_t size = label_size(target);
    bool numbered = target->space == HF_PAIR || target->derivation == HF_FIXED;

    if (target->label || !numbered)
        status = check_label(target->label ? target->label : "", size, err);
    if (status != HF_OK)
        return status;
    if (target->space == HF_PAIR)
        claim->key = hf_key_join((uint32_t)target->pair[0], (uint32_t)target->pair[1]);
    else if (target->derivation == HF_FIXED)
        claim->key = target->key;
    else
        status = hf_key_derive(target->derivation, target->label, size, &claim->key, err);
    claim->space = target->space;
    claim->mode = mode;
    claim->wake = target->space == HF_PAIR ? claim->key ^ INT64_C(0x5041495250414952) : claim->key;
    claim->label = target->label;
    claim->label_size = size;
    claim->derivation = target->space == HF_PAIR ? HF_FIXED : target->derivation;
    return status;
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

/* The caller's strings need not outlive the call; the lock's do. */
static hf_status copy_labels(hf__claim *claims, size_t count, char **labels, hf_error *err)
{
    size_t total = 1;
    for (size_t i = 0; i < count; i++)
        total += claims[i].label_size;
    char *at = *labels = malloc(total);
    if (!at)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++) {
        if (!claims[i].label)
            continue;
        memcpy(at, claims[i].label, claims[i].label_size);
        claims[i].label = at;
        at += claims[i].label_size;
    }
    return HF_OK;
}

hf_status hf__resolve(const hf_lock_spec *spec, hf__claim **out, size_t *count, char **labels,
                      hf_error *err)
{
    hf_status status = HF_OK;
    if (!spec->targets || spec->target_count == 0)
        return hf__fail(err, HF_INVALID, "nothing to lock: the set of targets is empty");
    hf__claim *claims = calloc(spec->target_count, sizeof *claims);
    if (!claims)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    for (size_t i = 0; status == HF_OK && i < spec->target_count; i++)
        status = resolve_one(&spec->targets[i], spec->mode, &claims[i], err);
    *count = spec->target_count;
    if (status == HF_OK && *count > 1) {
        qsort(claims, *count, sizeof *claims, by_key);
        status = remove_repeats(claims, count, err);
    }
    if (status == HF_OK)
        status = copy_labels(claims, *count, labels, err);
    if (status != HF_OK) {
        free(claims);
        return status;
    }
    *out = claims;
    return HF_OK;
}
