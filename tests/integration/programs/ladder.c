/*
 * ladder URL SCENARIO memory|calls|system [blind|thrice]: runs the scenario again and again; the
 * first time its first allocation (or call of libpq or SQLite, or of the system) fails, then its
 * second, until it ends before its turn comes. Each time: the answer is true, nothing is held
 * after, and all memory is given back. Blind: without an hf_error. Thrice: the two after it fail,
 * too. Prints how many have failed.
 *
 * The store must have its schema, and a table ladder(n).
 */
#include <errno.h>
#include <execinfo.h>
#include <holdfast/holdfast.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ladder.h"

enum { HOLD_MS = 20 };

const char *url;
static bool is_blind;    /* no hf_error is given */
static size_t times = 1; /* so many fail in a row: what tidies up after the first, too */
static size_t rung;
hf_store *other;

_Noreturn void complain(const char *what, const hf_error *err)
{
    fprintf(stderr, "rung %zu (%s failed): %s%s%s\n", rung, rungs_failed(), what, err ? ": " : "",
            err ? err->message : "");
    _exit(1);
}

static void on_crash(int signal)
{
    void *frames[40];
    dprintf(2, "rung %zu (%s failed): signal %d\n", rung, rungs_failed(), signal);
    backtrace_symbols_fd(frames, backtrace(frames, 40), 2);
    _exit(3);
}

static hf_status open_store(hf_store **store, hf_error *err)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    options.url = url;
    options.ping_deadline_ms = 2000;
    options.ping_interval_ms = 500;
    return hf_store_open(&options, store, err);
}

hf_status acquire(hf_store *store, const hf_target *targets, size_t count, int64_t wait_ms,
                  hf_lock **lock, hf_error *err)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.targets = targets;
    spec.target_count = count;
    spec.wait_ms = wait_ms;
    return hf_lock_acquire(store, &spec, lock, err);
}

/* ---- scenarios ------------------------------------------------------------------------------- */

static const hf_target job = {.label = "job"};

static hf_status end(hf_lock *lock, hf_status status, hf_error *err)
{
    int64_t token = 0;
    if (status == HF_OK && hf_store_has_records(other))
        status = hf_lock_token(lock, &token, err);
    if (status == HF_OK)
        status = hf_lock_release(lock, err);
    hf_lock_free(lock);
    return status;
}

static hf_status do_acquire(hf_store *store, hf_error *err)
{
    const hf_target targets[] = {job, HF_LABEL("Transfer:1"), HF_KEY(42)};
    hf_lock *lock = NULL;
    hf_status status = acquire(store, targets, 3, 0, &lock, err);
    return end(lock, status, err);
}

void *hold_a_while(void *arg)
{
    usleep(HOLD_MS * 1000);
    hf_lock_free(arg);
    return NULL;
}

/* The store that never fails holds it first, and gives it away while the scenario waits. */
static hf_status do_wait(hf_store *store, hf_error *err)
{
    hf_lock *theirs = NULL, *lock = NULL;
    pthread_t thread;
    bool spared = rungs_spare(true);
    if (acquire(other, &job, 1, 0, &theirs, err) != HF_OK)
        complain("the other store does not get the lock", err);
    pthread_create(&thread, NULL, hold_a_while, theirs);
    rungs_spare(spared);
    hf_status status = acquire(store, &job, 1, PATIENCE_MS, &lock, err);
    pthread_join(thread, NULL);
    return end(lock, status, err);
}

static hf_status insert(hf_tx *tx, void *arg, hf_error *err)
{
    (void)arg;
    return hf_tx_query(tx, "INSERT INTO ladder VALUES (1)", 0, NULL, false, NULL, err);
}

static hf_status do_transact(hf_store *store, hf_error *err)
{
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    options.labels = &job;
    options.label_count = 1;
    options.deadline_ms = PATIENCE_MS;
    return hf_transact(store, &options, insert, NULL, err);
}

static void look_at_cursor(void *arg, const char *name, int64_t value)
{
    (void)name;
    *(int64_t *)arg += value;
}

static hf_status do_coverage(hf_store *store, hf_error *err)
{
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf_network *network = NULL;
    hf_range *gaps = NULL;
    size_t count = 0;
    bool is_found = false;
    int64_t value = 0, sum = 0;
    options.name = "testnet";
    hf_status status = hf_network_open(store, &options, &network, err);
    if (status == HF_OK)
        status = hf_cursor_set(network, "mine", 7, err);
    if (status == HF_OK)
        status = hf_cursor_get(network, "mine", &is_found, &value, err);
    if (status == HF_OK && (!is_found || value != 7))
        complain("the cursor is another", NULL);
    if (status == HF_OK)
        status = hf_cursor_advance(network, "mine", 8, err);
    if (status == HF_OK)
        status = hf_cursor_swap(network, "mine", 8, 5, err);
    if (status == HF_OK)
        status = hf_cursor_set_min(network, "mine", 3, err);
    if (status == HF_OK)
        status = hf_cursor_list(network, look_at_cursor, &sum, err);
    if (status == HF_OK && sum != 3)
        complain("the cursors are others", NULL);
    if (status == HF_OK)
        status = hf_network_gaps(network, 1, 100, &gaps, &count, err);
    free(gaps);
    hf_network_free(network);
    return status;
}

static hf_status list_locks(hf_store *store, bool past, hf_error *err)
{
    hf_lock_list *list = NULL;
    hf_status status =
        past ? hf_lock_list_read_past(store, -1, &list, err) : hf_lock_list_read(store, &list, err);
    if (status == HF_OK && hf_lock_list_count(list) == 0)
        complain("the view does not show the lock", NULL);
    hf_lock_list_free(list);
    return status;
}

static hf_status do_views(hf_store *store, hf_error *err)
{
    hf_lock *lock = NULL;
    hf_status status = acquire(store, &job, 1, 0, &lock, err);
    if (status == HF_OK)
        status = list_locks(store, false, err);
    hf_lock_free(lock);
    if (status == HF_OK && hf_store_has_records(store))
        status = list_locks(store, true, err);
    return status;
}

static hf_status take_slot(hf_store *store, hf_error *err)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_lock *lock = NULL;
    spec.targets = &job;
    spec.target_count = 1;
    spec.wait_ms = PATIENCE_MS;
    spec.slots = 2;
    hf_status status = hf_lock_acquire(store, &spec, &lock, err);
    if (status == HF_OK)
        status = list_locks(store, false, err);
    return end(lock, status, err);
}

/* A slot, a schedule, an event, and one label shared. */
static hf_status do_kinds(hf_store *store, hf_error *err)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_lock *lock = NULL;
    bool is_due = false;
    int64_t wait_ms = 0;
    hf_status status = take_slot(store, err);
    spec.targets = &job;
    spec.target_count = 1;
    spec.mode = HF_SHARED;
    spec.wait_ms = 0;
    if (status == HF_OK)
        status = hf_lock_acquire(store, &spec, &lock, err);
    if (status == HF_OK && hf_store_has_records(store))
        status = hf_schedule_claim(store, "job", 1, &is_due, &wait_ms, err);
    if (status == HF_OK)
        hf_lock_note(lock, "ladder", "a rung");
    return end(lock, status, err);
}

static hf_status write_under(hf_store *store, hf_lock_spec spec, hf_error *err)
{
    hf_lock *lock = NULL;
    spec.targets = &job;
    spec.target_count = 1;
    spec.wait_ms = 0;
    hf_status status = hf_lock_acquire(store, &spec, &lock, err);
    if (status == HF_OK)
        status = hf_lock_transact(lock, NULL, insert, NULL, err);
    hf_lock_free(lock);
    return status;
}

/* The lock on a session of its own, with the transaction on it. */
static hf_status do_private(hf_store *store, hf_error *err)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.flags = HF_PRIVATE;
    return write_under(store, spec, err);
}

/* A short one: what is not given back is over soon. */
static hf_status do_lease(hf_store *store, hf_error *err)
{
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    spec.lifetime = HF_LEASE;
    spec.lease_ms = HF_LEASE_MIN_MS;
    return write_under(store, spec, err);
}

/* The caller's connection and its transaction. */
static hf_status do_borrow(hf_store *store, hf_error *err)
{
    hf_store *borrowed = NULL;
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    hf_lock *lock = NULL;
    if (hf_store_is_local(store))
        return HF_OK;
    PGconn *conn = PQconnectdb(url);
    PQclear(PQexec(conn, "BEGIN"));
    hf_status status = hf_store_borrow(conn, NULL, &borrowed, err);
    spec.targets = &job;
    spec.target_count = 1;
    spec.lifetime = HF_TRANSACTION;
    spec.wait_ms = PATIENCE_MS;
    if (status == HF_OK)
        status = hf_lock_acquire(borrowed, &spec, &lock, err);
    if (status == HF_OK)
        status = hf_lock_release(lock, err);
    hf_lock_free(lock);
    hf_store_close(borrowed);
    PQfinish(conn);
    return status;
}

static void ignore_finding(void *arg, hf_level level, const char *topic, const char *text,
                           const char *remedy)
{
    (void)arg, (void)level, (void)topic, (void)text, (void)remedy;
}

static hf_status do_examine(hf_store *store, hf_error *err)
{
    return hf_store_examine(store, ignore_finding, NULL, err);
}

static hf_status forget_schema(hf_tx *tx, void *arg, hf_error *err)
{
    (void)arg;
    return hf_tx_query(tx, "DROP SCHEMA IF EXISTS holdfast CASCADE", 0, NULL, false, NULL, err);
}

/* Installs it where the other store has none. */
static hf_status do_init(hf_store *store, hf_error *err)
{
    int from = 0, to = 0;
    bool spared = rungs_spare(true);
    if (!hf_store_has_records(other) && hf_transact(other, NULL, forget_schema, NULL, err) != HF_OK)
        complain("cannot drop the schema", err);
    rungs_spare(spared);
    return hf_store_init(store, &from, &to, err);
}

static void ignore_context(void *arg, const char *context)
{
    (void)arg, (void)context;
}

static hf_status look_at_tables(hf_store *store, const hf_table_name *name, hf_error *err)
{
    hf_table_list *list = NULL;
    hf_status status = hf_table_list_read(store, name, false, &list, err);
    if (status == HF_OK && hf_table_list_count(list) == 0)
        complain("the table is not in the list", NULL);
    hf_table_list_free(list);
    return status == HF_OK ? hf_table_refs(store, name, ignore_context, NULL, err) : status;
}

static hf_status do_tables(hf_store *store, hf_error *err)
{
    const hf_table_name name = {.database = "app", .table = "rows"};
    int64_t id = 0;
    hf_status status = hf_table_ref(store, &name, "ladder", &id, err);
    if (status == HF_OK)
        status = look_at_tables(store, &name, err);
    if (status == HF_OK)
        status = hf_table_unref(store, &name, "ladder", PATIENCE_MS, NULL, err);
    return status;
}

static hf_status fill_legacy(hf_tx *tx, void *arg, hf_error *err)
{
    (void)arg;
    hf_status status =
        hf_tx_query(tx, "DROP TABLE IF EXISTS table_context_refs", 0, NULL, false, NULL, err);
    if (status == HF_OK)
        status =
            hf_tx_query(tx, "CREATE TABLE table_context_refs (table_name text, context_id text)", 0,
                        NULL, false, NULL, err);
    if (status == HF_OK)
        status =
            hf_tx_query(tx, "INSERT INTO table_context_refs VALUES ('app.a', 'c1'), ('b', 'c1')", 0,
                        NULL, false, NULL, err);
    return status;
}

/* A relation of another program: in its own file, which a transaction of the local store makes. */
static hf_status do_adopt(hf_store *store, hf_error *err)
{
    hf_table_adoption adoption = HF_TABLE_ADOPTION_INIT;
    hf_tx_options options = HF_TX_OPTIONS_INIT;
    hf_table_adopted adopted = {0};
    char file[4096];
    bool spared = rungs_spare(true);
    options.database = hf_store_is_local(other) ? "legacy" : NULL;
    if (hf_transact(other, &options, fill_legacy, NULL, err) != HF_OK)
        complain("cannot make the relation", err);
    rungs_spare(spared);
    if (hf_store_is_local(other)) {
        (void)snprintf(file, sizeof file, "%s/legacy.db", url + strlen("local:"));
        adoption.file = file;
    }
    adoption.constrain = true;
    adoption.wait_ms = PATIENCE_MS;
    return hf_table_adopt(store, &adoption, NULL, NULL, &adopted, err);
}

static const char good_registry[] =
    "version: 1\nstrict: false\n"
    "conventions: { label: \"Entity:id\", generic: [job, task] }\n"
    "wrappers:\n  - { call: \"with_lock({label})\", as: hashtext }\n"
    "locks:\n"
    "  - name: nightly\n    key: { fixed: 7001 }\n    source: [a.c, b.c]\n    order: 10\n"
    "  - name: pairs\n    key: { pair: [1, 2] }\n    purpose: |\n      two\n      lines\n"
    "  - name: zeta\n    key: { pattern: \"Z:{x}:{r}\", as: crc32 }\n"
    "    placeholders: { x: \"[a-c]{1,2}|d+\", r: [eu, us] }\n"
    "  - name: booking\n    key: { pattern: \"Booking:{tenant}\", as: hashtext }\n";
static const char bad_registry[] = "version: 1\nlocks:\n"
                                   "  - name: one\n    key: { fixed: x }\n    nonsense: &a [1]\n"
                                   "  - name: one\n    key: { pattern: \"A:{b}\" }\n"
                                   "    placeholders: { c: \"(\" }\n    mode: *a\n";

hf_status read_registry(const char *text, hf_registry **registry, hf_error *err)
{
    char path[] = "/tmp/ladder.XXXXXX";
    int file = mkstemp(path);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        complain("cannot write the registry", NULL);
    close(file);
    hf_status status = hf_registry_read(path, registry, err);
    unlink(path);
    return status;
}

static hf_status do_registry(hf_store *store, hf_error *err)
{
    static const char *const values[] = {"x=ab", "r=eu"};
    hf_registry *registry = NULL;
    hf_target target = {0};
    const hf_registry_entry *entry = NULL;
    char *label = NULL;
    (void)store;
    hf_status status = read_registry(bad_registry, &registry, err);
    if (status != HF_CONFIG)
        return status;
    status = read_registry(good_registry, &registry, err);
    if (status == HF_OK)
        status = hf_registry_resolve(registry, "Booking:a", 9, &target, &entry, err);
    if (status == HF_OK && (!entry || strcmp(entry->name, "booking") != 0))
        complain("the label is another entry's", NULL);
    if (status == HF_OK)
        status = hf_registry_fill(hf_registry_find(registry, "zeta"), values, 2, &label, err);
    free(label);
    hf_registry_free(registry);
    return status;
}

static const struct scenario {
    const char *name;
    hf_status (*run)(hf_store *store, hf_error *err);
} scenarios[] = {
    {"acquire", do_acquire},   {"wait", do_wait},
    {"transact", do_transact}, {"coverage", do_coverage},
    {"views", do_views},       {"registry", do_registry},
    {"kinds", do_kinds},       {"private", do_private},
    {"borrow", do_borrow},     {"examine", do_examine},
    {"init", do_init},         {"tables", do_tables},
    {"adopt", do_adopt},       {"install", do_install},
    {"cover", do_cover},       {"verify", do_verify},
    {"named", do_named},       {"refused", do_refused},
    {"set", do_set},           {"shared", do_shared},
    {"leave", do_leave},       {"partitions", do_partitions},
    {"start", do_start},       {"ask", do_ask},
    {"lease", do_lease},
};

/* ---- the ladder ------------------------------------------------------------------------------ */

static hf_status count_rows(hf_tx *tx, void *arg, hf_error *err)
{
    hf_rows *rows = NULL;
    hf_status status = hf_tx_query(tx, "SELECT count(*) FROM ladder", 0, NULL, false, &rows, err);
    if (status == HF_OK)
        *(long *)arg = atol(hf_rows_value(rows, 0, 0, NULL));
    hf_rows_free(rows);
    return status;
}

static long rows_there(void)
{
    hf_error err = {0};
    long count = 0;
    if (hf_transact(other, NULL, count_rows, &count, &err) != HF_OK)
        complain("cannot count the rows", &err);
    return count;
}

/* A server frees the locks of a session that has ended when it notices: the wait is for that. */
static void check_nothing_held(void)
{
    hf_error err = {0};
    hf_lock *lock = NULL;
    if (acquire(other, &job, 1, PATIENCE_MS, &lock, &err) != HF_OK)
        complain("the lock is still held", &err);
    hf_lock_free(lock);
}

static void check_rows(hf_status status, long before, const hf_error *err)
{
    long more = rows_there() - before;
    if (status == HF_OK ? more != 1 : status == HF_IN_DOUBT ? more != 0 && more != 1 : more != 0)
        complain(status == HF_OK ? "a commit that was reported is not there once"
                                 : "a failed transaction has left rows",
                 err);
}

/* Threads that were left behind with a silent server end a little later. */
static void check_memory(size_t before, size_t last_block)
{
    for (int looks = 0; looks < PATIENCE_MS / 10 && rungs_live() > before; looks++)
        usleep(10 * 1000);
    if (rungs_live() <= before)
        return;
    rungs_print_since(last_block);
    complain("memory is not given back", NULL);
}

/* One time, with the failure armed: of the opening, too, in the first scenario. Was there one? */
static bool climb(const struct scenario *scenario, rung_kind kind, int error_number)
{
    bool writes =
        scenario->run == do_transact || scenario->run == do_private || scenario->run == do_lease;
    long rows = writes ? rows_there() : 0;
    size_t before = rungs_live(), last_block = rungs_allocated();
    hf_store *store = NULL;
    hf_error err = {0};

    rungs_arm(kind, rung, error_number, times);
    rungs_spare(scenario != scenarios);
    hf_status status = open_store(&store, is_blind ? NULL : &err);
    rungs_spare(false);
    if (status == HF_OK)
        status = scenario->run(store, is_blind ? NULL : &err);
    hf_store_close(store);
    rungs_spare(true);
    bool has_failed = rungs_disarm();
    if (!has_failed && status != HF_OK)
        complain("it fails without a reason", &err);
    if (status != HF_OK && !is_blind && (err.code != status || err.message[0] == '\0'))
        complain("a failure without a message", &err);
    check_memory(before, last_block);
    check_nothing_held();
    if (writes)
        check_rows(status, rows, &err);
    return has_failed;
}

int main(int argc, char **argv)
{
    static const char *const kinds[KINDS] = {"memory", "calls", "system"};
    static const int errors[] = {EIO,    ENOSPC, EACCES, EMFILE,     EINVAL, EINTR,
                                 EDQUOT, ENOLCK, EROFS,  EOPNOTSUPP, ENOENT, ENOTDIR};
    const struct scenario *scenario = NULL;
    rung_kind kind = MEMORY;
    hf_error err = {0};
    size_t failed = 0;

    for (size_t i = 0; argc > 3 && i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(argv[2], scenarios[i].name) == 0)
            scenario = &scenarios[i];
    is_blind = argc > 4 && strcmp(argv[4], "blind") == 0;
    if (argc > 4 && strcmp(argv[4], "thrice") == 0)
        times = 3;
    while (scenario && kind < KINDS && strcmp(argv[3], kinds[kind]) != 0)
        kind++;
    if (!scenario || kind == KINDS)
        return 2;
    signal(SIGSEGV, on_crash);
    signal(SIGABRT, on_crash);
    url = argv[1];
    if (open_store(&other, &err) != HF_OK)
        complain("cannot open the other store", &err);
    (void)climb(scenario, kind, 0); /* rung 0: nothing fails */
    bool each = kind == SYSTEM && scenario == scenarios;
    for (size_t i = 0; i < (each ? sizeof errors / sizeof *errors : 1); i++) {
        for (rung = 1; climb(scenario, kind, errors[i]); rung++)
            ;
        failed += rung - 1;
    }
    hf_store_close(other);
    printf("%zu\n", failed);
    return 0;
}
