/* Registering a table. Each table has one live row: whoever comes second finds the id in it. */
#include "lib/tables/tables.h"

#include <string.h>

#include "base/clock.h"
#include "lib/tables/ids.h"
#include "lib/tables/sql.h"

enum { MOST_TRIES = 20 };

hf_status hf__table_transact(hf_store *store, bool read_only, hf_tx_fn *fn, void *arg,
                             hf_error *err)
{
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    hf_error failure;
    options.isolation = HF_READ_COMMITTED;
    options.read_only = read_only;
    hf_status status = hf__transact_at(store, HF__PLACE_OWN, &options, fn, arg, &failure);
    return status == HF_OK ? HF_OK : hf__table_explain(store, &failure, err);
}

hf_status hf__table_start(hf_store *store, const hf_table_name *given, hf__table_name *name,
                          hf_error *err)
{
    if (!store)
        return hf__fail(err, HF_INVALID, "shared tables need a store");
    hf_status status = hf__check_process(store, err);
    return status == HF_OK ? hf__table_name_check(given, name, err) : status;
}

hf_status hf__table_live(hf_tx *tx, const hf__table_name *name, int64_t *id, hf_error *err)
{
    const hf_value values[] = {HF_TEXT(name->cluster), HF_TEXT(name->database),
                               HF_TEXT(name->table)};
    hf_rows *rows = NULL;
    *id = 0;
    hf_status status = hf__tx_query_sql(tx, &hf__sql_tables_live_id, NULL, 3, values, &rows, err);
    if (status == HF_OK && hf_rows_count(rows) > 0)
        status = hf__row_number(rows, 0, 0, "advisory_id", id, err);
    hf_rows_free(rows);
    return status;
}

struct registering {
    hf_store *store;
    const hf__table_name *name;
    int64_t minted;
    int64_t id; /* 0: the row in the way has gone, or another table has the minted id */
    bool created;
};

static hf_status insert_or_read(hf_tx *tx, void *arg, hf_error *err)
{
    struct registering *r = arg;
    char id[24], now[24];
    hf_rows *rows = NULL;
    const hf_value values[] = {hf__number_value(id, r->minted), HF_TEXT(r->name->cluster),
                               HF_TEXT(r->name->database), HF_TEXT(r->name->table),
                               hf__number_value(now, hf__wall_ms())};
    hf_status status = hf__tx_make_durable(tx, err);
    if (status == HF_OK)
        status = hf__tx_query_sql(tx, &hf__sql_tables_register, NULL, 5, values, &rows, err);
    r->created = status == HF_OK && hf_rows_affected(rows) == 1;
    r->id = r->minted;
    hf_rows_free(rows);
    if (status == HF_OK && !r->created)
        status = hf__table_live(tx, r->name, &r->id, err);
    return status;
}

hf_status hf__table_register(hf_store *store, const hf__table_name *name, int64_t *id,
                             bool *created, hf_error *err)
{
    struct registering r = {.store = store, .name = name};
    *created = false;
    for (int i = 0; i < MOST_TRIES; i++) {
        hf_status status = hf__table_ask(store, name, id, err);
        if (status != HF_OK || *id)
            return status;
        status = hf__table_mint(store, 1, &r.minted, err);
        if (status == HF_OK)
            status = hf__table_transact(store, false, insert_or_read, &r, err);
        if (status == HF_IN_DOUBT)
            continue; /* it may be registered or not: look again */
        if (status != HF_OK)
            return status;
        if (!r.id)
            continue;
        *id = r.id;
        *created = r.created;
        return hf__table_keep(store, name->text, r.id) ? HF_OK : hf__no_memory(err);
    }
    return hf__fail(err, HF_EXHAUSTED,
                    "'%s' was not registered in %d attempts: others drop it, or mint its ids",
                    name->text, MOST_TRIES);
}

hf_status hf__table_ensure(hf_store *store, const hf__table_name *name, int64_t *id, hf_error *err)
{
    bool created = false;
    *id = hf__table_kept(store, name->text);
    return *id ? HF_OK : hf__table_register(store, name, id, &created, err);
}

hf_status hf_table_register(hf_store *store, const hf_table_name *given, int64_t *id, bool *created,
                            hf_error *err)
{
    hf__table_name name;
    bool ignored = false;
    int64_t found = 0;
    hf_status status = hf__table_start(store, given, &name, err);
    if (status == HF_OK)
        status =
            hf__table_register(store, &name, id ? id : &found, created ? created : &ignored, err);
    return status;
}

hf_status hf_table_find(hf_store *store, const hf_table_name *given, int64_t *id, hf_error *err)
{
    hf__table_name name;
    hf_status status = hf__table_start(store, given, &name, err);
    return status == HF_OK ? hf__table_ask(store, &name, id, err) : status;
}
