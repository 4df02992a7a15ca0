/* One lock as it was found in a table, and how it is written down. */
#ifndef HF_AUDIT_IMPORT_LOCK_H
#define HF_AUDIT_IMPORT_LOCK_H

#include "base/error.h"
#include "programs/registry/import/inline.h"
#include "programs/registry/import/key.h"
#include "programs/registry/import/markdown.h"

typedef enum hf__found_kind {
    HF__FOUND_NOTHING, /* no key could be read; why tells */
    HF__FOUND_FIXED,
    HF__FOUND_PAIR,
    HF__FOUND_PATTERN,
} hf__found_kind;

/* Zero-initialise it, free it. Buffers are empty where nothing was said. */
typedef struct hf__found {
    hf__found_kind kind;
    unsigned line;
    size_t section;
    unsigned repeats; /* the line that has the same key already; 0: none */
    const char *why;  /* of HF__FOUND_NOTHING */
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
    unsigned type;        /* enum hf__type_word, as found in all cells about it */
    bool has_order;
    int64_t order;
    int64_t expected; /* 0: not said */
    bool histogram;
    hf__buf comments; /* lines */
} hf__found;

enum hf__type_word {
    HF__SAYS_SESSION = 1,
    HF__SAYS_TRANSACTION = 2,
    HF__SAYS_EXCLUSIVE = 4,
    HF__SAYS_SHARED = 8,
};

/* own_document: `holdfast registry doc` wrote it, so that patterns are those of the registry. */
void hf__found_read(hf__found *found, const hf__table *table, const hf__row *row,
                    bool own_document);
void hf__found_write(const hf__found *found, hf__buf *yaml);
void hf__found_free(hf__found *found);
bool hf__found_is_broken(const hf__found *found); /* memory ran out */

/* import_cells.c: what a cell of a column other than the keys says */
void hf__found_read_cell(hf__found *found, hf__column column, const hf__inline *cell);
void hf__found_read_placeholders(hf__found *found, const hf__inline *cell);

/* One more line of comment; a doubt ends in "check". */
void hf__found_comment(hf__found *found, const char *what, const char *text);
void hf__found_doubt(hf__found *found, const char *what);
void hf__found_doubts(hf__found *found, const hf__buf *lines);

#endif
