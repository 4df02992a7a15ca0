#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "programs/ingest/sources/rpc.h"

void hf__rpc_stream_clear(hf__rpc_stream *stream)
{
    hf__buf_free(&stream->answer);
    *stream = (hf__rpc_stream){0};
}

/* Drops what was collected of the ledger, because it does not fit together. */
static void start_over(hf__rpc *rpc)
{
    hf__rpc_stream_clear(&rpc->stream);
    hf__rpc_draft_clear(&rpc->draft);
}

/* Takes the next item of the page. False: there is none. */
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

/* How many transactions of all heads are still to be fetched; -1: unknown. */
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

/* The bytes allowed for an answer. One item may be as large as a ledger: it cannot be split. */
static size_t answer_max(const hf__rpc *rpc, int asked)
{
    return asked == 1 && rpc->ledger_max > HF__RPC_ANSWER_BYTES ? rpc->ledger_max
                                                                : HF__RPC_ANSWER_BYTES;
}

/*
 * Asks for the next page, and for a smaller one while the answer is too large. A cursor is used
 * only inside a ledger; each new ledger is asked for by its number.
 */
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
        int asked = missing >= 0 && missing < limit ? (int)missing + 1 : limit; /* one too many? */
        snprintf(params, sizeof params,
                 "{%s\"pagination\":{%s\"limit\":%d},\"xdrFormat\":\"json\"}", start, cursor,
                 asked);
        hf__rpc_request request = {"getTransactions", params, answer_max(rpc, asked)};
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

static hf_status judge_refusal(hf__rpc *rpc, hf__rpc_fault fault, hf_status status,
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

/* Gets the next page. *is_end: it is empty, so there are no more transactions. */
static hf_status turn_page(hf__rpc *rpc, bool *is_end, hf__bad_ledger *bad, hf_error *err)
{
    static const char *const names[] = {"transactions", "latestLedger", "cursor"};
    int64_t sequence = rpc->heads[rpc->head_at].sequence, latest = sequence;
    hf__json_value result, members[3];
    hf__rpc_fault fault = HF__RPC_NO_FAULT;

    hf_status status = ask_page(rpc, &result, &fault, err);
    if (status != HF_OK)
        return judge_refusal(rpc, fault, status, bad, err);
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

/* Adds an item of this ledger, if it is the next one and not too large. */
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

/* All transactions that getLedgers spoke of are there: what comes next is of a later ledger. */
static hf_status refuse_surplus(hf__rpc *rpc, hf__bad_ledger *bad, hf_error *err)
{
    const hf__rpc_head *head = &rpc->heads[rpc->head_at];
    hf__rpc_item item = {0};
    hf_error why = {0};

    if (rpc->draft.count == 0 || rpc->stream.item.text.text == NULL ||
        hf__rpc_read_item(&rpc->stream.item, &item, NULL) != HF_OK || item.ledger != head->sequence)
        return HF_OK;
    (void)!hf__fail(&why, HF_BAD_DATA, "it has more than the %" PRId64 " that getLedgers states",
                    head->transaction_count);
    return refuse(rpc, HF_BAD_DATA, &why, item.body, bad, err);
}

/*
 * Gets a page if there is no item, and takes the next item. *is_done: the ledger is complete. If
 * its head does not tell the number of transactions, it is complete when an item of a later ledger,
 * or an empty page, comes.
 */
static hf_status step(hf__rpc *rpc, bool *is_done, hf__bad_ledger *bad, hf_error *err)
{
    const hf__rpc_head *head = &rpc->heads[rpc->head_at];
    bool is_counted = head->transaction_count >= 0, is_end = false;
    hf__rpc_item item = {0};
    hf_error why = {0};
    hf_status status = HF_OK;

    *is_done = is_counted && (int64_t)rpc->draft.count == head->transaction_count;
    if (*is_done)
        return refuse_surplus(rpc, bad, err);
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
    const hf__rpc_head *head = &rpc->heads[rpc->head_at];
    bool fits = hf__rpc_draft_fits(&rpc->draft, head);
    hf_status status = hf__rpc_draft_finish(&rpc->draft, head, rpc->base.tip, &made, err);

    if (status != HF_OK)
        return status;
    status = hf__ledger_check_hashes(made, &why);
    if (status == HF_OK && !fits)
        status = hf__fail(&why, HF_BAD_DATA, "the hashes are not those that getLedgers states");
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

/* ---- pages of getLedgers --------------------------------------------------------------------- */

void hf__rpc_page_shrink(hf__rpc_page *page)
{
    page->limit = page->limit > 1 ? page->limit / 2 : 1;
}

void hf__rpc_page_learn(hf__rpc_page *page, int asked, size_t bytes)
{
    int step = page->limit / 4 > 0 ? page->limit / 4 : 1;

    if (bytes > HF__RPC_PAGE_BYTES) {
        hf__rpc_page_shrink(page);
    } else if (asked > 0 && asked == page->limit) {
        /* Grow only if the larger page still fits when the next items are as large as these. */
        size_t expected = bytes / (size_t)asked * (size_t)(page->limit + step);
        if (expected <= HF__RPC_PAGE_BYTES)
            page->limit += step;
    }
    if (page->limit > HF__RPC_PAGE_ITEMS)
        page->limit = HF__RPC_PAGE_ITEMS;
}

/* Hashes of Stellar: 32 bytes, as small hexadecimal digits. */
static bool take_hash(const hf__json_value *value, char hash[HF__HASH_MAX + 1])
{
    enum { DIGITS = 64 };

    if (value->text.text == NULL || value->kind != HF__JSON_STRING || value->escaped ||
        value->text.size != DIGITS)
        return false;
    for (size_t i = 0; i < DIGITS; i++) {
        char digit = value->text.text[i];
        if (!(digit >= '0' && digit <= '9') && !(digit >= 'a' && digit <= 'f'))
            return false;
    }
    memcpy(hash, value->text.text, value->text.size);
    hash[value->text.size] = '\0';
    return true;
}

static bool is_filled(const hf__json_value *value)
{
    return value->text.text != NULL && value->kind != HF__JSON_NULL && value->text.size > 0;
}

/* The value inside a union such as {"v1": {…}}; a bare "v0" has none. */
static hf__json_value union_arm(const hf__json_value *value)
{
    hf__json_walk walk;
    hf__json_value arm = {0}, found = {0};

    if (value->text.text == NULL || value->kind != HF__JSON_OBJECT)
        return found;
    hf__json_walk_begin(&walk, value);
    if (hf__json_walk_next(&walk, NULL, &arm))
        found = arm;
    return found;
}

static bool add_hash(const hf__json_value *entry, uint64_t *hashes)
{
    static const char *const outer[] = {"result"}, *const inner[] = {"transaction_hash"};
    hf__json_value result, hash;

    hf__rpc_pick(entry, outer, 1, &result);
    hf__rpc_pick(&result, inner, 1, &hash);
    if (hash.text.text == NULL || hash.kind != HF__JSON_STRING)
        return false;
    *hashes += hf__rpc_digest(hash.text);
    return true;
}

/*
 * Counts the entries of a ledger's meta, one per transaction. The count tells when getTransactions
 * has given them all. -1: there is no such list.
 */
static int64_t count_transactions(const hf__json_value *meta, hf__rpc_head *head)
{
    static const char *const names[] = {"tx_processing"};
    hf__json_value arm = union_arm(meta), entries, entry;
    hf__json_walk walk;
    int64_t count = 0;

    hf__rpc_pick(&arm, names, 1, &entries);
    if (entries.text.text == NULL || entries.kind != HF__JSON_ARRAY)
        return -1;
    hf__json_walk_begin(&walk, &entries);
    head->has_hashes = true;
    while (hf__json_walk_next(&walk, NULL, &entry)) {
        head->has_hashes = head->has_hashes && add_hash(&entry, &head->hashes);
        count++;
    }
    return count;
}

static hf_status read_previous(const hf__json_value *header, hf__rpc_head *head, hf_error *err)
{
    static const char *const outer[] = {"header", "hash"};
    static const char *const inner[] = {"previous_ledger_hash", "ledger_seq"};
    hf__json_value members[2], within[2];
    int64_t sequence = head->sequence;

    hf__rpc_pick(header, outer, 2, members);
    if (members[1].text.text != NULL && !hf__slice_is(members[1].text, head->hash))
        return hf__fail(err, HF_BAD_DATA, "the ledger's hash is not the one in its headerJson");
    hf__rpc_pick(&members[0], inner, 2, within);
    if (!take_hash(&within[0], head->previous_hash))
        return hf__fail(err, HF_BAD_DATA, "headerJson has no previous_ledger_hash");
    if (within[1].text.text != NULL &&
        (!hf__json_integer(&within[1], true, 1, HF__LEDGER_MAX, &sequence) ||
         sequence != head->sequence))
        return hf__fail(err, HF_BAD_DATA, "headerJson is of another ledger, by its ledger_seq");
    return HF_OK;
}

hf_status hf__rpc_read_head(const hf__json_value *item, hf__rpc_head *head, hf_error *err)
{
    enum { HASH, SEQUENCE, CLOSED, HEADER, HEADER_XDR, META, COUNT };
    static const char *const names[COUNT] = {"hash",       "sequence",  "ledgerCloseTime",
                                             "headerJson", "headerXdr", "metadataJson"};
    hf__json_value members[COUNT];
    int64_t seconds = 0;

    *head = (hf__rpc_head){0};
    hf__rpc_pick(item, names, COUNT, members);
    if (!is_filled(&members[HEADER]) && is_filled(&members[HEADER_XDR])) {
        hf_status status = hf__fail(err, HF_CONFIG, "the server gives XDR instead of JSON");
        hf__hint(err, "it needs a version that knows xdrFormat \"json\"");
        return status;
    }
    if (members[SEQUENCE].text.text == NULL ||
        !hf__json_integer(&members[SEQUENCE], true, 1, HF__LEDGER_MAX, &head->sequence))
        return hf__fail(err, HF_BAD_DATA, "the ledger has no sequence");
    if (!take_hash(&members[HASH], head->hash))
        return hf__fail(err, HF_BAD_DATA, "the ledger has no hash of 64 hexadecimal digits");
    if (members[CLOSED].text.text == NULL ||
        !hf__json_integer(&members[CLOSED], true, 0, INT64_MAX / 1000000, &seconds))
        return hf__fail(err, HF_BAD_DATA, "the ledger has no ledgerCloseTime in Unix seconds");
    head->closed_at_us = seconds * 1000000;
    head->transaction_count = count_transactions(&members[META], head);
    return read_previous(&members[HEADER], head, err);
}

/* Asks for a page from next on, and for a smaller one while the answer is too large. */
static hf_status ask_heads(hf__rpc *rpc, hf__buf *answer, hf__json_value *result,
                           hf__rpc_fault *fault, hf_error *err)
{
    char params[160];

    for (;;) {
        int asked = rpc->ledgers.limit;
        snprintf(params, sizeof params,
                 "{\"startLedger\":%" PRId64
                 ",\"pagination\":{\"limit\":%d},\"xdrFormat\":\"json\"}",
                 rpc->next, asked);
        hf__rpc_request request = {"getLedgers", params, answer_max(rpc, asked)};
        hf_status status = hf__rpc_call(&rpc->client, &request, answer, result, fault, err);
        if (status == HF_OK)
            hf__rpc_page_learn(&rpc->ledgers, asked, answer->length);
        if (*fault == HF__RPC_TOO_LARGE || *fault == HF__RPC_TOO_SLOW ||
            *fault == HF__RPC_LIMIT_REFUSED)
            hf__rpc_page_shrink(&rpc->ledgers);
        if (asked == 1 || (*fault != HF__RPC_TOO_LARGE && *fault != HF__RPC_LIMIT_REFUSED))
            return status;
    }
}

/* Reads the items of a page while each is the next ledger. The rest will be asked for again. */
static hf_status read_page(hf__rpc *rpc, const hf__json_value *list, hf__bad_ledger *bad,
                           hf_error *err)
{
    hf__json_walk walk;
    hf__json_value item;
    hf_error why = {0};

    hf__json_walk_begin(&walk, list);
    while (rpc->head_count < HF__RPC_PAGE_ITEMS && hf__json_walk_next(&walk, NULL, &item)) {
        hf__rpc_head *head = &rpc->heads[rpc->head_count];
        int64_t wanted = rpc->next + (int64_t)rpc->head_count;
        hf_status status = hf__rpc_read_head(&item, head, &why);
        bool is_first = rpc->head_count == 0;
        if (status != HF_OK && is_first) {
            if (status == HF_BAD_DATA)
                hf__rpc_report_bad(bad, "getLedgers", wanted, item.text);
            status = hf__fail(err, status, "%s: getLedgers, ledger %" PRId64 ": %s", rpc->base.name,
                              wanted, why.message);
            hf__hint(err, "%s", why.hint);
            return status;
        }
        if (status == HF_OK && head->sequence != wanted && is_first)
            return hf__fail(err, HF_UNREACHABLE,
                            "%s: getLedgers gave ledger %" PRId64 " when asked for %" PRId64,
                            rpc->base.name, head->sequence, wanted);
        if (status != HF_OK || head->sequence != wanted)
            return HF_OK;
        rpc->head_count++;
    }
    if (rpc->head_count == 0)
        return hf__fail(err, HF_UNREACHABLE, "%s: getLedgers gave no ledger from %" PRId64 " on",
                        rpc->base.name, rpc->next);
    return HF_OK;
}

static hf_status judge_heads_refusal(hf__rpc *rpc, hf__rpc_fault fault, hf_status status,
                                     hf__bad_ledger *bad, hf_error *err)
{
    const hf__rpc_client *client = &rpc->client;

    if (fault == HF__RPC_TOO_LARGE)
        hf__rpc_report_bad(bad, "getLedgers", rpc->next, (hf__slice){0});
    if (fault != HF__RPC_OUTSIDE_WINDOW)
        return status;
    if (rpc->next < client->window_oldest)
        return hf__rpc_too_old(rpc, rpc->next, client->window_oldest, err);
    if (rpc->next <= client->window_latest)
        return status;
    /* Behind one address there may be several servers: this one has less than getHealth told. */
    rpc->base.tip = client->window_latest;
    return hf__rpc_pause(rpc->stop_fd, hf__deadline(rpc->endpoint.poll_ms), err);
}

hf_status hf__rpc_fetch_heads(hf__rpc *rpc, hf__bad_ledger *bad, hf_error *err)
{
    static const char *const names[] = {"ledgers", "latestLedger"};
    hf__json_value result, members[2];
    hf__rpc_fault fault = HF__RPC_NO_FAULT;
    hf__buf answer = {0};

    rpc->head_count = 0;
    rpc->head_at = 0;
    hf_status status = ask_heads(rpc, &answer, &result, &fault, err);
    if (status != HF_OK) {
        status = judge_heads_refusal(rpc, fault, status, bad, err);
        goto out;
    }
    hf__rpc_pick(&result, names, 2, members);
    if (members[1].text.text != NULL)
        (void)hf__json_integer(&members[1], true, 1, HF__LEDGER_MAX, &rpc->base.tip);
    if (members[0].text.text == NULL || members[0].kind != HF__JSON_ARRAY)
        status = hf__fail(err, HF_UNREACHABLE, "%s: getLedgers: no ledgers in the answer",
                          rpc->base.name);
    else
        status = read_page(rpc, &members[0], bad, err);
out:
    hf__buf_free(&answer);
    return status;
}
