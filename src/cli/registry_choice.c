#include "cli/registry_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/load.h"

static const char file_name[] = "locks.yaml";
static const char variable[] = "HOLDFAST_REGISTRY";

static hf_status no_memory(hf_error *err)
{
    return hf__fail(err, HF_NO_MEMORY, "out of memory");
}

/* What is in the way of reading it, as errno says it; 0: nothing. */
static int obstacle_to(const char *path)
{
    struct stat found;

    if (access(path, R_OK) != 0 || stat(path, &found) != 0)
        return errno;
    return S_ISDIR(found.st_mode) ? EISDIR : 0;
}

/* chooser: the option or the variable, for messages. */
static hf_status take_named(const char *chooser, const char *named, char **path, hf_error *err)
{
    char shown[SHOWN_MAX];
    int obstacle = obstacle_to(named);

    if (obstacle != 0) {
        hf_status status =
            hf__fail_errno(err, HF_CONFIG, obstacle, "cannot read the registry %s (from %s)",
                           show_argument(shown, named), chooser);
        hf__hint(err, "name a file that is there; %s= (empty) does without a registry", variable);
        return status;
    }
    *path = strdup(named);
    return *path != NULL ? HF_OK : no_memory(err);
}

static bool is_file(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

/* How many folders are above this one; 0 too where that cannot be known. */
static size_t depth_of(const char *folder)
{
    size_t depth = 0;

    for (const char *slash = folder; (slash = strchr(slash, '/')) != NULL; slash++)
        depth += slash[1] != '\0';
    return depth;
}

/*
 * The path stays relative, as people would write it. A working folder that is gone, or that is
 * outside of this root, has no registry.
 */
static hf_status search_upwards(char **path, hf_error *err)
{
    char *folder = getcwd(NULL, 0);
    hf__buf candidate = {0};

    if (folder == NULL || folder[0] != '/') {
        hf_status status = folder == NULL && errno == ENOMEM ? no_memory(err) : HF_OK;
        free(folder);
        return status;
    }
    size_t depth = depth_of(folder);
    free(folder);
    for (size_t up = 0; up <= depth; up++) {
        hf__buf_clear(&candidate);
        for (size_t i = 0; i < up; i++)
            hf__buf_puts(&candidate, "../");
        hf__buf_puts(&candidate, file_name);
        if (candidate.broken)
            break;
        if (is_file(candidate.data)) {
            *path = candidate.data;
            return HF_OK;
        }
    }
    hf_status status = candidate.broken ? no_memory(err) : HF_OK;
    hf__buf_free(&candidate);
    return status;
}

hf_status choose_registry(const struct common *common, char **path, hf_error *err)
{
    const char *from_environment = getenv(variable);

    *path = NULL;
    if (common->registry != NULL)
        return take_named("--registry", common->registry, path, err);
    if (from_environment == NULL)
        return search_upwards(path, err);
    if (from_environment[0] == '\0')
        return HF_OK;
    return take_named(variable, from_environment, path, err);
}

hf_status demand_registry(const struct common *common, char **path, hf_error *err)
{
    hf_status status = choose_registry(common, path, err);

    if (status != HF_OK || *path != NULL)
        return status;
    const char *switched_off = getenv(variable);
    if (switched_off != NULL)
        status = hf__fail(err, HF_CONFIG, "no registry: %s is empty", variable);
    else
        status = hf__fail(err, HF_CONFIG, "no registry: there is no %s here or in a folder above",
                          file_name);
    hf__hint(err, "give --registry FILE, or set %s", variable);
    return status;
}

hf_status open_registry(const struct common *common, hf_registry **registry, hf_error *err)
{
    char *path = NULL;
    hf_status status = choose_registry(common, &path, err);

    *registry = NULL;
    if (status == HF_OK && path != NULL) {
        status = load_libyaml(err);
        if (status == HF_OK)
            status = load_libcrypto(err);
        if (status == HF_OK)
            status = hf_registry_read(path, registry, err);
    }
    free(path);
    return status;
}
