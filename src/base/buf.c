#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 128 };

/* Makes room for size more bytes and the NUL. */
static bool reserve(hf__buf *buf, size_t size)
{
    if (buf->broken)
        return false;
    if (size < buf->capacity - buf->length)
        return true;

    size_t capacity = buf->capacity > 0 ? buf->capacity : FIRST_CAPACITY;
    while (capacity - buf->length <= size) {
        if (capacity > SIZE_MAX / 2) {
            buf->broken = true;
            return false;
        }
        capacity *= 2;
    }
    char *data = realloc(buf->data, capacity);
    if (data == NULL) {
        buf->broken = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void hf__buf_add(hf__buf *buf, const void *bytes, size_t size)
{
    if (!reserve(buf, size))
        return;
    if (size > 0)
        memcpy(buf->data + buf->length, bytes, size);
    buf->length += size;
    buf->data[buf->length] = '\0';
}

void hf__buf_puts(hf__buf *buf, const char *text)
{
    hf__buf_add(buf, text, strlen(text));
}

void hf__buf_printf(hf__buf *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int wanted = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (wanted < 0) {
        buf->broken = true;
        return;
    }
    if (!reserve(buf, (size_t)wanted))
        return;

    va_start(args, format);
    vsnprintf(buf->data + buf->length, (size_t)wanted + 1, format, args);
    va_end(args);
    buf->length += (size_t)wanted;
}

void hf__buf_reserve(hf__buf *buf, size_t size)
{
    (void)reserve(buf, size);
}

void hf__buf_clear(hf__buf *buf)
{
    buf->length = 0;
    buf->broken = false;
    if (buf->data != NULL)
        buf->data[0] = '\0';
}

void hf__buf_free(hf__buf *buf)
{
    free(buf->data);
    *buf = (hf__buf){0};
}
