/*
 * What the store keeps about an append: a row of holdfast.appends, and the lock of its id. The row
 * is there from the moment parts are about to be attached.
 */
#ifndef HF_APPEND_STATE_H
#define HF_APPEND_STATE_H

#include "base/buf.h"
#include "lib/locks/locks.h"

enum { HF__APPEND_ID_MAX = 64, HF__SERVER_MAX = 256, HF__REASON_MAX = 256 };

typedef enum hf__append_state {
    HF__APPEND_UNKNOWN = 0, /* there is no row */
    HF__APPEND_ATTACHING,
    HF__APPEND_DONE,
    HF__APPEND_DOUBTFUL, /* nobody can tell any more whether its rows are in the table */
} hf__append_state;

typedef struct hf__append_row {
    char id[HF__APPEND_ID_MAX + 1];
    char table[HF_TABLE_TEXT_MAX];
    hf__append_state state;
    char staging[128];
    hf__buf plan;
    int64_t rows;
    char server[HF__SERVER_MAX]; /* where it attaches, see hf__work; "": an older version's */
    char reason[HF__REASON_MAX]; /* why it is doubtful */
    int64_t at_ms;               /* when it was saved last */
} hf__append_row;

void hf__append_row_free(hf__append_row *row);

/*
 * Reads the row of an append; its state is HF__APPEND_UNKNOWN when there is none. The caller frees
 * the row, also after a failure. HF_NO_SCHEMA: the store has no such table.
 */
HF_MUST_CHECK hf_status hf__append_load(hf_store *store, const char *id, hf__append_row *row,
                                        hf_error *err);

/* HF_LOST: this lock, of an append, is not held any more. Asks the server. */
HF_MUST_CHECK hf_status hf__append_check_held(hf_lock *lock, hf_error *err);

/*
 * The rows of all appends to this table that are attaching: one at most on each server. The caller
 * frees rows.
 */
HF_MUST_CHECK hf_status hf__append_load_attaching(hf_store *store, const char *table,
                                                  hf_rows **rows, hf_error *err);
/* Reads one row of those. */
HF_MUST_CHECK hf_status hf__append_row_read(const hf_rows *rows, size_t at, hf__append_row *row,
                                            hf_error *err);
/* All of them; without is_all those that are not done. The caller frees rows. */
HF_MUST_CHECK hf_status hf__append_list(hf_store *store, bool is_all, hf_rows **rows,
                                        hf_error *err);
/* "attaching", "done", "doubtful" */
const char *hf__append_state_word(hf__append_state state);
/* Removes the row, as if the append had never begun to attach; on the session of the lock. */
HF_MUST_CHECK hf_status hf__append_remove(hf_lock *lock, const char *id, hf_error *err);

/*
 * Saves the row on the session of the table's lock. HF_LOST: the lock is gone, and nothing was
 * written. *in_the_way, with HF_OK: another append to the table is attaching, and nothing was
 * written.
 */
HF_MUST_CHECK hf_status hf__append_save(hf_lock *lock, const hf__append_row *row, bool *in_the_way,
                                        hf_error *err);

/*
 * Saves a row that is done and releases both locks, the table's and the one of the id, in one
 * message.
 */
HF_MUST_CHECK hf_status hf__append_save_last(hf_lock *const locks[2], const hf__append_row *row,
                                             hf_error *err);

/* Acquires the lock that an append holds as long as it lives. Its key is below all minted ids. */
HF_MUST_CHECK hf_status hf__append_lock(hf_store *store, const char *id, const hf_lock_spec *spec,
                                        const hf__lock_extra *extra, hf_lock **lock, hf_error *err);

/* HF_INVALID: not 1 to 64 letters, digits, '.', '_', ':' and '-'. */
HF_MUST_CHECK hf_status hf__append_check_id(const char *id, hf_error *err);

#endif
