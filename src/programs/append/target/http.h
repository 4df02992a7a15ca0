/*
 * A ClickHouse server over HTTP: what http.c, http_insert.c and url.c share. A second request goes
 * beside the one with the statement, to ask whether it is still running, or to kill it.
 */
#ifndef HF_APPEND_HTTP_H
#define HF_APPEND_HTTP_H

#include "base/http.h"
#include "programs/append/target/target.h"

/* ---- url.c ----------------------------------------------------------------------------------- */

/* clickhouse+http(s)://user[:password]@host[:port][/database][?setting=value&…], in its parts. */
typedef struct hf__server_url {
    char *base;     /* "http://host:port/", without user and database */
    char *name;     /* "clickhouse+http://user@host:port/database", for messages */
    char *database; /* "": the server's default */
    char *user;     /* "": none */
    char *password; /* NULL: none */
    char *settings; /* "max_block_size=1000&…", still URL-encoded, or "" */
    char *shaping;  /* those that shape an answer: only the user's own statements get them */
    bool is_local;  /* a loopback address, where compression is not worth it */
} hf__server_url;

/* password_file may be NULL. The caller frees out after success. HF_INVALID: not such a URL. */
HF_MUST_CHECK hf_status hf__server_url_read(const char *url, const char *password_file,
                                            hf__server_url *out, hf_error *err);
/* A copy with another host, or with host NULL the same. The caller frees out after success. */
HF_MUST_CHECK hf_status hf__server_url_at(const hf__server_url *url, const char *host,
                                          hf__server_url *out, hf_error *err);
void hf__server_url_free(hf__server_url *url); /* also overwrites the password */

/* ---- http.c: requests ------------------------------------------------------------------------ */

/* One request at a time, on a handle of its own. */
typedef struct hf__call {
    hf__http_call curl;
    hf__buf url;
    hf__buf body;
    hf__buf answer;
    int exception_code; /* from the header of the answer; 0: none */
    bool is_running;
} hf__call;

typedef struct hf__http {
    hf__target base;
    hf__server_url url;
    CURLM *multi;
    struct curl_slist *headers;
    struct curl_slist *headers_packed; /* the same, of a body that is gzip */
    hf__call call;                     /* the statement */
    hf__call side;                     /* asks about the statement, or kills it */
    bool is_fresh;                     /* the next statement opens a new connection */
} hf__http;

/* Starts a request. extra: more parameters, URL-encoded, each with '&' before it, or "". */
HF_MUST_CHECK hf_status hf__call_begin(hf__http *http, hf__call *call,
                                       const hf__statement *statement, const char *extra,
                                       hf_error *err);
/* Ends a request, finished or not. */
void hf__call_end(hf__http *http, hf__call *call);
/*
 * Lets both requests make progress, notes which have finished, and waits up to wait_ms for more to
 * do, also on fds, which may be NULL.
 */
HF_MUST_CHECK hf_status hf__http_step(hf__http *http, struct curl_waitfd *fds, unsigned count,
                                      int wait_ms, hf_error *err);

/* What a finished request means, with target->fault. during_rows: its body was a stream of rows. */
HF_MUST_CHECK hf_status hf__http_judge(hf__http *http, const hf__call *call,
                                       const hf__statement *statement, bool during_rows,
                                       hf_error *err);

/* ---- http.c: is a long statement still running on the server? -------------------------------- */

typedef struct hf__watch {
    const char *query_id; /* NULL: the statement is not watched */
    int64_t next_ms;      /* when to ask next */
    int64_t silent_since; /* 0: the server answers */
    int64_t answer_by;    /* the deadline of the question that is running; 0: none is */
    bool was_seen;
    unsigned missed; /* answers in a row that did not list the statement */
    bool is_kill;    /* what is running is a kill */
    bool kill_wanted, kill_sent;
} hf__watch;

/*
 * Call it often. It asks once a second. HF_UNREACHABLE: the server has been silent for too long.
 */
HF_MUST_CHECK hf_status hf__watch_tick(hf__http *http, hf__watch *watch, hf_error *err);

/* ---- http_insert.c --------------------------------------------------------------------------- */

/* The `insert` of hf__target_ops. */
hf_status hf__http_insert(hf__target *target, const hf__statement *statement,
                          const hf__format *format, hf__rows_input *input, hf__flow *flow,
                          hf_error *err);

#endif
