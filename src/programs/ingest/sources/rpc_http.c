#include "programs/ingest/sources/rpc.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    CONNECT_TIMEOUT_MS = 5000,
    LOW_SPEED_BYTES = 100, /* per second: less than this for the whole timeout is a dead server */
    REDIRECTS_MAX = 5,
    RETRY_AFTER_MAX_S = 3600,
};

struct hf__rpc_http {
    const hf__rpc_endpoint *endpoint;
    int stop_fd;
    CURL *easy;
    CURLM *multi; /* has the connections */
    struct curl_slist *headers;
    char *url;          /* the endpoint's, or where it redirected to */
    int64_t not_before; /* the server asked for a pause until then */
    bool is_distrusted;
    bool was_cut;

    /* Of the request that runs. */
    hf__buf *answer;
    size_t answer_max;
    bool is_too_large;
    char trouble[CURL_ERROR_SIZE];
};

static pthread_once_t libcurl_once = PTHREAD_ONCE_INIT;

static void init_libcurl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t keep_bytes(char *bytes, size_t one, size_t count, void *arg)
{
    hf__rpc_http *http = arg;
    size_t size = one * count;

    if (size > http->answer_max - http->answer->length) {
        http->is_too_large = true;
        return 0;
    }
    hf__buf_add(http->answer, bytes, size);
    return http->answer->broken ? 0 : size;
}

static bool set_options(hf__rpc_http *http)
{
    const hf__rpc_endpoint *endpoint = http->endpoint;
    CURLcode failed = CURLE_OK;

#define SET(option, value) failed |= curl_easy_setopt(http->easy, CURLOPT_##option, value)
    SET(PROTOCOLS_STR, "http,https");
    SET(NOSIGNAL, 1L);
    SET(HTTPHEADER, http->headers);
    SET(USERAGENT, "holdfast/" HF_VERSION);
    SET(ACCEPT_ENCODING, "");
    SET(TCP_KEEPALIVE, 1L);
    SET(CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    SET(LOW_SPEED_LIMIT, (long)LOW_SPEED_BYTES);
    SET(LOW_SPEED_TIME, (long)(endpoint->timeout_ms / 1000));
    SET(ERRORBUFFER, http->trouble);
    SET(WRITEFUNCTION, keep_bytes);
    SET(WRITEDATA, http);
    if (endpoint->user != NULL || endpoint->password != NULL) {
        SET(HTTPAUTH, (long)CURLAUTH_BASIC);
        SET(USERNAME, endpoint->user != NULL ? endpoint->user : "");
        SET(PASSWORD, endpoint->password != NULL ? endpoint->password : "");
    }
    if (endpoint->ca_file != NULL)
        SET(CAINFO, endpoint->ca_file);
#undef SET
    return failed == CURLE_OK;
}

hf_status hf__rpc_http_open(const hf__rpc_endpoint *endpoint, int stop_fd, hf__rpc_http **http,
                            hf_error *err)
{
    pthread_once(&libcurl_once, init_libcurl);
    hf__rpc_http *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hf__no_memory(err);
    made->endpoint = endpoint;
    made->stop_fd = stop_fd;
    made->url = strdup(endpoint->url);
    made->easy = curl_easy_init();
    made->multi = curl_multi_init();
    made->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (made->url == NULL || made->easy == NULL || made->multi == NULL || made->headers == NULL ||
        !set_options(made)) {
        hf__rpc_http_close(made);
        return hf__fail(err, HF_NO_MEMORY, "%s: libcurl cannot be set up", endpoint->name);
    }
    *http = made;
    return HF_OK;
}

void hf__rpc_http_close(hf__rpc_http *http)
{
    if (http == NULL)
        return;
    curl_easy_cleanup(http->easy);
    curl_multi_cleanup(http->multi);
    curl_slist_free_all(http->headers);
    free(http->url);
    free(http);
}

/* Bytes of the answer that failed may still come over a connection that is kept. */
static hf_status drop_connections(hf__rpc_http *http, hf_error *err)
{
    CURLM *multi = curl_multi_init();

    if (multi == NULL)
        return hf__no_memory(err);
    curl_multi_cleanup(http->multi);
    http->multi = multi;
    http->is_distrusted = false;
    return HF_OK;
}

bool hf__rpc_http_was_cut(const hf__rpc_http *http)
{
    return http->was_cut;
}

void hf__rpc_http_distrust(hf__rpc_http *http)
{
    http->is_distrusted = true;
}

hf_status hf__rpc_pause(int stop_fd, int64_t deadline, hf_error *err)
{
    struct pollfd stop = {.fd = stop_fd, .events = POLLIN};

    for (;;) {
        int ready = poll(&stop, 1, hf__left_ms(deadline));
        if (ready > 0)
            return hf__fail(err, HF_INTERRUPTED, "told to stop");
        if (ready < 0 && errno != EINTR)
            return hf__fail_errno(err, HF_SYSTEM, errno, "cannot wait");
        if (hf__now_ms() >= deadline)
            return HF_OK;
    }
}

/* Runs the handle to its end, or until stop_fd is readable. */
static hf_status transfer(hf__rpc_http *http, CURLcode *code, hf_error *err)
{
    struct curl_waitfd stop = {.fd = http->stop_fd, .events = CURL_WAIT_POLLIN};
    unsigned int stop_count = http->stop_fd >= 0 ? 1 : 0;
    CURLMcode failed = curl_multi_add_handle(http->multi, http->easy);
    hf_status status = HF_OK;
    int running = 1;

    while (failed == CURLM_OK && status == HF_OK) {
        failed = curl_multi_perform(http->multi, &running);
        if (failed != CURLM_OK || running == 0)
            break;
        failed = curl_multi_poll(http->multi, &stop, stop_count, 1000, NULL);
        status = hf__rpc_pause(http->stop_fd, 0, err);
    }
    int left = 0;
    const CURLMsg *message = curl_multi_info_read(http->multi, &left);
    *code = message != NULL && message->msg == CURLMSG_DONE ? message->data.result
                                                            : CURLE_ABORTED_BY_CALLBACK;
    curl_multi_remove_handle(http->multi, http->easy);
    if (status == HF_OK && failed != CURLM_OK)
        status = hf__fail(err, HF_UNREACHABLE, "%s: %s", http->endpoint->name,
                          curl_multi_strerror(failed));
    return status;
}

/* Faults of what was configured here; all others may pass. */
static bool is_our_fault(CURLcode code)
{
    switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER: return true;
    default: return false;
    }
}

static hf_status judge_transfer(hf__rpc_http *http, const char *method, CURLcode code,
                                hf__rpc_fault *fault, hf_error *err)
{
    const char *name = http->endpoint->name;
    const char *why = http->trouble[0] != '\0' ? http->trouble : curl_easy_strerror(code);

    if (http->is_too_large) {
        *fault = HF__RPC_TOO_LARGE;
        return hf__fail(err, HF_BAD_DATA, "%s: %s: the answer is larger than %zu bytes", name,
                        method, http->answer_max);
    }
    if (http->answer->broken || code == CURLE_OUT_OF_MEMORY)
        return hf__fail(err, HF_NO_MEMORY, "%s: %s: out of memory", name, method);
    if (is_our_fault(code))
        return hf__fail(err, HF_CONFIG, "%s: %s: %s", name, method, why);
    http->was_cut = true;
    if (code == CURLE_OPERATION_TIMEDOUT)
        *fault = HF__RPC_TOO_SLOW;
    return hf__fail(err, HF_UNREACHABLE, "%s: %s: %s", name, method, why);
}

/* Whether *url was changed and is to be asked instead. */
static bool follow_redirect(hf__rpc_http *http, long response)
{
    char *target = NULL;

    if (response / 100 != 3 ||
        curl_easy_getinfo(http->easy, CURLINFO_REDIRECT_URL, &target) != CURLE_OK ||
        target == NULL || !hf__rpc_may_redirect(http->url, target))
        return false;
    char *url = strdup(target);
    if (url == NULL)
        return false;
    free(http->url);
    http->url = url;
    return true;
}

static int64_t asked_pause_s(hf__rpc_http *http)
{
    curl_off_t seconds = 0;

    if (curl_easy_getinfo(http->easy, CURLINFO_RETRY_AFTER, &seconds) != CURLE_OK || seconds < 0)
        return 0;
    return seconds < RETRY_AFTER_MAX_S ? (int64_t)seconds : RETRY_AFTER_MAX_S;
}

static hf_status judge_response(hf__rpc_http *http, const char *method, long response,
                                hf__rpc_fault *fault, hf_error *err)
{
    const char *name = http->endpoint->name;
    bool is_busy = response == 408 || response == 425 || response == 429 || response >= 500;

    if (response == 200)
        return HF_OK;
    if (response == 504)
        *fault = HF__RPC_TOO_SLOW;
    if (is_busy) {
        int64_t seconds = asked_pause_s(http);
        if (seconds == 0)
            return hf__fail(err, HF_UNREACHABLE, "%s: %s: HTTP %ld", name, method, response);
        http->not_before = hf__now_ms() + seconds * 1000;
        return hf__fail(err, HF_UNREACHABLE, "%s: %s: HTTP %ld; it asks for a pause of %d s", name,
                        method, response, (int)seconds);
    }
    hf_status status = hf__fail(err, HF_CONFIG, "%s: %s: HTTP %ld", name, method, response);
    if (response / 100 == 3)
        hf__hint(err, "it redirects to another place: give that one as the source");
    else if (response == 401 || response == 403)
        hf__hint(err, "check the user, the password or the key in the URL of the source");
    else
        hf__hint(err, "check the path in the URL of the source");
    return status;
}

static hf_status post_once(hf__rpc_http *http, const hf__buf *request, CURLcode *code,
                           long *response, hf_error *err)
{
    hf__buf_clear(http->answer);
    http->is_too_large = false;
    http->trouble[0] = '\0';
    *response = 0;
    if (curl_easy_setopt(http->easy, CURLOPT_URL, http->url) != CURLE_OK ||
        curl_easy_setopt(http->easy, CURLOPT_POSTFIELDSIZE, (long)request->length) != CURLE_OK ||
        curl_easy_setopt(http->easy, CURLOPT_POSTFIELDS, request->data) != CURLE_OK)
        return hf__no_memory(err);
    hf_status status = transfer(http, code, err);
    if (status == HF_OK && *code == CURLE_OK)
        curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, response);
    return status;
}

hf_status hf__rpc_http_post(hf__rpc_http *http, const char *method, const hf__buf *request,
                            size_t answer_max, hf__buf *answer, hf__rpc_fault *fault, hf_error *err)
{
    CURLcode code = CURLE_OK;
    long response = 0;
    int redirects = 0;

    *fault = HF__RPC_NO_FAULT;
    http->was_cut = false;
    hf_status status = hf__rpc_pause(http->stop_fd, http->not_before, err);
    if (status == HF_OK && http->is_distrusted)
        status = drop_connections(http, err);
    http->answer = answer;
    http->answer_max = answer_max;
    do {
        if (status == HF_OK)
            status = post_once(http, request, &code, &response, err);
    } while (status == HF_OK && code == CURLE_OK && redirects++ < REDIRECTS_MAX &&
             follow_redirect(http, response));
    if (status == HF_OK && code != CURLE_OK)
        status = judge_transfer(http, method, code, fault, err);
    else if (status == HF_OK)
        status = judge_response(http, method, response, fault, err);
    if (status != HF_OK)
        http->is_distrusted = true;
    http->answer = NULL;
    return status;
}
