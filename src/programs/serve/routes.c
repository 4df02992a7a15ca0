/* The table of all routes: dispatch, the checks of parameters and the OpenAPI document use it. */
#include "programs/serve/api.h"

#define JSON "application/json"
#define HTML "text/html; charset=utf-8"

#define TEXT(name, about)                                                                          \
    {                                                                                              \
        name, HF__PARAMETER_TEXT, about, NULL, 0, 0, 0, false                                      \
    }
#define CHOICE(name, choices, about)                                                               \
    {                                                                                              \
        name, HF__PARAMETER_CHOICE, about, choices, 0, 0, 0, false                                 \
    }
#define NUMBER(name, low, high, fallback, about)                                                   \
    {                                                                                              \
        name, HF__PARAMETER_NUMBER, about, NULL, low, high, fallback, false                        \
    }
#define LIMIT(most) NUMBER("limit", 1, most, HF__LIMIT_DEFAULT, "rows of a page")
#define PAGING                                                                                     \
    LIMIT(HF__LIMIT_MAX), NUMBER("offset", 0, INT64_C(1000000000), 0, "rows to pass over")
#define PART TEXT("q", "only what has this in its names, hosts or applications, in either case")
#define NAME TEXT("name", "only this lock of the registry")
#define KEY NUMBER("key", INT64_MIN, INT64_MAX, 0, "only this key; a pair is joined")
#define LEDGERS                                                                                    \
    NUMBER("from", 0, INT64_MAX - 1, 0, "first ledger"),                                           \
        NUMBER("to", 0, INT64_MAX - 1, INT64_MAX - 1, "last ledger")
#define CURSOR NUMBER("cursor", 0, INT64_MAX - 1, 0, "what page.next says")
#define TIME(name, about)                                                                          \
    {                                                                                              \
        name, HF__PARAMETER_TIME, about, NULL, 0, 0, 0, false                                      \
    }
#define NETWORK                                                                                    \
    {                                                                                              \
        "network", HF__PARAMETER_TEXT, "the network", NULL, 0, 0, 0, true                          \
    }
#define REQUIRED(name, about)                                                                      \
    {                                                                                              \
        name, HF__PARAMETER_TEXT, about, NULL, 0, 0, 0, true                                       \
    }

static const char *const lock_states[] = {"held", "waiting", "unregistered", NULL};
static const char *const modes[] = {"exclusive", "shared", NULL};
static const char *const spans[] = {"1h", "24h", NULL};
static const char *const orders[] = {"wait", "age",    "label",    "waiters", "-wait",
                                     "-age", "-label", "-waiters", NULL};
static const char *const spaces[] = {"b", "p", NULL};
static const char *const notices[] = {"terminated", "mistyped", NULL};

static const hf__parameter lock_parameters[] = {
    PART,
    CHOICE("state", lock_states, "only locks that are held, waited for, or without a name"),
    CHOICE("mode", modes, "only locks that somebody holds or wants so"),
    NAME,
    KEY,
    PAGING,
    {0},
};
static const hf__parameter wait_parameters[] = {
    PART,
    NAME,
    KEY,
    NUMBER("party", 0, INT32_MAX, 0, "only where this one waits or is in the way"),
    TIME("at", "who waited for whom at this time of the last day; else now"),
    PAGING,
    {0},
};
static const hf__parameter past_parameters[] = {PAGING, {0}};
static const hf__parameter contention_parameters[] = {
    PART,
    CHOICE("span", spans, "the last hour by the minute, or the last day by ten minutes"),
    PAGING,
    {0},
};
static const hf__parameter event_parameters[] = {
    PART,
    TEXT("event", "only this kind: acquired, lost, …"),
    NAME,
    KEY,
    TIME("since", "only from this time on"),
    PAGING,
    {0},
};
static const hf__parameter history_parameters[] = {
    TEXT("event", "only this kind: acquired, lost, …"),
    KEY,
    TIME("since", "only from this time on"),
    TIME("until", "only before this time"),
    CURSOR,
    LIMIT(HF__LIMIT_MAX),
    {0},
};
static const hf__parameter registry_parameters[] = {PART, NAME, PAGING, {0}};
static const hf__parameter ingest_parameters[] = {
    TEXT("network", "only this one"),
    PAGING,
    {0},
};
static const hf__parameter gap_parameters[] = {LEDGERS, PAGING, {0}};
static const hf__parameter table_parameters[] = {
    PART,
    TEXT("state", "of the last append: attaching, done, doubtful"),
    PAGING,
    {0},
};
static const hf__parameter ledger_parameters[] = {
    NETWORK, LEDGERS, CURSOR, LIMIT(HF__LIMIT_MAX), {0},
};
static const hf__parameter transaction_parameters[] = {
    NETWORK,
    LEDGERS,
    TEXT("hash", "the transaction of this hash"),
    NUMBER("id", 0, INT64_MAX - 1, 0, "the transaction of this id"),
    CURSOR,
    LIMIT(200),
    {0},
};
static const hf__parameter page_parameters[] = {
    TEXT("q", "only what has this in its names, hosts or applications"),
    CHOICE("state", lock_states, "only such locks"),
    TEXT("lock", "the lock that is open: b:KEY or p:A:B"),
    TEXT("event", "only this kind of events"),
    TEXT("network", "only this network"),
    TIME("at", "who waited for whom at this time of the last day"),
    CHOICE("span", spans, "of the heat map"),
    CHOICE("sort", orders, "of the locks; with a minus the other way round"),
    NUMBER("page", 1, 1000000, 1, "of the locks"),
    NUMBER("events", 1, 1000000, 1, "page of the events"),
    CHOICE("notice", notices, "what the last action came to"),
    {0},
};
static const hf__parameter login_parameters[] = {
    REQUIRED("token", "the server's"),
    REQUIRED("csrf", "of the form"),
    {0},
};
static const hf__parameter logout_parameters[] = {REQUIRED("csrf", "of the page"), {0}};
static const hf__parameter terminate_parameters[] = {
    {"space", HF__PARAMETER_CHOICE, "b: a key of 64 bits; p: a pair, joined", spaces, 0, 0, 0,
     true},
    {"key", HF__PARAMETER_NUMBER, "of the lock", NULL, INT64_MIN, INT64_MAX, 0, true},
    {"party", HF__PARAMETER_NUMBER, "who holds it; 0: a lease, which token names", NULL, 0,
     INT32_MAX, 0, true},
    NUMBER("token", 0, INT64_MAX, 0, "its fencing token: who took the lock since is spared"),
    REQUIRED("label", "of the lock, typed"),
    REQUIRED("csrf", "of the page"),
    {0},
};

#define LIST(where, what, given, does, looks)                                                      \
    {                                                                                              \
        .method = "GET", .path = "/api/v1/" where, .summary = what, .parameters = given,           \
        .type = JSON, .render = does, .shape = looks, .is_list = true                              \
    }
#define LOOKUP(where, what, given, does, looks)                                                    \
    {                                                                                              \
        .method = "GET", .path = "/api/v1/" where, .summary = what, .parameters = given,           \
        .type = JSON, .lookup = does, .shape = looks, .is_list = true                              \
    }

const hf__route hf__routes[] = {
    {.method = "GET",
     .path = "/",
     .summary = "The page for people",
     .parameters = page_parameters,
     .type = HTML,
     .render = hf__page_render,
     .scope = HF__SCOPE_BOTH},
    {.method = "GET",
     .path = "/api/v1/stores",
     .summary = "The stores that are served, and how they stand",
     .type = JSON,
     .render = hf__api_stores,
     .shape = hf__stores_shape,
     .scope = HF__SCOPE_SERVER},
    LIST("locks", "Every key that is held or waited for", lock_parameters, hf__api_locks,
         hf__lock_shape),
    {.method = "GET",
     .path = "/api/v1/waits",
     .summary = "Who waits for whom, now or at a time of the last day",
     .parameters = wait_parameters,
     .type = JSON,
     .render = hf__api_waits,
     .shape = hf__wait_shape,
     .extras = hf__wait_extras,
     .is_list = true},
    LIST("waits/past", "Moments of the last day in which somebody waited, the newest first",
         past_parameters, hf__api_past, hf__moment_shape),
    LIST("contention", "How long locks were held and waited for, the most contended first",
         contention_parameters, hf__api_contention, hf__contention_shape),
    LIST("events", "What happened lately, the newest first", event_parameters, hf__api_events,
         hf__event_shape),
    LOOKUP("history", "Every recorded event, the newest first", history_parameters, hf__api_history,
           hf__event_shape),
    {.method = "GET",
     .path = "/api/v1/registry",
     .summary = "Locks of the registry, how they stand, and what is wrong with it",
     .parameters = registry_parameters,
     .type = JSON,
     .render = hf__api_registry,
     .shape = hf__registry_shape,
     .extras = hf__registry_extras,
     .is_list = true},
    LIST("ingest", "Networks and how far they are", ingest_parameters, hf__api_ingest,
         hf__network_shape),
    LIST("ingest/{network}/gaps", "Ledgers that are wanted and not there", gap_parameters,
         hf__api_gaps, hf__gap_shape),
    LIST("tables", "Shared tables and their appends", table_parameters, hf__api_tables,
         hf__table_shape),
    LOOKUP("ledgers", "Ledgers of a network, ascending", ledger_parameters, hf__api_ledgers,
           hf__ledger_shape),
    LOOKUP("transactions", "Transactions of a network, ascending, or one by its hash or id",
           transaction_parameters, hf__api_transactions, hf__transaction_shape),
    {.method = "GET",
     .path = "/api/v1/openapi.json",
     .summary = "This document",
     .type = JSON,
     .act = hf__act_openapi,
     .scope = HF__SCOPE_SERVER},
    {.method = "GET",
     .path = "/metrics",
     .summary = "Metrics for Prometheus; OpenMetrics where Accept asks for it",
     .type = "text/plain; version=0.0.4; charset=utf-8",
     .render = hf__metrics_render,
     .scope = HF__SCOPE_BOTH},
    {.method = "GET",
     .path = "/health",
     .summary = "200: the store answers and no network is too far behind; 503: the reason",
     .type = JSON,
     .act = hf__act_health,
     .shape = hf__health_shape,
     .is_open = true,
     .scope = HF__SCOPE_BOTH},
    {.method = "GET",
     .path = "/ready",
     .summary = "200: there is something to show and the store answers; 503: the reason",
     .type = JSON,
     .act = hf__act_ready,
     .shape = hf__health_shape,
     .is_open = true,
     .scope = HF__SCOPE_BOTH},
    {.method = "GET",
     .path = "/assets/{file}",
     .summary = "What the page loads",
     .type = "application/octet-stream",
     .act = hf__act_asset,
     .is_open = true,
     .scope = HF__SCOPE_SERVER},
    {.method = "GET",
     .path = "/login",
     .summary = "A form for the token",
     .type = HTML,
     .act = hf__act_login_form,
     .is_open = true,
     .scope = HF__SCOPE_SERVER},
    {.method = "POST",
     .path = "/login",
     .summary = "Begins a session: a cookie, where the token is right",
     .parameters = login_parameters,
     .type = HTML,
     .act = hf__act_login,
     .is_open = true,
     .scope = HF__SCOPE_SERVER},
    {.method = "POST",
     .path = "/logout",
     .summary = "Ends the session",
     .parameters = logout_parameters,
     .type = HTML,
     .act = hf__act_logout,
     .scope = HF__SCOPE_SERVER},
    {.method = "POST",
     .path = "/terminate",
     .summary = "Ends the session that holds a lock, or a lease, with --allow-terminate",
     .parameters = terminate_parameters,
     .type = JSON,
     .act = hf__act_terminate,
     .shape = hf__terminated_shape},
    {0},
};
