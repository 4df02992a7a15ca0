#ifndef HF_CLI_SUGGEST_H
#define HF_CLI_SUGGEST_H

#include <stddef.h>

/* Keeps the candidate nearest to what was typed; start with .word and nothing else. */
struct suggestion {
    const char *word;
    const char *nearest; /* NULL: nothing is near enough to be meant */
    size_t distance;
};

void suggest(struct suggestion *suggestion, const char *candidate);

#endif
