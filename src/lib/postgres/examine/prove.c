/*
 * What `holdfast doctor --prove` finds out by trying: connections and a key chosen at random. Some
 * servers and poolers accept advisory locks and lock nothing, so nothing here believes a version or
 * a name. Each check is proven, refuted, or unknown because the server did not let itself be asked.
 */
#include "lib/postgres/examine/prove.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"

enum { NOTIFY_MS = 2000 };

static const char remedy_server[] = "use PostgreSQL itself: what is locked here protects nothing";
static const char remedy_pooler[] =
    "connect to PostgreSQL directly, or through a pooler in session mode";
/* As in Holdfast's own sessions. Not behind a pooler, where they would stay for others. */
static const char *const timeouts_off[] = {"SET statement_timeout = 0", "SET lock_timeout = 0",
                                           "SET idle_session_timeout = 0",
                                           "SET idle_in_transaction_session_timeout = 0"};

static const char remedy_look[] = "mend what the message names, then prove again";

void hf__prove_say(const proof *of, hf_level level, const char *topic, const char *remedy,
                   const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    of->report(of->arg, level, topic, text, level == HF_LEVEL_OK ? "" : remedy);
}

verdict hf__prove_refute(const proof *of, const char *topic, const char *remedy, const char *text)
{
    hf__prove_say(of, HF_LEVEL_WARNING, topic, remedy, "%s", text);
    return REFUTED;
}

verdict hf__prove_doubt(const proof *of, const char *topic, const hf_error *why)
{
    hf__prove_say(of, HF_LEVEL_WARNING, topic, *why->hint ? why->hint : remedy_look,
                  "not known: %s", why->message);
    return UNKNOWN;
}

static hf_status choose_key(proof *of, hf_error *err)
{
    int64_t key = 0;
    if (getrandom(&key, sizeof key, 0) != (ssize_t)sizeof key)
        return hf__fail(err, HF_SYSTEM, "the system gives no random numbers");
    hf__pg_format(of->key, key);
    return HF_OK;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static hf_status ask(const proof *of, int who, const char *sql, bool about_key, PGresult **result,
                     hf_error *err)
{
    const char *params[] = {of->key};
    return hf__pg_query_until(of->sessions[who], sql, about_key ? 1 : 0, params,
                              hf__deadline(STATEMENT_MS), result, err);
}

static hf_status say_word(const proof *of, int who, const char *word, hf_error *err)
{
    return ask(of, who, word, false, NULL, err);
}

static hf_status ask_yes(const proof *of, int who, const hf__sql *statement, bool *yes,
                         hf_error *err)
{
    PGresult *answer = NULL;
    hf_status status = ask(of, who, pg_sql(statement), true, &answer, err);
    *yes = status == HF_OK && hf__pg_bool(answer, 0, 0);
    PQclear(answer);
    return status;
}

static hf_status ask_number(const proof *of, int who, const hf__sql *statement, int64_t *number,
                            hf_error *err)
{
    PGresult *answer = NULL;
    hf_status status = ask(of, who, pg_sql(statement), false, &answer, err);
    *number = status == HF_OK ? hf__pg_int(answer, 0, 0) : 0;
    PQclear(answer);
    return status;
}

/* ---- connecting ------------------------------------------------------------------------------ */

/*
 * Two connections to two servers refuse each other nothing. A start of a server is its name here:
 * a standby that was promoted has the number of the cluster that it left.
 */
static hf_status check_server(proof *of, int who, hf_error *err)
{
    PGresult *answer = NULL;
    hf_status status = ask(of, who, pg_sql(&hf__sql_postgres_prove_server), false, &answer, err);
    if (status != HF_OK)
        return status;
    const char *start = hf__pg_text(answer, 0, 1);
    bool is_direct = hf__pg_int(answer, 0, 2) == PQbackendPID(of->sessions[who]->conn);
    if (hf__pg_bool(answer, 0, 0))
        status =
            hf__fail(err, HF_CONFIG, "a connection leads to a standby: it grants its own locks");
    else if (of->server[0] && strcmp(of->server, start) != 0)
        status = hf__fail(err, HF_CONFIG, "connections lead to different servers");
    if (status != HF_OK)
        hf__hint(err, "use a URL that leads to the primary and to no other server");
    (void)snprintf(of->server, sizeof of->server, "%s", start);
    for (size_t i = 0; is_direct && i < sizeof timeouts_off / sizeof *timeouts_off; i++)
        (void)!say_word(of, who, timeouts_off[i], &(hf_error){0});
    PQclear(answer);
    return status;
}

static hf_status connect_one(proof *of, int who, hf_error *err)
{
    hf_status status =
        hf__pg_session_connect(of->backend, PG_FOR_LOCKS, NULL, &of->sessions[who], err);
    return status == HF_OK ? check_server(of, who, err) : status;
}

static hf_status connect_all(proof *of, hf_error *err)
{
    for (int i = 0; i < SESSIONS; i++) {
        pg_session **at = &of->sessions[i];
        hf_error why = {0};
        if (*at && atomic_load(&(*at)->base.lost)) {
            hf__pg_session_free(*at);
            *at = NULL;
        }
        hf_status status = *at ? HF_OK : connect_one(of, i, &why);
        if (status == HF_OK || (i >= 2 && !*at)) /* the others are worth having, no more */
            continue;
        if (err)
            *err = why;
        return status;
    }
    return HF_OK;
}

/* ---- does a connection keep its session? ----------------------------------------------------- */

static hf_status look_who_serves(proof *of, int who, hf_error *err)
{
    int64_t pid = 0;
    hf_status status = ask_number(of, who, &hf__sql_postgres_prove_pid, &pid, err);
    (void)snprintf(of->pids[who], sizeof of->pids[who], "%" PRId64, pid);
    return status;
}

/*
 * A pooler of transactions serves a statement by whatever backend is free. So the others begin
 * transactions, which take free backends away, and the first is looked at again.
 */
static hf_status crowd(proof *of, bool *shares, bool *moves, hf_error *err)
{
    char before[16];
    hf_status status = look_who_serves(of, 0, err);
    (void)snprintf(before, sizeof before, "%s", of->pids[0]);
    of->pooled = status == HF_OK && strtol(before, NULL, 10) != PQbackendPID(of->sessions[0]->conn);
    for (int i = 1; status == HF_OK && i < SESSIONS; i++) {
        if (!of->sessions[i])
            continue;
        status = say_word(of, i, "BEGIN", err);
        if (status == HF_OK)
            status = look_who_serves(of, i, err);
        *shares = *shares || (status == HF_OK && strcmp(of->pids[i], before) == 0);
    }
    if (status != HF_OK || *shares)
        return status;
    status = look_who_serves(of, 0, err);
    *moves = status == HF_UNREACHABLE || (status == HF_OK && strcmp(of->pids[0], before) != 0);
    return *moves ? HF_OK : status;
}

static void prove_keeping(proof *of)
{
    hf_error why = {0};
    bool shares = false, moves = false;
    hf_status status = crowd(of, &shares, &moves, &why);
    for (int i = 1; i < SESSIONS; i++)
        if (of->sessions[i] && !atomic_load(&of->sessions[i]->base.lost))
            (void)!say_word(of, i, "ROLLBACK", &(hf_error){0});
    if (shares)
        of->keeps = hf__prove_refute(
            of, "keeping", remedy_pooler,
            "two connections are served by one session: what one locks, both have");
    else if (moves)
        of->keeps =
            hf__prove_refute(of, "keeping", remedy_pooler,
                             "a connection is served by another session from one statement to the "
                             "next, or has to wait for other clients' transactions");
    else if (status != HF_OK)
        of->keeps = hf__prove_doubt(of, "keeping", &why);
    else {
        of->keeps = PROVEN;
        hf__prove_say(of, HF_LEVEL_OK, "keeping", "",
                      "a connection keeps its session (backend %s) while others run transactions",
                      of->pids[0]);
    }
}

/* ---- session locks --------------------------------------------------------------------------- */

/* The lock must outlive a transaction that is rolled back, and a blocking call must block. */
static hf_status try_to_break(proof *of, const char **how, hf_error *err)
{
    bool got = false;
    hf_status status = ask_yes(of, 0, &hf__sql_postgres_try_one, &got, err);
    if (status == HF_OK && !got)
        return hf__fail(err, HF_NOT_ACQUIRED, "a key that was chosen at random is refused");
    if (status == HF_OK)
        status = ask_yes(of, 1, &hf__sql_postgres_try_one, &got, err);
    if (status == HF_OK && got)
        *how = "two sessions hold the same key at once: advisory locks are accepted and lock "
               "nothing";
    if (status != HF_OK || *how)
        return status;
    status = say_word(of, 0, "BEGIN", err);
    if (status == HF_OK)
        status = say_word(of, 0, "ROLLBACK", err);
    if (status == HF_OK)
        status = ask_yes(of, 1, &hf__sql_postgres_try_one, &got, err);
    if (status == HF_OK && got)
        *how = "a lock is gone after a transaction of its session";
    if (status == HF_OK && !got)
        status = ask_yes(of, 1, &hf__sql_postgres_try_one_shared, &got, err);
    if (status == HF_OK && got && !*how)
        *how = "a key that is held exclusively can be shared";
    return status;
}

/* In a transaction, so that it waits no longer than the time that is set there. */
static hf_status try_to_wait(const proof *of, const hf__sql *statement, const char **how,
                             hf_error *err)
{
    hf_status status = say_word(of, 1, "BEGIN", err);
    if (status == HF_OK)
        status = say_word(of, 1, "SET LOCAL lock_timeout = 100", err);
    if (status != HF_OK)
        return status;
    status = ask(of, 1, pg_sql(statement), true, NULL, err);
    if (status == HF_OK)
        *how = "a wait for a lock that another holds was granted it";
    else if (strcmp(err->sqlstate, "55P03") == 0)
        status = HF_OK;
    return status == HF_OK ? say_word(of, 1, "ROLLBACK", err) : status;
}

static void prove_exclusion(proof *of)
{
    hf_error why = {0};
    const char *how = NULL;
    hf_status status = try_to_break(of, &how, &why);
    if (status == HF_OK && !how)
        status = try_to_wait(of, &hf__sql_postgres_prove_take, &how, &why);
    if (how)
        of->excludes = hf__prove_refute(of, "exclusion", remedy_server, how);
    else if (status != HF_OK)
        of->excludes = hf__prove_doubt(of, "exclusion", &why);
    else {
        of->excludes = PROVEN;
        hf__prove_say(
            of, HF_LEVEL_OK, "exclusion", "",
            "what one session holds is refused to another, over statements and transactions, and a "
            "wait for it waits");
    }
}

static void prove_view(const proof *of)
{
    hf_error why = {0};
    int64_t pid = 0;
    PGresult *answer = NULL;
    hf_status status = ask(of, 1, pg_sql(&hf__sql_postgres_prove_view), true, &answer, &why);
    pid = status == HF_OK && PQntuples(answer) == 1 ? hf__pg_int(answer, 0, 0) : 0;
    PQclear(answer);
    if (status != HF_OK)
        (void)hf__prove_doubt(of, "view", &why);
    else if (pid != strtol(of->pids[0], NULL, 10))
        (void)hf__prove_refute(of, "view", "expect refusals and lists that name no holder",
                               "pg_locks does not show who holds the key");
    else
        hf__prove_say(of, HF_LEVEL_OK, "view", "", "pg_locks shows the key and its holder");
}

/* The first connection breaks without a goodbye, as when its process is killed. */
static void prove_freeing(proof *of)
{
    hf_error why = {0};
    int64_t cut = hf__now_ms();
    (void)shutdown(PQsocket(of->sessions[0]->conn), SHUT_RDWR);
    hf__pg_session_free(of->sessions[0]);
    of->sessions[0] = NULL;
    hf_status status = ask(of, 1, pg_sql(&hf__sql_postgres_prove_take), true, NULL, &why);
    bool was_held = false;
    if (status == HF_OK)
        status = ask_yes(of, 1, &hf__sql_postgres_prove_leave, &was_held, &why);
    if (status == HF_OK && !was_held)
        of->frees =
            hf__prove_refute(of, "cut", remedy_server, "a lock that was waited for is not held");
    else if (status == HF_OK) {
        of->frees = PROVEN;
        hf__prove_say(of, HF_LEVEL_OK, "cut", "",
                      "the lock was free %" PRId64 " ms after its connection broke",
                      hf__now_ms() - cut);
    } else if (status == HF_UNREACHABLE)
        of->frees = hf__prove_refute(of, "cut",
                                     "look at what stands between this host and the server: it "
                                     "keeps sessions whose client is gone",
                                     "the lock was not free 5 s after its connection broke");
    else
        of->frees = hf__prove_doubt(of, "cut", &why);
}

static void prove_session(proof *of)
{
    hf_error why = {0};
    prove_exclusion(of);
    if (of->excludes != PROVEN)
        return;
    prove_view(of);
    prove_freeing(of);
    if (connect_all(of, &why) != HF_OK)
        (void)hf__prove_doubt(of, "cut", &why);
}

/* ---- transaction locks ----------------------------------------------------------------------- */

static hf_status try_in_transaction(const proof *of, int who, bool *got, hf_error *err)
{
    hf_status status = say_word(of, who, "BEGIN", err);
    return status == HF_OK ? ask_yes(of, who, &hf__sql_postgres_prove_try, got, err) : status;
}

/*
 * The end of a transaction must free its key, and nothing else may. Each of the two holds it after
 * the other: of a key that stays with its session, the session itself would not see that.
 */
static hf_status try_to_overtake(const proof *of, int holder, const char *end, const char **how,
                                 hf_error *err)
{
    bool got = false;
    hf_status status = try_in_transaction(of, holder, &got, err);
    if (status == HF_OK && !got)
        *how = "the end of a transaction does not free its locks";
    if (status == HF_OK && got)
        status = try_in_transaction(of, 1 - holder, &got, err);
    if (status == HF_OK && got && !*how)
        *how = "two transactions hold the same key at once: advisory locks are accepted and lock "
               "nothing";
    if (status == HF_OK)
        status = say_word(of, 1 - holder, "ROLLBACK", err);
    if (status == HF_OK && !*how && holder == 0)
        status = try_to_wait(of, &hf__sql_postgres_prove_wait, how, err);
    return status == HF_OK ? say_word(of, holder, end, err) : status;
}

static void prove_transaction(proof *of)
{
    hf_error why = {0};
    const char *how = NULL;
    const char *const ends[] = {"COMMIT", "ROLLBACK", "COMMIT", "ROLLBACK"};
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && !how && i < sizeof ends / sizeof *ends; i++)
        status = try_to_overtake(of, (int)(i % 2), ends[i], &how, &why);
    if (how)
        of->transacts = hf__prove_refute(of, "commit", remedy_server, how);
    else if (status != HF_OK)
        of->transacts = hf__prove_doubt(of, "commit", &why);
    else {
        of->transacts = PROVEN;
        hf__prove_say(
            of, HF_LEVEL_OK, "commit", "",
            "what a transaction holds is refused to another until COMMIT or ROLLBACK, then free");
    }
}

/* ---- notifications and tokens ---------------------------------------------------------------- */

static bool await_notification(pg_session *session)
{
    int64_t deadline = hf__deadline(NOTIFY_MS);
    struct pollfd readable = {.fd = PQsocket(session->conn), .events = POLLIN};
    PGnotify *notify;
    while (!(notify = PQnotifies(session->conn))) {
        if (hf__left_ms(deadline) == 0)
            return false;
        (void)poll(&readable, 1, hf__left_ms(deadline));
        if (!PQconsumeInput(session->conn))
            return false;
    }
    PQfreemem(notify);
    return true;
}

static void prove_notify(const proof *of)
{
    static const char remedy[] = "waits look again now and then instead: expect them to be slower";
    hf_error why = {0};
    if (of->keeps == REFUTED) {
        (void)hf__prove_refute(of, "notify", remedy,
                               "NOTIFY does not reach a connection that keeps no session");
        return;
    }
    hf_status status = say_word(of, 1, "LISTEN hf_proof", &why);
    if (status == HF_OK)
        status = ask(of, 0, pg_sql(&hf__sql_postgres_prove_notify), false, NULL, &why);
    if (status != HF_OK)
        (void)hf__prove_doubt(of, "notify", &why);
    else if (await_notification(of->sessions[1]))
        hf__prove_say(of, HF_LEVEL_OK, "notify", "", "a NOTIFY arrives: waits are woken at once");
    else
        (void)hf__prove_refute(of, "notify", remedy, "a NOTIFY did not arrive within 2 s");
}

static void prove_tokens(const proof *of)
{
    hf_error why = {0};
    int64_t last = 0, next = 0;
    hf_status status = HF_OK;
    for (int i = 0; status == HF_OK && i < 4; i++) {
        last = next;
        status = ask_number(of, i % 2, &hf__sql_postgres_next_token, &next, &why);
        if (status == HF_OK && next <= last) {
            (void)hf__prove_refute(of, "tokens", "do not rely on fencing tokens here",
                                   "a later token is not greater than an earlier one");
            return;
        }
    }
    if (status == HF_OK)
        hf__prove_say(of, HF_LEVEL_OK, "tokens", "",
                      "each is greater than the one before, over two sessions");
    else
        hf__prove_say(of, HF_LEVEL_WARNING, "tokens", "run 'holdfast init' once on this database",
                      "there are none: %s", why.message);
}

/* ---- the verdict for each lifetime ----------------------------------------------------------- */

static void judge_session(const proof *of)
{
    static const char topic[] = "session";
    if (of->keeps == REFUTED)
        hf__prove_say(of, HF_LEVEL_PROBLEM, topic, remedy_pooler,
                      "session locks do not work through this connection: it keeps no session");
    else if (of->excludes == REFUTED)
        hf__prove_say(of, HF_LEVEL_PROBLEM, topic, remedy_server,
                      "session locks do not work here: they exclude nobody");
    else if (of->frees == REFUTED)
        hf__prove_say(of, HF_LEVEL_PROBLEM, topic, remedy_pooler,
                      "session locks outlive their holder here");
    else if (of->pooled && !of->backend->session_pool)
        hf__prove_say(
            of, HF_LEVEL_WARNING, topic,
            "say --session-pool if the pooler is in session mode, and make sure that it stays so",
            "doubtful, and not tried: a pooler answers in the server's place, and whether it keeps "
            "sessions cannot be proven from here");
    else if (of->keeps != PROVEN || of->excludes != PROVEN || of->frees != PROVEN)
        hf__prove_say(of, HF_LEVEL_WARNING, topic, remedy_look, "doubtful: not all could be asked");
    else if (of->pooled)
        hf__prove_say(
            of, HF_LEVEL_OK, topic, "",
            "session locks work, if the pooler is in session mode as stated: nobody can prove "
            "that");
    else
        hf__prove_say(of, HF_LEVEL_OK, topic, "", "session locks work: proven");
}

static void judge_transaction(const proof *of)
{
    static const char topic[] = "transaction";
    if (of->transacts == PROVEN)
        hf__prove_say(of, HF_LEVEL_OK, topic, "", "transaction locks work: proven");
    else if (of->transacts == REFUTED)
        hf__prove_say(of, HF_LEVEL_PROBLEM, topic, remedy_server,
                      "transaction locks do not work here: they protect nothing");
    else
        hf__prove_say(of, HF_LEVEL_WARNING, topic, remedy_look, "doubtful: not all could be asked");
}

static void judge_lease(const proof *of)
{
    static const char topic[] = "lease";
    if (of->leases == PROVEN)
        hf__prove_say(of, HF_LEVEL_OK, topic, "", "leases work: proven");
    else if (of->leases == REFUTED)
        hf__prove_say(of, HF_LEVEL_PROBLEM, topic, remedy_server, "leases do not work here");
    else
        hf__prove_say(of, HF_LEVEL_WARNING, topic, "run 'holdfast init' once on this database",
                      "doubtful: they need the schema, and could not be tried");
}

static hf_status prove_all(proof *of, hf_error *err)
{
    hf_status status = connect_all(of, err);
    if (status != HF_OK)
        return status;
    prove_keeping(of);
    status = connect_all(of, err);
    if (status == HF_OK)
        status = choose_key(of, err);
    bool may_try = of->keeps == PROVEN && (!of->pooled || of->backend->session_pool);
    if (status == HF_OK && may_try) /* or locks might be left behind in a pooler */
        prove_session(of);
    if (status == HF_OK)
        status = connect_all(of, err);
    if (status == HF_OK)
        status = choose_key(of, err); /* the first may still be held */
    if (status == HF_OK)
        prove_transaction(of);
    if (status == HF_OK)
        status = connect_all(of, err);
    if (status != HF_OK)
        return status;
    prove_notify(of);
    prove_tokens(of);
    hf__prove_lease(of);
    judge_session(of);
    judge_transaction(of);
    judge_lease(of);
    return HF_OK;
}

hf_status hf__postgres_prove(const hf_store_options *options, hf_finding_fn *report, void *arg,
                             hf_error *err)
{
    proof of = {.report = report, .arg = arg};
    hf_status status = hf__pg_new(options, &of.backend, err);
    if (status != HF_OK)
        return status;
    status = prove_all(&of, err);
    for (int i = 0; i < SESSIONS; i++)
        hf__pg_session_free(of.sessions[i]);
    hf__pg_free(of.backend);
    return status;
}
