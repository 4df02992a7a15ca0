#ifndef HF_CLI_REPORT_H
#define HF_CLI_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/command.h"
#include "holdfast/holdfast.h"

/* What people read on stderr, and what the exit code says. */

struct report {
    bool json; /* one object a line instead of prose */
    bool colour;
};

struct report report_to_stderr(bool json);

/* Colour on this descriptor: a terminal that can, and NO_COLOR unset. */
bool wants_colour(int fd);

/* Prints the error with its hint and returns its exit code. */
int report_error(const struct report *report, const hf_error *err);

/* The same with one more line between error and hint; detail may be NULL. */
int report_detailed_error(const struct report *report, const hf_error *err, const char *detail);

/* One line that is no error: "note: …", "warning: …". */
void report_note(const struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void report_warning(const struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A wrong command line: the error, a hint to --help; returns EXIT_USAGE. command may be NULL. */
int report_usage(const struct report *report, const struct command *command, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));

/* Would a line wait for a reader that does not read? */
bool report_would_block(void);

/* The library's warnings; arg is the report. One that would block is dropped: it comes from the
 * thread that watches the lock. */
void report_log(void *arg, hf_log_level level, const char *message);

#define SHOWN_MAX 128

/* An argument as it may be printed: escaped, cut, and without a password. Returns out. */
const char *show_argument(char out[SHOWN_MAX], const char *argument);

#endif
