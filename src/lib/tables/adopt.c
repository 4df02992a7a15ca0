/*
 * Adopting a table_context_refs that somebody else has made. On PostgreSQL this is one transaction.
 * With SQLite the references and the registry are in two files: ids are committed to the registry
 * first, so after a crash between the two commits a repeat finds them there.
 */
#include "lib/tables/adopt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "lib/tables/ids.h"
#include "lib/tables/sql.h"

enum { LISTED_NAMES = 100 };

struct fault {
    char *problem, *table_name, *context_id, *advisory_id;
};

struct run {
    hf_store *store;
    hf_table_adoption options;
    hf_table_name defaults;
    int64_t *ids; /* minted before the attempt */
    size_t id_count;
    hf_lock *lock;    /* of the tables whose id changes, acquired before the attempt */
    int64_t *old_ids; /* by which they are held */
    size_t old_count;

    /* of one attempt */
    hf_tx *source_tx;
    hf__adopt_source source;
    hf__adopt_names names;
    struct fault *faults;
    size_t fault_count;
    size_t ids_short; /* how many ids the attempt needed; 0: it had enough */
    size_t moved;     /* how many tables have another id in the registry */
    bool needs_locks; /* of tables that are moved */
    hf_table_adopted adopted;
};

static void free_faults(struct run *run)
{
    for (size_t i = 0; i < run->fault_count; i++) {
        free(run->faults[i].problem);
        free(run->faults[i].table_name);
        free(run->faults[i].context_id);
        free(run->faults[i].advisory_id);
    }
    free(run->faults);
    run->faults = NULL;
    run->fault_count = 0;
}

static void reset(struct run *run)
{
    hf__adopt_names_free(&run->names);
    free_faults(run);
    run->ids_short = run->moved = 0;
    run->needs_locks = false;
    run->adopted = (hf_table_adopted){0};
}

/* ---- JSON: names that were checked need no escapes ------------------------------------------- */

/* Writes [[cluster, database, table, id, place], …] */
static void write_tables(const hf__adopt_names *names, hf__buf *json)
{
    hf__table_name name;
    const char *comma = "";
    hf__buf_puts(json, "[");
    for (size_t i = 0; i < names->table_count; i++) {
        const hf__adopt_table *table = &names->tables[i];
        if (hf__table_name_parse(table->text, strlen(table->text), NULL, &name, NULL) != HF_OK)
            continue;
        hf__buf_printf(json, "%s[\"%s\",\"%s\",\"%s\",", comma, name.cluster, name.database,
                       name.table);
        hf__buf_printf(json, table->id ? "%" PRId64 ",%zu]" : "null,%zu]",
                       table->id ? table->id : (int64_t)i, i);
        comma = ",";
    }
    hf__buf_puts(json, "]");
}

/* Writes [[table_name, id, text], …] */
static void write_spellings(const hf__adopt_names *names, hf__buf *json)
{
    const char *comma = "";
    hf__buf_puts(json, "[");
    for (size_t i = 0; i < names->count && names->spellings[i].text; i++) {
        const hf__adopt_spelling *spelling = &names->spellings[i];
        hf__buf_printf(json, "%s[\"%s\",%" PRId64 ",\"%s\"]", comma, spelling->raw,
                       names->tables[spelling->table].id, spelling->text);
        comma = ",";
    }
    hf__buf_puts(json, "]");
}

/* Writes [[old id, id], …] */
static void write_moves(const hf__adopt_names *names, hf__buf *json)
{
    const char *comma = "";
    hf__buf_puts(json, "[");
    for (size_t i = 0; i < names->table_count; i++) {
        if (!names->tables[i].moved_from)
            continue;
        hf__buf_printf(json, "%s[%" PRId64 ",%" PRId64 "]", comma, names->tables[i].moved_from,
                       names->tables[i].id);
        comma = ",";
    }
    hf__buf_puts(json, "]");
}

/* ---- what the registry says ------------------------------------------------------------------ */

/* The relation's id counts: the program that it belongs to locks by it. */
static hf_status take_word(hf__adopt_table *table, int64_t id, const char *other, bool retired,
                           hf_error *err)
{
    bool kept = true;
    if (id && !table->id)
        table->id = id;
    else if (id && id != table->id)
        table->moved_from = id;
    else if (!id && retired && strcmp(other, table->text) != 0)
        kept = hf__adopt_blame(&table->problem, "the id was retired when '%s' was dropped", other);
    else if (!id && !retired)
        kept = hf__adopt_blame(&table->problem, "the id is registered for '%s'", other);
    return kept ? HF_OK : hf__no_memory(err);
}

static hf_status ask_registry(hf_tx *tx, struct run *run, hf_error *err)
{
    hf__buf json = {0};
    hf_rows *rows = NULL;
    write_tables(&run->names, &json);
    const hf_value values[] = {HF_TEXT(json.data)};
    hf_status status = json.broken ? hf__no_memory(err)
                                   : hf__tx_query_sql(tx, &hf__sql_tables_adopt_clashes, NULL, 1,
                                                      values, &rows, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++) {
        int64_t place = 0, id = 0;
        status = hf__row_number(rows, i, 0, "the place", &place, err);
        if (status == HF_OK)
            status = hf__row_number(rows, i, 1, "advisory_id", &id, err);
        if (status == HF_OK)
            status = take_word(&run->names.tables[place], id, hf_rows_value(rows, i, 2, NULL),
                               hf__row_bool(rows, i, 3), err);
    }
    hf_rows_free(rows);
    hf__buf_free(&json);
    return status;
}

/* ---- registering ----------------------------------------------------------------------------- */

static bool give_minted(struct run *run)
{
    size_t used = 0;
    for (size_t i = 0; i < run->names.table_count; i++) {
        hf__adopt_table *table = &run->names.tables[i];
        if (table->id)
            continue;
        if (used < run->id_count)
            table->id = run->ids[used];
        used++;
    }
    run->adopted.minted = (int64_t)used;
    run->ids_short = used > run->id_count ? used : 0;
    return run->ids_short == 0;
}

/* An id changes only under its lock. */
static void count_moves(struct run *run)
{
    for (size_t i = 0; i < run->names.table_count; i++) {
        int64_t old = run->names.tables[i].moved_from;
        bool is_held = false;
        for (size_t j = 0; j < run->old_count && !is_held; j++)
            is_held = run->old_ids[j] == old;
        run->moved += old != 0;
        run->needs_locks = run->needs_locks || (old && !is_held);
    }
}

/* A statement whose first value is JSON. Frees json. */
static hf_status run_json(hf_tx *tx, const hf__sql *sql, hf__buf *json, const hf_value *second,
                          hf_error *err)
{
    const hf_value values[] = {HF_TEXT(json->data), second ? *second : (hf_value){0}};
    hf_status status = json->broken
                           ? hf__no_memory(err)
                           : hf__tx_query_sql(tx, sql, NULL, second ? 2 : 1, values, NULL, err);
    hf__buf_free(json);
    return status;
}

static hf_status insert_tables(hf_tx *tx, const struct run *run, hf_error *err)
{
    hf__buf json = {0}, moves = {0}, again = {0};
    char now[24];
    const hf_value clock = hf__number_value(now, hf__wall_ms());
    const hf_value oid = HF_TEXT(run->source.oid);
    write_tables(&run->names, &json);
    write_moves(&run->names, &moves);
    write_moves(&run->names, &again);
    hf_status status = run_json(tx, &hf__sql_tables_adopt_retire, &moves, &clock, err);
    if (status == HF_OK)
        status = run_json(tx, &hf__sql_tables_adopt_register, &json,
                          hf_store_is_local(run->store) ? &clock : &oid, err);
    if (status == HF_OK)
        status = run_json(tx, &hf__sql_tables_adopt_move_refs, &again, NULL, err);
    hf__buf_free(&json);
    hf__buf_free(&again);
    return status;
}

/* ---- references ------------------------------------------------------------------------------ */

static hf_status copy_in_postgres(hf_tx *tx, struct run *run, const char *ids, hf_error *err)
{
    const hf_value values[] = {HF_TEXT(ids), HF_TEXT(run->source.oid)};
    const hf__sql_part parts[] = {{"relation", run->source.relation.data}, {0}};
    hf_rows *rows = NULL;
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_tables_adopt_forget_refs, parts, 1, values + 1, NULL, err);
    if (status == HF_OK)
        status =
            hf__tx_query_sql(tx, &hf__sql_tables_adopt_copy_refs, parts, 2, values, &rows, err);
    if (status == HF_OK)
        run->adopted.references = hf_rows_affected(rows);
    hf_rows_free(rows);
    return status;
}

static hf_status copy_over_files(hf_tx *tx, struct run *run, hf_error *err)
{
    const hf__sql_part parts[] = {{"relation", run->source.relation.data}, {0}};
    hf_rows *found = NULL, *rows = NULL;
    hf_status status = hf__tx_query_sql(run->source_tx, &hf__sql_tables_adopt_collect_refs, parts,
                                        0, NULL, &found, err);
    if (status == HF_OK) {
        const hf_value values[] = {HF_TEXT(hf_rows_value(found, 0, 0, NULL))};
        status = hf__tx_query_sql(tx, &hf__sql_tables_adopt_add_refs, NULL, 1, values, &rows, err);
    }
    if (status == HF_OK)
        run->adopted.references = hf_rows_affected(rows);
    hf_rows_free(found);
    hf_rows_free(rows);
    return status;
}

/* Runs in the transaction on the registry, which on PostgreSQL is the one on the relation. */
static hf_status settle(hf_tx *tx, void *arg, hf_error *err)
{
    struct run *run = arg;
    hf__buf ids = {0};
    hf_status status = ask_registry(tx, run, err);
    if (status == HF_OK)
        status = hf__adopt_count_problems(&run->names, &run->adopted.faults, err);
    count_moves(run);
    if (status != HF_OK || run->adopted.faults > 0 || !give_minted(run) || run->options.dry_run ||
        run->needs_locks)
        return status;
    status = insert_tables(tx, run, err);
    write_spellings(&run->names, &ids);
    if (status == HF_OK && ids.broken)
        status = hf__no_memory(err);
    if (status == HF_OK)
        status = hf__adopt_give_ids(run->source_tx, &run->source, ids.data,
                                    &run->adopted.rows_given, err);
    if (status == HF_OK)
        status = hf_store_is_local(run->store) ? copy_over_files(tx, run, err)
                                               : copy_in_postgres(tx, run, ids.data, err);
    hf__buf_free(&ids);
    return status;
}

/* ---- faults ---------------------------------------------------------------------------------- */

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

static hf_status add_fault(struct run *run, const hf__adopt_spelling *spelling, const char *context,
                           const char *id, hf_error *err)
{
    struct fault *grown = reallocarray(run->faults, run->fault_count + 1, sizeof *grown);
    if (!grown)
        return hf__no_memory(err);
    run->faults = grown;
    grown[run->fault_count++] =
        (struct fault){copy(spelling->problem), copy(spelling->raw), copy(context), copy(id)};
    return HF_OK;
}

static hf_status list_rows(struct run *run, const hf__adopt_spelling *spelling, hf_error *err)
{
    hf_rows *rows = NULL;
    hf_status status = hf__adopt_rows_of(run->source_tx, &run->source, spelling, &rows, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(rows); i++)
        status = add_fault(run, spelling, hf_rows_value(rows, i, 0, NULL),
                           hf_rows_value(rows, i, 1, NULL), err);
    hf_rows_free(rows);
    return status;
}

static hf_status list_faults(struct run *run, hf_error *err)
{
    hf_status status = HF_OK;
    int listed = 0;
    for (size_t i = 0; status == HF_OK && i < run->names.count && listed < LISTED_NAMES; i++)
        if (run->names.spellings[i].problem) {
            status = list_rows(run, &run->names.spellings[i], err);
            listed++;
        }
    if (status != HF_OK)
        return status;
    status = hf__fail(
        err, HF_BAD_DATA, "%" PRId64 " table name%s of %s cannot be adopted: nothing was changed",
        run->adopted.faults, run->adopted.faults == 1 ? "" : "s", run->source.relation.data);
    hf__hint(err, "repair the rows that are listed, or set their advisory_id to NULL to have a new "
                  "one, and adopt again");
    return status;
}

/* ---- one attempt ----------------------------------------------------------------------------- */

static hf_status read_source(hf_tx *tx, struct run *run, hf_error *err)
{
    hf_rows *rows = NULL;
    hf_status status = hf__adopt_find(tx, &run->options, &run->source, err);
    if (status == HF_OK && !run->options.dry_run)
        status = hf__adopt_add_column(tx, &run->source, err);
    if (status == HF_OK)
        status = hf__adopt_spellings(tx, &run->source, &rows, err);
    if (status == HF_OK)
        status = hf__adopt_read_names(rows, &run->defaults, &run->names, err);
    hf_rows_free(rows);
    for (size_t i = 0; i < run->names.count; i++)
        run->adopted.rows += run->names.spellings[i].rows;
    run->adopted.tables = (int64_t)run->names.table_count;
    return status;
}

static hf_status attempt(hf_tx *tx, void *arg, hf_error *err)
{
    struct run *run = arg;
    reset(run);
    run->source_tx = tx;
    hf_status status = read_source(tx, run, err);
    if (status == HF_OK)
        status = hf_store_is_local(run->store)
                     ? hf__table_transact(run->store, run->options.dry_run, settle, run, err)
                     : settle(tx, run, err);
    if (status == HF_OK && run->adopted.faults > 0)
        return list_faults(run, err);
    if (status != HF_OK || run->options.dry_run)
        return status;
    if (run->ids_short > 0)
        return hf__fail(err, HF_EXHAUSTED, "%zu ids are to be minted first", run->ids_short);
    if (run->needs_locks)
        return hf__fail(err, HF_EXHAUSTED, "%zu tables are to be locked first", run->moved);
    return hf__adopt_constrain(tx, &run->source, &run->options, &run->adopted, err);
}

static hf_status transact(struct run *run, hf_tx_fn *fn, hf_error *err)
{
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    hf_error failure;
    options.isolation = HF_READ_COMMITTED;
    options.read_only = run->options.dry_run && hf_store_is_local(run->store);
    options.database = run->options.file;
    hf_status status =
        hf__transact_at(run->store, hf_store_is_local(run->store) ? HF__PLACE_FILE : HF__PLACE_OWN,
                        &options, fn, run, &failure);
    if (status == HF_OK)
        return HF_OK;
    if (strcmp(failure.sqlstate, "42501") == 0) {
        hf__hint(&failure,
                 "run it as the owner of %s, who may use the schema holdfast "
                 "(holdfast.grant_use)",
                 run->source.relation.data ? run->source.relation.data : "the table");
        if (err)
            *err = failure;
        return status;
    }
    if (strcmp(failure.sqlstate, "23505") == 0)
        hf__hint(&failure, "all rows of a name get the same id: a constraint of %s forbids it",
                 run->source.relation.data ? run->source.relation.data : "the table");
    return hf__table_explain(run->store, &failure, err);
}

static hf_status mint(struct run *run, hf_error *err)
{
    size_t count = run->ids_short;
    int64_t *ids = reallocarray(run->ids, count, sizeof *ids);
    if (!ids)
        return hf__no_memory(err);
    run->ids = ids;
    run->id_count = count;
    return hf__table_mint(run->store, count, ids, err);
}

/* Acquires the locks of tables by the ids that the registry has, since these are given up. */
static hf_status lock_moved(struct run *run, hf_error *err)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_target *targets = calloc(run->moved, sizeof *targets);
    int64_t *old = reallocarray(run->old_ids, run->moved, sizeof *old);
    if (old)
        run->old_ids = old;
    if (!targets || !old) {
        free(targets);
        return hf__no_memory(err);
    }
    hf_lock_free(run->lock);
    run->lock = NULL;
    run->old_count = 0;
    for (size_t i = 0; i < run->names.table_count; i++)
        if (run->names.tables[i].moved_from) {
            targets[run->old_count] =
                (hf_target){.label = run->names.tables[i].text, .derivation = HF_MINTED};
            run->old_ids[run->old_count++] = run->names.tables[i].moved_from;
        }
    spec.targets = targets;
    spec.target_count = run->old_count;
    spec.wait_ms = run->options.wait_ms;
    hf_status status = hf_lock_acquire(run->store, &spec, &run->lock, err);
    free(targets);
    return status;
}

static hf_status keep_ids(const struct run *run, hf_error *err)
{
    for (size_t i = 0; i < run->names.table_count; i++)
        if (run->names.tables[i].moved_from &&
            !hf__table_keep(run->store, run->names.tables[i].text, run->names.tables[i].id))
            return hf__no_memory(err);
    return HF_OK;
}

/*
 * Ids are minted and locks acquired between two attempts: minting needs a transaction of its own,
 * and whoever waits for a lock must not keep others from the relation.
 */
static hf_status adopt(struct run *run, hf_error *err)
{
    for (;;) {
        hf_error failure;
        hf_status status = transact(run, attempt, &failure);
        if (status == HF_OK)
            return run->options.dry_run ? HF_OK : keep_ids(run, err);
        if (run->ids_short == 0 && !run->needs_locks) {
            if (err)
                *err = failure;
            return status;
        }
        status = run->ids_short > 0 ? mint(run, err) : HF_OK;
        if (status == HF_OK && run->needs_locks)
            status = lock_moved(run, err);
        if (status != HF_OK)
            return status;
    }
}

/* ---- the call -------------------------------------------------------------------------------- */

static hf_status check_file(const struct run *run, hf_error *err)
{
    char own[4200];
    struct stat file, records;
    (void)snprintf(own, sizeof own, "%s/holdfast.db", hf_store_name(run->store) + strlen("local:"));
    if (stat(run->options.file, &file) != 0)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot open %s", run->options.file);
    if (stat(own, &records) == 0 && records.st_ino == file.st_ino && records.st_dev == file.st_dev)
        return hf__fail(err, HF_INVALID, "%s is Holdfast's own", run->options.file);
    return HF_OK;
}

static hf_status check(const struct run *run, hf_error *err)
{
    bool local = hf_store_is_local(run->store);
    hf_status status = HF_OK;
    hf__table_name name;
    const hf_table_name probe = {run->defaults.cluster, run->defaults.database, "x"};
    if (local && !run->options.file) {
        status = hf__fail(err, HF_INVALID, "which file has the references?");
        hf__hint(err, "the local store adopts from a SQLite file: --file app.db");
    } else if (!local && run->options.file) {
        status = hf__fail(err, HF_INVALID, "%s adopts from its own database, not from a file",
                          hf_store_name(run->store));
        hf__hint(err, "a SQLite file goes with the local store");
    } else if (local && run->options.schema) {
        status = hf__fail(err, HF_INVALID, "a SQLite file has no schemas");
    }
    if (status == HF_OK)
        status = hf__table_name_check(&probe, &name, err);
    return status == HF_OK && local ? check_file(run, err) : status;
}

static hf_status copy_options(struct run *run, const hf_table_adoption *adoption, hf_error *err)
{
    hf_status status = hf__options_copy(&run->options, sizeof run->options, adoption,
                                        offsetof(hf_table_adoption, dry_run), "hf_table_adoption",
                                        "HF_TABLE_ADOPTION_INIT", err);
    run->defaults = (hf_table_name){run->options.cluster, run->options.database, NULL};
    return status == HF_OK ? hf__check_process(run->store, err) : status;
}

static void tell_faults(const struct run *run, hf_table_fault_fn *report, void *arg)
{
    for (size_t i = 0; report && i < run->fault_count; i++) {
        const struct fault *fault = &run->faults[i];
        const hf_table_fault told = {fault->problem ? fault->problem : "", fault->table_name,
                                     fault->context_id, fault->advisory_id};
        report(arg, &told);
    }
}

hf_status hf_table_adopt(hf_store *store, const hf_table_adoption *adoption,
                         hf_table_fault_fn *report, void *arg, hf_table_adopted *adopted,
                         hf_error *err)
{
    struct run run = {.store = store, .source = {.store = store}};
    if (!store || !adoption)
        return hf__fail(err, HF_INVALID, "hf_table_adopt needs a store and what to adopt");
    hf_status status = copy_options(&run, adoption, err);
    if (status == HF_OK)
        status = check(&run, err);
    if (status == HF_OK)
        status = adopt(&run, err);
    tell_faults(&run, report, arg);
    if (adopted)
        *adopted = run.adopted;
    if (run.options.moved)
        *run.options.moved = (int64_t)run.moved;
    reset(&run);
    hf_lock_free(run.lock);
    hf__buf_free(&run.source.relation);
    free(run.ids);
    free(run.old_ids);
    return status;
}

/* ---- leaving --------------------------------------------------------------------------------- */

static hf_status leave(hf_tx *tx, void *arg, hf_error *err)
{
    struct run *run = arg;
    return hf__adopt_source_leave(tx, &run->options, &run->source, err);
}

hf_status hf_table_leave(hf_store *store, const hf_table_adoption *adoption, hf_error *err)
{
    struct run run = {.store = store, .source = {.store = store}};
    if (!store || !adoption)
        return hf__fail(err, HF_INVALID, "hf_table_leave needs a store and what to leave");
    hf_status status = copy_options(&run, adoption, err);
    if (status == HF_OK && hf_store_is_local(store)) {
        status = hf__fail(err, HF_INVALID, "a SQLite file is not followed: nothing is to be left");
        hf__hint(err, "its ids stay as they are");
    }
    if (status == HF_OK)
        status = check(&run, err);
    if (status == HF_OK)
        status = transact(&run, leave, err);
    hf__buf_free(&run.source.relation);
    return status;
}
