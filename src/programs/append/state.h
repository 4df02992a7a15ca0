/* What is kept in the store about an append: see holdfast.appends in the schema. */
#ifndef HF_APPEND_STATE_H
#define HF_APPEND_STATE_H

#include "base/buf.h"
#include "lib/locks/locks.h"

enum { HF__APPEND_ID_MAX = 64 };

typedef enum hf__append_state {
    HF__APPEND_UNKNOWN = 0, /* there is no row */
    HF__APPEND_ATTACHING,
    HF__APPEND_DONE,
    HF__APPEND_DOUBTFUL, /* nothing tells any more whether its rows are there */
} hf__append_state;

typedef struct hf__append_row {
    char id[HF__APPEND_ID_MAX + 1];
    char table[HF_TABLE_TEXT_MAX];
    hf__append_state state;
    char staging[128];
    hf__buf plan;
    int64_t rows;
} hf__append_row;

void hf__append_row_free(hf__append_row *row);

/* state is HF__APPEND_UNKNOWN where there is none. The caller frees the row. */
HF_MUST_CHECK hf_status hf__append_load(hf_store *store, const char *id, hf__append_row *row,
                                        hf_error *err);

/* The one append of the table that was attaching, or HF__APPEND_UNKNOWN. */
HF_MUST_CHECK hf_status hf__append_load_attaching(hf_store *store, const char *table,
                                                  hf__append_row *row, hf_error *err);

/*
 * Writes the row on the session of the table's lock, or not at all (HF_LOST). *in_the_way: another
 * append of the table has been attaching, and nothing was written.
 */
HF_MUST_CHECK hf_status hf__append_save(hf_lock *lock, const hf__append_row *row, bool *in_the_way,
                                        hf_error *err);

/*
 * The same for a row that is done, and releases both locks: the table's, and that of the append's
 * id.
 */
HF_MUST_CHECK hf_status hf__append_save_last(hf_lock *const locks[2], const hf__append_row *row,
                                             hf_error *err);

/* The key of the lock that an append holds as long as it lives: below all minted ids. */
HF_MUST_CHECK hf_status hf__append_lock(hf_store *store, const char *id, const hf_lock_spec *spec,
                                        const hf__lock_extra *extra, hf_lock **lock, hf_error *err);

/* hf__append_load in the message that takes a lock. */
void hf__append_look(const hf_value *id, hf__rider *rider);
HF_MUST_CHECK hf_status hf__append_looked(const hf_rows *rows, hf__append_row *row, hf_error *err);

/* 1 to 64 of letters, digits, '.', '_', ':' and '-'. */
HF_MUST_CHECK hf_status hf__append_check_id(const char *id, hf_error *err);

#endif
