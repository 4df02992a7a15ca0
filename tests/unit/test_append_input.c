#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "append/input.h"
#include "base/buf.h"

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

static hf__input *open_files(const struct files *files, const char *name)
{
    const hf__format *format = NULL;
    hf__input *input = NULL;
    hf_error err;

    assert_int_equal(hf__format_find(name, &format, NULL), HF_OK);
    if (hf__input_open(format, files->paths, files->count, &input, &err) != HF_OK)
        fail_msg("%s", err.message);
    return input;
}

/* In pieces of this size, from memory of exactly that size. */
static hf_status read_all(hf__input *input, size_t piece, hf__buf *all, hf_error *err)
{
    char *bytes = malloc(piece);
    hf_status status = HF_OK;
    size_t got = 1;
    bool wait = false;

    assert_non_null(bytes);
    hf__buf_puts(all, "");
    while (status == HF_OK && got > 0) {
        status = hf__input_read(input, bytes, piece, &got, &wait, err);
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
        hf__input *input = open_files(files, format);
        hf__buf all = {0};
        assert_int_equal(read_all(input, piece, &all, NULL), HF_OK);
        assert_string_equal(all.data, wanted);
        hf__buf_free(&all);
        hf__input_close(input);
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
    hf__input *input = open_files(&files, "CSVWithNames");
    assert_int_equal(read_all(input, 7, &all, &err), HF_BAD_DATA);
    assert_non_null(strstr(err.message, files.names[1]));
    hf__buf_free(&all);
    hf__input_close(input);
    drop(&files);
}

static void expect_place(const hf__input *input, int64_t row, const char *wanted,
                         int64_t wanted_line)
{
    const char *file = NULL;
    int64_t line = 0;

    assert_true(hf__input_place(input, row, &file, &line));
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
    hf__input *input = open_files(&files, "CSVWithNames");
    assert_int_equal(hf__input_size(input), 12 + 11);
    assert_int_equal(read_all(input, 100, &all, NULL), HF_OK);
    assert_int_equal(hf__input_bytes(input), 12 + 11);
    expect_place(input, 1, files.names[0], 2);
    expect_place(input, 2, files.names[0], 3);
    expect_place(input, 3, files.names[1], 2);
    expect_place(input, 4, files.names[1], 3);
    hf__buf_free(&all);
    hf__input_close(input);
    drop(&files);
}

static void test_what_cannot_be_read_is_found_out_at_once(void **state)
{
    const char *const paths[] = {"/nonexistent/rows", "/tmp"};
    const hf__format *format = NULL;
    hf__input *input = NULL;

    (void)state;
    assert_int_equal(hf__format_find(NULL, &format, NULL), HF_OK);
    assert_string_equal(format->name, "JSONEachRow");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(hf__input_open(format, &paths[i], 1, &input, NULL), HF_BAD_DATA);
    assert_int_equal(hf__format_find("Parquet", &format, NULL), HF_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_one_stream_of_whole_lines),
        cmocka_unit_test(test_later_headers_are_left_out),
        cmocka_unit_test(test_a_header_that_differs_is_refused),
        cmocka_unit_test(test_a_row_is_found_in_its_file),
        cmocka_unit_test(test_what_cannot_be_read_is_found_out_at_once),
    };

    return RUN(tests);
}
