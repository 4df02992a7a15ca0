#include "programs/registry/findings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vec.h"
#include "cli/print.h"

/* --- which format --------------------------------------------------------------------------- */

static const char *const format_names[] = {
    [FINDINGS_HUMAN] = "human",
    [FINDINGS_JSON] = "json",
    [FINDINGS_SARIF] = "sarif",
    [FINDINGS_GITHUB] = "github",
};

static bool find_format(const char *name, enum findings_format *format)
{
    for (enum findings_format f = FINDINGS_HUMAN; f <= FINDINGS_GITHUB; f++) {
        if (strcmp(format_names[f], name) == 0) {
            *format = f;
            return true;
        }
    }
    return false;
}

bool choose_findings_format(const struct command *self, struct invocation *in, const char *named,
                            enum findings_format *format, int *exit_code)
{
    char shown[SHOWN_MAX];

    *exit_code = EXIT_OK;
    *format = in->common.json ? FINDINGS_JSON : FINDINGS_HUMAN;
    if (named != NULL && !find_format(named, format))
        *exit_code =
            report_usage(&in->report, self, "--format is human, json, sarif or github, not '%s'",
                         show_argument(shown, named));
    else if (in->common.json && *format != FINDINGS_JSON)
        *exit_code = report_usage(&in->report, self, "--json and --format %s exclude each other",
                                  format_names[*format]);
    else if (*format == FINDINGS_JSON)
        in->report = report_to_stderr(true);
    return *exit_code == EXIT_OK;
}

/* --- for people ----------------------------------------------------------------------------- */

/* Prints nothing that a terminal would obey. Unlike hf__show it leaves backslashes as they are. */
static void put_visible(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t size = strlen(text);

    for (size_t at = 0, start = 0; at < size; start = at) {
        int32_t point = hf__utf8_next(bytes, size, &at);
        if (point >= 0x20 && (point < 0x7F || point > 0x9F))
            fwrite(text + start, 1, at - start, stdout);
        else
            for (; start < at; start++)
                printf("\\x%02x", bytes[start]);
    }
}

static const char *colour_of(hf__severity severity)
{
    switch (severity) {
    case HF__SEVERITY_NOTE: return "\033[1;36m";
    case HF__SEVERITY_WARNING: return "\033[1;33m";
    case HF__SEVERITY_ERROR:
    case HF__SEVERITY_BROKEN: break;
    }
    return "\033[1;31m";
}

static void put_place(const hf__finding *finding)
{
    put_visible(finding->file);
    if (finding->line > 0)
        printf(":%u", finding->line);
    if (finding->line > 0 && finding->column > 0)
        printf(":%u", finding->column);
}

/* One line of help for each line of the remedy. */
static void put_remedy(const char *remedy, bool colour)
{
    for (const char *word = "help:"; *remedy != '\0'; word = "     ") {
        size_t length = strcspn(remedy, "\n");
        char *line = strndup(remedy, length);
        printf("    %s%s%s ", colour ? "\033[36m" : "", word, colour ? "\033[0m" : "");
        put_visible(line != NULL ? line : "(out of memory)");
        putchar('\n');
        free(line);
        remedy += length + (remedy[length] == '\n');
    }
}

static void put_for_people(const hf__finding *finding, bool colour)
{
    const hf__rule *rule = finding->rule;

    fputs(colour ? "\033[1m" : "", stdout);
    put_place(finding);
    printf(": %s%s:%s ", colour ? colour_of(rule->severity) : "", hf__severity_name(rule->severity),
           colour ? "\033[0m" : "");
    put_visible(finding->message);
    printf(" [%s%s%s%s]\n", rule->id, finding->confidence != NULL ? ", " : "",
           finding->confidence != NULL ? finding->confidence : "",
           finding->confidence != NULL ? " confidence" : "");
    put_remedy(finding->remedy, colour);
}

static void print_for_people(const hf__findings *findings)
{
    bool colour = wants_colour(STDOUT_FILENO);

    for (size_t i = 0; i < findings->count; i++)
        put_for_people(&findings->items[i], colour);
}

/* --- JSON ----------------------------------------------------------------------------------- */

struct findings_counts {
    size_t errors, warnings, notes;
};

static struct findings_counts count_findings(const hf__findings *findings)
{
    struct findings_counts counts = {0};

    for (size_t i = 0; i < findings->count; i++) {
        switch (findings->items[i].rule->severity) {
        case HF__SEVERITY_NOTE: counts.notes++; break;
        case HF__SEVERITY_WARNING: counts.warnings++; break;
        case HF__SEVERITY_ERROR:
        case HF__SEVERITY_BROKEN: counts.errors++; break;
        }
    }
    return counts;
}

static void add_finding(hf__json *json, const hf__finding *finding)
{
    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "rule", finding->rule->id);
    hf__json_put_string(json, "severity", hf__severity_name(finding->rule->severity));
    hf__json_put_string(json, "file", finding->file);
    if (finding->line > 0)
        hf__json_put_integer(json, "line", finding->line);
    else
        hf__json_put_null(json, "line");
    if (finding->line > 0 && finding->column > 0)
        hf__json_put_integer(json, "column", finding->column);
    else
        hf__json_put_null(json, "column");
    hf__json_put_string(json, "message", finding->message);
    hf__json_put_text(json, "remedy", finding->remedy);
    hf__json_put_text(json, "confidence", finding->confidence != NULL ? finding->confidence : "");
    hf__json_end_object(json);
}

static bool print_as_json(const struct findings_output *output, const hf__findings *findings)
{
    struct findings_counts counts = count_findings(findings);
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_begin_array(&json, "findings");
    for (size_t i = 0; i < findings->count; i++)
        add_finding(&json, &findings->items[i]);
    hf__json_end_array(&json);
    hf__json_begin_object(&json, "counts");
    hf__json_put_integer(&json, "errors", (int64_t)counts.errors);
    hf__json_put_integer(&json, "warnings", (int64_t)counts.warnings);
    hf__json_put_integer(&json, "notes", (int64_t)counts.notes);
    hf__json_put_integer(&json, "ignored", (int64_t)output->ignored);
    hf__json_put_integer(&json, "not_listed", (int64_t)findings->dropped);
    hf__json_end_object(&json);
    if (output->add_json != NULL)
        output->add_json(&json, output->arg);
    hf__json_end_object(&json);
    return print_document(&json, stdout);
}

/* --- SARIF 2.1.0, which code hosts and editors read ----------------------------------------- */

static void add_text_object(hf__json *json, const char *key, const char *text)
{
    hf__json_begin_object(json, key);
    hf__json_put_string(json, "text", text);
    hf__json_end_object(json);
}

static void add_rule(hf__json *json, const hf__rule *rule)
{
    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "id", rule->id);
    add_text_object(json, "shortDescription", rule->summary);
    hf__json_begin_object(json, "defaultConfiguration");
    hf__json_put_string(json, "level", hf__severity_name(rule->severity));
    hf__json_end_object(json);
    hf__json_end_object(json);
}

struct listed_rule {
    const hf__rule *rule;
};

/* The rules of the tables, then those that only findings name. */
struct rule_list {
    struct listed_rule *items;
    size_t count, room;
};

static bool find_rule(const struct rule_list *list, const hf__rule *rule, size_t *index)
{
    for (*index = 0; *index < list->count; ++*index)
        if (strcmp(list->items[*index].rule->id, rule->id) == 0)
            return true;
    return false;
}

static bool list_rule(struct rule_list *list, const hf__rule *rule)
{
    size_t index;

    if (find_rule(list, rule, &index))
        return true;
    if (!hf__grow(&list->items, &list->room, list->count + 1, sizeof *list->items))
        return false;
    list->items[list->count++].rule = rule;
    return true;
}

static bool list_rules(struct rule_list *list, const struct findings_output *output,
                       const hf__findings *findings)
{
    bool good = true;

    for (const hf__rule *const *table = output->rules; *table != NULL; table++)
        for (const hf__rule *rule = *table; good && rule->id != NULL; rule++)
            good = list_rule(list, rule);
    for (size_t i = 0; good && i < findings->count; i++)
        good = list_rule(list, findings->items[i].rule);
    return good;
}

static void add_tool(hf__json *json, const char *command, const struct rule_list *rules)
{
    char name[64];

    snprintf(name, sizeof name, "holdfast %s", command);
    hf__json_begin_object(json, "tool");
    hf__json_begin_object(json, "driver");
    hf__json_put_string(json, "name", name);
    hf__json_put_string(json, "version", hf_version());
    hf__json_begin_array(json, "rules");
    for (size_t i = 0; i < rules->count; i++)
        add_rule(json, rules->items[i].rule);
    hf__json_end_array(json);
    hf__json_end_object(json);
    hf__json_end_object(json);
}

/* A path as a URI: an absolute one gets its scheme. */
static void add_uri(hf__json *json, const char *path)
{
    hf__buf uri = {0};

    while (strncmp(path, "./", 2) == 0)
        path += 2;
    if (path[0] == '/')
        hf__buf_puts(&uri, "file://");
    for (; *path != '\0'; path++) {
        unsigned char byte = (unsigned char)*path;
        if (byte < 0x80 && (isalnum(byte) || strchr("-._~/", byte) != NULL))
            hf__buf_add(&uri, path, 1);
        else
            hf__buf_printf(&uri, "%%%02X", byte);
    }
    json->text.broken |= uri.broken;
    hf__json_put_string(json, "uri", uri.broken || uri.data == NULL ? "" : uri.data);
    hf__buf_free(&uri);
}

static void add_location(hf__json *json, const hf__finding *finding)
{
    hf__json_begin_array(json, "locations");
    hf__json_begin_object(json, NULL);
    hf__json_begin_object(json, "physicalLocation");
    hf__json_begin_object(json, "artifactLocation");
    add_uri(json, finding->file);
    hf__json_end_object(json);
    if (finding->line > 0) {
        hf__json_begin_object(json, "region");
        hf__json_put_integer(json, "startLine", finding->line);
        if (finding->column > 0)
            hf__json_put_integer(json, "startColumn", finding->column);
        hf__json_end_object(json);
    }
    hf__json_end_object(json);
    hf__json_end_object(json);
    hf__json_end_array(json);
}

/* The remedy goes below the message. SARIF's field for fixes wants an exact replacement. */
static void add_message(hf__json *json, const hf__finding *finding)
{
    hf__buf text = {0};

    hf__buf_puts(&text, finding->message);
    if (finding->remedy[0] != '\0')
        hf__buf_printf(&text, "\n%s", finding->remedy);
    json->text.broken |= text.broken;
    add_text_object(json, "message", text.broken ? "" : text.data);
    hf__buf_free(&text);
}

static void add_result(hf__json *json, const struct rule_list *rules, const hf__finding *finding)
{
    size_t index = 0;

    hf__json_begin_object(json, NULL);
    hf__json_put_string(json, "ruleId", finding->rule->id);
    if (find_rule(rules, finding->rule, &index))
        hf__json_put_integer(json, "ruleIndex", (int64_t)index);
    hf__json_put_string(json, "level", hf__severity_name(finding->rule->severity));
    add_message(json, finding);
    add_location(json, finding);
    if (finding->confidence != NULL) {
        hf__json_begin_object(json, "properties");
        hf__json_put_string(json, "confidence", finding->confidence);
        hf__json_end_object(json);
    }
    hf__json_end_object(json);
}

static bool print_as_sarif(const struct findings_output *output, const hf__findings *findings)
{
    struct rule_list rules = {0};
    hf__json json = {0};

    json.text.broken = !list_rules(&rules, output, findings);
    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    hf__json_put_string(&json, "version", "2.1.0");
    hf__json_begin_array(&json, "runs");
    hf__json_begin_object(&json, NULL);
    add_tool(&json, output->command, &rules);
    hf__json_put_string(&json, "columnKind", "unicodeCodePoints");
    hf__json_begin_array(&json, "results");
    for (size_t i = 0; i < findings->count; i++)
        add_result(&json, &rules, &findings->items[i]);
    hf__json_end_array(&json);
    hf__json_end_object(&json);
    hf__json_end_array(&json);
    hf__json_end_object(&json);
    free(rules.items);
    return print_document(&json, stdout);
}

/* --- workflow commands, which GitHub shows beside the lines of a change --------------------- */

/* Inside a property ':' and ',' have a meaning too. */
static void put_escaped(const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (strchr(special, *text) != NULL)
            printf("%%%02X", (unsigned char)*text);
        else
            putchar(*text);
    }
}

static void put_command(const hf__finding *finding)
{
    hf__severity severity = finding->rule->severity;

    printf("::%s file=", severity == HF__SEVERITY_NOTE ? "notice" : hf__severity_name(severity));
    put_escaped(finding->file, "%\r\n:,");
    if (finding->line > 0)
        printf(",line=%u", finding->line);
    if (finding->line > 0 && finding->column > 0)
        printf(",col=%u", finding->column);
    printf(",title=%s::", finding->rule->id);
    put_escaped(finding->message, "%\r\n");
    if (finding->remedy[0] != '\0') {
        fputs("%0A", stdout);
        put_escaped(finding->remedy, "%\r\n");
    }
    putchar('\n');
}

static void print_for_github(const hf__findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        put_command(&findings->items[i]);
}

/* --- in the format that was chosen ---------------------------------------------------------- */

static void add_count(hf__buf *line, size_t count, const char *one, const char *many)
{
    if (count > 0)
        hf__buf_printf(line, "%s%zu %s", line->length > 0 ? ", " : "", count,
                       count == 1 ? one : many);
}

static void print_summary(const struct findings_output *output, const hf__findings *findings)
{
    struct findings_counts counts = count_findings(findings);
    hf__buf line = {0};

    add_count(&line, counts.errors, "error", "errors");
    add_count(&line, counts.warnings, "warning", "warnings");
    add_count(&line, counts.notes, "note", "notes");
    if (line.length == 0)
        hf__buf_puts(&line, "no findings");
    add_count(&line, findings->dropped, "more that is not listed", "more that are not listed");
    add_count(&line, output->ignored, "ignored", "ignored");
    if (!line.broken)
        fprintf(stderr, "%s, %s\n", output->examined, line.data);
    hf__buf_free(&line);
}

/* Where stdout is not for people, they are told the first fault that broke the file. */
static void report_broken(const struct report *report, const hf__findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        const hf__finding *finding = &findings->items[i];
        if (finding->rule->severity != HF__SEVERITY_BROKEN)
            continue;
        hf_error err;
        hf__set_error(&err, HF_CONFIG, "%s:%u:%u: %s", finding->file, finding->line,
                      finding->column, finding->message);
        hf__hint(&err, "%s", finding->remedy);
        (void)report_error(report, &err);
        return;
    }
}

static bool print_in_format(const struct findings_output *output, const hf__findings *findings)
{
    switch (output->format) {
    case FINDINGS_JSON: return print_as_json(output, findings);
    case FINDINGS_SARIF: return print_as_sarif(output, findings);
    case FINDINGS_GITHUB: print_for_github(findings); break;
    case FINDINGS_HUMAN: print_for_people(findings); break;
    }
    return true;
}

static int report_failure(const struct report *report)
{
    hf_error err = {.code = HF_NO_MEMORY, .message = "out of memory"};

    if (ferror(stdout))
        hf__set_error_errno(&err, HF_SYSTEM, errno, "cannot write to standard output");
    return report_error(report, &err);
}

int print_findings(const struct invocation *in, const struct findings_output *output,
                   hf__findings *findings)
{
    hf__findings_sort(findings);
    hf__severity worst = hf__findings_worst(findings);
    if (findings->broken || !print_in_format(output, findings) || fflush(stdout) != 0)
        return report_failure(&in->report);
    if (output->format != FINDINGS_JSON)
        print_summary(output, findings);
    if (worst == HF__SEVERITY_BROKEN && output->format != FINDINGS_HUMAN)
        report_broken(&in->report, findings);
    return worst == HF__SEVERITY_BROKEN    ? EXIT_CONFIG
           : worst >= HF__SEVERITY_WARNING ? EXIT_FINDINGS
                                           : EXIT_OK;
}
