#include <fnmatch.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/store_choice.h"
#include "cli/table.h"

enum { WATCH_MS = 2000, WATCH_LEAST_MS = 100, WATCH_MOST_MS = 24 * 3600 * 1000 };

struct locks_values {
    struct number watch;
    bool waiting;
    const char *label;
};

static const struct option locks_options[] = {
    {
        .name = "watch",
        .value = "TIME",
        .help = "show them again and again (default: every 2s)",
        .kind = OPTION_DURATION,
        .value_optional = true,
        .offset = offsetof(struct locks_values, watch),
        .low = WATCH_LEAST_MS,
        .high = WATCH_MOST_MS,
    },
    {
        .name = "waiting",
        .help = "only those who wait",
        .offset = offsetof(struct locks_values, waiting),
    },
    {
        .name = "label",
        .value = "GLOB",
        .help = "only labels that match; a lock without a label goes by its key",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct locks_values, label),
    },
    {0},
};

enum { LABEL, KEY, MODE, STATE, APPLICATION, HOST, PID, BACKEND, AGE, TOKEN, BLOCKED_BY };

static const struct column columns[] = {
    [LABEL] = {.title = "LABEL", .may_be_cut = true},
    [KEY] = {.title = "KEY", .to_the_right = true},
    [MODE] = {.title = "MODE"},
    [STATE] = {.title = "STATE"},
    [APPLICATION] = {.title = "APPLICATION", .may_be_cut = true},
    [HOST] = {.title = "HOST", .may_be_cut = true},
    [PID] = {.title = "PID", .to_the_right = true},
    [BACKEND] = {.title = "BACKEND", .to_the_right = true},
    [AGE] = {.title = "AGE", .to_the_right = true},
    [TOKEN] = {.title = "TOKEN", .to_the_right = true},
    [BLOCKED_BY] = {.title = "BLOCKED BY"},
    {0},
};

enum { KEY_SHOWN_MAX = 32, AGE_SHOWN_MAX = 40 };

static void split_pair(int64_t key, int32_t pair[2])
{
    uint32_t classid, objid;

    hf_key_split(key, &classid, &objid);
    pair[0] = (int32_t)classid;
    pair[1] = (int32_t)objid;
}

static const char *show_key(char out[KEY_SHOWN_MAX], const hf_lock_view *view)
{
    int32_t pair[2];

    split_pair(view->key, pair);
    if (view->space == HF_PAIR)
        snprintf(out, KEY_SHOWN_MAX, "(%" PRId32 ", %" PRId32 ")", pair[0], pair[1]);
    else
        snprintf(out, KEY_SHOWN_MAX, "%" PRId64, view->key);
    return out;
}

static const char *mode_name(const hf_lock_view *view)
{
    return view->mode == HF_SHARED ? "shared" : "exclusive";
}

static const char *show_age(char out[AGE_SHOWN_MAX], const hf_lock_view *view)
{
    char age[32];
    const char *bound = !view->age_is_bound ? "" : output_is_utf8() ? "≤" : "<=";

    if (view->age_ms < 0)
        return "";
    snprintf(out, AGE_SHOWN_MAX, "%s%s", bound, hf__show_duration(age, sizeof age, view->age_ms));
    return out;
}

static bool is_wanted(const struct locks_values *values, const hf_lock_view *view)
{
    char key[KEY_SHOWN_MAX];
    const char *name = view->label[0] != '\0' ? view->label : show_key(key, view);

    if (values->waiting && !view->waiting)
        return false;
    return values->label == NULL || fnmatch(values->label, name, 0) == 0;
}

static void set_number(struct table *table, size_t column, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    if (number != 0)
        table_set(table, column, text);
}

static void add_to_table(struct table *table, const hf_lock_view *view)
{
    char text[KEY_SHOWN_MAX + AGE_SHOWN_MAX];

    table_add_row(table);
    table_set(table, LABEL, view->label[0] != '\0' ? view->label : "-");
    table_set(table, KEY, show_key(text, view));
    snprintf(text, sizeof text, "slot %u", view->slot);
    table_set(table, MODE, view->slot > 0 ? text : mode_name(view));
    table_set(table, STATE, view->waiting ? "waiting" : "held");
    table_set(table, APPLICATION, view->application);
    table_set(table, HOST, view->host);
    set_number(table, PID, view->pid);
    set_number(table, BACKEND, view->backend_pid);
    table_set(table, AGE, show_age(text, view));
    set_number(table, TOKEN, view->token);
    table_set(table, BLOCKED_BY, view->blocked_by);
}

static void add_number(struct json *json, const char *key, int64_t number)
{
    if (number != 0)
        json_integer(json, key, number);
    else
        json_null(json, key);
}

static void add_key(struct json *json, const hf_lock_view *view)
{
    int32_t pair[2];

    json_integer(json, "key", view->key);
    if (view->space != HF_PAIR) {
        json_null(json, "pair");
        return;
    }
    split_pair(view->key, pair);
    json_begin_array(json, "pair");
    json_integer(json, NULL, pair[0]);
    json_integer(json, NULL, pair[1]);
    json_end_array(json);
}

static void add_blockers(struct json *json, const char *pids)
{
    json_begin_array(json, "blocked_by");
    while (*pids != '\0') {
        char *end = NULL;
        long long pid = strtoll(pids, &end, 10);
        if (end == pids)
            break;
        json_integer(json, NULL, pid);
        pids = end + (*end == ',');
    }
    json_end_array(json);
}

static void add_to_json(struct json *json, const hf_lock_view *view)
{
    const char *lifetime = view->lifetime == HF_TRANSACTION ? "transaction" : "session";

    json_begin_object(json, NULL);
    json_text(json, "label", view->label);
    add_key(json, view);
    json_string(json, "mode", mode_name(view));
    json_string(json, "state", view->waiting ? "waiting" : "held");
    json_text(json, "lifetime", view->session_known ? lifetime : "");
    json_boolean(json, "recorded", view->ours);
    json_text(json, "application", view->application);
    json_text(json, "host", view->host);
    add_number(json, "pid", view->pid);
    add_number(json, "backend_pid", view->backend_pid);
    if (view->age_ms >= 0)
        json_integer(json, "age_ms", view->age_ms);
    else
        json_null(json, "age_ms");
    json_boolean(json, "age_is_bound", view->age_is_bound);
    add_number(json, "token", view->token);
    add_number(json, "slot", view->slot);
    add_blockers(json, view->blocked_by);
    json_end_object(json);
}

static bool print_json(const struct locks_values *values, const hf_store *store,
                       const hf_lock_list *list)
{
    struct json json = {0};

    json_begin_object(&json, NULL);
    json_string(&json, "store", hf_store_name(store));
    json_integer(&json, "at_ms", hf__wall_ms());
    json_begin_array(&json, "locks");
    for (size_t i = 0; i < hf_lock_list_count(list); i++)
        if (is_wanted(values, hf_lock_list_at(list, i)))
            add_to_json(&json, hf_lock_list_at(list, i));
    json_end_array(&json);
    json_end_object(&json);
    return json_finish(&json, stdout);
}

static bool print_table(const struct locks_values *values, const struct report *report,
                        const hf_lock_list *list)
{
    struct table *table = table_new(columns);
    size_t rows = 0;

    for (size_t i = 0; i < hf_lock_list_count(list); i++) {
        if (is_wanted(values, hf_lock_list_at(list, i))) {
            add_to_table(table, hf_lock_list_at(list, i));
            rows++;
        }
    }
    bool printed = table_print(table);
    table_free(table);
    if (rows == 0 && hf_lock_list_count(list) == 0)
        report_note(report, "no advisory locks");
    else if (rows == 0)
        report_note(report, "no advisory locks match");
    return printed;
}

static void print_heading(const hf_store *store)
{
    time_t now = time(NULL);
    struct tm local;
    char clock[32] = "";

    if (localtime_r(&now, &local) != NULL)
        strftime(clock, sizeof clock, "%Y-%m-%d %H:%M:%S", &local);
    if (isatty(STDOUT_FILENO))
        fputs("\033[H\033[J", stdout);
    printf("%s  %s\n\n", clock, hf_store_name(store));
    fflush(stdout);
}

static void print_gap(void)
{
    if (!isatty(STDOUT_FILENO))
        putchar('\n');
    fflush(stdout);
}

/* Signals that end a watch come between two snapshots, or while the store is slow to answer. */
static void hold_signals(int how)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(how, &ends, NULL);
}

static void leave(int number)
{
    (void)number;
    _exit(EXIT_OK);
}

static int show_locks(const struct locks_values *values, const struct invocation *in,
                      hf_store *store)
{
    hf_lock_list *list = NULL;
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write the list of locks"};
    bool printed;

    if (hf_lock_list_read(store, &list, &err) != HF_OK)
        return report_error(&in->report, &err);
    hold_signals(SIG_BLOCK);
    if (in->common.json) {
        printed = print_json(values, store, list);
    } else {
        if (values->watch.given)
            print_heading(store);
        printed = print_table(values, &in->report, list);
        if (values->watch.given)
            print_gap();
    }
    hold_signals(SIG_UNBLOCK);
    hf_lock_list_free(list);
    return printed ? EXIT_OK : report_error(&in->report, &err);
}

static void sleep_ms(int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

static int watch_locks(const struct locks_values *values, const struct invocation *in,
                       hf_store *store)
{
    struct sigaction on_end = {.sa_handler = leave};
    int code;

    sigaction(SIGINT, &on_end, NULL);
    sigaction(SIGTERM, &on_end, NULL);
    while ((code = show_locks(values, in, store)) == EXIT_OK)
        sleep_ms(values->watch.value);
    return code;
}

static int locks_main(const struct command *self, int argc, char **argv)
{
    struct locks_values values = {.watch.value = WATCH_MS};
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    struct invocation in = {0};
    hf_store *store = NULL;
    int code = EXIT_OK;
    hf_error err;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    options.application = "holdfast locks";
    if (open_store(&in, &options, &store, &err) != HF_OK)
        return report_error(&in.report, &err);
    if (!in.common.json)
        prepare_for_tables();
    code = values.watch.given ? watch_locks(&values, &in, store) : show_locks(&values, &in, store);
    hf_store_close(store);
    return code;
}

const struct command cmd_locks = {
    .name = "locks",
    .summary = "Show every advisory lock of the database: who holds it, who waits.",
    .usage = "[--watch[=TIME]] [--waiting] [--label GLOB]",
    .options = locks_options,
    .main = locks_main,
};
