#ifndef HF_LINT_STATEMENTS_H
#define HF_LINT_STATEMENTS_H

#include "programs/registry/lint/pcre.h"
#include "programs/registry/lint/text/unit.h"

/* The SQL around the locks: what it reads and writes, and under which isolation. */

typedef enum hf__statement_kind {
    HF__READ,
    HF__WRITE,
    HF__ISOLATION, /* asks for SERIALIZABLE or REPEATABLE READ */
    HF__STATEMENT_KINDS,
} hf__statement_kind;

typedef struct hf__lint_statement {
    hf__statement_kind kind;
    size_t at;
    size_t end;
    size_t table; /* where the table's name is; of HF__ISOLATION, the level */
    size_t table_size;
    size_t block;
    bool by_orm; /* a call of a mapper, not SQL */
} hf__lint_statement;

typedef struct hf__statements {
    hf__lint_statement *items; /* by kind */
    size_t count;
    size_t capacity;
    size_t first[HF__STATEMENT_KINDS + 1]; /* the index of the first of each kind */
    bool incomplete;                       /* a limit was reached */
} hf__statements;

/* After the kinds come those of object-relational mappers. */
enum { HF__ORM_READ = HF__STATEMENT_KINDS, HF__ORM_WRITE, HF__STATEMENT_PATTERNS };
extern const char *const hf__statement_patterns[HF__STATEMENT_PATTERNS];

/*
 * patterns: hf__statement_patterns, compiled. Those of mappers are looked for between from and to
 * only. The caller frees statements.
 */
HF_MUST_CHECK hf_status hf__statements_find(const hf__unit *unit, hf__pcre *const *patterns,
                                            size_t from, size_t to, hf__statements *statements,
                                            hf_error *err);
void hf__statements_free(hf__statements *statements);

bool hf__same_table(const hf__unit *unit, const hf__lint_statement *a, const hf__lint_statement *b);

#endif
