#include "programs/ingest/sources/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RAW_SIZE = 1 << 17,
    GZIP_WINDOW = 15 + 16, /* for inflateInit2: the largest window, and a gzip header */
};

hf_status hf__input_wait(int fd, int stop_fd, int timeout_ms, hf_error *err)
{
    struct pollfd polled[] = {{.fd = stop_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

    if (poll(polled, 2, timeout_ms) < 0 && errno != EINTR)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot wait for input");
    if (polled[0].revents != 0)
        return hf__fail(err, HF_INTERRUPTED, "reading was interrupted");
    return HF_OK;
}

hf_status hf__input_adopt(hf__input *in, int fd, const char *name, int stop_fd, hf_error *err)
{
    struct stat about;

    *in = (hf__input){.fd = fd, .stop_fd = stop_fd, .name = name};
    if (fstat(fd, &about) != 0)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot read %s", name);
    if (S_ISDIR(about.st_mode))
        return hf__fail(err, HF_CONFIG, "%s is a folder, not a file", name);
    in->is_stream = !S_ISREG(about.st_mode);
    in->raw = malloc(RAW_SIZE);
    if (in->raw == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory to read %s", name);
    return HF_OK;
}

hf_status hf__input_open(hf__input *in, const char *path, int stop_fd, hf_error *err)
{
    if (strcmp(path, "-") == 0)
        return hf__input_adopt(in, STDIN_FILENO, "standard input", stop_fd, err);

    /* Without O_NONBLOCK, opening a named pipe would wait for its writer and ignore stop_fd. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        *in = (hf__input){.fd = -1};
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot open %s", path);
    }
    hf_status status = hf__input_adopt(in, fd, path, stop_fd, err);
    if (status != HF_OK)
        hf__input_close(in);
    return status;
}

void hf__input_close(hf__input *in)
{
    if (in->packing == HF__GZIP)
        inflateEnd(&in->gzip);
    ZSTD_freeDCtx(in->zstd);
    free(in->raw);
    if (in->fd > STDIN_FILENO)
        close(in->fd);
    *in = (hf__input){.fd = -1};
}

/* A stream is waited for; a regular file is not, but stop_fd is checked. *got 0: the end. */
static hf_status read_system(hf__input *in, void *to, size_t size, size_t *got, hf_error *err)
{
    *got = 0;
    for (;;) {
        hf_status status = in->is_stream ? hf__input_wait(in->fd, in->stop_fd, -1, err)
                                         : hf__input_wait(-1, in->stop_fd, 0, err);
        if (status != HF_OK)
            return status;
        ssize_t count = read(in->fd, to, size);
        if (count >= 0) {
            *got = (size_t)count;
            return HF_OK;
        }
        if (errno != EINTR && errno != EAGAIN)
            return hf__fail_errno(err, HF_UNREACHABLE, errno, "cannot read %s", in->name);
    }
}

/* Reads more bytes, after those that are in raw. */
static hf_status fill_raw(hf__input *in, size_t *got, hf_error *err)
{
    if (in->raw_at > 0) {
        memmove(in->raw, in->raw + in->raw_at, in->raw_end - in->raw_at);
        in->raw_end -= in->raw_at;
        in->raw_at = 0;
    }
    hf_status status = read_system(in, in->raw + in->raw_end, RAW_SIZE - in->raw_end, got, err);
    in->raw_end += *got;
    return status;
}

hf__packing hf__packing_of(const unsigned char *bytes, size_t size)
{
    static const unsigned char gzip[] = {0x1F, 0x8B};
    static const unsigned char zstd[] = {0x28, 0xB5, 0x2F, 0xFD};

    if (size == 0)
        return HF__PACKING_UNKNOWN;
    if (memcmp(bytes, gzip, size < sizeof gzip ? size : sizeof gzip) == 0)
        return size < sizeof gzip ? HF__PACKING_UNKNOWN : HF__GZIP;
    if (memcmp(bytes, zstd, size < sizeof zstd ? size : sizeof zstd) == 0)
        return size < sizeof zstd ? HF__PACKING_UNKNOWN : HF__ZSTD;
    return HF__PLAIN;
}

static hf_status start_packing(hf__input *in, hf_error *err)
{
    in->packing = hf__packing_of(in->raw, in->raw_end);
    if (in->packing == HF__GZIP && inflateInit2(&in->gzip, GZIP_WINDOW) != Z_OK) {
        in->packing = HF__PACKING_UNKNOWN;
        return hf__fail(err, HF_NO_MEMORY, "out of memory to unpack %s", in->name);
    }
    if (in->packing == HF__ZSTD && (in->zstd = ZSTD_createDCtx()) == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory to unpack %s", in->name);
    in->is_inside = in->packing == HF__GZIP || in->packing == HF__ZSTD;
    return HF_OK;
}

/* Reads until the first bytes tell the packing, or the input ends for now. */
static hf_status find_packing(hf__input *in, hf_error *err)
{
    size_t got = 1;

    while (in->packing == HF__PACKING_UNKNOWN && got > 0) {
        hf_status status = fill_raw(in, &got, err);
        if (status == HF_OK && got > 0)
            status = start_packing(in, err);
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

static hf_status spoilt(hf__input *in, const char *reason, hf_error *err)
{
    hf__input_give_up(in);
    hf_status status = hf__fail(err, HF_BAD_DATA, "it cannot be unpacked: %s",
                                reason != NULL ? reason : "corrupt data");
    hf__hint(err, "what is behind this place is lost; make the file again");
    return status;
}

/* A gzip file may have several members. Zeros between them only pad a tape or a block. */
static hf_status next_gzip_member(hf__input *in, hf_error *err)
{
    while (in->raw_at < in->raw_end && in->raw[in->raw_at] == 0)
        in->raw_at++;
    if (in->raw_at == in->raw_end)
        return HF_OK;
    if (inflateReset(&in->gzip) != Z_OK)
        return spoilt(in, in->gzip.msg, err);
    in->is_inside = true;
    return HF_OK;
}

static hf_status unpack_gzip(hf__input *in, char *to, size_t size, size_t *got, hf_error *err)
{
    hf_status status = in->is_inside ? HF_OK : next_gzip_member(in, err);

    if (status != HF_OK || !in->is_inside)
        return status;
    in->gzip.next_in = in->raw + in->raw_at;
    in->gzip.avail_in = (uInt)(in->raw_end - in->raw_at);
    in->gzip.next_out = (unsigned char *)to;
    in->gzip.avail_out = size < UINT32_MAX ? (uInt)size : UINT32_MAX;
    uInt room = in->gzip.avail_out;
    int result = inflate(&in->gzip, Z_NO_FLUSH);
    in->raw_at = in->raw_end - in->gzip.avail_in;
    *got = room - in->gzip.avail_out;
    if (result == Z_STREAM_END)
        in->is_inside = false;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return spoilt(in, in->gzip.msg, err);
    return HF_OK;
}

static hf_status unpack_zstd(hf__input *in, char *to, size_t size, size_t *got, hf_error *err)
{
    ZSTD_inBuffer from = {in->raw, in->raw_end, in->raw_at};
    ZSTD_outBuffer out = {to, size, 0};

    /* After a frame, a call without input would report a new frame as incomplete. */
    if (!in->is_inside && from.pos == from.size)
        return HF_OK;
    size_t result = ZSTD_decompressStream(in->zstd, &out, &from);

    if (ZSTD_isError(result))
        return spoilt(in, ZSTD_getErrorName(result), err);
    in->raw_at = from.pos;
    *got = out.pos;
    in->is_inside = result != 0;
    return HF_OK;
}

static hf_status read_packed(hf__input *in, char *to, size_t size, size_t *got, hf_error *err)
{
    for (;;) {
        size_t before = in->raw_at;
        hf_status status = in->packing == HF__GZIP ? unpack_gzip(in, to, size, got, err)
                                                   : unpack_zstd(in, to, size, got, err);
        if (status != HF_OK || *got > 0)
            return status;
        if (in->raw_at < in->raw_end && in->raw_at > before)
            continue;
        size_t filled = 0;
        status = fill_raw(in, &filled, err);
        if (status != HF_OK || filled == 0)
            return status;
    }
}

static hf_status read_plain(hf__input *in, char *to, size_t size, size_t *got, hf_error *err)
{
    size_t kept = in->raw_end - in->raw_at;

    if (kept == 0)
        return read_system(in, to, size, got, err);
    *got = kept < size ? kept : size;
    memcpy(to, in->raw + in->raw_at, *got);
    in->raw_at += *got;
    return HF_OK;
}

hf_status hf__input_read(hf__input *in, char *to, size_t size, size_t *got, hf_error *err)
{
    *got = 0;
    if (in->is_spoilt)
        return HF_OK;
    hf_status status = find_packing(in, err);
    if (status != HF_OK || in->packing == HF__PACKING_UNKNOWN)
        return status;
    return in->packing == HF__PLAIN ? read_plain(in, to, size, got, err)
                                    : read_packed(in, to, size, got, err);
}

bool hf__input_is_cut(const hf__input *in)
{
    return in->is_inside || (in->packing == HF__PACKING_UNKNOWN && in->raw_at < in->raw_end);
}

void hf__input_give_up(hf__input *in)
{
    in->is_spoilt = true;
    in->is_inside = false;
    in->raw_at = in->raw_end;
}

hf_status hf__input_go(hf__input *in, off_t offset, hf_error *err)
{
    in->raw_at = in->raw_end = 0;
    if (lseek(in->fd, offset, SEEK_SET) < 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot read %s", in->name);
    return HF_OK;
}
