/* The SQL around the locks: what is read, what is written, and under which isolation. */
#ifndef HF_LINT_STATEMENTS_H
#define HF_LINT_STATEMENTS_H

#include "programs/registry/lint/pcre.h"
#include "programs/registry/lint/unit.h"

typedef enum hf__statement_kind {
    HF__READ,
    HF__WRITE,
    HF__ISOLATION, /* SERIALIZABLE or REPEATABLE READ is asked for */
    HF__STATEMENT_KINDS,
} hf__statement_kind;

typedef struct hf__statement {
    hf__statement_kind kind;
    size_t at;
    size_t end;
    size_t table; /* its name; of an isolation, the level */
    size_t table_size;
    size_t block;
} hf__statement;

typedef struct hf__statements {
    hf__statement *items; /* by kind, then by place */
    size_t count;
    size_t capacity;
    size_t first[HF__STATEMENT_KINDS + 1]; /* the first of each kind */
    bool incomplete;
} hf__statements;

extern const char *const hf__statement_patterns[HF__STATEMENT_KINDS];

HF_MUST_CHECK hf_status hf__statements_find(const hf__unit *unit, hf__regex *const *patterns,
                                            hf__statements *statements, hf_error *err);
void hf__statements_free(hf__statements *statements);

bool hf__same_table(const hf__unit *unit, const hf__statement *a, const hf__statement *b);

#endif
