/* SARIF 2.1.0, which code hosts and editors read. */
#include "programs/registry/findings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/print_json.h"

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

/* The rules of the tables, then those that only findings name. */
struct listed_rule {
    const hf__rule *rule;
};

struct rule_list {
    struct listed_rule *items;
    size_t count;
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
    struct listed_rule *items = reallocarray(list->items, list->count + 1, sizeof *items);
    if (items == NULL)
        return false;
    items[list->count++].rule = rule;
    list->items = items;
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

/* A path as a URI: relative as it is, absolute with its scheme. */
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

/* The remedy stands under the message: SARIF's own place for it wants the exact replacement. */
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

bool print_findings_as_sarif(const struct findings_output *output, const hf__findings *findings)
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
