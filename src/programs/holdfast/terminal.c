#include "programs/holdfast/terminal.h"

#include <fcntl.h>
#include <unistd.h>

void terminal_open(struct terminal *terminal)
{
    terminal->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    terminal->interactive = terminal_is_ours(terminal) && isatty(STDIN_FILENO);
}

void terminal_close(struct terminal *terminal)
{
    if (terminal->fd >= 0)
        close(terminal->fd);
    terminal->fd = -1;
}

bool terminal_is_ours(const struct terminal *terminal)
{
    return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == getpgrp();
}

bool terminal_wanted_at_once(const struct terminal *terminal)
{
    return terminal->interactive && isatty(STDOUT_FILENO);
}

void terminal_lend(struct terminal *terminal, pid_t group)
{
    terminal->lent = tcsetpgrp(terminal->fd, group) == 0;
}

void terminal_take_back(struct terminal *terminal, pid_t group)
{
    if (terminal->lent && tcgetpgrp(terminal->fd) == group)
        (void)tcsetpgrp(terminal->fd, getpgrp());
    terminal->lent = false;
}
