/* One file under examination: its text, the class of each byte, its lines and its blocks. */
#ifndef HF_LINT_UNIT_H
#define HF_LINT_UNIT_H

#include <stdint.h>

#include "base/error.h"
#include "programs/registry/lint/text/scan.h"

#define HF__NO_BLOCK SIZE_MAX
#define HF__STATEMENT (SIZE_MAX - 1) /* no block: a constant with SQL, which others execute */

/*
 * A function with its declaration, a closure with the call that it is passed to, or in SQL a
 * transaction or the body of a function.
 */
typedef struct hf__block {
    size_t start;
    size_t end;
    size_t parent; /* HF__NO_BLOCK: the file itself */
} hf__block;

typedef struct hf__unit {
    const char *path;
    const char *text; /* ends with a NUL */
    size_t size;
    const hf__syntax *syntax;
    unsigned char *classes;
    size_t *lines; /* where each line begins */
    size_t line_count;
    size_t line_capacity;
    hf__block *blocks; /* by start, then the larger first */
    size_t block_count;
    size_t block_capacity;
} hf__unit;

/* Scans the text and finds its blocks. path and text must outlive the unit. */
HF_MUST_CHECK hf_status hf__unit_open(hf__unit *unit, const char *path, const hf__syntax *syntax,
                                      const char *text, size_t size, hf_error *err);
void hf__unit_close(hf__unit *unit);

/* Line and column of a byte, both from 1; the column counts characters. */
unsigned hf__unit_line(const hf__unit *unit, size_t at);
unsigned hf__unit_column(const hf__unit *unit, size_t at);

/* Is this byte SQL: in a string, or in the code of an SQL file? */
bool hf__unit_is_sql(const hf__unit *unit, size_t at);

/* The ends of the run of bytes of the same class around this byte, at most 16 KiB away. */
size_t hf__unit_run_start(const hf__unit *unit, size_t at);
size_t hf__unit_run_end(const hf__unit *unit, size_t at);

/* The innermost block around a byte, or HF__NO_BLOCK. */
size_t hf__unit_block(const hf__unit *unit, size_t at);

/* Is outer the same block as inner, or around it? HF__NO_BLOCK is around none. */
bool hf__unit_encloses(const hf__unit *unit, size_t outer, size_t inner);

/* Fills the blocks of a unit, for hf__unit_open alone. */
HF_MUST_CHECK hf_status hf__find_blocks(hf__unit *unit, hf_error *err);

#endif
