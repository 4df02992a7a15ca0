#include "base/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads a small file of /proc with one read. False when it is empty or cannot be read. */
static bool read_small(const char *path, char *out, size_t out_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, out, out_size - 1);
    close(fd);
    out[size > 0 ? size : 0] = '\0';
    return size > 0;
}

int64_t hf__process_started(int pid)
{
    enum { STARTED = 22, FIRST_AFTER_NAME = 3 }; /* as proc(5) counts, from 1 */
    char path[64];
    char text[1024];

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!read_small(path, text, sizeof text))
        return 0;

    /* The second field is "(NAME)". NAME may contain ')' and spaces, so find the last ')'. */
    const char *field = strrchr(text, ')');
    for (int number = FIRST_AFTER_NAME - 1; field != NULL && number < STARTED; number++)
        field = strchr(field + 1, ' ');
    return field != NULL ? strtoll(field + 1, NULL, 10) : 0;
}

int64_t hf__own_pid_space(void)
{
    struct stat space;
    return stat("/proc/self/ns/pid", &space) == 0 ? (int64_t)space.st_ino : 0;
}

void hf__read_boot_id(char *out, size_t out_size)
{
    if (!read_small("/proc/sys/kernel/random/boot_id", out, out_size))
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}
