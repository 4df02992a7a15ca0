#ifndef HF_CLI_REGISTRY_REPLACE_FILE_H
#define HF_CLI_REGISTRY_REPLACE_FILE_H

#include <stddef.h>

#include "base/error.h"

/*
 * The file has either its old contents or all of the new ones, also after a crash. It keeps its mode,
 * and a symbolic link stays one. What is no regular file (a terminal, a pipe) is written to.
 */
HF_MUST_CHECK hf_status replace_file(const char *path, const char *text, size_t size,
                                     hf_error *err);

#endif
