/* Lines of an input, and what becomes of a line that is a ledger. */
#ifndef HF_SOURCE_LINES_H
#define HF_SOURCE_LINES_H

#include "programs/ingest/sources/source.h"
#include "programs/ingest/sources/unpack.h"

enum {
    HF__LINE_MAX = 256 << 20,    /* unless the options say otherwise */
    HF__BAD_BYTES_MAX = 1 << 20, /* kept of a bad line */
    HF__WHERE_SIZE = sizeof((hf__bad_ledger){0}.where),
};

typedef struct hf__lines {
    hf__input input;
    size_t line_max;
    char *data; /* in [start, end) not yet given; no newline in the first `scanned` of them */
    size_t capacity, start, end, scanned;
    int64_t offset;   /* of data[start], unpacked */
    int64_t number;   /* of the line at start, from 1; 0: it began in the middle */
    bool is_skipping; /* the rest of a line that was too long */
} hf__lines;

/* Without its end, a carriage return or a byte order mark. Lives until the next call. */
typedef struct hf__line {
    const char *text; /* NULL: the end, as it is now */
    size_t size;
    int64_t number, offset;
    bool is_too_long; /* text is its first megabyte */
} hf__line;

/* Over an input that was opened; line_max 0: HF__LINE_MAX. */
void hf__lines_begin(hf__lines *lines, size_t line_max);
void hf__lines_close(hf__lines *lines); /* the input too */

/* is_last: nothing will be appended, so that a line without its newline is one. */
HF_MUST_CHECK hf_status hf__lines_next(hf__lines *lines, bool is_last, hf__line *line,
                                       hf_error *err);

/* What stands behind the last newline, when hf__lines_next has found the end. */
hf__line hf__lines_rest(const hf__lines *lines);
void hf__lines_drop_rest(hf__lines *lines);

/*
 * The file again from this byte, which is the number-th line's first (0: unknown). Plain files
 * only.
 */
HF_MUST_CHECK hf_status hf__lines_go(hf__lines *lines, int64_t offset, int64_t number,
                                     hf_error *err);

/*
 * The ledger of a line; *ledger NULL: it is empty, or below from. HF_BAD_DATA: bad (may be NULL)
 * has the line, and err begins with where, which is asked for only then.
 */
typedef void hf__where_fn(void *arg, const hf__line *line, char *where, size_t size);
HF_MUST_CHECK hf_status hf__lines_ledger(hf__lines *lines, const hf__line *line, int64_t from,
                                         hf__where_fn *where, void *where_arg, hf__ledger **ledger,
                                         hf__bad_ledger *bad, hf_error *err);

/* The bytes of a line that is no ledger, and why. */
hf_status hf__source_refuse(hf__bad_ledger *bad, const char *where, int64_t sequence,
                            hf__slice bytes, const hf_error *reason, hf_error *err);

#endif
