/*
 * Several hosts in one URL. libpq tries them in the given order each time, and waits for a silent
 * one as long as it may. So it is given them in an order that starts with the last known primary.
 */
#include "lib/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Element number `at` of a list with commas; a single one is that of every host. */
static hf__slice element(const char *list, size_t at)
{
    const char *start = list ? list : "";
    while (at-- > 0 && strchr(start, ','))
        start = strchr(start, ',') + 1;
    return (hf__slice){start, strcspn(start, ",")};
}

static size_t count_elements(const char *list)
{
    size_t count = 1;
    for (; list && *list; list++)
        count += *list == ',';
    return count;
}

static const char *hosts_of(const PQconninfoOption *options)
{
    const char *hosts = hf__pg_option(options, "host");
    return hosts ? hosts : hf__pg_option(options, "hostaddr");
}

size_t hf__pg_count_hosts(const PQconninfoOption *options)
{
    return count_elements(hosts_of(options));
}

char *hf__pg_name(const PQconninfoOption *options)
{
    const char *user = hf__pg_option(options, "user");
    const char *port = hf__pg_option(options, "port");
    const char *database = hf__pg_option(options, "dbname");
    hf__buf name = {0};

    hf__buf_puts(&name, "postgresql://");
    if (user)
        hf__buf_printf(&name, "%s@", user);
    for (size_t i = 0; i < hf__pg_count_hosts(options); i++) {
        hf__slice host = element(hosts_of(options), i), its_port = element(port, i);
        hf__buf_puts(&name, i > 0 ? "," : "");
        hf__buf_add(&name, host.text, host.size);
        if (its_port.size > 0 && host.text[0] != '/')
            hf__buf_printf(&name, ":%.*s", (int)its_port.size, its_port.text);
    }
    if (database)
        hf__buf_printf(&name, "/%s", database);
    if (name.broken) {
        hf__buf_free(&name);
        return strdup("postgresql");
    }
    return name.data;
}

/* ---- the order ------------------------------------------------------------------------------- */

static const char *value_of(const pg_backend *backend, const char *keyword)
{
    for (size_t i = 0; backend->keywords[i]; i++)
        if (strcmp(backend->keywords[i], keyword) == 0)
            return backend->values[i];
    return NULL;
}

static bool is_list_of_hosts(const char *keyword)
{
    return strcmp(keyword, "host") == 0 || strcmp(keyword, "hostaddr") == 0 ||
           strcmp(keyword, "port") == 0;
}

/* The list from element number `first` on, then those before it. */
static char *rotate(const char *list, size_t first)
{
    const char *tail = element(list, first).text;
    hf__buf rotated = {0};
    hf__buf_puts(&rotated, tail);
    if (tail > list && strchr(list, ','))
        hf__buf_printf(&rotated, ",%.*s", (int)(tail - list - 1), list);
    if (rotated.broken)
        hf__buf_free(&rotated);
    return rotated.data;
}

/* The values of all parameters, with the lists of hosts rotated. */
static char **rotate_values(const pg_backend *backend, size_t count, size_t first)
{
    char **values = calloc(count + 1, sizeof *values);
    bool ok = values;
    for (size_t i = 0; ok && i < count; i++) {
        bool list = first > 0 && is_list_of_hosts(backend->keywords[i]);
        values[i] = list ? rotate(backend->values[i], first) : strdup(backend->values[i]);
        ok = values[i];
    }
    if (!ok)
        hf__pg_words_free(values);
    return ok ? values : NULL;
}

void hf__pg_words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

bool hf__pg_hosts_open(pg_backend *backend)
{
    const char *host = value_of(backend, "host"), *address = value_of(backend, "hostaddr");
    size_t hosts = count_elements(host ? host : address), parameters = 0;
    while (backend->keywords[parameters])
        parameters++;
    backend->rotated = calloc(hosts, sizeof *backend->rotated);
    for (; backend->rotated && backend->hosts < hosts; backend->hosts++) {
        backend->rotated[backend->hosts] = rotate_values(backend, parameters, backend->hosts);
        if (!backend->rotated[backend->hosts])
            return false;
    }
    return backend->rotated;
}

void hf__pg_hosts_free(pg_backend *backend)
{
    for (size_t i = 0; i < backend->hosts; i++)
        hf__pg_words_free(backend->rotated[i]);
    free(backend->rotated);
}

const char *const *hf__pg_values(const pg_backend *backend)
{
    return (const char *const *)backend->rotated[atomic_load(&backend->first_host)];
}

static bool is_connected_to(const pg_backend *backend, PGconn *conn, size_t host)
{
    const char *name = PQhost(conn), *port = PQport(conn);
    hf__slice its_name = element(value_of(backend, "host"), host);
    hf__slice its_address = element(value_of(backend, "hostaddr"), host);
    hf__slice its_port = element(value_of(backend, "port"), host);
    return (hf__slice_is(its_name, name) || (!its_name.size && hf__slice_is(its_address, name))) &&
           (!its_port.size || hf__slice_is(its_port, port));
}

/* The number of the connection's host; that of hosts if it is none of them, or the only one. */
static size_t find_host(const pg_backend *backend, PGconn *conn)
{
    size_t host = 0;
    while (host < backend->hosts && !(conn && is_connected_to(backend, conn, host)))
        host++;
    return backend->hosts > 1 ? host : backend->hosts;
}

void hf__pg_prefer_host(pg_backend *backend, PGconn *conn, bool usable)
{
    size_t host = find_host(backend, conn);
    if (host < backend->hosts)
        atomic_store(&backend->first_host, (unsigned)((host + !usable) % backend->hosts));
}

bool hf__pg_skip_host(pg_backend *backend, PGconn *conn)
{
    size_t host = find_host(backend, conn);
    if (host == backend->hosts || (host + 1) % backend->hosts == atomic_load(&backend->first_host))
        return false;
    hf__pg_prefer_host(backend, conn, false);
    return true;
}
