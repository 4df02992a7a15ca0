/* What the scenarios of the ladder share. */
#ifndef LADDER_H
#define LADDER_H

#include <holdfast/holdfast.h>

#include "rungs.h"

enum { PATIENCE_MS = 15000 };

extern const char *url;
extern hf_store *other; /* never fails: it looks at what the scenario has left */

/* Says what is wrong at this rung, and ends the program. */
_Noreturn void complain(const char *what, const hf_error *err);

hf_status acquire(hf_store *store, const hf_target *targets, size_t count, int64_t wait_ms,
                  hf_lock **lock, hf_error *err);
void *hold_a_while(void *lock); /* a thread that frees it */
hf_status read_registry(const char *text, hf_registry **registry, hf_error *err);

/* ladder_locks.c */
hf_status do_named(hf_store *store, hf_error *err);
hf_status do_refused(hf_store *store, hf_error *err);
hf_status do_set(hf_store *store, hf_error *err);
hf_status do_shared(hf_store *store, hf_error *err);
hf_status do_leave(hf_store *store, hf_error *err);
hf_status do_ask(hf_store *store, hf_error *err);
hf_status do_start(hf_store *store, hf_error *err);

/* ladder_ledgers.c */
hf_status do_install(hf_store *store, hf_error *err);
hf_status do_cover(hf_store *store, hf_error *err);
hf_status do_verify(hf_store *store, hf_error *err);
hf_status do_partitions(hf_store *store, hf_error *err);

#endif
