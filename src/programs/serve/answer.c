#include <inttypes.h>
#include <limits.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/hash.h"
#include "programs/serve/http.h"
#include "programs/serve/page/page.h"

/*
 * Every answer has these. The page loads nothing from elsewhere, and has no script or style
 * inside.
 */
static const char *const safety_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "same-origin"},
    {"X-Frame-Options", "DENY"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

static const char *status_title(int status)
{
    const char *title = MHD_get_reason_phrase_for((unsigned)status);

    return title != NULL ? title : "Error";
}

bool hf__answer_add(hf__answer *answer, const char *header, const char *value)
{
    return MHD_add_response_header(answer->response, header, value) == MHD_YES;
}

static bool add_headers(hf__answer *answer, const char *type)
{
    bool added = hf__answer_add(answer, "Cache-Control", answer->cache_control) &&
                 (type == NULL || hf__answer_add(answer, "Content-Type", type));

    for (size_t i = 0; added && i < sizeof safety_headers / sizeof safety_headers[0]; i++)
        added = hf__answer_add(answer, safety_headers[i][0], safety_headers[i][1]);
    return added;
}

/* Takes the response over, also when it fails. */
static hf__answer *wrap(int status, const char *type, const char *cache_control,
                        struct MHD_Response *response, size_t size)
{
    hf__answer *answer = response != NULL ? calloc(1, sizeof *answer) : NULL;

    if (answer == NULL) {
        if (response != NULL)
            MHD_destroy_response(response);
        return NULL;
    }
    atomic_init(&answer->references, 1);
    answer->status = status;
    answer->response = response;
    answer->size = size;
    answer->cache_control = cache_control;
    if (!add_headers(answer, type)) {
        hf__answer_release(answer);
        return NULL;
    }
    return answer;
}

hf__answer *hf__answer_make(int status, const char *type, const char *cache_control, hf__buf *text)
{
    struct MHD_Response *response = NULL;
    size_t size = text->length;

    if (text->data == NULL && !text->broken)
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    else if (!text->broken)
        response = MHD_create_response_from_buffer_with_free_callback(size, text->data, free);
    if (response == NULL)
        hf__buf_free(text);
    *text = (hf__buf){0};
    return wrap(status, type, cache_control, response, size);
}

hf__answer *hf__answer_of(const char *type, const char *cache_control, const void *bytes,
                          size_t size)
{
    /* MHD does not write to persistent memory. */
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT);

    return wrap(200, type, cache_control, response, size);
}

static void write_problem(const hf__problem *problem, hf__buf *out)
{
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_begin_object(&json, "error");
    hf__json_put_integer(&json, "status", problem->status);
    hf__json_put_string(&json, "title", status_title(problem->status));
    hf__json_put_string(&json, "detail", problem->detail);
    hf__json_end_object(&json);
    hf__json_end_object(&json);
    hf__buf_puts(&json.text, "\n");
    *out = json.text;
}

hf__answer *hf__answer_problem(const hf__exchange *exchange, const hf__problem *problem)
{
    hf__buf text = {0};

    if (exchange->wants_json)
        write_problem(problem, &text);
    else
        hf__render_error(exchange->base, problem->status, status_title(problem->status),
                         problem->detail, &text);
    return hf__answer_make(problem->status,
                           exchange->wants_json ? "application/json" : "text/html; charset=utf-8",
                           "no-store", &text);
}

hf__answer *hf__answer_redirect(const hf__exchange *exchange, const char *path)
{
    hf__buf text = {0}, location = {0};
    hf__answer *answer = hf__answer_make(303, NULL, "no-store", &text);

    hf__buf_printf(&location, "%s%s", exchange->base, path);
    if (answer != NULL && (location.broken || !hf__answer_add(answer, "Location", location.data))) {
        hf__answer_release(answer);
        answer = NULL;
    }
    hf__buf_free(&location);
    return answer;
}

void hf__answer_tag(hf__answer *answer, const void *bytes, size_t size)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];

    SHA256(bytes, size, digest);
    answer->etag[0] = '"';
    for (size_t i = 0; i < 16; i++)
        (void)snprintf(answer->etag + 1 + 2 * i, 3, "%02x", digest[i]);
    answer->etag[33] = '"';
    answer->etag[34] = '\0';
    if (!hf__answer_add(answer, "ETag", answer->etag))
        answer->etag[0] = '\0';
}

hf__answer *hf__answer_hold(hf__answer *answer)
{
    atomic_fetch_add(&answer->references, 1);
    return answer;
}

void hf__answer_release(hf__answer *answer)
{
    if (answer == NULL || atomic_fetch_sub(&answer->references, 1) > 1)
        return;
    MHD_destroy_response(answer->response);
    free(answer);
}

/* For a GET, weak and strong tags are compared in the same way. */
static bool client_has_it(struct MHD_Connection *connection, const hf__answer *answer)
{
    const char *known = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match");

    if (known == NULL || answer->etag[0] == '\0' || answer->status != 200)
        return false;
    return strcmp(known, "*") == 0 || strstr(known, answer->etag) != NULL;
}

static enum MHD_Result send_not_modified(struct MHD_Connection *connection,
                                         const hf__answer *answer)
{
    hf__buf nothing = {0};
    enum MHD_Result sent = MHD_NO;
    hf__answer *short_one = hf__answer_make(304, NULL, answer->cache_control, &nothing);

    if (short_one != NULL && hf__answer_add(short_one, "ETag", answer->etag) &&
        (answer->vary == NULL || hf__answer_add(short_one, "Vary", answer->vary)))
        sent = MHD_queue_response(connection, 304, short_one->response);
    hf__answer_release(short_one);
    return sent;
}

enum MHD_Result hf__answer_send(struct MHD_Connection *connection, hf__answer *answer)
{
    if (client_has_it(connection, answer))
        return send_not_modified(connection, answer);
    return MHD_queue_response(connection, (unsigned)answer->status, answer->response);
}

/* ---- editions: the answers that were made of snapshots, until the next one comes ---- */

enum { ANSWERS_MAX = 256, BYTES_MAX = 64 << 20 };

struct kept {
    uint64_t hash;
    char *key;
    size_t size;
    hf__answer *answer;
};

struct hf__edition {
    atomic_uint references;
    pthread_mutex_t guard;
    struct kept kept[ANSWERS_MAX];
    size_t count;
    size_t bytes;
    size_t snapshot_count;
    hf__snapshot *snapshots[];
};

hf__edition *hf__edition_make(hf__snapshot *const *snapshots, size_t count)
{
    hf__edition *edition = calloc(1, sizeof *edition + count * sizeof(hf__snapshot *));

    if (edition == NULL)
        return NULL;
    atomic_init(&edition->references, 1);
    pthread_mutex_init(&edition->guard, NULL);
    edition->snapshot_count = count;
    for (size_t i = 0; i < count; i++)
        edition->snapshots[i] = hf__snapshot_hold(snapshots[i]);
    return edition;
}

hf__edition *hf__edition_hold(hf__edition *edition)
{
    atomic_fetch_add(&edition->references, 1);
    return edition;
}

void hf__edition_release(hf__edition *edition)
{
    if (edition == NULL || atomic_fetch_sub(&edition->references, 1) > 1)
        return;
    for (size_t i = 0; i < edition->count; i++) {
        free(edition->kept[i].key);
        hf__answer_release(edition->kept[i].answer);
    }
    for (size_t i = 0; i < edition->snapshot_count; i++)
        hf__snapshot_release(edition->snapshots[i]);
    pthread_mutex_destroy(&edition->guard);
    free(edition);
}

const hf__snapshot *hf__edition_snapshot(const hf__edition *edition)
{
    return edition->snapshots[0];
}

hf__snapshot *const *hf__edition_snapshots(const hf__edition *edition, size_t *count)
{
    *count = edition->snapshot_count;
    return edition->snapshots;
}

/* The hash tells most keys apart without a look at them. */
static struct kept *find(hf__edition *edition, uint64_t hash, const char *key, size_t size)
{
    for (size_t i = 0; i < edition->count; i++) {
        struct kept *kept = &edition->kept[i];
        if (kept->hash == hash && kept->size == size && memcmp(kept->key, key, size) == 0)
            return kept;
    }
    return NULL;
}

hf__answer *hf__edition_find(hf__edition *edition, const char *key, size_t size)
{
    uint64_t hash = hf__hash_bytes(key, size);

    pthread_mutex_lock(&edition->guard);
    const struct kept *kept = find(edition, hash, key, size);
    hf__answer *answer = kept != NULL ? hf__answer_hold(kept->answer) : NULL;
    pthread_mutex_unlock(&edition->guard);
    return answer;
}

void hf__edition_keep(hf__edition *edition, const char *key, size_t size, hf__answer *answer)
{
    uint64_t hash = hf__hash_bytes(key, size);

    pthread_mutex_lock(&edition->guard);
    if (edition->count < ANSWERS_MAX && answer->size < BYTES_MAX - edition->bytes &&
        find(edition, hash, key, size) == NULL) {
        char *copy = malloc(size + 1);
        if (copy != NULL) {
            memcpy(copy, key, size);
            edition->kept[edition->count++] = (struct kept){
                .hash = hash, .key = copy, .size = size, .answer = hf__answer_hold(answer)};
            edition->bytes += answer->size;
        }
    }
    pthread_mutex_unlock(&edition->guard);
}

/* ---- gzip ---- */

enum {
    WORTH_IT = 1400, /* bytes: less fits into one packet anyway */
    LEVEL = 1,       /* it is done anew at every refresh */
    GZIP_WINDOW = 15 + 16,
    MEMORY = 8,
};

/* "gzip;q=0" means no. */
bool hf__takes_gzip(const char *accepted)
{
    const char *word = accepted != NULL ? strcasestr(accepted, "gzip") : NULL;

    if (word == NULL)
        return false;
    word += strlen("gzip");
    word += strspn(word, " \t");
    if (*word != ';')
        return true;
    const char *quality = word + 1 + strspn(word + 1, " \t");
    return strncasecmp(quality, "q=0", 3) != 0 ||
           strcspn(quality, "123456789") < strcspn(quality, ",");
}

static bool deflate_all(const hf__buf *text, unsigned char *out, size_t room, size_t *size)
{
    z_stream stream = {.next_in = (unsigned char *)text->data,
                       .avail_in = (uInt)text->length,
                       .next_out = out,
                       .avail_out = (uInt)room};

    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    bool done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    *size = stream.total_out;
    deflateEnd(&stream);
    return done;
}

bool hf__gzip(hf__buf *text)
{
    size_t size = 0;

    if (text->broken || text->length < WORTH_IT || text->length > INT_MAX)
        return false;
    unsigned char *out = malloc(text->length); /* what does not shrink is not worth it */
    if (out == NULL || !deflate_all(text, out, text->length, &size)) {
        free(out);
        return false;
    }
    hf__buf_free(text);
    hf__buf_add(text, out, size);
    free(out);
    return true;
}
