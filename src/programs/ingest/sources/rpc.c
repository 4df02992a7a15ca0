#include "programs/ingest/sources/rpc.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

enum {
    FIRST_LEDGERS = 5, /* to ask for at first: ledgers of pubnet are large */
    FIRST_TRANSACTIONS = 100,
    FAR_BEHIND = 5, /* ledgers: half a minute. Servers behind one address differ by less */
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

/* ---- JSON-RPC calls -------------------------------------------------------------------------- */

enum {
    SMALL_ANSWER = 1024 * 1024,

    /* Error codes: of JSON-RPC, and the last one of Stellar RPC. */
    INVALID_REQUEST = -32600,
    METHOD_NOT_FOUND = -32601,
    INVALID_PARAMS = -32602,
    PROCESSING_LIMIT = -32001,
};

void hf__rpc_pick(const hf__json_value *object, const char *const *names, size_t count,
                  hf__json_value *values)
{
    hf__json_walk walk;
    hf__json_value value;
    hf__slice name;

    memset(values, 0, count * sizeof *values);
    if (object->text.text == NULL || object->kind != HF__JSON_OBJECT)
        return;
    hf__json_walk_begin(&walk, object);
    while (hf__json_walk_next(&walk, &name, &value))
        for (size_t i = 0; i < count; i++)
            if (hf__slice_is(name, names[i]))
                values[i] = value;
}

/* Decodes a string's escapes. The caller frees it. NULL: it is no string, or has a NUL in it. */
static char *decode_text(const hf__json_value *value)
{
    char *text = NULL;

    if (value->text.text == NULL || value->kind != HF__JSON_STRING)
        return NULL;
    /* The slice is without the quotes that stand around it. */
    json_t *decoded = json_loadb(value->text.text - 1, value->text.size + 2, JSON_DECODE_ANY, NULL);
    if (decoded != NULL && json_is_string(decoded))
        text = strdup(json_string_value(decoded));
    json_decref(decoded);
    return text;
}

/* The number after a text such as "oldest ledger: "; 0: there is none. */
static int64_t number_behind(const char *message, const char *text)
{
    const char *place = strstr(message, text);
    int64_t number = 0;

    if (place == NULL)
        return 0;
    for (place += strlen(text); *place >= '0' && *place <= '9'; place++)
        if (number <= UINT32_MAX)
            number = number * 10 + (*place - '0');
    return number <= UINT32_MAX ? number : 0;
}

/* Goes by the message, because the server has one code for all that is wrong with a request. */
static hf__rpc_fault sort_refusal(hf__rpc_client *client, int64_t code, const char *message)
{
    client->window_oldest = number_behind(message, "oldest ledger: ");
    client->window_latest = number_behind(message, "latest ledger: ");
    if (code == INVALID_REQUEST && client->window_oldest > 0 && client->window_latest > 0)
        return HF__RPC_OUTSIDE_WINDOW;
    if (code == INVALID_REQUEST && strstr(message, "limit") != NULL)
        return HF__RPC_LIMIT_REFUSED;
    return code == INVALID_PARAMS ? HF__RPC_BAD_PARAMS : HF__RPC_NO_FAULT;
}

hf_status hf__rpc_classify(hf__rpc_client *client, const char *method, const hf__json_value *error,
                           hf__rpc_fault *fault, hf_error *err)
{
    static const char *const names[] = {"code", "message"};
    hf__json_value members[2];
    int64_t code = 0;
    char shown[256];

    hf__rpc_pick(error, names, 2, members);
    if (members[0].text.text == NULL ||
        !hf__json_integer(&members[0], true, INT32_MIN, INT32_MAX, &code))
        return hf__fail(err, HF_UNREACHABLE, "%s: %s: an error without a code", client->name,
                        method);
    char *message = decode_text(&members[1]);
    const char *words = message != NULL ? message : "";
    hf__show(shown, sizeof shown, words, strlen(words));

    bool is_final = code == INVALID_REQUEST || code == METHOD_NOT_FOUND || code == INVALID_PARAMS;
    if (is_final)
        *fault = sort_refusal(client, code, words);
    else if (code == PROCESSING_LIMIT)
        *fault = HF__RPC_TOO_SLOW;
    hf_status status =
        hf__fail(err, is_final ? HF_CONFIG : HF_UNREACHABLE, "%s: %s: %s (error %" PRId64 ")",
                 client->name, method, shown, code);
    free(message);
    return status;
}

static hf_status write_request(hf__rpc_client *client, const hf__rpc_request *request,
                               hf__buf *text, hf_error *err)
{
    hf__buf_printf(text, "{\"jsonrpc\":\"2.0\",\"id\":%" PRId64 ",\"method\":\"%s\"",
                   ++client->last_id, request->method);
    if (request->params != NULL)
        hf__buf_printf(text, ",\"params\":%s", request->params);
    hf__buf_puts(text, "}");
    return text->broken ? hf__no_memory(err) : HF_OK;
}

/* Reads the result from a complete answer. */
static hf_status read_answer(hf__rpc_client *client, const char *method, const hf__buf *answer,
                             hf__json_value *result, hf__rpc_fault *fault, hf_error *err)
{
    static const char *const names[] = {"id", "error", "result"};
    hf__json_value whole, members[3];
    hf_error why = {0};
    int64_t id = 0;

    if (hf__json_parse(answer->data != NULL ? answer->data : "", answer->length, &whole, &why) !=
        HF_OK)
        return hf__fail(err, HF_UNREACHABLE, "%s: %s: %s", client->name, method, why.message);
    hf__rpc_pick(&whole, names, 3, members);
    if (members[1].text.text != NULL && members[1].kind == HF__JSON_OBJECT)
        return hf__rpc_classify(client, method, &members[1], fault, err);
    if (members[0].text.text == NULL || !hf__json_integer(&members[0], true, 1, INT64_MAX, &id) ||
        id != client->last_id)
        return hf__fail(err, HF_UNREACHABLE, "%s: %s: the answer is not to this request",
                        client->name, method);
    if (members[2].text.text == NULL || members[2].kind != HF__JSON_OBJECT)
        return hf__fail(err, HF_UNREACHABLE, "%s: %s: the answer has neither result nor error",
                        client->name, method);
    *result = members[2];
    return HF_OK;
}

hf_status hf__rpc_call(hf__rpc_client *client, const hf__rpc_request *request, hf__buf *answer,
                       hf__json_value *result, hf__rpc_fault *fault, hf_error *err)
{
    hf__buf text = {0};

    *fault = HF__RPC_NO_FAULT;
    *result = (hf__json_value){0};
    hf_status status = write_request(client, request, &text, err);
    if (status == HF_OK)
        status = hf__rpc_http_post(client->http, request->method, &text, request->answer_max,
                                   answer, fault, err);
    if (status == HF_OK) {
        status = read_answer(client, request->method, answer, result, fault, err);
        if (status == HF_UNREACHABLE)
            hf__rpc_http_distrust(client->http);
    }
    hf__buf_free(&text);
    return status;
}

/* An answer that is too large is no ledger's fault here, as it is with getLedgers. */
static hf_status call_small(hf__rpc_client *client, const char *method, hf__buf *answer,
                            hf__json_value *result, hf_error *err)
{
    const hf__rpc_request request = {.method = method, .answer_max = SMALL_ANSWER};
    hf__rpc_fault fault;
    hf_status status = hf__rpc_call(client, &request, answer, result, &fault, err);

    if (status == HF_BAD_DATA && err != NULL)
        err->code = HF_UNREACHABLE;
    return status == HF_BAD_DATA ? HF_UNREACHABLE : status;
}

static hf_status ask_health(hf__rpc_client *client, int64_t *oldest, int64_t *latest, hf_error *err)
{
    static const char *const names[] = {"oldestLedger", "latestLedger"};
    hf__json_value result, members[2];
    hf__buf answer = {0};

    hf_status status = call_small(client, "getHealth", &answer, &result, err);
    if (status == HF_OK) {
        hf__rpc_pick(&result, names, 2, members);
        if (members[0].text.text == NULL || members[1].text.text == NULL ||
            !hf__json_integer(&members[0], true, 1, HF__LEDGER_MAX, oldest) ||
            !hf__json_integer(&members[1], true, 1, HF__LEDGER_MAX, latest))
            status = hf__fail(err, HF_UNREACHABLE, "%s: getHealth: no ledgers in the answer",
                              client->name);
    }
    hf__buf_free(&answer);
    return status;
}

/* HF_CONFIG when the server is of another network. */
static hf_status check_network(hf__rpc_client *client, const char *passphrase, hf_error *err)
{
    static const char *const names[] = {"passphrase"};
    hf__json_value result, member;
    hf__buf answer = {0};
    char *theirs = NULL, shown[256];

    hf_status status = call_small(client, "getNetwork", &answer, &result, err);
    if (status != HF_OK)
        goto out;
    hf__rpc_pick(&result, names, 1, &member);
    theirs = decode_text(&member);
    if (theirs == NULL) {
        status = hf__fail(err, HF_UNREACHABLE, "%s: getNetwork: no passphrase in the answer",
                          client->name);
    } else if (strcmp(theirs, passphrase) != 0) {
        status =
            hf__fail(err, HF_CONFIG, "%s: the server is of \"%s\", not of \"%s\"", client->name,
                     hf__show(shown, sizeof shown, theirs, strlen(theirs)), passphrase);
        hf__hint(err, "give the source of the network, or the network of the source");
    }
out:
    free(theirs);
    hf__buf_free(&answer);
    return status;
}

/* ---- the source ------------------------------------------------------------------------------ */

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

static hf_status check_network_once(hf__rpc *rpc, hf_error *err)
{
    if (rpc->network_is_checked)
        return HF_OK;
    hf_status status = check_network(&rpc->client, rpc->endpoint.passphrase, err);
    rpc->network_is_checked = status == HF_OK;
    return status;
}

/*
 * After a connection was cut, the server may be another one, so its network is checked again. Not
 * after every HF_UNREACHABLE: with a server that allows one request per pause, we would never get
 * to the ledgers.
 */
static hf_status settle(hf__rpc *rpc, hf_status status)
{
    if (status == HF_UNREACHABLE && hf__rpc_http_was_cut(rpc->client.http))
        rpc->network_is_checked = false;
    return status;
}

/*
 * The server is far behind the ledger that is wanted: it lags, or it has begun another chain. Its
 * newest ledger tells which.
 */
static void go_back(hf__rpc *rpc)
{
    char message[512];

    if (rpc->has_gone_back || rpc->next - rpc->base.tip <= FAR_BEHIND)
        return;
    rpc->has_gone_back = true;
    snprintf(message, sizeof message,
             "%s: waiting for ledger %" PRId64 ", but the server is at %" PRId64
             ": it lags behind, or the network was reset",
             rpc->base.name, rpc->next, rpc->base.tip);
    if (rpc->log != NULL)
        rpc->log(rpc->log_arg, HF_LOG_WARNING, message);
    if (!rpc->gives_back)
        return;
    rpc->return_to = rpc->next;
    rpc->next = rpc->base.tip;
}

static void return_from_back(hf__rpc *rpc)
{
    rpc->next = rpc->return_to;
    rpc->return_to = 0;
    drop_heads(rpc);
}

/* Waits until the server has ledger next. */
static hf_status await_ledger(hf__rpc *rpc, hf_error *err)
{
    int64_t oldest = 0;

    while (rpc->next == 0 || rpc->next > rpc->base.tip) {
        hf_status status = ask_health(&rpc->client, &oldest, &rpc->base.tip, err);
        if (status != HF_OK)
            return status;
        if (rpc->next == 0)
            rpc->next = oldest;
        if (rpc->next < oldest)
            return hf__rpc_too_old(rpc, rpc->next, oldest, err);
        if (rpc->next <= rpc->base.tip)
            break;
        go_back(rpc);
        if (rpc->return_to > 0)
            return HF_OK;
        status = hf__rpc_pause(rpc->stop_fd, hf__deadline(rpc->endpoint.poll_ms), err);
        if (status != HF_OK)
            return status;
    }
    if (rpc->return_to == 0)
        rpc->has_gone_back = false;
    return HF_OK;
}

static hf_status get_ledger(hf__rpc *rpc, hf__ledger **ledger, hf__bad_ledger *bad, hf_error *err)
{
    hf_status status = check_network_once(rpc, err);

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
    source->not_before = hf__rpc_http_not_before(rpc->client.http);
    if (rpc->return_to > 0 && status == HF_BAD_DATA) {
        hf__bad_ledger_free(bad); /* it was only to be compared */
        status = HF_UNREACHABLE;
    } else if (rpc->return_to > 0 && status == HF_UNREACHABLE) {
        rpc->has_gone_back = false; /* try that again */
    }
    if (rpc->return_to > 0) {
        return_from_back(rpc);
    } else if (status == HF_OK) {
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
    hf_status status = check_network_once(rpc, err);

    if (status == HF_OK)
        status = ask_health(&rpc->client, oldest, latest, err);
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
    rpc->return_to = 0;
    rpc->base.tip = 0; /* makes await_ledger ask what the server has */
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
        return hf__no_memory(err);
    rpc->base.ops = &rpc_ops;
    rpc->stop_fd = options->stop_fd;
    rpc->ledger_max = options->line_max > 0 ? options->line_max : DEFAULT_LEDGER_MAX;
    rpc->gives_back = options->gives_back;
    rpc->log = options->log;
    rpc->log_arg = options->log_arg;
    rpc->ledgers.limit = FIRST_LEDGERS;
    rpc->transactions.limit = FIRST_TRANSACTIONS;

    hf_status status = hf__rpc_endpoint_parse(options->spec, options->network, &rpc->endpoint, err);
    if (status == HF_OK && (rpc->base.name = strdup(rpc->endpoint.name)) == NULL)
        status = hf__no_memory(err);
    if (status == HF_OK)
        status = hf__rpc_http_open(&rpc->endpoint, options->is_known, options->stop_fd,
                                   &rpc->client.http, err);
    rpc->client.name = rpc->base.name;
    if (status != HF_OK) {
        rpc_close(&rpc->base);
        return status;
    }
    *source = &rpc->base;
    return HF_OK;
}
