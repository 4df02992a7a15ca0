#ifndef HF_CLI_OPTIONS_H
#define HF_CLI_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/report.h"

/* The options that every command has. */
struct common {
    const char *url;
    const char *registry;
    bool session_pool;
    bool json;
    bool verbose;
    bool help;
    bool version;
};

/* The table of those options. */
extern const struct option common_options[];

/* A command line after parsing. */
struct invocation {
    struct common common;
    struct report report; /* follows --json */
    int count;            /* of operands */
    char **operands;      /* argv itself; NULL ends them */
};

/*
 * Fills values, the struct that the command's option table describes, and in. Returns false when
 * the command must end with *exit_code: help or the version was printed, or an error was reported.
 * Moves the operands to the front of argv and ends them with NULL.
 */
bool parse_options(const struct command *command, int argc, char **argv, void *values,
                   struct invocation *in, int *exit_code);

/* One of the things that a command can do, chosen by its first operand: `holdfast table list`. */
struct action {
    const char *word;
    int operands;      /* how many must follow the word */
    const char *usage; /* "ref TABLE CONTEXT" */
};

/*
 * Finds the action that the first operand names, and checks how many operands follow. actions is
 * an array of `count` structs of `size` bytes, each of which begins with a struct action. When the
 * usage is wrong it reports that, sets *exit_code and returns NULL. missing is the message for no
 * operand at all.
 */
const void *choose_action(const struct command *command, const struct invocation *in,
                          const char *missing, const void *actions, size_t count, size_t size,
                          int *exit_code);

/* What --help of a command, and --version, print. */
void print_help(const struct command *command, FILE *out);
void print_version(FILE *out);

/* Finds the candidate nearest to a mistyped word. Start with .word set and the rest zero. */
struct suggestion {
    const char *word;
    const char *nearest; /* a candidate; NULL: none is near enough */
    size_t distance;
};

/* Call it for each candidate, which must outlive the suggestion. */
void suggest(struct suggestion *suggestion, const char *candidate);

#endif
