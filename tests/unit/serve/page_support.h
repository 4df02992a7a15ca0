/* Snapshots made by hand: a lock, then its holders, then its waiters, then the next lock. */
#ifndef TESTS_PAGE_SUPPORT_H
#define TESTS_PAGE_SUPPORT_H

#include "programs/serve/render.h"

enum { MADE_NOW_SECONDS = 1767261802 }; /* 2026-01-01 10:03:22 UTC */

struct made {
    hf__snapshot seen;
    hf_lock_view *rows;
    size_t row_room, lock_room, party_room, edge_room, event_room;
};

void made_start(struct made *made);
hf__seen_lock *made_lock(struct made *made, int64_t key, const char *label,
                         const hf_registry_entry *entry);
void made_holder(struct made *made, int id, const char *application, int64_t age_ms);
void made_waiter(struct made *made, int id, const char *application, int64_t age_ms);
void made_event(struct made *made, const char *event, int64_t key, const char *label,
                const char *detail);
void made_finish(struct made *made); /* edges, roots, cycles, counts */
void made_free(struct made *made);

/* What the page is for this snapshot and request; the caller frees it. */
char *made_page(const struct made *made, const hf__page_request *request);

#endif
