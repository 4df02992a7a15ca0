#include "lib/backend/backend.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fibers/fiber.h"
#include "base/process.h"
#include "base/text.h"
#include "lib/backend/attempt.h"

/* Numbers of tasks are the caller's. This keeps them apart from those of threads. */
static const int64_t task_bit = INT64_C(1) << 62;
static _Thread_local int64_t acts_as;

static int64_t *acts_here(void)
{
    int64_t *of_fiber = hf__fiber_local();
    return of_fiber ? of_fiber : &acts_as;
}

int64_t hf__me(void)
{
    int64_t acting = *acts_here();
    return acting ? acting : hf__own_tid();
}

int64_t hf__me_or(int64_t task)
{
    return task ? task | task_bit : hf__me();
}

int64_t hf__act_as(int64_t me)
{
    int64_t *here = acts_here(), before = *here;
    *here = me;
    return before;
}

int64_t hf__task_of(int64_t me)
{
    return me & task_bit ? me & ~task_bit : 0;
}

hf_status hf__check_task(int64_t task, hf_error *err)
{
    if (task >= 0 && task < task_bit)
        return HF_OK;
    return hf__fail(err, HF_INVALID, "the owner %lld is not between 0 and 2^62 - 1",
                    (long long)task);
}

bool hf__session_lose(hf__session *session, const char *reason, const hf_error *why)
{
    bool expected = false;
    if (!atomic_compare_exchange_strong(&session->losing, &expected, true))
        return false;
    if (why)
        session->why = *why;
    session->reason = reason;
    atomic_store(&session->lost, true);
    session->backend->ops->wake(session->backend);
    return true;
}

static void lose_late(hf__session *session)
{
    hf_error why = {0};
    (void)!hf__fail(&why, HF_LOST, "%s has confirmed no renewal in time", session->backend->name);
    hf__hint(&why, "another may hold it soon; stop, then acquire again");
    (void)hf__session_lose(session, "lease", &why);
}

bool hf__session_is_lost(hf__session *session)
{
    int64_t lost_at = atomic_load(&session->lost_at);
    if (lost_at && hf__boot_ms() >= lost_at) {
        lose_late(session);
        while (!atomic_load(&session->lost)) /* another thread is about to say why */
            (void)sched_yield();
    }
    return atomic_load(&session->lost);
}

int64_t hf__answer_due(const hf__request *request, int64_t longest_ms)
{
    enum {
        LEAST_MS = 1000, /* a healthy store that is busy answers within that */
        SLACK_MS = 500,  /* a wait in the store ends with the caller's; this is for its answer */
    };
    bool waits = request->deadline > request->began;
    int64_t least = request->began + (waits ? LEAST_MS : longest_ms);
    int64_t until =
        request->deadline < HF__FOREVER - SLACK_MS ? request->deadline + SLACK_MS : HF__FOREVER;
    return until > least ? until : least;
}

void hf__question_forget(hf__question *question)
{
    if (question->rows)
        question->rows->ops->free(question->rows);
    question->rows = NULL;
}

const char *hf__event_name(const hf__event *event)
{
    switch (event->kind) {
    case HF__EVENT_ACQUIRED: return "acquired";
    case HF__EVENT_CONFLICT: return "conflict";
    case HF__EVENT_TIMEOUT: return "timeout";
    case HF__EVENT_DEADLOCK: return "deadlock";
    case HF__EVENT_LOST: return "lost";
    case HF__EVENT_RELEASED: return "released";
    case HF__EVENT_NOTED: return event->name;
    }
    return "unknown";
}

struct entry {
    const hf__backend *backend;
    hf_log_level level;
    const char *message;
};

static void write_entry(void *arg)
{
    const struct entry *entry = arg;
    entry->backend->log(entry->backend->log_arg, entry->level, entry->message);
}

void hf__log(const hf__backend *backend, hf_log_level level, const char *format, ...)
{
    if (!backend->log)
        return;
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    struct entry entry = {backend, level, message};
    hf__call_outside(write_entry, &entry);
}

const char *hf__claim_name(char *out, size_t out_size, const hf__claim *claim)
{
    char shown[160];
    if (claim->label)
        (void)snprintf(out, out_size, "'%s'",
                       hf__show(shown, sizeof shown, claim->label, claim->label_size));
    else if (claim->space == HF_PAIR)
        (void)snprintf(out, out_size, "key (%d, %d)", (int)(claim->key >> 32),
                       (int)(int32_t)(uint32_t)claim->key);
    else
        (void)snprintf(out, out_size, "key %lld", (long long)claim->key);
    return out;
}

bool hf__may_pass(const hf_error *failure)
{
    static const char *const final[] = {"28", "3D", "42"}; /* classes of SQLSTATEs */
    if (failure->code == HF_CONFIG)
        return strcmp(failure->sqlstate, "25006") == 0; /* a standby, which may be promoted */
    if (failure->code != HF_UNREACHABLE)
        return false;
    for (size_t i = 0; i < sizeof final / sizeof *final; i++)
        if (strncmp(failure->sqlstate, final[i], 2) == 0)
            return false;
    return true;
}

hf_status hf__say_deadlock(const hf__claim *claim, hf_error *err)
{
    char name[200];
    hf_status status =
        hf__fail(err, HF_DEADLOCK,
                 "waiting for %s is a deadlock: its holder waits for what the caller holds",
                 hf__claim_name(name, sizeof name, claim));
    hf__hint(err, "release what the caller holds and try again, or take the locks in one order");
    return status;
}
