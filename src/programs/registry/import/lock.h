/* One lock as a row of a table describes it, and how it is written into the registry. */
#ifndef HF_AUDIT_IMPORT_LOCK_H
#define HF_AUDIT_IMPORT_LOCK_H

#include "base/error.h"
#include "programs/registry/import/inline.h"
#include "programs/registry/import/key.h"
#include "programs/registry/import/markdown.h"

typedef enum hf__import_kind {
    HF__IMPORT_NOTHING, /* no key could be read; why tells */
    HF__IMPORT_FIXED,
    HF__IMPORT_PAIR,
    HF__IMPORT_PATTERN,
} hf__import_kind;

/* Zero-initialise it, free it. Buffers are empty where nothing was said. */
typedef struct hf__import_lock {
    hf__import_kind kind;
    unsigned line;
    size_t section;
    unsigned repeats; /* the line that has the same key already; 0: none */
    const char *why;  /* of HF__IMPORT_NOTHING */
    int64_t key;
    int32_t pair[2];
    bool has_class; /* of a pattern: pair[0] is its first key */
    hf_derivation derivation;
    bool derivation_given;
    hf__mentions mentions; /* what the row itself says about hashing */
    bool from_javascript;
    bool name_is_final; /* a name that was given, not one to make */
    hf__buf name, pattern, component, purpose, scope, owner, runbook;
    hf__buf placeholders; /* YAML, without the braces */
    hf__buf sources;      /* lines */
    unsigned type;        /* enum hf__type_word: what all cells about its type say */
    bool has_order;
    int64_t order;
    int64_t expected; /* 0: not said */
    bool histogram;
    hf__buf comments; /* lines */
} hf__import_lock;

enum hf__type_word {
    HF__SAYS_SESSION = 1,
    HF__SAYS_TRANSACTION = 2,
    HF__SAYS_EXCLUSIVE = 4,
    HF__SAYS_SHARED = 8,
};

/* own_document: `holdfast registry doc` wrote it, so that patterns are those of the registry. */
void hf__import_lock_read(hf__import_lock *lock, const hf__table *table, const hf__row *row,
                          bool own_document);
void hf__import_lock_write(const hf__import_lock *lock, hf__buf *yaml);
void hf__import_lock_free(hf__import_lock *lock);
bool hf__import_lock_is_broken(const hf__import_lock *lock); /* memory ran out */

/* import_cells.c: what a cell of a column other than the keys says */
void hf__import_lock_read_cell(hf__import_lock *lock, hf__md_column column, const hf__inline *cell);
void hf__import_lock_read_placeholders(hf__import_lock *lock, const hf__inline *cell);

/* One more line of comment; a doubt ends in "check". */
void hf__import_lock_comment(hf__import_lock *lock, const char *what, const char *text);
void hf__import_lock_doubt(hf__import_lock *lock, const char *what);
void hf__import_lock_doubts(hf__import_lock *lock, const hf__buf *lines);

#endif
