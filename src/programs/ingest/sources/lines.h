/* Cuts an input into lines, and makes a ledger of a line. */
#ifndef HF_INGEST_SOURCES_LINES_H
#define HF_INGEST_SOURCES_LINES_H

#include "programs/ingest/sources/source.h"
#include "programs/ingest/sources/unpack.h"

enum {
    HF__LINE_MAX = 256 << 20,    /* unless the options say otherwise */
    HF__BAD_BYTES_MAX = 1 << 20, /* at most this much is kept of a bad line */
    HF__WHERE_SIZE = sizeof((hf__bad_ledger){0}.where),
};

typedef struct hf__lines {
    hf__input input;
    size_t line_max;
    char *data; /* [start, end) was read; its first `scanned` bytes have no newline */
    size_t capacity, start, end, scanned;
    int64_t offset;   /* of data[start] in the unpacked bytes */
    int64_t number;   /* of the line at start, from 1; 0: unknown, after hf__lines_go */
    bool is_skipping; /* the rest of a line that was too long */
    int64_t passed;   /* the last sequence, or its guess for a line without one; 0: none yet */
    bool has_given;   /* a ledger, since it began or the caller has sought anew */
} hf__lines;

/*
 * A line without its newline, carriage return and byte order mark. The text lives until the next
 * call on the lines.
 */
typedef struct hf__line {
    const char *text; /* NULL: the input has ended for now */
    size_t size;
    int64_t number, offset;
    bool is_too_long; /* text is at most its first megabyte */
    bool is_rest;     /* the input ended before its newline */
} hf__line;

/* Starts at the current place of lines->input, which the caller has opened. 0: HF__LINE_MAX. */
void hf__lines_begin(hf__lines *lines, size_t line_max);
void hf__lines_close(hf__lines *lines); /* closes the input too */

/*
 * Reads the next line. is_last: nothing will be appended to the input, so that text without a
 * newline at its end is a line as well. Fails as hf__input_read.
 */
HF_MUST_CHECK hf_status hf__lines_next(hf__lines *lines, bool is_last, hf__line *line,
                                       hf_error *err);

/* The text after the last newline, once hf__lines_next has met the end. */
hf__line hf__lines_rest(const hf__lines *lines);
void hf__lines_drop_rest(hf__lines *lines);

/*
 * Continues at this offset of a plain file. `number` is that of the line that begins there; 0:
 * unknown.
 */
HF_MUST_CHECK hf_status hf__lines_go(hf__lines *lines, int64_t offset, int64_t number,
                                     hf_error *err);

/* Writes where a line stands, such as "file.ndjson:17". Called only for a bad line. */
typedef void hf__where_fn(void *arg, const hf__line *line, char *where, size_t size);

/*
 * Parses the line that hf__lines_next or hf__lines_rest gave last. *ledger is the caller's; it is
 * NULL if the line is blank or its sequence, by what came before it if it has none, is below from.
 * After the first ledger that was given, one below from is given too: it is out of order, and the
 * caller must know. HF_BAD_DATA: bad (may be NULL) gets the line, and err begins with where it
 * stands.
 */
HF_MUST_CHECK hf_status hf__lines_ledger(hf__lines *lines, const hf__line *line, int64_t from,
                                         hf__where_fn *where, void *where_arg, hf__ledger **ledger,
                                         hf__bad_ledger *bad, hf_error *err);

/*
 * Fills bad (may be NULL) with a copy of bytes, and err with where and the reason. Always returns
 * HF_BAD_DATA.
 */
hf_status hf__source_refuse(hf__bad_ledger *bad, const char *where, int64_t sequence,
                            hf__slice bytes, const hf_error *reason, hf_error *err);

#endif
