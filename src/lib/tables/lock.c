/*
 * The lock of a shared table, whose key is the table's id: the store's table registry gives it. Ids
 * are kept by name, because asking for one costs a trip. A kept one may be out of date, so it is
 * asked for again once the lock is held. The id cannot change after that: to retire it takes the
 * same lock.
 */
#include "lib/tables/tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "lib/tables/ids.h"
#include "lib/tables/sql.h"

enum { MOST_TRIES = 20 };

/* ---- ids that are kept ----------------------------------------------------------------------- */

struct hf__kept_id {
    struct hf__kept_id *next;
    int64_t id; /* 0: none that we know of */
    char text[];
};

hf__table_ids *hf__table_ids_of(const hf_store *store)
{
    return (hf__table_ids *)hf__store_lookup(store);
}

static struct hf__kept_id **bucket_of(hf__table_ids *ids, const char *text)
{
    return &ids->kept[hf__hash_bytes(text, strlen(text)) % HF__ID_BUCKETS];
}

static struct hf__kept_id *find_kept(hf__table_ids *ids, const char *text)
{
    struct hf__kept_id *kept = *bucket_of(ids, text);
    while (kept && strcmp(kept->text, text) != 0)
        kept = kept->next;
    return kept;
}

const char *hf__table_keep(const hf_store *store, const char *text, int64_t id)
{
    hf__table_ids *ids = hf__table_ids_of(store);
    size_t size = strlen(text) + 1;
    pthread_mutex_lock(&ids->mutex);
    struct hf__kept_id *kept = find_kept(ids, text);
    if (!kept && (kept = malloc(sizeof *kept + size))) {
        struct hf__kept_id **bucket = bucket_of(ids, text);
        memcpy(kept->text, text, size);
        kept->next = *bucket;
        *bucket = kept;
    }
    if (kept)
        kept->id = id;
    pthread_mutex_unlock(&ids->mutex);
    return kept ? kept->text : NULL;
}

int64_t hf__table_kept(const hf_store *store, const char *text)
{
    hf__table_ids *ids = hf__table_ids_of(store);
    pthread_mutex_lock(&ids->mutex);
    const struct hf__kept_id *kept = find_kept(ids, text);
    int64_t id = kept ? kept->id : 0;
    pthread_mutex_unlock(&ids->mutex);
    return id;
}

/* ---- asking for an id ------------------------------------------------------------------------ */

hf_status hf__table_explain(const hf_store *store, const hf_error *failure, hf_error *err)
{
    hf_status status = failure->code;
    if (strcmp(failure->sqlstate, "42P01") == 0 || strcmp(failure->sqlstate, "3F000") == 0) {
        status = hf__fail(err, HF_NO_SCHEMA, "shared tables need the schema 'holdfast' on %s",
                          hf_store_name(store));
        hf__hint(err, "run 'holdfast init' once on that database");
    } else if (strcmp(failure->sqlstate, "42501") == 0) {
        status = hf__fail(err, HF_NO_SCHEMA, "this role may not use shared tables on %s: %s",
                          hf_store_name(store), failure->message);
        hf__hint(err, "as the owner of the schema: SELECT holdfast.grant_use('ROLE')");
    } else if (err) {
        *err = *failure;
    }
    return status;
}

void hf__table_question_init(hf__table_question *question, const hf_store *store,
                             const hf__table_name *name)
{
    hf__dialect dialect = hf_store_is_local(store) ? HF__SQLITE : HF__POSTGRES;
    *question = (hf__table_question){.name = *name};
    question->values[0] = HF_TEXT(question->name.cluster);
    question->values[1] = HF_TEXT(question->name.database);
    question->values[2] = HF_TEXT(question->name.table);
    question->base = (hf__question){.name = "hf_find_table",
                                    .sql = hf__sql_tables_find_id.text[dialect],
                                    .count = 3,
                                    .values = question->values};
}

/* 0: the table has none. */
static hf_status read_answer(const hf_store *store, const hf__question *question, const char *text,
                             int64_t *id, hf_error *err)
{
    hf_status status = HF_OK;
    *id = 0;
    if (hf_rows_count(question->rows) > 0)
        status = hf__row_number(question->rows, 0, 0, "advisory_id", id, err);
    if (status == HF_OK && !hf__table_keep(store, text, *id))
        status = hf__no_memory(err);
    return status;
}

void hf__table_question_finish(hf__table_question *question, const hf_store *store)
{
    int64_t id = 0;
    if (question->base.rows && hf_rows_count(question->base.rows) > 0)
        (void)!read_answer(store, &question->base, question->name.text, &id, NULL);
    hf_rows_free(question->base.rows);
    question->base.rows = NULL;
}

hf_status hf__table_ask(hf_store *store, const hf__table_name *name, int64_t *id, hf_error *err)
{
    hf__table_question question;
    hf_error failure;

    *id = 0;
    if (hf__store_is_borrowed(store))
        return hf__fail(err, HF_INVALID, "a borrowed connection knows no shared tables");
    hf__table_question_init(&question, store, name);
    hf_status status = hf__store_ask(store, &question.base, &failure);
    status = status == HF_OK ? read_answer(store, &question.base, name->text, id, err)
                             : hf__table_explain(store, &failure, err);
    hf_rows_free(question.base.rows);
    return status;
}

/* ---- what the lock engine looks up ----------------------------------------------------------- */

static hf_status lookup_find(hf__lookup *lookup, hf_store *store, const char *label, size_t size,
                             const char **text, int64_t *key, hf_error *err)
{
    hf__table_name name;
    hf_status status = hf__table_name_parse(label, size, NULL, &name, err);
    (void)lookup;
    if (status != HF_OK)
        return status;
    *key = hf__table_kept(store, name.text);
    if (!*key)
        status = hf__table_ask(store, &name, key, err);
    if (status == HF_OK && !*key) {
        status = hf__fail(err, HF_INVALID, "no shared table '%s' is registered on %s", name.text,
                          hf_store_name(store));
        hf__hint(err, "run 'holdfast table register %s', or call hf_table_register", name.text);
    }
    if (status == HF_OK && !(*text = hf__table_keep(store, name.text, *key)))
        status = hf__no_memory(err);
    return status;
}

static hf_status lookup_question(hf__lookup *lookup, const hf_store *store, const char *label,
                                 size_t size, hf__question **out, hf_error *err)
{
    hf__table_name name;
    hf_status status = hf__table_name_parse(label, size, NULL, &name, err);
    (void)lookup;
    if (status != HF_OK)
        return status;
    hf__table_question *question = malloc(sizeof *question);
    if (!question)
        return hf__no_memory(err);
    hf__table_question_init(question, store, &name);
    *out = &question->base;
    return HF_OK;
}

/* The label of a claim is the table's one name already. */
static hf_status lookup_judge(hf__lookup *lookup, hf_store *store, const char *label, size_t size,
                              const hf__question *question, int64_t key, bool *stale, hf_error *err)
{
    const hf__table_name *name = &((const hf__table_question *)question)->name;
    int64_t id = 0;
    (void)lookup, (void)label, (void)size;
    hf_status status = read_answer(store, question, name->text, &id, err);
    *stale = status == HF_OK && id != key;
    return status;
}

static hf_status lookup_explain(hf__lookup *lookup, const hf_store *store, const hf_error *failure,
                                hf_error *err)
{
    (void)lookup;
    return hf__table_explain(store, failure, err);
}

static void lookup_free(hf__lookup *lookup)
{
    hf__table_ids *ids = (hf__table_ids *)lookup;
    for (size_t i = 0; i < HF__ID_BUCKETS; i++)
        while (ids->kept[i]) {
            struct hf__kept_id *next = ids->kept[i]->next;
            free(ids->kept[i]);
            ids->kept[i] = next;
        }
    pthread_mutex_destroy(&ids->mutex);
    free(ids);
}

hf__lookup *hf__tables_new(int machine)
{
    static const hf__lookup_ops ops = {.find = lookup_find,
                                       .question = lookup_question,
                                       .judge = lookup_judge,
                                       .explain = lookup_explain,
                                       .free = lookup_free};
    hf__table_ids *ids = calloc(1, sizeof *ids);
    if (!ids)
        return NULL;
    ids->base.ops = &ops;
    ids->machine = machine;
    pthread_mutex_init(&ids->mutex, NULL);
    return &ids->base;
}

/* ---- locking --------------------------------------------------------------------------------- */

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

/* An hf__acquire_fn; name is an hf__table_name. */
static hf_status lock_named(hf_store *store, const void *name, const hf_lock_spec *spec,
                            const hf__lock_extra *extra, hf_lock **lock, hf_error *err)
{
    const hf__table_name *table = name;
    hf_status status = HF_OK;
    int64_t id = 0;
    for (int i = 0; status == HF_OK && i < MOST_TRIES; i++) {
        status = hf__table_ensure(store, table, &id, err);
        if (status != HF_OK)
            return status;
        status = hf__table_lock_live(store, table, spec, extra, lock, err);
        /* Dropped since, so that it has no id: it gets another. */
        if (status != HF_INVALID || hf__table_kept(store, table->text))
            return status;
        status = HF_OK;
    }
    return hf__fail(err, HF_EXHAUSTED, "'%s' was not locked in %d attempts: others drop it",
                    table->text, MOST_TRIES);
}

hf_status hf__table_lock_with(hf_store *store, const hf_table_name *given, const hf_lock_spec *spec,
                              const hf__lock_extra *extra, hf_lock **lock, hf_error *err)
{
    hf__table_name name;
    if (!lock)
        return hf__fail(err, HF_INVALID, "hf_table_lock needs a place for the lock");
    *lock = NULL;
    hf_status status = hf__table_start(store, given, &name, err);
    return status == HF_OK ? lock_named(store, &name, spec, extra, lock, err) : status;
}

hf_status hf_table_lock(hf_store *store, const hf_table_name *given, const hf_lock_spec *spec,
                        hf_lock **lock, hf_error *err)
{
    return hf__table_lock_with(store, given, spec, NULL, lock, err);
}

hf_status hf_table_lock_start(hf_store *store, const hf_table_name *given, const hf_lock_spec *spec,
                              hf_started_fn *done, hf_error *err)
{
    const hf_lock_spec usual = HF_LOCK_SPEC_INIT;
    hf__table_name name;
    hf_status status = hf__table_start(store, given, &name, err);
    return status == HF_OK ? hf__lock_start_with(store, spec ? spec : &usual, done, lock_named,
                                                 &name, sizeof name, err)
                           : status;
}
