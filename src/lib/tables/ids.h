/* What a store keeps of shared tables: their ids by name, and the mint. Not for other rooms. */
#ifndef HF_TABLES_IDS_H
#define HF_TABLES_IDS_H

#include <pthread.h>

#include "lib/tables/snowflake.h"
#include "lib/tables/tables.h"

enum { HF__ID_BUCKETS = 256 };

struct hf__kept_id;

typedef struct hf__table_ids {
    hf__lookup base;
    int machine; /* as configured, 0: leased */

    pthread_mutex_t mutex;                    /* all below */
    struct hf__kept_id *kept[HF__ID_BUCKETS]; /* by name */
    hf__snowflake mint;
    int64_t mint_offset; /* from the monotonic clock to the store's */
} hf__table_ids;

hf__table_ids *hf__table_ids_of(const hf_store *store);

/*
 * The id as last seen; 0: none. The text that keep returns lives as the store; NULL: out of memory.
 */
int64_t hf__table_kept(const hf_store *store, const char *text);
const char *hf__table_keep(const hf_store *store, const char *text, int64_t id);

/* At the store, in one trip; 0: there is none. Keeps it. */
HF_MUST_CHECK hf_status hf__table_ask(hf_store *store, const hf__table_name *name, int64_t *id,
                                      hf_error *err);

/*
 * The failure of a statement about shared tables; HF_NO_SCHEMA where it is the schema that lacks.
 */
HF_MUST_CHECK hf_status hf__table_explain(const hf_store *store, const hf_error *failure,
                                          hf_error *err);

#endif
