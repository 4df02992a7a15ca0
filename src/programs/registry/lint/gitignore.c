#include "programs/registry/lint/gitignore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "programs/registry/lint/glob.h"
#include "programs/registry/lint/grow.h"

enum { PATH_ROOM = 8192, FILE_LIMIT = 4 * 1024 * 1024 };

struct pattern {
    hf__glob *glob;
    bool negated;
    bool folders_only;
};

struct hf__gitignore {
    const hf__gitignore *parent;
    char *name;
    struct pattern *patterns;
    size_t count;
    size_t capacity;
};

/* Spaces at the end count only behind a backslash. */
static size_t without_trailing_spaces(const char *line, size_t size)
{
    size_t kept = 0;

    for (size_t i = 0; i < size; i++) {
        if (line[i] == '\\' && i + 1 < size)
            kept = ++i + 1;
        else if (line[i] != ' ')
            kept = i + 1;
    }
    return kept;
}

static hf_status add_line(hf__gitignore *ignore, const char *line, size_t size, hf_error *err)
{
    struct pattern pattern = {0};
    hf_status status;

    if (size > 0 && line[0] == '#')
        return HF_OK;
    size = without_trailing_spaces(line, size);
    if (size > 0 && line[0] == '!') {
        pattern.negated = true;
        line++;
        size--;
    }
    if (size > 0 && line[size - 1] == '/') {
        pattern.folders_only = true;
        size--;
    }
    if (size == 0)
        return HF_OK;
    status = hf__glob_compile(line, size, &pattern.glob, err);
    if (status != HF_OK || pattern.glob == NULL)
        return status;
    if (!HF__GROW(ignore->patterns, ignore->count, ignore->capacity)) {
        hf__glob_free(pattern.glob);
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    }
    ignore->patterns[ignore->count++] = pattern;
    return HF_OK;
}

static hf_status add_lines(hf__gitignore *ignore, const char *text, size_t size, hf_error *err)
{
    hf_status status = HF_OK;
    size_t at = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    while (status == HF_OK && at < size) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t next = end != NULL ? (size_t)(end - text) : size;
        size_t length = next - at;
        if (end != NULL && length > 0 && text[next - 1] == '\r')
            length--;
        if (memchr(text + at, '\0', length) == NULL)
            status = add_line(ignore, text + at, length, err);
        at = next + 1;
    }
    return status;
}

hf_status hf__gitignore_parse(const hf__gitignore *parent, const char *name, const char *text,
                              size_t size, hf__gitignore **ignore, hf_error *err)
{
    hf__gitignore *made = calloc(1, sizeof *made);
    hf_status status;

    if (made != NULL)
        made->name = strdup(name);
    if (made == NULL || made->name == NULL) {
        hf__gitignore_free(made);
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    }
    made->parent = parent;
    status = add_lines(made, text, size, err);
    if (status != HF_OK) {
        hf__gitignore_free(made);
        return status;
    }
    *ignore = made;
    return HF_OK;
}

/* What is no plain file of a sensible size, or cannot be read, says nothing: git warns and goes on. */
static void read_small_file(int fd, hf__buf *text)
{
    struct stat status;
    char block[4096];
    ssize_t got;

    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > FILE_LIMIT)
        return;
    while ((got = read(fd, block, sizeof block)) > 0 && text->length < FILE_LIMIT)
        hf__buf_add(text, block, (size_t)got);
}

hf_status hf__gitignore_open(const hf__gitignore *parent, int folder, const char *name,
                             hf__gitignore **ignore, hf_error *err)
{
    hf__buf text = {0};
    int fd = openat(folder, ".gitignore", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    hf_status status;

    if (fd >= 0) {
        read_small_file(fd, &text);
        close(fd);
    }
    if (text.broken)
        status = hf__fail(err, HF_NO_MEMORY, "out of memory");
    else
        status = hf__gitignore_parse(parent, name, text.data != NULL ? text.data : "", text.length,
                                     ignore, err);
    hf__buf_free(&text);
    return status;
}

void hf__gitignore_free(hf__gitignore *ignore)
{
    if (ignore == NULL)
        return;
    for (size_t i = 0; i < ignore->count; i++)
        hf__glob_free(ignore->patterns[i].glob);
    free(ignore->patterns);
    free(ignore->name);
    free(ignore);
}

static const struct pattern *last_match(const hf__gitignore *ignore, const char *path,
                                        const char *name, bool is_folder)
{
    for (size_t i = ignore->count; i-- > 0;) {
        const struct pattern *pattern = &ignore->patterns[i];
        if ((is_folder || !pattern->folders_only) && hf__glob_matches(pattern->glob, path, name))
            return pattern;
    }
    return NULL;
}

/* The path grows to the left on the way up: each file speaks of paths below its own folder. */
bool hf__gitignore_excludes(const hf__gitignore *ignore, const char *name, bool is_folder)
{
    char room[PATH_ROOM];
    size_t at = sizeof room - strlen(name) - 1;

    if (strlen(name) >= sizeof room)
        return false;
    memcpy(room + at, name, strlen(name) + 1);
    for (; ignore != NULL; ignore = ignore->parent) {
        const struct pattern *match = last_match(ignore, room + at, name, is_folder);
        if (match != NULL)
            return !match->negated;
        size_t size = strlen(ignore->name);
        if (ignore->parent != NULL && at < size + 1)
            return false;
        if (ignore->parent != NULL) {
            room[--at] = '/';
            at -= size;
            memcpy(room + at, ignore->name, size);
        }
    }
    return false;
}
