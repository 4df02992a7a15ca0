/* One exchange of an attempt with the server. The caller has its session's baton throughout. */
#ifndef HF_LIB_POSTGRES_TRANSACTIONS_EXCHANGE_H
#define HF_LIB_POSTGRES_TRANSACTIONS_EXCHANGE_H

#include "lib/postgres/message.h"

/* A statement of the caller's. */
typedef struct pg_statement {
    const char *sql;
    size_t count;
    const hf_value *values;
    bool binary_rows;
} pg_statement;

/* steps.c: one statement, by its name if it is prepared. */
void hf__pg_step_statement(pg_message *message, const hf__attempt_plan *plan, pg_tag tag,
                           const pg_statement *statement);

/*
 * Sends what is due in one message: the opening, the queue, the statement if it is not NULL, COMMIT
 * if it commits. The caller clears *rows; rows may be NULL. A failure is kept in the attempt.
 */
hf_status hf__pg_exchange(pg_attempt *attempt, const hf__attempt_plan *plan,
                          const pg_statement *statement, bool commits, PGresult **rows,
                          hf_error *err);

/* Keeps the first failure of the attempt; returns status. */
hf_status hf__pg_attempt_failed(pg_attempt *attempt, hf_status status, hf__attempt_fault fault,
                                hf_error *err);
/* Gives the connection up. what may be NULL: then the connection itself tells. */
hf_status hf__pg_attempt_broke(pg_attempt *attempt, const char *what, hf_error *err);

/* The callback gets the connection: from now on its results are looked at. False: no memory. */
bool hf__pg_attempt_lend(pg_attempt *attempt);

/* The attempt's inspect: asks the server whether a callback has ended the transaction. */
hf_status hf__pg_attempt_inspect(hf__attempt *attempt, hf_error *err);
/* Clears away what a callback left in the session, outside of a transaction; else the session is
 * lost, so that it does not reach the next one. */
void hf__pg_attempt_reset(pg_attempt *attempt);

#endif
