#ifndef HF_LINT_SCAN_H
#define HF_LINT_SCAN_H

#include <stddef.h>

#include "programs/registry/lint/text/syntax.h"

/* The scanner tells for each byte of a file whether it is code, text or a comment. */

typedef enum hf__class {
    HF__CODE,
    HF__TEXT,    /* of a string, including expressions inside of it */
    HF__QUOTE,   /* opens or closes a string; also a regex literal */
    HF__COMMENT, /* also SQL comments inside of strings, and docstrings of Python */
} hf__class;

/* Fills classes, one for each byte. A string that is never closed reaches to the end. */
void hf__scan(const hf__syntax *syntax, const char *text, size_t size, unsigned char *classes);

/* ---- Shared by scan.c and scan_special.c ----------------------------------------------------- */

enum { HEREDOCS_MAX = 8 };

struct heredoc {
    size_t word; /* where the name of the terminator is */
    size_t size;
};

struct scanner {
    const hf__syntax *syntax;
    const char *text;
    size_t size;
    size_t at;
    unsigned char *classes;
    size_t depth;                          /* of brackets */
    struct heredoc heredocs[HEREDOCS_MAX]; /* opened on this line; their text starts on the next */
    size_t heredoc_count;
};

static inline char scanner_peek(const struct scanner *in, size_t ahead)
{
    return in->at + ahead < in->size ? in->text[in->at + ahead] : '\0';
}

bool scanner_is_at(const struct scanner *in, const char *word);

/* Marks the next count bytes and moves past them. Stops at the end of the text. */
void scanner_mark(struct scanner *in, size_t count, hf__class kind);

bool scanner_is_word(char c);

/* The last byte of code before `at` that is neither a space nor a newline; NUL: there is none. */
char scanner_code_before(const struct scanner *in, size_t at);

/* Scans a string that no table of quotes describes. False: there is none here. */
bool scanner_special(struct scanner *in);

/* Scans the heredocs that were opened on the line that ends here. */
void scanner_heredocs(struct scanner *in);

/* Marks an expression inside of a string as text. opening is the size of what opens it. */
void scanner_hole(struct scanner *in, size_t opening);

#endif
