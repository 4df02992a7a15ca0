/* Functions of one expression: `name: (a) => x`, `fun name(a: T) = x`, `def name(a), do: x`. */
#ifndef HF_LINT_LAMBDA_H
#define HF_LINT_LAMBDA_H

#include "base/buf.h"
#include "programs/registry/lint/text/functions.h"
#include "programs/registry/lint/values/pieces.h"

typedef struct hf__lambda {
    hf__piece params[HF__PARAMS_MAX];
    size_t count;
    size_t at;      /* of the expression in the unit */
    hf__piece body; /* the expression */
} hf__lambda;

/* The only such function of that name in the unit; false: there is none, or there are several. */
bool hf__lambda_find(const hf__unit *unit, hf__piece name, hf__lambda *lambda);

/* The index of the parameter of that name, or HF__PARAMS_MAX. */
size_t hf__lambda_param(const hf__lambda *lambda, hf__piece name);

/* Adds the names of the parameters, each with a comma behind it. */
void hf__lambda_params(const hf__lambda *lambda, hf__buf *names);

#endif
