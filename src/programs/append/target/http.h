/* A ClickHouse server over HTTP: what http*.c share. */
#ifndef HF_APPEND_HTTP_H
#define HF_APPEND_HTTP_H

#include "base/http.h"
#include "programs/append/target/target.h"

/* ---- url.c: clickhouse+http(s)://user[:password]@host[:port][/database][?setting=value&…] ---- */

typedef struct hf__server_url {
    char *base;     /* "http://host:port/": no user, no database */
    char *name;     /* "clickhouse+http://user@host:port/database" */
    char *database; /* "": the server's default */
    char *user;     /* "": none */
    char *password; /* NULL: none */
    char *settings; /* "max_block_size=1000&…", still encoded, or "" */
    bool is_local;  /* loopback: compressing would only cost */
} hf__server_url;

HF_MUST_CHECK hf_status hf__server_url_read(const char *url, const char *password_file,
                                            hf__server_url *out, hf_error *err);
/* The same at another host; NULL: at the same. */
HF_MUST_CHECK hf_status hf__server_url_at(const hf__server_url *url, const char *host,
                                          hf__server_url *out, hf_error *err);
void hf__server_url_free(hf__server_url *url);

/* ---- http.c ---------------------------------------------------------------------------------- */

/* One request at a time on a handle of its own. */
typedef struct hf__call {
    hf__http_call curl;
    hf__buf url;
    hf__buf body;
    hf__buf answer;
    int exception_code; /* of the header */
    bool is_running;
} hf__call;

typedef struct hf__http {
    hf__target base;
    hf__server_url url;
    CURLM *multi;
    struct curl_slist *headers;
    hf__call call; /* the statement */
    hf__call side; /* asks after it, or kills it */
    bool is_fresh; /* the next statement takes a new connection */
} hf__http;

/* ---- http.c ---------------------------------------------------------------------------------- */

/* extra: more parameters, encoded, beginning with '&', or "". */
HF_MUST_CHECK hf_status hf__call_begin(hf__http *http, hf__call *call,
                                       const hf__statement *statement, const char *extra,
                                       hf_error *err);
/* Removes it from the multi handle, finished or not. */
void hf__call_end(hf__http *http, hf__call *call);
/* Lets all calls get on; notes which are done. waitfds may be NULL. */
HF_MUST_CHECK hf_status hf__http_turn(hf__http *http, struct curl_waitfd *fds, unsigned count,
                                      int wait_ms, hf_error *err);

/* ---- http_judge.c ---------------------------------------------------------------------------- */

/* What the finished call came to. during_rows: its body was a stream of rows. */
HF_MUST_CHECK hf_status hf__http_judge(hf__http *http, const hf__call *call,
                                       const hf__statement *statement, bool during_rows,
                                       hf_error *err);

/* ---- http_watch.c: is a long statement still running there? ---------------------------------- */

typedef struct hf__watch {
    const char *query_id; /* NULL: it has none, and is not watched */
    int64_t next_ms;
    int64_t silent_since; /* 0: it answers */
    int64_t answer_by;    /* of the call that runs */
    bool was_seen;
    unsigned missed; /* looks in a row that did not see it */
    bool is_kill;    /* the call that runs is a kill */
    bool kill_wanted, kill_sent;
} hf__watch;

/* Asks now and then; HF_UNREACHABLE when nothing has answered for long. */
HF_MUST_CHECK hf_status hf__watch_tick(hf__http *http, hf__watch *watch, hf_error *err);

/* ---- http_insert.c --------------------------------------------------------------------------- */

hf_status hf__http_insert(hf__target *target, const hf__statement *statement,
                          const hf__format *format, hf__rows_input *input, hf__flow *flow,
                          hf_error *err);

#endif
