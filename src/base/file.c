#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

enum { BLOCK = 65536 };

hf_status hf__read_fd(int fd, const char *name, size_t most, hf__buf *text, hf_status code,
                      hf_error *err)
{
    char block[BLOCK];
    size_t left = most + 1;

    while (left > 0) {
        ssize_t size = read(fd, block, left < sizeof block ? left : sizeof block);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return hf__fail_errno(err, code, errno, "cannot read %s", name);
        if (size == 0)
            break;
        hf__buf_add(text, block, (size_t)size);
        left -= (size_t)size;
    }
    return text->broken ? hf__no_memory(err) : HF_OK;
}

hf_status hf__read_file(const char *path, size_t most, hf__buf *text, hf_status code, hf_error *err)
{
    char name[200];

    hf__show(name, sizeof name, path, strlen(path));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hf__fail_errno(err, code, errno, "cannot open %s", name);
    hf_status status = hf__read_fd(fd, name, most, text, code, err);
    close(fd);
    return status;
}

void hf__put_sibling_path(hf__buf *out, const char *path, const char *other)
{
    const char *slash = strrchr(path, '/');

    if (other[0] != '/' && slash != NULL)
        hf__buf_add(out, path, (size_t)(slash - path) + 1);
    hf__buf_puts(out, other);
}
