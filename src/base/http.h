/*
 * One HTTP request at a time with libcurl, for programs. The caller sets the address and the body
 * on `easy`, and lets it run, alone or in a multi handle; what every request needs is here. A call
 * is used by one thread at a time.
 */
#ifndef HF_BASE_HTTP_H
#define HF_BASE_HTTP_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

typedef struct hf__http_options {
    int connect_ms;       /* for a connection */
    const char *user;     /* of basic authentication; NULL, like the password: nobody */
    const char *password; /* NULL: none */
} hf__http_options;

typedef struct hf__http_call {
    CURL *easy; /* owned */

    /* Of the request that runs, or ran last. */
    hf__buf *answer;   /* the caller's */
    size_t answer_max; /* bytes; more end the request */
    bool is_too_large;
    CURLcode code;
    long response; /* HTTP's status; 0: none came */
    char trouble[CURL_ERROR_SIZE];
} hf__http_call;

/*
 * Makes the handle, for http and https alone; *call must stay where it is until it is closed. What
 * options point to is copied. Initialises libcurl once in the process, from whichever thread comes
 * first. False: libcurl cannot be set up; close it all the same.
 */
bool hf__http_call_open(hf__http_call *call, const hf__http_options *options);
void hf__http_call_close(hf__http_call *call); /* safe on one that is all zero */

/*
 * Before a request: what it brings goes to *answer, which is emptied and must live until its end.
 */
void hf__http_call_begin(hf__http_call *call, hf__buf *answer, size_t answer_max);

/* After it: keeps libcurl's result and the status of HTTP. */
void hf__http_call_end(hf__http_call *call, CURLcode code);

/*
 * What the transfer came to, whatever the answer says: HF_OK; HF_BAD_DATA for an answer that is too
 * large; HF_NO_MEMORY; HF_CONFIG for what cannot get better by itself, such as a certificate that
 * is not trusted; else HF_UNREACHABLE.
 */
hf_status hf__http_call_status(const hf__http_call *call);

/* Why it failed, in libcurl's words. Valid until the next request. */
const char *hf__http_call_trouble(const hf__http_call *call);

/*
 * A part of an address, as curl_url_get reads it with flags. The caller frees it; NULL when the
 * address has no such part, or without memory.
 */
char *hf__url_part(CURLU *url, CURLUPart part, unsigned int flags);

#endif
