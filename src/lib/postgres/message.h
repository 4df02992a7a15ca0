/*
 * Several statements in one message, which is one trip to the server. Each statement is a step with
 * a tag; the answers come back in the order of the steps, and each is handed on with its tag.
 */
#ifndef HF_LIB_POSTGRES_MESSAGE_H
#define HF_LIB_POSTGRES_MESSAGE_H

#include "lib/postgres/postgres.h"

/*
 * What a step is for, in the order in which steps may follow each other. The server stops at the
 * first step that fails, so the tag of that one tells how far it got.
 */
typedef enum pg_tag {
    PG_OPENED,     /* the session is entered among the sessions */
    PG_GENERATION, /* which run of the server this is */
    PG_LABEL,      /* is the label known to stand for this key? */
    PG_TAKEN,      /* up to the lock: nothing is kept yet */
    PG_QUESTION,   /* what has to be known under the lock */
    PG_KEPT,       /* from here on the session itself holds the labels of a transaction */
    PG_BEGUN,      /* the transaction that the caller's statements run in */
    PG_MARKED,     /* the row that proves the commit */
    PG_PREPARED,   /* the next step's statement gets a name on the session */
    PG_QUEUED,     /* a statement of the caller's whose rows nobody wants */
    PG_QUERY,      /* the one whose rows the caller waits for */
    PG_SAME,       /* is it still the transaction that was begun? */
    PG_COMMITTED,
    PG_RELEASED, /* a session lock, let go of once the commit has succeeded */
    PG_RESET,    /* what the callback left behind in the session is cleared away */
    PG_PARTING,  /* what a session writes last */
    PG_DUE,      /* is it time for housekeeping? */
} pg_tag;

/* One message and what became of it. Made by hf__pg_message_start, freed by hf__pg_message_free. */
typedef struct pg_message {
    pg_session *session; /* the sender has its baton */
    pg_tag *tags;        /* one for each step */
    size_t count, room;
    bool ok;           /* all steps went out so far */
    unsigned prepares; /* so many steps of PG_PREPARED */
    bool uses_known;   /* a step needs what is prepared, now or before */
    bool timed_out;

    /* the first failure; HF_OK: none */
    hf_status status;
    pg_tag failed_at;
    hf_error failure;
} pg_message;

void hf__pg_message_start(pg_message *message, pg_session *session);
void hf__pg_message_free(pg_message *message);

/* Adds a step. Values are copied at once. A failure shows in hf__pg_message_send. */
void hf__pg_step(pg_message *message, pg_tag tag, const char *sql, int count,
                 const char *const *values);
/* The same for one of our statements that is prepared on the session. */
void hf__pg_step_prepared(pg_message *message, pg_tag tag, const hf__sql *statement, int count,
                          const char *const *values);
/* Prepares a statement under a name: PG_PREPARED. */
void hf__pg_step_prepare(pg_message *message, const char *name, const char *sql);

/* The same for the caller's values, text or binary. */
void hf__pg_step_values(pg_message *message, pg_tag tag, const char *sql, size_t count,
                        const hf_value *values, bool binary_rows);
/* The same for what is prepared under this name. */
void hf__pg_step_named(pg_message *message, pg_tag tag, const char *name, size_t count,
                       const hf_value *values, bool binary_rows);

/* Sends what is left to send; false: the connection is not fit for use any more. */
bool hf__pg_message_send(pg_message *message, int64_t deadline);

/* How answers are waited for, and who gets them. */
typedef struct pg_reader {
    /* Until an answer can be taken; false: give the connection up. Not for hf__pg_message_ask. */
    bool (*wait)(void *arg);
    /* Gets the answer of each step that succeeded, to keep or to clear. */
    void (*take)(void *arg, pg_tag tag, PGresult *answer);
    void *arg;
} pg_reader;

/*
 * Reads all answers; message->status then tells of the first failure. Returns false when the
 * connection broke before the last: which steps took effect is then unknown.
 */
bool hf__pg_message_read(pg_message *message, const pg_reader *reader);

/*
 * Sends it and reads all answers, within the deadline of a ping and the session's patience. Who
 * does not wait that long loses the session: use it where that loses no lock of another.
 */
hf_status hf__pg_message_ask(pg_message *message, const pg_reader *reader, hf_error *err);

/*
 * transactions/steps.c: the steps of a transaction. The labels, the beginning and the marker; the
 * queue, which is empty then; COMMIT, and behind it what is released and cleared away.
 */
hf_status hf__pg_step_opening(pg_message *message, const pg_attempt *attempt,
                              const hf__attempt_plan *plan, hf_error *err);
void hf__pg_step_queue(pg_message *message, pg_attempt *attempt, const hf__attempt_plan *plan);
/* The server itself ends what runs beyond the deadline: what goes with COMMIT is not cancelled. */
void hf__pg_step_bound(pg_message *message, const hf__attempt_plan *plan);
void hf__pg_step_same(pg_message *message, const pg_attempt *attempt);
void hf__pg_step_commit(pg_message *message, pg_attempt *attempt, const hf__attempt_plan *plan);
void hf__pg_step_reset(pg_message *message);
void hf__pg_drop_queue(pg_attempt *attempt);

/*
 * transactions/prepared.c: the statements of a caller's transactions, by name. False: the statement
 * goes by its text. True: name is its name, and a step prepares it if that is new.
 */
enum { PG_NAME_SIZE = 24 };
bool hf__pg_known_name(pg_message *message, const char *sql, char name[PG_NAME_SIZE]);
/* After the answers: what they have not confirmed is not prepared. */
void hf__pg_known_settle(pg_message *message);
/* Did the message fail because of what was prepared? Then nothing is, on this session. */
bool hf__pg_known_is_at_fault(pg_message *message);

#endif
