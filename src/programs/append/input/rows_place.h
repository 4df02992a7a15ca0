/* Where the rows of a stream are: file and line, for a row that ClickHouse knows by its number. */
#ifndef HF_APPEND_ROWS_PLACE_H
#define HF_APPEND_ROWS_PLACE_H

#include "programs/append/input/rows_input.h"

/* From this row on each line is a row, up to the next mark. */
typedef struct hf__row_mark {
    int64_t row;
    int64_t line;
    size_t source; /* which file */
} hf__row_mark;

/* One thread reads the stream; others may read rows. */
typedef struct hf__row_places {
    hf__row_end ends;
    atomic_llong rows; /* begun so far */
    size_t source;
    int64_t line;      /* that the next byte belongs to, from 1 */
    int64_t next_line; /* on which a row needs no mark; 0: every row needs one */
    bool is_header;    /* the line is one */
    bool is_new;       /* nothing of the line has been seen but blanks */
    bool is_indented;  /* there were blanks */
    bool is_inside;    /* the line goes on with the row before it */
    char delimiter;    /* CSV: between values; 0: not known */
    bool is_strict;    /* CSV: only " is a quote, and ' is not */
    char quote;        /* CSV: the one that is open; 0: none */
    char closed;       /* CSV: the quote that the byte before has closed; 0: it was none */
    char last;         /* the byte before, or before blanks */
    bool is_escaping;  /* TSV: the bytes so far end with an odd number of backslashes */

    hf__row_mark *marks; /* by row */
    size_t count;
    int64_t unknown_from; /* rows from here on have no marks: there were too many; 0: none */
} hf__row_places;

void hf__places_init(hf__row_places *places, const hf__format *format);
void hf__places_free(hf__row_places *places);
/* The stream goes on with another file, whose line comes next. */
void hf__places_enter(hf__row_places *places, size_t source, int64_t line);
/* The next line names the columns. */
void hf__places_expect_header(hf__row_places *places);
/* These bytes of the file come next. */
void hf__places_pass(hf__row_places *places, const char *bytes, size_t size);
/* Would the next byte belong to a row that has begun, whatever it is? Then the file was cut. */
bool hf__places_is_inside(const hf__row_places *places);
/* False: it is not known. */
bool hf__places_find(const hf__row_places *places, int64_t row, size_t *source, int64_t *line);

#endif
