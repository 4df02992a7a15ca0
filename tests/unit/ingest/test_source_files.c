#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "source_support.h"

static void test_a_file_gives_its_ledgers_and_ends(void **state)
{
    struct place *place = *state;

    place_write_ledgers(place, "a.ndjson", 1, 3);
    place_open_file(place, "a.ndjson", false);
    expect_ledgers(place, 1, 3);
    expect_end(place);
    expect_end(place);
}

static void test_line_ends_blank_lines_and_a_mark_are_no_data(void **state)
{
    struct place *place = *state;
    hf__buf text = {0};

    hf__buf_printf(&text, "\xEF\xBB\xBF%s\r\n\r\n\n  \t\n%s\r\n%s", ledger_line(1), ledger_line(2),
                   ledger_line(3));
    place_write(place, "a.ndjson", text.data, text.length);
    hf__buf_free(&text);
    place_open_file(place, "a.ndjson", false);
    expect_ledgers(place, 1, 3);
    expect_end(place);
}

static void test_what_is_not_there_is_refused_at_once(void **state)
{
    struct place *place = *state;

    assert_int_equal(place_try_open(place, place_path(place, "none.ndjson")), HF_CONFIG);
    assert_non_null(strstr(place->err.message, "none.ndjson: No such file"));
    assert_non_null(strstr(place->err.hint, "exec:COMMAND"));
    assert_int_equal(place_try_open(place, place->folder), HF_CONFIG);
    assert_non_null(strstr(place->err.hint, "*.ndjson.zst"));
}

static void test_a_bad_line_is_reported_and_the_next_is_read(void **state)
{
    struct place *place = *state;
    hf__buf text = {0};

    hf__buf_printf(&text, "%s\n{\"sequence\":2,oops}\n", ledger_line(1));
    hf__buf_add(&text, "{\"a\":\"\0\"}\n", 10);
    hf__buf_printf(&text, "{\"sequence\":4,\"hash\":\"\xFF\"}\nnull\n%s\n", ledger_line(5));
    place_write(place, "a.ndjson", text.data, text.length);
    hf__buf_free(&text);
    place_open_file(place, "a.ndjson", false);
    expect_ledger(place, 1);
    expect_bad(place, "/a.ndjson:2", "invalid JSON at byte 15");
    assert_int_equal(place->bad.sequence, 2);
    assert_int_equal(place->bad.size, 19);
    assert_memory_equal(place->bad.bytes, "{\"sequence\":2,oops}", 19);
    expect_bad(place, ":3", "a control character");
    assert_int_equal(place->bad.sequence, 0);
    expect_bad(place, ":4", "invalid UTF-8");
    assert_int_equal(place->bad.sequence, 4);
    expect_bad(place, ":5", "an object is expected");
    expect_ledger(place, 5);
    expect_end(place);
}

static void test_sequences_come_as_they_stand(void **state)
{
    struct place *place = *state;
    static const int64_t sequences[] = {5, 5, 3, 9};

    for (size_t i = 0; i < 4; i++) {
        place_append(place, "a.ndjson", ledger_line(sequences[i]));
        place_append(place, "a.ndjson", "\n");
    }
    place_open_file(place, "a.ndjson", false);
    for (size_t i = 0; i < 4; i++)
        expect_ledger(place, sequences[i]);
}

static void test_a_last_line_that_was_cut_is_bad_data(void **state)
{
    struct place *place = *state;

    place_write_ledgers(place, "a.ndjson", 1, 2);
    place_append(place, "a.ndjson", "{\"sequence\":3,\"hash\":\"h3\",\"clo");
    place_open_file(place, "a.ndjson", false);
    expect_ledgers(place, 1, 2);
    expect_bad(place, ":3", "the text ends in a string");
    assert_int_equal(place->bad.sequence, 3);
    expect_end(place);
}

/* Its length is in the numbers of a line that was never kept. */
static void write_long_line(struct place *place, const char *name, size_t size)
{
    char *filling = malloc(size);

    assert_non_null(filling);
    memset(filling, 'x', size);
    place_write_ledgers(place, name, 1, 1);
    place_append(place, name, "{\"sequence\":2,\"hash\":\"");
    place_append_bytes(place, name, filling, size);
    free(filling);
    place_append(place, name, "\"}\n");
    place_append(place, name, ledger_line(3));
}

static void test_a_line_that_is_too_long_is_reported_and_passed_over(void **state)
{
    struct place *place = *state;

    write_long_line(place, "a.ndjson", 6 << 20);
    place_open(place,
               &(hf__source_options){.spec = place_path(place, "a.ndjson"), .line_max = 2 << 20});
    expect_ledger(place, 1);
    expect_bad(place, ":2", "the line is longer than 2097152 bytes");
    assert_int_equal(place->bad.sequence, 2);
    assert_int_equal(place->bad.size, 1 << 20);
    expect_ledger(place, 3);
    expect_end(place);

    place_open(place,
               &(hf__source_options){.spec = place_path(place, "a.ndjson"), .line_max = 200});
    expect_ledger(place, 1);
    expect_bad(place, ":2", "the line is longer than 200 bytes");
    assert_int_equal(place->bad.size, 200);
    expect_ledger(place, 3);
}

static void test_a_long_line_within_the_limit_is_a_ledger(void **state)
{
    struct place *place = *state;
    hf__buf text = {0};
    hf__ledger *ledger = NULL;

    hf__buf_printf(&text, "%s\n{\"sequence\":2,\"note\":\"", ledger_line(1));
    for (int i = 0; i < 50000; i++)
        hf__buf_puts(&text, "0123456789012345678901234567890123456789");
    hf__buf_puts(&text, "\",\"hash\":\"h2\",\"closed_at\":0,\"transactions\":["
                        "{\"hash\":\"t\",\"status\":\"OK\"}]}\n");
    hf__buf_printf(&text, "%s\n", ledger_line(3));
    place_write(place, "a.ndjson", text.data, text.length);
    hf__buf_free(&text);
    place_open_file(place, "a.ndjson", false);
    expect_extent(place, 1, 3);
    expect_ledger(place, 1);
    assert_int_equal(place->source->ops->next(place->source, &ledger, NULL, NULL), HF_OK);
    assert_int_equal(ledger->sequence, 2);
    assert_memory_equal(ledger->transactions[0].body.text, "{\"hash\":\"t\",\"status\":\"OK\"}",
                        26);
    expect_ledger(place, 3);
    assert_memory_equal(ledger->hash.text, "h2", 2);
    hf__ledger_free(ledger);
}

/* ---- packed ---- */

static hf__buf ledgers_text(int64_t first, int64_t last)
{
    hf__buf text = {0};

    for (int64_t i = first; i <= last; i++)
        hf__buf_printf(&text, "%s\n", ledger_line(i));
    return text;
}

/* Appends a member. */
static void write_gzip(struct place *place, const char *name, int64_t first, int64_t last)
{
    hf__buf text = ledgers_text(first, last);
    gzFile file = gzopen(place_path(place, name), "a");

    assert_non_null(file);
    assert_int_equal(gzwrite(file, text.data, (unsigned)text.length), (int)text.length);
    assert_int_equal(gzclose(file), Z_OK);
    hf__buf_free(&text);
}

static void write_zstd(struct place *place, const char *name, int64_t first, int64_t last)
{
    hf__buf text = ledgers_text(first, last);
    size_t room = ZSTD_compressBound(text.length);
    char *packed = malloc(room);

    assert_non_null(packed);
    size_t size = ZSTD_compress(packed, room, text.data, text.length, 3);
    assert_false(ZSTD_isError(size));
    place_append_bytes(place, name, packed, size);
    free(packed);
    hf__buf_free(&text);
}

typedef void pack_fn(struct place *place, const char *name, int64_t first, int64_t last);

static void unpack_two_members(struct place *place, const char *name, pack_fn *pack)
{
    pack(place, name, 1, 3000);
    pack(place, name, 3001, 3002);
    place_open_file(place, name, false);
    expect_extent(place, 1, 0);
    expect_ledgers(place, 1, 3002);
    expect_end(place);
}

static void test_packed_files_are_unpacked(void **state)
{
    unpack_two_members(*state, "a.ndjson.gz", write_gzip);
    unpack_two_members(*state, "b.ndjson.zst", write_zstd);
}

static void test_zeros_behind_gzip_are_no_data(void **state)
{
    struct place *place = *state;

    write_gzip(place, "a.ndjson.gz", 1, 2);
    place_append_bytes(place, "a.ndjson.gz", (char[512]){0}, 512);
    place_open_file(place, "a.ndjson.gz", false);
    expect_ledgers(place, 1, 2);
    expect_end(place);
}

static void cut_file(struct place *place, const char *name, off_t missing)
{
    struct stat about;

    assert_int_equal(stat(place_path(place, name), &about), 0);
    assert_int_equal(truncate(place->path, about.st_size - missing), 0);
}

static void test_a_packed_file_that_was_cut_is_bad_data(void **state)
{
    struct place *place = *state;

    write_gzip(place, "a.ndjson.gz", 1, 3);
    cut_file(place, "a.ndjson.gz", 6);
    place_open_file(place, "a.ndjson.gz", false);
    expect_ledgers(place, 1, 3);
    expect_bad(place, "a.ndjson.gz:4", "the packed data ends in the middle");
    expect_end(place);
    write_zstd(place, "b.ndjson.zst", 1, 3);
    cut_file(place, "b.ndjson.zst", 6);
    place_open_file(place, "b.ndjson.zst", false);
    expect_bad(place, "b.ndjson.zst:1", "the packed data ends in the middle");
    expect_end(place);
    write_gzip(place, "d.ndjson.gz", 1, 3);
    cut_file(place, "d.ndjson.gz", 20); /* within a line */
    place_open_file(place, "d.ndjson.gz", false);
    expect_ledgers(place, 1, 1);
    expect_bad(place, "d.ndjson.gz:2", "the packed data ends in the middle");
    expect_end(place);
    place_write(place, "c.ndjson.gz", "\x1F", 1);
    place_open_file(place, "c.ndjson.gz", false);
    expect_bad(place, "c.ndjson.gz:1", "the packed data ends in the middle");
    expect_end(place);
}

static void test_a_corrupt_packed_file_is_bad_data(void **state)
{
    struct place *place = *state;
    char junk[64];

    memset(junk, 'x', sizeof junk);
    write_gzip(place, "a.ndjson.gz", 1, 2);
    place_append_bytes(place, "a.ndjson.gz", junk, sizeof junk);
    place_open_file(place, "a.ndjson.gz", false);
    expect_ledgers(place, 1, 2);
    expect_bad(place, "a.ndjson.gz:3", "cannot be unpacked: incorrect header check");
    expect_end(place);
    memcpy(junk, "\x28\xB5\x2F\xFD", 4);
    place_write(place, "b.ndjson.zst", junk, sizeof junk);
    place_open_file(place, "b.ndjson.zst", false);
    expect_bad(place, "b.ndjson.zst:1", "cannot be unpacked");
    expect_end(place);
}

/* ---- folders ---- */

static void test_a_folder_gives_its_files_in_the_order_of_their_numbers(void **state)
{
    struct place *place = *state;

    place_write_ledgers(place, "l-10.ndjson", 7, 8);
    write_gzip(place, "l-9.ndjson.gz", 4, 6);
    write_zstd(place, "l-1.ndjson.zst", 1, 3);
    place_write(place, "l-2.ndjson", "", 0);
    place_write_ledgers(place, "l-3.txt", 100, 101);
    place_write_ledgers(place, ".l-4.ndjson", 100, 101);
    place_open_file(place, ".", false);
    expect_extent(place, 1, 8);
    expect_ledgers(place, 1, 8);
    expect_end(place);
}

static void test_a_bad_file_does_not_end_a_folder(void **state)
{
    struct place *place = *state;

    write_gzip(place, "1.ndjson.gz", 1, 3);
    cut_file(place, "1.ndjson.gz", 6);
    place_write_ledgers(place, "2.ndjson", 4, 5);
    place_append(place, "2.ndjson", "{\"sequence\":6");
    place_write_ledgers(place, "3.ndjson", 7, 7);
    place_open_file(place, ".", false);
    expect_ledgers(place, 1, 3);
    expect_bad(place, "1.ndjson.gz:4", "ends in the middle");
    expect_ledgers(place, 4, 5);
    expect_bad(place, "2.ndjson:3", "the text ends in an object");
    expect_ledger(place, 7);
    expect_end(place);
}

static void test_a_folder_is_entered_where_the_ledger_is(void **state)
{
    struct place *place = *state;
    char name[32];

    for (int64_t i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "l-%" PRId64 ".ndjson%s", i, i % 3 == 2 ? ".gz" : "");
        if (i % 3 == 2)
            write_gzip(place, name, 10 * i + 1, 10 * i + 10);
        else
            place_write_ledgers(place, name, 10 * i + 1, 10 * i + 10);
    }
    place_write(place, "l-5.1.ndjson", "junk\n", 5);
    place_open_file(place, ".", false);
    expect_extent(place, 1, 200);
    for (int64_t from = 1; from <= 200; from += 7) {
        seek_to(place, from);
        expect_ledger(place, from);
    }
    seek_to(place, 48);
    expect_ledgers(place, 48, 50);
    expect_bad(place, "l-5.1.ndjson:1", "an object is expected");
    expect_ledgers(place, 51, 200);
    expect_end(place);
    seek_to(place, 201);
    expect_end(place);
}

/* ---- going elsewhere ---- */

static void test_a_seek_goes_forward_and_back(void **state)
{
    struct place *place = *state;

    place_write_ledgers(place, "a.ndjson", 10, 20);
    write_gzip(place, "a.ndjson.gz", 10, 20);
    for (int i = 0; i < 2; i++) {
        place_open_file(place, i == 0 ? "a.ndjson" : "a.ndjson.gz", false);
        seek_to(place, 15);
        expect_ledger(place, 15);
        seek_to(place, 16);
        expect_ledger(place, 16);
        seek_to(place, 12);
        expect_ledgers(place, 12, 20);
        expect_end(place);
        seek_to(place, 1);
        expect_ledgers(place, 10, 11);
        seek_to(place, 19);
        expect_ledgers(place, 19, 20);
        seek_to(place, 21);
        expect_end(place);
    }
}

static void test_a_long_file_is_searched_not_read(void **state)
{
    enum { COUNT = 20000 };
    struct place *place = *state;

    place_write_ledgers(place, "a.ndjson", 1, COUNT);
    FILE *file = fopen(place_path(place, "a.ndjson"), "r+");
    assert_non_null(file);
    assert_int_equal(fwrite("junk ", 1, 5, file), 5); /* what a search never meets */
    fclose(file);
    place_open_file(place, "a.ndjson", false);
    for (int64_t from = 2500; from <= COUNT; from += 2499) {
        seek_to(place, from);
        expect_ledger(place, from);
        expect_ledger(place, from + 1);
    }
    seek_to(place, COUNT + 1);
    expect_end(place);
    seek_to(place, 1);
    expect_bad(place, ":1", "an object is expected");
    expect_ledger(place, 2);
}

static void test_a_line_has_its_number_after_a_seek_too(void **state)
{
    enum { COUNT = 5000 };
    struct place *place = *state;

    place_write_ledgers(place, "a.ndjson", 1, COUNT);
    place_append(place, "a.ndjson", "oops\n");
    place_append(place, "a.ndjson", ledger_line(COUNT + 1));
    place_open_file(place, "a.ndjson", false);
    seek_to(place, COUNT + 1);
    expect_bad(place, "a.ndjson:5001", "an object is expected");
    expect_ledger(place, COUNT + 1);
}

static void test_extents_are_read_from_both_ends(void **state)
{
    struct place *place = *state;

    place_write(place, "a.ndjson", "", 0);
    place_open_file(place, "a.ndjson", false);
    expect_extent(place, 0, 0);
    place_append(place, "a.ndjson", "junk\n\n");
    expect_extent(place, 0, 0);
    place_append(place, "a.ndjson", ledger_line(7));
    expect_extent(place, 7, 7);
    place_append(place, "a.ndjson", "\n");
    place_append(place, "a.ndjson", ledger_line(8));
    place_append(place, "a.ndjson", "\r\n\njunk\n{\"sequence\":9,\"hash\":\"");
    expect_extent(place, 7, 8);
}

static int64_t tip_of_next(struct place *place)
{
    hf__ledger *ledger = NULL;

    assert_int_equal(place->source->ops->next(place->source, &ledger, NULL, &place->err), HF_OK);
    assert_non_null(ledger);
    int64_t tip = ledger->tip;
    hf__ledger_free(ledger);
    return tip;
}

static void test_the_tip_is_the_last_ledger_where_it_can_be_told(void **state)
{
    struct place *place = *state;

    place_write_ledgers(place, "a.ndjson", 1, 3);
    place_open_file(place, "a.ndjson", true);
    assert_int_equal(tip_of_next(place), 3);
    assert_int_equal(tip_of_next(place), 3);
    place_append(place, "a.ndjson", ledger_line(4));
    place_append(place, "a.ndjson", "\n");
    assert_int_equal(tip_of_next(place), 4);
    write_gzip(place, "b.ndjson.gz", 1, 3);
    place_open_file(place, "b.ndjson.gz", false);
    assert_int_equal(tip_of_next(place), 0);
}

/* ---- standard input ---- */

static int replace_stdin(int fd)
{
    int kept = dup(STDIN_FILENO);

    assert_true(kept >= 0);
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    return kept;
}

static void restore_stdin(int kept)
{
    assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    close(kept);
}

static void test_standard_input_is_read_once(void **state)
{
    struct place *place = *state;
    int ends[2];
    hf__buf text = ledgers_text(1, 5);

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text.data, text.length), (ssize_t)text.length);
    hf__buf_free(&text);
    close(ends[1]);
    int kept = replace_stdin(ends[0]);
    close(ends[0]);
    place_open(place, &(hf__source_options){.spec = "-", .follow = true});
    expect_extent(place, 0, 0);
    seek_to(place, 3);
    assert_int_equal(tip_of_next(place), 0);
    assert_int_equal(place->source->ops->seek(place->source, 2, &place->err), HF_CONFIG);
    assert_non_null(strstr(place->err.message, "standard input cannot be read again"));
    seek_to(place, 4);
    expect_ledgers(place, 4, 5);
    expect_end(place);
    expect_end(place);
    restore_stdin(kept);
}

static void test_a_wait_for_standard_input_can_be_stopped(void **state)
{
    struct place *place = *state;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    int kept = replace_stdin(ends[0]);
    place_open(place, &(hf__source_options){.spec = "-"});
    stop_source(place);
    expect_status(place, HF_INTERRUPTED, "interrupted");
    restore_stdin(kept);
    close(ends[0]);
    close(ends[1]);
}

static void test_a_named_pipe_does_not_wait_for_its_writer(void **state)
{
    struct place *place = *state;

    assert_int_equal(mkfifo(place_path(place, "pipe"), 0600), 0);
    place_open_file(place, "pipe", false);
    stop_source(place);
    expect_status(place, HF_INTERRUPTED, "interrupted");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_file_gives_its_ledgers_and_ends),
        TEST(test_line_ends_blank_lines_and_a_mark_are_no_data),
        TEST(test_what_is_not_there_is_refused_at_once),
        TEST(test_a_bad_line_is_reported_and_the_next_is_read),
        TEST(test_sequences_come_as_they_stand),
        TEST(test_a_last_line_that_was_cut_is_bad_data),
        TEST(test_a_line_that_is_too_long_is_reported_and_passed_over),
        TEST(test_a_long_line_within_the_limit_is_a_ledger),
        TEST(test_packed_files_are_unpacked),
        TEST(test_zeros_behind_gzip_are_no_data),
        TEST(test_a_packed_file_that_was_cut_is_bad_data),
        TEST(test_a_corrupt_packed_file_is_bad_data),
        TEST(test_a_folder_gives_its_files_in_the_order_of_their_numbers),
        TEST(test_a_bad_file_does_not_end_a_folder),
        TEST(test_a_folder_is_entered_where_the_ledger_is),
        TEST(test_a_seek_goes_forward_and_back),
        TEST(test_a_long_file_is_searched_not_read),
        TEST(test_a_line_has_its_number_after_a_seek_too),
        TEST(test_extents_are_read_from_both_ends),
        TEST(test_the_tip_is_the_last_ledger_where_it_can_be_told),
        TEST(test_standard_input_is_read_once),
        TEST(test_a_wait_for_standard_input_can_be_stopped),
        TEST(test_a_named_pipe_does_not_wait_for_its_writer),
    };
    return RUN(tests);
}
