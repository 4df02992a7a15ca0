/* The records of the local store through its vtable: who waits for whom, tokens, labels, views. */
#include "local_store.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define JUMP (INT64_C(1) << 24)

/* ---- deadlock -------------------------------------------------------------------------------- */

/* Takes one key, tells, hears the go, then waits for the other. */
static void cross(int hear, int say, int64_t first, int64_t second)
{
    hf__backend *store = open_store();
    hf__claim one = labelled(first, first == 1 ? "one" : "two");
    hf__claim two = labelled(second, second == 1 ? "one" : "two");
    hf__request held;
    hf__request wanted = {.claims = &two, .count = 1, .any_order = true, .deadline = HF__FOREVER};
    hf_error err = {0};

    write_word(say, take(store, &held, &one, 1, 0, &err));
    (void)read_word(hear);
    hf_status status = store->ops->wait_claims(store, &wanted, &err);
    if (status == HF_DEADLOCK && (strstr(err.message, "'one'") == NULL ||
                                  strstr(err.message, "'two'") == NULL || err.hint[0] == '\0'))
        status = HF_INVALID;
    if (status == HF_DEADLOCK && give_back(&held, &err) != HF_OK)
        status = HF_INVALID;
    write_word(say, status);
    (void)read_word(hear);
    close_store(store);
}

static void cross_one_two(int hear, int say)
{
    cross(hear, say, 1, 2);
}

static void cross_two_one(int hear, int say)
{
    cross(hear, say, 2, 1);
}

static void test_a_deadlock_has_exactly_one_victim_who_is_told_the_cycle(void **state)
{
    (void)state;
    peer one = spawn(cross_one_two);
    peer two = spawn(cross_two_one);
    assert_int_equal(read_word(one.says), HF_OK);
    assert_int_equal(read_word(two.says), HF_OK);
    write_word(one.hears, 0);
    write_word(two.hears, 0);
    int64_t first = read_word(one.says);
    int64_t second = read_word(two.says);
    assert_true((first == HF_DEADLOCK && second == HF_OK) ||
                (first == HF_OK && second == HF_DEADLOCK));
    write_word(one.hears, 0);
    write_word(two.hears, 0);
    assert_int_equal(reap(one), 0);
    assert_int_equal(reap(two), 0);
}

static void test_a_wait_for_who_does_not_wait_is_no_deadlock(void **state)
{
    hf__backend *store = open_store();

    (void)state;
    assert_int_equal(take_key(store, 1, HF_EXCLUSIVE, 0), HF_OK);
    peer holder = spawn(hold_seven);
    assert_int_equal(read_word(holder.says), HF_OK);
    assert_int_equal(take_key(store, 7, HF_EXCLUSIVE, 1600), HF_NOT_ACQUIRED);
    write_word(holder.hears, 0);
    assert_int_equal(reap(holder), 0);
    close_store(store);
}

static void test_who_waits_for_itself_is_told(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request request;
    hf__request again = {.claims = &claim, .count = 1, .private_session = true};
    hf_error err;

    (void)state;
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_OK);
    again.deadline = hf__deadline(20000);
    assert_int_equal(store->ops->wait_claims(store, &again, &err), HF_DEADLOCK);
    assert_int_equal(give_back(&request, &err), HF_OK);
    close_store(store);
}

/* ---- records --------------------------------------------------------------------------------- */

static void run_sql(const char *sql)
{
    char path[128];
    sqlite3 *handle = NULL;

    (void)snprintf(path, sizeof path, "%s/holdfast.db", folder);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    sqlite3_busy_timeout(handle, 5000);
    assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
}

static int64_t ask_sql(const char *sql)
{
    char path[128];
    sqlite3 *handle = NULL;
    sqlite3_stmt *rows = NULL;

    (void)snprintf(path, sizeof path, "%s/holdfast.db", folder);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    sqlite3_busy_timeout(handle, 5000);
    assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &rows, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(rows), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(rows, 0);
    sqlite3_finalize(rows);
    sqlite3_close(handle);
    return value;
}

static void refuse_to_delete_from(const char *table)
{
    char sql[160];

    (void)snprintf(sql, sizeof sql,
                   "CREATE TRIGGER full_disk BEFORE DELETE ON %s"
                   " BEGIN SELECT RAISE(FAIL, 'no room'); END",
                   table);
    run_sql(sql);
}

static int64_t count_own_waits(void)
{
    char sql[128];

    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM waiters WHERE pid = %d", (int)getpid());
    return ask_sql(sql);
}

static atomic_bool changing;
static atomic_int_fast64_t slowest_ms;

/* The wait of the other thread of the cycle is another one after each turn. */
static void *change_the_cycle(void *arg)
{
    int64_t before = hf__now_ms();

    while (atomic_load(&changing)) {
        run_sql("PRAGMA synchronous = OFF; UPDATE waiters SET wait = wait - 1 WHERE key = 1");
        int64_t now = hf__now_ms();
        if (now - before > atomic_load(&slowest_ms))
            atomic_store(&slowest_ms, now - before);
        before = now;
        pause_ms(40); /* a look reads it twice */
    }
    return arg;
}

/* Records are written one after the other, so what looks like a cycle may be none. */
static void test_only_a_cycle_that_is_the_same_at_two_looks_is_a_deadlock(void **state)
{
    enum { BETWEEN_LOOKS_MS = 250, TURNS = 10 };
    hf__backend *store = open_store();
    hf_status status = HF_DEADLOCK;
    pthread_t thread;

    (void)state;
    assert_int_equal(take_key(store, 1, HF_EXCLUSIVE, 0), HF_OK);
    peer holder = spawn(hold_seven);
    assert_int_equal(read_word(holder.says), HF_OK);
    run_sql("INSERT INTO waiters SELECT 1000, 0, 1, 0, 1, 0, pid, tid, started, pid_space, host,"
            " application FROM holders WHERE key = 7");
    assert_int_equal(take_key(store, 7, HF_EXCLUSIVE, 20000), HF_DEADLOCK);
    for (int i = 0; i < TURNS && status == HF_DEADLOCK; i++) {
        atomic_store(&changing, true);
        atomic_store(&slowest_ms, 0);
        assert_int_equal(pthread_create(&thread, NULL, change_the_cycle, NULL), 0);
        status = take_key(store, 7, HF_EXCLUSIVE, 1600);
        atomic_store(&changing, false);
        assert_int_equal(pthread_join(thread, NULL), 0);
        if (atomic_load(&slowest_ms) < BETWEEN_LOOKS_MS) /* else two looks may see the same */
            assert_int_equal(status, HF_NOT_ACQUIRED);
    }
    write_word(holder.hears, 0);
    assert_int_equal(reap(holder), 0);
    close_store(store);
}

/* With the record left, others who wait for what this thread holds would be told of a deadlock. */
static void test_a_wait_whose_record_could_not_be_deleted_ends_with_the_next_lock(void **state)
{
    hf__backend *store = open_store();

    (void)state;
    peer holder = spawn(hold_seven);
    assert_int_equal(read_word(holder.says), HF_OK);
    refuse_to_delete_from("waiters");
    assert_int_equal(take_key(store, 7, HF_EXCLUSIVE, 1600), HF_NOT_ACQUIRED);
    assert_int_equal(count_own_waits(), 1);
    run_sql("DROP TRIGGER full_disk");
    assert_int_equal(take_key(store, 1, HF_EXCLUSIVE, 0), HF_OK);
    assert_int_equal(count_own_waits(), 0);
    write_word(holder.hears, 0);
    assert_int_equal(reap(holder), 0);
    close_store(store);
}

/* In a process that lives on, nobody else would delete it. */
static void test_a_holder_whose_record_could_not_be_deleted_goes_with_the_store(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_SHARED);
    hf__request request;
    hf_error err = {0};

    (void)state;
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_OK);
    refuse_to_delete_from("holders");
    assert_int_equal(give_back(&request, &err), HF_OK);
    assert_int_equal(ask_sql("SELECT count(*) FROM holders"), 1);
    run_sql("DROP TRIGGER full_disk");
    close_store(store);
    assert_int_equal(ask_sql("SELECT count(*) FROM holders"), 0);
}

static void test_a_token_follows_the_last_one_and_jumps_after_a_reboot(void **state)
{
    (void)state;
    hf__backend *store = open_store();
    int64_t first = next_token(store);
    assert_true(first > 0);
    assert_int_equal(next_token(store), first + 1);
    close_store(store);

    store = open_store();
    assert_int_equal(next_token(store), first + 2);
    close_store(store);

    run_sql("INSERT INTO holders VALUES (0, 5, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 'h', 'a', NULL)");
    run_sql("UPDATE token SET boot_id = 'another'");
    store = open_store();
    assert_int_equal(next_token(store), first + 3 + JUMP);
    assert_int_equal(ask_sql("SELECT count(*) FROM holders"), 0);
    assert_int_equal(next_token(store), first + 4 + JUMP);
    close_store(store);
}

static void test_tokens_do_not_come_back_when_the_folder_is_removed(void **state)
{
    (void)state;
    hf__backend *store = open_store();
    int64_t first = next_token(store);
    for (time_t second = time(NULL); time(NULL) <= second;) /* a new file counts from its second */
        pause_ms(5);
    remove_tree(folder);
    assert_true(next_token(store) > first);
    close_store(store);
}

static void test_a_handover_in_the_process_gets_a_fresh_token(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request request;
    hf_error err;

    (void)state;
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_OK);
    int64_t token = request.token + 1;
    assert_int_equal(store->ops->renew_claims(request.session, &request, &err), HF_OK);
    assert_int_equal(request.token, token);
    assert_int_equal(ask_sql("SELECT count(*) FROM holders"), 1);
    assert_int_equal(ask_sql("SELECT token FROM holders"), token);
    assert_int_equal(give_back(&request, &err), HF_OK);
    assert_int_equal(ask_sql("SELECT count(*) FROM holders"), 0);
    close_store(store);
}

static void test_two_labels_of_one_key_are_a_collision_that_names_both(void **state)
{
    hf__backend *store = open_store();
    hf__backend *other = open_store();
    hf__claim alpha = labelled(7, "alpha");
    hf__claim beta = labelled(7, "beta");
    hf__request request;
    hf__request refused;
    hf_error err;

    (void)state;
    assert_int_equal(take(store, &request, &alpha, 1, 0, &err), HF_OK);
    assert_int_equal(take(other, &refused, &beta, 1, 0, &err), HF_COLLISION); /* not: is held */
    assert_int_equal(give_back(&request, &err), HF_OK);
    assert_int_equal(take(other, &refused, &beta, 1, 0, &err), HF_COLLISION);
    assert_non_null(strstr(err.message, "'alpha'"));
    assert_non_null(strstr(err.message, "'beta'"));
    assert_non_null(strstr(err.message, "key 7"));
    assert_non_null(strstr(err.hint, "sha256"));
    assert_true(is_free(7, HF_EXCLUSIVE));
    assert_int_equal(take(other, &request, &alpha, 1, 0, &err), HF_OK);
    close_store(other);
    close_store(store);
}

/* What it remembers of labels goes with the store; a sanitizer sees if it does not. */
static void test_a_store_that_has_seen_many_labels_tells_collisions_of_all(void **state)
{
    enum { LABELS = 100 };
    hf__backend *store = open_store();
    hf__request request;
    hf_error err;
    char label[16];

    (void)state;
    for (int i = 0; i < 2 * LABELS; i++) {
        (void)snprintf(label, sizeof label, "%s%d", i < LABELS ? "a" : "b", i % LABELS);
        hf__claim claim = labelled(i % LABELS, label);
        hf_status status = take(store, &request, &claim, 1, 0, &err);
        assert_int_equal(status, i < LABELS ? HF_OK : HF_COLLISION);
        if (status == HF_OK)
            assert_int_equal(give_back(&request, &err), HF_OK);
    }
    close_store(store);
}

static void test_history_is_written_by_watch_and_by_close(void **state)
{
    hf__backend *store = open_store();
    hf__event event = {
        .kind = HF__EVENT_ACQUIRED, .at_ms = 1, .key = 7, .wait_ms = -1, .hold_ms = 5};

    (void)state;
    event.at_ms = hf__wall_ms();
    store->ops->note(store, &event);
    store->ops->watch(store, 1100);
    assert_int_equal(ask_sql("SELECT count(*) FROM events WHERE event = 'acquired'"), 1);
    event.kind = HF__EVENT_RELEASED;
    for (int i = 0; i < 1500; i++)
        store->ops->note(store, &event);
    close_store(store);
    assert_int_equal(ask_sql("SELECT count(*) FROM events WHERE wait_ms IS NULL AND hold_ms = 5"),
                     1 + 1024);
}

static void count_warnings(void *arg, hf_log_level level, const char *message)
{
    if (level == HF_LOG_WARNING && strstr(message, "events were dropped"))
        ++*(int *)arg;
}

static void test_history_that_is_dropped_is_warned_of(void **state)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    const hf__event event = {.kind = HF__EVENT_ACQUIRED, .at_ms = hf__wall_ms(), .key = 7};
    hf__backend *store = NULL;
    int warnings = 0;
    char url[128];

    (void)state;
    (void)snprintf(url, sizeof url, "local:%s", folder);
    options.url = url;
    options.application = "test";
    options.log = count_warnings;
    options.log_arg = &warnings;
    assert_int_equal(hf__local_open(&options, &store, NULL), HF_OK);
    for (int i = 0; i < 1025; i++)
        store->ops->note(store, &event);
    close_store(store);
    assert_int_equal(warnings, 1);
}

static void test_the_watch_ends_early_when_woken(void **state)
{
    hf__backend *store = open_store();

    (void)state;
    int64_t started = hf__now_ms();
    store->ops->wake(store);
    store->ops->watch(store, 60000);
    assert_true(hf__now_ms() - started < 30000);
    close_store(store);
}

static void test_old_history_and_records_of_the_dead_are_swept_once_an_hour(void **state)
{
    (void)state;
    peer victim = spawn(hold_seven);
    assert_int_equal(read_word(victim.says), HF_OK);
    kill_and_reap(victim);
    run_sql("INSERT INTO events (at_ms, event, space, key, shared, token, application, host, pid)"
            " VALUES (1, 'acquired', 0, 1, 0, 1, 'a', 'h', 1)");
    run_sql("INSERT INTO labels VALUES (0, 1, x'41', 'sha256', 1)");
    close_store(open_store());
    assert_int_equal(ask_sql("SELECT count(*) FROM holders"), 1);

    run_sql("UPDATE token SET swept_ms = 1");
    hf__backend *store = open_store();
    (void)next_token(store);
    close_store(store);
    assert_int_equal(ask_sql("SELECT count(*) FROM holders"), 0);
    assert_int_equal(ask_sql("SELECT count(*) FROM labels"), 0);
    assert_int_equal(ask_sql("SELECT count(*) FROM events"), 0);
}

/* In another container, say: its process is in no list of ours. */
static void test_a_holder_that_cannot_be_seen_is_not_taken_for_dead(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__holder found;

    (void)state;
    peer holder = spawn(hold_seven);
    assert_int_equal(read_word(holder.says), HF_OK);
    run_sql("UPDATE holders SET pid = 1, started = 1, host = 'elsewhere'");
    assert_int_equal(store->ops->find_holder(store, &claim, &found, NULL), HF_OK);
    assert_true(found.found);
    assert_string_equal(found.host, "elsewhere");
    run_sql("UPDATE token SET swept_ms = 1");
    (void)next_token(store);
    assert_int_equal(ask_sql("SELECT count(*) FROM holders WHERE host = 'elsewhere'"), 1);
    write_word(holder.hears, 0);
    assert_int_equal(reap(holder), 0);
    close_store(store);
}

static void test_without_records_there_is_no_database_and_no_token(void **state)
{
    hf__backend *store = NULL;
    hf__claim claim = labelled(7, "alpha");
    hf__request request;
    hf_error err;
    char path[128];

    (void)state;
    assert_int_equal(open_at(folder, HF_RECORDS_OFF, &store, &err), HF_OK);
    assert_false(atomic_load(&store->records));
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_OK);
    assert_int_equal(request.token, 0);
    assert_int_equal(give_back(&request, &err), HF_OK);
    close_store(store);
    (void)snprintf(path, sizeof path, "%s/holdfast.db", folder);
    assert_int_equal(access(path, F_OK), -1);
}

static void start_fresh(int hear, int say)
{
    (void)read_word(hear);
    hf__backend *store = open_store();
    hf__claim claim = claim_of(getpid(), HF_EXCLUSIVE);
    hf__request request;
    hf_error err = {0};
    hf_status status = take(store, &request, &claim, 1, 0, &err);
    write_word(say, status == HF_OK ? request.token : -(int64_t)status);
    close_store(store);
}

static void test_many_may_create_the_database_at_once(void **state)
{
    enum { PROCESSES = 16 };
    peer children[PROCESSES];
    int64_t tokens[PROCESSES];

    (void)state;
    for (int i = 0; i < PROCESSES; i++)
        children[i] = spawn(start_fresh);
    for (int i = 0; i < PROCESSES; i++)
        write_word(children[i].hears, 0);
    for (int i = 0; i < PROCESSES; i++) {
        tokens[i] = read_word(children[i].says);
        assert_true(tokens[i] > 0);
        for (int j = 0; j < i; j++)
            assert_true(tokens[i] != tokens[j]);
    }
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(reap(children[i]), 0);
}

static void test_init_tells_the_versions_before_and_after(void **state)
{
    hf__backend *store = open_store();
    int from = -1;
    int to = -1;

    (void)state;
    assert_int_equal(store->ops->init(store, &from, &to, NULL), HF_OK);
    assert_int_equal(from, 0);
    assert_int_equal(to, 3);
    assert_int_equal(store->ops->init(store, &from, &to, NULL), HF_OK);
    assert_int_equal(from, 3);
    close_store(store);
}

static void test_a_schedule_is_due_once_per_period(void **state)
{
    hf__backend *store = open_store();
    bool due = false;
    int64_t wait_ms = -1;

    (void)state;
    assert_int_equal(store->ops->claim_schedule(store, "job", 60000, &due, &wait_ms, NULL), HF_OK);
    assert_true(due);
    assert_int_equal(store->ops->claim_schedule(store, "job", 60000, &due, &wait_ms, NULL), HF_OK);
    assert_false(due);
    assert_in_range(wait_ms, 1, 60000);
    run_sql("UPDATE schedules SET last_start_ms = last_start_ms - 60001");
    assert_int_equal(store->ops->claim_schedule(store, "job", 60000, &due, &wait_ms, NULL), HF_OK);
    assert_true(due);
    run_sql("UPDATE schedules SET last_start_ms = last_start_ms + 70000"); /* a clock set back */
    assert_int_equal(store->ops->claim_schedule(store, "job", 60000, &due, &wait_ms, NULL), HF_OK);
    assert_true(due);
    close_store(store);
}

/* ---- views ----------------------------------------------------------------------------------- */

typedef struct sightings {
    hf__view_sink sink;
    int held, waiting, unknown;
    int holder_pid, waiter_pid;
    char label[32];
    char blocked_by[32];
} sightings;

static hf_status see(hf__view_sink *sink, const hf_lock_view *view, hf_error *err)
{
    sightings *seen = (sightings *)sink;

    (void)err;
    if (view->waiting) {
        seen->waiting++;
        seen->waiter_pid = view->pid;
        (void)snprintf(seen->blocked_by, sizeof seen->blocked_by, "%s", view->blocked_by);
    } else if (view->ours) {
        seen->held++;
        seen->holder_pid = view->pid;
        (void)snprintf(seen->label, sizeof seen->label, "%s", view->label);
    } else {
        seen->unknown++;
    }
    return HF_OK;
}

static void test_the_list_shows_holders_and_who_waits_for_them(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = labelled(7, "alpha");
    hf__request request;
    sightings seen = {.sink = {.add = see}};
    char pid[16];

    (void)state;
    assert_int_equal(take(store, &request, &claim, 1, 0, NULL), HF_OK);
    peer waiter = spawn(wait_for_seven);
    for (int64_t deadline = hf__deadline(10000); seen.waiting == 0; pause_ms(5)) {
        assert_true(hf__left_ms(deadline) > 0);
        seen = (sightings){.sink = {.add = see}};
        assert_int_equal(store->ops->list(store, NULL, &seen.sink, NULL), HF_OK);
    }
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    assert_int_equal(seen.held, 1);
    assert_int_equal(seen.holder_pid, getpid());
    assert_string_equal(seen.label, "alpha");
    assert_int_equal(seen.waiter_pid, waiter.pid);
    assert_string_equal(seen.blocked_by, pid);
    kill_and_reap(waiter);
    assert_int_equal(give_back(&request, NULL), HF_OK);
    seen = (sightings){.sink = {.add = see}};
    assert_int_equal(store->ops->list(store, NULL, &seen.sink, NULL), HF_OK);
    assert_int_equal(seen.held + seen.waiting + seen.unknown, 0);
    close_store(store);
}

static void wait_to_share_seven(int hear, int say)
{
    hf__backend *store = open_store();

    write_word(say, take_key(store, 7, HF_SHARED, -1));
    (void)read_word(hear);
    close_store(store);
}

typedef struct waits {
    hf__view_sink sink;
    int exclusive_pid; /* who waits for the exclusive lock, and who keeps it waiting */
    char exclusive_for[32];
    char shared_for[32];
} waits;

static hf_status see_wait(hf__view_sink *sink, const hf_lock_view *view, hf_error *err)
{
    waits *seen = (waits *)sink;

    (void)err;
    if (view->waiting && view->mode == HF_EXCLUSIVE) {
        seen->exclusive_pid = view->pid;
        (void)snprintf(seen->exclusive_for, sizeof seen->exclusive_for, "%s", view->blocked_by);
    } else if (view->waiting) {
        (void)snprintf(seen->shared_for, sizeof seen->shared_for, "%s", view->blocked_by);
    }
    return HF_OK;
}

static void test_a_sharer_waits_for_who_is_exclusive_and_not_for_other_sharers(void **state)
{
    hf__backend *store = open_store();
    waits seen = {.sink = {.add = see_wait}};
    peer sharer = {0};
    char holder[16];
    char head[16];

    (void)state;
    assert_int_equal(take_key(store, 7, HF_SHARED, 0), HF_OK);
    peer writer = spawn(wait_for_seven);
    for (int64_t deadline = hf__deadline(10000); !seen.shared_for[0]; pause_ms(5)) {
        assert_true(hf__left_ms(deadline) > 0);
        assert_int_equal(store->ops->list(store, NULL, &seen.sink, NULL), HF_OK);
        if (seen.exclusive_pid != 0 && sharer.pid == 0)
            sharer = spawn(wait_to_share_seven);
    }
    (void)snprintf(holder, sizeof holder, "%d", (int)getpid());
    (void)snprintf(head, sizeof head, "%d", (int)writer.pid);
    assert_int_equal(seen.exclusive_pid, writer.pid);
    assert_string_equal(seen.exclusive_for, holder);
    assert_string_equal(seen.shared_for, head);
    kill_and_reap(sharer);
    kill_and_reap(writer);
    close_store(store);
}

static void test_the_list_shows_locks_that_nobody_recorded(void **state)
{
    hf__backend *silent = NULL;
    hf__backend *store = open_store();
    hf__claim claims[] = {claim_of(-3, HF_SHARED), claim_of(8, HF_EXCLUSIVE)};
    hf__request request;
    sightings seen = {.sink = {.add = see}};
    hf_error err;

    (void)state;
    assert_int_equal(open_at(folder, HF_RECORDS_OFF, &silent, &err), HF_OK);
    assert_int_equal(take(silent, &request, claims, 2, 0, &err), HF_OK);
    assert_int_equal(store->ops->list(store, NULL, &seen.sink, &err), HF_OK);
    assert_int_equal(seen.held, 0);
    assert_int_equal(seen.unknown, 2);
    close_store(silent);
    close_store(store);
}

/* The kernel tells neighbours in one file as one range. */
static void test_the_list_shows_each_of_many_neighbours_that_nobody_recorded(void **state)
{
    enum { KEYS = 1000 };
    hf__backend *silent = NULL;
    hf__backend *store = open_store();
    hf__claim *claims = calloc(KEYS, sizeof *claims);
    hf__request request;
    sightings seen = {.sink = {.add = see}};
    hf_error err;

    (void)state;
    for (int i = 0; i < KEYS; i++)
        claims[i] = claim_of(i, HF_EXCLUSIVE);
    assert_int_equal(open_at(folder, HF_RECORDS_OFF, &silent, &err), HF_OK);
    assert_int_equal(take(silent, &request, claims, KEYS, 0, &err), HF_OK);
    /* The kernel's list has gaps while it is read and other processes unlock. */
    for (int64_t deadline = hf__deadline(10000); seen.unknown != KEYS; pause_ms(5)) {
        assert_true(hf__left_ms(deadline) > 0);
        seen = (sightings){.sink = {.add = see}};
        assert_int_equal(store->ops->list(store, NULL, &seen.sink, &err), HF_OK);
    }
    close_store(silent);
    close_store(store);
    free(claims);
}

static void count_levels(void *arg, hf_level level, const char *topic, const char *text,
                         const char *remedy)
{
    int *counts = arg;

    assert_true(topic[0] != '\0' && text[0] != '\0');
    assert_true((level == HF_LEVEL_OK) == (remedy[0] == '\0'));
    counts[level]++;
}

static void test_a_healthy_folder_has_no_problems(void **state)
{
    hf__backend *store = open_store();
    int counts[3] = {0};

    (void)state;
    assert_int_equal(store->ops->examine(store, count_levels, counts, NULL), HF_OK);
    assert_true(counts[HF_LEVEL_OK] >= 5);
    assert_int_equal(counts[HF_LEVEL_PROBLEM], 0);
    close_store(store);
}

static void find_text(void *arg, hf_level level, const char *topic, const char *text,
                      const char *remedy)
{
    const char **wanted = arg;

    (void)level, (void)topic, (void)remedy;
    for (; *wanted != NULL; wanted++)
        if (strstr(text, *wanted) != NULL)
            *wanted = "";
}

static void assert_told(hf__backend *store, const char *wanted)
{
    const char *texts[] = {wanted, NULL};

    assert_int_equal(store->ops->examine(store, find_text, texts, NULL), HF_OK);
    if (texts[0][0] != '\0')
        fail_msg("not told: %s", wanted);
}

static void leave_dead_holders(int count)
{
    for (int i = 0; i < count; i++) {
        peer holder = spawn(hold_seven);
        assert_int_equal(read_word(holder.says), HF_OK);
        kill_and_reap(holder);
        run_sql("UPDATE holders SET key = key + 1 WHERE key = 7");
    }
}

static void test_few_files_and_the_records_of_the_dead_are_told(void **state)
{
    hf__backend *store = open_store();
    struct rlimit before;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit few = {.rlim_cur = 256, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_told(store, "256 open files allowed, many locks and waits need more");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    leave_dead_holders(1);
    assert_told(store, "those of 1 dead process were removed");
    leave_dead_holders(2);
    assert_told(store, "those of 2 dead processes were removed");
    assert_told(store, "none of dead processes");
    close_store(store);
}

/* ---- trouble --------------------------------------------------------------------------------- */

static void write_file(const char *name, const char *text)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void expect_refusal(hf_status expected)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request request;
    hf_error err = {0};

    assert_int_equal(take(store, &request, &claim, 1, 0, &err), expected);
    assert_int_equal(err.code, expected);
    assert_non_null(strstr(err.message, "holdfast.db"));
    assert_true(err.hint[0] != '\0');
    close_store(store);

    /* Without records, too: the file may have a lease of the key. The lock was given back. */
    size_t first = 0;
    assert_int_equal(open_at(folder, HF_RECORDS_OFF, &store, &err), HF_OK);
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), expected);
    assert_int_equal(store->ops->probe_claims(store, &request, true, &first, &err), HF_OK);
    assert_int_equal(first, 1);
    close_store(store);
}

static void test_a_file_that_is_no_database_is_refused_before_the_lock_is_granted(void **state)
{
    (void)state;
    write_file("holdfast.db", "this is not a database, however long one looks at it. "
                              "It goes on for a while, since the header has a hundred bytes.");
    expect_refusal(HF_CONFIG);
}

static void test_a_newer_schema_is_refused(void **state)
{
    (void)state;
    run_sql("PRAGMA user_version = 1000");
    expect_refusal(HF_NO_SCHEMA);
}

static void fill_up(int hear, int say)
{
    const struct rlimit tiny = {.rlim_cur = 8192, .rlim_max = 8192};

    (void)hear;
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &tiny) != 0)
        abort();
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request request;
    hf_error err = {0};
    hf_status status = take(store, &request, &claim, 1, 0, &err);
    write_word(say, status);
    write_word(say, err.hint[0] != '\0');
    close_store(store);
}

static void test_a_disk_that_takes_no_more_is_said_to_be_out_of_reach(void **state)
{
    (void)state;
    peer child = spawn(fill_up);
    assert_int_equal(read_word(child.says), HF_UNREACHABLE);
    assert_int_equal(read_word(child.says), 1);
    assert_int_equal(reap(child), 0);
    assert_true(is_free(7, HF_EXCLUSIVE));
}

static void test_what_is_no_folder_is_refused_at_once(void **state)
{
    hf__backend *store = NULL;
    char path[128];
    hf_error err;

    (void)state;
    write_file("file", "x");
    (void)snprintf(path, sizeof path, "%s/file", folder);
    assert_int_equal(open_at(path, HF_RECORDS_AUTO, &store, &err), HF_CONFIG);
    assert_non_null(strstr(err.message, path));
    assert_true(err.hint[0] != '\0');
    assert_int_equal(open_at("", HF_RECORDS_AUTO, &store, &err), HF_CONFIG);
    assert_int_equal(open_at("/proc/1/no/such", HF_RECORDS_AUTO, &store, &err), HF_CONFIG);
}

static void test_the_folder_is_made_with_its_parents_for_the_owner_only(void **state)
{
    hf__backend *store = NULL;
    char path[128];
    struct stat found;
    hf_error err;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/a/b", folder);
    assert_int_equal(open_at(path, HF_RECORDS_AUTO, &store, &err), HF_OK);
    assert_int_equal(take_key(store, 7, HF_EXCLUSIVE, 0), HF_OK);
    assert_string_equal(store->name + strlen("local:"), path);
    close_store(store);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0700);
    (void)snprintf(path, sizeof path, "%s/a/b/holdfast.db", folder);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(test_a_deadlock_has_exactly_one_victim_who_is_told_the_cycle),
        FOLDER_TEST(test_a_wait_for_who_does_not_wait_is_no_deadlock),
        FOLDER_TEST(test_who_waits_for_itself_is_told),
        FOLDER_TEST(test_only_a_cycle_that_is_the_same_at_two_looks_is_a_deadlock),
        FOLDER_TEST(test_a_wait_whose_record_could_not_be_deleted_ends_with_the_next_lock),
        FOLDER_TEST(test_a_holder_whose_record_could_not_be_deleted_goes_with_the_store),
        FOLDER_TEST(test_a_token_follows_the_last_one_and_jumps_after_a_reboot),
        FOLDER_TEST(test_tokens_do_not_come_back_when_the_folder_is_removed),
        FOLDER_TEST(test_a_handover_in_the_process_gets_a_fresh_token),
        FOLDER_TEST(test_two_labels_of_one_key_are_a_collision_that_names_both),
        FOLDER_TEST(test_a_store_that_has_seen_many_labels_tells_collisions_of_all),
        FOLDER_TEST(test_history_is_written_by_watch_and_by_close),
        FOLDER_TEST(test_history_that_is_dropped_is_warned_of),
        FOLDER_TEST(test_the_watch_ends_early_when_woken),
        FOLDER_TEST(test_old_history_and_records_of_the_dead_are_swept_once_an_hour),
        FOLDER_TEST(test_a_holder_that_cannot_be_seen_is_not_taken_for_dead),
        FOLDER_TEST(test_without_records_there_is_no_database_and_no_token),
        FOLDER_TEST(test_many_may_create_the_database_at_once),
        FOLDER_TEST(test_init_tells_the_versions_before_and_after),
        FOLDER_TEST(test_a_schedule_is_due_once_per_period),
        FOLDER_TEST(test_the_list_shows_holders_and_who_waits_for_them),
        FOLDER_TEST(test_a_sharer_waits_for_who_is_exclusive_and_not_for_other_sharers),
        FOLDER_TEST(test_the_list_shows_locks_that_nobody_recorded),
        FOLDER_TEST(test_the_list_shows_each_of_many_neighbours_that_nobody_recorded),
        FOLDER_TEST(test_a_healthy_folder_has_no_problems),
        FOLDER_TEST(test_few_files_and_the_records_of_the_dead_are_told),
        FOLDER_TEST(test_a_file_that_is_no_database_is_refused_before_the_lock_is_granted),
        FOLDER_TEST(test_a_newer_schema_is_refused),
        FOLDER_TEST(test_a_disk_that_takes_no_more_is_said_to_be_out_of_reach),
        FOLDER_TEST(test_what_is_no_folder_is_refused_at_once),
        FOLDER_TEST(test_the_folder_is_made_with_its_parents_for_the_owner_only),
    };
    return RUN(tests);
}
