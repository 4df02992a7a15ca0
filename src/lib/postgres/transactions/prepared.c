/*
 * Statements of a caller who says the same again and again, prepared on the session by their text.
 * A statement is prepared at its third use, in the message that uses it. It counts as prepared once
 * the server has said so: the message may have failed before. Names are numbers that only grow.
 */
#include "lib/postgres/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_USE = 3 };

static pg_known *find(pg_session *session, const char *sql)
{
    size_t size = strlen(sql);
    for (size_t i = 0; i < session->known_count; i++)
        if (session->known[i].size == size && memcmp(session->known[i].sql, sql, size) == 0)
            return &session->known[i];
    if (session->known_count == PG_KNOWN)
        return NULL;
    pg_known *known = &session->known[session->known_count];
    *known = (pg_known){.sql = strdup(sql), .size = size};
    session->known_count += known->sql != NULL;
    return known->sql ? known : NULL;
}

bool hf__pg_known_name(pg_message *message, const char *sql, char name[PG_NAME_SIZE])
{
    pg_session *session = message->session;
    pg_known *known = session->knows_none ? NULL : find(session, sql);
    if (!known || (known->name == 0 && ++known->uses < AT_USE))
        return false;
    bool is_new = known->name == 0;
    if (is_new)
        known->name = session->prepared + ++message->prepares;
    (void)snprintf(name, PG_NAME_SIZE, "hf_tx_%u", known->name);
    if (is_new)
        hf__pg_step_prepare(message, name, sql);
    message->uses_known = true;
    return true;
}

void hf__pg_known_settle(pg_message *message)
{
    pg_session *session = message->session;
    for (size_t i = 0; message->prepares > 0 && i < session->known_count; i++)
        if (session->known[i].name > session->prepared)
            session->known[i].name = 0;
}

void hf__pg_known_forget(pg_session *session)
{
    for (size_t i = 0; i < session->known_count; i++)
        free(session->known[i].sql);
    session->known_count = 0;
}

/*
 * Somebody has dropped what was prepared, has used its name, or has changed a table so that the
 * rows would be others. Or the statement is wrong: then it fails again, by its text, and is told
 * apart from preparing it.
 */
bool hf__pg_known_is_at_fault(pg_message *message)
{
    static const char *const states[] = {"26000", "0A000"};
    const hf_error *failure = &message->failure;
    bool is = message->failed_at == PG_PREPARED;
    for (size_t i = 0; message->uses_known && i < sizeof states / sizeof *states; i++)
        is = is || strcmp(failure->sqlstate, states[i]) == 0;
    if (is) {
        hf__pg_known_forget(message->session);
        message->session->knows_none = true;
    }
    return is;
}
