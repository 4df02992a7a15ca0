#include "base/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* In a page that the kernel empties for the child of a fork; NULL: there is no such page. */
static atomic_int *kept_pid;

static void keep_pid(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, size, MADV_WIPEONFORK) == 0)
        kept_pid = page;
    else
        (void)munmap(page, size);
}

int hf__own_pid(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, keep_pid);
    int pid = kept_pid ? atomic_load(kept_pid) : 0;
    if (pid != 0)
        return pid;
    pid = (int)getpid();
    if (kept_pid)
        atomic_store(kept_pid, pid);
    return pid;
}

int hf__own_tid(void)
{
    static _Thread_local int pid, tid;
    int current = hf__own_pid();
    if (pid != current) {
        pid = current;
        tid = (int)gettid();
    }
    return tid;
}

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

enum { STAT_SIZE = 1024, STATE = 3, STARTED = 22 }; /* fields as proc(5) counts, from 1 */

/* Reads /proc/PID/stat into text and finds a field behind the name in it. NULL: there is none. */
static const char *read_stat(int pid, int wanted, char text[static STAT_SIZE])
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!read_small(path, text, STAT_SIZE))
        return NULL;

    /* The second field is "(NAME)". NAME may contain ')' and spaces, so find the last ')'. */
    const char *field = strrchr(text, ')');
    for (int number = STATE - 1; field != NULL && number < wanted; number++)
        field = strchr(field + 1, ' ');
    return field != NULL ? field + 1 : NULL;
}

int64_t hf__process_started(int pid)
{
    char text[STAT_SIZE];
    const char *started = read_stat(pid, STARTED, text);

    return started != NULL ? strtoll(started, NULL, 10) : 0;
}

bool hf__process_is_stopped(int pid)
{
    char text[STAT_SIZE];
    const char *state = read_stat(pid, STATE, text);

    return state != NULL && (*state == 'T' || *state == 't');
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

int64_t hf__own_boot_offset_ms(void)
{
    static const char name[] = "boottime";
    char text[256] = "";
    char *end = NULL;

    if (!read_small("/proc/self/timens_offsets", text, sizeof text))
        return 0;
    const char *line = strstr(text, name);
    if (line == NULL)
        return 0;
    int64_t seconds = strtoll(line + strlen(name), &end, 10);
    return seconds * 1000 + strtoll(end, NULL, 10) / 1000000; /* and nanoseconds */
}
