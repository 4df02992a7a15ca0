#ifndef HF_CLI_OPTIONS_H
#define HF_CLI_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/report.h"

/* What every command takes. */
struct common {
    const char *url;
    const char *registry;
    bool session_pool;
    bool json;
    bool help;
    bool version;
};

extern const struct option common_options[];

struct invocation {
    struct common common;
    struct report report;
    int count;
    char **operands;
};

/*
 * Fills values (laid out as the command's option table says) and in. Returns false when the command
 * is over: help was shown or the usage was wrong, and *exit_code says which. Operands are moved to
 * the front of argv, ended by NULL.
 */
bool parse_options(const struct command *command, int argc, char **argv, void *values,
                   struct invocation *in, int *exit_code);

void print_usage(const struct command *command, FILE *out);
void print_help(const struct command *command, FILE *out);
void print_version(FILE *out);

/* Keeps the candidate nearest to what was typed; start with .word and nothing else. */
struct suggestion {
    const char *word;
    const char *nearest; /* NULL: nothing is near enough to be meant */
    size_t distance;
};

void suggest(struct suggestion *suggestion, const char *candidate);

#endif
