/* What was filled and what was not: counted as it comes, put in order at the end. */
#include <stdlib.h>
#include <string.h>

#include "programs/ingest/backfill_parts.h"

/* Mutex held. */
static void *room_for_one(void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    size_t wanted = *room ? *room * 2 : 64;
    void *grown = realloc(items, wanted * size);
    if (grown)
        *room = wanted;
    return grown;
}

void backfill_count(struct backfill *fill, hf_range range, int64_t transactions, int64_t known)
{
    pthread_mutex_lock(&fill->mutex);
    hf_range *grown =
        room_for_one(fill->filled, fill->filled_count, &fill->filled_room, sizeof range);
    if (grown) {
        fill->filled = grown;
        grown[fill->filled_count++] = range;
    }
    fill->report->ledgers += range.to - range.from + 1 - known;
    fill->report->transactions += transactions;
    fill->report->known += known;
    fill->progressed = true;
    pthread_cond_broadcast(&fill->changed);
    pthread_mutex_unlock(&fill->mutex);
}

/* True: the range goes on where that failure ends, for the same reason. */
static bool join(struct hf__backfill_failure *last, hf_range range, const hf_error *why)
{
    if (range.from < last->range.from || range.from > last->range.to + 1 ||
        strcmp(last->why.message, why->message) != 0)
        return false;
    if (range.to > last->range.to)
        last->range.to = range.to;
    return true;
}

static void add_failure(struct backfill *fill, hf_range range, const hf_error *why)
{
    struct hf__backfill_report *report = fill->report;
    if (report->failure_count > 0 && join(&report->failures[report->failure_count - 1], range, why))
        return;
    struct hf__backfill_failure *grown =
        room_for_one(report->failures, report->failure_count, &fill->failure_room, sizeof *grown);
    if (!grown)
        return;
    report->failures = grown;
    grown[report->failure_count++] = (struct hf__backfill_failure){range, *why};
}

void backfill_fail(struct backfill *fill, hf_range range, const hf_error *why)
{
    if (range.from > range.to)
        return;
    pthread_mutex_lock(&fill->mutex);
    add_failure(fill, range, why);
    pthread_mutex_unlock(&fill->mutex);
}

size_t backfill_find_missing(const struct backfill *fill, int64_t sequence)
{
    size_t low = 0, high = fill->missing.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fill->missing.items[middle].to < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int by_start(const void *a, const void *b)
{
    const hf_range *first = a, *second = b; /* also a failure's first member */
    return first->from < second->from ? -1 : first->from > second->from;
}

/* What was not even tried after source or store had been away for too long. */
static void report_left(struct backfill *fill)
{
    for (size_t i = 0; fill->gave_up && i < fill->plan.count; i++) {
        struct job job = {.first = i, .count = 1};
        hf_range cell = plan_range(&fill->plan, &job);
        if (fill->plan.cells[i].state == CELL_DONE)
            continue;
        for (size_t r = backfill_find_missing(fill, cell.from);
             r < fill->missing.count && fill->missing.items[r].from <= cell.to; r++) {
            const hf_range *range = &fill->missing.items[r];
            backfill_fail(fill,
                          (hf_range){range->from > cell.from ? range->from : cell.from,
                                     range->to < cell.to ? range->to : cell.to},
                          &fill->why);
        }
    }
}

/* Neighbours that failed for the same reason are one. */
static void join_failures(struct hf__backfill_report *report)
{
    size_t kept = 0;
    qsort(report->failures, report->failure_count, sizeof *report->failures, by_start);
    for (size_t i = 0; i < report->failure_count; i++) {
        const struct hf__backfill_failure *next = &report->failures[i];
        if (kept == 0 || !join(&report->failures[kept - 1], next->range, &next->why))
            report->failures[kept++] = *next;
    }
    report->failure_count = kept;
}

void backfill_complete_report(struct backfill *fill)
{
    struct hf__backfill_report *report = fill->report;
    report_left(fill);
    if (report->failure_count > 0)
        join_failures(report);
    if (fill->filled_count > 0)
        qsort(fill->filled, fill->filled_count, sizeof *fill->filled, by_start);
    for (size_t i = 0; i < fill->filled_count; i++)
        if (!hf__ranges_add(&report->filled, fill->filled[i].from, fill->filled[i].to))
            break; /* the ranges are for people; the count is right without them */
}

void hf__backfill_report_free(struct hf__backfill_report *report)
{
    hf__ranges_free(&report->filled);
    free(report->failures);
    *report = (struct hf__backfill_report){0};
}
