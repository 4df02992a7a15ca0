#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "programs/append/input/rows_input.h"

enum { FILES = 3 };

struct files {
    char names[FILES][32];
    const char *paths[FILES];
    size_t count;
};

static void add_file(struct files *files, const char *text)
{
    char *name = files->names[files->count];

    strcpy(name, "/tmp/append-input-XXXXXX");
    int fd = mkstemp(name);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    files->paths[files->count++] = name;
}

static void drop(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        unlink(files->names[i]);
}

static hf__rows_input *open_files(const struct files *files, const char *name)
{
    const hf__format *format = NULL;
    hf__rows_input *input = NULL;
    hf_error err;

    assert_int_equal(hf__format_find(name, &format, NULL), HF_OK);
    if (hf__rows_input_open(format, files->paths, files->count, &input, &err) != HF_OK)
        fail_msg("%s", err.message);
    return input;
}

/* In pieces of this size, from memory of exactly that size. */
static hf_status read_all(hf__rows_input *input, size_t piece, hf__buf *all, hf_error *err)
{
    char *bytes = malloc(piece);
    hf_status status = HF_OK;
    size_t got = 1;
    bool wait = false;

    assert_non_null(bytes);
    hf__buf_puts(all, "");
    while (status == HF_OK && got > 0) {
        status = hf__rows_input_read(input, bytes, piece, &got, &wait, err);
        assert_false(wait);
        if (status == HF_OK)
            hf__buf_add(all, bytes, got);
    }
    free(bytes);
    return status;
}

static void expect(const struct files *files, const char *format, const char *wanted)
{
    for (size_t piece = 1; piece < 40; piece++) {
        hf__rows_input *input = open_files(files, format);
        hf__buf all = {0};
        assert_int_equal(read_all(input, piece, &all, NULL), HF_OK);
        assert_string_equal(all.data, wanted);
        hf__buf_free(&all);
        hf__rows_input_close(input);
    }
}

static void test_files_are_one_stream_of_whole_lines(void **state)
{
    struct files files = {.count = 0};

    (void)state;
    add_file(&files, "{\"a\":1}\n{\"a\":2}");
    add_file(&files, "");
    add_file(&files, "{\"a\":3}");
    expect(&files, "JSONEachRow", "{\"a\":1}\n{\"a\":2}\n{\"a\":3}");
    expect(&files, "Native", "{\"a\":1}\n{\"a\":2}{\"a\":3}");
    drop(&files);
}

static void test_later_headers_are_left_out(void **state)
{
    struct files files = {.count = 0};

    (void)state;
    add_file(&files, "a,b\r\n1,2\r\n");
    add_file(&files, "a,b\n3,4");
    add_file(&files, "a,b\n");
    expect(&files, "CSVWithNames", "a,b\r\n1,2\r\n3,4\n");
    drop(&files);
}

static void test_a_header_that_differs_is_refused(void **state)
{
    struct files files = {.count = 0};
    hf__buf all = {0};
    hf_error err;

    (void)state;
    add_file(&files, "a,b\n1,2\n");
    add_file(&files, "b,a\n1,2\n");
    hf__rows_input *input = open_files(&files, "CSVWithNames");
    assert_int_equal(read_all(input, 7, &all, &err), HF_BAD_DATA);
    assert_non_null(strstr(err.message, files.names[1]));
    hf__buf_free(&all);
    hf__rows_input_close(input);
    drop(&files);
}

static void expect_place(const hf__rows_input *input, int64_t row, const char *wanted,
                         int64_t wanted_line)
{
    const char *file = NULL;
    int64_t line = 0;

    assert_true(hf__rows_input_place(input, row, &file, &line));
    assert_string_equal(file, wanted);
    assert_int_equal(line, wanted_line);
}

static void test_a_row_is_found_in_its_file(void **state)
{
    struct files files = {.count = 0};
    hf__buf all = {0};

    (void)state;
    add_file(&files, "a,b\n1,2\n3,4\n");
    add_file(&files, "a,b\n5,6\n7,8");
    hf__rows_input *input = open_files(&files, "CSVWithNames");
    assert_int_equal(hf__rows_input_size(input), 12 + 11);
    assert_int_equal(read_all(input, 100, &all, NULL), HF_OK);
    assert_int_equal(hf__rows_input_bytes(input), 12 + 11);
    expect_place(input, 1, files.names[0], 2);
    expect_place(input, 2, files.names[0], 3);
    expect_place(input, 3, files.names[1], 2);
    expect_place(input, 4, files.names[1], 3);
    hf__buf_free(&all);
    hf__rows_input_close(input);
    drop(&files);
}

static void expect_lines(const char *format, const char *content, size_t count,
                         const int64_t *lines)
{
    struct files files = {.count = 0};

    add_file(&files, content);
    for (size_t piece = 1; piece < 20; piece++) {
        hf__buf all = {0};
        hf__rows_input *input = open_files(&files, format);
        assert_int_equal(read_all(input, piece, &all, NULL), HF_OK);
        assert_int_equal(hf__rows_input_rows(input), count);
        for (size_t i = 0; i < count; i++)
            expect_place(input, (int64_t)i + 1, files.names[0], lines[i]);
        hf__buf_free(&all);
        hf__rows_input_close(input);
    }
    drop(&files);
}

static void test_a_row_of_several_lines_is_found_by_its_first(void **state)
{
    const int64_t quoted[] = {2, 4, 8, 9}, spread[] = {1, 2, 6, 7}, escaped[] = {1, 3, 4},
                  odd[] = {2, 3, 7, 8};

    (void)state;
    expect_lines("CSVWithNames",
                 "a,b\n\"x\ny\",1\no\"\"h,'it''s\n2\n\n', 3\n \"\"\"\",it's\n\"\",4", 4, quoted);
    expect_lines("JSONEachRow",
                 "{\"a\":1}\n{\"a\":\n  {\"b\": [\n  {}, {}]}}\r\n\n{\"a\":2},\n{\"a\":3}\n", 4,
                 spread);
    expect_lines("JSONEachRow", "\noops\n{\"a\":[\n {\"b\":1}\n]\n}\nno\n{\"a\":2}\n", 4, odd);
    expect_lines("TSV", "1\tx\\\ny\n2\tz\\\\\n3\tw\n", 3, escaped);
}

static void test_empty_files_have_no_header_to_go_by(void **state)
{
    struct files files = {.count = 0};
    hf__buf all = {0};

    (void)state;
    add_file(&files, "");
    add_file(&files, "a,b\n1,2\n");
    add_file(&files, "a,b\n3,4\n");
    expect(&files, "CSVWithNames", "a,b\n1,2\n3,4\n");
    hf__rows_input *input = open_files(&files, "CSVWithNames");
    assert_int_equal(read_all(input, 5, &all, NULL), HF_OK);
    expect_place(input, 0, files.names[1], 1);
    expect_place(input, 1, files.names[1], 2);
    expect_place(input, 2, files.names[2], 2);
    assert_false(hf__rows_input_is_empty(input));
    hf__buf_free(&all);
    hf__rows_input_close(input);
    drop(&files);
}

static void test_what_is_packed_is_refused(void **state)
{
    static const char *const formats[] = {"JSONEachRow", "TSV", "CSVWithNames"};
    struct files files = {.count = 0};

    (void)state;
    add_file(&files, "\x1f\x8b\x08 rows");
    for (size_t i = 0; i < 3; i++) {
        hf__buf all = {0};
        hf_error err = {0};
        hf__rows_input *input = open_files(&files, formats[i]);
        assert_int_equal(read_all(input, 9, &all, &err), HF_BAD_DATA);
        assert_non_null(strstr(err.message, "gzip"));
        assert_int_equal(all.length, 0);
        hf__buf_free(&all);
        hf__rows_input_close(input);
    }
    drop(&files);
}

static void test_what_cannot_be_read_is_found_out_at_once(void **state)
{
    const char *const paths[] = {"/nonexistent/rows", "/tmp"};
    const hf__format *format = NULL;
    hf__rows_input *input = NULL;

    (void)state;
    assert_int_equal(hf__format_find(NULL, &format, NULL), HF_OK);
    assert_string_equal(format->name, "JSONEachRow");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(hf__rows_input_open(format, &paths[i], 1, &input, NULL), HF_BAD_DATA);
    assert_int_equal(hf__format_find("Parquet", &format, NULL), HF_INVALID);
}

/* Large enough to be worth two streams. */
static void add_large(struct files *files, const char *row)
{
    enum { SIZE = 17 << 20 };
    size_t length = strlen(row), rows = SIZE / length;
    char *text = malloc(rows * length + 1);

    assert_non_null(text);
    for (size_t i = 0; i < rows; i++)
        memcpy(text + i * length, row, length);
    text[rows * length] = '\0';
    add_file(files, text);
    free(text);
}

static int64_t middle_of(const char *name, const char *path)
{
    const hf__format *format = NULL;
    int64_t at = -1;

    assert_int_equal(hf__format_find(name, &format, NULL), HF_OK);
    assert_int_equal(hf__rows_input_middle(format, path, &at, NULL), HF_OK);
    return at;
}

/* As many rows before the cut as make it up, to the byte. */
static void expect_cut(const char *name, const char *row)
{
    struct files files = {.count = 0};

    add_large(&files, row);
    int64_t at = middle_of(name, files.paths[0]);
    assert_true(at > 8 << 20 && at < 10 << 20);
    assert_int_equal(at % (int64_t)strlen(row), 0);
    drop(&files);
}

static void expect_no_cut(const char *name, const char *row)
{
    struct files files = {.count = 0};

    add_large(&files, row);
    assert_int_equal(middle_of(name, files.paths[0]), 0);
    drop(&files);
}

static void test_a_large_file_is_cut_between_two_rows(void **state)
{
    (void)state;
    expect_cut("TSV", "1\tone\\\nand a half\t2\n"); /* the first line's end is escaped */
    expect_cut("TSV", "1\t2\r\n");
    expect_cut("JSONEachRow", "{\"a\":1}\n");
    expect_cut("JSONEachRow", "{\"a\":1}\r\n");
    expect_cut("JSONEachRow", "{\n\"a\":{\n\"b\":1}\n,\n\"c\":[{}\n,{}\n]\n}\n");
    expect_cut("CSVWithNames", "1,2\n");
    expect_cut("CSVWithNames", "1,2\r\n");
    expect_cut("CSVWithNames", "\"one\",\"a \"\"b\"\" it's\"\n");
    expect_cut("CSVWithNames", "1,\"\"\r\n");
}

/* Rows of several lines, some of which look like rows of their own. */
static void add_csv_row(hf__buf *text, int row)
{
    hf__buf_printf(text, "%d,\"", row);
    for (int i = 0; i < row % 7; i++)
        hf__buf_puts(text, "\n1,\"\"a\"\"\n2,\"\"");
    hf__buf_puts(text, "\"\n");
}

static void test_csv_is_cut_where_no_quote_is_open(void **state)
{
    enum { ROWS = 350000 };
    struct files files = {.count = 0};
    size_t *ends = calloc(ROWS, sizeof *ends);
    hf__buf text = {0};
    int first = 0;

    (void)state;
    assert_non_null(ends);
    hf__buf_puts(&text, "\"n\",text\n");
    for (int i = 0; i < ROWS; i++) {
        add_csv_row(&text, i);
        ends[i] = text.length;
    }
    while (ends[first] <= text.length / 2)
        first++;
    add_file(&files, text.data);
    assert_int_equal(middle_of("CSVWithNames", files.paths[0]), ends[first]);
    hf__buf_free(&text);
    free(ends);
    drop(&files);
}

static void test_a_header_of_several_lines_is_not_cut_off(void **state)
{
    struct files files = {.count = 0};
    hf__buf text = {0};

    (void)state;
    hf__buf_puts(&text, "n,\"a\nb\"\n");
    for (int i = 0; i < 5 << 20; i++)
        hf__buf_puts(&text, "1,2\n");
    add_file(&files, text.data);
    assert_int_equal(middle_of("CSVWithNames", files.paths[0]), 0);
    hf__buf_free(&text);
    drop(&files);
}

static void test_what_shows_no_end_of_a_row_is_not_cut(void **state)
{
    struct files small = {.count = 0};

    (void)state;
    expect_no_cut("TSV", "one\\\n");
    expect_no_cut("TSV", "no line at all ");
    expect_no_cut("JSONEachRow", "{\"a\":1} ");
    expect_no_cut("JSONEachRow", "{\"a\":1},\n");
    expect_no_cut("CSVWithNames", "1,\"2\n"); /* whether it is quoted depends on the reader: */
    expect_no_cut("CSVWithNames", "1,'2\n");
    expect_no_cut("CSVWithNames", "1,it's\n");
    expect_no_cut("CSVWithNames", "1,5\" wide\n");
    expect_no_cut("CSVWithNames", "1;\"2\"\n");
    expect_no_cut("CSVWithNames", "1, \"2\"\n");
    expect_no_cut("CSVWithNames", "1,\"2\" \n");
    expect_no_cut("Native", "1,2\n");
    add_file(&small, "1\n2\n");
    assert_int_equal(middle_of("TSV", small.paths[0]), 0);
    assert_int_equal(middle_of("TSV", "-"), 0);
    assert_int_equal(middle_of("TSV", "/dev/null"), 0);
    drop(&small);
}

/* Its writer would find that its reader has gone. */
static void test_a_pipe_is_not_opened_to_be_looked_at(void **state)
{
    char path[] = "/tmp/append-pipe-XXXXXX";
    char event[512];

    (void)state;
    assert_non_null(mkdtemp(path));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    int watch = inotify_init1(IN_NONBLOCK);
    assert_true(watch >= 0 && inotify_add_watch(watch, path, IN_OPEN) >= 0);
    assert_int_equal(middle_of("TSV", path), 0);
    assert_int_equal(read(watch, event, sizeof event), -1);
    close(watch);
    unlink(path);
}

static void read_part(const struct files *files, const char *name, int64_t from, int64_t to,
                      const char *wanted)
{
    for (size_t piece = 1; piece < 12; piece++) {
        hf__rows_input *input = open_files(files, name);
        hf__buf all = {0};
        hf__rows_input_confine(input, from, to, NULL);
        assert_int_equal(read_all(input, piece, &all, NULL), HF_OK);
        assert_string_equal(all.data, wanted);
        assert_int_equal(hf__rows_input_bytes(input),
                         to < 0 ? hf__rows_input_size(input) - from : to - from);
        hf__buf_free(&all);
        hf__rows_input_close(input);
    }
}

static void test_a_part_of_a_file_ends_where_the_next_begins(void **state)
{
    struct files files = {.count = 0};

    (void)state;
    add_file(&files, "1\t2\n3\t4\n5");
    read_part(&files, "TSV", 0, 4, "1\t2\n");
    read_part(&files, "TSV", 4, -1, "3\t4\n5");
    read_part(&files, "TSV", 0, -1, "1\t2\n3\t4\n5");
    drop(&files);
}

static void test_every_part_of_a_file_has_its_header(void **state)
{
    struct files files = {.count = 0};

    (void)state;
    add_file(&files, "a,b\r\n1,2\r\n3,4");
    read_part(&files, "CSVWithNames", 0, 10, "a,b\r\n1,2\r\n");
    read_part(&files, "CSVWithNames", 10, -1, "a,b\r\n3,4");
    drop(&files);
}

static void test_one_that_is_told_to_stop_reads_no_more(void **state)
{
    struct files files = {.count = 0};
    atomic_bool stop = false;
    hf__buf all = {0};

    (void)state;
    add_file(&files, "1\n2\n");
    hf__rows_input *input = open_files(&files, "TSV");
    hf__rows_input_confine(input, 0, -1, &stop);
    atomic_store(&stop, true);
    assert_int_equal(read_all(input, 2, &all, NULL), HF_INTERRUPTED);
    assert_int_equal(all.length, 0);
    hf__buf_free(&all);
    hf__rows_input_close(input);
    drop(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_large_file_is_cut_between_two_rows),
        cmocka_unit_test(test_csv_is_cut_where_no_quote_is_open),
        cmocka_unit_test(test_a_header_of_several_lines_is_not_cut_off),
        cmocka_unit_test(test_what_shows_no_end_of_a_row_is_not_cut),
        cmocka_unit_test(test_a_pipe_is_not_opened_to_be_looked_at),
        cmocka_unit_test(test_a_part_of_a_file_ends_where_the_next_begins),
        cmocka_unit_test(test_every_part_of_a_file_has_its_header),
        cmocka_unit_test(test_one_that_is_told_to_stop_reads_no_more),
        cmocka_unit_test(test_files_are_one_stream_of_whole_lines),
        cmocka_unit_test(test_later_headers_are_left_out),
        cmocka_unit_test(test_a_header_that_differs_is_refused),
        cmocka_unit_test(test_a_row_is_found_in_its_file),
        cmocka_unit_test(test_a_row_of_several_lines_is_found_by_its_first),
        cmocka_unit_test(test_empty_files_have_no_header_to_go_by),
        cmocka_unit_test(test_what_is_packed_is_refused),
        cmocka_unit_test(test_what_cannot_be_read_is_found_out_at_once),
    };

    return RUN(tests);
}
