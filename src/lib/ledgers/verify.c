/* Compares coverage with the data, and builds it anew from the data. */
#include "lib/ledgers/ledgers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ledgers/sql.h"

enum {
    PIECE = 16384, /* ledgers that one statement reads */
    ROWS_PER_INSERT = 500,
    KINDS = HF__DATA_UNCOVERED + 1,
};

/* The ledgers of one piece. */
struct piece {
    hf_range ledgers;
    hf__ranges covered;
    hf__ranges whole;
    hf__ranges partial;
};

static void piece_free(struct piece *piece)
{
    hf__ranges_free(&piece->covered);
    hf__ranges_free(&piece->whole);
    hf__ranges_free(&piece->partial);
}

/* ---- reading a piece ------------------------------------------------------------------------- */

static hf_status take_ledgers(const hf_rows *rows, const hf_network *network, struct piece *piece,
                              hf_error *err)
{
    char what[96];
    hf_status status = HF_OK;
    (void)snprintf(what, sizeof what, "%s.ledgers", network->schema);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++) {
        int64_t sequence = 0, stated = 0, counted = 0;
        status = hf__row_number(rows, i, 0, what, &sequence, err);
        if (status == HF_OK)
            status = hf__row_number(rows, i, 1, what, &stated, err);
        if (status == HF_OK)
            status = hf__row_number(rows, i, 2, what, &counted, err);
        if (status == HF_OK && !hf__ranges_add(stated == counted ? &piece->whole : &piece->partial,
                                               sequence, sequence))
            status = hf__no_memory(err);
    }
    return status;
}

static hf_status read_ledgers(hf_tx *tx, const hf_network *network, struct piece *piece,
                              hf_error *err)
{
    char first[24], last[24], first_id[24], last_id[24];
    const hf_range *ledgers = &piece->ledgers;
    const hf_value values[] = {hf__number_value(first, ledgers->from),
                               hf__number_value(last, ledgers->to),
                               hf__number_value(first_id, ledgers->from << 32),
                               hf__number_value(last_id, (ledgers->to << 32) | UINT32_MAX)};
    hf_rows *rows = NULL;
    hf_status status =
        hf__network_query(tx, network, &hf__sql_ledgers_verify_ledgers, 4, values, &rows, err);
    if (status == HF_OK)
        status = take_ledgers(rows, network, piece, err);
    hf_rows_free(rows);
    return status;
}

static void lower(int64_t *next, const hf_rows *rows, size_t column)
{
    int64_t value = 0;
    if (hf__row_number(rows, 0, column, "", &value, NULL) == HF_OK && value < *next)
        *next = value;
}

/* The next ledger that exists or is covered. Wide gaps are skipped this way. INT64_MAX: none. */
static hf_status find_next(hf_tx *tx, const hf_network *network, int64_t from, int64_t *next,
                           hf_error *err)
{
    char number[24];
    hf_value value = hf__number_value(number, from);
    int64_t end = 0;
    hf_rows *rows = NULL;
    *next = INT64_MAX;
    hf_status status =
        hf__network_query(tx, network, &hf__sql_ledgers_verify_next, 1, &value, &rows, err);
    if (status == HF_OK) {
        lower(next, rows, 0);
        lower(next, rows, 1);
        if (hf__row_number(rows, 0, 2, "", &end, NULL) == HF_OK && end >= from)
            *next = from;
    }
    hf_rows_free(rows);
    return status;
}

static hf_status read_piece(hf_tx *tx, const hf_network *network, int64_t from, int64_t to,
                            struct piece *piece, hf_error *err)
{
    int64_t start = 0;
    hf_status status = find_next(tx, network, from, &start, err);
    piece->ledgers = (hf_range){start, to - start < PIECE ? to : start + PIECE - 1};
    if (status != HF_OK || start > to)
        return status;
    status = hf__coverage_read(tx, network, start, piece->ledgers.to, &piece->covered, err);
    return status == HF_OK ? read_ledgers(tx, network, piece, err) : status;
}

static hf_status check_tables(hf_tx *tx, const hf_network *network, hf_error *err)
{
    hf__tables_there there;
    hf_status status = hf__tables_look(tx, network, &there, err);
    if (status != HF_OK || (there.coverage && there.ledgers && there.transactions && there.store))
        return status;
    status = hf__fail(err, HF_CONFIG, "%s has not all tables of a network", network->schema);
    hf__hint(err,
             "'holdfast ingest --network %s' creates them; 'holdfast ingest adopt' for data that "
             "is there already",
             network->name);
    return status;
}

/* ---- verifying ------------------------------------------------------------------------------- */

struct verification {
    hf_network *network;
    hf_range left;
    struct piece piece;
    hf_range pending[KINDS]; /* not reported yet, as it may go on in the next piece; to 0: none */
    hf__disagreement_fn *fn;
    void *arg;
};

static hf_status read_next(hf_tx *tx, void *arg, hf_error *err)
{
    struct verification *verification = arg;
    piece_free(&verification->piece);
    bool kept = false;
    int64_t floor = 0;
    hf_status status = check_tables(tx, verification->network, err);
    if (status == HF_OK)
        status = hf__cursor_read(tx, verification->network, HF__RETENTION_FLOOR, false, &kept,
                                 &floor, err);
    /* What is left below the floor goes with its partition; nothing claims it. */
    if (kept && floor > verification->left.from)
        verification->left.from = floor;
    if (status == HF_OK)
        status = read_piece(tx, verification->network, verification->left.from,
                            verification->left.to, &verification->piece, err);
    return status;
}

static void tell(struct verification *verification, hf__disagreement kind, const hf__ranges *found)
{
    hf_range *pending = &verification->pending[kind];
    for (size_t i = 0; i < found->count; i++) {
        const hf_range *range = &found->items[i];
        if (pending->to > 0 && range->from == pending->to + 1) {
            pending->to = range->to;
            continue;
        }
        if (pending->to > 0)
            verification->fn(verification->arg, kind, *pending);
        *pending = *range;
    }
}

static void tell_rest(const struct verification *verification)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (verification->pending[kind].to > 0)
            verification->fn(verification->arg, (hf__disagreement)kind,
                             verification->pending[kind]);
}

/* Adds a without b to out. */
static bool subtract(const hf__ranges *a, const hf__ranges *b, hf__ranges *out)
{
    bool ok = true;
    for (size_t i = 0; ok && i < a->count; i++)
        ok = hf__ranges_missing(b, a->items[i].from, a->items[i].to, out);
    return ok;
}

static hf_status compare(struct verification *verification, hf_error *err)
{
    const struct piece *piece = &verification->piece;
    hf__ranges not_whole = {0}, missing = {0}, uncovered = {0};
    bool ok = subtract(&piece->covered, &piece->whole, &not_whole) &&
              subtract(&not_whole, &piece->partial, &missing) &&
              subtract(&piece->whole, &piece->covered, &uncovered);
    if (ok) {
        tell(verification, HF__DATA_MISSING, &missing);
        tell(verification, HF__DATA_INCOMPLETE, &piece->partial);
        tell(verification, HF__DATA_UNCOVERED, &uncovered);
    }
    hf__ranges_free(&not_whole);
    hf__ranges_free(&missing);
    hf__ranges_free(&uncovered);
    return ok ? HF_OK : hf__no_memory(err);
}

hf_status hf__coverage_verify(hf_network *network, int64_t from, int64_t to,
                              hf__disagreement_fn *fn, void *arg, hf_error *err)
{
    struct verification verification = {
        .network = network,
        .left = {from > 0 ? from : 0, to > 0 && to < INT32_MAX ? to : INT32_MAX},
        .fn = fn,
        .arg = arg};
    hf_status status = HF_OK;
    bool there = true;
    while (status == HF_OK && there && verification.left.from <= verification.left.to) {
        status = hf__network_read(network, read_next, &verification, &there, err);
        if (status == HF_OK && there)
            status = compare(&verification, err);
        verification.left.from = verification.piece.ledgers.to + 1;
        if (verification.piece.ledgers.from > verification.left.to)
            break;
    }
    if (status == HF_OK)
        tell_rest(&verification);
    piece_free(&verification.piece);
    return status;
}

/* ---- rebuilding ------------------------------------------------------------------------------ */

hf_status hf__coverage_measure(hf_tx *tx, const hf_network *network, int64_t from,
                               hf__ranges *ranges, hf_error *err)
{
    hf_status status = HF_OK;
    while (status == HF_OK && from <= INT32_MAX) {
        struct piece piece = {0};
        bool ok = true;
        status = find_next(tx, network, from, &piece.ledgers.from, err);
        if (status != HF_OK || piece.ledgers.from > INT32_MAX)
            return status;
        piece.ledgers.to =
            INT32_MAX - piece.ledgers.from < PIECE ? INT32_MAX : piece.ledgers.from + PIECE - 1;
        status = read_ledgers(tx, network, &piece, err);
        for (size_t i = 0; ok && status == HF_OK && i < piece.whole.count; i++)
            ok = hf__ranges_add(ranges, piece.whole.items[i].from, piece.whole.items[i].to);
        from = piece.ledgers.to + 1;
        piece_free(&piece);
        if (!ok)
            return hf__no_memory(err);
    }
    return status;
}

static hf_status insert_ranges(hf_tx *tx, const hf_network *network, const hf__ranges *ranges,
                               hf_error *err)
{
    hf_status status = HF_OK;
    hf__buf rows = {0};
    for (size_t i = 0; status == HF_OK && i < ranges->count;) {
        hf__buf_clear(&rows);
        for (size_t row = 0; row < ROWS_PER_INSERT && i < ranges->count; row++, i++)
            hf__buf_printf(&rows, "%s(%" PRId64 ",%" PRId64 ")", row > 0 ? "," : "",
                           ranges->items[i].from, ranges->items[i].to);
        const hf__sql_part parts[] = {{"prefix", network->prefix}, {"rows", rows.data}, {0}};
        status = rows.broken ? hf__no_memory(err)
                             : hf__tx_query_sql(tx, &hf__sql_ledgers_coverage_fill, parts, 0, NULL,
                                                NULL, err);
    }
    hf__buf_free(&rows);
    return status;
}

hf_status hf__coverage_replace(hf_tx *tx, const hf_network *network, const hf__ranges *ranges,
                               hf_error *err)
{
    hf_status status =
        hf__network_query(tx, network, &hf__sql_ledgers_coverage_clear, 0, NULL, NULL, err);
    return status == HF_OK ? insert_ranges(tx, network, ranges, err) : status;
}

/*
 * Replaces coverage by what the data shows above the retention floor, and returns it in *ranges.
 * The transaction should do nothing else on this network.
 */
static hf_status rebuild_coverage(hf_tx *tx, const hf_network *network, hf__ranges *ranges,
                                  hf_error *err)
{
    bool kept = false;
    int64_t floor = 0;
    ranges->count = 0;
    /*
     * Retention stores the floor before it drops anything, so what it drops now is below the floor.
     */
    hf_status status = hf__network_lock(tx, network, network->coverage_key, err);
    if (status == HF_OK)
        status = hf__cursor_read(tx, network, HF__RETENTION_FLOOR, false, &kept, &floor, err);
    if (status == HF_OK)
        status = hf__coverage_measure(tx, network, kept && floor > 0 ? floor : 0, ranges, err);
    return status == HF_OK ? hf__coverage_replace(tx, network, ranges, err) : status;
}

struct repairing {
    hf_network *network;
    hf__repair *repair;
    hf__ranges ranges;
};

static hf_status follow(hf_tx *tx, const hf_network *network, const char *name, int64_t value,
                        bool *moved, hf_error *err)
{
    bool found = false;
    int64_t before = 0;
    hf_status status = hf__cursor_read(tx, network, name, true, &found, &before, err);
    *moved = status == HF_OK && (!found || before != value);
    return *moved ? hf__cursor_write(tx, network, name, value, err) : status;
}

static hf_status repair(hf_tx *tx, void *arg, hf_error *err)
{
    struct repairing *repairing = arg;
    hf_network *network = repairing->network;
    hf__repair *report = repairing->repair;
    const hf__ranges *ranges = &repairing->ranges;
    *report = (hf__repair){0};
    hf_status status = check_tables(tx, network, err);
    if (status == HF_OK)
        status = rebuild_coverage(tx, network, &repairing->ranges, err);
    if (status != HF_OK || ranges->count == 0)
        return status;
    report->ranges = ranges->count;
    for (size_t i = 0; i < ranges->count; i++)
        report->ledgers += ranges->items[i].to - ranges->items[i].from + 1;
    report->oldest = ranges->items[ranges->count - 1].from;
    report->latest = ranges->items[ranges->count - 1].to;
    status = follow(tx, network, network->latest, report->latest, &report->latest_moved, err);
    if (status == HF_OK)
        status = follow(tx, network, network->oldest, report->oldest, &report->oldest_moved, err);
    return status;
}

hf_status hf__coverage_repair(hf_network *network, hf__repair *report, hf_error *err)
{
    struct repairing repairing = {.network = network, .repair = report};
    hf_target target = {.label = network->label, .derivation = HF_FNV1A64};
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_tx_options options = hf__network_tx_options(network);
    hf_lock *lock = NULL;
    spec.targets = &target;
    spec.target_count = 1;
    spec.flags = HF_PRIVATE;
    spec.wait_ms = 0;
    hf_status status = hf_lock_acquire(network->store, &spec, &lock, err);
    if (status == HF_OK)
        status = hf_lock_transact(lock, &options, repair, &repairing, err);
    hf_lock_free(lock);
    hf__ranges_free(&repairing.ranges);
    return status;
}
