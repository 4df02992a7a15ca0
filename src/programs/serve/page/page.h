/*
 * The page: HTML made of a snapshot. All functions are pure, and any thread may call them. Nothing
 * fails: without memory out is broken.
 */
#ifndef HF_SERVE_PAGE_H
#define HF_SERVE_PAGE_H

#include "base/buf.h"
#include "programs/view/snapshot.h"

/* One of several stores that are served. */
typedef struct hf__page_store {
    const char *name;
    const char *base; /* of its own page: "/stores/eu" */
    bool is_up;
    const hf__snapshot *seen; /* what was read last; NULL where only the switch needs the store */
} hf__page_store;

/*
 * What the URL asks of the page. Strings are decoded but not trusted, and "" where it says
 * nothing.
 */
typedef struct hf__page_request {
    const char *base;    /* before every path: "/holdfast", "/stores/eu", or "" */
    const char *root;    /* the base of the page of all stores */
    const char *store;   /* the name of the store; "": there is but one, or it is of all */
    const char *q;       /* part of a label, name, holder, host */
    const char *state;   /* "held", "waiting", "unregistered" */
    const char *lock;    /* "b:KEY" or "p:A:B": the row that is open, with runbook and history */
    const char *event;   /* only this kind */
    const char *network; /* only this one */
    const char *at;      /* Unix time in ms, or RFC 3339: who waited for whom then; "": now */
    int64_t at_ms;       /* the same as a number */
    const char *span;    /* of the heat map: "1h" (default), "24h" */
    const char
        *sort; /* of the locks: "wait" (default), "age", "label", "waiters", or with a minus */
    const char *page;   /* of the locks, from "1" */
    const char *events; /* page of the events, from "1" */
    bool may_terminate; /* show the forms that end a holder */
    bool signed_in;
    const char *viewer; /* who is, if the tokens have names */
    const char *csrf;   /* for those forms */
    const char *notice; /* what the last action came to */
    bool notice_is_error;
    int64_t refresh_ms;
    const hf__page_store *stores; /* where there are several */
    size_t store_count;
    int64_t now_ms; /* Unix time, of the page of all stores */
} hf__page_request;

void hf__render_page(const hf__snapshot *snapshot, const hf__page_request *request, hf__buf *out);
/* The page of all stores: which of them are in trouble, and what needs attention. */
void hf__render_overview(const hf__page_request *request, hf__buf *out);
/* The form that asks for the token, and posts token and csrf to /login. wrong: the last one was. */
void hf__render_login(const char *base, const char *csrf, bool wrong, hf__buf *out);
/* A page for people about a failed request: 404 and the like. */
void hf__render_error(const char *base, int status, const char *title, const char *text,
                      hf__buf *out);

/*
 * The name of a lock on the page: the label as hf__show
 * writes it, or else the registered name, or else "key N" or "key (A, B)". Returns out.
 */
enum { HF__TITLE_ROOM = 256 };
const char *hf__lock_title(char out[HF__TITLE_ROOM], const hf__seen_lock *lock);
/*
 * What must be typed to end its holder: its title, below the store where there are several (the
 * name is not ""), since another one may have a lock of the same label. Returns out.
 */
enum { HF__TYPED_ROOM = HF__TITLE_ROOM + 40 };
const char *hf__lock_typed(char out[HF__TYPED_ROOM], const char *store, const hf__seen_lock *lock);
/* "b:KEY" or "p:A:B", as in the URL. Returns out. */
enum { HF__REF_ROOM = 32 };
const char *hf__lock_ref(char out[HF__REF_ROOM], hf_space space, int64_t key);
/* "N" or "(A, B)", for people. Returns out. */
const char *hf__lock_key(char out[HF__REF_ROOM], hf_space space, int64_t key);

/*
 * The files that the page loads, all from this host. The last one has no path.
 * scripts/embed-assets makes the table.
 */
typedef struct hf__asset {
    const char *path; /* "/assets/style.css" */
    const char *type;
    const unsigned char *bytes;
    size_t size;
} hf__asset;
extern const hf__asset hf__assets[];

#endif
