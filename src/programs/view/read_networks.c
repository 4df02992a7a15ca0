/* Networks of a snapshot: their status, who ingests, and how fast. */
#include "programs/view/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    SKIP_MS = 60 * 1000,
    LOCKED_MS = 2000, /* a table that is locked for longer is not waited for */
    LOCKED_SKIP_MS = 10 * 1000,
    RATE_WINDOW_MS = 60 * 1000,
    RATE_STEP_MS = 1000, /* the least time between two samples */
};

/* ---- reading --------------------------------------------------------------------------------- */

void hf__networks_reading_free(hf__view_reading *reading)
{
    for (size_t i = 0; i < reading->network_count; i++) {
        hf__ranges_free(&reading->networks[i].coverage);
        hf__ranges_free(&reading->networks[i].gaps);
    }
    free(reading->networks);
    reading->networks = NULL;
    reading->network_count = 0;
}

static const char *why_skipped(const hf__networks *networks, const char *schema)
{
    int64_t now = hf__now_ms();
    for (size_t i = 0; i < HF__NETWORKS_SKIPPED; i++)
        if (strcmp(networks->skipped[i].schema, schema) == 0 && networks->skipped[i].until_ms > now)
            return networks->skipped[i].problem;
    return NULL;
}

static bool is_locked(const hf_error *err)
{
    return strcmp(err->sqlstate, "55P03") == 0;
}

/* The server refused a statement on this network, and the whole transaction fails with it. */
static bool is_its_own_fault(hf_status status, const hf_error *err)
{
    return is_locked(err) || (status == HF_DATABASE && (strncmp(err->sqlstate, "42", 2) == 0 ||
                                                        strncmp(err->sqlstate, "22", 2) == 0));
}

static void skip(hf__networks *networks, const char *schema, const hf_error *why)
{
    size_t at = networks->next_skipped++ % HF__NETWORKS_SKIPPED;
    (void)snprintf(networks->skipped[at].schema, sizeof networks->skipped[at].schema, "%s", schema);
    (void)snprintf(networks->skipped[at].problem, sizeof networks->skipped[at].problem, "%.255s",
                   is_locked(why) ? "somebody locks one of its tables: 'holdfast ingest status' "
                                    "says who"
                                  : why->message);
    networks->skipped[at].until_ms = hf__now_ms() + (is_locked(why) ? LOCKED_SKIP_MS : SKIP_MS);
}

/* A network in a schema of another name is called NETWORK@SCHEMA; without a network, @SCHEMA. */
static void name_reading(hf__network_reading *reading, const char *network)
{
    size_t prefix = strlen(HF__SCHEMA_PREFIX);
    bool usual = strncmp(reading->schema, HF__SCHEMA_PREFIX, prefix) == 0;
    const char *after = usual ? reading->schema + prefix : "";
    (void)snprintf(reading->network, sizeof reading->network, "%s", network ? network : after);
    if (usual && strcmp(reading->network, after) == 0)
        (void)snprintf(reading->name, sizeof reading->name, "%s", reading->network);
    else
        (void)snprintf(reading->name, sizeof reading->name, "%s@%s", reading->network,
                       reading->schema);
}

struct read_in {
    hf_store *store;
    hf__network_reading *reading;
};

static hf_status read_in(hf_tx *tx, void *arg, hf_error *err)
{
    const struct read_in *in = arg;
    hf__network_reading *reading = in->reading;
    hf_network *network = NULL;
    hf__ranges_free(&reading->coverage); /* of an attempt before */
    hf__ranges_free(&reading->gaps);
    hf_status status = hf__network_find(in->store, tx, reading->schema, &network, err);
    if (status != HF_OK)
        return status;
    name_reading(reading, network->name);
    reading->lock_key = network->lock_key;
    status = hf__network_status_read_in(tx, network, &reading->status, &reading->coverage,
                                        &reading->gaps, err);
    hf_network_free(network);
    return status;
}

/* A problem with one network goes into its reading, so that the others are still shown. */
static hf_status read_network(hf__networks *networks, hf_store *store, hf_tx *tx,
                              const hf__network_entry *entry, hf__network_reading *reading,
                              bool *again, hf_error *err)
{
    struct read_in in = {store, reading};
    hf_error why = {0};
    (void)snprintf(reading->schema, sizeof reading->schema, "%s", entry->schema);
    name_reading(reading, NULL);
    const char *problem = entry->readable ? why_skipped(networks, entry->schema)
                                          : "this role may not read its tables";
    if (problem) {
        (void)snprintf(reading->problem, sizeof reading->problem, "%s", problem);
        return HF_OK;
    }
    hf_status status =
        tx ? read_in(tx, &in, &why) : hf__schema_read(store, entry->schema, 0, read_in, &in, &why);
    if (status == HF_OK)
        return HF_OK;
    if (!tx || status == HF_BAD_DATA || status == HF_CONFIG) {
        (void)snprintf(reading->problem, sizeof reading->problem, "%.255s", why.message);
        return HF_OK;
    }
    if (is_its_own_fault(status, &why)) {
        skip(networks, entry->schema, &why);
        *again = true;
    }
    *err = why;
    return status;
}

/* Of a network that could not be read, what came before the failure is no use to anybody. */
static void forget_half_read(hf__network_reading *reading)
{
    if (!reading->problem[0])
        return;
    reading->status = (hf__network_status){.exists = reading->status.exists};
    hf__ranges_free(&reading->coverage);
    hf__ranges_free(&reading->gaps);
}

hf_status hf__networks_gather(hf__networks *networks, hf_store *store, hf_tx *tx,
                              hf__view_reading *reading, bool *again, hf_error *err)
{
    hf__network_entry *entries = NULL;
    size_t count = 0;
    hf_status status = hf__networks_list(store, tx, &entries, &count, err);
    if (status == HF_OK && tx && count > 0)
        status = hf__tx_bound_waits(tx, LOCKED_MS, err);
    if (status == HF_OK && count > 0) {
        reading->networks = calloc(count, sizeof *reading->networks);
        if (!reading->networks)
            status = hf__no_memory(err);
    }
    for (size_t i = 0; status == HF_OK && i < count; i++) {
        reading->network_count = i + 1;
        status = read_network(networks, store, tx, &entries[i], &reading->networks[i], again, err);
        forget_half_read(&reading->networks[i]);
    }
    free(entries);
    return status;
}

/* ---- rate ------------------------------------------------------------------------------------ */

void hf__networks_clear(hf__networks *networks)
{
    free(networks->rates);
    *networks = (hf__networks){0};
}

static hf__rate_of *find_rate(hf__networks *networks, const char *schema)
{
    for (size_t i = 0; i < networks->rate_count; i++)
        if (strcmp(networks->rates[i].schema, schema) == 0)
            return &networks->rates[i];
    hf__rate_of *rates =
        reallocarray(networks->rates, networks->rate_count + 1, sizeof *networks->rates);
    if (!rates)
        return NULL;
    networks->rates = rates;
    hf__rate_of *rate = &rates[networks->rate_count++];
    *rate = (hf__rate_of){0};
    (void)snprintf(rate->schema, sizeof rate->schema, "%s", schema);
    return rate;
}

static void drop_samples(hf__rate_of *rate, size_t count)
{
    rate->count -= count;
    memmove(&rate->samples[0], &rate->samples[count], rate->count * sizeof *rate->samples);
}

static void add_sample(hf__rate_of *rate, bool counted, int64_t ledgers, int64_t now_ms)
{
    size_t last = rate->count - 1, old = 0;
    if (rate->count > 0 && (rate->counted != counted || ledgers < rate->samples[last].ledgers ||
                            now_ms < rate->samples[last].at_ms))
        rate->count = 0; /* the counter started again */
    rate->counted = counted;
    if (rate->count > 0 && now_ms - rate->samples[rate->count - 1].at_ms < RATE_STEP_MS)
        return;
    while (old < rate->count && now_ms - rate->samples[old].at_ms > RATE_WINDOW_MS)
        old++;
    if (old == rate->count && old > 0)
        old--; /* keeps one sample from before a long pause */
    if (rate->count - old == HF__RATE_SAMPLES)
        old++;
    drop_samples(rate, old);
    rate->samples[rate->count].at_ms = now_ms;
    rate->samples[rate->count++].ledgers = ledgers;
}

static double rate_of(const hf__rate_of *rate)
{
    if (rate->count < 2)
        return -1;
    int64_t ms = rate->samples[rate->count - 1].at_ms - rate->samples[0].at_ms;
    int64_t ledgers = rate->samples[rate->count - 1].ledgers - rate->samples[0].ledgers;
    return (double)ledgers * 1000 / (double)ms;
}

/* ---- for the snapshot ------------------------------------------------------------------------ */

static hf_range *copy_ranges(hf__arena *arena, const hf__ranges *ranges)
{
    hf_range *copy = hf__arena_array(arena, ranges->count, sizeof *copy);
    if (copy && ranges->count > 0)
        memcpy(copy, ranges->items, ranges->count * sizeof *copy);
    return copy;
}

/* Of a network's lock, which is marked as our own. */
static const char *holder_of(hf__view_draft *draft, int64_t key)
{
    const hf__snapshot *seen = &draft->seen;
    size_t at = hf__locks_find(draft, HF_BIGINT, key);
    if (at != SIZE_MAX)
        seen->locks[at].is_own = true;
    if (at == SIZE_MAX || seen->locks[at].holders == 0)
        return "";
    const hf_lock_view *holder = seen->views[seen->locks[at].first];
    const char *application = holder->application[0] ? holder->application : "somebody";
    if (holder->pid > 0)
        return hf__arena_printf(&draft->arena, "%s on %s (pid %d)", application,
                                holder->host[0] ? holder->host : "an unknown host", holder->pid);
    return hf__arena_printf(&draft->arena, "%s (backend %d)", application, holder->backend_pid);
}

static void show_network(hf__networks *networks, const hf__network_reading *reading,
                         hf__view_draft *draft, hf__seen_network *network)
{
    const hf__network_status *status = &reading->status;
    hf__arena *arena = &draft->arena;
    bool counted = status->live_ledgers.known;
    int64_t ledgers =
        counted ? status->live_ledgers.value +
                      (status->backfill_ledgers.known ? status->backfill_ledgers.value : 0)
                : status->covered;
    *network = (hf__seen_network){
        .name = hf__arena_text(arena, reading->name),
        .network = hf__arena_text(arena, reading->network),
        .schema = hf__arena_text(arena, reading->schema),
        .status = *status,
        .coverage = copy_ranges(arena, &reading->coverage),
        .coverage_count = reading->coverage.count,
        .gaps = copy_ranges(arena, &reading->gaps),
        .gap_count = reading->gaps.count,
        .rate = -1,
        .ingester = holder_of(draft, reading->lock_key),
        .problem = hf__arena_text(arena, reading->problem),
    };
    network->lag = hf__network_lag(status, network->ingester[0] != '\0', draft->seen.taken_ms);
    hf__rate_of *rate = reading->problem[0] ? NULL : find_rate(networks, reading->schema);
    if (!rate)
        return;
    add_sample(rate, counted, ledgers, draft->seen.taken_ms);
    network->rate = rate_of(rate);
}

/* Forgets networks that do not exist any more. */
static void forget_others(hf__networks *networks, const hf__view_reading *reading)
{
    size_t kept = 0;
    for (size_t i = 0; i < networks->rate_count; i++)
        for (size_t j = 0; j < reading->network_count; j++)
            if (strcmp(networks->rates[i].schema, reading->networks[j].schema) == 0) {
                if (kept != i)
                    networks->rates[kept] = networks->rates[i];
                kept++;
                break;
            }
    networks->rate_count = kept;
}

void hf__networks_show(hf__networks *networks, const hf__view_reading *reading,
                       hf__view_draft *draft)
{
    hf__snapshot *seen = &draft->seen;
    seen->networks = hf__arena_array(&draft->arena, reading->network_count, sizeof *seen->networks);
    if (!seen->networks)
        return;
    forget_others(networks, reading);
    seen->network_count = reading->network_count;
    for (size_t i = 0; i < reading->network_count; i++) {
        show_network(networks, &reading->networks[i], draft, &seen->networks[i]);
        const hf__network_status *status = &seen->networks[i].status;
        seen->gaps += seen->networks[i].gap_count;
        seen->gaps_unknown |=
            seen->networks[i].problem[0] != '\0' || (status->latest.known && !status->gaps.known);
        seen->missing_ledgers += seen->networks[i].status.missing;
    }
}
