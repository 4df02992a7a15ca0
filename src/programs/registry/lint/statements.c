#include "programs/registry/lint/statements.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/vec.h"

enum { STATEMENTS_MAX = 3000, BEHIND = 400 };

#define TABLE "[\"`]?((?:[a-z_]\\w*[\"`]?\\.[\"`]?)?[a-z_]\\w*)"
#define STRICT "(serializable|repeatable[_ ]?read)"

/* Group 1 is the table; of HF__ISOLATION, the level. */
const char *const hf__statement_patterns[HF__STATEMENT_PATTERNS] = {
    [HF__READ] = "\\bselect\\b(?:(?!\\b(?:select|insert|update|delete)\\b)[^;]){0,500}?"
                 "\\bfrom\\s+(?:only\\s+)?" TABLE,
    [HF__WRITE] =
        "\\b(?:insert\\s+into\\s+|delete\\s+from\\s+(?:only\\s+)?|merge\\s+into\\s+|"
        "(?<!for )update\\s+(?:only\\s+)?(?=\\S+\\s+(?:as\\s+|[a-z]\\w*\\s+)?set\\b))" TABLE,
    [HF__ISOLATION] =
        "(?:\\bisolation\\s+level\\s+" STRICT "|" /* SQL */
        "\\b(?:default_)?transaction_isolation\\s*(?:=|to|,)\\s*\\W{0,3}" STRICT "|"
        "\\bisolation_?level\\W{1,4}(?:[\\w.]*[._])?\\W?" STRICT
        "|" /* isolationLevel: 'Serializable' */
        "\\bisolation\\s*[:=]\\s*(?:[\\w.]+\\.)?:?['\"]?" STRICT "|" /* isolation: :serializable */
        "\\bsetTransactionIsolation\\s*\\([^)]*" STRICT "|"
        "\\btransaction_" STRICT "|"     /* JDBC */
        "\\bisolation_level_" STRICT "|" /* psycopg2 */
        "\\bisolation\\w*\\.(?:isolation_|transaction_)?" STRICT
        "|"                                            /* IsolationLevel.Serializable */
        "\\b(?:sql\\.|pgx\\.)(?:level)?" STRICT "\\b|" /* Go */
        "\\.transaction\\(\\s*['\"]" STRICT "|"        /* TypeORM */
        "\\bisolation_levels\\." STRICT "|"            /* Sequelize */
        "\\.build_transaction\\(\\)[\\s\\S]{0,80}\\." STRICT "\\()", /* Diesel */
    /* The same of object-relational mappers, which have names of classes for tables. */
    [HF__ORM_READ] =
        "(?:\\b((?-i:[A-Z])\\w*)\\.objects\\.(?:get|filter|all|first|exclude|values|count|"
        "exists)"
        "\\(|"                                                                /* Django */
        "\\b((?-i:[A-Z])\\w*)\\.(?:find|find_by|where|pluck|exists\\?)[!( ]|" /* ActiveRecord */
        "\\b(?:prisma|tx|db)\\.(\\w+)\\.(?:find(?:Unique|First|Many)\\w*|count|aggregate)\\(|"
        "\\bsession\\.query\\((\\w+)|\\bselect\\(((?-i:[A-Z])\\w+)\\)|" /* SQLAlchemy */
        "\\.(?:First|Find|Take)\\(&(\\w+)|"                             /* GORM */
        "\\b(\\w+?)Repository\\.(?:find\\w*|exists\\w*|count\\w*)\\(|"  /* Spring, TypeORM */
        "\\bRepo\\.(?:get!?|one!?|all|get_by!?)\\(\\s*(\\w+)|"          /* Ecto */
        "\\b_?(?:context|db)\\.(\\w+)\\.(?:Find|First|Single|Any|Where)\\w*\\(|" /* EF Core */
        "\\b((?-i:[A-Z])\\w*)::(?:find|where|first|all|findOrFail)\\()",
    [HF__ORM_WRITE] = "(?:\\b((?-i:[A-Z])\\w*)\\.objects\\.(?:\\w*create\\w*|bulk_update)\\(|"
                      "\\b((?-i:[A-Z])\\w*)\\.(?:create|insert_all|update_all|delete_all|"
                      "upsert\\w*)[!( ]|"
                      "\\b(?:prisma|tx|db)\\.(\\w+)\\.(?:create|update|upsert|delete)\\w*\\(|"
                      "\\bsession\\.add\\((\\w+)|\\b(?:insert|update|delete)\\(((?-i:[A-Z])\\w+"
                      ")\\)|"
                      "\\.(?:Create|Save)\\(&(\\w+)|"
                      "\\b(\\w+?)Repository\\.(?:save|insert|update|delete)\\w*\\(|"
                      "\\bRepo\\.(?:insert|update|delete)\\w*!?\\(\\s*(\\w+)|"
                      "\\b_?(?:context|db)\\.(\\w+)\\.(?:Add|Update|Remove)\\w*\\(|"
                      "\\b((?-i:[A-Z])\\w*)::(?:create|insert|update|upsert)\\(|"
                      "\\b(\\w+)(?:\\.|->)(?:save!|update!|destroy!|save\\(|SaveChanges\\w*\\()"
                      ")", /* the object itself */
};

static bool is_filler(const char *name, size_t size)
{
    static const char *const words[] = {"the",     "a",     "an",  "this",   "your",
                                        "that",    "it",    "set", "unnest", "generate_series",
                                        "lateral", "values"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == size && strncasecmp(name, words[i], size) == 0)
            return true;
    return (size > 3 && strncasecmp(name, "pg_", 3) == 0) ||
           (size > 18 && strncasecmp(name, "information_schema", 18) == 0);
}

/* A mapper that locks the rows it reads: select_for_update(), .lock, with_for_update(). */
static bool locks_as_orm(const hf__unit *unit, size_t at)
{
    size_t end = unit->size - at > BEHIND / 4 ? at + BEHIND / 4 : unit->size;

    for (; at < end && unit->text[at] != ';' && unit->text[at] != '\n'; at++)
        if (strncasecmp(unit->text + at, "lock", 4) == 0 ||
            strncasecmp(unit->text + at, "for_update", 10) == 0)
            return true;
    return false;
}

/* Nobody else can change what SELECT … FOR UPDATE has read. */
static bool locks_its_rows(const hf__unit *unit, size_t at)
{
    size_t end = unit->size - at > BEHIND ? at + BEHIND : unit->size;

    for (; at < end && hf__unit_is_sql(unit, at) && unit->text[at] != ';'; at++)
        if (strncasecmp(unit->text + at, "for update", 10) == 0 ||
            strncasecmp(unit->text + at, "for no key", 10) == 0 ||
            strncasecmp(unit->text + at, "for share", 9) == 0)
            return true;
    return false;
}

static bool is_meant(const hf__unit *unit, const hf__lint_statement *statement)
{
    if (unit->classes[statement->at] == HF__COMMENT)
        return false;
    if (statement->kind == HF__ISOLATION)
        return true;
    if (statement->by_orm)
        return unit->classes[statement->at] == HF__CODE && unit->syntax->id != HF__LANG_SQL &&
               !locks_as_orm(unit, statement->end);
    return hf__unit_is_sql(unit, statement->at) && hf__unit_is_sql(unit, statement->table) &&
           !is_filler(unit->text + statement->table, statement->table_size) &&
           unit->text[statement->end] != '(' &&
           !(statement->kind == HF__READ && locks_its_rows(unit, statement->end));
}

static void take_group(const hf__pcre_match *match, hf__lint_statement *statement)
{
    for (unsigned group = 1; group < HF__GROUPS_MAX; group++) {
        if (hf__pcre_match_has(match, group)) {
            statement->table = match->start[group];
            statement->table_size = match->end[group] - match->start[group];
            return;
        }
    }
}

static hf_status find_kind(const hf__unit *unit, hf__pcre *pattern, hf__statement_kind kind,
                           bool by_orm, size_t from, size_t to, hf__statements *statements,
                           hf_error *err)
{
    size_t most = statements->count + STATEMENTS_MAX;
    hf__pcre_match match;

    for (size_t at = from;; at = match.end[0]) {
        hf__pcre_found found = hf__pcre_find(pattern, unit->text, to, at, &match);
        if (found == HF__PCRE_TOO_HARD || statements->count == most)
            statements->incomplete = true;
        if (found != HF__PCRE_FOUND || statements->count == most)
            return HF_OK;
        hf__lint_statement statement = {
            .kind = kind, .at = match.start[0], .end = match.end[0], .by_orm = by_orm};
        take_group(&match, &statement);
        if (!is_meant(unit, &statement))
            continue;
        statement.block = hf__unit_block(unit, statement.at);
        if (!hf__grow(&statements->items, &statements->capacity, statements->count + 1,
                      sizeof *statements->items))
            return hf__no_memory(err);
        statements->items[statements->count++] = statement;
    }
}

hf_status hf__statements_find(const hf__unit *unit, hf__pcre *const *patterns, size_t from,
                              size_t to, hf__statements *statements, hf_error *err)
{
    hf_status status = HF_OK;

    *statements = (hf__statements){0};
    for (int kind = 0; status == HF_OK && kind < HF__STATEMENT_KINDS; kind++) {
        statements->first[kind] = statements->count;
        status = find_kind(unit, patterns[kind], (hf__statement_kind)kind, false, 0, unit->size,
                           statements, err);
        if (status == HF_OK && kind != HF__ISOLATION && from < to)
            status = find_kind(unit, patterns[kind == HF__READ ? HF__ORM_READ : HF__ORM_WRITE],
                               (hf__statement_kind)kind, true, from, to, statements, err);
    }
    statements->first[HF__STATEMENT_KINDS] = statements->count;
    if (status != HF_OK)
        hf__statements_free(statements);
    return status;
}

void hf__statements_free(hf__statements *statements)
{
    free(statements->items);
    *statements = (hf__statements){0};
}

bool hf__same_table(const hf__unit *unit, const hf__lint_statement *a, const hf__lint_statement *b)
{
    return a->table_size == b->table_size &&
           strncasecmp(unit->text + a->table, unit->text + b->table, a->table_size) == 0;
}
