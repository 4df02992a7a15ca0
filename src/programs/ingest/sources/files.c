#include "programs/ingest/sources/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct files {
    hf__source head;
    hf__source_options options; /* without the strings */
    bool is_folder;
    char *folder; /* to watch */
    hf__file_list list;
    size_t at; /* the current file */
    hf__lines lines;
    bool is_open;
    bool has_ended;        /* until a seek; a stream for good */
    int64_t from;          /* ledgers below are skipped */
    int64_t passed;        /* the last sequence given; from - 1 after a seek */
    size_t tried_rest;     /* size of an unfinished line when it was tried and was no ledger */
    int64_t tip, tip_size; /* of the last file: its last sequence, and its size at that time */
    bool is_tip_known;     /* for the current list of files */
    int watch_fd;          /* inotify; -1: none yet */
};

static const char *path_in_hand(const struct files *files)
{
    return files->list.files[files->at].path;
}

static bool is_last_file(const struct files *files)
{
    return files->at + 1 >= files->list.count;
}

static bool is_plain_file(const struct files *files)
{
    return files->is_open && !files->lines.input.is_stream &&
           hf__look_is_plain(files->lines.input.fd);
}

static void note(const struct files *files, const hf__file *file, const char *what)
{
    char message[512];

    if (files->options.log == NULL)
        return;
    snprintf(message, sizeof message, "%.400s %s", file->path, what);
    files->options.log(files->options.log_arg, HF_LOG_INFO, message);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void close_file(struct files *files)
{
    if (files->is_open)
        hf__lines_close(&files->lines);
    files->is_open = false;
    files->tried_rest = 0;
}

static hf_status open_file(struct files *files, hf_error *err)
{
    close_file(files);
    hf_status status =
        hf__input_open(&files->lines.input, path_in_hand(files), files->options.stop_fd, err);
    if (status != HF_OK)
        return status;
    hf__lines_begin(&files->lines, files->options.line_max);
    files->is_open = true;
    return HF_OK;
}

/* In a file that goes backwards no ledger can be looked up. */
static hf_status check_order(const struct files *files, hf_error *err)
{
    int64_t first = 0, last = hf__look_last(files->lines.input.fd, files->options.line_max);
    hf_status status = hf__look_first(path_in_hand(files), files->options.stop_fd,
                                      files->options.line_max, &first, err);

    if (status == HF_CONFIG) /* it was deleted or renamed since it was opened */
        return HF_OK;
    if (status != HF_OK || last == 0 || first <= last)
        return status;
    status = hf__fail(err, HF_CONFIG, "%s begins with ledger %" PRId64 " and ends with %" PRId64,
                      path_in_hand(files), first, last);
    hf__hint(err, "the ledgers of a file are in ascending order: sort it");
    return status;
}

/* Opens the current file. A plain one is read from near `from` on; others from their start. */
static hf_status open_at_from(struct files *files, hf_error *err)
{
    hf_status status = open_file(files, err);

    if (status != HF_OK || files->from <= 1 || !is_plain_file(files))
        return status;
    status = check_order(files, err);
    if (status != HF_OK)
        return status;
    int64_t offset = hf__look_up(files->lines.input.fd, files->options.line_max, files->from);
    return offset > 0 ? hf__lines_go(&files->lines, offset, 0, err) : HF_OK;
}

/* The last file whose first ledger is at or below from: files are in ascending order. */
static size_t find_file(const struct files *files, int64_t from)
{
    size_t found = 0;

    for (size_t i = 0; i < files->list.count && files->list.files[i].place <= from; i++)
        if (files->list.files[i].first > 0)
            found = i;
    return found;
}

/* The index of the file in the list, or where it would be. */
static size_t place_in_list(const hf__file_list *list, const hf__file *file)
{
    size_t at = 0;

    while (at < list->count && strcmp(list->files[at].path, file->path) != 0)
        at++;
    if (at < list->count)
        return at;
    for (at = 0; at < list->count && hf__file_order(&list->files[at], file) < 0; at++)
        continue;
    return at;
}

/* Files that have come, or got their first ledger, behind the one in hand are read. */
static void note_late(const struct files *files)
{
    for (size_t i = 0; i < files->at; i++) {
        const hf__file *file = &files->list.files[i];
        if (!file->was_known && file->first > 0)
            note(files, file, "comes late and is passed over: later ledgers have been read");
    }
}

/* Lists the folder again. The current file stays the same, or is the next one if it is gone. */
static hf_status list_again(struct files *files, hf_error *err)
{
    hf__file held = {0};

    if (!files->is_folder)
        return HF_OK;
    if (files->at < files->list.count) {
        held = files->list.files[files->at];
        held.path = strdup(held.path);
        if (held.path == NULL)
            return hf__fail(err, HF_NO_MEMORY, "out of memory for the name of a file");
    }
    hf_status status = hf__file_list_read(&files->list, files->head.name, files->options.stop_fd,
                                          files->options.line_max, err);
    if (status == HF_OK && held.path != NULL) {
        files->at = place_in_list(&files->list, &held);
        note_late(files);
        if (files->at == files->list.count || strcmp(path_in_hand(files), held.path) != 0)
            close_file(files);
        else if (files->is_open)
            files->lines.input.name = path_in_hand(files);
    }
    files->is_tip_known = false;
    free(held.path);
    return status;
}

/* ---- the tip --------------------------------------------------------------------------------- */

static void look_at_tip(struct files *files)
{
    const char *path = files->list.count > 0 ? files->list.files[files->list.count - 1].path : "";
    int fd = strcmp(path, "-") == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;

    files->tip = 0;
    files->is_tip_known = true;
    if (fd < 0)
        return;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && hf__look_is_plain(fd)) {
        files->tip = hf__look_last(fd, files->options.line_max);
        files->tip_size = about.st_size;
    }
    close(fd);
}

/* The newest ledger of the files. It is looked up again at its end, if the file has grown. */
static int64_t tip_at(struct files *files, int64_t sequence)
{
    struct stat about;

    if (!files->is_tip_known)
        look_at_tip(files);
    if (files->tip > 0 && sequence >= files->tip && is_last_file(files) &&
        fstat(files->lines.input.fd, &about) == 0 && about.st_size != files->tip_size) {
        files->tip = hf__look_last(files->lines.input.fd, files->options.line_max);
        files->tip_size = about.st_size;
    }
    return files->tip > 0 && sequence > files->tip ? sequence : files->tip;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void name_place(void *arg, const hf__line *line, char *where, size_t size)
{
    const struct files *files = arg;
    int64_t number = line->number;

    if (number == 0)
        number = hf__look_count(files->lines.input.fd, line->offset) + 1;
    snprintf(where, size, "%.480s:%" PRId64, files->lines.input.name, number);
}

static hf_status refuse_file(struct files *files, const hf_error *reason, hf__bad_ledger *bad,
                             hf_error *err)
{
    char where[HF__WHERE_SIZE];
    hf__line line = {.number = files->lines.number, .offset = files->lines.offset};

    name_place(files, &line, where, sizeof where);
    return hf__source_refuse(bad, where, 0, (hf__slice){NULL, 0}, reason, err);
}

static hf_status read_line(struct files *files, const hf__line *line, hf__ledger **ledger,
                           hf__bad_ledger *bad, hf_error *err)
{
    hf_status status =
        hf__lines_ledger(&files->lines, line, files->from, name_place, files, ledger, bad, err);

    if (status == HF_OK && *ledger != NULL) {
        files->passed = (*ledger)->sequence;
        (*ledger)->tip = files->head.tip = tip_at(files, files->passed);
    }
    return status;
}

/* The last line may be a whole ledger without a newline: then there is no need to wait for it. */
static void try_rest(struct files *files, hf__ledger **ledger)
{
    hf__line rest = hf__lines_rest(&files->lines);

    if (rest.size == files->tried_rest || rest.text[rest.size - 1] != '}')
        return;
    files->tried_rest = rest.size;
    if (read_line(files, &rest, ledger, NULL, NULL) == HF_OK) {
        hf__lines_drop_rest(&files->lines);
        files->tried_rest = 0;
    }
}

/* Was the file replaced by another one, or cut below what we have read? */
static bool was_replaced(const struct files *files)
{
    struct stat named;
    struct stat held;
    int fd = files->lines.input.fd;

    if (fd == STDIN_FILENO || stat(path_in_hand(files), &named) != 0 || fstat(fd, &held) != 0)
        return false;
    return named.st_ino != held.st_ino || named.st_dev != held.st_dev ||
           held.st_size < lseek(fd, 0, SEEK_CUR);
}

/* The last ledger is given once more, so that the caller can check that it is still the same. */
static hf_status read_replacement(struct files *files, hf_error *err)
{
    note(files, &files->list.files[files->at],
         "was replaced or cut: it is read again from its beginning");
    if (files->passed > files->from)
        files->from = files->passed;
    files->is_tip_known = false;
    return open_file(files, err);
}

static hf_status wait_for_more(struct files *files, hf__ledger **ledger, hf_error *err)
{
    if (files->is_open)
        try_rest(files, ledger);
    if (*ledger != NULL)
        return HF_OK;
    if (files->is_open && was_replaced(files))
        return read_replacement(files, err);
    hf_status status = list_again(files, err);
    if (status != HF_OK || !is_last_file(files))
        return status;
    return hf__file_watch_wait(&files->watch_fd, files->folder,
                               files->is_open ? path_in_hand(files) : NULL, files->options.stop_fd,
                               err);
}

static bool is_followed(const struct files *files)
{
    return files->options.follow && !(files->is_open && files->lines.input.is_stream);
}

/* A file that was deleted from the folder after it was listed is skipped. */
static hf_status open_in_hand(struct files *files, hf_error *err)
{
    if (files->is_open || files->at >= files->list.count)
        return HF_OK;
    hf_status status = open_at_from(files, err);
    return status == HF_CONFIG && files->is_folder && access(path_in_hand(files), F_OK) != 0
               ? HF_OK
               : status;
}

/* Reads a line of the current file. line->text NULL: it has no more lines for now. */
static hf_status next_line(struct files *files, hf__line *line, hf__bad_ledger *bad, hf_error *err)
{
    hf_error reason = {0};
    bool is_last = !is_last_file(files) || !is_followed(files);
    hf_status status = open_in_hand(files, err);

    if (status != HF_OK || !files->is_open)
        return status;
    status = hf__lines_next(&files->lines, is_last, line, &reason);
    if (status == HF_OK && (line->text == NULL || line->is_rest) && is_last &&
        hf__input_is_cut(&files->lines.input)) {
        hf__input_give_up(&files->lines.input);
        files->lines.number -= line->is_rest; /* it ends in that line, not behind it */
        status = hf__fail(&reason, HF_BAD_DATA, "the packed data ends in the middle");
    }
    if (status == HF_BAD_DATA)
        return refuse_file(files, &reason, bad, err);
    if (status != HF_OK && err != NULL)
        *err = reason;
    return status;
}

static hf_status next(hf__source *source, hf__ledger **ledger, hf__bad_ledger *bad, hf_error *err)
{
    struct files *files = (struct files *)source;
    hf_status status = HF_OK;

    *ledger = NULL;
    while (status == HF_OK && *ledger == NULL && !files->has_ended) {
        hf__line line = {0};
        status = next_line(files, &line, bad, err);
        if (status != HF_OK)
            return status;
        if (line.text != NULL) {
            files->tried_rest = 0;
            status = read_line(files, &line, ledger, bad, err);
        } else if (!is_last_file(files)) {
            close_file(files);
            files->at++;
        } else if (is_followed(files)) {
            status = wait_for_more(files, ledger, err);
        } else {
            files->has_ended = true;
        }
    }
    return status;
}

/* ---- seek and extent ------------------------------------------------------------------------- */

static bool is_stream(const struct files *files)
{
    return files->is_open && files->lines.input.is_stream;
}

static hf_status seek_stream(struct files *files, int64_t from, hf_error *err)
{
    if (from > files->passed) {
        files->from = from;
        files->lines.has_given = false;
        return HF_OK;
    }
    hf_status status = hf__fail(err, HF_CONFIG, "%s cannot be read again from ledger %" PRId64,
                                files->lines.input.name, from);
    hf__hint(err, "give it as a file, not as a pipe");
    return status;
}

static hf_status seek(hf__source *source, int64_t from, hf_error *err)
{
    struct files *files = (struct files *)source;

    if (is_stream(files))
        return seek_stream(files, from, err);
    files->has_ended = false;
    if (files->is_open && from == files->passed + 1)
        return HF_OK;
    hf_status status = list_again(files, err);
    if (status != HF_OK)
        return status;
    size_t found = find_file(files, from);
    bool is_ahead = files->is_open && found == files->at && from > files->passed;
    files->from = from;
    files->lines.has_given = false;
    if (is_ahead && !is_plain_file(files))
        return HF_OK;
    close_file(files);
    files->at = found;
    files->passed = from - 1;
    return open_in_hand(files, err);
}

static hf_status extent(hf__source *source, int64_t *oldest, int64_t *latest, hf_error *err)
{
    struct files *files = (struct files *)source;
    hf_status status = HF_OK;

    *oldest = *latest = 0;
    if (is_stream(files))
        return HF_OK;
    status = list_again(files, err);
    for (size_t i = 0; status == HF_OK && *oldest == 0 && i < files->list.count; i++)
        status = hf__look_first(files->list.files[i].path, files->options.stop_fd,
                                files->options.line_max, oldest, err);
    if (status == HF_OK) {
        look_at_tip(files);
        *latest = files->tip;
    }
    return status;
}

/* ---- opening and closing the source ---------------------------------------------------------- */

static void close_files(hf__source *source)
{
    struct files *files = (struct files *)source;

    close_file(files);
    hf__file_list_free(&files->list);
    if (files->watch_fd >= 0)
        close(files->watch_fd);
    free(files->folder);
    free(files->head.name);
    free(files);
}

static const hf__source_ops files_ops = {
    .extent = extent,
    .seek = seek,
    .next = next,
    .close = close_files,
};

static char *folder_of(const char *path)
{
    char *copy = strdup(path);
    char *folder = copy != NULL ? strdup(dirname(copy)) : NULL;

    free(copy);
    return folder;
}

static hf_status find_one(struct files *files, const char *spec, hf_error *err)
{
    hf_status status = hf__file_list_one(&files->list, spec, err);

    if (status == HF_OK)
        status = open_file(files, err);
    if (status == HF_CONFIG)
        hf__hint(err,
                 "a source is a file, a folder, -, exec:COMMAND, rpc+https://HOST or generate:N");
    return status;
}

static hf_status find_files(struct files *files, const char *spec, hf_error *err)
{
    struct stat about;

    files->is_folder = strcmp(spec, "-") != 0 && stat(spec, &about) == 0 && S_ISDIR(about.st_mode);
    files->head.name = strdup(spec);
    files->folder = files->is_folder ? strdup(spec) : folder_of(spec);
    if (files->head.name == NULL || files->folder == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for the name of a source");
    if (!files->is_folder)
        return find_one(files, spec, err);
    hf_status status = hf__file_list_read(&files->list, spec, files->options.stop_fd,
                                          files->options.line_max, err);
    if (status == HF_OK && files->list.count == 0 && !files->options.follow) {
        status = hf__fail(err, HF_CONFIG, "the folder %s has no ledgers", spec);
        hf__hint(err, "their files are called *.ndjson, *.ndjson.gz or *.ndjson.zst");
    }
    return status;
}

hf_status hf__source_files(const hf__source_options *options, hf__source **source, hf_error *err)
{
    struct files *files = calloc(1, sizeof *files);

    *source = NULL;
    if (files == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for a source");
    files->head.ops = &files_ops;
    files->options = *options;
    files->options.spec = files->options.network = NULL;
    files->watch_fd = -1;
    hf_status status = find_files(files, options->spec, err);
    if (status != HF_OK) {
        close_files(&files->head);
        return status;
    }
    *source = &files->head;
    return HF_OK;
}
