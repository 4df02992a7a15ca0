/* `holdfast-ignore: RULE[,RULE] reason` in a comment, on the line of a finding or on the one above. */
#ifndef HF_LINT_IGNORE_H
#define HF_LINT_IGNORE_H

#include "programs/registry/lint/pcre.h"
#include "programs/registry/lint/rules.h"
#include "programs/registry/lint/unit.h"

typedef struct hf__ignored_rule {
    size_t at; /* where its name stands */
    size_t size;
    hf__lint_rule rule;
    unsigned line; /* the line it is about; the comment's own line counts too */
    unsigned own_line;
    bool used;
} hf__ignored_rule;

typedef struct hf__ignores {
    hf__ignored_rule *items; /* by place */
    size_t count;
    size_t capacity;
    size_t *without_reason; /* where such comments stand */
    size_t without_reason_count;
    size_t without_reason_capacity;
} hf__ignores;

extern const char hf__ignore_pattern[];

HF_MUST_CHECK hf_status hf__ignores_read(hf__ignores *ignores, const hf__unit *unit,
                                         hf__regex *pattern, hf_error *err);
void hf__ignores_free(hf__ignores *ignores);

/* Is the rule to be ignored on this line? Marks the comment as used. */
bool hf__ignores_cover(hf__ignores *ignores, hf__lint_rule rule, unsigned line);

#endif
