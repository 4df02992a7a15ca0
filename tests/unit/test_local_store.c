/* The local store through its vtable, with real processes: children of fork open a store of their own. */
#include "unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/store.h"

#define JUMP (INT64_C(1) << 24)

static char folder[64];

/* ---- helpers --------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *at)
{
    (void)found, (void)kind, (void)at;
    return remove(path);
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/hf-local-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    (void)chmod(folder, 0700);
    remove_tree(folder);
    return 0;
}

static hf_status open_at(const char *path, hf_records records, hf__backend **store, hf_error *err)
{
    char url[256];
    hf_store_options options = HF_STORE_OPTIONS_INIT;

    (void)snprintf(url, sizeof url, "local:%s", path);
    options.url = url;
    options.application = "test";
    options.records = records;
    return hf__local_open(&options, store, err);
}

static hf__backend *open_store(void)
{
    hf__backend *store = NULL;
    hf_error err = {0};

    if (open_at(folder, HF_RECORDS_AUTO, &store, &err) != HF_OK)
        fail_msg("%s", err.message);
    return store;
}

static void close_store(hf__backend *store)
{
    store->ops->close(store);
}

static hf__claim claim_of(int64_t key, hf_mode mode)
{
    return (hf__claim){.key = key, .mode = mode, .wake = key, .derivation = HF_FIXED};
}

static hf__claim labelled(int64_t key, const char *label)
{
    hf__claim claim = claim_of(key, HF_EXCLUSIVE);
    claim.label = label;
    claim.label_size = strlen(label);
    return claim;
}

/* wait_ms 0: only tries. The seat and the token are in *request. */
static hf_status take(hf__backend *store, hf__request *request, const hf__claim *claims,
                      size_t count, int64_t wait_ms, hf_error *err)
{
    *request = (hf__request){.claims = claims, .count = count};
    hf_status status = store->ops->try_claims(store, request, err);
    if (status == HF_NOT_ACQUIRED && wait_ms != 0) {
        request->deadline = hf__deadline(wait_ms);
        status = store->ops->wait_claims(store, request, err);
    }
    return status;
}

static hf_status give_back(const hf__request *request, hf_error *err)
{
    hf__seat *seat = request->seat;
    const hf__backend_ops *ops = seat->backend->ops;
    hf_status status = ops->release_claims(seat, request->claims, request->count, err);

    ops->leave_seat(seat, (unsigned)request->count);
    return status;
}

static hf_status take_key(hf__backend *store, int64_t key, hf_mode mode, int64_t wait_ms)
{
    static __thread hf__claim claim;
    hf__request request;
    hf_error err;

    claim = claim_of(key, mode);
    return take(store, &request, &claim, 1, wait_ms, &err);
}

/* Takes and gives back at once: is it free? */
static bool is_free(int64_t key, hf_mode mode)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(key, mode);
    hf__request request;
    hf_error err;

    hf_status status = take(store, &request, &claim, 1, 0, &err);
    if (status == HF_OK)
        assert_int_equal(give_back(&request, &err), HF_OK);
    close_store(store);
    return status == HF_OK;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void await_contention(hf__backend *store, int64_t key)
{
    hf__claim claim = claim_of(key, HF_EXCLUSIVE);
    bool contended = false;

    for (int64_t deadline = hf__deadline(10000); !contended; pause_ms(1)) {
        assert_true(hf__left_ms(deadline) > 0);
        assert_int_equal(store->ops->is_contended(store, &claim, &contended, NULL), HF_OK);
    }
}

/* A process that runs act with a store of its own; words go over pipes. */
typedef struct peer {
    pid_t pid;
    int hears; /* the parent's end */
    int says;
} peer;

typedef void act_fn(int hear, int say);

static void write_word(int fd, int64_t word)
{
    if (write(fd, &word, sizeof word) != (ssize_t)sizeof word)
        abort();
}

static int64_t read_word(int fd)
{
    int64_t word = INT64_MIN;
    return read(fd, &word, sizeof word) == (ssize_t)sizeof word ? word : INT64_MIN;
}

static peer spawn(act_fn *act)
{
    int to[2];
    int from[2];

    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    peer child = {.pid = fork(), .hears = to[1], .says = from[0]};
    if (child.pid == 0) {
        close(to[1]);
        close(from[0]);
        alarm(60);
        act(to[0], from[1]);
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    return child;
}

static int reap(peer child)
{
    int code = 0;

    close(child.hears);
    close(child.says);
    assert_int_equal(waitpid(child.pid, &code, 0), child.pid);
    return code;
}

static void kill_and_reap(peer child)
{
    assert_int_equal(kill(child.pid, SIGKILL), 0);
    assert_true(WIFSIGNALED(reap(child)));
}

/* Holds key 7 from the first word it says until it hears one. */
static void hold_seven(int hear, int say)
{
    hf__backend *store = open_store();

    write_word(say, take_key(store, 7, HF_EXCLUSIVE, 0));
    (void)read_word(hear);
    close_store(store);
}

static void share_seven(int hear, int say)
{
    hf__backend *store = open_store();

    write_word(say, take_key(store, 7, HF_SHARED, 0));
    (void)read_word(hear);
    close_store(store);
}

static void wait_for_seven(int hear, int say)
{
    hf__backend *store = open_store();

    write_word(say, take_key(store, 7, HF_EXCLUSIVE, -1));
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

static void test_a_private_seat_conflicts_with_the_shared_one(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request private = {.claims = &claim, .count = 1, .private_seat = true};
    hf__request request;
    hf_error err;

    (void)state;
    assert_int_equal(store->ops->try_claims(store, &private, &err), HF_OK);
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_NOT_ACQUIRED);
    assert_int_equal(give_back(&private, &err), HF_OK);
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_OK);
    assert_ptr_not_equal(request.seat, private.seat);
    assert_int_equal(store->ops->try_claims(store, &private, &err), HF_NOT_ACQUIRED);
    assert_int_equal(give_back(&request, &err), HF_OK);
    close_store(store);
}

static void test_the_shared_seat_never_gets_the_same_key_twice(void **state)
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
    assert_int_equal(request.seat->backend->ops->release_claims(request.seat, &claim, 1, &err),
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
        assert_int_equal(store->ops->release_claims(request.seat, &claims[i], 1, &err), HF_OK);
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
        /* As the engine does it: never on the home seat what the process may hold there. */
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
    store->ops->interrupt(store);
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_int_equal((intptr_t)status, HF_INTERRUPTED);
    assert_int_equal(take_key(store, 7, HF_EXCLUSIVE, -1), HF_INTERRUPTED);
    assert_int_equal(store->ops->listen(store, 7, &ticket, NULL), HF_OK);
    assert_int_equal(store->ops->doze(store, 7, &ticket, 1000, NULL), HF_INTERRUPTED);
    write_word(holder.hears, 0);
    assert_int_equal(reap(holder), 0);
    assert_true(is_free(7, HF_EXCLUSIVE));
    close_store(store);
}

static void test_a_release_between_listen_and_doze_is_not_slept_over(void **state)
{
    hf__backend *store = open_store();
    hf__claim claim = claim_of(7, HF_EXCLUSIVE);
    hf__request request;
    uint64_t ticket = 0;
    uint64_t before = 0;

    (void)state;
    assert_int_equal(take(store, &request, &claim, 1, 0, NULL), HF_OK);
    assert_int_equal(store->ops->listen(store, 7, &ticket, NULL), HF_OK);
    before = ticket;
    assert_int_equal(store->ops->doze(store, 7, &ticket, 1, NULL), HF_OK);
    assert_true(ticket == before);
    assert_int_equal(give_back(&request, NULL), HF_OK);
    assert_int_equal(store->ops->doze(store, 7, &ticket, 60000, NULL), HF_OK);
    assert_true(ticket != before);
    close_store(store);
}

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
    hf__request again = {.claims = &claim, .count = 1, .private_seat = true};
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

static int64_t next_token(hf__backend *store)
{
    hf__claim claim = claim_of(99, HF_EXCLUSIVE);
    hf__request request;
    hf_error err;

    if (take(store, &request, &claim, 1, 0, &err) != HF_OK)
        fail_msg("%s", err.message);
    assert_int_equal(give_back(&request, &err), HF_OK);
    return request.token;
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

    run_sql("INSERT INTO holders VALUES (0, 5, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 'h', 'a')");
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
    pause_ms(1001); /* a new file counts from the second of its creation */
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
    int64_t token = 0;

    (void)state;
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_OK);
    assert_int_equal(store->ops->renew_claims(request.seat, &claim, 1, &token, &err), HF_OK);
    assert_int_equal(token, request.token + 1);
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
    assert_int_equal(to, HF_SCHEMA_VERSION);
    assert_int_equal(store->ops->init(store, &from, &to, NULL), HF_OK);
    assert_int_equal(from, HF_SCHEMA_VERSION);
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
    sightings seen = {.sink = {see}};
    char pid[16];

    (void)state;
    assert_int_equal(take(store, &request, &claim, 1, 0, NULL), HF_OK);
    peer waiter = spawn(wait_for_seven);
    for (int64_t deadline = hf__deadline(10000); seen.waiting == 0; pause_ms(5)) {
        assert_true(hf__left_ms(deadline) > 0);
        seen = (sightings){.sink = {see}};
        assert_int_equal(store->ops->list(store, &seen.sink, NULL), HF_OK);
    }
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    assert_int_equal(seen.held, 1);
    assert_int_equal(seen.holder_pid, getpid());
    assert_string_equal(seen.label, "alpha");
    assert_int_equal(seen.waiter_pid, waiter.pid);
    assert_string_equal(seen.blocked_by, pid);
    kill_and_reap(waiter);
    assert_int_equal(give_back(&request, NULL), HF_OK);
    seen = (sightings){.sink = {see}};
    assert_int_equal(store->ops->list(store, &seen.sink, NULL), HF_OK);
    assert_int_equal(seen.held + seen.waiting + seen.unknown, 0);
    close_store(store);
}

static void test_the_list_shows_locks_that_nobody_recorded(void **state)
{
    hf__backend *silent = NULL;
    hf__backend *store = open_store();
    hf__claim claims[] = {claim_of(-3, HF_SHARED), claim_of(8, HF_EXCLUSIVE)};
    hf__request request;
    sightings seen = {.sink = {see}};
    hf_error err;

    (void)state;
    assert_int_equal(open_at(folder, HF_RECORDS_OFF, &silent, &err), HF_OK);
    assert_int_equal(take(silent, &request, claims, 2, 0, &err), HF_OK);
    assert_int_equal(store->ops->list(store, &seen.sink, &err), HF_OK);
    assert_int_equal(seen.held, 0);
    assert_int_equal(seen.unknown, 2);
    close_store(silent);
    close_store(store);
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

/* ---- loss and trouble ------------------------------------------------------------------------ */

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
    assert_true(atomic_load(&request.seat->lost));
    assert_int_equal(take(store, &fresh, &claim, 1, 0, &err), HF_OK);
    assert_ptr_not_equal(fresh.seat, request.seat);
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
    assert_false(atomic_load(&request.seat->lost));
    remove_locks();
    store->ops->watch(store, 20000); /* the loss wakes it */
    assert_true(atomic_load(&request.seat->lost));
    assert_int_equal(request.seat->why.code, HF_LOST);
    store->ops->leave_seat(request.seat, 1);
    close_store(store);
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

    /* The lock itself was given back. */
    assert_int_equal(open_at(folder, HF_RECORDS_OFF, &store, &err), HF_OK);
    assert_int_equal(take(store, &request, &claim, 1, 0, &err), HF_OK);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_second_process_is_refused_until_the_first_lets_go),
        TEST(test_every_corner_of_both_key_spaces_is_a_lock_of_its_own),
        TEST(test_a_killed_holder_is_free_at_once_and_its_record_names_nobody),
        TEST(test_shared_holders_share_and_keep_an_exclusive_one_out),
        TEST(test_a_set_is_taken_whole_or_not_at_all),
        TEST(test_a_private_seat_conflicts_with_the_shared_one),
        TEST(test_the_shared_seat_never_gets_the_same_key_twice),
        TEST(test_thousands_of_keys_come_and_go),
        TEST(test_a_timeout_takes_its_time_and_leaves_nothing),
        TEST(test_a_timeout_that_meets_the_grant_leaves_nothing),
        TEST(test_a_waiter_gets_the_lock_when_the_holder_is_killed),
        TEST(test_sharers_who_only_try_do_not_starve_an_exclusive_waiter),
        TEST(test_tokens_increase_from_holder_to_holder_in_all_processes),
        TEST(test_waiters_in_threads_and_processes_exclude_each_other),
        TEST(test_an_interrupt_ends_waits_now_and_later),
        TEST(test_a_release_between_listen_and_doze_is_not_slept_over),
        TEST(test_a_deadlock_has_exactly_one_victim_who_is_told_the_cycle),
        TEST(test_a_wait_for_who_does_not_wait_is_no_deadlock),
        TEST(test_who_waits_for_itself_is_told),
        TEST(test_a_token_follows_the_last_one_and_jumps_after_a_reboot),
        TEST(test_tokens_do_not_come_back_when_the_folder_is_removed),
        TEST(test_a_handover_in_the_process_gets_a_fresh_token),
        TEST(test_two_labels_of_one_key_are_a_collision_that_names_both),
        TEST(test_history_is_written_by_watch_and_by_close),
        TEST(test_the_watch_ends_early_when_woken),
        TEST(test_old_history_and_records_of_the_dead_are_swept_once_an_hour),
        TEST(test_without_records_there_is_no_database_and_no_token),
        TEST(test_many_may_create_the_database_at_once),
        TEST(test_init_tells_the_versions_before_and_after),
        TEST(test_a_schedule_is_due_once_per_period),
        TEST(test_the_list_shows_holders_and_who_waits_for_them),
        TEST(test_the_list_shows_locks_that_nobody_recorded),
        TEST(test_a_healthy_folder_has_no_problems),
        TEST(test_a_removed_lock_file_is_a_loss),
        TEST(test_the_watch_finds_a_removed_lock_file),
        TEST(test_a_lock_taken_on_a_removed_file_is_taken_on_the_new_one),
        TEST(test_a_file_that_is_no_database_is_refused_before_the_lock_is_granted),
        TEST(test_a_newer_schema_is_refused),
        TEST(test_a_disk_that_takes_no_more_is_said_to_be_out_of_reach),
        TEST(test_what_is_no_folder_is_refused_at_once),
        TEST(test_the_folder_is_made_with_its_parents_for_the_owner_only),
        TEST(test_a_fork_that_forgets_leaves_the_parent_its_locks),
    };
    return RUN(tests);
}
