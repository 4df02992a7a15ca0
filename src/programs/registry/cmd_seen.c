#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/time.h"
#include "cli/choice.h"
#include "cli/lock_row.h"
#include "cli/options.h"
#include "cli/print_json.h"
#include "cli/registry_choice.h"
#include "programs/registry/commands.h"
#include "programs/registry/sightings.h"

struct seen_values {
    struct number since;
};

static const struct option seen_options[] = {
    {
        .name = "since",
        .value = "TIME",
        .help = "only what was seen in the last TIME (default: all that is recorded)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct seen_values, since),
    },
    {0},
};

struct comparison {
    const struct invocation *in;
    hf_store *store;
    hf_registry *registry;
    int64_t since_ms; /* -1: all */
    struct sightings seen;
    size_t unregistered;
    size_t wrong;
    size_t unused;
};

static void count_findings(struct comparison *comparison)
{
    const struct sightings *seen = &comparison->seen;

    for (size_t i = 0; i < seen->count; i++) {
        comparison->unregistered += seen->items[i].entry == NULL;
        comparison->wrong += seen->items[i].wrong_lifetime;
    }
    for (size_t i = 0; knows_the_past(seen) && i < hf_registry_count(comparison->registry); i++)
        comparison->unused += !seen->used[i];
}

/* ---- for people ------------------------------------------------------------------------------- */

enum { FINDING, NAME, LABEL, KEY, LIFETIME, APPLICATION, TIMES, SEEN };

static const struct column columns[] = {
    [FINDING] = {.title = "FINDING"},
    [NAME] = {.title = "NAME"},
    [LABEL] = {.title = "LABEL", .may_be_cut = true},
    [KEY] = {.title = "KEY", .to_the_right = true},
    [LIFETIME] = {.title = "LIFETIME", .rank = 2},
    [APPLICATION] = {.title = "APPLICATION", .may_be_cut = true, .rank = 1},
    [TIMES] = {.title = "TIMES", .to_the_right = true, .rank = 3},
    [SEEN] = {.title = "SEEN", .to_the_right = true},
    {0},
};

/* There are two: what is not the registry's is the other one. */
static const char *seen_lifetime(const struct sighting *sighting)
{
    const hf_registry_entry *entry = sighting->entry;

    if (entry == NULL || !sighting->wrong_lifetime)
        return lifetime_of(sighting->view);
    return lifetime_name(entry->lifetime == HF_TRANSACTION ? HF_SESSION : HF_TRANSACTION);
}

static void add_sighting(struct table *table, const char *finding, const struct sighting *sighting)
{
    char text[64], ago[32];

    table_add_row(table);
    table_set(table, FINDING, finding);
    table_set(table, NAME, sighting->entry != NULL ? sighting->entry->name : "-");
    table_set(table, LABEL, sighting->label[0] != '\0' ? sighting->label : "-");
    table_set(table, KEY, show_key(text, sighting->view));
    table_set(table, LIFETIME, seen_lifetime(sighting));
    table_set(table, APPLICATION, sighting->view->application);
    set_number(table, TIMES, sighting->times);
    snprintf(text, sizeof text, "%s ago", hf__show_duration(ago, sizeof ago, sighting->seen_ms));
    table_set(table, SEEN, sighting->held ? "now" : text);
}

static void add_unused(struct table *table, const hf_registry_entry *entry)
{
    table_add_row(table);
    table_set(table, FINDING, "unused");
    table_set(table, NAME, entry->name);
    table_set(table, LABEL, entry->pattern != NULL ? entry->pattern : "-");
}

static void summarise(const struct comparison *comparison)
{
    const struct report *report = &comparison->in->report;
    const struct sightings *seen = &comparison->seen;
    size_t entries = hf_registry_count(comparison->registry);

    report_note(report, "%zu %s seen: %zu unregistered, %zu with a wrong lifetime", seen->count,
                seen->count == 1 ? "key" : "keys", comparison->unregistered, comparison->wrong);
    if (knows_the_past(seen))
        report_note(report, "%zu of %zu entries of the registry %s unused", comparison->unused,
                    entries, comparison->unused == 1 ? "is" : "are");
    else if (seen->past != NULL)
        report_note(report, "nothing is recorded%s: entries that are unused cannot be told",
                    comparison->since_ms >= 0 ? " in that time" : " yet");
    else
        report_note(report, "the store keeps no records that can be read: this is only what is "
                            "held now ('holdfast init' installs them)");
}

static bool print_table(const struct comparison *comparison)
{
    const struct sightings *seen = &comparison->seen;
    struct table *table = table_new(columns);

    for (size_t i = 0; i < seen->count; i++)
        if (seen->items[i].entry == NULL)
            add_sighting(table, "unregistered", &seen->items[i]);
    for (size_t i = 0; i < seen->count; i++)
        if (seen->items[i].wrong_lifetime)
            add_sighting(table, "wrong lifetime", &seen->items[i]);
    for (size_t i = 0; knows_the_past(seen) && i < hf_registry_count(comparison->registry); i++)
        if (!seen->used[i])
            add_unused(table, hf_registry_at(comparison->registry, i));
    bool printed = table_print(table);
    table_free(table);
    return printed;
}

/* ---- for programs ----------------------------------------------------------------------------- */

static void write_sighting(hf__json *json, const struct sighting *sighting)
{
    const hf_registry_entry *entry = sighting->entry;

    hf__json_begin_object(json, NULL);
    if (entry != NULL) {
        hf__json_put_string(json, "name", entry->name);
        hf__json_put_text(json, "pattern", entry->pattern != NULL ? entry->pattern : "");
        hf__json_put_string(json, "registered_lifetime", lifetime_name(entry->lifetime));
    }
    hf__json_put_text(json, "label", sighting->label);
    add_key(json, sighting->view);
    hf__json_put_text(json, "lifetime", seen_lifetime(sighting));
    hf__json_put_text(json, "application", sighting->view->application);
    hf__json_put_text(json, "host", sighting->view->host);
    hf__json_put_boolean(json, "held", sighting->held);
    hf__json_put_integer(json, "times", sighting->times);
    hf__json_put_integer(json, "seen_ms", sighting->seen_ms);
    hf__json_end_object(json);
}

static void write_unused(hf__json *json, const struct comparison *comparison)
{
    const struct sightings *seen = &comparison->seen;

    if (!knows_the_past(seen)) {
        hf__json_put_null(json, "unused");
        return;
    }
    hf__json_begin_array(json, "unused");
    for (size_t i = 0; i < hf_registry_count(comparison->registry); i++) {
        const hf_registry_entry *entry = hf_registry_at(comparison->registry, i);
        if (seen->used[i])
            continue;
        hf__json_begin_object(json, NULL);
        hf__json_put_string(json, "name", entry->name);
        hf__json_put_text(json, "pattern", entry->pattern != NULL ? entry->pattern : "");
        hf__json_end_object(json);
    }
    hf__json_end_array(json);
}

static bool print_json(const struct comparison *comparison)
{
    const struct sightings *seen = &comparison->seen;
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "store", hf_store_name(comparison->store));
    hf__json_put_string(&json, "registry", hf_registry_path(comparison->registry));
    hf__json_put_integer(&json, "at_ms", hf__wall_ms());
    add_time(&json, "since_ms", comparison->since_ms);
    hf__json_put_boolean(&json, "records", seen->past != NULL);
    hf__json_put_integer(&json, "keys", (int64_t)seen->count);
    hf__json_begin_array(&json, "unregistered");
    for (size_t i = 0; i < seen->count; i++)
        if (seen->items[i].entry == NULL)
            write_sighting(&json, &seen->items[i]);
    hf__json_end_array(&json);
    hf__json_begin_array(&json, "wrong_lifetimes");
    for (size_t i = 0; i < seen->count; i++)
        if (seen->items[i].wrong_lifetime)
            write_sighting(&json, &seen->items[i]);
    hf__json_end_array(&json);
    write_unused(&json, comparison);
    hf__json_end_object(&json);
    return print_document(&json, stdout);
}

/* ----------------------------------------------------------------------------------------------- */

static int show(struct comparison *comparison)
{
    const struct invocation *in = comparison->in;
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write what was seen"};

    if (!in->common.json)
        prepare_for_tables();
    count_findings(comparison);
    if (!(in->common.json ? print_json(comparison) : print_table(comparison)))
        return report_error(&in->report, &err);
    if (!in->common.json)
        summarise(comparison);
    return comparison->unregistered > 0 ? EXIT_FINDINGS : EXIT_OK;
}

static hf_status open_both(struct comparison *comparison, hf_error *err)
{
    const struct invocation *in = comparison->in;
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    char *path = NULL;
    hf_status status = demand_registry(&in->common, &path, err);

    free(path);
    if (status == HF_OK)
        status = open_registry(&in->common, &comparison->registry, err);
    options.application = "holdfast registry seen";
    options.registry = comparison->registry;
    if (status == HF_OK)
        status = open_store(in, &options, &comparison->store, err);
    return status;
}

static int seen_main(const struct command *self, int argc, char **argv)
{
    struct seen_values values = {0};
    struct invocation in = {0};
    struct comparison comparison = {.in = &in};
    int code = EXIT_OK;
    hf_error err;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    comparison.since_ms = values.since.given ? values.since.value : -1;
    hf_status status = open_both(&comparison, &err);
    if (status == HF_OK)
        status = read_sightings(comparison.store, comparison.registry, comparison.since_ms,
                                &comparison.seen, &err);
    code = status == HF_OK ? show(&comparison) : report_error(&in.report, &err);
    sightings_free(&comparison.seen);
    hf_store_close(comparison.store);
    hf_registry_free(comparison.registry);
    return code;
}

const struct command cmd_registry_seen = {
    .name = "registry seen",
    .summary = "Compare what the database holds and has recorded with the registry.",
    .usage = "[--since TIME]",
    .options = seen_options,
    .main = seen_main,
};
