/* What a rule gets to see of a file, and how it reports a finding. */
#ifndef HF_LINT_CHECK_H
#define HF_LINT_CHECK_H

#include "programs/registry/lint/lint.h"
#include "programs/registry/lint/rules.h"
#include "programs/registry/lint/statements.h"
#include "programs/registry/lint/uses.h"

enum hf__check_pattern {
    HF__CALL_WITHOUT_ROWS, /* a call that returns no rows, so nobody can look at the result */
    HF__BARE_CALL,         /* what precedes the SQL in a statement that drops its value */
    HF__VALUE_USED,        /* what follows the SQL where the value is used */
    HF__FETCHED,           /* in the next lines: the rows are fetched there */
    HF__POOL_CALLED,       /* before the SQL: a call on a pool */
    HF__POOL_PASSED,       /* behind the SQL: a pool is passed to run it */
    HF__MAYBE_POOL_CALLED, /* before the SQL: group 1 may be a pool, if its type says so */
    HF__CHECK_PATTERNS,
};

extern const char *const hf__check_patterns[HF__CHECK_PATTERNS];

/* One file under examination. A rule only reads it, and reports with hf__check_report. */
typedef struct hf__check {
    const hf__lint_options *options;
    const hf__unit *unit;
    const hf__uses *uses;
    const hf__statements *statements;
    hf__pcre *const *patterns; /* hf__check_patterns, compiled */
    hf__ignores *ignores;
    hf__findings *findings;
    hf__lint_totals *totals;
    hf__sites *ledger;
    const hf__file_facts *facts;
} hf__check;

/* What became of a finding. */
typedef enum hf__reported { HF__REPORTED, HF__NOT_WANTED, HF__IGNORED_ON_PURPOSE } hf__reported;

/* The confidence of a rule that cannot be wrong. */
enum { HF__CERTAIN = -1 };

/*
 * Adds a finding at a byte of the unit, unless the rule is off, a comment ignores it, or the
 * confidence (HF__CERTAIN or an hf__confidence) is too low. When memory is out the findings say so.
 */
hf__reported hf__check_report(hf__check *check, hf__lint_rule rule, size_t at, int confidence,
                              const char *remedy, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* A call for messages: "pg_advisory_lock(42)", with "…" for what is not known. Returns out. */
enum { HF__CALL_SHOWN = 224 };
const char *hf__show_call(const hf__check *check, const hf__use *use, char out[HF__CALL_SHOWN]);

/* The groups of rules. Each goes over the whole file. */
HF_MUST_CHECK hf_status hf__check_against_registry(hf__check *check, hf_error *err);
void hf__check_keys(hf__check *check);
void hf__check_unlocks(hf__check *check);
void hf__check_snapshots(hf__check *check);
void hf__check_ignores(hf__check *check);

#endif
