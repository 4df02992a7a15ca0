/* Values of rows, whichever store they come from. */
#include "unit.h"

#include <string.h>

#include "lib/backend/backend.h"
#include "lib/transactions/transactions.h"

static const char *cells[2][3];

static size_t count_rows(const hf_rows *rows)
{
    (void)rows;
    return 2;
}

static const char *value_of(const hf_rows *rows, size_t row, size_t column, size_t *size)
{
    (void)rows;
    if (size)
        *size = cells[row][column] ? strlen(cells[row][column]) : 0;
    return cells[row][column];
}

static const hf__rows_ops operations = {.count = count_rows, .value = value_of};
static const hf_rows rows = {.ops = &operations};

static void test_a_number_is_read_whole_or_not_at_all(void **state)
{
    hf_error err;
    int64_t number = 0;

    (void)state;
    cells[0][0] = "-9223372036854775808";
    assert_int_equal(hf__row_number(&rows, 0, 0, "x", &number, &err), HF_OK);
    assert_true(number == INT64_MIN);
    cells[0][0] = "12 apples";
    assert_int_equal(hf__row_number(&rows, 0, 0, "the count", &number, &err), HF_BAD_DATA);
    assert_string_equal(err.message, "the count is '12 apples', not a whole number of 64 bits");
    cells[0][0] = NULL;
    assert_int_equal(hf__row_number(&rows, 0, 0, "the count", &number, &err), HF_BAD_DATA);
    assert_string_equal(err.message, "the count is NULL, not a number");
}

static void test_null_has_a_value_to_go_on_with(void **state)
{
    (void)state;
    cells[1][0] = NULL;
    assert_int_equal(hf__row_int(&rows, 1, 0, -1), -1);
    assert_string_equal(hf__row_text(&rows, 1, 0), "");
    assert_false(hf__row_bool(&rows, 1, 0));
    cells[1][0] = "17";
    assert_int_equal(hf__row_int(&rows, 1, 0, -1), 17);
    assert_string_equal(hf__row_text(&rows, 1, 0), "17");
}

static void test_both_stores_words_for_true_are_known(void **state)
{
    (void)state;
    cells[1][0] = "t";
    cells[1][1] = "f";
    assert_true(hf__row_bool(&rows, 1, 0));
    assert_false(hf__row_bool(&rows, 1, 1));
    cells[1][0] = "1";
    cells[1][1] = "0";
    assert_true(hf__row_bool(&rows, 1, 0));
    assert_false(hf__row_bool(&rows, 1, 1));
}

static void test_a_number_goes_out_as_text(void **state)
{
    char out[24];
    hf_value value = hf__number_value(out, INT64_MIN);

    (void)state;
    assert_ptr_equal(value.data, out);
    assert_string_equal(out, "-9223372036854775808");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_number_is_read_whole_or_not_at_all),
        cmocka_unit_test(test_null_has_a_value_to_go_on_with),
        cmocka_unit_test(test_both_stores_words_for_true_are_known),
        cmocka_unit_test(test_a_number_goes_out_as_text),
    };
    return RUN(tests);
}
