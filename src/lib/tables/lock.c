#include "lib/tables/tables.h"

#include <string.h>

#include "lib/postgres/sql.h"

enum { MOST_TRIES = 20 };

hf_status hf__table_lock_live(hf_store *store, const hf__table_name *name, const hf_lock_spec *spec,
                              const hf__lock_extra *extra, hf_lock **lock, hf_error *err)
{
    hf_lock_spec own = HF_LOCK_SPEC_INIT;
    const hf_target target = {.label = name->text, .derivation = HF_MINTED};
    if (spec)
        own = *spec;
    own.targets = &target;
    own.target_count = 1;
    return hf__lock_acquire_with(store, &own, extra, lock, err);
}

void hf__table_look(const hf__table_name *name, hf_value values[3], hf__rider *rider)
{
    values[0] = HF_TEXT(name->cluster);
    values[1] = HF_TEXT(name->database);
    values[2] = HF_TEXT(name->table);
    *rider = (hf__rider){
        .sql = hf__sql_postgres_find_table.text[HF__POSTGRES], .count = 3, .values = values};
}

void hf__table_looked(hf_store *store, const hf__table_name *name, const hf_rows *rows)
{
    int64_t id = 0;
    if (rows && hf_rows_count(rows) > 0 &&
        hf__row_number(rows, 0, 0, "advisory_id", &id, NULL) == HF_OK)
        (void)hf__minted_keep(store, name->text, id);
}

hf_status hf_table_lock(hf_store *store, const hf_table_name *given, const hf_lock_spec *spec,
                        hf_lock **lock, hf_error *err)
{
    return hf__table_lock_with(store, given, spec, NULL, lock, err);
}

hf_status hf__table_lock_with(hf_store *store, const hf_table_name *given, const hf_lock_spec *spec,
                              const hf__lock_extra *extra, hf_lock **lock, hf_error *err)
{
    hf__table_name name;
    int64_t id = 0;
    if (!lock)
        return hf__fail(err, HF_INVALID, "hf_table_lock needs a place for the lock");
    *lock = NULL;
    hf_status status = hf__table_start(store, given, &name, err);
    for (int i = 0; status == HF_OK && i < MOST_TRIES; i++) {
        status = hf__table_ensure(store, &name, &id, err);
        if (status != HF_OK)
            return status;
        status = hf__table_lock_live(store, &name, spec, extra, lock, err);
        /* Dropped since, so that it has no id: it gets another. */
        if (status != HF_INVALID || hf__minted_kept(store, name.text))
            return status;
        status = HF_OK;
    }
    return status == HF_OK
               ? hf__fail(err, HF_EXHAUSTED, "'%s' was not locked in %d attempts: others drop it",
                          name.text, MOST_TRIES)
               : status;
}
