/*
 * Reads a file or a pipe, and unpacks it if it is gzip or Zstandard. The first bytes tell, not the
 * name. One thread at a time uses an input.
 */
#ifndef HF_INGEST_SOURCES_UNPACK_H
#define HF_INGEST_SOURCES_UNPACK_H

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

/* Tells the packing from the first bytes of a file. */
hf__packing hf__packing_of(const unsigned char *bytes, size_t size);

typedef struct hf__input {
    int fd;         /* owned unless it is standard input */
    int stop_fd;    /* readable: HF_INTERRUPTED; -1: none */
    bool is_stream; /* not a regular file: reading may wait, and cannot be repeated */
    hf__packing packing;
    bool is_inside; /* in the middle of a gzip member or a Zstandard frame */
    bool is_spoilt; /* corrupt: nothing more comes */
    z_stream gzip;
    ZSTD_DCtx *zstd;
    unsigned char *raw; /* bytes as they were read; [raw_at, raw_end) is not used yet */
    size_t raw_at, raw_end;
    const char *name; /* for messages; borrowed */
} hf__input;

/*
 * Opens a file; "-" is standard input. path is borrowed: it must outlive the input. The caller
 * closes it. HF_CONFIG: it cannot be opened, or is a folder. After a failure it is closed.
 */
HF_MUST_CHECK hf_status hf__input_open(hf__input *in, const char *path, int stop_fd, hf_error *err);

/* The same for a descriptor, which the input owns from then on. The caller closes in any case. */
HF_MUST_CHECK hf_status hf__input_adopt(hf__input *in, int fd, const char *name, int stop_fd,
                                        hf_error *err);
void hf__input_close(hf__input *in); /* safe twice */

/*
 * Reads up to size unpacked bytes; waits only on a stream. *got 0: the end for now; if the file
 * grows, later calls continue. HF_BAD_DATA: packed bytes are corrupt, and the input has ended.
 * HF_UNREACHABLE: the system could not read. HF_INTERRUPTED: stop_fd is readable.
 */
HF_MUST_CHECK hf_status hf__input_read(hf__input *in, char *to, size_t size, size_t *got,
                                       hf_error *err);

/* At the end of the input: does it stop in the middle of packed data? */
bool hf__input_is_cut(const hf__input *in);

/* Makes the input end here, whatever is missing. */
void hf__input_give_up(hf__input *in);

/* Continues at this offset of a plain file. HF_SYSTEM: it cannot. */
HF_MUST_CHECK hf_status hf__input_go(hf__input *in, off_t offset, hf_error *err);

/*
 * Waits until fd (-1: none) is readable, or for timeout_ms (-1: for ever). HF_INTERRUPTED: stop_fd
 * is readable. HF_SYSTEM: poll failed.
 */
HF_MUST_CHECK hf_status hf__input_wait(int fd, int stop_fd, int timeout_ms, hf_error *err);

#endif
