/*
 * INSERT of a stream over HTTP. ClickHouse takes the end of the body for the end of the rows, even
 * when the connection broke. So a stream that must not count is ended with a row that ClickHouse
 * refuses.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/time.h"
#include "programs/append/target/http.h"

enum {
    PIECE = 256 << 10,
    ABORTED_MS = 30000, /* how long to wait for the answer to an aborted stream */
    SURELY_SEEN =
        16 << 20, /* bytes after which the server must list the statement, or it has ended */
    MISSED_ENOUGH = 2,
    LEAVES_MS = 3000, /* ABORTED_MS where the answer does not matter */
    COMPRESSION = 1,
    GZIP_WINDOW = 15 + 16,
};

struct stream {
    hf__http *http;
    const hf__format *format;
    hf__rows_input *input;
    hf__flow *flow;
    hf__watch watch;

    bool is_over;  /* the input has ended */
    bool aborts;   /* send no more rows, but the bad one and the end */
    size_t bad_at; /* how much of the bad row has been sent */
    bool waits;    /* libcurl has paused the stream until there is input */
    int64_t abort_by;
    bool gives_way;   /* told to stop, it does not wait for the answer */
    int64_t moved_ms; /* when bytes were wanted last */
    hf_status status; /* of reading the input */
    hf_error err;

    bool compresses;
    z_stream gzip;
    bool gzip_over;
    char *piece;
};

/* ---- What is sent ---------------------------------------------------------------------------- */

static void abort_stream(struct stream *stream)
{
    bool leaves = stream->gives_way && hf__stop_why(stream->http->base.stop) == HF__STOP_ASKED;

    if (!stream->aborts || (leaves && hf__left_ms(stream->abort_by) > LEAVES_MS))
        stream->abort_by = hf__deadline(leaves ? LEAVES_MS : ABORTED_MS);
    stream->aborts = true;
}

static size_t add_bad_row(struct stream *stream, char *bytes, size_t size)
{
    size_t left = stream->format->bad_size - stream->bad_at;
    size_t got = left < size ? left : size;

    memcpy(bytes, stream->format->bad + stream->bad_at, got);
    stream->bad_at += got;
    return got;
}

/* Bytes of the input, or of the bad row. 0: the end, or there are none yet (stream->waits). */
static size_t next_bytes(struct stream *stream, char *bytes, size_t size)
{
    size_t got = 0;

    if (hf__stop_is_set(stream->http->base.stop))
        abort_stream(stream);
    if (!stream->aborts && !stream->is_over) {
        stream->status =
            hf__rows_input_read(stream->input, bytes, size, &got, &stream->waits, &stream->err);
        if (stream->status != HF_OK)
            abort_stream(stream);
        else if (got > 0 || stream->waits)
            return got;
        else
            stream->is_over = true;
    }
    stream->waits = false;
    return stream->aborts && !stream->is_over ? add_bad_row(stream, bytes, size) : 0;
}

static size_t next_compressed(struct stream *stream, char *bytes, size_t size)
{
    z_stream *gzip = &stream->gzip;

    gzip->next_out = (Bytef *)bytes;
    gzip->avail_out = (uInt)size;
    while (gzip->avail_out == size && !stream->gzip_over) {
        if (gzip->avail_in == 0) {
            size_t got = next_bytes(stream, stream->piece, PIECE);
            if (got == 0 && stream->waits)
                return 0;
            gzip->next_in = (Bytef *)stream->piece;
            gzip->avail_in = (uInt)got;
        }
        int ended = deflate(gzip, gzip->avail_in == 0 ? Z_FINISH : Z_NO_FLUSH);
        stream->gzip_over = ended == Z_STREAM_END;
    }
    return size - gzip->avail_out;
}

static size_t give_bytes(char *bytes, size_t one, size_t count, void *arg)
{
    struct stream *stream = arg;
    size_t size = one * count;

    stream->moved_ms = hf__now_ms();
    size_t got =
        stream->compresses ? next_compressed(stream, bytes, size) : next_bytes(stream, bytes, size);

    return got == 0 && stream->waits ? CURL_READFUNC_PAUSE : got;
}

/* ---- The loop -------------------------------------------------------------------------------- */

/*
 * A server that has failed reads the rest of the body before it says why. When its list no longer
 * shows the statement we abort the stream, so as not to send all of it in vain.
 */
static bool has_failed_there(const struct stream *stream)
{
    const hf__watch *watch = &stream->watch;
    bool was_there = watch->was_seen || hf__rows_input_bytes(stream->input) > SURELY_SEEN;

    return watch->missed >= MISSED_ENOUGH && was_there;
}

/* Nothing moves, and the server answers other questions but does not know of the statement. */
static bool is_gone(const struct stream *stream)
{
    return !stream->waits && stream->watch.missed >= MISSED_ENOUGH &&
           hf__now_ms() - stream->moved_ms > stream->http->base.silent_ms;
}

/* No answer will come. */
static hf_status give_up(struct stream *stream, hf_error *err)
{
    hf__http *http = stream->http;
    char shown[32];

    http->base.fault.was_sent = true;
    if (is_gone(stream))
        return hf__fail(
            err, HF_UNREACHABLE, "%s: the stream has not moved for %s, and no statement is there",
            http->base.name, hf__show_duration(shown, sizeof shown, http->base.silent_ms));
    if (stream->gives_way && hf__stop_why(http->base.stop) == HF__STOP_ASKED)
        return hf__stop_check(http->base.stop, err);
    return hf__fail(err, HF_UNREACHABLE, "%s: no answer to an aborted stream within %d s",
                    http->base.name, ABORTED_MS / 1000);
}

static hf_status step(struct stream *stream, hf_error *err)
{
    hf__http *http = stream->http;
    struct curl_waitfd fds[2] = {
        {.fd = http->base.stop->fd, .events = CURL_WAIT_POLLIN},
        {.fd = hf__rows_input_fd(stream->input), .events = CURL_WAIT_POLLIN},
    };
    unsigned first = stream->aborts ? 1 : 0;
    unsigned count = (stream->waits ? 2 : 1) - first;

    hf_status status = hf__http_step(http, fds + first, count, 100, err);
    if (status == HF_OK)
        status = hf__watch_tick(http, &stream->watch, err);
    if (hf__stop_is_set(http->base.stop) || has_failed_there(stream))
        abort_stream(stream);
    if (stream->waits && http->call.is_running)
        curl_easy_pause(http->call.curl.easy, CURLPAUSE_CONT);
    hf__flow_tell(stream->flow, stream->input);
    bool is_over = is_gone(stream) || (stream->aborts && hf__left_ms(stream->abort_by) == 0);
    return status == HF_OK && http->call.is_running && is_over ? give_up(stream, err) : status;
}

static bool set_options(struct stream *stream)
{
    CURL *easy = stream->http->call.curl.easy;
    CURLcode failed = CURLE_OK;

    failed |= curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
    failed |= curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)-1);
    failed |= curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_bytes);
    failed |= curl_easy_setopt(easy, CURLOPT_READDATA, stream);
    failed |= curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)PIECE);
    return failed == CURLE_OK;
}

static struct curl_slist *stream_headers(bool compresses)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    const char *const more[] = {"Transfer-Encoding: chunked",
                                "Content-Type: application/octet-stream",
                                compresses ? "Content-Encoding: gzip" : NULL};

    for (size_t i = 0; list != NULL && i < sizeof more / sizeof *more; i++) {
        struct curl_slist *longer = more[i] != NULL ? curl_slist_append(list, more[i]) : list;
        if (longer == NULL)
            curl_slist_free_all(list);
        list = longer;
    }
    return list;
}

static hf_status begin(struct stream *stream, const hf__statement *statement, hf_error *err)
{
    hf__buf extra = {0}, sql = {0};

    hf__buf_printf(&sql, "%s FORMAT %s", statement->sql, stream->format->name);
    char *encoded = sql.broken ? NULL : curl_easy_escape(NULL, sql.data, (int)sql.length);
    hf__buf_printf(&extra, "&query=%s%s", encoded != NULL ? encoded : "",
                   stream->compresses ? "&enable_http_compression=1" : "");
    hf_status status =
        encoded == NULL || extra.broken || !set_options(stream) ? hf__no_memory(err) : HF_OK;
    if (status == HF_OK)
        status = hf__call_begin(stream->http, &stream->http->call, statement, extra.data, err);
    curl_free(encoded);
    hf__buf_free(&sql);
    hf__buf_free(&extra);
    return status;
}

/* A failure of the input comes first: ClickHouse only complains about the bad row. */
static hf_status judge_stream(struct stream *stream, const hf__statement *statement, hf_error *err)
{
    hf__http *http = stream->http;
    hf_status judged = hf__http_judge(http, &http->call, statement, true, err);

    if (!stream->aborts || stream->is_over)
        return judged;
    bool is_told_why = has_failed_there(stream) && judged != HF_OK;
    http->base.fault.was_ended = judged != HF_OK && http->base.fault.code != 0;
    if (judged == HF_OK) /* it accepted the bad row */
        return hf__fail(err, HF_IN_DOUBT, "%s: the stream was cut, and what had arrived was taken",
                        http->base.name);
    if (stream->status != HF_OK) {
        *err = stream->err;
        return stream->status;
    }
    hf_status stopped = is_told_why ? HF_OK : hf__stop_check(http->base.stop, err);
    return stopped != HF_OK ? stopped : judged;
}

static hf_status run(struct stream *stream, const hf__statement *statement, hf_error *err)
{
    hf__http *http = stream->http;
    struct curl_slist *headers = stream_headers(stream->compresses);
    hf_status status = headers == NULL || curl_easy_setopt(http->call.curl.easy, CURLOPT_HTTPHEADER,
                                                           headers) != CURLE_OK
                           ? hf__no_memory(err)
                           : begin(stream, statement, err);

    while (status == HF_OK && http->call.is_running)
        status = step(stream, err);
    hf__call_end(http, &http->call);
    if (http->side.is_running)
        hf__call_end(http, &http->side);
    if (status == HF_OK)
        status = judge_stream(stream, statement, err);
    curl_easy_setopt(http->call.curl.easy, CURLOPT_HTTPHEADER, http->headers);
    curl_slist_free_all(headers);
    return status;
}

hf_status hf__http_insert(hf__target *target, const hf__statement *statement,
                          const hf__format *format, hf__rows_input *input, hf__flow *flow,
                          hf_error *err)
{
    hf__http *http = (hf__http *)target;
    struct stream stream = {.http = http,
                            .format = format,
                            .input = input,
                            .flow = flow,
                            .watch = {.query_id = statement->query_id},
                            .gives_way = statement->gives_way,
                            .moved_ms = hf__now_ms(),
                            .compresses = !http->url.is_local || statement->is_sealed};
    /* gzip has a checksum at its end: without it the server does not take the stream as whole. */
    int level = http->url.is_local ? Z_NO_COMPRESSION : COMPRESSION;

    target->fault = (hf__fault){0};
    if (stream.compresses && (stream.piece = malloc(PIECE)) == NULL)
        return hf__no_memory(err);
    if (stream.compresses &&
        deflateInit2(&stream.gzip, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(stream.piece);
        return hf__no_memory(err);
    }
    hf_status status = run(&stream, statement, err);
    if (stream.compresses)
        deflateEnd(&stream.gzip);
    free(stream.piece);
    return status;
}
