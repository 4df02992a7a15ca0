/* Snapshots made by hand, and frames as text. */
#ifndef TESTS_UNIT_TOP_SUPPORT_H
#define TESTS_UNIT_TOP_SUPPORT_H

#include "programs/top/top.h"

struct scene {
    hf__snapshot seen;
    hf_lock_view *views;
    size_t room;
};

/* Room for so many of each: locks, views, parties, edges, events, networks. */
struct scene *scene_new(size_t room);
void scene_free(struct scene *scene);

/* Whoever holds or waits next does so with the lock that was added last. */
void add_lock(struct scene *scene, const char *label, int64_t key);
size_t add_party(struct scene *scene, const char *application, const char *host, int id);
void hold(struct scene *scene, size_t party, int64_t age_ms);
void await(struct scene *scene, size_t party, int64_t age_ms);
void add_event(struct scene *scene, int64_t id, const char *event, const char *label, int64_t key);
hf__seen_network *add_network(struct scene *scene, const char *name);

/* Draws the edges, and says who is a root and who in a cycle. */
void finish(struct scene *scene);

/* One top on the scene, which it sees; free it with hf__top_free. */
void look_at(hf__top *top, const struct scene *scene);

/* For tests that share their set-up: what is looked at, and a teardown that frees both. */
extern struct scene *stage;
extern hf__top screen;
int look_away(void **state);

/* The whole frame as one text, lines ended by newlines, without spaces at their ends. Free it. */
char *drawn(hf__top *top, size_t width, size_t height);
char *printed(hf__top *top, size_t width);

/* "a b c": what the rows are called, in their order. Free it. */
char *rows_of(const hf__top *top);

/* The text has this in it, or has it not; it is freed. */
void expect_text(char *text, const char *wanted);
void expect_no_text(char *text, const char *unwanted);

void press(hf__top *top, const char *keys); /* characters, one after the other */

#endif
