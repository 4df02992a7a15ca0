/*
 * Findings: what is wrong, where, and what to do about it. Reading a registry file makes them, and
 * so do the checks and the linter of `holdfast registry`. A list belongs to one thread.
 */
#ifndef HF_REGISTRY_FINDING_H
#define HF_REGISTRY_FINDING_H

#include <stdbool.h>
#include <stddef.h>

typedef enum hf__severity {
    HF__SEVERITY_NOTE,
    HF__SEVERITY_WARNING, /* the registry can be used all the same */
    HF__SEVERITY_ERROR,   /* every command that needs the registry's locks refuses it */
    HF__SEVERITY_BROKEN,  /* the file is not a registry at all: even a check exits with 78 */
} hf__severity;

const char *hf__severity_name(hf__severity severity); /* "note", "warning", "error", "error" */

/* Rules are constants. An id never changes, because people write it in their ignore comments. */
typedef struct hf__rule {
    const char *id; /* "duplicate-name" */
    hf__severity severity;
    const char *summary; /* what the rule is about, one sentence */
} hf__rule;

typedef struct hf__finding {
    const hf__rule *rule;
    const char *file;       /* lives as long as the list */
    size_t file_index;      /* of it in the list's files */
    unsigned line;          /* from 1; 0: the whole file */
    unsigned column;        /* in characters, from 1 */
    const char *confidence; /* of a heuristic: "high", "medium", "low"; else NULL */
    char *message;
    char *remedy;
} hf__finding;

enum { HF__FINDINGS_MAX = 100000 }; /* more are counted, not kept */

/* Zero-initialise it. After a failed allocation it is marked broken and ignores further calls. */
typedef struct hf__findings {
    hf__finding *items;
    size_t count;
    size_t capacity;
    size_t dropped; /* beyond HF__FINDINGS_MAX */
    char **files;   /* every name that a finding points to, once */
    size_t file_count;
    size_t file_room;
    bool broken;
} hf__findings;

/*
 * Adds a finding, with copies of all texts. Returns it, so that its confidence can be set, or NULL
 * when it was not kept; it moves when the next one is added.
 */
hf__finding *hf__findings_add(hf__findings *findings, const hf__rule *rule, const char *file,
                              unsigned line, unsigned column, const char *remedy,
                              const char *format, ...) __attribute__((format(printf, 7, 8)));

/*
 * Sorts by file, in the order in which files were first named, then by line, column and rule. A
 * finding that repeats another exactly is removed.
 */
void hf__findings_sort(hf__findings *findings);
hf__severity hf__findings_worst(const hf__findings *findings); /* HF__SEVERITY_NOTE when empty */
void hf__findings_free(hf__findings *findings);

/* The rules that reading a registry can report: indexes of hf__reading_rules. */
enum hf__reading_rule {
    HF__RULE_YAML,
    HF__RULE_TOO_LARGE,
    HF__RULE_REPEATED_FIELD,
    HF__RULE_VERSION,
    HF__RULE_UNKNOWN_FIELD,
    HF__RULE_MISSING_FIELD,
    HF__RULE_WRONG_TYPE,
    HF__RULE_NUMBER_AS_STRING,
    HF__RULE_WRONG_VALUE,
    HF__RULE_ID_RANGE,
    HF__RULE_DUPLICATE_NAME,
    HF__RULE_PATTERN,
    HF__RULE_PLACEHOLDER,
    HF__RULE_EXPRESSION,
    HF__RULE_EXPRESSION_LIMIT,
};

/* The last one has no id. */
extern const hf__rule hf__reading_rules[];

#endif
