/* Cuts a file of rows in two: finds a place near its middle that is surely between two rows. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/append/input/rows_input.h"

enum {
    WORTH_IT = 16 << 20, /* a second table and connection cost a few milliseconds */
    WINDOW = 1 << 20,
};

/* A piece of the file in memory. */
struct window {
    int fd;
    const char *path;
    char *bytes;
    size_t size;
    int64_t offset; /* where the piece begins in the file */
};

static hf_status move_to(struct window *window, int64_t offset, hf_error *err)
{
    ssize_t got = pread(window->fd, window->bytes, WINDOW, offset);

    if (got < 0)
        return hf__fail_errno(err, HF_BAD_DATA, errno, "cannot read %s", window->path);
    window->size = (size_t)got;
    window->offset = offset;
    return HF_OK;
}

/* ---- Formats where the bytes around the place tell ------------------------------------------- */

static bool is_between_rows(hf__row_end ends, const struct window *window, size_t newline)
{
    const char *bytes = window->bytes;
    size_t before = newline;

    if (before == 0 || newline + 1 == window->size)
        return false;
    if (ends == HF__ENDS_BY_LINE)
        return bytes[before - 1] != '\\';
    if (bytes[before - 1] == '\r')
        before--;
    return before > 0 && bytes[before - 1] == '}' && bytes[newline + 1] == '{';
}

static hf_status look_around(struct window *window, hf__row_end ends, int64_t middle, int64_t *cut,
                             hf_error *err)
{
    hf_status status = move_to(window, middle, err);
    const char *at = window->bytes;

    if (status != HF_OK)
        return status;
    while ((at = memchr(at, '\n', window->size - (size_t)(at - window->bytes))) != NULL) {
        size_t newline = (size_t)(at - window->bytes);
        if (is_between_rows(ends, window, newline)) {
            *cut = middle + (int64_t)newline + 1;
            return HF_OK;
        }
        at++;
    }
    return HF_OK;
}

/* ---- CSV, which must be read from the start -------------------------------------------------- */

/*
 * A newline ends a row unless it is quoted, and a quote counts only at the start of a value. Some
 * things mean different things to different versions and settings of ClickHouse: single quotes,
 * quotes inside of bare values, blanks around quoted values, another delimiter. A file with any of
 * these is odd, and is not cut.
 */
struct csv {
    enum { BARE, QUOTED, AFTER_QUOTE } state;
    char last;     /* the byte before; a newline at the start */
    bool has_line; /* the header has ended */
    bool is_odd;
    int64_t middle;
    int64_t cut;
};

static const char *find_quote(const char *at, const char *end)
{
    const char *twofold = memchr(at, '"', (size_t)(end - at));
    const char *single = memchr(at, '\'', (size_t)((twofold != NULL ? twofold : end) - at));

    return single != NULL ? single : twofold;
}

/* The first newline at or after the middle. */
static int64_t find_cut_in(const struct csv *csv, const struct window *window, const char *at,
                           const char *stop)
{
    int64_t behind = csv->middle - window->offset - (at - window->bytes);

    if (behind >= stop - at)
        return 0;
    if (behind > 0)
        at += behind;
    const char *newline = memchr(at, '\n', (size_t)(stop - at));
    return newline != NULL ? window->offset + (newline - window->bytes) + 1 : 0;
}

/* Reads up to the quote that opens a value. */
static const char *read_bare(struct csv *csv, const struct window *window, const char *at,
                             const char *end)
{
    const char *quote = find_quote(at, end);
    const char *stop = quote != NULL ? quote : end;

    csv->cut = find_cut_in(csv, window, at, stop);
    if (!csv->has_line)
        csv->has_line = memchr(at, '\n', (size_t)(stop - at)) != NULL;
    if (stop > at)
        csv->last = stop[-1];
    if (quote == NULL)
        return end;
    csv->is_odd = *quote != '"' || (csv->last != ',' && csv->last != '\n');
    csv->state = QUOTED;
    return quote + 1;
}

static const char *read_quoted(struct csv *csv, const char *at, const char *end)
{
    const char *quote = memchr(at, '"', (size_t)(end - at));
    const char *stop = quote != NULL ? quote : end;

    /* Nobody writes a header of several lines. */
    csv->is_odd = !csv->has_line && memchr(at, '\n', (size_t)(stop - at)) != NULL;
    if (quote == NULL)
        return end;
    csv->state = AFTER_QUOTE;
    return quote + 1;
}

static const char *read_after_quote(struct csv *csv, const char *at)
{
    csv->last = '"';
    if (*at == '"') {
        csv->state = QUOTED;
        return at + 1;
    }
    csv->is_odd = *at != ',' && *at != '\n' && *at != '\r';
    csv->state = BARE;
    return at;
}

static void read_window(struct csv *csv, const struct window *window)
{
    const char *at = window->bytes;
    const char *end = at + window->size;

    while (at < end && csv->cut == 0 && !csv->is_odd) {
        if (csv->state == BARE)
            at = read_bare(csv, window, at, end);
        else if (csv->state == QUOTED)
            at = read_quoted(csv, at, end);
        else
            at = read_after_quote(csv, at);
    }
}

static hf_status read_from_start(struct window *window, int64_t middle, int64_t *cut, hf_error *err)
{
    struct csv csv = {.state = BARE, .last = '\n', .middle = middle};
    hf_status status = move_to(window, 0, err);

    while (status == HF_OK && window->size > 0 && csv.cut == 0 && !csv.is_odd) {
        read_window(&csv, window);
        if (csv.cut == 0)
            status = move_to(window, window->offset + (int64_t)window->size, err);
    }
    *cut = csv.cut;
    return status;
}

/* ---- Any format ------------------------------------------------------------------------------ */

static hf_status find_cut(const hf__format *format, int fd, const char *path, int64_t size,
                          int64_t *cut, hf_error *err)
{
    struct window window = {.fd = fd, .path = path, .bytes = malloc(WINDOW)};

    if (window.bytes == NULL)
        return hf__no_memory(err);
    hf_status status = format->ends == HF__ENDS_BY_QUOTES
                           ? read_from_start(&window, size / 2, cut, err)
                           : look_around(&window, format->ends, size / 2, cut, err);
    if (*cut >= size)
        *cut = 0;
    free(window.bytes);
    return status;
}

hf_status hf__rows_input_middle(const hf__format *format, const char *path, int64_t *at,
                                hf_error *err)
{
    struct stat found;
    hf_status status = HF_OK;

    *at = 0;
    if (format->ends == HF__ENDS_UNKNOWN || strcmp(path, "-") == 0)
        return HF_OK;
    /* Do not open a pipe just to look: its writer would see its reader go away. */
    if (stat(path, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size < WORTH_IT)
        return HF_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hf__fail_errno(err, HF_BAD_DATA, errno, "cannot read %s", path);
    status = find_cut(format, fd, path, found.st_size, at, err);
    close(fd);
    return status;
}
