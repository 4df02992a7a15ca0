/* The relation that is adopted: what it looks like, and the statements that change it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "lib/ledgers/ledgers.h"
#include "lib/tables/adopt.h"

#define DEFAULT_RELATION "table_context_refs"

/* The statement with every '@' replaced by the relation. */
static hf_status query(hf_tx *tx, const hf__adopt_source *source, const char *sql, size_t count,
                       const hf_value *values, hf_rows **rows, hf_error *err)
{
    hf__buf text = {0};
    for (const char *at = strchr(sql, '@'); at; at = strchr(sql, '@')) {
        hf__buf_add(&text, sql, (size_t)(at - sql));
        hf__buf_puts(&text, source->relation.data);
        sql = at + 1;
    }
    hf__buf_puts(&text, sql);
    hf_status status = text.broken ? hf__no_memory(err)
                                   : hf_tx_query(tx, text.data, count, values, false, rows, err);
    hf__buf_free(&text);
    return status;
}

static const char *sql_of(const hf__adopt_source *source, const char *postgres, const char *sqlite)
{
    return hf__table_sql(source->store, postgres, sqlite);
}

static hf_status misses(const hf__adopt_source *source, const char *column, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_CONFIG, "%s has no column %s", source->relation.data, column);
    hf__hint(err, "what is adopted is a table_context_refs(table_name, context_id)");
    return status;
}

/* ---- PostgreSQL --------------------------------------------------------------------------------- */

static hf_status find_relation(hf_tx *tx, const hf_table_adoption *adoption,
                               hf__adopt_source *source, hf_error *err)
{
    const char *relation = adoption->relation ? adoption->relation : DEFAULT_RELATION;
    const hf_value values[] = {HF_TEXT(adoption->schema), HF_TEXT(relation)};
    hf_rows *rows = NULL;
    hf_status status = hf_tx_query(
        tx,
        "SELECT c.oid, pg_catalog.format('%I.%I', n.nspname, c.relname), c.relkind IN ('r', 'p'), "
        "n.nspname = 'holdfast' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
        "ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass("
        "coalesce(pg_catalog.quote_ident($1::text) || '.', '') || pg_catalog.quote_ident($2))",
        2, values, false, &rows, err);
    if (status != HF_OK)
        return status;
    if (hf_rows_count(rows) == 0) {
        status = hf__fail(err, HF_CONFIG, "there is no table %s%s%s on %s",
                          adoption->schema ? adoption->schema : "", adoption->schema ? "." : "",
                          relation, source->store->backend->name);
        hf__hint(err, "name its schema and table, as in --from app.table_context_refs");
    } else {
        hf__buf_clear(&source->relation);
        hf__buf_puts(&source->relation, hf_rows_value(rows, 0, 1, NULL));
        (void)snprintf(source->oid, sizeof source->oid, "%s", hf_rows_value(rows, 0, 0, NULL));
        if (source->relation.broken)
            status = hf__no_memory(err);
        else if (hf_rows_value(rows, 0, 3, NULL)[0] == 't')
            status = hf__fail(err, HF_CONFIG, "%s is Holdfast's own", source->relation.data);
        else if (hf_rows_value(rows, 0, 2, NULL)[0] != 't')
            status = hf__fail(err, HF_CONFIG, "%s is not a table", source->relation.data);
    }
    hf_rows_free(rows);
    return status;
}

static hf_status look_at_id(hf__adopt_source *source, const char *type, hf_error *err)
{
    source->has_id = true;
    source->id_is_narrow = strcmp(type, "int2") == 0 || strcmp(type, "int4") == 0;
    if (source->id_is_narrow || strcmp(type, "int8") == 0)
        return HF_OK;
    hf_status status = hf__fail(err, HF_CONFIG, "advisory_id of %s is of type %s, not bigint",
                                source->relation.data, type);
    hf__hint(err, "ALTER TABLE %s ALTER COLUMN advisory_id TYPE bigint USING …",
             source->relation.data);
    return status;
}

static hf_status look_at_columns(hf_tx *tx, hf__adopt_source *source, hf_error *err)
{
    const hf_value values[] = {HF_TEXT(source->oid)};
    bool has_name = false, has_context = false;
    hf_rows *rows = NULL;
    hf_status status =
        hf_tx_query(tx,
                    "SELECT a.attname, t.typname, a.attnotnull FROM pg_catalog.pg_attribute a "
                    "JOIN pg_catalog.pg_type t ON t.oid = a.atttypid WHERE a.attrelid = $1::oid "
                    "AND a.attnum > 0 AND NOT a.attisdropped",
                    1, values, false, &rows, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++) {
        const char *name = hf_rows_value(rows, i, 0, NULL);
        has_name = has_name || strcmp(name, "table_name") == 0;
        has_context = has_context || strcmp(name, "context_id") == 0;
        if (strcmp(name, "advisory_id") != 0)
            continue;
        source->not_null = hf_rows_value(rows, i, 2, NULL)[0] == 't';
        status = look_at_id(source, hf_rows_value(rows, i, 1, NULL), err);
    }
    hf_rows_free(rows);
    if (status == HF_OK && (!has_name || !has_context))
        status = misses(source, has_name ? "context_id" : "table_name", err);
    return status;
}

/* The relation before the registry, as everybody who takes both; a reader that stays long is not
 * waited for with all others queueing behind: the attempt ends and is made again. */
static hf_status find_in_postgres(hf_tx *tx, const hf_table_adoption *adoption,
                                  hf__adopt_source *source, hf_error *err)
{
    hf_status status = hf_tx_queue(tx, "SET LOCAL lock_timeout = '5s'", 0, NULL, err);
    if (status == HF_OK)
        status = find_relation(tx, adoption, source, err);
    if (status == HF_OK)
        status = query(tx, source,
                       adoption->dry_run ? "LOCK TABLE @ IN ACCESS SHARE MODE"
                                         : "LOCK TABLE @ IN ACCESS EXCLUSIVE MODE",
                       0, NULL, NULL, err);
    if (status == HF_OK && !adoption->dry_run)
        status = hf_tx_queue(tx, "LOCK TABLE holdfast.table_registry IN SHARE ROW EXCLUSIVE MODE",
                             0, NULL, err);
    return status == HF_OK ? look_at_columns(tx, source, err) : status;
}

/* ---- SQLite ------------------------------------------------------------------------------------- */

static hf_status find_in_sqlite(hf_tx *tx, const hf_table_adoption *adoption,
                                hf__adopt_source *source, hf_error *err)
{
    const char *relation = adoption->relation ? adoption->relation : DEFAULT_RELATION;
    const hf_value values[] = {HF_TEXT(relation)};
    bool has_name = false, has_context = false;
    hf_rows *rows = NULL;
    hf__buf_clear(&source->relation);
    hf__buf_puts(&source->relation, "\"");
    for (const char *at = relation; *at; at++)
        hf__buf_printf(&source->relation, *at == '"' ? "\"\"" : "%c", *at);
    hf__buf_puts(&source->relation, "\"");
    if (source->relation.broken)
        return hf__no_memory(err);
    hf_status status = hf_tx_query(tx,
                                   "SELECT lower(i.name), i.\"notnull\" FROM sqlite_schema s, "
                                   "pragma_table_info(s.name) i WHERE s.type = 'table' AND "
                                   "s.name = $1 COLLATE NOCASE",
                                   1, values, false, &rows, err);
    if (status == HF_OK && hf_rows_count(rows) == 0) {
        status = hf__fail(err, HF_CONFIG, "there is no table %s in %s", source->relation.data,
                          adoption->file);
        hf__hint(err, "name the file and the table that have the references");
    }
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++) {
        const char *name = hf_rows_value(rows, i, 0, NULL);
        has_name = has_name || strcmp(name, "table_name") == 0;
        has_context = has_context || strcmp(name, "context_id") == 0;
        if (strcmp(name, "advisory_id") != 0)
            continue;
        source->has_id = true;
        source->not_null = hf_rows_value(rows, i, 1, NULL)[0] == '1';
    }
    hf_rows_free(rows);
    if (status == HF_OK && (!has_name || !has_context))
        status = misses(source, has_name ? "context_id" : "table_name", err);
    return status;
}

hf_status hf__adopt_find(hf_tx *tx, const hf_table_adoption *adoption, hf__adopt_source *source,
                         hf_error *err)
{
    source->has_id = source->id_is_narrow = source->not_null = false;
    return source->store->backend->local ? find_in_sqlite(tx, adoption, source, err)
                                         : find_in_postgres(tx, adoption, source, err);
}

/* ---- both --------------------------------------------------------------------------------------- */

hf_status hf__adopt_add_column(hf_tx *tx, hf__adopt_source *source, hf_error *err)
{
    hf_status status = HF_OK;
    if (!source->has_id)
        status =
            query(tx, source, "ALTER TABLE @ ADD COLUMN advisory_id bigint", 0, NULL, NULL, err);
    else if (source->id_is_narrow)
        status = query(tx, source, "ALTER TABLE @ ALTER COLUMN advisory_id TYPE bigint", 0, NULL,
                       NULL, err);
    if (status == HF_OK)
        source->has_id = true;
    return status;
}

/* By their bytes, whatever collation the column has. */
hf_status hf__adopt_spellings(hf_tx *tx, const hf__adopt_source *source, hf_rows **rows,
                              hf_error *err)
{
    const char *with =
        sql_of(source,
               "SELECT table_name::text COLLATE \"C\", count(*), count(advisory_id), "
               "min(advisory_id), max(advisory_id), 0, 'text', "
               "coalesce(max(pg_catalog.octet_length(context_id::text)), 0) FROM @ GROUP BY 1",
               "SELECT table_name, count(*), count(advisory_id), min(advisory_id), "
               "max(advisory_id), sum(advisory_id IS NOT NULL AND typeof(advisory_id) <> "
               "'integer'), typeof(table_name), "
               "coalesce(max(length(CAST(context_id AS BLOB))), 0) "
               "FROM @ GROUP BY table_name COLLATE BINARY, typeof(table_name)");
    const char *without =
        sql_of(source,
               "SELECT table_name::text COLLATE \"C\", count(*), 0, NULL, NULL, 0, 'text', "
               "coalesce(max(pg_catalog.octet_length(context_id::text)), 0) FROM @ GROUP BY 1",
               "SELECT table_name, count(*), 0, NULL, NULL, 0, typeof(table_name), "
               "coalesce(max(length(CAST(context_id AS BLOB))), 0) "
               "FROM @ GROUP BY table_name COLLATE BINARY, typeof(table_name)");
    return query(tx, source, source->has_id ? with : without, 0, NULL, rows, err);
}

hf_status hf__adopt_rows_of(hf_tx *tx, const hf__adopt_source *source,
                            const hf__adopt_spelling *spelling, hf_rows **rows, hf_error *err)
{
    const hf_value name = {
        .data = spelling->raw, .size = spelling->raw_size, .binary = source->store->backend->local};
    const char *with = sql_of(
        source,
        "SELECT context_id::text, advisory_id::text FROM @ WHERE table_name::text "
        "COLLATE \"C\" IS NOT DISTINCT FROM $1::text ORDER BY 1, 2 LIMIT 100",
        "SELECT CAST(context_id AS TEXT), CAST(advisory_id AS TEXT) FROM @ WHERE "
        "CAST(table_name AS TEXT) COLLATE BINARY IS CAST($1 AS TEXT) ORDER BY 1, 2 LIMIT 100");
    const char *without = sql_of(
        source,
        "SELECT context_id::text, NULL FROM @ WHERE table_name::text "
        "COLLATE \"C\" IS NOT DISTINCT FROM $1::text ORDER BY 1, 2 LIMIT 100",
        "SELECT CAST(context_id AS TEXT), NULL FROM @ WHERE "
        "CAST(table_name AS TEXT) COLLATE BINARY IS CAST($1 AS TEXT) ORDER BY 1, 2 LIMIT 100");
    return query(tx, source, source->has_id ? with : without, 1, &name, rows, err);
}

/* By a table of its own: SQLite would look through the JSON for every row. */
static hf_status spread_ids(hf_tx *tx, const hf__adopt_source *source, const char *ids,
                            hf_error *err)
{
    const hf_value values[] = {HF_TEXT(ids)};
    hf_status status =
        query(tx, source,
              "CREATE TEMP TABLE IF NOT EXISTS holdfast_ids (raw TEXT PRIMARY KEY, id INTEGER, "
              "text TEXT) WITHOUT ROWID",
              0, NULL, NULL, err);
    if (status == HF_OK)
        status =
            query(tx, source,
                  "INSERT OR REPLACE INTO temp.holdfast_ids SELECT json_extract(value, '$[0]'), "
                  "json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each($1)",
                  1, values, NULL, err);
    return status;
}

hf_status hf__adopt_give_ids(hf_tx *tx, const hf__adopt_source *source, const char *ids,
                             int64_t *given, hf_error *err)
{
    const hf_value values[] = {HF_TEXT(ids)};
    bool local = source->store->backend->local;
    hf_rows *rows = NULL;
    hf_status status = local ? spread_ids(tx, source, ids, err) : HF_OK;
    if (status == HF_OK)
        status =
            query(tx, source,
                  sql_of(source,
                         "UPDATE @ AS t SET advisory_id = (j.e->>1)::bigint FROM "
                         "pg_catalog.jsonb_array_elements($1::jsonb) AS j (e) WHERE "
                         "t.table_name::text COLLATE \"C\" = j.e->>0 AND t.advisory_id IS NULL",
                         "UPDATE @ SET advisory_id = (SELECT i.id FROM temp.holdfast_ids i "
                         "WHERE i.raw = table_name) WHERE advisory_id IS NULL"),
                  local ? 0 : 1, values, &rows, err);
    if (status == HF_OK)
        *given = hf_rows_affected(rows);
    hf_rows_free(rows);
    return status;
}

/* ---- constraints -------------------------------------------------------------------------------- */

static hf_status refer_to_registry(hf_tx *tx, const hf__adopt_source *source, bool *refers,
                                   hf_error *err)
{
    const hf_value values[] = {HF_TEXT(source->oid)};
    hf_rows *rows = NULL;
    hf_status status =
        hf_tx_query(tx,
                    "SELECT EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE contype = 'f' AND "
                    "conrelid = $1::oid AND confrelid = 'holdfast.table_registry'::regclass), "
                    "pg_catalog.has_table_privilege('holdfast.table_registry', 'REFERENCES')",
                    1, values, false, &rows, err);
    bool there = status == HF_OK && hf_rows_value(rows, 0, 0, NULL)[0] == 't';
    bool allowed = status == HF_OK && hf_rows_value(rows, 0, 1, NULL)[0] == 't';
    hf_rows_free(rows);
    if (status == HF_OK && !there && allowed)
        status = query(tx, source,
                       "ALTER TABLE @ ADD FOREIGN KEY (advisory_id) "
                       "REFERENCES holdfast.table_registry (advisory_id)",
                       0, NULL, NULL, err);
    *refers = status == HF_OK && (there || allowed);
    return status;
}

static hf_status constrain_postgres(hf_tx *tx, hf__adopt_source *source, hf_table_adopted *adopted,
                                    hf_error *err)
{
    /* Deferred checks of the rows that were changed would forbid to alter the table. */
    hf_status status = hf_tx_queue(tx, "SET CONSTRAINTS ALL IMMEDIATE", 0, NULL, err);
    if (status == HF_OK)
        status = query(tx, source, "ALTER TABLE @ ALTER COLUMN advisory_id SET NOT NULL", 0, NULL,
                       NULL, err);
    adopted->not_null = status == HF_OK;
    return status == HF_OK ? refer_to_registry(tx, source, &adopted->foreign_key, err) : status;
}

static hf_status first_value(hf_tx *tx, const char *sql, size_t count, const hf_value *values,
                             hf__buf *value, hf_error *err)
{
    hf_rows *rows = NULL;
    hf_status status = hf_tx_query(tx, sql, count, values, false, &rows, err);
    const char *text = status == HF_OK ? hf_rows_value(rows, 0, 0, NULL) : NULL;
    hf__buf_clear(value);
    hf__buf_puts(value, text ? text : "");
    hf_rows_free(rows);
    return status == HF_OK && value->broken ? hf__no_memory(err) : status;
}

static hf_status rewrite_schema(hf_tx *tx, const char *name, const char *sql, hf_error *err)
{
    const hf_value values[] = {HF_TEXT(sql), HF_TEXT(name)};
    char bump[64];
    hf__buf version = {0};
    int64_t number = 0;
    hf_status status = first_value(tx, "PRAGMA schema_version", 0, NULL, &version, err);
    if (status == HF_OK)
        status = hf__parse_int64(version.data, "schema_version", 0, INT32_MAX, &number, err);
    hf__buf_free(&version);
    (void)snprintf(bump, sizeof bump, "PRAGMA schema_version = %lld", (long long)number + 1);
    if (status == HF_OK)
        status = hf_tx_query(tx, "PRAGMA writable_schema = ON", 0, NULL, false, NULL, err);
    if (status == HF_OK)
        status = hf_tx_query(tx,
                             "UPDATE sqlite_schema SET sql = $1 WHERE type = 'table' AND "
                             "name = $2 COLLATE NOCASE",
                             2, values, false, NULL, err);
    if (status == HF_OK)
        status = hf_tx_query(tx, bump, 0, NULL, false, NULL, err);
    if (status == HF_OK)
        status = hf_tx_query(tx, "PRAGMA writable_schema = RESET", 0, NULL, false, NULL, err);
    return status;
}

/* The changed statement is read by SQLite before it is committed. */
static hf_status constrain_sqlite(hf_tx *tx, const hf__adopt_source *source, const char *relation,
                                  hf_table_adopted *adopted, hf_error *err)
{
    const hf_value values[] = {HF_TEXT(relation)};
    hf__buf sql = {0}, changed = {0}, seen = {0};
    hf_status status = HF_OK;
    adopted->not_null = source->not_null;
    if (source->not_null)
        return HF_OK;
    status = first_value(tx,
                         "SELECT sql FROM sqlite_schema WHERE type = 'table' AND "
                         "name = $1 COLLATE NOCASE",
                         1, values, &sql, err);
    bool found = status == HF_OK && hf__adopt_add_not_null(sql.data, "advisory_id", &changed);
    if (status == HF_OK && found && changed.broken)
        status = hf__no_memory(err);
    if (status == HF_OK && found)
        status = rewrite_schema(tx, relation, changed.data, err);
    if (status == HF_OK && found)
        status = first_value(tx,
                             "SELECT \"notnull\" FROM pragma_table_info($1) WHERE "
                             "lower(name) = 'advisory_id'",
                             1, values, &seen, err);
    if (status == HF_OK && (!found || strcmp(seen.data, "1") != 0))
        status =
            hf__fail(err, HF_DATABASE, "NOT NULL cannot be added to %s", source->relation.data);
    adopted->not_null = status == HF_OK;
    hf__buf_free(&sql);
    hf__buf_free(&changed);
    hf__buf_free(&seen);
    return status;
}

hf_status hf__adopt_constrain(hf_tx *tx, hf__adopt_source *source,
                              const hf_table_adoption *adoption, hf_table_adopted *adopted,
                              hf_error *err)
{
    const char *relation = adoption->relation ? adoption->relation : DEFAULT_RELATION;
    return source->store->backend->local ? constrain_sqlite(tx, source, relation, adopted, err)
                                         : constrain_postgres(tx, source, adopted, err);
}

/* --- adopt sqlite ----------------------------------------------------------------------------- */

/*
 * SQLite cannot add NOT NULL to a column; it keeps the CREATE TABLE statement as it was written, and
 * that is what is changed. Nothing else in the file depends on the constraint.
 */

/* Behind a string, a quoted name or a comment at *at; else behind one character. */
static const char *skip(const char *at)
{
    const char *end = NULL;
    if (at[0] == '-' && at[1] == '-')
        return at + strcspn(at, "\n");
    if (at[0] == '/' && at[1] == '*')
        return (end = strstr(at + 2, "*/")) ? end + 2 : at + strlen(at);
    char close = at[0] == '[' ? ']' : at[0];
    if (!strchr("'\"`[", at[0]))
        return at + 1;
    for (at++; *at; at++) {
        if (*at == close && (close == ']' || at[1] != close))
            return at + 1;
        at += *at == close;
    }
    return at;
}

static bool is_blank(const char *at)
{
    return isspace((unsigned char)*at) || (at[0] == '-' && at[1] == '-') ||
           (at[0] == '/' && at[1] == '*');
}

static bool is_column(const char *at, const char *column)
{
    size_t size = strlen(column);
    while (*at && is_blank(at))
        at = skip(at);
    if (*at && strchr("'\"`[", *at))
        return skip(at) == at + size + 2 && strncasecmp(at + 1, column, size) == 0;
    return strncasecmp(at, column, size) == 0 && at[size] != '_' && at[size] != '$' &&
           !isalnum((unsigned char)at[size]) && (unsigned char)at[size] < 0x80;
}

/* The ',' or ')' that ends a column's definition. */
static const char *end_of(const char *at)
{
    int depth = 0;
    while (*at && !(depth == 0 && (*at == ',' || *at == ')'))) {
        depth += (*at == '(') - (*at == ')');
        at = skip(at);
    }
    return at;
}

bool hf__adopt_add_not_null(const char *sql, const char *column, hf__buf *out)
{
    const char *at = sql;
    while (*at && *at != '(')
        at = skip(at);
    while (*at && *at != ')') {
        const char *definition = at + 1;
        at = end_of(definition);
        if (!*at || !is_column(definition, column))
            continue;
        hf__buf_add(out, sql, (size_t)(at - sql));
        hf__buf_puts(out, " NOT NULL");
        hf__buf_puts(out, at);
        return true;
    }
    return false;
}
