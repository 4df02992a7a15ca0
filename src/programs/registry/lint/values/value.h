/*
 * What an expression of the source is worth, as far as the source tells: a number, a text with
 * holes, or the hash of one. Names, bound parameters, concatenations, formats and functions of the
 * project are followed; nothing is run.
 */
#ifndef HF_LINT_VALUE_H
#define HF_LINT_VALUE_H

#include "holdfast/holdfast.h"
#include "programs/registry/lint/project.h"
#include "programs/registry/lint/text/functions.h"
#include "programs/registry/lint/values/lambda.h"
#include "programs/registry/lint/values/names.h"
#include "programs/registry/lint/values/pieces.h"

enum hf__value_pattern {
    HF__VALUE_IS_NUMBER,
    HF__VALUE_IS_CAST,
    HF__VALUE_IS_TYPED,
    HF__VALUE_IS_SUFFIXED,
    HF__VALUE_IS_CONVERSION, /* the name of a call that changes the type, not the value */
    HF__VALUE_IS_METHOD,     /* the same for a method */
    HF__VALUE_IS_FORMAT,
    HF__VALUE_IS_JOIN,
    HF__VALUE_IS_SQL_HASH,
    HF__VALUE_IS_OURS,   /* the first 64 bits of SHA-256, or of MD5 */
    HF__VALUE_IS_ITEM,   /* LOCKS["report"] */
    HF__VALUE_IS_DIGEST, /* the name of a call that hashes */
    HF__VALUE_IS_NAME,
    HF__VALUE_PATTERNS,
};

extern const char *const hf__value_patterns[HF__VALUE_PATTERNS];

/* Where an expression stands. */
typedef struct hf__scope {
    const hf__unit *unit;
    hf__assignments *names;
    const hf__function *functions; /* one for each block of the unit */
    hf__project *project;          /* what other files say; names that are missed are noted there */
    hf__pcre *const *patterns;     /* hf__value_patterns, compiled */
    size_t at;                     /* which names can be seen */
    size_t string_end; /* where the SQL's string ends and parameters follow; SIZE_MAX: no string */
    bool code;         /* it is code of the program, not SQL */
} hf__scope;

/*
 * Evaluates a piece. *block is the function on whose parameters the value depends: HF__NO_BLOCK at
 * first and when it depends on none. Marks in the text stand for them. The caller frees value.
 */
void hf__value_read(const hf__scope *scope, hf__piece piece, hf__worth *value, size_t *block);

/* The value of a call of a function whose result, or key, has this form. */
void hf__value_apply(const hf__scope *scope, const hf__worth *form, const hf__piece *args,
                     size_t count, hf__worth *value, size_t *block);

/* What a function that is one expression is worth, with marks for its parameters. */
void hf__value_of_lambda(const hf__scope *scope, const hf__lambda *lambda, hf__worth *value);

/* Does the name speak of locks, so that it is worth while to look for it elsewhere? */
bool hf__speaks_of_locks(hf__piece name);

/* What the function of this block returns; HF__VALUE_UNKNOWN when it cannot be told. */
void hf__value_of_function(const hf__scope *scope, size_t block, hf__worth *value);

#endif
