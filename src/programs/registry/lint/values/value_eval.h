/* What the files that evaluate expressions share: value.c, value_text.c and value_call.c. */
#ifndef HF_LINT_VALUE_EVAL_H
#define HF_LINT_VALUE_EVAL_H

#include "programs/registry/lint/values/value.h"

/* One evaluation: bounded, whatever the source says. */
struct hf__eval {
    unsigned steps;
    size_t *block;
};

enum { HF__EVAL_DEPTH_MAX = 24, HF__EVAL_STEPS_MAX = 3000 };

/* Evaluates a piece into *out, which is zero before. */
void hf__evaluate(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                  hf__worth *out);

/* Does the pattern match? And the language of the scope. */
bool hf__eval_matches(const hf__scope *scope, enum hf__value_pattern which, hf__piece piece,
                      hf__pcre_match *match);
unsigned hf__eval_language(const hf__scope *scope);

/* Evaluates what a name was given. */
void hf__evaluate_assigned(struct hf__eval *in, const hf__scope *scope,
                           const hf__assignment *assigned, unsigned depth, hf__worth *out);

/* Adds to a text that something is not known. */
void hf__add_hole(hf__buf *text);

/* Evaluates an operand and adds what is known of it. */
void hf__add_operand(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                     hf__buf *text);

/* Texts. Each returns false when the piece is none of its kind. */
bool hf__evaluate_string(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                         unsigned depth, hf__worth *out);
bool hf__evaluate_joined(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                         unsigned depth, hf__worth *out);
bool hf__evaluate_percent(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                          unsigned depth, hf__worth *out);

/* A format and its arguments. */
void hf__evaluate_format(struct hf__eval *in, const hf__scope *scope, hf__piece format,
                         const hf__pieces *args, unsigned depth, hf__worth *out);

/* Hashes. The last is for an expression that is nothing else: what is made of a hash is one. */
bool hf__evaluate_digest(struct hf__eval *in, const hf__scope *scope, hf__piece receiver,
                         hf__piece name, const hf__pieces *args, unsigned depth, hf__worth *out);
bool hf__evaluate_hasher(struct hf__eval *in, const hf__scope *scope, size_t block, unsigned depth,
                         hf__worth *out);
void hf__evaluate_around_hash(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                              unsigned depth, hf__worth *out);

/* Calls and functions. A method without parameters may be called by its name alone. */
bool hf__evaluate_method(struct hf__eval *in, const hf__scope *scope, hf__piece name,
                         unsigned depth, hf__worth *out);
bool hf__evaluate_piped(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                        unsigned depth, hf__worth *out);
bool hf__evaluate_call(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                       hf__worth *out);
void hf__eval_apply(struct hf__eval *in, const hf__scope *scope, const hf__worth *form,
                    const hf__piece *args, size_t count, unsigned depth, hf__worth *out);
void hf__function_value(struct hf__eval *in, const hf__scope *scope, size_t block, unsigned depth,
                        hf__worth *out);

#endif
