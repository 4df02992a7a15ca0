#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "folder.h"
#include "source_support.h"

int place_setup(void **state)
{
    struct place *place = calloc(1, sizeof *place);

    assert_non_null(place);
    strcpy(place->folder, "/tmp/hf-source-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    assert_int_equal(pipe(place->stop), 0);
    *state = place;
    return 0;
}

int place_teardown(void **state)
{
    struct place *place = *state;

    hf__source_close(place->source);
    hf__bad_ledger_free(&place->bad);
    remove_tree(place->folder);
    close(place->stop[0]);
    close(place->stop[1]);
    free(place);
    return 0;
}

const char *place_path(struct place *place, const char *name)
{
    snprintf(place->path, sizeof place->path, "%s/%s", place->folder, name);
    return place->path;
}

static void write_file(struct place *place, const char *name, const char *mode, const void *bytes,
                       size_t size)
{
    FILE *file = fopen(place_path(place, name), mode);

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void place_write(struct place *place, const char *name, const void *bytes, size_t size)
{
    write_file(place, name, "w", bytes, size);
}

void place_append(struct place *place, const char *name, const char *text)
{
    place_append_bytes(place, name, text, strlen(text));
}

void place_append_bytes(struct place *place, const char *name, const void *bytes, size_t size)
{
    write_file(place, name, "a", bytes, size);
}

void place_move(struct place *place, const char *from, const char *to)
{
    char old[512];

    snprintf(old, sizeof old, "%s", place_path(place, from));
    assert_int_equal(rename(old, place_path(place, to)), 0);
}

const char *ledger_line(int64_t sequence)
{
    static _Thread_local char lines[4][160];
    static _Thread_local unsigned used;
    char *line = lines[used++ % 4];

    snprintf(line, sizeof lines[0],
             "{\"sequence\":%" PRId64 ",\"hash\":\"h%" PRId64
             "\",\"closed_at\":\"2024-01-01T00:00:00Z\",\"transactions\":[]}",
             sequence, sequence);
    return line;
}

void place_write_ledgers(struct place *place, const char *name, int64_t first, int64_t last)
{
    hf__buf text = {0};

    for (int64_t i = first; i <= last; i++)
        hf__buf_printf(&text, "%s\n", ledger_line(i));
    place_write(place, name, text.data, text.length);
    hf__buf_free(&text);
}

static void keep_note(void *arg, hf_log_level level, const char *message)
{
    struct place *place = arg;

    (void)level;
    snprintf(place->log, sizeof place->log, "%s", message);
}

void place_open(struct place *place, const hf__source_options *options)
{
    hf__source_options all = *options;

    all.stop_fd = place->stop[0];
    all.log = keep_note;
    all.log_arg = place;
    hf__source_close(place->source);
    if (hf__source_open(&all, &place->source, &place->err) != HF_OK)
        fail_msg("%s", place->err.message);
}

hf_status place_try_open(struct place *place, const char *spec)
{
    hf__source_options options = {.spec = spec, .stop_fd = place->stop[0]};

    hf__source_close(place->source);
    return hf__source_open(&options, &place->source, &place->err);
}

void place_open_file(struct place *place, const char *name, bool follow)
{
    place_open(place, &(hf__source_options){.spec = place_path(place, name), .follow = follow});
}

hf_status place_next(struct place *place, int64_t *sequence)
{
    hf__ledger *ledger = NULL;

    hf__bad_ledger_free(&place->bad);
    hf_status status = place->source->ops->next(place->source, &ledger, &place->bad, &place->err);
    *sequence = ledger != NULL ? ledger->sequence : 0;
    hf__ledger_free(ledger);
    return status;
}

void expect_ledger(struct place *place, int64_t sequence)
{
    int64_t found = 0;

    if (place_next(place, &found) != HF_OK)
        fail_msg("instead of ledger %" PRId64 ": %s", sequence, place->err.message);
    assert_int_equal(found, sequence);
}

void expect_ledgers(struct place *place, int64_t first, int64_t last)
{
    for (int64_t i = first; i <= last; i++)
        expect_ledger(place, i);
}

void expect_end(struct place *place)
{
    expect_ledger(place, 0);
}

void expect_status(struct place *place, hf_status status, const char *message)
{
    int64_t sequence = 0;
    hf_status found = place_next(place, &sequence);

    if (found != status)
        fail_msg("%s, ledger %" PRId64 ": %s", hf_status_name(found), sequence, place->err.message);
    if (strstr(place->err.message, message) == NULL)
        fail_msg("'%s' has no '%s'", place->err.message, message);
}

void expect_bad(struct place *place, const char *where, const char *message)
{
    expect_status(place, HF_BAD_DATA, message);
    if (strstr(place->bad.where, where) == NULL)
        fail_msg("'%s' has no '%s'", place->bad.where, where);
    assert_memory_equal(place->err.message, place->bad.where, strlen(place->bad.where));
}

void seek_to(struct place *place, int64_t from)
{
    if (place->source->ops->seek(place->source, from, &place->err) != HF_OK)
        fail_msg("%s", place->err.message);
}

void expect_extent(struct place *place, int64_t oldest, int64_t latest)
{
    int64_t first = -1;
    int64_t last = -1;

    assert_int_equal(place->source->ops->extent(place->source, &first, &last, &place->err), HF_OK);
    assert_int_equal(first, oldest);
    assert_int_equal(last, latest);
}

void stop_source(struct place *place)
{
    assert_int_equal(write(place->stop[1], "x", 1), 1);
}
