/*
 * The set of labels that a pattern stands for: a regular language over code points, made of literal
 * text and of regular expressions. A byte that is no UTF-8 counts as a character of its own (beyond
 * U+10FFFF), which '.' and negated classes match. Pure; a language is immutable once built and may be
 * used by any thread.
 */
#ifndef HF_REGISTRY_LANGUAGE_H
#define HF_REGISTRY_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

typedef struct hf__language hf__language;

/* A piece of a pattern, matched as a whole: what stands there, or what the expression allows. */
typedef struct hf__part {
    const char *text; /* not NUL-terminated */
    size_t size;
    bool is_regex;
} hf__part;

/*
 * HF_INVALID when an expression cannot be read or is not regular (lookaround, backreferences,
 * anchors, possessive or atomic groups, inline flags), HF_QUOTA when it has too many states,
 * HF_NO_MEMORY. *bad is then the part, and err->position the character in it, from 1.
 */
HF_MUST_CHECK hf_status hf__language_build(const hf__part *parts, size_t count,
                                           hf__language **language, size_t *bad, hf_error *err);
void hf__language_free(hf__language *language);

/* Is the whole text a word of it? Linear in the text. HF_OK, HF_QUOTA (the match limit) or HF_NO_MEMORY. */
HF_MUST_CHECK hf_status hf__language_has(const hf__language *language, const char *text,
                                         size_t size, bool *has, hf_error *err);

typedef enum hf__meeting {
    HF__MEET_NEVER,
    HF__MEET,           /* they share a word */
    HF__MEET_UNDECIDED, /* finding out takes more than most_states */
} hf__meeting;

/* Decides exactly whether two languages share a word, and writes a shortest one to witness. */
HF_MUST_CHECK hf_status hf__language_meet(const hf__language *a, const hf__language *b,
                                          size_t most_states, hf__meeting *meeting,
                                          hf__buf *witness, hf_error *err);

/* Return false to stop. word is not NUL-terminated. */
typedef bool hf__word_fn(void *arg, const char *word, size_t size);

/*
 * Calls fn with at most `most` distinct words, short ones and plain characters first. *complete: these
 * were all of them, and fn stopped none. There may be fewer when words are longer than a label or take
 * too long to find. The order is stable over runs and machines.
 */
HF_MUST_CHECK hf_status hf__language_words(const hf__language *language, size_t most,
                                           hf__word_fn *fn, void *arg, bool *complete,
                                           hf_error *err);

#endif
