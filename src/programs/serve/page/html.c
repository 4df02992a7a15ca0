#include "programs/serve/page/html.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "programs/serve/page/page.h"

enum { TEXT_ROOM = 4000 };

static void escape(hf__buf *out, const char *text, size_t size)
{
    size_t done = 0;

    for (size_t i = 0; i < size; i++) {
        const char *entity = text[i] == '<'    ? "&lt;"
                             : text[i] == '>'  ? "&gt;"
                             : text[i] == '&'  ? "&amp;"
                             : text[i] == '"'  ? "&quot;"
                             : text[i] == '\'' ? "&#39;"
                                               : NULL;
        if (!entity)
            continue;
        hf__buf_add(out, text + done, i - done);
        hf__buf_puts(out, entity);
        done = i + 1;
    }
    hf__buf_add(out, text + done, size - done);
}

static void put_text(hf__buf *out, const char *text, size_t room)
{
    char shown[TEXT_ROOM];

    hf__show(shown, room < sizeof shown ? room : sizeof shown, text, strlen(text));
    escape(out, shown, strlen(shown));
}

/* Writes one conversion; at is behind its '%'. Returns what follows it in the format. */
static const char *convert(hf__buf *out, const char *at, va_list *args)
{
    size_t precision = SIZE_MAX;
    int longs = 0;
    bool of_size = false;

    if (*at == '.') {
        char *end = NULL;
        precision = strtoul(at + 1, &end, 10);
        at = end;
    }
    for (; *at == 'l' || *at == 'z'; at++) {
        longs += *at == 'l';
        of_size |= *at == 'z';
    }
    switch (*at) {
    case 's':
        put_text(out, va_arg(*args, const char *),
                 precision == SIZE_MAX ? precision : precision + 1);
        break;
    case 'd':
        hf__buf_printf(out, "%" PRId64, longs ? va_arg(*args, int64_t) : va_arg(*args, int));
        break;
    case 'u':
        if (of_size)
            hf__buf_printf(out, "%zu", va_arg(*args, size_t));
        else
            hf__buf_printf(out, "%" PRIu64,
                           longs ? va_arg(*args, uint64_t) : va_arg(*args, unsigned));
        break;
    case 'f':
        hf__buf_printf(out, "%.*f", precision == SIZE_MAX ? 6 : (int)precision,
                       va_arg(*args, double));
        break;
    case 'c': {
        char c = (char)va_arg(*args, int);
        escape(out, &c, 1);
        break;
    }
    default: hf__buf_add(out, at, 1);
    }
    return at + 1;
}

void hf__html(hf__buf *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    for (const char *at = format; *at;) {
        size_t plain = strcspn(at, "%");
        hf__buf_add(out, at, plain);
        at += plain;
        if (*at == '%')
            at = convert(out, at + 1, &args);
    }
    va_end(args);
}

void hf__html_value(hf__buf *out, const char *text)
{
    size_t size = strlen(text);

    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (point < ' ' || (point >= 0x7F && point < 0xA0))
            hf__buf_puts(out, "\xEF\xBF\xBD");
        else
            escape(out, text + start, at - start);
    }
}

void hf__html_url(hf__buf *out, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:";

    for (; *text; text++) {
        if (strchr(plain, *text))
            hf__buf_add(out, text, 1);
        else
            hf__buf_printf(out, "%%%02X", (unsigned char)*text);
    }
}

void hf__html_time(hf__buf *out, int64_t unix_ms, int64_t now_ms)
{
    const int64_t day_ms = INT64_C(86400000);
    char time[HF__TIME_SIZE];

    if (unix_ms < 0) {
        hf__buf_puts(out, "–");
        return;
    }
    hf__show_time(time, hf__us_from_ms(unix_ms), 0);
    hf__buf_printf(out, "<time datetime=\"%s\">", time);
    if (unix_ms / day_ms != now_ms / day_ms)
        hf__buf_printf(out, "%.10s ", time);
    hf__buf_printf(out, "%.8s</time>", time + sizeof "2024-06-01T" - 1);
}

void hf__html_duration(hf__buf *out, int64_t ms, bool is_bound)
{
    char text[40];

    if (ms < 0) {
        hf__buf_puts(out, "–");
        return;
    }
    if (is_bound)
        hf__buf_puts(out, "<span title=\"at most\">≤</span> ");
    hf__buf_puts(out, hf__show_duration(text, sizeof text, ms));
}

void hf__html_number(hf__buf *out, int64_t number)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, number);

    for (int i = 0; i < length; i++) {
        if (i > (number < 0) && (length - i) % 3 == 0)
            hf__buf_puts(out, "\xE2\x80\xAF"); /* narrow no-break space */
        hf__buf_add(out, &digits[i], 1);
    }
}

const char *hf__lock_ref(char out[HF__REF_ROOM], hf_space space, int64_t key)
{
    uint32_t classid, objid;

    hf_key_split(key, &classid, &objid);
    if (space == HF_PAIR)
        snprintf(out, HF__REF_ROOM, "p:%" PRId32 ":%" PRId32, (int32_t)classid, (int32_t)objid);
    else
        snprintf(out, HF__REF_ROOM, "b:%" PRId64, key);
    return out;
}

const char *hf__lock_key(char out[HF__REF_ROOM], hf_space space, int64_t key)
{
    uint32_t classid, objid;

    hf_key_split(key, &classid, &objid);
    if (space == HF_PAIR)
        snprintf(out, HF__REF_ROOM, "(%" PRId32 ", %" PRId32 ")", (int32_t)classid, (int32_t)objid);
    else
        snprintf(out, HF__REF_ROOM, "%" PRId64, key);
    return out;
}

const char *hf__lock_title(char out[HF__TITLE_ROOM], const hf__seen_lock *lock)
{
    const char *text = lock->label[0] != '\0' ? lock->label : lock->name;
    char key[HF__REF_ROOM];

    if (text[0] != '\0')
        return hf__show(out, HF__TITLE_ROOM, text, strlen(text));
    snprintf(out, HF__TITLE_ROOM, "key %s", hf__lock_key(key, lock->space, lock->key));
    return out;
}

const char *hf__lock_typed(char out[HF__TYPED_ROOM], const char *store, const hf__seen_lock *lock)
{
    char title[HF__TITLE_ROOM];

    snprintf(out, HF__TYPED_ROOM, "%s%s%s", store, store[0] != '\0' ? "/" : "",
             hf__lock_title(title, lock));
    return out;
}
