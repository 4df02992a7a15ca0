#include "programs/serve/gzip.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

enum {
    WORTH_IT = 1400, /* bytes: less fits into one packet anyway */
    LEVEL = 1,       /* it is done anew at every refresh */
    GZIP_WINDOW = 15 + 16,
    MEMORY = 8,
};

/* "gzip;q=0" is a refusal. */
bool hf__takes_gzip(const char *accepted)
{
    const char *word = accepted != NULL ? strcasestr(accepted, "gzip") : NULL;

    if (word == NULL)
        return false;
    word += strlen("gzip");
    word += strspn(word, " \t");
    if (*word != ';')
        return true;
    const char *quality = word + 1 + strspn(word + 1, " \t");
    return strncasecmp(quality, "q=0", 3) != 0 ||
           strcspn(quality, "123456789") < strcspn(quality, ",");
}

static bool deflate_all(const hf__buf *text, unsigned char *out, size_t room, size_t *size)
{
    z_stream stream = {.next_in = (unsigned char *)text->data,
                       .avail_in = (uInt)text->length,
                       .next_out = out,
                       .avail_out = (uInt)room};

    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    bool done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    *size = stream.total_out;
    deflateEnd(&stream);
    return done;
}

bool hf__gzip(hf__buf *text)
{
    size_t size = 0;

    if (text->broken || text->length < WORTH_IT || text->length > INT_MAX)
        return false;
    unsigned char *out = malloc(text->length); /* what does not shrink is not worth it */
    if (out == NULL || !deflate_all(text, out, text->length, &size)) {
        free(out);
        return false;
    }
    hf__buf_free(text);
    hf__buf_add(text, out, size);
    free(out);
    return true;
}
