#include "unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "programs/registry/birthday.h"

/* The definition, factor by factor and with more digits than the code under test has. */
static double by_definition(unsigned bits, uint64_t taken, uint64_t labels)
{
    long double room = ldexpl(1.0L, (int)bits);
    long double sum = 0;

    for (uint64_t i = 0; i < labels; i++)
        sum += log1pl(-(long double)(taken + i) / room);
    return (double)-expm1l(sum);
}

static void assert_near(double found, double wanted, double tolerance)
{
    if (!(fabs(found - wanted) <= tolerance * wanted))
        fail_msg("%.17g is not %.17g (relative error %.3g)", found, wanted,
                 fabs(found - wanted) / wanted);
}

static void test_the_definition_holds(void **state)
{
    static const uint64_t taken[] = {0, 1, 17, 4000, 3000000000};
    static const uint64_t labels[] = {1, 2, 3, 63, 64, 65, 66, 1000, 9300, 77000, 500000};

    (void)state;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        for (size_t j = 0; j < sizeof labels / sizeof labels[0]; j++) {
            for (unsigned bits = 32; bits <= 64; bits += 32) {
                double wanted = by_definition(bits, taken[i], labels[j]);
                assert_near(hf__birthday_probability(bits, taken[i], labels[j]), wanted, 1e-13);
            }
        }
    }
}

/* The fewest labels of one size that reach p. */
static uint64_t size_at(unsigned bits, uint64_t taken, double p)
{
    const struct hf__crowd crowd = {
        .fixed = taken,
        .fixed_small = bits == 32 ? taken : 0,
        .labels32 = bits == 32,
        .labels64 = bits == 64,
    };

    return hf__crowd_size_at(&crowd, p);
}

static void test_the_known_figures_come_out(void **state)
{
    (void)state;
    assert_near(hf__birthday_probability(32, 0, 1000), 0.000116, 0.005);
    assert_in_range(size_at(32, 0, 0.01), 9250, 9350);
    assert_in_range(size_at(32, 0, 0.5), 77000, 77200);
    assert_in_range(size_at(64, 0, 0.5), 5050000000, 5150000000);
}

static void test_one_label_alone_meets_nobody(void **state)
{
    (void)state;
    for (unsigned bits = 32; bits <= 64; bits += 32) {
        for (uint64_t taken = 0; taken < 3; taken++)
            assert_true(hf__birthday_probability(bits, taken, 0) == 0);
        assert_true(hf__birthday_probability(bits, 0, 1) == 0);
        assert_false(signbit(hf__birthday_probability(bits, 0, 1)));
        assert_true(hf__birthday_probability(bits, 0, 2) == ldexp(1, -(int)bits));
        assert_true(hf__birthday_probability(bits, 1, 1) == ldexp(1, -(int)bits));
    }
}

static void test_only_a_full_house_makes_it_certain(void **state)
{
    const uint64_t all = UINT64_C(1) << 32;

    (void)state;
    assert_true(hf__birthday_probability(32, 0, all) < 1);
    assert_true(hf__birthday_probability(32, 0, all + 1) == 1);
    assert_true(hf__birthday_probability(32, 1, all) == 1);
    assert_true(hf__birthday_probability(32, all - 1, 1) < 1);
    assert_true(hf__birthday_probability(32, all, 1) == 1);
    assert_true(hf__birthday_probability(32, all, 0) == 0);
    assert_true(hf__birthday_probability(32, UINT64_MAX, UINT64_MAX) == 1);
    assert_true(hf__birthday_probability(64, 0, UINT64_MAX) < 1);
    assert_true(hf__birthday_probability(64, 1, UINT64_MAX) < 1);
    assert_true(hf__birthday_probability(64, 2, UINT64_MAX) == 1);
    assert_true(hf__birthday_probability(64, UINT64_MAX, 1) < 1);
}

static void test_a_nearly_full_house_is_counted_too(void **state)
{
    const uint64_t all = UINT64_C(1) << 32;

    (void)state;
    assert_near(hf__birthday_probability(32, all - 10, 1), 1 - 10 / ldexp(1, 32), 1e-15);
    assert_near(hf__birthday_probability(32, all - 1000000, 1), 1 - 1000000 / ldexp(1, 32), 1e-15);
    assert_true(hf__birthday_probability(32, all - 1000000, 999999) < 1);
}

static void test_more_labels_are_never_safer(void **state)
{
    (void)state;
    for (unsigned bits = 32; bits <= 64; bits += 32) {
        for (uint64_t taken = 0; taken < 2000; taken = taken * 7 + 1) {
            double last = 0;
            for (uint64_t labels = 0; labels < 4000; labels++) {
                double p = hf__birthday_probability(bits, taken, labels);
                assert_true(p >= last && p < 1);
                last = p;
            }
            for (uint64_t labels = 4000; labels < UINT64_MAX / 5 * 4; labels += labels / 4) {
                double p = hf__birthday_probability(bits, taken, labels);
                assert_true(p >= last && p <= 1);
                last = p;
            }
        }
    }
}

static void test_the_size_is_the_first_that_reaches_it(void **state)
{
    static const double wanted[] = {1e-15, 1e-9, 0.0001, 0.01, 0.5, 0.99, 0.999999};
    static const uint64_t taken[] = {0, 1, 1000, 100000000};

    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        for (size_t j = 0; j < sizeof taken / sizeof taken[0]; j++) {
            for (unsigned bits = 32; bits <= 64; bits += 32) {
                uint64_t size = size_at(bits, taken[j], wanted[i]);
                assert_true(size > 0);
                assert_true(hf__birthday_probability(bits, taken[j], size) >= wanted[i]);
                assert_true(hf__birthday_probability(bits, taken[j], size - 1) < wanted[i]);
            }
        }
    }
}

static void test_small_keys_are_in_the_way_of_large_ones(void **state)
{
    const struct hf__crowd crowd = {
        .fixed = 5, .fixed_small = 3, .labels32 = 700, .labels64 = 4000000000};
    double of_small = hf__birthday_probability(32, 3, 700);
    double of_large = hf__birthday_probability(64, 705, 4000000000);

    (void)state;
    assert_near(hf__crowd_probability(&crowd), 1 - (1 - of_small) * (1 - of_large), 1e-13);
}

static void test_a_mixed_crowd_grows_in_proportion(void **state)
{
    const struct hf__crowd crowd = {.fixed = 9, .fixed_small = 9, .labels32 = 1, .labels64 = 99};
    uint64_t size = hf__crowd_size_at(&crowd, 0.01);

    (void)state;
    /* One in a hundred has 32 bits, and these alone decide. */
    assert_true(llabs((int64_t)(size / 100) - (int64_t)size_at(32, 9, 0.01)) <= 1);
    const struct hf__crowd nobody = {.fixed = 1};
    assert_int_equal(hf__crowd_size_at(&nobody, 0.5), size_at(64, 1, 0.5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_definition_holds),
        cmocka_unit_test(test_the_known_figures_come_out),
        cmocka_unit_test(test_one_label_alone_meets_nobody),
        cmocka_unit_test(test_only_a_full_house_makes_it_certain),
        cmocka_unit_test(test_a_nearly_full_house_is_counted_too),
        cmocka_unit_test(test_more_labels_are_never_safer),
        cmocka_unit_test(test_the_size_is_the_first_that_reaches_it),
        cmocka_unit_test(test_small_keys_are_in_the_way_of_large_ones),
        cmocka_unit_test(test_a_mixed_crowd_grows_in_proportion),
    };
    return RUN(tests);
}
