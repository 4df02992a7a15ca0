/*
 * The cells that are to be filled, and which worker fills them. Memory only; the caller lets one
 * thread at a time use a plan.
 *
 * A worker takes one run of neighbouring cells after the other, so that it can read its source
 * without seeking. When the next cells are taken, it starts in the longest stretch that is still
 * to do: in its middle if another worker is on its way there, else at its start.
 */
#ifndef HF_INGEST_BACKFILL_PLAN_H
#define HF_INGEST_BACKFILL_PLAN_H

#include "lib/ledgers/ledgers.h"

enum { PLAN_RUN = 16 }; /* at most this many cells are taken, and locked, together */
#define PLAN_NOWHERE SIZE_MAX

enum cell_state {
    CELL_TODO,
    CELL_TAKEN, /* by a worker of this process */
    CELL_BUSY,  /* another process had it locked; tried again at the end */
    CELL_DONE,  /* filled, or failed for good */
};

struct cell {
    int64_t number;
    enum cell_state state;
    bool alone; /* a run with this cell failed: from now on it is taken by itself */
};

struct plan {
    struct cell *cells; /* ascending */
    size_t count;
    size_t todo; /* how many cells are in this state; likewise the next two */
    size_t taken;
    size_t busy;
    size_t busy_at; /* where the search for the next busy cell starts */
};

/* A run of cells that one worker has taken. */
struct job {
    size_t first; /* index into cells */
    size_t count;
    bool wait; /* nothing else is left to do: wait for the cell's lock */
};

/* Makes a plan of the cells with missing ledgers, for plan_free. False: out of memory. */
HF_MUST_CHECK bool plan_make(struct plan *plan, const hf__ranges *missing);
void plan_free(struct plan *plan);

/*
 * Takes the next job. It starts at *at if that cell is still to do, and *at moves to after the job;
 * PLAN_NOWHERE: start anywhere. False: there is nothing to take at the moment.
 */
bool plan_next(struct plan *plan, size_t *at, unsigned workers, struct job *job);

/* Are all cells done? Then no job can come back either. */
bool plan_is_over(const struct plan *plan);

/* One of these ends a job that was taken. */
void plan_done(struct plan *plan, const struct job *job);
void plan_busy(struct plan *plan, const struct job *job); /* its cells are tried again at the end */
void plan_return(struct plan *plan, const struct job *job); /* its cells are to do, one by one */

/* All ledgers of the job's cells. */
hf_range plan_range(const struct plan *plan, const struct job *job);

#endif
