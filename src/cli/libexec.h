/*
 * `holdfast NAME` runs the program holdfast-NAME, as git does. If HOLDFAST_LIBEXEC is set, programs
 * are looked for only there. Otherwise they are looked for beside the running executable (in a
 * build folder), in the libexec folder of the tree that the executable is in (which may have been
 * moved), and where they were installed.
 */
#ifndef HF_CLI_LIBEXEC_H
#define HF_CLI_LIBEXEC_H

#include <stdbool.h>

#include "base/buf.h"

/*
 * Replaces this process by holdfast-NAME. Returns only when that fails, and sets errno: ENOENT when
 * there is no such program.
 */
void exec_program(const char *name, char **argv);

/*
 * The names of all programs that can be run, sorted, each once, with a NULL at the end. Returns
 * NULL without memory. Free them with free_programs, which accepts NULL.
 */
char **find_programs(void);
void free_programs(char **names);

/*
 * Runs holdfast-NAME with the arguments, which a NULL ends, and appends what it writes to standard
 * output. Returns false when it cannot be run, does not exit with 0, or memory runs out.
 */
bool ask_program(const char *name, char *const *arguments, hf__buf *answer);

#endif
