/* Prints findings for people, for programs and for code hosts. */
#ifndef HF_PROGRAMS_REGISTRY_FINDINGS_H
#define HF_PROGRAMS_REGISTRY_FINDINGS_H

#include "base/json.h"
#include "cli/options.h"
#include "lib/registry/finding.h"

enum findings_format { FINDINGS_HUMAN, FINDINGS_JSON, FINDINGS_SARIF, FINDINGS_GITHUB };

/* A row of a command's option table; member is a const char * in the struct of its values. */
#define FINDINGS_FORMAT_OPTION(values, member)                                                     \
    {                                                                                              \
        .name = "format", .value = "FORMAT", .help = "human, json, sarif or github",               \
        .kind = OPTION_TEXT, .offset = offsetof(values, member),                                   \
    }

struct findings_output {
    enum findings_format format;
    const char *command; /* "registry check" */
    const hf__rule *const
        *rules;           /* tables of rules; each ends with one without id, the list with NULL */
    const char *examined; /* what the summary begins with: "12 locks" */
    void (*add_json)(hf__json *json, const void *arg); /* more for the document; or NULL */
    const void *arg;
    size_t ignored; /* findings that comments in the source suppress */
};

/* Finds the format that --format and --json choose. Reports wrong usage: false and *exit_code. */
bool choose_findings_format(const struct command *self, struct invocation *in, const char *named,
                            enum findings_format *format, int *exit_code);

/*
 * Sorts and prints the findings, and a summary for people on stderr. Returns the exit code:
 * EXIT_CONFIG when a file could not be read as a registry, EXIT_FINDINGS for errors and warnings,
 * EXIT_OK, or EXIT_FAILED when memory or the output failed.
 */
int print_findings(const struct invocation *in, const struct findings_output *output,
                   hf__findings *findings);

#endif
