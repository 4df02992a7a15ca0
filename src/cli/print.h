/*
 * What programs print: tables, JSON documents, the columns that all lists of locks share, and
 * progress. A table, a document or a progress belongs to one thread.
 */
#ifndef HF_CLI_PRINT_H
#define HF_CLI_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/report.h"
#include "holdfast/holdfast.h"

/* Tables for people, drawn by libsmartcols. */

struct column {
    const char *title; /* NULL ends a table */
    bool to_the_right;
    bool may_be_cut; /* when the terminal is too narrow */
    unsigned rank;   /* > 0: hidden when the terminal is far too narrow; columns without text go
                      * first, then those with the greatest rank */
};

/*
 * After a failed allocation a table ignores further calls, and table_print returns false. All
 * functions accept NULL, which table_new returns without memory. The caller frees the table.
 */
struct table;

struct table *table_new(const struct column *columns);
void table_add_row(struct table *table);

/* Sets a cell of the last row. The text is copied; control characters are shown escaped. */
void table_set(struct table *table, size_t column, const char *text);

/* Prints to stdout; a table without rows prints nothing. False when memory or the stream failed. */
bool table_print(struct table *table);
void table_free(struct table *table);

/* Sets the locale that column widths depend on. Call it before the first table. */
void prepare_for_tables(void);

/* Can stdout show more than ASCII? Call prepare_for_tables before. */
bool output_is_utf8(void);

/* Writes the document and a newline, and frees it. False when memory or the stream failed. */
bool print_document(hf__json *json, FILE *out);

/* What all commands that list locks show in the same way. */

enum { KEY_SHOWN_MAX = 32 };

/* "42", or "(1, -2)" for two int4. Returns out. */
const char *show_key(char out[KEY_SHOWN_MAX], const hf_lock_view *view);

/* The lock's name in the registry, or "(unregistered)", which stands out among names. */
const char *shown_name(const hf_lock_view *view);

/* "session", "transaction" or "lease"; lifetime_of returns "" when it is not known. */
const char *lifetime_of(const hf_lock_view *view);
const char *lifetime_name(hf_lifetime lifetime);

/* Sets a cell of the last row, or leaves it empty when number is 0. */
void set_number(struct table *table, size_t column, int64_t number);

/* Members of the JSON object that describes a lock. */
void add_key(hf__json *json, const hf_lock_view *view);           /* "key", "key_text" and "pair" */
void add_number(hf__json *json, const char *key, int64_t number); /* 0 becomes null */
void add_token(hf__json *json, int64_t token); /* "token" and "token_text"; 0 becomes null */
void add_time(hf__json *json, const char *key, int64_t ms); /* -1 becomes null */
void add_name(hf__json *json, const hf_lock_view *view);    /* "name", "registered", "pattern" */

/* How far a long job has come: a bar on a terminal, elsewhere a line every ten seconds. */

struct progress {
    const struct report *report; /* borrowed, like the name */
    const char *name;            /* of the job */
    bool bar;                    /* standard error is a terminal, and --json was not given */
    bool drawn;                  /* a bar is on the screen now */
    int64_t began_ms;
    int64_t shown_ms;     /* when progress_is_due last returned true */
    int64_t shown_amount; /* the amount at that time */
    double rate;          /* the amount per second, as a moving average */
};

/* Starts the clock. */
void progress_begin(struct progress *progress, const struct report *report, const char *name);

/*
 * Is it time to show something? Then it updates the rate. amount is how much is done so far, in the
 * unit of the rate.
 */
bool progress_is_due(struct progress *progress, int64_t amount);

/* Draws done of whole (0: not known) as a bar, and text behind it. */
void progress_draw(struct progress *progress, int64_t done, int64_t whole, const char *text);

/* Prints a note where the bar was. */
void progress_note(struct progress *progress, const char *text);

/* Removes the bar, if one is drawn. */
void progress_clear(struct progress *progress);

#endif
