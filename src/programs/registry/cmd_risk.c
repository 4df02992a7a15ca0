#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/choice.h"
#include "cli/print.h"
#include "programs/registry/commands.h"
#include "programs/registry/risk.h"
#include "programs/registry/risk_labels.h"

/* --- as a table for people ------------------------------------------------------------------ */

enum { KEYS, BITS, FIXED, LABELS, COLLISION, AT_1_PERCENT, AT_50_PERCENT };

static const struct column columns[] = {
    [KEYS] = {.title = "KEYS"},
    [BITS] = {.title = "BITS", .to_the_right = true},
    [FIXED] = {.title = "FIXED", .to_the_right = true},
    [LABELS] = {.title = "LABELS", .to_the_right = true},
    [COLLISION] = {.title = "COLLISION"},
    [AT_1_PERCENT] = {.title = "1 % AT", .to_the_right = true},
    [AT_50_PERCENT] = {.title = "50 % AT", .to_the_right = true},
    {0},
};

static void set_count(struct table *table, size_t column, uint64_t count, const char *suffix)
{
    char number[32], text[48];

    snprintf(text, sizeof text, "%s%s", hf__risk_count(number, sizeof number, count), suffix);
    table_set(table, column, text);
}

static void add_row(struct table *table, const struct hf__risk_row *row)
{
    char text[HF__WORDS_MAX];

    table_add_row(table);
    table_set(table, KEYS, row->name);
    snprintf(text, sizeof text, "%u", row->bits);
    table_set(table, BITS, text);
    set_count(table, FIXED, row->fixed, "");
    set_count(table, LABELS, row->labels, row->unknown > 0 ? " + ?" : "");
    table_set(table, COLLISION, hf__risk_row_words(text, sizeof text, row));
    if (row->count_1pc > 0) {
        set_count(table, AT_1_PERCENT, row->count_1pc, "");
        set_count(table, AT_50_PERCENT, row->count_50pc, "");
    }
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void write_advice(hf__buf *out, const struct hf__risk_advice *advice)
{
    char labels[32];

    hf__buf_printf(out, "%s label%s of %s ", hf__risk_count(labels, sizeof labels, advice->labels),
                   plural(advice->labels), hf_derivation_name(advice->entry->view.derivation));
    if (advice->instead == HF_MINTED)
        hf__buf_puts(out, "are too many even for 64 bits: use minted keys");
    else
        hf__buf_puts(out, "are too many for 32 bits: derive them as sha256, or use minted keys");
    if (advice->leaves_class)
        hf__buf_puts(out, ", without a class");
}

static void put_place(hf__buf *out, const hf_registry *registry, const hf__lock_entry *entry)
{
    hf__buf_printf(out, "\n%s:%u:%u: %s: ", hf_registry_path(registry), entry->key_at.line,
                   entry->key_at.column, entry->view.name);
}

static void print_advice(const hf_registry *registry, const struct hf__risk *risk)
{
    hf__buf text = {0};

    for (size_t i = 0; i < risk->advice_count; i++) {
        put_place(&text, registry, risk->advice[i].entry);
        write_advice(&text, &risk->advice[i]);
    }
    for (size_t i = 0; i < risk->unknown_count; i++) {
        put_place(&text, registry, risk->unknown[i]);
        hf__buf_puts(&text, "nobody says how many labels it has: give expected");
    }
    if (text.length > 0)
        hf__buf_puts(&text, "\n");
    if (!text.broken && text.length > 0)
        fwrite(text.data, 1, text.length, stdout);
    hf__buf_free(&text);
}

static bool print_table(const hf_registry *registry, const struct hf__risk *risk)
{
    prepare_for_tables();
    struct table *table = table_new(columns);
    for (size_t i = 0; i < risk->row_count; i++)
        add_row(table, &risk->rows[i]);
    bool printed = table_print(table);
    table_free(table);
    if (printed)
        print_advice(registry, risk);
    return printed;
}

/* --- as JSON -------------------------------------------------------------------------------- */

static const char *kind_name(hf__risk_kind kind)
{
    static const char *const names[] = {
        [HF__RISK_DERIVATION] = "derivation",
        [HF__RISK_BIGINT] = "bigint",
        [HF__RISK_PAIR] = "pair",
        [HF__RISK_CLASS] = "class",
    };

    return names[kind];
}

static void add_count(hf__json *json, const char *key, uint64_t count)
{
    hf__json_put_integer(json, key, count > INT64_MAX ? INT64_MAX : (int64_t)count);
}

static void add_row_as_json(hf__json *json, const struct hf__risk_row *row)
{
    char words[HF__WORDS_MAX];

    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "kind", kind_name(row->kind));
    hf__json_put_string(json, "name", row->name);
    hf__json_put_integer(json, "bits", row->bits);
    add_count(json, "fixed", row->fixed);
    add_count(json, "labels", row->labels);
    add_count(json, "unknown", row->unknown);
    add_count(json, "shared", row->shared);
    hf__json_put_real(json, "probability", row->probability);
    hf__json_put_string(json, "words", hf__risk_row_words(words, sizeof words, row));
    if (row->count_1pc > 0) {
        add_count(json, "labels_at_1_percent", row->count_1pc);
        add_count(json, "labels_at_50_percent", row->count_50pc);
    } else {
        hf__json_put_null(json, "labels_at_1_percent");
        hf__json_put_null(json, "labels_at_50_percent");
    }
    hf__json_put_boolean(json, "too_likely", row->too_likely);
    hf__json_end_object(json);
}

static void begin_entry(hf__json *json, const hf__lock_entry *entry)
{
    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "name", entry->view.name);
    hf__json_put_integer(json, "line", entry->key_at.line);
    hf__json_put_integer(json, "column", entry->key_at.column);
}

static void add_advice(hf__json *json, const struct hf__risk_advice *advice)
{
    begin_entry(json, advice->entry);
    add_count(json, "labels", advice->labels);
    hf__json_put_string(json, "derivation", hf_derivation_name(advice->entry->view.derivation));
    hf__json_put_string(json, "instead", hf_derivation_name(advice->instead));
    hf__json_end_object(json);
}

static bool print_json(const hf_registry *registry, const struct hf__risk *risk)
{
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "registry", hf_registry_path(registry));
    hf__json_put_real(&json, "limit", risk->limit);
    hf__json_begin_array(&json, "risks");
    for (size_t i = 0; i < risk->row_count; i++)
        add_row_as_json(&json, &risk->rows[i]);
    hf__json_end_array(&json);
    hf__json_begin_array(&json, "advice");
    for (size_t i = 0; i < risk->advice_count; i++)
        add_advice(&json, &risk->advice[i]);
    hf__json_end_array(&json);
    hf__json_begin_array(&json, "unknown");
    for (size_t i = 0; i < risk->unknown_count; i++) {
        begin_entry(&json, risk->unknown[i]);
        hf__json_end_object(&json);
    }
    hf__json_end_array(&json);
    hf__json_end_object(&json);
    return print_document(&json, stdout);
}

/* --- the command ---------------------------------------------------------------------------- */

struct risk_values {
    const char *labels;
    const char *derivation;
    bool null_separated;
};

static const struct option risk_options[] = {
    {
        .name = "labels",
        .value = "FILE",
        .help = "find the real collisions in a list, one label a line; -: standard input",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct risk_values, labels),
    },
    {
        .name = "as",
        .value = "DERIVATION",
        .help = "derive every label of the list so, instead of as the registry says",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct risk_values, derivation),
    },
    {
        .letter = '0',
        .name = "null",
        .help = "labels of the list end with NUL, not with a newline",
        .offset = offsetof(struct risk_values, null_separated),
    },
    {0},
};

static int show_risk(const struct invocation *in, const hf_registry *registry)
{
    struct hf__risk risk = {0};
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write the risks"};

    if (hf__risk_assess(registry, registry->conventions.max_risk, &risk, &err) != HF_OK)
        return report_error(&in->report, &err);
    bool printed = in->common.json ? print_json(registry, &risk) : print_table(registry, &risk);
    if (printed && risk.row_count == 0 && !in->common.json)
        report_note(&in->report, "%s has no locks", hf_registry_path(registry));
    hf__risk_free(&risk);
    return printed ? EXIT_OK : report_error(&in->report, &err);
}

static bool usage_is_wrong(const struct command *self, const struct invocation *in,
                           const struct risk_values *values, int *code)
{
    const char *alone = values->derivation != NULL ? "--as"
                        : values->null_separated   ? "--null"
                                                   : "";

    if (values->labels != NULL || alone[0] == '\0')
        return false;
    *code = report_usage(&in->report, self, "%s goes with --labels", alone);
    return true;
}

static int risk_main(const struct command *self, int argc, char **argv)
{
    struct risk_values values = {0};
    struct invocation in = {0};
    hf_derivation derivation = HF_SHA256;
    hf_registry *registry = NULL;
    int code = EXIT_OK;
    hf_error err;

    if (!parse_options(self, argc, argv, &values, &in, &code) ||
        usage_is_wrong(self, &in, &values, &code))
        return code;
    if (values.derivation != NULL &&
        hf_derivation_parse(values.derivation, &derivation, &err) != HF_OK)
        return report_error(&in.report, &err);
    if (derivation == HF_MINTED)
        return report_usage(&in.report, self, "minted keys are not computed from labels");
    /* A list of labels can do without a registry. */
    hf_status status = values.labels != NULL ? open_registry(&in.common, &registry, &err)
                                             : open_needed_registry(&in.common, &registry, &err);
    if (status != HF_OK)
        return report_error(&in.report, &err);
    struct label_choice choice = {
        .path = values.labels,
        .null_separated = values.null_separated,
        .as = values.derivation != NULL ? &derivation : NULL,
        .registry = registry,
    };
    code = values.labels != NULL ? examine_labels(&in, &choice) : show_risk(&in, registry);
    hf_registry_free(registry);
    return code;
}

const struct command cmd_registry_risk = {
    .name = "registry risk",
    .summary = "Say how likely two labels get the same key, or find those that do.",
    .usage = "[--labels FILE [-0] [--as DERIVATION]]",
    .options = risk_options,
    .main = risk_main,
};
