/* The formats that rows come in. Rows pass through as bytes; only their ends are known here. */
#ifndef HF_APPEND_FORMAT_H
#define HF_APPEND_FORMAT_H

#include "base/error.h"

/* How a place between two rows is told from the bytes around it. */
typedef enum hf__row_end {
    HF__ENDS_UNKNOWN = 0, /* not at all */
    HF__ENDS_BY_QUOTES,   /* a line's end outside of quotes, which takes all that stands before */
    HF__ENDS_BY_LINE,     /* a line's end that is not escaped */
    HF__ENDS_BY_BRACES,   /* a line's end between braces: in JSON a comma would stand there */
} hf__row_end;

typedef struct hf__format {
    const char *name;
    bool has_lines;  /* a row is a line */
    bool has_header; /* the first line names the columns */
    hf__row_end ends;
    const char *bad; /* what no table accepts as a row: it aborts a stream */
    size_t bad_size;
} hf__format;

/* NULL: JSONEachRow. */
HF_MUST_CHECK hf_status hf__format_find(const char *name, const hf__format **format, hf_error *err);

#endif
