#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "cli/choice.h"
#include "cli/load.h"
#include "cli/print.h"
#include "programs/registry/commands.h"
#include "programs/registry/findings.h"
#include "programs/registry/lint/baseline.h"
#include "programs/registry/lint/lint.h"

struct lint_values {
    struct texts includes;
    struct texts excludes;
    struct texts only;
    struct texts without;
    const char *confidence;
    const char *format;
    const char *baseline;
    const char *write_baseline;
    bool vendored;
    bool list;
    bool list_rules;
};

static const struct option lint_options[] = {
    {
        .name = "include",
        .value = "GLOB",
        .help = "look at these files too, as .gitignore names them: '*.sh', 'db/**/*.txt'",
        .kind = OPTION_TEXTS,
        .offset = offsetof(struct lint_values, includes),
    },
    {
        .name = "exclude",
        .value = "GLOB",
        .help = "leave out these files and folders, named as in .gitignore; may be repeated",
        .kind = OPTION_TEXTS,
        .offset = offsetof(struct lint_values, excludes),
    },
    {
        .name = "vendored",
        .help = "look into node_modules, vendor and other folders of other people's code, too",
        .offset = offsetof(struct lint_values, vendored),
    },
    {
        .name = "baseline",
        .value = "FILE",
        .help = "accept the findings that this file lists",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct lint_values, baseline),
    },
    {
        .name = "write-baseline",
        .value = "FILE",
        .help = "write today's findings to this file, for --baseline, and end",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct lint_values, write_baseline),
    },
    {
        .name = "rule",
        .value = "RULE",
        .help = "check only this rule; may be repeated",
        .kind = OPTION_TEXTS,
        .offset = offsetof(struct lint_values, only),
    },
    {
        .name = "no-rule",
        .value = "RULE",
        .help = "do not check this rule; may be repeated",
        .kind = OPTION_TEXTS,
        .offset = offsetof(struct lint_values, without),
    },
    {
        .name = "confidence",
        .value = "LEVEL",
        .help = "what a heuristic must have to be reported: high, medium (the default) or low",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct lint_values, confidence),
    },
    {
        .name = "list",
        .help = "print every use of a lock, what was read of it and what became of it",
        .offset = offsetof(struct lint_values, list),
    },
    {
        .name = "list-rules",
        .help = "print the rules and end",
        .offset = offsetof(struct lint_values, list_rules),
    },
    FINDINGS_FORMAT_OPTION(struct lint_values, format),
    {0},
};

static void free_values(struct lint_values *values)
{
    free(values->includes.items);
    free(values->excludes.items);
    free(values->only.items);
    free(values->without.items);
}

static int list_rules(void)
{
    for (const hf__rule *rule = hf__lint_rules; rule->id != NULL; rule++)
        printf("%-28s %-8s %s\n", rule->id, hf__severity_name(rule->severity), rule->summary);
    return EXIT_OK;
}

/* --- what the options choose ---------------------------------------------------------------- */

static bool choose_rules(const struct invocation *in, const struct command *self,
                         const struct texts *names, bool off, hf__lint_options *options,
                         int *exit_code)
{
    char shown[SHOWN_MAX];

    for (size_t i = 0; i < names->count; i++) {
        hf__lint_rule rule = hf__lint_rule_find(names->items[i], strlen(names->items[i]));
        if (rule == HF__LINT_RULES) {
            *exit_code = report_usage(&in->report, self, "there is no rule '%s': see --list-rules",
                                      show_argument(shown, names->items[i]));
            return false;
        }
        options->off[rule] = off;
    }
    return true;
}

static bool choose_confidence(const struct invocation *in, const struct command *self,
                              const char *name, hf__confidence *least, int *exit_code)
{
    static const char *const names[] = {
        [HF__LOW] = "low", [HF__MEDIUM] = "medium", [HF__HIGH] = "high"};
    char shown[SHOWN_MAX];

    *least = HF__MEDIUM;
    if (name == NULL)
        return true;
    for (hf__confidence level = HF__LOW; level <= HF__HIGH; level++) {
        if (strcmp(names[level], name) == 0) {
            *least = level;
            return true;
        }
    }
    *exit_code = report_usage(&in->report, self, "--confidence is high, medium or low, not '%s'",
                              show_argument(shown, name));
    return false;
}

static bool choose(const struct invocation *in, const struct command *self,
                   const struct lint_values *values, hf__lint_options *options, int *exit_code)
{
    options->includes = values->includes.items;
    options->include_count = values->includes.count;
    options->excludes = values->excludes.items;
    options->exclude_count = values->excludes.count;
    options->vendored = values->vendored;
    for (size_t i = 0; values->only.count > 0 && i < HF__LINT_RULES; i++)
        options->off[i] = true;
    return choose_rules(in, self, &values->only, false, options, exit_code) &&
           choose_rules(in, self, &values->without, true, options, exit_code) &&
           choose_confidence(in, self, values->confidence, &options->least, exit_code);
}

/* --- reading the sources -------------------------------------------------------------------- */

static void warn(void *arg, const char *path, const char *why)
{
    const struct invocation *in = arg;
    char shown[SHOWN_MAX];

    report_warning(&in->report, "%s: %s", show_argument(shown, path), why);
}

/* Looks for typing errors before anything is printed. */
static hf_status check_paths(const struct invocation *in, hf_error *err)
{
    struct stat status;
    char shown[SHOWN_MAX];

    for (int i = 0; i < in->count; i++) {
        if (stat(in->operands[i], &status) == 0)
            continue;
        hf_status failed = hf__fail_errno(err, HF_BAD_DATA, errno, "cannot read %s",
                                          show_argument(shown, in->operands[i]));
        hf__hint(err, "name a file or a folder that is there");
        return failed;
    }
    return HF_OK;
}

static hf_status lint_all(const struct invocation *in, hf__lint *lint, hf__findings *findings,
                          hf_error *err)
{
    static const char *const here[] = {"."};

    if (in->count == 0)
        return hf__lint_paths(lint, here, 1, findings, err);
    return hf__lint_paths(lint, (const char *const *)in->operands, (size_t)in->count, findings,
                          err);
}

static const struct column use_columns[] = {
    {.title = "PLACE"},
    {.title = "OUTCOME"},
    {.title = "KEY", .may_be_cut = true},
    {.title = "NAME"},
    {.title = "CALL", .rank = 1},
    {.title = "LIFETIME", .rank = 2},
    {.title = "AS", .rank = 3},
    {.title = "WHY", .may_be_cut = true, .rank = 4},
    {0},
};

static bool print_table(const hf__sites *ledger)
{
    struct table *table = table_new(use_columns);
    char place[PATH_MAX + 32];
    bool printed;

    for (size_t i = 0; i < ledger->count; i++) {
        const hf__site *site = &ledger->items[i];
        snprintf(place, sizeof place, "%s:%u:%u", site->file, site->line, site->column);
        table_add_row(table);
        table_set(table, 0, place);
        table_set(table, 1, hf__site_outcome_name(site->outcome));
        table_set(table, 2, site->key);
        table_set(table, 3, site->entry);
        table_set(table, 4, site->call);
        table_set(table, 5, site->lifetime);
        table_set(table, 6, site->derivation);
        table_set(table, 7, site->why);
    }
    printed = table != NULL && table_print(table);
    table_free(table);
    return printed;
}

static bool print_uses_as_json(const hf__sites *ledger)
{
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__sites_put_uses(&json, ledger);
    hf__sites_put_counts(&json, ledger);
    hf__json_end_object(&json);
    return print_document(&json, stdout);
}

static void show_ledger(const hf__sites *ledger)
{
    char shown[HF__SITES_SHOWN];

    fprintf(stderr, "%s\n", hf__sites_show(ledger, shown));
}

/* A list judges nothing: it ends with 0 whatever it shows. */
static int print_list(const struct invocation *in, enum findings_format format,
                      const hf__lint *lint)
{
    const hf__sites *ledger = hf__lint_sites_of(lint);
    hf_error err = {.code = HF_NO_MEMORY, .message = "out of memory"};
    bool json = format == FINDINGS_JSON;

    prepare_for_tables();
    if (ledger->broken || !(json ? print_uses_as_json(ledger) : print_table(ledger)) ||
        fflush(stdout) != 0) {
        if (ferror(stdout))
            hf__set_error_errno(&err, HF_SYSTEM, errno, "cannot write to standard output");
        return report_error(&in->report, &err);
    }
    if (!json)
        show_ledger(ledger);
    return EXIT_OK;
}

/* What the document says besides findings. */
struct more {
    const hf__sites *sites;
    const struct baseline *baseline;
};

static void add_more(hf__json *json, const void *arg)
{
    const struct more *more = arg;

    hf__sites_put_counts(json, more->sites);
    hf__json_begin_object(json, "baseline");
    hf__json_put_integer(json, "accepted", (int64_t)more->baseline->accepted);
    hf__json_put_integer(json, "gone", (int64_t)more->baseline->gone);
    hf__json_end_object(json);
}

static void add_to_examined(char *examined, size_t room, size_t count, const char *one,
                            const char *many, bool *any)
{
    size_t length = strlen(examined);

    if (count == 0)
        return;
    snprintf(examined + length, room - length, "%s%zu %s", *any ? ", " : " (", count,
             count == 1 ? one : many);
    *any = true;
}

static int print(const struct invocation *in, enum findings_format format, const hf__lint *lint,
                 const struct baseline *baseline, hf__findings *findings)
{
    static const hf__rule *const rules[] = {hf__lint_rules, NULL};
    hf__lint_totals totals = hf__lint_totals_of(lint);
    const struct more more = {hf__lint_sites_of(lint), baseline};
    char examined[128];
    bool any = false;
    struct findings_output output = {
        .format = format,
        .command = "registry lint",
        .rules = rules,
        .examined = examined,
        .add_json = add_more,
        .arg = &more,
        .ignored = totals.ignored,
    };
    int code;

    snprintf(examined, sizeof examined, "%zu file%s", totals.files, totals.files == 1 ? "" : "s");
    add_to_examined(examined, sizeof examined, totals.skipped, "skipped", "skipped", &any);
    add_to_examined(examined, sizeof examined, totals.vendored, "vendored folder left out",
                    "vendored folders left out", &any);
    if (any)
        snprintf(examined + strlen(examined), sizeof examined - strlen(examined), ")");
    code = print_findings(in, &output, findings);
    if (format != FINDINGS_JSON)
        show_ledger(hf__lint_sites_of(lint));
    return code;
}

static hf_status prepare(const struct invocation *in, hf_registry **registry, hf_error *err)
{
    hf_status status = check_paths(in, err);

    if (status == HF_OK)
        status = load_libcrypto(err);
    if (status == HF_OK)
        status = open_registry(&in->common, registry, err);
    if (status == HF_OK && *registry == NULL)
        report_note(&in->report, "no registry found: what compares with one is not checked");
    return status;
}

/* "No findings" would be no lie, and no truth either. Files that were skipped are told of. */
static hf_status expect_files(const struct invocation *in, const hf__lint *lint, hf_error *err)
{
    hf__lint_totals totals = hf__lint_totals_of(lint);
    char shown[SHOWN_MAX];
    hf_status status;

    if (totals.files > 0 || totals.skipped > 0)
        return HF_OK;
    status = hf__fail(err, HF_BAD_DATA, "there is no source file in %s%s",
                      show_argument(shown, in->count > 0 ? in->operands[0] : "."),
                      in->count > 1 ? " and the others" : "");
    hf__hint(err,
             "name the folder of the code; .gitignore, --exclude and folders of other people's "
             "code leave files out, and --include adds kinds of files");
    return status;
}

/* Takes away what the baseline accepts, and tells so. */
static hf_status accept(const struct invocation *in, const struct lint_values *values,
                        struct baseline *baseline, hf__findings *findings, hf_error *err)
{
    hf_status status;

    if (values->baseline == NULL)
        return HF_OK;
    status = baseline_read(baseline, values->baseline, err);
    if (status == HF_OK)
        status = baseline_apply(baseline, findings, err);
    if (status == HF_OK && baseline->accepted > 0)
        report_note(&in->report, "%zu finding%s accepted by the baseline", baseline->accepted,
                    baseline->accepted == 1 ? " is" : "s are");
    if (status == HF_OK && baseline->gone > 0)
        report_note(&in->report, "%zu of the baseline's findings %s gone: write it anew",
                    baseline->gone, baseline->gone == 1 ? "is" : "are");
    return status;
}

static int run(const struct invocation *in, const struct lint_values *values,
               hf__lint_options *options, enum findings_format format)
{
    hf_registry *registry = NULL;
    hf__findings findings = {0};
    struct baseline baseline = {0};
    hf__lint *lint = NULL;
    hf_error err = {0};
    hf_status status = prepare(in, &registry, &err);
    int code;

    options->registry = registry;
    if (status == HF_OK)
        status = hf__lint_new(options, &lint, &err);
    if (status == HF_OK)
        status = lint_all(in, lint, &findings, &err);
    if (status == HF_OK)
        status = values->write_baseline != NULL
                     ? baseline_write(values->write_baseline, &findings, &err)
                     : accept(in, values, &baseline, &findings, &err);
    if (status == HF_OK)
        status = expect_files(in, lint, &err);
    if (status != HF_OK)
        code = report_error(&in->report, &err);
    else if (options->list)
        code = print_list(in, format, lint);
    else if (values->write_baseline != NULL)
        code = EXIT_OK;
    else
        code = print(in, format, lint, &baseline, &findings);
    baseline_free(&baseline);
    hf__lint_free(lint);
    hf__findings_free(&findings);
    hf_registry_free(registry);
    return code;
}

static int lint_main(const struct command *self, int argc, char **argv)
{
    struct lint_values values = {0};
    struct invocation in = {0};
    enum findings_format format;
    int code = EXIT_OK;

    if (!parse_options(self, argc, argv, &values, &in, &code)) {
        free_values(&values);
        return code;
    }
    hf__lint_options options = {.list = values.list, .warn = warn, .warn_arg = &in};
    if (values.list_rules)
        code = list_rules();
    else if (choose_findings_format(self, &in, values.format, &format, &code) &&
             choose(&in, self, &values, &options, &code))
        code = run(&in, &values, &options, format);
    free_values(&values);
    return code;
}

const struct command cmd_registry_lint = {
    .name = "registry lint",
    .summary = "Find advisory locks in source code, and what is wrong with their use.",
    .usage = "[OPTION...] [PATH...]\n--list [OPTION...] [PATH...]\n--list-rules",
    .options = lint_options,
    .takes_operands = true,
    .main = lint_main,
};
