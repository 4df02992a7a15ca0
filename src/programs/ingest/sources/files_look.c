#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/ingest/sources/files.h"
#include "programs/ingest/sources/ndjson.h"

enum {
    CHUNK = 1 << 16,
    TRIES = 100, /* give up after so many lines without a sequence */
};

/* A file, and memory for a part of it. */
typedef struct look {
    int fd;
    int64_t size; /* of the file */
    size_t line_max;
    char *bytes;
    size_t room;
} look;

static bool look_begin(look *at, int fd, size_t line_max)
{
    struct stat about;

    *at = (look){.fd = fd, .line_max = line_max > 0 ? line_max : HF__LINE_MAX, .room = CHUNK};
    if (fstat(fd, &about) != 0)
        return false;
    at->size = about.st_size;
    at->bytes = malloc(at->room);
    return at->bytes != NULL;
}

static bool grow(look *at)
{
    size_t room = 4 * at->room;
    char *bytes = at->room <= at->line_max ? realloc(at->bytes, room) : NULL;

    if (bytes == NULL)
        return false;
    at->bytes = bytes;
    at->room = room;
    return true;
}

/* Reads [offset, end), but at most at->room bytes, and returns how many. */
static size_t look_at(look *at, int64_t offset, int64_t end)
{
    int64_t wanted = end - offset < (int64_t)at->room ? end - offset : (int64_t)at->room;
    size_t got = 0;

    while ((int64_t)got < wanted) {
        ssize_t count = pread(at->fd, at->bytes + got, (size_t)wanted - got, offset + (int64_t)got);
        if (count <= 0)
            break;
        got += (size_t)count;
    }
    return got;
}

/* The sequence of the line at start. It mostly stands near the beginning, so we read in steps. */
static int64_t sequence_at(look *at, int64_t start)
{
    do {
        size_t got = look_at(at, start, at->size);
        char *newline = memchr(at->bytes, '\n', got);
        size_t size = newline != NULL ? (size_t)(newline - at->bytes) : got;
        size_t mark = start == 0 && size >= 3 && memcmp(at->bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
        int64_t sequence = hf__ndjson_sequence(at->bytes + mark, size - mark);
        if (sequence > 0 || newline != NULL || got < at->room)
            return sequence;
    } while (grow(at));
    return 0;
}

/* The offset after the first newline in [offset, end); -1: there is none. */
static int64_t line_behind(look *at, int64_t offset, int64_t end)
{
    while (offset < end) {
        size_t got = look_at(at, offset, end);
        char *newline = memchr(at->bytes, '\n', got);
        if (newline != NULL)
            return offset + (newline - at->bytes) + 1;
        if (got == 0)
            return -1;
        offset += (int64_t)got;
    }
    return -1;
}

/* Where the line begins whose last byte is before end. */
static int64_t line_before(look *at, int64_t end)
{
    while (end > 0) {
        int64_t start = end > CHUNK ? end - CHUNK : 0;
        size_t got = look_at(at, start, end);
        char *newline = memrchr(at->bytes, '\n', got);
        if (newline != NULL)
            return start + (newline - at->bytes) + 1;
        end = start;
    }
    return 0;
}

bool hf__look_is_plain(int fd)
{
    unsigned char magic[4];
    ssize_t count = pread(fd, magic, sizeof magic, 0);

    return count > 0 && hf__packing_of(magic, (size_t)count) == HF__PLAIN;
}

hf_status hf__look_first(const char *path, int stop_fd, size_t line_max, int64_t *sequence,
                         hf_error *err)
{
    hf__lines lines = {0};
    hf__line line;
    hf_status status = hf__input_open(&lines.input, path, stop_fd, err);

    *sequence = 0;
    if (status != HF_OK)
        return status;
    hf__lines_begin(&lines, line_max);
    for (int i = 0; i < TRIES && status == HF_OK && *sequence == 0; i++) {
        status = hf__lines_next(&lines, true, &line, err);
        if (status == HF_OK && line.text == NULL)
            break;
        if (status == HF_OK)
            *sequence = hf__ndjson_sequence(line.text, line.size);
    }
    hf__lines_close(&lines);
    return status == HF_BAD_DATA ? HF_OK : status; /* reading the file will report it */
}

/* Does the line have its newline, or does it at least end like an object? */
static bool is_complete(look *at, int64_t start, int64_t end)
{
    size_t got = end > start ? look_at(at, end - 1, end) : 0;

    return got == 1 && (at->bytes[0] == '}' || end < at->size);
}

int64_t hf__look_last(int fd, size_t line_max)
{
    look at;
    int64_t sequence = 0;

    if (!look_begin(&at, fd, line_max))
        return 0;
    int64_t end = at.size;
    for (int i = 0; i < TRIES && end > 0 && sequence == 0; i++) {
        int64_t start = line_before(&at, end);
        if (is_complete(&at, start, end))
            sequence = sequence_at(&at, start);
        end = start - 1;
    }
    free(at.bytes);
    return sequence;
}

/* The sequence of the first line in (offset, end) that has one, and its start; 0: there is none. */
static int64_t sequence_behind(look *at, int64_t offset, int64_t end, int64_t *start)
{
    for (int i = 0; i < TRIES; i++) {
        *start = line_behind(at, offset, end);
        if (*start < 0 || *start >= end)
            return 0;
        int64_t sequence = sequence_at(at, *start);
        if (sequence > 0)
            return sequence;
        offset = *start;
    }
    return 0;
}

int64_t hf__look_up(int fd, size_t line_max, int64_t from)
{
    look at;
    int64_t low = 0; /* a line begins here, and all lines before are below from */

    if (!look_begin(&at, fd, line_max)) {
        free(at.bytes);
        return 0;
    }
    int64_t high = at.size; /* lines that begin after this are not below from */
    while (high - low > CHUNK) {
        int64_t middle = low + (high - low) / 2;
        int64_t start = 0;
        int64_t sequence = sequence_behind(&at, middle, high, &start);
        if (sequence > 0 && sequence < from)
            low = start;
        else
            high = middle;
    }
    free(at.bytes);
    return low;
}

int64_t hf__look_count(int fd, int64_t offset)
{
    look at;
    int64_t count = 0;

    if (!look_begin(&at, fd, 0))
        return 0;
    for (int64_t start = 0; (start = line_behind(&at, start, offset)) >= 0;)
        count++;
    free(at.bytes);
    return count;
}

/* ---- the files of a folder ------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const hf__file *first = a, *second = b;
    int order = strverscmp(first->path, second->path);

    return order != 0 ? order : strcmp(first->path, second->path);
}

int hf__file_order(const hf__file *a, const hf__file *b)
{
    return a->place != b->place ? (a->place < b->place ? -1 : 1) : by_name(a, b);
}

static int by_place(const void *a, const void *b)
{
    return hf__file_order(a, b);
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t name_size = strlen(name);
    size_t suffix_size = strlen(suffix);

    return name_size > suffix_size && strcmp(name + name_size - suffix_size, suffix) == 0;
}

static bool is_ledger_name(const char *name)
{
    return name[0] != '.' && (ends_with(name, ".ndjson") || ends_with(name, ".ndjson.gz") ||
                              ends_with(name, ".ndjson.zst"));
}

static hf_status add_path(hf__file_list *list, char *path, hf_error *err)
{
    hf__file *grown =
        path != NULL ? reallocarray(list->files, list->count + 1, sizeof *grown) : NULL;

    if (grown == NULL) {
        free(path);
        return hf__fail(err, HF_NO_MEMORY, "out of memory for a list of files");
    }
    list->files = grown;
    list->files[list->count++] = (hf__file){.path = path};
    return HF_OK;
}

/* A pipe or a folder may be called *.ndjson too, but is not a ledger file. */
static bool is_regular(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

static hf_status add_entry(hf__file_list *list, const char *folder, const char *name, hf_error *err)
{
    char *path = NULL;

    if (!is_ledger_name(name))
        return HF_OK;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        path = NULL;
    if (path != NULL && !is_regular(path)) {
        free(path);
        return HF_OK;
    }
    return add_path(list, path, err);
}

/* What is known of a file's start stays: it is looked into once. Both lists are by name. */
static void keep_firsts(hf__file_list *list, const hf__file_list *known)
{
    for (size_t i = 0, k = 0; i < list->count; i++) {
        while (k < known->count && by_name(&known->files[k], &list->files[i]) < 0)
            k++;
        if (k < known->count && by_name(&known->files[k], &list->files[i]) == 0)
            list->files[i].first = known->files[k].first;
        list->files[i].was_known = list->files[i].first > 0;
    }
}

static void sort(hf__file_list *list, int (*order)(const void *, const void *))
{
    if (list->count > 1)
        qsort(list->files, list->count, sizeof *list->files, order);
}

/* One file needs no order, and a file that cannot be opened is reported when it is read. */
static hf_status find_places(hf__file_list *list, int stop_fd, size_t line_max, hf_error *err)
{
    for (size_t i = 0; i < list->count && list->count > 1; i++) {
        hf__file *file = &list->files[i];
        hf_status status = HF_OK;
        if (file->first == 0)
            status = hf__look_first(file->path, stop_fd, line_max, &file->first, err);
        if (status != HF_OK && status != HF_CONFIG)
            return status;
        file->place = file->first > 0 ? file->first : i > 0 ? file[-1].place : 0;
    }
    sort(list, by_place);
    return HF_OK;
}

hf_status hf__file_list_read(hf__file_list *list, const char *folder, int stop_fd, size_t line_max,
                             hf_error *err)
{
    hf__file_list found = {0};
    hf_status status = HF_OK;
    DIR *entries = opendir(folder);

    if (entries == NULL)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot read the folder %s", folder);
    errno = 0;
    for (struct dirent *entry; status == HF_OK && (entry = readdir(entries)) != NULL; errno = 0)
        status = add_entry(&found, folder, entry->d_name, err);
    if (status == HF_OK && errno != 0)
        status = hf__fail_errno(err, HF_UNREACHABLE, errno, "cannot read the folder %s", folder);
    closedir(entries);
    sort(&found, by_name);
    sort(list, by_name);
    keep_firsts(&found, list);
    sort(list, by_place);
    if (status == HF_OK)
        status = find_places(&found, stop_fd, line_max, err);
    if (status != HF_OK) {
        hf__file_list_free(&found);
        return status;
    }
    hf__file_list_free(list);
    *list = found;
    return HF_OK;
}

hf_status hf__file_list_one(hf__file_list *list, const char *path, hf_error *err)
{
    return add_path(list, strdup(path), err);
}

void hf__file_list_free(hf__file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->files[i].path);
    free(list->files);
    *list = (hf__file_list){0};
}

/* ---- waiting for changes --------------------------------------------------------------------- */

/* inotify does not report what other hosts change on a network file system: look this often. */
enum { LOOK_MS = 1000 };

static hf_status begin(int *watch_fd, const char *folder, const char *path, hf_error *err)
{
    *watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (*watch_fd < 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot watch %s", folder);
    /*
     * Failures are ignored: looking once a second is enough. The file is watched besides its folder
     * because it may be a link to another one.
     */
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
    /* Changes before the watch began do not wake it, so the caller must look once more. */
    if (*watch_fd < 0)
        return begin(watch_fd, folder, path, err);
    hf_status status = hf__input_wait(*watch_fd, stop_fd, LOOK_MS, err);
    drain(*watch_fd);
    return status;
}
