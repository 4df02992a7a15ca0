#ifndef HF_LINT_SCAN_H
#define HF_LINT_SCAN_H

#include <stddef.h>

#include "programs/registry/lint/syntax.h"

/* Tells code, text and comments apart, byte by byte. */

typedef enum hf__class {
    HF__CODE,
    HF__TEXT,    /* of a string, with the expressions that stand in it */
    HF__QUOTE,   /* what opens or closes a string, and regex literals */
    HF__COMMENT, /* SQL comments inside of strings too, and Python's docstrings */
} hf__class;

/* Fills classes, one for each byte of the text. What is never closed reaches to the end. */
void hf__scan(const hf__syntax *syntax, const char *text, size_t size, unsigned char *classes);

/* The parts of the scanner, for its own files. */

enum { HEREDOCS_MAX = 8 };

struct heredoc {
    size_t word; /* where the terminator's name stands */
    size_t size;
};

struct scanner {
    const hf__syntax *syntax;
    const char *text;
    size_t size;
    size_t at;
    unsigned char *classes;
    size_t depth;                          /* of brackets */
    struct heredoc heredocs[HEREDOCS_MAX]; /* opened on this line: their text starts on the next */
    size_t heredoc_count;
};

static inline char scanner_peek(const struct scanner *in, size_t ahead)
{
    return in->at + ahead < in->size ? in->text[in->at + ahead] : '\0';
}

bool scanner_is_at(const struct scanner *in, const char *word);

/* Marks so many bytes from here, and moves behind them; stops at the end. */
void scanner_mark(struct scanner *in, size_t count, hf__class class);

bool scanner_is_word(char c);

/* The last byte of code before `at` that is no space or newline, or NUL. */
char scanner_code_before(const struct scanner *in, size_t at);

/* Strings that a table of quotes cannot describe: true when one stood here and was taken. */
bool scanner_special(struct scanner *in);

/* The texts of the heredocs that the line which ends here has opened. */
void scanner_heredocs(struct scanner *in);

/* An expression inside of a string, from its opening to its end, is part of the text. */
void scanner_hole(struct scanner *in, size_t opening);

#endif
