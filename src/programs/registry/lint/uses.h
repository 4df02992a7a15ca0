/* The places where a file acquires or releases advisory locks. */
#ifndef HF_LINT_USES_H
#define HF_LINT_USES_H

#include "programs/registry/lint/lock_key.h"

/* A kind of use is a row in the table of kinds.c. */
typedef struct hf__use_kind {
    const char *name;
    /*
     * An expression that ends after the opening parenthesis. Named groups say what the call does:
     * unlock, all, xact, shared, try.
     */
    const char *regex;
    unsigned languages;
    bool in_sql;            /* a call in SQL: in strings, and in SQL files */
    bool in_code;           /* a call in the program's own code */
    bool in_doubt;          /* it is the project's own function, if there is one of that name */
    bool bare;              /* only the name of a function, which SQL is made with elsewhere */
    size_t argument;        /* which argument is the key */
    bool labels;            /* a string is a label; otherwise the key is a number or SQL */
    bool pairs;             /* two arguments are two numbers, also where a string is a label */
    bool releases;          /* it releases the lock by itself */
    const char *derivation; /* how it hashes labels; "" in a way that we do not have; NULL: as SQL
                             * says, or not at all */
    bool lifetime_unknown;
    const char *transaction_if; /* with arguments that match it is a lock of the transaction */
    const char *file_has;       /* only in files that contain this text */
    bool ours;                  /* Holdfast's own: own_calls.c reads which locks it takes */
    const char *params;         /* names of its parameters, each with a comma behind it */
    size_t how;                 /* of ours: which of them, after the first, is the derivation */
} hf__use_kind;

enum { HF__USE_KINDS = 25 };
extern const hf__use_kind hf__use_kinds[HF__USE_KINDS];

typedef struct hf__use {
    const hf__use_kind *kind;
    size_t start; /* including a schema and quotes */
    size_t at;    /* the function's name */
    size_t args;  /* after the opening parenthesis */
    size_t end;   /* after the closing one */
    size_t block;
    bool in_text;
    bool unlocks;
    bool unlocks_all;
    bool tries;
    bool shared;
    bool labels;
    bool lifetime_known;
    hf_lifetime lifetime;
    hf__lock_key key;
    hf__wrapper *calls; /* the wrapper that is called here, or NULL */
    hf__wrapper *wraps; /* the wrapper whose body this is, or NULL */
    hf__choice choice;  /* of the function that this is in */
    bool again;         /* the use before it, with another key that it may have */
} hf__use;

/* What a file says besides its uses. */
typedef struct hf__file_facts {
    const hf__unit *unit;
    hf__assignments names;
    hf__function *functions;
} hf__file_facts;

typedef struct hf__uses {
    hf__use *items; /* in their order in the file */
    size_t count;
    size_t capacity;
    bool incomplete; /* a limit was reached */
} hf__uses;

/* All expressions that find uses, compiled once. For one thread at a time. */
typedef struct hf__use_finder hf__use_finder;

HF_MUST_CHECK hf_status hf__use_finder_new(hf__use_finder **finder, hf_error *err);
void hf__use_finder_free(hf__use_finder *finder);
void hf__use_finder_limit(hf__use_finder *finder, uint32_t match_limit);

/* May the text contain a use, or an ignore comment? Fast: for most files the answer is no. */
hf__pcre_found hf__use_finder_may_use(hf__use_finder *finder, const char *text, size_t size);

/* Reads what the keys of a file may refer to. The caller frees facts. */
HF_MUST_CHECK hf_status hf__file_facts_read(hf__use_finder *finder, const hf__unit *unit,
                                            hf__file_facts *facts, hf_error *err);
void hf__file_facts_free(hf__file_facts *facts);

/* The scope of the file itself. */
hf__scope hf__file_scope(hf__use_finder *finder, hf__file_facts *facts, hf__project *project);

/* Finds the uses of a file, and the calls of the project's wrappers. The caller frees uses. */
HF_MUST_CHECK hf_status hf__uses_find(hf__use_finder *finder, const hf__scope *scope,
                                      hf__uses *uses, hf_error *err);
void hf__uses_free(hf__uses *uses);

/* Adds a use, which it takes over, once for each key that it may have. */
HF_MUST_CHECK hf_status hf__uses_add(hf__uses *uses, hf__use *use, hf_error *err);

static inline bool hf__use_acquires(const hf__use *use)
{
    return !use->unlocks;
}

#endif
