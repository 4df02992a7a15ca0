/*
 * Which metrics there are. Both formats have the same series under the same names, and differ in
 * how a family begins: the text format names a counter with its _total, OpenMetrics without.
 */
#include "programs/serve/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const outcomes[] = {
#define X(word) #word,
    HF__OUTCOMES(X)
#undef X
};

static const char *const losses[] = {
#define X(word) #word,
    HF__LOSSES(X)
#undef X
};

static const char *const exits[] = {
#define X(word) #word,
    HF__EXITS(X)
#undef X
};

enum {
    LOCKS_BY_NAME = 2000,   /* the others are added up: nobody can use a hundred thousand series */
    BYTES_PER_LOCK = 2048,  /* of its samples, about */
    BYTES_PER_SERIES = 128, /* and its heading */
};

static const char *const modes[] = {[HF_EXCLUSIVE] = "exclusive", [HF_SHARED] = "shared"};

/* The meters that are shown: the first ones by name, and all others together. */
struct shown {
    const hf__lock_meter *meters;
    size_t count;
    size_t namesake; /* a lock that is itself called HF__OTHER: it counts with the others */
    hf__lock_meter rest;
    hf__metric_labels labels; /* of count + 1 */
};

/* ---- locks ---- */

static void add_histogram(hf__histogram *sum, const hf__histogram *part)
{
    for (size_t i = 0; i <= HF__HISTOGRAM_BUCKETS; i++)
        sum->buckets[i] += part->buckets[i];
    sum->count += part->count;
    sum->sum += part->sum;
}

static void add_meter(hf__lock_meter *sum, const hf__lock_meter *part)
{
    for (size_t i = 0; i < sizeof sum->held / sizeof *sum->held; i++)
        sum->held[i] += part->held[i];
    sum->waiters += part->waiters;
    if (part->longest_wait_ms > sum->longest_wait_ms)
        sum->longest_wait_ms = part->longest_wait_ms;
    if (part->acquired_ms > 0 && (sum->acquired_ms == 0 || part->acquired_ms < sum->acquired_ms))
        sum->acquired_ms = part->acquired_ms;
    for (size_t i = 0; i < HF__OUTCOME_COUNT; i++)
        sum->outcomes[i] += part->outcomes[i];
    for (size_t i = 0; i < HF__LOSS_COUNT; i++)
        sum->losses[i] += part->losses[i];
    for (size_t i = 0; i < HF__EXIT_COUNT; i++)
        sum->exits[i] += part->exits[i];
    if (sum->has_histogram) {
        add_histogram(&sum->wait, &part->wait);
        add_histogram(&sum->hold, &part->hold);
    }
}

static const hf__lock_meter *meter_at(const struct shown *shown, size_t at)
{
    return at < shown->count ? &shown->meters[at + (at >= shown->namesake)] : &shown->rest;
}

/* Prometheus refuses a document in which two series have one name. */
static void leave_out_namesake(struct shown *shown)
{
    shown->namesake = SIZE_MAX;
    for (size_t i = 0; i < shown->count; i++)
        if (strcmp(shown->meters[i].lock, HF__OTHER) == 0) {
            add_meter(&shown->rest, &shown->meters[i]);
            shown->namesake = i;
            shown->count--;
            return;
        }
}

static bool begin_shown(const hf__snapshot *snapshot, struct shown *shown)
{
    size_t named = snapshot->meter_count > 0 ? snapshot->meter_count - 1 : 0;
    shown->meters = snapshot->meters;
    shown->count = named < LOCKS_BY_NAME ? named : LOCKS_BY_NAME;
    shown->rest = (hf__lock_meter){.lock = HF__OTHER};
    if (snapshot->meter_count > 0)
        shown->rest.has_histogram = snapshot->meters[named].has_histogram;
    for (size_t i = shown->count; i < snapshot->meter_count; i++)
        add_meter(&shown->rest, &snapshot->meters[i]);
    leave_out_namesake(shown);
    for (size_t i = 0; i < shown->count; i++)
        hf__metric_labels_add(&shown->labels, "lock", meter_at(shown, i)->lock);
    hf__metric_labels_add(&shown->labels, "lock", HF__OTHER);
    return !hf__metric_labels_broken(&shown->labels);
}

/* A family that has one count for each lock and each of a few words, which are the second label. */
static void write_split(hf__metrics *metrics, const struct shown *shown, const char *label,
                        const char *const *values, size_t count, size_t offset)
{
    for (size_t i = 0; i <= shown->count; i++) {
        const char *meter = (const char *)meter_at(shown, i);
        for (size_t v = 0; v < count; v++) {
            uint64_t number = 0;
            memcpy(&number, meter + offset + v * sizeof number, sizeof number);
            hf__metric_begin(metrics, "");
            hf__metric_label(metrics, hf__metric_label_at(&shown->labels, i));
            hf__metric_word(metrics, label, values[v]);
            hf__metric_count(metrics, number);
        }
    }
}

static void write_waiters(hf__metrics *metrics, const struct shown *shown)
{
    hf__metric_family(metrics, "holdfast_lock_waiters", HF__METRIC_GAUGE, "",
                      "Waiters for the lock now.");
    for (size_t i = 0; i <= shown->count; i++) {
        hf__metric_begin(metrics, "");
        hf__metric_label(metrics, hf__metric_label_at(&shown->labels, i));
        hf__metric_count(metrics, meter_at(shown, i)->waiters);
    }
}

static void write_times(hf__metrics *metrics, const struct shown *shown, const char *name,
                        const char *help, size_t offset)
{
    hf__metric_family(metrics, name, HF__METRIC_GAUGE, "seconds", help);
    for (size_t i = 0; i <= shown->count; i++) {
        int64_t ms = 0;
        memcpy(&ms, (const char *)meter_at(shown, i) + offset, sizeof ms);
        hf__metric_begin(metrics, "");
        hf__metric_label(metrics, hf__metric_label_at(&shown->labels, i));
        hf__metric_ms(metrics, ms);
    }
}

static void write_histogram(hf__metrics *metrics, hf__metric_text label,
                            const hf__histogram *histogram)
{
    uint64_t below = 0;
    for (size_t i = 0; i <= HF__HISTOGRAM_BUCKETS; i++) {
        bool last = i == HF__HISTOGRAM_BUCKETS;
        below += histogram->buckets[i];
        hf__metric_begin(metrics, "_bucket");
        hf__metric_label(metrics, label);
        hf__metric_bound(metrics, last ? INFINITY : hf__histogram_bounds[i]);
        hf__metric_count(metrics, below);
    }
    hf__metric_begin(metrics, "_sum");
    hf__metric_label(metrics, label);
    hf__metric_seconds(metrics, histogram->sum);
    hf__metric_begin(metrics, "_count");
    hf__metric_label(metrics, label);
    hf__metric_count(metrics, histogram->count);
}

static void write_histograms(hf__metrics *metrics, const struct shown *shown)
{
    hf__metric_family(metrics, "holdfast_lock_wait_seconds", HF__METRIC_HISTOGRAM, "seconds",
                      "How long attempts waited, of locks that the registry marks.");
    for (size_t i = 0; i <= shown->count; i++)
        if (meter_at(shown, i)->has_histogram)
            write_histogram(metrics, hf__metric_label_at(&shown->labels, i),
                            &meter_at(shown, i)->wait);
    hf__metric_family(metrics, "holdfast_lock_hold_seconds", HF__METRIC_HISTOGRAM, "seconds",
                      "How long the lock was held, of locks that the registry marks.");
    for (size_t i = 0; i <= shown->count; i++)
        if (meter_at(shown, i)->has_histogram)
            write_histogram(metrics, hf__metric_label_at(&shown->labels, i),
                            &meter_at(shown, i)->hold);
}

static void write_locks(hf__metrics *metrics, const struct shown *shown)
{
    hf__metric_family(metrics, "holdfast_lock_held", HF__METRIC_GAUGE, "",
                      "Holders of the lock now.");
    write_split(metrics, shown, "mode", modes, sizeof modes / sizeof *modes,
                offsetof(hf__lock_meter, held));
    write_waiters(metrics, shown);
    write_times(metrics, shown, "holdfast_lock_longest_wait_seconds",
                "How long the longest of those who wait now has waited.",
                offsetof(hf__lock_meter, longest_wait_ms));
    write_times(metrics, shown, "holdfast_lock_acquired_timestamp_seconds",
                "When the oldest grant that is held now was given; 0: not held, or not known.",
                offsetof(hf__lock_meter, acquired_ms));
    hf__metric_family(metrics, "holdfast_lock_acquisitions", HF__METRIC_COUNTER, "",
                      "Attempts at the lock: got it, met a holder (and was refused or waits), "
                      "waited in vain, or was refused to end a deadlock.");
    write_split(metrics, shown, "outcome", outcomes, HF__OUTCOME_COUNT,
                offsetof(hf__lock_meter, outcomes));
    hf__metric_family(metrics, "holdfast_lock_losses", HF__METRIC_COUNTER, "",
                      "Locks that were lost while held, by reason.");
    write_split(metrics, shown, "reason", losses, HF__LOSS_COUNT, offsetof(hf__lock_meter, losses));
    hf__metric_family(metrics, "holdfast_run_exits", HF__METRIC_COUNTER, "",
                      "Commands of holdfast run that ended, by how they did.");
    write_split(metrics, shown, "class", exits, HF__EXIT_COUNT, offsetof(hf__lock_meter, exits));
    write_histograms(metrics, shown);
}

/* ---- ingestion and appends ---- */

enum { LATEST, OLDEST, LAG, GAPS, MISSING, LIVE, BACKFILL, LAST_SUCCESS };

static hf__maybe number_of(const hf__seen_network *network, int which)
{
    const hf__network_status *status = &network->status;
    switch (which) {
    case LATEST: return status->latest;
    case OLDEST: return status->oldest;
    case LAG: return network->lag;
    case GAPS: return status->gaps;
    case MISSING: return (hf__maybe){status->gaps.known, status->missing};
    case LIVE: return status->live_ledgers;
    case BACKFILL: return status->backfill_ledgers;
    default: return status->last_success_ms;
    }
}

static void write_number(hf__metrics *metrics, const hf__metric_labels *labels, size_t at,
                         const hf__seen_network *network, int which, const char *phase)
{
    hf__maybe number = number_of(network, which);
    if (!number.known)
        return;
    hf__metric_begin(metrics, "");
    hf__metric_label(metrics, hf__metric_label_at(labels, at));
    if (phase)
        hf__metric_word(metrics, "phase", phase);
    if (which == LAST_SUCCESS)
        hf__metric_ms(metrics, number.value);
    else
        hf__metric_integer(metrics, number.value);
}

static void write_networks(hf__metrics *metrics, const hf__snapshot *snapshot,
                           const hf__metric_labels *labels)
{
    static const struct {
        const char *name, *unit, *help;
        int which;
    } gauges[] = {
        {"holdfast_ingest_latest_ledger", "", "The newest ledger that is there.", LATEST},
        {"holdfast_ingest_oldest_ledger", "",
         "The first ledger of the run that ends at the latest.", OLDEST},
        {"holdfast_ingest_lag_ledgers", "ledgers",
         "Ledgers behind what the source last said; negative: ahead of it.", LAG},
        {"holdfast_ingest_gaps", "", "Gaps between the wanted ledgers.", GAPS},
        {"holdfast_ingest_missing_ledgers", "ledgers", "Ledgers in those gaps.", MISSING},
        {"holdfast_ingest_last_success_timestamp_seconds", "seconds",
         "When the live ingester last committed.", LAST_SUCCESS},
    };
    for (size_t g = 0; g < sizeof gauges / sizeof *gauges; g++) {
        hf__metric_family(metrics, gauges[g].name, HF__METRIC_GAUGE, gauges[g].unit,
                          gauges[g].help);
        for (size_t i = 0; i < snapshot->network_count; i++)
            write_number(metrics, labels, i, &snapshot->networks[i], gauges[g].which, NULL);
    }
    hf__metric_family(metrics, "holdfast_ingest_readable", HF__METRIC_GAUGE, "",
                      "1: the network was read; 0: it could not be, and its numbers are missing.");
    for (size_t i = 0; i < snapshot->network_count; i++) {
        hf__metric_begin(metrics, "");
        hf__metric_label(metrics, hf__metric_label_at(labels, i));
        hf__metric_integer(metrics, !snapshot->networks[i].problem[0]);
    }
    hf__metric_family(metrics, "holdfast_ingest_ledgers", HF__METRIC_COUNTER, "ledgers",
                      "Ledgers that were committed since the network began.");
    for (size_t i = 0; i < snapshot->network_count; i++) {
        write_number(metrics, labels, i, &snapshot->networks[i], LIVE, "live");
        write_number(metrics, labels, i, &snapshot->networks[i], BACKFILL, "backfill");
    }
}

static void write_tables(hf__metrics *metrics, const hf__snapshot *snapshot,
                         const hf__metric_labels *labels)
{
    hf__metric_family(metrics, "holdfast_append_rows", HF__METRIC_COUNTER, "",
                      "Rows that were appended to a shared table.");
    for (size_t i = 0; i < snapshot->table_meter_count; i++) {
        hf__metric_begin(metrics, "");
        hf__metric_label(metrics, hf__metric_label_at(labels, i));
        hf__metric_count(metrics, snapshot->table_meters[i].rows);
    }
}

/* ---- the collector ---- */

static void write_standing(hf__metrics *metrics, const hf__snapshot *snapshot)
{
    hf__metric_family(metrics, "holdfast_build", HF__METRIC_INFO, "",
                      "The version that serves, and the kind of its store.");
    hf__metric_begin(metrics, "");
    hf__metric_word(metrics, "version", hf_version());
    hf__metric_word(metrics, metrics->store[0] != '\0' ? "kind" : "store",
                    snapshot->local ? "local" : "postgresql");
    hf__metric_count(metrics, 1);

    hf__metric_family(metrics, "holdfast_up", HF__METRIC_GAUGE, "",
                      "Whether the last refresh could read the store; 0: what follows is older.");
    hf__metric_begin(metrics, "");
    hf__metric_count(metrics, snapshot->problem[0] == '\0');
}

/* Which this is, how old it is, and what it leaves out. */
static void write_collector(hf__metrics *metrics, const hf__snapshot *snapshot, size_t folded)
{
    hf__metric_family(
        metrics, "holdfast_losses_known", HF__METRIC_GAUGE, "",
        "Whether the history has the losses of the last day; 0: none is in it, but the "
        "server was restarted, or no history is kept.");
    hf__metric_begin(metrics, "");
    hf__metric_count(metrics, !snapshot->losses_unknown);

    hf__metric_family(metrics, "holdfast_snapshot_timestamp_seconds", HF__METRIC_GAUGE, "seconds",
                      "When what follows was read.");
    hf__metric_begin(metrics, "");
    hf__metric_ms(metrics, snapshot->taken_ms);

    hf__metric_family(metrics, "holdfast_refresh_seconds", HF__METRIC_GAUGE, "seconds",
                      "How long reading it took.");
    hf__metric_begin(metrics, "");
    hf__metric_ms(metrics, snapshot->took_ms);

    hf__metric_family(
        metrics, "holdfast_locks_unregistered", HF__METRIC_GAUGE, "",
        "Keys held or waited for now that the registry does not know, if there is one.");
    if (snapshot->registry != NULL) {
        hf__metric_begin(metrics, "");
        hf__metric_count(metrics, snapshot->unregistered);
    }

    hf__metric_family(metrics, "holdfast_locks_folded", HF__METRIC_GAUGE, "",
                      "Registered locks beyond what is shown by name; they are in _other.");
    hf__metric_begin(metrics, "");
    hf__metric_count(metrics, folded);
}

/* Of a store that was never read nothing but that is known. */
static void write_store(hf__metrics *metrics, const hf__snapshot *snapshot)
{
    struct shown shown = {0};
    hf__metric_labels networks = {0}, tables = {0};
    bool whole = begin_shown(snapshot, &shown);
    size_t named = snapshot->meter_count > 0 ? snapshot->meter_count - 1 : 0;

    for (size_t i = 0; i < snapshot->network_count; i++)
        hf__metric_labels_add(&networks, "network", snapshot->networks[i].name);
    for (size_t i = 0; i < snapshot->table_meter_count; i++)
        hf__metric_labels_add(&tables, "table", snapshot->table_meters[i].table);
    if (whole && !hf__metric_labels_broken(&networks) && !hf__metric_labels_broken(&tables)) {
        hf__buf_reserve(metrics->out,
                        (shown.count + 4) * BYTES_PER_LOCK +
                            (8 * snapshot->network_count + snapshot->table_meter_count) *
                                BYTES_PER_SERIES);
        write_standing(metrics, snapshot);
        if (snapshot->taken_ms != 0) {
            write_collector(metrics, snapshot, named - shown.count);
            write_locks(metrics, &shown);
            write_networks(metrics, snapshot, &networks);
            write_tables(metrics, snapshot, &tables);
        }
    } else {
        metrics->out->broken = true;
    }
    hf__metric_labels_free(&shown.labels);
    hf__metric_labels_free(&networks);
    hf__metric_labels_free(&tables);
}

/* All parts are there before they are joined: a family has the samples of all stores. */
static void write_stores(hf__metrics *metrics, const hf__metric_store *stores, size_t count)
{
    hf__metric_part *parts = calloc(count, sizeof *parts);
    hf__buf *out = metrics->out;

    out->broken = out->broken || parts == NULL;
    for (size_t i = 0; parts != NULL && i < count; i++) {
        metrics->store = stores[i].name;
        metrics->out = &parts[i].text;
        metrics->marks = &parts[i].marks;
        write_store(metrics, stores[i].seen);
    }
    metrics->out = out;
    if (parts != NULL)
        hf__metrics_join(parts, count, out);
    for (size_t i = 0; parts != NULL && i < count; i++) {
        hf__buf_free(&parts[i].text);
        hf__buf_free(&parts[i].marks);
    }
    free(parts);
}

void hf__render_metrics(const hf__metric_store *stores, size_t count, bool openmetrics,
                        hf__buf *out)
{
    hf__metrics metrics = {.out = out, .openmetrics = openmetrics, .store = stores[0].name};

    if (count == 1)
        write_store(&metrics, stores[0].seen);
    else
        write_stores(&metrics, stores, count);
    hf__metrics_end(&metrics);
}
