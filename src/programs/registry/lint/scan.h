/* Tells code, text and comments apart, byte by byte. */
#ifndef HF_LINT_SCAN_H
#define HF_LINT_SCAN_H

#include <stddef.h>

#include "programs/registry/lint/syntax.h"

typedef enum hf__class {
    HF__CODE,
    HF__TEXT,    /* of a string, with the expressions that stand in it */
    HF__QUOTE,   /* what opens or closes a string, and regex literals */
    HF__COMMENT, /* SQL comments inside of strings too, and Python's docstrings */
} hf__class;

/* Fills classes, one for each byte of the text. What is never closed reaches to the end. */
void hf__scan(const hf__syntax *syntax, const char *text, size_t size, unsigned char *classes);

#endif
