/* The live ingester: where a network stands, and ledgers that are bad, repeated or of a fork. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "programs/ingest/live.h"
#include "programs/ingest/reconcile.h"
#include "programs/ingest/sql.h"
#include "programs/ingest/writer.h"

/* ---- the state ------------------------------------------------------------------------------- */

struct reading {
    hf_network *network;
    hf__ingest_state *state;
};

static hf_status refuse(const hf_network *network, hf_error *err, const char *what, int64_t claimed,
                        const char *there)
{
    hf_status status =
        hf__fail(err, HF_CONFIG, "the cursor %s of network %s is at %" PRId64 ", but %s", what,
                 network->name, claimed, there);
    hf__hint(err,
             "'holdfast ingest adopt --network %s' builds coverage from the data and says what "
             "the cursor claims without it",
             network->name);
    return status;
}

static hf_status compare(const hf_network *network, bool has_latest, int64_t latest,
                         bool has_oldest, int64_t oldest, bool covered, const hf_range *last,
                         hf_error *err)
{
    char there[96];
    if (has_latest && !covered)
        return refuse(network, err, network->latest, latest, "no ledger is covered");
    if (!has_latest && covered) {
        hf_status status =
            hf__fail(err, HF_CONFIG,
                     "ledgers up to %" PRId64 " of network %s are covered, but it has no cursor %s",
                     last->to, network->name, network->latest);
        hf__hint(err, "give the name of the cursor, or run 'holdfast ingest adopt --network %s'",
                 network->name);
        return status;
    }
    (void)snprintf(there, sizeof there, "coverage ends at %" PRId64, last->to);
    if (covered && latest != last->to)
        return refuse(network, err, network->latest, latest, there);
    (void)snprintf(there, sizeof there, "coverage begins at %" PRId64, last->from);
    if (covered && has_oldest && oldest < last->from)
        return refuse(network, err, network->oldest, oldest, there);
    return HF_OK;
}

static hf_status read_hash(hf_tx *tx, const hf_network *network, int64_t sequence, bool *found,
                           char hash[HF__HASH_MAX + 1], hf_error *err)
{
    char number[24];
    hf_value value = hf__number_value(number, sequence);
    hf_rows *rows = NULL;
    hf_status status =
        hf__network_query(tx, network, &hf__sql_ingest_ledger_hash, 1, &value, &rows, err);
    *found = status == HF_OK && hf_rows_count(rows) > 0;
    if (*found)
        (void)snprintf(hash, HF__HASH_MAX + 1, "%s", hf_rows_value(rows, 0, 0, NULL));
    hf_rows_free(rows);
    return status;
}

/*
 * The latest ledger is covered, but has no row. That is right only where transactions were adopted
 * without any ledgers; otherwise what follows would have no link to what is there.
 */
static hf_status check_adopted(hf_tx *tx, const hf_network *network, int64_t latest, hf_error *err)
{
    char from[24], to[24];
    const hf_value values[] = {hf__number_value(from, hf__toid(latest, 0)),
                               hf__number_value(to, hf__toid(latest + 1, 0))};
    bool found = false;
    int64_t one = 0;
    hf_status status = hf__query_number(tx, network, &hf__sql_ingest_is_without_ledgers, 2, values,
                                        &found, &one, err);
    if (status != HF_OK || found)
        return status;
    status = hf__fail(err, HF_CONFIG,
                      "ledger %" PRId64 ", the latest of network %s, is covered, but has no row in "
                      "ledgers",
                      latest, network->name);
    hf__hint(err,
             "'holdfast gaps --network %s --repair' builds coverage from the data, and ingestion "
             "goes on from there",
             network->name);
    return status;
}

static hf_status read_state(hf_tx *tx, void *arg, hf_error *err)
{
    const struct reading *reading = arg;
    const hf_network *network = reading->network;
    hf__ingest_state *state = reading->state;
    bool has_latest = false, has_oldest = false, covered = false, has_hash = false;
    bool has_max = false;
    int64_t latest = 0, oldest = 0, row_from = 0, quarantined_to = 0;
    hf_range last = {0};

    *state = (hf__ingest_state){0};
    hf_status status =
        hf__cursor_read(tx, network, network->latest, false, &has_latest, &latest, err);
    if (status == HF_OK)
        status = hf__cursor_read(tx, network, network->oldest, false, &has_oldest, &oldest, err);
    if (status == HF_OK)
        status = hf__coverage_last(tx, network, &covered, &last, &row_from, err);
    if (status == HF_OK)
        status = compare(network, has_latest, latest, has_oldest, oldest, covered, &last, err);
    if (status == HF_OK && covered)
        status = read_hash(tx, network, latest, &has_hash, state->tip_hash, err);
    if (status == HF_OK && covered && !has_hash)
        status = check_adopted(tx, network, latest, err);
    if (status == HF_OK)
        status = hf__query_number(tx, network, &hf__sql_ingest_last_quarantined, 0, NULL, &has_max,
                                  &quarantined_to, err);
    if (status != HF_OK)
        return status;
    if (has_max)
        state->quarantined_to = quarantined_to;
    if (!has_hash)
        state->tip_hash[0] = '\0'; /* adopted tables may have transactions, but no ledgers */
    state->started = covered;
    state->latest = latest;
    state->oldest = last.from;
    state->row_from = row_from;
    return HF_OK;
}

hf_status hf__state_read(hf_lock *lock, hf_network *network, hf__ingest_state *state, hf_error *err)
{
    struct reading reading = {.network = network, .state = state};
    hf_tx_options options = hf__network_tx_options(network);
    options.isolation = HF_REPEATABLE_READ; /* retention moves cursor and coverage together */
    options.read_only = true;
    return hf_lock_transact(lock, &options, read_state, &reading, err);
}

static hf_status refuse_predecessor(const struct live *live, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_CURSOR, "network %s does not stand at ledger %" PRId64 " as it did",
                 live->network->name, live->state.latest);
    hf__hint(err, "another program writes to it without the network's lock; nothing was written");
    return status;
}

hf_status hf__live_check_predecessor(const struct live *live, hf_tx *tx, hf_error *err)
{
    const hf_network *network = live->network;
    const hf__ingest_state *state = &live->state;
    char hash[HF__HASH_MAX + 1] = "";
    bool found = false;
    int64_t latest = 0;
    hf_status status = hf__cursor_read(tx, network, network->latest, false, &found, &latest, err);
    if (status == HF_OK && (found != state->started || (found && latest != state->latest)))
        return refuse_predecessor(live, err);
    if (status == HF_OK && found)
        status = read_hash(tx, network, latest, &found, hash, err);
    if (status == HF_OK && strcmp(hash, state->tip_hash) != 0)
        return refuse_predecessor(live, err);
    return status;
}

struct closing {
    const hf_network *network;
    int64_t sequence;
    bool found;
    int64_t at_us;
};

struct lookup {
    const hf_network *network;
    int64_t sequence;
    bool *found;
    char *hash;
};

/* When the latest ledger closed, in microseconds since 1970. *found false: nothing tells. */
static hf_status read_latest_time(hf_tx *tx, void *arg, hf_error *err)
{
    struct closing *closing = arg;
    char number[24];
    hf_value value = hf__number_value(number, closing->sequence);
    return hf__query_number(tx, closing->network, &hf__sql_ingest_closed_at, 1, &value,
                            &closing->found, &closing->at_us, err);
}

static hf_status look_up(hf_tx *tx, void *arg, hf_error *err)
{
    const struct lookup *lookup = arg;
    return read_hash(tx, lookup->network, lookup->sequence, lookup->found, lookup->hash, err);
}

/* Reads the hash of a ledger in a transaction of its own. *found false: it is not stored. */
static hf_status ledger_hash(hf_network *network, int64_t sequence, bool *found,
                             char hash[HF__HASH_MAX + 1], hf_error *err)
{
    struct lookup lookup = {.network = network, .sequence = sequence, .found = found, .hash = hash};
    return hf__network_transact(network, look_up, &lookup, err);
}

struct quarantined {
    const struct live *live;
    int64_t sequence;
    const char *reason;
    const hf__bad_ledger *bad;
};

static hf_status write_quarantine(hf_tx *tx, void *arg, hf_error *err)
{
    const struct quarantined *one = arg;
    hf_status status =
        hf__quarantine_add(tx, one->live->network, one->sequence, one->reason, one->bad, err);
    if (status == HF_OK && !one->live->state.started)
        status = hf__live_want(tx, one->live, one->sequence, err);
    return status;
}

/* A ledger without a number is taken for the next one; before the first ledger there is no next. */
hf_status hf__live_bad(struct live *live, const hf__bad_ledger *bad, const hf_error *why,
                       hf_error *err)
{
    hf_tx_options options = hf__live_tx_options(live);
    int64_t next = live->state.latest + 1 + live->guessed_bad;
    int64_t sequence = bad->sequence > 0 ? bad->sequence : next;
    char text[256];
    if (live->options->on_bad == HF__BAD_STOPS || (bad->sequence == 0 && !live->state.started)) {
        if (err)
            *err = *why;
        hf__hint(err, live->options->on_bad == HF__BAD_STOPS
                          ? "mend the source; --on-bad quarantine keeps such a ledger apart and "
                            "goes on"
                          : "mend the source: before the first ledger, quarantine has no number "
                            "to keep it under");
        return HF_BAD_DATA;
    }
    struct quarantined one = {live, sequence, why->message, bad};
    hf_status status = hf_lock_transact(live->lock, &options, write_quarantine, &one, err);
    if (status != HF_OK)
        return status;
    live->progress->quarantined++;
    if (sequence > live->state.quarantined_to)
        live->state.quarantined_to = sequence;
    if (!live->state.started && (live->wanted == 0 || sequence < live->wanted))
        live->wanted = sequence;
    live->guessed_bad += sequence >= next;
    live->link_is_unknown = true;
    (void)snprintf(text, sizeof text, "ledger %" PRId64 " is in quarantine: %.180s", sequence,
                   why->message);
    hf__live_note(live, text);
    return HF_OK;
}

static hf_status refuse_fork(const struct live *live, int64_t sequence, hf__slice theirs,
                             const char *ours, hf_error *err)
{
    hf_status status = hf__fail(err, HF_BAD_DATA,
                                "network %s has forked or was reset: ledger %" PRId64
                                " is %s here and %.*s at the source",
                                live->network->name, sequence, ours, (int)theirs.size, theirs.text);
    hf__hint(err, "'holdfast ingest reset --network %s --to LEDGER' removes what is behind LEDGER",
             live->network->name);
    return status;
}

/*
 * An old ledger of the source that is not stored, perhaps because retention has dropped it. In one
 * chain it closed before the latest one.
 */
static hf_status compare_times(struct live *live, const hf__ledger *ledger, hf_error *err)
{
    struct closing closing = {.network = live->network, .sequence = live->state.latest};
    hf_status status = hf__network_transact(live->network, read_latest_time, &closing, err);
    if (status != HF_OK || !closing.found || ledger->closed_at_us <= closing.at_us)
        return status;
    status = hf__fail(err, HF_BAD_DATA,
                      "network %s was reset: ledger %" PRId64
                      " of the source closed after ledger %" PRId64 ", the latest here",
                      live->network->name, ledger->sequence, live->state.latest);
    hf__hint(err, "'holdfast ingest reset --network %s --to 0' removes what is there",
             live->network->name);
    return status;
}

hf_status hf__live_compare_known(struct live *live, const hf__ledger *ledger, hf_error *err)
{
    char hash[HF__HASH_MAX + 1] = "";
    bool found = ledger->sequence == live->state.latest && live->state.tip_hash[0] != '\0';
    hf_status status = HF_OK;
    if (found || ledger->sequence == live->state.latest)
        (void)snprintf(hash, sizeof hash, "%s", live->state.tip_hash);
    else
        status = ledger_hash(live->network, ledger->sequence, &found, hash, err);
    if (status == HF_OK && found && !hf__slice_is(ledger->hash, hash))
        status = refuse_fork(live, ledger->sequence, ledger->hash, hash, err);
    else if (status == HF_OK && !found)
        status = compare_times(live, ledger, err);
    if (status == HF_OK)
        live->progress->skipped++;
    return status;
}

/* ---- order ---- */

struct order {
    const struct live *live;
    int64_t sequence;
    bool lacks;
};

/* Of a first run everything is wanted that the source has, unless a start was named. */
static hf_status look_for_lack(hf_tx *tx, void *arg, hf_error *err)
{
    struct order *order = arg;
    const struct live *live = order->live;
    hf_range one = {order->sequence, order->sequence};
    bool wants = live->is_first_run && live->options->start_ledger == 0;
    bool has_row = false, has_floor = false;
    int64_t row = 0, floor = 0;
    hf__ranges missing = {0};
    hf_status status = hf__gaps_read(tx, live->network, one, &missing, err);
    if (status == HF_OK)
        status = hf__cursor_read(tx, live->network, HF__WANTED_FROM, false, &has_row, &row, err);
    if (status == HF_OK)
        status =
            hf__cursor_read(tx, live->network, HF__RETENTION_FLOOR, false, &has_floor, &floor, err);
    order->lacks = missing.count > 0 && (wants || (has_row && one.from >= row)) &&
                   (!has_floor || one.from >= floor);
    hf__ranges_free(&missing);
    return status == HF_OK && order->lacks ? hf__live_want(tx, live, one.from, err) : status;
}

static int64_t next_expected(const struct live *live)
{
    if (live->batch.count > 0)
        return batch_last(&live->batch) + 1;
    return live->state.started ? live->state.latest + 1 : 0;
}

static hf_status refuse_order(int64_t after, int64_t sequence, hf_error *err)
{
    hf_status status = hf__fail(err, HF_BAD_DATA,
                                "ledger %" PRId64 " came after ledger %" PRId64
                                " and is missing: the source is not in ascending order",
                                sequence, after);
    hf__hint(err, "sort the source; 'holdfast gaps' lists what is missing, and 'holdfast ingest "
                  "--gaps' fills it in");
    return status;
}

hf_status hf__live_check_order(struct live *live, const hf__ledger *ledger, hf_error *err)
{
    hf_tx_options options = hf__live_tx_options(live);
    struct order order = {.live = live, .sequence = ledger->sequence};
    if (ledger->sequence >= live->state.oldest)
        return HF_OK; /* in the last run of coverage: as a file gives them again */
    hf_status status = hf_lock_transact(live->lock, &options, look_for_lack, &order, err);
    return status == HF_OK && order.lacks
               ? refuse_order(next_expected(live) - 1, ledger->sequence, err)
               : status;
}

static hf_status refuse_jump(const struct live *live, int64_t expected, int64_t sequence,
                             hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_BAD_DATA,
                 "the source jumps to ledger %" PRId64 " where %" PRId64 " of network %s is next",
                 sequence, expected, live->network->name);
    hf__hint(err, "a source gives ledgers one after the other; fetch the missing ones first");
    return status;
}

static const char *last_hash(const struct live *live, char out[HF__HASH_MAX + 1])
{
    if (live->batch.count > 0) {
        hf__slice hash = live->batch.ledgers[live->batch.count - 1]->hash;
        (void)snprintf(out, HF__HASH_MAX + 1, "%.*s", (int)hash.size, hash.text);
    } else {
        (void)snprintf(out, HF__HASH_MAX + 1, "%s", live->state.tip_hash);
    }
    return out;
}

/*
 * If ledgers were quarantined, the next good one may come after them: up to guessed_bad numbers
 * further on, and without a hash to compare.
 */
hf_status hf__live_check_link(struct live *live, const hf__ledger *ledger, hf_error *err)
{
    char hash[HF__HASH_MAX + 1];
    int64_t expected = next_expected(live);
    bool excused = ledger->sequence > expected &&
                   ledger->sequence <= expected + live->guessed_bad && live->batch.count == 0;
    if (expected == 0)
        return HF_OK;
    if (ledger->sequence < expected && !live->state.started) {
        if (live->options->start_ledger == 0 && (ledger->sequence < live->wanted || !live->wanted))
            live->wanted = ledger->sequence; /* the batch before it is committed, with this */
        return refuse_order(expected - 1, ledger->sequence, err);
    }
    if (ledger->sequence != expected && !excused)
        return refuse_jump(live, expected, ledger->sequence, err);
    if (excused || live->link_is_unknown || !ledger->previous_hash.text)
        return HF_OK;
    last_hash(live, hash);
    return hash[0] == '\0' || hf__slice_is(ledger->previous_hash, hash)
               ? HF_OK
               : refuse_fork(live, expected - 1, ledger->previous_hash, hash, err);
}

hf_status hf__live_compare_pending(struct live *live, const hf__ledger *ledger, hf_error *err)
{
    const struct batch *batch = &live->batch;
    char hash[HF__HASH_MAX + 1];
    const hf__ledger *pending = batch->ledgers[ledger->sequence - batch_first(batch)];
    (void)snprintf(hash, sizeof hash, "%.*s", (int)pending->hash.size, pending->hash.text);
    live->progress->skipped++;
    return hf__slice_is(ledger->hash, hash)
               ? HF_OK
               : refuse_fork(live, ledger->sequence, ledger->hash, hash, err);
}

/* ---- when the store refuses a ledger --------------------------------------------------------- */

bool hf__live_is_class(const hf_error *err, const char *class_name)
{
    return strncmp(err->sqlstate, class_name, 2) == 0;
}

/* Data exception, integrity violation, or an undefined table or column. */
bool hf__live_is_about_data(const hf_error *err)
{
    return err->code == HF_DATABASE &&
           (hf__live_is_class(err, "22") || hf__live_is_class(err, "23") ||
            hf__live_is_class(err, "42"));
}

/*
 * The rows of the ledger exist, although it was not covered. If they have another hash, it is a
 * fork. If the ledger is covered by now, it can be dropped. Otherwise another program wrote them.
 */
static hf_status look_at_duplicate(struct live *live, const hf_error *why, hf_error *err)
{
    const hf__ledger *ledger = live->batch.ledgers[0];
    char hash[HF__HASH_MAX + 1];
    bool found = false;
    hf_status status = ledger_hash(live->network, ledger->sequence, &found, hash, err);
    if (status != HF_OK)
        return status;
    if (found && !hf__slice_is(ledger->hash, hash))
        return refuse_fork(live, ledger->sequence, ledger->hash, hash, err);
    status = hf__state_read(live->lock, live->network, &live->state, err);
    if (status != HF_OK)
        return status;
    if (live->state.started && live->state.latest >= ledger->sequence)
        return hf__live_check_again(live, err);
    status = hf__fail(err, HF_BAD_DATA,
                      "rows of ledger %" PRId64 " are there, but it is not covered: %.200s",
                      ledger->sequence, why->message);
    hf__hint(err,
             "'holdfast gaps --network %s --repair' covers it if all of its rows are there; "
             "'holdfast ingest reset --network %s --to %" PRId64 "' removes them",
             live->network->name, live->network->name, ledger->sequence - 1);
    return status;
}

hf_status hf__live_blame(struct live *live, const hf_error *why, hf_error *err)
{
    const hf__ledger *ledger = live->batch.ledgers[0];
    hf__bad_ledger bad;
    hf_error reason;
    if (strcmp(why->sqlstate, "23505") == 0)
        return look_at_duplicate(live, why, err);
    (void)!hf__fail(&reason, HF_BAD_DATA, "ledger %" PRId64 " cannot be stored: %.400s",
                    ledger->sequence, why->message);
    memcpy(reason.sqlstate, why->sqlstate, sizeof reason.sqlstate);
    if (hf__live_is_class(why, "42")) { /* somebody altered a table: not the ledger's fault */
        *err = reason;
        hf__hint(err, "the tables of network %s are not as they were made", live->network->name);
        return HF_CONFIG;
    }
    hf__quarantine_describe(ledger, &bad);
    hf_status status = hf__live_bad(live, &bad, &reason, err);
    if (status == HF_OK)
        batch_drop_known(&live->batch, bad.sequence);
    hf__bad_ledger_free(&bad);
    return status;
}
