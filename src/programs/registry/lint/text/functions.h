/* The functions of a file: their names and parameters, as far as the declaration shows them. */
#ifndef HF_LINT_FUNCTIONS_H
#define HF_LINT_FUNCTIONS_H

#include "base/buf.h"
#include "programs/registry/lint/text/unit.h"

enum { HF__PARAMS_MAX = 8 }; /* later ones are left out */

typedef struct hf__function {
    size_t name;
    size_t name_size; /* 0: the block is no function, or has no name */
    size_t params[HF__PARAMS_MAX];
    size_t param_sizes[HF__PARAMS_MAX]; /* 0: it has no plain name */
    size_t param_count;                 /* without self and the like */
    size_t body;                        /* after the parameters */
} hf__function;

/* Makes an array with one function for each block of the unit; the caller frees it. */
HF_MUST_CHECK hf_status hf__functions_read(const hf__unit *unit, hf__function **functions,
                                           hf_error *err);

/*
 * Adds the names of the parameters, each with a comma behind it. Between them is the default, where
 * it can be told, behind a mark.
 */
#define HF__DEFAULT_MARK "\x03"
void hf__function_params(const hf__unit *unit, const hf__function *function, hf__buf *names);

/* Is it a name that constructors have in some language? */
bool hf__is_constructor(const char *name, size_t size);

/*
 * Where the name of the class around a place begins, which new X(…), X.new(…), X::new(…) and X(…)
 * have; *size is 0 when there is none.
 */
size_t hf__class_around(const hf__unit *unit, size_t at, size_t *size);

/* The index of the parameter of that name, or HF__PARAMS_MAX. */
size_t hf__function_param(const hf__unit *unit, const hf__function *function, const char *name,
                          size_t size);

#endif
