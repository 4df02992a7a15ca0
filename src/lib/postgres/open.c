/* Opening and closing the PostgreSQL backend, and its table of operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/postgres/postgres.h"

/* ---- connection strings ---------------------------------------------------------------------- */

enum { EXTRA_PARAMETERS = 12 };

const char *hf__pg_one_line(char *out, size_t out_size, const char *text)
{
    size_t used = 0;
    for (; text && *text && used + 3 < out_size; text++) {
        if (*text != '\n') {
            out[used++] = *text == '\t' ? ' ' : *text;
        } else if (text[1]) {
            out[used++] = ';';
            out[used++] = ' ';
            while (text[1] == '\t' || text[1] == ' ')
                text++;
        }
    }
    out[used] = '\0';
    return out;
}

const char *hf__pg_option(const PQconninfoOption *options, const char *keyword)
{
    for (; options && options->keyword; options++)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val && *options->val ? options->val : NULL;
    return NULL;
}

/* libpq's message may quote a part of the password, so it is not shown. */
static hf_status bad_url(hf_error *err)
{
    hf_status status = hf__fail(err, HF_INVALID, "the PostgreSQL URL cannot be parsed");
    hf__hint(err,
             "write postgresql://USER@HOST:PORT/DATABASE and percent-encode special characters "
             "(%%40 for @, %%2F for /); keep the password in a .pgpass file");
    return status;
}

static bool is_url(const char *text)
{
    return strncmp(text, "postgresql://", 13) == 0 || strncmp(text, "postgres://", 11) == 0;
}

/* If a password has an unescaped '/' or '@', libpq takes what is before it for host and port. */
static bool ports_are_numbers(const PQconninfoOption *options)
{
    const char *port = hf__pg_option(options, "port");
    return !port || strspn(port, "0123456789,") == strlen(port);
}

struct parameter_list {
    char **keywords;
    char **values;
    size_t used;
};

static bool push(struct parameter_list *list, const char *keyword, const char *value)
{
    char *name = strdup(keyword), *text = strdup(value);
    if (!name || !text) { /* no hole: the lists end with the first NULL */
        free(name);
        free(text);
        return false;
    }
    list->keywords[list->used] = name;
    list->values[list->used++] = text;
    return true;
}

static bool push_default(struct parameter_list *list, const PQconninfoOption *given,
                         const char *keyword, const char *value)
{
    return hf__pg_option(given, keyword) ? true : push(list, keyword, value);
}

static bool push_number(struct parameter_list *list, const PQconninfoOption *given,
                        const char *keyword, int value)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", value);
    return push_default(list, given, keyword, text);
}

/*
 * "APP on HOST (pid N)", for pg_stat_activity. Without records, lists and messages name the holder
 * by this. Where it is too long, the application is cut first: host and pid tell processes apart.
 */
static void application_name(char out[64], const pg_backend *backend)
{
    enum { ROOM = 63, APPLICATION_LEAST = 16 };
    char tail[24];
    int tail_size = snprintf(tail, sizeof tail, " (pid %d)", (int)backend->pid);
    int room = ROOM - tail_size;
    int left = room - (int)strlen(" on ") - (int)strlen(backend->host);
    int head = snprintf(out, (size_t)room + 1, "%.*s on %s",
                        left > APPLICATION_LEAST ? left : APPLICATION_LEAST, backend->application,
                        backend->host);
    if (head > room)
        head = room;
    (void)snprintf(out + head, 64 - (size_t)head, "%s", tail);
}

static bool complete(pg_backend *backend, const PQconninfoOption *given,
                     const hf_store_options *options)
{
    struct parameter_list list = {backend->keywords, backend->values, 0};
    char name[64];
    bool ok = true;

    for (const PQconninfoOption *o = given; o->keyword; o++)
        if (o->val && *o->val)
            ok = push(&list, o->keyword, o->val) && ok;
    application_name(name, backend);
    /* libpq counts it for each host. */
    int hosts = (int)hf__pg_count_hosts(given);
    int seconds = (options->connect_timeout_ms + 1000 * hosts - 1) / (1000 * hosts);
    ok = push_default(&list, given, "application_name", name) && ok;
    /* A standby grants locks of its own, so connect to a primary only. */
    ok = push_default(&list, given, "target_session_attrs", "primary") && ok;
    ok = push_default(&list, given, "client_encoding", "UTF8") && ok;
    ok = push_number(&list, given, "connect_timeout", seconds) && ok;
    /* During a long wait nothing is sent: only keepalives notice that the server is gone. */
    ok = push_number(&list, given, "keepalives_idle", (options->ping_interval_ms + 999) / 1000) &&
         ok;
    ok = push_number(&list, given, "keepalives_interval",
                     (options->ping_deadline_ms + 2999) / 3000) &&
         ok;
    ok = push_number(&list, given, "keepalives_count", 3) && ok;
    ok = push_number(&list, given, "tcp_user_timeout",
                     options->ping_interval_ms + options->ping_deadline_ms) &&
         ok;
    return ok;
}

static size_t count_options(const PQconninfoOption *options)
{
    size_t count = 0;
    while (options[count].keyword)
        count++;
    return count;
}

static bool is_complete(const PQconninfoOption *given)
{
    return hf__pg_option(given, "user") && hf__pg_option(given, "port") &&
           hf__pg_option(given, "dbname") &&
           (hf__pg_option(given, "host") || hf__pg_option(given, "hostaddr"));
}

/*
 * Fills in what libpq takes from the environment and the operating system. Only if something is
 * missing, because PQconndefaults has to look up the user's name.
 */
static char *name_with_defaults(const PQconninfoOption *given)
{
    static const char *const shown[] = {"user", "host", "hostaddr", "port", "dbname"};
    PQconninfoOption *defaults = is_complete(given) ? NULL : PQconndefaults();
    PQconninfoOption merged[8];
    size_t used = 0;

    memset(merged, 0, sizeof merged);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const char *value = hf__pg_option(given, shown[i]);
        if (!value)
            value = hf__pg_option(defaults, shown[i]);
        if (value) {
            merged[used].keyword = (char *)(uintptr_t)shown[i];
            merged[used++].val = (char *)(uintptr_t)value;
        }
    }
    char *name = hf__pg_name(merged);
    PQconninfoFree(defaults);
    return name;
}

static hf_status read_conninfo(pg_backend *backend, const hf_store_options *options, hf_error *err)
{
    hf_status status = HF_OK;
    char *message = NULL;
    const char *url = options->url ? options->url : "";
    PQconninfoOption *given = PQconninfoParse(url, &message);

    if (!given || !ports_are_numbers(given)) {
        if (is_url(url) || !message)
            status = bad_url(err);
        else
            status = hf__fail(err, HF_INVALID, "the PostgreSQL connection string cannot be parsed");
        goto out;
    }
    size_t room = count_options(given) + EXTRA_PARAMETERS;
    backend->keywords = calloc(room, sizeof *backend->keywords);
    backend->values = calloc(room, sizeof *backend->values);
    backend->base.name = name_with_defaults(given);
    if (!backend->keywords || !backend->values || !backend->base.name ||
        !complete(backend, given, options) || !hf__pg_hosts_open(backend))
        status = hf__no_memory(err);
out:
    PQfreemem(message);
    PQconninfoFree(given);
    return status;
}

static void free_conninfo(pg_backend *backend)
{
    hf__pg_hosts_free(backend);
    hf__pg_words_free(backend->keywords);
    hf__pg_words_free(backend->values);
}

/* ---- opening and closing --------------------------------------------------------------------- */

void hf__pg_free(pg_backend *backend)
{
    free_conninfo(backend);
    hf__pg_events_free(backend->unwritten);
    hf__pg_labels_free(backend->labels);
    if (backend->wake_fd >= 0)
        close(backend->wake_fd);
    if (backend->interrupt_fd >= 0)
        close(backend->interrupt_fd);
    hf__cond_destroy(&backend->changed);
    pthread_cond_destroy(&backend->renewal_due);
    pthread_mutex_destroy(&backend->mutex);
    hf__baton_destroy(&backend->shared_session_baton);
    hf__baton_destroy(&backend->listen_baton);
    free(backend->base.name);
    free(backend);
}

/* The server releases the locks at the end of the session; only our records have to be deleted. */
/*
 * Errands that were not sent are not needed: all that the session has ends with it. An answer that
 * is on its way is taken, or the server would complain in its log that nobody does.
 */
static void close_session(pg_session *session, const pg_patience *patience)
{
    hf_error ignored;
    session->patience = patience;
    hf__buf_free(&session->errands);
    if (atomic_load(&session->base.lost))
        return;
    if (session->token_epoch)
        (void)!hf__pg_query(session, pg_sql(&hf__sql_postgres_close_session), 0, NULL, NULL,
                            &ignored);
    else
        (void)!hf__pg_ready(session, &ignored);
}

static void pg_close(hf__backend *base)
{
    pg_backend *backend = pg_backend_of(base);
    /* All that follows waits so long together for a silent server, and not once more each. */
    pg_patience patience = {.until = hf__deadline(PG_CLOSE_MS)};
    hf__pg_stop_renewing(backend);
    if (hf__pg_flush_at_close(backend))
        patience.until = hf__deadline(PG_CLOSE_MS);
    hf__pg_end_tenures(backend, &patience);
    hf__pg_forget_probe(backend);
    while (backend->sessions) {
        pg_session *session = backend->sessions;
        backend->sessions = session->next;
        close_session(session, &patience);
        hf__pg_session_free(session);
    }
    hf__pg_free(backend);
}

/* PQfinish would end the parent's session at the server, so this only closes descriptors. */
static void pg_forget(hf__backend *base)
{
    pg_backend *backend = pg_backend_of(base);
    for (pg_session *session = backend->sessions; session; session = session->next)
        if (session->conn)
            close(PQsocket(session->conn));
    close(backend->wake_fd);
    close(backend->interrupt_fd);
}

static const hf__backend_ops postgres_ops = {
    .attempt = &hf__pg_attempt_ops,
    .close = pg_close,
    .forget = pg_forget,
    .try_claims = hf__pg_try_claims,
    .wait_claims = hf__pg_wait_claims,
    .release_claims = hf__pg_release_claims,
    .confirm_claims = hf__pg_confirm_claims,
    .renew_claims = hf__pg_renew_claims,
    .leave_session = hf__pg_leave_session,
    .probe_claims = hf__pg_probe_claims,
    .is_contended = hf__pg_is_contended,
    .ask = hf__pg_answer,
    .find_holder = hf__pg_find_holder,
    .listen = hf__pg_listen,
    .await_wake = hf__pg_await_wake,
    .unlisten = hf__pg_unlisten,
    .record = hf__pg_record,
    .flush = hf__pg_flush_events,
    .watch = hf__pg_watch,
    .wake = hf__pg_wake,
    .interrupt = hf__pg_interrupt,
    .note = hf__pg_note,
    .init = hf__pg_init,
    .claim_schedule = hf__pg_claim_schedule,
    .list = hf__pg_list,
    .list_past = hf__pg_list_past,
    .examine = hf__pg_examine,
};

static void adopt_options(pg_backend *backend, const hf_store_options *options)
{
    (void)snprintf(backend->application, sizeof backend->application, "%s", options->application);
    if (gethostname(backend->host, sizeof backend->host - 1) != 0)
        (void)snprintf(backend->host, sizeof backend->host, "unknown-host");
    backend->pid = getpid();
    backend->ping_interval_ms = options->ping_interval_ms;
    backend->ping_deadline_ms = options->ping_deadline_ms;
    backend->kill_ms = options->kill_ms;
    backend->max_waits = options->max_waits;
    backend->max_transactions = options->max_transactions;
    backend->quota_wanted = options->max_keys;
    backend->session_pool = options->session_pool;
    backend->records_wanted = options->records;
    backend->base.ops = &postgres_ops;
    backend->base.log = options->log;
    backend->base.log_arg = options->log_arg;
}

hf_status hf__pg_new(const hf_store_options *options, pg_backend **out, hf_error *err)
{
    pg_backend *backend = calloc(1, sizeof *backend);
    if (!backend)
        return hf__no_memory(err);
    adopt_options(backend, options);
    pthread_mutex_init(&backend->mutex, NULL);
    hf__baton_init(&backend->shared_session_baton);
    hf__baton_init(&backend->listen_baton);
    hf__cond_init(&backend->changed);
    pthread_cond_init(&backend->renewal_due, NULL);
    backend->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    backend->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    backend->unwritten = hf__pg_events_new();
    backend->labels = hf__pg_labels_new();

    hf_status status = HF_OK;
    if (backend->wake_fd < 0 || backend->interrupt_fd < 0 || !backend->unwritten ||
        !backend->labels)
        status = hf__fail(err, HF_NO_MEMORY, "out of memory or descriptors");
    if (status == HF_OK)
        status = read_conninfo(backend, options, err);
    if (status != HF_OK) {
        hf__pg_free(backend);
        return status;
    }
    *out = backend;
    return HF_OK;
}

hf_status hf__postgres_open(const hf_store_options *options, hf__backend **out, hf_error *err)
{
    pg_session *shared_session = NULL;
    pg_backend *backend = NULL;
    hf_status status = hf__pg_new(options, &backend, err);
    if (status != HF_OK)
        return status;
    status = hf__pg_shared_session(backend, &shared_session, err);
    if (status != HF_OK) {
        hf__pg_free(backend);
        return status;
    }
    hf__pg_unpin(shared_session);
    *out = &backend->base;
    return HF_OK;
}
