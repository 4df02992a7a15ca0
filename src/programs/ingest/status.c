#include "programs/ingest/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "lib/ledgers/ledgers.h"
#include "programs/ingest/reconcile.h"
#include "programs/ingest/sql.h"

struct reading {
    hf_network *network;
    hf__network_status *status;
};

/* ---- activity -------------------------------------------------------------------------------- */

enum { ROWS = 5 };

static const char *const activity_names[ROWS] = {HF__SOURCE_TIP, HF__LAST_SUCCESS, HF__LIVE_LEDGERS,
                                                 HF__LIVE_COUNTED, HF__BACKFILL_LEDGERS};

/* In the order of activity_names. */
struct numbers {
    hf__maybe of[ROWS];
};

static void take(const hf_rows *rows, size_t row, struct numbers *numbers)
{
    const char *name = hf_rows_value(rows, row, 0, NULL);
    int64_t value = 0;
    if (!name || hf__row_number(rows, row, 1, name, &value, NULL) != HF_OK || value < 0 ||
        value > INT64_MAX / 2) /* sums of two must not overflow */
        return;
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(activity_names[i], name) == 0)
            numbers->of[i] = (hf__maybe){true, value};
}

static hf_status read_numbers(hf_tx *tx, const hf_network *network, struct numbers *numbers,
                              hf_error *err)
{
    hf_value values[ROWS];
    hf_rows *rows = NULL;
    *numbers = (struct numbers){0};
    for (size_t i = 0; i < ROWS; i++)
        values[i] = HF_TEXT(activity_names[i]);
    hf_status status =
        hf__network_query(tx, network, &hf__sql_ingest_read_activity, ROWS, values, &rows, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++)
        take(rows, i, numbers);
    hf_rows_free(rows);
    return status;
}

hf_status hf__activity_write(hf_tx *tx, const hf_network *network, const hf__activity *activity,
                             hf_error *err)
{
    char tip[24], at[24], ledgers[24], counted[24];
    const hf_value values[] = {
        HF_TEXT(HF__SOURCE_TIP),   hf__number_value(tip, activity->source_tip),
        HF_TEXT(HF__LAST_SUCCESS), hf__number_value(at, activity->last_success_ms),
        HF_TEXT(HF__LIVE_LEDGERS), hf__number_value(ledgers, activity->ledgers),
        HF_TEXT(HF__LIVE_COUNTED), hf__number_value(counted, activity->counted_to),
    };
    return hf__network_queue(tx, network, &hf__sql_ingest_write_activity, 8, values, err);
}

hf_status hf__activity_add_backfill(hf_tx *tx, const hf_network *network, int64_t ledgers,
                                    hf_error *err)
{
    char first[24], added[24];
    const hf_value values[] = {HF_TEXT(HF__BACKFILL_LEDGERS), hf__number_value(first, ledgers),
                               hf__number_value(added, ledgers)};
    return hf__network_queue(tx, network, &hf__sql_ingest_add_backfill, 3, values, err);
}

/* ---- reading the activity rows --------------------------------------------------------------- */

struct resuming {
    const hf_network *network;
    struct numbers numbers;
};

static hf_status resume(hf_tx *tx, void *arg, hf_error *err)
{
    struct resuming *resuming = arg;
    return read_numbers(tx, resuming->network, &resuming->numbers, err);
}

hf_status hf__activity_resume(hf_network *network, int64_t latest, hf__activity *written,
                              hf__activity *actual, hf_error *err)
{
    struct resuming resuming = {.network = network};
    hf_status status = hf__network_transact(network, resume, &resuming, err);
    const hf__maybe *of = resuming.numbers.of;
    *written = (hf__activity){.source_tip = of[0].value,
                              .last_success_ms = of[1].value,
                              .ledgers = of[2].value,
                              .counted_to = of[3].value};
    *actual = *written;
    actual->counted_to = latest;
    if (of[3].known && of[3].value < latest)
        actual->ledgers += latest - of[3].value;
    return status;
}

/* Fills the last four members of status. */
static hf_status show_activity(hf_tx *tx, const hf_network *network, hf__network_status *status,
                               hf_error *err)
{
    struct numbers numbers;
    hf_status result = read_numbers(tx, network, &numbers, err);
    status->source_tip = numbers.of[0];
    status->last_success_ms = numbers.of[1];
    status->live_ledgers = numbers.of[2];
    status->backfill_ledgers = numbers.of[4];
    status->source_tip.known = status->source_tip.value > 0;
    status->last_success_ms.known = status->last_success_ms.value > 0;
    return result;
}

/* ---- one network ----------------------------------------------------------------------------- */

static hf_status read_cursors(hf_tx *tx, const hf_network *network, hf__network_status *status,
                              hf_error *err)
{
    const struct {
        const char *name;
        hf__maybe *value;
    } rows[] = {
        {network->latest, &status->latest},
        {network->oldest, &status->oldest},
        {HF__WANTED_FROM, &status->wanted_from},
        {HF__RETENTION_FLOOR, &status->floor},
    };
    hf_status result = HF_OK;
    for (size_t i = 0; result == HF_OK && i < sizeof rows / sizeof *rows; i++)
        result = hf__cursor_read(tx, network, rows[i].name, false, &rows[i].value->known,
                                 &rows[i].value->value, err);
    return result;
}

static hf_status read_coverage(hf_tx *tx, const hf_network *network, hf__network_status *status,
                               hf__ranges *ranges, hf_error *err)
{
    hf_status result = hf__coverage_read(tx, network, 0, INT64_MAX - 1, ranges, err);
    status->ranges = ranges->count;
    for (size_t i = 0; i < ranges->count; i++)
        status->covered += ranges->items[i].to - ranges->items[i].from + 1;
    int64_t end = ranges->count > 0 ? ranges->items[ranges->count - 1].to : 0;
    status->disagrees = status->latest.known != (ranges->count > 0) ||
                        (ranges->count > 0 && status->latest.value != end);
    return result;
}

static hf_status count_gaps(hf_tx *tx, const hf_network *network, hf__network_status *status,
                            hf__ranges *gaps, hf_error *err)
{
    hf_status result = hf__gaps_read(tx, network, (hf_range){0}, gaps, err);
    status->gaps = (hf__maybe){.known = result == HF_OK, .value = (int64_t)gaps->count};
    for (size_t i = 0; i < gaps->count; i++)
        status->missing += gaps->items[i].to - gaps->items[i].from + 1;
    return result;
}

/* Reads coverage and gaps into the caller's ranges, or into its own where those are NULL. */
static hf_status read_ranges(hf_tx *tx, const hf_network *network, hf__network_status *status,
                             hf__ranges *coverage, hf__ranges *gaps, hf_error *err)
{
    hf__ranges own_coverage = {0}, own_gaps = {0};
    hf_status result = read_coverage(tx, network, status, coverage ? coverage : &own_coverage, err);
    if (result == HF_OK)
        result = count_gaps(tx, network, status, gaps ? gaps : &own_gaps, err);
    hf__ranges_free(&own_coverage);
    hf__ranges_free(&own_gaps);
    return result;
}

static hf_status read_age(hf_tx *tx, const hf_network *network, hf__network_status *status,
                          hf_error *err)
{
    char number[24];
    hf_value value = hf__number_value(number, status->latest.value);
    hf_rows *rows = NULL;
    bool has = false;
    hf_status result = hf__has_column(tx, network, "ledgers", "closed_at", &has, err);
    if (result != HF_OK || !has)
        return result;
    result = hf__network_query(tx, network, &hf__sql_ingest_age, 1, &value, &rows, err);
    if (result == HF_OK && hf_rows_count(rows) > 0 && hf_rows_value(rows, 0, 0, NULL)) {
        (void)snprintf(status->closed_at, sizeof status->closed_at, "%s",
                       hf_rows_value(rows, 0, 0, NULL));
        result = hf__row_number(rows, 0, 1, "an age", &status->age_ms, err);
    }
    if (status->age_ms < 0) /* the network's clock is ahead of the store's */
        status->age_ms = 0;
    hf_rows_free(rows);
    return result;
}

static hf_status estimate(hf_tx *tx, const hf_network *network, hf__network_status *status,
                          hf_error *err)
{
    if (network->local)
        return HF_OK;
    return hf__query_number(tx, network, &hf__sql_ingest_estimate_transactions, 0, NULL,
                            &status->transactions.known, &status->transactions.value, err);
}

hf_status hf__network_status_read_in(hf_tx *tx, const hf_network *network,
                                     hf__network_status *status, hf__ranges *coverage,
                                     hf__ranges *gaps, hf_error *err)
{
    hf__tables_there there = {0};

    *status = (hf__network_status){0};
    hf_status result = hf__tables_look(tx, network, &there, err);
    status->exists = there.store || there.coverage;
    status->has_coverage = there.coverage;
    if (result == HF_OK && there.store)
        result = read_cursors(tx, network, status, err);
    if (result == HF_OK && there.store)
        result = show_activity(tx, network, status, err);
    if (result == HF_OK && there.coverage)
        result = read_ranges(tx, network, status, coverage, gaps, err);
    else
        status->disagrees = status->latest.known;
    if (result == HF_OK && status->latest.known)
        result = read_age(tx, network, status, err);
    if (result == HF_OK && there.quarantine)
        result = hf__query_number(tx, network, &hf__sql_ingest_count_quarantine, 0, NULL,
                                  &status->quarantined.known, &status->quarantined.value, err);
    if (result == HF_OK && there.transactions)
        result = estimate(tx, network, status, err);
    return result;
}

hf__maybe hf__network_lag(const hf__network_status *status, bool is_ingested, int64_t now_ms)
{
    const hf__maybe *success = &status->last_success_ms;
    bool fresh = is_ingested || (success->known && now_ms - success->value <= HF__TIP_FRESH_MS);
    return (hf__maybe){.known = fresh && status->source_tip.known && status->latest.known,
                       .value = status->source_tip.value - status->latest.value};
}

static hf_status read_status(hf_tx *tx, void *arg, hf_error *err)
{
    const struct reading *reading = arg;
    return hf__network_status_read_in(tx, reading->network, reading->status, NULL, NULL, err);
}

hf_status hf__network_status_read(hf_network *network, hf__network_status *status, hf_error *err)
{
    struct reading reading = {.network = network, .status = status};
    bool there = false;
    *status = (hf__network_status){0};
    return hf__network_read(network, read_status, &reading, &there, err);
}

/* ---- all networks ---------------------------------------------------------------------------- */

static const char suffix[] = ".db";

struct list {
    hf__network_entry *entries;
    size_t count;
    size_t capacity;
};

static hf_status add_entry(struct list *list, const char *schema, size_t size, bool readable,
                           hf_error *err)
{
    if (!hf__grow(&list->entries, &list->capacity, list->count + 1, sizeof *list->entries))
        return hf__no_memory(err);
    hf__network_entry *entry = &list->entries[list->count++];
    *entry = (hf__network_entry){.readable = readable};
    (void)snprintf(entry->schema, sizeof entry->schema, "%.*s", (int)size, schema);
    return HF_OK;
}

/* ---- all networks of a local store ---- */

static hf_status look_for_coverage(hf_tx *tx, void *arg, hf_error *err)
{
    hf_rows *rows = NULL;
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_ingest_has_coverage, NULL, 0, NULL, &rows, err);
    *(bool *)arg = status == HF_OK && hf_rows_count(rows) > 0;
    hf_rows_free(rows);
    return status;
}

/*
 * Is it a SQLite file with a write-ahead log, as every file of ours is? Looking into any other
 * would change its journal. True also if that cannot be told.
 */
static bool may_be_ours(int folder, const char *name)
{
    static const char magic[16] = "SQLite format 3";
    char header[20] = {0};
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return errno != ENOENT;
    bool whole = pread(file, header, sizeof header, 0) == (ssize_t)sizeof header;
    close(file);
    return whole && memcmp(header, magic, sizeof magic) == 0 && header[18] == 2 && header[19] == 2;
}

/* A network with a file of another name than ingest_NAME is known by its table of coverage. */
static hf_status list_file(hf_store *store, int folder, const char *file, struct list *list,
                           hf_error *err)
{
    hf__network_entry entry = {0};
    size_t size = strlen(file) - (sizeof suffix - 1);
    bool there = true;
    if (size >= sizeof entry.schema)
        return HF_OK;
    (void)snprintf(entry.schema, sizeof entry.schema, "%.*s", (int)size, file);
    if (strncmp(file, HF__SCHEMA_PREFIX, strlen(HF__SCHEMA_PREFIX)) == 0)
        return add_entry(list, file, size, true, err);
    if (strcmp(entry.schema, "holdfast") == 0 || !may_be_ours(folder, file))
        return HF_OK;
    bool looked = hf__schema_read(store, entry.schema, 0, look_for_coverage, &there, NULL) == HF_OK;
    return there || !looked ? add_entry(list, file, size, true, err) : HF_OK;
}

static hf_status list_files(hf_store *store, struct list *list, hf_error *err)
{
    const char *folder = hf_store_name(store) + strlen("local:");
    size_t after = sizeof suffix - 1;
    hf_status status = HF_OK;
    DIR *entries = opendir(folder);
    if (!entries)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot list %s", folder);
    for (const struct dirent *entry = readdir(entries); entry && status == HF_OK;
         entry = readdir(entries)) {
        size_t size = strlen(entry->d_name);
        if (size > after && strcmp(entry->d_name + size - after, suffix) == 0)
            status = list_file(store, dirfd(entries), entry->d_name, list, err);
    }
    closedir(entries);
    return status;
}

/* ---- all networks of a server ---- */

static hf_status list_schemas(hf_tx *tx, void *arg, hf_error *err)
{
    struct list *list = arg;
    hf_rows *rows = NULL;
    list->count = 0; /* a failed attempt may have filled it */
    hf_status status = hf__tx_query_sql(tx, &hf__sql_ingest_networks, NULL, 0, NULL, &rows, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++) {
        size_t size = 0;
        const char *schema = hf_rows_value(rows, i, 0, &size);
        status = add_entry(list, schema, size, hf__row_bool(rows, i, 1), err);
    }
    hf_rows_free(rows);
    return status;
}

static int by_schema(const void *a, const void *b)
{
    const hf__network_entry *first = a, *second = b;
    return strcmp(first->schema, second->schema);
}

hf_status hf__networks_list(hf_store *store, hf_tx *tx, hf__network_entry **entries, size_t *count,
                            hf_error *err)
{
    struct list list = {0};
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    options.read_only = true;
    options.isolation = HF_READ_COMMITTED;
    hf_status status = hf_store_is_local(store) ? list_files(store, &list, err)
                       : tx                     ? list_schemas(tx, &list, err)
                            : hf_transact(store, &options, list_schemas, &list, err);
    if (list.count > 0)
        qsort(list.entries, list.count, sizeof *list.entries, by_schema);
    *entries = list.entries;
    *count = list.count;
    return status;
}
