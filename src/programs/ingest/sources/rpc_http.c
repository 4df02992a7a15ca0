#include "programs/ingest/sources/rpc.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/http.h"

enum {
    CONNECT_TIMEOUT_MS = 5000,
    LOW_SPEED_BYTES = 100, /* per second: a server is dead if it stays below for the timeout */
    REDIRECTS_MAX = 5,
    RETRY_AFTER_MAX_S = 3600,
};

struct hf__rpc_http {
    const hf__rpc_endpoint *endpoint;
    int stop_fd;
    hf__http_call call;
    CURLM *multi; /* owns the connections */
    struct curl_slist *headers;
    char *url;          /* the endpoint's, or where it redirected to */
    int64_t not_before; /* the server asked for a pause until then */
    bool is_distrusted; /* the next request needs a new connection */
    bool was_cut;       /* the last request ended without an answer */
    bool has_answered;  /* a request was answered as it should be, so that the URL is right */
};

static bool set_up(hf__rpc_http *http)
{
    const hf__rpc_endpoint *endpoint = http->endpoint;
    const hf__http_options options = {
        .connect_ms = CONNECT_TIMEOUT_MS,
        .user = endpoint->user,
        .password = endpoint->password,
    };
    CURLcode failed = CURLE_OK;

    if (!hf__http_call_open(&http->call, &options))
        return false;
#define SET(option, value) failed |= curl_easy_setopt(http->call.easy, CURLOPT_##option, value)
    SET(HTTPHEADER, http->headers);
    SET(ACCEPT_ENCODING, "");
    SET(LOW_SPEED_LIMIT, (long)LOW_SPEED_BYTES);
    SET(LOW_SPEED_TIME, (long)(endpoint->timeout_ms / 1000));
    if (endpoint->ca_file != NULL)
        SET(CAINFO, endpoint->ca_file);
#undef SET
    return failed == CURLE_OK;
}

hf_status hf__rpc_http_open(const hf__rpc_endpoint *endpoint, bool is_known, int stop_fd,
                            hf__rpc_http **http, hf_error *err)
{
    hf__rpc_http *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hf__no_memory(err);
    made->endpoint = endpoint;
    made->stop_fd = stop_fd;
    made->has_answered = is_known;
    made->url = strdup(endpoint->url);
    made->headers = curl_slist_append(NULL, "Content-Type: application/json");
    bool is_set_up = made->headers != NULL && set_up(made);
    made->multi = is_set_up ? curl_multi_init() : NULL;
    if (made->url == NULL || made->multi == NULL) {
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
    hf__http_call_close(&http->call);
    curl_multi_cleanup(http->multi);
    curl_slist_free_all(http->headers);
    free(http->url);
    free(http);
}

/* After a failure, bytes of the old answer may still arrive over a connection that is kept. */
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
static hf_status transfer(hf__rpc_http *http, hf_error *err)
{
    struct curl_waitfd stop = {.fd = http->stop_fd, .events = CURL_WAIT_POLLIN};
    unsigned int stop_count = http->stop_fd >= 0 ? 1 : 0;
    CURLMcode failed = curl_multi_add_handle(http->multi, http->call.easy);
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
    hf__http_call_end(&http->call, message != NULL && message->msg == CURLMSG_DONE
                                       ? message->data.result
                                       : CURLE_ABORTED_BY_CALLBACK);
    curl_multi_remove_handle(http->multi, http->call.easy);
    if (status == HF_OK && failed != CURLM_OK)
        status = hf__fail(err, HF_UNREACHABLE, "%s: %s", http->endpoint->name,
                          curl_multi_strerror(failed));
    return status;
}

static hf_status judge_transfer(hf__rpc_http *http, const char *method, hf__rpc_fault *fault,
                                hf_error *err)
{
    const char *name = http->endpoint->name;
    hf_status status = hf__http_call_status(&http->call);

    if (status == HF_BAD_DATA) {
        *fault = HF__RPC_TOO_LARGE;
        return hf__fail(err, HF_BAD_DATA, "%s: %s: the answer is larger than %zu bytes", name,
                        method, http->call.answer_max);
    }
    if (status == HF_NO_MEMORY)
        return hf__fail(err, HF_NO_MEMORY, "%s: %s: out of memory", name, method);
    http->was_cut = status == HF_UNREACHABLE;
    if (http->was_cut && http->call.code == CURLE_OPERATION_TIMEDOUT)
        *fault = HF__RPC_TOO_SLOW;
    return hf__fail(err, status, "%s: %s: %s", name, method, hf__http_call_trouble(&http->call));
}

/* Changes http->url to where the answer redirects. False: it does not, or may not. */
static bool follow_redirect(hf__rpc_http *http)
{
    char *target = NULL;

    if (http->call.response / 100 != 3 ||
        curl_easy_getinfo(http->call.easy, CURLINFO_REDIRECT_URL, &target) != CURLE_OK ||
        target == NULL || !hf__rpc_may_redirect(http->url, target))
        return false;
    char *url = strdup(target);
    if (url == NULL)
        return false;
    free(http->url);
    http->url = url;
    return true;
}

int64_t hf__rpc_http_not_before(const hf__rpc_http *http)
{
    return http->not_before;
}

static int64_t asked_pause_s(hf__rpc_http *http)
{
    curl_off_t seconds = 0;

    if (curl_easy_getinfo(http->call.easy, CURLINFO_RETRY_AFTER, &seconds) != CURLE_OK ||
        seconds < 0)
        return 0;
    return seconds < RETRY_AFTER_MAX_S ? (int64_t)seconds : RETRY_AFTER_MAX_S;
}

static hf_status judge_response(hf__rpc_http *http, const char *method, hf__rpc_fault *fault,
                                hf_error *err)
{
    const char *name = http->endpoint->name;
    long response = http->call.response;
    bool is_busy = response == 408 || response == 425 || response == 429 || response >= 500;

    if (response == 200) {
        http->has_answered = true;
        return HF_OK;
    }
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
    hf_status status = hf__fail(err, http->has_answered ? HF_UNREACHABLE : HF_CONFIG,
                                "%s: %s: HTTP %ld", name, method, response);
    if (response / 100 == 3)
        hf__hint(err, "it redirects to another place: give that one as the source");
    else if (response == 401 || response == 403)
        hf__hint(err, "check the user, the password or the key in the URL of the source");
    else
        hf__hint(err, "check the path in the URL of the source");
    return status;
}

static hf_status post_once(hf__rpc_http *http, const hf__buf *request, size_t answer_max,
                           hf__buf *answer, hf_error *err)
{
    CURL *easy = http->call.easy;

    hf__http_call_begin(&http->call, answer, answer_max);
    if (curl_easy_setopt(easy, CURLOPT_URL, http->url) != CURLE_OK ||
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)request->length) != CURLE_OK ||
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->data) != CURLE_OK)
        return hf__no_memory(err);
    return transfer(http, err);
}

hf_status hf__rpc_http_post(hf__rpc_http *http, const char *method, const hf__buf *request,
                            size_t answer_max, hf__buf *answer, hf__rpc_fault *fault, hf_error *err)
{
    int redirects = 0;

    *fault = HF__RPC_NO_FAULT;
    http->was_cut = false;
    hf_status status = hf__rpc_pause(http->stop_fd, http->not_before, err);
    if (status == HF_OK && http->is_distrusted)
        status = drop_connections(http, err);
    do {
        if (status == HF_OK)
            status = post_once(http, request, answer_max, answer, err);
    } while (status == HF_OK && http->call.code == CURLE_OK && redirects++ < REDIRECTS_MAX &&
             follow_redirect(http));
    if (status == HF_OK && http->call.code != CURLE_OK)
        status = judge_transfer(http, method, fault, err);
    else if (status == HF_OK)
        status = judge_response(http, method, fault, err);
    if (status != HF_OK)
        http->is_distrusted = true;
    return status;
}
