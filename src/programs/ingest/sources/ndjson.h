/* One line of NDJSON, one ledger. */
#ifndef HF_SOURCE_NDJSON_H
#define HF_SOURCE_NDJSON_H

#include "base/json_read.h"
#include "programs/ingest/sources/source.h"

/*
 * bytes[0..size) are checked and read. HF_OK: they belong to *ledger, which is the caller's; else
 * they stay with the caller. HF_BAD_DATA says what is wrong, not where the line stands.
 */
HF_MUST_CHECK hf_status hf__ndjson_parse(char *bytes, size_t size, hf__ledger **ledger,
                                         hf_error *err);

/*
 * The sequence, without a look at anything else: for lines to skip, and for as much as there is of
 * a broken one. 0: it cannot be read.
 */
int64_t hf__ndjson_sequence(const char *text, size_t size);

/* RFC 3339, or Unix seconds as a number or a string of digits. False: none of them. */
bool hf__ndjson_time(const hf__json_value *value, int64_t *unix_us);

#endif
