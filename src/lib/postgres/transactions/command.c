/*
 * What a statement of the caller's does to the transaction and the session that it runs in, told by
 * its words. The server takes one statement at a time from us, and within a transaction block no
 * function or procedure can end the transaction, so the first words decide about that for certain.
 * What a statement leaves behind in the session is guessed on the safe side: a wrong guess costs a
 * reset that was not needed.
 */
#include "lib/postgres/postgres.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* SQL's comments nest. */
static const char *skip_comment(const char *at)
{
    int depth = 0;
    do {
        if (at[0] == '/' && at[1] == '*') {
            depth++;
            at += 2;
        } else if (at[0] == '*' && at[1] == '/') {
            depth--;
            at += 2;
        } else {
            at++;
        }
    } while (*at && depth > 0);
    return at;
}

/* An empty statement before the one that counts is no statement to the server. */
static const char *skip_blanks(const char *at)
{
    for (;;) {
        if (isspace((unsigned char)*at) || *at == ';')
            at++;
        else if (at[0] == '-' && at[1] == '-')
            at += strcspn(at, "\n\r");
        else if (at[0] == '/' && at[1] == '*')
            at = skip_comment(at);
        else
            return at;
    }
}

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* Moves on past the word if it is this one. */
static bool take_word(const char **at, const char *word)
{
    size_t size = strlen(word);
    const char *start = skip_blanks(*at);
    if (strncasecmp(start, word, size) != 0 || is_word_char(start[size]))
        return false;
    *at = start + size;
    return true;
}

static bool starts_with_one_of(const char *sql, const char *const *words)
{
    for (; *words; words++) {
        const char *at = sql;
        if (take_word(&at, *words))
            return true;
    }
    return false;
}

static bool rolls_to_savepoint(const char *at)
{
    if (!take_word(&at, "rollback"))
        return false;
    (void)(take_word(&at, "work") || take_word(&at, "transaction"));
    return take_word(&at, "to");
}

static bool ends_transaction(const char *sql)
{
    static const char *const words[] = {"begin", "start",    "commit", "end",
                                        "abort", "rollback", NULL};
    const char *at = sql;
    return starts_with_one_of(sql, words) ||
           (take_word(&at, "prepare") && take_word(&at, "transaction"));
}

const char *hf__pg_mention(const char *sql, const char *part)
{
    size_t before = strcspn(part, "_&m"), size = strlen(part);
    const char rare[] = {part[before], (char)toupper((unsigned char)part[before]), '\0'};
    for (const char *at = strpbrk(sql, rare); at; at = strpbrk(at + 1, rare))
        if ((size_t)(at - sql) >= before && strncasecmp(at - before, part, size) == 0)
            return at - before;
    return NULL;
}

static bool has_word(const char *sql, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = sql; (at = hf__pg_mention(at, word)); at += size)
        if ((at == sql || !is_word_char(at[-1])) && !is_word_char(at[size]))
            return true;
    return false;
}

static bool takes_session_lock(const char *sql)
{
    return hf__pg_mention(sql, "advisory_lock") || hf__pg_mention(sql, "advisory_unlock");
}

static bool alters_session(const char *sql)
{
    static const char *const words[] = {"reset",    "discard", "deallocate", "prepare", "listen",
                                        "unlisten", "load",    "declare",    "create",  "do",
                                        "call",     "alter",   NULL};
    static const char *const local[] = {"local", "transaction", "constraints", NULL};
    const char *at = sql;
    if (take_word(&at, "set"))
        return !starts_with_one_of(at, local);
    return starts_with_one_of(sql, words) || hf__pg_mention(sql, "set_config") ||
           hf__pg_mention(sql, "pg_settings") || hf__pg_mention(sql, "u&\"") ||
           takes_session_lock(sql) || has_word(sql, "temp") || has_word(sql, "temporary");
}

pg_command hf__pg_command(const char *sql)
{
    const char *at = sql;
    if (take_word(&at, "copy"))
        return PG_COMMAND_COPIES;
    if (rolls_to_savepoint(sql))
        return PG_COMMAND_ROLLS_TO;
    if (ends_transaction(sql))
        return PG_COMMAND_ENDS;
    return alters_session(sql) ? PG_COMMAND_ALTERS : PG_COMMAND_PLAIN;
}
