/* The token bucket, with a clock of the test's own. */
#include "programs/ingest/backfill/parts.h"

#include "unit.h"

static int64_t take(hf__rate *rate, int times, int64_t now_ms)
{
    int64_t wait = 0;
    for (int i = 0; i < times; i++)
        wait = hf__rate_take(rate, now_ms);
    return wait;
}

static void no_limit_never_waits(void **state)
{
    (void)state;
    hf__rate rate;
    hf__rate_init(&rate, 0, 5000);
    assert_int_equal(take(&rate, 1000000, 5000), 0);
    hf__rate_destroy(&rate);
}

static void the_first_ones_are_free_and_the_next_wait_their_turn(void **state)
{
    (void)state;
    hf__rate rate;
    hf__rate_init(&rate, 100, 0); /* a burst of ten, then one in 10 ms */
    assert_int_equal(take(&rate, 10, 0), 0);
    int64_t first = hf__rate_take(&rate, 0), second = hf__rate_take(&rate, 0);
    assert_in_range(first, 10, 11);
    assert_in_range(second, 20, 21);
    hf__rate_destroy(&rate);
}

static void who_comes_later_waits_for_those_before(void **state)
{
    (void)state;
    hf__rate rate;
    hf__rate_init(&rate, 1000, 0);
    assert_in_range(take(&rate, 100 + 500, 0), 500, 501);
    assert_in_range(hf__rate_take(&rate, 300), 201, 202);
    hf__rate_destroy(&rate);
}

static void over_any_time_no_more_are_given_than_the_rate_and_one_burst(void **state)
{
    (void)state;
    hf__rate rate;
    int64_t now = 0, given = 0;
    hf__rate_init(&rate, 250, 0);
    while (now < 60000) {
        now += hf__rate_take(&rate, now);
        given++;
    }
    assert_in_range(given, 60 * 250 - 250, 60 * 250 + 25 + 1);
    hf__rate_destroy(&rate);
}

static void time_that_passes_unused_is_saved_up_to_one_burst(void **state)
{
    (void)state;
    hf__rate rate;
    hf__rate_init(&rate, 100, 0);
    assert_int_equal(take(&rate, 10, 0), 0);
    assert_int_equal(take(&rate, 10, 3600000), 0);
    assert_true(hf__rate_take(&rate, 3600000) > 0);
    hf__rate_destroy(&rate);
}

static void less_than_one_a_second_gives_one_at_once(void **state)
{
    (void)state;
    hf__rate rate;
    hf__rate_init(&rate, 0.5, 0);
    assert_int_equal(hf__rate_take(&rate, 0), 0);
    assert_in_range(hf__rate_take(&rate, 0), 2000, 2001);
    hf__rate_destroy(&rate);
}

static void a_clock_that_goes_back_gives_nothing_away(void **state)
{
    (void)state;
    hf__rate rate;
    hf__rate_init(&rate, 100, 1000);
    assert_int_equal(take(&rate, 10, 1000), 0);
    assert_in_range(hf__rate_take(&rate, 0), 10, 11);
    assert_in_range(hf__rate_take(&rate, 1000), 20, 21);
    hf__rate_destroy(&rate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_limit_never_waits),
        cmocka_unit_test(the_first_ones_are_free_and_the_next_wait_their_turn),
        cmocka_unit_test(who_comes_later_waits_for_those_before),
        cmocka_unit_test(over_any_time_no_more_are_given_than_the_rate_and_one_burst),
        cmocka_unit_test(time_that_passes_unused_is_saved_up_to_one_burst),
        cmocka_unit_test(less_than_one_a_second_gives_one_at_once),
        cmocka_unit_test(a_clock_that_goes_back_gives_nothing_away),
    };
    return RUN(tests);
}
