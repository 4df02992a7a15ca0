/*
 * The ledger: every place where the code acquires or releases a lock, and what became of it. What
 * lint could not tell is in it too, so that "no findings" never means "I did not look".
 */
#ifndef HF_LINT_SITES_H
#define HF_LINT_SITES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"

typedef enum hf__site_outcome {
    HF__SITE_REGISTERED,   /* an entry of the registry has it */
    HF__SITE_UNREGISTERED, /* its key is known, and no entry has it */
    HF__SITE_READ,         /* its key is known, and there is no registry to compare with */
    HF__SITE_UNRESOLVED,   /* lint cannot tell the key */
    HF__SITE_PASSED_ON,    /* it locks what its callers pass: they are sites of their own */
    HF__SITE_IGNORED,      /* a comment asks not to report it */
    HF__SITE_RELEASE,      /* an unlock; not counted among the sites */
    HF__SITE_OUTCOMES,
} hf__site_outcome;

const char *hf__site_outcome_name(hf__site_outcome outcome);

/* Texts are never NULL; what is not known is "". */
typedef struct hf__site {
    const char *file;
    unsigned line;
    unsigned column;
    hf__site_outcome outcome;
    const char *call; /* "pg_try_advisory_lock", or the wrapper's name */
    const char *mode;
    const char *lifetime;
    const char *key;        /* "42", "(7, 1)", "'booking:…'" */
    const char *derivation; /* of a label */
    const char *entry;      /* its name in the registry */
    const char *why;        /* it is not resolved */
} hf__site;

enum { HF__SITES_MAX = 200000 }; /* more are counted, not kept */

/* Zero-initialise it. */
typedef struct hf__sites {
    hf__site *items; /* kept only when keeps is set; texts are owned */
    size_t count;
    size_t capacity;
    size_t counts[HF__SITE_OUTCOMES];
    bool keeps;
    bool broken; /* no memory */
} hf__sites;

/* Counts a site and, when the ledger keeps them, copies it. */
void hf__sites_add(hf__sites *ledger, const hf__site *site);
void hf__sites_free(hf__sites *ledger);

/* "5 sites: 2 registered, 1 unregistered, 2 unresolved". out gets it whole. */
enum { HF__SITES_SHOWN = 256 };
const char *hf__sites_show(const hf__sites *ledger, char out[HF__SITES_SHOWN]);

/* Adds the object "ledger", and the array "uses" with all that was kept. */
void hf__sites_put_counts(hf__json *json, const hf__sites *ledger);
void hf__sites_put_uses(hf__json *json, const hf__sites *ledger);

#endif
