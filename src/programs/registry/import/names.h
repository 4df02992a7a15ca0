/* Names for locks that have none, each of them once. */
#ifndef HF_AUDIT_IMPORT_NAMES_H
#define HF_AUDIT_IMPORT_NAMES_H

#include "programs/registry/import/lock.h"

/* Gives every lock its name. False without memory. */
bool hf__name_all(hf__found *locks, size_t count);

/* "IdempotencyService" → "idempotency-service", at most `most` bytes, cut at a word. */
void hf__slug(hf__buf *out, const char *text, size_t most);

#endif
