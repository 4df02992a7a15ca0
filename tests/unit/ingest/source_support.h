/* What the tests of sources share: a folder of their own, and a source with one way to fail. */
#ifndef TESTS_SOURCE_SUPPORT_H
#define TESTS_SOURCE_SUPPORT_H

#include "programs/ingest/sources/source.h"

/* One per test. */
struct place {
    char folder[64];
    int stop[2]; /* a pipe: a byte in it stops what waits */
    hf__source *source;
    hf__bad_ledger bad;
    hf_error err;
    char log[512]; /* the last note */
    char path[512];
};

int place_setup(void **state);
int place_teardown(void **state);

/* Of a file in the folder; lives until the next call. */
const char *place_path(struct place *place, const char *name);
void place_write(struct place *place, const char *name, const void *bytes, size_t size);
void place_append(struct place *place, const char *name, const char *text);
void place_append_bytes(struct place *place, const char *name, const void *bytes, size_t size);
void place_move(struct place *place, const char *from, const char *to);

/* A ledger without transactions, as a line without its end; lives until the next call but three. */
const char *ledger_line(int64_t sequence);
/* Lines from first to last. */
void place_write_ledgers(struct place *place, const char *name, int64_t first, int64_t last);

void place_open(struct place *place, const hf__source_options *options);
hf_status place_try_open(struct place *place, const char *spec);
void place_open_file(struct place *place, const char *name, bool follow);

hf_status place_next(struct place *place, int64_t *sequence); /* 0: the end */
void expect_ledger(struct place *place, int64_t sequence);
void expect_ledgers(struct place *place, int64_t first, int64_t last);
void expect_end(struct place *place);
void expect_bad(struct place *place, const char *where, const char *message);
void expect_status(struct place *place, hf_status status, const char *message);
void seek_to(struct place *place, int64_t from);
void expect_extent(struct place *place, int64_t oldest, int64_t latest);
void stop_source(struct place *place);

#endif
