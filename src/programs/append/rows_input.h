#ifndef HF_APPEND_INPUT_H
#define HF_APPEND_INPUT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

/* The formats that rows come in. Rows pass through as bytes; only their ends are known here. */

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

/* The rows that are appended: files one after the other, as one stream of bytes. */

typedef struct hf__rows_input hf__rows_input;

/*
 * paths may be "-" for standard input, and none means that too. Files are opened as they are needed,
 * all are looked for at once. Headers of later files are left out; one that differs is HF_BAD_DATA.
 */
HF_MUST_CHECK hf_status hf__rows_input_open(const hf__format *format, const char *const *paths,
                                            size_t count, hf__rows_input **input, hf_error *err);
void hf__rows_input_close(hf__rows_input *input);

/*
 * Where the rows of the file can be cut in two about its middle; 0: it is no file, too small, or no
 * such place is known.
 */
HF_MUST_CHECK hf_status hf__rows_input_middle(const hf__format *format, const char *path,
                                              int64_t *at, hf_error *err);
/*
 * Only the bytes from..to of one file, to the end where that is -1, behind its header where it has one. Once
 * stop is set it fails with HF_INTERRUPTED.
 */
void hf__rows_input_confine(hf__rows_input *input, int64_t from, int64_t to,
                            const atomic_bool *stop);

/* *got 0 and *wait false: the end. *wait true: nothing yet, and hf__rows_input_fd turns readable. */
HF_MUST_CHECK hf_status hf__rows_input_read(hf__rows_input *input, char *bytes, size_t size,
                                            size_t *got, bool *wait, hf_error *err);
int hf__rows_input_fd(const hf__rows_input *input);

/*
 * The first line of the first file, which hf__rows_input_read gives all the same. *wait true: it is not whole yet, and
 * hf__rows_input_fd turns readable. For a format that has a header, before anything is read.
 */
HF_MUST_CHECK hf_status hf__rows_input_read_header(hf__rows_input *input, bool *wait,
                                                   hf_error *err);
const char *hf__rows_input_header(const hf__rows_input *input, size_t *size);

/* These also from another thread than the reader's. */
int64_t hf__rows_input_bytes(const hf__rows_input *input); /* read so far */
int64_t hf__rows_input_size(const hf__rows_input *input);  /* of all files; -1: unknown */
int64_t hf__rows_input_rows(const hf__rows_input *input);  /* read so far; -1: unknown */

/* The file and line of a row, from 1, of a format whose rows are lines; false when not known. */
bool hf__rows_input_place(const hf__rows_input *input, int64_t row, const char **file,
                          int64_t *line);

#endif
