/*
 * PostgreSQL's partitions of ledgers and transactions, by ranges of ledgers. A partition is created
 * ahead of its use as a plain table and then attached: unlike CREATE … PARTITION OF, ATTACH lets
 * readers and writers of the parent go on, and a new table has nothing to scan. Partitions that
 * exist stay, whatever their width; new ones fill the holes between them.
 */
#include "lib/ledgers/ledgers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "lib/ledgers/sql.h"

enum {
    ATTACH_LOCK_MS = 2000,
    DROP_LOCK_MS = 50, /* the longest that readers of the parent wait behind one attempt */
    DROP_ATTEMPTS = 12,
    DROP_PAUSE_MS = 25,
    MOST_AT_ONCE = 4096,
    TO_ID_SHIFT = 32,
};

enum parent { LEDGERS, TRANSACTIONS, PARENTS };

static const struct {
    const char *name;
    int shift; /* a ledger shifted left by this is a value of the partition key */
} parents[PARENTS] = {{"ledgers", 0}, {"transactions", TO_ID_SHIFT}};

/* One partition. Its bounds are values of the key, both included. */
struct part {
    enum parent parent;
    hf_range bounds;
    bool here;     /* in the network's own schema */
    bool may_drop; /* our role may */
    char table[64];
};

struct parts {
    struct part *items; /* by parent, then ascending */
    size_t count;
    bool partitioned[PARENTS];
};

/* ---- what is there --------------------------------------------------------------------------- */

/* Reads the bound after the word: "('17')", "(17)" or "(MINVALUE)". False: another kind of key. */
static bool parse_bound(const char *text, const char *word, int64_t *value)
{
    char number[24] = "";
    const char *at = strstr(text, word);
    if (!at)
        return false;
    at += strlen(word);
    if (strncmp(at, "(MINVALUE)", 10) == 0) {
        *value = INT64_MIN;
        return true;
    }
    if (strncmp(at, "(MAXVALUE)", 10) == 0) {
        *value = INT64_MAX;
        return true;
    }
    at += strspn(at, "('");
    size_t size = strspn(at, "-0123456789");
    if (size == 0 || size >= sizeof number || (at[size] != '\'' && at[size] != ')'))
        return false;
    memcpy(number, at, size);
    return hf__parse_int64(number, "a bound", INT64_MIN, INT64_MAX, value, NULL) == HF_OK;
}

static hf_status parse_part(const hf_rows *rows, size_t row, const hf_network *network,
                            struct part *part, hf_error *err)
{
    const char *table = hf_rows_value(rows, row, 2, NULL);
    const char *bounds = hf_rows_value(rows, row, 4, NULL);
    part->here = hf__row_bool(rows, row, 3);
    part->may_drop = hf__row_bool(rows, row, 5);
    (void)snprintf(part->table, sizeof part->table, "%s", table);
    if (parse_bound(bounds, "FROM ", &part->bounds.from) &&
        parse_bound(bounds, "TO ", &part->bounds.to)) {
        if (!strstr(bounds, "TO (MAXVALUE)"))
            part->bounds.to--;
        return HF_OK;
    }
    hf_status status = hf__fail(err, HF_CONFIG, "%s.%s is not partitioned by ledger: %s",
                                network->schema, parents[part->parent].name, bounds);
    hf__hint(err, "partition it by ranges of %s, or choose another --schema",
             part->parent == LEDGERS ? "sequence" : "to_id");
    return status;
}

/* A default partition has no bounds of its own. */
static hf_status take_parts(const hf_rows *rows, const hf_network *network, struct parts *parts,
                            hf_error *err)
{
    parts->items = calloc(hf_rows_count(rows) + 1, sizeof *parts->items);
    if (!parts->items)
        return hf__no_memory(err);
    for (size_t i = 0; i < hf_rows_count(rows); i++) {
        bool ledgers = strcmp(hf_rows_value(rows, i, 0, NULL), parents[LEDGERS].name) == 0;
        const char *bounds = hf_rows_value(rows, i, 4, NULL);
        struct part *part = &parts->items[parts->count];
        part->parent = ledgers ? LEDGERS : TRANSACTIONS;
        parts->partitioned[part->parent] = hf_rows_value(rows, i, 1, NULL)[0] == 'p';
        if (!parts->partitioned[part->parent] || !bounds || strcmp(bounds, "DEFAULT") == 0)
            continue;
        hf_status status = parse_part(rows, i, network, part, err);
        if (status != HF_OK)
            return status;
        parts->count++;
    }
    return HF_OK;
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *first = a, *second = b;
    if (first->parent != second->parent)
        return first->parent < second->parent ? -1 : 1;
    return (first->bounds.from > second->bounds.from) - (first->bounds.from < second->bounds.from);
}

static hf_status read_parts(hf_tx *tx, const hf_network *network, struct parts *parts,
                            hf_error *err)
{
    hf_value schema = HF_TEXT(network->schema);
    hf_rows *rows = NULL;
    free(parts->items);
    *parts = (struct parts){0};
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_ledgers_partitions, NULL, 1, &schema, &rows, err);
    if (status == HF_OK)
        status = take_parts(rows, network, parts, err);
    if (status == HF_OK)
        qsort(parts->items, parts->count, sizeof *parts->items, compare_parts);
    hf_rows_free(rows);
    return status;
}

struct reading {
    hf_network *network;
    struct parts parts;
};

static hf_status read_all(hf_tx *tx, void *arg, hf_error *err)
{
    struct reading *reading = arg;
    return read_parts(tx, reading->network, &reading->parts, err);
}

/* ---- creating -------------------------------------------------------------------------------- */

/* The values of a parent's key that these ledgers have. */
static hf_range key_range(enum parent parent, hf_range ledgers)
{
    int shift = parents[parent].shift;
    uint64_t end = (((uint64_t)ledgers.to + 1) << shift) - 1;
    return (hf_range){(int64_t)((uint64_t)ledgers.from << shift), (int64_t)end};
}

static hf_status find_missing(const struct parts *parts, enum parent parent, hf_range ledgers,
                              hf__ranges *missing, hf_error *err)
{
    hf_range wanted = key_range(parent, ledgers);
    hf__ranges there = {0};
    bool ok = true;
    if (!parts->partitioned[parent])
        return HF_OK;
    for (size_t i = 0; ok && i < parts->count; i++)
        if (parts->items[i].parent == parent)
            ok = hf__ranges_add(&there, parts->items[i].bounds.from, parts->items[i].bounds.to);
    ok = ok && hf__ranges_missing(&there, wanted.from, wanted.to, missing);
    hf__ranges_free(&there);
    return ok ? HF_OK : hf__no_memory(err);
}

static void name_part(char out[64], enum parent parent, int64_t from)
{
    int shift = parents[parent].shift;
    int64_t ledger = from >> shift, rest = from - (int64_t)((uint64_t)ledger << shift);
    if (rest == 0)
        (void)snprintf(out, 64, "%s_%" PRId64, parents[parent].name, ledger);
    else
        (void)snprintf(out, 64, "%s_%" PRId64 "_%" PRId64, parents[parent].name, ledger, rest);
}

static hf_status refuse_taken(const hf_network *network, const char *table, hf_error *err)
{
    hf_status status = hf__fail(err, HF_CONFIG, "the table %s.%s is in the way of a partition",
                                network->schema, table);
    hf__hint(err, "attach it to its parent again, rename it or drop it");
    return status;
}

static hf_status create_part(hf_tx *tx, const hf_network *network, enum parent parent,
                             hf_range bounds, hf_error *err)
{
    char table[64], first[24], end[24] = "MAXVALUE";
    const hf__sql_part parts[] = {{"prefix", network->prefix},
                                  {"parent", parents[parent].name},
                                  {"table", table},
                                  {"from", first},
                                  {"to", end},
                                  {0}};
    name_part(table, parent, bounds.from);
    (void)snprintf(first, sizeof first, "%" PRId64, bounds.from);
    if (bounds.to < INT64_MAX)
        (void)snprintf(end, sizeof end, "%" PRId64, bounds.to + 1);
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_ledgers_partition_create, parts, 0, NULL, NULL, err);
    if (status == HF_DATABASE && err && strcmp(err->sqlstate, "42P07") == 0)
        return refuse_taken(network, table, err);
    if (status == HF_OK)
        status = hf__tx_query_sql(tx, &hf__sql_ledgers_partition_attach, parts, 0, NULL, NULL, err);
    return status;
}

struct filling {
    hf_network *network;
    hf_range ledgers; /* from one multiple of the width to the next */
};

static hf_status fill(hf_tx *tx, void *arg, hf_error *err)
{
    const struct filling *filling = arg;
    const hf_network *network = filling->network;
    struct parts parts = {0};
    hf_status status = hf__tx_bound_waits(tx, ATTACH_LOCK_MS, err);
    if (status == HF_OK)
        status = hf__network_lock(tx, network, network->partitions_key, err);
    if (status == HF_OK)
        status = read_parts(tx, network, &parts, err);
    for (int parent = LEDGERS; status == HF_OK && parent < PARENTS; parent++) {
        hf__ranges missing = {0};
        status = find_missing(&parts, (enum parent)parent, filling->ledgers, &missing, err);
        for (size_t i = 0; status == HF_OK && i < missing.count; i++)
            status = create_part(tx, network, (enum parent)parent, missing.items[i], err);
        hf__ranges_free(&missing);
    }
    free(parts.items);
    return status;
}

static hf_status is_filled(const struct parts *parts, hf_range ledgers, bool *filled, hf_error *err)
{
    hf_status status = HF_OK;
    *filled = true;
    for (int parent = LEDGERS; status == HF_OK && parent < PARENTS; parent++) {
        hf__ranges missing = {0};
        status = find_missing(parts, (enum parent)parent, ledgers, &missing, err);
        *filled = *filled && missing.count == 0;
        hf__ranges_free(&missing);
    }
    return status;
}

static hf_range cell_of(int64_t ledger, int64_t width)
{
    int64_t from = ledger - ledger % width;
    int64_t to = width > INT32_MAX - from ? INT32_MAX : from + width - 1;
    return (hf_range){from, to};
}

static hf_status check_window(int64_t from, int64_t to, int64_t width, hf_error *err)
{
    if (from < 0 || from > to || to > INT32_MAX || width < 1)
        return hf__fail(err, HF_INVALID,
                        "no partitions for ledgers %" PRId64 "-%" PRId64 " by %" PRId64
                        ": ledgers go from 0 to %d",
                        from, to, width, INT32_MAX);
    if ((to - from) / width < MOST_AT_ONCE)
        return HF_OK;
    hf_status status =
        hf__fail(err, HF_INVALID,
                 "ledgers %" PRId64 "-%" PRId64 " would need more than %d partitions of %" PRId64,
                 from, to, MOST_AT_ONCE, width);
    hf__hint(err, "give a greater --partition-ledgers");
    return status;
}

hf_status hf__partitions_ensure(hf_network *network, int64_t from, int64_t to, int64_t width,
                                hf_error *err)
{
    struct reading reading = {.network = network};
    bool there = false;
    hf_status status = check_window(from, to, width, err);
    if (status != HF_OK || network->local)
        return status;
    status = hf__network_read(network, read_all, &reading, &there, err);
    for (int64_t at = from; status == HF_OK && at <= to;) {
        hf_range cell = cell_of(at, width);
        hf_range wanted = {at, to < cell.to ? to : cell.to};
        struct filling filling = {.network = network, .ledgers = cell};
        bool filled = false;
        status = is_filled(&reading.parts, wanted, &filled, err);
        if (status == HF_OK && !filled)
            status = hf__network_transact(network, fill, &filling, err);
        at = cell.to + 1;
    }
    free(reading.parts.items);
    return status;
}

/* ---- listing and dropping -------------------------------------------------------------------- */

static hf__partition *find_range(hf__partition *list, size_t count, hf_range range)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].ledger_range.from == range.from && list[i].ledger_range.to == range.to)
            return &list[i];
    return NULL;
}

static int compare_partitions(const void *a, const void *b)
{
    const hf_range *first = &((const hf__partition *)a)->ledger_range;
    const hf_range *second = &((const hf__partition *)b)->ledger_range;
    return (first->from > second->from) - (first->from < second->from);
}

/* Makes one entry of the two tables with the same range. One of them may have been dropped. */
static size_t pair_up(const struct parts *parts, hf__partition *list)
{
    size_t count = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->items[i];
        int shift = parents[part->parent].shift;
        hf_range range = {part->bounds.from >> shift, part->bounds.to >> shift};
        hf__partition *pair = find_range(list, count, range);
        if (!part->here)
            continue;
        if (!pair) {
            pair = &list[count++];
            pair->ledger_range = range;
            pair->may_drop = true;
        }
        pair->may_drop = pair->may_drop && part->may_drop;
        (void)snprintf(part->parent == LEDGERS ? pair->ledgers : pair->table, sizeof pair->table,
                       "%s", part->table);
    }
    qsort(list, count, sizeof *list, compare_partitions);
    return count;
}

hf_status hf__partitions_list(hf_network *network, hf__partition **partitions, size_t *count,
                              hf_error *err)
{
    struct reading reading = {.network = network};
    bool there = false;
    *partitions = NULL;
    *count = 0;
    if (network->local)
        return HF_OK;
    hf_status status = hf__network_read(network, read_all, &reading, &there, err);
    if (status == HF_OK && reading.parts.count > 0) {
        *partitions = calloc(reading.parts.count, sizeof **partitions);
        if (*partitions)
            *count = pair_up(&reading.parts, *partitions);
        else
            status = hf__no_memory(err);
    }
    free(reading.parts.items);
    return status;
}

struct drop {
    const hf_network *network;
    const char *table;
};

static hf_status drop(hf_tx *tx, void *arg, hf_error *err)
{
    const struct drop *drop = arg;
    hf__buf name = {0};
    for (const char *at = drop->table; *at; at++)
        hf__buf_printf(&name, *at == '"' ? "\"\"" : "%c", *at);
    const hf__sql_part parts[] = {{"prefix", drop->network->prefix}, {"table", name.data}, {0}};
    hf_status status = name.broken ? hf__no_memory(err) : hf__tx_bound_waits(tx, DROP_LOCK_MS, err);
    if (status == HF_OK)
        status = hf__tx_query_sql(tx, &hf__sql_ledgers_partition_drop, parts, 0, NULL, NULL, err);
    hf__buf_free(&name);
    return status;
}

static hf_status drop_table(hf_network *network, const char *table, hf_error *err)
{
    struct drop arg = {.network = network, .table = table};
    hf_tx_options options = hf__network_tx_options(network);
    hf_error local = {0};
    hf_error *where = err ? err : &local;
    options.max_attempts = DROP_ATTEMPTS;
    options.backoff_min_ms = DROP_PAUSE_MS;
    if (!table[0])
        return HF_OK;
    hf_status status = hf_transact(network->store, &options, drop, &arg, where);
    if (status != HF_EXHAUSTED || strcmp(where->sqlstate, "55P03") != 0)
        return status;
    status = hf__fail(where, HF_NOT_ACQUIRED,
                      "the partition %s.%s is in use: it could not be dropped in %d attempts",
                      network->schema, table, DROP_ATTEMPTS);
    hf__hint(where, "it is tried again later; pg_stat_activity tells who has a long transaction");
    return status;
}

/* Two transactions, so that readers of one parent do not wait until the other is free too. */
hf_status hf__partition_drop(hf_network *network, const hf__partition *partition, hf_error *err)
{
    if (network->local)
        return HF_OK;
    hf_status status = drop_table(network, partition->table, err);
    return status == HF_OK ? drop_table(network, partition->ledgers, err) : status;
}
