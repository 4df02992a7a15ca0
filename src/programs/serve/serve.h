/* The server of `holdfast serve`: a page, REST and metrics over a view of each store. */
#ifndef HF_SERVE_SERVE_H
#define HF_SERVE_SERVE_H

#include "base/buf.h"
#include "cli/command.h"
#include "programs/view/view.h"

typedef struct hf__server hf__server;

/* Who may look, and may end holders where --allow-terminate lets anybody. */
enum { HF__TOKEN_MIN = 16, HF__TOKEN_MAX = 512, HF__VIEWER_MAX = 32 };
typedef struct hf__viewer {
    char name[HF__VIEWER_MAX + 1]; /* "": the file has one token, and no names */
    bool is_admin;
} hf__viewer;

typedef struct hf__token {
    hf__viewer viewer;
    char *secret;
} hf__token;

typedef struct hf__tokens {
    hf__token *items;
    size_t count, room;
} hf__tokens;

/*
 * Reads a file that others must not be able to read; what is its name for people: "token file".
 * The caller cleanses and frees the text, also after a failure.
 */
HF_MUST_CHECK hf_status hf__secrets_read(const char *what, const char *path, hf__buf *text,
                                         hf_error *err);

/*
 * Reads lines of NAME ROLE TOKEN, or else one token, which the first line is, without the spaces
 * around it. A token has at least HF__TOKEN_MIN printable characters, and others must not be able
 * to read the file. The caller frees the tokens.
 */
HF_MUST_CHECK hf_status hf__tokens_read(const char *path, hf__tokens *tokens, hf_error *err);
void hf__tokens_free(hf__tokens *tokens);

/* ---- the stores (stores.c) ---- */

enum { HF__STORES_MAX = 64, HF__STORE_NAME_MAX = 32 };

/* Stores by name. The names are different, and fit into a URL as they are. */
typedef struct hf__named_store {
    char name[HF__STORE_NAME_MAX + 1];
    char *url; /* may have a password */
} hf__named_store;

typedef struct hf__named_stores {
    hf__named_store items[HF__STORES_MAX];
    size_t count;
} hf__named_stores;

/* Adds what --store says, NAME=URL. HF_INVALID: it is wrong, or the name is there already. */
HF_MUST_CHECK hf_status hf__stores_add(hf__named_stores *stores, const char *text, hf_error *err);
/* Adds the lines of a file, NAME URL. HF_CONFIG: one is wrong, or others can read the file. */
HF_MUST_CHECK hf_status hf__stores_read(hf__named_stores *stores, const char *path, hf_error *err);
void hf__stores_free(hf__named_stores *stores);

/* A store to serve. */
typedef struct hf__server_store {
    const char *name; /* "": the only one, which has none */
    hf__view_options view;
} hf__server_store;

typedef struct hf__server_options {
    const char *listen;       /* "127.0.0.1:7433", "[::1]:0", "localhost:7433"; port 0 picks one */
    const hf__tokens *tokens; /* of which viewers must present one; none: on loopback only */
    const char *base;         /* the path that a proxy has it under: "/holdfast"; "": none */
    bool allow_terminate;     /* holders may be ended from the page; needs a token */
    hf__maybe max_lag;        /* /health fails when a network is further behind its source */
    int64_t refresh_ms;       /* how often the view refreshes; 0: every 2 000 */
} hf__server_options;

/*
 * Binds the address, opens a view of each store, which the server owns, and answers on threads of
 * its own. options and stores are copied. Fails with HF_CONFIG when the address is taken or needs a
 * token, or as hf__view_open does. Close it on any one thread.
 */
HF_MUST_CHECK hf_status hf__server_open(const hf__server_options *options,
                                        const hf__server_store *stores, size_t count,
                                        hf__server **server, hf_error *err);
void hf__server_close(hf__server *server); /* NULL is safe */

/* "http://127.0.0.1:7433/", with the base */
const char *hf__server_url(const hf__server *server);

/* Is it "", or like "/holdfast": no slash at its end, and nothing that needs an escape? */
bool hf__is_base_path(const char *text);

extern const struct command cmd_serve;

#endif
