/* What the commands that list locks show alike. */
#ifndef HF_CLI_LOCK_ROW_H
#define HF_CLI_LOCK_ROW_H

#include "base/json.h"
#include "cli/print.h"
#include "holdfast/holdfast.h"

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

#endif
