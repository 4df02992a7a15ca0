/* The formats that rows come in. Rows pass through as bytes; only their ends are known here. */
#ifndef HF_APPEND_FORMAT_H
#define HF_APPEND_FORMAT_H

#include "base/error.h"

typedef struct hf__format {
    const char *name;
    bool has_lines;  /* a row is a line */
    bool has_header; /* the first line names the columns */
    const char *bad; /* what no table accepts as a row: it aborts a stream */
    size_t bad_size;
} hf__format;

/* NULL: JSONEachRow. */
HF_MUST_CHECK hf_status hf__format_find(const char *name, const hf__format **format, hf_error *err);

#endif
