/* What the parts of the file source share. */
#ifndef HF_SOURCE_FILES_H
#define HF_SOURCE_FILES_H

#include "programs/ingest/sources/lines.h"

/* The names of a folder's ledger files, in their order. */
typedef struct hf__file_list {
    char **paths;
    size_t count;
} hf__file_list;

/* Numbers in names count as numbers: ledgers-9 comes before ledgers-10. */
HF_MUST_CHECK hf_status hf__file_list_read(hf__file_list *list, const char *folder, hf_error *err);
HF_MUST_CHECK hf_status hf__file_list_one(hf__file_list *list, const char *path, hf_error *err);
void hf__file_list_free(hf__file_list *list);
int hf__file_order(const char *a, const char *b);

/*
 * Looks at a file without reading it: sequences as hf__ndjson_sequence tells them. 0: unknown.
 * Those with fd want a plain file, and leave its offset alone.
 */
HF_MUST_CHECK hf_status hf__look_first(const char *path, int stop_fd, size_t line_max,
                                       int64_t *sequence, hf_error *err);
bool hf__look_is_plain(int fd);
int64_t hf__look_last(int fd, size_t line_max);
/* The first byte of a line with nothing but lesser sequences before it, if they ascend. */
int64_t hf__look_up(int fd, size_t line_max, int64_t from);
/* How many lines begin before offset. */
int64_t hf__look_count(int fd, int64_t offset);

/*
 * Until a file of the folder or the one at path changes, as far as that can be told: a second at
 * most.
 */
HF_MUST_CHECK hf_status hf__file_watch_wait(int *watch_fd, const char *folder, const char *path,
                                            int stop_fd, hf_error *err);

#endif
