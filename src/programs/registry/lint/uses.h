/* Where a file takes or gives back advisory locks. */
#ifndef HF_LINT_USES_H
#define HF_LINT_USES_H

#include "programs/registry/lint/lock_key.h"

/* Kinds of use are declared, not programmed: see the table in uses.c. */
typedef struct hf__use_kind {
    const char *name;
    /*
     * Ends behind the opening parenthesis. Named groups say what it does: unlock, all, xact,
     * shared, try.
     */
    const char *regex;
    unsigned languages;
    bool in_sql;     /* it is SQL: in strings, and in SQL files */
    bool in_code;    /* it is the program's own code */
    size_t argument; /* which one is the key */
    bool labels;   /* a string is a label; otherwise the key is a number or an expression of SQL */
    bool releases; /* it gives the lock back by itself */
    bool lifetime_unknown;
    const char *transaction_if; /* arguments that match make it a lock of the transaction */
    const char *file_has;       /* only in files with this text */
} hf__use_kind;

typedef struct hf__use {
    const hf__use_kind *kind;
    size_t start; /* with a schema and quotes */
    size_t at;    /* of the function's name */
    size_t args;  /* behind the opening parenthesis */
    size_t end;   /* behind the closing one */
    size_t block;
    bool in_text;
    bool unlocks;
    bool unlocks_all;
    bool tries;
    bool shared;
    bool lifetime_known;
    hf_lifetime lifetime;
    hf__lock_key key;
} hf__use;

typedef struct hf__uses {
    hf__use *items; /* as they stand in the file */
    size_t count;
    size_t capacity;
    bool incomplete; /* a limit was hit */
} hf__uses;

/* Every expression that finding uses needs, compiled once. */
typedef struct hf__use_finder hf__use_finder;

HF_MUST_CHECK hf_status hf__use_finder_new(hf__use_finder **finder, hf_error *err);
void hf__use_finder_free(hf__use_finder *finder);
void hf__use_finder_limit(hf__use_finder *finder, uint32_t match_limit);

/* May the text hold any use, or a comment for us? Cheap: most files stop here. */
hf__pcre_found hf__use_finder_may_use(hf__use_finder *finder, const char *text, size_t size);

HF_MUST_CHECK hf_status hf__uses_find(hf__use_finder *finder, const hf__unit *unit, hf__uses *uses,
                                      hf_error *err);
void hf__uses_free(hf__uses *uses);

static inline bool hf__use_takes(const hf__use *use)
{
    return !use->unlocks;
}

#endif
