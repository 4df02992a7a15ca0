#include "programs/registry/lint/lock_key.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "lib/registry/registry.h"

enum { LABEL_SHOWN = 80 };

/* ---- From values ----------------------------------------------------------------------------- */

static bool fits_int4(int64_t number)
{
    return number >= INT32_MIN && number <= INT32_MAX;
}

/* The value as a number; "42" in quotes is one too. */
static bool as_number(const hf__worth *value, int64_t *number)
{
    char *end = NULL;

    if (value->kind == HF__VALUE_NUMBER) {
        *number = value->number;
        return true;
    }
    if (value->kind != HF__VALUE_TEXT || value->text.length == 0)
        return false;
    errno = 0;
    *number = strtoll(value->text.data, &end, 0);
    return errno == 0 && end == value->text.data + value->text.length;
}

/* The first number of a pair: written as one, or the hash of a label of which all is known. */
static bool as_class(const hf__worth *value, int64_t *number)
{
    const hf__buf *text = &value->text;

    if (value->kind == HF__VALUE_HASHED)
        return value->derivation_known && hf__has_32_bits(value->derivation) && text->length > 0 &&
               memchr(text->data, HF__LABEL_HOLE, text->length) == NULL &&
               memchr(text->data, HF__LABEL_PARAM, text->length) == NULL &&
               hf_key_derive(value->derivation, text->data, text->length, number, NULL) == HF_OK &&
               fits_int4(*number);
    return as_number(value, number) && fits_int4(*number);
}

/* Keeps the text as a label. Holes and what stands between them say nothing: '…:…' is not kept. */
static hf_status keep_label(const hf__worth *value, hf__lock_key *key, hf_error *err)
{
    const hf__buf *text = &value->text;
    bool known = false;
    bool holes = false;
    size_t size = 0;

    if (text->length > HF_LABEL_MAX)
        return HF_OK;
    char *label = malloc(text->length + 1);
    if (label == NULL)
        return hf__no_memory(err);
    for (size_t i = 0; i < text->length; i++) {
        char c = text->data[i];
        i += c == HF__LABEL_PARAM;
        if (c == HF__LABEL_PARAM)
            c = HF__LABEL_HOLE;
        known = known || isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
        holes = holes || c == HF__LABEL_HOLE;
        if (c != HF__LABEL_HOLE || size == 0 || label[size - 1] != HF__LABEL_HOLE)
            label[size++] = c;
    }
    label[size] = '\0';
    if (!known && holes) {
        free(label);
        return HF_OK;
    }
    key->kind = HF__KEY_LABEL;
    key->label = label;
    key->label_size = size;
    key->has_holes = memchr(label, HF__LABEL_HOLE, size) != NULL;
    return HF_OK;
}

static hf_status make_single(const hf__worth *value, bool labels, hf__lock_key *key, hf_error *err)
{
    key->uses_hashtext = value->uses_hashtext;
    if (value->kind == HF__VALUE_HASHED) {
        key->derivation = value->derivation;
        key->derivation_known = value->derivation_known;
        key->hash_unsure = value->unsure;
        key->hashed_otherwise = !value->derivation_known && !value->unsure;
        return keep_label(value, key, err);
    }
    if (labels && value->kind == HF__VALUE_TEXT)
        return keep_label(value, key, err);
    if (as_number(value, &key->number))
        key->kind = HF__KEY_NUMBER;
    return HF_OK;
}

hf_status hf__lock_key_make(hf__worth values[2], bool is_pair, bool labels, size_t block,
                            hf__lock_key *key, hf_error *err)
{
    int64_t classid = 0;
    hf_status status;

    *key = (hf__lock_key){
        .values = {values[0], values[1]},
        .is_pair = is_pair,
        .block = block,
        .why = block != HF__NO_BLOCK ? "its callers pass the key"
                                     : "its key is computed when the program runs",
    };
    values[0] = values[1] = (hf__worth){0};
    if (!is_pair)
        return make_single(&key->values[0], labels, key, err);
    status = make_single(&key->values[1], labels, key, err);
    key->uses_hashtext = key->uses_hashtext || key->values[0].uses_hashtext;
    if (!as_class(&key->values[0], &classid) ||
        (key->kind == HF__KEY_NUMBER && !fits_int4(key->number))) {
        free(key->label);
        key->label = NULL;
        key->kind = HF__KEY_UNKNOWN;
        return status;
    }
    key->pair[0] = (int32_t)classid;
    key->in_class = key->kind == HF__KEY_LABEL;
    if (key->kind != HF__KEY_LABEL) {
        key->has_holes = key->kind == HF__KEY_UNKNOWN;
        key->pair[1] = key->has_holes ? 0 : (int32_t)key->number;
        key->kind = HF__KEY_PAIR;
    }
    return status;
}

/* ---- From arguments -------------------------------------------------------------------------- */

static hf__piece argument(const hf__args *args, size_t index)
{
    return hf__piece_trim((hf__piece){args->text.data + args->start[index], args->size[index]});
}

/* Key("a", allowHashing: true) has one number, not two. */
static bool is_named(hf__piece argument)
{
    return memchr(argument.text, ':', argument.size) != NULL;
}

hf_status hf__lock_key_read(const hf__scope *scope, const hf__args *args, size_t first,
                            const char *params, bool labels, bool pairs, hf__lock_key *key,
                            hf_error *err)
{
    hf__worth values[2] = {{0}};
    size_t block = HF__NO_BLOCK;
    bool is_pair = pairs && first == 0 && args->count == 2 && args->text.data != NULL &&
                   !(labels && is_named(argument(args, 1)));

    *key = (hf__lock_key){.why = "its arguments cannot be read", .block = HF__NO_BLOCK};
    if (args->text.broken)
        return hf__no_memory(err);
    if (!args->complete || args->text.data == NULL || args->count <= first || first >= HF__ARGS_MAX)
        return HF_OK;
    hf__piece pieces[HF__ARGS_MAX];
    size_t count = args->count < HF__ARGS_MAX ? args->count : HF__ARGS_MAX;
    for (size_t i = 0; i < count; i++)
        pieces[i] = argument(args, i);
    count = hf__pieces_by_name(pieces, count, HF__ARGS_MAX, params);
    if (first < count)
        hf__value_read(scope, pieces[first], &values[0], &block);
    if (is_pair)
        hf__value_read(scope, argument(args, first + 1), &values[1], &block);
    return hf__lock_key_make(values, is_pair, labels, block, key, err);
}

void hf__lock_key_free(hf__lock_key *key)
{
    free(key->label);
    hf__value_free(&key->values[0]);
    hf__value_free(&key->values[1]);
    *key = (hf__lock_key){0};
}

bool hf__lock_key_may_equal(const hf__lock_key *a, const hf__lock_key *b)
{
    if (a->kind == HF__KEY_UNKNOWN || b->kind == HF__KEY_UNKNOWN)
        return true;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case HF__KEY_NUMBER: return a->number == b->number;
    case HF__KEY_PAIR:
        return a->pair[0] == b->pair[0] &&
               (a->has_holes || b->has_holes || a->pair[1] == b->pair[1]);
    case HF__KEY_LABEL:
        return a->has_holes || b->has_holes ||
               (a->label_size == b->label_size && memcmp(a->label, b->label, a->label_size) == 0);
    case HF__KEY_UNKNOWN: break;
    }
    return true;
}

static const char *show_label(const hf__lock_key *key, char *out, size_t out_size)
{
    hf__buf text = {0};
    char shown[LABEL_SHOWN];

    for (size_t i = 0; i < key->label_size; i++) {
        if (key->label[i] == HF__LABEL_HOLE)
            hf__buf_puts(&text, "…");
        else
            hf__buf_add(&text, key->label + i, 1);
    }
    snprintf(out, out_size, "'%s'",
             text.broken ? "" : hf__show(shown, sizeof shown, text.data, text.length));
    hf__buf_free(&text);
    return out;
}

const char *hf__lock_key_show(const hf__lock_key *key, char *out, size_t out_size)
{
    switch (key->kind) {
    case HF__KEY_NUMBER: snprintf(out, out_size, "%" PRId64, key->number); return out;
    case HF__KEY_PAIR:
        if (key->has_holes)
            snprintf(out, out_size, "(%" PRId32 ", …)", key->pair[0]);
        else
            snprintf(out, out_size, "(%" PRId32 ", %" PRId32 ")", key->pair[0], key->pair[1]);
        return out;
    case HF__KEY_LABEL: return show_label(key, out, out_size);
    case HF__KEY_UNKNOWN: break;
    }
    return NULL;
}
