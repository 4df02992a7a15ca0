/*
 * Holdfast: dependable advisory locks on PostgreSQL, or on an embedded store with the same
 * semantics.
 *
 * Handles are opaque. Every call that can fail returns a must-check hf_status and fills the
 * caller's hf_error (which may be NULL). The library never logs, exits or handles signals; messages
 * for people go to the log callback. It reads the environment only where hf_store_options says so
 * (libpq reads its own PG* variables).
 */
#ifndef HOLDFAST_HOLDFAST_H
#define HOLDFAST_HOLDFAST_H

#include <holdfast/ledgers.h>
#include <holdfast/locks.h>
#include <holdfast/tables.h>
#include <holdfast/tracing.h>
#include <holdfast/transactions.h>

#endif
