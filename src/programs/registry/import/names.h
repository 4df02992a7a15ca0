#ifndef HF_PROGRAMS_REGISTRY_IMPORT_NAMES_H
#define HF_PROGRAMS_REGISTRY_IMPORT_NAMES_H

#include "programs/registry/import/lock.h"

/*
 * Makes names for the locks that have none, and puts numbers behind names that stand twice. Names
 * from the table stay if they can. Returns false without memory.
 */
bool hf__name_all(hf__import_lock *locks, size_t count);

#endif
