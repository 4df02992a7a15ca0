#include "local_store.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

hf_status open_at(const char *path, hf_records records, hf__backend **store, hf_error *err)
{
    char url[256];
    hf_store_options options = HF_STORE_OPTIONS_INIT;

    (void)snprintf(url, sizeof url, "local:%s", path);
    options.url = url;
    options.application = "test";
    options.records = records;
    return hf__local_open(&options, store, err);
}

hf__backend *open_store(void)
{
    hf__backend *store = NULL;
    hf_error err = {0};

    if (open_at(folder, HF_RECORDS_AUTO, &store, &err) != HF_OK)
        fail_msg("%s", err.message);
    return store;
}

void close_store(hf__backend *store)
{
    store->ops->close(store);
}

hf__claim claim_of(int64_t key, hf_mode mode)
{
    return (hf__claim){.key = key, .mode = mode, .wake = key, .derivation = HF_FIXED};
}

hf__claim labelled(int64_t key, const char *label)
{
    hf__claim claim = claim_of(key, HF_EXCLUSIVE);
    claim.label = label;
    claim.label_size = strlen(label);
    return claim;
}

hf_status take(hf__backend *store, hf__request *request, const hf__claim *claims, size_t count,
               int64_t wait_ms, hf_error *err)
{
    *request = (hf__request){.claims = claims, .count = count, .began = hf__now_ms()};
    hf_status status = store->ops->try_claims(store, request, err);
    if (status == HF_NOT_ACQUIRED && wait_ms != 0) {
        request->deadline = hf__deadline(wait_ms);
        status = store->ops->wait_claims(store, request, err);
    }
    return status;
}

hf_status give_back(const hf__request *request, hf_error *err)
{
    hf__session *session = request->session;
    const hf__backend_ops *ops = session->backend->ops;
    hf_status status = ops->release_claims(session, request->claims, request->count, false, err);

    ops->leave_session(session, (unsigned)request->count);
    return status;
}

hf_status take_key(hf__backend *store, int64_t key, hf_mode mode, int64_t wait_ms)
{
    static __thread hf__claim claim;
    hf__request request;
    hf_error err;

    claim = claim_of(key, mode);
    return take(store, &request, &claim, 1, wait_ms, &err);
}

bool is_free(int64_t key, hf_mode mode)
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

void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

void write_word(int fd, int64_t word)
{
    if (write(fd, &word, sizeof word) != (ssize_t)sizeof word)
        abort();
}

int64_t read_word(int fd)
{
    int64_t word = INT64_MIN;
    return read(fd, &word, sizeof word) == (ssize_t)sizeof word ? word : INT64_MIN;
}

peer spawn(act_fn *act)
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

int reap(peer child)
{
    int code = 0;

    close(child.hears);
    close(child.says);
    assert_int_equal(waitpid(child.pid, &code, 0), child.pid);
    return code;
}

void kill_and_reap(peer child)
{
    assert_int_equal(kill(child.pid, SIGKILL), 0);
    assert_true(WIFSIGNALED(reap(child)));
}

void hold_seven(int hear, int say)
{
    hf__backend *store = open_store();

    write_word(say, take_key(store, 7, HF_EXCLUSIVE, 0));
    (void)read_word(hear);
    close_store(store);
}

void wait_for_seven(int hear, int say)
{
    hf__backend *store = open_store();

    write_word(say, take_key(store, 7, HF_EXCLUSIVE, -1));
    (void)read_word(hear);
    close_store(store);
}

int64_t next_token(hf__backend *store)
{
    hf__claim claim = claim_of(99, HF_EXCLUSIVE);
    hf__request request;
    hf_error err;

    if (take(store, &request, &claim, 1, 0, &err) != HF_OK)
        fail_msg("%s", err.message);
    assert_int_equal(give_back(&request, &err), HF_OK);
    return request.token;
}
