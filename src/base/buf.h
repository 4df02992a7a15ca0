#ifndef HF_BASE_BUF_H
#define HF_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

/* A growing string, always NUL-terminated once written to. After a failed allocation it is marked
 * broken and ignores further writes, so that only the end needs a check. */
typedef struct hf__buf {
    char *data;
    size_t length;
    size_t capacity;
    bool broken;
} hf__buf;

void hf__buf_add(hf__buf *buf, const void *bytes, size_t size);
void hf__buf_puts(hf__buf *buf, const char *text);
void hf__buf_printf(hf__buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hf__buf_reserve(hf__buf *buf, size_t size); /* room for so many more bytes, at once */
void hf__buf_clear(hf__buf *buf);                /* keeps the memory */
void hf__buf_free(hf__buf *buf);

#endif
