#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/choice.h"
#include "cli/print.h"
#include "programs/registry/commands.h"
#include "programs/registry/doc/doc.h"

/* --- writing a file, all or nothing --------------------------------------------------------- */

enum { MOST_LINKS = 40, SHOWN_PATH = 200 };

/* Each of these sets errno when it fails, and returns false or NULL. */

static bool write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, text, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        text += written;
        size -= (size_t)written;
    }
    return true;
}

/* The other path as the file at path sees it; the caller frees it. */
static char *sibling(const char *path, const char *other)
{
    hf__buf joined = {0};

    hf__put_sibling_path(&joined, path, other);
    if (joined.broken)
        errno = ENOMEM;
    return joined.broken ? NULL : joined.data;
}

/* The path of the file itself, behind every link. The file need not exist. The caller frees it. */
static char *follow(const char *path)
{
    char target[PATH_MAX];
    char *at = strdup(path);

    for (int links = 0; at != NULL; links++) {
        ssize_t size = readlink(at, target, sizeof target - 1);
        if (size < 0 && (errno == EINVAL || errno == ENOENT))
            return at; /* no link, or nothing there yet */
        if (size < 0 || links == MOST_LINKS) {
            int reason = size < 0 ? errno : ELOOP;
            free(at);
            errno = reason;
            return NULL;
        }
        target[size] = '\0';
        char *next = sibling(at, target);
        free(at);
        at = next;
    }
    return NULL;
}

static mode_t mode_for(const char *path)
{
    struct stat old;
    mode_t mask = umask(0);

    umask(mask);
    return stat(path, &old) == 0 ? old.st_mode & 07777 : 0666 & ~mask;
}

static bool fill(int fd, const char *path, const char *text, size_t size)
{
    return write_all(fd, text, size) && fchmod(fd, mode_for(path)) == 0 && fsync(fd) == 0;
}

/* The new name outlives a crash as well. Some file systems cannot sync folders, and need not. */
static void sync_folder(const char *path)
{
    char *folder = sibling(path, ".");
    int fd = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(folder);
}

static bool replace(const char *path, const char *text, size_t size)
{
    char *temporary = sibling(path, ".holdfast-doc-XXXXXX");
    int fd = temporary != NULL ? mkostemp(temporary, O_CLOEXEC) : -1;
    bool done = fd >= 0 && fill(fd, path, text, size);
    int reason = errno;

    if (fd >= 0 && close(fd) != 0 && done) {
        done = false;
        reason = errno;
    }
    if (done && rename(temporary, path) != 0) {
        done = false;
        reason = errno;
    }
    if (fd >= 0 && !done)
        unlink(temporary);
    if (done)
        sync_folder(path);
    free(temporary);
    errno = reason;
    return done;
}

static bool overwrite(const char *path, const char *text, size_t size)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    bool done = write_all(fd, text, size);
    int reason = errno;
    if (close(fd) != 0 && done) {
        done = false;
        reason = errno;
    }
    errno = reason;
    return done;
}

/*
 * The file has either its old contents or all of the new ones, also after a crash. It keeps its
 * mode, and a symbolic link stays one. What is no regular file (a terminal, a pipe) is just
 * written to.
 */
static hf_status replace_file(const char *path, const char *text, size_t size, hf_error *err)
{
    char shown[SHOWN_PATH];
    struct stat there;
    bool done = false;

    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        done = overwrite(path, text, size);
    } else {
        char *file = follow(path);
        done = file != NULL && replace(file, text, size);
        int reason = errno;
        free(file);
        errno = reason;
    }
    if (done)
        return HF_OK;
    return hf__fail_errno(err, HF_SYSTEM, errno, "cannot write %s",
                          hf__show(shown, sizeof shown, path, strlen(path)));
}

/* --- is the file what the registry gives? --------------------------------------------------- */

enum { SHOWN = 160 };

struct line {
    const char *text;
    size_t size;
    bool there;
};

/* CRLF counts as LF: git may have changed it. */
static struct line next_line(const char **at, const char *end)
{
    struct line line = {.text = *at, .there = *at < end};
    const char *newline = line.there ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;

    line.size = (size_t)((newline != NULL ? newline : end) - *at);
    *at = newline != NULL ? newline + 1 : end;
    if (newline != NULL && line.size > 0 && line.text[line.size - 1] == '\r')
        line.size--;
    return line;
}

static bool same_line(const struct line *a, const struct line *b)
{
    return a->there == b->there && a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

/* The number of the first line that differs, from 1; 0 when none does. */
static unsigned first_difference(const hf__buf *wanted, const hf__buf *found, struct line *want,
                                 struct line *find)
{
    const char *wanted_at = wanted->data;
    const char *found_at = found->data;
    const char *wanted_end = wanted->data + wanted->length;
    const char *found_end = found->data + found->length;

    for (unsigned number = 1;; number++) {
        *want = next_line(&wanted_at, wanted_end);
        *find = next_line(&found_at, found_end);
        if (!same_line(want, find))
            return number;
        if (!want->there)
            return 0;
    }
}

static const char *show_line(char out[SHOWN], const struct line *line)
{
    return line->there ? hf__show(out, SHOWN, line->text, line->size) : "(the end)";
}

static int report_stale(const struct report *report, const char *path, const char *what,
                        const char *detail)
{
    char shown[SHOWN_MAX];
    hf_error err = {.code = HF_BAD_DATA};

    show_argument(shown, path);
    (void)hf__fail(&err, HF_BAD_DATA, "%s %s", shown, what);
    hf__hint(&err, "run 'holdfast registry doc%s -o %s'",
             strlen(path) > 5 && strcmp(path + strlen(path) - 5, ".html") == 0 ? " --html" : "",
             shown);
    report_detailed_error(report, &err, detail);
    return EXIT_FINDINGS;
}

static int compare(const struct report *report, const char *path, const hf__buf *page,
                   const hf__buf *there)
{
    struct line want, find;
    char wanted[SHOWN], found[SHOWN], what[64];
    char detail[2 * SHOWN + 64];
    unsigned line = first_difference(page, there, &want, &find);

    if (line == 0)
        return EXIT_OK;
    snprintf(what, sizeof what, "is stale: line %u differs", line);
    snprintf(detail, sizeof detail, "it has '%s', the registry gives '%s'", show_line(found, &find),
             show_line(wanted, &want));
    return report_stale(report, path, what, detail);
}

static int check_page(const struct report *report, const char *path, const hf__buf *page)
{
    hf__buf there = {0};
    struct stat stat_of;
    hf_error err;
    int code;

    if (stat(path, &stat_of) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return report_stale(report, path, "does not exist", NULL);
    hf__buf_puts(&there, "");
    /* Each newline may have become two bytes. A file that is even longer differs anyway. */
    if (hf__read_file(path, page->length * 2, &there, HF_SYSTEM, &err) != HF_OK)
        code = report_error(report, &err);
    else
        code = compare(report, path, page, &there);
    hf__buf_free(&there);
    return code;
}

/* --- the command ---------------------------------------------------------------------------- */

struct doc_values {
    const char *output;
    bool check;
    bool html;
};

static const struct option doc_options[] = {
    {
        .letter = 'o',
        .name = "output",
        .value = "FILE",
        .help = "write to this file, all or nothing, instead of to standard output",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct doc_values, output),
    },
    {
        .name = "check",
        .help = "write nothing; fail when the file (LOCKS.md beside the registry) is stale",
        .offset = offsetof(struct doc_values, check),
    },
    {
        .name = "html",
        .help = "write one page of HTML, with a search, instead of Markdown",
        .offset = offsetof(struct doc_values, html),
    },
    {0},
};

/* Without -o the page is LOCKS.md in the folder of the registry. */
static int check_or_fail(const struct report *report, const struct doc_values *values,
                         const char *registry, const hf__buf *page)
{
    char *path = values->output != NULL
                     ? strdup(values->output)
                     : sibling(registry, values->html ? "LOCKS.html" : "LOCKS.md");
    hf_error err = {.code = HF_NO_MEMORY, .message = "out of memory"};
    int code = path != NULL ? check_page(report, path, page) : report_error(report, &err);

    free(path);
    return code;
}

static int print_json(const struct doc_values *values, const hf__buf *page)
{
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "format", values->html ? "html" : "markdown");
    hf__json_put_text(&json, "file", values->output != NULL ? values->output : "");
    hf__json_put_text(&json, "page", values->output != NULL || values->check ? "" : page->data);
    if (values->check)
        hf__json_put_boolean(&json, "stale", false);
    hf__json_end_object(&json);
    return print_document(&json, stdout) ? EXIT_OK : EXIT_FAILED;
}

static int use_page(const struct report *report, const struct doc_values *values,
                    const char *registry, const hf__buf *page)
{
    hf_error err;

    if (values->check) {
        int code = check_or_fail(report, values, registry, page);
        return code == EXIT_OK && report->json ? print_json(values, page) : code;
    }
    if (values->output == NULL && !report->json) {
        fwrite(page->data, 1, page->length, stdout);
        return EXIT_OK;
    }
    if (values->output != NULL &&
        replace_file(values->output, page->data, page->length, &err) != HF_OK)
        return report_error(report, &err);
    return report->json ? print_json(values, page) : EXIT_OK;
}

static int doc_main(const struct command *self, int argc, char **argv)
{
    struct doc_values values = {0};
    struct invocation in = {0};
    hf_registry *registry = NULL;
    hf__buf page = {0};
    int code = EXIT_OK;
    hf_error err;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    if (values.output != NULL && values.output[0] == '\0')
        return report_usage(&in.report, self, "the name of the file is empty");
    if (open_needed_registry(&in.common, &registry, &err) != HF_OK ||
        (values.html ? hf__doc_write_html : hf__doc_write)(registry, &page, &err) != HF_OK)
        code = report_error(&in.report, &err);
    else
        code = use_page(&in.report, &values, hf_registry_path(registry), &page);
    hf__buf_free(&page);
    hf_registry_free(registry);
    return code;
}

const struct command cmd_registry_doc = {
    .name = "registry doc",
    .summary = "Write the registry down as Markdown or HTML, or check that it was.",
    .usage = "[-o FILE] [--check] [--html]",
    .options = doc_options,
    .main = doc_main,
};
