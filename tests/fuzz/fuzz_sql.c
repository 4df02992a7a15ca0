/*
 * A script: its statements are whole pieces of it, in their order, and where SQLite can tell, they
 * are those that SQLite sees. What psql sees is compared in tests/integration.
 */
#include "fuzz.h"

#include <sqlite3.h>
#include <string.h>

#include "programs/holdfast/sql_lex.h"
#include "programs/holdfast/sql_script.h"

static sqlite3 *database;

static size_t skip_space(const char *text, size_t at)
{
    while (sql_is_space(text[at]))
        at++;
    return at;
}

/* Behind the semicolon that ends the first statement from there on, as SQLite sees it. */
static size_t end_for_sqlite(char *text, size_t at)
{
    for (const char *semicolon = text + at; (semicolon = strchr(semicolon, ';')) != NULL;) {
        size_t end = (size_t)(++semicolon - text);
        char next = text[end];
        text[end] = '\0';
        bool is_whole = sqlite3_complete(text + at) != 0;
        text[end] = next;
        if (is_whole)
            return end;
    }
    return strlen(text);
}

static bool is_comment_only(const char *text, size_t size)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(database, text, (int)size, &statement, NULL);
    bool is_nothing = code == SQLITE_OK && statement == NULL;

    sqlite3_finalize(statement);
    return is_nothing;
}

static void compare(char *text, const struct sql_script *script)
{
    size_t next = 0;

    for (size_t at = 0; text[at] != '\0';) {
        size_t end = end_for_sqlite(text, at);
        const struct sql_statement *mine =
            next < script->count && script->statements[next].start < end
                ? &script->statements[next++]
                : NULL;
        if (mine == NULL) {
            size_t bare = text[end - 1] == ';' ? end - 1 : end;
            require(is_comment_only(text + at, bare - at), "a statement was overlooked");
        } else {
            size_t behind = skip_space(text, mine->start + strlen(mine->sql));
            require(behind == end || (behind == end - 1 && text[behind] == ';'),
                    "SQLite ends a statement elsewhere");
        }
        at = end;
    }
    require(next == script->count, "SQLite sees fewer statements");
}

static hf_status read_script(const char *text, size_t size, bool sqlite, struct sql_script *script)
{
    struct sql_variable variables[] = {{.name = "a", .name_size = 1, .value = "1"},
                                       {.name = "bc", .name_size = 2, .value = "2"}};
    hf_error err = {0};
    hf_status status = sql_script_read(text, size, sqlite, variables, 2, script, &err);

    require(status == HF_OK || (status == HF_INVALID && err.message[0] != '\0'), "no reason");
    require(script->wrong_at <= size, "what is wrong is outside of the script");
    (void)sql_find_place(text, size, script->wrong_at);
    size_t last = 0;
    for (size_t i = 0; i < script->count; i++) {
        const struct sql_statement *statement = &script->statements[i];
        require(statement->start >= last && statement->first >= statement->start &&
                    statement->first < size && statement->sql[0] != '\0',
                "statements are out of order");
        last = statement->first + 1;
        for (size_t k = 0; k < statement->count; k++)
            require(text[statement->parameters[k].script_at] == ':' &&
                        statement->sql[statement->parameters[k].sent_at] == '$',
                    "a parameter is elsewhere");
        require(sql_statement_offset(statement, 1) == statement->start, "it begins elsewhere");
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sql_script script;
    char *text = strndup((const char *)data, size); /* a script with a NUL is refused before */

    if (database == NULL)
        require(sqlite3_open(":memory:", &database) == SQLITE_OK, "no SQLite");
    require(text != NULL, "out of memory");
    size = strlen(text);
    (void)!read_script(text, size, false, &script);
    sql_script_free(&script);
    hf_status status = read_script(text, size, true, &script);
    /* A semicolon in parentheses ends nothing here, for rules; bodies of triggers that SQLite would
     * refuse end elsewhere. */
    bool is_plain = strpbrk(text, "(:\v") == NULL && strcasestr(text, "trigger") == NULL;
    if (status == HF_OK && is_plain)
        compare(text, &script);
    sql_script_free(&script);
    free(text);
    return 0;
}
