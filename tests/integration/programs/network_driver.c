/*
 * network_driver URL NETWORK [SCHEMA]: what lib/ledgers does, a command a line on standard input,
 * an answer a line: "ok …" or "STATUS message". Commands between begin and commit or rollback share
 * one transaction, which stays open meanwhile; any other has one of its own. See hf_network.py.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ledgers/ledgers.h"

enum { MOST_WORDS = 6, LINE_MAX_SIZE = 4096 };

struct driver {
    hf_network *network;
    char line[LINE_MAX_SIZE];
    char *words[MOST_WORDS];
    size_t count;
    hf__buf answer;
};

static int64_t number(const struct driver *driver, size_t word)
{
    return word < driver->count ? strtoll(driver->words[word], NULL, 10) : 0;
}

static bool is(const struct driver *driver, const char *word)
{
    return driver->count > 0 && strcmp(driver->words[0], word) == 0;
}

static bool read_line(struct driver *driver)
{
    char *rest = NULL;
    if (!fgets(driver->line, sizeof driver->line, stdin))
        return false;
    driver->line[strcspn(driver->line, "\n")] = '\0';
    driver->count = 0;
    for (char *word = strtok_r(driver->line, " ", &rest); word && driver->count < MOST_WORDS;
         word = strtok_r(NULL, " ", &rest))
        driver->words[driver->count++] = word;
    return true;
}

static void answer(struct driver *driver, hf_status status, const hf_error *err)
{
    if (status == HF_OK)
        printf("ok%s\n", driver->answer.data ? driver->answer.data : "");
    else
        printf("%s %s\n", hf_status_name(status), err->message);
    fflush(stdout);
    hf__buf_free(&driver->answer);
}

static void say_range(struct driver *driver, int64_t from, int64_t to)
{
    hf__buf_printf(&driver->answer, " %" PRId64 "-%" PRId64, from, to);
}

static hf_status read_coverage(hf_tx *tx, struct driver *driver, hf_error *err)
{
    hf__ranges ranges = {0};
    hf_status status =
        hf__coverage_read(tx, driver->network, number(driver, 1), number(driver, 2), &ranges, err);
    for (size_t i = 0; i < ranges.count; i++)
        say_range(driver, ranges.items[i].from, ranges.items[i].to);
    hf__ranges_free(&ranges);
    return status;
}

static hf_status read_last(hf_tx *tx, struct driver *driver, hf_error *err)
{
    bool found = false;
    hf_range last = {0};
    int64_t row_from = 0;
    hf_status status = hf__coverage_last(tx, driver->network, &found, &last, &row_from, err);
    if (found) {
        say_range(driver, last.from, last.to);
        hf__buf_printf(&driver->answer, " %" PRId64, row_from);
    }
    return status;
}

static hf_status in_transaction(hf_tx *tx, struct driver *driver, hf_error *err)
{
    hf_network *network = driver->network;
    if (is(driver, "add"))
        return hf__coverage_add(tx, network, number(driver, 1), number(driver, 2), err);
    if (is(driver, "extend"))
        return hf__coverage_extend(tx, network, number(driver, 1), number(driver, 2),
                                   number(driver, 3), err);
    if (is(driver, "clip"))
        return hf__coverage_clip(tx, network, number(driver, 1), number(driver, 2), err);
    if (is(driver, "read"))
        return read_coverage(tx, driver, err);
    if (is(driver, "last"))
        return read_last(tx, driver, err);
    if (is(driver, "move"))
        return hf__cursor_move(tx, network, driver->words[1], number(driver, 2), number(driver, 3),
                               err);
    if (is(driver, "put"))
        return hf__text_write(tx, network, driver->words[1], driver->words[2], err);
    return hf__fail(err, HF_INVALID, "no such command: %s",
                    driver->count > 0 ? driver->words[0] : "");
}

static hf_status run_one(hf_tx *tx, void *arg, hf_error *err)
{
    struct driver *driver = arg;
    hf__buf_clear(&driver->answer); /* of an attempt before */
    return in_transaction(tx, driver, err);
}

/* Reads its commands itself; the answer to commit comes when that is done. */
static hf_status run_open(hf_tx *tx, void *arg, hf_error *err)
{
    struct driver *driver = arg;
    if (hf_tx_attempt(tx) > 1)
        return hf__fail(err, HF_EXHAUSTED, "the transaction would have to be repeated");
    answer(driver, HF_OK, NULL);
    while (read_line(driver)) {
        if (is(driver, "commit"))
            return HF_OK;
        if (is(driver, "rollback"))
            return hf__fail(err, HF_INTERRUPTED, "rolled back");
        hf_status status = in_transaction(tx, driver, err);
        if (status != HF_OK)
            return status;
        /* What was queued goes out now, so that the test knows what holds which lock. */
        status = hf_tx_query(tx, "SELECT 1", 0, NULL, false, NULL, err);
        if (status != HF_OK)
            return status;
        answer(driver, HF_OK, NULL);
    }
    return HF_INTERRUPTED;
}

/* storm SEED COUNT MOST WIDTH: so many ranges, drawn from 1…MOST, each added in a transaction. */
static hf_status storm(struct driver *driver, hf_error *err)
{
    unsigned seed = (unsigned)number(driver, 1);
    int64_t count = number(driver, 2), most = number(driver, 3), width = number(driver, 4);
    hf_status status = HF_OK;
    for (int64_t i = 0; status == HF_OK && i < count; i++) {
        char first[24], last[24];
        int64_t from = 1 + rand_r(&seed) % most, to = from + rand_r(&seed) % width;
        struct driver one = {.network = driver->network, .count = 3};
        one.words[0] = (char[]){"add"};
        one.words[1] = (char *)hf__number_value(first, from).data;
        one.words[2] = (char *)hf__number_value(last, to).data;
        status = hf__network_transact(driver->network, run_one, &one, err);
        if (status == HF_OK)
            say_range(driver, from, to);
        hf__buf_free(&one.answer);
    }
    return status;
}

/* live FROM COUNT STEP: one range, so often extended; stops where coverage is in its way. */
static hf_status live(struct driver *driver, hf_error *err)
{
    int64_t from = number(driver, 1), count = number(driver, 2), step = number(driver, 3);
    int64_t end = from;
    hf_status status = HF_OK;
    for (int64_t i = 0; status == HF_OK && i < count; i++) {
        char words[3][24];
        struct driver one = {.network = driver->network, .count = 4};
        one.words[0] = (char[]){"extend"};
        one.words[1] = (char *)hf__number_value(words[0], from).data;
        one.words[2] = (char *)hf__number_value(words[1], end).data;
        one.words[3] = (char *)hf__number_value(words[2], end + step).data;
        status = hf__network_transact(driver->network, run_one, &one, err);
        if (status == HF_OK)
            end += step;
        hf__buf_free(&one.answer);
    }
    say_range(driver, from, end);
    return status == HF_CURSOR ? HF_OK : status;
}

static hf_status list_partitions(struct driver *driver, bool drop, hf_error *err)
{
    hf__partition *list = NULL;
    size_t count = 0;
    hf_status status = hf__partitions_list(driver->network, &list, &count, err);
    for (size_t i = 0; status == HF_OK && i < count; i++) {
        if (!drop) {
            say_range(driver, list[i].ledger_range.from, list[i].ledger_range.to);
            hf__buf_printf(&driver->answer, "=%s,%s", list[i].ledgers, list[i].table);
        } else if (list[i].ledger_range.from == number(driver, 1)) {
            status = hf__partition_drop(driver->network, &list[i], err);
        }
    }
    free(list);
    return status;
}

static hf_status run(struct driver *driver, hf_error *err)
{
    bool there = false;
    hf_status status = HF_OK;
    if (is(driver, "begin"))
        return hf__network_transact(driver->network, run_open, driver, err);
    if (is(driver, "install"))
        return hf__tables_install(driver->network, err);
    if (is(driver, "check")) {
        status = hf__tables_check(driver->network, &there, err);
        hf__buf_puts(&driver->answer, there ? " yes" : " no");
        return status;
    }
    if (is(driver, "ensure"))
        return hf__partitions_ensure(driver->network, number(driver, 1), number(driver, 2),
                                     number(driver, 3), err);
    if (is(driver, "partitions"))
        return list_partitions(driver, false, err);
    if (is(driver, "drop"))
        return list_partitions(driver, true, err);
    if (is(driver, "storm"))
        return storm(driver, err);
    if (is(driver, "live"))
        return live(driver, err);
    return hf__network_transact(driver->network, run_one, driver, err);
}

int main(int argc, char **argv)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_network_options of_network = HF_NETWORK_OPTIONS_INIT;
    struct driver driver = {0};
    hf_store *store = NULL;
    hf_error err = {0};
    if (argc < 3)
        return 64;
    options.url = argv[1];
    of_network.name = argv[2];
    of_network.schema = argc > 3 ? argv[3] : NULL;
    hf_status status = hf_store_open(&options, &store, &err);
    if (status == HF_OK)
        status = hf_network_open(store, &of_network, &driver.network, &err);
    answer(&driver, status, &err);
    while (status == HF_OK && read_line(&driver)) {
        hf_status done = run(&driver, &err);
        answer(&driver, done, &err);
    }
    hf_network_free(driver.network);
    hf_store_close(store);
    return status == HF_OK ? 0 : 1;
}
