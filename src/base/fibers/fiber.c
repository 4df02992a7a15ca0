#include "base/fibers/fiber.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HF__THREAD_SANITIZER
#elif __has_feature(address_sanitizer)
#define HF__ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__)
#define HF__THREAD_SANITIZER
#elif defined(__SANITIZE_ADDRESS__)
#define HF__ADDRESS_SANITIZER
#endif

#ifdef HF__THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif
#ifdef HF__ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

enum {
    STACK_SIZE = 256 * 1024, /* of address space: memory is taken as it is touched */
    FIRST_ROOM = 64,
};

/* One that can be switched to: a fiber, or the runner's thread. */
struct side {
    ucontext_t context;
    const void *stack;
    size_t stack_size;
    void *fake_stack;
    void *tsan;
};

struct hf__fiber {
    struct side side;
    hf__fibers *runner;
    hf__fiber *next; /* in the runner's list */
    char *memory;    /* the stack, below it a page that nobody may touch */
    void (*run)(void *arg);
    void *arg;
    void (*outside)(void *arg); /* to be called by the runner; NULL: none */
    void *outside_arg;
    int64_t local;
    bool ended;

    /* what it waits for */
    struct pollfd *fds;
    nfds_t count;
    int ready;
    int64_t until;
    bool woken; /* runner->mutex */
    bool due;

    /* in the list of a condition, under its mutex */
    hf__cond *cond;
    hf__fiber *next_waiting;
};

struct hf__fibers {
    pthread_t thread;
    int bell;

    pthread_mutex_t mutex;
    hf__fiber *fresh, *last_fresh;
    size_t count;          /* of all fibers */
    struct pollfd *larger; /* to be used from now on; NULL: what there is suffices */
    size_t room;           /* of the larger ones, in fibers */
    bool rung, ending;

    /* the thread's own */
    struct side side;
    hf__fiber *first, *last;
    struct pollfd *pollfds;
};

static _Thread_local hf__fiber *running;

/* ---- switching ------------------------------------------------------------------------------- */

static void arrive(struct side *at, struct side *from)
{
#ifdef HF__ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(at->fake_stack, from ? &from->stack : NULL,
                                    from ? &from->stack_size : NULL);
#else
    (void)at, (void)from;
#endif
}

/* last: from is left for ever. */
static void switch_sides(struct side *from, struct side *to, bool last)
{
#ifdef HF__ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(last ? NULL : &from->fake_stack, to->stack, to->stack_size);
#endif
#ifdef HF__THREAD_SANITIZER
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
    (void)last;
    (void)swapcontext(&from->context, &to->context);
    arrive(from, NULL);
}

static void to_runner(hf__fiber *fiber)
{
    switch_sides(&fiber->side, &fiber->runner->side, fiber->ended);
}

static void begin(void)
{
    hf__fiber *fiber = running;
    arrive(&fiber->side, &fiber->runner->side);
    fiber->run(fiber->arg);
    fiber->ended = true;
    to_runner(fiber);
}

static void resume(hf__fiber *fiber)
{
    for (;;) {
        running = fiber;
        switch_sides(&fiber->runner->side, &fiber->side, false);
        running = NULL;
        if (!fiber->outside)
            return;
        fiber->outside(fiber->outside_arg);
        fiber->outside = NULL;
    }
}

static void park(hf__fiber *fiber, struct pollfd *fds, nfds_t count, int64_t until)
{
    fiber->fds = fds;
    fiber->count = count;
    fiber->until = until;
    fiber->ready = 0;
    to_runner(fiber);
    fiber->fds = NULL;
    fiber->count = 0;
}

int64_t *hf__fiber_local(void)
{
    return running ? &running->local : NULL;
}

void hf__call_outside(void (*call)(void *arg), void *arg)
{
    hf__fiber *fiber = running;
    if (!fiber) {
        call(arg);
        return;
    }
    fiber->outside_arg = arg;
    fiber->outside = call;
    to_runner(fiber);
}

/* ---- fibers ---------------------------------------------------------------------------------- */

static void free_fiber(hf__fiber *fiber)
{
#ifdef HF__THREAD_SANITIZER
    if (fiber->side.tsan)
        __tsan_destroy_fiber(fiber->side.tsan);
#endif
    if (fiber->memory)
        (void)munmap(fiber->memory, STACK_SIZE + (size_t)sysconf(_SC_PAGESIZE));
    free(fiber);
}

static bool prepare(struct side *side, char *stack)
{
    side->stack = stack;
    side->stack_size = STACK_SIZE;
    if (getcontext(&side->context) != 0)
        return false;
    /* A switch sets the mask of the thread. That of whoever starts the fiber would let the runner
     * take the program's signals, and SIGCHLD would be lost with it. */
    sigfillset(&side->context.uc_sigmask);
    side->context.uc_stack.ss_sp = stack;
    side->context.uc_stack.ss_size = STACK_SIZE;
    makecontext(&side->context, begin, 0);
    return true;
}

static hf__fiber *new_fiber(hf__fibers *fibers, void (*run)(void *arg), void *arg)
{
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    hf__fiber *fiber = calloc(1, sizeof *fiber);
    if (!fiber)
        return NULL;
    void *memory = mmap(NULL, STACK_SIZE + guard, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        free(fiber);
        return NULL;
    }
    fiber->memory = memory;
    if (mprotect(memory, guard, PROT_NONE) != 0 || !prepare(&fiber->side, fiber->memory + guard)) {
        free_fiber(fiber);
        return NULL;
    }
#ifdef HF__THREAD_SANITIZER
    fiber->side.tsan = __tsan_create_fiber(0);
#endif
    fiber->runner = fibers;
    fiber->run = run;
    fiber->arg = arg;
    return fiber;
}

/* Mutex held. */
static void ring(hf__fibers *fibers)
{
    uint64_t one = 1;
    if (!fibers->rung)
        (void)!write(fibers->bell, &one, sizeof one);
    fibers->rung = true;
}

/* Mutex held. One more fiber can wait. */
static bool make_room(hf__fibers *fibers)
{
    if (fibers->count < fibers->room)
        return true;
    size_t room = fibers->room ? 2 * fibers->room : FIRST_ROOM;
    struct pollfd *larger = calloc(1 + room * HF__FIBER_FDS, sizeof *larger);
    if (!larger)
        return false;
    free(fibers->larger);
    fibers->larger = larger;
    fibers->room = room;
    return true;
}

int hf__fiber_start(hf__fibers *fibers, void (*run)(void *arg), void *arg)
{
    hf__fiber *fiber = new_fiber(fibers, run, arg);
    if (!fiber)
        return ENOMEM;
    pthread_mutex_lock(&fibers->mutex);
    bool has_room = make_room(fibers);
    if (has_room) {
        fibers->count++;
        if (fibers->last_fresh)
            fibers->last_fresh->next = fiber;
        else
            fibers->fresh = fiber;
        fibers->last_fresh = fiber;
        ring(fibers);
    }
    pthread_mutex_unlock(&fibers->mutex);
    if (!has_room)
        free_fiber(fiber);
    return has_room ? 0 : ENOMEM;
}

/* ---- the runner ------------------------------------------------------------------------------ */

/* Takes in what others have done, and says who goes on. False: all have returned, and shall. */
static bool look_around(hf__fibers *fibers)
{
    int64_t now = hf__now_ms();
    uint64_t ignored;
    pthread_mutex_lock(&fibers->mutex);
    if (fibers->rung)
        (void)!read(fibers->bell, &ignored, sizeof ignored);
    fibers->rung = false;
    if (fibers->larger) {
        free(fibers->pollfds);
        fibers->pollfds = fibers->larger;
        fibers->larger = NULL;
    }
    if (fibers->fresh) {
        if (fibers->last)
            fibers->last->next = fibers->fresh;
        else
            fibers->first = fibers->fresh;
        fibers->last = fibers->last_fresh;
        fibers->fresh = fibers->last_fresh = NULL;
    }
    /* A fresh one waits until 0. */
    for (hf__fiber *fiber = fibers->first; fiber; fiber = fiber->next) {
        fiber->due = fiber->woken || fiber->ready != 0 || fiber->until <= now;
        fiber->woken = false;
    }
    bool goes_on = fibers->first || !fibers->ending;
    pthread_mutex_unlock(&fibers->mutex);
    return goes_on;
}

static void run_due(hf__fibers *fibers)
{
    hf__fiber **at = &fibers->first, *previous = NULL;
    while (*at) {
        hf__fiber *fiber = *at;
        if (fiber->due)
            resume(fiber);
        if (!fiber->ended) {
            previous = fiber;
            at = &fiber->next;
            continue;
        }
        *at = fiber->next;
        if (fibers->last == fiber)
            fibers->last = previous;
        free_fiber(fiber);
        pthread_mutex_lock(&fibers->mutex);
        fibers->count--;
        if (fibers->ending)
            ring(fibers); /* to look whether this was the last */
        pthread_mutex_unlock(&fibers->mutex);
    }
}

static void await_events(hf__fibers *fibers)
{
    struct pollfd *pollfds = fibers->pollfds;
    int64_t until = HF__FOREVER;
    nfds_t count = 0;
    pollfds[count++] = (struct pollfd){.fd = fibers->bell, .events = POLLIN};
    for (const hf__fiber *fiber = fibers->first; fiber; fiber = fiber->next) {
        for (nfds_t i = 0; i < fiber->count; i++)
            pollfds[count++] = fiber->fds[i];
        if (fiber->until < until)
            until = fiber->until;
    }
    if (poll(pollfds, count, hf__left_ms(until)) <= 0)
        return;
    count = 1;
    for (hf__fiber *fiber = fibers->first; fiber; fiber = fiber->next)
        for (nfds_t i = 0; i < fiber->count; i++) {
            fiber->fds[i].revents = pollfds[count++].revents;
            fiber->ready += fiber->fds[i].revents != 0;
        }
}

static void *drive(void *arg)
{
    hf__fibers *fibers = arg;
#ifdef HF__THREAD_SANITIZER
    fibers->side.tsan = __tsan_get_current_fiber();
#endif
    while (look_around(fibers)) {
        run_due(fibers);
        await_events(fibers);
    }
    return NULL;
}

int hf__fibers_new(hf__fibers **out)
{
    hf__fibers *fibers = calloc(1, sizeof *fibers);
    if (!fibers)
        return ENOMEM;
    pthread_mutex_init(&fibers->mutex, NULL);
    fibers->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int failed = fibers->bell < 0 ? errno : 0;
    if (!failed && !make_room(fibers))
        failed = ENOMEM;
    if (!failed)
        failed = hf__thread_start(&fibers->thread, 0, drive, fibers);
    if (!failed) {
        *out = fibers;
        return 0;
    }
    if (fibers->bell >= 0)
        close(fibers->bell);
    free(fibers->larger);
    pthread_mutex_destroy(&fibers->mutex);
    free(fibers);
    return failed;
}

void hf__fibers_end(hf__fibers *fibers)
{
    if (!fibers)
        return;
    pthread_mutex_lock(&fibers->mutex);
    fibers->ending = true;
    ring(fibers);
    pthread_mutex_unlock(&fibers->mutex);
    (void)pthread_join(fibers->thread, NULL);
    close(fibers->bell);
    free(fibers->larger);
    free(fibers->pollfds);
    pthread_mutex_destroy(&fibers->mutex);
    free(fibers);
}

/* ---- waiting --------------------------------------------------------------------------------- */

void hf__cond_init(hf__cond *cond)
{
    *cond = (hf__cond)HF__COND_INITIALIZER;
}

void hf__cond_destroy(hf__cond *cond)
{
    pthread_cond_destroy(&cond->threads);
}

static void wake_first(hf__cond *cond)
{
    hf__fiber *fiber = cond->first;
    cond->first = fiber->next_waiting;
    if (!cond->first)
        cond->last = NULL;
    fiber->cond = NULL;
    pthread_mutex_lock(&fiber->runner->mutex);
    fiber->woken = true;
    ring(fiber->runner);
    pthread_mutex_unlock(&fiber->runner->mutex);
}

void hf__cond_signal(hf__cond *cond)
{
    pthread_cond_signal(&cond->threads);
    if (cond->first)
        wake_first(cond);
}

void hf__cond_broadcast(hf__cond *cond)
{
    pthread_cond_broadcast(&cond->threads);
    while (cond->first)
        wake_first(cond);
}

static void enter_line(hf__cond *cond, hf__fiber *fiber)
{
    fiber->cond = cond;
    fiber->next_waiting = NULL;
    if (cond->last)
        cond->last->next_waiting = fiber;
    else
        cond->first = fiber;
    cond->last = fiber;
}

static void leave_line(hf__cond *cond, hf__fiber *fiber)
{
    hf__fiber **at = &cond->first, *previous = NULL;
    while (*at != fiber) {
        previous = *at;
        at = &(*at)->next_waiting;
    }
    *at = fiber->next_waiting;
    if (cond->last == fiber)
        cond->last = previous;
    fiber->cond = NULL;
}

bool hf__cond_wait(hf__cond *cond, pthread_mutex_t *mutex, int64_t until)
{
    hf__fiber *fiber = running;
    if (!fiber) {
        struct timespec at = hf__timespec(until);
        return pthread_cond_clockwait(&cond->threads, mutex, CLOCK_MONOTONIC, &at) == 0;
    }
    enter_line(cond, fiber);
    pthread_mutex_unlock(mutex);
    park(fiber, NULL, 0, until);
    pthread_mutex_lock(mutex);
    bool signalled = fiber->cond == NULL;
    if (!signalled)
        leave_line(cond, fiber);
    /* From here on nobody knows the fiber, and a signal that came with the time is taken in. */
    pthread_mutex_lock(&fiber->runner->mutex);
    fiber->woken = false;
    pthread_mutex_unlock(&fiber->runner->mutex);
    return signalled;
}

int hf__poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    hf__fiber *fiber = running;
    if (!fiber)
        return poll(fds, count, timeout_ms);
    park(fiber, fds, count, hf__deadline(timeout_ms));
    return fiber->ready;
}
