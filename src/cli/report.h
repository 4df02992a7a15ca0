#ifndef HF_CLI_REPORT_H
#define HF_CLI_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/command.h"
#include "holdfast/holdfast.h"

/*
 * What people read on stderr, and the exit codes. Any thread may call these: each writes its text
 * with one call, so that lines do not mix.
 */

struct report {
    bool json; /* one JSON object per line instead of prose */
    bool colour;
};

/* A report that uses colour where standard error can show it. */
struct report report_to_stderr(bool json);

/* Is the descriptor a terminal with colour, and NO_COLOR not set? */
bool wants_colour(int fd);

/* Prints the error with its hint and returns its exit code. */
int report_error(const struct report *report, const hf_error *err);

/* The same, with a detail between error and hint. detail may be NULL. */
int report_detailed_error(const struct report *report, const hf_error *err, const char *detail);

/* One line that is not an error: "note: …", "warning: …". Long text is cut. */
void report_note(const struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void report_warning(const struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Reports a wrong command line, with a hint to --help, and returns EXIT_USAGE. command may be NULL:
 * the hint is then about `holdfast` itself.
 */
int report_usage(const struct report *report, const struct command *command, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));

/* Would writing to standard error block, because its reader does not read? */
bool report_would_block(void);

/*
 * An hf_log_fn that prints the library's warnings; arg is the report. A warning that would block is
 * dropped, because it comes from the thread that watches the lock.
 */
void report_log(void *arg, hf_log_level level, const char *message);

#define SHOWN_MAX 128

/*
 * Writes an argument as it may be printed: escaped, cut, and with *** for passwords. Returns out,
 * or a constant text without memory.
 */
const char *show_argument(char out[SHOWN_MAX], const char *argument);

/*
 * Everybody on the host can read the arguments of a process: copies them, and overwrites passwords
 * in the originals. The copies are one block, which the caller frees, as getopt changes their
 * order; without memory it returns argv.
 */
char **hide_passwords(int argc, char **argv);

#endif
