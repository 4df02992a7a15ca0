#ifndef HF_BASE_PROCESS_H
#define HF_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* getpid() and gettid() without asking the kernel each time; right in the child of a fork, too. */
int hf__own_pid(void);
int hf__own_tid(void);

/*
 * What /proc says about processes. A pid may be reused; together with the start time it names one
 * process. Any thread may call these.
 */

/* When the process started, in clock ticks after boot. 0: no such process, or no /proc. */
int64_t hf__process_started(int pid);

/* The process was stopped by a signal or a debugger. False: it was not, or is gone. */
bool hf__process_is_stopped(int pid);

/* The inode of our pid namespace: a pid means nothing outside of its namespace. 0: unknown. */
int64_t hf__own_pid_space(void);

/* Writes the kernel's boot id, which changes with every boot, or "" when there is none. */
void hf__read_boot_id(char *out, size_t out_size);

/* How far CLOCK_BOOTTIME is ahead of the host's: not 0 only in a time namespace of its own. */
int64_t hf__own_boot_offset_ms(void);

#endif
