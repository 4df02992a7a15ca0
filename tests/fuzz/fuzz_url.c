/* URLs of ClickHouse and of Stellar RPC: what is shown of them never has their password. */
#include "fuzz.h"

#include <string.h>

#include "base/buf.h"
#include "programs/append/target/http.h"
#include "programs/ingest/sources/rpc.h"

enum { LONG_ENOUGH = 4 }; /* to be in a name by its own right and not by chance */

static void check_secret(const char *password, const char *name, const char *elsewhere)
{
    if (password != NULL && strlen(password) >= LONG_ENOUGH && strstr(elsewhere, password) == NULL)
        require(strstr(name, password) == NULL, "a name shows the password");
}

static void read_server(const char *text)
{
    hf__server_url url, other;
    hf__buf whole = {0}, open = {0};
    hf_error err = {0};

    hf__buf_printf(&whole, "clickhouse+%s", text);
    hf_status status = hf__server_url_read(whole.data, NULL, &url, &err);
    require(status == HF_OK || err.message[0] != '\0', "a refusal says nothing");
    if (status == HF_OK) {
        hf__buf_printf(&open, "%s %s %s clickhouse+", url.base, url.user, url.database);
        check_secret(url.password, url.name, open.data);
        if (hf__server_url_at(&url, "other", &other, NULL) == HF_OK) {
            require(strcmp(other.database, url.database) == 0, "another database");
            require(strstr(other.base, "://other:") != NULL, "another host than asked for");
            hf__server_url_free(&other);
        }
        hf__server_url_free(&url);
    }
    hf__buf_free(&whole);
    hf__buf_free(&open);
}

static void read_endpoint(const char *text)
{
    hf__rpc_endpoint endpoint;
    hf__buf whole = {0};
    hf_error err = {0};

    hf__buf_printf(&whole, "rpc+%s", text);
    hf_status status = hf__rpc_endpoint_parse(whole.data, "testnet", &endpoint, &err);
    require(status == HF_OK || err.message[0] != '\0', "a refusal says nothing");
    if (status == HF_OK) {
        check_secret(endpoint.password, endpoint.name, endpoint.url);
        require(endpoint.poll_ms > 0 && endpoint.timeout_ms > 0, "a time is none");
        require(hf__rpc_may_redirect(endpoint.url, endpoint.url), "not even to itself");
        require(!hf__rpc_may_redirect(endpoint.url, "http://elsewhere.example:1/"), "to others");
        (void)hf__rpc_may_redirect(endpoint.url, text);
        hf__rpc_endpoint_free(&endpoint);
    }
    hf__buf_free(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);

    require(text != NULL, "out of memory");
    read_server(text);
    read_endpoint(text);
    free(text);
    return 0;
}
