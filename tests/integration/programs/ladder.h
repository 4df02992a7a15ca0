/* What the scenarios of the ladder share. */
#ifndef LADDER_H
#define LADDER_H

#include <holdfast/holdfast.h>

#include "rungs.h"

enum { PATIENCE_MS = 15000 };

extern hf_store *other; /* never fails: it looks at what the scenario has left */

/* Says what is wrong at this rung, and ends the program. */
_Noreturn void complain(const char *what, const hf_error *err);

/* ladder_ledgers.c */
hf_status do_install(hf_store *store, hf_error *err);
hf_status do_cover(hf_store *store, hf_error *err);
hf_status do_verify(hf_store *store, hf_error *err);
hf_status do_partitions(hf_store *store, hf_error *err);

#endif
