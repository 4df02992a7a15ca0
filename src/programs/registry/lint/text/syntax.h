/* What comments, strings and blocks look like in a language: enough to tell code from text. */
#ifndef HF_LINT_SYNTAX_H
#define HF_LINT_SYNTAX_H

#include <stdbool.h>
#include <stddef.h>

typedef enum hf__language_id {
    HF__LANG_C = 1 << 0,
    HF__LANG_GO = 1 << 1,
    HF__LANG_JS = 1 << 2,
    HF__LANG_PYTHON = 1 << 3,
    HF__LANG_RUBY = 1 << 4,
    HF__LANG_JAVA = 1 << 5,
    HF__LANG_KOTLIN = 1 << 6,
    HF__LANG_CSHARP = 1 << 7,
    HF__LANG_RUST = 1 << 8,
    HF__LANG_PHP = 1 << 9,
    HF__LANG_ELIXIR = 1 << 10,
    HF__LANG_SQL = 1 << 11,
    HF__LANG_PRISMA = 1 << 12,
    HF__LANG_TEXT = 1 << 13, /* a file that --include adds; all of it counts as text */
    HF__LANG_PERL = 1 << 14,
    HF__LANG_SHELL = 1 << 15,
    HF__LANG_XML = 1 << 16, /* changes of Liquibase: all text but comments and tags */
    HF__LANG_ANY = (1 << 17) - 1,
} hf__language_id;

typedef struct hf__quote {
    const char *open; /* NULL ends the table; longer ones come first */
    const char *close;
    bool escapes;     /* a backslash escapes the next character */
    bool doubled;     /* the closing quote twice is a quote in the text */
    bool lines;       /* it may span lines; otherwise a newline ends it */
    const char *hole; /* what opens an expression inside, such as "${"; NULL: nothing does */
} hf__quote;

typedef enum hf__blocks_kind {
    HF__BLOCKS_BRACES,
    HF__BLOCKS_INDENTED, /* Python: up to a line that is indented no further */
    HF__BLOCKS_ENDED,    /* Ruby, Elixir: the same, including the `end` on that line */
    HF__BLOCKS_SQL,      /* from BEGIN to COMMIT, and between dollar quotes */
} hf__blocks_kind;

typedef struct hf__syntax {
    hf__language_id id;
    const char *suffixes; /* " c h cc ", each between two spaces */
    const char *line_comments[3];
    bool block_comments;
    bool nested_comments; /* a block comment may contain others */
    bool regex_literals;
    bool newline_ends; /* a statement needs no ';' */
    hf__blocks_kind blocks;
    const hf__quote *quotes;
} hf__syntax;

/* The syntax for the suffix of a file's name; NULL: the language is not known. */
const hf__syntax *hf__syntax_of(const char *name);

extern const hf__syntax hf__text_syntax;

#endif
