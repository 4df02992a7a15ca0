/*
 * What the files of this room share: a request on its way to its answer. A request is an exchange;
 * a row of the table of routes says how it is answered; answers are made of an edition, which is
 * one snapshot with all that was made of it.
 */
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

enum {
    HF__TARGET_MAX = 4096, /* bytes of a URL */
    HF__HEADERS_MAX = 16384,
    HF__BODY_MAX = 4096,
    HF__PARAMETERS_MAX = 16, /* of one route */
    HF__SEGMENT_MAX = 64,
    HF__AHEAD = 8, /* how many answers can be made before anybody asks */
};

typedef struct hf__exchange hf__exchange;

/* ---- answers (answer.c) ---- */

/* Counted references; any thread may send one, once it is made. */
typedef struct hf__answer {
    atomic_uint references;
    int status;
    struct MHD_Response *response;
    size_t size;
    char etag[40]; /* "": none */
    const char *cache_control;
    const char *vary; /* or NULL */
} hf__answer;

/* These make an answer with one reference, the caller's. NULL: out of memory. */

/* Takes the text over, also when it fails. */
hf__answer *hf__answer_make(int status, const char *type, const char *cache_control, hf__buf *text);
/* Of bytes that live as long as the program. */
hf__answer *hf__answer_of(const char *type, const char *cache_control, const void *bytes,
                          size_t size);
hf__answer *hf__answer_problem(const hf__exchange *exchange, const hf__problem *problem);
hf__answer *hf__answer_redirect(const hf__exchange *exchange, const char *path); /* 303 */
void hf__answer_tag(hf__answer *answer, const void *bytes, size_t size);         /* its ETag */
bool hf__answer_add(hf__answer *answer, const char *header, const char *value);
hf__answer *hf__answer_hold(hf__answer *answer);
void hf__answer_release(hf__answer *answer); /* NULL is safe */
/* Sends 304 when the client has it already. */
enum MHD_Result hf__answer_send(struct MHD_Connection *connection, hf__answer *answer);

/* ---- editions: snapshots and the answers that were made of them (answer.c) ---- */

/* Counted references, with a lock of its own: any thread. */
typedef struct hf__edition hf__edition;

/* Of one store, or of all in their order. Holds the snapshots; NULL: out of memory. */
hf__edition *hf__edition_make(hf__snapshot *const *snapshots, size_t count);
hf__edition *hf__edition_hold(hf__edition *edition);
void hf__edition_release(hf__edition *edition);                       /* NULL is safe */
const hf__snapshot *hf__edition_snapshot(const hf__edition *edition); /* the first one */
hf__snapshot *const *hf__edition_snapshots(const hf__edition *edition, size_t *count);
/* The answer that was kept for this key, or NULL. The caller releases it. */
hf__answer *hf__edition_find(hf__edition *edition, const char *key, size_t size);
/* Holds the answer too, unless the edition has enough already. */
void hf__edition_keep(hf__edition *edition, const char *key, size_t size, hf__answer *answer);

/* ---- routes (route.c, routes.c) ---- */

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

/* What a JSON value looks like, for the OpenAPI document and for those who rely on it. */
typedef struct hf__shape {
    const char *name; /* NULL ends a list */
    const char *type; /* "integer", "string", "boolean", "number", "object", "array", "any" */
    const char *about;
    bool nullable;
    const char *item;           /* type of an array's items; "object": see of */
    const struct hf__shape *of; /* members of the object, or of the array's items */
} hf__shape;

/*
 * Writes the body. Returns the HTTP status, and fills *problem unless it is 200. Pure, for any
 * thread.
 */
typedef int hf__render_fn(const hf__exchange *exchange, const hf__snapshot *snapshot, hf__buf *out,
                          hf__problem *problem);
/* The same with the store, on the collector's thread. */
typedef int hf__lookup_fn(hf_store *store, const hf__exchange *exchange,
                          const hf__snapshot *snapshot, hf__buf *out, hf__problem *problem);
/*
 * Makes the answer itself. NULL: *problem says why, or the exchange is suspended and answered
 * later.
 */
typedef hf__answer *hf__act_fn(hf__exchange *exchange, hf__problem *problem);

/* Where several stores are served, which addresses a route has. */
typedef enum hf__route_scope {
    HF__SCOPE_STORE,  /* below /stores/NAME only */
    HF__SCOPE_BOTH,   /* there, and without it for all stores */
    HF__SCOPE_SERVER, /* it is the same for all of them */
} hf__route_scope;

typedef struct hf__route {
    const char *method; /* "GET" (HEAD too) or "POST"; NULL ends the table */
    const char *path;   /* with at most one {name} */
    const char *summary;
    const hf__parameter *parameters; /* of the query, or of the form that is posted; may be NULL */
    const char *type;                /* media type of the answer */
    hf__render_fn *render;           /* one of these three is set */
    hf__lookup_fn *lookup;
    hf__act_fn *act;
    /* of the JSON object that is sent, or of an item of its data (is_list) */
    const hf__shape *shape;
    const hf__shape *extras; /* members besides data, page and snapshot */
    bool is_list;
    bool is_open; /* needs no token */
    hf__route_scope scope;
} hf__route;

extern const hf__route hf__routes[];

/* Finds the route and checks all parameters. False: exchange->problem says what is wrong. */
bool hf__route_find(hf__exchange *exchange, const char *method);
/* The same for a form that was posted. */
bool hf__route_check_form(hf__exchange *exchange);
/* "GET, HEAD, OPTIONS" for a path. False: there is no such path. */
bool hf__route_allows(const char *path, hf__buf *methods);
/* Writes the key under which an edition keeps the answer of this request. */
void hf__route_key(const hf__exchange *exchange, hf__buf *key);

/*
 * What was asked for: "" or the fallback where the URL says nothing. The name must be a parameter
 * of the route. Texts live as long as the exchange.
 */
const char *hf__asked(const hf__exchange *exchange, const char *name);
int64_t hf__asked_number(const hf__exchange *exchange, const char *name);
bool hf__was_asked(const hf__exchange *exchange, const char *name);

/* ---- who asks (auth.c) ---- */

/* Any thread may use it. */
typedef struct hf__auth hf__auth;

typedef enum hf__access {
    HF__ACCESS_OPEN,  /* the server has no token */
    HF__ACCESS_NONE,  /* no token and no valid cookie was presented */
    HF__ACCESS_WRONG, /* a wrong token was */
    HF__ACCESS_GRANTED,
} hf__access;

/* Keeps only digests of the tokens; none: everybody may look. */
/* Cookies are for the base of the server. */
HF_MUST_CHECK hf_status hf__auth_open(const hf__tokens *tokens, unsigned port, const char *base,
                                      hf__auth **auth, hf_error *err);
void hf__auth_close(hf__auth *auth);
/* Where access is granted, *viewer is who it is, and identity what its CSRF tokens are bound to. */
enum { HF__IDENTITY_MAX = 160, HF__CSRF_SIZE = 65 };
hf__access hf__auth_check(hf__auth *auth, struct MHD_Connection *connection, hf__viewer *viewer,
                          char identity[HF__IDENTITY_MAX]);
/* Checks the token of a login form. number is whose it is. */
hf__access hf__auth_login(const hf__auth *auth, const char *token, size_t *number);
void hf__auth_logout(hf__auth *auth, const char *identity); /* its cookie is not valid any more */
/* Without memory the token is "", which never fits. */
void hf__auth_csrf(const hf__auth *auth, const char *identity, char csrf[HF__CSRF_SIZE]);
bool hf__auth_csrf_fits(const hf__auth *auth, const char *identity, const char *csrf);
/* These write the value of Set-Cookie: a new session, and an empty cookie that ends one. */
void hf__auth_cookie(hf__auth *auth, size_t number, bool secure, hf__buf *out);
void hf__auth_no_cookie(const hf__auth *auth, hf__buf *out);
/* Did a page of this server send the request? */
bool hf__is_same_origin(struct MHD_Connection *connection);
/* If any name for this host were accepted, other sites could read from it. */
bool hf__is_host_ours(const hf__server *server, const char *host);

/* ---- the exchange (exchange.c) and the server (server.c) ---- */

/* A store that is served: its collector, and what was made of its last snapshot. */
typedef struct hf__served {
    hf__server *server;
    char *name; /* "": the only one, which has none */
    char *base; /* of its own addresses, "/holdfast/stores/eu"; without a name the server's */
    hf__view *view;
    hf__edition *edition;             /* this one and the next are the server's guard's */
    int64_t good_ms;                  /* when a refresh worked last, monotonic; 0: none did */
    atomic_llong asked_ms[HF__AHEAD]; /* when somebody last asked for each answer made ahead */
} hf__served;

/*
 * One request. It belongs to the thread of its connection, or while suspended to the collector's.
 */
struct hf__exchange {
    hf__server *server;
    hf__served *served; /* the store that it is about; NULL: all of them */
    const char *base;   /* before every path: the server's, or that of the store */
    uint64_t up;        /* which stores stood well when it was answered, a bit each */
    struct MHD_Connection *connection;
    char *target; /* the URL as it came */
    char *path;   /* decoded, without the base */
    hf__query query;
    hf__buf body;
    hf__query form;
    const hf__route *route;
    char segment[HF__SEGMENT_MAX]; /* what {name} stands for */
    const char *texts[HF__PARAMETERS_MAX];
    int64_t numbers[HF__PARAMETERS_MAX];
    hf__problem problem;   /* of the request; status 0: none */
    bool is_store_unknown; /* there is no store of the name in the URL */
    bool wants_json;       /* for errors, and for the result of a form */
    bool wants_openmetrics;
    bool takes_gzip;
    bool is_head;
    bool begun;
    bool misframed; /* where it ends is not certain: close the connection after it */
    bool suspended; /* its answer comes later */
    bool resumed;   /* it was suspended, and has an answer or a problem now */
    hf__access access;
    hf__viewer viewer; /* where access is granted */
    char identity[HF__IDENTITY_MAX];
    hf__edition *edition; /* what it is answered from */
    hf__answer *answer;   /* ready */
};

struct hf__server {
    hf__server_options options;
    bool has_token;
    char *base;        /* "/holdfast", or "" */
    char *listen_host; /* as it was given */
    char *url;
    bool loopback;
    hf__served *stores;
    size_t store_count;
    struct MHD_Daemon *daemon;
    hf__auth *auth;
    struct hf__visits *visits;
    int socket;
    pthread_mutex_t guard;  /* of editions */
    hf__edition *of_all;    /* of all stores, since somebody asked; NULL: to be made */
    pthread_mutex_t asking; /* of stopping, after which no view must be asked */
    bool stopping;
    hf__answer *openapi;
};

/* target is the URL as it came; it is copied. NULL: out of memory. */
hf__exchange *hf__exchange_make(hf__server *server, const char *target,
                                struct MHD_Connection *connection);
void hf__exchange_free(hf__exchange *exchange); /* NULL is safe */

/*
 * Call it once the headers are there. False: send hf__exchange_refuse at once, and do not read the
 * body.
 */
bool hf__exchange_begin(hf__exchange *exchange, const char *method, const char *version);
bool hf__exchange_take(hf__exchange *exchange, const char *data, size_t size); /* false: too much */

/* NULL: exchange->suspended, and it goes on later, or else out of memory. */
hf__answer *hf__exchange_answer(hf__exchange *exchange, const char *method);
hf__answer *hf__exchange_refuse(hf__exchange *exchange);

/* Makes the answer of a route that renders, and keeps it in the edition for others. */
hf__answer *hf__exchange_render(hf__exchange *exchange, hf__problem *problem);

const char *hf__header(const hf__exchange *exchange, const char *name); /* NULL: not given */
/* Takes the edition that the exchange is answered from, and how the stores stand. */
bool hf__server_begin_answer(hf__exchange *exchange); /* false: out of memory */
int64_t hf__server_refresh_ms(const hf__server *server);
/* Since the last refresh that worked; -1: none did. */
int64_t hf__served_age(hf__served *served);
/* Can the store be read: did the last refresh work, and not too long ago? */
bool hf__is_up(const hf__exchange *exchange, const hf__served *served);
/* What the exchange is about: one store, or all of them. */
hf__served *hf__exchange_stores(const hf__exchange *exchange, size_t *count);

/*
 * Suspends the exchange and runs the job on the collector's thread. The job gives the exchange an
 * answer or a problem, and then it goes on. False: the job will not run, *problem says why.
 */
typedef void hf__job_fn(hf_store *store, hf__exchange *exchange);
bool hf__server_ask(hf__exchange *exchange, hf__job_fn *job, hf__problem *problem);

/* ---- what the routes call ---- */

hf__render_fn hf__api_stores, hf__api_locks, hf__api_waits, hf__api_past, hf__api_contention,
    hf__api_events, hf__api_registry, hf__api_ingest, hf__api_gaps, hf__api_tables;
hf__lookup_fn hf__api_history, hf__api_ledgers, hf__api_transactions;
hf__act_fn hf__act_health, hf__act_ready, hf__act_openapi, hf__act_asset, hf__act_login_form,
    hf__act_login, hf__act_logout, hf__act_terminate;
hf__render_fn hf__page_render, hf__metrics_render;

extern const hf__shape hf__stores_shape[], hf__lock_shape[], hf__wait_shape[], hf__wait_extras[],
    hf__moment_shape[], hf__contention_shape[], hf__event_shape[], hf__registry_shape[],
    hf__registry_extras[], hf__network_shape[], hf__gap_shape[], hf__table_shape[],
    hf__ledger_shape[], hf__transaction_shape[], hf__health_shape[], hf__terminated_shape[];

/* The document that describes all routes. */
void hf__openapi_write(const char *base, bool has_several, hf__buf *out);

/* ---- addresses and connections (listen.c) ---- */

/* A bound socket that does not listen yet. */
typedef struct hf__address {
    int socket;
    unsigned port;
    bool loopback;
    char host[64]; /* as it was given, without brackets */
    char url[96];
} hf__address;

/* The caller closes address->socket. HF_CONFIG: the address is wrong, taken, or needs a token. */
HF_MUST_CHECK hf_status hf__address_bind(const char *text, bool has_token, hf__address *address,
                                         hf_error *err);

/* All connections, and how long each may take for each step. Any thread may use it. */
typedef struct hf__visits hf__visits;
typedef struct hf__visit hf__visit;

typedef enum hf__visit_step {
    HF__VISIT_IDLE,     /* waits for the next request */
    HF__VISIT_REQUESTS, /* the first line of a request is there */
    HF__VISIT_ANSWERED, /* all of the request is there */
} hf__visit_step;

HF_MUST_CHECK hf_status hf__visits_open(hf__visits **visits, hf_error *err);
void hf__visits_close(hf__visits *visits); /* NULL is safe; there must be no connection left */

void hf__visits_step(hf__visits *visits, struct MHD_Connection *connection, hf__visit_step step);

/* For MHD_OPTION_NOTIFY_CONNECTION; arg is the visits. */
void hf__visits_notify(void *arg, struct MHD_Connection *connection, void **state,
                       enum MHD_ConnectionNotificationCode code);

/* ---- compression (answer.c) ---- */

/* Does the client's Accept-Encoding (may be NULL) allow gzip? */
bool hf__takes_gzip(const char *accepted);

/*
 * Replaces the text by its gzip form. False, and nothing has changed, if that is not worth it or
 * without memory.
 */
bool hf__gzip(hf__buf *text);

#endif
