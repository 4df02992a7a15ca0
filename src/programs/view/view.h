/*
 * The collector: one thread, one connection, one set of queries per refresh, however many look. It
 * goes on when the store is away and says so in its snapshots; it backs off when the store is slow.
 */
#ifndef HF_VIEW_VIEW_H
#define HF_VIEW_VIEW_H

#include "programs/view/snapshot.h"

/* Any thread may use it. */
typedef struct hf__view hf__view;

typedef struct hf__view_options {
    hf_store_options store; /* registry included; it must outlive the view */
    int64_t refresh_ms;     /* 0: 2 000 */
    bool keep_history; /* contention is written to the store too, downsampled, where it may be */
    bool show_queries; /* SQL text of sessions, which may hold secrets */
    int64_t max_lag;   /* ledgers behind the source from which a network needs attention; 0: none */
} hf__view_options;

/*
 * Opens the store, takes the first snapshot in the caller's thread, so that a wrong URL fails here, and
 * starts the collector.
 */
HF_MUST_CHECK hf_status hf__view_open(const hf__view_options *options, hf__view **view,
                                      hf_error *err);
void hf__view_close(hf__view *view); /* NULL is safe; snapshots that are held stay */

/* The newest one; the caller releases it. Never NULL. */
hf__snapshot *hf__view_latest(hf__view *view);

/* The same, once its number is greater than after, or after wait_ms (-1: for ever) what is there. */
hf__snapshot *hf__view_next(hf__view *view, uint64_t after, int64_t wait_ms);

/* Called in the collector's thread after each refresh; one listener (NULL: none any more). */
typedef void hf__view_listener(void *arg, hf__snapshot *snapshot);
void hf__view_listen(hf__view *view, hf__view_listener *listener, void *arg);

void hf__view_set_refresh(hf__view *view, int64_t refresh_ms);
void hf__view_pause(hf__view *view, bool paused); /* no refreshes meanwhile */

/*
 * Runs a job in the collector's thread, between two refreshes, so that nothing else ever asks the
 * store. done is always called, from that thread (or from hf__view_close with HF_INTERRUPTED).
 * HF_QUOTA, and no call of done: too many wait already.
 */
typedef hf_status hf__view_job(hf_store *store, void *arg, hf_error *err);
typedef void hf__view_done(void *arg, hf_status status, const hf_error *err);
HF_MUST_CHECK hf_status hf__view_ask(hf__view *view, hf__view_job *job, hf__view_done *done,
                                     void *arg, hf_error *err);

/*
 * A job's work: ends the session (local: SIGTERM to the process) that holds the lock, if the same party still holds
 * the same key, and records it as the event "terminated" with `by` as detail. HF_NOT_ACQUIRED: it does
 * not hold it any more. HF_CONFIG: not allowed to.
 */
typedef struct hf__terminate {
    int64_t key;
    hf_space space;
    int party;     /* backend_pid of the holder's view: its party's id, unless that holds on several
                * sessions; local: the pid */
    int64_t token; /* of that view: somebody who took it since is spared; 0: not compared */
    const char *by;
} hf__terminate;
HF_MUST_CHECK hf_status hf__terminate_holder(hf_store *store, const hf__terminate *what,
                                             hf_error *err);

#endif
