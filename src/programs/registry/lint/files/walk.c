#include "programs/registry/lint/files/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/vec.h"
#include "programs/registry/lint/files/gitignore.h"
#include "programs/registry/lint/text/syntax.h"

enum { DEPTH_MAX = 200 };

struct include {
    hf__glob *glob; /* NULL: it matches nothing */
};

struct walk {
    const hf__walker *walker;
    struct include *includes;
    struct include *excludes;
    hf__buf path;  /* for messages */
    size_t prefix; /* the length of the path that the user gave */
    unsigned depth;
    hf_error *err;
};

struct name {
    char *text;
    bool is_folder;
};

struct names {
    struct name *items;
    size_t count;
    size_t capacity;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i].text);
    free(names->items);
}

/* Is it a regular file or a folder, not a link, a socket or something that is gone by now? */
static bool is_wanted_kind(int folder, const struct dirent *entry, bool *is_folder)
{
    struct stat status;

    if (entry->d_type != DT_UNKNOWN) {
        *is_folder = entry->d_type == DT_DIR;
        return entry->d_type == DT_DIR || entry->d_type == DT_REG;
    }
    if (fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    *is_folder = S_ISDIR(status.st_mode);
    return S_ISDIR(status.st_mode) || S_ISREG(status.st_mode);
}

static bool is_of_interest(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, ".git") != 0;
}

static hf_status list_folder(DIR *stream, struct names *names, hf_error *err)
{
    const struct dirent *entry;

    while ((entry = readdir(stream)) != NULL) {
        struct name name = {0};
        if (!is_of_interest(entry->d_name) ||
            !is_wanted_kind(dirfd(stream), entry, &name.is_folder))
            continue;
        name.text = strdup(entry->d_name);
        if (name.text == NULL ||
            !hf__grow(&names->items, &names->capacity, names->count + 1, sizeof *names->items)) {
            free(name.text);
            return hf__no_memory(err);
        }
        names->items[names->count++] = name;
    }
    if (names->count > 1)
        qsort(names->items, names->count, sizeof *names->items, by_text);
    return HF_OK;
}

static bool takes_file(const struct walk *walk, const char *name)
{
    if (hf__syntax_of(name) != NULL)
        return true;
    for (size_t i = 0; i < walk->walker->include_count; i++)
        if (walk->includes[i].glob != NULL &&
            hf__glob_matches(walk->includes[i].glob, walk->path.data + walk->prefix, name))
            return true;
    return false;
}

/* Folders with other people's code, by the names that package managers give them. */
static bool is_vendored(const char *name)
{
    static const char *const names[] = {
        "node_modules",  "vendor",        "third_party", "third-party", "bower_components",
        "site-packages", "dist-packages", ".venv",       "venv",        ".tox",
        "Pods",          ".yarn",         "deps"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* The path has the name at its end. */
static bool is_left_out(const struct walk *walk, const struct name *name)
{
    const hf__walker *walker = walk->walker;

    for (size_t i = 0; i < walker->exclude_count; i++)
        if (walk->excludes[i].glob != NULL &&
            hf__glob_matches(walk->excludes[i].glob, walk->path.data + walk->prefix, name->text))
            return true;
    if (walker->vendored || !name->is_folder || !is_vendored(name->text))
        return false;
    if (walker->vendored_out != NULL)
        ++*walker->vendored_out;
    return true;
}

static void warn(const struct walk *walk, const char *why)
{
    walk->walker->warn(walk->walker->arg, walk->path.data, why);
}

static hf_status walk_folder(struct walk *walk, int folder, const hf__gitignore *above,
                             const char *name);

static hf_status walk_name(struct walk *walk, int folder, const hf__gitignore *ignore,
                           const struct name *name)
{
    size_t length = walk->path.length;
    hf_status status = HF_OK;

    if (hf__gitignore_excludes(ignore, name->text, name->is_folder))
        return HF_OK;
    hf__buf_puts(&walk->path, name->text);
    if (walk->path.broken)
        return hf__no_memory(walk->err);
    if (is_left_out(walk, name)) {
        status = HF_OK;
    } else if (!name->is_folder) {
        if (takes_file(walk, name->text))
            status = walk->walker->file(walk->walker->arg, folder, name->text, walk->path.data,
                                        walk->err);
    } else if (walk->depth == DEPTH_MAX) {
        warn(walk, "too many folders in each other, left out");
    } else {
        int fd = openat(folder, name->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            warn(walk, strerror(errno));
        else
            status = walk_folder(walk, fd, ignore, name->text);
    }
    walk->path.length = length;
    walk->path.data[length] = '\0';
    return status;
}

static hf_status walk_names(struct walk *walk, DIR *stream, const hf__gitignore *ignore)
{
    struct names names = {0};
    hf_status status = list_folder(stream, &names, walk->err);

    for (size_t i = 0; status == HF_OK && i < names.count; i++)
        status = walk_name(walk, dirfd(stream), ignore, &names.items[i]);
    free_names(&names);
    return status;
}

/* Closes the descriptor. A repository inside of another one has only its own patterns. */
static hf_status walk_folder(struct walk *walk, int folder, const hf__gitignore *above,
                             const char *name)
{
    hf__gitignore *ignore = NULL;
    DIR *stream = fdopendir(folder);
    hf_status status;

    if (stream == NULL) {
        close(folder);
        return hf__no_memory(walk->err);
    }
    if (walk->depth > 0 && faccessat(folder, ".git", F_OK, 0) == 0)
        above = NULL;
    if (walk->path.length > 0 && walk->path.data[walk->path.length - 1] != '/')
        hf__buf_puts(&walk->path, "/");
    if (walk->depth == 0)
        walk->prefix = walk->path.length;
    walk->depth++;
    status = hf__gitignore_open(above, folder, name, &ignore, walk->err);
    if (status == HF_OK)
        status = walk_names(walk, stream, ignore);
    walk->depth--;
    hf__gitignore_free(ignore);
    closedir(stream);
    return status;
}

static bool has_git(const char *folder)
{
    char path[PATH_MAX];

    return (size_t)snprintf(path, sizeof path, "%s/.git", folder) < sizeof path &&
           access(path, F_OK) == 0;
}

/* The length of the repository's root in an absolute path; 0: the path is in no repository. */
static size_t repository_root(const char *absolute)
{
    char folder[PATH_MAX];
    char *slash;

    snprintf(folder, sizeof folder, "%s", absolute);
    do {
        if (has_git(folder))
            return strlen(folder);
        slash = strrchr(folder, '/');
        if (slash != NULL)
            *slash = '\0';
    } while (slash != NULL && slash != folder);
    return 0;
}

static hf_status open_above(const hf__gitignore *above, const char *path, const char *name,
                            hf__gitignore **ignore, hf_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    hf_status status;

    if (fd < 0)
        return hf__gitignore_parse(above, name, "", 0, ignore, err);
    status = hf__gitignore_open(above, fd, name, ignore, err);
    close(fd);
    return status;
}

/* Reads the .gitignore files from the repository's root down to this folder, then walks it. */
static hf_status walk_below(struct walk *walk, int folder, char *absolute, size_t root,
                            const hf__gitignore *above, const char *name)
{
    size_t next = root + 1;
    hf__gitignore *ignore = NULL;
    hf_status status;

    if (root == 0 || root >= strlen(absolute))
        return walk_folder(walk, folder, above, name);

    char kept = absolute[root];
    absolute[root] = '\0';
    status = open_above(above, absolute, name, &ignore, walk->err);
    absolute[root] = kept;
    if (status != HF_OK) {
        close(folder);
        return status;
    }
    size_t end = next + strcspn(absolute + next, "/");
    char *part = strndup(absolute + next, end - next);
    if (part == NULL) {
        close(folder);
        status = hf__no_memory(walk->err);
    } else {
        status = walk_below(walk, folder, absolute, end, ignore, part);
    }
    free(part);
    hf__gitignore_free(ignore);
    return status;
}

static hf_status compile_globs(struct walk *walk, const char *const *globs, size_t count,
                               struct include **made)
{
    hf_status status = HF_OK;

    *made = calloc(count + 1, sizeof **made);
    if (*made == NULL)
        return hf__no_memory(walk->err);
    for (size_t i = 0; status == HF_OK && i < count; i++)
        status = hf__glob_compile(globs[i], strlen(globs[i]), &(*made)[i].glob, walk->err);
    return status;
}

static hf_status compile_includes(struct walk *walk)
{
    const hf__walker *walker = walk->walker;
    hf_status status =
        compile_globs(walk, walker->includes, walker->include_count, &walk->includes);

    return status == HF_OK
               ? compile_globs(walk, walker->excludes, walker->exclude_count, &walk->excludes)
               : status;
}

static void free_globs(struct include *globs, size_t count)
{
    for (size_t i = 0; globs != NULL && i < count; i++)
        hf__glob_free(globs[i].glob);
    free(globs);
}

static hf_status walk_root(struct walk *walk, int folder, const char *path)
{
    char *absolute = realpath(path, NULL);
    hf_status status = compile_includes(walk);

    if (strcmp(path, ".") != 0)
        hf__buf_puts(&walk->path, path);
    else
        hf__buf_puts(&walk->path, "");
    if (status == HF_OK && walk->path.broken)
        status = hf__no_memory(walk->err);
    if (status != HF_OK)
        close(folder);
    else if (absolute != NULL && strlen(absolute) < PATH_MAX)
        status = walk_below(walk, folder, absolute, repository_root(absolute), NULL, "");
    else
        status = walk_folder(walk, folder, NULL, "");
    free_globs(walk->includes, walk->walker->include_count);
    free_globs(walk->excludes, walk->walker->exclude_count);
    hf__buf_free(&walk->path);
    free(absolute);
    return status;
}

hf_status hf__walk(const hf__walker *walker, const char *path, hf_error *err)
{
    struct walk walk = {.walker = walker, .err = err};
    struct stat status;

    if (stat(path, &status) != 0)
        return hf__fail_errno(err, HF_INVALID, errno, "cannot read %s", path);
    if (!S_ISDIR(status.st_mode))
        return walker->file(walker->arg, AT_FDCWD, path, path, err);

    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return hf__fail_errno(err, HF_INVALID, errno, "cannot read %s", path);
    return walk_root(&walk, folder, path);
}
