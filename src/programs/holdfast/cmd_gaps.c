#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli/choice.h"
#include "cli/print.h"
#include "lib/ledgers/ledgers.h"
#include "programs/holdfast/commands.h"

struct gaps_values {
    struct network_values network;
    struct number from;
    struct number to;
    bool verify;
    bool repair;
};

static const struct option gaps_options[] = {
    NETWORK_OPTIONS(offsetof(struct gaps_values, network)),
    {
        .name = "from",
        .value = "LEDGER",
        .help = "look from here on (default: as far back as is wanted and kept)",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct gaps_values, from),
        .low = 1,
        .high = INT32_MAX,
    },
    {
        .name = "to",
        .value = "LEDGER",
        .help = "look up to here (default: the latest ledger)",
        .kind = OPTION_NUMBER,
        .offset = offsetof(struct gaps_values, to),
        .low = 1,
        .high = INT32_MAX,
    },
    {
        .name = "verify",
        .help = "look at the data too, and report what disagrees with coverage",
        .offset = offsetof(struct gaps_values, verify),
    },
    {
        .name = "repair",
        .help = "build coverage anew from the data; no ingester may run",
        .offset = offsetof(struct gaps_values, repair),
    },
    {0},
};

static const struct {
    const char *key;
    const char *words;
} disagreements[] = {
    [HF__DATA_MISSING] = {"missing", "covered but not there"},
    [HF__DATA_INCOMPLETE] = {"incomplete", "there without all its transactions"},
    [HF__DATA_UNCOVERED] = {"uncovered", "there but not covered"},
};

enum { DISAGREEMENTS = sizeof disagreements / sizeof disagreements[0] };

/* What --verify finds: printed at once, or for JSON collected in three lists. */
struct findings {
    bool json;
    size_t count;
    hf__json lists[DISAGREEMENTS];
};

static void add_range(hf__json *json, hf_range range)
{
    hf__json_begin_object(json, NULL);
    hf__json_put_integer(json, "from", range.from);
    hf__json_put_integer(json, "to", range.to);
    hf__json_end_object(json);
}

static void print_range(hf_range range, const char *words)
{
    printf("%" PRId64 "-%" PRId64 "%s%s\n", range.from, range.to, words[0] != '\0' ? "  " : "",
           words);
}

static void add_disagreement(void *arg, hf__disagreement kind, hf_range range)
{
    struct findings *findings = arg;

    findings->count++;
    if (findings->json)
        add_range(&findings->lists[kind], range);
    else
        print_range(range, disagreements[kind].words);
}

static hf_status repair(const struct invocation *in, const char *name, hf_network *network,
                        hf_error *err)
{
    hf__repair done = {0};
    hf_status status = hf__coverage_repair(network, &done, err);

    if (status != HF_OK)
        return status;
    report_note(&in->report,
                "coverage of network %s was built anew: %" PRId64 " ledgers in %zu ranges", name,
                done.ledgers, done.ranges);
    if (done.latest_moved)
        report_note(&in->report, "the cursor of the latest ledger is at %" PRId64 " now",
                    done.latest);
    if (done.oldest_moved)
        report_note(&in->report, "the cursor of the oldest ledger is at %" PRId64 " now",
                    done.oldest);
    return HF_OK;
}

static bool print_json(const char *name, const hf_range *gaps, size_t count, bool verified,
                       struct findings *findings)
{
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "network", name);
    hf__json_begin_array(&json, "gaps");
    for (size_t i = 0; i < count; i++)
        add_range(&json, gaps[i]);
    hf__json_end_array(&json);
    for (int i = 0; verified && i < DISAGREEMENTS; i++) {
        const hf__buf *list = &findings->lists[i].text;
        hf__json_begin_array(&json, disagreements[i].key);
        if (list->length > 0)
            hf__buf_add(&json.text, list->data, list->length);
        hf__json_end_array(&json);
        json.text.broken = json.text.broken || list->broken;
    }
    hf__json_end_object(&json);
    return print_document(&json, stdout);
}

static int print_gaps(const struct invocation *in, const struct gaps_values *values,
                      const hf_range *gaps, size_t count, struct findings *findings)
{
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write the gaps"};
    bool printed = true;

    if (in->common.json) {
        printed = print_json(values->network.network, gaps, count, values->verify, findings);
    } else {
        for (size_t i = 0; i < count; i++)
            print_range(gaps[i], "");
        printed = fflush(stdout) == 0 && ferror(stdout) == 0;
        if (count == 0)
            report_note(&in->report, "no gaps");
    }
    if (!printed)
        return report_error(&in->report, &err);
    return findings->count > 0 ? EXIT_FINDINGS : EXIT_OK;
}

struct existence {
    const hf_network *network;
    hf__tables_there tables;
};

static hf_status look(hf_tx *tx, void *arg, hf_error *err)
{
    struct existence *existence = arg;
    return hf__tables_look(tx, existence->network, &existence->tables, err);
}

/* Of a network that is not there, "no gaps" would be a lie. */
static hf_status must_exist(hf_network *network, hf_error *err)
{
    struct existence existence = {.network = network};
    bool there = false;
    hf_status status = hf__network_read(network, look, &existence, &there, err);

    if (status != HF_OK || existence.tables.store || existence.tables.coverage)
        return status;
    status = hf__fail(err, HF_CONFIG, "there is no network %s: the %s %s does not have its tables",
                      network->name, network->local ? "file" : "schema", network->schema);
    hf__hint(err, "'holdfast ingest status' shows those that are there");
    return status;
}

static int show_gaps(const struct invocation *in, hf_store *store, hf_network *network, void *arg)
{
    const struct gaps_values *values = arg;
    struct findings findings = {.json = in->common.json};
    hf_range *gaps = NULL;
    size_t count = 0;
    int code = EXIT_OK;
    hf_error err;
    hf_status status = HF_OK;

    (void)store;
    status = must_exist(network, &err);
    if (status == HF_OK && values->repair)
        status = repair(in, values->network.network, network, &err);
    if (status == HF_OK && values->verify)
        status = hf__coverage_verify(network, values->from.value, values->to.value,
                                     add_disagreement, &findings, &err);
    if (status == HF_OK)
        status =
            hf_network_gaps(network, values->from.value, values->to.value, &gaps, &count, &err);
    code = status == HF_OK ? print_gaps(in, values, gaps, count, &findings)
                           : report_error(&in->report, &err);
    free(gaps);
    for (int i = 0; i < DISAGREEMENTS; i++)
        hf__buf_free(&findings.lists[i].text);
    return code;
}

static int gaps_main(const struct command *self, int argc, char **argv)
{
    struct gaps_values values = {0};
    struct invocation in = {0};
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    if (values.network.network == NULL)
        return report_usage(&in.report, self, "--network is missing");
    if (values.to.given && values.from.value > values.to.value)
        return report_usage(&in.report, self, "--from is greater than --to");
    return with_network(&in, "holdfast gaps", &values.network, show_gaps, &values);
}

const struct command cmd_gaps = {
    .name = "gaps",
    .summary = "Show the ledgers that a network lacks.",
    .usage = "--network NET [--from LEDGER] [--to LEDGER] [--verify] [--repair]",
    .options = gaps_options,
    .main = gaps_main,
};
