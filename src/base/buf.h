#ifndef HF_BASE_BUF_H
#define HF_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A growing string, always NUL-terminated once written to. Zero-initialise it. After a failed
 * allocation it is marked broken and ignores further writes, so only the end needs a check.
 */
typedef struct hf__buf {
    char *data;    /* owned; NULL before the first write */
    size_t length; /* without the NUL */
    size_t capacity;
    bool broken;
} hf__buf;

/*
 * Append bytes, a string or formatted text. The source must not lie inside buf, whose memory may
 * move. bytes may be NULL when size is 0.
 */
void hf__buf_add(hf__buf *buf, const void *bytes, size_t size);
void hf__buf_puts(hf__buf *buf, const char *text);
void hf__buf_printf(hf__buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes room for `size` more bytes in one allocation. */
void hf__buf_reserve(hf__buf *buf, size_t size);

/* Empties the string and clears `broken`, but keeps the memory. */
void hf__buf_clear(hf__buf *buf);

/* Frees the memory. The buffer is empty afterwards and can be used again. */
void hf__buf_free(hf__buf *buf);

#endif
