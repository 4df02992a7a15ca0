/* Counts of what happened, under names that the registry gives: nobody else's may become a label. */
#include "programs/view/parts.h"

#include <stdlib.h>
#include <string.h>

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
    /* The registry keeps its entries in one array, each at the head of what it knows of it. */
    size_t index = (size_t)(hf__entry_of(entry) - hf__entry_of(counters->locks[0].entry));
    return index < other ? index : other;
}

/* ---- words --------------------------------------------------------------------------------------- */

#define X(word) #word,
static const char *const outcomes[] = {HF__OUTCOMES(X)};
static const char *const losses[] = {HF__LOSSES(X)};
static const char *const exits[] = {HF__EXITS(X)};
#undef X

/* count when it is none of them. */
static size_t find_word(const char *const *words, size_t count, const char *word)
{
    size_t at = 0;
    while (at < count && strcmp(words[at], word) != 0)
        at++;
    return at;
}

/* The last word stands for all that are not known. */
static size_t find_reason(const char *const *words, size_t count, const char *word)
{
    size_t at = find_word(words, count, word);
    return at < count ? at : count - 1;
}

/* ---- events -------------------------------------------------------------------------------------- */

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

/* ---- a snapshot's meters ------------------------------------------------------------------------- */

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

static void show_tables(const hf__counters *counters, hf__draft *draft)
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

void hf__counters_show(const hf__counters *counters, hf__draft *draft)
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
