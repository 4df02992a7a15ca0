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
    bool each;    /* a loop: the name stands for any item of the value, a list */
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
    size_t *classes; /* where the classes of the file begin */
    size_t class_count;
    size_t class_capacity;
} hf__assignments;

enum { HF__ASSIGNMENT_PATTERNS = 10 };
extern const char *const hf__assignment_patterns[HF__ASSIGNMENT_PATTERNS];

void hf__assignments_read(hf__assignments *assignments);
void hf__assignments_free(hf__assignments *assignments);

/* Where the class around a place begins; 0: there is none. */
size_t hf__class_of(const hf__assignments *assignments, size_t at);

/* Where the assignments of a name begin among the items, and whether one is still of that name. */
size_t hf__assignments_first(const hf__assignments *assignments, const hf__unit *unit,
                             const char *name, size_t size);
bool hf__assignments_is_named(const hf__assignments *assignments, const hf__unit *unit,
                              size_t index, const char *name, size_t size);

enum { HF__REACHING_MAX = 24 };

/* The assignments that may have given a name its value at a place. */
typedef struct hf__reaching {
    const hf__assignment *items[HF__REACHING_MAX]; /* the last one first */
    size_t count;
    bool untold;      /* there are more, or one that cannot be read */
    bool conditional; /* none of them is made in any case */
} hf__reaching;

/*
 * What a name may stand for at a place of the unit: what the innermost block around it that
 * assigns it assigns before, from the last one back to one that no branch leaves out. A member, as
 * in self.key, may be assigned anywhere in its class, also in a literal.
 */
void hf__assignments_reaching(hf__assignments *assignments, const hf__unit *unit, size_t at,
                              bool member, const char *name, size_t size, hf__reaching *reaching);

/* The same where there is only one; NULL: there is none, or there are several. */
const hf__assignment *hf__assignments_find(hf__assignments *assignments, const hf__unit *unit,
                                           size_t at, bool member, const char *name, size_t size);

/* The constant of the file whose value is the string around a place; NULL: there is none. */
const hf__assignment *hf__assignments_around(const hf__assignments *assignments,
                                             const hf__unit *unit, size_t at);

/* What a name stands for inside of an owner: enum Locks { … }, class Locks, LOCKS = { … }. */
const hf__assignment *hf__assignments_find_in(hf__assignments *assignments, const hf__unit *unit,
                                              const char *owner, size_t owner_size,
                                              const char *name, size_t size);

/* Where the expression that begins at `at` ends, at most 800 bytes later; `at` when it does not. */
size_t hf__expression_end(const hf__unit *unit, size_t at);

#endif
