/*
 * Makes one call of the library fail: the n-th allocation, the n-th call of libpq or SQLite, or of
 * the system, that can fail. The program defines these functions itself, so the library calls
 * these.
 */
#ifndef RUNGS_H
#define RUNGS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { MEMORY, CALLS, SYSTEM, KINDS } rung_kind;

/*
 * number 1: the next one fails, and those after it until `times` have. error_number is what a call
 * of the system then says.
 */
void rungs_arm(rung_kind kind, size_t number, int error_number, size_t times);
bool rungs_disarm(void); /* did it fail? */

/*
 * Spared threads are not counted and nothing of theirs fails: at first the main one, and those that
 * a spared one starts. Gives what it was before.
 */
bool rungs_spare(bool spare);

/* Blocks that the library has allocated and not freed. */
size_t rungs_live(void);

/* Blocks are numbered: tells on stderr where the living ones above this number were allocated. */
size_t rungs_allocated(void);
void rungs_print_since(size_t number);

/* What failed first, for a report. */
const char *rungs_failed(void);

#endif
