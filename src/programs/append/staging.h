/*
 * Staging tables: private tables beside the one that is appended to, in the same database. Rows go
 * in without a lock; then the whole table is renamed to say that it is complete. Its name carries
 * the id of the append, so that a repeat, or the next append, finds what an append that died has
 * left.
 */
#ifndef HF_APPEND_STAGING_H
#define HF_APPEND_STAGING_H

#include "programs/append/work.h"

/* The prefix while rows come in, once all of them are there, and before any part is attached. */
#define HF__STAGING_PREFIX "holdfast_staging_"
#define HF__STAGED_PREFIX "holdfast_staged_"
#define HF__BEGUN_PREFIX "holdfast_staged_begun_"

/*
 * "holdfast_staged_0123abcd4567cdef89ab0123_ID", with a random part and hashes of the store's
 * identity and the table's name. The store has the lock that tells whether an append is alive, so
 * nobody touches the staging tables of other stores.
 */
void hf__staging_name(char out[128], bool is_complete, const char *id, const char *store,
                      const char *table);
/* The append's id in the name of a staging table; NULL: it is no such name. */
const char *hf__staging_id(const char *name, bool *is_complete);
/*
 * Parts of this table may be attached, whatever the store says: it may have gone back, as a standby
 * does that lagged and was promoted.
 */
bool hf__staging_has_begun(const char *name);
/* The name that says so, of a complete staging table. */
void hf__staging_begun_name(char out[128], const char *name);
/* `database`.`staging`, of work->staging. */
void hf__staging_quote(const hf__work *work, hf__buf *out);

/* Creates a table like the destination and puts its name into work->staging. */
HF_MUST_CHECK hf_status hf__staging_create(hf__work *work, hf_error *err);
HF_MUST_CHECK hf_status hf__staging_rename(hf__work *work, const char *from, const char *to,
                                           hf_error *err);
/* Ends what still writes into the table, then drops it. */
HF_MUST_CHECK hf_status hf__staging_drop(hf__work *work, const char *name, hf_error *err);
/* The same, where a failure is only worth a note: the next append drops the table. */
void hf__staging_discard(hf__work *work, const char *name);

/* Finds out, before any row is sent, whether the user may stop merges. */
HF_MUST_CHECK hf_status hf__staging_try_freeze(hf__work *work, hf_error *err);
/*
 * Stops merges and reads the parts, which stay as they are from now on: what is written in the
 * store must be what is attached. The caller frees parts.
 */
HF_MUST_CHECK hf_status hf__staging_freeze(hf__work *work, const char *name, hf__parts *parts,
                                           hf_error *err);

/* Merges the parts of every partition that has several, so that it has one. */
HF_MUST_CHECK hf_status hf__staging_merge(hf__work *work, const char *name, const hf__plan *plan,
                                          hf_error *err);

/*
 * Adds " ENGINE = …" for a replicated engine: the same engine without its replication. Adds nothing
 * for the others, which CREATE TABLE … AS copies.
 */
void hf__staging_engine(const char *engine_full, hf__buf *out);

/*
 * Name and age in milliseconds of every staging table of the database that was made by way of this
 * store. The caller frees grid.
 */
HF_MUST_CHECK hf_status hf__staging_list(hf__work *work, hf__grid *grid, hf_error *err);
/*
 * The complete staging table of an append, or "". Drops incomplete ones and, where there are
 * several, all but the one that the store names, which is known. If it names none, known is "": the
 * one that has begun counts, or they are alike. The caller holds the lock of the append's id.
 * HF_INVALID: it has staged rows for another table.
 */
HF_MUST_CHECK hf_status hf__staging_find(hf__work *work, const char *id, const char *known,
                                         char out[128], hf_error *err);

/* ---- pick.c: tables whose parts stay as they are --------------------------------------------- */

/*
 * Moves the parts of work->staging into a table that never merges them, not even when the server is
 * started again: if that happens in the middle of an ATTACH, some of them are in the table, and the
 * others must still be there one by one.
 */
HF_MUST_CHECK hf_status hf__staging_keep(hf__work *work, const hf__plan *plan, hf_error *err);
/*
 * Makes a complete staging table of the parts that are missing, from one that has them all. out ""
 * with HF_OK: that one has changed, and they cannot be picked.
 */
HF_MUST_CHECK hf_status hf__staging_pick(hf__work *work, const hf__plan *plan, const char *id,
                                         const char *from, char out[128], hf_error *err);

#endif
