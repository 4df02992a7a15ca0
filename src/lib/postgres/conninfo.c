#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const char *option_value(const PQconninfoOption *options, const char *keyword)
{
    for (; options && options->keyword; options++)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val && *options->val ? options->val : NULL;
    return NULL;
}

char *hf__pg_name(const PQconninfoOption *options)
{
    const char *user = option_value(options, "user");
    const char *host = option_value(options, "host");
    const char *address = option_value(options, "hostaddr");
    const char *port = option_value(options, "port");
    const char *database = option_value(options, "dbname");
    hf__buf name = {0};

    hf__buf_puts(&name, "postgresql://");
    if (user)
        hf__buf_printf(&name, "%s@", user);
    if (host || address)
        hf__buf_puts(&name, host ? host : address);
    if (port && !(host && host[0] == '/'))
        hf__buf_printf(&name, ":%s", port);
    if (database)
        hf__buf_printf(&name, "/%s", database);
    if (name.broken) {
        hf__buf_free(&name);
        return strdup("postgresql");
    }
    return name.data;
}

/* A half-parsed URL may quote a piece of the password, so libpq's words stay out of the message. */
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

/* libpq takes what stands before an unescaped '/' or '@' of a password for host and port. */
static bool ports_are_numbers(const PQconninfoOption *options)
{
    const char *port = option_value(options, "port");
    return !port || strspn(port, "0123456789,") == strlen(port);
}

struct parameter_list {
    char **keywords;
    char **values;
    size_t used;
};

static bool push(struct parameter_list *list, const char *keyword, const char *value)
{
    list->keywords[list->used] = strdup(keyword);
    list->values[list->used] = strdup(value);
    bool ok = list->keywords[list->used] && list->values[list->used];
    list->used++;
    return ok;
}

static bool push_default(struct parameter_list *list, const PQconninfoOption *given,
                         const char *keyword, const char *value)
{
    return option_value(given, keyword) ? true : push(list, keyword, value);
}

static bool push_number(struct parameter_list *list, const PQconninfoOption *given,
                        const char *keyword, int value)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", value);
    return push_default(list, given, keyword, text);
}

/* Shown in pg_stat_activity, and how a holder without records is named: "APP on HOST (pid N)". */
static void application_name(char out[64], const pg_backend *backend)
{
    char tail[24];
    int tail_size = snprintf(tail, sizeof tail, " (pid %d)", (int)backend->pid);
    int room = 63 - tail_size;
    int head = snprintf(out, (size_t)room + 1, "%s on %s", backend->application, backend->host);
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
    int seconds = (options->connect_timeout_ms + 999) / 1000;
    ok = push_default(&list, given, "application_name", name) && ok;
    /* A standby grants locks of its own, so only a primary will do. */
    ok = push_default(&list, given, "target_session_attrs", "primary") && ok;
    ok = push_default(&list, given, "client_encoding", "UTF8") && ok;
    ok = push_number(&list, given, "connect_timeout", seconds) && ok;
    /* A wait without end sends nothing: only these tell that the other side is gone. */
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
    return option_value(given, "user") && option_value(given, "port") &&
           option_value(given, "dbname") &&
           (option_value(given, "host") || option_value(given, "hostaddr"));
}

/* With what libpq would fill in from its environment and the operating system, which it reads the
 * user's name from: only where something is missing. */
static char *name_with_defaults(const PQconninfoOption *given)
{
    static const char *const shown[] = {"user", "host", "hostaddr", "port", "dbname"};
    PQconninfoOption *defaults = is_complete(given) ? NULL : PQconndefaults();
    PQconninfoOption merged[8];
    size_t used = 0;

    memset(merged, 0, sizeof merged);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const char *value = option_value(given, shown[i]);
        if (!value)
            value = option_value(defaults, shown[i]);
        if (value) {
            merged[used].keyword = (char *)(uintptr_t)shown[i];
            merged[used++].val = (char *)(uintptr_t)value;
        }
    }
    char *name = hf__pg_name(merged);
    PQconninfoFree(defaults);
    return name;
}

hf_status hf__pg_conninfo(pg_backend *backend, const hf_store_options *options, hf_error *err)
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
        !complete(backend, given, options))
        status = hf__fail(err, HF_NO_MEMORY, "out of memory");
out:
    PQfreemem(message);
    PQconninfoFree(given);
    return status;
}

void hf__pg_conninfo_free(pg_backend *backend)
{
    for (size_t i = 0; backend->keywords && backend->keywords[i]; i++)
        free(backend->keywords[i]);
    for (size_t i = 0; backend->values && backend->values[i]; i++)
        free(backend->values[i]);
    free(backend->keywords);
    free(backend->values);
}
