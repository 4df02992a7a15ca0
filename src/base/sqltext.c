#include "base/sqltext.h"

#include <string.h>

static const hf__sql_part *find_part(const hf__sql_part *parts, const char *word, size_t size)
{
    for (; parts->word; parts++)
        if (strlen(parts->word) == size && memcmp(parts->word, word, size) == 0)
            return parts;
    return NULL;
}

void hf__sql_expand(hf__buf *out, const char *text, const hf__sql_part *parts)
{
    const char *at = strchr(text, '@');
    while (at) {
        const char *word = at + 1;
        size_t size = strspn(word, "abcdefghijklmnopqrstuvwxyz_");
        const hf__sql_part *part = word[size] == '@' ? find_part(parts, word, size) : NULL;
        if (part) {
            hf__buf_add(out, text, (size_t)(at - text));
            hf__buf_puts(out, part->text);
            text = word + size + 1;
            at = strchr(text, '@');
        } else {
            at = strchr(word, '@');
        }
    }
    hf__buf_puts(out, text);
}
