#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "programs/serve/serve.h"

static hf_status check_mode(int fd, const char *path, hf_error *err)
{
    struct stat found;

    if (fstat(fd, &found) != 0)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot read %s", path);
    if (!S_ISREG(found.st_mode))
        return hf__fail(err, HF_CONFIG, "the token file %s is no file", path);
    if ((found.st_mode & (S_IRWXO | S_IWGRP)) == 0)
        return HF_OK;
    hf_status status = hf__fail(err, HF_CONFIG, "the token file %s is open to others (mode %03o)",
                                path, (unsigned)found.st_mode & 0777U);
    hf__hint(err, "chmod 600 %s", path);
    return status;
}

/* The first line, without what stands around it. */
static hf_status take_token(const char *path, char *text, size_t size, char **token, hf_error *err)
{
    char *start = text + strspn(text, " \t");
    char *end = start + strcspn(start, "\r\n");

    while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    bool printable = memchr(text, '\0', size) == NULL;
    for (const char *at = start; at < end; at++)
        printable = printable && *at > 0x20 && *at < 0x7f;
    if (!printable || end - start < HF__TOKEN_MIN || end - start > HF__TOKEN_MAX) {
        hf_status status =
            hf__fail(err, HF_CONFIG,
                     printable ? "the token in %s has %zu characters; it takes %d to %d"
                               : "the token in %s is not of printable ASCII without spaces",
                     path, (size_t)(end - start), HF__TOKEN_MIN, HF__TOKEN_MAX);
        hf__hint(err, "make one: openssl rand -hex 32 > %s", path);
        return status;
    }
    *token = strndup(start, (size_t)(end - start));
    return *token != NULL ? HF_OK : hf__fail(err, HF_NO_MEMORY, "out of memory");
}

hf_status hf__token_read(const char *path, char **token, hf_error *err)
{
    hf__buf text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    *token = NULL;
    if (fd < 0)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot open the token file %s", path);
    hf_status status = check_mode(fd, path, err);
    if (status == HF_OK)
        status = hf__read_fd(fd, path, 4096, &text, HF_CONFIG, err);
    close(fd);
    if (status == HF_OK)
        status =
            take_token(path, text.data != NULL ? text.data : (char[]){""}, text.length, token, err);
    hf__buf_free(&text);
    return status;
}
