#include "programs/append/input/rows_input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "programs/append/input/rows_place.h"

/* ---- Formats --------------------------------------------------------------------------------- */

/*
 * A stream may have to stop anywhere, so the bytes that abort it must be wrong for every table and
 * after every byte: at the start of a line, inside of a value (a text column accepts nearly
 * everything) and inside of quotes. Two lines of different width do that, because one of them is no
 * row. In CSV quotes between them, of both kinds, also break a quoted value.
 */
#define TABS "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t"
#define MANY_TABS TABS TABS TABS TABS TABS TABS TABS TABS
#define COMMAS ",,,,,,,,,,,,,,,,"
#define MANY_COMMAS COMMAS COMMAS COMMAS COMMAS COMMAS COMMAS COMMAS COMMAS

static const char bad_json[] = "\n\"holdfast: stream aborted\"\n";
static const char bad_csv[] =
    "\nholdfast: stream aborted" MANY_COMMAS "\n\"x'x\n," MANY_COMMAS "\n";
static const char bad_tsv[] = "\nholdfast: stream aborted" MANY_TABS "\n\t" MANY_TABS "\n";
/* No block of columns begins with such numbers. */
static const char bad_native[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";

static const hf__format formats[] = {
    {"JSONEachRow", true, false, HF__ENDS_BY_BRACES, bad_json, sizeof bad_json - 1},
    {"CSVWithNames", true, true, HF__ENDS_BY_QUOTES, bad_csv, sizeof bad_csv - 1},
    {"TSV", true, false, HF__ENDS_BY_LINE, bad_tsv, sizeof bad_tsv - 1},
    {"Native", false, false, HF__ENDS_UNKNOWN, bad_native, sizeof bad_native - 1},
};

hf_status hf__format_find(const char *name, const hf__format **format, hf_error *err)
{
    char shown[64];

    *format = &formats[0];
    if (name == NULL)
        return HF_OK;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcasecmp(formats[i].name, name) == 0) {
            *format = &formats[i];
            return HF_OK;
        }
    hf_status status = hf__fail(err, HF_INVALID, "the format '%s' is not known",
                                hf__show(shown, sizeof shown, name, strlen(name)));
    hf__hint(err, "one of JSONEachRow, CSVWithNames, TSV, Native");
    return status;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

enum { HEADER_MAX = 1 << 20 };

struct source {
    const char *path;
    bool is_stdin;
    int64_t size;
};

struct hf__rows_input {
    const hf__format *format;
    struct source *sources;
    size_t count;
    size_t next; /* the source to open next; the open one is before it */
    int fd;      /* -1: none is open */
    bool is_file;
    bool is_fresh;  /* nothing of the open file has been read */
    hf__buf header; /* of the first file that has one */
    size_t header_source;
    bool knows_header;
    hf__buf seen;   /* the start of a later file, until its first line is whole */
    bool in_header; /* we are in the header of a later file */
    hf__buf ready;  /* bytes that were read ahead and come out next */
    size_t ready_at;
    char last;
    hf__row_places places;
    atomic_llong bytes;
    int64_t size;
    int64_t from, to; /* the part of the one file; to -1: its end */
    const atomic_bool *stop;
};

static const char *name_of(const struct source *source)
{
    return source->is_stdin ? "standard input" : source->path;
}

static hf_status look_at(struct source *source, hf_error *err)
{
    struct stat found;

    source->is_stdin = strcmp(source->path, "-") == 0;
    if (source->is_stdin ? fstat(STDIN_FILENO, &found) != 0 : stat(source->path, &found) != 0)
        return hf__fail_errno(err, HF_BAD_DATA, errno, "cannot read %s", name_of(source));
    if (S_ISDIR(found.st_mode))
        return hf__fail(err, HF_BAD_DATA, "cannot read %s: it is a folder", source->path);
    source->size = S_ISREG(found.st_mode) ? found.st_size : -1;
    return HF_OK;
}

hf_status hf__rows_input_open(const hf__format *format, const char *const *paths, size_t count,
                              hf__rows_input **input, hf_error *err)
{
    static const char *const only_stdin[] = {"-"};
    hf__rows_input *made = calloc(1, sizeof *made);
    hf_status status = HF_OK;

    if (count == 0) {
        paths = only_stdin;
        count = 1;
    }
    if (made != NULL)
        made->sources = calloc(count, sizeof *made->sources);
    if (made == NULL || made->sources == NULL) {
        free(made);
        return hf__no_memory(err);
    }
    made->format = format;
    made->count = count;
    made->fd = -1;
    made->to = -1;
    made->last = '\n';
    hf__places_init(&made->places, format);
    for (size_t i = 0; i < count && status == HF_OK; i++) {
        made->sources[i].path = paths[i];
        status = look_at(&made->sources[i], err);
        made->size =
            made->size < 0 || made->sources[i].size < 0 ? -1 : made->size + made->sources[i].size;
    }
    if (status == HF_OK)
        *input = made;
    else
        hf__rows_input_close(made);
    return status;
}

void hf__rows_input_confine(hf__rows_input *input, int64_t from, int64_t to,
                            const atomic_bool *stop)
{
    input->from = from;
    input->to = to;
    input->stop = stop;
}

void hf__rows_input_know_csv(hf__rows_input *input, char delimiter, bool has_single_quotes)
{
    input->places.delimiter = delimiter;
    input->places.is_strict = !has_single_quotes;
}

static void close_source(hf__rows_input *input)
{
    if (input->fd > STDERR_FILENO)
        close(input->fd);
    input->fd = -1;
}

void hf__rows_input_close(hf__rows_input *input)
{
    if (input == NULL)
        return;
    close_source(input);
    hf__buf_free(&input->header);
    hf__buf_free(&input->seen);
    hf__buf_free(&input->ready);
    hf__places_free(&input->places);
    free(input->sources);
    free(input);
}

/* ---- Headers --------------------------------------------------------------------------------- */

static hf_status keep_header(hf__rows_input *input, hf__buf *header, const char *bytes, size_t size,
                             hf_error *err)
{
    const char *end = memchr(bytes, '\n', size);

    hf__buf_add(header, bytes, end != NULL ? (size_t)(end - bytes) + 1 : size);
    if (header->length > HEADER_MAX)
        return hf__fail(err, HF_BAD_DATA, "%s: the header is longer than %d bytes",
                        name_of(&input->sources[input->next - 1]), HEADER_MAX);
    return header->broken ? hf__no_memory(err) : HF_OK;
}

static bool has_whole_line(const hf__buf *line)
{
    return line->length > 0 && memchr(line->data, '\n', line->length) != NULL;
}

static size_t line_size(const hf__buf *line)
{
    size_t size = line->length;

    while (size > 0 && (line->data[size - 1] == '\n' || line->data[size - 1] == '\r'))
        size--;
    return size;
}

/* Leaves out the header of a later file and keeps what follows it. */
static hf_status skip_header(hf__rows_input *input, const char *bytes, size_t *size, hf_error *err)
{
    const char *end = memchr(bytes, '\n', *size);
    const char *name = name_of(&input->sources[input->next - 1]);
    hf_status status = keep_header(input, &input->seen, bytes, *size, err);

    if (status != HF_OK || end == NULL) {
        *size = 0;
        return status;
    }
    input->in_header = false;
    size_t length = line_size(&input->seen);
    if (length != line_size(&input->header) ||
        memcmp(input->seen.data, input->header.data, length) != 0)
        return hf__fail(err, HF_BAD_DATA, "%s: its columns are not those of %s", name,
                        name_of(&input->sources[input->header_source]));
    size_t used = (size_t)(end - bytes) + 1;
    hf__buf_clear(&input->ready);
    hf__buf_add(&input->ready, end + 1, *size - used);
    input->ready_at = 0;
    *size = 0;
    return input->ready.broken ? hf__no_memory(err) : HF_OK;
}

/* A part from the middle of a file still begins with the header. */
static hf_status skip_to_part(hf__rows_input *input, hf_error *err)
{
    const char *name = name_of(&input->sources[input->next - 1]);
    char piece[4096];
    ssize_t got = 1;

    while (input->format->has_header && got > 0 && !has_whole_line(&input->ready)) {
        got = pread(input->fd, piece, sizeof piece, (off_t)input->ready.length);
        hf_status status =
            got > 0 ? keep_header(input, &input->ready, piece, (size_t)got, err) : HF_OK;
        if (status != HF_OK)
            return status;
    }
    if (got < 0 || lseek(input->fd, input->from, SEEK_SET) < 0)
        return hf__fail_errno(err, HF_BAD_DATA, errno, "cannot read %s", name);
    return HF_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool must_wait(const hf__rows_input *input)
{
    struct pollfd ready = {.fd = input->fd, .events = POLLIN};

    return !input->is_file && poll(&ready, 1, 0) == 0;
}

/*
 * A table of one text column takes any bytes for rows. No text begins with these.
 */
static hf_status refuse_packed(const hf__rows_input *input, const char *bytes, size_t size,
                               hf_error *err)
{
    static const struct {
        const char *bytes, *name, *unpack;
    } kinds[] = {{"\x1f\x8b", "gzip", "zcat"},
                 {"\x28\xb5\x2f\xfd", "zstd", "zstdcat"},
                 {"\xfd\x37\x7a\x58\x5a", "xz", "xzcat"}};
    const char *name = name_of(&input->sources[input->next - 1]);

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && input->format->has_lines; i++) {
        size_t length = strlen(kinds[i].bytes);
        if (size < length || memcmp(bytes, kinds[i].bytes, length) != 0)
            continue;
        hf_status status = hf__fail(err, HF_BAD_DATA, "%s is compressed (%s)", name, kinds[i].name);
        hf__hint(err, "unpack it: %s FILE | holdfast append …", kinds[i].unpack);
        return status;
    }
    return HF_OK;
}

static hf_status open_next(hf__rows_input *input, hf_error *err)
{
    struct source *source = &input->sources[input->next++];
    struct stat found;

    input->fd = source->is_stdin ? STDIN_FILENO : open(source->path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0 || fstat(input->fd, &found) != 0)
        return hf__fail_errno(err, HF_BAD_DATA, errno, "cannot read %s", name_of(source));
    input->is_file = S_ISREG(found.st_mode);
    input->is_fresh = input->from == 0;
    input->in_header = input->format->has_header && input->knows_header;
    hf__places_enter(&input->places, input->next - 1, input->in_header ? 2 : 1);
    hf__buf_clear(&input->seen);
    if (input->is_file)
        (void)posix_fadvise(input->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return input->from > 0 ? skip_to_part(input, err) : HF_OK;
}

static hf_status refuse_cut(const hf__rows_input *input, hf_error *err)
{
    size_t source = input->next - 1;
    int64_t line = input->places.line;

    (void)hf__places_find(&input->places, input->places.rows, &source, &line);
    return hf__fail(err, HF_BAD_DATA, "%s, line %lld: it ends inside of this row",
                    name_of(&input->sources[input->next - 1]), (long long)line);
}

/* A file may end without a newline, and the next file must not continue its last line. */
static bool ends_line(hf__rows_input *input, char *bytes, size_t *got)
{
    bool lacks_end = input->format->has_lines && input->last != '\n' && input->next < input->count;

    close_source(input);
    if (lacks_end) {
        bytes[0] = '\n';
        *got = 1;
    }
    return lacks_end;
}

static hf_status read_file(hf__rows_input *input, char *bytes, size_t size, size_t *got, bool *wait,
                           hf_error *err)
{
    *wait = must_wait(input);
    if (*wait)
        return HF_OK;
    if (input->to >= 0 && (int64_t)size > input->to - input->from - input->bytes)
        size = (size_t)(input->to - input->from - input->bytes);
    ssize_t found = read(input->fd, bytes, size);
    if (found < 0 && (errno == EINTR || errno == EAGAIN)) {
        *wait = true;
        return HF_OK;
    }
    if (found < 0)
        return hf__fail_errno(err, HF_BAD_DATA, errno, "cannot read %s",
                              name_of(&input->sources[input->next - 1]));
    *got = (size_t)found;
    input->bytes += found;
    hf_status status = input->is_fresh ? refuse_packed(input, bytes, *got, err) : HF_OK;
    input->is_fresh = input->is_fresh && found == 0;
    return status;
}

static hf_status read_some(hf__rows_input *input, char *bytes, size_t size, size_t *got, bool *wait,
                           hf_error *err)
{
    if (input->ready_at == input->ready.length)
        return read_file(input, bytes, size, got, wait, err);
    size_t left = input->ready.length - input->ready_at;
    *got = left < size ? left : size;
    memcpy(bytes, input->ready.data + input->ready_at, *got);
    input->ready_at += *got;
    return HF_OK;
}

hf_status hf__rows_input_read_header(hf__rows_input *input, bool *wait, hf_error *err)
{
    char piece[4096];
    bool is_over = false;
    hf_status status = input->next == 0 ? open_next(input, err) : HF_OK;

    *wait = false;
    if (status == HF_OK && has_whole_line(&input->ready)) /* skip_to_part has read it */
        hf__buf_add(&input->header, input->ready.data, input->ready.length);
    while (status == HF_OK && !*wait && !is_over && !has_whole_line(&input->header)) {
        size_t got = 0;
        status = read_file(input, piece, sizeof piece, &got, wait, err);
        hf__buf_add(&input->ready, piece, got);
        if (status == HF_OK && got > 0)
            status = keep_header(input, &input->header, piece, got, err);
        is_over = status == HF_OK && got == 0 && !*wait;
        if (is_over && input->header.length == 0 && input->next < input->count) {
            close_source(input); /* an empty file */
            status = open_next(input, err);
            is_over = false;
        }
    }
    input->header_source = input->next > 0 ? input->next - 1 : 0;
    hf__places_expect_header(&input->places);
    if (status == HF_OK && (input->ready.broken || input->header.broken))
        status = hf__no_memory(err);
    input->knows_header = status == HF_OK && !*wait;
    return status;
}

const char *hf__rows_input_header(const hf__rows_input *input, size_t *size)
{
    *size = input->header.length;
    return input->header.data;
}

hf_status hf__rows_input_read(hf__rows_input *input, char *bytes, size_t size, size_t *got,
                              bool *wait, hf_error *err)
{
    hf_status status = HF_OK;

    *got = 0;
    *wait = false;
    if (input->stop != NULL && atomic_load(input->stop))
        return hf__fail(err, HF_INTERRUPTED, "told to stop");
    if (input->format->has_header && !input->knows_header)
        status = hf__rows_input_read_header(input, wait, err);
    while (status == HF_OK && *got == 0 && !*wait) {
        if (input->fd < 0 && input->next == input->count)
            return HF_OK;
        if (input->fd < 0) {
            status = open_next(input, err);
            continue;
        }
        bool from_file = input->ready_at >= input->ready.length;
        status = read_some(input, bytes, size, got, wait, err);
        if (status != HF_OK || *wait)
            break;
        if (*got == 0 && hf__places_is_inside(&input->places))
            return refuse_cut(input, err);
        if (*got == 0 && ends_line(input, bytes, got))
            break;
        if (*got > 0 && from_file && input->in_header)
            status = skip_header(input, bytes, got, err);
    }
    if (status == HF_OK && *got > 0) {
        input->last = bytes[*got - 1];
        if (input->format->has_lines)
            hf__places_pass(&input->places, bytes, *got);
    }
    return status;
}

int hf__rows_input_fd(const hf__rows_input *input)
{
    return input->fd;
}

/* ---- How far it is --------------------------------------------------------------------------- */

int64_t hf__rows_input_bytes(const hf__rows_input *input)
{
    return input->bytes;
}

int64_t hf__rows_input_size(const hf__rows_input *input)
{
    return input->size;
}

int64_t hf__rows_input_rows(const hf__rows_input *input)
{
    return input->format->has_lines ? input->places.rows : -1;
}

bool hf__rows_input_is_empty(const hf__rows_input *input)
{
    return input->format->has_header && input->knows_header && input->header.length == 0;
}

bool hf__rows_input_place(const hf__rows_input *input, int64_t row, const char **file,
                          int64_t *line)
{
    size_t source = input->header_source;

    *line = 1;
    if (row > 0 && !hf__places_find(&input->places, row, &source, line))
        return false;
    *file = name_of(&input->sources[source]);
    return input->format->has_lines;
}
