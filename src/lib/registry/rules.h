/* The rules that reading a registry can report, by number. */
#ifndef HF_REGISTRY_RULES_H
#define HF_REGISTRY_RULES_H

#include "lib/registry/finding.h"

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
