#include "programs/ingest/reader.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"

enum { MOST_PAUSE_MS = 30000, ITEM_WEIGHT = 256, LOOK_MS = 200 };

struct item {
    struct item *next;
    hf__read read;
    size_t weight;
};

struct hf__reader {
    hf__source_options options;
    char *spec, *network; /* what options point to */
    int64_t from, to;
    size_t memory;
    hf__stop *stop; /* of the whole run */
    hf__stop own;   /* of this reader alone */
    int either;     /* an epoll descriptor, readable when either of the two is set */

    pthread_t thread;
    pthread_mutex_t mutex; /* guards the queue */
    pthread_cond_t changed;
    struct item *first, *last;
    size_t weight; /* bytes in the queue */
    _Atomic int64_t tip;
};

/* ---- the queue ------------------------------------------------------------------------------- */

static bool is_over(const hf__reader *reader)
{
    return hf__stop_is_set(&reader->own) || hf__stop_is_set(reader->stop);
}

void hf__read_free(hf__read *read)
{
    hf__ledger_free(read->ledger);
    hf__bad_ledger_free(&read->bad);
    *read = (hf__read){0};
}

/*
 * Owns the read from here on. Waits for room in the queue, but an empty queue takes a ledger of any
 * size. A stop does not signal the condition, so the wait looks at it every LOOK_MS.
 */
static void push(hf__reader *reader, hf__read *read, size_t weight)
{
    struct item *item = malloc(sizeof *item);
    if (!item) {
        hf__read_free(read);
        return;
    }
    *item = (struct item){.read = *read, .weight = weight + ITEM_WEIGHT};
    pthread_mutex_lock(&reader->mutex);
    while (reader->first && reader->weight + item->weight > reader->memory && !is_over(reader)) {
        struct timespec until = hf__timespec(hf__deadline(LOOK_MS));
        (void)pthread_cond_clockwait(&reader->changed, &reader->mutex, CLOCK_MONOTONIC, &until);
    }
    if (reader->last)
        reader->last->next = item;
    else
        reader->first = item;
    reader->last = item;
    reader->weight += item->weight;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->mutex);
}

hf__read hf__reader_take(hf__reader *reader, int ms)
{
    hf__read read = {.kind = HF__READ_NOTHING};
    int64_t deadline = ms < 0 ? HF__FOREVER : hf__deadline(ms);
    pthread_mutex_lock(&reader->mutex);
    while (!reader->first && hf__left_ms(deadline) != 0 && !hf__stop_is_set(reader->stop)) {
        int64_t look = hf__deadline(LOOK_MS);
        struct timespec until = hf__timespec(look < deadline ? look : deadline);
        (void)pthread_cond_clockwait(&reader->changed, &reader->mutex, CLOCK_MONOTONIC, &until);
    }
    struct item *item = reader->first;
    if (item) {
        reader->first = item->next;
        if (!reader->first)
            reader->last = NULL;
        reader->weight -= item->weight;
        read = item->read;
        pthread_cond_broadcast(&reader->changed);
    }
    pthread_mutex_unlock(&reader->mutex);
    free(item);
    return read;
}

int64_t hf__reader_tip(const hf__reader *reader)
{
    return atomic_load(&reader->tip);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void say(hf__reader *reader, hf__read_kind kind, const hf_error *why)
{
    hf__read read = {.kind = kind};
    if (why)
        read.why = *why;
    push(reader, &read, 0);
}

/* The source's notes go through the queue, as its ledgers do. Their code is HF_OK. */
static void say_note(void *arg, hf_log_level level, const char *message)
{
    hf_error note = {0};
    (void)level;
    (void)snprintf(note.message, sizeof note.message, "%s", message);
    say(arg, HF__READ_NOTE, &note);
}

/* Pauses before the next try. False: reading was stopped. */
static bool pause_after(hf__reader *reader, unsigned *failures, int64_t not_before,
                        const hf_error *why)
{
    hf_error note = *why;
    int ms = hf__backoff_ms(++*failures, MOST_PAUSE_MS);
    int asked = hf__left_ms(not_before);
    ms = asked > ms ? asked : ms;
    (void)!hf__fail(&note, HF_UNREACHABLE, "%s; trying again in %d s", why->message,
                    (ms + 999) / 1000);
    say(reader, HF__READ_NOTE, &note);
    struct pollfd pollfd = {.fd = reader->either, .events = POLLIN};
    (void)poll(&pollfd, 1, ms);
    return !is_over(reader);
}

static bool open_source(hf__reader *reader, hf__source **source)
{
    unsigned failures = 0;
    for (;;) {
        hf_error err = {0};
        hf_status status = hf__source_open(&reader->options, source, &err);
        if (status == HF_OK)
            status = (*source)->ops->seek(*source, reader->from, &err);
        if (status == HF_OK)
            return true;
        hf__source_close(*source);
        *source = NULL;
        if (status == HF_INTERRUPTED || is_over(reader))
            return false;
        if (status != HF_UNREACHABLE) {
            say(reader, HF__READ_FAILED, &err);
            return false;
        }
        if (!pause_after(reader, &failures, 0, &err))
            return false;
    }
}

/* Queues what next gave. False: nothing more is to be read. */
static bool pass_on(hf__reader *reader, hf_status status, hf__ledger *ledger, hf__bad_ledger *bad,
                    const hf_error *err)
{
    hf__read read = {.kind = HF__READ_LEDGER, .ledger = ledger};
    if (status == HF_BAD_DATA) {
        read = (hf__read){.kind = HF__READ_BAD, .bad = *bad, .why = *err};
        *bad = (hf__bad_ledger){0};
        push(reader, &read, read.bad.size);
        return true;
    }
    if (!ledger) {
        say(reader, HF__READ_END, NULL);
        return false;
    }
    bool last = reader->to > 0 && ledger->sequence >= reader->to;
    if (reader->to > 0 && ledger->sequence > reader->to)
        hf__ledger_free(ledger);
    else
        push(reader, &read, ledger->weight);
    if (last)
        say(reader, HF__READ_END, NULL);
    return !last;
}

static void *read_all(void *arg)
{
    hf__reader *reader = arg;
    hf__source *source = NULL;
    unsigned failures = 0;
    bool going_on = open_source(reader, &source);
    while (going_on && !is_over(reader)) {
        hf__ledger *ledger = NULL;
        hf__bad_ledger bad = {0};
        hf_error err = {0};
        hf_status status = source->ops->next(source, &ledger, &bad, &err);
        if (source->tip > 0)
            atomic_store(&reader->tip, source->tip);
        if (status == HF_OK || status == HF_BAD_DATA) {
            failures = 0;
            going_on = pass_on(reader, status, ledger, &bad, &err);
        } else if (status == HF_UNREACHABLE) {
            going_on = pause_after(reader, &failures, source->not_before, &err);
        } else {
            if (status != HF_INTERRUPTED)
                say(reader, HF__READ_FAILED, &err);
            going_on = false;
        }
        hf__bad_ledger_free(&bad);
    }
    hf__source_close(source);
    return NULL;
}

/* ---- start and stop -------------------------------------------------------------------------- */

static void free_reader(hf__reader *reader)
{
    while (reader->first) {
        struct item *next = reader->first->next;
        hf__read_free(&reader->first->read);
        free(reader->first);
        reader->first = next;
    }
    pthread_cond_destroy(&reader->changed);
    pthread_mutex_destroy(&reader->mutex);
    if (reader->either >= 0)
        close(reader->either);
    hf__stop_destroy(&reader->own);
    free(reader->spec);
    free(reader->network);
    free(reader);
}

static hf_status watch_both(hf__reader *reader, hf_error *err)
{
    struct epoll_event event = {.events = EPOLLIN};
    hf_status status = hf__stop_init(&reader->own, err);
    if (status != HF_OK)
        return status;
    reader->either = epoll_create1(EPOLL_CLOEXEC);
    if (reader->either < 0 ||
        epoll_ctl(reader->either, EPOLL_CTL_ADD, reader->stop->fd, &event) != 0 ||
        epoll_ctl(reader->either, EPOLL_CTL_ADD, reader->own.fd, &event) != 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot watch for the end of reading");
    return HF_OK;
}

hf_status hf__reader_start(const hf__source_options *options, int64_t from, int64_t to,
                           size_t memory, hf__stop *stop, hf__reader **out, hf_error *err)
{
    hf__reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return hf__no_memory(err);
    pthread_mutex_init(&reader->mutex, NULL);
    pthread_cond_init(&reader->changed, NULL);
    reader->options = *options;
    reader->spec = strdup(options->spec);
    reader->network = strdup(options->network);
    reader->options.spec = reader->spec;
    reader->options.network = reader->network;
    reader->from = from;
    reader->to = to;
    reader->memory = memory;
    reader->stop = stop;
    reader->own.fd = reader->either = -1;
    hf_status status = watch_both(reader, err);
    reader->options.stop_fd = reader->either;
    reader->options.log = say_note;
    reader->options.log_arg = reader;
    if (status == HF_OK && (!reader->spec || !reader->network ||
                            pthread_create(&reader->thread, NULL, read_all, reader) != 0))
        status = hf__fail(err, HF_NO_MEMORY, "cannot start a thread to read the source");
    if (status != HF_OK) {
        free_reader(reader);
        return status;
    }
    *out = reader;
    return HF_OK;
}

void hf__reader_stop(hf__reader *reader)
{
    if (!reader)
        return;
    hf__stop_set(&reader->own, HF__STOP_ASKED);
    pthread_mutex_lock(&reader->mutex);
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->mutex);
    pthread_join(reader->thread, NULL);
    free_reader(reader);
}
