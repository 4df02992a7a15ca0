/* Scenarios in which another one is in the way, or in which keys get their names elsewhere. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ladder.h"

#define TWO_NUMBERS ((hf_target){.derivation = HF_FIXED, .space = HF_PAIR, .pair = {1, 2}})

/* The other store takes them; whoever asks is spared. */
static hf_lock *taken_by_the_other(const hf_target *targets, size_t count, unsigned slots)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_lock *lock = NULL;
    hf_error err = {0};
    bool spared = rungs_spare(true);
    spec.targets = targets;
    spec.target_count = count;
    spec.slots = slots;
    spec.wait_ms = PATIENCE_MS;
    if (hf_lock_acquire(other, &spec, &lock, &err) != HF_OK)
        complain("the other store does not get its lock", &err);
    rungs_spare(spared);
    return lock;
}

static void given_by_the_other(hf_lock *lock)
{
    bool spared = rungs_spare(true);
    hf_lock_free(lock);
    rungs_spare(spared);
}

/* ---- refused --------------------------------------------------------------------------------- */

static hf_status try_in_vain(hf_store *store, const hf_target *targets, size_t count,
                             int64_t wait_ms, hf_error *err)
{
    hf_lock *lock = NULL;
    hf_status status = acquire(store, targets, count, wait_ms, &lock, err);
    if (status == HF_OK)
        complain("a lock that another holds was given", NULL);
    if (status == HF_NOT_ACQUIRED && err && !strstr(err->message, "job"))
        complain("it is not told which lock is held", err);
    return status == HF_NOT_ACQUIRED ? HF_OK : status;
}

static hf_status transact_in_vain(hf_store *store, hf_tx_fn *fn, hf_error *err)
{
    const hf_target job = {.label = "job"};
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    options.labels = &job;
    options.label_count = 1;
    options.deadline_ms = 20;
    hf_status status = hf_transact(store, &options, fn, NULL, err);
    if (status == HF_OK)
        complain("a transaction ran beside the lock of another", NULL);
    return status == HF_NOT_ACQUIRED ? HF_OK : status;
}

static hf_status ask(hf_tx *tx, void *arg, hf_error *err)
{
    (void)arg;
    return hf_tx_query(tx, "SELECT 1", 0, NULL, false, NULL, err);
}

/* At once, after a wait, as a set, and as the label of a transaction: refused, by name. */
hf_status do_refused(hf_store *store, hf_error *err)
{
    const hf_target job = {.label = "job"};
    const hf_target set[] = {HF_LABEL("free"), job, TWO_NUMBERS};
    hf_lock *theirs = taken_by_the_other(&job, 1, 0);
    hf_status status = try_in_vain(store, &job, 1, 0, err);
    if (status == HF_OK)
        status = try_in_vain(store, set, 3, 0, err);
    if (status == HF_OK)
        status = try_in_vain(store, &job, 1, 20, err);
    if (status == HF_OK)
        status = try_in_vain(store, set, 3, 20, err);
    if (status == HF_OK)
        status = transact_in_vain(store, ask, err);
    given_by_the_other(theirs);
    return status;
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* Of three keys, one shared, another has one while we wait. */
hf_status do_set(hf_store *store, hf_error *err)
{
    const hf_target job = {.label = "job"};
    const hf_target set[] = {HF_LABEL("first"), job, TWO_NUMBERS};
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_lock *lock = NULL;
    pthread_t thread;
    hf_lock *theirs = taken_by_the_other(&job, 1, 0);
    bool spared = rungs_spare(true);
    pthread_create(&thread, NULL, hold_a_while, theirs);
    rungs_spare(spared);
    spec.targets = set;
    spec.target_count = 3;
    spec.mode = HF_SHARED;
    spec.wait_ms = PATIENCE_MS;
    hf_status status = hf_lock_acquire(store, &spec, &lock, err);
    pthread_join(thread, NULL);
    if (status == HF_OK)
        status = hf_lock_release(lock, err);
    hf_lock_free(lock);
    return status;
}

/* ---- asks ------------------------------------------------------------------------------------ */

static void never_yield(hf_lock *lock, const hf_error *who, void *arg)
{
    (void)lock, (void)who, (void)arg;
}

/* What another holds a while is asked for, and can be asked for in its turn. */
hf_status do_ask(hf_store *store, hf_error *err)
{
    const hf_target job = {.label = "job"};
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_lock *lock = NULL;
    pthread_t thread;
    hf_lock *theirs = taken_by_the_other(&job, 1, 0);
    bool spared = rungs_spare(true);
    pthread_create(&thread, NULL, hold_a_while, theirs);
    rungs_spare(spared);
    spec.targets = &job;
    spec.target_count = 1;
    spec.flags = HF_ASK;
    spec.on_yield = never_yield;
    spec.wait_ms = PATIENCE_MS;
    hf_status status = hf_lock_acquire(store, &spec, &lock, err);
    pthread_join(thread, NULL);
    if (status == HF_OK)
        status = hf_lock_release(lock, err);
    hf_lock_free(lock);
    return status;
}

/* ---- names of a registry --------------------------------------------------------------------- */

static const char names[] = "version: 1\nstrict: false\nconventions: { generic: [task] }\n"
                            "locks:\n"
                            "  - name: nightly\n    key: { fixed: 7001 }\n    order: 10\n"
                            "  - name: pairs\n    key: { pair: [1, 2] }\n    order: 20\n"
                            "  - name: region\n    key: { pattern: \"R:{r}\", as: crc32 }\n"
                            "    placeholders: { r: [eu, us] }\n"
                            "  - name: booking\n    key: { pattern: \"Booking:{id}\" }\n";

static const hf_lock_view *find_name(const hf_lock_list *list, const char *name)
{
    for (size_t i = 0; i < hf_lock_list_count(list); i++)
        if (strcmp(hf_lock_list_at(list, i)->name, name) == 0)
            return hf_lock_list_at(list, i);
    return NULL;
}

/* These are known by their keys alone; labels may still have to be recorded. */
static hf_status look_for_names(hf_store *store, const hf_lock *first, hf_error *err)
{
    hf_lock_list *list = NULL;
    hf_status status = hf_lock_list_read(store, &list, err);
    if (status == HF_OK) {
        const hf_lock_view *region = find_name(list, "region");
        bool is_held =
            hf_lock_get_state(first) == HF_STATE_HELD; /* its session may be lost by now */
        if (!region || strcmp(region->label, "R:eu") != 0 ||
            (is_held && (!find_name(list, "pairs") || !find_name(list, "nightly"))))
            complain("the list does not name the locks", NULL);
    }
    hf_lock_list_free(list);
    return status;
}

static hf_status use_names(hf_store *store, hf_error *err)
{
    const hf_target targets[] = {HF_LABEL("nightly"), TWO_NUMBERS};
    const hf_target booking = HF_LABEL("Booking:7");
    hf_lock *first = NULL, *second = NULL;
    hf_status status = acquire(store, targets, 2, 0, &first, err);
    if (status == HF_OK)
        status = acquire(store, &booking, 1, 0, &second, err);
    if (status == HF_OK)
        status = look_for_names(store, first, err);
    hf_lock_free(second);
    hf_lock_free(first);
    return status;
}

hf_status do_named(hf_store *store, hf_error *err)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_registry *registry = NULL;
    hf_store *named = NULL;
    hf_target region = HF_KEY(0);
    hf_error why = {0};
    (void)store;
    bool spared = rungs_spare(true);
    if (read_registry(names, &registry, &why) != HF_OK ||
        hf_key_derive(HF_CRC32, "R:eu", 4, &region.key, &why) != HF_OK)
        complain("there is no registry", &why);
    rungs_spare(spared);
    hf_lock *theirs = taken_by_the_other(&region, 1, 0);
    hf_lock *slot = taken_by_the_other(&(hf_target){.label = "slots"}, 1, 2);
    options.url = url;
    options.registry = registry;
    hf_status status = hf_store_open(&options, &named, err);
    if (status == HF_OK)
        status = use_names(named, err);
    hf_store_close(named);
    given_by_the_other(slot);
    given_by_the_other(theirs);
    hf_registry_free(registry);
    return status;
}

/* ---- shared tables --------------------------------------------------------------------------- */

static void forget_table(const hf_table_name *name)
{
    hf_error err = {0};
    int64_t id = 0;
    bool spared = rungs_spare(true);
    if (hf_table_find(other, name, &id, &err) != HF_OK ||
        (id && hf_table_drop(other, name, true, PATIENCE_MS, &err) != HF_OK))
        complain("the table of another time stays", &err);
    rungs_spare(spared);
}

/* Registered, locked by its id, found and dropped with a reference of somebody. */
hf_status do_shared(hf_store *store, hf_error *err)
{
    const hf_table_name name = {.cluster = "c", .database = "app", .table = "shared"};
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_table_list *list = NULL;
    hf_lock *lock = NULL;
    int64_t id = 0, found = 0;
    bool created = false;
    forget_table(&name);
    spec.wait_ms = 0;
    hf_status status = hf_table_register(store, &name, &id, &created, err);
    if (status == HF_OK)
        status = hf_table_find(store, &name, &found, err);
    if (status == HF_OK && (!created || found != id))
        complain("the table has another id", NULL);
    if (status == HF_OK)
        status = hf_table_lock(store, &name, &spec, &lock, err);
    if (status == HF_OK && hf_lock_key(lock) != id)
        complain("the lock is on another key", NULL);
    hf_lock_free(lock);
    if (status == HF_OK)
        status = hf_table_ref(store, &name, "context", NULL, err);
    if (status == HF_OK)
        status = hf_table_list_read(store, NULL, false, &list, err);
    hf_table_list_free(list);
    if (status == HF_OK)
        status = hf_table_drop(store, &name, true, PATIENCE_MS, err);
    return status;
}

static hf_status fill_followed(hf_tx *tx, void *arg, hf_error *err)
{
    static const char *const statements[] = {
        "DROP TABLE IF EXISTS followed", "CREATE TABLE followed (table_name text, context_id text)",
        "INSERT INTO followed VALUES ('app.f', 'c1')"};
    hf_status status = HF_OK;
    (void)arg;
    for (size_t i = 0; status == HF_OK && i < sizeof statements / sizeof *statements; i++)
        status = hf_tx_query(tx, statements[i], 0, NULL, false, NULL, err);
    return status;
}

/* PostgreSQL: a relation that the other has adopted is left alone again. */
hf_status do_leave(hf_store *store, hf_error *err)
{
    hf_table_adoption adoption = HF_TABLE_ADOPTION_INIT;
    hf_table_adopted adopted = {0};
    hf_error why = {0};
    bool spared = rungs_spare(true);
    adoption.relation = "followed";
    adoption.constrain = true;
    adoption.wait_ms = PATIENCE_MS;
    if (hf_transact(other, NULL, fill_followed, NULL, &why) != HF_OK ||
        hf_table_adopt(other, &adoption, NULL, NULL, &adopted, &why) != HF_OK)
        complain("the other store cannot adopt the relation", &why);
    rungs_spare(spared);
    hf_status status = hf_table_leave(store, &adoption, err);
    rungs_spare(true);
    if (status != HF_OK && status != HF_IN_DOUBT && hf_table_leave(other, &adoption, &why) != HF_OK)
        complain("a failure has left the relation half alone", &why);
    rungs_spare(spared);
    return status;
}

/* ---- started --------------------------------------------------------------------------------- */

struct ending {
    pthread_mutex_t mutex;
    pthread_cond_t told;
    bool is_told;
    hf_lock *lock;
    hf_status status;
    hf_error why;
};

static void tell(hf_lock *lock, hf_status status, const hf_error *why, void *arg)
{
    struct ending *ending = arg;
    pthread_mutex_lock(&ending->mutex);
    ending->lock = lock;
    ending->status = status;
    ending->why = *why;
    ending->is_told = true;
    pthread_cond_signal(&ending->told);
    pthread_mutex_unlock(&ending->mutex);
}

/* Whatever fails, the end of one that was started is told. */
hf_status do_start(hf_store *store, hf_error *err)
{
    const hf_target job = {.label = "job"};
    struct ending ending = {.mutex = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    pthread_t thread;
    bool spared = rungs_spare(true);
    pthread_create(&thread, NULL, hold_a_while, taken_by_the_other(&job, 1, 0));
    rungs_spare(spared);
    spec.targets = &job;
    spec.target_count = 1;
    spec.wait_ms = PATIENCE_MS;
    spec.arg = &ending;
    hf_status status = hf_lock_start(store, &spec, tell, err);
    pthread_mutex_lock(&ending.mutex);
    while (status == HF_OK && !ending.is_told)
        pthread_cond_wait(&ending.told, &ending.mutex);
    pthread_mutex_unlock(&ending.mutex);
    pthread_join(thread, NULL);
    if (status != HF_OK)
        return status;
    if ((ending.status == HF_OK) != (ending.lock != NULL))
        complain("it is told of a lock that there is not, or of none that there is", &ending.why);
    hf_lock_free(ending.lock);
    if (ending.status != HF_OK && err)
        *err = ending.why;
    return ending.status;
}
