/*
 * Cursors: rows of ingest_store(key, value). Values are text, and other programs may use the table
 * too. A row is locked and read before it is changed, so that a value that is no number is never
 * overwritten, and of two values the smaller one wins in either order.
 */
#include "lib/ledgers/ledgers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "lib/ledgers/sql.h"

bool hf__cursor_is_own(const char *name)
{
    return strncmp(name, HF__OWN_ROWS, strlen(HF__OWN_ROWS)) == 0;
}

/* ---- one row --------------------------------------------------------------------------------- */

static hf_status fail_row(const hf_network *network, const char *name, const char *what,
                          hf_error *err)
{
    char shown[160];
    hf_status status = hf__fail(err, HF_BAD_DATA, "%s.ingest_store: key '%s' %s", network->schema,
                                hf__show(shown, sizeof shown, name, strlen(name)), what);
    hf__hint(err, "correct that row or remove it");
    return status;
}

/* Sets *rows to one row, or to NULL if there is none. */
static hf_status read_row(hf_tx *tx, const hf_network *network, const char *name, bool lock_row,
                          hf_rows **rows, hf_error *err)
{
    const hf__sql *sql =
        lock_row ? &hf__sql_ledgers_store_read_locked : &hf__sql_ledgers_store_read;
    hf_value value = HF_TEXT(name);
    hf_status status = hf__network_query(tx, network, sql, 1, &value, rows, err);
    size_t count = status == HF_OK ? hf_rows_count(*rows) : 0;
    if (count > 1)
        status = fail_row(network, name, "is there more than once", err);
    if (status != HF_OK || count == 0) {
        hf_rows_free(*rows);
        *rows = NULL;
    }
    return status;
}

static hf_status parse_value(const hf_network *network, const char *name, const char *text,
                             size_t size, int64_t *value, hf_error *err)
{
    char shown[80], what[160];
    if (text && strlen(text) == size &&
        hf__parse_int64(text, "the cursor", INT64_MIN, INT64_MAX, value, NULL) == HF_OK)
        return HF_OK;
    if (text)
        (void)snprintf(what, sizeof what, "holds '%s', which is no whole number of 64 bits",
                       hf__show(shown, sizeof shown, text, size));
    return fail_row(network, name, text ? what : "holds NULL", err);
}

hf_status hf__cursor_read(hf_tx *tx, const hf_network *network, const char *name, bool lock_row,
                          bool *found, int64_t *value, hf_error *err)
{
    hf_rows *rows = NULL;
    size_t size = 0;
    hf_status status = read_row(tx, network, name, lock_row, &rows, err);
    *found = rows != NULL;
    if (rows) {
        const char *text = hf_rows_value(rows, 0, 0, &size);
        status = parse_value(network, name, text, size, value, err);
    }
    hf_rows_free(rows);
    return status;
}

/*
 * An adopted table may have no unique key. Then an upsert fails, and other writers make duplicates.
 */
static hf_status name_remedy(const hf_network *network, hf_status status, hf_error *err)
{
    if (status != HF_DATABASE || !err || strcmp(err->sqlstate, "42P10") != 0)
        return status;
    status =
        hf__fail(err, HF_CONFIG, "%s.ingest_store has no unique key on \"key\"", network->schema);
    hf__hint(err, "ALTER TABLE %singest_store ADD PRIMARY KEY (key)", network->prefix);
    return status;
}

hf_status hf__text_write(hf_tx *tx, const hf_network *network, const char *name, const char *text,
                         hf_error *err)
{
    const hf_value values[] = {HF_TEXT(name), HF_TEXT(text)};
    hf_error local = {0};
    hf_error *where = err ? err : &local;
    hf_status status =
        hf__network_query(tx, network, &hf__sql_ledgers_store_write, 2, values, NULL, where);
    return name_remedy(network, status, where);
}

hf_status hf__cursor_write(hf_tx *tx, const hf_network *network, const char *name, int64_t value,
                           hf_error *err)
{
    char number[24];
    hf_value text = hf__number_value(number, value);
    return hf__text_write(tx, network, name, text.data, err);
}

/* ---- moves ----------------------------------------------------------------------------------- */

static hf_status not_initialised(const hf_network *network, const char *name, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_CURSOR, "cursor %s of network %s: not initialised", name, network->name);
    hf__hint(err, "'holdfast cursor set --network %s %s LEDGER' gives it its first value",
             network->name, name);
    return status;
}

static hf_status stands_elsewhere(const hf_network *network, const char *name, int64_t value,
                                  int64_t wanted, bool advance, hf_error *err)
{
    if (advance && value == wanted)
        return hf__fail(err, HF_CURSOR,
                        "cursor %s of network %s: ledger %" PRId64 " is already ingested", name,
                        network->name, wanted);
    hf_status status = hf__fail(err, HF_CURSOR, "cursor %s of network %s: cursor is at %" PRId64,
                                name, network->name, value);
    if (advance)
        hf__hint(err, "it advances to %" PRId64 " from %" PRId64 " only", wanted, wanted - 1);
    return status;
}

static hf_status update_row(hf_tx *tx, const hf_network *network, const char *name, int64_t value,
                            hf_error *err)
{
    char number[24];
    const hf_value values[] = {HF_TEXT(name), hf__number_value(number, value)};
    return hf__network_queue(tx, network, &hf__sql_ledgers_store_update, 2, values, err);
}

/*
 * The row did not match as text: it does not exist, has another value, or is written like '0099'.
 */
static hf_status move_after_a_look(hf_tx *tx, const hf_network *network, const char *name,
                                   int64_t from, int64_t to, hf_error *err)
{
    bool found = false;
    int64_t value = 0;
    hf_status status = hf__cursor_read(tx, network, name, true, &found, &value, err);
    if (status != HF_OK)
        return status;
    if (!found)
        return not_initialised(network, name, err);
    if (value != from)
        return stands_elsewhere(network, name, value, to, from == to - 1, err);
    return update_row(tx, network, name, to, err);
}

hf_status hf__cursor_move(hf_tx *tx, const hf_network *network, const char *name, int64_t from,
                          int64_t to, hf_error *err)
{
    char first[24], second[24];
    hf_rows *rows = NULL;
    const hf_value values[] = {HF_TEXT(name), hf__number_value(first, from),
                               hf__number_value(second, to)};
    hf_status status =
        hf__network_query(tx, network, &hf__sql_ledgers_store_move, 3, values, &rows, err);
    int64_t moved = status == HF_OK ? hf_rows_affected(rows) : 0;
    hf_rows_free(rows);
    if (status != HF_OK || moved == 1)
        return status;
    if (moved > 1)
        return fail_row(network, name, "is there more than once", err);
    return move_after_a_look(tx, network, name, from, to, err);
}

/* ---- calls for everybody --------------------------------------------------------------------- */

struct call {
    hf_network *network;
    const char *name;
    int64_t value;
    int64_t from;
    bool found;
};

static hf_status check_call(const hf_network *network, const char *name, bool writes, hf_error *err)
{
    if (!network)
        return hf__fail(err, HF_INVALID, "there is no network");
    hf_status status = hf__cursor_check_name(name, err);
    if (status == HF_OK && writes && hf__cursor_is_own(name)) {
        status = hf__fail(err, HF_INVALID, "'%s' is a row of Holdfast's own", name);
        hf__hint(err, "backfill, retention and reset change what it says");
    }
    return status;
}

static hf_status get(hf_tx *tx, void *arg, hf_error *err)
{
    struct call *call = arg;
    return hf__cursor_read(tx, call->network, call->name, false, &call->found, &call->value, err);
}

hf_status hf_cursor_get(hf_network *network, const char *name, bool *found, int64_t *value,
                        hf_error *err)
{
    struct call call = {.network = network, .name = name};
    hf_error local = {0};
    hf_error *where = err ? err : &local;
    bool there = false;
    hf_status status = check_call(network, name, false, err);
    if (status != HF_OK)
        return status;
    status = hf__network_read(network, get, &call, &there, where);
    if (status == HF_DATABASE && hf__is_missing_table(where)) {
        call.found = false;
        status = HF_OK;
    }
    if (status == HF_OK) {
        *found = call.found;
        *value = call.found ? call.value : 0;
    }
    return status;
}

/* Where the table does not exist, the error is the same as for a row that does not exist. */
static hf_status change(hf_network *network, const char *name, hf_tx_fn *fn, struct call *call,
                        hf_error *err)
{
    hf_error local = {0};
    hf_error *where = err ? err : &local;
    hf_status status = check_call(network, name, true, where);
    if (status == HF_OK)
        status = hf__network_transact(network, fn, call, where);
    if (status == HF_DATABASE && hf__is_missing_table(where))
        status = not_initialised(network, name, where);
    return status;
}

static hf_status set(hf_tx *tx, void *arg, hf_error *err)
{
    const struct call *call = arg;
    return hf__cursor_write(tx, call->network, call->name, call->value, err);
}

hf_status hf_cursor_set(hf_network *network, const char *name, int64_t value, hf_error *err)
{
    struct call call = {.network = network, .name = name, .value = value};
    hf_error local = {0};
    hf_error *where = err ? err : &local;
    hf_status status = check_call(network, name, true, where);
    if (status != HF_OK)
        return status;
    status = hf__network_transact(network, set, &call, where);
    if (status != HF_DATABASE || !hf__is_missing_table(where))
        return status;
    status = hf__tables_install_store(network, err);
    return status == HF_OK ? hf__network_transact(network, set, &call, err) : status;
}

static hf_status set_min(hf_tx *tx, void *arg, hf_error *err)
{
    const struct call *call = arg;
    bool found = false;
    int64_t value = 0;
    hf_status status = hf__cursor_read(tx, call->network, call->name, true, &found, &value, err);
    if (status != HF_OK)
        return status;
    if (!found)
        return not_initialised(call->network, call->name, err);
    return call->value < value ? update_row(tx, call->network, call->name, call->value, err)
                               : HF_OK;
}

hf_status hf_cursor_set_min(hf_network *network, const char *name, int64_t value, hf_error *err)
{
    struct call call = {.network = network, .name = name, .value = value};
    return change(network, name, set_min, &call, err);
}

static hf_status move(hf_tx *tx, void *arg, hf_error *err)
{
    const struct call *call = arg;
    return hf__cursor_move(tx, call->network, call->name, call->from, call->value, err);
}

hf_status hf_cursor_advance(hf_network *network, const char *name, int64_t value, hf_error *err)
{
    if (value == INT64_MIN)
        return hf__fail(err, HF_INVALID, "there is no number before %" PRId64, value);
    struct call call = {.network = network, .name = name, .value = value, .from = value - 1};
    return change(network, name, move, &call, err);
}

hf_status hf_cursor_swap(hf_network *network, const char *name, int64_t from, int64_t to,
                         hf_error *err)
{
    struct call call = {.network = network, .name = name, .value = to, .from = from};
    return change(network, name, move, &call, err);
}

/* ---- the list -------------------------------------------------------------------------------- */

struct listing {
    hf_network *network;
    hf_rows *rows;
};

static hf_status list(hf_tx *tx, void *arg, hf_error *err)
{
    struct listing *listing = arg;
    hf_rows_free(listing->rows); /* of an attempt before */
    return hf__network_query(tx, listing->network, &hf__sql_ledgers_store_list, 0, NULL,
                             &listing->rows, err);
}

static void tell(const hf_rows *rows, hf_cursor_fn *fn, void *arg)
{
    for (size_t i = 0; i < hf_rows_count(rows); i++) {
        const char *name = hf_rows_value(rows, i, 0, NULL);
        int64_t value = 0;
        if (name && hf__row_number(rows, i, 1, "", &value, NULL) == HF_OK)
            fn(arg, name, value);
    }
}

hf_status hf_cursor_list(hf_network *network, hf_cursor_fn *fn, void *arg, hf_error *err)
{
    struct listing listing = {.network = network};
    hf_error local = {0};
    hf_error *where = err ? err : &local;
    bool there = false;
    if (!network || !fn)
        return hf__fail(err, HF_INVALID, "hf_cursor_list needs a network and a callback");
    hf_status status = hf__network_read(network, list, &listing, &there, where);
    if (status == HF_DATABASE && hf__is_missing_table(where))
        status = HF_OK;
    else if (status == HF_OK && listing.rows)
        tell(listing.rows, fn, arg);
    hf_rows_free(listing.rows);
    return status;
}
