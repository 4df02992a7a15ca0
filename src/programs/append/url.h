/* clickhouse+http(s)://user[:password]@host[:port][/database][?setting=value&…] */
#ifndef HF_APPEND_URL_H
#define HF_APPEND_URL_H

#include "programs/append/target.h"

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

#endif
