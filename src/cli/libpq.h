/*
 * libpq is loaded when a store on PostgreSQL is opened: with its twenty libraries it takes longer to
 * load than a whole run on the local store. libholdfast's calls reach it through functions of the
 * same names in libpq.c; whoever links the shared library has libpq as usual.
 */
#ifndef HF_CLI_LIBPQ_H
#define HF_CLI_LIBPQ_H

#include "holdfast/holdfast.h"

/* Must have succeeded before libholdfast calls libpq; more than once is fine. One thread. */
HF_MUST_CHECK hf_status load_libpq(hf_error *err);

#endif
