#ifndef HF_VIEW_PARTS_H
#define HF_VIEW_PARTS_H

#include <stdatomic.h>
#include <stdlib.h>

#include "base/json.h"
#include "holdfast/holdfast.h"
#include "lib/transactions/transactions.h"
#include "programs/view/snapshot.h"

/*
 * What the files of this room share: a snapshot while it is made, and what the collector keeps
 * between refreshes. All of it belongs to the collector's thread, except that any thread may
 * release a snapshot.
 */

/* ---- snapshot.c: a snapshot with its memory -------------------------------------------------- */

/* What all snapshots of a view share. */
typedef struct hf__common {
    atomic_uint users;
    hf__findings findings;
} hf__common;

hf__common *hf__common_new(void); /* NULL: out of memory */
void hf__common_release(hf__common *common);

/* A snapshot with its memory, while it is made and as long as somebody holds it. */
typedef struct hf__view_draft {
    hf__snapshot seen; /* first, because readers have a pointer to it */
    atomic_uint users;
    hf__arena arena;
    struct hf__view_draft *older; /* whose data it shows, if the store was down; or NULL */
    hf__common *common;
    struct hf__lock_place *by_key; /* of each lock */
} hf__view_draft;

hf__view_draft *hf__view_draft_new(hf__common *common); /* NULL: out of memory */
/* A snapshot with the data of an older one. NULL: out of memory. */
hf__view_draft *hf__view_draft_again(hf__snapshot *older, uint64_t number);

/* ---- refresh.c: what is read from the store -------------------------------------------------- */

typedef struct hf__network_reading {
    char name[132], network[64], schema[64]; /* as in hf__seen_network */
    int64_t lock_key;
    hf__network_status status;
    hf__ranges coverage, gaps;
    char problem[256]; /* why it could not be read, or "" */
} hf__network_reading;

typedef struct hf__view_reading {
    hf_lock_list *list;
    hf_rows *events;  /* like the next three, NULL if the store keeps no records */
    hf_rows *losses;  /* of the last day, by the minute; only at the start */
    hf_rows *history; /* contention of the last day; only at the start */
    hf_rows *tables;
    hf_rows *appends; /* sums for each table; only when they have changed */
    hf_rows *queries; /* of sessions; only if show_queries is set */
    hf__network_reading *networks;
    size_t network_count;
    bool schema_appeared; /* since the store was opened */
    bool may_lack_losses; /* of the last day */
} hf__view_reading;

/* ---- read_locks.c: locks --------------------------------------------------------------------- */

/* Fills views and locks from the list, and takes ownership of it. */
void hf__locks_sort(hf__view_draft *draft, hf_lock_list *list, const hf_registry *registry);
/* The index of the lock with this key; SIZE_MAX: nobody holds it or waits for it. */
size_t hf__locks_find(const hf__view_draft *draft, hf_space space, int64_t key);
/* Counts the locks that the registry should have, once networks and tables have marked theirs. */
void hf__locks_count_unregistered(hf__view_draft *draft);

/* ---- graph.c --------------------------------------------------------------------------------- */

enum { HF__EDGES_MAX = 200000 }; /* a picture of more would show nothing more */

/* Fills parties, edges and view_party from views and locks. */
void hf__graph_draw(hf__view_draft *draft);

/* ---- events.c: the newest events, each seen once, however late it was committed -------------- */

enum { HF__TAIL_MISSING = 4096, HF__TAIL_ROWS = 20000, HF__DAY_MINUTES = 24 * 60 };

/* An event, with its strings in the same block of memory. */
typedef struct hf__kept_event {
    hf__seen_event event;
    const hf_registry_entry *entry;
} hf__kept_event;

typedef struct hf__tail {
    bool started;
    int64_t top; /* the greatest id seen */
    struct hf__missing {
        int64_t id;       /* below top, and not seen: its transaction may commit later, */
        int64_t since_ms; /* or never */
    } missing[HF__TAIL_MISSING];
    size_t missing_count;
    hf__kept_event *kept[HF__EVENTS_SHOWN]; /* by id */
    size_t kept_count;
    uint32_t losses[HF__DAY_MINUTES]; /* by minute of Unix time, modulo a day */
    int64_t losses_until;             /* the minute up to which they are valid */
} hf__tail;

typedef void hf__new_event_fn(void *arg, const hf__kept_event *event);

void hf__tail_reset(hf__tail *tail); /* frees all; the next refresh starts anew */
/* Writes the ids to ask for again, as "{1,2}". */
void hf__tail_write_missing(const hf__tail *tail, hf__buf *out);
/* Adds what was read, and calls fn for each event since the start, by id. */
HF_MUST_CHECK hf_status hf__tail_take(hf__tail *tail, hf_store *store, const hf_rows *events,
                                      const hf_rows *losses, int64_t now_ms, hf__new_event_fn *fn,
                                      void *arg, hf_error *err);
void hf__tail_show(const hf__tail *tail, hf__view_draft *draft);
uint64_t hf__tail_losses(const hf__tail *tail, int64_t now_ms, int64_t minutes);

/* ---- events.c: counts since the start, by registered name ------------------------------------ */

enum { HF__TABLE_METERS = 200 }; /* tables beyond this number are counted together */

typedef struct hf__counters {
    hf__lock_meter *locks; /* one for each entry of the registry, and HF__OTHER */
    size_t lock_count;
    hf__table_meter tables[HF__TABLE_METERS + 1]; /* the last is HF__OTHER; owns the names */
    size_t table_count;                           /* without HF__OTHER */
} hf__counters;

HF_MUST_CHECK bool hf__counters_init(hf__counters *counters, const hf_registry *registry);
void hf__counters_free(hf__counters *counters);
/* The index of an entry of the counters' registry; NULL: of HF__OTHER. */
size_t hf__counters_index(const hf__counters *counters, const hf_registry_entry *entry);
void hf__counters_add(hf__counters *counters, const hf__kept_event *event);
/* Makes sure that a table is shown, even if nothing was appended to it. */
void hf__counters_know_table(hf__counters *counters, const char *table);
/* Fills meters and table_meters, with the current values from the snapshot's locks. */
void hf__counters_show(const hf__counters *counters, hf__view_draft *draft);

/* ---- history.c: contention over time --------------------------------------------------------- */

enum {
    HF__HOUR_COLUMNS = 60,
    HF__HOUR_STEP_MS = 60 * 1000,
    HF__DAY_COLUMNS = 144,
    HF__DAY_STEP_MS = 10 * 60 * 1000,
    HF__HEAT_LABELS = 200, /* rows for locks without a name; the others are one row together */
};

/* A ring of columns of time. */
typedef struct hf__heat {
    size_t columns;
    int64_t step_ms;
    int64_t now;          /* the newest column: Unix time / step_ms */
    uint32_t *samples;    /* of each column */
    hf__heat_cell **rows; /* by hf__counters_index, then by label; NULL: nothing to show */
    size_t row_count;
} hf__heat;

/* A lock that the registry does not have, as the store's history calls it: see name_of. */
typedef struct hf__heat_label {
    char *name; /* NULL: free */
    uint64_t hash;
} hf__heat_label;

typedef struct hf__history {
    hf__heat hour, day;
    size_t meters; /* rows of the registry's names and of HF__OTHER, the last of them */
    hf__heat_label labels[HF__HEAT_LABELS]; /* of the rows behind them */
    hf__json closed;                        /* JSON of the column that is to be written; or empty */
    int64_t closed_at_ms;
} hf__history;

HF_MUST_CHECK bool hf__history_init(hf__history *history, size_t locks);
void hf__history_free(hf__history *history);
/* Adds the values of the snapshot's meters and locks. False: out of memory. */
HF_MUST_CHECK bool hf__history_note(hf__history *history, const hf__snapshot *seen);
/* Closes the newest column, as this was the last snapshot. */
void hf__history_end(hf__history *history, const hf__snapshot *seen);
/* Adds rows of holdfast.contention. False: out of memory. */
HF_MUST_CHECK bool hf__history_load(hf__history *history, const hf_rows *rows,
                                    const hf__counters *counters, const hf_registry *registry,
                                    int64_t now_ms);
void hf__history_show(const hf__history *history, hf__view_draft *draft);
/* Writes the closed column, if there is one, to the store, and forgets it. */
HF_MUST_CHECK hf_status hf__history_write(hf__history *history, hf_store *store, hf_error *err);

/* ---- past.c: who waited for whom before ------------------------------------------------------ */

typedef struct hf__past_column {
    int64_t number;      /* Unix time / its step */
    hf__snapshot *waits; /* NULL: nobody waited */
} hf__past_column;

typedef struct hf__past {
    hf__past_column hour[HF__HOUR_COLUMNS], day[HF__DAY_COLUMNS]; /* by number, modulo */
} hf__past;

void hf__past_clear(hf__past *past);
/* Keeps who waits now, if nobody saw more in this column. False: out of memory. */
HF_MUST_CHECK bool hf__past_note(hf__past *past, const hf__snapshot *seen, hf__common *common);
void hf__past_show(const hf__past *past, hf__view_draft *draft);

/* ---- read_networks.c ------------------------------------------------------------------------- */

enum { HF__RATE_SAMPLES = 64, HF__NETWORKS_SKIPPED = 16 };

/* Samples from which a network's speed is computed. */
typedef struct hf__rate_of {
    char schema[64];
    bool counted; /* by the ingesters, not from coverage */
    struct {
        int64_t at_ms, ledgers;
    } samples[HF__RATE_SAMPLES];
    size_t count;
} hf__rate_of;

typedef struct hf__networks {
    hf__rate_of *rates;
    size_t rate_count;
    struct {
        char schema[64];
        char problem[256];
        int64_t until_ms;            /* monotonic: not read before this time */
    } skipped[HF__NETWORKS_SKIPPED]; /* networks that would fail the transaction for all */
    size_t next_skipped;
} hf__networks;

void hf__networks_clear(hf__networks *networks);
/*
 * Reads all networks in tx, or, with tx NULL, each one in a transaction on its file. HF_DATABASE
 * with *again set: one network failed and will be skipped, so try again.
 */
HF_MUST_CHECK hf_status hf__networks_gather(hf__networks *networks, hf_store *store, hf_tx *tx,
                                            hf__view_reading *reading, bool *again, hf_error *err);
void hf__networks_reading_free(hf__view_reading *reading);
void hf__networks_show(hf__networks *networks, const hf__view_reading *reading,
                       hf__view_draft *draft);

/* ---- read_locks.c: shared tables ------------------------------------------------------------- */

/* What the records say was appended to a table. */
typedef struct hf__appended {
    char *table;
    int64_t appends, rows, last_ms, doubtful;
    char state[16];
} hf__appended;

typedef struct hf__view_tables {
    hf__appended *appended; /* by table */
    size_t count;
    int64_t newest; /* the newest append that they include, in the store's time */
    int64_t due_ms; /* monotonic: not read again before this time */
} hf__view_tables;

void hf__view_tables_clear(hf__view_tables *tables);
/* Reads the tables, and the appends if they have changed; tx NULL: in the local store's files. */
HF_MUST_CHECK hf_status hf__view_tables_gather(hf__view_tables *tables, hf_store *store, hf_tx *tx,
                                               hf__view_reading *reading, hf_error *err);
HF_MUST_CHECK bool hf__view_tables_take(hf__view_tables *tables, const hf__view_reading *reading);
void hf__view_tables_show(const hf__view_tables *tables, const hf__view_reading *reading,
                          hf__view_draft *draft);

/* ---- attention.c ----------------------------------------------------------------------------- */

typedef struct hf__worries {
    uint64_t losses_1h;
    int64_t max_lag;     /* 0: none */
    int64_t doubtful;    /* appends */
    const char *problem; /* with the store, or "" */
} hf__worries;

void hf__attention_gather(hf__view_draft *draft, const hf__worries *worries);

/* ---- refresh.c: one refresh ------------------------------------------------------------------ */

/* What the collector keeps between refreshes. */
typedef struct hf__memory {
    hf_store_options options; /* owns the strings */
    hf_store *store;
    int64_t reopened_ms;
    const hf_registry *registry;
    hf__common *common;
    bool show_queries, keep_history;
    int64_t max_lag;
    hf__tail tail;
    hf__counters counters;
    hf__history history;
    hf__past past;
    hf__networks networks;
    hf__view_tables tables;
} hf__memory;

hf_tx_options hf__gather_options(void); /* read only, one snapshot, with a deadline */
/* Does this file of a local store exist? SQLite would create it. */
bool hf__has_file(const hf_store *store, const char *name);

/* Does not open the store yet: the first refresh does. */
HF_MUST_CHECK hf_status hf__memory_open(hf__memory *memory, hf_error *err);
/* Writes what is not written yet; latest is the last snapshot. */
void hf__memory_end(hf__memory *memory, const hf__snapshot *latest);
void hf__memory_clear(hf__memory *memory);
/* Reads the store and makes a snapshot with this number. The caller releases it. */
HF_MUST_CHECK hf_status hf__refresh(hf__memory *memory, uint64_t number, hf__snapshot **snapshot,
                                    hf_error *err);
/* The snapshot before the first refresh: it has no data. NULL: out of memory. */
hf__snapshot *hf__blank(const hf__memory *memory);
/* A snapshot with the data of the older one, and the reason why there is no newer data. */
hf__snapshot *hf__repeat(const hf__memory *memory, hf__snapshot *older, uint64_t number,
                         const hf_error *why); /* NULL: out of memory */

#endif
