/* Which hash the prose around a table speaks of. */
#ifndef HF_AUDIT_IMPORT_HASH_H
#define HF_AUDIT_IMPORT_HASH_H

#include "base/buf.h"
#include "holdfast/holdfast.h"
#include "programs/registry/import/markdown.h"

/* All that was said in one place; zero-initialise it. */
typedef struct hf__mentions {
    unsigned kinds;  /* one bit for each hash */
    unsigned widths; /* of FNV-1a: 32, 64, both or 0 */
    bool utf16;
    const char *foreign; /* a hash that the registry does not have */
    unsigned first_line, last_line;
} hf__mentions;

void hf__mentions_add(hf__mentions *mentions, unsigned line, hf__slice text);

typedef enum hf__hash_verdict {
    HF__HASH_NONE,
    HF__HASH_KNOWN,
    HF__HASH_FOREIGN,
    HF__HASH_UNCLEAR, /* several */
} hf__hash_verdict;

/* from_javascript: the code that hashes is JavaScript. Assumptions go to doubts, a line each. */
hf__hash_verdict hf__mentions_decide(const hf__mentions *mentions, bool from_javascript,
                                     hf_derivation *derivation, hf__buf *doubts);

#endif
