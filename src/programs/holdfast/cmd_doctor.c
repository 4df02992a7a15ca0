#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/choice.h"
#include "cli/options.h"
#include "cli/print.h"
#include "programs/holdfast/commands.h"

/* Findings are printed as they come: when the examination hangs, one sees how far it got. */
struct findings {
    const struct invocation *in;
    bool colour;
    int problems;
    hf__json json;
};

static const struct level {
    const char *name;
    const char *colour;
} levels[] = {
    [HF_LEVEL_OK] = {"ok", "32"},
    [HF_LEVEL_WARNING] = {"warning", "1;33"},
    [HF_LEVEL_PROBLEM] = {"problem", "1;31"},
};

static void print_finding(const struct findings *findings, const struct level *level,
                          const char *topic, const char *text, const char *remedy)
{
    if (findings->colour)
        printf("\033[%sm%-8s\033[0m %-12s %s\n", level->colour, level->name, topic, text);
    else
        printf("%-8s %-12s %s\n", level->name, topic, text);
    if (remedy[0] != '\0')
        printf("%-8s %-12s -> %s\n", "", "", remedy);
    fflush(stdout);
}

static void add_finding(void *arg, hf_level level, const char *topic, const char *text,
                        const char *remedy)
{
    struct findings *findings = arg;

    if (level == HF_LEVEL_PROBLEM)
        findings->problems++;
    if (!findings->in->common.json) {
        print_finding(findings, &levels[level], topic, text, remedy);
        return;
    }
    hf__json_begin_object(&findings->json, NULL);
    hf__json_put_string(&findings->json, "level", levels[level].name);
    hf__json_put_string(&findings->json, "topic", topic);
    hf__json_put_string(&findings->json, "text", text);
    hf__json_put_text(&findings->json, "remedy", remedy);
    hf__json_end_object(&findings->json);
}

static void examine(struct findings *findings, hf_store *store)
{
    hf_error err;

    if (hf_store_examine(store, add_finding, findings, &err) != HF_OK)
        add_finding(findings, HF_LEVEL_PROBLEM, "examination", err.message, err.hint);
}

/* Also where the store cannot be opened: what is there may be the reason. */
static void prove(struct findings *findings, hf_store_options *options)
{
    struct store_choice choice;
    hf_error err = {0};
    hf_status status = prepare_store(findings->in, options, &choice, &err);

    if (status == HF_OK)
        status = hf_store_prove(options, add_finding, findings, &err);
    if (status != HF_OK)
        add_finding(findings, HF_LEVEL_PROBLEM, "proof", err.message, err.hint);
    options->url = NULL;
    store_choice_free(&choice);
}

static int finish(struct findings *findings, const hf_store *store)
{
    hf__json *json = &findings->json;
    hf_error err = {.code = HF_SYSTEM, .message = "cannot write the findings"};

    if (findings->in->common.json) {
        hf__json_end_array(json);
        hf__json_put_integer(json, "problems", findings->problems);
        hf__json_put_text(json, "store", store != NULL ? hf_store_name(store) : "");
        hf__json_end_object(json);
        if (!print_document(json, stdout))
            return report_error(&findings->in->report, &err);
    }
    return findings->problems > 0 ? EXIT_FINDINGS : EXIT_OK;
}

/* Which file decides what the names of locks mean. */
static void tell_registry(struct findings *findings, const hf_registry *registry)
{
    char text[2 * SHOWN_MAX], shown[SHOWN_MAX];

    if (registry == NULL) {
        add_finding(findings, HF_LEVEL_OK, "registry", "none", "");
        return;
    }
    snprintf(text, sizeof text, "%zu locks in %s (%s)", hf_registry_count(registry),
             show_argument(shown, hf_registry_path(registry)),
             registry_chooser(&findings->in->common));
    add_finding(findings, HF_LEVEL_OK, "registry", text, "");
}

struct doctor_values {
    bool prove;
};

static const struct option doctor_options[] = {
    {
        .name = "prove",
        .help = "also find out by trying whether locks work here, for each lifetime",
        .offset = offsetof(struct doctor_values, prove),
    },
    {0},
};

static int doctor_main(const struct command *self, int argc, char **argv)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    struct doctor_values values = {0};
    struct invocation in = {0};
    struct findings findings = {.in = &in, .colour = wants_colour(STDOUT_FILENO)};
    hf_registry *registry = NULL;
    hf_store *store = NULL;
    int code = EXIT_OK;
    hf_error err;

    if (!parse_options(self, argc, argv, &values, &in, &code))
        return code;
    if (in.common.json) {
        hf__json_begin_object(&findings.json, NULL);
        hf__json_begin_array(&findings.json, "findings");
    }
    options.application = "holdfast doctor";
    if (open_registry(&in.common, &registry, &err) != HF_OK)
        add_finding(&findings, HF_LEVEL_PROBLEM, "registry", err.message, err.hint);
    else
        tell_registry(&findings, registry);
    options.registry = registry;
    if (open_store(&in, &options, &store, &err) == HF_OK)
        examine(&findings, store);
    else
        add_finding(&findings, HF_LEVEL_PROBLEM, "connection", err.message, err.hint);
    if (values.prove)
        prove(&findings, &options);
    code = finish(&findings, store);
    hf_store_close(store);
    hf_registry_free(registry);
    return code;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "Examine the store: what is fit for locks, what is not, and the remedy.",
    .usage = "[OPTION...]",
    .options = doctor_options,
    .main = doctor_main,
};

/* ---- holdfast init --------------------------------------------------------------------------- */

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
