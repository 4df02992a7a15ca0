/* A network: its names are checked here, and its transactions and statements start here. */
#include "lib/ledgers/ledgers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "lib/ledgers/sql.h"

enum { NETWORK_MAX = 40, SCHEMA_MAX = 63, CURSOR_MAX = 127 };

#define SMALL "abcdefghijklmnopqrstuvwxyz"
#define LARGE "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_made_of(const char *name, const char *allowed, size_t most)
{
    size_t size = strlen(name);
    return size > 0 && size <= most && name[0] != '-' && name[strspn(name, allowed)] == '\0';
}

static hf_status check_network(const char *name, hf_error *err)
{
    char shown[64];
    if (name && is_made_of(name, SMALL DIGITS "_-", NETWORK_MAX))
        return HF_OK;
    hf_status status = name ? hf__fail(err, HF_INVALID, "'%s' is no name for a network",
                                       hf__show(shown, sizeof shown, name, strlen(name)))
                            : hf__fail(err, HF_INVALID, "the network needs a name");
    hf__hint(err, "small letters, digits, '_' and '-', at most %d, such as 'testnet'", NETWORK_MAX);
    return status;
}

/* Schemas that belong to PostgreSQL or to Holdfast. */
static bool is_taken(const char *schema)
{
    return strcmp(schema, "holdfast") == 0 || strcmp(schema, "information_schema") == 0 ||
           strncmp(schema, "pg_", 3) == 0;
}

static hf_status check_schema(const char *schema, hf_error *err)
{
    char shown[80];
    if (is_made_of(schema, SMALL LARGE DIGITS "_-", SCHEMA_MAX) && !is_taken(schema))
        return HF_OK;
    hf_status status = hf__fail(err, HF_INVALID, "'%s' is no schema for a network",
                                hf__show(shown, sizeof shown, schema, strlen(schema)));
    hf__hint(err, "letters, digits, '_' and '-', at most %d; not 'holdfast', nor a system's own",
             SCHEMA_MAX);
    return status;
}

hf_status hf__cursor_check_name(const char *name, hf_error *err)
{
    char shown[160];
    size_t size = name ? strlen(name) : 0;
    bool fit = size > 0 && size <= CURSOR_MAX && hf__utf8_valid(name, size);
    for (size_t i = 0; fit && i < size; i++)
        fit = (unsigned char)name[i] >= 0x20 && name[i] != 0x7f;
    if (fit)
        return HF_OK;
    hf_status status = hf__fail(err, HF_INVALID, "'%s' is no name for a cursor",
                                hf__show(shown, sizeof shown, name ? name : "", size));
    hf__hint(err, "UTF-8 without control characters, 1 to %d bytes", CURSOR_MAX);
    return status;
}

static hf_status take_cursor_names(hf_network *network, const hf_network_options *options,
                                   hf_error *err)
{
    const char *latest = options->latest_cursor ? options->latest_cursor : HF__LATEST_CURSOR;
    const char *oldest = options->oldest_cursor ? options->oldest_cursor : HF__OLDEST_CURSOR;
    hf_status status = hf__cursor_check_name(latest, err);
    if (status == HF_OK)
        status = hf__cursor_check_name(oldest, err);
    if (status == HF_OK && strcmp(latest, oldest) == 0)
        status = hf__fail(err, HF_INVALID, "latest and oldest cursor share the name '%s'", latest);
    if (status == HF_OK && (hf__cursor_is_own(latest) || hf__cursor_is_own(oldest)))
        status = hf__fail(err, HF_INVALID, "names that begin with 'holdfast.' are Holdfast's own");
    if (status != HF_OK)
        return status;
    (void)snprintf(network->latest, sizeof network->latest, "%s", latest);
    (void)snprintf(network->oldest, sizeof network->oldest, "%s", oldest);
    return HF_OK;
}

static hf_status take_keys(hf_network *network, hf_error *err)
{
    char label[96];
    (void)snprintf(network->label, sizeof network->label, "wallet-backend-ingest-%s",
                   network->name);
    hf_status status =
        hf_key_derive(HF_FNV1A64, network->label, strlen(network->label), &network->lock_key, err);
    int size = snprintf(label, sizeof label, "holdfast:coverage:%s", network->schema);
    if (status == HF_OK)
        status = hf_key_derive(HF_SHA256, label, (size_t)size, &network->coverage_key, err);
    size = snprintf(label, sizeof label, "holdfast:partitions:%s", network->schema);
    if (status == HF_OK)
        status = hf_key_derive(HF_SHA256, label, (size_t)size, &network->partitions_key, err);
    return status;
}

static hf_status take_names(hf_network *network, const hf_network_options *options, hf_error *err)
{
    hf_status status = check_network(options->name, err);
    if (status != HF_OK)
        return status;
    (void)snprintf(network->name, sizeof network->name, "%s", options->name);
    if (options->schema)
        status = check_schema(options->schema, err);
    if (status != HF_OK)
        return status;
    if (options->schema)
        (void)snprintf(network->schema, sizeof network->schema, "%s", options->schema);
    else
        (void)snprintf(network->schema, sizeof network->schema, HF__SCHEMA_PREFIX "%s",
                       options->name);
    if (!network->local)
        (void)snprintf(network->prefix, sizeof network->prefix, "\"%s\".", network->schema);
    status = take_cursor_names(network, options, err);
    return status == HF_OK ? take_keys(network, err) : status;
}

hf_status hf_network_open(hf_store *store, const hf_network_options *given, hf_network **out,
                          hf_error *err)
{
    hf_network_options options;
    if (!store || !given || !out)
        return hf__fail(err, HF_INVALID, "hf_network_open needs a store and options");
    hf_status copied =
        hf__options_copy(&options, sizeof options, given, offsetof(hf_network_options, schema),
                         "hf_network_options", "HF_NETWORK_OPTIONS_INIT", err);
    if (copied != HF_OK)
        return copied;
    hf_network *network = calloc(1, sizeof *network);
    if (!network)
        return hf__no_memory(err);
    network->store = store;
    network->local = hf_store_is_local(store);
    network->read_wait_ms = options.read_wait_ms;
    hf_status status = take_names(network, &options, err);
    if (status == HF_OK)
        *out = network;
    else
        free(network);
    return status;
}

void hf_network_free(hf_network *network)
{
    free(network);
}

/* ---- transactions ---------------------------------------------------------------------------- */

hf_tx_options hf__network_tx_options(const hf_network *network)
{
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    options.isolation = HF_READ_COMMITTED;
    options.database = network->local ? network->schema : NULL;
    return options;
}

hf_status hf__network_transact(hf_network *network, hf_tx_fn *fn, void *arg, hf_error *err)
{
    hf_tx_options options = hf__network_tx_options(network);
    return hf_transact(network->store, &options, fn, arg, err);
}

/* Opening a file that does not exist would create it. */
static bool has_database(const hf_network *network)
{
    const char *folder = hf_store_name(network->store) + strlen("local:");
    hf__buf path = {0};
    if (!network->local)
        return true;
    hf__buf_printf(&path, "%s/%s.db", folder, network->schema);
    bool there = path.broken || access(path.data, F_OK) == 0 || errno != ENOENT;
    hf__buf_free(&path);
    return there;
}

hf_status hf__tx_bound_waits(hf_tx *tx, int64_t wait_ms, hf_error *err)
{
    char ms[24];
    const hf__sql_part parts[] = {{"ms", ms}, {0}};
    (void)snprintf(ms, sizeof ms, "%" PRId64, wait_ms);
    return hf__tx_queue_sql(tx, &hf__sql_ledgers_lock_timeout, parts, 0, NULL, err);
}

/* A transaction that only reads, and waits for nobody who locks a table for long. */
struct view {
    const char *schema;
    int64_t wait_ms;
    hf_tx_fn *fn;
    void *arg;
    char locked[240]; /* which table, and by whom; "": none is any more */
};

static hf_status read_bounded(hf_tx *tx, void *arg, hf_error *err)
{
    const struct view *view = arg;
    hf_status status = hf__tx_bound_waits(tx, view->wait_ms, err);
    return status == HF_OK ? view->fn(tx, view->arg, err) : status;
}

static hf_status find_locker(hf_tx *tx, void *arg, hf_error *err)
{
    struct view *view = arg;
    hf_rows *rows = NULL;
    hf_status status = hf__tx_query_sql(tx, &hf__sql_ledgers_table_locker, NULL, 1,
                                        &HF_TEXT(view->schema), &rows, err);
    if (status == HF_OK && hf_rows_count(rows) > 0)
        (void)snprintf(view->locked, sizeof view->locked, "%s", hf_rows_value(rows, 0, 0, NULL));
    hf_rows_free(rows);
    return status;
}

hf_status hf__schema_read(hf_store *store, const char *schema, int64_t wait_ms, hf_tx_fn *fn,
                          void *arg, hf_error *err)
{
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    struct view view = {.schema = schema, .wait_ms = wait_ms, .fn = fn, .arg = arg};
    hf_error local_error = {0};
    hf_error *why = err ? err : &local_error;
    options.read_only = true;
    options.isolation = HF_REPEATABLE_READ;
    options.database = hf_store_is_local(store) ? schema : NULL;
    if (wait_ms <= 0 || hf_store_is_local(store))
        return hf_transact(store, &options, fn, arg, err);
    options.max_attempts = 1;
    hf_status status = hf_transact(store, &options, read_bounded, &view, why);
    if (status == HF_OK || strcmp(why->sqlstate, "55P03") != 0)
        return status;
    (void)!hf_transact(store, &options, find_locker, &view, NULL);
    status = view.locked[0] ? hf__fail(err, HF_NOT_ACQUIRED, "%s.%s", schema, view.locked)
                            : hf__fail(err, HF_NOT_ACQUIRED, "a table of %s was locked", schema);
    hf__hint(err, "nothing was read; try again when that transaction has ended");
    return status;
}

hf_status hf__network_read(hf_network *network, hf_tx_fn *fn, void *arg, bool *there, hf_error *err)
{
    *there = has_database(network);
    return *there ? hf__schema_read(network->store, network->schema, network->read_wait_ms, fn, arg,
                                    err)
                  : HF_OK;
}

/* ---- statements ------------------------------------------------------------------------------ */

hf_status hf__network_query(hf_tx *tx, const hf_network *network, const hf__sql *sql, size_t count,
                            const hf_value *values, hf_rows **rows, hf_error *err)
{
    const hf__sql_part parts[] = {{"prefix", network->prefix}, {0}};
    return hf__tx_query_sql(tx, sql, parts, count, values, rows, err);
}

hf_status hf__network_queue(hf_tx *tx, const hf_network *network, const hf__sql *sql, size_t count,
                            const hf_value *values, hf_error *err)
{
    const hf__sql_part parts[] = {{"prefix", network->prefix}, {0}};
    return hf__tx_queue_sql(tx, sql, parts, count, values, err);
}

hf_status hf__network_lock(hf_tx *tx, const hf_network *network, int64_t key, hf_error *err)
{
    char number[24];
    hf_value value = hf__number_value(number, key);
    if (network->local)
        return HF_OK; /* SQLite has one writer at a time */
    return hf__tx_queue_sql(tx, &hf__sql_ledgers_lock, NULL, 1, &value, err);
}

bool hf__is_missing_table(const hf_error *err)
{
    return strcmp(err->sqlstate, "42P01") == 0 || strcmp(err->sqlstate, "3F000") == 0;
}
