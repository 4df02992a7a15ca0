#include "cli/suggest.h"

#include <string.h>

enum { WORD_MAX = 32 };

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Levenshtein's distance; both words are at most WORD_MAX long. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1];
    size_t b_length = strlen(b);

    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(row[j] + 1, row[j - 1] + 1, replaced);
        }
    }
    return row[b_length];
}

void suggest(struct suggestion *suggestion, const char *candidate)
{
    size_t length = strlen(suggestion->word);

    if (length > WORD_MAX || strlen(candidate) > WORD_MAX)
        return;
    size_t distance = edit_distance(suggestion->word, candidate);
    size_t tolerated = length <= 2 ? 1 : length <= 5 ? 2 : 3;
    if (distance > tolerated)
        return;
    if (suggestion->nearest == NULL || distance < suggestion->distance) {
        suggestion->nearest = candidate;
        suggestion->distance = distance;
    }
}
