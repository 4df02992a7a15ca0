/* A top that looks at a scene, and frames as text. */
#ifndef TESTS_UNIT_TOP_SUPPORT_H
#define TESTS_UNIT_TOP_SUPPORT_H

#include "programs/top/top.h"
#include "view/scene.h"

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
