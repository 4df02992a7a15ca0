#include <stdio.h>

#include "cli/choice.h"
#include "cli/options.h"
#include "cli/print_json.h"

static int print_result(const struct invocation *in, int from, int to)
{
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write the result"};
    hf__json json = {0};

    if (in->common.json) {
        hf__json_begin_object(&json, NULL);
        hf__json_put_string(&json, "schema", "holdfast");
        hf__json_put_integer(&json, "from", from);
        hf__json_put_integer(&json, "to", to);
        hf__json_end_object(&json);
        return print_document(&json, stdout) ? EXIT_OK : report_error(&in->report, &err);
    }
    if (from == 0)
        printf("schema holdfast: version %d installed\n", to);
    else if (from != to)
        printf("schema holdfast: upgraded from %d to %d\n", from, to);
    else
        printf("schema holdfast: is up to date (version %d)\n", to);
    return EXIT_OK;
}

static int init_main(const struct command *self, int argc, char **argv)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    struct invocation in = {0};
    hf_store *store = NULL;
    int from = 0;
    int to = 0;
    int code = EXIT_OK;
    hf_error err;

    if (!parse_options(self, argc, argv, NULL, &in, &code))
        return code;
    options.application = "holdfast init";
    if (open_store(&in, &options, &store, &err) != HF_OK)
        return report_error(&in.report, &err);
    if (hf_store_init(store, &from, &to, &err) == HF_OK)
        code = print_result(&in, from, to);
    else
        code = report_error(&in.report, &err);
    hf_store_close(store);
    return code;
}

const struct command cmd_init = {
    .name = "init",
    .summary = "Install or upgrade the schema that records need.",
    .usage = "[OPTION...]",
    .main = init_main,
};
