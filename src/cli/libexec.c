#include "cli/libexec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char prefix[] = "holdfast-";

enum { FOLDERS_MAX = 3 };

struct folders {
    char own[PATH_MAX];                 /* of the running executable */
    char moved[PATH_MAX];               /* the libexec folder, by its relative path from there */
    const char *items[FOLDERS_MAX + 1]; /* in the order of the search; NULL ends them */
};

/* The folder of the running executable. False without /proc. */
static bool own_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);

    if (length <= 0)
        return false;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    return true;
}

static void find_folders(struct folders *folders)
{
    const char *stated = getenv("HOLDFAST_LIBEXEC");
    const char **next = folders->items;

    if (stated != NULL && stated[0] != '\0') {
        *next++ = stated;
        *next = NULL;
        return;
    }
    if (own_folder(folders->own)) {
        *next++ = folders->own;
        int length = snprintf(folders->moved, sizeof folders->moved, "%s/%s", folders->own,
                              HOLDFAST_LIBEXEC_FROM_BIN);
        if (length > 0 && (size_t)length < sizeof folders->moved)
            *next++ = folders->moved;
    }
    *next++ = HOLDFAST_LIBEXECDIR;
    *next = NULL;
}

static bool is_program_name(const char *name)
{
    return name[0] != '\0' && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

/*
 * Finds the first file of that name, even one that cannot be run: the user should hear that it is
 * broken, and not get another one. Sets errno when it finds none.
 */
static bool find_program(const char *name, hf__buf *path)
{
    struct folders folders = {0};
    struct stat found;

    errno = ENOENT;
    if (!is_program_name(name))
        return false;
    find_folders(&folders);
    for (const char **folder = folders.items; *folder != NULL; folder++) {
        hf__buf_clear(path);
        hf__buf_printf(path, "%s/%s%s", *folder, prefix, name);
        if (path->broken)
            errno = ENOMEM;
        else if (stat(path->data, &found) == 0 && S_ISREG(found.st_mode))
            return true;
        else
            errno = ENOENT;
    }
    return false;
}

void exec_program(const char *name, char **argv)
{
    hf__buf path = {0};

    if (find_program(name, &path))
        execv(path.data, argv);
    int reason = errno;
    hf__buf_free(&path);
    errno = reason;
}

static bool has_name(char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is_runnable(int folder, const char *file)
{
    struct stat found;

    return fstatat(folder, file, &found, 0) == 0 && S_ISREG(found.st_mode) &&
           faccessat(folder, file, X_OK, 0) == 0;
}

static bool add_name(char ***names, size_t *count, const char *name)
{
    char **more = reallocarray(*names, *count + 2, sizeof *more);

    if (more == NULL)
        return false;
    *names = more;
    more[*count] = strdup(name);
    more[*count + 1] = NULL;
    return more[(*count)++] != NULL;
}

/* A folder that cannot be read counts as empty. False: no memory. */
static bool add_programs_of(const char *folder, char ***names, size_t *count)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    bool good = true;

    while (good && dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name + sizeof prefix - 1;
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0 && is_program_name(name) &&
            !has_name(*names, *count, name) && is_runnable(dirfd(dir), entry->d_name))
            good = add_name(names, count, name);
    }
    if (dir != NULL)
        closedir(dir);
    return good;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **find_programs(void)
{
    char **names = calloc(1, sizeof *names);
    struct folders folders = {0};
    size_t count = 0;
    bool good = names != NULL;

    find_folders(&folders);
    for (const char **folder = folders.items; good && *folder != NULL; folder++)
        good = add_programs_of(*folder, &names, &count);
    if (!good) {
        free_programs(names);
        return NULL;
    }
    qsort(names, count, sizeof *names, compare_names);
    return names;
}

void free_programs(char **names)
{
    for (char **name = names; name != NULL && *name != NULL; name++)
        free(*name);
    free(names);
}

static void read_all(int fd, hf__buf *answer)
{
    char piece[4096];
    ssize_t size;

    while ((size = read(fd, piece, sizeof piece)) > 0 || (size < 0 && errno == EINTR))
        if (size > 0)
            hf__buf_add(answer, piece, (size_t)size);
}

/* Its standard output goes to the pipe. Its messages on standard error are dropped. */
static bool start(const char *path, char *const argv[], int output, pid_t *pid)
{
    posix_spawn_file_actions_t actions;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    bool good =
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawn(pid, path, &actions, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return good;
}

static bool ended_well(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool ask_program(const char *name, char *const *arguments, hf__buf *answer)
{
    enum { MOST = 8 };
    char *argv[MOST + 2] = {(char *)name};
    for (size_t i = 0; i < MOST && arguments[i] != NULL; i++)
        argv[i + 1] = arguments[i];

    hf__buf path = {0};
    int ends[2] = {-1, -1};
    pid_t pid = 0;
    bool good = find_program(name, &path) && pipe2(ends, O_CLOEXEC) == 0 &&
                start(path.data, argv, ends[1], &pid);

    if (ends[1] >= 0)
        close(ends[1]);
    if (good) {
        read_all(ends[0], answer);
        good = ended_well(pid) && !answer->broken;
    }
    if (ends[0] >= 0)
        close(ends[0]);
    hf__buf_free(&path);
    return good;
}
