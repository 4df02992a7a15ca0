/* The key of a lock in source code, as far as the source tells. */
#ifndef HF_LINT_LOCK_KEY_H
#define HF_LINT_LOCK_KEY_H

#include "programs/registry/lint/text/args.h"
#include "programs/registry/lint/values/value.h"

typedef enum hf__key_kind {
    HF__KEY_UNKNOWN,
    HF__KEY_NUMBER,
    HF__KEY_PAIR,  /* has_holes: only the first number is known */
    HF__KEY_LABEL, /* label may have holes: a template */
} hf__key_kind;

typedef struct hf__lock_key {
    hf__key_kind kind;
    int64_t number;
    int32_t pair[2];
    bool in_class; /* the label's hash is the second of two numbers, pair[0] the first */
    char *label;
    size_t label_size;
    bool has_holes;
    bool derivation_known;
    bool hashed_otherwise; /* as no derivation of ours does */
    bool hash_unsure;      /* it may be one of ours, or not */
    hf_derivation derivation;
    bool uses_hashtext;  /* also when the label is not known */
    const char *why;     /* it is HF__KEY_UNKNOWN: the rest of a sentence, a constant */
    hf__worth values[2]; /* what the arguments are worth, with marks for parameters */
    bool is_pair;        /* both count */
    size_t block;        /* of the function whose parameters it depends on, or HF__NO_BLOCK */
} hf__lock_key;

/*
 * Makes the key of the values, which it takes over. labels: a text is a label, not a number in
 * quotes.
 */
HF_MUST_CHECK hf_status hf__lock_key_make(hf__worth values[2], bool is_pair, bool labels,
                                          size_t block, hf__lock_key *key, hf_error *err);

/*
 * Reads the key that starts at argument `first`, which may be passed by its name where params, as
 * in hf__pieces_by_name, is not NULL. pairs: two arguments are two numbers. What it
 * cannot tell is HF__KEY_UNKNOWN.
 */
HF_MUST_CHECK hf_status hf__lock_key_read(const hf__scope *scope, const hf__args *args,
                                          size_t first, const char *params, bool labels, bool pairs,
                                          hf__lock_key *key, hf_error *err);
void hf__lock_key_free(hf__lock_key *key);

/* May both be the same? An unknown key, or a label with holes, may be any. */
bool hf__lock_key_may_equal(const hf__lock_key *a, const hf__lock_key *b);

/* The key for messages: "42", "(7, 1)", "'booking:…'". Returns out, or NULL for an unknown key. */
const char *hf__lock_key_show(const hf__lock_key *key, char *out, size_t out_size);

#endif
