/* What the files that evaluate expressions share: value.c, value_text.c and value_call.c. */
#ifndef HF_LINT_VALUE_EVAL_H
#define HF_LINT_VALUE_EVAL_H

#include "programs/registry/lint/values/lambda.h"
#include "programs/registry/lint/values/value.h"

/* An assignment whose value is being evaluated. */
struct hf__visit {
    const hf__assignment *assigned;
    const struct hf__visit *outer;
};

/* One evaluation: bounded, whatever the source says. */
struct hf__eval {
    const struct hf__visit *visits;
    unsigned steps;
    size_t *block;
    const hf__lambda *lambda; /* whose expression it is, or NULL */
};

enum { HF__EVAL_DEPTH_MAX = 24, HF__EVAL_STEPS_MAX = 3000 };

/* Evaluates a piece into *out, which is zero before. */
void hf__evaluate(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                  hf__worth *out);

/* Does the pattern match? And the language of the scope. */
bool hf__eval_matches(const hf__scope *scope, enum hf__value_pattern which, hf__piece piece,
                      hf__pcre_match *match);
unsigned hf__eval_language(const hf__scope *scope);
hf__piece hf__eval_group(hf__piece piece, const hf__pcre_match *match, unsigned group);

/* Names, and items of maps; the second returns false when the piece is none. */
void hf__evaluate_name(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                       hf__worth *out);
bool hf__evaluate_item(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                       hf__worth *out);

/* Locks.REPORT: a member of an owner, in capitals. */
bool hf__is_constant(hf__piece piece);

/* Evaluates what a name was given. */
void hf__evaluate_assigned(struct hf__eval *in, const hf__scope *scope,
                           const hf__assignment *assigned, unsigned depth, hf__worth *out);

/* What a loop over a list meets: any of its items. */
void hf__evaluate_items(struct hf__eval *in, const hf__scope *scope, hf__piece list, unsigned depth,
                        hf__worth *out);

bool hf__evaluate_closure(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                          unsigned depth, hf__worth *out);

/* c ? a : b, and the like: any of both. */
bool hf__evaluate_choice(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                         unsigned depth, hf__worth *out);

/* Adds to a text that something is not known. */
void hf__add_hole(hf__buf *text);

/* Evaluates an operand and adds what is known of it. */
void hf__add_operand(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                     hf__buf *text);

/* Makes hashes of all values, in the way that `like` is one; its text must be empty. */
void hf__hash_all(hf__worth *value, const hf__worth *like);

/* Evaluates what is hashed into *out, which says how and has no text yet. */
void hf__add_hashed(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                    hf__worth *out);

/* Texts. Each returns false when the piece is none of its kind. */
bool hf__evaluate_string(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                         unsigned depth, hf__worth *out);
bool hf__evaluate_joined(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                         unsigned depth, hf__worth *out);
bool hf__evaluate_percent(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                          unsigned depth, hf__worth *out);

/*
 * Defaults: x ?? 5, and calls with one. Each returns false when there is none, and
 * hf__evaluate_otherwise when the caller of a form must pass something.
 */
bool hf__evaluate_default(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                          unsigned depth, hf__worth *out);
bool hf__evaluate_getter(struct hf__eval *in, const hf__scope *scope, hf__piece receiver,
                         hf__piece name, const hf__pieces *args, unsigned depth, hf__worth *out);
bool hf__evaluate_otherwise(const hf__worth *form, hf__worth *out);
void hf__note_otherwise(const hf__worth *fallback, hf__worth *out);
bool hf__is_nothing(hf__piece piece); /* none, null, None and the like */

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

/* What the map of that name has for a key, which a caller of the function around may tell. */
void hf__evaluate_lookup(struct hf__eval *in, const hf__scope *scope, hf__piece map, hf__piece key,
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
void hf__lambda_value(struct hf__eval *in, const hf__scope *scope, const hf__lambda *lambda,
                      unsigned depth, hf__worth *out);
void hf__function_value(struct hf__eval *in, const hf__scope *scope, size_t block, unsigned depth,
                        hf__worth *out);

#endif
