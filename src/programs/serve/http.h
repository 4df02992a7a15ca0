#ifndef HF_SERVE_HTTP_H
#define HF_SERVE_HTTP_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "programs/serve/query.h"
#include "programs/serve/serve.h"

/* What the files of this folder share: a request on its way to its answer. */

enum {
    HF__TARGET_MAX = 4096, /* bytes of a URL */
    HF__HEADERS_MAX = 16384,
    HF__BODY_MAX = 4096,
    HF__PARAMETERS_MAX = 12, /* of one route */
    HF__SEGMENT_MAX = 64,
    HF__AHEAD = 8, /* answers that are made before anybody asks */
};

typedef struct hf__exchange hf__exchange;

/* ---- answers: answer.c ---------------------------------------------------------------------------- */

/* Shared by reference; any thread. */
typedef struct hf__answer {
    atomic_uint references;
    int status;
    struct MHD_Response *response;
    size_t size;
    char etag[40]; /* "": none */
    const char *cache_control;
    const char *vary; /* or NULL */
} hf__answer;

/* Takes the text over, whatever happens; NULL: out of memory. */
hf__answer *hf__answer_make(int status, const char *type, const char *cache_control, hf__buf *text);
/* The same of bytes that live for ever. */
hf__answer *hf__answer_of(const char *type, const char *cache_control, const void *bytes,
                          size_t size);
hf__answer *hf__answer_problem(const hf__exchange *exchange, const hf__problem *problem);
hf__answer *hf__answer_redirect(const char *location);                   /* 303 */
void hf__answer_tag(hf__answer *answer, const void *bytes, size_t size); /* gives it its ETag */
bool hf__answer_add(hf__answer *answer, const char *header, const char *value);
hf__answer *hf__answer_hold(hf__answer *answer);
void hf__answer_release(hf__answer *answer); /* NULL is safe */
/* 304 where the client has it already. */
enum MHD_Result hf__answer_send(struct MHD_Connection *connection, hf__answer *answer);
const char *hf__status_title(int status);

/* ---- one snapshot and what was made of it: cache.c ------------------------------------------------- */

typedef struct hf__edition hf__edition;

hf__edition *hf__edition_make(hf__snapshot *snapshot); /* holds the snapshot */
hf__edition *hf__edition_hold(hf__edition *edition);
void hf__edition_release(hf__edition *edition); /* NULL is safe */
const hf__snapshot *hf__edition_snapshot(const hf__edition *edition);
/* The caller releases it; NULL: not there. */
hf__answer *hf__edition_find(hf__edition *edition, const char *key, size_t size);
/* Keeps it too, unless the edition has enough already. */
void hf__edition_keep(hf__edition *edition, const char *key, size_t size, hf__answer *answer);

/* ---- routes: route.c, routes.c ---------------------------------------------------------------------- */

typedef enum hf__parameter_type {
    HF__PARAMETER_TEXT,
    HF__PARAMETER_CHOICE,
    HF__PARAMETER_NUMBER,
    HF__PARAMETER_TIME, /* RFC 3339, or Unix time in milliseconds */
} hf__parameter_type;

typedef struct hf__parameter {
    const char *name; /* NULL ends a list */
    hf__parameter_type type;
    const char *about;
    const char *const *choices; /* ended by NULL */
    int64_t low, high, fallback;
    bool required;
} hf__parameter;

/* What a JSON value looks like, for the OpenAPI document and whoever relies on it. */
typedef struct hf__shape {
    const char *name; /* NULL ends a list */
    const char *type; /* "integer", "string", "boolean", "number", "object", "array", "any" */
    const char *about;
    bool nullable;
    const char *item;           /* type of an array's items; "object" where members says which */
    const struct hf__shape *of; /* members of the object, or of the array's items */
} hf__shape;

/* Writes the body; HTTP status, and *problem for all but 200. Pure: any thread. */
typedef int hf__render_fn(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                          hf__problem *problem);
/* Reads from the store in the collector's thread. */
typedef int hf__lookup_fn(hf_store *store, const hf__exchange *exchange,
                          const hf__snapshot *snapshot, hf__buf *out, hf__problem *problem);
/* Answers by itself; NULL and a suspended connection: later. Out of memory: a problem. */
typedef hf__answer *hf__act_fn(hf__exchange *exchange, hf__problem *problem);

typedef struct hf__route {
    const char *method; /* "GET" (HEAD too) or "POST"; NULL ends the table */
    const char *path;   /* with at most one {name} */
    const char *summary;
    const hf__parameter *parameters; /* of the query, or of the form that is posted; may be NULL */
    const char *type;                /* of what comes */
    hf__render_fn *render;           /* one of these three */
    hf__lookup_fn *lookup;
    hf__act_fn *act;
    const hf__shape *shape;  /* of the JSON object that comes, or of one of its data (is_list) */
    const hf__shape *extras; /* beside data, page and snapshot */
    bool is_list;
    bool is_open; /* without the token too */
} hf__route;

extern const hf__route hf__routes[];

/* Finds the route and checks everything that the URL says; false: exchange->problem says what is wrong. */
bool hf__route_find(hf__exchange *exchange, const char *method);
/* The same of a form that was posted. */
bool hf__route_check_form(hf__exchange *exchange);
/* "GET, HEAD, OPTIONS" for a path; false: there is nothing. */
bool hf__route_allows(const char *path, hf__buf *methods);
/* What tells the answer of this request from others of the same snapshot. */
void hf__route_key(const hf__exchange *exchange, hf__buf *key);

/* What was asked for; "" and the fallback where the URL says nothing. The name is one of the route's. */
const char *hf__asked(const hf__exchange *exchange, const char *name);
int64_t hf__asked_number(const hf__exchange *exchange, const char *name);
bool hf__was_asked(const hf__exchange *exchange, const char *name);

/* ---- who asks: auth.c -------------------------------------------------------------------------------- */

typedef struct hf__auth hf__auth;

typedef enum hf__access {
    HF__ACCESS_OPEN,  /* there is no token */
    HF__ACCESS_NONE,  /* nothing was presented, or nothing that counts */
    HF__ACCESS_WRONG, /* a wrong token */
    HF__ACCESS_GRANTED,
} hf__access;

HF_MUST_CHECK hf_status hf__auth_open(const char *token, unsigned port, hf__auth **auth,
                                      hf_error *err);
void hf__auth_close(hf__auth *auth);
/* identity: what CSRF tokens of whoever was granted access are bound to. */
enum { HF__IDENTITY_MAX = 160, HF__CSRF_SIZE = 65 };
hf__access hf__auth_check(hf__auth *auth, struct MHD_Connection *connection,
                          char identity[HF__IDENTITY_MAX]);
/* The token of a login form. */
hf__access hf__auth_login(const hf__auth *auth, const char *token);
void hf__auth_logout(hf__auth *auth, const char *identity); /* its cookie counts no more */
/* "" without memory, which fits nothing. */
void hf__auth_csrf(const hf__auth *auth, const char *identity, char csrf[HF__CSRF_SIZE]);
bool hf__auth_csrf_fits(const hf__auth *auth, const char *identity, const char *csrf);
/* The value of Set-Cookie; an empty cookie ends the session. */
void hf__auth_cookie(hf__auth *auth, bool secure, hf__buf *out);
void hf__auth_no_cookie(const hf__auth *auth, hf__buf *out);
/* Did a page of ours send this? */
bool hf__is_same_origin(struct MHD_Connection *connection);
/* Another name for this host would let other sites read from it. */
bool hf__is_host_ours(const hf__server *server, const char *host);

/* ---- the exchange: server.c ---------------------------------------------------------------------------- */

struct hf__exchange {
    hf__server *server;
    struct MHD_Connection *connection;
    char *target; /* as it came */
    char *path;   /* decoded */
    hf__query query;
    hf__buf body;
    hf__query form;
    const hf__route *route;
    char segment[HF__SEGMENT_MAX]; /* what {name} stands for */
    const char *texts[HF__PARAMETERS_MAX];
    int64_t numbers[HF__PARAMETERS_MAX];
    hf__problem problem; /* of the request; status 0: none */
    bool wants_json;     /* of errors, and of what a form came to */
    bool wants_openmetrics;
    bool takes_gzip;
    bool is_head;
    bool begun;
    bool misframed; /* what follows may be anything: its connection ends */
    bool suspended; /* its answer comes later */
    bool resumed;   /* it was, and an answer or a problem is there by now */
    hf__access access;
    char identity[HF__IDENTITY_MAX];
    hf__edition *edition; /* what it is answered from */
    hf__answer *answer;   /* ready */
};

struct hf__server {
    hf__server_options options;
    char *token;
    char *listen_host; /* as it was given */
    char url[96];
    bool loopback;
    hf__view *view;
    struct MHD_Daemon *daemon;
    hf__auth *auth;
    struct hf__visits *visits;
    int socket;
    pthread_mutex_t guard; /* of what follows */
    hf__edition *edition;
    int64_t good_ms;        /* monotonic: the last refresh that worked */
    pthread_mutex_t asking; /* of stopping: nothing more may be asked of the view */
    bool stopping;
    atomic_llong asked_ms[HF__AHEAD]; /* when each answer that is made ahead was asked for last */
    hf__answer *openapi;
};

const char *hf__header(const hf__exchange *exchange, const char *name); /* NULL: not given */
hf__edition *hf__server_edition(hf__server *server);                    /* the caller releases it */
int64_t hf__server_refresh_ms(const hf__server *server);

/*
 * Suspends the exchange and runs the job in the collector's thread; the exchange goes on once `done` has
 * given it an answer or a problem. False: it could not be asked, *problem says why.
 */
typedef void hf__job_fn(hf_store *store, hf__exchange *exchange);
bool hf__server_ask(hf__exchange *exchange, hf__job_fn *job, hf__problem *problem);

/* ---- the rest ------------------------------------------------------------------------------------------ */

hf__render_fn hf__api_locks, hf__api_waits, hf__api_events, hf__api_registry, hf__api_ingest,
    hf__api_gaps, hf__api_tables;
hf__lookup_fn hf__api_ledgers, hf__api_transactions;
hf__act_fn hf__act_health, hf__act_ready, hf__act_openapi, hf__act_asset, hf__act_login_form,
    hf__act_login, hf__act_logout, hf__act_terminate;
hf__render_fn hf__page_render, hf__metrics_render;

extern const hf__shape hf__lock_shape[], hf__wait_shape[], hf__event_shape[], hf__registry_shape[],
    hf__registry_extras[], hf__network_shape[], hf__gap_shape[], hf__table_shape[],
    hf__ledger_shape[], hf__transaction_shape[], hf__health_shape[], hf__terminated_shape[];

/* openapi.c: the document that describes all routes */
void hf__openapi_write(hf__buf *out);

/* listen.c: a bound socket that does not listen yet */
typedef struct hf__address {
    int socket;
    unsigned port;
    bool loopback;
    char host[64]; /* as it was given, without brackets */
    char url[96];
} hf__address;
HF_MUST_CHECK hf_status hf__address_bind(const char *text, bool has_token, hf__address *address,
                                         hf_error *err);

/* Connections, and how long each may take for what it does. */

typedef struct hf__visits hf__visits;
typedef struct hf__visit hf__visit;

typedef enum hf__visit_step {
    HF__VISIT_IDLE,     /* the next request may come */
    HF__VISIT_REQUESTS, /* its first line is there */
    HF__VISIT_ANSWERED, /* all of it is */
} hf__visit_step;

HF_MUST_CHECK hf_status hf__visits_open(hf__visits **visits, hf_error *err);
void hf__visits_close(hf__visits *visits); /* NULL is safe; no connection is left */

void hf__visits_step(hf__visits *visits, struct MHD_Connection *connection, hf__visit_step step);

/* For MHD_OPTION_NOTIFY_CONNECTION, with the visits. */
void hf__visits_notify(void *arg, struct MHD_Connection *connection, void **state,
                       enum MHD_ConnectionNotificationCode code);

/* Does the client's Accept-Encoding (may be NULL) allow gzip? */
bool hf__takes_gzip(const char *accepted);

/* Replaces the text by its gzip form; false, and nothing is changed: it is not worth it, or memory is out. */
bool hf__gzip(hf__buf *text);

#endif
