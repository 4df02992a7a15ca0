#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "programs/append/staging.h"
#include "programs/append/target/http.h"
#include "programs/append/target/target.h"

static void test_a_url_has_its_parts_and_its_name_no_password(void **state)
{
    hf__server_url url;

    (void)state;
    assert_int_equal(
        hf__server_url_read("clickhouse+https://me:s%3Acret@db.example/a%20b?max_block_size=5",
                            NULL, &url, NULL),
        HF_OK);
    assert_string_equal(url.base, "https://db.example:8443/");
    assert_string_equal(url.name, "clickhouse+https://me@db.example:8443/a b");
    assert_string_equal(url.database, "a b");
    assert_string_equal(url.password, "s:cret");
    assert_string_equal(url.settings, "max_block_size=5");
    assert_false(url.is_local);
    hf__server_url_free(&url);
    assert_int_equal(hf__server_url_read("clickhouse+http://127.0.0.1", NULL, &url, NULL), HF_OK);
    assert_string_equal(url.name, "clickhouse+http://127.0.0.1:8123/");
    assert_true(url.is_local);
    hf__server_url_free(&url);
}

static void test_settings_that_shape_an_answer_are_kept_from_our_own_questions(void **state)
{
    hf__server_url url, copy;

    (void)state;
    assert_int_equal(hf__server_url_read("clickhouse+http://h/d?extremes=1&limit=1&max_threads=2&&"
                                         "query_id=x&read_overflow_mode=break&output_format_a=1&"
                                         "compress&limits=3",
                                         NULL, &url, NULL),
                     HF_OK);
    assert_string_equal(url.settings, "max_threads=2&limits=3");
    assert_string_equal(url.shaping, "limit=1&read_overflow_mode=break&output_format_a=1");
    assert_int_equal(hf__server_url_at(&url, "other", &copy, NULL), HF_OK);
    assert_string_equal(copy.shaping, url.shaping);
    hf__server_url_free(&copy);
    hf__server_url_free(&url);
}

static void test_a_url_that_is_none_is_refused_without_its_password(void **state)
{
    static const char *const bad[] = {"clickhouse+http://u:secret@h:99999/",
                                      "clickhouse+http://u:secret@h/a/b", "clickhouse+http://"};
    hf__server_url url;
    hf_error err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(hf__server_url_read(bad[i], NULL, &url, &err), HF_INVALID);
        assert_null(strstr(err.message, "secret"));
    }
}

static void test_names_and_texts_are_quoted(void **state)
{
    hf__buf out = {0};

    (void)state;
    hf__quote_table(&out, "d`b", "t\\");
    hf__buf_puts(&out, " ");
    hf__quote_text(&out, "o'brien\\");
    assert_string_equal(out.data, "`d\\`b`.`t\\\\` 'o\\'brien\\\\'");
    hf__buf_free(&out);
}

static void test_a_staging_table_tells_its_append(void **state)
{
    char name[128];
    bool is_complete = true;

    (void)state;
    hf__staging_name(name, false, "job:1.a-b_c", "store", "d.t");
    assert_string_equal(hf__staging_id(name, &is_complete), "job:1.a-b_c");
    assert_false(is_complete);
    hf__staging_name(name, true, "x", "store", "d.t");
    assert_string_equal(hf__staging_id(name, &is_complete), "x");
    assert_true(is_complete);
}

static void test_other_tables_are_no_staging_tables(void **state)
{
    static const char *const others[] = {"t",
                                         "holdfast_staging_",
                                         "holdfast_staging_123456781234567812345678_",
                                         "holdfast_staging_12345678123456781234567_x",
                                         "holdfast_staged_1234567812345678123456789_x",
                                         "holdfast_staging_12345678123456781234567g_x",
                                         "holdfast_staged_123456781234567812345678_a b"};
    bool is_complete;

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_null(hf__staging_id(others[i], &is_complete));
}

static void expect_engine(const char *full, const char *wanted)
{
    hf__buf out = {0};

    hf__buf_puts(&out, "");
    hf__staging_engine(full, &out);
    assert_string_equal(out.data, wanted);
    hf__buf_free(&out);
}

static void test_a_staging_table_is_not_replicated(void **state)
{
    (void)state;
    expect_engine("MergeTree ORDER BY n", "");
    expect_engine("ReplicatedMergeTree('/a/b', '{replica}') ORDER BY n",
                  " ENGINE = MergeTree() ORDER BY n");
    expect_engine("ReplicatedReplacingMergeTree('/a,(\\'b', 'r', ver) PARTITION BY f(x) ORDER BY n",
                  " ENGINE = ReplacingMergeTree(ver) PARTITION BY f(x) ORDER BY n");
    expect_engine("ReplicatedSummingMergeTree ORDER BY n", " ENGINE = SummingMergeTree ORDER BY n");
    expect_engine("ReplicatedGraphiteMergeTree('/a', 'r', 'rollup') ORDER BY n",
                  " ENGINE = GraphiteMergeTree('rollup') ORDER BY n");
}

static void test_exceptions_are_known_by_their_words(void **state)
{
    (void)state;
    assert_int_equal(hf__exception_code("Code: 27, e.displayText() = DB::Exception: Cannot parse"),
                     27);
    assert_int_equal(hf__exception_code("Code: 497. DB::Exception: me: Not enough privileges"),
                     497);
    assert_int_equal(
        hf__exception_code("Poco::Exception. Code: 1000, e.code() = 2, File not found"), 1000);
    assert_int_equal(hf__exception_code("Code: 27, of conduct"), 0);
    assert_int_equal(hf__exception_code("Code: x. DB::Exception"), 0);
    assert_int_equal(hf__exception_code("1\n"), 0);
}

static hf_status read_grid(const char *text, hf__grid *grid)
{
    return hf__grid_read(strdup(text), strlen(text), grid, NULL);
}

static void test_answers_are_unescaped_cell_by_cell(void **state)
{
    hf__grid grid;

    (void)state;
    assert_int_equal(read_grid("a\\tb\t12\n\\\\\\n\t-3\n", &grid), HF_OK);
    assert_int_equal(grid.rows, 2);
    assert_string_equal(hf__grid_at(&grid, 0, 0), "a\tb");
    assert_int_equal(hf__grid_number(&grid, 0, 1), 12);
    assert_string_equal(hf__grid_at(&grid, 1, 0), "\\\n");
    assert_int_equal(hf__grid_number(&grid, 1, 1), -3);
    assert_string_equal(hf__grid_at(&grid, 2, 0), "");
    hf__grid_free(&grid);
    assert_int_equal(read_grid("", &grid), HF_OK);
    assert_int_equal(grid.rows, 0);
    hf__grid_free(&grid);
}

static void test_what_is_no_table_of_texts_is_refused(void **state)
{
    static const char *const bad[] = {"<html>", "a\tb\nc\n", "a\nb\tc\n"};
    hf__grid grid;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read_grid(bad[i], &grid), HF_BAD_DATA);
        hf__grid_free(&grid);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_url_has_its_parts_and_its_name_no_password),
        cmocka_unit_test(test_settings_that_shape_an_answer_are_kept_from_our_own_questions),
        cmocka_unit_test(test_a_url_that_is_none_is_refused_without_its_password),
        cmocka_unit_test(test_names_and_texts_are_quoted),
        cmocka_unit_test(test_a_staging_table_tells_its_append),
        cmocka_unit_test(test_other_tables_are_no_staging_tables),
        cmocka_unit_test(test_a_staging_table_is_not_replicated),
        cmocka_unit_test(test_exceptions_are_known_by_their_words),
        cmocka_unit_test(test_answers_are_unescaped_cell_by_cell),
        cmocka_unit_test(test_what_is_no_table_of_texts_is_refused),
    };

    return RUN(tests);
}
