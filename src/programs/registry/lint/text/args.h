/* The arguments of a call as one text: strings joined, and expressions of the program marked. */
#ifndef HF_LINT_ARGS_H
#define HF_LINT_ARGS_H

#include "base/buf.h"
#include "programs/registry/lint/text/unit.h"

/* These two enclose an expression of the program between pieces of SQL. */
#define HF__HOLE_OPEN '\x01'
#define HF__HOLE_CLOSE '\x02'

enum { HF__ARGS_MAX = 8 }; /* later ones are counted, but not kept */

typedef struct hf__args {
    hf__buf text;
    size_t start[HF__ARGS_MAX];
    size_t size[HF__ARGS_MAX];
    size_t count;
    size_t end;    /* in the unit: after the closing parenthesis, or where reading stopped */
    bool complete; /* the closing parenthesis was found */
} hf__args;

/* Reads from `at`, the byte after the opening parenthesis. The caller frees args. */
void hf__args_read(const hf__unit *unit, size_t at, hf__args *args);
void hf__args_free(hf__args *args);

/*
 * Puts into expression what the program binds to a placeholder of the string that ends at
 * string_end: "$2", "?2" (the second '?' or '%s') or ":name". *place is where it stands. Adds
 * nothing when it cannot tell. A string that is given a name is followed to where the name is used.
 */
void hf__find_bound(const hf__unit *unit, size_t string_end, const char *placeholder, size_t size,
                    hf__buf *expression, size_t *place);

/*
 * Where the arguments begin in the SQL that is made with the name of a function, which stands alone
 * in the string at `at`; 0: no string of the file makes it, or several do.
 */
size_t hf__bare_name_call(const hf__unit *unit, size_t at);

#endif
