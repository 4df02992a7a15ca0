/*
 * One HTTP request at a time with libcurl, for programs. This sets what every request needs. The
 * caller sets the URL and the body on `easy` and runs it, alone or in a multi handle. Only one
 * thread at a time may use a call.
 */
#ifndef HF_BASE_HTTP_H
#define HF_BASE_HTTP_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

typedef struct hf__http_options {
    int connect_ms;       /* how long connecting may take */
    const char *user;     /* for basic authentication, which is off when both are NULL */
    const char *password; /* the same */
} hf__http_options;

typedef struct hf__http_call {
    CURL *easy; /* owned */

    /* Of the current request, or the last one. */
    hf__buf *answer;   /* the caller's */
    size_t answer_max; /* bytes; a larger answer ends the request */
    bool is_too_large;
    CURLcode code;
    long response;                 /* the HTTP status; 0: no response came */
    char trouble[CURL_ERROR_SIZE]; /* filled by libcurl */
} hf__http_call;

/*
 * Creates the handle, for http and https only. *call must not move until it is closed; the strings
 * in options are copied. The first call in the process, from any thread, initialises libcurl.
 * Returns false when libcurl cannot be set up; the caller closes the call all the same.
 */
bool hf__http_call_open(hf__http_call *call, const hf__http_options *options);

/* Frees the handle. Safe on a call that is all zero, and twice. */
void hf__http_call_close(hf__http_call *call);

/*
 * Call it before a request. Empties *answer, which then receives the body and must outlive the
 * request.
 */
void hf__http_call_begin(hf__http_call *call, hf__buf *answer, size_t answer_max);

/* Call it after a request, with libcurl's result. Keeps that and the HTTP status. */
void hf__http_call_end(hf__http_call *call, CURLcode code);

/*
 * How the transfer ended, whatever the HTTP status is: HF_OK; HF_BAD_DATA when the answer is too
 * large; HF_NO_MEMORY; HF_CONFIG when trying again cannot help, as with an untrusted certificate;
 * else HF_UNREACHABLE.
 */
hf_status hf__http_call_status(const hf__http_call *call);

/* Why the transfer failed, in libcurl's words. Valid until the next request. */
const char *hf__http_call_trouble(const hf__http_call *call);

/*
 * A part of a URL, as curl_url_get returns it with these flags. The caller frees it with free().
 * NULL when the URL has no such part, or without memory.
 */
char *hf__url_part(CURLU *url, CURLUPart part, unsigned int flags);

#endif
