/* Where ledgers come from, and what a ledger is. */
#ifndef HF_INGEST_SOURCES_SOURCE_H
#define HF_INGEST_SOURCES_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum {
    HF__LEDGER_MAX = INT32_MAX,    /* so that a TOID stays positive */
    HF__ORDER_MAX = (1 << 20) - 1, /* of a transaction in its ledger: a TOID has 20 bits for it */
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

/* One ledger. Its texts are slices of the bytes that arrived, so that nothing is rebuilt. */
typedef struct hf__ledger {
    int64_t sequence;
    hf__slice hash;
    hf__slice previous_hash;       /* text NULL: the source does not say */
    int64_t closed_at_us;          /* Unix time, microseconds */
    hf__transaction *transactions; /* ascending by order, without repeats; owned */
    size_t transaction_count;
    size_t weight; /* bytes of memory that it uses */
    char *bytes;   /* what the slices point into; owned */
    int64_t tip;   /* the newest ledger that the source is known to have; 0: it cannot tell */
} hf__ledger;

/* NULL is safe. */
void hf__ledger_free(hf__ledger *ledger);

/* HF_BAD_DATA: two of its transactions have the same hash. */
HF_MUST_CHECK hf_status hf__ledger_check_hashes(const hf__ledger *ledger, hf_error *err);

/* The TOID, Stellar's id of a transaction: (ledger << 32) | (order << 12). */
static inline int64_t hf__toid(int64_t sequence, int32_t order)
{
    return (int64_t)((uint64_t)sequence << 32 | (uint64_t)(uint32_t)order << 12);
}

/*
 * A source of ledgers: NDJSON files, a command's output, Stellar RPC, or a generator. One thread at
 * a time uses a source; several sources may be open on the same file or server.
 */
typedef struct hf__source hf__source;

typedef struct hf__source_options {
    const char *spec;    /* file.ndjson[.gz|.zst], a folder of them, -, exec:COMMAND,
                          * rpc+http(s)://…, generate:N[,TX] */
    const char *network; /* such as "testnet"; RPC is checked to be of this network */
    bool follow;         /* at the end, wait for more */
    int stop_fd;         /* once it is readable, calls return HF_INTERRUPTED soon; -1: none */
    bool is_known;       /* RPC: it has answered before, so that no HTTP status ends the run: a
                          * gateway may say 401 or 404 while what is behind it is away */
    bool gives_back;     /* RPC: a server that falls behind gives its newest ledger once more, so
                          * that the caller can tell a server that lags from another chain */
    size_t line_max;     /* bytes of one ledger; 0: 256 MB */
    hf_log_fn *log;      /* notes such as "the command was restarted"; may be NULL */
    void *log_arg;
} hf__source_options;

/* A ledger that cannot be used. Zero-initialise it; free it with hf__bad_ledger_free. */
typedef struct hf__bad_ledger {
    int64_t sequence; /* 0: not even that could be read */
    char where[512];  /* "file.ndjson:17", "exec: line 17", "getLedgers from 17" */
    char *bytes;      /* what arrived, at most the first megabyte; owned */
    size_t size;
} hf__bad_ledger;

typedef struct hf__source_ops {
    /* Finds the first and the last ledger that the source has now; 0: it cannot tell. */
    hf_status (*extent)(hf__source *source, int64_t *oldest, int64_t *latest, hf_error *err);

    /*
     * Makes ledger `from`, or the first one after it, the next one. It may go back, except where
     * the source cannot be read twice, such as standard input: that is HF_CONFIG.
     */
    hf_status (*seek)(hf__source *source, int64_t from, hf_error *err);

    /*
     * Gives the next ledger, which the caller frees; *ledger is NULL at the end of a finite source.
     * At the tip of one that goes on, it waits. HF_BAD_DATA: err says what is wrong and where, bad
     * (may be NULL) gets the bytes, and the next call continues after it. HF_UNREACHABLE: calling
     * again later, after a pause, may succeed, and continues here. HF_CONFIG: trying again is of no
     * use (wrong network, ledger too old, no such file). HF_INTERRUPTED: stop_fd is readable.
     */
    hf_status (*next)(hf__source *source, hf__ledger **ledger, hf__bad_ledger *bad, hf_error *err);

    void (*close)(hf__source *source);
} hf__source_ops;

/* The first member of every source. */
struct hf__source {
    const hf__source_ops *ops;
    char *name;         /* for messages, without a password */
    int64_t tip;        /* the newest ledger that it is known to have; 0: it cannot tell */
    int64_t not_before; /* monotonic clock: the server asked to be left alone until then; or 0 */
};

/*
 * Opens the source that spec names; its prefix tells the kind. Reads no ledgers. The strings of
 * options need not outlive the call. The caller closes it with hf__source_close. HF_CONFIG or
 * HF_INVALID: spec is wrong, or names nothing that can be read.
 */
HF_MUST_CHECK hf_status hf__source_open(const hf__source_options *options, hf__source **source,
                                        hf_error *err);
void hf__source_close(hf__source *source); /* NULL is safe */

/* Frees the bytes, and empties it. NULL is safe. */
void hf__bad_ledger_free(hf__bad_ledger *bad);

/* hf__source_open for each kind; spec still has its prefix. */
HF_MUST_CHECK hf_status hf__source_files(const hf__source_options *options, hf__source **source,
                                         hf_error *err);
HF_MUST_CHECK hf_status hf__source_exec(const hf__source_options *options, hf__source **source,
                                        hf_error *err);
HF_MUST_CHECK hf_status hf__source_rpc(const hf__source_options *options, hf__source **source,
                                       hf_error *err);
HF_MUST_CHECK hf_status hf__source_generate(const hf__source_options *options, hf__source **source,
                                            hf_error *err);

#endif
