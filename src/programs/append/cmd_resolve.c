/* holdfast append list, resolve and forget: appends that did not come to their end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "cli/choice.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stopping.h"
#include "programs/append/open.h"
#include "programs/append/resolve.h"

struct resolve_values {
    const char *to;
    const char *password_file;
    bool attached;
    bool missing;
    struct number wait;
};

struct list_values {
    bool all;
};

#define TARGET_OPTIONS                                                                             \
    {                                                                                              \
        .name = "to",                                                                              \
        .value = "URL",                                                                            \
        .help = "where the table is, as for append",                                               \
        .kind = OPTION_TEXT,                                                                       \
        .offset = offsetof(struct resolve_values, to),                                             \
    },                                                                                             \
        {                                                                                          \
            .name = "password-file",                                                               \
            .value = "FILE",                                                                       \
            .help = "its first line is the password",                                              \
            .kind = OPTION_TEXT,                                                                   \
            .offset = offsetof(struct resolve_values, password_file),                              \
        },                                                                                         \
    {                                                                                              \
        .letter = 'w', .name = "wait", .value = "TIME",                                            \
        .help = "for the table, at most (default: for ever)", .kind = OPTION_DURATION,             \
        .offset = offsetof(struct resolve_values, wait),                                           \
    }

static const struct option list_options[] = {
    {
        .letter = 'a',
        .name = "all",
        .help = "those that are done, too",
        .offset = offsetof(struct list_values, all),
    },
    {0},
};

static const struct option resolve_options[] = {
    TARGET_OPTIONS,
    {
        .name = "attached",
        .help = "take for attached what nothing proves",
        .offset = offsetof(struct resolve_values, attached),
    },
    {
        .name = "missing",
        .help = "take for missing what nothing proves, and attach it",
        .offset = offsetof(struct resolve_values, missing),
    },
    {0},
};

static const struct option forget_options[] = {TARGET_OPTIONS, {0}};

static int cannot_write(const struct report *report)
{
    const hf_error err = {.code = HF_SYSTEM, .message = "cannot write to standard output"};

    return report_error(report, &err);
}

/* ---- list ------------------------------------------------------------------------------------ */

enum { ID, TABLE, STATE, ROWS, SINCE, WHY };

static const struct column columns[] = {
    [ID] = {.title = "ID"},
    [TABLE] = {.title = "TABLE"},
    [STATE] = {.title = "STATE"},
    [ROWS] = {.title = "ROWS", .to_the_right = true},
    [SINCE] = {.title = "SINCE", .rank = 1},
    [WHY] = {.title = "WHY", .may_be_cut = true, .rank = 2},
    {0},
};

static void put_append(hf__json *json, const hf__append_row *row)
{
    char time[HF__TIME_SIZE];

    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "id", row->id);
    hf__json_put_string(json, "table", row->table);
    hf__json_put_string(json, "state", hf__append_state_word(row->state));
    hf__json_put_integer(json, "rows", row->rows);
    hf__json_put_text(json, "staging", row->state == HF__APPEND_DONE ? "" : row->staging);
    hf__json_put_text(json, "server", row->server);
    hf__json_put_text(json, "reason", row->reason);
    hf__json_put_string(json, "since", hf__show_time(time, hf__us_from_ms(row->at_ms), 0));
    hf__json_end_object(json);
}

static void set_append(struct table *table, const hf__append_row *row)
{
    char number[24], time[HF__TIME_SIZE];

    table_add_row(table);
    table_set(table, ID, row->id);
    table_set(table, TABLE, row->table);
    table_set(table, STATE, hf__append_state_word(row->state));
    (void)snprintf(number, sizeof number, "%" PRId64, row->rows);
    table_set(table, ROWS, number);
    table_set(table, SINCE, hf__show_time(time, hf__us_from_ms(row->at_ms), 0));
    table_set(table, WHY, row->reason);
}

static int print_list(const struct invocation *in, const hf_rows *rows)
{
    hf__json json = {0};
    struct table *table = NULL;
    bool is_printed = true;

    prepare_for_tables();
    if (in->common.json) {
        hf__json_begin_object(&json, NULL);
        hf__json_begin_array(&json, "appends");
    } else {
        table = table_new(columns);
    }
    for (size_t i = 0; i < hf_rows_count(rows) && is_printed; i++) {
        hf__append_row row = {0};
        is_printed = hf__append_row_read(rows, i, &row, NULL) == HF_OK;
        if (in->common.json)
            put_append(&json, &row);
        else
            set_append(table, &row);
        hf__append_row_free(&row);
    }
    if (in->common.json) {
        hf__json_end_array(&json);
        hf__json_end_object(&json);
        is_printed = print_document(&json, stdout) && is_printed;
    } else {
        is_printed = table_print(table) && is_printed;
    }
    table_free(table);
    return is_printed ? EXIT_OK : cannot_write(&in->report);
}

static int list_main(const struct command *self, int argc, char **argv)
{
    struct list_values values = {0};
    struct invocation in = {0};
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_store *store = NULL;
    hf_rows *rows = NULL;
    hf_error err;
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    options.application = "holdfast append list";
    if (open_store(&in, &options, &store, &err) != HF_OK ||
        hf__append_list(store, values.all, &rows, &err) != HF_OK)
        code = report_error(&in.report, &err);
    else
        code = print_list(&in, rows);
    hf_rows_free(rows);
    hf_store_close(store);
    return code;
}

/* ---- resolve and forget ---------------------------------------------------------------------- */

typedef hf_status (*action)(hf_store *store, hf__target *target, hf__stop *stop,
                            const hf__resolve_options *options, hf__append_row *row, hf_error *err);

static void on_note(void *arg, const char *text)
{
    report_note(arg, "%s", text);
}

static int print_row(const struct invocation *in, const char *did, const hf__append_row *row)
{
    hf__json json = {0};

    if (!in->common.json)
        return printf("append %s: %s\n", in->operands[0], did) < 0 || fflush(stdout) != 0
                   ? cannot_write(&in->report)
                   : EXIT_OK;
    put_append(&json, row);
    return print_document(&json, stdout) ? EXIT_OK : cannot_write(&in->report);
}

/*
 * Opens a target only for an append that the store knows. forget needs none: then what is staged
 * stays, and without a row in the store there is nothing to forget.
 */
static hf_status open_both(const struct resolve_values *values, const struct invocation *in,
                           const hf__resolve_options *append, bool needs_target, hf__stop *stop,
                           hf_store **store, hf__target **target, hf_error *err)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    const hf__target_options how = {.url = values->to,
                                    .password_file = values->password_file,
                                    .stop = stop,
                                    .wait_ms = values->wait.given ? values->wait.value : -1,
                                    .note = on_note,
                                    .arg = (void *)&in->report};

    options.application = "holdfast append";
    hf_status status = open_store(in, &options, store, err);
    if (status == HF_OK && (needs_target || values->to == NULL))
        status = hf__append_known(*store, stop, append, err);
    if (status == HF_OK && (needs_target || values->to != NULL))
        status = open_append_target(*store, &how, target, err);
    return status;
}

static int run(const struct resolve_values *values, const struct invocation *in, bool needs_target,
               action act, const char *did)
{
    struct stopping stopping = {.stop = {.fd = -1}};
    const struct stopping_options how = {.second_ends = true, .report = &in->report};
    const hf__resolve_options options = {
        .id = in->operands[0],
        .assumed = values->attached  ? HF__ASSUME_ATTACHED
                   : values->missing ? HF__ASSUME_MISSING
                                     : HF__ASSUME_NOTHING,
        .wait_ms = values->wait.given ? values->wait.value : -1,
        .events = {.note = on_note, .arg = (void *)&in->report},
    };
    hf_store *store = NULL;
    hf__target *target = NULL;
    hf__append_row row = {0};
    hf_error err;

    block_stop_signals();
    if (hf__append_check_id(options.id, &err) != HF_OK ||
        stopping_init(&stopping, &how, &err) != HF_OK || stopping_start(&stopping, &err) != HF_OK)
        return report_error(&in->report, &err);
    hf_status status =
        open_both(values, in, &options, needs_target, &stopping.stop, &store, &target, &err);
    if (status == HF_OK) {
        stopping_work(&stopping, store);
        status = act(store, target, &stopping.stop, &options, &row, &err);
    }
    stopping_end(&stopping);
    int code = status == HF_OK ? print_row(in, did, &row) : report_error(&in->report, &err);
    hf__append_row_free(&row);
    hf__target_close(target);
    hf_store_close(store);
    stopping_destroy(&stopping);
    return code;
}

/* Reads the command line. False: the command ends with *code. */
static bool take_id(const struct command *self, int argc, char **argv,
                    struct resolve_values *values, struct invocation *in, int *code)
{
    if (!parse_options(self, argc, argv, values, in, code))
        return false;
    if (in->count == 1)
        return true;
    *code = report_usage(&in->report, self, "one ID is needed");
    return false;
}

static int resolve_main(const struct command *self, int argc, char **argv)
{
    struct resolve_values values = {0};
    struct invocation in = {0};
    int code = EXIT_OK;

    if (!take_id(self, argc, argv, &values, &in, &code))
        return code;
    if (values.attached && values.missing)
        return report_usage(&in.report, self, "--attached and --missing exclude each other");
    return run(&values, &in, true, hf__append_resolve, "done");
}

static int forget_main(const struct command *self, int argc, char **argv)
{
    struct resolve_values values = {0};
    struct invocation in = {0};
    int code = EXIT_OK;

    if (!take_id(self, argc, argv, &values, &in, &code))
        return code;
    return run(&values, &in, false, hf__append_forget, "forgotten");
}

const struct command cmd_append_list = {
    .name = "append list",
    .summary = "Appends that did not come to their end.",
    .usage = "[--all]",
    .options = list_options,
    .main = list_main,
};

const struct command cmd_append_resolve = {
    .name = "append resolve",
    .summary = "Look again at what an append has done, and finish it.",
    .usage = "[--to URL] [--attached | --missing] ID",
    .options = resolve_options,
    .takes_operands = true,
    .main = resolve_main,
};

const struct command cmd_append_forget = {
    .name = "append forget",
    .summary = "Forget an append and what it has staged.",
    .usage = "[--to URL] ID",
    .options = forget_options,
    .takes_operands = true,
    .main = forget_main,
};
