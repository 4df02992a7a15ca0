#include "programs/ingest/sources/files.h"

#include <errno.h>
#include <sys/inotify.h>
#include <unistd.h>

/* Files on a network change without telling: they are looked at this often. */
enum { LOOK_MS = 1000 };

static hf_status begin(int *watch_fd, const char *folder, const char *path, hf_error *err)
{
    *watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (*watch_fd < 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot watch %s", folder);
    /* Where it cannot be watched, the look once a second does. The file may be a link to elsewhere. */
    (void)inotify_add_watch(*watch_fd, folder, IN_CREATE | IN_MOVED_TO | IN_MODIFY);
    if (path != NULL)
        (void)inotify_add_watch(*watch_fd, path, IN_MODIFY);
    return HF_OK;
}

static void drain(int fd)
{
    char events[4096];

    while (read(fd, events, sizeof events) > 0)
        continue;
}

hf_status hf__file_watch_wait(int *watch_fd, const char *folder, const char *path, int stop_fd,
                              hf_error *err)
{
    /* What changed before the watch began does not wake it: the caller looks once more. */
    if (*watch_fd < 0)
        return begin(watch_fd, folder, path, err);
    hf_status status = hf__input_wait(*watch_fd, stop_fd, LOOK_MS, err);
    drain(*watch_fd);
    return status;
}
