/* The locks of the local store through its vtable: children of fork open a store of their own. */
#include "local_store.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static void await_contention(hf__backend *store, int64_t key)
{
    hf__claim claim = claim_of(key, HF_EXCLUSIVE);
    bool contended = false;

    for (int64_t deadline = hf__deadline(10000); !contended; pause_ms(1)) {
        assert_true(hf__left_ms(deadline) > 0);
        assert_int_equal(store->ops->is_contended(store, &claim, &contended, NULL), HF_OK);
    }
}

static void share_seven(int hear, int say)
{
    hf__backend *store = open_store();

    write_word(say, take_key(store, 7, HF_SHARED, 0));
    (void)read_word(hear);
    close_store(store);
}

/* ---- exclusion ------------------------------------------------------------------------------- */

static void test_a_second_process_is_refused_until_the_first_lets_go(void **state)
{
    (void)state;
    peer holder = spawn(hold_seven);
    assert_int_equal(read_word(holder.says), HF_OK);
    assert_false(is_free(7, HF_EXCLUSIVE));
    assert_false(is_free(7, HF_SHARED));
    assert_true(is_free(8, HF_EXCLUSIVE));
    write_word(holder.hears, 0);
    assert_int_equal(reap(holder), 0);
    assert_true(is_free(7, HF_EXCLUSIVE));
}

static void test_every_corner_of_both_key_spaces_is_a_lock_of_its_own(void **state)
{
    static const int64_t keys[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX};
    enum { COUNT = sizeof keys / sizeof *keys };
    hf__backend *one = open_store();
    hf__backend *other = open_store();
    hf__claim claims[2 * COUNT];
    hf__request request;
    hf_error err;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        claims[i] = claim_of(keys[i], HF_EXCLUSIVE);
        claims[COUNT + i] = claims[i];
        claims[COUNT + i].space = HF_PAIR;
    }
    for (int i = 0; i < 2 * COUNT; i++) {
        hf__request refused;
        assert_int_equal(take(one, &request, &claims[i], 1, 0, &err), HF_OK);
        assert_int_equal(take(other, &refused, &claims[i], 1, 0, &err), HF_NOT_ACQUIRED);
    }
    close_store(other);
    close_store(one);
}

static void test_a_killed_holder_is_free_at_once_and_its_record_names_nobody(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__holder holder;
    hf_error err;

    (void)state;
    peer victim = spawn(hold_seven);
    assert_int_equal(read_word(victim.says), HF_OK);
    assert_int_equal(store->ops->find_holder(store, &claim, &holder, &err), HF_OK);
    assert_true(holder.found);
    assert_int_equal(holder.pid, victim.pid);
    assert_string_equal(holder.application, "test");
    assert_true(holder.age_ms >= 0);
    kill_and_reap(victim);
    assert_int_equal(store->ops->find_holder(store, &claim, &holder, &err), HF_OK);
    assert_false(holder.found);
    assert_int_equal(take_key(store, 7, HF_EXCLUSIVE, 0), HF_OK);
    close_store(store);
}

static void test_shared_holders_share_and_keep_an_exclusive_one_out(void **state)
{
    (void)state;
    peer one = spawn(share_seven);
    peer two = spawn(share_seven);
    assert_int_equal(read_word(one.says), HF_OK);
    assert_int_equal(read_word(two.says), HF_OK);
    assert_true(is_free(7, HF_SHARED));
    assert_false(is_free(7, HF_EXCLUSIVE));
    write_word(one.hears, 0);
    assert_int_equal(reap(one), 0);
    assert_false(is_free(7, HF_EXCLUSIVE));
    write_word(two.hears, 0);
    assert_int_equal(reap(two), 0);
    assert_true(is_free(7, HF_EXCLUSIVE));
}

static void test_a_set_is_taken_whole_or_not_at_all(void **state)
{
    hf__backend *store = open_store();
    hf__claim claims[] = {claim_of(5, 0), claim_of(6, 0), claim_of(7, 0), claim_of(8, 0)};
    hf__request request;
    hf_error err;

    (void)state;
    peer holder = spawn(hold_seven);
    assert_int_equal(read_word(holder.says), HF_OK);
    assert_int_equal(take(store, &request, claims, 4, 0, &err), HF_NOT_ACQUIRED);
    assert_int_equal(request.blocked, 2);
    assert_true(is_free(5, HF_EXCLUSIVE) && is_free(6, HF_EXCLUSIVE) && is_free(8, HF_EXCLUSIVE));
    assert_int_equal(take(store, &request, claims, 4, 50, &err), HF_NOT_ACQUIRED);
    assert_int_equal(request.blocked, 2);
    assert_true(is_free(5, HF_EXCLUSIVE) && is_free(6, HF_EXCLUSIVE) && is_free(8, HF_EXCLUSIVE));
    write_word(holder.hears, 0);
    assert_int_equal(take(store, &request, claims, 4, -1, &err), HF_OK);
    assert_false(is_free(5, HF_EXCLUSIVE) || is_free(8, HF_EXCLUSIVE));
    assert_int_equal(give_back(&request, &err), HF_OK);
    assert_true(is_free(5, HF_EXCLUSIVE) && is_free(7, HF_EXCLUSIVE));
    assert_int_equal(reap(holder), 0);
    close_store(store);
}

static void test_a_private_session_conflicts_with_the_shared_one(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request alone = {.claims = &claim, .count = 1, .private_session = true};
    hf__request request;
    hf_error err;

    (void)state;
    assert_int_equal(store->ops->try_claims(store, &alone, &err), HF_OK);
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_NOT_ACQUIRED);
    assert_int_equal(give_back(&alone, &err), HF_OK);
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_OK);
    assert_ptr_not_equal(request.session, alone.session);
    assert_int_equal(store->ops->try_claims(store, &alone, &err), HF_NOT_ACQUIRED);
    assert_int_equal(give_back(&request, &err), HF_OK);
    close_store(store);
}

static void test_the_shared_session_never_gets_the_same_key_twice(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request request;
    hf__request again;
    hf_error err;

    (void)state;
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_OK);
    assert_int_equal(take(store, &again, &claim, 1, 0, &err), HF_NOT_ACQUIRED);
    assert_int_equal(give_back(&request, &err), HF_OK);
    assert_int_equal(
        request.session->backend->ops->release_claims(request.session, &claim, 1, false, &err),
        HF_LOST);
    close_store(store);
}

enum { MANY = 3000 };

static void test_thousands_of_keys_come_and_go(void **state)
{
    hf__backend *store = open_store();
    hf__claim *claims = calloc(MANY, sizeof *claims);
    hf__request request;
    hf_error err;

    (void)state;
    for (int i = 0; i < MANY; i++)
        claims[i] = claim_of(i * INT64_C(1000003) - 1500, HF_EXCLUSIVE);
    assert_int_equal(take(store, &request, claims, MANY, 0, &err), HF_OK);
    assert_false(is_free(claims[MANY / 2].key, HF_SHARED));
    for (int i = 0; i < MANY; i += 2)
        assert_int_equal(store->ops->release_claims(request.session, &claims[i], 1, false, &err),
                         HF_OK);
    assert_true(is_free(claims[MANY / 2].key, HF_EXCLUSIVE));
    assert_false(is_free(claims[MANY / 2 + 1].key, HF_EXCLUSIVE));
    close_store(store);
    assert_true(is_free(claims[MANY / 2 + 1].key, HF_EXCLUSIVE));
    free(claims);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void test_a_timeout_takes_its_time_and_leaves_nothing(void **state)
{
    hf__backend *store = open_store();

    (void)state;
    peer holder = spawn(hold_seven);
    assert_int_equal(read_word(holder.says), HF_OK);
    for (int wait_ms = 1; wait_ms <= 256; wait_ms *= 4) {
        int64_t started = hf__now_ms();
        assert_int_equal(take_key(store, 7, HF_EXCLUSIVE, wait_ms), HF_NOT_ACQUIRED);
        assert_true(hf__now_ms() - started >= wait_ms);
    }
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    bool contended = true;
    assert_int_equal(store->ops->is_contended(store, &claim, &contended, NULL), HF_OK);
    assert_false(contended);
    write_word(holder.hears, 0);
    assert_int_equal(reap(holder), 0);
    assert_true(is_free(7, HF_EXCLUSIVE));
    close_store(store);
}

static int count_files(void)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void test_a_lock_that_was_waited_for_keeps_no_files_open_once_released(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf_error err = {0};
    int files = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        hf__request request = {.claims = &claim, .count = 1, .deadline = HF__FOREVER};
        assert_int_equal(store->ops->wait_claims(store, &request, &err), HF_OK);
        assert_int_equal(give_back(&request, &err), HF_OK);
        assert_true(i == 0 || count_files() == files);
        files = count_files();
    }
    close_store(store);
}

static void *give_back_soon(void *arg)
{
    pause_ms(5);
    return give_back(arg, NULL) == HF_OK ? arg : NULL;
}

/* Whoever gives up at the very moment of the grant must not keep it. */
static void test_a_timeout_that_meets_the_grant_leaves_nothing(void **state)
{
    hf__backend *store = open_store();
    hf__backend *other = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request held;
    hf__request waited;
    pthread_t thread;
    void *done = NULL;

    (void)state;
    for (int i = 0; i < 60; i++) {
        assert_int_equal(take(other, &held, &claim, 1, 0, NULL), HF_OK);
        assert_int_equal(pthread_create(&thread, NULL, give_back_soon, &held), 0);
        hf_status status = take(store, &waited, &claim, 1, 4 + i % 4, NULL);
        assert_int_equal(pthread_join(thread, &done), 0);
        assert_non_null(done);
        if (status == HF_OK)
            assert_int_equal(give_back(&waited, NULL), HF_OK);
        else
            assert_int_equal(status, HF_NOT_ACQUIRED);
    }
    close_store(other);
    close_store(store);
}

static void test_a_waiter_gets_the_lock_when_the_holder_is_killed(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request request;
    hf_error err;

    (void)state;
    peer holder = spawn(hold_seven);
    assert_int_equal(read_word(holder.says), HF_OK);
    peer waiter = spawn(wait_for_seven);
    await_contention(store, 7);
    kill_and_reap(holder);
    assert_int_equal(read_word(waiter.says), HF_OK);
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_NOT_ACQUIRED);
    write_word(waiter.hears, 0);
    assert_int_equal(reap(waiter), 0);
    close_store(store);
}

static void test_sharers_who_only_try_do_not_starve_an_exclusive_waiter(void **state)
{
    hf__backend *store = open_store();

    (void)state;
    peer sharer = spawn(share_seven);
    assert_int_equal(read_word(sharer.says), HF_OK);
    assert_true(is_free(7, HF_SHARED));
    peer waiter = spawn(wait_for_seven);
    await_contention(store, 7);
    assert_false(is_free(7, HF_SHARED));
    write_word(sharer.hears, 0);
    assert_int_equal(reap(sharer), 0);
    assert_int_equal(read_word(waiter.says), HF_OK);
    write_word(waiter.hears, 0);
    assert_int_equal(reap(waiter), 0);
    assert_true(is_free(7, HF_SHARED));
    close_store(store);
}

static void take_and_report(int hear, int say)
{
    hf__backend *store = open_store();

    (void)hear;
    for (int i = 0; i < 200; i++) {
        hf__claim claim = claim_of(7, HF_EXCLUSIVE);
        hf__request request;
        if (take(store, &request, &claim, 1, -1, NULL) != HF_OK)
            write_word(say, -1);
        write_word(say, request.token);
        if (give_back(&request, NULL) != HF_OK)
            write_word(say, -2);
    }
    close_store(store);
}

static void test_tokens_increase_from_holder_to_holder_in_all_processes(void **state)
{
    enum { PROCESSES = 4, ROUNDS = 200 };
    peer children[PROCESSES];
    int64_t last[PROCESSES] = {0};
    int64_t all[PROCESSES * ROUNDS];

    (void)state;
    for (int i = 0; i < PROCESSES; i++)
        children[i] = spawn(take_and_report);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < PROCESSES; i++) {
            int64_t token = read_word(children[i].says);
            assert_true(token > last[i]);
            last[i] = token;
            all[round * PROCESSES + i] = token;
        }
    }
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(reap(children[i]), 0);
    for (int i = 0; i < PROCESSES * ROUNDS; i++)
        for (int j = 0; j < i; j++)
            assert_true(all[i] != all[j]);
}

/* A counter in a file, read and written under the lock by processes and threads alike. */
static void *count_up(void *arg)
{
    hf__backend *store = arg;
    char path[128];

    (void)snprintf(path, sizeof path, "%s/counter", folder);
    for (int i = 0; i < 50; i++) {
        hf__claim claim = claim_of(7, HF_EXCLUSIVE);
        hf__request request = {.claims = &claim, .count = 1, .deadline = HF__FOREVER};
        int64_t value = 0;
        /* As the engine does it: never on the shared session what the process may hold there. */
        if (store->ops->wait_claims(store, &request, NULL) != HF_OK)
            abort();
        int fd = open(path, O_RDWR | O_CREAT, 0600);
        if (pread(fd, &value, sizeof value, 0) < 0)
            abort();
        value++;
        if (pwrite(fd, &value, sizeof value, 0) != (ssize_t)sizeof value)
            abort();
        close(fd);
        if (give_back(&request, NULL) != HF_OK)
            abort();
    }
    return NULL;
}

static void count_in_threads(int hear, int say)
{
    pthread_t threads[3];
    hf__backend *store = open_store();

    (void)hear;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, count_up, store) != 0)
            abort();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    close_store(store);
    write_word(say, 0);
}

static void test_waiters_in_threads_and_processes_exclude_each_other(void **state)
{
    peer children[3];
    char path[128];
    int64_t value = 0;

    (void)state;
    for (int i = 0; i < 3; i++)
        children[i] = spawn(count_in_threads);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read_word(children[i].says), 0);
        assert_int_equal(reap(children[i]), 0);
    }
    (void)snprintf(path, sizeof path, "%s/counter", folder);
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, &value, sizeof value), sizeof value);
    close(fd);
    assert_int_equal(value, 3 * 3 * 50);
}

static void *wait_for_ever(void *arg)
{
    return (void *)(intptr_t)take_key(arg, 7, HF_EXCLUSIVE, -1);
}

static void test_an_interrupt_ends_waits_now_and_later(void **state)
{
    hf__backend *store = open_store();
    uint64_t ticket = 0;
    pthread_t thread;
    void *status = NULL;

    (void)state;
    peer holder = spawn(hold_seven);
    assert_int_equal(read_word(holder.says), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, store), 0);
    await_contention(store, 7);
    store->ops->interrupt(store, true);
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_int_equal((intptr_t)status, HF_INTERRUPTED);
    assert_int_equal(take_key(store, 7, HF_EXCLUSIVE, -1), HF_INTERRUPTED);
    assert_int_equal(store->ops->listen(store, 7, NULL, &ticket, NULL), HF_OK);
    assert_int_equal(store->ops->await_wake(store, 7, NULL, &ticket, 1000, NULL), HF_INTERRUPTED);
    write_word(holder.hears, 0);
    assert_int_equal(reap(holder), 0);
    assert_true(is_free(7, HF_EXCLUSIVE));
    close_store(store);
}

static void test_a_release_between_listen_and_await_wake_is_not_slept_over(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request request;
    uint64_t ticket = 0;
    uint64_t before = 0;

    (void)state;
    assert_int_equal(take(store, &request, &claim, 1, 0, NULL), HF_OK);
    assert_int_equal(store->ops->listen(store, 7, NULL, &ticket, NULL), HF_OK);
    before = ticket;
    assert_int_equal(store->ops->await_wake(store, 7, NULL, &ticket, 1, NULL), HF_OK);
    assert_true(ticket == before);
    assert_int_equal(give_back(&request, NULL), HF_OK);
    assert_int_equal(store->ops->await_wake(store, 7, NULL, &ticket, 60000, NULL), HF_OK);
    assert_true(ticket != before);
    close_store(store);
}

/* ---- loss and forks -------------------------------------------------------------------------- */

static void remove_locks(void)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/locks", folder);
    remove_tree(path);
}

static void test_a_removed_lock_file_is_a_loss(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = labelled(7, "alpha");
    hf__request request;
    hf__request fresh;
    hf_error err;

    (void)state;
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_OK);
    remove_locks();
    assert_int_equal(give_back(&request, &err), HF_LOST);
    assert_non_null(strstr(err.message, "'alpha'"));
    assert_non_null(strstr(err.message, "removed"));
    assert_true(atomic_load(&request.session->lost));
    assert_int_equal(take(store, &fresh, &claim, 1, 0, &err), HF_OK);
    assert_ptr_not_equal(fresh.session, request.session);
    assert_false(is_free(7, HF_EXCLUSIVE));
    assert_int_equal(give_back(&fresh, &err), HF_OK);
    close_store(store);
}

static void test_the_watch_finds_a_removed_lock_file(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request request;
    hf_error err;

    (void)state;
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_OK);
    store->ops->watch(store, 1);
    assert_false(atomic_load(&request.session->lost));
    remove_locks();
    store->ops->watch(store, 20000); /* the loss wakes it */
    assert_true(atomic_load(&request.session->lost));
    assert_int_equal(request.session->why.code, HF_LOST);
    store->ops->leave_session(request.session, 1);
    close_store(store);
}

/* The lock file is then descriptor 0, the first that is free. */
static void lose_without_input(int hear, int say)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request request = {0};

    (void)hear;
    close(STDIN_FILENO);
    write_word(say, take(store, &request, &claim, 1, 0, NULL));
    remove_locks();
    store->ops->watch(store, 20000);
    write_word(say, atomic_load(&request.session->lost));
    _exit(0);
}

static void test_the_watch_finds_a_removed_lock_file_that_is_the_first_descriptor(void **state)
{
    (void)state;
    peer holder = spawn(lose_without_input);
    assert_int_equal(read_word(holder.says), HF_OK);
    assert_int_equal(read_word(holder.says), true);
    assert_int_equal(reap(holder), 0);
}

static void test_a_lock_taken_on_a_removed_file_is_taken_on_the_new_one(void **state)
{
    hf__backend *store = open_store();

    (void)state;
    (void)next_token(store); /* the file stays open */
    remove_locks();
    assert_int_equal(take_key(store, 99, HF_EXCLUSIVE, 0), HF_OK);
    assert_false(is_free(99, HF_EXCLUSIVE));
    close_store(store);
}

static void test_a_fork_that_forgets_leaves_the_parent_its_locks(void **state)
{
    hf__backend *store = open_store();

    (void)state;
    assert_int_equal(take_key(store, 7, HF_EXCLUSIVE, 0), HF_OK);
    pid_t pid = fork();
    if (pid == 0) {
        store->ops->forget(store);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(is_free(7, HF_EXCLUSIVE));
    close_store(store);
    assert_true(is_free(7, HF_EXCLUSIVE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(test_a_second_process_is_refused_until_the_first_lets_go),
        FOLDER_TEST(test_every_corner_of_both_key_spaces_is_a_lock_of_its_own),
        FOLDER_TEST(test_a_killed_holder_is_free_at_once_and_its_record_names_nobody),
        FOLDER_TEST(test_shared_holders_share_and_keep_an_exclusive_one_out),
        FOLDER_TEST(test_a_set_is_taken_whole_or_not_at_all),
        FOLDER_TEST(test_a_private_session_conflicts_with_the_shared_one),
        FOLDER_TEST(test_the_shared_session_never_gets_the_same_key_twice),
        FOLDER_TEST(test_thousands_of_keys_come_and_go),
        FOLDER_TEST(test_a_timeout_takes_its_time_and_leaves_nothing),
        FOLDER_TEST(test_a_lock_that_was_waited_for_keeps_no_files_open_once_released),
        FOLDER_TEST(test_a_timeout_that_meets_the_grant_leaves_nothing),
        FOLDER_TEST(test_a_waiter_gets_the_lock_when_the_holder_is_killed),
        FOLDER_TEST(test_sharers_who_only_try_do_not_starve_an_exclusive_waiter),
        FOLDER_TEST(test_tokens_increase_from_holder_to_holder_in_all_processes),
        FOLDER_TEST(test_waiters_in_threads_and_processes_exclude_each_other),
        FOLDER_TEST(test_an_interrupt_ends_waits_now_and_later),
        FOLDER_TEST(test_a_release_between_listen_and_await_wake_is_not_slept_over),
        FOLDER_TEST(test_a_removed_lock_file_is_a_loss),
        FOLDER_TEST(test_the_watch_finds_a_removed_lock_file),
        FOLDER_TEST(test_the_watch_finds_a_removed_lock_file_that_is_the_first_descriptor),
        FOLDER_TEST(test_a_lock_taken_on_a_removed_file_is_taken_on_the_new_one),
        FOLDER_TEST(test_a_fork_that_forgets_leaves_the_parent_its_locks),
    };
    return RUN(tests);
}
