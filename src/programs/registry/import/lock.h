/* One lock as a row of a table describes it, and how it is written into the registry. */
#ifndef HF_PROGRAMS_REGISTRY_IMPORT_LOCK_H
#define HF_PROGRAMS_REGISTRY_IMPORT_LOCK_H

#include "base/error.h"
#include "programs/registry/import/inline.h"
#include "programs/registry/import/key.h"
#include "programs/registry/import/markdown.h"

typedef enum hf__import_kind {
    HF__IMPORT_NOTHING, /* it has no usable key; `why` says so */
    HF__IMPORT_FIXED,
    HF__IMPORT_PAIR,
    HF__IMPORT_PATTERN,
} hf__import_kind;

/* Zero-initialise it, and free it in any case. A buffer is empty where the table says nothing. */
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
    hf__mentions mentions; /* of hashes, in the row itself */
    bool from_javascript;
    bool name_is_final; /* the table gives it: it is not made up here */
    hf__buf name, pattern, component, purpose, scope, owner, runbook;
    hf__buf placeholders; /* YAML, without the braces */
    hf__buf sources;      /* lines */
    hf__buf lease;        /* how long it lasts, as written */
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
    HF__SAYS_LEASE = 16,
};

/*
 * Fills lock from one row. own_document: `holdfast registry doc` wrote the file, so its patterns
 * are already those of a registry.
 */
void hf__import_lock_read(hf__import_lock *lock, const hf__table *table, const hf__row *row,
                          bool own_document);
void hf__import_lock_write(const hf__import_lock *lock, hf__buf *yaml);
void hf__import_lock_free(hf__import_lock *lock);
bool hf__import_lock_is_broken(const hf__import_lock *lock); /* there was not enough memory */

/* cells.c: what a cell says that is not about the key. */
void hf__import_lock_read_cell(hf__import_lock *lock, hf__md_column column, const hf__inline *cell);
void hf__import_lock_read_placeholders(hf__import_lock *lock, const hf__inline *cell);

/* Each adds a line of comment; a doubt ends in "check". lines has one doubt in each line. */
void hf__import_lock_comment(hf__import_lock *lock, const char *what, const char *text);
void hf__import_lock_doubt(hf__import_lock *lock, const char *what);
void hf__import_lock_doubts(hf__import_lock *lock, const hf__buf *lines);

/*
 * Goes through the lines of a buffer. *at begins as the buffer's data, which may be NULL, and moves
 * on. Returns false at the end.
 */
bool hf__import_line_next(const char **at, hf__slice *line);

/* Writes a YAML string: plain where nobody can misread it, also inside [] and {}, else quoted. */
void hf__yaml_text(hf__buf *out, const char *text, size_t size);

/* Writes text into a comment: control characters, newlines too, become blanks. */
void hf__yaml_comment_text(hf__buf *out, const char *text, size_t size);

#endif
