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

/* One thing that a command does, named by its first operand: `holdfast table list`. */
struct action {
    const char *word;
    int operands;      /* how many follow the word */
    const char *usage; /* "ref TABLE CONTEXT" */
};

/*
 * Finds what the first operand names among `count` structs of `size` bytes, each of which begins
 * with a struct action, and checks how many operands follow. NULL when the usage was wrong: that
 * has been reported, and *exit_code says so. missing is the complaint about no operand at all.
 */
const void *choose_action(const struct command *command, const struct invocation *in,
                          const char *missing, const void *actions, size_t count, size_t size,
                          int *exit_code);

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
