#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/serve/http.h"
#include "programs/serve/render.h"

/* On every answer. Nothing is loaded from elsewhere, nothing stands inside the markup. */
static const char *const safety_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "same-origin"},
    {"X-Frame-Options", "DENY"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

const char *hf__status_title(int status)
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

/* Takes the response over. */
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
    hf__json_put_string(&json, "title", hf__status_title(problem->status));
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
        hf__render_error(problem->status, hf__status_title(problem->status), problem->detail,
                         &text);
    return hf__answer_make(problem->status,
                           exchange->wants_json ? "application/json" : "text/html; charset=utf-8",
                           "no-store", &text);
}

hf__answer *hf__answer_redirect(const char *location)
{
    hf__buf text = {0};
    hf__answer *answer = hf__answer_make(303, NULL, "no-store", &text);

    if (answer == NULL || hf__answer_add(answer, "Location", location))
        return answer;
    hf__answer_release(answer);
    return NULL;
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

/* Weak or strong: for a GET they are compared the same way. */
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
