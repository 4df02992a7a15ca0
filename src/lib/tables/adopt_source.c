/* The relation that is adopted: looking at it, and changing it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "lib/tables/adopt.h"
#include "lib/tables/sql.h"

#define DEFAULT_RELATION "table_context_refs"
#define NO_ROW SIZE_MAX

/* A statement on the relation. */
static hf_status query(hf_tx *tx, const hf__adopt_source *source, const hf__sql *sql, size_t count,
                       const hf_value *values, hf_rows **rows, hf_error *err)
{
    const hf__sql_part parts[] = {{"relation", source->relation.data}, {0}};
    return hf__tx_query_sql(tx, sql, parts, count, values, rows, err);
}

static hf_status misses(const hf__adopt_source *source, const char *column, hf_error *err)
{
    hf_status status =
        hf__fail(err, HF_CONFIG, "%s has no column %s", source->relation.data, column);
    hf__hint(err, "what is adopted is a table_context_refs(table_name, context_id)");
    return status;
}

/*
 * Looks through the columns, whose names come first in the rows. Returns the one that is not there,
 * or NULL. *id is the row of advisory_id, or NO_ROW.
 */
static const char *find_missing(const hf_rows *rows, size_t *id)
{
    bool has_name = false, has_context = false;
    *id = NO_ROW;
    for (size_t i = 0; i < hf_rows_count(rows); i++) {
        const char *name = hf_rows_value(rows, i, 0, NULL);
        has_name = has_name || strcmp(name, "table_name") == 0;
        has_context = has_context || strcmp(name, "context_id") == 0;
        if (strcmp(name, "advisory_id") == 0)
            *id = i;
    }
    return !has_name ? "table_name" : !has_context ? "context_id" : NULL;
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

static hf_status find_relation(hf_tx *tx, const hf_table_adoption *adoption,
                               hf__adopt_source *source, hf_error *err)
{
    const char *relation = adoption->relation ? adoption->relation : DEFAULT_RELATION;
    const hf_value values[] = {HF_TEXT(adoption->schema), HF_TEXT(relation)};
    hf_rows *rows = NULL;
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_tables_adopt_find, NULL, 2, values, &rows, err);
    if (status != HF_OK)
        return status;
    if (hf_rows_count(rows) == 0) {
        status = hf__fail(err, HF_CONFIG, "there is no table %s%s%s on %s",
                          adoption->schema ? adoption->schema : "", adoption->schema ? "." : "",
                          relation, hf_store_name(source->store));
        hf__hint(err, "name its schema and table, as in --from app.table_context_refs");
    } else {
        hf__buf_clear(&source->relation);
        hf__buf_puts(&source->relation, hf_rows_value(rows, 0, 1, NULL));
        (void)snprintf(source->oid, sizeof source->oid, "%s", hf_rows_value(rows, 0, 0, NULL));
        source->refers = hf__row_bool(rows, 0, 4);
        source->made_not_null = hf__row_bool(rows, 0, 5);
        if (source->relation.broken)
            status = hf__no_memory(err);
        else if (hf__row_bool(rows, 0, 3))
            status = hf__fail(err, HF_CONFIG, "%s is Holdfast's own", source->relation.data);
        else if (!hf__row_bool(rows, 0, 2))
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
    size_t id = NO_ROW;
    hf_rows *rows = NULL;
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_tables_adopt_columns, NULL, 1, values, &rows, err);
    const char *missing = status == HF_OK ? find_missing(rows, &id) : NULL;
    if (id != NO_ROW) {
        source->not_null = hf__row_bool(rows, id, 2);
        status = look_at_id(source, hf_rows_value(rows, id, 1, NULL), err);
    }
    hf_rows_free(rows);
    return status == HF_OK && missing ? misses(source, missing, err) : status;
}

/* Adding a trigger leaves readers alone; altering the table does not. */
static const hf__sql *lock_for(const hf_table_adoption *adoption, const hf__adopt_source *source)
{
    if (adoption->dry_run)
        return &hf__sql_tables_adopt_lock_to_read;
    return !source->has_id || source->id_is_narrow || source->refers || adoption->constrain
               ? &hf__sql_tables_adopt_lock
               : &hf__sql_tables_adopt_lock_to_write;
}

/*
 * Locks the relation before the registry, as everybody does who needs both. If somebody holds the
 * relation for long, the attempt ends and is repeated, so that others do not queue behind us.
 */
static hf_status find_in_postgres(hf_tx *tx, const hf_table_adoption *adoption,
                                  hf__adopt_source *source, hf_error *err)
{
    hf_status status = hf__tx_queue_sql(tx, &hf__sql_tables_adopt_patience, NULL, 0, NULL, err);
    if (status == HF_OK)
        status = find_relation(tx, adoption, source, err);
    if (status == HF_OK)
        status = look_at_columns(tx, source, err);
    if (status == HF_OK)
        status = query(tx, source, lock_for(adoption, source), 0, NULL, NULL, err);
    if (status == HF_OK && !adoption->dry_run)
        status = hf__tx_queue_sql(tx, &hf__sql_tables_adopt_lock_registry, NULL, 0, NULL, err);
    return status == HF_OK ? look_at_columns(tx, source, err) : status;
}

/* ---- SQLite ---------------------------------------------------------------------------------- */

static hf_status find_in_sqlite(hf_tx *tx, const hf_table_adoption *adoption,
                                hf__adopt_source *source, hf_error *err)
{
    const char *relation = adoption->relation ? adoption->relation : DEFAULT_RELATION;
    const hf_value values[] = {HF_TEXT(relation)};
    size_t id = NO_ROW;
    hf_rows *rows = NULL;
    hf__buf_clear(&source->relation);
    hf__buf_puts(&source->relation, "\"");
    for (const char *at = relation; *at; at++)
        hf__buf_printf(&source->relation, *at == '"' ? "\"\"" : "%c", *at);
    hf__buf_puts(&source->relation, "\"");
    if (source->relation.broken)
        return hf__no_memory(err);
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_tables_adopt_columns, NULL, 1, values, &rows, err);
    if (status == HF_OK && hf_rows_count(rows) == 0) {
        status = hf__fail(err, HF_CONFIG, "there is no table %s in %s", source->relation.data,
                          adoption->file);
        hf__hint(err, "name the file and the table that have the references");
    }
    const char *missing = status == HF_OK ? find_missing(rows, &id) : NULL;
    if (id != NO_ROW) {
        source->has_id = true;
        source->not_null = hf__row_bool(rows, id, 1);
    }
    hf_rows_free(rows);
    return missing ? misses(source, missing, err) : status;
}

hf_status hf__adopt_find(hf_tx *tx, const hf_table_adoption *adoption, hf__adopt_source *source,
                         hf_error *err)
{
    source->has_id = source->id_is_narrow = source->not_null = false;
    return hf_store_is_local(source->store) ? find_in_sqlite(tx, adoption, source, err)
                                            : find_in_postgres(tx, adoption, source, err);
}

/* ---- either store ---------------------------------------------------------------------------- */

hf_status hf__adopt_add_column(hf_tx *tx, hf__adopt_source *source, hf_error *err)
{
    hf_status status = HF_OK;
    if (!source->has_id)
        status = query(tx, source, &hf__sql_tables_adopt_add_column, 0, NULL, NULL, err);
    else if (source->id_is_narrow)
        status = query(tx, source, &hf__sql_tables_adopt_widen_column, 0, NULL, NULL, err);
    if (status == HF_OK)
        source->has_id = true;
    return status;
}

hf_status hf__adopt_spellings(hf_tx *tx, const hf__adopt_source *source, hf_rows **rows,
                              hf_error *err)
{
    return query(tx, source,
                 source->has_id ? &hf__sql_tables_adopt_spellings
                                : &hf__sql_tables_adopt_spellings_without_id,
                 0, NULL, rows, err);
}

hf_status hf__adopt_rows_of(hf_tx *tx, const hf__adopt_source *source,
                            const hf__adopt_spelling *spelling, hf_rows **rows, hf_error *err)
{
    const hf_value name = {.data = spelling->raw,
                           .size = spelling->raw_size,
                           .binary = hf_store_is_local(source->store)};
    return query(tx, source,
                 source->has_id ? &hf__sql_tables_adopt_rows
                                : &hf__sql_tables_adopt_rows_without_id,
                 1, &name, rows, err);
}

static hf_status spread_ids(hf_tx *tx, const hf_value *ids, hf_error *err)
{
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_tables_adopt_make_ids, NULL, 0, NULL, NULL, err);
    if (status == HF_OK)
        status = hf__tx_query_sql(tx, &hf__sql_tables_adopt_spread_ids, NULL, 1, ids, NULL, err);
    return status;
}

hf_status hf__adopt_give_ids(hf_tx *tx, const hf__adopt_source *source, const char *ids,
                             int64_t *given, hf_error *err)
{
    const hf_value values[] = {HF_TEXT(ids)};
    hf_rows *rows = NULL;
    hf_status status = hf_store_is_local(source->store) ? spread_ids(tx, values, err) : HF_OK;
    if (status == HF_OK)
        status = query(tx, source, &hf__sql_tables_adopt_give_ids, 1, values, &rows, err);
    if (status == HF_OK)
        *given = hf_rows_affected(rows);
    hf_rows_free(rows);
    return status;
}

/*
 * Adding NOT NULL on SQLite.
 *
 * SQLite cannot do that to a column that exists. It keeps the CREATE TABLE statement as it was
 * written, so the statement is changed. Nothing else in the file depends on the constraint.
 */

/*
 * Returns the place after the string, quoted name or comment at *at, or else after one character.
 */
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

/* Finds the ',' or ')' that ends the definition of a column. */
static const char *end_of(const char *at)
{
    int depth = 0;
    while (*at && !(depth == 0 && (*at == ',' || *at == ')'))) {
        depth += (*at == '(') - (*at == ')');
        at = skip(at);
    }
    return at;
}

/*
 * Writes the CREATE TABLE statement with NOT NULL for the column. False: the column is not in it.
 */
static bool add_not_null(const char *sql, const char *column, hf__buf *out)
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

/* ---- constraints ----------------------------------------------------------------------------- */

/* The program that owns the relation may have ids of its own: a foreign key would refuse them. */
static hf_status refer_to_registry(hf_tx *tx, const hf__adopt_source *source, bool wanted,
                                   bool *refers, hf_error *err)
{
    const hf_value values[] = {HF_TEXT(source->oid)};
    hf_rows *rows = NULL;
    hf_status status = HF_OK;
    *refers = source->refers;
    if (wanted == source->refers)
        return HF_OK;
    status = hf__tx_query_sql(tx, &hf__sql_tables_adopt_may_refer, NULL, 1, values, &rows, err);
    bool allowed = status == HF_OK && hf__row_bool(rows, 0, 0);
    hf__buf name = {0};
    hf__buf_puts(&name, status == HF_OK && !wanted ? hf_rows_value(rows, 0, 1, NULL) : "");
    hf_rows_free(rows);
    const hf__sql_part parts[] = {{"relation", source->relation.data}, {"name", name.data}, {0}};
    if (status == HF_OK && name.broken)
        status = hf__no_memory(err);
    if (status == HF_OK && wanted && allowed)
        status = query(tx, source, &hf__sql_tables_adopt_add_foreign_key, 0, NULL, NULL, err);
    else if (status == HF_OK && !wanted)
        status =
            hf__tx_query_sql(tx, &hf__sql_tables_adopt_drop_foreign_key, parts, 0, NULL, NULL, err);
    *refers = status == HF_OK && wanted && allowed;
    hf__buf_free(&name);
    return status;
}

static hf_status follow(hf_tx *tx, const hf_table_adoption *adoption,
                        const hf__adopt_source *source, hf_error *err)
{
    const hf_value values[] = {HF_TEXT(source->oid),
                               HF_TEXT(adoption->cluster ? adoption->cluster : ""),
                               HF_TEXT(adoption->database ? adoption->database : "default"),
                               HF_TEXT(source->made_not_null ? "t" : "f")};
    return hf__tx_query_sql(tx, &hf__sql_tables_adopt_follow, NULL, 4, values, NULL, err);
}

static hf_status constrain_postgres(hf_tx *tx, hf__adopt_source *source,
                                    const hf_table_adoption *adoption, hf_table_adopted *adopted,
                                    hf_error *err)
{
    hf_status status = hf__tx_queue_sql(tx, &hf__sql_tables_adopt_check_now, NULL, 0, NULL, err);
    if (status == HF_OK && adoption->constrain && !source->not_null) {
        status = query(tx, source, &hf__sql_tables_adopt_set_not_null, 0, NULL, NULL, err);
        source->not_null = source->made_not_null = status == HF_OK;
    }
    adopted->not_null = source->not_null;
    if (status == HF_OK)
        status = refer_to_registry(tx, source, adoption->constrain, &adopted->foreign_key, err);
    return status == HF_OK ? follow(tx, adoption, source, err) : status;
}

hf_status hf__adopt_source_leave(hf_tx *tx, const hf_table_adoption *adoption,
                                 hf__adopt_source *source, hf_error *err)
{
    hf_rows *rows = NULL;
    hf_status status = hf__tx_queue_sql(tx, &hf__sql_tables_adopt_patience, NULL, 0, NULL, err);
    if (status == HF_OK)
        status = find_relation(tx, adoption, source, err);
    const hf_value values[] = {HF_TEXT(source->oid)};
    if (status == HF_OK)
        status = query(tx, source, &hf__sql_tables_adopt_lock, 0, NULL, NULL, err);
    if (status == HF_OK)
        status = hf__tx_query_sql(tx, &hf__sql_tables_adopt_leave, NULL, 1, values, &rows, err);
    if (status == HF_OK && !hf__row_bool(rows, 0, 0))
        status = hf__fail(err, HF_CONFIG, "%s was not adopted", source->relation.data);
    hf_rows_free(rows);
    return status;
}

static hf_status first_value(hf_tx *tx, const hf__sql *sql, size_t count, const hf_value *values,
                             hf__buf *value, hf_error *err)
{
    hf_rows *rows = NULL;
    hf_status status = hf__tx_query_sql(tx, sql, NULL, count, values, &rows, err);
    const char *text = status == HF_OK ? hf_rows_value(rows, 0, 0, NULL) : NULL;
    hf__buf_clear(value);
    hf__buf_puts(value, text ? text : "");
    hf_rows_free(rows);
    return status == HF_OK && value->broken ? hf__no_memory(err) : status;
}

static hf_status rewrite_schema(hf_tx *tx, const char *name, const char *sql, hf_error *err)
{
    const hf_value values[] = {HF_TEXT(sql), HF_TEXT(name)};
    char next[24] = "";
    const hf__sql_part parts[] = {{"version", next}, {0}};
    hf__buf version = {0};
    int64_t number = 0;
    hf_status status =
        first_value(tx, &hf__sql_tables_adopt_schema_version, 0, NULL, &version, err);
    if (status == HF_OK)
        status = hf__parse_int64(version.data, "schema_version", 0, INT32_MAX, &number, err);
    hf__buf_free(&version);
    (void)snprintf(next, sizeof next, "%lld", (long long)number + 1);
    if (status == HF_OK)
        status = hf__tx_query_sql(tx, &hf__sql_tables_adopt_open_schema, NULL, 0, NULL, NULL, err);
    if (status == HF_OK)
        status = hf__tx_query_sql(tx, &hf__sql_tables_adopt_write_definition, NULL, 2, values, NULL,
                                  err);
    if (status == HF_OK)
        status = hf__tx_query_sql(tx, &hf__sql_tables_adopt_set_schema_version, parts, 0, NULL,
                                  NULL, err);
    if (status == HF_OK)
        status = hf__tx_query_sql(tx, &hf__sql_tables_adopt_close_schema, NULL, 0, NULL, NULL, err);
    return status;
}

/* SQLite reads the changed statement before the commit, so a mistake does not reach the file. */
static hf_status constrain_sqlite(hf_tx *tx, const hf__adopt_source *source,
                                  const hf_table_adoption *adoption, hf_table_adopted *adopted,
                                  hf_error *err)
{
    const char *relation = adoption->relation ? adoption->relation : DEFAULT_RELATION;
    const hf_value values[] = {HF_TEXT(relation)};
    hf__buf sql = {0}, changed = {0}, seen = {0};
    hf_status status = HF_OK;
    adopted->not_null = source->not_null;
    if (source->not_null || !adoption->constrain)
        return HF_OK;
    status = first_value(tx, &hf__sql_tables_adopt_read_definition, 1, values, &sql, err);
    bool found = status == HF_OK && add_not_null(sql.data, "advisory_id", &changed);
    if (status == HF_OK && found && changed.broken)
        status = hf__no_memory(err);
    if (status == HF_OK && found)
        status = rewrite_schema(tx, relation, changed.data, err);
    if (status == HF_OK && found)
        status = first_value(tx, &hf__sql_tables_adopt_is_not_null, 1, values, &seen, err);
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
    return hf_store_is_local(source->store)
               ? constrain_sqlite(tx, source, adoption, adopted, err)
               : constrain_postgres(tx, source, adoption, adopted, err);
}
