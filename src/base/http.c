#include "base/http.h"

#include <pthread.h>
#include <string.h>

static pthread_once_t libcurl_once = PTHREAD_ONCE_INIT;

static void init_libcurl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* libcurl's write callback. It returns 0 to end the transfer. */
static size_t keep_answer(char *bytes, size_t one, size_t count, void *arg)
{
    hf__http_call *call = arg;
    size_t size = one * count;

    if (size > call->answer_max - call->answer->length) {
        call->is_too_large = true;
        return 0;
    }
    hf__buf_add(call->answer, bytes, size);
    return call->answer->broken ? 0 : size;
}

static bool set_options(hf__http_call *call, const hf__http_options *options)
{
    CURLcode failed = CURLE_OK;

#define SET(option, value) failed |= curl_easy_setopt(call->easy, CURLOPT_##option, value)
    SET(PROTOCOLS_STR, "http,https");
    SET(NOSIGNAL, 1L);
    SET(USERAGENT, "holdfast/" HF_VERSION);
    SET(TCP_KEEPALIVE, 1L);
    SET(CONNECTTIMEOUT_MS, (long)options->connect_ms);
    SET(ERRORBUFFER, call->trouble);
    SET(WRITEFUNCTION, keep_answer);
    SET(WRITEDATA, call);
    if (options->user != NULL || options->password != NULL) {
        SET(HTTPAUTH, (long)CURLAUTH_BASIC);
        SET(USERNAME, options->user != NULL ? options->user : "");
        SET(PASSWORD, options->password != NULL ? options->password : "");
    }
#undef SET
    return failed == CURLE_OK;
}

bool hf__http_call_open(hf__http_call *call, const hf__http_options *options)
{
    pthread_once(&libcurl_once, init_libcurl);
    *call = (hf__http_call){.easy = curl_easy_init()};
    return call->easy != NULL && set_options(call, options);
}

void hf__http_call_close(hf__http_call *call)
{
    curl_easy_cleanup(call->easy);
    call->easy = NULL;
}

void hf__http_call_begin(hf__http_call *call, hf__buf *answer, size_t answer_max)
{
    hf__buf_clear(answer);
    call->answer = answer;
    call->answer_max = answer_max;
    call->is_too_large = false;
    call->code = CURLE_OK;
    call->response = 0;
    call->trouble[0] = '\0';
}

void hf__http_call_end(hf__http_call *call, CURLcode code)
{
    call->code = code;
    if (curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &call->response) != CURLE_OK)
        call->response = 0;
}

hf_status hf__http_call_status(const hf__http_call *call)
{
    if (call->is_too_large)
        return HF_BAD_DATA;
    if (call->answer->broken)
        return HF_NO_MEMORY;
    switch (call->code) {
    case CURLE_OK: return HF_OK;
    case CURLE_OUT_OF_MEMORY: return HF_NO_MEMORY;
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER: return HF_CONFIG;
    default: return HF_UNREACHABLE;
    }
}

const char *hf__http_call_trouble(const hf__http_call *call)
{
    return call->trouble[0] != '\0' ? call->trouble : curl_easy_strerror(call->code);
}

char *hf__url_part(CURLU *url, CURLUPart part, unsigned int flags)
{
    char *theirs = NULL, *ours = NULL;

    if (curl_url_get(url, part, &theirs, flags) == CURLUE_OK && theirs != NULL)
        ours = strdup(theirs);
    curl_free(theirs);
    return ours;
}
