/* Words in SQL that are replaced before it is sent. */
#include "unit.h"

#include "base/sqltext.h"

static const hf__sql_part parts[] = {
    {"prefix", "\"ingest_x\"."}, {"table", "ledgers"}, {"nothing", ""}, {0}};

static void assert_expands(const char *text, const char *expected)
{
    hf__buf out = {0};
    hf__sql_expand(&out, text, parts);
    assert_false(out.broken);
    assert_string_equal(out.data, expected);
    hf__buf_free(&out);
}

static void test_a_word_is_replaced_wherever_it_stands(void **state)
{
    (void)state;
    assert_expands("SELECT 1 FROM @prefix@x AS a, @prefix@y",
                   "SELECT 1 FROM \"ingest_x\".x AS a, \"ingest_x\".y");
    assert_expands("@table@", "ledgers");
    assert_expands("", "");
    assert_expands("SELECT 1", "SELECT 1");
}

static void test_words_may_touch_and_be_empty(void **state)
{
    (void)state;
    assert_expands("LOCK TABLE @prefix@@table@", "LOCK TABLE \"ingest_x\".ledgers");
    assert_expands("a@nothing@b", "ab");
}

static void test_what_is_no_known_word_stays(void **state)
{
    (void)state;
    assert_expands("SELECT @unknown@, @prefix@t", "SELECT @unknown@, \"ingest_x\".t");
    assert_expands("a @> b AND c <@ d", "a @> b AND c <@ d");
    assert_expands("a @> @prefix@t", "a @> \"ingest_x\".t");
    assert_expands("@pre@table@", "@preledgers");
    assert_expands("'me@table'", "'me@table'");
    assert_expands("@", "@");
    assert_expands("@@", "@@");
}

static void test_what_is_put_in_is_not_looked_at_again(void **state)
{
    const hf__sql_part odd[] = {{"name", "\"@table@\""}, {"table", "t"}, {0}};
    hf__buf out = {0};
    (void)state;
    hf__sql_expand(&out, "FROM @name@", odd);
    assert_string_equal(out.data, "FROM \"@table@\"");
    hf__buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_word_is_replaced_wherever_it_stands),
        cmocka_unit_test(test_words_may_touch_and_be_empty),
        cmocka_unit_test(test_what_is_no_known_word_stays),
        cmocka_unit_test(test_what_is_put_in_is_not_looked_at_again),
    };
    return RUN(tests);
}
