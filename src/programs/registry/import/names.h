#ifndef HF_AUDIT_IMPORT_NAMES_H
#define HF_AUDIT_IMPORT_NAMES_H

#include "base/buf.h"
#include "programs/registry/import/lock.h"

/* Names for locks that have none, each of them once. */

/* Gives every lock its name. False without memory. */
bool hf__name_all(hf__import_lock *locks, size_t count);

/* "IdempotencyService" → "idempotency-service", at most `most` bytes, cut at a word. */
void hf__slug(hf__buf *out, const char *text, size_t most);

/* Strings and comments as YAML takes them, whatever is in them. */

/* Plain where nobody can misread it, also inside of [] and {}; otherwise in double quotes. */
void hf__yaml_text(hf__buf *out, const char *text, size_t size);

/* The same text on the one line of a comment: control characters are blanks. */
void hf__yaml_comment_text(hf__buf *out, const char *text, size_t size);

#endif
