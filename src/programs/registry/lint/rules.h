#ifndef HF_LINT_RULES_H
#define HF_LINT_RULES_H

#include "lib/registry/finding.h"
#include "programs/registry/lint/pcre.h"
#include "programs/registry/lint/text/unit.h"

/* The rules of lint. Their ids never change: people write them in ignore comments. */

typedef enum hf__lint_rule {
    HF__UNREGISTERED_ID,
    HF__UNREGISTERED_LABEL,
    HF__WRONG_LIFETIME,
    HF__WRONG_DERIVATION,
    HF__LOCK_ORDER,
    HF__UNRESOLVED_KEY,
    HF__COMMON_ID,
    HF__GENERIC_LABEL,
    HF__RULE_HASHTEXT,
    HF__SESSION_LOCK_WITHOUT_UNLOCK,
    HF__UNLOCK_OF_OTHER_MODE,
    HF__UNLOCK_OF_TRANSACTION_LOCK,
    HF__UNLOCK_RESULT_IGNORED,
    HF__TRY_RESULT_IGNORED,
    HF__LOCK_ON_POOL,
    HF__UNLOCK_ALL,
    HF__SNAPSHOT_TRAP,
    HF__LOCK_AFTER_READ,
    HF__LOCK_WITH_LIMIT,
    HF__IGNORE_WITHOUT_REASON,
    HF__UNKNOWN_RULE,
    HF__UNUSED_IGNORE,
    HF__RULE_MATCH_LIMIT,
    HF__LINT_RULES,
} hf__lint_rule;

/* In the order of the enum. The last one has no id. */
extern const hf__rule hf__lint_rules[];

/* HF__LINT_RULES: there is no rule of that id. */
hf__lint_rule hf__lint_rule_find(const char *id, size_t size);

/* Does the rule need a registry? */
bool hf__lint_rule_needs_registry(hf__lint_rule rule);

/* `holdfast-ignore: RULE[,RULE] reason`, in a comment on the line of a finding or above it. */

typedef struct hf__ignored_rule {
    size_t at; /* where the rule's name is */
    size_t size;
    hf__lint_rule rule;
    unsigned line; /* the line that it is about; it covers its own line too */
    unsigned own_line;
    bool used;
} hf__ignored_rule;

typedef struct hf__ignores {
    hf__ignored_rule *items; /* in their order in the file */
    size_t count;
    size_t capacity;
    size_t *without_reason; /* where comments without a reason are */
    size_t without_reason_count;
    size_t without_reason_capacity;
} hf__ignores;

extern const char hf__ignore_pattern[];

/* Reads the ignore comments of a file. The caller frees ignores. */
HF_MUST_CHECK hf_status hf__ignores_read(hf__ignores *ignores, const hf__unit *unit,
                                         hf__pcre *pattern, hf_error *err);
void hf__ignores_free(hf__ignores *ignores);

/* Is the rule ignored on this line? Marks the comment as used. */
bool hf__ignores_cover(hf__ignores *ignores, hf__lint_rule rule, unsigned line);

#endif
