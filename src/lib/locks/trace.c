/*
 * Spans of waits, holds and transactions: their ids, which are made when they begin, and telling of
 * them when they have ended. A lock that nobody traces has no struct hf__trace, and costs nothing.
 */
#include "lib/locks/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

enum {
    TRACE_AT = 3, /* "00-", 32 digits, "-", 16 digits, "-", 2 digits */
    TRACE_DIGITS = 32,
    SPAN_AT = TRACE_AT + TRACE_DIGITS + 1,
    SPAN_DIGITS = 16,
    FLAGS_AT = SPAN_AT + SPAN_DIGITS + 1,
    LENGTH = FLAGS_AT + 2,
    SAMPLED = 1,
    KNOWN_FLAGS = 3, /* sampled, and: the trace id is random */
    MOST_LOOKS = 3,
};

_Static_assert(LENGTH + 1 == HF_TRACEPARENT_SIZE, "a traceparent and its NUL");

/* ---- W3C Trace Context ----------------------------------------------------------------------- */

static bool are_digits(const char *text, size_t count)
{
    return strspn(text, "0123456789abcdef") >= count;
}

static bool are_id(const char *text, size_t count)
{
    return are_digits(text, count) && strspn(text, "0") < count;
}

static unsigned flags_of(const char *traceparent)
{
    return (unsigned)strtoul(traceparent + FLAGS_AT, NULL, 16) & KNOWN_FLAGS;
}

/* Later versions may have more behind the flags, and version ff is none. */
static bool is_valid(const char *text)
{
    if (!text || strnlen(text, LENGTH) < LENGTH || !are_digits(text, 2) ||
        strncmp(text, "ff", 2) == 0 || text[2] != '-' || !are_id(text + TRACE_AT, TRACE_DIGITS) ||
        text[SPAN_AT - 1] != '-' || !are_id(text + SPAN_AT, SPAN_DIGITS) ||
        text[FLAGS_AT - 1] != '-' || !are_digits(text + FLAGS_AT, 2))
        return false;
    return text[LENGTH] == '\0' || (text[LENGTH] == '-' && strncmp(text, "00", 2) != 0);
}

static void write_hex(char *out, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
}

/* A new span in the trace of another one. */
static void make_span(char out[HF_TRACEPARENT_SIZE], const char *in, const unsigned char id[8])
{
    memcpy(out, in, HF_TRACEPARENT_SIZE);
    write_hex(out + SPAN_AT, id, SPAN_DIGITS / 2);
}

struct hf__trace *hf__trace_start(const hf_store *store, const char *parent)
{
    unsigned char random[TRACE_DIGITS / 2 + SPAN_DIGITS];
    char base[HF_TRACEPARENT_SIZE];
    bool has_parent = is_valid(parent);
    if (!has_parent && !store->on_span)
        return NULL;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return NULL;
    struct hf__trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return NULL;
    (void)snprintf(base, sizeof base, "00-%.32s-%.16s-%02x",
                   has_parent ? parent + TRACE_AT : "00000000000000000000000000000000",
                   has_parent ? parent + SPAN_AT : "0000000000000000",
                   has_parent ? flags_of(parent) : SAMPLED);
    if (has_parent)
        memcpy(trace->parent, base, sizeof base);
    else
        write_hex(base + TRACE_AT, random, TRACE_DIGITS / 2);
    make_span(trace->own, base, random + TRACE_DIGITS / 2);
    make_span(trace->wait, base, random + TRACE_DIGITS / 2 + SPAN_DIGITS / 2);
    trace->told = store->on_span && (flags_of(base) & SAMPLED);
    trace->began_ns = trace->acquired_ns = hf__now_ns();
    trace->to_wall_ns = hf__wall_ns() - trace->began_ns;
    return trace;
}

/* ---- who is waited for ----------------------------------------------------------------------- */

void hf__trace_holder(struct hf__trace *trace, const hf__holder *holder)
{
    if (trace && is_valid(holder->traceparent) && !trace->link[0])
        memcpy(trace->link, holder->traceparent, sizeof trace->link);
}

bool hf__trace_look(void *arg)
{
    struct acquiring *acquiring = arg;
    struct hf__trace *trace = acquiring->lock->trace;
    hf__holder holder;
    if (trace->waited && !trace->link[0] && trace->looks++ < MOST_LOOKS) {
        hf__find_holder(acquiring->store, &trace->awaited, &holder);
        hf__trace_holder(trace, &holder);
    }
    return acquiring->give_up && acquiring->give_up(acquiring->give_up_arg);
}

/* ---- telling --------------------------------------------------------------------------------- */

struct hf__told {
    hf_span span;
    char traceparent[HF_TRACEPARENT_SIZE], parent[HF_TRACEPARENT_SIZE], link[HF_TRACEPARENT_SIZE];
    char label[];
};

static hf_span span_of(const struct hf__trace *trace, hf_span_kind kind, const hf__claim *claim,
                       hf_status status)
{
    hf_span span = {.kind = kind,
                    .status = status,
                    .start_ns = trace->to_wall_ns + trace->began_ns,
                    .end_ns = trace->to_wall_ns + hf__now_ns(),
                    .traceparent = trace->own,
                    .parent = trace->parent,
                    .link = trace->link};
    if (claim) {
        span.label = claim->label;
        span.label_size = claim->label_size;
        span.key = claim->key;
        span.space = claim->space;
        span.mode = claim->mode;
    }
    return span;
}

struct hf__told *hf__wait_span(struct acquiring *acquiring, hf_status status)
{
    const struct hf_lock *lock = acquiring->lock;
    struct hf__trace *trace = lock->trace;
    if (!trace)
        return NULL;
    trace->acquired_ns = hf__now_ns();
    if (!trace->told || (status == HF_OK && !trace->waited))
        return NULL;
    struct hf__told *told = malloc(sizeof *told + lock->name.label_size + 1);
    if (!told)
        return NULL;
    told->span = span_of(trace, HF_SPAN_WAIT, &lock->name, status);
    told->span.end_ns = trace->to_wall_ns + trace->acquired_ns;
    told->span.traceparent = memcpy(told->traceparent, trace->wait, sizeof trace->wait);
    told->span.parent = memcpy(told->parent, trace->parent, sizeof trace->parent);
    told->span.link = memcpy(told->link, trace->link, sizeof trace->link);
    if (lock->name.label) {
        told->span.label = memcpy(told->label, lock->name.label, lock->name.label_size);
        told->label[lock->name.label_size] = '\0';
    }
    return told;
}

void hf__tell_span(const hf_store *store, struct hf__told *told)
{
    if (told)
        store->on_span(&told->span, store->span_arg);
    free(told);
}

void hf__tell_hold(const struct hf_lock *lock, hf_status status)
{
    const struct hf__trace *trace = lock->trace;
    if (!trace || !trace->told)
        return;
    hf_span span = span_of(trace, HF_SPAN_HOLD, &lock->name, status);
    span.start_ns = trace->to_wall_ns + trace->acquired_ns;
    if (trace->lost_ns)
        span.end_ns = trace->to_wall_ns + trace->lost_ns;
    span.link = "";
    span.slot = lock->slot;
    span.token = lock->token;
    lock->store->on_span(&span, lock->store->span_arg);
}

void hf__tell_transaction(const hf_store *store, const struct hf__trace *trace,
                          const hf__claim *claim, hf_status status)
{
    if (!trace || !trace->told)
        return;
    hf_span span = span_of(trace, HF_SPAN_TRANSACTION, claim, status);
    store->on_span(&span, store->span_arg);
}

const char *hf_lock_traceparent(const hf_lock *lock)
{
    return lock && lock->trace ? lock->trace->own : "";
}
