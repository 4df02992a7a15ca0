/* One refresh: read, then made into a snapshot that nobody changes any more. */
#include "programs/view/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "programs/registry/check.h"
#include "programs/view/rows.h"

enum { REOPEN_MS = 60 * 1000, CONNECT_MS = 5000 };

/* ---- memory -------------------------------------------------------------------------------------- */

/* Reopens later what the caller may have forgotten by then. */
static bool own_options(hf__memory *memory)
{
    hf_store_options *options = &memory->options;
    options->url = strdup(options->url ? options->url : "");
    options->application = strdup(options->application ? options->application : "holdfast");
    if (options->connect_timeout_ms <= 0)
        options->connect_timeout_ms = CONNECT_MS;
    return options->url && options->application;
}

hf_status hf__memory_open(hf__memory *memory, hf_error *err)
{
    hf_status status = HF_OK;
    memory->common = hf__common_new();
    memory->registry = memory->options.registry;
    bool ok = own_options(memory) && memory->common &&
              hf__counters_init(&memory->counters, memory->registry) &&
              hf__history_init(&memory->history, memory->counters.lock_count);
    if (!ok)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    if (memory->registry)
        status = hf__check_registry(memory->registry, -1, &memory->common->findings, err);
    if (status == HF_OK)
        status = hf_store_open(&memory->options, &memory->store, err);
    return status;
}

void hf__memory_clear(hf__memory *memory)
{
    hf__tail_reset(&memory->tail);
    hf__counters_free(&memory->counters);
    hf__history_free(&memory->history);
    hf__networks_clear(&memory->networks);
    hf__tables_clear(&memory->tables);
    hf__common_release(memory->common);
    hf_store_close(memory->store);
    free((void *)(uintptr_t)memory->options.url);
    free((void *)(uintptr_t)memory->options.application);
    *memory = (hf__memory){0};
}

/* The schema is there since a moment ago. One that the store cannot use is not asked for all the time. */
static void reopen(hf__memory *memory)
{
    hf_store *store = NULL;
    hf_error ignored;
    if (memory->options.records == HF_RECORDS_OFF ||
        (memory->reopened_ms > 0 && hf__now_ms() - memory->reopened_ms < REOPEN_MS))
        return;
    memory->reopened_ms = hf__now_ms();
    if (hf_store_open(&memory->options, &store, &ignored) != HF_OK)
        return;
    hf_store_close(memory->store);
    memory->store = store;
}

/* ---- a snapshot ---------------------------------------------------------------------------------- */

static void count_event(void *arg, const hf__kept_event *event)
{
    hf__counters_add(arg, event);
}

static void show_queries(const hf__reading *reading, hf__draft *draft)
{
    hf__snapshot *seen = &draft->seen;
    for (size_t i = 0; reading->queries && i < hf_rows_count(reading->queries); i++) {
        int64_t pid = hf__row_int(reading->queries, i, 0, 0);
        for (size_t p = 0; p < seen->party_count; p++)
            if (seen->parties[p].id == pid)
                seen->parties[p].query =
                    hf__arena_text(&draft->arena, hf__row_text(reading->queries, i, 1));
    }
}

static void worry(const hf__memory *memory, hf__draft *draft, const char *problem)
{
    hf__worries worries = {
        .losses_1h = hf__tail_losses(&memory->tail, hf__wall_ms(), 60),
        .max_lag = memory->max_lag,
        .problem = problem,
    };
    for (size_t i = 0; i < memory->tables.count; i++)
        worries.doubtful += memory->tables.appended[i].doubtful;
    hf__attention_gather(draft, &worries);
}

static hf_status take_records(hf__memory *memory, const hf__reading *reading,
                              const hf__draft *draft, hf_error *err)
{
    bool ok = true;
    if (!reading->events) {
        memory->tail.started = true; /* no history yet: all that comes is new */
        return HF_OK;
    }
    if (reading->history)
        ok = hf__history_load(&memory->history, reading->history, &memory->counters,
                              memory->registry, draft->seen.taken_ms);
    ok = hf__tables_take(&memory->tables, reading) && ok;
    if (!ok)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    return hf__tail_take(&memory->tail, memory->store, reading->events, reading->losses,
                         draft->seen.taken_ms, count_event, &memory->counters, err);
}

static hf_status digest(hf__memory *memory, hf__reading *reading, hf__draft *draft, hf_error *err)
{
    hf_lock_list *list = reading->list;
    reading->list = NULL;
    hf__locks_sort(draft, list, memory->registry);
    hf__graph_draw(draft);
    show_queries(reading, draft);
    hf_status status = take_records(memory, reading, draft, err);
    if (status != HF_OK || draft->arena.broken)
        return status == HF_OK ? hf__fail(err, HF_NO_MEMORY, "out of memory") : status;
    hf__tail_show(&memory->tail, draft);
    hf__networks_show(&memory->networks, reading, draft);
    hf__tables_show(&memory->tables, reading, draft);
    for (size_t i = 0; i < draft->seen.table_count; i++)
        hf__counters_know_table(&memory->counters, draft->seen.tables[i].text);
    hf__counters_show(&memory->counters, draft);
    bool noted = hf__history_note(&memory->history, &draft->seen);
    hf__history_show(&memory->history, draft);
    worry(memory, draft, "");
    return draft->arena.broken || !noted ? hf__fail(err, HF_NO_MEMORY, "out of memory") : HF_OK;
}

static void describe(const hf__memory *memory, hf__draft *draft, uint64_t number)
{
    hf__snapshot *seen = &draft->seen;
    seen->number = number;
    seen->taken_ms = hf__wall_ms();
    seen->store = hf__arena_text(&draft->arena, hf_store_name(memory->store));
    seen->local = hf_store_is_local(memory->store);
    seen->has_records = hf_store_has_records(memory->store);
    seen->findings = memory->registry ? &draft->common->findings : NULL;
}

/* What cannot be written is lost: the views matter more. */
static void keep_history(hf__memory *memory)
{
    if (memory->keep_history && hf_store_has_records(memory->store))
        (void)!hf__history_write(&memory->history, memory->store, NULL);
}

void hf__memory_end(hf__memory *memory, const hf__snapshot *latest)
{
    if (latest->problem[0]) /* nobody waits for a store that is away */
        return;
    hf__history_end(&memory->history, latest);
    keep_history(memory);
}

static void finish(hf__memory *memory, const hf__reading *reading)
{
    keep_history(memory);
    if (reading->schema_appeared)
        reopen(memory);
}

hf_status hf__refresh(hf__memory *memory, uint64_t number, hf__snapshot **snapshot, hf_error *err)
{
    hf__reading reading = {0};
    int64_t began = hf__now_ms();
    hf__draft *draft = hf__draft_new(memory->common);
    if (!draft)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    hf_status status = hf__gather(memory, &reading, err);
    describe(memory, draft, number);
    if (status == HF_OK)
        status = digest(memory, &reading, draft, err);
    draft->seen.took_ms = hf__now_ms() - began;
    if (status == HF_OK) {
        finish(memory, &reading);
        *snapshot = &draft->seen;
    } else {
        hf__snapshot_release(&draft->seen);
    }
    hf__reading_clear(&reading);
    return status;
}

hf__snapshot *hf__repeat(const hf__memory *memory, hf__snapshot *older, uint64_t number,
                         const hf_error *why)
{
    hf__draft *draft = hf__draft_again(older, number);
    if (!draft)
        return NULL;
    hf__snapshot *seen = &draft->seen;
    seen->problem =
        hf__arena_text(&draft->arena, why->message[0] ? why->message : hf_status_text(why->code));
    seen->problem_since_ms = older->problem[0] ? older->problem_since_ms : hf__wall_ms();
    worry(memory, draft, seen->problem);
    return seen;
}
