#ifndef HF_SOURCE_SOURCE_H
#define HF_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* One ledger as a source gives it. Text is sliced from the bytes that arrived, never rebuilt. */

enum {
    HF__LEDGER_MAX = INT32_MAX,    /* so that a TOID stays positive */
    HF__ORDER_MAX = (1 << 20) - 1, /* of a transaction in its ledger */
    HF__HASH_MAX = 128,            /* bytes of a hash as text */
};

typedef struct hf__transaction {
    int32_t order; /* from 1 */
    hf__slice hash;
    hf__slice status;
    bool has_fee;
    int64_t fee;
    hf__slice body; /* the whole JSON object as it came */
} hf__transaction;

typedef struct hf__ledger {
    int64_t sequence;
    hf__slice hash;
    hf__slice previous_hash;       /* NULL: the source does not say */
    int64_t closed_at_us;          /* Unix time, microseconds */
    hf__transaction *transactions; /* ascending by order, without repeats */
    size_t transaction_count;
    size_t weight; /* bytes that it keeps in memory */
    char *bytes;   /* what the slices point into; owned */
    int64_t tip;   /* the last ledger that the source is known to have; 0: it cannot tell */
} hf__ledger;

void hf__ledger_free(hf__ledger *ledger);

/* HF_BAD_DATA when two of its transactions have one hash. */
HF_MUST_CHECK hf_status hf__ledger_check_hashes(const hf__ledger *ledger, hf_error *err);

/* (ledger << 32) | (order << 12) */
static inline int64_t hf__toid(int64_t sequence, int32_t order)
{
    return (int64_t)((uint64_t)sequence << 32 | (uint64_t)(uint32_t)order << 12);
}

/*
 * Where ledgers come from: files of NDJSON, a command's output, Stellar RPC, or a generator. A
 * source is used by one thread; several may be open on the same thing.
 */

typedef struct hf__source hf__source;

typedef struct hf__source_options {
    const char *spec; /* file.ndjson[.gz|.zst], a folder of them, -, exec:COMMAND, rpc+http(s)://…,
                          * generate:N[,TX] */
    const char *network; /* "testnet": what the source must be of, where it can tell */
    bool follow;         /* wait for more at the end of a file or a folder */
    int stop_fd;         /* readable: every call returns HF_INTERRUPTED soon; -1: none */
    size_t line_max;     /* bytes of one ledger; 0: 256 MB */
    hf_log_fn *log;      /* notes such as "the command was restarted"; may be NULL */
    void *log_arg;
} hf__source_options;

/* What next gave when it gave no ledger, or a bad one. */
typedef struct hf__bad_ledger {
    int64_t sequence; /* 0: not even that could be read */
    char where[512];  /* "file.ndjson:17", "exec: line 17", "getLedgers from 17" */
    char *bytes;      /* what arrived, at most the first megabyte; owned */
    size_t size;
} hf__bad_ledger;

typedef struct hf__source_ops {
    /* The first and last ledger that can be had now; 0: it cannot tell. */
    hf_status (*extent)(hf__source *source, int64_t *oldest, int64_t *latest, hf_error *err);

    /* The next ledger shall be `from` (or the first at or behind it). Backwards too where the thing
     * can be read again; HF_CONFIG where it cannot (standard input). */
    hf_status (*seek)(hf__source *source, int64_t from, hf_error *err);

    /*
     * HF_OK with *ledger, or with *ledger NULL at the end of a finite source. Waits at the tip of
     * one that goes on. HF_BAD_DATA: err says what and where, bad (may be NULL) has the bytes, and
     * the next call goes on behind it. HF_UNREACHABLE: worth another try, later, from here on
     * (the caller pauses). HF_CONFIG: no use in trying (wrong network, too old, no such file).
     * HF_INTERRUPTED: stop_fd.
     */
    hf_status (*next)(hf__source *source, hf__ledger **ledger, hf__bad_ledger *bad, hf_error *err);

    void (*close)(hf__source *source);
} hf__source_ops;

/* The common head of every source. */
struct hf__source {
    const hf__source_ops *ops;
    char *name;  /* for messages, without a password */
    int64_t tip; /* the newest ledger that it spoke of, as last heard; 0: it cannot tell */
};

/* Opens by the form of spec; reads nothing but what is needed to tell that it is there. */
HF_MUST_CHECK hf_status hf__source_open(const hf__source_options *options, hf__source **source,
                                        hf_error *err);
void hf__source_close(hf__source *source); /* NULL is safe */
void hf__bad_ledger_free(hf__bad_ledger *bad);

/* Each kind; the rest of spec is behind its prefix. */
HF_MUST_CHECK hf_status hf__source_files(const hf__source_options *options, hf__source **source,
                                         hf_error *err);
HF_MUST_CHECK hf_status hf__source_exec(const hf__source_options *options, hf__source **source,
                                        hf_error *err);
HF_MUST_CHECK hf_status hf__source_rpc(const hf__source_options *options, hf__source **source,
                                       hf_error *err);
HF_MUST_CHECK hf_status hf__source_generate(const hf__source_options *options, hf__source **source,
                                            hf_error *err);

#endif
