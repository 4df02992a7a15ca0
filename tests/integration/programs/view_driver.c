/*
 * view_driver URL [registry=FILE] [refresh=MS] [history] [queries] [max_lag=N]: a collector, driven
 * by a command a line on standard input, with an answer a line: "ok JSON" or "STATUS message". See
 * viewing.py.
 *
 *   next AFTER WAIT_MS                  the snapshot as JSON, once its number is greater
 *   spin COUNT                          so many refreshes as fast as they go: what each took, in ms
 *   look THREADS COUNT                  so many threads, each of which looks at so many refreshes
 *   terminate KEY SPACE PARTY TOKEN BY  as a job
 *   pause 0|1 · refresh MS
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "programs/view/view.h"

enum { MOST_WORDS = 6, LINE_SIZE = 1024 };

struct answer {
    pthread_mutex_t mutex;
    pthread_cond_t come;
    bool there;
    hf_status status;
    hf_error err;
    hf__terminate what;
};

/* ---- a snapshot as JSON ---------------------------------------------------------------------- */

static void put_size(hf__json *json, const char *key, size_t value)
{
    if (value == SIZE_MAX)
        hf__json_put_null(json, key);
    else
        hf__json_put_integer(json, key, (int64_t)value);
}

static void put_view(hf__json *json, const hf__snapshot *seen, size_t at)
{
    const hf_lock_view *view = seen->views[at];
    hf__json_begin_object(json, NULL);
    hf__json_put_boolean(json, "waiting", view->waiting);
    hf__json_put_string(json, "mode", view->mode == HF_SHARED ? "shared" : "exclusive");
    hf__json_put_string(json, "application", view->application);
    hf__json_put_string(json, "host", view->host);
    hf__json_put_integer(json, "pid", view->pid);
    hf__json_put_integer(json, "backend_pid", view->backend_pid);
    hf__json_put_integer(json, "age_ms", view->age_ms);
    hf__json_put_integer(json, "token", view->token);
    hf__json_put_boolean(json, "ours", view->ours);
    put_size(json, "party", seen->view_party[at]);
    hf__json_end_object(json);
}

static void put_locks(hf__json *json, const hf__snapshot *seen)
{
    hf__json_begin_array(json, "locks");
    for (size_t i = 0; i < seen->lock_count; i++) {
        const hf__seen_lock *lock = &seen->locks[i];
        hf__json_begin_object(json, NULL);
        hf__json_put_integer(json, "key", lock->key);
        hf__json_put_integer(json, "space", lock->space);
        hf__json_put_string(json, "label", lock->label);
        hf__json_put_string(json, "name", lock->name);
        hf__json_put_boolean(json, "registered", lock->entry != NULL);
        put_size(json, "holders", lock->holders);
        put_size(json, "waiters", lock->waiters);
        hf__json_put_integer(json, "held_ms", lock->held_ms);
        hf__json_put_integer(json, "longest_wait_ms", lock->longest_wait_ms);
        hf__json_begin_array(json, "views");
        for (size_t j = lock->first; j < lock->first + lock->count; j++)
            put_view(json, seen, j);
        hf__json_end_array(json);
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
}

static void put_graph(hf__json *json, const hf__snapshot *seen)
{
    hf__json_begin_array(json, "parties");
    for (size_t i = 0; i < seen->party_count; i++) {
        const hf__seen_party *party = &seen->parties[i];
        hf__json_begin_object(json, NULL);
        hf__json_put_integer(json, "id", party->id);
        hf__json_put_integer(json, "pid", party->pid);
        hf__json_put_string(json, "application", party->application);
        put_size(json, "waits_for", party->waits_for);
        put_size(json, "blockers", party->blockers);
        put_size(json, "blocking", party->blocking);
        put_size(json, "kept", party->kept);
        hf__json_put_boolean(json, "root", party->root);
        hf__json_put_boolean(json, "in_cycle", party->in_cycle);
        hf__json_put_string(json, "query", party->query);
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
    hf__json_begin_array(json, "edges");
    for (size_t i = 0; i < seen->edge_count; i++) {
        hf__json_begin_array(json, NULL);
        put_size(json, NULL, seen->edges[i].waiter);
        put_size(json, NULL, seen->edges[i].holder);
        put_size(json, NULL, seen->edges[i].lock);
        hf__json_end_array(json);
    }
    hf__json_end_array(json);
}

static void put_events(hf__json *json, const hf__snapshot *seen)
{
    hf__json_begin_array(json, "events");
    for (size_t i = 0; i < seen->event_count; i++) {
        const hf__seen_event *event = &seen->events[i];
        hf__json_begin_object(json, NULL);
        hf__json_put_integer(json, "id", event->id);
        hf__json_put_integer(json, "at_ms", event->at_ms);
        hf__json_put_string(json, "event", event->event);
        hf__json_put_integer(json, "key", event->key);
        hf__json_put_string(json, "label", event->label);
        hf__json_put_string(json, "name", event->name);
        hf__json_put_string(json, "detail", event->detail);
        hf__json_put_integer(json, "wait_ms", event->wait_ms);
        hf__json_put_integer(json, "hold_ms", event->hold_ms);
        hf__json_put_string(json, "application", event->application);
        hf__json_put_integer(json, "pid", event->pid);
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
}

static void put_range(hf__json *json, const hf_range *range)
{
    hf__json_begin_array(json, NULL);
    hf__json_put_integer(json, NULL, range->from);
    hf__json_put_integer(json, NULL, range->to);
    hf__json_end_array(json);
}

static void put_maybe(hf__json *json, const char *key, const hf__maybe *maybe)
{
    if (maybe->known)
        hf__json_put_integer(json, key, maybe->value);
    else
        hf__json_put_null(json, key);
}

static void put_networks(hf__json *json, const hf__snapshot *seen)
{
    hf__json_begin_array(json, "networks");
    for (size_t i = 0; i < seen->network_count; i++) {
        const hf__seen_network *network = &seen->networks[i];
        hf__json_begin_object(json, NULL);
        hf__json_put_string(json, "name", network->name);
        hf__json_put_string(json, "problem", network->problem);
        hf__json_put_string(json, "ingester", network->ingester);
        hf__json_put_real(json, "rate", network->rate);
        put_maybe(json, "lag", &network->lag);
        put_maybe(json, "latest", &network->status.latest);
        put_maybe(json, "source_tip", &network->status.source_tip);
        hf__json_begin_array(json, "coverage");
        for (size_t j = 0; j < network->coverage_count; j++)
            put_range(json, &network->coverage[j]);
        hf__json_end_array(json);
        hf__json_begin_array(json, "gaps");
        for (size_t j = 0; j < network->gap_count; j++)
            put_range(json, &network->gaps[j]);
        hf__json_end_array(json);
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
}

static void put_tables(hf__json *json, const hf__snapshot *seen)
{
    hf__json_begin_array(json, "tables");
    for (size_t i = 0; i < seen->table_count; i++) {
        const hf__seen_table *table = &seen->tables[i];
        hf__json_begin_object(json, NULL);
        hf__json_put_string(json, "text", table->text);
        hf__json_put_integer(json, "id", table->id);
        hf__json_put_integer(json, "references", table->references);
        hf__json_put_integer(json, "appends", table->appends);
        hf__json_put_integer(json, "appended_rows", table->appended_rows);
        hf__json_put_integer(json, "last_append_ms", table->last_append_ms);
        hf__json_put_string(json, "state", table->state);
        put_size(json, "lock", table->lock);
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
}

static void put_counts(hf__json *json, const char *key, const uint64_t *counts, size_t count)
{
    hf__json_begin_array(json, key);
    for (size_t i = 0; i < count; i++)
        hf__json_put_integer(json, NULL, (int64_t)counts[i]);
    hf__json_end_array(json);
}

static void put_meters(hf__json *json, const hf__snapshot *seen)
{
    hf__json_begin_array(json, "meters");
    for (size_t i = 0; i < seen->meter_count; i++) {
        const hf__lock_meter *meter = &seen->meters[i];
        hf__json_begin_object(json, NULL);
        hf__json_put_string(json, "lock", meter->lock);
        put_counts(json, "held", meter->held, 2);
        hf__json_put_integer(json, "waiters", (int64_t)meter->waiters);
        hf__json_put_integer(json, "acquired_ms", meter->acquired_ms);
        put_counts(json, "outcomes", meter->outcomes, HF__OUTCOME_COUNT);
        put_counts(json, "losses", meter->losses, HF__LOSS_COUNT);
        put_counts(json, "exits", meter->exits, HF__EXIT_COUNT);
        put_counts(json, "wait", meter->wait.buckets, HF__HISTOGRAM_BUCKETS + 1);
        put_counts(json, "hold", meter->hold.buckets, HF__HISTOGRAM_BUCKETS + 1);
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
    hf__json_begin_object(json, "table_meters");
    for (size_t i = 0; i < seen->table_meter_count; i++)
        hf__json_put_integer(json, seen->table_meters[i].table,
                             (int64_t)seen->table_meters[i].rows);
    hf__json_end_object(json);
}

static void put_heat(hf__json *json, const char *key, const hf__heat_map *map)
{
    hf__json_begin_object(json, key);
    for (size_t i = 0; i < map->count; i++) {
        hf__json_begin_array(json, map->rows[i].lock);
        for (size_t c = 0; c < map->columns; c++) {
            const hf__heat_cell *cell = &map->rows[i].cells[c];
            const uint64_t counts[] = {cell->samples, cell->held, cell->waiters,
                                       (uint64_t)cell->longest_wait_ms};
            put_counts(json, NULL, counts, 4);
        }
        hf__json_end_array(json);
    }
    hf__json_end_object(json);
}

static void put_attention(hf__json *json, const hf__snapshot *seen)
{
    hf__json_begin_array(json, "attention");
    for (size_t i = 0; i < seen->attention_count; i++) {
        hf__json_begin_object(json, NULL);
        hf__json_put_integer(json, "urgency", seen->attention[i].urgency);
        hf__json_put_string(json, "topic", seen->attention[i].topic);
        hf__json_put_string(json, "text", seen->attention[i].text);
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
}

static void put_head(hf__json *json, const hf__snapshot *seen)
{
    hf__json_put_integer(json, "number", (int64_t)seen->number);
    hf__json_put_integer(json, "taken_ms", seen->taken_ms);
    hf__json_put_integer(json, "took_ms", seen->took_ms);
    hf__json_put_string(json, "store", seen->store);
    hf__json_put_boolean(json, "has_records", seen->has_records);
    hf__json_put_string(json, "problem", seen->problem);
    hf__json_put_integer(json, "problem_since_ms", seen->problem_since_ms);
    put_size(json, "held", seen->held);
    put_size(json, "waiting", seen->waiting);
    put_size(json, "unregistered", seen->unregistered);
    hf__json_put_integer(json, "longest_wait_ms", seen->longest_wait_ms);
    hf__json_put_integer(json, "losses_24h", (int64_t)seen->losses_24h);
    hf__json_put_boolean(json, "losses_unknown", seen->losses_unknown);
    hf__json_put_integer(json, "missing_ledgers", seen->missing_ledgers);
    put_size(json, "gaps", seen->gaps);
}

static void say_snapshot(hf__view *view, uint64_t after, int64_t wait_ms)
{
    hf__json json = {0};
    hf__snapshot *seen = hf__view_next(view, after, wait_ms);
    hf__json_begin_object(&json, NULL);
    put_head(&json, seen);
    put_locks(&json, seen);
    put_graph(&json, seen);
    put_events(&json, seen);
    put_networks(&json, seen);
    put_tables(&json, seen);
    put_meters(&json, seen);
    put_heat(&json, "hour", &seen->hour);
    put_heat(&json, "day", &seen->day);
    put_attention(&json, seen);
    hf__json_end_object(&json);
    printf("ok %s\n", json.text.broken ? "" : json.text.data);
    hf__buf_free(&json.text);
    hf__snapshot_release(seen);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void spin(hf__view *view, int64_t count)
{
    hf__json json = {0};
    hf__snapshot *seen = hf__view_latest(view);
    hf__view_set_refresh(view, 0);
    hf__json_begin_array(&json, NULL);
    for (int64_t i = 0; i < count; i++) {
        uint64_t number = seen->number;
        hf__snapshot_release(seen);
        seen = hf__view_next(view, number, -1);
        hf__json_put_integer(&json, NULL, seen->took_ms);
    }
    hf__json_end_array(&json);
    hf__snapshot_release(seen);
    printf("ok %s\n", json.text.broken ? "[]" : json.text.data);
    hf__buf_free(&json.text);
}

struct looker {
    pthread_t thread;
    hf__view *view;
    int64_t count;
};

static void *look(void *arg)
{
    const struct looker *looker = arg;
    hf__snapshot *seen = hf__view_latest(looker->view);
    for (int64_t i = 0; i < looker->count; i++) {
        uint64_t number = seen->number;
        hf__snapshot_release(seen);
        seen = hf__view_next(looker->view, number, -1);
    }
    hf__snapshot_release(seen);
    return NULL;
}

static void look_all(hf__view *view, size_t threads, int64_t count)
{
    struct looker *lookers = calloc(threads, sizeof *lookers);
    size_t started = 0;
    for (; lookers && started < threads; started++) {
        lookers[started] = (struct looker){.view = view, .count = count};
        if (pthread_create(&lookers[started].thread, NULL, look, &lookers[started]) != 0)
            break;
    }
    for (size_t i = 0; i < started; i++)
        pthread_join(lookers[i].thread, NULL);
    free(lookers);
    printf(started == threads ? "ok {}\n" : "HF_SYSTEM cannot start threads\n");
}

static hf_status end_holder(hf_store *store, void *arg, hf_error *err)
{
    return hf__terminate_holder(store, &((struct answer *)arg)->what, err);
}

static void settle(void *arg, hf_status status, const hf_error *err)
{
    struct answer *answer = arg;
    pthread_mutex_lock(&answer->mutex);
    answer->status = status;
    answer->err = *err;
    answer->there = true;
    pthread_cond_signal(&answer->come);
    pthread_mutex_unlock(&answer->mutex);
}

static void terminate(hf__view *view, char *const *words)
{
    struct answer answer = {.mutex = PTHREAD_MUTEX_INITIALIZER, .come = PTHREAD_COND_INITIALIZER};
    answer.what = (hf__terminate){
        .key = strtoll(words[1], NULL, 10),
        .space = strtol(words[2], NULL, 10) == HF_PAIR ? HF_PAIR : HF_BIGINT,
        .party = (int)strtol(words[3], NULL, 10),
        .token = strtoll(words[4], NULL, 10),
        .by = words[5],
    };
    hf_error refused = {0};
    hf_status asked = hf__view_ask(view, end_holder, settle, &answer, &refused);
    if (asked == HF_OK) {
        pthread_mutex_lock(&answer.mutex);
        while (!answer.there)
            pthread_cond_wait(&answer.come, &answer.mutex);
        pthread_mutex_unlock(&answer.mutex);
    }
    pthread_cond_destroy(&answer.come);
    pthread_mutex_destroy(&answer.mutex);
    if (asked != HF_OK)
        printf("%s %s\n", hf_status_name(asked), refused.message);
    else if (answer.status == HF_OK)
        printf("ok {}\n");
    else
        printf("%s %s\n", hf_status_name(answer.status), answer.err.message);
}

static void obey(hf__view *view, char *const *words, size_t count)
{
    if (count == 3 && strcmp(words[0], "next") == 0)
        say_snapshot(view, strtoull(words[1], NULL, 10), strtoll(words[2], NULL, 10));
    else if (count == 2 && strcmp(words[0], "spin") == 0)
        spin(view, strtoll(words[1], NULL, 10));
    else if (count == 3 && strcmp(words[0], "look") == 0)
        look_all(view, strtoull(words[1], NULL, 10), strtoll(words[2], NULL, 10));
    else if (count == 6 && strcmp(words[0], "terminate") == 0)
        terminate(view, words);
    else if (count == 2 && strcmp(words[0], "pause") == 0)
        hf__view_pause(view, words[1][0] == '1'), printf("ok {}\n");
    else if (count == 2 && strcmp(words[0], "refresh") == 0)
        hf__view_set_refresh(view, strtoll(words[1], NULL, 10)), printf("ok {}\n");
    else
        printf("HF_INVALID no such command\n");
    fflush(stdout);
}

static void drive(hf__view *view)
{
    char line[LINE_SIZE];
    while (fgets(line, sizeof line, stdin)) {
        char *words[MOST_WORDS], *rest = NULL;
        size_t count = 0;
        line[strcspn(line, "\n")] = '\0';
        for (char *word = strtok_r(line, " ", &rest); word && count < MOST_WORDS;
             word = strtok_r(NULL, " ", &rest))
            words[count++] = word;
        obey(view, words, count);
    }
}

static bool read_options(int argc, char **argv, hf__view_options *options, hf_registry **registry,
                         hf_error *err)
{
    options->store = (hf_store_options)HF_STORE_OPTIONS_INIT;
    options->store.url = argc > 1 ? argv[1] : "";
    for (int i = 2; i < argc; i++) {
        if (strncmp(argv[i], "registry=", 9) == 0 &&
            hf_registry_read(argv[i] + 9, registry, err) != HF_OK)
            return false;
        if (strncmp(argv[i], "refresh=", 8) == 0)
            options->refresh_ms = strtoll(argv[i] + 8, NULL, 10);
        if (strncmp(argv[i], "max_lag=", 8) == 0)
            options->max_lag = strtoll(argv[i] + 8, NULL, 10);
        options->keep_history = options->keep_history || strcmp(argv[i], "history") == 0;
        options->show_queries = options->show_queries || strcmp(argv[i], "queries") == 0;
    }
    options->store.registry = *registry;
    return true;
}

int main(int argc, char **argv)
{
    hf__view_options options = {0};
    hf_registry *registry = NULL;
    hf__view *view = NULL;
    hf_error err = {0};
    if (!read_options(argc, argv, &options, &registry, &err) ||
        hf__view_open(&options, &view, &err) != HF_OK) {
        printf("%s %s\n", hf_status_name(err.code), err.message);
        hf_registry_free(registry);
        return 1;
    }
    printf("ok {}\n");
    fflush(stdout);
    drive(view);
    hf__view_close(view);
    hf_registry_free(registry);
    return 0;
}
