/*
 * The rows that are appended: files, or standard input, as one stream of bytes. Rows pass through
 * unread; only where one ends is known here, and that depends on the format.
 */
#ifndef HF_APPEND_ROWS_INPUT_H
#define HF_APPEND_ROWS_INPUT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

/* ---- Formats --------------------------------------------------------------------------------- */

/* How to tell, from the bytes around a place, that it is between two rows. */
typedef enum hf__row_end {
    HF__ENDS_UNKNOWN = 0, /* it cannot be told */
    HF__ENDS_BY_QUOTES,   /* a newline outside of quotes: all bytes before it must be read */
    HF__ENDS_BY_LINE,     /* a newline that is not escaped */
    HF__ENDS_BY_BRACES,   /* a newline between } and {: inside of a value there would be a comma */
} hf__row_end;

typedef struct hf__format {
    const char *name;
    bool has_lines;  /* each row is a line */
    bool has_header; /* the first line names the columns */
    hf__row_end ends;
    const char *bad; /* bytes that no table accepts as a row: they abort a stream */
    size_t bad_size;
} hf__format;

/* Finds a format by its name; NULL is JSONEachRow. HF_INVALID: there is none of that name. */
HF_MUST_CHECK hf_status hf__format_find(const char *name, const hf__format **format, hf_error *err);

/* ---- Inputs ---------------------------------------------------------------------------------- */

typedef struct hf__rows_input hf__rows_input;

/*
 * Opens the files in their order; "-", or no path at all, is standard input. All files must be
 * there now, but each is opened when the one before it ends. The header of a later file is left
 * out; reading returns HF_BAD_DATA when it differs from the first. The paths must outlive the
 * input.
 */
HF_MUST_CHECK hf_status hf__rows_input_open(const hf__format *format, const char *const *paths,
                                            size_t count, hf__rows_input **input, hf_error *err);
void hf__rows_input_close(hf__rows_input *input);

/*
 * A place near the middle of a file where its rows can be cut in two. 0: it is not a regular file,
 * is too small to be worth it, or no place is safe.
 */
HF_MUST_CHECK hf_status hf__rows_input_middle(const hf__format *format, const char *path,
                                              int64_t *at, hf_error *err);
/*
 * Confines the input to the bytes from..to of its one file (to -1: the end), with the file's header
 * in front where there is one. Once *stop is set, reading fails with HF_INTERRUPTED.
 */
void hf__rows_input_confine(hf__rows_input *input, int64_t from, int64_t to,
                            const atomic_bool *stop);

/* How the server reads CSV: what is between values, and whether ' is a quote as well as ". */
void hf__rows_input_know_csv(hf__rows_input *input, char delimiter, bool has_single_quotes);

/*
 * Reads some bytes. HF_BAD_DATA: it cannot be read, or a file ends inside of a row: servers would
 * take what follows for the rest of it, or the end for the row's. *got 0 and *wait false: the end.
 * *wait true: nothing is there yet, and hf__rows_input_fd turns readable when there is.
 */
HF_MUST_CHECK hf_status hf__rows_input_read(hf__rows_input *input, char *bytes, size_t size,
                                            size_t *got, bool *wait, hf_error *err);
int hf__rows_input_fd(const hf__rows_input *input);

/*
 * Reads the first line of the first file ahead; hf__rows_input_read still returns it. *wait true:
 * the line is not whole yet, call again. Only for a format with a header, and before any other
 * read.
 */
HF_MUST_CHECK hf_status hf__rows_input_read_header(hf__rows_input *input, bool *wait,
                                                   hf_error *err);
/* The line that was read ahead, which the input owns. */
const char *hf__rows_input_header(const hf__rows_input *input, size_t *size);

/* How far the input is. Any thread may ask. */
int64_t hf__rows_input_bytes(const hf__rows_input *input); /* read so far */
int64_t hf__rows_input_size(const hf__rows_input *input);  /* of all files; -1: unknown */
int64_t hf__rows_input_rows(const hf__rows_input *input);  /* read so far; -1: unknown */

/* Once the header has been read: there is none, and no row. */
bool hf__rows_input_is_empty(const hf__rows_input *input);

/* The file and line, from 1, of a row, or of the header (row 0). False: that is not known. */
bool hf__rows_input_place(const hf__rows_input *input, int64_t row, const char **file,
                          int64_t *line);

#endif
