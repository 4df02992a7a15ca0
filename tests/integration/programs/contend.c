/*
 * Several processes with many threads each contend for a few keys in every way there is. What each
 * held, from the grant until before its release, is written down if that release succeeded; no two
 * of these may overlap that exclude each other. Usage: contend URL SECONDS PROCESSES THREADS
 *
 * Prints "running", then "quiet" when all is released while the stores are still open, and goes on
 * when its input ends. Each line of that is a time (from, until: CLOCK_MONOTONIC, ns) in which a
 * session was ended from outside: a key that is passed on inside the process is released without a
 * word to the server, so that time's holder may not have noticed. Exits with 1 when exclusion was
 * violated, with 4 after an unexpected failure.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "holdfast/holdfast.h"

enum {
    KEYS = 5,
    SEMAPHORE = KEYS,
    SLOTS = 3,
    MOST_HELD = 1000000,
    MOST_STATUS = 32,
    MOST_ENDED = 10000
};
static const int64_t HEARS_WITHIN = 50000000, /* ns, of a grant that came before the end */
    NOTICED_WITHIN = 2000000000;              /* ns, from the end */

struct held {
    int key;
    bool shared;
    int process, thread;
    int64_t from, until; /* ns */
    int64_t token;
};

static struct shared {
    atomic_int quiet;
    atomic_bool go_on;
    atomic_int unexpected;
    atomic_long statuses[MOST_STATUS];
    atomic_size_t count;
    struct held held[MOST_HELD];
} * all;

static const char *const labels[KEYS + 1] = {"contend-0", "contend-1", "contend-2",
                                             "contend-3", "contend-4", "contend-semaphore"};
static hf_store *store;
static int process;
static atomic_bool stop;
static struct end {
    long long from, until; /* ns */
} ended[MOST_ENDED];       /* sessions, by others */
static size_t ended_count;

struct plan {
    hf_target targets[3];
    int keys[3];
    hf_lock_spec spec;
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void on_lost(hf_lock *lock, const hf_error *why, void *arg)
{
    (void)why, (void)arg;
    (void)hf_lock_get_state(lock);
}

static int below(unsigned *seed, int limit)
{
    return rand_r(seed) % limit;
}

static void make_plan(struct plan *plan, unsigned *seed)
{
    static const int waits[] = {0, 3, 40, 400, 3000};
    int kind = below(seed, 10), first = below(seed, KEYS);
    plan->spec = (hf_lock_spec)HF_LOCK_SPEC_INIT;
    plan->spec.wait_ms = waits[below(seed, 5)];
    plan->spec.mode = below(seed, 3) == 0 ? HF_SHARED : HF_EXCLUSIVE;
    plan->spec.on_lost = below(seed, 2) ? on_lost : NULL;
    plan->spec.targets = plan->targets;
    plan->spec.target_count = 1;
    if (kind == 0) {
        first = SEMAPHORE;
        plan->spec.slots = SLOTS;
        plan->spec.mode = HF_EXCLUSIVE;
    } else if (kind <= 2) {
        plan->spec.target_count = 2 + (size_t)below(seed, 2);
    }
    if (kind > 0 && below(seed, 4) == 0)
        plan->spec.flags |= HF_PRIVATE;
    if (kind == 9)
        plan->spec.flags |= HF_REENTRANT;
    for (size_t i = 0; i < plan->spec.target_count; i++) {
        plan->keys[i] = first == SEMAPHORE ? first : (first + (int)i) % KEYS;
        plan->targets[i] = HF_LABEL(labels[plan->keys[i]]);
    }
}

/* Sessions are ended all the time, so these are to be expected; whatever else is a defect. */
static bool expected(hf_status status)
{
    return status == HF_OK || status == HF_NOT_ACQUIRED || status == HF_UNREACHABLE ||
           status == HF_LOST;
}

static void count_status(hf_status status, const char *what, const hf_error *err)
{
    atomic_fetch_add(&all->statuses[(int)status], 1);
    if (expected(status))
        return;
    atomic_fetch_add(&all->unexpected, 1);
    fprintf(stderr, "%s: %s %s [%s]\n", what, hf_status_name(status), err->message, err->sqlstate);
}

static void write_down(const struct plan *plan, int thread, int64_t from, int64_t until,
                       int64_t token)
{
    for (size_t i = 0; i < plan->spec.target_count; i++) {
        size_t at = atomic_fetch_add(&all->count, 1);
        if (at < MOST_HELD)
            all->held[at] = (struct held){
                plan->keys[i], plan->spec.mode == HF_SHARED, process, thread, from, until, token};
    }
}

static void one_round(int thread, unsigned *seed)
{
    struct plan plan;
    hf_lock *lock = NULL, *again = NULL;
    hf_error err = {0};
    int64_t token = 0;

    make_plan(&plan, seed);
    hf_status status = hf_lock_acquire(store, &plan.spec, &lock, &err);
    count_status(status, "acquire", &err);
    if (status != HF_OK) {
        usleep(500);
        return;
    }
    int64_t from = now_ns();
    (void)!hf_lock_token(lock, &token, NULL);
    if (plan.spec.flags & HF_REENTRANT) {
        status = hf_lock_acquire(store, &plan.spec, &again, &err);
        count_status(status, "reenter", &err);
    }
    usleep((useconds_t)(below(seed, 4) ? below(seed, 400) : below(seed, 6000)));
    hf_lock_free(again);
    int64_t until = now_ns();
    status = hf_lock_release(lock, &err);
    count_status(status, "release", &err);
    if (status == HF_OK)
        write_down(&plan, thread, from, until, token);
    hf_lock_free(lock);
}

static void *contend(void *arg)
{
    int thread = (int)(intptr_t)arg;
    unsigned seed = (unsigned)(process * 1000 + thread + 1);
    while (!atomic_load(&stop))
        one_round(thread, &seed);
    return NULL;
}

static int run(const char *url, unsigned seconds, int threads)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_error err = {0};
    pthread_t running[256];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    options.url = url;
    options.application = "contend";
    options.max_waits = 2 + process;
    if (hf_store_open(&options, &store, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    for (int i = 0; i < threads; i++)
        if (pthread_create(&running[i], NULL, contend, (void *)(intptr_t)i) != 0)
            return 2;
    sleep(seconds);
    atomic_store(&stop, true);
    for (int i = 0; i < threads; i++)
        pthread_join(running[i], NULL);
    atomic_fetch_add(&all->quiet, 1);
    while (!atomic_load(&all->go_on))
        usleep(10000);
    hf_store_close(store);
    return 0;
}

static int by_key_and_start(const void *left, const void *right)
{
    const struct held *a = left, *b = right;
    if (a->key != b->key)
        return a->key - b->key;
    return a->from < b->from ? -1 : a->from > b->from;
}

static void report(const struct held *a, const struct held *b)
{
    printf("violated: %s held by %d/%d%s (token %lld), then by %d/%d%s (token %lld) %.3f ms before "
           "its release\n",
           labels[a->key], a->process, a->thread, a->shared ? " shared" : "", (long long)a->token,
           b->process, b->thread, b->shared ? " shared" : "", (long long)b->token,
           (double)(a->until - b->from) / 1e6);
}

/* a's session was ended while a held, before b was granted. */
static bool was_ended(const struct held *a, const struct held *b)
{
    for (size_t i = 0; i < ended_count; i++)
        if (ended[i].from <= b->from && a->from <= ended[i].until + HEARS_WITHIN &&
            a->until - ended[i].until < NOTICED_WITHIN)
            return true;
    return false;
}

/* More than SLOTS holders of the semaphore, or two of a key unless both share it. */
static int violations(struct held *held, size_t count)
{
    int found = 0, unnoticed = 0;
    qsort(held, count, sizeof *held, by_key_and_start);
    for (size_t i = 0; i < count; i++) {
        int at_once = 1;
        for (size_t j = i;
             j-- > 0 && held[j].key == held[i].key && held[i].from - held[j].from < 60000000000;) {
            if (held[j].until <= held[i].from)
                continue;
            bool excludes =
                held[i].key == SEMAPHORE ? ++at_once > SLOTS : !held[j].shared || !held[i].shared;
            if (!excludes)
                continue;
            if (was_ended(&held[j], &held[i]))
                unnoticed++;
            else if (found++ < 10)
                report(&held[j], &held[i]);
            break;
        }
    }
    printf("%d ends of sessions were not noticed in time; ", unnoticed);
    return found;
}

/* A token that was given after an earlier holder had released is greater than that holder's. */
static int stale_tokens(const struct held *held, size_t count)
{
    int found = 0;
    for (size_t i = 1; i < count; i++) {
        const struct held *a = &held[i - 1], *b = &held[i];
        if (a->key == b->key && a->until < b->from && a->token && b->token &&
            b->token <= a->token && !a->shared && !b->shared && a->key != SEMAPHORE) {
            if (found++ < 10)
                printf("token of %s: %lld, then %lld\n", labels[a->key], (long long)a->token,
                       (long long)b->token);
        }
    }
    return found;
}

static int judge(int failed)
{
    size_t count = atomic_load(&all->count);
    if (count > MOST_HELD)
        count = MOST_HELD;
    int broken = violations(all->held, count), stale = stale_tokens(all->held, count);
    printf("%zu held;", count);
    for (int i = 0; i < MOST_STATUS; i++)
        if (atomic_load(&all->statuses[i]))
            printf(" %s %ld", hf_status_name((hf_status)i), atomic_load(&all->statuses[i]));
    printf("; %d violations, %d stale tokens, %d unexpected\n", broken, stale,
           atomic_load(&all->unexpected));
    if (broken || stale)
        return 1;
    if (failed)
        return 3;
    return atomic_load(&all->unexpected) ? 4 : 0;
}

static bool read_ends(void)
{
    char line[64];
    while (ended_count < MOST_ENDED && fgets(line, sizeof line, stdin)) {
        struct end *end = &ended[ended_count++];
        if (sscanf(line, "%lld %lld", &end->from, &end->until) != 2)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    int processes = atoi(argv[3]), threads = atoi(argv[4]), failed = 0;
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || threads > 256)
        return 2;
    puts("running");
    fflush(stdout);
    for (process = 0; process < processes; process++)
        if (fork() == 0)
            exit(run(argv[1], (unsigned)atoi(argv[2]), threads));
    while (atomic_load(&all->quiet) < processes && waitpid(-1, &failed, WNOHANG) == 0)
        usleep(10000);
    if (!failed) {
        puts("quiet");
        fflush(stdout);
        if (!read_ends())
            return 2;
    }
    atomic_store(&all->go_on, true);
    for (int status; wait(&status) > 0;)
        failed |= status;
    if (failed)
        printf("a process ended with %x\n", (unsigned)failed);
    return judge(failed);
}
