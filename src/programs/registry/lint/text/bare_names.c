/* SQL that is made with its function's name: fn = "pg_advisory_lock"; "SELECT " + fn + "(42)". */
#include <ctype.h>
#include <string.h>

#include "programs/registry/lint/text/args.h"

enum { STATEMENT_REACH = 400, CALL_REACH = 8000 };

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Where the variable begins that the string at this place, or one of several, is given to. */
static size_t variable_of(const hf__unit *unit, size_t at, size_t *size)
{
    size_t lowest = at > STATEMENT_REACH ? at - STATEMENT_REACH : 0;

    *size = 0;
    while (at > lowest && !(unit->classes[at - 1] == HF__CODE && unit->text[at - 1] == '=' &&
                            unit->text[at] != '=' && unit->text[at] != '>' &&
                            strchr("=!<>", unit->text[at - 2]) == NULL)) {
        at--;
        if (unit->classes[at] == HF__CODE && strchr(";{}(", unit->text[at]) != NULL)
            return 0;
    }
    if (at == lowest)
        return 0;
    for (at--; at > lowest && strchr(": \t", unit->text[at - 1]) != NULL; at--)
        continue;
    size_t end = at;
    while (at > 0 && is_word(unit->text[at - 1]))
        at--;
    /* `fn: string = …`: the word before the colon is the name. */
    size_t colon = at;
    while (colon > lowest && strchr(" &", unit->text[colon - 1]) != NULL)
        colon--;
    if (colon > lowest && unit->text[colon - 1] == ':' && unit->text[colon - 2] != ':') {
        end = colon - 1;
        for (at = end; at > 0 && is_word(unit->text[at - 1]); at--)
            continue;
    }
    *size = end - at;
    return at;
}

static size_t skip_blanks(const hf__unit *unit, size_t at)
{
    while (at < unit->size && isspace((unsigned char)unit->text[at]))
        at++;
    return at;
}

/* Behind the parenthesis that follows the name in SQL: {fn}(, #{fn}(, " + fn + "(; 0: none does. */
static size_t opening_behind(const hf__unit *unit, size_t at)
{
    if (unit->classes[at - 1] == HF__TEXT) {
        at += at < unit->size && unit->text[at] == '}';
    } else {
        at = skip_blanks(unit, at);
        while (at < unit->size && strchr("+.<>&", unit->text[at]) != NULL)
            at++;
        at = skip_blanks(unit, at);
        while (at < unit->size && is_word(unit->text[at]) && unit->classes[at] == HF__CODE)
            at++; /* the prefix of f"(…" */
        if (at >= unit->size || unit->classes[at] != HF__QUOTE)
            return 0;
        while (at < unit->size && unit->classes[at] == HF__QUOTE)
            at++;
    }
    return at < unit->size && unit->text[at] == '(' && unit->classes[at] == HF__TEXT ? at + 1 : 0;
}

size_t hf__bare_name_call(const hf__unit *unit, size_t at)
{
    size_t size;
    size_t name = variable_of(unit, at, &size);
    size_t limit = unit->size - at > CALL_REACH ? at + CALL_REACH : unit->size;
    size_t found = 0;

    for (; size > 1 && at + size < limit; at++) {
        if (memcmp(unit->text + at, unit->text + name, size) != 0 || is_word(unit->text[at - 1]) ||
            is_word(unit->text[at + size]) || unit->classes[at] == HF__COMMENT)
            continue;
        size_t open = opening_behind(unit, at + size);
        if (open > 0 && found > 0)
            return 0; /* two statements: nobody can tell which one this is */
        found = open > 0 ? open : found;
    }
    return found;
}
