#include "cli/libexec.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

static const char prefix[] = "holdfast-";

static const char *program_folder(void)
{
    const char *folder = getenv("HOLDFAST_LIBEXEC");

    return folder != NULL && folder[0] != '\0' ? folder : HOLDFAST_LIBEXECDIR;
}

static bool is_program_name(const char *name)
{
    return name[0] != '\0' && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

void exec_program(const char *name, char **argv)
{
    hf__buf path = {0};

    if (!is_program_name(name)) {
        errno = ENOENT;
        return;
    }
    hf__buf_printf(&path, "%s/%s%s", program_folder(), prefix, name);
    errno = ENOMEM;
    if (!path.broken)
        execv(path.data, argv);
    int reason = errno;
    hf__buf_free(&path);
    errno = reason;
}

static int is_program(const struct dirent *entry)
{
    return strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0 &&
           is_program_name(entry->d_name + sizeof prefix - 1);
}

void list_programs(FILE *out)
{
    struct dirent **entries = NULL;
    int count = scandir(program_folder(), &entries, is_program, alphasort);

    if (count > 0)
        fprintf(out, "\nPrograms:\n");
    for (int i = 0; i < count; i++) {
        fprintf(out, "  %s\n", entries[i]->d_name + sizeof prefix - 1);
        free(entries[i]);
    }
    free(entries);
}
