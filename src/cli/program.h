/* What every program of Holdfast does around its commands, in the main thread. */
#ifndef HF_CLI_PROGRAM_H
#define HF_CLI_PROGRAM_H

#include <stdio.h>

#include "cli/command.h"

struct program {
    const char *name; /* as people type it: "holdfast", "holdfast registry" */
    const char *summary;
    const struct command *const *commands; /* in the order of --help; NULL ends it */
    void (*print_rest)(FILE *out);         /* prints the end of --help; may be NULL */
    const struct command *fallback;        /* runs when no command is named; may be NULL */
    bool has_programs;                     /* looks for other commands in libexec */
};

/* The command by which `holdfast completion` asks another program for its commands and options. */
#define LIST_FOR_COMPLETION "list-for-completion"

/* The whole of main(): runs the command that argv names and returns the exit code. */
int program_main(const struct program *program, int argc, char **argv);

/* The program's command of that name, or NULL. */
const struct command *find_command(const struct program *program, const char *word);

/* What --help without a command prints. */
void print_overview(const struct program *program, FILE *out);

/* `holdfast` itself: see main.c. */
extern const struct program holdfast_program;

/*
 * Replaces this process by holdfast-NAME, where argv[0] is NAME. If that fails, reports it and
 * returns the exit code.
 */
int run_program(const struct program *program, char **argv);

/* Prints an option table as in " -n --wait=TIME". options may be NULL. */
void print_option_names(const struct option *options, FILE *out);

#endif
