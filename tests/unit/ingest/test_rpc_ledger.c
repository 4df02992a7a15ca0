#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "programs/ingest/sources/rpc.h"

static hf__json_value parse(const char *text)
{
    hf__json_value value;

    assert_int_equal(hf__json_parse(text, strlen(text), &value, NULL), HF_OK);
    return value;
}

static hf__rpc_item read_item(const char *text)
{
    hf__json_value value = parse(text);
    hf__rpc_item item;
    hf_error err = {0};

    if (hf__rpc_read_item(&value, &item, &err) != HF_OK)
        fail_msg("%s", err.message);
    return item;
}

/* The body that the ledger would have for the item. */
static void assert_body(const char *text, const char *wanted)
{
    hf__rpc_draft draft = {0};
    hf__rpc_head head = {.sequence = 7, .hash = "aa"};
    hf__rpc_item item = read_item(text);
    hf__ledger *ledger = NULL;

    assert_int_equal(hf__rpc_draft_add(&draft, &item, NULL), HF_OK);
    assert_int_equal(hf__rpc_draft_finish(&draft, &head, 0, &ledger, NULL), HF_OK);
    assert_int_equal(ledger->transaction_count, 1);
    assert_int_equal(ledger->transactions[0].body.size, strlen(wanted));
    assert_memory_equal(ledger->transactions[0].body.text, wanted, strlen(wanted));
    assert_true(hf__slice_is(ledger->transactions[0].hash, "ab"));
    assert_true(hf__slice_is(ledger->transactions[0].status, "SUCCESS"));
    hf__ledger_free(ledger);
}

#define BASE "\"status\":\"SUCCESS\",\"txHash\":\"ab\",\"applicationOrder\":1,\"ledger\":7"

static void test_a_body_is_kept_byte_for_byte(void **state)
{
    (void)state;
    const char *text =
        "{ \"envelopeJson\" : {\"tx\":{}}, \"resultMetaJson\":{\"v4\":{}}, " BASE " }";
    assert_body(text, text);
}

static void test_swapped_names_are_put_right_in_either_order(void **state)
{
    (void)state;
    assert_body("{\"envelopeJson\":{\"v4\":1}, \"x\":0,\"resultMetaJson\":{\"tx\":2}," BASE "}",
                "{\"resultMetaJson\":{\"v4\":1}, \"x\":0,\"envelopeJson\":{\"tx\":2}," BASE "}");
    assert_body("{" BASE ",\"resultMetaJson\":{\"tx_fee_bump\":2} ,\"envelopeJson\":{\"v3\":1}}",
                "{" BASE ",\"envelopeJson\":{\"tx_fee_bump\":2} ,\"resultMetaJson\":{\"v3\":1}}");
}

static void test_one_of_the_swapped_names_alone_is_put_right_too(void **state)
{
    (void)state;
    assert_body("{" BASE ",\"envelopeJson\":{\"v2\":1}}",
                "{" BASE ",\"resultMetaJson\":{\"v2\":1}}");
    assert_body("{" BASE ",\"resultMetaJson\":{\"tx_v0\":1}}",
                "{" BASE ",\"envelopeJson\":{\"tx_v0\":1}}");
}

static void test_a_fee_is_a_string_or_a_number_or_not_there(void **state)
{
    (void)state;
    hf__rpc_item item =
        read_item("{" BASE ",\"resultJson\":{\"fee_charged\":\"9223372036854775807\"}}");
    assert_true(item.has_fee);
    assert_int_equal(item.fee, INT64_MAX);
    item = read_item("{" BASE ",\"resultJson\":{\"fee_charged\":100}}");
    assert_true(item.has_fee);
    assert_int_equal(item.fee, 100);
    assert_false(read_item("{" BASE ",\"resultJson\":{}}").has_fee);
    assert_false(read_item("{" BASE "}").has_fee);
}

#define EIGHT "0123abcd"
#define HASH EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT
#define OTHER "ffffffff" EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT

static hf_status try_head(const char *hash, const char *in_header, const char *previous,
                          const char *meta, hf__rpc_head *head)
{
    char text[1024];

    snprintf(text, sizeof text,
             "{\"hash\":\"%s\",\"sequence\":\"8\",\"ledgerCloseTime\":\"1734032457\","
             "\"headerJson\":{\"hash\":\"%s\",\"header\":{\"previous_ledger_hash\":\"%s\"}}%s}",
             hash, in_header, previous, meta);
    hf__json_value value = parse(text);
    return hf__rpc_read_head(&value, head, NULL);
}

static hf__rpc_head read_head(const char *meta)
{
    hf__rpc_head head;

    assert_int_equal(try_head(HASH, HASH, OTHER, meta, &head), HF_OK);
    return head;
}

static void test_a_hash_is_hexadecimal_and_that_of_its_header(void **state)
{
    static const char *const bad[][3] = {
        {"bb", "bb", HASH},           /* too short */
        {HASH "00", HASH "00", HASH}, /* too long */
        {"z" EIGHT, HASH, HASH},      /* no digits */
        {HASH, OTHER, HASH},          /* another than in the header */
        {HASH, HASH, "aa"},           /* of the ledger before */
    };
    hf__rpc_head head;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(try_head(bad[i][0], bad[i][1], bad[i][2], "", &head), HF_BAD_DATA);
}

static void test_a_head_has_its_link_and_its_time(void **state)
{
    (void)state;
    hf__rpc_head head = read_head("");
    assert_int_equal(head.sequence, 8);
    assert_string_equal(head.hash, HASH);
    assert_string_equal(head.previous_hash, OTHER);
    assert_int_equal(head.closed_at_us, INT64_C(1734032457000000));
}

static void test_the_meta_of_every_version_tells_the_number_of_transactions(void **state)
{
    (void)state;
    assert_int_equal(
        read_head(",\"metadataJson\":{\"v0\":{\"tx_processing\":[]}}").transaction_count, 0);
    assert_int_equal(
        read_head(",\"metadataJson\":{\"v2\":{\"x\":[1],\"tx_processing\":[{\"a\":[]},{}, {}]}}")
            .transaction_count,
        3);
    assert_int_equal(read_head("").transaction_count, -1);
    assert_int_equal(read_head(",\"metadataJson\":\"v9\"").transaction_count, -1);
    assert_int_equal(read_head(",\"metadataJson\":{\"v9\":{}}").transaction_count, -1);
}

static void test_pages_grow_slowly_and_halve_at_8_megabytes(void **state)
{
    hf__rpc_page page = {.limit = 8};

    (void)state;
    hf__rpc_page_learn(&page, 8, 1000);
    assert_int_equal(page.limit, 10);
    hf__rpc_page_learn(&page, 3, 1000); /* what was not asked for in full teaches nothing */
    assert_int_equal(page.limit, 10);
    hf__rpc_page_learn(&page, 10, HF__RPC_PAGE_BYTES); /* the next step would be too large */
    assert_int_equal(page.limit, 10);
    hf__rpc_page_learn(&page, 10, HF__RPC_PAGE_BYTES + 1);
    assert_int_equal(page.limit, 5);
    for (int i = 0; i < 100; i++)
        hf__rpc_page_learn(&page, page.limit, 1000);
    assert_int_equal(page.limit, HF__RPC_PAGE_ITEMS);
    for (int i = 0; i < 100; i++)
        hf__rpc_page_shrink(&page);
    assert_int_equal(page.limit, 1);
}

static void test_errors_are_sorted_by_what_helps(void **state)
{
    static const struct {
        const char *error;
        hf_status status;
        hf__rpc_fault fault;
    } cases[] = {
        {"{\"code\":-32600,\"message\":\"start ledger (9) must be between the oldest ledger: 11 "
         "and "
         "the latest ledger: 22 for this rpc instance\"}",
         HF_CONFIG, HF__RPC_OUTSIDE_WINDOW},
        {"{\"code\":-32600,\"message\":\"limit must not exceed 200\"}", HF_CONFIG,
         HF__RPC_LIMIT_REFUSED},
        {"{\"code\":-32602,\"message\":\"no such cursor\"}", HF_CONFIG, HF__RPC_BAD_PARAMS},
        {"{\"code\":-32601}", HF_CONFIG, HF__RPC_NO_FAULT},
        {"{\"code\":-32001,\"message\":\"too much\"}", HF_UNREACHABLE, HF__RPC_TOO_SLOW},
        {"{\"code\":-32003,\"message\":\"\"}", HF_UNREACHABLE, HF__RPC_NO_FAULT},
        {"{\"code\":-32603,\"message\":\"DB is empty\"}", HF_UNREACHABLE, HF__RPC_NO_FAULT},
        {"{\"code\":\"x\"}", HF_UNREACHABLE, HF__RPC_NO_FAULT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf__rpc_client client = {.name = "rpc"};
        hf__rpc_fault fault = HF__RPC_NO_FAULT;
        hf__json_value error = parse(cases[i].error);
        assert_int_equal(hf__rpc_classify(&client, "getLedgers", &error, &fault, NULL),
                         cases[i].status);
        assert_int_equal(fault, cases[i].fault);
        if (fault == HF__RPC_OUTSIDE_WINDOW) {
            assert_int_equal(client.window_oldest, 11);
            assert_int_equal(client.window_latest, 22);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_body_is_kept_byte_for_byte),
        cmocka_unit_test(test_swapped_names_are_put_right_in_either_order),
        cmocka_unit_test(test_one_of_the_swapped_names_alone_is_put_right_too),
        cmocka_unit_test(test_a_fee_is_a_string_or_a_number_or_not_there),
        cmocka_unit_test(test_a_head_has_its_link_and_its_time),
        cmocka_unit_test(test_a_hash_is_hexadecimal_and_that_of_its_header),
        cmocka_unit_test(test_the_meta_of_every_version_tells_the_number_of_transactions),
        cmocka_unit_test(test_pages_grow_slowly_and_halve_at_8_megabytes),
        cmocka_unit_test(test_errors_are_sorted_by_what_helps),
    };

    return RUN(tests);
}
