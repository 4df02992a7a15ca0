#ifndef HF_PROGRAMS_REGISTRY_IMPORT_KEY_H
#define HF_PROGRAMS_REGISTRY_IMPORT_KEY_H

#include <stdint.h>

#include "base/buf.h"
#include "holdfast/holdfast.h"
#include "programs/registry/import/markdown.h"

/* Lock ids, label patterns and hashes as people write them down. */

typedef struct hf__id {
    bool is_pair;
    int64_t key;
    int32_t pair[2];
    const char *doubt; /* what was assumed, or NULL */
} hf__id;

typedef enum hf__id_verdict {
    HF__ID_GOOD,
    HF__ID_NONE,         /* no number */
    HF__ID_UNCLEAR,      /* several numbers: a range, a list */
    HF__ID_OUT_OF_RANGE, /* more than PostgreSQL accepts */
} hf__id_verdict;

/* Reads 42424242, 0x2A, 42_424_242, 42,424,242, 42n, -7, (1, 2), "LOCK_ID = 42". */
hf__id_verdict hf__id_parse(const char *text, hf__id *id);

/* A pattern as the registry has it, and what had to be guessed for it. */
typedef struct hf__pattern {
    hf__buf text;        /* with {placeholders} */
    hf__buf expressions; /* YAML for placeholders that may contain ':', such as "rest: \".+\"" */
    hf__buf doubts;      /* lines */
    size_t placeholders;
    hf_derivation derivation; /* if the text says it, as "hashtext('…')" does */
    bool derivation_given;
} hf__pattern;

/*
 * Makes placeholders of ${a.b}, #{a}, {{a}}, {a}, <a>, [a], %s, $1, * and …. Free the pattern in
 * any case. Without memory a buffer of it is marked broken.
 */
void hf__pattern_read(hf__pattern *pattern, const char *text, size_t size);
void hf__pattern_free(hf__pattern *pattern);

/* Which hashes a piece of text speaks of. Zero-initialise it. */
typedef struct hf__mentions {
    unsigned kinds;  /* one bit for each hash */
    unsigned widths; /* of FNV-1a: 32, 64, both or 0 */
    bool utf16;
    const char *foreign; /* a hash that the registry does not have */
    unsigned first_line, last_line;
} hf__mentions;

/* Adds what a line of text speaks of. */
void hf__mentions_add(hf__mentions *mentions, unsigned line, hf__slice text);

typedef enum hf__hash_verdict {
    HF__HASH_NONE,
    HF__HASH_KNOWN,
    HF__HASH_FOREIGN,
    HF__HASH_UNCLEAR, /* several */
} hf__hash_verdict;

/*
 * Sets *derivation when the verdict is HF__HASH_KNOWN. from_javascript: the code that hashes is
 * JavaScript. What is assumed goes to doubts, one line each.
 */
hf__hash_verdict hf__mentions_decide(const hf__mentions *mentions, bool from_javascript,
                                     hf_derivation *derivation, hf__buf *doubts);

#endif
