/* Findings as people, programs and code hosts want them. */
#ifndef HF_CLI_FINDINGS_H
#define HF_CLI_FINDINGS_H

#include "cli/options.h"
#include "lib/registry/finding.h"

enum findings_format { FINDINGS_HUMAN, FINDINGS_JSON, FINDINGS_SARIF, FINDINGS_GITHUB };

/* For the option table of a command; member is a const char * of its values. */
#define FINDINGS_FORMAT_OPTION(values, member)                                                     \
    {                                                                                              \
        .name = "format", .value = "FORMAT", .help = "human, json, sarif or github",               \
        .kind = OPTION_TEXT, .offset = offsetof(values, member),                                   \
    }

struct findings_output {
    enum findings_format format;
    const char *command;          /* "registry check" */
    const hf__rule *const *rules; /* tables, each ended by a rule without id; NULL ends it */
    const char *examined;         /* "12 locks": the summary begins with it */
    size_t ignored;               /* by comments in the source */
};

/* What --format and --json ask for; false when the usage is wrong, and *exit_code says it. */
bool choose_findings_format(const struct command *self, struct invocation *in, const char *named,
                            enum findings_format *format, int *exit_code);

/*
 * Sorts and prints them, and a summary for people on stderr. Returns the exit code: EXIT_CONFIG when
 * a file could not be read as a registry, EXIT_FINDINGS for errors and warnings, EXIT_OK, or
 * EXIT_FAILED when memory or the output failed.
 */
int print_findings(const struct invocation *in, const struct findings_output *output,
                   hf__findings *findings);

/* The parts of it. */
struct findings_counts {
    size_t errors, warnings, notes;
};

#endif
