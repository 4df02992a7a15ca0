#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/choice.h"
#include "cli/load.h"
#include "lib/registry/finding.h"
#include "lib/registry/registry.h"
#include "programs/registry/check.h"
#include "programs/registry/commands.h"
#include "programs/registry/findings.h"
#include "programs/registry/risk.h"

struct check_values {
    const char *max_risk;
    const char *format;
};

static const struct option check_options[] = {
    {
        .name = "max-risk",
        .value = "P",
        .help = "report a collision likelier than this: 0.01 or 1%; 1 never",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct check_values, max_risk),
    },
    FINDINGS_FORMAT_OPTION(struct check_values, format),
    {0},
};

/* Reads "0.01" or "1%"; returns false for anything else. */
static bool read_probability(const char *text, double *probability)
{
    size_t digits = strspn(text, "0123456789.");
    char *end = NULL;

    if (digits == 0)
        return false;
    *probability = strtod(text, &end);
    if (end != text + digits)
        return false;
    if (*end == '%') {
        *probability /= 100;
        end++;
    }
    return *end == '\0' && *probability <= 1;
}

static hf_status examine(const char *path, double max_risk, hf_registry **registry,
                         hf__findings *findings, struct hf__compared *compared, hf_error *err)
{
    hf_status status = load_libyaml(err);

    if (status == HF_OK)
        status = load_libcrypto(err);
    if (status == HF_OK)
        status = hf__registry_examine(path, registry, findings, err);
    if (status == HF_OK && *registry != NULL)
        status = hf__check_registry(*registry, max_risk, findings, compared, err);
    return status;
}

static void add_compared(hf__json *json, const void *arg)
{
    const struct hf__compared *compared = arg;

    hf__json_begin_object(json, "compared");
    hf__json_put_integer(json, "keys", (int64_t)compared->keys);
    hf__json_put_integer(json, "not_enumerated", (int64_t)compared->not_enumerated);
    if (compared->unknown == 0)
        hf__json_put_real(json, "probability", compared->probability);
    else
        hf__json_put_null(json, "probability");
    hf__json_end_object(json);
}

/* What is left to chance, as the end of a sentence. */
static void write_odds(char *out, size_t out_size, const struct hf__compared *compared)
{
    char odds[HF__WORDS_MAX];
    bool is_bound = compared->unknown > 0;

    if (is_bound && !(compared->probability > 0))
        snprintf(out, out_size,
                 "how likely two locks share a key is not known, for not all say how many labels "
                 "they expect");
    else
        snprintf(out, out_size, "two locks share a key with odds of %s%s",
                 hf__risk_words(odds, sizeof odds, compared->probability),
                 is_bound ? ", or more: not all say how many labels they expect" : "");
}

/* Not all keys can be compared. People are told which were, and what is left to chance. */
static void tell_compared(const struct report *report, const struct hf__compared *compared)
{
    char keys[HF__WORDS_MAX], odds[HF__WORDS_MAX + 100];

    if (compared->not_enumerated == 0)
        return;
    write_odds(odds, sizeof odds, compared);
    report_note(
        report, "%s key%s compared; %zu pattern%s more labels than that can be done with: %s",
        hf__risk_count(keys, sizeof keys, compared->keys), compared->keys == 1 ? " is" : "s are",
        compared->not_enumerated, compared->not_enumerated == 1 ? " has" : "s have", odds);
}

static int check_file(const struct invocation *in, const char *path, double max_risk,
                      enum findings_format format)
{
    static const hf__rule *const rules[] = {hf__reading_rules, hf__check_rules, NULL};
    struct hf__compared compared = {0};
    struct findings_output output = {
        .format = format,
        .command = "registry check",
        .rules = rules,
        .add_json = add_compared,
        .arg = &compared,
    };
    hf__findings findings = {0};
    hf_registry *registry = NULL;
    char examined[32] = "no registry";
    hf_error err;
    int code;

    if (examine(path, max_risk, &registry, &findings, &compared, &err) != HF_OK) {
        code = report_error(&in->report, &err);
    } else {
        size_t count = registry != NULL ? hf_registry_count(registry) : 0;
        if (registry != NULL)
            snprintf(examined, sizeof examined, "%zu lock%s", count, count == 1 ? "" : "s");
        output.examined = examined;
        code = print_findings(in, &output, &findings);
        if (format != FINDINGS_JSON)
            tell_compared(&in->report, &compared);
    }
    hf__findings_free(&findings);
    hf_registry_free(registry);
    return code;
}

static int check_main(const struct command *self, int argc, char **argv)
{
    struct check_values values = {0};
    struct invocation in = {0};
    enum findings_format format;
    double max_risk = -1;
    char *path = NULL;
    char shown[SHOWN_MAX];
    int code = EXIT_OK;
    hf_error err;

    if (!parse_options(self, argc, argv, &values, &in, &code) ||
        !choose_findings_format(self, &in, values.format, &format, &code))
        return code;
    if (values.max_risk != NULL && !read_probability(values.max_risk, &max_risk))
        return report_usage(&in.report, self,
                            "--max-risk is a probability such as 0.01 or 1%%, not '%s'",
                            show_argument(shown, values.max_risk));
    if (in.count > 1 || (in.count == 1 && in.common.registry != NULL))
        return report_usage(&in.report, self, "one registry at a time");
    if (in.count == 1)
        return check_file(&in, in.operands[0], max_risk, format);
    if (demand_registry(&in.common, &path, &err) != HF_OK)
        return report_error(&in.report, &err);
    code = check_file(&in, path, max_risk, format);
    free(path);
    return code;
}

const struct command cmd_registry_check = {
    .name = "registry check",
    .summary = "Check the registry: its form, names, ids, patterns that meet, risk.",
    .usage = "[--max-risk P] [--format FORMAT] [FILE]",
    .options = check_options,
    .takes_operands = true,
    .main = check_main,
};
