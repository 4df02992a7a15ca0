#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "source_support.h"

static void open_generator(struct place *place, const char *spec)
{
    place_open(place, &(hf__source_options){.spec = spec});
}

static hf__ledger *take(struct place *place)
{
    hf__ledger *ledger = NULL;

    assert_int_equal(place->source->ops->next(place->source, &ledger, NULL, &place->err), HF_OK);
    assert_non_null(ledger);
    return ledger;
}

static bool same(hf__slice a, hf__slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.text, b.text, a.size) == 0);
}

static void assert_member(const hf__json_value *body, const char *name, hf__slice wanted)
{
    hf__json_value value;

    assert_true(hf__json_get(body, name, &value));
    assert_true(same(value.text, wanted));
}

static void check_transaction(const hf__transaction *transaction, int32_t order)
{
    hf__json_value body;
    hf__json_value value;
    int64_t number = 0;

    assert_int_equal(transaction->order, order);
    assert_int_equal(hf__json_parse(transaction->body.text, transaction->body.size, &body, NULL),
                     HF_OK);
    assert_in_range(transaction->body.size, 250, 450);
    assert_int_equal(transaction->hash.size, 64);
    assert_member(&body, "hash", transaction->hash);
    assert_member(&body, "status", transaction->status);
    assert_true(hf__json_get(&body, "order", &value));
    assert_true(hf__json_integer(&value, false, order, order, &number));
    assert_true(hf__json_get(&body, "fee", &value));
    assert_true(hf__json_integer(&value, false, 0, INT64_MAX, &number));
    assert_true(transaction->has_fee && number == transaction->fee);
}

static void test_generated_ledgers_are_complete_and_linked(void **state)
{
    struct place *place = *state;
    hf__ledger *before = NULL;

    open_generator(place, "generate:100,7");
    expect_extent(place, 1, 100);
    for (int64_t i = 1; i <= 100; i++) {
        hf__ledger *ledger = take(place);
        assert_int_equal(ledger->sequence, i);
        assert_int_equal(ledger->tip, 100);
        assert_int_equal(ledger->transaction_count, 7);
        assert_true(ledger->closed_at_us == INT64_C(1704067200000000) + (i - 1) * 5000000);
        assert_int_equal(hf__ledger_check_hashes(ledger, NULL), HF_OK);
        assert_true((before == NULL) == (ledger->previous_hash.text == NULL));
        assert_true(before == NULL || same(before->hash, ledger->previous_hash));
        for (int32_t k = 0; k < 7; k++)
            check_transaction(&ledger->transactions[k], k + 1);
        hf__ledger_free(before);
        before = ledger;
    }
    hf__ledger_free(before);
    expect_end(place);
    expect_end(place);
}

static void test_a_ledger_s_hash_is_the_sha_256_of_its_sequence(void **state)
{
    struct place *place = *state;

    open_generator(place, "generate:2147483647");
    hf__ledger *ledger = take(place);
    assert_int_equal(ledger->transaction_count, 4);
    assert_true(hf__slice_is(ledger->hash,
                             "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"));
    hf__ledger_free(ledger);
    seek_to(place, 2147483647);
    expect_ledger(place, 2147483647);
    expect_end(place);
}

static void test_a_ledger_is_the_same_however_it_is_reached(void **state)
{
    struct place *place = *state;

    open_generator(place, "generate:50");
    seek_to(place, 40);
    hf__ledger *first = take(place);
    open_generator(place, "generate:60");
    seek_to(place, 45);
    expect_ledger(place, 45);
    seek_to(place, 40);
    hf__ledger *second = take(place);
    assert_true(same(first->hash, second->hash));
    assert_true(same(first->previous_hash, second->previous_hash));
    for (size_t i = 0; i < first->transaction_count; i++)
        assert_true(same(first->transactions[i].body, second->transactions[i].body));
    hf__ledger_free(first);
    hf__ledger_free(second);
}

static void test_generated_ledgers_may_be_empty(void **state)
{
    struct place *place = *state;

    open_generator(place, "generate:3,0");
    hf__ledger *ledger = take(place);
    assert_int_equal(ledger->transaction_count, 0);
    hf__ledger_free(ledger);
    expect_ledgers(place, 2, 3);
    expect_end(place);
}

static void test_numbers_that_make_no_sense_are_refused(void **state)
{
    static const char *const specs[] = {"generate:",
                                        "generate:0",
                                        "generate:-1",
                                        "generate:x",
                                        "generate:5,",
                                        "generate:5,-1",
                                        "generate:2147483648",
                                        "generate:5,x",
                                        "generate:5,100001",
                                        "generate:5,1,1",
                                        "generate:0000000000000000000000000000000000000005"};
    struct place *place = *state;

    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        assert_int_equal(place_try_open(place, specs[i]), HF_INVALID);
        assert_null(place->source);
    }
}

static void test_a_generator_can_be_stopped(void **state)
{
    struct place *place = *state;
    int64_t sequence = 0;
    hf_status status = HF_OK;

    open_generator(place, "generate:1000000,1");
    stop_source(place);
    for (int i = 0; i < 1000 && status == HF_OK; i++)
        status = place_next(place, &sequence);
    assert_int_equal(status, HF_INTERRUPTED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_generated_ledgers_are_complete_and_linked),
        TEST(test_a_ledger_s_hash_is_the_sha_256_of_its_sequence),
        TEST(test_a_ledger_is_the_same_however_it_is_reached),
        TEST(test_generated_ledgers_may_be_empty),
        TEST(test_numbers_that_make_no_sense_are_refused),
        TEST(test_a_generator_can_be_stopped),
    };
    return RUN(tests);
}
