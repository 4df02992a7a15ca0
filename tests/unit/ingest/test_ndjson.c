#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/ingest/sources/ndjson.h"

#define HEAD "\"sequence\":7,\"hash\":\"aa\",\"closed_at\":\"2024-01-01T00:00:00Z\""
#define LEDGER(transactions) "{" HEAD ",\"transactions\":[" transactions "]}"
#define TX(hash, more) "{\"hash\":\"" hash "\",\"status\":\"SUCCESS\"" more "}"

static hf_status parse(const char *text, size_t size, hf__ledger **ledger, hf_error *err)
{
    char *bytes = malloc(size > 0 ? size : 1);

    assert_non_null(bytes);
    memcpy(bytes, text, size);
    *ledger = NULL;
    hf_status status = hf__ndjson_parse(bytes, size, ledger, err);
    if (status != HF_OK)
        free(bytes);
    assert_true((status == HF_OK) == (*ledger != NULL));
    return status;
}

static hf__ledger *good(const char *text)
{
    hf__ledger *ledger = NULL;
    hf_error err = {0};

    if (parse(text, strlen(text), &ledger, &err) != HF_OK)
        fail_msg("%s: %s", text, err.message);
    return ledger;
}

static void bad(const char *text, const char *message)
{
    hf__ledger *ledger = NULL;
    hf_error err = {0};

    if (parse(text, strlen(text), &ledger, &err) != HF_BAD_DATA)
        fail_msg("accepted: %s", text);
    if (strstr(err.message, message) == NULL)
        fail_msg("%s: '%s' has no '%s'", text, err.message, message);
}

static void accept(const char *text)
{
    hf__ledger_free(good(text));
}

static void assert_slice(hf__slice slice, const char *text)
{
    if (!hf__slice_is(slice, text))
        fail_msg("'%.*s' is not '%s'", (int)slice.size, slice.text, text);
}

static void test_a_line_is_a_ledger(void **state)
{
    hf__ledger *ledger =
        good("{\"sequence\":5,\"hash\":\"h5\",\"previous_hash\":\"h4\",\"closed_at\":1704067200,"
             "\"extra\":{\"transactions\":[1]},\"transactions\":["
             "{\"hash\":\"a\",\"order\":1,\"status\":\"SUCCESS\",\"fee\":100},"
             "{\"hash\":\"b\", \"order\":2,\"status\":\"FAILED\",\"memo\":\"\\u0000 \xC3\xA9\"}]}");

    (void)state;
    assert_int_equal(ledger->sequence, 5);
    assert_slice(ledger->hash, "h5");
    assert_slice(ledger->previous_hash, "h4");
    assert_true(ledger->closed_at_us == INT64_C(1704067200000000));
    assert_int_equal(ledger->transaction_count, 2);
    assert_slice(ledger->transactions[0].hash, "a");
    assert_true(ledger->transactions[0].has_fee);
    assert_int_equal(ledger->transactions[0].fee, 100);
    assert_int_equal(ledger->transactions[1].order, 2);
    assert_slice(ledger->transactions[1].status, "FAILED");
    assert_false(ledger->transactions[1].has_fee);
    assert_true(ledger->weight > 200);
    hf__ledger_free(ledger);
}

static void test_a_body_has_the_bytes_that_came(void **state)
{
    hf__ledger *ledger = good(LEDGER("  { \"status\" : \"OK\",\"z\":1.50,\"a\":\"\\u0000\\/\","
                                     "\"hash\":\"x\" }  ,{\"hash\":\"y\",\"status\":\"OK\"}"));

    (void)state;
    assert_slice(ledger->transactions[0].body,
                 "{ \"status\" : \"OK\",\"z\":1.50,\"a\":\"\\u0000\\/\",\"hash\":\"x\" }");
    assert_slice(ledger->transactions[1].body, "{\"hash\":\"y\",\"status\":\"OK\"}");
    hf__ledger_free(ledger);
}

static void test_a_ledger_may_be_empty_but_must_say_so(void **state)
{
    hf__ledger *ledger = good(LEDGER(""));

    (void)state;
    assert_int_equal(ledger->transaction_count, 0);
    assert_null(ledger->previous_hash.text);
    hf__ledger_free(ledger);
    bad("{" HEAD "}", "transactions is missing");
    bad("{" HEAD ",\"transactions\":null}", "an array is expected");
    bad("{" HEAD ",\"transactions\":{}}", "an array is expected");
    bad(LEDGER("1"), "an object is expected");
}

static void test_what_is_no_json_object_is_refused(void **state)
{
    (void)state;
    bad("[]", "an object is expected");
    bad("7", "an object is expected");
    bad(LEDGER("") "x", "something follows");
    bad(LEDGER("") LEDGER(""), "something follows");
    bad(LEDGER("{\"hash\":\"x\",\"status\":\"\xFF\"}"), "invalid UTF-8");
    bad(LEDGER(TX("x", ",\"a\":01")), "invalid JSON at byte");
}

static void test_every_cut_of_a_line_is_refused(void **state)
{
    static const char text[] = LEDGER(TX("a", ",\"fee\":1") "," TX("b", ",\"order\":\"9\""));
    hf__ledger *ledger = NULL;

    (void)state;
    accept(text);
    for (size_t size = 0; size < sizeof text - 1; size++)
        assert_int_equal(parse(text, size, &ledger, NULL), HF_BAD_DATA);
}

static void with_sequence(const char *sequence, const char *message)
{
    char text[256];

    snprintf(text, sizeof text,
             "{\"sequence\":%s,\"hash\":\"aa\",\"closed_at\":1,\"transactions\":[]}", sequence);
    if (message == NULL)
        accept(text);
    else
        bad(text, message);
}

static void test_a_sequence_is_within_what_a_toid_holds(void **state)
{
    (void)state;
    with_sequence("1", NULL);
    with_sequence("\"12\"", NULL);
    with_sequence("2147483647", NULL);
    with_sequence("2147483648", "sequence is 2147483648, not a whole number from 1 to 2147483647");
    with_sequence("18446744073709551617", "from 1 to 2147483647");
    with_sequence("0", "from 1 to 2147483647");
    with_sequence("-1", "from 1 to 2147483647");
    with_sequence("1.5", "from 1 to 2147483647");
    with_sequence("null", "sequence is null");
    with_sequence("true", "sequence is true");
    with_sequence("\"\"", "sequence is empty");
    bad("{\"hash\":\"aa\",\"closed_at\":1,\"transactions\":[]}", "sequence is missing");
}

static void with_hash(const char *hash, const char *message)
{
    char text[512];

    snprintf(text, sizeof text, "{\"sequence\":1,\"hash\":%s,\"closed_at\":1,\"transactions\":[]}",
             hash);
    if (message == NULL)
        accept(text);
    else
        bad(text, message);
    snprintf(text, sizeof text, LEDGER("{\"status\":\"OK\",\"hash\":%s}"), hash);
    if (message == NULL)
        accept(text);
    else
        bad(text, "hash of a transaction");
}

static void test_a_hash_is_short_visible_text(void **state)
{
    char hash[HF__HASH_MAX + 4];

    (void)state;
    memset(hash, 'f', sizeof hash);
    hash[0] = hash[HF__HASH_MAX + 1] = '"';
    hash[HF__HASH_MAX + 2] = '\0';
    with_hash(hash, NULL);
    hash[HF__HASH_MAX + 1] = 'f';
    hash[HF__HASH_MAX + 2] = '"';
    hash[HF__HASH_MAX + 3] = '\0';
    with_hash(hash, "1 to 128 visible");
    with_hash("\"\"", "hash is empty");
    with_hash("\"a b\"", "visible");
    with_hash("\"a\\u0041\"", "visible");
    with_hash("\"\\u0000\"", "visible");
    with_hash("\"\xC3\xA9\"", "visible");
    with_hash("12", "hash is 12, not a text");
    with_hash("null", "hash is null");
    bad("{\"sequence\":1,\"closed_at\":1,\"transactions\":[]}", "hash is missing");
    bad(LEDGER("{\"status\":\"OK\"}"), "hash of a transaction is missing");
}

static void test_a_previous_hash_may_be_left_out(void **state)
{
    (void)state;
    accept("{" HEAD ",\"previous_hash\":null,\"transactions\":[]}");
    accept("{" HEAD ",\"previous_hash\":\"\",\"transactions\":[]}");
    bad("{" HEAD ",\"previous_hash\":5,\"transactions\":[]}", "previous_hash is 5");
    bad("{" HEAD ",\"previous_hash\":\"\\n\",\"transactions\":[]}", "previous_hash is");
}

static void test_a_status_is_text_without_escapes(void **state)
{
    (void)state;
    accept(LEDGER("{\"hash\":\"x\",\"status\":\"ausgef\xC3\xBChrt\"}"));
    bad(LEDGER("{\"hash\":\"x\"}"), "status of a transaction is missing");
    bad(LEDGER("{\"hash\":\"x\",\"status\":true}"), "status of a transaction is true");
    bad(LEDGER("{\"hash\":\"x\",\"status\":\"a\\u0000\"}"), "without escapes");
    bad(LEDGER("{\"hash\":\"x\",\"status\":\"\"}"), "status of a transaction is empty");
}

static void test_transactions_are_sorted_by_their_order(void **state)
{
    hf__ledger *ledger = good(LEDGER(
        TX("c", ",\"order\":30") "," TX("a", ",\"order\":\"1\"") "," TX("b", ",\"order\":20")));

    (void)state;
    assert_slice(ledger->transactions[0].hash, "a");
    assert_slice(ledger->transactions[1].hash, "b");
    assert_slice(ledger->transactions[2].hash, "c");
    assert_int_equal(ledger->transactions[2].order, 30);
    hf__ledger_free(ledger);
}

static void test_without_an_order_the_position_is_one(void **state)
{
    hf__ledger *ledger = good(LEDGER(TX("a", "") "," TX("b", ",\"order\":null") "," TX("c", "")));

    (void)state;
    for (int32_t i = 0; i < 3; i++)
        assert_int_equal(ledger->transactions[i].order, i + 1);
    hf__ledger_free(ledger);
}

static void test_a_repeated_order_is_refused(void **state)
{
    (void)state;
    bad(LEDGER(TX("a", ",\"order\":2") "," TX("b", ",\"order\":2")),
        "two transactions have the order 2");
    bad(LEDGER(TX("a", ",\"order\":2") "," TX("b", "")), "two transactions have the order 2");
    bad(LEDGER(TX("a", ",\"order\":0")), "from 1 to 1048575");
    bad(LEDGER(TX("a", ",\"order\":1048576")), "from 1 to 1048575");
    bad(LEDGER(TX("a", ",\"order\":\"x\"")), "from 1 to 1048575");
    accept(LEDGER(TX("a", ",\"order\":1048575")));
}

static void test_a_repeated_transaction_hash_is_refused(void **state)
{
    (void)state;
    bad(LEDGER(TX("abcdefgh1", "") "," TX("b", "") "," TX("abcdefgh1", "")),
        "two transactions have the hash abcdefgh1");
    accept(LEDGER(TX("abcdefgh1", "") "," TX("abcdefgh2", "") "," TX("abcdefgh", "")));
    accept(LEDGER(TX("a", "") "," TX("A", "")));
}

static void fee_is(const char *member, int64_t fee)
{
    char text[256];

    snprintf(text, sizeof text, LEDGER("{\"hash\":\"x\",\"status\":\"OK\",%s}"), member);
    hf__ledger *ledger = good(text);
    assert_true(ledger->transactions[0].has_fee == (fee >= 0));
    if (fee >= 0)
        assert_true(ledger->transactions[0].fee == fee);
    hf__ledger_free(ledger);
}

static void test_a_fee_has_two_names_and_two_forms(void **state)
{
    (void)state;
    fee_is("\"fee\":100", 100);
    fee_is("\"fee\":\"9223372036854775807\"", INT64_MAX);
    fee_is("\"fee_charged\":\"200\"", 200);
    fee_is("\"fee\":1,\"fee_charged\":2", 1);
    fee_is("\"fee\":null,\"fee_charged\":2", 2);
    fee_is("\"fee\":null", -1);
    bad(LEDGER(TX("x", ",\"fee\":1.5")), "fee of a transaction is 1.5");
    bad(LEDGER(TX("x", ",\"fee\":-1")), "fee of a transaction is -1");
    bad(LEDGER(TX("x", ",\"fee\":\"9223372036854775808\"")), "fee of a transaction");
    bad(LEDGER(TX("x", ",\"fee\":{}")), "fee of a transaction is {}");
}

static bool read_time(const char *json, int64_t *unix_us)
{
    hf__json_value value;

    assert_int_equal(hf__json_parse(json, strlen(json), &value, NULL), HF_OK);
    return hf__ndjson_time(&value, unix_us);
}

static void time_is(const char *json, int64_t wanted)
{
    int64_t unix_us = 0;

    if (!read_time(json, &unix_us))
        fail_msg("refused: %s", json);
    assert_true(unix_us == wanted);
}

static void test_times_are_rfc_3339_or_unix_seconds(void **state)
{
    (void)state;
    time_is("0", 0);
    time_is("1704067200", INT64_C(1704067200000000));
    time_is("\"1704067200\"", INT64_C(1704067200000000));
    time_is("253402300799", INT64_C(253402300799000000));
    time_is("\"2024-01-01T00:00:00Z\"", INT64_C(1704067200000000));
    time_is("\"2024-01-01t00:00:00z\"", INT64_C(1704067200000000));
    time_is("\"2024-01-01 00:00:00Z\"", INT64_C(1704067200000000));
    time_is("\"2024-01-01T02:30:00+02:30\"", INT64_C(1704067200000000));
    time_is("\"2023-12-31T19:00:00-05:00\"", INT64_C(1704067200000000));
    time_is("\"2024-02-29T12:34:56.789012999Z\"", INT64_C(1709210096789012));
    time_is("\"2024-02-29T12:34:56.5Z\"", INT64_C(1709210096500000));
    time_is("\"1969-12-31T23:59:59Z\"", -1000000);
    time_is("\"2016-12-31T23:59:60Z\"", INT64_C(1483228800000000));
    time_is("\"9999-12-31T23:59:59Z\"", INT64_C(253402300799000000));
    time_is("\"0001-01-01T00:00:00Z\"", INT64_C(-62135596800000000));
    time_is("\"2000-03-01T00:00:00Z\"", INT64_C(951868800000000));
}

static void test_any_other_time_is_refused(void **state)
{
    static const char *const times[] = {
        "\"\"",
        "\"yesterday\"",
        "\"2024-01-01\"",
        "\"2024-01-01T00:00:00\"",
        "\"2024-01-01T00:00Z\"",
        "\"2024-13-01T00:00:00Z\"",
        "\"2024-00-01T00:00:00Z\"",
        "\"2023-02-29T00:00:00Z\"",
        "\"1900-02-29T00:00:00Z\"",
        "\"2024-04-31T00:00:00Z\"",
        "\"2024-01-01T24:00:00Z\"",
        "\"2024-01-01T00:60:00Z\"",
        "\"2024-01-01T00:00:61Z\"",
        "\"2024-01-01T00:00:00.Z\"",
        "\"2024-01-01T00:00:00+0100\"",
        "\"2024-01-01T00:00:00+24:00\"",
        "\"2024-01-01T00:00:00Z \"",
        "\"01/02/2024\"",
        "\"20240101T000000Z\"",
        "1704067200.5",
        "-1",
        "1704067200000",
        "253402300800",
        "null",
        "true",
        "[]",
        "\"0000-01-01T00:00:00Z\"",
        "\"2024-1-01T00:00:00Z\"",
    };
    int64_t unix_us = 0;

    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (read_time(times[i], &unix_us))
            fail_msg("accepted: %s", times[i]);
    bad("{\"sequence\":1,\"hash\":\"a\",\"closed_at\":\"soon\",\"transactions\":[]}",
        "closed_at is soon, not a time");
    bad("{\"sequence\":1,\"hash\":\"a\",\"transactions\":[]}", "closed_at is missing");
}

static void test_the_sequence_is_found_without_the_rest(void **state)
{
    static const char text[] = "{\"hash\":\"x\",\"n\":{\"sequence\":1},\"sequence\":\"42\",\"a\":";

    (void)state;
    assert_int_equal(hf__ndjson_sequence("{\"sequence\":5}", 14), 5);
    assert_int_equal(hf__ndjson_sequence(text, sizeof text - 1), 42);
    assert_int_equal(hf__ndjson_sequence("{\"sequence\":12345", 17), 0);
    assert_int_equal(hf__ndjson_sequence("{\"sequence\":12345,", 18), 12345);
    assert_int_equal(hf__ndjson_sequence("", 0), 0);
    assert_int_equal(hf__ndjson_sequence("{", 1), 0);
    assert_int_equal(hf__ndjson_sequence("{}", 2), 0);
    assert_int_equal(hf__ndjson_sequence("]]]}", 4), 0);
    assert_int_equal(hf__ndjson_sequence("{]\"sequence\":1}", 15), 0);
    assert_int_equal(hf__ndjson_sequence("[{\"sequence\":1}]", 16), 0);
    assert_int_equal(hf__ndjson_sequence("{\"sequence\":-1}", 15), 0);
    assert_int_equal(hf__ndjson_sequence("{\"sequence\":2147483648}", 23), 0);
}

static void test_many_transactions_are_read(void **state)
{
    enum { COUNT = 5000, EACH = 80 };
    char *text = malloc(COUNT * EACH + 200);
    int used = 0;

    (void)state;
    assert_non_null(text);
    used += sprintf(text, "{" HEAD ",\"transactions\":[");
    for (int i = 0; i < COUNT; i++)
        used += sprintf(text + used, "%s{\"hash\":\"%08d\",\"status\":\"OK\",\"order\":%d}",
                        i > 0 ? "," : "", i, COUNT - i);
    sprintf(text + used, "]}");
    hf__ledger *ledger = good(text);
    assert_int_equal(ledger->transaction_count, COUNT);
    for (int32_t i = 0; i < COUNT; i++)
        assert_int_equal(ledger->transactions[i].order, i + 1);
    assert_slice(ledger->transactions[0].hash, "00004999");
    hf__ledger_free(ledger);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_is_a_ledger),
        cmocka_unit_test(test_a_body_has_the_bytes_that_came),
        cmocka_unit_test(test_a_ledger_may_be_empty_but_must_say_so),
        cmocka_unit_test(test_what_is_no_json_object_is_refused),
        cmocka_unit_test(test_every_cut_of_a_line_is_refused),
        cmocka_unit_test(test_a_sequence_is_within_what_a_toid_holds),
        cmocka_unit_test(test_a_hash_is_short_visible_text),
        cmocka_unit_test(test_a_previous_hash_may_be_left_out),
        cmocka_unit_test(test_a_status_is_text_without_escapes),
        cmocka_unit_test(test_transactions_are_sorted_by_their_order),
        cmocka_unit_test(test_without_an_order_the_position_is_one),
        cmocka_unit_test(test_a_repeated_order_is_refused),
        cmocka_unit_test(test_a_repeated_transaction_hash_is_refused),
        cmocka_unit_test(test_a_fee_has_two_names_and_two_forms),
        cmocka_unit_test(test_times_are_rfc_3339_or_unix_seconds),
        cmocka_unit_test(test_any_other_time_is_refused),
        cmocka_unit_test(test_the_sequence_is_found_without_the_rest),
        cmocka_unit_test(test_many_transactions_are_read),
    };
    return RUN(tests);
}
