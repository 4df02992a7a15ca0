/* The arguments of a call, as one text: pieces of strings joined, expressions marked. */
#ifndef HF_LINT_ARGS_H
#define HF_LINT_ARGS_H

#include "base/buf.h"
#include "programs/registry/lint/unit.h"

/* An expression of the program between pieces of SQL stands between these two. */
#define HF__HOLE_OPEN '\x01'
#define HF__HOLE_CLOSE '\x02'

enum { HF__ARGS_MAX = 4 }; /* further ones are counted, not kept */

typedef struct hf__args {
    hf__buf text;
    size_t start[HF__ARGS_MAX];
    size_t size[HF__ARGS_MAX];
    size_t count;
    size_t end;    /* in the unit: behind the closing parenthesis, or where reading stopped */
    bool complete; /* the closing parenthesis was found */
} hf__args;

/* From behind the opening parenthesis; what stands before it tells whether it is text or code. */
void hf__args_read(const hf__unit *unit, size_t at, hf__args *args);
void hf__args_free(hf__args *args);

/*
 * The expression that a program binds to a placeholder ("$2", "?2" for the second '?' or '%s',
 * ":name") of the string that ends at string_end. Empty when it cannot be told.
 */
void hf__find_bound(const hf__unit *unit, size_t string_end, const char *placeholder, size_t size,
                    hf__buf *expression);

#endif
