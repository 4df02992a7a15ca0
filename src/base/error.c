#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "holdfast/holdfast.h"

enum {
    MESSAGE_SIZE = sizeof((hf_error){0}.message),
    HINT_SIZE = sizeof((hf_error){0}.hint),
};

/* vsnprintf may cut the text inside a UTF-8 sequence: this drops the incomplete tail. */
static void drop_partial_character(char *text)
{
    size_t length = strlen(text);
    size_t start = length;

    while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start == 0)
        return;

    unsigned char lead = (unsigned char)text[start - 1];
    size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (length - (start - 1) < wanted)
        text[start - 1] = '\0';
}

/*
 * Servers send messages with newlines in them and at the end, and what others have written may have
 * escapes of a terminal. We show one line of text.
 */
static void fold_lines(char *text)
{
    size_t size = strlen(text);
    char *to = text;

    for (size_t at = 0; at < size;) {
        const char *from = text + at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (point < 0) {
            *to++ = '?';
        } else if (!hf__is_unsafe(point)) {
            memmove(to, from, (size_t)(text + at - from));
            to += text + at - from;
        } else if (to > text && to[-1] != ' ') {
            *to++ = ' ';
        }
    }
    while (to > text && to[-1] == ' ')
        to--;
    *to = '\0';
}

static void tidy(char *text, size_t size, int wanted)
{
    if (wanted < 0)
        text[0] = '\0';
    else if ((size_t)wanted >= size)
        drop_partial_character(text);
    fold_lines(text);
}

static void store_error(hf_error *err, hf_status code, const char *message)
{
    err->code = code;
    err->sqlstate[0] = '\0';
    err->hint[0] = '\0';
    err->position = 0;
    strcpy(err->message, message);
}

void hf__set_error(hf_error *err, hf_status code, const char *format, ...)
{
    /* Not straight into err->message: the caller may pass that as an argument. */
    char message[MESSAGE_SIZE];
    va_list args;

    if (err == NULL)
        return;
    va_start(args, format);
    int wanted = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    tidy(message, sizeof message, wanted);
    store_error(err, code, message);
}

void hf__set_error_errno(hf_error *err, hf_status code, int error_number, const char *format, ...)
{
    char what[MESSAGE_SIZE];
    char message[MESSAGE_SIZE];
    char reason[128];
    va_list args;

    if (err == NULL)
        return;
    va_start(args, format);
    int wanted = vsnprintf(what, sizeof what, format, args);
    va_end(args);
    tidy(what, sizeof what, wanted);

    /* If the whole is too long, cut what failed and keep the reason. */
    const char *text = strerror_r(error_number, reason, sizeof reason);
    int room = (int)(sizeof message - sizeof ": " - strnlen(text, sizeof reason));
    wanted = snprintf(message, sizeof message, "%.*s: %s", room, what, text);
    tidy(message, sizeof message, wanted);
    store_error(err, code, message);
}

const char *hf__error_detail(const hf_error *err)
{
    const size_t size = sizeof HF__NOT_ACQUIRED_PREFIX - 1;

    return strncmp(err->message, HF__NOT_ACQUIRED_PREFIX, size) == 0 ? err->message + size
                                                                     : err->message;
}

void hf__hint(hf_error *err, const char *format, ...)
{
    char hint[HINT_SIZE];
    va_list args;

    if (err == NULL)
        return;
    va_start(args, format);
    int wanted = vsnprintf(hint, sizeof hint, format, args);
    va_end(args);
    tidy(hint, sizeof hint, wanted);
    strcpy(err->hint, hint);
}

hf_status hf__options_copy(void *out, size_t out_size, const void *given, size_t least,
                           const char *type, const char *init, hf_error *err)
{
    enum { MOST_SIZE = 4096 }; /* a larger size is garbage, or another struct's */
    size_t size = 0;

    memset(out, 0, out_size);
    memcpy(&size, given, sizeof size);
    if (size == 0)
        return hf__fail(err, HF_INVALID, "%s.size is not set: start from %s", type, init);
    if (size < least || size > MOST_SIZE)
        return hf__fail(err, HF_INVALID,
                        "%s.size is %zu, which no version of it has: start from %s", type, size,
                        init);
    memcpy(out, given, size < out_size ? size : out_size);
    return HF_OK;
}

/* ---- names and texts of statuses ------------------------------------------------------------- */

const char *hf_version(void)
{
    return HF_VERSION;
}

const char *hf_status_name(hf_status status)
{
    switch (status) {
#define X(name, number, text)                                                                      \
    case HF_##name: return "HF_" #name;
        HF_STATUS_MAP(X)
#undef X
    }
    return "HF_UNKNOWN";
}

const char *hf_status_text(hf_status status)
{
    switch (status) {
#define X(name, number, text)                                                                      \
    case HF_##name: return text;
        HF_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}
