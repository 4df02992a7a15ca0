#include "programs/ingest/sources/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int hf__file_order(const char *a, const char *b)
{
    int order = strverscmp(a, b);

    return order != 0 ? order : strcmp(a, b);
}

static int by_name(const void *a, const void *b)
{
    return hf__file_order(*(char *const *)a, *(char *const *)b);
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
    char **grown = path != NULL ? reallocarray(list->paths, list->count + 1, sizeof *grown) : NULL;

    if (grown == NULL) {
        free(path);
        return hf__fail(err, HF_NO_MEMORY, "out of memory for a list of files");
    }
    list->paths = grown;
    list->paths[list->count++] = path;
    return HF_OK;
}

/* A pipe or a folder of that name is none of ours. */
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

hf_status hf__file_list_read(hf__file_list *list, const char *folder, hf_error *err)
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
    if (status != HF_OK) {
        hf__file_list_free(&found);
        return status;
    }
    if (found.count > 1)
        qsort(found.paths, found.count, sizeof *found.paths, by_name);
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
        free(list->paths[i]);
    free(list->paths);
    *list = (hf__file_list){0};
}
