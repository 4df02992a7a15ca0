/* Leases of two holders on one key: each statement stands alone, as through a pooler. */
#include "lib/postgres/examine/prove.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

enum { LEASE_MS = HF_LEASE_MIN_MS, LATE_MS = 3000 };

struct taker {
    char id[40]; /* of the tenure */
    bool is_known;
    int64_t term;
};

static hf_status ask(const proof *of, int who, const hf__sql *statement, int count,
                     const char *const *params, PGresult **answer, hf_error *err)
{
    return hf__pg_query_until(of->sessions[who], pg_sql(statement), count, params,
                              hf__deadline(STATEMENT_MS), answer, err);
}

static hf_status choose_id(struct taker *taker, hf_error *err)
{
    uint16_t part[8];
    if (getrandom(part, sizeof part, 0) != (ssize_t)sizeof part)
        return hf__fail(err, HF_SYSTEM, "the system gives no random numbers");
    (void)snprintf(taker->id, sizeof taker->id, "%04x%04x-%04x-%04x-%04x-%04x%04x%04x", part[0],
                   part[1], part[2], part[3], part[4], part[5], part[6], part[7]);
    return HF_OK;
}

/* *taken: it has the key now, under taker->term. */
static hf_status take(const proof *of, int who, struct taker *taker, bool *taken, hf_error *err)
{
    char keys[32], length[16];
    (void)snprintf(keys, sizeof keys, "{%s}", of->key);
    (void)snprintf(length, sizeof length, "%d", LEASE_MS);
    const char *params[] = {
        taker->id, taker->is_known ? "f" : "t", length, "1", keys, "{0}", "{0}", "f",
        "0",       "holdfast doctor",           "",     "0", NULL};
    PGresult *answer = NULL;
    hf_status status = ask(of, who, &hf__sql_postgres_take_leases, 13, params, &answer, err);
    *taken = status == HF_OK && hf__pg_int(answer, 0, 0) == 0;
    if (*taken) {
        taker->is_known = true;
        taker->term = hf__pg_int(answer, 0, 2);
    }
    PQclear(answer);
    return status;
}

/* *current: the term of the taker is the one under which the key is held. */
static hf_status check(const proof *of, const struct taker *taker, bool *current, hf_error *err)
{
    char keys[32], terms[32];
    (void)snprintf(keys, sizeof keys, "{%s}", of->key);
    (void)snprintf(terms, sizeof terms, "{%" PRId64 "}", taker->term);
    const char *params[] = {keys, "{0}", terms, "f"};
    hf_status status = ask(of, 1, &hf__sql_postgres_check_leases, 4, params, NULL, err);
    *current = status == HF_OK;
    return status != HF_OK && strcmp(err->sqlstate, "HF002") == 0 ? HF_OK : status;
}

/* What stays for another reason ends with its time. */
static void leave(const proof *of, const struct taker *taker)
{
    char keys[32], terms[32], ids[48];
    hf_error ignored = {0};
    (void)snprintf(keys, sizeof keys, "{%s}", of->key);
    (void)snprintf(terms, sizeof terms, "{%" PRId64 "}", taker->term);
    (void)snprintf(ids, sizeof ids, "{%s}", taker->id);
    const char *params[] = {taker->id, terms, keys, "{0}", "{}", "{}"};
    const char *end[] = {ids};
    (void)!ask(of, 1, &hf__sql_postgres_release_leases, 6, params, NULL, &ignored);
    (void)!ask(of, 1, &hf__sql_postgres_end_tenures, 1, end, NULL, &ignored);
}

static hf_status await_end(const proof *of, struct taker *taker, bool *taken, hf_error *err)
{
    enum { PAUSE_MS = 50 };
    int64_t late = hf__deadline(LATE_MS);
    hf_status status = HF_OK;
    while (status == HF_OK && !*taken && hf__left_ms(late) != 0) {
        (void)poll(NULL, 0, PAUSE_MS);
        status = take(of, 1, taker, taken, err);
    }
    return status;
}

/* *how: what is wrong, or NULL. The first holder never renews: its lease must end by itself. */
static hf_status try_to_break(const proof *of, struct taker *first, struct taker *second,
                              const char **how, hf_error *err)
{
    bool yes = false;
    hf_status status = take(of, 0, first, &yes, err);
    if (status == HF_OK && !yes)
        *how = "a key that was chosen at random is refused";
    if (status == HF_OK && !*how)
        status = take(of, 1, second, &yes, err);
    if (status == HF_OK && !*how && yes)
        *how = "two have a lease of the same key at once";
    if (status == HF_OK && !*how)
        status = await_end(of, second, &yes, err);
    if (status == HF_OK && !*how && !yes)
        *how = "a lease that is not renewed does not end";
    if (status == HF_OK && !*how && second->term <= first->term)
        *how = "the term of a later lease is not greater";
    if (status == HF_OK && !*how)
        status = check(of, first, &yes, err);
    if (status == HF_OK && !*how && yes)
        *how = "a term that is over is taken for the present one";
    return status;
}

void hf__prove_lease(proof *of)
{
    struct taker first = {0}, second = {0};
    const char *how = NULL;
    hf_error why = {0};
    hf_status status = choose_id(&first, &why);
    if (status == HF_OK)
        status = choose_id(&second, &why);
    if (status == HF_OK)
        status = try_to_break(of, &first, &second, &how, &why);
    if (first.is_known)
        leave(of, &first);
    if (second.is_known)
        leave(of, &second);
    if (how)
        of->leases = hf__prove_refute(of, "terms", "do not use leases here", how);
    else if (status != HF_OK)
        of->leases = hf__prove_doubt(of, "terms", &why);
    else {
        of->leases = PROVEN;
        hf__prove_say(of, HF_LEVEL_OK, "terms", "",
                      "a lease is refused to another until it ends, and a term that is over is "
                      "told from the present one");
    }
}
