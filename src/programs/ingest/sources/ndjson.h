/* Parses NDJSON, in which every line is one ledger. */
#ifndef HF_INGEST_SOURCES_NDJSON_H
#define HF_INGEST_SOURCES_NDJSON_H

#include "base/json_read.h"
#include "programs/ingest/sources/source.h"

/*
 * Parses a line. HF_OK: *ledger is the caller's, and owns bytes, which must come from malloc.
 * Otherwise bytes stay the caller's. HF_BAD_DATA: err says what is wrong, but not on which line.
 */
HF_MUST_CHECK hf_status hf__ndjson_parse(char *bytes, size_t size, hf__ledger **ledger,
                                         hf_error *err);

/*
 * Reads only the sequence, to skip lines quickly. It also works on a broken line, or on the start
 * of one. 0: there is none.
 */
int64_t hf__ndjson_sequence(const char *text, size_t size);

/* Reads RFC 3339, or Unix seconds as a number or a string of digits. False: it is neither. */
bool hf__ndjson_time(const hf__json_value *value, int64_t *unix_us);

#endif
