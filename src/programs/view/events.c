/*
 * The newest events, and what is counted from events.
 *
 * An event's id is assigned before its transaction commits, so a greater id may become visible
 * first. Ids that are missing below the greatest one are asked for again for a while.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/locks/locks.h"
#include "lib/transactions/transactions.h"
#include "programs/view/parts.h"
#include "programs/view/sql.h"
#include "programs/view/view.h"

enum { MISSING_MS = 10 * 60 * 1000, MINUTE_MS = 60 * 1000 };

enum column {
    C_NEWEST,
    C_ID,
    C_AT,
    C_EVENT,
    C_KEY,
    C_SPACE,
    C_SHARED,
    C_TOKEN,
    C_WAIT,
    C_HOLD,
    C_APPLICATION,
    C_HOST,
    C_PID,
    C_DETAIL,
    C_LABEL,
};

/* ---- ids ------------------------------------------------------------------------------------- */

static void expect(hf__tail *tail, int64_t from, int64_t to, int64_t now_ms)
{
    for (int64_t id = from; id < to && tail->missing_count < HF__TAIL_MISSING; id++)
        tail->missing[tail->missing_count++] = (struct hf__missing){id, now_ms};
}

/* Was the id missing? Then it is not any more. */
static bool was_missing(hf__tail *tail, int64_t id)
{
    for (size_t i = 0; i < tail->missing_count; i++)
        if (tail->missing[i].id == id) {
            tail->missing_count--;
            memmove(&tail->missing[i], &tail->missing[i + 1],
                    (tail->missing_count - i) * sizeof *tail->missing);
            return true;
        }
    return false;
}

static void give_up_missing(hf__tail *tail, int64_t now_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < tail->missing_count; i++)
        if (now_ms - tail->missing[i].since_ms < MISSING_MS)
            tail->missing[kept++] = tail->missing[i];
    tail->missing_count = kept;
}

void hf__tail_write_missing(const hf__tail *tail, hf__buf *out)
{
    hf__buf_puts(out, "{");
    for (size_t i = 0; i < tail->missing_count; i++)
        hf__buf_printf(out, "%s%" PRId64, i ? "," : "", tail->missing[i].id);
    hf__buf_puts(out, "}");
}

/* ---- losses ---------------------------------------------------------------------------------- */

static uint32_t *loss_at(hf__tail *tail, int64_t minute)
{
    return &tail->losses[(size_t)(minute % HF__DAY_MINUTES)];
}

/* Clears the minutes that have begun since. */
static void move_losses(hf__tail *tail, int64_t minute)
{
    if (minute - tail->losses_until >= HF__DAY_MINUTES) {
        memset(tail->losses, 0, sizeof tail->losses);
        tail->losses_until = minute;
    }
    while (tail->losses_until < minute)
        *loss_at(tail, ++tail->losses_until) = 0;
}

static void add_losses(hf__tail *tail, int64_t minute, int64_t count)
{
    if (minute > tail->losses_until) /* the store's clock is ahead of ours */
        minute = tail->losses_until;
    if (minute > tail->losses_until - HF__DAY_MINUTES && minute >= 0)
        *loss_at(tail, minute) += (uint32_t)count;
}

uint64_t hf__tail_losses(const hf__tail *tail, int64_t now_ms, int64_t minutes)
{
    uint64_t count = 0;
    int64_t now = now_ms / MINUTE_MS;
    for (int64_t at = tail->losses_until; at > now - minutes && at >= 0; at--)
        if (at > tail->losses_until - HF__DAY_MINUTES)
            count += tail->losses[(size_t)(at % HF__DAY_MINUTES)];
    return count;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void free_event(hf__kept_event *event)
{
    free(event);
}

void hf__tail_reset(hf__tail *tail)
{
    for (size_t i = 0; i < tail->kept_count; i++)
        free_event(tail->kept[i]);
    memset(tail, 0, sizeof *tail);
}

/* Inserts by id and drops the oldest if need be. False: all are newer, and the caller keeps it. */
static bool keep(hf__tail *tail, hf__kept_event *event)
{
    size_t at = tail->kept_count;
    while (at > 0 && tail->kept[at - 1]->event.id > event->event.id)
        at--;
    if (tail->kept_count == HF__EVENTS_SHOWN) {
        if (at == 0)
            return false;
        free_event(tail->kept[0]);
        at--;
        memmove(&tail->kept[0], &tail->kept[1], at * sizeof(hf__kept_event *));
        tail->kept[at] = event;
        return true;
    }
    memmove(&tail->kept[at + 1], &tail->kept[at],
            (tail->kept_count - at) * sizeof(hf__kept_event *));
    tail->kept[at] = event;
    tail->kept_count++;
    return true;
}

static const char *put_text(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*at, text, size);
    *at += size;
    return copy;
}

static hf_status find_name(hf_store *store, const hf_rows *rows, size_t row, const char **label,
                           const hf_registry_entry **entry, hf_error *err)
{
    const hf__lock_entry *owner = NULL;
    const char *found = NULL;
    *label = hf__row_text(rows, row, C_LABEL);
    const hf_lock_view view = {
        .key = hf__row_int(rows, row, C_KEY, 0),
        .space = hf__row_int(rows, row, C_SPACE, 0) == HF_PAIR ? HF_PAIR : HF_BIGINT,
        .label = *label,
    };
    hf_status status = hf__lock_owner(store, &view, &owner, &found, err);
    *entry = owner ? &owner->view : NULL;
    if (found)
        *label = found;
    else if (!(*label)[0] && owner)
        *label = owner->view.name;
    return status;
}

static hf_status read_event(hf_store *store, const hf_rows *rows, size_t row, hf__kept_event **out,
                            hf_error *err)
{
    static const size_t texts[] = {C_EVENT, C_APPLICATION, C_HOST, C_DETAIL};
    const char *label = "";
    const hf_registry_entry *entry = NULL;
    hf_status status = find_name(store, rows, row, &label, &entry, err);
    size_t size = strlen(label) + 1;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        size += strlen(hf__row_text(rows, row, texts[i])) + 1;
    hf__kept_event *kept = status == HF_OK ? malloc(sizeof *kept + size) : NULL;
    if (!kept)
        return status == HF_OK ? hf__no_memory(err) : status;
    char *at = (char *)(kept + 1);
    kept->entry = entry;
    kept->event = (hf__seen_event){
        .id = hf__row_int(rows, row, C_ID, 0),
        .at_ms = hf__row_int(rows, row, C_AT, 0),
        .event = put_text(&at, hf__row_text(rows, row, C_EVENT)),
        .key = hf__row_int(rows, row, C_KEY, 0),
        .space = hf__row_int(rows, row, C_SPACE, 0) == HF_PAIR ? HF_PAIR : HF_BIGINT,
        .mode = hf__row_bool(rows, row, C_SHARED) ? HF_SHARED : HF_EXCLUSIVE,
        .label = put_text(&at, label),
        .name = entry ? entry->name : "",
        .token = hf__row_int(rows, row, C_TOKEN, 0),
        .wait_ms = hf__row_int(rows, row, C_WAIT, -1),
        .hold_ms = hf__row_int(rows, row, C_HOLD, -1),
        .application = put_text(&at, hf__row_text(rows, row, C_APPLICATION)),
        .host = put_text(&at, hf__row_text(rows, row, C_HOST)),
        .pid = (int)hf__row_int(rows, row, C_PID, 0),
        .detail = put_text(&at, hf__row_text(rows, row, C_DETAIL)),
    };
    *out = kept;
    return HF_OK;
}

/* ---- a refresh ------------------------------------------------------------------------------- */

struct taking {
    hf__tail *tail;
    hf_store *store;
    const hf_rows *rows;
    bool first; /* these happened before the start */
    int64_t now_ms;
    hf__new_event_fn *fn;
    void *arg;
};

static hf_status take_row(struct taking *taking, size_t row, hf_error *err)
{
    hf__tail *tail = taking->tail;
    hf__kept_event *event = NULL;
    int64_t id = hf__row_int(taking->rows, row, C_ID, 0);
    if (id <= tail->top && !was_missing(tail, id))
        return HF_OK;
    hf_status status = read_event(taking->store, taking->rows, row, &event, err);
    if (status != HF_OK)
        return status;
    if (id > tail->top) {
        if (!taking->first || row > 0)
            expect(tail, tail->top + 1, id, taking->now_ms);
        tail->top = id;
    }
    if (!taking->first) {
        if (strcmp(event->event.event, "lost") == 0)
            add_losses(tail, event->event.at_ms / MINUTE_MS, 1);
        taking->fn(taking->arg, event);
    }
    if (!keep(tail, event))
        free_event(event);
    return HF_OK;
}

static hf_status take_rows(struct taking *taking, hf_error *err)
{
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(taking->rows); i++)
        if (hf_rows_value(taking->rows, i, C_ID, NULL))
            status = take_row(taking, i, err);
    return status;
}

static void take_losses(hf__tail *tail, const hf_rows *losses)
{
    for (size_t i = 0; i < hf_rows_count(losses); i++)
        add_losses(tail, hf__row_int(losses, i, 0, 0), hf__row_int(losses, i, 1, 0));
}

hf_status hf__tail_take(hf__tail *tail, hf_store *store, const hf_rows *events,
                        const hf_rows *losses, int64_t now_ms, hf__new_event_fn *fn, void *arg,
                        hf_error *err)
{
    struct taking taking = {tail, store, events, !tail->started, now_ms, fn, arg};
    int64_t newest = hf_rows_count(events) > 0 ? hf__row_int(events, 0, C_NEWEST, 0) : 0;
    if (tail->started &&
        newest < tail->top) { /* the history began anew, so the next refresh does too */
        hf__tail_reset(tail);
        return HF_OK;
    }
    move_losses(tail, now_ms / MINUTE_MS);
    if (losses)
        take_losses(tail, losses);
    hf_status status = take_rows(&taking, err);
    give_up_missing(tail, now_ms);
    tail->started = status == HF_OK || tail->started;
    return status;
}

/* By time, not by id: events are written some time after they happen. */
static int by_time(const void *a, const void *b)
{
    const hf__seen_event *left = a, *right = b;
    if (left->at_ms != right->at_ms)
        return left->at_ms < right->at_ms ? 1 : -1;
    return (left->id < right->id) - (left->id > right->id);
}

void hf__tail_show(const hf__tail *tail, hf__view_draft *draft)
{
    hf__snapshot *seen = &draft->seen;
    seen->losses_24h = hf__tail_losses(tail, seen->taken_ms, HF__DAY_MINUTES);
    seen->events = hf__arena_array(&draft->arena, tail->kept_count, sizeof *seen->events);
    for (size_t i = 0; seen->events && i < tail->kept_count; i++) {
        hf__seen_event *event = &seen->events[i];
        *event = tail->kept[tail->kept_count - 1 - i]->event;
        event->event = hf__arena_text(&draft->arena, event->event);
        event->label = hf__arena_text(&draft->arena, event->label);
        event->application = hf__arena_text(&draft->arena, event->application);
        event->host = hf__arena_text(&draft->arena, event->host);
        event->detail = hf__arena_text(&draft->arena, event->detail);
        seen->event_count = i + 1;
    }
    if (seen->events && seen->event_count > 1)
        qsort(seen->events, seen->event_count, sizeof *seen->events, by_time);
}

/* ---- events before those that are kept ------------------------------------------------------- */

enum { PAST_MS = 5000 }; /* the collector waits for it */

struct past {
    const hf__past_events *which;
    hf_rows *rows;
};

static hf_status read_past(hf_tx *tx, void *arg, hf_error *err)
{
    struct past *past = arg;
    const hf__past_events *which = past->which;
    char before[24], from[24], to[24], limit[24];
    const hf_value values[] = {hf__number_value(before, which->before),
                               hf__number_value(from, which->from_ms),
                               hf__number_value(to, which->to_ms),
                               HF_TEXT(which->event),
                               HF_TEXT(which->key),
                               hf__number_value(limit, which->limit)};
    hf_rows_free(past->rows); /* of an attempt before */
    past->rows = NULL;
    return hf__tx_query_sql(tx, &hf__sql_view_past_events, NULL, 6, values, &past->rows, err);
}

hf_status hf__past_events_read(hf_store *store, const hf__past_events *which, hf__put_event_fn *put,
                               void *arg, hf_error *err)
{
    struct past past = {.which = which};
    hf_tx_options options = hf__gather_options();
    hf__kept_event *event = NULL;
    options.deadline_ms = PAST_MS;
    options.max_attempts = 1;
    if (!hf__store_reads_records(store) ||
        (hf_store_is_local(store) && !hf__has_file(store, "holdfast")))
        return HF_OK;
    hf_status status = hf__transact_at(store, HF__PLACE_OWN, &options, read_past, &past, err);
    for (size_t i = 0; status == HF_OK && i < hf_rows_count(past.rows); i++) {
        status = read_event(store, past.rows, i, &event, err);
        if (status == HF_OK) {
            put(arg, &event->event);
            free_event(event);
        }
    }
    hf_rows_free(past.rows);
    return status;
}

/*
 * Counters.
 *
 * They go by names of the registry: a label that anybody may choose must not become the name of a
 * metric.
 */

bool hf__counters_init(hf__counters *counters, const hf_registry *registry)
{
    size_t entries = registry ? hf_registry_count(registry) : 0;
    *counters = (hf__counters){.lock_count = entries + 1};
    counters->locks = calloc(entries + 1, sizeof *counters->locks);
    if (!counters->locks)
        return false;
    for (size_t i = 0; i < entries; i++) {
        const hf_registry_entry *entry = hf_registry_at(registry, i);
        counters->locks[i] = (hf__lock_meter){
            .lock = entry->name, .entry = entry, .has_histogram = entry->histogram};
    }
    counters->locks[entries].lock = HF__OTHER;
    counters->tables[HF__TABLE_METERS].table = HF__OTHER;
    return true;
}

void hf__counters_free(hf__counters *counters)
{
    for (size_t i = 0; i < counters->table_count; i++)
        free((void *)(uintptr_t)counters->tables[i].table);
    free(counters->locks);
    *counters = (hf__counters){0};
}

size_t hf__counters_index(const hf__counters *counters, const hf_registry_entry *entry)
{
    size_t other = counters->lock_count - 1;
    if (!entry || other == 0)
        return other;
    /* The registry has its entries in one array, each at the start of a larger struct. */
    size_t index = (size_t)(hf__entry_of(entry) - hf__entry_of(counters->locks[0].entry));
    return index < other ? index : other;
}

/* ---- words ----------------------------------------------------------------------------------- */

#define X(word) #word,
static const char *const outcomes[] = {HF__OUTCOMES(X)};
static const char *const losses[] = {HF__LOSSES(X)};
static const char *const exits[] = {HF__EXITS(X)};
#undef X

/* The index of the word, or count if it is none of them. */
static size_t find_word(const char *const *words, size_t count, const char *word)
{
    size_t at = 0;
    while (at < count && strcmp(words[at], word) != 0)
        at++;
    return at;
}

/* The last word stands for all others. */
static size_t find_reason(const char *const *words, size_t count, const char *word)
{
    size_t at = find_word(words, count, word);
    return at < count ? at : count - 1;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void observe(hf__histogram *histogram, int64_t ms)
{
    double seconds = (double)ms / 1000;
    size_t bucket = 0;
    if (ms < 0)
        return;
    while (bucket < HF__HISTOGRAM_BUCKETS && seconds > hf__histogram_bounds[bucket])
        bucket++;
    histogram->buckets[bucket]++;
    histogram->count++;
    histogram->sum += seconds;
}

static hf__table_meter *find_table(hf__counters *counters, const char *table)
{
    for (size_t i = 0; i < counters->table_count; i++)
        if (strcmp(counters->tables[i].table, table) == 0)
            return &counters->tables[i];
    char *name = counters->table_count < HF__TABLE_METERS ? strdup(table) : NULL;
    if (!name)
        return &counters->tables[HF__TABLE_METERS];
    counters->tables[counters->table_count].table = name;
    return &counters->tables[counters->table_count++];
}

void hf__counters_know_table(hf__counters *counters, const char *table)
{
    (void)find_table(counters, table);
}

static void count_rows(hf__counters *counters, const hf__seen_event *event)
{
    int64_t rows = strtoll(event->detail, NULL, 10);
    if (rows > 0 && event->label[0])
        find_table(counters, event->label)->rows += (uint64_t)rows;
    else if (rows > 0)
        counters->tables[HF__TABLE_METERS].rows += (uint64_t)rows;
}

void hf__counters_add(hf__counters *counters, const hf__kept_event *kept)
{
    const hf__seen_event *event = &kept->event;
    hf__lock_meter *meter = &counters->locks[hf__counters_index(counters, kept->entry)];
    size_t outcome = find_word(outcomes, HF__OUTCOME_COUNT, event->event);
    bool ends = strcmp(event->event, "released") == 0 || strcmp(event->event, "lost") == 0;
    if (outcome < HF__OUTCOME_COUNT)
        meter->outcomes[outcome]++;
    if (strcmp(event->event, "lost") == 0)
        meter->losses[find_reason(losses, HF__LOSS_COUNT, event->detail)]++;
    if (strcmp(event->event, "exit") == 0)
        meter->exits[find_reason(exits, HF__EXIT_COUNT, event->detail)]++;
    if (strcmp(event->event, "appended") == 0)
        count_rows(counters, event);
    if (!meter->has_histogram)
        return;
    if (outcome == HF__OUTCOME_acquired || outcome == HF__OUTCOME_timeout)
        observe(&meter->wait, event->wait_ms);
    if (ends)
        observe(&meter->hold, event->hold_ms);
}

/* ---- a snapshot's meters --------------------------------------------------------------------- */

static void add_holder(hf__lock_meter *meter, const hf_lock_view *view, int64_t now_ms)
{
    meter->held[view->mode == HF_SHARED ? HF_SHARED : HF_EXCLUSIVE]++;
    if (view->age_ms < 0 || view->age_is_bound)
        return;
    int64_t since = now_ms - view->age_ms;
    if (meter->acquired_ms == 0 || since < meter->acquired_ms)
        meter->acquired_ms = since;
}

static void add_lock(hf__lock_meter *meter, const hf__snapshot *seen, const hf__seen_lock *lock)
{
    for (size_t i = lock->first; i < lock->first + lock->holders; i++)
        add_holder(meter, seen->views[i], seen->taken_ms);
    meter->waiters += lock->waiters;
    if (lock->longest_wait_ms > meter->longest_wait_ms)
        meter->longest_wait_ms = lock->longest_wait_ms;
}

static void show_tables(const hf__counters *counters, hf__view_draft *draft)
{
    hf__snapshot *seen = &draft->seen;
    const hf__table_meter *other = &counters->tables[HF__TABLE_METERS];
    size_t count = counters->table_count;
    hf__table_meter *meters = hf__arena_array(&draft->arena, count + 1, sizeof *meters);
    if (!meters)
        return;
    for (size_t i = 0; i < count; i++)
        meters[i] = (hf__table_meter){hf__arena_text(&draft->arena, counters->tables[i].table),
                                      counters->tables[i].rows};
    if (other->rows > 0)
        meters[count++] = *other;
    seen->table_meters = meters;
    seen->table_meter_count = count;
}

void hf__counters_show(const hf__counters *counters, hf__view_draft *draft)
{
    hf__snapshot *seen = &draft->seen;
    hf__lock_meter *meters = hf__arena_array(&draft->arena, counters->lock_count, sizeof *meters);
    if (!meters)
        return;
    memcpy(meters, counters->locks, counters->lock_count * sizeof *meters);
    for (size_t i = 0; i < seen->lock_count; i++)
        add_lock(&meters[hf__counters_index(counters, seen->locks[i].entry)], seen,
                 &seen->locks[i]);
    seen->meters = meters;
    seen->meter_count = counters->lock_count;
    show_tables(counters, draft);
}
