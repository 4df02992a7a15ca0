/*
 * Bytes of a file or a pipe, unpacked where they are gzip or Zstandard: told by their first bytes.
 */
#ifndef HF_SOURCE_INPUT_H
#define HF_SOURCE_INPUT_H

#include <sys/types.h>
#include <zlib.h>
#include <zstd.h>

#include "programs/ingest/sources/source.h"

typedef enum hf__packing {
    HF__PACKING_UNKNOWN, /* too few bytes yet */
    HF__PLAIN,
    HF__GZIP,
    HF__ZSTD,
} hf__packing;

hf__packing hf__packing_of(const unsigned char *bytes, size_t size);

typedef struct hf__input {
    int fd;         /* owned unless it is standard input */
    int stop_fd;    /* readable: HF_INTERRUPTED; -1: none */
    bool is_stream; /* not a regular file: reading may wait, and cannot be repeated */
    hf__packing packing;
    bool is_inside; /* a packed stream is not at its end */
    bool is_spoilt; /* corrupt: nothing more comes */
    z_stream gzip;
    ZSTD_DCtx *zstd;
    unsigned char *raw; /* as it was read, in [raw_at, raw_end) not yet given */
    size_t raw_at, raw_end;
    const char *name; /* for messages; borrowed */
} hf__input;

/* HF_CONFIG when it cannot be opened. path "-" is standard input. */
HF_MUST_CHECK hf_status hf__input_open(hf__input *in, const char *path, int stop_fd, hf_error *err);
HF_MUST_CHECK hf_status hf__input_adopt(hf__input *in, int fd, const char *name, int stop_fd,
                                        hf_error *err);
void hf__input_close(hf__input *in); /* again is safe */

/*
 * *got 0: the end, as it is now; a file that has grown goes on. HF_BAD_DATA: packed bytes are
 * corrupt, and the end is there. HF_UNREACHABLE: the system could not read.
 */
HF_MUST_CHECK hf_status hf__input_read(hf__input *in, char *to, size_t size, size_t *got,
                                       hf_error *err);

/* At the end: packed bytes are missing that must follow. */
bool hf__input_is_cut(const hf__input *in);
void hf__input_give_up(hf__input *in); /* it has ended, whatever is missing */

/* A plain file goes on at this byte. */
HF_MUST_CHECK hf_status hf__input_go(hf__input *in, off_t offset, hf_error *err);

/* Until fd (-1: nothing) is readable, or the time is over; HF_INTERRUPTED when stop_fd is. */
HF_MUST_CHECK hf_status hf__input_wait(int fd, int stop_fd, int timeout_ms, hf_error *err);

#endif
