/*
 * The tables of a network. Those that do not exist are created, under a lock, so that several
 * processes may do it at once. Those that an older deployment has made stay as they are; they only
 * have to fit.
 */
#include "lib/ledgers/ledgers.h"

#include <stdio.h>
#include <string.h>

#include "lib/ledgers/sql.h"

static const struct table {
    const char *name;
    const hf__sql *create;
    const hf__sql *index; /* or NULL */
} tables[] = {
    {"ingest_store", &hf__sql_ledgers_create_store, NULL},
    {"ingest_coverage", &hf__sql_ledgers_create_coverage, NULL},
    {"ledgers", &hf__sql_ledgers_create_ledgers, NULL},
    {"transactions", &hf__sql_ledgers_create_transactions, &hf__sql_ledgers_index_transactions},
    {"ingest_quarantine", &hf__sql_ledgers_create_quarantine, &hf__sql_ledgers_index_quarantine},
};

enum { TABLES = sizeof tables / sizeof *tables };

/* ---- what is there --------------------------------------------------------------------------- */

static void mark(hf__tables_there *there, const char *name)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[TABLES] = {
        {"ingest_store", &there->store},
        {"ingest_coverage", &there->coverage},
        {"ledgers", &there->ledgers},
        {"transactions", &there->transactions},
        {"ingest_quarantine", &there->quarantine},
    };
    for (size_t i = 0; i < TABLES; i++)
        if (strcmp(flags[i].name, name) == 0)
            *flags[i].flag = true;
}

static bool has(const hf__tables_there *there, size_t table)
{
    const bool flags[TABLES] = {there->store, there->coverage, there->ledgers, there->transactions,
                                there->quarantine};
    return flags[table];
}

/*
 * A schema belongs to one network from its first use on. Under another name, the lock of the
 * network would be another one, and keep nobody out.
 */
static hf_status check_name(hf_tx *tx, const hf_network *network, hf_error *err)
{
    hf__identity identity;
    hf_status status = hf__identity_read(tx, network->local, network->schema, &identity, err);
    if (status != HF_OK || identity.network[0] == '\0' ||
        strcmp(identity.network, network->name) == 0)
        return status;
    status = hf__fail(err, HF_CONFIG, "schema %s holds network %s, not %s", network->schema,
                      identity.network, network->name);
    hf__hint(err, "give --network %s, or another --schema", identity.network);
    return status;
}

hf_status hf__tables_look(hf_tx *tx, const hf_network *network, hf__tables_there *there,
                          hf_error *err)
{
    hf_rows *rows = NULL;
    hf_value schema = HF_TEXT(network->schema);
    *there = (hf__tables_there){0};
    hf_status status = hf__tx_query_sql(tx, &hf__sql_ledgers_tables, NULL, 1, &schema, &rows, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++)
        mark(there, hf_rows_value(rows, i, 0, NULL));
    hf_rows_free(rows);
    return status == HF_OK && there->store && there->coverage ? check_name(tx, network, err)
                                                              : status;
}

static bool has_all(const hf__tables_there *there)
{
    bool all = true;
    for (size_t i = 0; i < TABLES; i++)
        all = all && has(there, i);
    return all;
}

/* ---- does it fit? ---------------------------------------------------------------------------- */

enum kind { TEXT, INTEGER, BIGINT, TIME, JSON };

static const struct column {
    const char *table;
    const char *name;
    enum kind kind;
} columns[] = {
    {"ingest_store", "key", TEXT},
    {"ingest_store", "value", TEXT},
    {"ingest_coverage", "lo", BIGINT},
    {"ingest_coverage", "hi", BIGINT},
    {"ledgers", "sequence", INTEGER},
    {"ledgers", "hash", TEXT},
    {"ledgers", "previous_hash", TEXT},
    {"ledgers", "closed_at", TIME},
    {"ledgers", "transaction_count", INTEGER},
    {"transactions", "to_id", BIGINT},
    {"transactions", "ledger_number", INTEGER},
    {"transactions", "application_order", INTEGER},
    {"transactions", "hash", TEXT},
    {"transactions", "status", TEXT},
    {"transactions", "fee", INTEGER},
    {"transactions", "closed_at", TIME},
    {"transactions", "body", JSON},
    {"ingest_quarantine", "sequence", INTEGER},
    {"ingest_quarantine", "reason", TEXT},
    {"ingest_quarantine", "source", TEXT},
    {"ingest_quarantine", "line", TEXT},
    {"ingest_quarantine", "at", TIME},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

/* The types that fit, by their names in pg_type. The local store reports "", which always fits. */
static const char *const kinds[][6] = {
    [TEXT] = {"text", "varchar", "bpchar", ""},
    [INTEGER] = {"int8", "int4", ""},
    [BIGINT] = {"int8", ""},
    [TIME] = {"timestamptz", "timestamp", ""},
    [JSON] = {"json", "jsonb", "text", ""},
};

static bool fits(enum kind kind, const char *type)
{
    for (size_t i = 0; kinds[kind][i]; i++)
        if (strcmp(kinds[kind][i], type) == 0)
            return true;
    return false;
}

static hf_status misfit(const hf_network *network, const char *table, const char *what,
                        const char *column, const char *why, hf_error *err)
{
    hf_status status = hf__fail(err, HF_CONFIG, "%s.%s has another shape: %s %s%s", network->schema,
                                table, what, column, why);
    hf__hint(err, "alter or rename that table, or choose another --schema");
    return status;
}

static const struct column *find_column(const char *table, const char *name)
{
    for (size_t i = 0; i < COLUMNS; i++)
        if (strcmp(columns[i].table, table) == 0 && strcmp(columns[i].name, name) == 0)
            return &columns[i];
    return NULL;
}

static bool is_ours(const char *table)
{
    for (size_t i = 0; i < TABLES; i++)
        if (strcmp(tables[i].name, table) == 0)
            return true;
    return false;
}

static hf_status check_columns(const hf_rows *rows, const hf_network *network,
                               const hf__tables_there *there, hf_error *err)
{
    bool seen[COLUMNS] = {0};
    for (size_t i = 0; i < hf_rows_count(rows); i++) {
        const char *table = hf_rows_value(rows, i, 0, NULL);
        const char *name = hf_rows_value(rows, i, 1, NULL);
        const struct column *column = find_column(table, name);
        bool required = hf__row_bool(rows, i, 3);
        if (!column && required && is_ours(table))
            return misfit(network, table, "its column", name, " has neither NULL nor a default",
                          err);
        if (column && !fits(column->kind, hf_rows_value(rows, i, 2, NULL)))
            return misfit(network, table, "its column", name, " has another type", err);
        if (column)
            seen[column - columns] = true;
    }
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t t = 0; t < TABLES; t++)
            if (!seen[i] && has(there, t) && strcmp(tables[t].name, columns[i].table) == 0)
                return misfit(network, columns[i].table, "it has no column", columns[i].name, "",
                              err);
    return HF_OK;
}

static hf_status check_keys(hf_tx *tx, const hf_network *network, hf_error *err)
{
    hf_value schema = HF_TEXT(network->schema);
    hf_rows *rows = NULL;
    if (network->local)
        return HF_OK;
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_ledgers_keys_missing, NULL, 1, &schema, &rows, err);
    if (status == HF_OK && hf_rows_count(rows) > 0) {
        const char *table = hf_rows_value(rows, 0, 0, NULL);
        const char *column = hf_rows_value(rows, 0, 1, NULL);
        status = hf__fail(err, HF_CONFIG, "%s.%s has no unique key on \"%s\"", network->schema,
                          table, column);
        hf__hint(err, "ALTER TABLE %s%s ADD PRIMARY KEY (%s)", network->prefix, table, column);
    }
    hf_rows_free(rows);
    return status;
}

static hf_status check_shape(hf_tx *tx, const hf_network *network, const hf__tables_there *there,
                             hf_error *err)
{
    hf_value schema = HF_TEXT(network->schema);
    hf_rows *rows = NULL;
    hf_status status = hf__tx_query_sql(tx, &hf__sql_ledgers_columns, NULL, 1, &schema, &rows, err);
    if (status == HF_OK)
        status = check_columns(rows, network, there, err);
    hf_rows_free(rows);
    return status == HF_OK ? check_keys(tx, network, err) : status;
}

/* ---- installing ------------------------------------------------------------------------------ */

struct install {
    hf_network *network;
    size_t count;   /* how many of the tables, from the first */
    bool any_shape; /* tables that exist need not fit */
    hf__tables_there there;
    bool is_named; /* what is there says which network it is */
};

static hf_status create_schema(hf_tx *tx, const hf_network *network, hf_error *err)
{
    const hf__sql_part parts[] = {{"schema", network->schema}, {0}};
    hf_value schema = HF_TEXT(network->schema);
    hf_rows *rows = NULL;
    if (network->local)
        return HF_OK;
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_ledgers_has_schema, NULL, 1, &schema, &rows, err);
    bool there = status == HF_OK && hf_rows_count(rows) > 0;
    hf_rows_free(rows);
    if (status != HF_OK || there)
        return status;
    return hf__tx_query_sql(tx, &hf__sql_ledgers_create_schema, parts, 0, NULL, NULL, err);
}

static hf_status create_table(hf_tx *tx, const hf_network *network, const struct table *table,
                              hf_error *err)
{
    hf_status status = hf__network_query(tx, network, table->create, 0, NULL, NULL, err);
    if (status == HF_OK && table->index)
        status = hf__network_query(tx, network, table->index, 0, NULL, NULL, err);
    return status;
}

static hf_status install(hf_tx *tx, void *arg, hf_error *err)
{
    struct install *install = arg;
    hf_network *network = install->network;
    hf_status status = hf__network_lock(tx, network, network->partitions_key, err);
    if (status == HF_OK)
        status = hf__tables_look(tx, network, &install->there, err);
    if (status == HF_OK && !install->any_shape)
        status = check_shape(tx, network, &install->there, err);
    if (status == HF_OK)
        status = create_schema(tx, network, err);
    for (size_t i = 0; status == HF_OK && i < install->count; i++)
        if (!has(&install->there, i))
            status = create_table(tx, network, &tables[i], err);
    if (status == HF_OK && install->count > 1)
        status = hf__identity_write(tx, network, err);
    return status;
}

static hf_status look(hf_tx *tx, void *arg, hf_error *err)
{
    struct install *install = arg;
    hf_status status = hf__tables_look(tx, install->network, &install->there, err);
    return status == HF_OK ? check_shape(tx, install->network, &install->there, err) : status;
}

static hf_status look_at_name(hf_tx *tx, void *arg, hf_error *err)
{
    struct install *install = arg;
    const hf_network *network = install->network;
    hf__identity identity = {0};
    hf_status status = look(tx, arg, err);
    if (status != HF_OK || !has_all(&install->there))
        return status;
    status = hf__identity_read(tx, network->local, network->schema, &identity, err);
    install->is_named = status == HF_OK && hf__identity_is(&identity, network);
    return status;
}

hf_status hf__tables_check(hf_network *network, bool *there, hf_error *err)
{
    struct install install = {.network = network};
    bool has_database = false;
    hf_status status = hf__network_read(network, look, &install, &has_database, err);
    *there = status == HF_OK && has_database && has_all(&install.there);
    return status;
}

hf_status hf__tables_install(hf_network *network, hf_error *err)
{
    struct install all = {.network = network, .count = TABLES};
    bool there = false;
    hf_status status = hf__network_read(network, look_at_name, &all, &there, err);
    if (status != HF_OK || all.is_named)
        return status;
    return hf__network_transact(network, install, &all, err);
}

hf_status hf__tables_install_store(hf_network *network, hf_error *err)
{
    struct install store = {.network = network, .count = 1};
    return hf__network_transact(network, install, &store, err);
}

hf_status hf__tables_install_coverage(hf_network *network, hf_error *err)
{
    struct install coverage = {.network = network, .count = 2, .any_shape = true};
    return hf__network_transact(network, install, &coverage, err);
}
