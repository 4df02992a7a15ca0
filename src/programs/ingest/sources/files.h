/* What the parts of the file source share. */
#ifndef HF_INGEST_SOURCES_FILES_H
#define HF_INGEST_SOURCES_FILES_H

#include "programs/ingest/sources/lines.h"

typedef struct hf__file {
    char *path;
    int64_t first;  /* the sequence of its first ledger; 0: unknown, as of an empty file */
    int64_t place;  /* the same, but of the file before it by name if its own is unknown */
    bool was_known; /* its first ledger was, when the folder was listed before */
} hf__file;

/* A folder's ledger files, in the order of hf__file_order. Zero-initialise it. */
typedef struct hf__file_list {
    hf__file *files;
    size_t count;
} hf__file_list;

/*
 * Replaces the list by the ledger files that the folder has now, and looks into those that it did
 * not know, as hf__look_first does. After a failure the list is as it was. HF_CONFIG: the folder
 * cannot be opened. HF_UNREACHABLE: it could not be read to its end. HF_INTERRUPTED: stop_fd is
 * readable.
 */
HF_MUST_CHECK hf_status hf__file_list_read(hf__file_list *list, const char *folder, int stop_fd,
                                           size_t line_max, hf_error *err);

/* Adds one path. Fails only without memory. */
HF_MUST_CHECK hf_status hf__file_list_one(hf__file_list *list, const char *path, hf_error *err);

/* Frees the paths, and empties the list. */
void hf__file_list_free(hf__file_list *list);

/*
 * By place, then by name as strcmp does, but numbers in names count as numbers: ledgers-9 comes
 * before ledgers-10.
 */
int hf__file_order(const hf__file *a, const hf__file *b);

/*
 * These look at a file without reading all of it. Sequences are those of hf__ndjson_sequence; 0:
 * unknown. Those that take an fd need a regular file, and leave its offset alone; all but
 * hf__look_is_plain need it to be plain, not packed.
 */

/*
 * The sequence of the file's first ledger, packed or not. Fails as hf__input_open and
 * hf__input_read, but corrupt data is HF_OK and unknown.
 */
HF_MUST_CHECK hf_status hf__look_first(const char *path, int stop_fd, size_t line_max,
                                       int64_t *sequence, hf_error *err);
/* Is it not empty, and neither gzip nor Zstandard? */
bool hf__look_is_plain(int fd);
/* The sequence of the last ledger. */
int64_t hf__look_last(int fd, size_t line_max);
/*
 * An offset at which a line begins and before which all sequences are below `from`, if the file is
 * in ascending order. It is near `from`, not exact.
 */
int64_t hf__look_up(int fd, size_t line_max, int64_t from);
/* The number of lines that end before offset. */
int64_t hf__look_count(int fd, int64_t offset);

/*
 * Waits until a file of the folder, or the one at path (may be NULL), changes, but at most a
 * second. *watch_fd is -1 at first; the caller closes it. The first call only starts to watch and
 * returns at once. HF_INTERRUPTED: stop_fd is readable.
 */
HF_MUST_CHECK hf_status hf__file_watch_wait(int *watch_fd, const char *folder, const char *path,
                                            int stop_fd, hf_error *err);

#endif
