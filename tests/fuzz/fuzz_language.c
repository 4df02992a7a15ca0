/*
 * Two expressions, divided by a newline: what is said of their languages must be so, and nothing
 * may crash, leak or take long.
 */
#include "fuzz.h"

#include <string.h>

#include "lib/patterns/automaton.h"

enum { MOST_WORDS = 50, MOST_STATES = 20000 };

static hf__language *build(const char *text, size_t size)
{
    hf__part part = {text, size, true};
    hf__language *language = NULL;
    hf_error err = {0};
    size_t bad = 0;
    hf_status status = hf__language_build(&part, 1, &language, &bad, &err);

    require((status == HF_OK) == (language != NULL), "a failure without a reason");
    if (status == HF_OK)
        return language;
    require(status == HF_INVALID || status == HF_QUOTA, "an expression fails in another way");
    require(err.message[0] != '\0' && err.hint[0] != '\0', "a refusal says nothing");
    require(err.position >= 1 && (size_t)err.position <= size + 1, "a position is outside");
    return NULL;
}

/* By the table and by the simulation. */
static bool has(const hf__language *language, const char *text, size_t size)
{
    bool found = false;
    bool simulated = false;

    if (hf__language_has(language, text, size, &found, NULL) == HF_OK &&
        hf__automaton_run(&language->automaton, text, size, &simulated) == HF_OK)
        require(found == simulated, "the table and the simulation disagree");
    return found;
}

struct words {
    const hf__language *language;
    const hf__language *other;
    size_t count;
    bool is_shared;
    char *last;
    size_t last_size;
};

static bool check_word(void *arg, const char *word, size_t size)
{
    struct words *words = arg;

    require(has(words->language, word, size), "a word is none");
    require(words->last == NULL || size != words->last_size || memcmp(words->last, word, size) != 0,
            "a word comes twice");
    free(words->last);
    words->last = malloc(size + 1);
    require(words->last != NULL, "out of memory");
    memcpy(words->last, word, size);
    words->last_size = size;
    /* no label is empty */
    words->is_shared = words->is_shared || (size > 0 && has(words->other, word, size));
    words->count++;
    return true;
}

/* Returns whether one of the words is shared; *complete: if none is, they never meet. */
static bool check_words(const hf__language *language, const hf__language *other, bool *complete)
{
    struct words words = {.language = language, .other = other};
    hf_status status = hf__language_words(language, MOST_WORDS, check_word, &words, complete, NULL);

    require(status == HF_OK, "words cannot be listed");
    require(words.count <= MOST_WORDS, "too many words");
    free(words.last);
    return words.is_shared;
}

static void check_pair(const hf__language *a, const hf__language *b)
{
    hf__meeting meeting = HF__MEET_UNDECIDED;
    hf__buf witness = {0};
    bool all_of_a = false;
    bool all_of_b = false;
    hf_status status = hf__language_meet(a, b, MOST_STATES, &meeting, &witness, NULL);

    require(status == HF_OK, "languages cannot be compared");
    if (meeting == HF__MEET)
        require(has(a, witness.data, witness.length) && has(b, witness.data, witness.length),
                "a witness is none");
    bool is_shared = check_words(a, b, &all_of_a);
    is_shared = check_words(b, a, &all_of_b) || is_shared;
    require(!is_shared || meeting != HF__MEET_NEVER, "a shared word was overlooked");
    require(is_shared || meeting != HF__MEET || !(all_of_a || all_of_b),
            "a complete list lacks the witness");
    hf__buf_free(&witness);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *newline = size > 0 ? memchr(text, '\n', size) : NULL;
    size_t first = newline != NULL ? (size_t)(newline - text) : size;
    size_t second = newline != NULL ? first + 1 : size;
    hf__language *a = build(text, first);
    hf__language *b = build(text + second, size - second);

    if (a != NULL && b != NULL) {
        has(a, text, size);
        has(b, text, first);
        check_pair(a, b);
    }
    hf__language_free(a);
    hf__language_free(b);
    return 0;
}
