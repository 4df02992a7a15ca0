#ifndef HF_VIEW_VIEW_H
#define HF_VIEW_VIEW_H

#include "programs/view/snapshot.h"

/*
 * The collector: one thread that reads the store at intervals and makes a snapshot of what it
 * finds, however many readers there are. When the store is down it goes on, and its snapshots say
 * so. When the store is slow it pauses longer. Any thread may use a view.
 */
typedef struct hf__view hf__view;

typedef struct hf__view_options {
    hf_store_options store; /* the registry in it must outlive the view */
    int64_t refresh_ms;     /* 0: every 2 seconds */
    bool keep_history;      /* write contention to the store, by ten minutes, if it keeps records */
    bool show_queries;      /* show the SQL text of sessions, which may contain secrets */
    int64_t max_lag; /* a network that is more ledgers behind needs attention; 0: none does */
    bool patient;    /* a store that cannot be opened is tried again, as one that is away is */
} hf__view_options;

/*
 * Opens the store and starts the collector. The first snapshot is taken in the caller's thread, so
 * that a wrong URL fails here. With patient it returns at once: the collector opens the store, and
 * until it has read it there are snapshots without data, which say why.
 */
HF_MUST_CHECK hf_status hf__view_open(const hf__view_options *options, hf__view **view,
                                      hf_error *err);
/* Ends the collector. Snapshots that somebody holds stay valid. NULL is safe. */
void hf__view_close(hf__view *view);

/* The newest snapshot, never NULL. The caller releases it. */
hf__snapshot *hf__view_latest(hf__view *view);

/* Waits for a snapshot with a number above after, at most wait_ms (-1: for ever); then as above. */
hf__snapshot *hf__view_next(hf__view *view, uint64_t after, int64_t wait_ms);

/* Sets the function that is called after each refresh, in the collector's thread; NULL: none. */
typedef void hf__view_listener(void *arg, hf__snapshot *snapshot);
void hf__view_listen(hf__view *view, hf__view_listener *listener, void *arg);

void hf__view_set_refresh(hf__view *view, int64_t refresh_ms);
/* While it is paused there are no refreshes; jobs still run. */
void hf__view_pause(hf__view *view, bool paused);

/*
 * Runs a job in the collector's thread, between two refreshes: nothing else uses its connection.
 * The collector then calls done in that thread, or hf__view_close does, with HF_INTERRUPTED.
 * HF_QUOTA: too many jobs wait already, and done is not called.
 */
typedef hf_status hf__view_job(hf_store *store, void *arg, hf_error *err);
typedef void hf__view_done(void *arg, hf_status status, const hf_error *err);
HF_MUST_CHECK hf_status hf__view_ask(hf__view *view, hf__view_job *job, hf__view_done *done,
                                     void *arg, hf_error *err);

/* Events of the store's history, the newest first. */
typedef struct hf__past_events {
    int64_t before;          /* only those with a smaller id */
    int64_t from_ms, to_ms;  /* Unix time; to is not among them */
    const char *event, *key; /* "": any */
    int64_t limit;
} hf__past_events;

/* For use in a job: calls put for each. A store without records has none. */
typedef void hf__put_event_fn(void *arg, const hf__seen_event *event);
HF_MUST_CHECK hf_status hf__past_events_read(hf_store *store, const hf__past_events *which,
                                             hf__put_event_fn *put, void *arg, hf_error *err);

typedef struct hf__terminate {
    int64_t key;
    hf_space space;
    int party;     /* backend_pid of the holder's view, which may be one of several; local: its pid;
                * 0: a lease, whose term is token */
    int64_t token; /* of that view, so that nobody who acquired it since is ended; 0: any */
    const char *by; /* who asked for it; goes into the event */
} hf__terminate;

/*
 * For use in a job: ends the session that holds the lock (local: sends SIGTERM to the process) if
 * the same party still holds the same key, and records the event "terminated". HF_NOT_ACQUIRED: it
 * does not hold it any more, or is a lease that an open transaction has checked. HF_CONFIG: we are
 * not allowed to end it. Who loses one lease so loses all of that length, with the next renewal.
 */
HF_MUST_CHECK hf_status hf__terminate_holder(hf_store *store, const hf__terminate *what,
                                             hf_error *err);

#endif
