/*
 * Reads the blocks of a Markdown file that matter to a registry: headings, tables and the prose
 * between them. What stands in a comment is not read; what stands in a code fence is prose.
 */
#ifndef HF_AUDIT_IMPORT_MARKDOWN_H
#define HF_AUDIT_IMPORT_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>

/* A piece of the text that is read; not NUL-terminated. */
typedef struct hf__slice {
    const char *text;
    size_t size;
} hf__slice;

enum { HF__CELLS_MAX = 64 }; /* of a row; further ones are ignored */

typedef struct hf__row {
    unsigned line; /* from 1 */
    hf__slice cells[HF__CELLS_MAX];
    size_t count;
} hf__row;

/* Each returns false to stop the reading. */
typedef struct hf__markdown_reader {
    bool (*heading)(void *arg, unsigned line, int level, hf__slice text);
    bool (*prose)(void *arg, unsigned line, hf__slice text);
    bool (*header)(void *arg, const hf__row *row); /* a table begins */
    bool (*row)(void *arg, const hf__row *row);    /* of the table that began last */
    void *arg;
} hf__markdown_reader;

/* False when a callback stopped it. */
bool hf__markdown_read(const char *text, size_t size, const hf__markdown_reader *reader);

hf__slice hf__slice_trim(hf__slice slice);

#endif
