#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/time.h"
#include "cli/choice.h"
#include "cli/options.h"
#include "cli/print.h"
#include "holdfast/holdfast.h"
#include "programs/registry/collisions.h"
#include "programs/registry/commands.h"

/* --- what the store holds and has recorded, key by key -------------------------------------- */

/* All that is known of one key. */
struct sighting {
    const hf_lock_view *view;       /* a holder or waiter of now, else the last one */
    const hf_registry_entry *entry; /* NULL: the registry does not have it, or that is unknown */
    const char *label;
    bool held;    /* or waited for, now */
    bool unknown; /* no label is known, and it may be one of a pattern that is not enumerated */
    int64_t times;
    int64_t seen_ms; /* ago; 0 when it is held */
    /* The holding that for sure has another lifetime than the registry says; NULL: none. */
    const struct piece *wrong;
};

/* One holding: of now, or the last one of the past. */
struct piece {
    const hf_lock_view *view;
    bool live;
};

/* Zero-initialise it, and free it in any case. */
struct sightings {
    hf_lock_list *live;
    hf_lock_list *past; /* NULL: the store keeps no records */
    struct piece *pieces;
    struct sighting *items; /* by space and key */
    size_t count;
    bool *used;                /* for each entry of the registry */
    struct hf__own_labels own; /* read when a key has no name otherwise */
};

static size_t count_of(const hf_lock_list *list)
{
    return list != NULL ? hf_lock_list_count(list) : 0;
}

/* By key. Of one key, what is held now comes first. */
static int by_key(const void *a, const void *b)
{
    const struct piece *left = a, *right = b;

    if (left->view->space != right->view->space)
        return left->view->space < right->view->space ? -1 : 1;
    if (left->view->key != right->view->key)
        return left->view->key < right->view->key ? -1 : 1;
    return right->live - left->live;
}

static bool is_same_key(const hf_lock_view *a, const hf_lock_view *b)
{
    return a->key == b->key && a->space == b->space;
}

static struct piece *gather(const struct sightings *sightings, size_t *count)
{
    size_t live = count_of(sightings->live), past = count_of(sightings->past);
    struct piece *pieces = calloc(live + past + 1, sizeof *pieces);

    if (pieces == NULL)
        return NULL;
    for (size_t i = 0; i < live; i++)
        pieces[i] = (struct piece){hf_lock_list_at(sightings->live, i), true};
    for (size_t i = 0; i < past; i++)
        pieces[live + i] = (struct piece){hf_lock_list_at(sightings->past, i), false};
    *count = live + past;
    qsort(pieces, *count, sizeof *pieces, by_key);
    return pieces;
}

static void add_piece(struct sighting *to, const struct piece *piece, const hf_registry *registry,
                      bool lifetimes_count)
{
    const hf_lock_view *view = piece->view;

    to->times += view->times;
    if (to->label[0] == '\0')
        to->label = view->label;
    if (to->view->application[0] == '\0')
        to->view = view;
    if (to->entry == NULL && view->name[0] != '\0')
        to->entry = hf_registry_find(registry, view->name);
    if (lifetimes_count && to->wrong == NULL && view->session_known && to->entry != NULL &&
        to->entry->lifetime_given && view->lifetime != to->entry->lifetime)
        to->wrong = piece;
}

/* Makes one sighting of all pieces that have the same key. Returns NULL without memory. */
static struct sighting *combine(const struct piece *pieces, size_t count,
                                const hf_registry *registry, bool lifetimes_count, size_t *made)
{
    struct sighting *items = calloc(count + 1, sizeof *items);

    *made = 0;
    for (size_t i = 0; items != NULL && i < count; i++) {
        if (i == 0 || !is_same_key(pieces[i].view, pieces[i - 1].view))
            items[(*made)++] = (struct sighting){
                .view = pieces[i].view,
                .label = "",
                .held = pieces[i].live,
                .seen_ms = pieces[i].view->seen_ms,
            };
        add_piece(&items[*made - 1], &pieces[i], registry, lifetimes_count);
    }
    return items;
}

/* --- keys that nobody named ----------------------------------------------------------------- */

static int by_space_and_key(const void *a, const void *b)
{
    const struct hf__own_label *label = a;
    const struct sighting *sighting = b;
    hf_space space = label->entry->view.space;

    if (space != sighting->view->space)
        return space < sighting->view->space ? -1 : 1;
    return label->key < sighting->view->key ? -1 : label->key > sighting->view->key;
}

/* A program that does not record leaves a bare key. The labels of the registry may tell it. */
static void name_by_own_labels(struct sightings *sightings)
{
    for (size_t i = 0; i < sightings->own.count; i++) {
        const struct hf__own_label *label = &sightings->own.items[i];
        struct sighting *found = bsearch(label, sightings->items, sightings->count,
                                         sizeof *sightings->items, by_space_and_key);
        if (found != NULL && found->entry == NULL)
            found->entry = &label->entry->view;
    }
}

/* Can a label of a pattern that is not enumerated have this key? */
static bool may_have(const struct sightings *sightings, const hf_registry *registry, size_t index,
                     const hf_lock_view *view)
{
    const hf__lock_entry *entry = &registry->entries[index];
    hf_derivation derivation = entry->view.derivation;

    if (entry->language == NULL || sightings->own.counts[index].enumerated ||
        entry->view.space != view->space)
        return false;
    if (derivation == HF_WITH_ADVISORY_LOCK)
        return view->key >= 0 && (uint32_t)view->key == 0;
    if (view->space == HF_PAIR)
        return !hf__entry_has_class(entry) || entry->view.pair[0] == (int32_t)(view->key >> 32);
    bool is_small = view->key >= INT32_MIN && view->key <= INT32_MAX;
    if (derivation == HF_MINTED)
        return view->key > INT32_MAX;
    return is_small || !hf__has_32_bits(derivation);
}

static bool is_nameless(const struct sighting *sighting)
{
    return sighting->entry == NULL && sighting->label[0] == '\0';
}

static hf_status judge_nameless(struct sightings *sightings, const hf_registry *registry,
                                hf_error *err)
{
    size_t nameless = 0;

    for (size_t i = 0; i < sightings->count; i++)
        nameless += is_nameless(&sightings->items[i]);
    if (nameless == 0)
        return HF_OK;
    hf_status status = hf__own_labels_list(registry, false, &sightings->own, err);
    if (status != HF_OK)
        return status;
    name_by_own_labels(sightings);
    for (size_t i = 0; i < sightings->count; i++)
        for (size_t j = 0; is_nameless(&sightings->items[i]) && j < registry->count; j++)
            sightings->items[i].unknown |=
                may_have(sightings, registry, j, sightings->items[i].view);
    return HF_OK;
}

static void mark_used(struct sightings *sightings, const hf_registry *registry)
{
    for (size_t i = 0; i < sightings->count; i++)
        for (size_t j = 0; j < hf_registry_count(registry); j++)
            if (hf_registry_at(registry, j) == sightings->items[i].entry)
                sightings->used[j] = true;
}

/* Reads what was seen in the last since_ms; -1: all that is recorded. Free it in any case. */
static hf_status read_sightings(hf_store *store, const hf_registry *registry, int64_t since_ms,
                                struct sightings *out, hf_error *err)
{
    size_t count = 0;
    hf_status status = hf_lock_list_read(store, &out->live, err);

    if (status == HF_OK)
        status = hf_lock_list_read_past(store, since_ms, &out->past, err);
    if (status == HF_NO_SCHEMA) /* what is held now is what there is */
        status = HF_OK;
    if (status != HF_OK)
        return status;
    out->pieces = gather(out, &count);
    out->used = calloc(hf_registry_count(registry) + 1, sizeof *out->used);
    /* A transaction on the local store holds its labels by session locks: lifetimes say nothing. */
    if (out->pieces != NULL)
        out->items = combine(out->pieces, count, registry, !hf_store_is_local(store), &out->count);
    if (out->items == NULL || out->used == NULL)
        return hf__no_memory(err);
    status = judge_nameless(out, registry, err);
    mark_used(out, registry);
    return status;
}

/* Is there a past that tells which entries are in use? */
static bool knows_the_past(const struct sightings *sightings)
{
    return count_of(sightings->past) > 0;
}

static void sightings_free(struct sightings *sightings)
{
    hf_lock_list_free(sightings->live);
    hf_lock_list_free(sightings->past);
    free(sightings->pieces);
    free(sightings->items);
    free(sightings->used);
    hf__own_labels_free(&sightings->own);
    *sightings = (struct sightings){0};
}

/* --- compared with the registry ------------------------------------------------------------- */

struct comparison {
    const struct invocation *in;
    hf_store *store;
    hf_registry *registry;
    int64_t since_ms; /* -1: all */
    bool strict;
    struct sightings seen;
    size_t unregistered;
    size_t unknown;
    size_t wrong;
    size_t unused;
};

static bool is_unregistered(const struct sighting *sighting)
{
    return sighting->entry == NULL && !sighting->unknown;
}

static bool is_unknown(const struct sighting *sighting)
{
    return sighting->unknown;
}

static bool is_wrong(const struct sighting *sighting)
{
    return sighting->wrong != NULL;
}

static const struct kind {
    const char *finding, *field;
    bool (*has)(const struct sighting *sighting);
} kinds[] = {
    {"unregistered", "unregistered", is_unregistered},
    {"unknown", "unknown", is_unknown},
    {"wrong lifetime", "wrong_lifetimes", is_wrong},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void count_findings(struct comparison *comparison)
{
    const struct sightings *seen = &comparison->seen;

    for (size_t i = 0; i < seen->count; i++) {
        comparison->unregistered += is_unregistered(&seen->items[i]);
        comparison->unknown += is_unknown(&seen->items[i]);
        comparison->wrong += is_wrong(&seen->items[i]);
    }
    for (size_t i = 0; knows_the_past(seen) && i < hf_registry_count(comparison->registry); i++)
        comparison->unused += !seen->used[i];
}

/* --- as a table for people ------------------------------------------------------------------ */

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

/* What a wrong lifetime is told with is of that one holding, not of others of the key. */
static struct sighting told(const struct kind *kind, const struct sighting *sighting)
{
    struct sighting one = *sighting;

    if (kind->has != is_wrong)
        return one;
    one.view = sighting->wrong->view;
    one.held = sighting->wrong->live;
    one.times = one.view->times;
    one.seen_ms = one.held ? 0 : one.view->seen_ms;
    return one;
}

static void add_sighting(struct table *table, const struct kind *kind,
                         const struct sighting *sighting)
{
    struct sighting one = told(kind, sighting);
    char text[64], ago[32];

    table_add_row(table);
    table_set(table, FINDING, kind->finding);
    table_set(table, NAME, one.entry != NULL ? one.entry->name : one.unknown ? "?" : "-");
    table_set(table, LABEL, one.label[0] != '\0' ? one.label : "-");
    table_set(table, KEY, show_key(text, one.view));
    table_set(table, LIFETIME, lifetime_of(one.view));
    table_set(table, APPLICATION, one.view->application);
    set_number(table, TIMES, one.times);
    snprintf(text, sizeof text, "%s ago", hf__show_duration(ago, sizeof ago, one.seen_ms));
    table_set(table, SEEN, one.held ? "now" : text);
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

    report_note(report, "%zu %s seen: %zu unregistered, %zu unknown, %zu with a wrong lifetime",
                seen->count, seen->count == 1 ? "key" : "keys", comparison->unregistered,
                comparison->unknown, comparison->wrong);
    if (comparison->unknown > 0)
        report_note(report, "unknown: a key without a recorded label, which may be that of a "
                            "pattern whose labels cannot all be listed");
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

    for (size_t k = 0; k < KINDS; k++)
        for (size_t i = 0; i < seen->count; i++)
            if (kinds[k].has(&seen->items[i]))
                add_sighting(table, &kinds[k], &seen->items[i]);
    for (size_t i = 0; knows_the_past(seen) && i < hf_registry_count(comparison->registry); i++)
        if (!seen->used[i])
            add_unused(table, hf_registry_at(comparison->registry, i));
    bool printed = table_print(table);
    table_free(table);
    return printed;
}

/* --- as JSON -------------------------------------------------------------------------------- */

/* The patterns that may have the key. */
static void write_candidates(hf__json *json, const struct comparison *comparison,
                             const struct sighting *sighting)
{
    const hf_registry *registry = comparison->registry;

    hf__json_begin_array(json, "may_be");
    for (size_t i = 0; i < registry->count; i++)
        if (may_have(&comparison->seen, registry, i, sighting->view))
            hf__json_put_string(json, NULL, registry->entries[i].view.name);
    hf__json_end_array(json);
}

static void write_sighting(hf__json *json, const struct comparison *comparison,
                           const struct kind *kind, const struct sighting *sighting)
{
    const hf_registry_entry *entry = sighting->entry;
    struct sighting one = told(kind, sighting);

    hf__json_begin_object(json, NULL);
    if (entry != NULL) {
        hf__json_put_string(json, "name", entry->name);
        hf__json_put_text(json, "pattern", entry->pattern != NULL ? entry->pattern : "");
        hf__json_put_string(json, "registered_lifetime", lifetime_name(entry->lifetime));
    }
    hf__json_put_text(json, "label", one.label);
    add_key(json, one.view);
    hf__json_put_text(json, "lifetime", lifetime_of(one.view));
    hf__json_put_text(json, "application", one.view->application);
    hf__json_put_text(json, "host", one.view->host);
    hf__json_put_boolean(json, "held", one.held);
    hf__json_put_integer(json, "times", one.times);
    hf__json_put_integer(json, "seen_ms", one.seen_ms);
    if (one.unknown)
        write_candidates(json, comparison, &one);
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
    for (size_t k = 0; k < KINDS; k++) {
        hf__json_begin_array(&json, kinds[k].field);
        for (size_t i = 0; i < seen->count; i++)
            if (kinds[k].has(&seen->items[i]))
                write_sighting(&json, comparison, &kinds[k], &seen->items[i]);
        hf__json_end_array(&json);
    }
    write_unused(&json, comparison);
    hf__json_end_object(&json);
    return print_document(&json, stdout);
}

/* --- the command ---------------------------------------------------------------------------- */

struct seen_values {
    struct number since;
    bool strict;
};

static const struct option seen_options[] = {
    {
        .name = "since",
        .value = "TIME",
        .help = "only what was seen in the last TIME (default: all that is recorded)",
        .kind = OPTION_DURATION,
        .offset = offsetof(struct seen_values, since),
    },
    {
        .name = "strict",
        .help = "exit with 1 for unknown keys as well",
        .offset = offsetof(struct seen_values, strict),
    },
    {0},
};

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
    bool found = comparison->unregistered > 0 || (comparison->strict && comparison->unknown > 0);
    return found ? EXIT_FINDINGS : EXIT_OK;
}

static hf_status open_both(struct comparison *comparison, hf_error *err)
{
    const struct invocation *in = comparison->in;
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_status status = open_needed_registry(&in->common, &comparison->registry, err);

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
    comparison.strict = values.strict;
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
    .usage = "[--since TIME] [--strict]",
    .options = seen_options,
    .main = seen_main,
};
