/* Programs of their own that `holdfast NAME` becomes, as git does. */
#ifndef HF_CLI_LIBEXEC_H
#define HF_CLI_LIBEXEC_H

#include <stdio.h>

/* Becomes holdfast-NAME; returns only when there is none (errno is ENOENT) or it cannot run. */
void exec_program(const char *name, char **argv);

/* One indented line for each program that is installed, under a heading if there is any. */
void list_programs(FILE *out);

#endif
