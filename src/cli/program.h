/* What every program of Holdfast does around its commands. */
#ifndef HF_CLI_PROGRAM_H
#define HF_CLI_PROGRAM_H

#include <stdio.h>

#include "cli/command.h"

struct program {
    const char *name; /* as people type it: "holdfast", "holdfast registry" */
    const char *summary;
    const struct command *const *commands; /* in the order of --help; NULL ends it */
    void (*print_rest)(FILE *out);         /* what --help ends with; may be NULL */
    const struct command *fallback;        /* what it does without a command; may be NULL */
    bool has_programs;                     /* other commands are looked for in libexec */
};

/* What a program other than holdfast itself is asked by `holdfast completion`. */
#define LIST_FOR_COMPLETION "list-for-completion"

/* The whole of main(): runs the command that argv names and returns the exit code. */
int program_main(const struct program *program, int argc, char **argv);

const struct command *find_command(const struct program *program, const char *word);
void print_overview(const struct program *program, FILE *out);

/* `holdfast` itself: see main.c. */
extern const struct program holdfast_program;

/* Becomes the program that argv[0] names; otherwise complains and returns the exit code. */
int run_program(const struct program *program, char **argv);

/* " -n --wait" of an option table, which may be NULL. */
void print_option_names(const struct option *options, FILE *out);

#endif
