/*
 * Answers of a Stellar RPC server, one on each line: what comes out is a ledger by every rule, or a
 * failure with a reason. A line that begins with { is the result of a call, others are sent as they
 * are.
 */
#include "fuzz.h"

#include <inttypes.h>
#include <string.h>

#include "programs/ingest/sources/rpc.h"

/* ---- in place of rpc_http.c ------------------------------------------------------------------ */

static const char *lines, *lines_end;

hf_status hf__rpc_http_open(const hf__rpc_endpoint *endpoint, bool is_known, int stop_fd,
                            hf__rpc_http **http, hf_error *err)
{
    (void)endpoint, (void)is_known, (void)stop_fd, (void)http, (void)err;
    return HF_OK;
}

void hf__rpc_http_close(hf__rpc_http *http)
{
    (void)http;
}

hf_status hf__rpc_pause(int stop_fd, int64_t deadline, hf_error *err)
{
    (void)stop_fd, (void)deadline;
    return lines < lines_end ? HF_OK : hf__fail(err, HF_INTERRUPTED, "no more answers");
}

hf_status hf__rpc_http_post(hf__rpc_http *http, const char *method, const hf__buf *request,
                            size_t answer_max, hf__buf *answer, hf__rpc_fault *fault, hf_error *err)
{
    const char *id = strstr(request->data, "\"id\":");

    (void)http, (void)method, (void)answer_max, (void)fault;
    if (lines >= lines_end || id == NULL)
        return hf__fail(err, HF_INTERRUPTED, "no more answers");
    const char *end = memchr(lines, '\n', (size_t)(lines_end - lines));
    size_t size = (size_t)((end != NULL ? end : lines_end) - lines);
    hf__buf_clear(answer);
    if (size > 0 && lines[0] == '{')
        hf__buf_printf(answer, "{\"id\":%" PRId64 ",\"result\":%.*s}",
                       (int64_t)strtoll(id + strlen("\"id\":"), NULL, 10), (int)size, lines);
    else
        hf__buf_add(answer, lines, size);
    lines += size + 1;
    return answer->broken ? hf__no_memory(err) : HF_OK;
}

bool hf__rpc_http_was_cut(const hf__rpc_http *http)
{
    (void)http;
    return false;
}

int64_t hf__rpc_http_not_before(const hf__rpc_http *http)
{
    (void)http;
    return 0;
}

void hf__rpc_http_distrust(hf__rpc_http *http)
{
    (void)http;
}

/* ---- what comes out -------------------------------------------------------------------------- */

static void check_ledger(const hf__ledger *ledger, int64_t wanted)
{
    hf_error err = {0};

    require(ledger->sequence == wanted, "it is another ledger");
    require(ledger->hash.size > 0 && ledger->hash.size <= HF__HASH_MAX, "a hash has no length");
    require(hf__ledger_check_hashes(ledger, &err) == HF_OK, "a hash comes twice");
    for (size_t i = 0; i < ledger->transaction_count; i++) {
        const hf__transaction *transaction = &ledger->transactions[i];
        hf__json_value body;
        require(transaction->order >= 1 && transaction->order <= HF__ORDER_MAX &&
                    (i == 0 || ledger->transactions[i - 1].order < transaction->order),
                "transactions are out of order");
        require(hf__json_parse(transaction->body.text, transaction->body.size, &body, NULL) ==
                        HF_OK &&
                    body.kind == HF__JSON_OBJECT,
                "a body is no object");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const hf__source_options options = {.spec = "rpc+http://h#poll=1s",
                                        .network = "testnet",
                                        .stop_fd = -1,
                                        .gives_back = size % 2 == 1,
                                        .line_max = 100000};
    hf__source *source = NULL;
    hf_error err = {0};

    lines = (const char *)data;
    lines_end = lines + size;
    require(hf__source_rpc(&options, &source, &err) == HF_OK, "no source");
    require(source->ops->seek(source, 7, &err) == HF_OK, "it cannot seek");
    for (int tries = 0; tries < 50 && lines < lines_end; tries++) {
        hf__ledger *ledger = NULL;
        hf__bad_ledger bad = {0};
        int64_t wanted = ((const hf__rpc *)source)->next;
        err = (hf_error){0};
        hf_status status = source->ops->next(source, &ledger, &bad, &err);
        require((status == HF_OK) == (ledger != NULL), "neither a ledger nor a failure");
        require(status == HF_OK || err.message[0] != '\0', "a failure says nothing");
        if (ledger != NULL && ((const hf__rpc *)source)->next == wanted + 1)
            check_ledger(ledger, wanted);
        hf__ledger_free(ledger);
        hf__bad_ledger_free(&bad);
    }
    source->ops->close(source);
    return 0;
}
