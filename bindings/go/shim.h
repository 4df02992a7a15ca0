/*
 * What Go cannot say to C by itself: callbacks, numbers in the place of pointers, and many small
 * values in one call.
 */
#ifndef HOLDFAST_GO_SHIM_H
#define HOLDFAST_GO_SHIM_H

#include <stdint.h>
#include <stdlib.h>

#include <holdfast/holdfast.h>

/* Go may not hand its own pointers to C for keeps, so callbacks get the number of a Go value. */
void hfgo_watch(hf_lock_spec *spec, uintptr_t id, bool tell_waits, bool tell_asks);
void hfgo_count(hf_tx_options *options, uintptr_t id);
void hfgo_trace(hf_store_options *options, uintptr_t id);

/*
 * Messages of the library come from threads of its own, which never enter Go: each is written to
 * the pipe fd as one line, its level first, and dropped when the pipe is full.
 */
void hfgo_log_to(hf_store_options *options, int fd);

hf_status hfgo_cursors(hf_network *network, uintptr_t id, hf_error *err);
hf_status hfgo_contexts(hf_store *store, const hf_table_name *name, uintptr_t id, hf_error *err);
hf_status hfgo_examine(hf_store *store, uintptr_t id, hf_error *err);

/* All values of the rows, row by row. */
void hfgo_values(const hf_rows *rows, const char **values, size_t *sizes);

#endif
