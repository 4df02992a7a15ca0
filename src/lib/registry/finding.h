#ifndef HF_REGISTRY_FINDING_H
#define HF_REGISTRY_FINDING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* What is wrong, where, and what to do about it: the registry file's own faults and those of source code. */

typedef enum hf__severity {
    HF__SEVERITY_NOTE,
    HF__SEVERITY_WARNING, /* a registry with it can be used */
    HF__SEVERITY_ERROR,   /* a registry with it is refused by every command that wants its locks */
    HF__SEVERITY_BROKEN, /* the file cannot be read as a registry at all: exit 78 even for a check */
} hf__severity;

const char *hf__severity_name(hf__severity severity); /* "note", "warning", "error", "error" */

/* Rules are constants: an id that people write in their ignore comments never changes. */
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

/* Zero-initialise it. After a failed allocation it is marked broken and ignores what comes. */
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

/* Returns the new finding (to set its confidence), or NULL when it was not kept. */
hf__finding *hf__findings_add(hf__findings *findings, const hf__rule *rule, const char *file,
                              unsigned line, unsigned column, const char *remedy,
                              const char *format, ...) __attribute__((format(printf, 7, 8)));

/* By file as first named, then line, column and rule; one that repeats another exactly goes. */
void hf__findings_sort(hf__findings *findings);
hf__severity hf__findings_worst(const hf__findings *findings); /* HF__SEVERITY_NOTE when empty */
void hf__findings_free(hf__findings *findings);

/* The rules that reading a registry can report, by number. */

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

/* Ended by one without an id. */
extern const hf__rule hf__reading_rules[];

#endif
