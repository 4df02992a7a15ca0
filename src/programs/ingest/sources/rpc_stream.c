#include "programs/ingest/sources/rpc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void hf__rpc_stream_clear(hf__rpc_stream *stream)
{
    hf__buf_free(&stream->answer);
    *stream = (hf__rpc_stream){0};
}

/* Begins the ledger anew: what is here does not fit together. */
static void start_over(hf__rpc *rpc)
{
    hf__rpc_stream_clear(&rpc->stream);
    hf__rpc_draft_clear(&rpc->draft);
}

static bool advance(hf__rpc_stream *stream)
{
    if (stream->answer.length > 0 && hf__json_walk_next(&stream->walk, NULL, &stream->item))
        return true;
    stream->item = (hf__json_value){0};
    if (stream->answer.capacity > HF__RPC_KEPT_BYTES)
        hf__buf_free(&stream->answer);
    hf__buf_clear(&stream->answer);
    return false;
}

/* How many transactions are still missing from the heads that are here; -1: unknown. */
static int64_t count_missing(const hf__rpc *rpc)
{
    int64_t missing = -(int64_t)rpc->draft.count;

    for (size_t i = rpc->head_at; i < rpc->head_count; i++) {
        if (rpc->heads[i].transaction_count < 0)
            return -1;
        missing += rpc->heads[i].transaction_count;
    }
    return missing;
}

/* A cursor leads on inside a ledger only; each ledger is entered by its number. */
static hf_status ask_page(hf__rpc *rpc, hf__json_value *result, hf__rpc_fault *fault, hf_error *err)
{
    const hf__rpc_head *head = &rpc->heads[rpc->head_at];
    int64_t missing = count_missing(rpc);
    char params[HF__RPC_CURSOR_MAX + 160], start[64] = "", cursor[HF__RPC_CURSOR_MAX + 32] = "";

    if (rpc->draft.count > 0)
        snprintf(cursor, sizeof cursor, "\"cursor\":\"%s\",", rpc->stream.cursor);
    else
        snprintf(start, sizeof start, "\"startLedger\":%" PRId64 ",", head->sequence);
    for (;;) {
        int limit = rpc->transactions.limit;
        int asked = missing >= 0 && missing < limit ? (int)missing : limit;
        snprintf(params, sizeof params,
                 "{%s\"pagination\":{%s\"limit\":%d},\"xdrFormat\":\"json\"}", start, cursor,
                 asked);
        hf__rpc_request request = {"getTransactions", params, hf__rpc_answer_max(rpc, asked)};
        hf_status status =
            hf__rpc_call(&rpc->client, &request, &rpc->stream.answer, result, fault, err);
        if (status == HF_OK)
            hf__rpc_page_learn(&rpc->transactions, asked, rpc->stream.answer.length);
        else
            hf__buf_clear(&rpc->stream.answer);
        bool is_smaller_asked = *fault == HF__RPC_TOO_LARGE || *fault == HF__RPC_LIMIT_REFUSED;
        if (is_smaller_asked || *fault == HF__RPC_TOO_SLOW) {
            rpc->transactions.limit = asked;
            hf__rpc_page_shrink(&rpc->transactions);
        }
        if (asked == 1 || !is_smaller_asked)
            return status;
    }
}

static hf_status settle_refusal(hf__rpc *rpc, hf__rpc_fault fault, hf_status status,
                                hf__bad_ledger *bad, hf_error *err)
{
    int64_t sequence = rpc->heads[rpc->head_at].sequence;
    const hf__rpc_client *client = &rpc->client;

    if (fault == HF__RPC_BAD_PARAMS && rpc->draft.count > 0) {
        start_over(rpc);
        return hf__fail(err, HF_UNREACHABLE,
                        "%s: getTransactions: the server does not know the cursor of another one",
                        rpc->base.name);
    }
    if (fault == HF__RPC_TOO_LARGE)
        hf__rpc_report_bad(bad, "getTransactions", sequence, (hf__slice){0});
    if (fault != HF__RPC_OUTSIDE_WINDOW)
        return status;
    if (sequence < client->window_oldest)
        return hf__rpc_too_old(rpc, sequence, client->window_oldest, err);
    if (sequence > client->window_latest)
        return hf__fail(err, HF_UNREACHABLE,
                        "%s: getTransactions: the server that answered is at ledger %" PRId64
                        ", behind %" PRId64,
                        rpc->base.name, client->window_latest, sequence);
    return status;
}

static void keep_cursor(hf__rpc_stream *stream, const hf__json_value *cursor)
{
    stream->cursor[0] = '\0';
    if (cursor->text.text == NULL || cursor->kind != HF__JSON_STRING ||
        cursor->text.size > HF__RPC_CURSOR_MAX)
        return;
    memcpy(stream->cursor, cursor->text.text, cursor->text.size);
    stream->cursor[cursor->text.size] = '\0';
}

/* The next page; *is_end when it is empty: there is no use for its cursor. */
static hf_status turn_page(hf__rpc *rpc, bool *is_end, hf__bad_ledger *bad, hf_error *err)
{
    static const char *const names[] = {"transactions", "latestLedger", "cursor"};
    int64_t sequence = rpc->heads[rpc->head_at].sequence, latest = sequence;
    hf__json_value result, members[3];
    hf__rpc_fault fault = HF__RPC_NO_FAULT;

    hf_status status = ask_page(rpc, &result, &fault, err);
    if (status != HF_OK)
        return settle_refusal(rpc, fault, status, bad, err);
    hf__rpc_pick(&result, names, 3, members);
    if (members[0].text.text == NULL || members[0].kind != HF__JSON_ARRAY) {
        hf__buf_clear(&rpc->stream.answer);
        return hf__fail(err, HF_UNREACHABLE, "%s: getTransactions: no transactions in the answer",
                        rpc->base.name);
    }
    if (members[1].text.text != NULL)
        (void)hf__json_integer(&members[1], true, 1, HF__LEDGER_MAX, &latest);
    hf__json_walk_begin(&rpc->stream.walk, &members[0]);
    keep_cursor(&rpc->stream, &members[2]);
    *is_end = !advance(&rpc->stream);
    if (*is_end && latest < sequence)
        return hf__fail(err, HF_UNREACHABLE,
                        "%s: getTransactions: the server that answered is at ledger %" PRId64
                        ", behind %" PRId64,
                        rpc->base.name, latest, sequence);
    return HF_OK;
}

static hf_status miss_transactions(hf__rpc *rpc, hf_error *err)
{
    const hf__rpc_head *head = &rpc->heads[rpc->head_at];
    size_t found = rpc->draft.count;

    start_over(rpc);
    return hf__fail(err, HF_UNREACHABLE,
                    "%s: getTransactions gave %zu of the %" PRId64
                    " transactions of ledger %" PRId64,
                    rpc->base.name, found, head->transaction_count, head->sequence);
}

static hf_status refuse(hf__rpc *rpc, hf_status status, const hf_error *why, hf__slice bytes,
                        hf__bad_ledger *bad, hf_error *err)
{
    int64_t sequence = rpc->heads[rpc->head_at].sequence;

    if (status == HF_BAD_DATA)
        hf__rpc_report_bad(bad, "getTransactions", sequence, bytes);
    status = hf__fail(err, status, "%s: getTransactions, ledger %" PRId64 ": %s", rpc->base.name,
                      sequence, why->message);
    hf__hint(err, "%s", why->hint);
    return status;
}

/* The item is of this ledger: the next of it, or bad. */
static hf_status take_item(hf__rpc *rpc, const hf__rpc_item *item, hf__bad_ledger *bad,
                           hf_error *err)
{
    hf_error why = {0};
    hf_status status = HF_OK;

    if ((size_t)item->order != rpc->draft.count + 1)
        status = hf__fail(&why, HF_BAD_DATA, "transaction %" PRId32 " follows transaction %zu",
                          item->order, rpc->draft.count);
    else if (rpc->draft.bytes.length + item->body.size > rpc->ledger_max)
        status =
            hf__fail(&why, HF_BAD_DATA, "the ledger is larger than %zu bytes", rpc->ledger_max);
    if (status != HF_OK)
        return refuse(rpc, status, &why, rpc->stream.item.text, bad, err);
    return hf__rpc_draft_add(&rpc->draft, item, err);
}

/* One step of collect; *is_done when the ledger is whole. */
static hf_status step(hf__rpc *rpc, bool *is_done, hf__bad_ledger *bad, hf_error *err)
{
    const hf__rpc_head *head = &rpc->heads[rpc->head_at];
    bool is_counted = head->transaction_count >= 0, is_end = false;
    hf__rpc_item item = {0};
    hf_error why = {0};
    hf_status status = HF_OK;

    *is_done = is_counted && (int64_t)rpc->draft.count == head->transaction_count;
    if (*is_done)
        return HF_OK;
    if (rpc->stream.item.text.text == NULL && rpc->draft.count > 0 &&
        rpc->stream.cursor[0] == '\0') {
        start_over(rpc);
        return hf__fail(err, HF_UNREACHABLE, "%s: getTransactions: no cursor in the answer",
                        rpc->base.name);
    }
    if (rpc->stream.item.text.text == NULL)
        status = turn_page(rpc, &is_end, bad, err);
    if (status != HF_OK)
        return status;
    if (!is_end) {
        status = hf__rpc_read_item(&rpc->stream.item, &item, &why);
        if (status != HF_OK)
            return refuse(rpc, status, &why, rpc->stream.item.text, bad, err);
        if (item.ledger < head->sequence) {
            start_over(rpc);
            return hf__fail(err, HF_UNREACHABLE,
                            "%s: getTransactions gave ledger %" PRId64 " when asked for %" PRId64,
                            rpc->base.name, item.ledger, head->sequence);
        }
    }
    if (is_end || item.ledger > head->sequence) {
        *is_done = !is_counted;
        return is_counted ? miss_transactions(rpc, err) : HF_OK;
    }
    status = take_item(rpc, &item, bad, err);
    if (status == HF_OK)
        advance(&rpc->stream);
    return status;
}

static hf_status finish(hf__rpc *rpc, hf__ledger **ledger, hf__bad_ledger *bad, hf_error *err)
{
    hf__ledger *made = NULL;
    hf_error why = {0};
    hf_status status =
        hf__rpc_draft_finish(&rpc->draft, &rpc->heads[rpc->head_at], rpc->base.tip, &made, err);

    if (status != HF_OK)
        return status;
    status = hf__ledger_check_hashes(made, &why);
    if (status != HF_OK) {
        status = refuse(rpc, status, &why, (hf__slice){made->bytes, strlen(made->bytes)}, bad, err);
        hf__ledger_free(made);
        return status;
    }
    *ledger = made;
    return HF_OK;
}

hf_status hf__rpc_collect(hf__rpc *rpc, hf__ledger **ledger, hf__bad_ledger *bad, hf_error *err)
{
    hf_status status;
    bool is_done = false;

    do {
        status = step(rpc, &is_done, bad, err);
    } while (status == HF_OK && !is_done);
    return status == HF_OK ? finish(rpc, ledger, bad, err) : status;
}
