/*
 * The set of labels that a pattern stands for: a regular language over code points, made of
 * literal text and of regular expressions. A byte that is not UTF-8 counts as a character of its
 * own (beyond U+10FFFF), which '.' and negated classes match.
 *
 * Nothing here reads a file or keeps a global. A language does not change once it is built: any
 * number of threads may use it at the same time.
 */
#ifndef HF_PATTERNS_PATTERNS_H
#define HF_PATTERNS_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

typedef struct hf__language hf__language;

/* A piece of a pattern: text that must stand there as it is, or an expression that must match. */
typedef struct hf__part {
    const char *text; /* not NUL-terminated */
    size_t size;
    bool is_regex;
} hf__part;

/*
 * Builds the language of the parts, one after the other; they may be freed afterwards. *language
 * is the caller's to free, and NULL after a failure: HF_INVALID when an expression cannot be read
 * or is not regular (lookaround, backreferences, anchors, possessive or atomic groups, inline
 * flags), HF_QUOTA when it has too many states, or HF_NO_MEMORY. Then *bad is the index of the
 * part, and err->position the character in it, from 1.
 */
HF_MUST_CHECK hf_status hf__language_build(const hf__part *parts, size_t count,
                                           hf__language **language, size_t *bad, hf_error *err);
void hf__language_free(hf__language *language); /* may be NULL */

/*
 * Is the whole text a word of the language? Takes time linear in the text. Returns HF_OK, HF_QUOTA
 * when the text takes too many steps, or HF_NO_MEMORY.
 */
HF_MUST_CHECK hf_status hf__language_has(const hf__language *language, const char *text,
                                         size_t size, bool *has, hf_error *err);

typedef enum hf__meeting {
    HF__MEET_NEVER,
    HF__MEET,           /* they share a word */
    HF__MEET_UNDECIDED, /* more than most_states pairs of states would have to be tried */
} hf__meeting;

/*
 * Decides whether two languages share a word that is not empty, and writes a shortest such word to
 * witness. Returns HF_OK or HF_NO_MEMORY.
 */
HF_MUST_CHECK hf_status hf__language_meet(const hf__language *a, const hf__language *b,
                                          size_t most_states, hf__meeting *meeting,
                                          hf__buf *witness, hf_error *err);

/*
 * No more words than this: counted by the ways through the automaton, of which a word may have
 * several. UINT64_MAX: without end, or beyond counting. Also without memory to find out.
 */
uint64_t hf__language_most(const hf__language *language);

/* Gets one word, which is not NUL-terminated and gone after the call. Returns false to stop. */
typedef bool hf__word_fn(void *arg, const char *word, size_t size);

/*
 * Calls fn with at most `most` different words, on this thread: short words and plain characters
 * come first, in an order that is the same in every run and on every machine. Words that are
 * longer than a label, or take too long to find, are left out. *complete says whether fn got every
 * word there is. Returns HF_OK, also when fn has stopped it, or HF_NO_MEMORY.
 */
HF_MUST_CHECK hf_status hf__language_words(const hf__language *language, size_t most,
                                           hf__word_fn *fn, void *arg, bool *complete,
                                           hf_error *err);

#endif
