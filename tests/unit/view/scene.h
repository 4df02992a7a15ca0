/* Snapshots made by hand: a lock, then its holders, then its waiters, then the next lock. */
#ifndef TESTS_SCENE_H
#define TESTS_SCENE_H

#include "programs/view/snapshot.h"

struct scene {
    hf__snapshot seen; /* its texts and entries stay the caller's */
    hf_lock_view *rows;
    hf__seen_network *networks;
    size_t row_room, view_room, party_of_room, lock_room, party_room, edge_room, event_room,
        network_room;
};

struct scene *scene_new(void);
void scene_free(struct scene *scene);

/* Whoever holds or waits next does so with the lock that was added last. */
hf__seen_lock *add_lock(struct scene *scene, const char *label, int64_t key);

/* Its index; the pid is the id and 1000. */
size_t add_party(struct scene *scene, const char *application, const char *host, int id);
void hold(struct scene *scene, size_t party, int64_t age_ms);
void await(struct scene *scene, size_t party, int64_t age_ms);

/* What is returned here may be completed, until the next one is added. */
hf__seen_event *add_event(struct scene *scene, int64_t id, const char *event, const char *label,
                          int64_t key);
hf__seen_network *add_network(struct scene *scene, const char *name);

/* A wait that finish does not find by itself: behind another waiter. */
void add_edge(struct scene *scene, size_t waiter, size_t holder, size_t lock);

/* Draws the edges, says who is a root and who in a cycle, and counts. */
void finish(struct scene *scene);

#endif
