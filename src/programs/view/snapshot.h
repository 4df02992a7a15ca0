#ifndef HF_VIEW_SNAPSHOT_H
#define HF_VIEW_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast/holdfast.h"
#include "lib/registry/finding.h"
#include "programs/ingest/status.h"

/*
 * What can be seen of a store at one moment, for the page, the API, the metrics and the terminal.
 * The collector makes one snapshot per refresh. Nobody changes it afterwards, so all threads share
 * it by reference. Its strings live as long as it does; one that is not known is "".
 */

#define HF__OTHER "_other" /* counts everything that has no name in the registry */

/* A key that somebody holds or waits for. */
typedef struct hf__seen_lock {
    int64_t key;
    hf_space space;
    const char *label;              /* or, where that is not known, its registered name */
    const char *name;               /* in the registry; "": not registered */
    const char *known_as;           /* without both: the well-known program of this key, or "" */
    const hf_registry_entry *entry; /* NULL: not registered */
    bool is_own;         /* of an ingested network or a shared table, so that no registry has it */
    size_t first, count; /* its rows in snapshot->views: holders, then waiters, the oldest first */
    size_t holders, waiters;
    int64_t held_ms;         /* since the oldest holder acquired it; -1: not known, or no holder */
    bool held_is_bound;      /* held_ms is an upper bound */
    int64_t longest_wait_ms; /* -1: nobody waits */
} hf__seen_lock;

/* Somebody who holds or waits. The sessions of one process are one party. */
typedef struct hf__seen_party {
    int id; /* backend pid; local: pid */
    const char *application, *host;
    int pid;           /* of the client; 0: not known */
    size_t waits_for;  /* index into locks; SIZE_MAX: it does not wait */
    size_t blockers;   /* how many edges have it as the waiter */
    size_t blocking;   /* how many edges have it as the holder */
    size_t kept;       /* for a root: all who wait for it, also through others; else 0 */
    bool root;         /* others wait for it and it waits for nobody: look here first */
    int64_t kept_ms;   /* for a root: the longest wait among them */
    size_t through;    /* for a root: the lock by which it keeps most of them; else SIZE_MAX */
    bool behind_root;  /* it is one of those whom a root keeps waiting */
    bool in_cycle;     /* it waits for itself through others: a deadlock */
    const char *query; /* the statement that it runs or ran last, if show_queries is set */
} hf__seen_party;

/* One party waits for a lock that another one holds. */
typedef struct hf__seen_edge {
    size_t waiter, holder; /* indexes into parties */
    size_t lock;           /* index into locks */
} hf__seen_edge;

typedef struct hf__seen_event {
    int64_t id;
    int64_t at_ms; /* Unix time */
    const char
        *event; /* acquired, conflict, timeout, deadlock, lost, released, exit, orphan_killed, … */
    int64_t key;
    hf_space space;
    hf_mode mode;
    const char *label, *name;
    int64_t token;            /* 0: none */
    int64_t wait_ms, hold_ms; /* -1: the event has none */
    const char *application, *host;
    int pid;
    const char *detail;
} hf__seen_event;

/* Contention of one lock in one column of time. */
typedef struct hf__heat_cell {
    uint32_t samples; /* how many refreshes saw it; 0: nothing is known */
    uint32_t held;    /* in how many of them it was held */
    uint32_t waiters; /* the greatest number at once */
    int64_t longest_wait_ms;
} hf__heat_cell;

typedef struct hf__heat_row {
    const char *lock;     /* registered name; or label, or "key 42"; or HF__OTHER */
    hf__heat_cell *cells; /* one per column, oldest first */
    hf__heat_cell sum;    /* over all columns */
    bool registered;
    bool is_other; /* all that have no row of their own */
} hf__heat_row;

typedef struct hf__heat_map {
    int64_t from_ms, step_ms; /* Unix time of the first column, and its width */
    size_t columns;
    hf__heat_row *rows; /* the most contended first, without locks that have nothing to show */
    size_t count;
} hf__heat_map;

typedef struct hf__seen_network {
    const char *name; /* the network's, or NETWORK@SCHEMA where the schema is not ingest_NETWORK */
    const char *network; /* without the schema */
    const char *schema;  /* local: file */
    hf__network_status status;
    hf_range *coverage; /* ascending, disjoint */
    size_t coverage_count;
    hf_range *gaps; /* ledgers that are wanted and not stored */
    size_t gap_count;
    hf__maybe
        lag;     /* source_tip - latest; negative: the source has not reported newer ledgers yet */
    double rate; /* ledgers per second over the last minute; negative: not known */
    const char *ingester; /* who holds the network's lock: "ingest on db1 (pid 4711)"; "": nobody */
    const char *problem; /* why it could not be read, in which case only the name is valid; or "" */
} hf__seen_network;

typedef struct hf__seen_table {
    const char *cluster, *database, *table;
    const char *text; /* "cluster/database.table" */
    int64_t id;
    int64_t created_ms;
    int64_t references;
    int64_t appends, appended_rows; /* as recorded */
    int64_t last_append_ms;         /* Unix time; 0: none */
    const char *state;              /* of its last append: attaching, done, doubtful; "": none */
    size_t lock; /* index into locks; SIZE_MAX: nobody holds it or waits for it */
} hf__seen_table;

/* Events are counted by registered name, from the start of the collector. */
enum { HF__HISTOGRAM_BUCKETS = 9 };                              /* besides +Inf */
extern const double hf__histogram_bounds[HF__HISTOGRAM_BUCKETS]; /* seconds */

typedef struct hf__histogram {
    uint64_t buckets[HF__HISTOGRAM_BUCKETS + 1]; /* each counts its own range only */
    uint64_t count;
    double sum; /* seconds */
} hf__histogram;

#define HF__OUTCOMES(X) X(acquired) X(conflict) X(timeout) X(deadlock)
#define HF__LOSSES(X) X(server) X(no_answer) X(connection) X(lock_file) X(lease) X(release) X(other)
#define HF__EXITS(X) X(ok) X(failed) X(signal) X(time_limit) X(lost) X(not_started) X(other)
#define X(word) HF__OUTCOME_##word,
enum hf__outcome { HF__OUTCOMES(X) HF__OUTCOME_COUNT };
#undef X
#define X(word) HF__LOSS_##word,
enum hf__loss { HF__LOSSES(X) HF__LOSS_COUNT };
#undef X
#define X(word) HF__EXIT_##word,
enum hf__exit { HF__EXITS(X) HF__EXIT_COUNT };
#undef X

/* One for each name of the registry, in its order, and one for HF__OTHER, even if all are 0. */
typedef struct hf__lock_meter {
    const char *lock;
    const hf_registry_entry *entry; /* NULL: HF__OTHER */
    uint64_t held[2];               /* now, by hf_mode */
    uint64_t waiters;               /* now */
    int64_t longest_wait_ms;        /* now; 0: nobody waits */
    int64_t acquired_ms; /* Unix time of the oldest grant held now; 0: none, or unknown */
    uint64_t outcomes[HF__OUTCOME_COUNT];
    uint64_t losses[HF__LOSS_COUNT];
    uint64_t exits[HF__EXIT_COUNT];
    bool has_histogram;
    hf__histogram wait, hold;
} hf__lock_meter;

typedef struct hf__table_meter {
    const char *table; /* "cluster/database.table", or HF__OTHER for those beyond the limit */
    uint64_t rows;     /* appended since the collector started */
} hf__table_meter;

typedef enum hf__urgency { HF__URGENCY_NOTE, HF__URGENCY_WARNING, HF__URGENCY_PROBLEM } hf__urgency;

/* Something that a person should look at. */
typedef struct hf__attention {
    hf__urgency urgency;
    /* deadlock, loss, wait, unregistered, gap, lag, ingest, registry, store, append */
    const char *topic;
    const char *text; /* one sentence */
    const char *link; /* section of the page that shows it: "#locks"; "": none */
    size_t lock;      /* index into locks, of the one that it is about; SIZE_MAX: none */
} hf__attention;

/* The moment of a column of time in which most waited. */
typedef struct hf__moment {
    int64_t from_ms, step_ms;   /* the column: a minute, or ten if it is older than an hour */
    struct hf__snapshot *waits; /* taken_ms, locks that were waited for, views, parties, edges */
} hf__moment;

typedef struct hf__snapshot {
    uint64_t number;   /* of the refresh, from 1 */
    int64_t taken_ms;  /* Unix time of its data; 0: it has none, since nothing was ever read */
    int64_t took_ms;   /* how long reading it took */
    const char *store; /* hf_store_name */
    bool local;
    bool has_records;
    const char *problem; /* why the last refresh failed, so that the data is old; or "" */
    int64_t problem_since_ms;

    hf_lock_list *list;
    const hf_lock_view **views; /* the rows of list, by lock */
    size_t view_count;
    hf__seen_lock *locks; /* the longest wait first, then the longest held */
    size_t lock_count;
    hf__seen_party *parties;
    size_t party_count;
    hf__seen_edge *edges;
    size_t edge_count;
    size_t *view_party; /* index into parties for each view; SIZE_MAX: a prepared transaction */

    hf__seen_event *events; /* newest first, at most HF__EVENTS_SHOWN */
    size_t event_count;
    hf__heat_map hour, day; /* columns of a minute, of ten minutes */
    hf__moment *moments;    /* in which somebody waited, of the last day; the newest first */
    size_t moment_count;
    hf__seen_network *networks; /* by name */
    size_t network_count;
    hf__seen_table *tables; /* by name; not those that were dropped */
    size_t table_count;

    const hf_registry *registry;  /* NULL: none */
    const hf__findings *findings; /* what is wrong with it; NULL: no registry */

    hf__lock_meter *meters;
    size_t meter_count;
    hf__table_meter *table_meters;
    size_t table_meter_count;

    hf__attention *attention; /* the most urgent first */
    size_t attention_count;

    /* sums */
    size_t held, waiting;    /* keys, waiters */
    size_t unregistered;     /* keys without a name in the registry; 0 if there is none */
    int64_t longest_wait_ms; /* 0: nobody waits */
    uint64_t losses_24h;
    bool losses_unknown; /* none is recorded, but the history of that time may have holes */
    int64_t missing_ledgers;
    size_t gaps;
    bool gaps_unknown; /* of some network, which may have more than these */
} hf__snapshot;

enum { HF__EVENTS_SHOWN = 1000 };

/* Any thread may call these. A snapshot is freed when nobody holds it any more. */
hf__snapshot *hf__snapshot_hold(hf__snapshot *snapshot);
void hf__snapshot_release(hf__snapshot *snapshot); /* NULL is safe */

/* Who waited for whom in the column of that time; NULL: nobody, or it is not known. */
const hf__snapshot *hf__waits_at(const hf__snapshot *snapshot, int64_t at_ms);

/*
 * The memory of a snapshot, freed all at once. One thread fills it; initialise it with zeros. After
 * a failed allocation it is marked broken, so that only the end needs a check.
 */
typedef struct hf__arena {
    struct hf__arena_chunk *chunks; /* the newest first */
    bool broken;
} hf__arena;

/* An array of zeros, aligned for anything; NULL if the arena is broken. count may be 0. */
void *hf__arena_array(hf__arena *arena, size_t count, size_t size);
/* A copy of the text, never NULL: "" for NULL, or if the arena is broken. */
const char *hf__arena_text(hf__arena *arena, const char *text);
const char *hf__arena_printf(hf__arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void hf__arena_free(hf__arena *arena);

#endif
