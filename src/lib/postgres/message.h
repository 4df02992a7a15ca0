/* What a transaction sends in one message. */
#ifndef HF_STORE_POSTGRES_TX_MESSAGE_H
#define HF_STORE_POSTGRES_TX_MESSAGE_H

#include "lib/postgres/postgres.h"

/* What a message consists of, in the order of its answers. */
typedef struct pg_message {
    int sent;      /* statements so far */
    int keep_at;   /* from this one on session locks may be held, -1 none */
    int begun_at;  /* the answer with backend pid and transaction id, -1 none */
    int query_at;  /* the caller's statement, -1 none */
    int commit_at; /* -1 none */
    bool ok;
} pg_message; /* what is released stands behind COMMIT, to the end */

/* The labels and the beginning, unless the transaction is open. */
hf_status hf__pg_post_opening(pg_attempt *attempt, pg_message *message,
                              const hf__attempt_plan *plan, hf_error *err);
void hf__pg_post_values(pg_attempt *attempt, pg_message *message, const char *sql, size_t count,
                        const hf_value *values, bool binary_rows);
void hf__pg_post_queue(pg_attempt *attempt, pg_message *message); /* which is empty then */
void hf__pg_post_commit(pg_attempt *attempt, pg_message *message);
void hf__pg_post_release(pg_attempt *attempt, pg_message *message, const hf__attempt_plan *plan);
void hf__pg_drop_queue(pg_attempt *attempt);

#endif
