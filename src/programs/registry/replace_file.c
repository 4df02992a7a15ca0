#include "programs/registry/replace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"

enum { MOST_LINKS = 40, SHOWN = 200 };

/* Each sets errno and returns false when it fails. */

static bool write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, text, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        text += written;
        size -= (size_t)written;
    }
    return true;
}

/* The path with its last part replaced, or the other path if that is absolute. */
static char *beside(const char *path, const char *other)
{
    const char *slash = strrchr(path, '/');
    hf__buf joined = {0};

    if (other[0] != '/' && slash != NULL)
        hf__buf_add(&joined, path, (size_t)(slash - path) + 1);
    hf__buf_puts(&joined, other);
    if (joined.broken)
        errno = ENOMEM;
    return joined.broken ? NULL : joined.data;
}

/* Where the file itself is or shall be, behind every link; NULL and errno. */
static char *follow(const char *path)
{
    char target[PATH_MAX];
    char *at = strdup(path);

    for (int links = 0; at != NULL; links++) {
        ssize_t size = readlink(at, target, sizeof target - 1);
        if (size < 0 && (errno == EINVAL || errno == ENOENT))
            return at; /* no link, or nothing there yet */
        if (size < 0 || links == MOST_LINKS) {
            int reason = size < 0 ? errno : ELOOP;
            free(at);
            errno = reason;
            return NULL;
        }
        target[size] = '\0';
        char *next = beside(at, target);
        free(at);
        at = next;
    }
    return NULL;
}

static mode_t mode_for(const char *path)
{
    struct stat old;
    mode_t mask = umask(0);

    umask(mask);
    return stat(path, &old) == 0 ? old.st_mode & 07777 : 0666 & ~mask;
}

static bool fill(int fd, const char *path, const char *text, size_t size)
{
    return write_all(fd, text, size) && fchmod(fd, mode_for(path)) == 0 && fsync(fd) == 0;
}

/* So that the new name outlives a crash as well; some file systems cannot, and need not. */
static void sync_folder(const char *path)
{
    char *folder = beside(path, ".");
    int fd = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(folder);
}

static bool replace(const char *path, const char *text, size_t size)
{
    char *temporary = beside(path, ".holdfast-doc-XXXXXX");
    int fd = temporary != NULL ? mkostemp(temporary, O_CLOEXEC) : -1;
    bool done = fd >= 0 && fill(fd, path, text, size);
    int reason = errno;

    if (fd >= 0 && close(fd) != 0 && done) {
        done = false;
        reason = errno;
    }
    if (done && rename(temporary, path) != 0) {
        done = false;
        reason = errno;
    }
    if (fd >= 0 && !done)
        unlink(temporary);
    if (done)
        sync_folder(path);
    free(temporary);
    errno = reason;
    return done;
}

static bool overwrite(const char *path, const char *text, size_t size)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    bool done = write_all(fd, text, size);
    int reason = errno;
    if (close(fd) != 0 && done) {
        done = false;
        reason = errno;
    }
    errno = reason;
    return done;
}

hf_status replace_file(const char *path, const char *text, size_t size, hf_error *err)
{
    char shown[SHOWN];
    struct stat there;
    bool done = false;

    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        done = overwrite(path, text, size);
    } else {
        char *file = follow(path);
        done = file != NULL && replace(file, text, size);
        int reason = errno;
        free(file);
        errno = reason;
    }
    if (done)
        return HF_OK;
    return hf__fail_errno(err, HF_SYSTEM, errno, "cannot write %s",
                          hf__show(shown, sizeof shown, path, strlen(path)));
}
