/* The key of a lock in source code, as far as the source tells. */
#ifndef HF_LINT_LOCK_KEY_H
#define HF_LINT_LOCK_KEY_H

#include "holdfast/holdfast.h"
#include "programs/registry/lint/args.h"
#include "programs/registry/lint/statements.h"

/* The part of a label that is known only when the program runs. */
#define HF__LABEL_HOLE '\x01'

typedef enum hf__key_kind {
    HF__KEY_UNKNOWN,
    HF__KEY_NUMBER,
    HF__KEY_PAIR,
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
    hf_derivation derivation;
    bool uses_hashtext; /* also when the label is not known */
    const char *why;    /* it is HF__KEY_UNKNOWN: the rest of a sentence, a constant */
} hf__lock_key;

enum hf__key_pattern {
    HF__KEY_IS_NUMBER,
    HF__KEY_IS_CAST,
    HF__KEY_IS_TYPED,
    HF__KEY_IS_SUFFIXED,
    HF__KEY_IS_CONVERTED,
    HF__KEY_IS_HASHED,
    HF__KEY_IS_SHA256,
    HF__KEY_IS_OURS, /* the 64 bits of SHA-256 that this project uses */
    HF__KEY_IS_NAME,
    HF__KEY_IS_STRING,
    HF__KEY_PATTERNS,
};

extern const char *const hf__key_patterns[HF__KEY_PATTERNS];

/* Where a key is, for those who read it. */
typedef struct hf__key_source {
    const hf__unit *unit;
    const hf__constants *constants;
    hf__pcre *const *patterns; /* hf__key_patterns, compiled */
    size_t string_end; /* where the SQL's string ends and parameters follow; SIZE_MAX: no string */
    bool labels;       /* a string is a label, not a number in quotes */
    bool code;         /* the arguments are code of the program, not SQL */
} hf__key_source;

/* Reads the key that starts at argument `first`. What it cannot tell is HF__KEY_UNKNOWN. */
HF_MUST_CHECK hf_status hf__lock_key_read(const hf__key_source *source, const hf__args *args,
                                          size_t first, hf__lock_key *key, hf_error *err);
void hf__lock_key_free(hf__lock_key *key);

/* May both be the same? An unknown key, or a label with holes, may be any. */
bool hf__lock_key_may_equal(const hf__lock_key *a, const hf__lock_key *b);

/* The key for messages: "42", "(7, 1)", "'booking:…'". Returns out, or NULL for an unknown key. */
const char *hf__lock_key_show(const hf__lock_key *key, char *out, size_t out_size);

#endif
