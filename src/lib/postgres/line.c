/*
 * The line of those who wait long for a key, over all processes. They sleep on LISTEN, so that the
 * server's own queue does not know them, and who wakes up first would win. A place in the line is
 * an advisory lock on the pair (PG_PLACE_CLASS plus the place's number, companion of the key), held
 * exclusively by the listening session: it goes with its process, needs no table, and whoever
 * stands behind can tell by a shared try whether a place ahead is still taken. Numbers have 16 bits
 * and go round.
 */
#include "lib/postgres/postgres.h"

#include <stdio.h>

#include "base/clock.h"

enum { NUMBERS = PG_PLACES };

/* How far number is behind earlier, as numbers go round: half of them are behind. */
static int distance(int earlier, int number)
{
    int steps = (number - earlier) & (NUMBERS - 1);
    return steps < NUMBERS / 2 ? steps : steps - NUMBERS;
}

/* The first and the last of the places that are taken; there is one at least. */
static void ends_of_line(const PGresult *taken, int *first, int *last)
{
    *first = *last = (int)hf__pg_int(taken, 0, 0);
    for (int i = 1; i < PQntuples(taken); i++) {
        int number = (int)hf__pg_int(taken, i, 0);
        if (distance(*first, number) < 0)
            *first = number;
        if (distance(*last, number) > 0)
            *last = number;
    }
}

static hf_status take_place(pg_backend *backend, pg_place *place, const char *companion,
                            const pg_patience *patience, hf_error *err)
{
    PGresult *taken = NULL, *mine = NULL;
    char from[16];
    int first = 0, last = -1;
    uint64_t serial = 0;

    const char *where[] = {companion};
    hf_status status = hf__pg_on_listening(
        backend, patience, &serial, pg_sql(&hf__sql_postgres_list_places), 1, where, &taken, err);
    if (status == HF_OK && PQntuples(taken) > 0)
        ends_of_line(taken, &first, &last);
    int ahead = distance(first, last) + 1;
    (void)snprintf(from, sizeof from, "%d", last + 1);
    const char *params[] = {from, companion};
    if (status == HF_OK)
        status = hf__pg_on_listening(backend, patience, &serial,
                                     pg_sql(&hf__sql_postgres_take_place), 2, params, &mine, err);
    if (status == HF_OK && serial && PQntuples(mine) > 0) {
        place->number = (int)hf__pg_int(mine, 0, 0);
        place->ahead = last + 1 - ahead;
        place->serial = serial;
        place->moved_ms = hf__now_ms();
    }
    PQclear(taken);
    PQclear(mine);
    return status;
}

static hf_status look_ahead(pg_backend *backend, pg_place *place, const char *companion,
                            const pg_patience *patience, hf_error *err)
{
    PGresult *found = NULL;
    char from[16], to[16];
    (void)snprintf(from, sizeof from, "%d", place->ahead);
    (void)snprintf(to, sizeof to, "%d", place->number - 1);
    const char *params[] = {from, to, companion};
    hf_status status =
        hf__pg_on_listening(backend, patience, &place->serial,
                            pg_sql(&hf__sql_postgres_place_ahead), 3, params, &found, err);
    if (status == HF_OK && place->serial) {
        int ahead = PQntuples(found) > 0 ? (int)hf__pg_int(found, 0, 0) : place->number;
        if (ahead != place->ahead)
            place->moved_ms = hf__now_ms();
        place->ahead = ahead;
    }
    PQclear(found);
    return status;
}

hf_status hf__pg_line_up(pg_backend *backend, pg_place *place, int64_t wake,
                         const pg_patience *patience, bool *first, hf_error *err)
{
    hf_status status = HF_OK;
    char companion[24];
    hf__pg_format(companion, hf__pg_companion(wake));
    if (place->serial && place->wake != wake)
        hf__pg_line_leave(backend, place);
    place->wake = wake;
    if (place->serial && place->ahead < place->number)
        status = look_ahead(backend, place, companion, patience, err);
    if (status == HF_OK && !place->serial) {
        status = take_place(backend, place, companion, patience, err);
        if (status == HF_OK && place->serial && place->ahead < place->number)
            status = look_ahead(backend, place, companion, patience, err);
    }
    /* Without a place, as when all numbers are taken, it takes its chance. */
    *first = !place->serial || place->ahead == place->number;
    return status;
}

void hf__pg_line_leave(pg_backend *backend, pg_place *place)
{
    char number[16], companion[24];
    hf__buf sql = {0};
    if (!place->serial)
        return;
    (void)snprintf(number, sizeof number, "%d", place->number & (NUMBERS - 1));
    hf__pg_format(companion, hf__pg_companion(place->wake));
    const hf__sql_part parts[] = {{"number", number}, {"companion", companion}, {0}};
    hf__sql_expand(&sql, pg_sql(&hf__sql_postgres_leave_place), parts);
    if (!sql.broken)
        hf__pg_errand_on_listening(backend, place->serial, sql.data);
    hf__buf_free(&sql);
    place->serial = 0;
}
