/*
 * What the files of a project tell about each other: constants, functions that make keys, and
 * functions that take a lock for their callers.
 */
#ifndef HF_LINT_PROJECT_H
#define HF_LINT_PROJECT_H

#include "base/buf.h"
#include "holdfast/holdfast.h"
#include "programs/registry/lint/pcre.h"

/*
 * In a text: what is known only when the program runs, and a parameter. A digit follows it, or,
 * where it is the whole text, a letter from 'a' for a field of the parameter.
 */
#define HF__LABEL_HOLE '\x01'
#define HF__LABEL_PARAM '\x02'

enum { HF__FIELD_MAX = 32, HF__OTHERWISE_MAX = 64 };

typedef enum hf__value_kind {
    HF__VALUE_UNKNOWN,
    HF__VALUE_NUMBER,
    HF__VALUE_TEXT,
    HF__VALUE_HASHED, /* text is what is hashed */
} hf__value_kind;

typedef struct hf__worth {
    hf__value_kind kind;
    int64_t number;
    hf__buf text;
    bool derivation_known;
    hf_derivation derivation;
    bool unsure; /* nobody can tell from here which bits of the hash make the key */
    bool uses_hashtext;
    char field[HF__FIELD_MAX];         /* the field that a letter in the text means */
    char otherwise[HF__OTHERWISE_MAX]; /* what a parameter is when nothing is passed; "": unknown */
    char lookup[HF__FIELD_MAX]; /* the text, a parameter, is a name in this map; "": it is not */
    bool each;              /* the text, a parameter, is a list: the value is any of its items */
    struct hf__worth *also; /* another value that it may have; NULL: there is none */
} hf__worth;

enum { HF__VALUES_MAX = 24 }; /* that one expression may have; with more it has none */

void hf__value_free(hf__worth *value);
bool hf__value_copy(hf__worth *to, const hf__worth *from); /* false: no memory */
bool hf__value_equals(const hf__worth *a, const hf__worth *b);

/*
 * Adds another value that an expression may have, which it takes over: nothing when it has it
 * already. One that is not known is kept behind those that are.
 */
void hf__value_join(hf__worth *value, hf__worth *other);
size_t hf__value_count(const hf__worth *value);

/* Do its callers decide about a part of it? */
bool hf__value_has_params(const hf__worth *value);

/* The parameter that the value is, alone; -1 when it is something else. */
int hf__value_param(const hf__worth *value);

/* A function may take another lock when it is given this field of a parameter. */
typedef struct hf__choice {
    char field[HF__FIELD_MAX]; /* "": it has no choice */
    size_t param;
    bool pair; /* it is then the second number, beside the key of else */
} hf__choice;

/* A function that takes a lock from its parameters, or is declared to. */
typedef struct hf__wrapper {
    char *name;
    hf__worth key[2]; /* of a pair: both; else the first */
    bool pair;
    bool labels; /* a text is a label, not a number in quotes */
    bool shared;
    bool tries;
    bool lifetime_known;
    hf_lifetime lifetime;
    unsigned languages;
    bool in_sql;
    bool declared;
    bool statement; /* no function: a constant with SQL, whose placeholders are the parameters */
    bool settled; /* its lock needs no callers: it only keeps others of its name from being meant */
    char *file;   /* where it is defined */
    unsigned line;
    size_t use;         /* where in the file the lock is taken that key tells about */
    char *owner;        /* the class that it is in; NULL: none, or not known */
    char *params;       /* their names, each with a comma behind it; NULL: not known */
    size_t unsure_from; /* with so many arguments it may take another lock; SIZE_MAX: never */
    hf__choice choice;
    struct hf__wrapper *also; /* the same constructor by its own name; NULL: there is none */
    size_t calls;             /* that were found */
    size_t unresolved;        /* of them */
    bool hidden;              /* others pass an object whose field nobody can tell */
    bool told;                /* a finding was reported for it */
} hf__wrapper;

typedef struct hf__definition {
    char *name;
    char *file;
    char *params;    /* of a function, as in hf__wrapper */
    hf__worth value; /* of a function: what it returns, with marks for parameters */
    bool function;
} hf__definition;

typedef struct hf__project {
    hf__wrapper *wrappers;
    size_t wrapper_count, wrapper_room;
    hf__definition *definitions;
    size_t definition_count, definition_room;
    char **wanted; /* names that some key needs, and no file has told yet */
    size_t wanted_count, wanted_room;
    bool defining;       /* a definition is read, not a key: what it needs is further away */
    bool loads_holdfast; /* some file does: stores may be passed to others */
    bool grown;          /* since hf__project_compile: another round may tell more */
    bool broken;
    hf__pcre *names; /* finds any of the names above; NULL: there are none */
} hf__project;

void hf__project_free(hf__project *project);

/* Builds names from all that is known now. */
HF_MUST_CHECK hf_status hf__project_compile(hf__project *project, hf_error *err);

/* Takes over the wrapper's texts, unless its file has one of that name: false. */
bool hf__project_add_wrapper(hf__project *project, hf__wrapper *wrapper);

/* Notes a call of it, and of others of its name: nobody can tell which one is meant. */
void hf__project_count_call(hf__project *project, const hf__wrapper *wrapper, bool unresolved);

/*
 * The wrapper that a file means by a name: its own, that of its folder, or another one; its own
 * last when others_first is set.
 */
hf__wrapper *hf__project_wrapper(hf__project *project, const char *name, size_t size,
                                 unsigned language, const char *path, bool others_first);

/* The only one of that name in a class; NULL: there is none, or there are several. */
hf__wrapper *hf__project_method(hf__project *project, const char *name, size_t size,
                                const char *owner, size_t owner_size);

/*
 * Notes what a file says about a name. One that is not known counts too: with it the name has no
 * value in its folder. params may be NULL.
 */
void hf__project_define(hf__project *project, const char *path, const char *name, bool function,
                        const char *params, const hf__worth *value);

/*
 * What a file means by a name: what its folder says, or else what the nearest agree about. What
 * tests define is not meant by a program. folder_only: names of the package, as in Go.
 */
const hf__definition *hf__project_find(const hf__project *project, const char *path,
                                       const char *name, size_t size, bool function,
                                       bool folder_only);

/*
 * What the functions of that name return, which have it from a class that they are derived from:
 * any of their values.
 */
void hf__project_find_all(hf__project *project, const char *path, const char *name, size_t size,
                          hf__worth *value);

/* Is there another of that name, as near to the file, that takes another lock? */
bool hf__project_is_ambiguous(const hf__project *project, const hf__wrapper *wrapper,
                              const char *path);

/* Notes that a name is needed. */
void hf__project_want(hf__project *project, const char *name, size_t size);

#endif
