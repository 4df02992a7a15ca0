/* The columns that the header of a file names, for the INSERT: not every server reads the header itself. */
#ifndef HF_APPEND_COLUMNS_H
#define HF_APPEND_COLUMNS_H

#include "programs/append/work.h"

/* Adds " (`a`, `b`)" for a header line of CSV; nothing for one without a name. */
HF_MUST_CHECK hf_status hf__columns_parse(const char *line, size_t size, char delimiter,
                                          hf__buf *out, hf_error *err);

/* The same for the input's header, which is waited for; nothing for a format that has none. Knows the settings. */
HF_MUST_CHECK hf_status hf__columns_add(hf__work *work, hf__input *input, hf__buf *out,
                                        hf_error *err);

#endif
