/* Names of a file that stand for one literal: LOCK_ID = 42, #define, const, final, val, @lock_id 42. */
#ifndef HF_LINT_CONSTANTS_H
#define HF_LINT_CONSTANTS_H

#include "programs/registry/lint/pcre.h"
#include "programs/registry/lint/unit.h"

typedef struct hf__constant {
    size_t name, name_size;
    size_t value, value_size; /* the literal as written; 0 bytes: not one literal */
} hf__constant;

typedef struct hf__constants {
    hf__constant *items; /* by name */
    size_t count;
    size_t capacity;
    bool read;
} hf__constants;

/* The expressions that find them; see hf__constant_patterns. */
enum { HF__CONSTANT_PATTERNS = 2 };
extern const char *const hf__constant_patterns[HF__CONSTANT_PATTERNS];

HF_MUST_CHECK hf_status hf__constants_read(hf__constants *constants, const hf__unit *unit,
                                           hf__regex *const *patterns, hf_error *err);
void hf__constants_free(hf__constants *constants);

/* The literal that a name stands for, or NULL when it has none or several. */
const char *hf__constants_find(const hf__constants *constants, const hf__unit *unit,
                               const char *name, size_t size, size_t *value_size);

#endif
