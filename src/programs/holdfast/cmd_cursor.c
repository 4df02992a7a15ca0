#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/choice.h"
#include "cli/print.h"
#include "programs/holdfast/commands.h"

enum { NAME, VALUE };

static const struct option cursor_options[] = {
    {
        .name = "network",
        .value = "NET",
        .help = "the network, such as testnet",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct network_values, network),
    },
    {
        .name = "schema",
        .value = "NAME",
        .help = "its schema (default: ingest_NET)",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct network_values, schema),
    },
    {0},
};

static const struct column columns[] = {
    [NAME] = {.title = "NAME"},
    [VALUE] = {.title = "VALUE", .to_the_right = true},
    {0},
};

struct request {
    int (*run)(const struct request *request);
    const struct invocation *in;
    const char *network_name;
    hf_network *network;
    const char *name;
    int64_t values[2];
};

static int cannot_write(const struct request *request)
{
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write the cursor"};

    return report_error(&request->in->report, &err);
}

static int print_value(const struct request *request, int64_t value)
{
    hf__json json = {0};

    if (!request->in->common.json)
        return printf("%" PRId64 "\n", value) < 0 || fflush(stdout) != 0 ? cannot_write(request)
                                                                         : EXIT_OK;
    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "network", request->network_name);
    hf__json_put_string(&json, "name", request->name);
    hf__json_put_integer(&json, "value", value);
    hf__json_end_object(&json);
    return print_document(&json, stdout) ? EXIT_OK : cannot_write(request);
}

static int get(const struct request *request)
{
    hf_error err;
    int64_t value = 0;
    bool found = false;

    if (hf_cursor_get(request->network, request->name, &found, &value, &err) != HF_OK)
        return report_error(&request->in->report, &err);
    if (found)
        return print_value(request, value);
    hf__set_error(&err, HF_CURSOR, "cursor %s of network %s: not initialised", request->name,
                  request->network_name);
    hf__hint(&err, "'holdfast cursor list --network %s' shows what is there",
             request->network_name);
    return report_error(&request->in->report, &err);
}

/* A change prints nothing; with --json, the cursor as it is now. */
static int end_change(const struct request *request, hf_status status, const hf_error *err)
{
    if (status != HF_OK)
        return report_error(&request->in->report, err);
    return request->in->common.json ? get(request) : EXIT_OK;
}

static int set(const struct request *request)
{
    hf_error err;

    return end_change(
        request, hf_cursor_set(request->network, request->name, request->values[0], &err), &err);
}

static int set_min(const struct request *request)
{
    hf_error err;

    return end_change(request,
                      hf_cursor_set_min(request->network, request->name, request->values[0], &err),
                      &err);
}

static int advance(const struct request *request)
{
    hf_error err;

    return end_change(request,
                      hf_cursor_advance(request->network, request->name, request->values[0], &err),
                      &err);
}

static int swap(const struct request *request)
{
    hf_error err;

    return end_change(request,
                      hf_cursor_swap(request->network, request->name, request->values[0],
                                     request->values[1], &err),
                      &err);
}

static void add_to_table(void *arg, const char *name, int64_t value)
{
    char text[24];

    table_add_row(arg);
    table_set(arg, NAME, name);
    snprintf(text, sizeof text, "%" PRId64, value);
    table_set(arg, VALUE, text);
}

static void add_to_json(void *arg, const char *name, int64_t value)
{
    hf__json_begin_object(arg, NULL);
    hf__json_put_string(arg, "name", name);
    hf__json_put_integer(arg, "value", value);
    hf__json_end_object(arg);
}

static int list_as_json(const struct request *request)
{
    hf__json json = {0};
    hf_error err;

    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "network", request->network_name);
    hf__json_begin_array(&json, "cursors");
    if (hf_cursor_list(request->network, add_to_json, &json, &err) != HF_OK) {
        hf__buf_free(&json.text);
        return report_error(&request->in->report, &err);
    }
    hf__json_end_array(&json);
    hf__json_end_object(&json);
    return print_document(&json, stdout) ? EXIT_OK : cannot_write(request);
}

static int list(const struct request *request)
{
    struct table *table = NULL;
    hf_error err;

    if (request->in->common.json)
        return list_as_json(request);
    prepare_for_tables();
    table = table_new(columns);
    if (hf_cursor_list(request->network, add_to_table, table, &err) != HF_OK) {
        table_free(table);
        return report_error(&request->in->report, &err);
    }
    bool printed = table_print(table);
    table_free(table);
    return printed ? EXIT_OK : cannot_write(request);
}

static const struct cursor_action {
    struct action action;
    int (*run)(const struct request *request);
} actions[] = {
    {{"get", 1, "get NAME"}, get},
    {{"set", 2, "set NAME VALUE"}, set},
    {{"set-min", 2, "set-min NAME VALUE"}, set_min},
    {{"advance", 2, "advance NAME VALUE"}, advance},
    {{"swap", 3, "swap NAME FROM TO"}, swap},
    {{"list", 0, "list"}, list},
};

static int act(const struct invocation *in, hf_store *store, hf_network *network, void *arg)
{
    struct request *request = arg;

    (void)in, (void)store;
    request->network = network;
    return request->run(request);
}

/* The name of the cursor, then values. False: *code says how it ends. */
static bool read_operands(const struct invocation *in, struct request *request, int *code)
{
    hf_error err;

    request->name = in->count > 1 ? in->operands[1] : NULL;
    for (int i = 2; i < in->count; i++)
        if (hf__parse_int64(in->operands[i], "the value", 0, INT64_MAX, &request->values[i - 2],
                            &err) != HF_OK) {
            *code = report_error(&in->report, &err);
            return false;
        }
    return true;
}

static int cursor_main(const struct command *self, int argc, char **argv)
{
    struct network_values values = {0};
    struct invocation in = {0};
    struct request request = {.in = &in};
    const struct cursor_action *action;
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    action = choose_action(self, &in, "what to do with the cursor is missing", actions,
                           sizeof actions / sizeof *actions, sizeof *actions, &code);
    if (action == NULL || !read_operands(&in, &request, &code))
        return code;
    if (values.network == NULL)
        return report_usage(&in.report, self, "--network is missing");
    request.run = action->run;
    request.network_name = values.network;
    return with_network(&in, "holdfast cursor", &values, act, &request);
}

const struct command cmd_cursor = {
    .name = "cursor",
    .summary = "Read and move the cursors of a network.",
    .usage = "get --network NET NAME\n"
             "set|set-min|advance --network NET NAME VALUE\n"
             "swap --network NET NAME FROM TO\n"
             "list --network NET [--schema NAME]",
    .options = cursor_options,
    .takes_operands = true,
    .main = cursor_main,
};
