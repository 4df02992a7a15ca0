#include "cli/choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/load.h"

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

static hf_status take(struct store_choice *choice, const char *variable, hf__buf *url,
                      hf_error *err)
{
    if (url->broken) {
        hf__buf_free(url);
        return hf__no_memory(err);
    }
    choice->variable = variable;
    choice->url = url->data;
    return HF_OK;
}

static hf_status take_text(struct store_choice *choice, const char *variable, const char *text,
                           hf_error *err)
{
    hf__buf url = {0};

    if (text[0] == '\0') {
        /* A script may say --url "$URL" with URL unset: that must not lead to another store. */
        hf_status status = variable != NULL ? hf__fail(err, HF_CONFIG, "%s is empty", variable)
                                            : hf__fail(err, HF_INVALID, "--url is empty");
        hf__hint(err, "give it a URL, or leave it out to use the next choice");
        return status;
    }
    hf__buf_puts(&url, text);
    return take(choice, variable, &url, err);
}

/* The XDG specification says to ignore a relative path. */
static hf_status take_local(struct store_choice *choice, hf_error *err)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    hf__buf url = {0};

    if (state != NULL && state[0] == '/') {
        hf__buf_printf(&url, "local:%s/holdfast", state);
    } else if (home != NULL && home[0] == '/') {
        hf__buf_printf(&url, "local:%s/.local/state/holdfast", home);
    } else {
        hf_status status = hf__fail(err, HF_CONFIG, "no store: HOME is not set");
        hf__hint(err, "give --url or set HOLDFAST_URL");
        return status;
    }
    return take(choice, NULL, &url, err);
}

/* The local store is chosen only when nothing points to PostgreSQL. */
static hf_status choose_store(const struct common *common, struct store_choice *choice,
                              hf_error *err)
{
    const char *text = NULL;

    *choice = (struct store_choice){0};
    if (common->url != NULL)
        return take_text(choice, NULL, common->url, err);
    if ((text = getenv("HOLDFAST_URL")) != NULL)
        return take_text(choice, "HOLDFAST_URL", text, err);
    if ((text = getenv("DATABASE_URL")) != NULL)
        return take_text(choice, "DATABASE_URL", text, err);
    if ((text = libpq_variable_set()) != NULL)
        return take_text(choice, text, "postgresql://", err);
    return take_local(choice, err);
}

void store_choice_free(struct store_choice *choice)
{
    free(choice->url);
    choice->url = NULL;
}

static bool session_pool_stated(const struct common *common)
{
    const char *text = getenv("HOLDFAST_SESSION_POOL");

    return common->session_pool || (text != NULL && strcmp(text, "1") == 0);
}

/* Reads the machine number of minted ids. Without one it stays 0: leased from the store. */
static hf_status read_machine(int *machine, hf_error *err)
{
    const char *text = getenv("HOLDFAST_MACHINE");
    int64_t number = 0;

    if (text == NULL || *machine != 0)
        return HF_OK;
    if (hf__parse_int64(text, "HOLDFAST_MACHINE", 1, 1023, &number, err) != HF_OK) {
        if (err != NULL)
            err->code = HF_CONFIG; /* the command line is not at fault */
        return HF_CONFIG;
    }
    *machine = (int)number;
    return HF_OK;
}

hf_status prepare_store(const struct invocation *in, hf_store_options *options,
                        struct store_choice *choice, hf_error *err)
{
    hf_status status = read_machine(&options->machine, err);

    *choice = (struct store_choice){0};
    if (status == HF_OK)
        status = choose_store(&in->common, choice, err);
    if (status != HF_OK)
        return status;
    options->url = choice->url;
    options->session_pool = session_pool_stated(&in->common);
    options->log = report_log;
    options->log_arg = (void *)&in->report;
    status = strncmp(choice->url, "local:", 6) == 0 ? load_sqlite(err) : load_libpq(err);
    return status == HF_OK ? load_libcrypto(err) : status;
}

hf_status name_store_choice(const struct store_choice *choice, hf_error *err)
{
    hf_error plain = *err;
    hf_status code = plain.code == HF_INVALID ? HF_CONFIG : plain.code;

    if (choice->variable == NULL)
        return plain.code;
    hf_status status =
        hf__fail(err, code, "%s (the store is from %s)", plain.message, choice->variable);
    hf__hint(err, "%s", plain.hint);
    memcpy(err->sqlstate, plain.sqlstate, sizeof err->sqlstate);
    return status;
}

hf_status open_store(const struct invocation *in, hf_store_options *options, hf_store **store,
                     hf_error *err)
{
    struct store_choice choice;
    hf_status status = prepare_store(in, options, &choice, err);

    if (status == HF_OK)
        status = hf_store_open(options, store, err);
    if (status == HF_OK && in->common.verbose)
        report_note(&in->report, "store: %s (%s)", hf_store_name(*store),
                    choice.variable != NULL  ? choice.variable
                    : in->common.url != NULL ? "--url"
                                             : "by default");
    options->url = NULL;
    if (status != HF_OK && choice.url != NULL)
        status = name_store_choice(&choice, err);
    store_choice_free(&choice);
    return status;
}

/* ---- which registry -------------------------------------------------------------------------- */

static const char file_name[] = "locks.yaml";
static const char variable[] = "HOLDFAST_REGISTRY";

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
    hf_status status = hf__fail(err, HF_CONFIG, "the registry %s is not used: %s",
                                show_argument(shown, path), why);

    return status;
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
    hf__hint(err, "--registry %s uses it all the same; %s= (empty) does without", path, variable);
    return status;
}

/* chooser is the option or the variable that named the file, for messages. */
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
        hf__buf_puts(&candidate, file_name);
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

const char *registry_chooser(const struct common *common)
{
    if (common->registry != NULL)
        return "--registry";
    return getenv(variable) != NULL ? variable : "found here or above";
}

/*
 * *path is NULL when there is no registry; the caller frees it. A file that was named but cannot be
 * read is an error.
 */
static hf_status choose_registry(const struct common *common, char **path, hf_error *err)
{
    const char *from_environment = getenv(variable);

    *path = NULL;
    if (common->registry != NULL)
        return take_named("--registry", common->registry, path, err);
    if (from_environment == NULL)
        return find_registry(path, err);
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

static void tell_registry(const struct common *common, const hf_registry *registry)
{
    struct report report = report_to_stderr(common->json);
    char shown[SHOWN_MAX];

    if (registry != NULL)
        report_note(&report, "registry: %s (%s)", show_argument(shown, hf_registry_path(registry)),
                    registry_chooser(common));
    else
        report_note(&report, "registry: none");
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
    if (status == HF_OK && common->verbose)
        tell_registry(common, *registry);
    free(path);
    return status;
}

/* ---- which network --------------------------------------------------------------------------- */

enum { TRANSACTIONS = 40 }; /* enough for the workers of an ingest and what supervises them */

/* The names of stellar/wallet-backend, whose network locks are ours. */
static const char *const their_cursors[] = {"latest_ingest_ledger", "oldest_ingest_ledger"};

struct cursors_there {
    bool ours, theirs;
};

static void see_cursor(void *arg, const char *name, int64_t value)
{
    struct cursors_there *there = arg;

    (void)value;
    there->ours = there->ours || strcmp(name, "latestLedgerCursor") == 0;
    there->theirs = there->theirs || strcmp(name, their_cursors[0]) == 0;
}

hf_status recognise_cursors(hf_store *store, hf_network_options *options, hf_error *err)
{
    struct cursors_there there = {0};
    hf_network *network = NULL;

    if (options->latest_cursor != NULL || options->oldest_cursor != NULL)
        return HF_OK;
    hf_status status = hf_network_open(store, options, &network, err);
    if (status == HF_OK)
        status = hf_cursor_list(network, see_cursor, &there, err);
    hf_network_free(network);
    if (status == HF_OK && there.theirs && !there.ours) {
        options->latest_cursor = their_cursors[0];
        options->oldest_cursor = their_cursors[1];
    }
    return status;
}

hf_status open_network(const struct invocation *in, const char *application,
                       const struct network_values *values, int64_t read_wait_ms, hf_store **store,
                       hf_network **network, hf_error *err)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_network_options of_network = HF_NETWORK_OPTIONS_INIT;

    if (values->network == NULL) {
        hf_status status = hf__fail(err, HF_INVALID, "--network is missing");
        hf__hint(err, "name the network, such as testnet");
        return status;
    }
    options.application = application;
    options.max_transactions = TRANSACTIONS;
    hf_status status = open_store(in, &options, store, err);
    if (status != HF_OK)
        return status;
    of_network.name = values->network;
    of_network.schema = values->schema;
    of_network.latest_cursor = values->latest;
    of_network.oldest_cursor = values->oldest;
    of_network.read_wait_ms = read_wait_ms;
    status = recognise_cursors(*store, &of_network, err);
    return status == HF_OK ? hf_network_open(*store, &of_network, network, err) : status;
}

int with_network(const struct invocation *in, const char *application,
                 const struct network_values *values, network_fn *fn, void *arg)
{
    hf_store *store = NULL;
    hf_network *network = NULL;
    hf_error err;
    hf_status status = open_network(in, application, values, READ_WAIT_MS, &store, &network, &err);
    int code = status == HF_OK ? fn(in, store, network, arg) : report_error(&in->report, &err);

    hf_network_free(network);
    hf_store_close(store);
    return code;
}
