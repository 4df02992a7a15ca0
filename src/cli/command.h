/*
 * How a command is declared. One table drives parsing, --help, completion and the check of the man
 * pages.
 */
#ifndef HF_CLI_COMMAND_H
#define HF_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exit_code {
    EXIT_OK = 0,
    EXIT_FINDINGS = 1,
    EXIT_SQL_ERROR = 1,
    EXIT_USAGE = 64,
    EXIT_BAD_DATA = 65,
    EXIT_UNREACHABLE = 69,
    EXIT_NOT_ACQUIRED = 75,
    EXIT_IN_DOUBT = 76,
    EXIT_CONFIG = 78,
    EXIT_LOST = 79,
    EXIT_TIME_LIMIT = 124,
    EXIT_FAILED = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL_BASE = 128,
};

enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_TEXT,     /* const char *, into argv */
    OPTION_TEXTS,    /* struct texts: the option may be repeated */
    OPTION_NUMBER,   /* struct number, from low to high */
    OPTION_DURATION, /* struct number, milliseconds */
};

struct number {
    bool given;
    int64_t value;
};

/* The values of a repeated option. The command frees items. */
struct texts {
    size_t count;
    const char **items; /* into argv */
};

struct option {
    char letter;       /* 0: only the long name */
    const char *name;  /* NULL ends a table */
    const char *value; /* the value's name in --help; NULL for a flag */
    const char *help;
    enum option_kind kind;
    bool value_optional; /* only as --name=VALUE; without it a struct number keeps its value */
    size_t offset;       /* of the member that receives the value */
    int64_t low, high;   /* the range of a number; of a duration only if high is not 0 */
};

struct command {
    const char *name;
    const char *summary;
    const char *usage; /* what follows the name, one line per form */
    const struct option *options;
    bool takes_operands;
    bool operands_end_options; /* all that follows the first operand is left as it is */
    bool hidden;               /* from --help, completion and suggestions */

    /* Returns the exit code. Options and operands begin at argv[1]. */
    int (*main)(const struct command *self, int argc, char **argv);
};

#endif
