#include "programs/append/target/http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/time.h"

enum {
    CONNECT_TIMEOUT_MS = 10000,
    SILENT_MS = 60000, /* unless the caller says otherwise */
    KILLED_MS = 10000, /* how long to wait for the end of a statement that was killed */
    ANSWER_MAX = 64 << 20,
    SIDE_ANSWER_MAX = 1 << 20,
    HEAD_MAX = 12 << 10, /* of a statement in the URL; older servers accept 16 KiB in all */
};

/*
 * For our own questions, whatever the user's profile says: the rows that were asked for and no
 * others, all of them or a refusal.
 */
#define AS_A_WHOLE                                                                                 \
    "extremes=0&result_overflow_mode=throw&read_overflow_mode=throw&group_by_overflow_mode=throw"  \
    "&sort_overflow_mode=throw&set_overflow_mode=throw&distinct_overflow_mode=throw"               \
    "&timeout_overflow_mode=throw"

/* ---- One request ----------------------------------------------------------------------------- */

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
    const char *user = http->url.user[0] != '\0' ? http->url.user : NULL;
    const hf__http_options options = {
        .connect_ms = CONNECT_TIMEOUT_MS,
        .user = user == NULL && http->url.password != NULL ? "default" : user,
        .password = http->url.password,
    };
    CURLcode failed = CURLE_OK;

    if (!hf__http_call_open(&call->curl, &options))
        return false;
#define SET(option, value) failed |= curl_easy_setopt(call->curl.easy, CURLOPT_##option, value)
    SET(HTTPHEADER, http->headers);
    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(HEADERFUNCTION, note_header);
    SET(HEADERDATA, call);
    SET(POST, 1L);
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

static void add_settings(hf__buf *url, const char *settings)
{
    if (settings[0] != '\0')
        hf__buf_printf(url, "&%s", settings);
}

hf_status hf__call_begin(hf__http *http, hf__call *call, const hf__statement *statement,
                         const char *extra, hf_error *err)
{
    hf__http_call_begin(&call->curl, &call->answer,
                        call == &http->side ? SIDE_ANSWER_MAX : ANSWER_MAX);
    hf__buf_puts(&call->answer, ""); /* it is a string, even without an answer */
    hf__buf_clear(&call->url);
    hf__buf_puts(&call->url, http->url.base);
    add_parameter(&call->url, "database", http->url.database);
    if (statement->query_id != NULL)
        add_parameter(&call->url, "query_id", statement->query_id);
    add_settings(&call->url, http->url.settings);
    if (statement->is_users)
        add_settings(&call->url, http->url.shaping);
    else
        add_settings(&call->url, AS_A_WHOLE);
    if (statement->settings != NULL)
        add_settings(&call->url, statement->settings);
    hf__buf_puts(&call->url, extra);
    if (statement->query_id != NULL) /* the server must not kill what runs under the id */
        hf__buf_puts(&call->url, "&replace_running_query=0");
    call->exception_code = 0;
    /* On a connection that was used before, libcurl repeats a request that got no answer. */
    bool fresh = call == &http->call && (http->is_fresh || statement->is_once);
    bool good =
        !call->url.broken && !call->answer.broken &&
        curl_easy_setopt(call->curl.easy, CURLOPT_URL, call->url.data) == CURLE_OK &&
        curl_easy_setopt(call->curl.easy, CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L) == CURLE_OK &&
        curl_multi_add_handle(http->multi, call->curl.easy) == CURLM_OK;
    http->is_fresh = http->is_fresh && call != &http->call;
    call->is_running = good;
    return good ? HF_OK : hf__no_memory(err);
}

static bool set_body(hf__call *call, const char *bytes, size_t size)
{
    CURL *easy = call->curl.easy;

    return curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_POSTFIELDS, bytes) == CURLE_OK;
}

void hf__call_end(hf__http *http, hf__call *call)
{
    curl_multi_remove_handle(http->multi, call->curl.easy);
    call->is_running = false;
}

static void note_ends(hf__http *http)
{
    int left = 0;
    const CURLMsg *message;

    while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
        hf__call *call = message->easy_handle == http->call.curl.easy ? &http->call : &http->side;
        if (message->msg != CURLMSG_DONE)
            continue;
        hf__http_call_end(&call->curl, message->data.result);
        call->is_running = false;
    }
}

hf_status hf__http_step(hf__http *http, struct curl_waitfd *fds, unsigned count, int wait_ms,
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

/* ---- What an answer means -------------------------------------------------------------------- */

static bool may_have_arrived(const hf__call *call)
{
    long request = 0;

    return curl_easy_getinfo(call->curl.easy, CURLINFO_REQUEST_SIZE, &request) != CURLE_OK ||
           request > 0;
}

static hf_status judge_transfer(hf__http *http, const hf__call *call,
                                const hf__statement *statement, hf_error *err)
{
    const char *name = http->base.name;
    hf_status status = hf__http_call_status(&call->curl);

    http->base.fault.was_sent = may_have_arrived(call);
    if (status == HF_BAD_DATA)
        return hf__fail(err, HF_DATABASE, "%s: cannot %s: the answer is larger than %zu bytes",
                        name, statement->what, call->curl.answer_max);
    if (status == HF_NO_MEMORY)
        return hf__no_memory(err);
    return hf__fail(err, status, "%s: cannot %s: %s", name, statement->what,
                    hf__http_call_trouble(&call->curl));
}

static hf_status refuse_redirect(hf__http *http, const hf__call *call, hf_error *err)
{
    char shown[160];
    char *place = NULL;

    if (curl_easy_getinfo(call->curl.easy, CURLINFO_REDIRECT_URL, &place) != CURLE_OK ||
        place == NULL)
        place = "";
    hf_status status =
        hf__fail(err, HF_CONFIG, "%s redirects (HTTP %ld) to '%s'", http->base.name,
                 call->curl.response, hf__show(shown, sizeof shown, place, strlen(place)));
    hf__hint(err, "rows go to the server that was named, or nowhere: give its own address");
    return status;
}

static hf_status refuse_stranger(hf__http *http, const hf__call *call,
                                 const hf__statement *statement, hf_error *err)
{
    char shown[120];

    hf_status status =
        hf__fail(err, HF_CONFIG, "%s: cannot %s: it is no ClickHouse: HTTP %ld, '%s'",
                 http->base.name, statement->what, call->curl.response,
                 hf__show(shown, sizeof shown, call->answer.data, call->answer.length));
    hf__hint(err, "give the address of ClickHouse's HTTP interface, usually port 8123");
    return status;
}

/* An exception may follow rows that were sent before it. */
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
    if (call->curl.code != CURLE_OK)
        return judge_transfer(http, call, statement, err);
    http->base.fault.was_sent = true;
    if (call->curl.response / 100 == 3)
        return refuse_redirect(http, call, err);
    const char *exception = find_exception(call);
    bool may_be_data = call->curl.response == 200 && call->exception_code == 0 && !during_rows &&
                       exception != call->answer.data;
    if (exception != NULL && !may_be_data)
        return hf__target_refused(&http->base, statement, exception, strlen(exception), during_rows,
                                  err);
    if (call->exception_code != 0 ||
        (during_rows && call->curl.response == 200 && call->answer.length > 0))
        return hf__target_refused(&http->base, statement, call->answer.data, call->answer.length,
                                  during_rows, err);
    return call->curl.response == 200 ? HF_OK : refuse_stranger(http, call, statement, err);
}

/* ---- Watching a long statement --------------------------------------------------------------- */

enum {
    LOOK_EVERY_MS = 1000,
    ANSWER_MS = 10000,
};

static void write_look(hf__buf *sql, const hf__watch *watch)
{
    hf__buf_puts(sql, watch->is_kill ? "KILL QUERY WHERE query_id = "
                                     : "SELECT count() FROM system.processes WHERE query_id = ");
    hf__quote_text(sql, watch->query_id);
    if (watch->is_kill)
        hf__buf_puts(sql, " ASYNC");
}

static hf_status ask(hf__http *http, hf__watch *watch, hf_error *err)
{
    hf__call *side = &http->side;
    const hf__statement look = {.what = "look after the statement"};

    watch->is_kill = watch->kill_wanted && !watch->kill_sent;
    watch->kill_sent = watch->kill_sent || watch->is_kill;
    hf__buf_clear(&side->body);
    write_look(&side->body, watch);
    watch->answer_by =
        hf__deadline(ANSWER_MS < http->base.silent_ms ? ANSWER_MS : http->base.silent_ms);
    if (side->body.broken || !set_body(side, side->body.data, side->body.length))
        return hf__no_memory(err);
    return hf__call_begin(http, side, &look, "&default_format=TabSeparated", err);
}

/* A refusal is an answer, too: the server is alive, it only does not tell. */
static void take_answer(hf__http *http, hf__watch *watch)
{
    const hf__call *side = &http->side;
    bool answered = side->curl.code == CURLE_OK;
    bool told = answered && side->curl.response == 200 && side->exception_code == 0 &&
                side->answer.length > 0 && strspn(side->answer.data, "0123456789") > 0;

    hf__call_end(http, &http->side);
    watch->answer_by = 0;
    watch->next_ms = hf__now_ms() + LOOK_EVERY_MS;
    if (answered)
        watch->silent_since = 0;
    else if (watch->silent_since == 0)
        watch->silent_since = hf__now_ms();
    if (watch->is_kill || !told)
        return;
    if (strtol(side->answer.data, NULL, 10) > 0) {
        watch->was_seen = true;
        watch->missed = 0;
    } else {
        watch->missed++;
    }
}

hf_status hf__watch_tick(hf__http *http, hf__watch *watch, hf_error *err)
{
    int64_t now = hf__now_ms();

    if (watch->query_id == NULL)
        return HF_OK;
    if (watch->next_ms == 0)
        watch->next_ms = now + LOOK_EVERY_MS;
    if (watch->answer_by != 0 && !http->side.is_running) {
        take_answer(http, watch);
    } else if (watch->answer_by != 0 && now >= watch->answer_by) {
        http->side.curl.code = CURLE_OPERATION_TIMEDOUT;
        take_answer(http, watch);
    }
    if (watch->silent_since != 0 && now - watch->silent_since > http->base.silent_ms) {
        char shown[32];
        http->base.fault.was_sent = true;
        return hf__fail(err, HF_UNREACHABLE, "%s: it has not answered anything for %s",
                        http->base.name,
                        hf__show_duration(shown, sizeof shown, http->base.silent_ms));
    }
    bool is_due = now >= watch->next_ms || (watch->kill_wanted && !watch->kill_sent);
    return watch->answer_by == 0 && is_due ? ask(http, watch, err) : HF_OK;
}

/* ---- Statements ------------------------------------------------------------------------------ */

/*
 * Waits for the end of the statement. Watches a long one, and kills it when the append must stop.
 */
static hf_status await_end(hf__http *http, const hf__statement *statement, hf_error *err)
{
    int64_t limit = statement->limit_ms == 0 ? http->base.silent_ms : statement->limit_ms;
    int64_t deadline = hf__deadline(limit);
    hf__watch watch = {.query_id = limit < 0 ? statement->query_id : NULL};
    bool gives_way = statement->gives_way && !hf__stop_is_set(http->base.stop);
    hf_status status = HF_OK;

    while (status == HF_OK && http->call.is_running) {
        struct curl_waitfd stop = {.fd = http->base.stop->fd, .events = CURL_WAIT_POLLIN};
        bool halts = watch.query_id != NULL && !watch.kill_wanted;
        int wait_ms = hf__left_ms(deadline);
        if (wait_ms == 0) {
            char shown[32];
            http->base.fault.was_sent = true;
            return hf__fail(err, HF_UNREACHABLE, "%s: cannot %s: no answer within %s",
                            http->base.name, statement->what,
                            hf__show_duration(shown, sizeof shown, limit));
        }
        status = hf__http_step(http, &stop, halts || gives_way ? 1 : 0,
                               wait_ms < 0 || wait_ms > 100 ? 100 : wait_ms, err);
        if (gives_way && hf__stop_why(http->base.stop) == HF__STOP_ASKED)
            return hf__stop_check(http->base.stop, err);
        if (halts && hf__stop_is_set(http->base.stop)) {
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
 * A server cannot tell that a body was cut, and a list that was cut after an item is still a list.
 * So a list goes into the URL if it fits: a request without its whole head counts for nothing. Else
 * it is packed: gzip has a checksum at its end, and without it the server refuses the whole.
 *
 * The server holds the answer back until the end, so an exception cannot come in the middle of a
 * 200; and it does so in memory, because with a full disk it could not even count rows.
 */
static bool write_head(const hf__statement *statement, hf__buf *extra)
{
    char *encoded = statement->is_list ? curl_easy_escape(NULL, statement->sql, 0) : NULL;
    bool fits = encoded != NULL && strlen(encoded) <= HEAD_MAX;

    hf__buf_puts(extra, "&wait_end_of_query=1&buffer_size=1048576&default_format=TabSeparated");
    if (fits)
        hf__buf_printf(extra, "&query=%s", encoded);
    curl_free(encoded);
    return fits;
}

static bool pack(const char *text, hf__buf *packed)
{
    enum { GZIP_WINDOW = 15 + 16, MEMORY = 8 };
    z_stream gzip = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)strlen(text)};
    Bytef piece[4096];
    int ended = Z_OK;

    if (deflateInit2(&gzip, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return false;
    while (ended == Z_OK) {
        gzip.next_out = piece;
        gzip.avail_out = sizeof piece;
        ended = deflate(&gzip, Z_FINISH);
        hf__buf_add(packed, (const char *)piece, sizeof piece - gzip.avail_out);
    }
    deflateEnd(&gzip);
    return ended == Z_STREAM_END && !packed->broken;
}

/* The body of a statement, and the headers that go with it. */
static bool write_body(hf__http *http, const hf__statement *statement, bool is_in_head)
{
    hf__call *call = &http->call;
    bool is_packed = statement->is_list && !is_in_head;
    struct curl_slist *headers = is_packed ? http->headers_packed : http->headers;

    hf__buf_clear(&call->body);
    if (is_packed && !pack(statement->sql, &call->body))
        return false;
    const char *body = is_packed ? call->body.data : is_in_head ? "" : statement->sql;
    return curl_easy_setopt(call->curl.easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
           set_body(call, body, is_packed ? call->body.length : strlen(body));
}

static hf_status query(hf__target *target, const hf__statement *statement, hf__buf *answer,
                       hf_error *err)
{
    hf__http *http = (hf__http *)target;
    hf__call *call = &http->call;
    hf__buf extra = {0};
    bool is_in_head = write_head(statement, &extra);

    hf_status status = extra.broken || !write_body(http, statement, is_in_head)
                           ? hf__no_memory(err)
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

/* ---- Opening and closing --------------------------------------------------------------------- */

static void reconnect(hf__target *target)
{
    ((hf__http *)target)->is_fresh = true;
}

static void close_call(hf__call *call)
{
    hf__http_call_close(&call->curl);
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
    curl_slist_free_all(http->headers_packed);
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

/* Call it when http->url has been read. It frees http when it fails. */
static hf_status make_ready(hf__http *http, const hf__stop *stop, int64_t silent_ms,
                            hf__target **target, hf_error *err)
{
    http->base = (hf__target){.ops = &http_ops,
                              .name = http->url.name,
                              .database = http->url.database,
                              .user = http->url.user,
                              .stop = stop,
                              .silent_ms = silent_ms > 0 ? silent_ms : SILENT_MS,
                              .is_here = http->url.is_local};
    /* ClickHouse (Poco) answers 100 to every request, so it is no use to wait for that. */
    http->headers = curl_slist_append(NULL, "Expect:");
    http->headers_packed = curl_slist_append(NULL, "Content-Encoding: gzip");
    bool is_set_up = http->headers != NULL && http->headers_packed != NULL &&
                     curl_slist_append(http->headers_packed, "Expect:") != NULL &&
                     set_up(http, &http->call) && set_up(http, &http->side);
    http->multi = is_set_up ? curl_multi_init() : NULL;
    if (http->multi == NULL) {
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
        return hf__no_memory(err);
    hf_status status = hf__server_url_at(&((const hf__http *)target)->url, host, &http->url, err);
    if (status != HF_OK) {
        free(http);
        return status;
    }
    return make_ready(http, target->stop, target->silent_ms, sibling, err);
}

hf_status hf__http_open(const hf__target_options *options, hf__target **target, hf_error *err)
{
    hf__http *http = calloc(1, sizeof *http);
    if (http == NULL)
        return hf__no_memory(err);
    hf_status status = hf__server_url_read(options->url, options->password_file, &http->url, err);
    if (status != HF_OK) {
        free(http);
        return status;
    }
    return make_ready(http, options->stop, options->silent_ms, target, err);
}
