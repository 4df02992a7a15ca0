#ifndef HF_CLI_HELP_H
#define HF_CLI_HELP_H

#include <stdio.h>

/* The commands, and where the store comes from. */
void print_overview(FILE *out);

#endif
