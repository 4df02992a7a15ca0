/* The staging tables of appends, in the database of their table. */
#ifndef HF_APPEND_STAGING_H
#define HF_APPEND_STAGING_H

#include "programs/append/work.h"

/* Like the table, with a name of its own in work->staging. */
HF_MUST_CHECK hf_status hf__staging_create(hf__work *work, hf_error *err);
/* `database`.`staging` */
void hf__staging_quote(const hf__work *work, hf__buf *out);
/* Before any row is sent: may its merges be stopped later? */
HF_MUST_CHECK hf_status hf__staging_try_freeze(hf__work *work, hf_error *err);
/* What is written down must be what is attached: its parts, which stay as they are from now on. */
HF_MUST_CHECK hf_status hf__staging_freeze(hf__work *work, const char *name, hf__parts *parts,
                                           hf_error *err);
HF_MUST_CHECK hf_status hf__staging_rename(hf__work *work, const char *from, const char *to,
                                           hf_error *err);

/* What follows "AS table" for a replicated engine: the same without its replication. Else nothing. */
void hf__staging_engine(const char *engine_full, hf__buf *out);

/* Name and age in milliseconds of all of them. */
HF_MUST_CHECK hf_status hf__staging_list(hf__work *work, hf__grid *grid, hf_error *err);
/* The complete one of this append, or ""; incomplete ones are dropped. The append's lock is held. */
HF_MUST_CHECK hf_status hf__staging_find(hf__work *work, const char *id, char out[128],
                                         hf_error *err);

#endif
