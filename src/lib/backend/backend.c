#include "lib/backend/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "lib/backend/attempt.h"

/* Numbers of tasks are the caller's. This keeps them apart from those of threads. */
static const int64_t task_bit = INT64_C(1) << 62;
static _Thread_local int64_t acts_as;

int64_t hf__me(void)
{
    return acts_as ? acts_as : gettid();
}

int64_t hf__me_or(int64_t task)
{
    return task ? task | task_bit : hf__me();
}

int64_t hf__act_as(int64_t me)
{
    int64_t before = acts_as;
    acts_as = me;
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
    case HF__EVENT_LOST: return "lost";
    case HF__EVENT_RELEASED: return "released";
    case HF__EVENT_NOTED: return event->name;
    }
    return "unknown";
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
    backend->log(backend->log_arg, level, message);
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
                 "waiting for %s is a deadlock: its holder waits for what this thread holds",
                 hf__claim_name(name, sizeof name, claim));
    hf__hint(err, "release what this thread holds and try again, or take the locks in one order");
    return status;
}
