/* What an answer over HTTP means. */
#include "programs/append/http.h"

#include <string.h>

#include "base/text.h"

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

static bool may_have_arrived(const hf__call *call)
{
    long request = 0;

    return curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &request) != CURLE_OK ||
           request > 0;
}

static hf_status judge_transfer(hf__http *http, const hf__call *call,
                                const hf__statement *statement, hf_error *err)
{
    const char *name = http->base.name;
    const char *why = call->trouble[0] != '\0' ? call->trouble : curl_easy_strerror(call->code);

    http->base.fault.was_sent = may_have_arrived(call);
    if (call->is_too_large)
        return hf__fail(err, HF_DATABASE, "%s: cannot %s: the answer is larger than %zu bytes",
                        name, statement->what, call->answer_max);
    if (call->answer.broken || call->code == CURLE_OUT_OF_MEMORY)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    if (is_our_fault(call->code))
        return hf__fail(err, HF_CONFIG, "%s: cannot %s: %s", name, statement->what, why);
    return hf__fail(err, HF_UNREACHABLE, "%s: cannot %s: %s", name, statement->what, why);
}

static hf_status refuse_redirect(hf__http *http, const hf__call *call, hf_error *err)
{
    char shown[160];
    char *place = NULL;

    if (curl_easy_getinfo(call->easy, CURLINFO_REDIRECT_URL, &place) != CURLE_OK || place == NULL)
        place = "";
    hf_status status =
        hf__fail(err, HF_CONFIG, "%s redirects (HTTP %ld) to '%s'", http->base.name, call->response,
                 hf__show(shown, sizeof shown, place, strlen(place)));
    hf__hint(err, "rows go to the server that was named, or nowhere: give its own address");
    return status;
}

static hf_status refuse_stranger(hf__http *http, const hf__call *call,
                                 const hf__statement *statement, hf_error *err)
{
    char shown[120];

    hf_status status =
        hf__fail(err, HF_CONFIG, "%s: cannot %s: it is no ClickHouse: HTTP %ld, '%s'",
                 http->base.name, statement->what, call->response,
                 hf__show(shown, sizeof shown, call->answer.data, call->answer.length));
    hf__hint(err, "give the address of ClickHouse's HTTP interface, usually port 8123");
    return status;
}

/* An exception may stand behind rows that had gone out before it. */
static const char *find_exception(const hf__call *call)
{
    const char *text = call->answer.data;

    if (hf__exception_code(text) != 0)
        return text;
    for (const char *at = text; (at = strstr(at, "\nCode: ")) != NULL; at++)
        if (hf__exception_code(at + 1) != 0)
            return at + 1;
    return NULL;
}

hf_status hf__http_judge(hf__http *http, const hf__call *call, const hf__statement *statement,
                         bool during_rows, hf_error *err)
{
    if (call->code != CURLE_OK)
        return judge_transfer(http, call, statement, err);
    http->base.fault.was_sent = true;
    if (call->response / 100 == 3)
        return refuse_redirect(http, call, err);
    const char *exception = find_exception(call);
    bool may_be_data = call->response == 200 && call->exception_code == 0 && !during_rows &&
                       exception != call->answer.data;
    if (exception != NULL && !may_be_data)
        return hf__target_refused(&http->base, statement, exception, strlen(exception), during_rows,
                                  err);
    if (call->exception_code != 0 ||
        (during_rows && call->response == 200 && call->answer.length > 0))
        return hf__target_refused(&http->base, statement, call->answer.data, call->answer.length,
                                  during_rows, err);
    return call->response == 200 ? HF_OK : refuse_stranger(http, call, statement, err);
}
