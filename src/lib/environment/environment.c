#include "lib/environment/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"

/* ---- which store ----------------------------------------------------------------------------- */

/* Variables that people set only when they mean a PostgreSQL server. */
static const char *const libpq_variables[] = {
    "PGSERVICE", "PGHOST",     "PGHOSTADDR", "PGPORT",        "PGDATABASE",
    "PGUSER",    "PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE",
};

static const char *libpq_variable_set(void)
{
    for (size_t i = 0; i < sizeof libpq_variables / sizeof libpq_variables[0]; i++)
        if (getenv(libpq_variables[i]) != NULL)
            return libpq_variables[i];
    return NULL;
}

/* A script may pass on a variable that is not set: that must not lead to another store. */
static hf_status take_text(const char *variable, const char *text, char **url, hf_error *err)
{
    if (text[0] == '\0') {
        hf_status status = hf__fail(err, HF_CONFIG, "%s is empty", variable);
        hf__hint(err, "give it a URL, or leave it out to use the next choice");
        return status;
    }
    *url = strdup(text);
    return *url != NULL ? HF_OK : hf__no_memory(err);
}

/* Service managers and Kubernetes hand secrets over as files. The URL is the first line. */
static hf_status take_file(const char *variable, const char *path, char **url, hf_error *err)
{
    enum { URL_MAX = 64 * 1024 };
    hf__buf text = {0};
    hf_status status = hf__read_file(path, URL_MAX, &text, HF_CONFIG, err);

    if (status == HF_OK && text.length > URL_MAX)
        status = hf__fail(err, HF_CONFIG, "the file of %s is too large for a URL", variable);
    if (status == HF_OK) {
        if (text.data != NULL)
            text.data[strcspn(text.data, "\r\n")] = '\0';
        status = take_text(variable, text.data != NULL ? text.data : "", url, err);
    }
    hf__buf_free(&text);
    return status;
}

/* The XDG specification says to ignore a relative path. */
static hf_status take_local(char **url, hf_error *err)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *user = getenv("HOME");
    hf__buf text = {0};

    if (state != NULL && state[0] == '/') {
        hf__buf_printf(&text, "local:%s/holdfast", state);
    } else if (user != NULL && user[0] == '/') {
        hf__buf_printf(&text, "local:%s/.local/state/holdfast", user);
    } else {
        hf_status status = hf__fail(err, HF_CONFIG, "no store: HOME is not set");
        hf__hint(err, "give a URL (--url), or set HOLDFAST_URL");
        return status;
    }
    if (text.broken) {
        hf__buf_free(&text);
        return hf__no_memory(err);
    }
    *url = text.data;
    return HF_OK;
}

/* The local store is chosen only when nothing points to PostgreSQL. */
hf_status hf__environment_url(char **url, const char **variable, hf_error *err)
{
    typedef hf_status take_fn(const char *, const char *, char **, hf_error *);
    static const struct {
        const char *name;
        take_fn *take;
    } urls[] = {
        {"HOLDFAST_URL", take_text},
        {"HOLDFAST_URL_FILE", take_file},
        {"DATABASE_URL", take_text},
    };

    *url = NULL;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        const char *text = getenv(*variable = urls[i].name);
        if (text != NULL)
            return urls[i].take(urls[i].name, text, url, err);
    }
    *variable = libpq_variable_set();
    return *variable != NULL ? take_text(*variable, "postgresql://", url, err)
                             : take_local(url, err);
}

hf_status hf__environment_options(hf_store_options *options, hf_error *err)
{
    const char *pool = getenv("HOLDFAST_SESSION_POOL");
    const char *machine = getenv("HOLDFAST_MACHINE");
    int64_t number = 0;

    options->session_pool = options->session_pool || (pool != NULL && strcmp(pool, "1") == 0);
    if (machine == NULL || options->machine != 0)
        return HF_OK; /* without one it is leased from the store */
    if (hf__parse_int64(machine, "HOLDFAST_MACHINE", 1, 1023, &number, err) != HF_OK) {
        if (err != NULL)
            err->code = HF_CONFIG; /* the caller is not at fault */
        return HF_CONFIG;
    }
    options->machine = (int)number;
    return HF_OK;
}

hf_status hf__environment_blame(const char *variable, hf_error *err)
{
    hf_error plain = *err;
    hf_status code = plain.code == HF_INVALID ? HF_CONFIG : plain.code;

    if (variable == NULL)
        return plain.code;
    hf_status status = hf__fail(err, code, "%s (the store is from %s)", plain.message, variable);
    hf__hint(err, "%s", plain.hint);
    memcpy(err->sqlstate, plain.sqlstate, sizeof err->sqlstate);
    return status;
}

/* ---- which registry -------------------------------------------------------------------------- */

enum { SHOWN_MAX = 200 };

static const char *show(char out[SHOWN_MAX], const char *path)
{
    return hf__show(out, SHOWN_MAX, path, strlen(path));
}

/* Returns the errno that reading the file would fail with, or 0. */
static int obstacle_to(const char *path)
{
    struct stat found;

    if (access(path, R_OK) != 0 || stat(path, &found) != 0)
        return errno;
    return S_ISDIR(found.st_mode) ? EISDIR : 0;
}

static hf_status refuse_file(const char *path, const char *why, hf_error *err)
{
    char shown[SHOWN_MAX];

    return hf__fail(err, HF_CONFIG, "the registry %s is not used: %s", show(shown, path), why);
}

/* Everybody could change which key a name stands for, and so let two holders in. */
static hf_status check_writers(const char *path, const struct stat *file, hf_error *err)
{
    if ((file->st_mode & S_IWOTH) == 0 || !S_ISREG(file->st_mode))
        return HF_OK;
    hf_status status = refuse_file(path, "everybody may write to it", err);
    hf__hint(err, "chmod o-w it");
    return status;
}

static bool is_ours(const struct stat *file)
{
    return file->st_uid == 0 || file->st_uid == geteuid();
}

/* Of a file that was found, not named. A link of somebody else's counts as his file. */
static hf_status check_owner(const char *path, hf_error *err)
{
    char why[64];
    struct stat link = {0}, file = {0};

    if (lstat(path, &link) != 0 || stat(path, &file) != 0)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot read the registry %s", path);
    if (is_ours(&link) && is_ours(&file))
        return check_writers(path, &file, err);
    (void)snprintf(why, sizeof why, "it belongs to the user %lu, not to you or root",
                   (unsigned long)(is_ours(&link) ? file.st_uid : link.st_uid));
    hf_status status = refuse_file(path, why, err);
    hf__hint(err, "name it to use it all the same (--registry %s); %s= (empty) does without", path,
             HF__REGISTRY_VARIABLE);
    return status;
}

hf_status hf__registry_named(const char *chooser, const char *named, char **path, hf_error *err)
{
    char shown[SHOWN_MAX];
    int obstacle = obstacle_to(named);

    if (obstacle != 0) {
        hf_status status =
            hf__fail_errno(err, HF_CONFIG, obstacle, "cannot read the registry %s (from %s)",
                           show(shown, named), chooser);
        hf__hint(err, "name a file that is there; %s= (empty) does without a registry",
                 HF__REGISTRY_VARIABLE);
        return status;
    }
    struct stat found = {0};
    hf_status status = stat(named, &found) == 0 ? check_writers(named, &found, err) : HF_OK;
    if (status != HF_OK)
        return status;
    *path = strdup(named);
    return *path != NULL ? HF_OK : hf__no_memory(err);
}

static bool is_file(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

/* How many folders are above this one, which is an absolute path. */
static size_t depth_of(const char *folder)
{
    size_t depth = 0;

    for (const char *slash = folder; (slash = strchr(slash, '/')) != NULL; slash++)
        depth += slash[1] != '\0';
    return depth;
}

/*
 * The path stays relative, as people would write it. There is no registry when the working folder
 * was deleted or is outside of the root folder: getcwd then gives no absolute path.
 */
static hf_status search_upwards(char **path, hf_error *err)
{
    char *folder = getcwd(NULL, 0);
    hf__buf candidate = {0};

    if (folder == NULL || folder[0] != '/') {
        hf_status status = folder == NULL && errno == ENOMEM ? hf__no_memory(err) : HF_OK;
        free(folder);
        return status;
    }
    size_t depth = depth_of(folder);
    free(folder);
    for (size_t up = 0; up <= depth; up++) {
        hf__buf_clear(&candidate);
        for (size_t i = 0; i < up; i++)
            hf__buf_puts(&candidate, "../");
        hf__buf_puts(&candidate, HF__REGISTRY_FILE);
        if (candidate.broken)
            break;
        if (is_file(candidate.data)) {
            *path = candidate.data;
            return HF_OK;
        }
    }
    hf_status status = candidate.broken ? hf__no_memory(err) : HF_OK;
    hf__buf_free(&candidate);
    return status;
}

static hf_status find_registry(char **path, hf_error *err)
{
    hf_status status = search_upwards(path, err);

    if (status == HF_OK && *path != NULL)
        status = check_owner(*path, err);
    if (status != HF_OK) {
        free(*path);
        *path = NULL;
    }
    return status;
}

hf_status hf__environment_registry(char **path, hf_error *err)
{
    const char *named = getenv(HF__REGISTRY_VARIABLE);

    *path = NULL;
    if (named == NULL)
        return find_registry(path, err);
    return named[0] != '\0' ? hf__registry_named(HF__REGISTRY_VARIABLE, named, path, err) : HF_OK;
}
