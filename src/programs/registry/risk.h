/* How likely two labels of a registry get the same key, by derivation and by space of keys. */
#ifndef HF_PROGRAMS_REGISTRY_RISK_H
#define HF_PROGRAMS_REGISTRY_RISK_H

#include "programs/registry/collisions.h"

typedef enum hf__risk_kind {
    HF__RISK_DERIVATION, /* the labels of one derivation, among themselves and with fixed ids */
    HF__RISK_BIGINT,     /* every key of one number */
    HF__RISK_PAIR,       /* every key of two numbers of which neither is given */
    HF__RISK_CLASS,      /* every key of two numbers that begins with one class */
} hf__risk_kind;

struct hf__risk_row {
    hf__risk_kind kind;
    char name[32];  /* "fnv1a32-js", "all bigint", "class 7" */
    unsigned bits;  /* 32 or 64 */
    uint64_t fixed; /* keys that are given, not computed: fixed ids in reach, and minted ones */
    uint64_t labels;
    size_t unknown;     /* patterns that do not say how many labels; the figures are without them */
    uint64_t shared;    /* keys of which it is known that two labels or ids have them */
    double probability; /* 1 when keys are shared; else that of labels that are not enumerated */
    uint64_t count_1pc; /* labels at which it passes 1 %; 0: never */
    uint64_t count_50pc;
    bool too_likely; /* above the limit */
};

/* One entry that should be derived in another way. */
struct hf__risk_advice {
    const hf__lock_entry *entry;
    uint64_t labels;
    hf_derivation instead; /* HF_SHA256, or HF_MINTED where 64 bits are too few as well */
    bool leaves_class;     /* for a key of one number */
};

struct hf__risk {
    double limit;
    struct hf__risk_row *rows; /* derivations, then spaces */
    size_t row_count;
    struct hf__risk_advice *advice; /* the fewest that bring each space below the limit */
    size_t advice_count;
    const hf__lock_entry **unknown; /* not enumerated and without `expected`, as in the file */
    size_t unknown_count;
    struct hf__own_labels own;
    struct hf__collisions shared; /* among these, and with samples of other patterns */
};

/*
 * Fills risk, which the caller frees and which points into the registry. limit is the probability
 * above which it gives advice.
 */
HF_MUST_CHECK hf_status hf__risk_assess(const hf_registry *registry, double limit,
                                        struct hf__risk *risk, hf_error *err);
void hf__risk_free(struct hf__risk *risk);

enum { HF__WORDS_MAX = 96 };

/*
 * "about 1 in 8 600 (0.0116 %)", "practically never (1 in 3.7e13)", "almost certain (99.2 %)".
 * What is not 0 is never shown as 0 %, nor as 100 % what is below 1. The same in every locale.
 * Returns out.
 */
const char *hf__risk_words(char *out, size_t out_size, double p);

/*
 * The same for a row: "unknown" when no pattern says how many labels it has, and "… or more" when
 * some do not. Returns out.
 */
const char *hf__risk_row_words(char *out, size_t out_size, const struct hf__risk_row *row);

/* "5 056 937 541". Returns out. */
const char *hf__risk_count(char *out, size_t out_size, uint64_t count);

#endif
