#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/options.h"
#include "programs/registry/commands.h"
#include "programs/registry/import/import.h"

enum { MOST_NOTES = 50, NAME_MAX_SIZE = 200 };

static void print_notes(const struct report *report, const hf__findings *notes)
{
    for (size_t i = 0; i < notes->count && i < MOST_NOTES; i++) {
        const hf__finding *note = &notes->items[i];
        if (note->rule->severity == HF__SEVERITY_WARNING)
            report_warning(report, "%s:%u: %s", note->file, note->line, note->message);
        else
            report_note(report, "%s:%u: %s", note->file, note->line, note->message);
    }
    if (notes->count + notes->dropped > MOST_NOTES)
        report_note(report, "and %zu more", notes->count + notes->dropped - MOST_NOTES);
}

static hf_status read_markdown(const char *path, const char *name, hf__buf *text, hf_error *err)
{
    if (strcmp(path, "-") == 0)
        return hf__read_fd(STDIN_FILENO, name, HF__IMPORT_MAX, text, HF_SYSTEM, err);
    return hf__read_file(path, HF__IMPORT_MAX, text, HF_BAD_DATA, err);
}

static int import_main(const struct command *self, int argc, char **argv)
{
    struct invocation in = {0};
    char name[NAME_MAX_SIZE] = "standard input";
    hf__findings notes = {0};
    hf__buf text = {0};
    hf__buf yaml = {0};
    int code = EXIT_OK;
    hf_error err;

    if (!parse_options(self, argc, argv, NULL, &in, &code))
        return code;
    if (in.count != 1)
        return report_usage(&in.report, self,
                            in.count == 0 ? "FILE.md is missing"
                                          : "only one FILE.md can be imported");
    if (strcmp(in.operands[0], "-") != 0)
        hf__show(name, sizeof name, in.operands[0], strlen(in.operands[0]));
    hf_status status = read_markdown(in.operands[0], name, &text, &err);
    if (status == HF_OK)
        status = hf__import_markdown(name, text.data != NULL ? text.data : "", text.length, &yaml,
                                     &notes, &err);
    print_notes(&in.report, &notes);
    if (status == HF_OK)
        fwrite(yaml.data, 1, yaml.length, stdout);
    else
        code = report_error(&in.report, &err);
    hf__findings_free(&notes);
    hf__buf_free(&text);
    hf__buf_free(&yaml);
    return code;
}

const struct command cmd_registry_import = {
    .name = "registry import",
    .summary = "Make a registry from the Markdown tables of locks that a team keeps.",
    .usage = "FILE.md",
    .takes_operands = true,
    .main = import_main,
};
