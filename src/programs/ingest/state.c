#include "programs/ingest/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
    hf_status status = hf__network_query(
        tx, network, "SELECT hash FROM @ledgers WHERE sequence = $1", 1, &value, &rows, err);
    *found = status == HF_OK && hf_rows_count(rows) > 0;
    if (*found)
        (void)snprintf(hash, HF__HASH_MAX + 1, "%s", hf_rows_value(rows, 0, 0, NULL));
    hf_rows_free(rows);
    return status;
}

static hf_status read_state(hf_tx *tx, void *arg, hf_error *err)
{
    const struct reading *reading = arg;
    const hf_network *network = reading->network;
    hf__ingest_state *state = reading->state;
    bool has_latest = false, has_oldest = false, covered = false, has_hash = false;
    int64_t latest = 0, oldest = 0, row_from = 0;
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
    if (status != HF_OK)
        return status;
    if (!has_hash)
        state->tip_hash[0] = '\0'; /* tables that were adopted may have transactions alone */
    state->started = covered;
    state->latest = latest;
    state->oldest = last.from;
    state->row_from = row_from;
    return HF_OK;
}

hf_status hf__state_read(hf_network *network, hf__ingest_state *state, hf_error *err)
{
    struct reading reading = {.network = network, .state = state};
    return hf__network_transact(network, read_state, &reading, err);
}

struct lookup {
    const hf_network *network;
    int64_t sequence;
    bool *found;
    char *hash;
};

static hf_status look_up(hf_tx *tx, void *arg, hf_error *err)
{
    const struct lookup *lookup = arg;
    return read_hash(tx, lookup->network, lookup->sequence, lookup->found, lookup->hash, err);
}

hf_status hf__ledger_hash(hf_network *network, int64_t sequence, bool *found,
                          char hash[HF__HASH_MAX + 1], hf_error *err)
{
    struct lookup lookup = {.network = network, .sequence = sequence, .found = found, .hash = hash};
    return hf__network_transact(network, look_up, &lookup, err);
}
