#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/time.h"
#include "cli/choice.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/report.h"
#include "holdfast/holdfast.h"
#include "programs/holdfast/commands.h"

enum { WATCH_MS = 2000, WATCH_LEAST_MS = 100, WATCH_MOST_MS = 24 * 3600 * 1000 };

struct locks_values {
    struct number watch;
    bool waiting;
    const char *label;
    struct number leaks;
};

/* What is shown, and where from. */
struct listing {
    const struct locks_values *values;
    const struct invocation *in;
    hf_store *store;
    bool named; /* a registry is in use */
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
    {
        .name = "leaks",
        .value = "TIME",
        .help = "session locks held for so long by an idle session, and what ends it",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct locks_values, leaks),
    },
    {0},
};

/* ---- Which locks to show --------------------------------------------------------------------- */

static bool matches(const char *glob, const hf_lock_view *view)
{
    char key[KEY_SHOWN_MAX];
    const char *label = view->label[0] != '\0' ? view->label : show_key(key, view);

    return fnmatch(glob, label, 0) == 0 ||
           (view->name[0] != '\0' && fnmatch(glob, view->name, 0) == 0);
}

static bool is_wanted(const struct locks_values *values, const hf_lock_view *view)
{
    if (values->waiting && !view->waiting)
        return false;
    return values->label == NULL || matches(values->label, view);
}

/* ---- All locks ------------------------------------------------------------------------------- */

enum { NAME, LABEL, KEY, MODE, STATE, APPLICATION, HOST, PID, BACKEND, AGE, TOKEN, BLOCKED_BY };

static const struct column columns[] = {
    [NAME] = {.title = "NAME"},
    [LABEL] = {.title = "LABEL", .may_be_cut = true},
    [KEY] = {.title = "KEY", .to_the_right = true},
    [MODE] = {.title = "MODE", .rank = 3},
    [STATE] = {.title = "STATE"},
    [APPLICATION] = {.title = "APPLICATION", .may_be_cut = true},
    [HOST] = {.title = "HOST", .may_be_cut = true, .rank = 5},
    [PID] = {.title = "PID", .to_the_right = true, .rank = 4},
    [BACKEND] = {.title = "BACKEND", .to_the_right = true, .rank = 2},
    [AGE] = {.title = "AGE", .to_the_right = true},
    [TOKEN] = {.title = "TOKEN", .to_the_right = true, .rank = 6},
    [BLOCKED_BY] = {.title = "BLOCKED BY", .rank = 1},
    {0},
};

enum { AGE_SHOWN_MAX = 40 };

enum { END_SHOWN_MAX = 64 };

/* "SELECT pg_terminate_backend(4711);" or "kill 4711". Returns out. */
static const char *end_statement(char out[END_SHOWN_MAX], const hf_lock_view *view, bool local)
{
    if (local)
        snprintf(out, END_SHOWN_MAX, "kill %d", view->pid);
    else
        snprintf(out, END_SHOWN_MAX, "SELECT pg_terminate_backend(%d);", view->backend_pid);
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

static void add_to_table(struct table *table, const hf_lock_view *view, size_t first)
{
    char text[KEY_SHOWN_MAX + AGE_SHOWN_MAX], left[32];

    table_add_row(table);
    if (first == NAME)
        table_set(table, NAME, shown_name(view));
    snprintf(text, sizeof text, "(%s?)", view->known_as);
    table_set(table, LABEL - first,
              view->label[0] != '\0'      ? view->label
              : view->known_as[0] != '\0' ? text
                                          : "-");
    table_set(table, KEY - first, show_key(text, view));
    snprintf(text, sizeof text, "slot %u", view->slot);
    table_set(table, MODE - first, view->slot > 0 ? text : mode_name(view));
    snprintf(text, sizeof text, "lease, %s left",
             hf__show_duration(left, sizeof left, view->left_ms));
    table_set(table, STATE - first, view->waiting ? "waiting" : view->left_ms > 0 ? text : "held");
    table_set(table, APPLICATION - first, view->application);
    table_set(table, HOST - first, view->host);
    set_number(table, PID - first, view->pid);
    set_number(table, BACKEND - first, view->backend_pid);
    table_set(table, AGE - first, show_age(text, view));
    set_number(table, TOKEN - first, view->token);
    table_set(table, BLOCKED_BY - first, view->blocked_by);
}

static void add_blockers(hf__json *json, const char *pids)
{
    hf__json_begin_array(json, "blocked_by");
    while (*pids != '\0') {
        char *end = NULL;
        long long pid = strtoll(pids, &end, 10);
        if (end == pids)
            break;
        hf__json_put_integer(json, NULL, pid);
        pids = end + (*end == ',');
    }
    hf__json_end_array(json);
}

static void add_to_json(hf__json *json, const struct listing *listing, const hf_lock_view *view)
{
    char end[END_SHOWN_MAX];

    hf__json_begin_object(json, NULL);
    hf__json_put_text(json, "label", view->label);
    if (listing->named)
        add_name(json, view);
    hf__json_put_text(json, "known_as", view->known_as);
    add_key(json, view);
    hf__json_put_string(json, "mode", mode_name(view));
    hf__json_put_string(json, "state", view->waiting ? "waiting" : "held");
    hf__json_put_text(json, "lifetime", lifetime_of(view));
    hf__json_put_boolean(json, "recorded", view->ours);
    hf__json_put_text(json, "application", view->application);
    hf__json_put_text(json, "host", view->host);
    add_number(json, "pid", view->pid);
    add_number(json, "backend_pid", view->backend_pid);
    add_time(json, "age_ms", view->age_ms);
    hf__json_put_boolean(json, "age_is_bound", view->age_is_bound);
    if (listing->values->leaks.given) {
        add_time(json, "idle_ms", view->idle_ms);
        hf__json_put_string(json, "end_statement",
                            end_statement(end, view, hf_store_is_local(listing->store)));
    }
    add_token(json, view->token);
    add_number(json, "slot", view->slot);
    add_number(json, "left_ms", view->left_ms);
    hf__json_put_text(json, "traceparent", view->traceparent);
    add_blockers(json, view->blocked_by);
    hf__json_end_object(json);
}

static bool print_json(const struct listing *listing, const hf_lock_view *const *views,
                       size_t count)
{
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "store", hf_store_name(listing->store));
    hf__json_put_integer(&json, "at_ms", hf__wall_ms());
    hf__json_begin_array(&json, "locks");
    for (size_t i = 0; i < count; i++)
        add_to_json(&json, listing, views[i]);
    hf__json_end_array(&json);
    hf__json_end_object(&json);
    return print_document(&json, stdout);
}

static bool print_table(const struct listing *listing, const hf_lock_view *const *views,
                        size_t count, size_t all)
{
    size_t first = listing->named ? NAME : LABEL;
    struct table *table = table_new(columns + first);

    for (size_t i = 0; i < count; i++)
        add_to_table(table, views[i], first);
    bool printed = table_print(table);
    table_free(table);
    if (count == 0)
        report_note(&listing->in->report,
                    all == 0 ? "no advisory locks" : "no advisory locks match");
    return printed;
}

/* ---- Leaks: session locks that an idle session has held for too long ------------------------- */

enum { LEAK_NAME, LOCK, LEAK_APPLICATION, LEAK_HOST, HELD, END };

static const struct column leak_columns[] = {
    [LEAK_NAME] = {.title = "NAME"},
    [LOCK] = {.title = "LOCK", .may_be_cut = true},
    [LEAK_APPLICATION] = {.title = "APPLICATION", .may_be_cut = true, .rank = 1},
    [LEAK_HOST] = {.title = "HOST", .may_be_cut = true, .rank = 2},
    [HELD] = {.title = "HELD", .to_the_right = true},
    [END] = {.title = "END IT WITH"},
    {0},
};

/*
 * The lock of an idle session is a session lock, and it is at least as old as the idleness. A
 * session of Holdfast is there for its locks, and pinged while it holds any, so there the recorded
 * age counts.
 */
static bool is_leak(const hf_lock_view *view, int64_t held_ms)
{
    if (view->waiting || (view->session_known && view->lifetime != HF_SESSION))
        return false;
    return (view->ours ? view->age_ms : view->idle_ms) >= held_ms;
}

/* We may not see whether the session is idle. */
static bool may_be_leak(const hf_lock_view *view)
{
    return !view->waiting && !view->ours && view->idle_hidden;
}

static void set_held(struct table *table, size_t column, const hf_lock_view *view)
{
    char held[32], text[40];
    const char *bound = view->ours ? "" : output_is_utf8() ? "≥" : ">=";

    snprintf(text, sizeof text, "%s%s", bound,
             hf__show_duration(held, sizeof held, view->ours ? view->age_ms : view->idle_ms));
    table_set(table, column, text);
}

static void add_row(struct table *table, const hf_lock_view *view, size_t first, bool local)
{
    char text[END_SHOWN_MAX];

    table_add_row(table);
    if (first == LEAK_NAME)
        table_set(table, LEAK_NAME, shown_name(view));
    table_set(table, LOCK - first, view->label[0] != '\0' ? view->label : show_key(text, view));
    table_set(table, LEAK_APPLICATION - first, view->application);
    table_set(table, LEAK_HOST - first, view->host);
    set_held(table, HELD - first, view);
    table_set(table, END - first, end_statement(text, view, local));
}

/* named: show the registry's names, too. False: memory is out, or the output failed. */
static bool print_leaks(const hf_store *store, const hf_lock_view *const *leaks, size_t count,
                        bool named)
{
    size_t first = named ? LEAK_NAME : LOCK;
    struct table *table = table_new(leak_columns + first);

    for (size_t i = 0; i < count; i++)
        add_row(table, leaks[i], first, hf_store_is_local(store));
    bool printed = table_print(table);
    table_free(table);
    return printed;
}

/* Notes below the list: what it costs to end a session, and how many locks we cannot judge. */
static void explain_leaks(const struct report *report, const hf_store *store, int64_t held_ms,
                          size_t count, size_t untold)
{
    char time[32];
    bool local = hf_store_is_local(store);

    if (count > 0)
        report_note(report, "%s loses every lock that it holds",
                    local ? "a process that is ended" : "a session that is ended");
    else
        report_note(report, "no idle session has held a session lock for %s",
                    hf__show_duration(time, sizeof time, held_ms));
    if (untold > 0 && local)
        report_warning(report, "%zu held %s left out: nobody recorded who holds %s", untold,
                       untold == 1 ? "lock is" : "locks are", untold == 1 ? "it" : "them");
    else if (untold > 0)
        report_warning(report,
                       "%zu held %s left out: this role may not see whether their sessions are "
                       "idle (GRANT pg_read_all_stats lets it, unless track_activities is off)",
                       untold, untold == 1 ? "lock is" : "locks are");
}

/* ---- The command ----------------------------------------------------------------------------- */

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

/* A signal may end a watch between two snapshots, or while the store is slow to answer. */
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

/* Chooses the locks that match; with --leaks the leaks among them. *untold counts unknown cases. */
static size_t choose_views(const struct locks_values *values, const hf_lock_list *list,
                           const hf_lock_view **chosen, size_t *untold)
{
    size_t count = 0;

    for (size_t i = 0; i < hf_lock_list_count(list); i++) {
        const hf_lock_view *view = hf_lock_list_at(list, i);
        if (!is_wanted(values, view))
            continue;
        *untold += may_be_leak(view);
        if (!values->leaks.given || is_leak(view, values->leaks.value))
            chosen[count++] = view;
    }
    return count;
}

static bool print(const struct listing *listing, const hf_lock_view *const *views, size_t count,
                  size_t all)
{
    bool watched = listing->values->watch.given;
    bool printed;

    if (listing->in->common.json)
        return print_json(listing, views, count);
    if (listing->values->leaks.given)
        return print_leaks(listing->store, views, count, listing->named);
    if (watched)
        print_heading(listing->store);
    printed = print_table(listing, views, count, all);
    if (watched)
        print_gap();
    return printed;
}

static int show_list(const struct listing *listing, const hf_lock_list *list)
{
    const struct report *report = &listing->in->report;
    const struct locks_values *values = listing->values;
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write the list of locks"};
    size_t all = hf_lock_list_count(list), untold = 0;
    const hf_lock_view **views = calloc(all + 1, sizeof(hf_lock_view *));

    if (views == NULL)
        return report_error(report, &err);
    size_t count = choose_views(values, list, views, &untold);
    hold_signals(SIG_BLOCK);
    bool printed = print(listing, views, count, all);
    hold_signals(SIG_UNBLOCK);
    free((void *)views);
    if (!printed)
        return report_error(report, &err);
    if (!values->leaks.given)
        return EXIT_OK;
    explain_leaks(report, listing->store, values->leaks.value, count, untold);
    return count > 0 ? EXIT_FINDINGS : EXIT_OK;
}

static int show_locks(const struct listing *listing)
{
    hf_lock_list *list = NULL;
    hf_error err;

    if (hf_lock_list_read(listing->store, &list, &err) != HF_OK)
        return report_error(&listing->in->report, &err);
    int code = show_list(listing, list);
    hf_lock_list_free(list);
    return code;
}

static void sleep_ms(int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

static int watch_locks(const struct listing *listing)
{
    struct sigaction on_end = {.sa_handler = leave};
    int code;

    sigaction(SIGINT, &on_end, NULL);
    sigaction(SIGTERM, &on_end, NULL);
    while ((code = show_locks(listing)) == EXIT_OK)
        sleep_ms(listing->values->watch.value);
    return code;
}

static int locks_main(const struct command *self, int argc, char **argv)
{
    struct locks_values values = {.watch.value = WATCH_MS};
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    struct invocation in = {0};
    struct listing listing = {.values = &values, .in = &in};
    hf_registry *registry = NULL;
    int code = EXIT_OK;
    hf_error err;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    if (values.leaks.given && (values.watch.given || values.waiting))
        return report_usage(&in.report, self, "--leaks goes with neither --watch nor --waiting");
    options.application = "holdfast locks";
    hf_status status = open_registry(&in.common, &registry, &err);
    options.registry = registry;
    listing.named = registry != NULL;
    if (status == HF_OK)
        status = open_store(&in, &options, &listing.store, &err);
    if (status == HF_OK && !in.common.json)
        prepare_for_tables();
    code = status != HF_OK      ? report_error(&in.report, &err)
           : values.watch.given ? watch_locks(&listing)
                                : show_locks(&listing);
    hf_store_close(listing.store);
    hf_registry_free(registry);
    return code;
}

const struct command cmd_locks = {
    .name = "locks",
    .summary = "Show every advisory lock of the database: who holds it, who waits.",
    .usage = "[--watch[=TIME]] [--waiting] [--label GLOB]\n--leaks TIME [--label GLOB]",
    .options = locks_options,
    .main = locks_main,
};
