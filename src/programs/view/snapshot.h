#ifndef HF_VIEW_SNAPSHOT_H
#define HF_VIEW_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast/holdfast.h"
#include "lib/registry/finding.h"
#include "programs/ingest/status.h"

/*
 * What there is to see at one moment, for the page, the API, the metrics and the terminal. The
 * collector makes one per refresh; nobody changes it afterwards, and all share it by reference.
 * Strings live as long as the snapshot and are "" where nothing is known, unless said otherwise.
 */

#define HF__OTHER "_other" /* whatever has no name in the registry, where names are counted */

/* One key that is held or waited for. */
typedef struct hf__seen_lock {
    int64_t key;
    hf_space space;
    const char *label; /* what people call it: label, else its registered name, else "" */
    const char *name;  /* in the registry; "": unregistered */
    const hf_registry_entry *entry; /* NULL: unregistered */
    size_t first, count; /* of its rows in snapshot->views: holders first, then waiters by age */
    size_t holders, waiters;
    int64_t held_ms;         /* of the oldest holder; -1: nobody holds it, or unknown */
    bool held_is_bound;      /* at most held_ms */
    int64_t longest_wait_ms; /* -1: nobody waits */
} hf__seen_lock;

/* Somebody who holds or waits: a session of PostgreSQL, a process on the local store. */
typedef struct hf__seen_party {
    int id; /* backend pid; local: pid */
    const char *application, *host;
    int pid;           /* of the client, 0: unknown */
    size_t waits_for;  /* index into locks of what it waits for; SIZE_MAX: nothing */
    size_t blockers;   /* edges that leave it */
    size_t blocking;   /* edges that come in: whom it keeps waiting, directly */
    size_t kept;       /* everybody behind it, also over others; 0 outside of roots */
    bool root;         /* it keeps others waiting and waits for nobody: whom to look at first */
    bool in_cycle;     /* it waits, in the end, for itself: a deadlock */
    const char *query; /* what it runs or ran last; "" unless the view was told to show it */
} hf__seen_party;

/* waiter waits for lock, which holder has. */
typedef struct hf__seen_edge {
    size_t waiter, holder; /* indexes into parties */
    size_t lock;           /* index into locks */
} hf__seen_edge;

typedef struct hf__seen_event {
    int64_t id;
    int64_t at_ms;     /* Unix time */
    const char *event; /* acquired conflict timeout lost released exit orphan_killed … */
    int64_t key;
    hf_space space;
    hf_mode mode;
    const char *label, *name;
    int64_t token;            /* 0: none */
    int64_t wait_ms, hold_ms; /* -1: says nothing */
    const char *application, *host;
    int pid;
    const char *detail;
} hf__seen_event;

/* Contention of one lock in one span of time. */
typedef struct hf__heat_cell {
    uint32_t samples; /* refreshes that fell into it; 0: nothing known */
    uint32_t held;    /* of them with a holder */
    uint32_t waiters; /* the most at once */
    int64_t longest_wait_ms;
} hf__heat_cell;

typedef struct hf__heat_row {
    const char *lock;     /* registered name, or HF__OTHER */
    hf__heat_cell *cells; /* one per column, oldest first */
} hf__heat_row;

typedef struct hf__heat_map {
    int64_t from_ms, step_ms; /* Unix time of the first column, and its width */
    size_t columns;
    hf__heat_row *rows; /* by name; only locks with something to show */
    size_t count;
} hf__heat_map;

typedef struct hf__seen_network {
    const char *name;
    hf__network_status status;
    hf_range *coverage; /* ascending, disjoint */
    size_t coverage_count;
    hf_range *gaps; /* what is wanted and not there */
    size_t gap_count;
    hf__maybe lag; /* source_tip - latest of status: negative when we are ahead of what it said */
    double rate;   /* ledgers a second over the last minute; negative: unknown */
    const char *ingester; /* who holds the network's lock: "ingest on db1 (pid 4711)"; "": nobody */
    const char *problem;  /* why it could not be read: only its name is right; "": it was */
} hf__seen_network;

typedef struct hf__seen_table {
    const char *cluster, *database, *table;
    const char *text; /* "cluster/database.table" */
    int64_t id;
    int64_t created_ms;
    int64_t references;
    int64_t appends, appended_rows; /* as recorded */
    int64_t last_append_ms;         /* Unix time; 0: none */
    const char *state;              /* of its last append: attaching done doubtful; "" none */
    size_t lock;                    /* index into locks; SIZE_MAX: nobody holds or wants it */
} hf__seen_table;

/* Counted from the events since the collector started, by registered name. */
enum { HF__HISTOGRAM_BUCKETS = 9 };                              /* and +Inf */
extern const double hf__histogram_bounds[HF__HISTOGRAM_BUCKETS]; /* seconds */

typedef struct hf__histogram {
    uint64_t buckets[HF__HISTOGRAM_BUCKETS + 1]; /* not cumulated */
    uint64_t count;
    double sum; /* seconds */
} hf__histogram;

#define HF__OUTCOMES(X) X(acquired) X(conflict) X(timeout)
#define HF__LOSSES(X) X(server) X(no_answer) X(connection) X(lock_file) X(release) X(other)
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

/* One per name of the registry, in its order, and last HF__OTHER: also where all is zero. */
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
    const char *table; /* "cluster/database.table", or HF__OTHER beyond the cap */
    uint64_t rows;     /* appended since the collector started */
} hf__table_meter;

typedef enum hf__urgency { HF__URGENCY_NOTE, HF__URGENCY_WARNING, HF__URGENCY_PROBLEM } hf__urgency;

/* Something a person should look at; the gravest first. */
typedef struct hf__attention {
    hf__urgency urgency;
    const char *topic; /* deadlock loss wait unregistered gap lag ingest registry store append */
    const char *text;  /* one sentence */
    const char *link;  /* fragment or path of the page that shows it: "#locks" */
} hf__attention;

typedef struct hf__snapshot {
    uint64_t number;   /* of the refresh, from 1 */
    int64_t taken_ms;  /* Unix time of its data */
    int64_t took_ms;   /* how long reading it took */
    const char *store; /* hf_store_name */
    bool local;
    bool has_records;
    const char *problem; /* why the last refresh failed: the data is older than it should be; "" */
    int64_t problem_since_ms;

    hf_lock_list *list;
    const hf_lock_view **views; /* of list, grouped by lock */
    size_t view_count;
    hf__seen_lock *locks; /* waited-for first (longest wait), then by age */
    size_t lock_count;
    hf__seen_party *parties;
    size_t party_count;
    hf__seen_edge *edges;
    size_t edge_count;
    size_t *view_party; /* of each view; SIZE_MAX: a prepared transaction */

    hf__seen_event *events; /* newest first, at most HF__EVENTS_SHOWN */
    size_t event_count;
    hf__heat_map hour, day;     /* by the minute, by ten minutes */
    hf__seen_network *networks; /* by name */
    size_t network_count;
    hf__seen_table *tables; /* by name, live ones */
    size_t table_count;

    const hf_registry *registry;  /* NULL: none */
    const hf__findings *findings; /* of it; NULL: none */

    hf__lock_meter *meters;
    size_t meter_count;
    hf__table_meter *table_meters;
    size_t table_meter_count;

    hf__attention *attention;
    size_t attention_count;

    /* at a glance */
    size_t held, waiting,
        unregistered;        /* keys held, waiters, keys held or waited for without a name */
    int64_t longest_wait_ms; /* 0: nobody waits */
    uint64_t losses_24h;
    int64_t missing_ledgers;
    size_t gaps;
} hf__snapshot;

enum { HF__EVENTS_SHOWN = 1000 };

/* Any thread. */
hf__snapshot *hf__snapshot_hold(hf__snapshot *snapshot);
void hf__snapshot_release(hf__snapshot *snapshot); /* NULL is safe */

/* Memory that is given back all at once: a snapshot's. One thread fills it. */

/* Zero-initialise it. After a failed allocation it is marked broken, so that only the end needs a check. */
typedef struct hf__arena {
    struct hf__arena_chunk *chunks; /* the newest first */
    bool broken;
} hf__arena;

/* count things of size bytes, zeroed and aligned for anything; NULL when broken. 0 of them are fine. */
void *hf__arena_array(hf__arena *arena, size_t count, size_t size);
/* Never NULL: "" when broken, and for NULL. */
const char *hf__arena_text(hf__arena *arena, const char *text);
const char *hf__arena_printf(hf__arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void hf__arena_free(hf__arena *arena);

#endif
