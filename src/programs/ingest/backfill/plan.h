/*
 * The cells that are to be filled, and who takes which. Pure; not for several threads at once.
 *
 * A worker takes runs of neighbouring cells, one behind the other, so that it reads its source in
 * one go. Who has no next cell begins in the middle of the longest stretch that nobody works on.
 */
#ifndef HF_INGEST_BACKFILL_PLAN_H
#define HF_INGEST_BACKFILL_PLAN_H

#include "lib/ledgers/ledgers.h"

enum { PLAN_RUN = 16 }; /* cells that are taken, and locked, together */
#define PLAN_NOWHERE SIZE_MAX

enum cell_state {
    CELL_TODO,
    CELL_TAKEN, /* by a worker of this process */
    CELL_BUSY,  /* locked by another process when it was tried */
    CELL_DONE,  /* or failed: nothing more is done about it */
};

struct cell {
    int64_t number;
    enum cell_state state;
    bool alone; /* it was part of a run that did not go well */
};

struct plan {
    struct cell *cells; /* ascending */
    size_t count;
    size_t todo;
    size_t taken;
    size_t busy;
    size_t busy_at; /* where to look for the next busy one */
};

struct job {
    size_t first; /* cell */
    size_t count;
    bool wait; /* nothing else is left to do: wait for its lock */
};

/* The cells that have any of the missing ledgers. */
HF_MUST_CHECK bool plan_make(struct plan *plan, const hf__ranges *missing);
void plan_free(struct plan *plan);

/*
 * What to do next, from *at on if that is to be done, which is moved; false: nothing at the moment.
 */
bool plan_next(struct plan *plan, size_t *at, unsigned workers, struct job *job);
bool plan_is_over(const struct plan *plan); /* and nothing can come back */

void plan_done(struct plan *plan, const struct job *job);
void plan_busy(struct plan *plan, const struct job *job);   /* to be tried again at the end */
void plan_return(struct plan *plan, const struct job *job); /* to be done one by one */

hf_range plan_range(const struct plan *plan, const struct job *job); /* its ledgers */

#endif
