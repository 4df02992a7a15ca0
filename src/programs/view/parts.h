#ifndef HF_VIEW_PARTS_H
#define HF_VIEW_PARTS_H

#include <stdatomic.h>
#include <stdlib.h>

#include "base/json.h"
#include "holdfast/holdfast.h"
#include "lib/transactions/transactions.h"
#include "programs/view/snapshot.h"

/* What the files of this folder share: a snapshot while it is made, and what the collector remembers. */

/* ---- snapshot.c: a snapshot with its memory ------------------------------------------------------ */

/* What all snapshots of a view refer to. */
typedef struct hf__common {
    atomic_uint users;
    hf__findings findings;
} hf__common;

hf__common *hf__common_new(void); /* NULL: out of memory */
void hf__common_release(hf__common *common);

typedef struct hf__draft {
    hf__snapshot seen; /* first: what readers have is a pointer to it */
    atomic_uint users;
    hf__arena arena;
    struct hf__draft *older; /* whose data it shows, because the store was away */
    hf__common *common;
    struct hf__lock_place *by_key; /* of each lock */
} hf__draft;

hf__draft *hf__draft_new(hf__common *common);                     /* NULL: out of memory */
hf__draft *hf__draft_again(hf__snapshot *older, uint64_t number); /* the same data once more */

/* ---- gather.c: what is read from the store, before anything is made of it ------------------------- */

typedef struct hf__network_reading {
    char name[48];
    int64_t lock_key;
    hf__network_status status;
    hf__ranges coverage, gaps;
    char problem[256]; /* "" unless it could not be read */
} hf__network_reading;

typedef struct hf__reading {
    hf_lock_list *list;
    hf_rows *events;  /* NULL, like the next three: nothing is recorded */
    hf_rows *losses;  /* of a day by the minute; only at the start */
    hf_rows *history; /* of contention; likewise */
    hf_rows *tables;
    hf_rows *appends; /* of each table; only when they have changed */
    hf_rows *queries; /* of sessions; only on demand */
    hf__network_reading *networks;
    size_t network_count;
    bool schema_appeared; /* since the store was opened */
} hf__reading;

void hf__reading_clear(hf__reading *reading);

/* ---- read_locks.c: views, locks, and what is true of them all ----------------------------------------- */

/* Takes the list over. */
void hf__locks_sort(hf__draft *draft, hf_lock_list *list, const hf_registry *registry);
/* Index of the lock with that key, SIZE_MAX: nobody holds or wants it. */
size_t hf__locks_find(const hf__draft *draft, hf_space space, int64_t key);

/* ---- graph.c ---------------------------------------------------------------------------------------- */

enum {
    HF__EDGES_MAX = 200000
}; /* a thousand waiters behind a thousand readers are as good as fewer */

/* parties, edges and view_party from views and locks. */
void hf__graph_draw(hf__draft *draft);

/* ---- tail.c: events, each once, however late it is committed ------------------------------------------ */

enum { HF__TAIL_MISSING = 4096, HF__TAIL_ROWS = 20000, HF__DAY_MINUTES = 24 * 60 };

/* An event that is shown; strings are behind it. */
typedef struct hf__kept_event {
    hf__seen_event event;
    const hf_registry_entry *entry;
} hf__kept_event;

typedef struct hf__tail {
    bool started;
    int64_t top; /* the greatest id so far */
    struct hf__missing {
        int64_t id;       /* below top: taken by somebody who had not committed */
        int64_t since_ms; /* or never will */
    } missing[HF__TAIL_MISSING];
    size_t missing_count;
    hf__kept_event *kept[HF__EVENTS_SHOWN]; /* by id */
    size_t kept_count;
    uint32_t losses[HF__DAY_MINUTES]; /* by minute of Unix time, modulo a day */
    int64_t losses_until;             /* the minute up to which they are right */
} hf__tail;

typedef void hf__new_event_fn(void *arg, const hf__kept_event *event);

void hf__tail_reset(hf__tail *tail); /* frees; it starts anew */
/* The ids that have to be asked for again, as "{1,2}". */
void hf__tail_write_missing(const hf__tail *tail, hf__buf *out);
/* Takes what was read; fn hears of each event that has happened since the start, by id. */
HF_MUST_CHECK hf_status hf__tail_take(hf__tail *tail, hf_store *store, const hf_rows *events,
                                      const hf_rows *losses, int64_t now_ms, hf__new_event_fn *fn,
                                      void *arg, hf_error *err);
void hf__tail_show(const hf__tail *tail, hf__draft *draft);
uint64_t hf__tail_losses(const hf__tail *tail, int64_t now_ms, int64_t minutes);

/* ---- counters.c: what has happened since the start, by registered name --------------------------------- */

enum { HF__TABLE_METERS = 200 }; /* tables beyond are counted together */

typedef struct hf__counters {
    hf__lock_meter *locks; /* one per entry of the registry, and HF__OTHER */
    size_t lock_count;
    hf__table_meter tables[HF__TABLE_METERS + 1]; /* the last is HF__OTHER; names are owned */
    size_t table_count;                           /* of those with a name */
} hf__counters;

HF_MUST_CHECK bool hf__counters_init(hf__counters *counters, const hf_registry *registry);
void hf__counters_free(hf__counters *counters);
/* Of the registry that the counters were made for; NULL: HF__OTHER. */
size_t hf__counters_index(const hf__counters *counters, const hf_registry_entry *entry);
void hf__counters_add(hf__counters *counters, const hf__kept_event *event);
/* A table that is to be shown, with zero as long as nothing is appended. */
void hf__counters_know_table(hf__counters *counters, const char *table);
/* meters and table_meters, with what is true now from the snapshot's locks. */
void hf__counters_show(const hf__counters *counters, hf__draft *draft);

/* ---- history.c: contention over time --------------------------------------------------------------------- */

enum {
    HF__HOUR_COLUMNS = 60,
    HF__HOUR_STEP_MS = 60 * 1000,
    HF__DAY_COLUMNS = 144,
    HF__DAY_STEP_MS = 10 * 60 * 1000,
};

/* The last columns of time, as a ring. */
typedef struct hf__heat {
    size_t columns;
    int64_t step_ms;
    int64_t now;          /* the newest column: Unix time / step_ms */
    uint32_t *samples;    /* of each column */
    hf__heat_cell **rows; /* of each lock, by hf__counters_index; NULL: nothing to show */
    size_t row_count;
} hf__heat;

typedef struct hf__history {
    hf__heat hour, day;
    hf__json closed; /* the column of the day that is to be written: an array of rows; or empty */
    int64_t closed_at_ms;
} hf__history;

HF_MUST_CHECK bool hf__history_init(hf__history *history, size_t locks);
void hf__history_free(hf__history *history);
/* Notes what the snapshot's meters say at its time. False: out of memory. */
HF_MUST_CHECK bool hf__history_note(hf__history *history, const hf__snapshot *seen);
/* Nothing comes after: the newest column is closed as it is. */
void hf__history_end(hf__history *history, const hf__snapshot *seen);
/* Rows of holdfast.contention. */
HF_MUST_CHECK bool hf__history_load(hf__history *history, const hf_rows *rows,
                                    const hf__counters *counters, const hf_registry *registry,
                                    int64_t now_ms);
void hf__history_show(const hf__history *history, hf__draft *draft);
/* Writes the column that is closed, if there is one, to the store, and forgets it. */
HF_MUST_CHECK hf_status hf__history_write(hf__history *history, hf_store *store, hf_error *err);

/* ---- read_networks.c ----------------------------------------------------------------------------------------- */

enum { HF__RATE_SAMPLES = 64, HF__NETWORKS_SKIPPED = 16 };

/* What a network's speed is told from. */
typedef struct hf__rate_of {
    char name[48];
    bool counted; /* by the ingesters themselves, not from coverage */
    struct {
        int64_t at_ms, ledgers;
    } samples[HF__RATE_SAMPLES];
    size_t count;
} hf__rate_of;

typedef struct hf__networks {
    hf__rate_of *rates;
    size_t rate_count;
    struct {
        char name[48];
        char problem[256];
        int64_t until_ms;            /* monotonic: not read before */
    } skipped[HF__NETWORKS_SKIPPED]; /* whose failure would fail the transaction of all */
    size_t next_skipped;
} hf__networks;

void hf__networks_clear(hf__networks *networks);
/* tx NULL: the local store's, a transaction each. HF_DATABASE with *again: one is skipped from now on. */
HF_MUST_CHECK hf_status hf__networks_gather(hf__networks *networks, hf_store *store, hf_tx *tx,
                                            hf__reading *reading, bool *again, hf_error *err);
void hf__networks_reading_free(hf__reading *reading);
void hf__networks_show(hf__networks *networks, const hf__reading *reading, hf__draft *draft);

/* ---- read_tables.c -------------------------------------------------------------------------------------------- */

/* What was appended to a table, as recorded. */
typedef struct hf__appended {
    char *table;
    int64_t appends, rows, last_ms, doubtful;
    char state[16];
} hf__appended;

typedef struct hf__tables {
    hf__appended *appended; /* by table */
    size_t count;
    int64_t newest; /* change of an append that they include, as the store counts */
    int64_t due_ms; /* monotonic: they are not read again before */
} hf__tables;

void hf__tables_clear(hf__tables *tables);
/* Reads tables, and appends where those have changed; tx NULL: the local store's files. */
HF_MUST_CHECK hf_status hf__tables_gather(hf__tables *tables, hf_store *store, hf_tx *tx,
                                          hf__reading *reading, hf_error *err);
HF_MUST_CHECK bool hf__tables_take(hf__tables *tables, const hf__reading *reading);
void hf__tables_show(const hf__tables *tables, const hf__reading *reading, hf__draft *draft);

/* ---- attention.c: needs all the rest ----------------------------------------------------------------------------- */

typedef struct hf__worries {
    uint64_t losses_1h;
    int64_t max_lag;     /* 0: none */
    int64_t doubtful;    /* appends */
    const char *problem; /* of the store, or "" */
} hf__worries;

void hf__attention_gather(hf__draft *draft, const hf__worries *worries);

/* ---- refresh.c: one refresh ----------------------------------------------------------------------------------------- */

/* What a collector knows beyond one refresh. Its thread's alone. */
typedef struct hf__memory {
    hf_store_options options; /* strings are owned */
    hf_store *store;
    int64_t reopened_ms;
    const hf_registry *registry;
    hf__common *common;
    bool show_queries, keep_history;
    int64_t max_lag;
    hf__tail tail;
    hf__counters counters;
    hf__history history;
    hf__networks networks;
    hf__tables tables;
} hf__memory;

/* gather.c: one transaction on PostgreSQL, one per file on the local store. */
HF_MUST_CHECK hf_status hf__gather(hf__memory *memory, hf__reading *reading, hf_error *err);
hf_tx_options hf__gather_options(void); /* read only, one snapshot, bounded */
bool hf__has_file(const hf_store *store,
                  const char *name); /* SQLite creates what it is asked to read */

HF_MUST_CHECK hf_status hf__memory_open(hf__memory *memory, hf_error *err);
/* Writes down what is not yet; latest is the last snapshot. */
void hf__memory_end(hf__memory *memory, const hf__snapshot *latest);
void hf__memory_clear(hf__memory *memory);
/* The snapshot with this number; the caller releases it. */
HF_MUST_CHECK hf_status hf__refresh(hf__memory *memory, uint64_t number, hf__snapshot **snapshot,
                                    hf_error *err);
/* The older one's data, with the reason why there is none that is newer. */
hf__snapshot *hf__repeat(const hf__memory *memory, hf__snapshot *older, uint64_t number,
                         const hf_error *why); /* or NULL */

#endif
