/* Separate from screen.c, because term.h defines a macro such as "lines" for every capability. */
#include "programs/top/screen.h"

#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

static hf_status refuse(hf_error *err)
{
    const char *name = getenv("TERM");
    char shown[64];
    hf_status status;

    if (name == NULL || name[0] == '\0')
        status = hf__fail(err, HF_INVALID, "TERM is not set: what terminal is this?");
    else
        status = hf__fail(err, HF_INVALID, "the terminal '%s' is not known, or cannot do it",
                          hf__show(shown, sizeof shown, name, strlen(name)));
    hf__hint(err, "set TERM, to xterm say, or print one frame with --once");
    return status;
}

hf_status hf__screen_check(hf_error *err)
{
    int found = 0;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        hf_status status = hf__fail(err, HF_INVALID, "standard input and output are no terminal");
        hf__hint(err, "start it in a terminal, or print one frame with --once");
        return status;
    }
    if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
        return refuse(err);
    bool can_move = cursor_address != NULL;
    (void)del_curterm(cur_term);
    return can_move ? HF_OK : refuse(err);
}
