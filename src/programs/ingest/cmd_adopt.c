#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/choice.h"
#include "cli/print.h"
#include "programs/ingest/adopt.h"
#include "programs/ingest/ingest.h"

enum { RANGES_SHOWN = 20 };

struct adopt_values {
    struct network_values network;
    bool dry_run;
    bool leave;
};

static const struct option adopt_options[] = {
    NETWORK_OPTIONS(offsetof(struct adopt_values, network)),
    {
        .name = "dry-run",
        .help = "only say what would be done",
        .offset = offsetof(struct adopt_values, dry_run),
    },
    {
        .name = "leave",
        .help = "the way back: remove what adopting has added",
        .offset = offsetof(struct adopt_values, leave),
    },
    {0},
};

static int64_t count_ledgers(const hf__ranges *ranges)
{
    int64_t count = 0;

    for (size_t i = 0; i < ranges->count; i++)
        count += ranges->items[i].to - ranges->items[i].from + 1;
    return count;
}

static const char *plural(int64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_cursor(const char *what, bool had, int64_t claimed, int64_t data, const char *now)
{
    if (had && claimed == data)
        printf("%s: %" PRId64 ", as the cursor claimed\n", what, data);
    else if (now == NULL && had)
        printf("%s: the cursor claims %" PRId64 ", the data says %" PRId64 "; it stays\n", what,
               claimed, data);
    else if (now == NULL)
        printf("%s: there is no cursor; the data says %" PRId64 "\n", what, data);
    else if (!had)
        printf("%s: there was no cursor; it %s at %" PRId64 " now\n", what, now, data);
    else
        printf("%s: the cursor claimed %" PRId64 "; it %s at %" PRId64 " now\n", what, claimed, now,
               data);
}

static void print_lacking(const hf__ranges *lacking)
{
    int64_t ledgers = count_ledgers(lacking);

    if (lacking->count == 0)
        return;
    printf("lacking: %" PRId64 " claimed %s in %zu %s:\n", ledgers,
           plural(ledgers, "ledger", "ledgers"), lacking->count,
           plural((int64_t)lacking->count, "range", "ranges"));
    for (size_t i = 0; i < lacking->count && i < RANGES_SHOWN; i++)
        printf("  %" PRId64 "-%" PRId64 "\n", lacking->items[i].from, lacking->items[i].to);
    if (lacking->count > RANGES_SHOWN)
        printf("  … and %zu more: see 'holdfast gaps'\n", lacking->count - RANGES_SHOWN);
}

static void print_notes(const struct report *report, const hf__adopt_report *done)
{
    if (done->by_transactions)
        report_note(report, "there is no table of ledgers to go by: ledgers without transactions "
                            "count as lacking until a backfill has seen them");
    if (done->incomplete > 0)
        report_warning(
            report, "%" PRId64 " %s as many transactions as they should, and do not count",
            done->incomplete, plural(done->incomplete, "ledger has not", "ledgers have not"));
    if (done->misfit[0] != '\0')
        report_warning(report, "'holdfast ingest' cannot write here, and the cursors stay: %s",
                       done->misfit);
}

static int print_text(const struct invocation *in, const struct adopt_values *values,
                      const hf__adopt_report *done)
{
    int64_t covered = count_ledgers(&done->covered);
    const char *verb = values->dry_run ? "would be" : plural(covered, "is", "are");
    const char *now = !done->moves_cursors ? NULL : values->dry_run ? "would be" : "is";

    printf("%s: %" PRId64 " %s %s covered, in %zu %s\n", values->network.network, covered,
           plural(covered, "ledger", "ledgers"), verb, done->covered.count,
           plural((int64_t)done->covered.count, "range", "ranges"));
    print_cursor("latest", done->had_latest, done->claimed_latest, done->latest, now);
    print_cursor("oldest", done->had_oldest, done->claimed_oldest, done->oldest, now);
    print_lacking(&done->lacking);
    print_notes(&in->report, done);
    if (values->dry_run)
        report_note(&in->report, "nothing was changed");
    return EXIT_OK;
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void add_ranges(hf__json *json, const char *key, const hf__ranges *ranges)
{
    hf__json_begin_array(json, key);
    for (size_t i = 0; i < ranges->count; i++) {
        hf__json_begin_object(json, NULL);
        hf__json_put_integer(json, "from", ranges->items[i].from);
        hf__json_put_integer(json, "to", ranges->items[i].to);
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
}

static void add_claim(hf__json *json, const char *key, bool had, int64_t claimed)
{
    if (had)
        hf__json_put_integer(json, key, claimed);
    else
        hf__json_put_null(json, key);
}

static int print_json(const struct invocation *in, const struct adopt_values *values,
                      const hf__adopt_report *done)
{
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write the result"};
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "network", values->network.network);
    hf__json_put_boolean(&json, "dry_run", values->dry_run);
    hf__json_put_boolean(&json, "moves_cursors", done->moves_cursors);
    add_claim(&json, "claimed_latest", done->had_latest, done->claimed_latest);
    add_claim(&json, "claimed_oldest", done->had_oldest, done->claimed_oldest);
    hf__json_put_integer(&json, "latest", done->latest);
    hf__json_put_integer(&json, "oldest", done->oldest);
    hf__json_put_string(&json, "evidence", done->by_transactions ? "transactions" : "ledgers");
    hf__json_put_integer(&json, "incomplete", done->incomplete);
    hf__json_put_text(&json, "misfit", done->misfit);
    add_ranges(&json, "covered", &done->covered);
    add_ranges(&json, "lacking", &done->lacking);
    hf__json_end_object(&json);
    return print_document(&json, stdout) ? EXIT_OK : report_error(&in->report, &err);
}

static int adopt(const struct invocation *in, hf_store *store, hf_network *network, void *arg)
{
    const struct adopt_values *values = arg;
    hf__adopt_report done = {0};
    hf_error err = {0};
    int code = EXIT_OK;

    if (values->leave && hf__adopt_leave(store, network, &err) != HF_OK)
        return report_error(&in->report, &err);
    if (values->leave) {
        report_note(&in->report,
                    "coverage of network %s is gone; data and cursors are as they were",
                    network->name);
        return EXIT_OK;
    }
    if (hf__adopt(store, network, values->dry_run, &done, &err) != HF_OK)
        code = report_error(&in->report, &err);
    else
        code = in->common.json ? print_json(in, values, &done) : print_text(in, values, &done);
    hf__adopt_report_free(&done);
    return code;
}

static int adopt_main(const struct command *self, int argc, char **argv)
{
    struct adopt_values values = {0};
    struct invocation in = {0};
    hf_error err = {0};
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    if (values.dry_run && values.leave &&
        hf__fail(&err, HF_INVALID, "--dry-run and --leave exclude each other") != HF_OK)
        return report_error(&in.report, &err);
    return with_network(&in, "holdfast ingest adopt", &values.network, adopt, &values);
}

const struct command cmd_ingest_adopt = {
    .name = "ingest adopt",
    .summary = "Build coverage from the data of a schema that another ingester has filled.",
    .usage = "--network NET [--schema NAME] [--dry-run | --leave]",
    .options = adopt_options,
    .main = adopt_main,
};
