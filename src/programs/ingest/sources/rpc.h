/*
 * Stellar RPC as a source of ledgers: what the files rpc*.c share. A ledger is made of one item of
 * getLedgers (its head) and of the items of getTransactions. Both come in pages, whose size follows
 * the bytes of the answers. One thread at a time uses a source and its parts.
 */
#ifndef HF_INGEST_SOURCES_RPC_H
#define HF_INGEST_SOURCES_RPC_H

#include "base/buf.h"
#include "base/json_read.h"
#include "programs/ingest/sources/source.h"

enum {
    HF__RPC_PAGE_ITEMS = 200,                /* the most that a server gives at once */
    HF__RPC_PAGE_BYTES = 8 * 1024 * 1024,    /* the size that pages aim for */
    HF__RPC_ANSWER_BYTES = 64 * 1024 * 1024, /* larger answers are refused, unless of one item */
    HF__RPC_CURSOR_MAX = 128,                /* bytes of a cursor of getTransactions */
    HF__RPC_KEPT_BYTES = 2 * HF__RPC_PAGE_BYTES, /* a larger buffer is freed between pages */
};

/* ---- rpc_endpoint.c: where the server is ----------------------------------------------------- */

/*
 * rpc+http(s)://[USER:PASSWORD@]HOST[:PORT][/PATH][?QUERY][#OPTION=VALUE[&OPTION=VALUE]…]
 *
 * The options are not sent to the server: passphrase (of a network other than pubnet, testnet and
 * futurenet), poll (how often to look for a new ledger, default 2s), timeout (of a server that
 * sends nothing, default 30s) and ca (a file with the certificates to trust). Values are
 * percent-decoded.
 */
typedef struct hf__rpc_endpoint {
    char *url; /* without user, password and options */
    char *user;
    char *password;
    char *passphrase; /* what getNetwork must say */
    char *ca_file;    /* NULL: the system's certificates */
    char *name;       /* for messages: only the host, since path and query may hold a secret key */
    int64_t poll_ms;
    int64_t timeout_ms;
} hf__rpc_endpoint;

/*
 * Parses spec. HF_CONFIG: it is not such a URL, or the passphrase is unknown or not the network's.
 * After a failure the endpoint is empty.
 */
HF_MUST_CHECK hf_status hf__rpc_endpoint_parse(const char *spec, const char *network,
                                               hf__rpc_endpoint *endpoint, hf_error *err);
/* Frees what the endpoint holds, and empties it. */
void hf__rpc_endpoint_free(hf__rpc_endpoint *endpoint);

/*
 * May a redirect be followed? Only to the same host, and to the same scheme and port unless http
 * becomes https.
 */
bool hf__rpc_may_redirect(const char *from, const char *to);

/* ---- rpc_http.c: one POST at a time, which ends early when stop_fd is readable --------------- */

/* Failures that another request, often a smaller one, can avoid. Others have only a status. */
typedef enum hf__rpc_fault {
    HF__RPC_NO_FAULT,
    HF__RPC_TOO_LARGE,      /* the answer is larger than answer_max */
    HF__RPC_TOO_SLOW,       /* the server gave up, or we did */
    HF__RPC_OUTSIDE_WINDOW, /* the server does not have startLedger */
    HF__RPC_LIMIT_REFUSED,  /* the server allows only smaller pages */
    HF__RPC_BAD_PARAMS,     /* such as a cursor that this server does not know */
} hf__rpc_fault;

typedef struct hf__rpc_http hf__rpc_http;

/* The endpoint must outlive *http, which the caller closes. Fails only without memory. */
HF_MUST_CHECK hf_status hf__rpc_http_open(const hf__rpc_endpoint *endpoint, bool is_known,
                                          int stop_fd, hf__rpc_http **http, hf_error *err);
void hf__rpc_http_close(hf__rpc_http *http); /* NULL is safe */

/*
 * Posts request and fills answer, which stays the caller's. method is for messages. Waits first if
 * the server asked for a pause. HF_UNREACHABLE: try again later. HF_CONFIG: trying again is of no
 * use. HF_BAD_DATA: the answer is larger than answer_max. HF_INTERRUPTED: stop_fd is readable.
 */
HF_MUST_CHECK hf_status hf__rpc_http_post(hf__rpc_http *http, const char *method,
                                          const hf__buf *request, size_t answer_max,
                                          hf__buf *answer, hf__rpc_fault *fault, hf_error *err);
/* Did the last request end without an answer? Then the next may reach another server. */
bool hf__rpc_http_was_cut(const hf__rpc_http *http);
/* When the server may be asked again, as it has said; 0: it has not. Requests wait until then. */
int64_t hf__rpc_http_not_before(const hf__rpc_http *http);
/* Makes the next request use a new connection, because an answer made no sense. */
void hf__rpc_http_distrust(hf__rpc_http *http);
/* Waits until deadline (of hf__deadline). HF_INTERRUPTED: stop_fd became readable before. */
HF_MUST_CHECK hf_status hf__rpc_pause(int stop_fd, int64_t deadline, hf_error *err);

/* ---- rpc.c: JSON-RPC 2.0 --------------------------------------------------------------------- */

typedef struct hf__rpc_client {
    hf__rpc_http *http;
    const char *name; /* for messages; borrowed */
    int64_t last_id;  /* of a request */
    /* What the server has, after HF__RPC_OUTSIDE_WINDOW; 0: it did not say. */
    int64_t window_oldest;
    int64_t window_latest;
} hf__rpc_client;

typedef struct hf__rpc_request {
    const char *method;
    const char *params; /* a JSON object; NULL: none */
    size_t answer_max;
} hf__rpc_request;

/*
 * Sends the request and reads its result, which points into answer. Fails as hf__rpc_http_post and
 * hf__rpc_classify; an answer that makes no sense is HF_UNREACHABLE.
 */
HF_MUST_CHECK hf_status hf__rpc_call(hf__rpc_client *client, const hf__rpc_request *request,
                                     hf__buf *answer, hf__json_value *result, hf__rpc_fault *fault,
                                     hf_error *err);

/*
 * Reads the error object of an answer. HF_CONFIG: the server refuses the request, and *fault may
 * say why. HF_UNREACHABLE: try again later.
 */
HF_MUST_CHECK hf_status hf__rpc_classify(hf__rpc_client *client, const char *method,
                                         const hf__json_value *error, hf__rpc_fault *fault,
                                         hf_error *err);

/* Finds members of an object by name, in one pass. The text of a member that is missing is NULL. */
void hf__rpc_pick(const hf__json_value *object, const char *const *names, size_t count,
                  hf__json_value *values);

/* ---- rpc_stream.c: pages of getLedgers ------------------------------------------------------- */

/* How many items to ask for, which follows the bytes of the answers. */
typedef struct hf__rpc_page {
    int limit;
} hf__rpc_page;

/* Halves the limit, down to 1. */
void hf__rpc_page_shrink(hf__rpc_page *page);
/* Adjusts the limit after an answer of so many bytes to a request for `asked` items. */
void hf__rpc_page_learn(hf__rpc_page *page, int asked, size_t bytes);

/* A ledger without its transactions. */
typedef struct hf__rpc_head {
    int64_t sequence;
    int64_t closed_at_us;
    int64_t transaction_count; /* -1: the answer does not say */
    bool has_hashes;           /* the answer says which they are: */
    uint64_t hashes;           /* the sum of fnv1a64 of their hashes, in any order */
    char hash[HF__HASH_MAX + 1];
    char previous_hash[HF__HASH_MAX + 1]; /* "": the answer does not say */
} hf__rpc_head;

/*
 * Reads an item of getLedgers. HF_CONFIG: the server gives XDR, not JSON. HF_BAD_DATA: anything
 * else is wrong with the item.
 */
HF_MUST_CHECK hf_status hf__rpc_read_head(const hf__json_value *item, hf__rpc_head *head,
                                          hf_error *err);

/* ---- rpc_ledger.c: one ledger, made of its head and of items of getTransactions -------------- */

/* An item of getTransactions, as slices of the answer. */
typedef struct hf__rpc_item {
    int64_t ledger;
    int32_t order;
    hf__slice hash;
    hf__slice status;
    bool has_fee;
    int64_t fee;
    hf__slice body;
    /* The two names in body, if the server (v21.5 to v25.0.1) has swapped their values. */
    hf__slice envelope_name;
    hf__slice meta_name;
} hf__rpc_item;

/* Reads an item. Fails as hf__rpc_read_head. */
HF_MUST_CHECK hf_status hf__rpc_read_item(const hf__json_value *value, hf__rpc_item *item,
                                          hf_error *err);

/* A transaction of a draft: offsets into its bytes, since those move while they grow. */
typedef struct hf__rpc_entry {
    size_t body, hash, status;
    size_t body_size, hash_size, status_size;
    bool has_fee;
    int64_t fee;
} hf__rpc_entry;

/* A ledger whose transactions are still being collected. Zero-initialise it. */
typedef struct hf__rpc_draft {
    hf__buf bytes;
    hf__rpc_entry *entries;
    size_t count;
    size_t capacity;
} hf__rpc_draft;

/* Copies the item, with swapped names put right. Fails only without memory. */
HF_MUST_CHECK hf_status hf__rpc_draft_add(hf__rpc_draft *draft, const hf__rpc_item *item,
                                          hf_error *err);
/* 64 bits of a transaction's hash, for hf__rpc_head. */
uint64_t hf__rpc_digest(hf__slice hash);
/* Are its transactions those that the head speaks of? True also where the head does not say. */
bool hf__rpc_draft_fits(const hf__rpc_draft *draft, const hf__rpc_head *head);
/* Makes the ledger, which is the caller's, and empties the draft. Fails only without memory. */
HF_MUST_CHECK hf_status hf__rpc_draft_finish(hf__rpc_draft *draft, const hf__rpc_head *head,
                                             int64_t tip, hf__ledger **ledger, hf_error *err);
/* Frees what the draft holds, and empties it. */
void hf__rpc_draft_clear(hf__rpc_draft *draft);

/* ---- rpc.c: the source; rpc_stream.c fills it ------------------------------------------------ */

/* A page of getTransactions, of which some items are not used yet. */
typedef struct hf__rpc_stream {
    hf__buf answer;
    hf__json_walk walk;
    hf__json_value item;                 /* the next one; text NULL: the page is used up */
    char cursor[HF__RPC_CURSOR_MAX + 1]; /* to the next page, with JSON's escapes; "": none */
} hf__rpc_stream;

typedef struct hf__rpc {
    hf__source base;
    hf__rpc_endpoint endpoint;
    hf__rpc_client client;
    int stop_fd;
    size_t ledger_max; /* bytes */
    hf_log_fn *log;
    void *log_arg;

    bool network_is_checked;
    bool gives_back;
    bool has_gone_back; /* since the server fell behind: to its newest ledger, with a note */
    int64_t next;       /* the next ledger to give; 0: the first that the server has */
    int64_t return_to;  /* what is next after it went back; 0: it did not */
    hf__rpc_page ledgers;
    hf__rpc_page transactions;
    hf__rpc_head heads[HF__RPC_PAGE_ITEMS]; /* from next on */
    size_t head_count;
    size_t head_at;
    hf__rpc_stream stream;
    hf__rpc_draft draft; /* of heads[head_at] */
} hf__rpc;

/*
 * Fills heads from next on. If the server that answered does not have ledger next yet, it pauses,
 * and returns HF_OK without any heads. Fails as a source's next.
 */
HF_MUST_CHECK hf_status hf__rpc_fetch_heads(hf__rpc *rpc, hf__bad_ledger *bad, hf_error *err);
/*
 * Makes the ledger of heads[head_at]. Fails as a source's next; after HF_UNREACHABLE, the next call
 * continues with the transactions that have come, unless they do not fit together.
 */
HF_MUST_CHECK hf_status hf__rpc_collect(hf__rpc *rpc, hf__ledger **ledger, hf__bad_ledger *bad,
                                        hf_error *err);
/* Frees what the stream holds, and empties it. */
void hf__rpc_stream_clear(hf__rpc_stream *stream);

/* Fills bad (may be NULL) with a copy of bytes, at most a megabyte of them. */
void hf__rpc_report_bad(hf__bad_ledger *bad, const char *method, int64_t sequence, hf__slice bytes);
/* Returns HF_CONFIG: the server does not have the ledger any more. */
HF_MUST_CHECK hf_status hf__rpc_too_old(hf__rpc *rpc, int64_t sequence, int64_t oldest,
                                        hf_error *err);

#endif
