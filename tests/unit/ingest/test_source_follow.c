/*
 * Files that grow while they are read. A writer in a thread of its own may come at any moment: what
 * is read must be the same whenever that is.
 */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "source_support.h"

struct writer {
    struct place place; /* only its folder is used */
    const char *name;
    const char *parts[8];
    pthread_t thread;
};

static void *write_parts(void *arg)
{
    struct writer *writer = arg;

    for (size_t i = 0; i < 8 && writer->parts[i] != NULL; i++)
        place_append(&writer->place, writer->name, writer->parts[i]);
    return NULL;
}

static void start_writer(struct writer *writer, const struct place *place)
{
    strcpy(writer->place.folder, place->folder);
    assert_int_equal(pthread_create(&writer->thread, NULL, write_parts, writer), 0);
}

static void join_writer(struct writer *writer)
{
    assert_int_equal(pthread_join(writer->thread, NULL), 0);
}

static void test_a_file_that_grows_is_read_on(void **state)
{
    struct place *place = *state;
    char line[200];

    snprintf(line, sizeof line, "%s\n", ledger_line(3));
    struct writer writer = {.name = "a.ndjson", .parts = {line}};
    place_write_ledgers(place, "a.ndjson", 1, 2);
    place_open_file(place, "a.ndjson", true);
    expect_ledgers(place, 1, 2);
    start_writer(&writer, place);
    expect_ledger(place, 3);
    join_writer(&writer);
}

static void test_an_unfinished_line_is_waited_for(void **state)
{
    struct place *place = *state;
    struct writer writer = {
        .name = "a.ndjson",
        .parts = {"{\"sequence\":2,\"x\":{}", ",\"hash\":\"h\",\"closed_at\":0,\"transac",
                  "tions\":[", "]}\n", "oops\n", "{\"sequence\":4,\"hash\":\"h\",\"closed_at\":0,",
                  "\"transactions\":[]}\n"}};

    place_write_ledgers(place, "a.ndjson", 1, 1);
    place_open_file(place, "a.ndjson", true);
    expect_ledger(place, 1);
    start_writer(&writer, place);
    expect_ledger(place, 2);
    expect_bad(place, "a.ndjson:3", "invalid JSON");
    expect_ledger(place, 4);
    join_writer(&writer);
}

static void test_a_complete_line_without_its_newline_is_not_waited_for(void **state)
{
    struct place *place = *state;

    place_write(place, "a.ndjson", "", 0);
    place_append(place, "a.ndjson", ledger_line(1));
    place_open_file(place, "a.ndjson", true);
    expect_ledger(place, 1);
    place_append(place, "a.ndjson", "\n");
    place_append(place, "a.ndjson", ledger_line(2));
    expect_ledger(place, 2);
    place_append(place, "a.ndjson", "\noops\n");
    expect_bad(place, "a.ndjson:3", "invalid JSON");
}

static void test_a_file_that_was_replaced_is_read_from_its_last_ledger(void **state)
{
    struct place *place = *state;

    place_write_ledgers(place, "a.ndjson", 1, 5);
    place_open_file(place, "a.ndjson", true);
    expect_ledgers(place, 1, 5);
    place_write_ledgers(place, "new", 3, 7);
    place_move(place, "new", "a.ndjson");
    expect_ledgers(place, 5, 7);
    assert_non_null(strstr(place->log, "was replaced or cut"));
}

static void test_a_file_that_was_cut_is_read_from_its_last_ledger(void **state)
{
    struct place *place = *state;

    place_write_ledgers(place, "a.ndjson", 1, 5);
    place_append(place, "a.ndjson", "{\"sequence\":6,\"unfinished\":");
    place_open_file(place, "a.ndjson", true);
    expect_ledgers(place, 1, 5);
    stop_source(place);
    expect_status(place, HF_INTERRUPTED, "interrupted");
    assert_int_equal(read(place->stop[0], (char[1]){0}, 1), 1);
    place_write_ledgers(place, "a.ndjson", 5, 6);
    expect_ledgers(place, 5, 6);
    assert_non_null(strstr(place->log, "was replaced or cut"));
}

static void test_a_folder_is_read_on_in_new_files(void **state)
{
    struct place *place = *state;
    char line[200];

    place_open_file(place, ".", true); /* empty: they are yet to come */
    place_write_ledgers(place, "l-1.ndjson", 1, 2);
    expect_ledgers(place, 1, 2);
    place_append(place, "l-1.ndjson", ledger_line(3));
    place_write_ledgers(place, "l-2.ndjson", 4, 4);
    expect_ledgers(place, 3, 4);
    unlink(place_path(place, "l-1.ndjson"));
    snprintf(line, sizeof line, "%s\n", ledger_line(5));
    struct writer writer = {.name = "l-10.ndjson", .parts = {line}};
    start_writer(&writer, place);
    expect_ledger(place, 5);
    join_writer(&writer);
}

static void test_a_line_that_was_never_finished_is_bad_data_once_a_file_follows(void **state)
{
    struct place *place = *state;

    place_write_ledgers(place, "l-1.ndjson", 1, 1);
    place_append(place, "l-1.ndjson", "{\"sequence\":2,");
    place_open_file(place, ".", true);
    expect_ledger(place, 1);
    place_write_ledgers(place, "l-2.ndjson", 3, 3);
    expect_bad(place, "l-1.ndjson:2", "the text ends in an object");
    expect_ledger(place, 3);
}

static void test_a_file_in_hand_may_vanish_from_the_folder(void **state)
{
    struct place *place = *state;

    place_write_ledgers(place, "l-1.ndjson", 1, 2);
    place_open_file(place, ".", true);
    expect_ledger(place, 1);
    unlink(place_path(place, "l-1.ndjson"));
    expect_ledger(place, 2);
    place_write_ledgers(place, "l-2.ndjson", 3, 3);
    expect_ledger(place, 3);
}

static void *stop_from_elsewhere(void *arg)
{
    stop_source(arg);
    return NULL;
}

static void test_a_wait_for_more_can_be_stopped(void **state)
{
    struct place *place = *state;
    pthread_t thread;

    place_write_ledgers(place, "a.ndjson", 1, 1);
    place_open_file(place, "a.ndjson", true);
    expect_ledger(place, 1);
    assert_int_equal(pthread_create(&thread, NULL, stop_from_elsewhere, place), 0);
    expect_status(place, HF_INTERRUPTED, "interrupted");
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_file_that_grows_is_read_on),
        TEST(test_an_unfinished_line_is_waited_for),
        TEST(test_a_complete_line_without_its_newline_is_not_waited_for),
        TEST(test_a_file_that_was_replaced_is_read_from_its_last_ledger),
        TEST(test_a_file_that_was_cut_is_read_from_its_last_ledger),
        TEST(test_a_folder_is_read_on_in_new_files),
        TEST(test_a_line_that_was_never_finished_is_bad_data_once_a_file_follows),
        TEST(test_a_file_in_hand_may_vanish_from_the_folder),
        TEST(test_a_wait_for_more_can_be_stopped),
    };
    return RUN(tests);
}
