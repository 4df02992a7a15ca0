/* What the server is set to, as far as an append has to know it. Asked once. */
#ifndef HF_APPEND_SETTINGS_H
#define HF_APPEND_SETTINGS_H

#include "programs/append/work.h"

/* Once for an append, into work->settings: name, value, whether it has been changed. Nothing where a target is embedded. */
HF_MUST_CHECK hf_status hf__settings_read(hf__work *work, hf_error *err);

/* NULL: the server has no such setting. */
const char *hf__settings_value(const hf__grid *settings, const char *name);

/* What to set for the INSERT of a stream, as "name=value", encoded; "" for nothing. */
const char *hf__settings_for_rows(const hf__grid *settings);

#endif
