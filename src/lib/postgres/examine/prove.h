/* What the files of the proof share. */
#ifndef HF_LIB_POSTGRES_EXAMINE_PROVE_H
#define HF_LIB_POSTGRES_EXAMINE_PROVE_H

#include "lib/postgres/postgres.h"

enum {
    SESSIONS = 4, /* the first holds, the second is refused, the others keep a pooler busy */
    STATEMENT_MS = 5000,
};

typedef enum verdict { UNKNOWN, PROVEN, REFUTED } verdict;

typedef struct proof {
    pg_backend *backend;
    hf_finding_fn *report;
    void *arg;
    pg_session *sessions[SESSIONS];
    char key[24];
    char server[64];         /* when it was started; "" before the first connection */
    char pids[SESSIONS][16]; /* of the backends that serve them */
    bool pooled;             /* the pid of the handshake is not the server's */
    verdict keeps, excludes, frees, transacts, leases;
} proof;

void hf__prove_say(const proof *of, hf_level level, const char *topic, const char *remedy,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Each reports a warning and returns what it is called after. */
verdict hf__prove_refute(const proof *of, const char *topic, const char *remedy, const char *text);
verdict hf__prove_doubt(const proof *of, const char *topic, const hf_error *why);

/* prove_lease.c: sets of->leases and reports the evidence. */
void hf__prove_lease(proof *of);

#endif
