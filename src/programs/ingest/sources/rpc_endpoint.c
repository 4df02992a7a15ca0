#include "programs/ingest/sources/rpc.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/http.h"
#include "base/time.h"

enum { POLL_MS = 2000, TIMEOUT_MS = 30000 };

static const struct {
    const char *name, *passphrase;
} networks[] = {
    {"pubnet", "Public Global Stellar Network ; September 2015"},
    {"testnet", "Test SDF Network ; September 2015"},
    {"futurenet", "Test SDF Future Network ; October 2022"},
};

static const char *known_passphrase(const char *network)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        if (network != NULL && strcmp(network, networks[i].name) == 0)
            return networks[i].passphrase;
    return NULL;
}

static bool is_web_scheme(const char *scheme)
{
    return scheme != NULL && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
}

/* rpc+https://host:port, with /… in place of a path or query. */
static char *name_endpoint(CURLU *url)
{
    hf__buf name = {0};
    char *scheme = hf__url_part(url, CURLUPART_SCHEME, 0);
    char *host = hf__url_part(url, CURLUPART_HOST, 0);
    char *port = hf__url_part(url, CURLUPART_PORT, 0);
    char *path = hf__url_part(url, CURLUPART_PATH, 0);
    char *query = hf__url_part(url, CURLUPART_QUERY, 0);

    if (scheme != NULL && host != NULL)
        hf__buf_printf(&name, "rpc+%s://%s%s%s%s", scheme, host, port != NULL ? ":" : "",
                       port != NULL ? port : "",
                       (path != NULL && strcmp(path, "/") != 0) || query != NULL ? "/…" : "");
    free(scheme);
    free(host);
    free(port);
    free(path);
    free(query);
    if (name.broken)
        hf__buf_free(&name);
    return name.data;
}

static hf_status take_url(const char *text, hf__rpc_endpoint *endpoint, hf_error *err)
{
    CURLU *url = curl_url();
    char *scheme = NULL;
    hf_status status = HF_OK;

    if (url == NULL)
        return hf__no_memory(err);
    CURLUcode code = curl_url_set(url, CURLUPART_URL, text, 0);
    if (code == CURLUE_OK)
        scheme = hf__url_part(url, CURLUPART_SCHEME, 0);
    if (code != CURLUE_OK || !is_web_scheme(scheme)) {
        /* The message does not show the text, which may hold a password. */
        status = hf__fail(err, HF_CONFIG, "the source is not a URL of Stellar RPC: %s",
                          code != CURLUE_OK ? curl_url_strerror(code) : "neither http nor https");
        hf__hint(err, "write it as rpc+https://HOST[:PORT][/PATH]");
        goto out;
    }
    endpoint->user = hf__url_part(url, CURLUPART_USER, CURLU_URLDECODE);
    endpoint->password = hf__url_part(url, CURLUPART_PASSWORD, CURLU_URLDECODE);
    if (curl_url_set(url, CURLUPART_USER, NULL, 0) != CURLUE_OK ||
        curl_url_set(url, CURLUPART_PASSWORD, NULL, 0) != CURLUE_OK ||
        (endpoint->url = hf__url_part(url, CURLUPART_URL, 0)) == NULL ||
        (endpoint->name = name_endpoint(url)) == NULL)
        status = hf__no_memory(err);
out:
    free(scheme);
    curl_url_cleanup(url);
    return status;
}

/* Decodes into *value, which the caller frees. HF_CONFIG: it is set already, or has no value. */
static hf_status take_text(const char *name, const char *encoded, size_t size, char **value,
                           hf_error *err)
{
    int decoded_size = 0;
    char *decoded = curl_easy_unescape(NULL, encoded, (int)size, &decoded_size);
    hf_status status = HF_OK;

    if (decoded == NULL)
        return hf__no_memory(err);
    if (*value != NULL || decoded_size == 0 || strlen(decoded) != (size_t)decoded_size)
        status = hf__fail(err, HF_CONFIG, "%s behind the # of the source %s", name,
                          *value != NULL ? "is given twice" : "has no value or a NUL in it");
    else if ((*value = strdup(decoded)) == NULL)
        status = hf__no_memory(err);
    curl_free(decoded);
    return status;
}

static hf_status take_duration(const char *name, const char *encoded, size_t size, int64_t low,
                               int64_t *ms, hf_error *err)
{
    char *text = NULL;
    hf_error why = {0};
    hf_status status = take_text(name, encoded, size, &text, err);

    if (status == HF_OK && hf__parse_duration(text, ms, &why) != HF_OK)
        status = hf__fail(err, HF_CONFIG, "%s behind the # of the source: %s", name, why.message);
    else if (status == HF_OK && *ms < low)
        status = hf__fail(err, HF_CONFIG, "%s behind the # of the source must be at least %d ms",
                          name, (int)low);
    free(text);
    return status;
}

static bool option_is(const char *option, size_t size, const char *name)
{
    return strlen(name) == size && memcmp(option, name, size) == 0;
}

static hf_status take_option(const char *option, size_t size, hf__rpc_endpoint *endpoint,
                             hf_error *err)
{
    const char *equals = memchr(option, '=', size);
    size_t name_size = equals != NULL ? (size_t)(equals - option) : size;
    const char *value = equals != NULL ? equals + 1 : option + size;
    size_t value_size = (size_t)(option + size - value);

    if (option_is(option, name_size, "passphrase"))
        return take_text("passphrase", value, value_size, &endpoint->passphrase, err);
    if (option_is(option, name_size, "ca"))
        return take_text("ca", value, value_size, &endpoint->ca_file, err);
    if (option_is(option, name_size, "poll"))
        return take_duration("poll", value, value_size, 1, &endpoint->poll_ms, err);
    if (option_is(option, name_size, "timeout"))
        return take_duration("timeout", value, value_size, 1000, &endpoint->timeout_ms, err);
    hf_status status = hf__fail(err, HF_CONFIG, "unknown option behind the # of the source");
    hf__hint(err, "there are passphrase, poll, timeout and ca; write & between them");
    return status;
}

static hf_status take_options(const char *options, hf__rpc_endpoint *endpoint, hf_error *err)
{
    hf_status status = HF_OK;

    while (status == HF_OK && *options != '\0') {
        size_t size = strcspn(options, "&");
        if (size > INT32_MAX)
            return hf__fail(err, HF_CONFIG, "the source is too long");
        status = take_option(options, size, endpoint, err);
        options += size;
        options += *options == '&' ? 1 : 0;
    }
    return status;
}

static hf_status settle_passphrase(const char *network, hf__rpc_endpoint *endpoint, hf_error *err)
{
    const char *known = known_passphrase(network);
    hf_status status;

    if (known == NULL && endpoint->passphrase == NULL) {
        status = hf__fail(err, HF_CONFIG, "the passphrase of network %s is not known",
                          network != NULL ? network : "(none)");
        hf__hint(err, "append #passphrase=… to the source, percent-encoded");
        return status;
    }
    if (known == NULL)
        return HF_OK;
    if (endpoint->passphrase != NULL && strcmp(endpoint->passphrase, known) != 0) {
        status = hf__fail(err, HF_CONFIG, "network %s has the passphrase \"%s\", not \"%s\"",
                          network, known, endpoint->passphrase);
        hf__hint(err, "give the network another name");
        return status;
    }
    free(endpoint->passphrase);
    endpoint->passphrase = strdup(known);
    return endpoint->passphrase != NULL ? HF_OK : hf__no_memory(err);
}

hf_status hf__rpc_endpoint_parse(const char *spec, const char *network, hf__rpc_endpoint *endpoint,
                                 hf_error *err)
{
    const char *text = strncmp(spec, "rpc+", 4) == 0 ? spec + 4 : spec;
    size_t url_size = strcspn(text, "#");
    char *url = strndup(text, url_size);

    *endpoint = (hf__rpc_endpoint){.poll_ms = POLL_MS, .timeout_ms = TIMEOUT_MS};
    if (url == NULL)
        return hf__no_memory(err);
    hf_status status = take_url(url, endpoint, err);
    if (status == HF_OK && text[url_size] == '#')
        status = take_options(text + url_size + 1, endpoint, err);
    if (status == HF_OK)
        status = settle_passphrase(network, endpoint, err);
    free(url);
    if (status != HF_OK)
        hf__rpc_endpoint_free(endpoint);
    return status;
}

void hf__rpc_endpoint_free(hf__rpc_endpoint *endpoint)
{
    free(endpoint->url);
    free(endpoint->user);
    free(endpoint->password);
    free(endpoint->passphrase);
    free(endpoint->ca_file);
    free(endpoint->name);
    *endpoint = (hf__rpc_endpoint){0};
}

static bool parts_agree(CURLU *one, CURLU *other, CURLUPart part)
{
    char *left = hf__url_part(one, part, CURLU_DEFAULT_PORT);
    char *right = hf__url_part(other, part, CURLU_DEFAULT_PORT);
    bool agree = left != NULL && right != NULL && strcasecmp(left, right) == 0;

    free(left);
    free(right);
    return agree;
}

static bool scheme_is(CURLU *url, const char *scheme)
{
    char *found = hf__url_part(url, CURLUPART_SCHEME, 0);
    bool is_it = found != NULL && strcmp(found, scheme) == 0;

    free(found);
    return is_it;
}

bool hf__rpc_may_redirect(const char *from, const char *to)
{
    CURLU *here = curl_url(), *there = curl_url();
    bool may = false;

    if (here != NULL && there != NULL && curl_url_set(here, CURLUPART_URL, from, 0) == CURLUE_OK &&
        curl_url_set(there, CURLUPART_URL, to, 0) == CURLUE_OK) {
        bool is_raised = scheme_is(here, "http") && scheme_is(there, "https");
        may = parts_agree(here, there, CURLUPART_HOST) &&
              (is_raised || (parts_agree(here, there, CURLUPART_SCHEME) &&
                             parts_agree(here, there, CURLUPART_PORT)));
    }
    curl_url_cleanup(here);
    curl_url_cleanup(there);
    return may;
}
