/* Networks of a snapshot: their status, who ingests, and how fast. */
#include "programs/view/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    SKIP_MS = 60 * 1000,
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

static const char *why_skipped(const hf__networks *networks, const char *name)
{
    int64_t now = hf__now_ms();
    for (size_t i = 0; i < HF__NETWORKS_SKIPPED; i++)
        if (strcmp(networks->skipped[i].name, name) == 0 && networks->skipped[i].until_ms > now)
            return networks->skipped[i].problem;
    return NULL;
}

/* The server refused a statement on this network, and the whole transaction fails with it. */
static bool is_its_own_fault(hf_status status, const hf_error *err)
{
    return status == HF_DATABASE &&
           (strncmp(err->sqlstate, "42", 2) == 0 || strncmp(err->sqlstate, "22", 2) == 0);
}

static void skip(hf__networks *networks, const char *name, const hf_error *why)
{
    size_t at = networks->next_skipped++ % HF__NETWORKS_SKIPPED;
    (void)snprintf(networks->skipped[at].name, sizeof networks->skipped[at].name, "%s", name);
    (void)snprintf(networks->skipped[at].problem, sizeof networks->skipped[at].problem, "%.255s",
                   why->message);
    networks->skipped[at].until_ms = hf__now_ms() + SKIP_MS;
}

static hf_status read_in(hf_tx *tx, const hf_network *network, hf__network_reading *reading,
                         hf_error *err)
{
    hf__ranges_free(&reading->coverage); /* of an attempt before */
    hf__ranges_free(&reading->gaps);
    return hf__network_status_read_in(tx, network, &reading->status, &reading->coverage,
                                      &reading->gaps, err);
}

struct local_reading {
    hf_network *network;
    hf__network_reading *reading;
};

static hf_status read_file(hf_tx *tx, void *arg, hf_error *err)
{
    struct local_reading *local = arg;
    return read_in(tx, local->network, local->reading, err);
}

/* A problem with one network goes into its reading, so that the others are still shown. */
static hf_status read_network(hf__networks *networks, hf_tx *tx, hf_network *network,
                              hf__network_reading *reading, bool *again, hf_error *err)
{
    struct local_reading local = {network, reading};
    const char *skipped = why_skipped(networks, reading->name);
    bool there = false;
    hf_error why = {0};
    if (skipped) {
        (void)snprintf(reading->problem, sizeof reading->problem, "%s", skipped);
        return HF_OK;
    }
    hf_status status = tx ? read_in(tx, network, reading, &why)
                          : hf__network_read(network, read_file, &local, &there, &why);
    if (status == HF_OK)
        return HF_OK;
    if (!tx || status == HF_BAD_DATA || status == HF_CONFIG) {
        (void)snprintf(reading->problem, sizeof reading->problem, "%.255s", why.message);
        return HF_OK;
    }
    if (is_its_own_fault(status, &why)) {
        skip(networks, reading->name, &why);
        *again = true;
    }
    *err = why;
    return status;
}

static hf_status read_named(hf__networks *networks, hf_store *store, hf_tx *tx, const char *name,
                            hf__network_reading *reading, bool *again, hf_error *err)
{
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf_network *network = NULL;
    options.name = name;
    hf_status status = hf_network_open(store, &options, &network, err);
    if (status != HF_OK)
        return status;
    (void)snprintf(reading->name, sizeof reading->name, "%s", network->name);
    reading->lock_key = network->lock_key;
    status = read_network(networks, tx, network, reading, again, err);
    hf_network_free(network);
    return status;
}

hf_status hf__networks_gather(hf__networks *networks, hf_store *store, hf_tx *tx,
                              hf__view_reading *reading, bool *again, hf_error *err)
{
    char **names = NULL;
    size_t count = 0;
    hf_status status = hf__networks_list_in(store, tx, &names, &count, err);
    if (status == HF_OK && count > 0) {
        reading->networks = calloc(count, sizeof *reading->networks);
        if (!reading->networks)
            status = hf__no_memory(err);
    }
    for (size_t i = 0; status == HF_OK && i < count; i++) {
        reading->network_count = i + 1;
        status = read_named(networks, store, tx, names[i], &reading->networks[i], again, err);
    }
    hf__networks_free(names, count);
    return status;
}

/* ---- rate ------------------------------------------------------------------------------------ */

void hf__networks_clear(hf__networks *networks)
{
    free(networks->rates);
    *networks = (hf__networks){0};
}

static hf__rate_of *find_rate(hf__networks *networks, const char *name)
{
    for (size_t i = 0; i < networks->rate_count; i++)
        if (strcmp(networks->rates[i].name, name) == 0)
            return &networks->rates[i];
    hf__rate_of *rates =
        reallocarray(networks->rates, networks->rate_count + 1, sizeof *networks->rates);
    if (!rates)
        return NULL;
    networks->rates = rates;
    hf__rate_of *rate = &rates[networks->rate_count++];
    *rate = (hf__rate_of){0};
    (void)snprintf(rate->name, sizeof rate->name, "%s", name);
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

static const char *holder_of(hf__view_draft *draft, int64_t key)
{
    const hf__snapshot *seen = &draft->seen;
    size_t at = hf__locks_find(draft, HF_BIGINT, key);
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
        .status = *status,
        .coverage = copy_ranges(arena, &reading->coverage),
        .coverage_count = reading->coverage.count,
        .gaps = copy_ranges(arena, &reading->gaps),
        .gap_count = reading->gaps.count,
        .rate = -1,
        .ingester = holder_of(draft, reading->lock_key),
        .problem = hf__arena_text(arena, reading->problem),
    };
    if (status->source_tip.known && status->latest.known)
        network->lag = (hf__maybe){true, status->source_tip.value - status->latest.value};
    hf__rate_of *rate = reading->problem[0] ? NULL : find_rate(networks, reading->name);
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
            if (strcmp(networks->rates[i].name, reading->networks[j].name) == 0) {
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
        seen->gaps += seen->networks[i].gap_count;
        seen->missing_ledgers += seen->networks[i].status.missing;
    }
}
