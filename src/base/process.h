#ifndef HF_BASE_PROCESS_H
#define HF_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What /proc says of processes. A pid alone is soon somebody else's: with its start it is not. */

/* Clock ticks after boot; 0: there is no such process, or no /proc. */
int64_t hf__process_started(int pid);
/* The inode of our pid namespace, beyond which a pid means nothing; 0: unknown. */
int64_t hf__own_pid_space(void);
/* Changes with every boot; "" where there is none. */
void hf__read_boot_id(char *out, size_t out_size);

#endif
