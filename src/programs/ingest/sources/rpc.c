#include "programs/ingest/sources/rpc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    FIRST_LEDGERS = 5, /* of the size that those of pubnet have */
    FIRST_TRANSACTIONS = 100,
    FAR_BEHIND = 60, /* ledgers: five minutes */
};

#define DEFAULT_LEDGER_MAX ((size_t)256 * 1024 * 1024)
#define BAD_BYTES_MAX ((size_t)1024 * 1024)

void hf__rpc_report_bad(hf__bad_ledger *bad, const char *method, int64_t sequence, hf__slice bytes)
{
    if (bad == NULL)
        return;
    *bad = (hf__bad_ledger){.sequence = sequence};
    snprintf(bad->where, sizeof bad->where, "%s from %" PRId64, method, sequence);
    size_t size = bytes.size < BAD_BYTES_MAX ? bytes.size : BAD_BYTES_MAX;
    bad->bytes = malloc(size + 1);
    if (bad->bytes == NULL)
        return;
    if (size > 0)
        memcpy(bad->bytes, bytes.text, size);
    bad->bytes[size] = '\0';
    bad->size = size;
}

hf_status hf__rpc_too_old(hf__rpc *rpc, int64_t sequence, int64_t oldest, hf_error *err)
{
    hf_status status = hf__fail(err, HF_CONFIG,
                                "%s: a permanent gap: ledger %" PRId64
                                " is wanted, and the oldest that the server still has is %" PRId64,
                                rpc->base.name, sequence, oldest);
    hf__hint(err, "take the ledgers before %" PRId64 " from a source that keeps more of them",
             oldest);
    return status;
}

static void drop_heads(hf__rpc *rpc)
{
    rpc->head_count = 0;
    rpc->head_at = 0;
    hf__rpc_stream_clear(&rpc->stream);
    hf__rpc_draft_clear(&rpc->draft);
}

static hf_status check_network(hf__rpc *rpc, hf_error *err)
{
    if (rpc->network_is_checked)
        return HF_OK;
    hf_status status = hf__rpc_check_network(&rpc->client, rpc->endpoint.passphrase, err);
    rpc->network_is_checked = status == HF_OK;
    return status;
}

/* The network is asked for again only where it may have changed, not at each busy answer: a server
 * that grants one request per pause would never get to the ledgers. */
static hf_status settle(hf__rpc *rpc, hf_status status)
{
    if (status == HF_UNREACHABLE && hf__rpc_http_was_cut(rpc->client.http))
        rpc->network_is_checked = false;
    return status;
}

static void warn_far_behind(hf__rpc *rpc)
{
    char message[512];

    if (rpc->has_warned || rpc->log == NULL || rpc->next - rpc->base.tip <= FAR_BEHIND)
        return;
    snprintf(message, sizeof message,
             "%s: waiting for ledger %" PRId64 ", but the server is at %" PRId64
             ": it lags behind, or the network was reset",
             rpc->base.name, rpc->next, rpc->base.tip);
    rpc->log(rpc->log_arg, HF_LOG_WARNING, message);
    rpc->has_warned = true;
}

/* Until the server has ledger next. */
static hf_status await_ledger(hf__rpc *rpc, hf_error *err)
{
    int64_t oldest = 0;

    while (rpc->next == 0 || rpc->next > rpc->base.tip) {
        hf_status status = hf__rpc_health(&rpc->client, &oldest, &rpc->base.tip, err);
        if (status != HF_OK)
            return status;
        if (rpc->next == 0)
            rpc->next = oldest;
        if (rpc->next < oldest)
            return hf__rpc_too_old(rpc, rpc->next, oldest, err);
        if (rpc->next <= rpc->base.tip)
            break;
        warn_far_behind(rpc);
        status = hf__rpc_pause(rpc->stop_fd, hf__deadline(rpc->endpoint.poll_ms), err);
        if (status != HF_OK)
            return status;
    }
    rpc->has_warned = false;
    return HF_OK;
}

static hf_status get_ledger(hf__rpc *rpc, hf__ledger **ledger, hf__bad_ledger *bad, hf_error *err)
{
    hf_status status = check_network(rpc, err);

    while (status == HF_OK && rpc->head_at == rpc->head_count) {
        status = await_ledger(rpc, err);
        if (status == HF_OK)
            status = hf__rpc_fetch_heads(rpc, bad, err);
    }
    return status == HF_OK ? hf__rpc_collect(rpc, ledger, bad, err) : status;
}

static hf_status rpc_next(hf__source *source, hf__ledger **ledger, hf__bad_ledger *bad,
                          hf_error *err)
{
    hf__rpc *rpc = (hf__rpc *)source;

    *ledger = NULL;
    if (rpc->next > HF__LEDGER_MAX)
        return hf__fail(err, HF_CONFIG, "%s: there is no ledger behind %d", source->name,
                        HF__LEDGER_MAX);
    hf_status status = get_ledger(rpc, ledger, bad, err);
    if (status == HF_OK) {
        rpc->head_at++;
        rpc->next++;
    } else if (status == HF_BAD_DATA) {
        drop_heads(rpc);
        rpc->next++;
    }
    return settle(rpc, status);
}

static hf_status rpc_extent(hf__source *source, int64_t *oldest, int64_t *latest, hf_error *err)
{
    hf__rpc *rpc = (hf__rpc *)source;
    hf_status status = check_network(rpc, err);

    if (status == HF_OK)
        status = hf__rpc_health(&rpc->client, oldest, latest, err);
    if (status == HF_OK)
        rpc->base.tip = *latest;
    return settle(rpc, status);
}

static hf_status rpc_seek(hf__source *source, int64_t from, hf_error *err)
{
    hf__rpc *rpc = (hf__rpc *)source;

    if (from < 1 || from > HF__LEDGER_MAX)
        return hf__fail(err, HF_CONFIG, "%s: there is no ledger %" PRId64, source->name, from);
    if (from == rpc->next)
        return HF_OK;
    drop_heads(rpc);
    rpc->next = from;
    rpc->base.tip = 0; /* so that the window is looked at */
    return HF_OK;
}

static void rpc_close(hf__source *source)
{
    hf__rpc *rpc = (hf__rpc *)source;

    drop_heads(rpc);
    hf__rpc_http_close(rpc->client.http);
    hf__rpc_endpoint_free(&rpc->endpoint);
    free(source->name);
    free(rpc);
}

static const hf__source_ops rpc_ops = {rpc_extent, rpc_seek, rpc_next, rpc_close};

hf_status hf__source_rpc(const hf__source_options *options, hf__source **source, hf_error *err)
{
    hf__rpc *rpc = calloc(1, sizeof *rpc);

    if (rpc == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    rpc->base.ops = &rpc_ops;
    rpc->stop_fd = options->stop_fd;
    rpc->ledger_max = options->line_max > 0 ? options->line_max : DEFAULT_LEDGER_MAX;
    rpc->log = options->log;
    rpc->log_arg = options->log_arg;
    rpc->ledgers.limit = FIRST_LEDGERS;
    rpc->transactions.limit = FIRST_TRANSACTIONS;

    hf_status status = hf__rpc_endpoint_parse(options->spec, options->network, &rpc->endpoint, err);
    if (status == HF_OK && (rpc->base.name = strdup(rpc->endpoint.name)) == NULL)
        status = hf__fail(err, HF_NO_MEMORY, "out of memory");
    if (status == HF_OK)
        status = hf__rpc_http_open(&rpc->endpoint, options->stop_fd, &rpc->client.http, err);
    rpc->client.name = rpc->base.name;
    if (status != HF_OK) {
        rpc_close(&rpc->base);
        return status;
    }
    *source = &rpc->base;
    return HF_OK;
}
