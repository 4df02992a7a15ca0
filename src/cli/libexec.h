/*
 * Programs of their own that `holdfast NAME` becomes, as git does. They are looked for in
 * HOLDFAST_LIBEXEC; when that is not set beside the running executable (a build folder), in the
 * libexec folder of the tree that it stands in (one that was moved), and where they were installed.
 */
#ifndef HF_CLI_LIBEXEC_H
#define HF_CLI_LIBEXEC_H

#include <stdbool.h>

#include "base/buf.h"

/* Becomes holdfast-NAME; returns only when there is none (errno is ENOENT) or it cannot run. */
void exec_program(const char *name, char **argv);

/* The names of all programs, sorted, each once, NULL at the end; NULL when memory is out. */
char **find_programs(void);
void free_programs(char **names);

/* What `holdfast-NAME ARGUMENT` writes to standard output; false unless it exits with 0. */
bool ask_program(const char *name, const char *argument, hf__buf *answer);

#endif
