#ifndef HF_BASE_FILE_H
#define HF_BASE_FILE_H

#include "base/buf.h"
#include "base/error.h"

/*
 * Appends what is in the file, but at most `most` + 1 bytes: more than `most` is too much, and the
 * caller says so. code is what a failure to open or read it means.
 */
HF_MUST_CHECK hf_status hf__read_file(const char *path, size_t most, hf__buf *text, hf_status code,
                                      hf_error *err);

/* The same from a descriptor that stays open; name is for messages. */
HF_MUST_CHECK hf_status hf__read_fd(int fd, const char *name, size_t most, hf__buf *text,
                                    hf_status code, hf_error *err);

/* Appends the path of `other` as a name that stands in the file at path: relative to its folder. */
void hf__put_sibling_path(hf__buf *out, const char *path, const char *other);

#endif
