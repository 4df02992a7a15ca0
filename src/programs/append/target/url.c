#include "programs/append/target/http.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { PASSWORD_MAX = 4096 };

static char *part_or_nothing(CURLU *url, CURLUPart part, unsigned int flags)
{
    char *found = hf__url_part(url, part, flags);

    return found != NULL ? found : strdup("");
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "[::1]") == 0;
}

static char *take(hf__buf *text)
{
    if (text->broken)
        hf__buf_free(text);
    return text->data;
}

static bool take_address(CURLU *url, hf__server_url *out)
{
    char *scheme = hf__url_part(url, CURLUPART_SCHEME, 0);
    char *host = hf__url_part(url, CURLUPART_HOST, 0);
    char *port = hf__url_part(url, CURLUPART_PORT, 0);
    bool is_https = scheme != NULL && strcmp(scheme, "https") == 0;
    hf__buf base = {0}, name = {0};

    if (scheme != NULL && host != NULL) {
        const char *at = port != NULL ? port : is_https ? "8443" : "8123";
        hf__buf_printf(&base, "%s://%s:%s/", scheme, host, at);
        hf__buf_printf(&name, "clickhouse+%s://%s%s%s:%s/%s", scheme, out->user,
                       out->user[0] != '\0' ? "@" : "", host, at, out->database);
        out->is_local = is_loopback(host);
    }
    free(scheme);
    free(host);
    free(port);
    out->base = take(&base);
    out->name = take(&name);
    return out->base != NULL && out->name != NULL;
}

/* Parameters that every statement of ours has, or that change how answers and bodies are packed. */
static bool is_ours(const char *name, size_t size)
{
    static const char *const names[] = {"query",
                                        "query_id",
                                        "database",
                                        "default_format",
                                        "compress",
                                        "decompress",
                                        "buffer_size",
                                        "wait_end_of_query",
                                        "extremes",
                                        "http_write_exception_in_output_format",
                                        "send_progress_in_http_headers"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == size && strncmp(names[i], name, size) == 0)
            return true;
    return false;
}

/* Would our own questions be answered in another form with it, or not to the end? */
static bool shapes_answers(const char *name, size_t size)
{
    static const char *const names[] = {"limit",
                                        "offset",
                                        "final",
                                        "format_tsv_null_representation",
                                        "bool_true_representation",
                                        "bool_false_representation",
                                        "date_time_output_format"};
    static const char *const heads[] = {"output_format_", "additional_", "max_result_",
                                        "max_rows_to_", "max_bytes_to_"};
    static const char tail[] = "_overflow_mode";
    bool does =
        size >= sizeof tail && strncmp(name + size - (sizeof tail - 1), tail, sizeof tail - 1) == 0;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        does = does || (strlen(names[i]) == size && strncmp(names[i], name, size) == 0);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        does = does || (strlen(heads[i]) < size && strncmp(heads[i], name, strlen(heads[i])) == 0);
    return does;
}

static bool take_settings(const char *query, hf__server_url *out)
{
    hf__buf plain = {0}, shaping = {0};

    hf__buf_puts(&plain, "");
    hf__buf_puts(&shaping, "");
    while (*query != '\0') {
        size_t size = strcspn(query, "&"), name = strcspn(query, "=&");
        hf__buf *to = shapes_answers(query, name) ? &shaping : &plain;
        if (size > 0 && !is_ours(query, name)) {
            hf__buf_puts(to, to->length > 0 ? "&" : "");
            hf__buf_add(to, query, size);
        }
        query += size + (query[size] == '&' ? 1 : 0);
    }
    out->settings = take(&plain);
    out->shaping = take(&shaping);
    return out->settings != NULL && out->shaping != NULL;
}

static hf_status read_password(const char *path, hf__server_url *out, hf_error *err)
{
    hf__buf text = {0};
    hf_status status = hf__read_file(path, PASSWORD_MAX, &text, HF_CONFIG, err);

    if (status == HF_OK && text.length > PASSWORD_MAX)
        status = hf__fail(err, HF_CONFIG, "%s: longer than a password", path);
    if (status == HF_OK) {
        size_t size = text.length > 0 ? strcspn(text.data, "\r\n") : 0;
        free(out->password);
        out->password = strndup(text.length > 0 ? text.data : "", size);
        if (out->password == NULL)
            status = hf__no_memory(err);
    }
    hf__buf_free(&text);
    return status;
}

static hf_status take_parts(CURLU *url, hf__server_url *out, hf_error *err)
{
    char *path = part_or_nothing(url, CURLUPART_PATH, CURLU_URLDECODE);
    char *query = part_or_nothing(url, CURLUPART_QUERY, 0);
    bool has_settings = query != NULL && take_settings(query, out);

    out->user = part_or_nothing(url, CURLUPART_USER, CURLU_URLDECODE);
    out->password = hf__url_part(url, CURLUPART_PASSWORD, CURLU_URLDECODE);
    out->database = path != NULL ? strdup(path[0] == '/' ? path + 1 : path) : NULL;
    free(path);
    free(query);
    if (out->user == NULL || !has_settings || out->database == NULL || !take_address(url, out))
        return hf__no_memory(err);
    if (strchr(out->database, '/') == NULL)
        return HF_OK;
    hf_status status = hf__fail(err, HF_INVALID, "%s: one database follows the address", out->name);
    hf__hint(err, "such as clickhouse+http://user@host:8123/database");
    return status;
}

hf_status hf__server_url_read(const char *text, const char *password_file, hf__server_url *out,
                              hf_error *err)
{
    CURLU *url = curl_url();

    *out = (hf__server_url){0};
    if (url == NULL)
        return hf__no_memory(err);
    CURLUcode code = curl_url_set(url, CURLUPART_URL, text + strlen("clickhouse+"), 0);
    hf_status status = HF_OK;
    if (code == CURLUE_OUT_OF_MEMORY)
        status = hf__no_memory(err);
    else if (code != CURLUE_OK) /* not shown: there may be a password in it */
        status = hf__fail(err, HF_INVALID, "the URL of the target is not well formed: %s",
                          curl_url_strerror(code));
    if (status == HF_OK)
        status = take_parts(url, out, err);
    if (status == HF_OK && password_file != NULL)
        status = read_password(password_file, out, err);
    curl_url_cleanup(url);
    if (status != HF_OK)
        hf__server_url_free(out);
    return status;
}

hf_status hf__server_url_at(const hf__server_url *url, const char *host, hf__server_url *out,
                            hf_error *err)
{
    CURLU *other = curl_url();
    hf__buf bare = {0};

    if (host != NULL)
        hf__buf_printf(&bare, strchr(host, ':') != NULL ? "[%s]" : "%s", host);
    *out = (hf__server_url){.database = strdup(url->database),
                            .user = strdup(url->user),
                            .password = url->password != NULL ? strdup(url->password) : NULL,
                            .settings = strdup(url->settings),
                            .shaping = strdup(url->shaping)};
    bool good = other != NULL && !bare.broken && out->database != NULL && out->user != NULL &&
                out->settings != NULL && out->shaping != NULL &&
                (url->password == NULL || out->password != NULL) &&
                curl_url_set(other, CURLUPART_URL, url->base, 0) == CURLUE_OK &&
                (host == NULL || curl_url_set(other, CURLUPART_HOST, bare.data, 0) == CURLUE_OK) &&
                take_address(other, out);
    curl_url_cleanup(other);
    hf__buf_free(&bare);
    if (!good)
        hf__server_url_free(out);
    return good ? HF_OK
                : hf__fail(err, HF_CONFIG, "%s: '%s' is no host", url->name,
                           host != NULL ? host : url->base);
}

void hf__server_url_free(hf__server_url *url)
{
    free(url->base);
    free(url->name);
    free(url->database);
    free(url->user);
    if (url->password != NULL)
        explicit_bzero(url->password, strlen(url->password));
    free(url->password);
    free(url->settings);
    free(url->shaping);
    *url = (hf__server_url){0};
}
