/* Names that a file gives to expressions: LOCK_ID = 42, #define, const, enum members, @id 42. */
#ifndef HF_LINT_NAMES_H
#define HF_LINT_NAMES_H

#include "programs/registry/lint/pcre.h"
#include "programs/registry/lint/text/unit.h"

typedef struct hf__assignment {
    size_t name, name_size;
    size_t value, value_size; /* the expression as written; size 0: there is none to read */
    size_t block;
    bool counted; /* iota, or auto(): number is the value */
    bool field;   /* of a literal, { name: value }: no variable */
    int64_t number;
} hf__assignment;

/* The names of a file. It is read when the first of them is looked up: most keys need none. */
typedef struct hf__assignments {
    const hf__unit *unit;
    hf__pcre *const *patterns; /* hf__assignment_patterns, compiled */
    bool read;
    bool broken;           /* no memory */
    hf__assignment *items; /* by name, then by place */
    size_t count;
    size_t capacity;
} hf__assignments;

enum { HF__ASSIGNMENT_PATTERNS = 7 };
extern const char *const hf__assignment_patterns[HF__ASSIGNMENT_PATTERNS];

void hf__assignments_free(hf__assignments *assignments);

/*
 * What a name stands for at a place of the unit: the expression that the innermost block around it
 * assigns, and assigns only once. A member, as in self.key, may be assigned anywhere, also in a
 * literal. NULL: it has none, or several.
 */
const hf__assignment *hf__assignments_find(hf__assignments *assignments, const hf__unit *unit,
                                           size_t at, bool member, const char *name, size_t size);

/* What a name stands for inside of an owner: enum Locks { … }, class Locks, LOCKS = { … }. */
const hf__assignment *hf__assignments_find_in(hf__assignments *assignments, const hf__unit *unit,
                                              const char *owner, size_t owner_size,
                                              const char *name, size_t size);

/* Where the expression that begins at `at` ends, at most 800 bytes later; `at` when it does not. */
size_t hf__expression_end(const hf__unit *unit, size_t at);

#endif
