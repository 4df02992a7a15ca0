/* SIGTERM, SIGINT and SIGHUP, for programs that await them in a thread of their own. */
#ifndef HF_CLI_STOP_SIGNALS_H
#define HF_CLI_STOP_SIGNALS_H

#include <signal.h>

sigset_t stop_signals(void);

/* Before any other thread is started: they inherit that the signals are not theirs. */
void block_stop_signals(void);

#endif
