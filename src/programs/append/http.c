#include "programs/append/http.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "programs/append/quote.h"

enum {
    CONNECT_TIMEOUT_MS = 10000,
    STATEMENT_MS = 60000,
    KILLED_MS = 10000, /* for the end of a statement that was killed */
    ANSWER_MAX = 64 << 20,
    SIDE_ANSWER_MAX = 1 << 20,
    HEAD_MAX = 12 << 10,
};

static pthread_once_t libcurl_once = PTHREAD_ONCE_INIT;

static void init_libcurl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* ---- one call ------------------------------------------------------------------------------------ */

static size_t keep_answer(char *bytes, size_t one, size_t count, void *arg)
{
    hf__call *call = arg;
    size_t size = one * count;

    if (size > call->answer_max - call->answer.length) {
        call->is_too_large = true;
        return 0;
    }
    hf__buf_add(&call->answer, bytes, size);
    return call->answer.broken ? 0 : size;
}

static size_t note_header(char *bytes, size_t one, size_t count, void *arg)
{
    static const char name[] = "X-ClickHouse-Exception-Code:";
    hf__call *call = arg;
    size_t size = one * count;
    char number[16] = "";

    if (size > sizeof name && strncasecmp(bytes, name, sizeof name - 1) == 0) {
        size_t length = size - (sizeof name - 1);
        memcpy(number, bytes + sizeof name - 1,
               length < sizeof number ? length : sizeof number - 1);
        call->exception_code = (int)strtol(number, NULL, 10);
    }
    return size;
}

static bool set_up(const hf__http *http, hf__call *call)
{
    CURLcode failed = CURLE_OK;

    call->easy = curl_easy_init();
    if (call->easy == NULL)
        return false;
#define SET(option, value) failed |= curl_easy_setopt(call->easy, CURLOPT_##option, value)
    SET(PROTOCOLS_STR, "http,https");
    SET(NOSIGNAL, 1L);
    SET(HTTPHEADER, http->headers);
    SET(USERAGENT, "holdfast/" HF_VERSION);
    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(TCP_KEEPALIVE, 1L);
    SET(CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    SET(ERRORBUFFER, call->trouble);
    SET(WRITEFUNCTION, keep_answer);
    SET(WRITEDATA, call);
    SET(HEADERFUNCTION, note_header);
    SET(HEADERDATA, call);
    SET(PRIVATE, call);
    SET(POST, 1L);
    if (http->url.user[0] != '\0' || http->url.password != NULL) {
        SET(HTTPAUTH, (long)CURLAUTH_BASIC);
        SET(USERNAME, http->url.user[0] != '\0' ? http->url.user : "default");
        SET(PASSWORD, http->url.password != NULL ? http->url.password : "");
    }
#undef SET
    return failed == CURLE_OK;
}

static void add_parameter(hf__buf *url, const char *name, const char *value)
{
    char *encoded = curl_easy_escape(NULL, value, 0);

    if (encoded == NULL)
        url->broken = true;
    else
        hf__buf_printf(url, "%c%s=%s", strchr(url->data, '?') != NULL ? '&' : '?', name, encoded);
    curl_free(encoded);
}

hf_status hf__call_begin(hf__http *http, hf__call *call, const hf__statement *statement,
                         const char *extra, hf_error *err)
{
    hf__buf_clear(&call->url);
    hf__buf_clear(&call->answer);
    hf__buf_puts(&call->answer, "");
    hf__buf_puts(&call->url, http->url.base);
    add_parameter(&call->url, "database", http->url.database);
    if (statement->query_id != NULL)
        add_parameter(&call->url, "query_id", statement->query_id);
    if (http->url.settings[0] != '\0')
        hf__buf_printf(&call->url, "&%s", http->url.settings);
    if (statement->settings != NULL && statement->settings[0] != '\0')
        hf__buf_printf(&call->url, "&%s", statement->settings);
    hf__buf_puts(&call->url, extra);
    if (statement->query_id != NULL) /* what has the id is ended by us, or not at all */
        hf__buf_puts(&call->url, "&replace_running_query=0");
    call->is_too_large = false;
    call->exception_code = 0;
    call->trouble[0] = '\0';
    call->response = 0;
    call->answer_max = call == &http->side ? SIDE_ANSWER_MAX : ANSWER_MAX;
    /* Over a connection that was used before libcurl sends again what got no answer. */
    bool fresh = call == &http->call && (http->is_fresh || statement->is_once);
    bool good = !call->url.broken && !call->answer.broken &&
                curl_easy_setopt(call->easy, CURLOPT_URL, call->url.data) == CURLE_OK &&
                curl_easy_setopt(call->easy, CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L) == CURLE_OK &&
                curl_multi_add_handle(http->multi, call->easy) == CURLM_OK;
    http->is_fresh = http->is_fresh && call != &http->call;
    call->is_running = good;
    return good ? HF_OK : hf__fail(err, HF_NO_MEMORY, "out of memory");
}

void hf__call_end(hf__http *http, hf__call *call)
{
    curl_multi_remove_handle(http->multi, call->easy);
    call->is_running = false;
}

static void note_ends(hf__http *http)
{
    int left = 0;
    const CURLMsg *message;

    while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
        hf__call *call = message->easy_handle == http->call.easy ? &http->call : &http->side;
        if (message->msg != CURLMSG_DONE)
            continue;
        call->code = message->data.result;
        curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &call->response);
        call->is_running = false;
    }
}

hf_status hf__http_turn(hf__http *http, struct curl_waitfd *fds, unsigned count, int wait_ms,
                        hf_error *err)
{
    int running = 0;
    CURLMcode failed = curl_multi_perform(http->multi, &running);

    note_ends(http);
    if (failed == CURLM_OK && http->call.is_running)
        failed = curl_multi_poll(http->multi, fds, count, wait_ms, NULL);
    return failed == CURLM_OK ? HF_OK
                              : hf__fail(err, HF_UNREACHABLE, "%s: %s", http->base.name,
                                         curl_multi_strerror(failed));
}

/* ---- statements ----------------------------------------------------------------------------------- */

/* Until it is done. A long one is watched, and killed when the append must not go on. */
static hf_status await_end(hf__http *http, const hf__statement *statement, hf_error *err)
{
    int64_t limit = statement->limit_ms == 0 ? STATEMENT_MS : statement->limit_ms;
    int64_t deadline = hf__deadline(limit);
    hf__watch watch = {.query_id = limit < 0 ? statement->query_id : NULL};
    bool gives_way = statement->gives_way && hf__halt_get(http->base.halt) == HF__GO_ON;
    hf_status status = HF_OK;

    while (status == HF_OK && http->call.is_running) {
        struct curl_waitfd halt = {.fd = http->base.halt->fd, .events = CURL_WAIT_POLLIN};
        bool halts = watch.query_id != NULL && !watch.kill_wanted;
        int wait_ms = hf__left_ms(deadline);
        if (wait_ms == 0) {
            http->base.fault.was_sent = true;
            return hf__fail(err, HF_UNREACHABLE, "%s: cannot %s: no answer within %d s",
                            http->base.name, statement->what, (int)(limit / 1000));
        }
        status = hf__http_turn(http, &halt, halts || gives_way ? 1 : 0,
                               wait_ms < 0 || wait_ms > 100 ? 100 : wait_ms, err);
        if (gives_way && hf__halt_get(http->base.halt) == HF__HALT_ASKED)
            return hf__halt_check(http->base.halt, err);
        if (halts && hf__halt_get(http->base.halt) != HF__GO_ON) {
            watch.kill_wanted = true;
            deadline = hf__deadline(limit = KILLED_MS);
        }
        if (status == HF_OK && watch.query_id != NULL)
            status = hf__watch_tick(http, &watch, err);
    }
    http->base.fault.was_ended = watch.kill_sent;
    return status;
}

/*
 * A server takes a body that was cut for a whole one, and a list that was cut behind an item for a list. A
 * head arrives whole or counts for nothing; older servers take 16 KiB of it.
 */
static const char *write_head(const hf__statement *statement, hf__buf *extra)
{
    char *encoded = statement->is_list ? curl_easy_escape(NULL, statement->sql, 0) : NULL;
    bool fits = encoded != NULL && strlen(encoded) <= HEAD_MAX;

    /* An answer is held back in memory: on a full disk the server could not even count. */
    hf__buf_puts(extra, "&wait_end_of_query=1&buffer_size=1048576&default_format=TabSeparated");
    if (fits)
        hf__buf_printf(extra, "&query=%s", encoded);
    curl_free(encoded);
    return fits ? "" : statement->sql;
}

static hf_status query(hf__target *target, const hf__statement *statement, hf__buf *answer,
                       hf_error *err)
{
    hf__http *http = (hf__http *)target;
    hf__call *call = &http->call;
    hf__buf extra = {0};
    const char *body = write_head(statement, &extra);

    /* The answer is held back until all is known to be well: no exception in the middle of a 200. */
    hf_status status = extra.broken ||
                               curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                                (curl_off_t)strlen(body)) != CURLE_OK ||
                               curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, body) != CURLE_OK
                           ? hf__fail(err, HF_NO_MEMORY, "out of memory")
                           : hf__call_begin(http, call, statement, extra.data, err);
    hf__buf_free(&extra);
    if (status == HF_OK)
        status = await_end(http, statement, err);
    hf__call_end(http, call);
    if (http->side.is_running)
        hf__call_end(http, &http->side);
    if (status == HF_OK)
        status = hf__http_judge(http, call, statement, false, err);
    if (status == HF_OK)
        hf__buf_add(answer, call->answer.data, call->answer.length);
    return status;
}

static void reconnect(hf__target *target)
{
    ((hf__http *)target)->is_fresh = true;
}

/* ---- life ------------------------------------------------------------------------------------------ */

static void close_call(hf__call *call)
{
    curl_easy_cleanup(call->easy);
    hf__buf_free(&call->url);
    hf__buf_free(&call->body);
    hf__buf_free(&call->answer);
}

static void close_http(hf__target *target)
{
    hf__http *http = (hf__http *)target;

    close_call(&http->call);
    close_call(&http->side);
    curl_multi_cleanup(http->multi);
    curl_slist_free_all(http->headers);
    hf__server_url_free(&http->url);
    free(http);
}

static hf_status open_sibling(hf__target *target, const char *host, hf__target **sibling,
                              hf_error *err);

static const hf__target_ops http_ops = {
    .query = query,
    .insert = hf__http_insert,
    .open_sibling = open_sibling,
    .reconnect = reconnect,
    .close = close_http,
};

/* http->url has been read. Frees it where it fails. */
static hf_status make_ready(hf__http *http, const hf__halt *halt, hf__target **target,
                            hf_error *err)
{
    http->base = (hf__target){.ops = &http_ops,
                              .name = http->url.name,
                              .database = http->url.database,
                              .user = http->url.user,
                              .halt = halt};
    http->multi = curl_multi_init();
    /* Poco, in ClickHouse, answers 100 whatever it thinks of the request: waiting for it is of no use. */
    http->headers = curl_slist_append(NULL, "Expect:");
    if (http->multi == NULL || http->headers == NULL || !set_up(http, &http->call) ||
        !set_up(http, &http->side)) {
        close_http(&http->base);
        return hf__fail(err, HF_NO_MEMORY, "libcurl cannot be set up");
    }
    *target = &http->base;
    return HF_OK;
}

static hf_status open_sibling(hf__target *target, const char *host, hf__target **sibling,
                              hf_error *err)
{
    hf__http *http = calloc(1, sizeof *http);

    if (http == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    hf_status status = hf__server_url_at(&((const hf__http *)target)->url, host, &http->url, err);
    if (status != HF_OK) {
        free(http);
        return status;
    }
    return make_ready(http, target->halt, sibling, err);
}

hf_status hf__http_open(const hf__target_options *options, hf__target **target, hf_error *err)
{
    pthread_once(&libcurl_once, init_libcurl);
    hf__http *http = calloc(1, sizeof *http);
    if (http == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    hf_status status = hf__server_url_read(options->url, options->password_file, &http->url, err);
    if (status != HF_OK) {
        free(http);
        return status;
    }
    return make_ready(http, options->halt, target, err);
}
