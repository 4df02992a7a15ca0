/*
 * The controlling terminal, which the command's process group needs while it reads from it or sets
 * its modes. All of this runs with SIGTTOU blocked.
 */
#ifndef HF_CLI_TERMINAL_H
#define HF_CLI_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
    int fd;           /* -1: there is none */
    bool interactive; /* we were started in its foreground with standard input from it */
    bool lent;
};

#define TERMINAL_INIT                                                                              \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

void terminal_open(struct terminal *terminal);
void terminal_close(struct terminal *terminal);

/* Are we in its foreground process group? */
bool terminal_is_ours(const struct terminal *terminal);

/*
 * Should the command have it from the start? Not when its output is redirected: then it may be
 * part of a pipeline, whose other commands (a pager) need it, and gets it once it asks.
 */
bool terminal_wanted_at_once(const struct terminal *terminal);

void terminal_lend(struct terminal *terminal, pid_t group);

/* Leaves it alone when somebody else has it by now. */
void terminal_take_back(struct terminal *terminal, pid_t group);

#endif
