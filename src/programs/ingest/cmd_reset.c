#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/choice.h"
#include "cli/print.h"
#include "programs/ingest/ingest.h"
#include "programs/ingest/reset.h"
#include "programs/ingest/sources/source.h"

struct reset_values {
    struct network_values network;
    struct number to;
    const char *confirm;
};

static const struct option reset_options[] = {
    NETWORK_OPTIONS(offsetof(struct reset_values, network)),
    {
        .name = "to",
        .value = "LEDGER",
        .help = "the last ledger that stays; 0: none does",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct reset_values, to),
        .low = 0,
        .high = HF__LEDGER_MAX - 1,
    },
    {
        .name = "confirm",
        .value = "NET",
        .help = "the network's name once more, where nobody is there to type it",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct reset_values, confirm),
    },
    {0},
};

static hf_status check_name(const char *typed, const char *network, hf_error *err)
{
    char shown[SHOWN_MAX];

    if (strcmp(typed, network) == 0)
        return HF_OK;
    hf_status status = hf__fail(err, HF_INVALID, "'%s' is not the network's name, %s",
                                show_argument(shown, typed), network);
    hf__hint(err, "nothing was changed");
    return status;
}

static hf_status ask(const struct reset_values *values, hf_store *store, hf_error *err)
{
    char *line = NULL;
    size_t room = 0;

    fprintf(stderr,
            "All ledgers of network %s above %" PRId64 " will be deleted from %s.\n"
            "Type the network's name to go on: ",
            values->network.network, values->to.value, hf_store_name(store));
    fflush(stderr);
    ssize_t size = getline(&line, &room, stdin);
    if (size > 0 && line[size - 1] == '\n')
        line[size - 1] = '\0';
    hf_status status = check_name(size > 0 ? line : "", values->network.network, err);
    free(line);
    return status;
}

/* Checks all that can be checked before the store is opened. */
static int check_values(const struct command *self, const struct invocation *in,
                        const struct reset_values *values)
{
    hf_error err;

    if (!values->to.given)
        return report_usage(&in->report, self, "--to is missing");
    if (values->network.network == NULL)
        return report_usage(&in->report, self, "--network is missing");
    if (values->confirm == NULL && !isatty(STDIN_FILENO))
        return report_usage(&in->report, self,
                            "nobody is there to type the network's name: give --confirm NET");
    if (values->confirm != NULL &&
        check_name(values->confirm, values->network.network, &err) != HF_OK)
        return report_error(&in->report, &err);
    return EXIT_OK;
}

static void add_ledger(hf__json *json, const char *key, bool known, int64_t ledger)
{
    if (known)
        hf__json_put_integer(json, key, ledger);
    else
        hf__json_put_null(json, key);
}

static int print_result(const struct invocation *in, const char *network,
                        const hf__reset_report *done)
{
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write the result"};
    hf__json json = {0};

    if (in->common.json) {
        hf__json_begin_object(&json, NULL);
        hf__json_put_string(&json, "network", network);
        add_ledger(&json, "latest_before", done->had_latest, done->latest_before);
        add_ledger(&json, "latest", done->latest > 0, done->latest);
        add_ledger(&json, "oldest", done->latest > 0, done->oldest);
        hf__json_put_integer(&json, "uncovered", done->uncovered);
        hf__json_end_object(&json);
        return print_document(&json, stdout) ? EXIT_OK : report_error(&in->report, &err);
    }
    printf("%s: %" PRId64 " %s gone; ", network, done->uncovered,
           done->uncovered == 1 ? "ledger is" : "ledgers are");
    if (done->latest > 0)
        printf("latest is %" PRId64 " and oldest %" PRId64 " now\n", done->latest, done->oldest);
    else
        printf("nothing is left, and the next run is a first one\n");
    return EXIT_OK;
}

static int reset(const struct invocation *in, hf_store *store, hf_network *network, void *arg)
{
    const struct reset_values *values = arg;
    hf__reset_report done;
    hf_error err;
    hf_status status = values->confirm == NULL ? ask(values, store, &err) : HF_OK;

    if (status == HF_OK)
        status = hf__reset(store, network, values->to.value, &done, &err);
    return status == HF_OK ? print_result(in, values->network.network, &done)
                           : report_error(&in->report, &err);
}

static int reset_main(const struct command *self, int argc, char **argv)
{
    struct reset_values values = {0};
    struct invocation in = {0};
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    code = check_values(self, &in, &values);
    if (code != EXIT_OK)
        return code;
    return with_network(&in, "holdfast ingest reset", &values.network, reset, &values);
}

const struct command cmd_ingest_reset = {
    .name = "ingest reset",
    .summary = "Delete all ledgers above one, after a fork or a reset of the network.",
    .usage = "--network NET --to LEDGER [--confirm NET]",
    .options = reset_options,
    .main = reset_main,
};
