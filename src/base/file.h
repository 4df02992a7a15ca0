#ifndef HF_BASE_FILE_H
#define HF_BASE_FILE_H

#include "base/buf.h"
#include "base/error.h"

/*
 * Appends the content of a file to text, up to `most` + 1 bytes. The extra byte lets the caller see
 * that the file is too large and report it. Fails with `code` when the file cannot be opened or
 * read, or with HF_NO_MEMORY.
 */
HF_MUST_CHECK hf_status hf__read_file(const char *path, size_t most, hf__buf *text, hf_status code,
                                      hf_error *err);

/* The same from a descriptor, which stays open. name is for messages. */
HF_MUST_CHECK hf_status hf__read_fd(int fd, const char *name, size_t most, hf__buf *text,
                                    hf_status code, hf_error *err);

/*
 * Appends the path of a file that the file at `path` calls `other`. A relative name is relative to
 * the folder of `path`.
 */
void hf__put_sibling_path(hf__buf *out, const char *path, const char *other);

#endif
