#ifndef HF_CLI_TABLE_H
#define HF_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/report.h"
#include "holdfast/holdfast.h"

/* Tables for people, on libsmartcols. */

struct column {
    const char *title; /* NULL ends a table */
    bool to_the_right;
    bool may_be_cut; /* on a terminal that is too narrow */
    unsigned rank;   /* > 0: left out on a terminal that is far too narrow, the greatest first, and
                      * before all others what has no text but its title */
};

struct table; /* after a failed allocation it ignores further calls, and printing says so */

struct table *table_new(const struct column *columns);
void table_add_row(struct table *table);

/* Of the last row; the text is copied, and control characters are shown escaped. */
void table_set(struct table *table, size_t column, const char *text);

/* To stdout; an empty table prints nothing. False when memory or the stream failed. */
bool table_print(struct table *table);
void table_free(struct table *table);

/* Loads the character set that widths depend on; call it before the first table. */
void prepare_for_tables(void);

/* Can stdout show what is beyond ASCII? */
bool output_is_utf8(void);

/* Writes the document and a newline, then frees it. False when memory or the stream failed. */
bool print_document(hf__json *json, FILE *out);

/* What the commands that list locks show alike. */

enum { KEY_SHOWN_MAX = 32 };

/* "42", or "(1, -2)" for two int4. Returns out. */
const char *show_key(char out[KEY_SHOWN_MAX], const hf_lock_view *view);

/* What the registry calls it: "(unregistered)" is seen at once among names. */
const char *shown_name(const hf_lock_view *view);

/* "session", "transaction", or "" where nobody can tell. */
const char *lifetime_of(const hf_lock_view *view);
const char *lifetime_name(hf_lifetime lifetime);

/* Leaves the cell empty for 0. */
void set_number(struct table *table, size_t column, int64_t number);

void add_key(hf__json *json, const hf_lock_view *view);           /* "key" and "pair" */
void add_number(hf__json *json, const char *key, int64_t number); /* 0 becomes null */
void add_time(hf__json *json, const char *key, int64_t ms);       /* -1 becomes null */
void add_name(hf__json *json, const hf_lock_view *view); /* "name", "registered", "pattern" */

/* How far a long job has come: a bar on a terminal, a line now and then elsewhere. */

struct progress {
    const struct report *report;
    const char *name; /* of what is worked on */
    bool bar;         /* standard error is a terminal */
    bool drawn;
    int64_t began_ms;
    int64_t shown_ms;
    int64_t shown_amount;
    double rate; /* of the amount a second, of late */
};

void progress_begin(struct progress *progress, const struct report *report, const char *name);

/* Whether it is time to show something; the rate is known then. */
bool progress_is_due(struct progress *progress, int64_t amount);

/* done of whole (0: nobody knows) as a bar, and what stands behind it. */
void progress_draw(struct progress *progress, int64_t done, int64_t whole, const char *text);

void progress_note(struct progress *progress, const char *text); /* in place of the bar */
void progress_clear(struct progress *progress);

#endif
