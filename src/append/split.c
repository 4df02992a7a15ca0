/* A file of rows in two: a look at its middle finds a place between two rows, where the format has one. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "append/input.h"

enum {
    WORTH_IT = 16 << 20, /* a second table and connection cost some milliseconds */
    WINDOW = 1 << 20,
};

static bool is_between_rows(hf__row_end ends, const char *window, size_t size, size_t newline)
{
    size_t before = newline;

    if (before == 0 || newline + 1 == size)
        return false;
    if (ends == HF__ENDS_BY_LINE)
        return window[before - 1] != '\\';
    if (window[before - 1] == '\r')
        before--;
    return before > 0 && window[before - 1] == '}' && window[newline + 1] == '{';
}

static size_t find_end(hf__row_end ends, const char *window, size_t size)
{
    const char *at = window;

    while ((at = memchr(at, '\n', size - (size_t)(at - window))) != NULL) {
        size_t newline = (size_t)(at - window);
        if (is_between_rows(ends, window, size, newline))
            return newline + 1;
        at++;
    }
    return 0;
}

static hf_status look(const hf__format *format, int fd, const char *path, int64_t middle,
                      int64_t *at, hf_error *err)
{
    char *window = malloc(WINDOW);
    ssize_t got = window != NULL ? pread(fd, window, WINDOW, middle) : 0;
    hf_status status = HF_OK;

    if (window == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    if (got < 0)
        status = hf__fail_errno(err, HF_BAD_DATA, errno, "cannot read %s", path);
    size_t end = got > 0 ? find_end(format->ends, window, (size_t)got) : 0;
    if (end > 0)
        *at = middle + (int64_t)end;
    free(window);
    return status;
}

hf_status hf__input_middle(const hf__format *format, const char *path, int64_t *at, hf_error *err)
{
    struct stat found;
    hf_status status = HF_OK;

    *at = 0;
    if (format->ends == HF__ENDS_UNKNOWN || strcmp(path, "-") == 0)
        return HF_OK;
    /* A pipe must not be opened to look at it: its writer would find that its reader has gone. */
    if (stat(path, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size < WORTH_IT)
        return HF_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hf__fail_errno(err, HF_BAD_DATA, errno, "cannot read %s", path);
    status = look(format, fd, path, found.st_size / 2, at, err);
    close(fd);
    return status;
}
