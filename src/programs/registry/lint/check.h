/* What the rules are given, and how they report. */
#ifndef HF_LINT_CHECK_H
#define HF_LINT_CHECK_H

#include "programs/registry/lint/lint.h"
#include "programs/registry/lint/rules.h"
#include "programs/registry/lint/statements.h"
#include "programs/registry/lint/uses.h"

enum hf__check_pattern {
    HF__CALL_WITHOUT_ROWS, /* gives no row back, so nobody can look at it */
    HF__BARE_CALL,         /* all that stands before the SQL of a statement which drops its value */
    HF__VALUE_USED,        /* behind the SQL */
    HF__FETCHED,           /* in the lines that follow */
    HF__CHECK_PATTERNS,
};

extern const char *const hf__check_patterns[HF__CHECK_PATTERNS];

typedef struct hf__check {
    const hf__lint_options *options;
    const hf__unit *unit;
    const hf__uses *uses;
    const hf__statements *statements;
    hf__pcre *const *patterns; /* hf__check_patterns, compiled */
    hf__ignores *ignores;
    hf__findings *findings;
    hf__lint_totals *totals;
} hf__check;

/* A rule that is certain of what it says. */
enum { HF__CERTAIN = -1 };

/* confidence: HF__CERTAIN, or an hf__confidence. What is off, ignored or too unsure is not added. */
void hf__check_report(hf__check *check, hf__lint_rule rule, size_t at, int confidence,
                      const char *remedy, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* For messages: "pg_advisory_lock(42)", "with_advisory_lock('x')", with "…" for what is unknown. */
enum { HF__CALL_SHOWN = 224 };
const char *hf__show_call(const hf__check *check, const hf__use *use, char out[HF__CALL_SHOWN]);

HF_MUST_CHECK hf_status hf__check_against_registry(hf__check *check, hf_error *err);
void hf__check_keys(hf__check *check);
void hf__check_unlocks(hf__check *check);
void hf__check_snapshots(hf__check *check);
void hf__check_ignores(hf__check *check);

#endif
