/*
 * References to a table, and its end. An id is retired on the session that holds the table's lock:
 * if the lock is lost nothing is retired, and nobody else uses the table meanwhile.
 */
#include "lib/tables/tables.h"

#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "lib/tables/ids.h"
#include "lib/tables/sql.h"

enum { MOST_TRIES = 20 };

struct change {
    hf_store *store;
    const hf__table_name *name;
    const char *context_id; /* NULL: all of them */
    bool may_retire;        /* the table's lock is held */
    bool their_refs_too;
    int64_t id; /* 0: the table is not registered */
    int64_t mine, all;
    bool retired;
    bool needs_lock;
};

/* An adopted reference may have control characters, a new one may not. */
static hf_status check_context(const char *context_id, bool is_new, hf_error *err)
{
    char shown[80];
    size_t size = context_id ? strlen(context_id) : 0;
    bool fit = size > 0 && size <= HF__CONTEXT_MAX && hf__utf8_valid(context_id, size);
    for (size_t i = 0; fit && is_new && i < size; i++)
        fit = (unsigned char)context_id[i] >= 0x20 && context_id[i] != 0x7f;
    if (fit)
        return HF_OK;
    hf_status status = hf__fail(err, HF_INVALID, "'%s' is no id of a context",
                                hf__show(shown, sizeof shown, context_id ? context_id : "", size));
    hf__hint(err, "UTF-8 without control characters, 1 to %d bytes", HF__CONTEXT_MAX);
    return status;
}

static hf_status not_registered(const struct change *change, hf_error *err)
{
    hf_status status = hf__fail(err, HF_INVALID, "no shared table '%s' is registered on %s",
                                change->name->text, hf_store_name(change->store));
    hf__hint(err, "'holdfast table list' shows those that are");
    return status;
}

/* Counts them, and refuses to touch those that follow another program's relation. */
static hf_status count_refs(hf_tx *tx, struct change *change, hf_error *err)
{
    char id[24];
    int64_t theirs = 0;
    hf_rows *rows = NULL;
    const hf_value values[] = {hf__number_value(id, change->id), HF_TEXT(change->context_id)};
    hf_status status =
        hf__tx_query_sql(tx, &hf__sql_tables_count_refs, NULL, 2, values, &rows, err);
    if (status == HF_OK)
        status = hf__row_number(rows, 0, 0, "the number of references", &change->mine, err);
    if (status == HF_OK)
        status = hf__row_number(rows, 0, 1, "the number of references", &change->all, err);
    if (status == HF_OK)
        status = hf__row_number(rows, 0, 2, "the number of references", &theirs, err);
    if (status == HF_OK && theirs > 0) {
        const char *relation = hf_rows_value(rows, 0, 3, NULL);
        status = hf__fail(err, HF_INVALID, "'%s' is in use in %s, which was adopted",
                          change->name->text, relation);
        hf__hint(err,
                 "let its program drop the table, or run 'holdfast table leave --from %s' first",
                 relation);
    }
    hf_rows_free(rows);
    return status;
}

static hf_status delete_refs(hf_tx *tx, const struct change *change, hf_error *err)
{
    char id[24];
    const hf_value values[] = {hf__number_value(id, change->id), HF_TEXT(change->context_id)};
    return hf__tx_queue_sql(
        tx, change->context_id ? &hf__sql_tables_delete_ref : &hf__sql_tables_delete_refs, NULL, 2,
        values, err);
}

static hf_status retire(hf_tx *tx, struct change *change, hf_error *err)
{
    char id[24], now[24];
    const hf_value values[] = {hf__number_value(id, change->id),
                               hf__number_value(now, hf__wall_ms())};
    change->retired = true;
    return hf__tx_queue_sql(tx, &hf__sql_tables_retire, NULL, 2, values, err);
}

/* ---- adding one ------------------------------------------------------------------------------ */

static hf_status add_ref(hf_tx *tx, void *arg, hf_error *err)
{
    struct change *change = arg;
    char id[24];
    hf_status status = hf__table_live(tx, change->name, &change->id, err);
    if (status != HF_OK || !change->id)
        return status;
    const hf_value values[] = {HF_TEXT(change->name->text), HF_TEXT(change->context_id),
                               hf__number_value(id, change->id)};
    return hf__tx_queue_sql(tx, &hf__sql_tables_add_ref, NULL, 3, values, err);
}

hf_status hf_table_ref(hf_store *store, const hf_table_name *given, const char *context_id,
                       int64_t *id, hf_error *err)
{
    hf__table_name name;
    struct change change = {.store = store, .name = &name, .context_id = context_id};
    bool created = false;
    hf_status status = hf__table_start(store, given, &name, err);
    if (status == HF_OK)
        status = check_context(context_id, true, err);
    for (int i = 0; status == HF_OK && i < MOST_TRIES; i++) {
        status = hf__table_register(store, &name, &change.id, &created, err);
        if (status == HF_OK)
            status = hf__table_transact(store, false, add_ref, &change, err);
        if (status == HF_IN_DOUBT)
            status = HF_OK; /* try again: it changes nothing if the reference exists */
        else if (status == HF_OK && change.id) {
            if (id)
                *id = change.id;
            return HF_OK;
        }
    }
    return status == HF_OK
               ? hf__fail(err, HF_EXHAUSTED, "'%s' got no reference in %d attempts: others drop it",
                          name.text, MOST_TRIES)
               : status;
}

/* ---- removing references, and the table ------------------------------------------------------ */

static hf_status drop_ref(hf_tx *tx, void *arg, hf_error *err)
{
    struct change *change = arg;
    change->retired = change->needs_lock = false;
    hf_status status = hf__table_live(tx, change->name, &change->id, err);
    if (status == HF_OK && !change->id)
        return not_registered(change, err);
    if (status == HF_OK)
        status = count_refs(tx, change, err);
    if (status == HF_OK && change->mine == 0) {
        status = hf__fail(err, HF_INVALID, "'%s' has no reference of '%s'", change->name->text,
                          change->context_id);
        hf__hint(err, "'holdfast table show %s' lists its references", change->name->text);
    }
    if (status != HF_OK)
        return status;
    if (change->all == change->mine && !change->may_retire) {
        change->needs_lock = true;
        return HF_OK;
    }
    status = delete_refs(tx, change, err);
    return status == HF_OK && change->all == change->mine ? retire(tx, change, err) : status;
}

static hf_status drop_table(hf_tx *tx, void *arg, hf_error *err)
{
    struct change *change = arg;
    change->retired = false;
    hf_status status = hf__table_live(tx, change->name, &change->id, err);
    if (status == HF_OK && !change->id)
        return not_registered(change, err);
    if (status == HF_OK)
        status = count_refs(tx, change, err);
    if (status == HF_OK && change->all > 0 && !change->their_refs_too) {
        status = hf__fail(err, HF_INVALID, "'%s' has %lld reference%s", change->name->text,
                          (long long)change->all, change->all == 1 ? "" : "s");
        hf__hint(err, "'holdfast table show %s' lists them; --force drops them too",
                 change->name->text);
    }
    if (status == HF_OK)
        status = delete_refs(tx, change, err);
    return status == HF_OK ? retire(tx, change, err) : status;
}

/* Runs fn on the session that holds the table's lock, so that nobody uses the table meanwhile. */
static hf_status change_locked(struct change *change, hf_tx_fn *fn, int64_t wait_ms, hf_error *err)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_error failure;
    options.isolation = HF_READ_COMMITTED;
    spec.flags = HF_PRIVATE;
    spec.wait_ms = wait_ms;
    hf_status status = hf__table_lock_live(change->store, change->name, &spec, NULL, &lock, err);
    if (status != HF_OK)
        return status;
    change->may_retire = true;
    status = hf__lock_transact_at(lock, HF__PLACE_OWN, &options, fn, change, &failure);
    if (status != HF_OK)
        status = hf__table_explain(change->store, &failure, err);
    if (status == HF_OK && change->retired && !hf__table_keep(change->store, change->name->text, 0))
        status = hf__no_memory(err);
    hf_lock_free(lock);
    return status;
}

hf_status hf_table_unref(hf_store *store, const hf_table_name *given, const char *context_id,
                         int64_t wait_ms, bool *retired, hf_error *err)
{
    hf__table_name name;
    struct change change = {.store = store, .name = &name, .context_id = context_id};
    hf_status status = hf__table_start(store, given, &name, err);
    if (status == HF_OK)
        status = check_context(context_id, false, err);
    if (status == HF_OK)
        status = hf__table_transact(store, false, drop_ref, &change, err);
    if (status == HF_OK && change.needs_lock)
        status = change_locked(&change, drop_ref, wait_ms, err);
    if (status == HF_OK && retired)
        *retired = change.retired;
    return status;
}

hf_status hf_table_drop(hf_store *store, const hf_table_name *given, bool their_refs_too,
                        int64_t wait_ms, hf_error *err)
{
    hf__table_name name;
    struct change change = {.store = store, .name = &name, .their_refs_too = their_refs_too};
    hf_status status = hf__table_start(store, given, &name, err);
    return status == HF_OK ? change_locked(&change, drop_table, wait_ms, err) : status;
}
