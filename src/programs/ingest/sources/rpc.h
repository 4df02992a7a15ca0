/*
 * Stellar RPC as a source of ledgers: what the files rpc*.c share. A ledger is an item of
 * getLedgers (its head) with the items of getTransactions, in pages that are bounded by bytes.
 */
#ifndef HF_SOURCE_RPC_H
#define HF_SOURCE_RPC_H

#include "base/buf.h"
#include "base/json_read.h"
#include "programs/ingest/sources/source.h"

enum {
    HF__RPC_PAGE_ITEMS = 200,                    /* the most that a server gives at once */
    HF__RPC_PAGE_BYTES = 8 * 1024 * 1024,        /* what a page should not exceed */
    HF__RPC_ANSWER_BYTES = 64 * 1024 * 1024,     /* what it must not, but for a single item */
    HF__RPC_CURSOR_MAX = 128,                    /* bytes of a cursor of getTransactions */
    HF__RPC_KEPT_BYTES = 2 * HF__RPC_PAGE_BYTES, /* memory that is kept between two pages */
};

/* ---- rpc_endpoint.c: where the server is ----------------------------------------------------- */

/*
 * rpc+http(s)://[USER:PASSWORD@]HOST[:PORT][/PATH][?QUERY][#OPTION=VALUE[&OPTION=VALUE]…]
 *
 * The options stay here: passphrase (of a network that is none of pubnet, testnet and futurenet),
 * poll (how often to look for a new ledger, 2s), timeout (of a server that sends nothing, 30s) and
 * ca (a file with the certificates to trust). Values are percent-decoded.
 */
typedef struct hf__rpc_endpoint {
    char *url; /* without user, password and options */
    char *user;
    char *password;
    char *passphrase; /* what getNetwork must say */
    char *ca_file;    /* NULL: those of the system */
    char *name;       /* the host: a path or a query may hold a provider's key */
    int64_t poll_ms;
    int64_t timeout_ms;
} hf__rpc_endpoint;

HF_MUST_CHECK hf_status hf__rpc_endpoint_parse(const char *spec, const char *network,
                                               hf__rpc_endpoint *endpoint, hf_error *err);
void hf__rpc_endpoint_free(hf__rpc_endpoint *endpoint);

/* The same host, and the same port unless http becomes https; never https to http. */
bool hf__rpc_may_redirect(const char *from, const char *to);

/* ---- rpc_http.c: one POST at a time, which ends early when stop_fd is readable --------------- */

/* What a smaller or another request could cure; the rest is told by the status alone. */
typedef enum hf__rpc_fault {
    HF__RPC_NO_FAULT,
    HF__RPC_TOO_LARGE,      /* the answer exceeds its bound */
    HF__RPC_TOO_SLOW,       /* the server gave up, or we did */
    HF__RPC_OUTSIDE_WINDOW, /* startLedger is none that the server has */
    HF__RPC_LIMIT_REFUSED,  /* the server allows smaller pages only */
    HF__RPC_BAD_PARAMS,     /* a cursor that this server does not know */
} hf__rpc_fault;

typedef struct hf__rpc_http hf__rpc_http;

/* Borrows the endpoint. */
HF_MUST_CHECK hf_status hf__rpc_http_open(const hf__rpc_endpoint *endpoint, int stop_fd,
                                          hf__rpc_http **http, hf_error *err);
void hf__rpc_http_close(hf__rpc_http *http);

/* method is for messages. HF_UNREACHABLE: later; HF_CONFIG: never; HF_BAD_DATA: over answer_max. */
HF_MUST_CHECK hf_status hf__rpc_http_post(hf__rpc_http *http, const char *method,
                                          const hf__buf *request, size_t answer_max,
                                          hf__buf *answer, hf__rpc_fault *fault, hf_error *err);
/* Whether the last request ended without an answer: there may be another server by now. */
bool hf__rpc_http_was_cut(const hf__rpc_http *http);
/* What came over the connection made no sense: the next request takes another one. */
void hf__rpc_http_distrust(hf__rpc_http *http);
/* HF_INTERRUPTED when stop_fd becomes readable before that. */
HF_MUST_CHECK hf_status hf__rpc_pause(int stop_fd, int64_t deadline, hf_error *err);

/* ---- rpc.c: JSON-RPC 2.0 --------------------------------------------------------------------- */

typedef struct hf__rpc_client {
    hf__rpc_http *http;
    const char *name; /* borrowed */
    int64_t last_id;
    /* Of an answer with HF__RPC_OUTSIDE_WINDOW; 0: it did not say. */
    int64_t window_oldest;
    int64_t window_latest;
} hf__rpc_client;

typedef struct hf__rpc_request {
    const char *method;
    const char *params; /* an object; NULL: none */
    size_t answer_max;
} hf__rpc_request;

/* result is a part of answer. */
HF_MUST_CHECK hf_status hf__rpc_call(hf__rpc_client *client, const hf__rpc_request *request,
                                     hf__buf *answer, hf__json_value *result, hf__rpc_fault *fault,
                                     hf_error *err);

/* Sorts the error object of an answer. */
HF_MUST_CHECK hf_status hf__rpc_classify(hf__rpc_client *client, const char *method,
                                         const hf__json_value *error, hf__rpc_fault *fault,
                                         hf_error *err);

/* Members of an object by name, in one pass; those that are not there have a NULL text. */
void hf__rpc_pick(const hf__json_value *object, const char *const *names, size_t count,
                  hf__json_value *values);

/* ---- rpc_stream.c: pages of getLedgers ------------------------------------------------------- */

/* How many items to ask for, learnt from the bytes of the answers. */
typedef struct hf__rpc_page {
    int limit;
} hf__rpc_page;

void hf__rpc_page_shrink(hf__rpc_page *page);
void hf__rpc_page_learn(hf__rpc_page *page, int asked, size_t bytes);

/* A ledger without its transactions. */
typedef struct hf__rpc_head {
    int64_t sequence;
    int64_t closed_at_us;
    int64_t transaction_count; /* -1: the answer does not say */
    char hash[HF__HASH_MAX + 1];
    char previous_hash[HF__HASH_MAX + 1]; /* "": the answer does not say */
} hf__rpc_head;

/* HF_CONFIG: the server speaks XDR only. HF_BAD_DATA: anything else that is wrong with the item. */
HF_MUST_CHECK hf_status hf__rpc_read_head(const hf__json_value *item, hf__rpc_head *head,
                                          hf_error *err);

/* ---- rpc_ledger.c: one ledger, made of its head and of items of getTransactions -------------- */

/* Slices of the answer. */
typedef struct hf__rpc_item {
    int64_t ledger;
    int32_t order;
    hf__slice hash;
    hf__slice status;
    bool has_fee;
    int64_t fee;
    hf__slice body;
    /* Set where a server of v21.5 to v25.0.1 swapped them: the names within body. */
    hf__slice envelope_name;
    hf__slice meta_name;
} hf__rpc_item;

HF_MUST_CHECK hf_status hf__rpc_read_item(const hf__json_value *value, hf__rpc_item *item,
                                          hf_error *err);

/* Places in bytes, which moves while it grows. */
typedef struct hf__rpc_entry {
    size_t body, hash, status;
    size_t body_size, hash_size, status_size;
    bool has_fee;
    int64_t fee;
} hf__rpc_entry;

typedef struct hf__rpc_draft {
    hf__buf bytes;
    hf__rpc_entry *entries;
    size_t count;
    size_t capacity;
} hf__rpc_draft;

HF_MUST_CHECK hf_status hf__rpc_draft_add(hf__rpc_draft *draft, const hf__rpc_item *item,
                                          hf_error *err);
/* Empties the draft. */
HF_MUST_CHECK hf_status hf__rpc_draft_finish(hf__rpc_draft *draft, const hf__rpc_head *head,
                                             int64_t tip, hf__ledger **ledger, hf_error *err);
void hf__rpc_draft_clear(hf__rpc_draft *draft);

/* ---- rpc.c: the source; rpc_stream.c fills it ------------------------------------------------ */

/* Items of getTransactions that are here and not used yet. */
typedef struct hf__rpc_stream {
    hf__buf answer;
    hf__json_walk walk;
    hf__json_value item;                 /* the next one, unless its text is NULL */
    char cursor[HF__RPC_CURSOR_MAX + 1]; /* behind the page, as it stands in JSON; "": none */
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
    bool has_warned; /* that the server is far behind */
    int64_t next;    /* 0: the first that the server has */
    hf__rpc_page ledgers;
    hf__rpc_page transactions;
    hf__rpc_head heads[HF__RPC_PAGE_ITEMS]; /* from next on */
    size_t head_count;
    size_t head_at;
    hf__rpc_stream stream;
    hf__rpc_draft draft; /* of heads[head_at] */
} hf__rpc;

/* Fills heads from next on. HF_OK without any: the server that answered has no such ledger yet. */
HF_MUST_CHECK hf_status hf__rpc_fetch_heads(hf__rpc *rpc, hf__bad_ledger *bad, hf_error *err);
/* Makes the ledger of heads[head_at]. What is here already survives HF_UNREACHABLE. */
HF_MUST_CHECK hf_status hf__rpc_collect(hf__rpc *rpc, hf__ledger **ledger, hf__bad_ledger *bad,
                                        hf_error *err);
void hf__rpc_stream_clear(hf__rpc_stream *stream);

/* Keeps what was wrong, at most a megabyte of it; bad may be NULL. */
void hf__rpc_report_bad(hf__bad_ledger *bad, const char *method, int64_t sequence, hf__slice bytes);
HF_MUST_CHECK hf_status hf__rpc_too_old(hf__rpc *rpc, int64_t sequence, int64_t oldest,
                                        hf_error *err);

#endif
