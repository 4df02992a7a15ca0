#include "lib/registry/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

const char *hf__severity_name(hf__severity severity)
{
    switch (severity) {
    case HF__SEVERITY_NOTE: return "note";
    case HF__SEVERITY_WARNING: return "warning";
    case HF__SEVERITY_ERROR:
    case HF__SEVERITY_BROKEN: break;
    }
    return "error";
}

/* Findings come file by file, so that the search begins with the last one. */
static bool find_file(const hf__findings *findings, const char *file, size_t *index)
{
    for (size_t i = findings->file_count; i-- > 0;) {
        if (strcmp(findings->files[i], file) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

static bool name_file(hf__findings *findings, const char *file, size_t *index)
{
    size_t count = findings->file_count;

    if (find_file(findings, file, index))
        return true;
    if (!hf__grow(&findings->files, &findings->file_room, count + 1, sizeof *findings->files))
        return false;
    findings->files[count] = strdup(file);
    if (findings->files[count] == NULL)
        return false;
    findings->file_count++;
    *index = count;
    return true;
}

hf__finding *hf__findings_add(hf__findings *findings, const hf__rule *rule, const char *file,
                              unsigned line, unsigned column, const char *remedy,
                              const char *format, ...)
{
    hf__finding made = {.rule = rule, .line = line, .column = column};
    va_list args;

    if (findings->broken)
        return NULL;
    if (findings->count >= HF__FINDINGS_MAX) {
        findings->dropped++;
        return NULL;
    }
    va_start(args, format);
    if (vasprintf(&made.message, format, args) < 0)
        made.message = NULL;
    va_end(args);
    made.remedy = strdup(remedy != NULL ? remedy : "");
    if (made.message == NULL || made.remedy == NULL ||
        !hf__grow(&findings->items, &findings->capacity, findings->count + 1,
                  sizeof *findings->items) ||
        !name_file(findings, file, &made.file_index)) {
        free(made.message);
        free(made.remedy);
        findings->broken = true;
        return NULL;
    }
    made.file = findings->files[made.file_index];
    findings->items[findings->count] = made;
    return &findings->items[findings->count++];
}

static int compare_numbers(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int compare(const void *left, const void *right)
{
    const hf__finding *a = left;
    const hf__finding *b = right;
    int order = compare_numbers(a->file_index, b->file_index);

    if (order == 0)
        order = compare_numbers(a->line, b->line);
    if (order == 0)
        order = compare_numbers(a->column, b->column);
    if (order == 0)
        order = strcmp(a->rule->id, b->rule->id);
    if (order == 0)
        order = strcmp(a->message, b->message);
    return order != 0 ? order : strcmp(a->remedy, b->remedy);
}

void hf__findings_sort(hf__findings *findings)
{
    size_t kept = 0;

    if (findings->count == 0)
        return;
    qsort(findings->items, findings->count, sizeof findings->items[0], compare);
    for (size_t i = 1; i < findings->count; i++) {
        if (compare(&findings->items[kept], &findings->items[i]) != 0) {
            findings->items[++kept] = findings->items[i];
            continue;
        }
        free(findings->items[i].message);
        free(findings->items[i].remedy);
    }
    findings->count = kept + 1;
}

hf__severity hf__findings_worst(const hf__findings *findings)
{
    hf__severity worst = HF__SEVERITY_NOTE;

    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].rule->severity > worst)
            worst = findings->items[i].rule->severity;
    return worst;
}

void hf__findings_free(hf__findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        free(findings->items[i].message);
        free(findings->items[i].remedy);
    }
    for (size_t i = 0; i < findings->file_count; i++)
        free(findings->files[i]);
    free(findings->items);
    free(findings->files);
    *findings = (hf__findings){0};
}

/* ---- the rules of reading ---- */

const hf__rule hf__reading_rules[] = {
    [HF__RULE_YAML] = {"yaml", HF__SEVERITY_BROKEN, "The file must be readable as YAML."},
    [HF__RULE_TOO_LARGE] = {"too-large", HF__SEVERITY_BROKEN,
                            "Files, nesting and repetition have limits."},
    [HF__RULE_REPEATED_FIELD] = {"repeated-field", HF__SEVERITY_BROKEN,
                                 "A field may be given once."},
    [HF__RULE_VERSION] = {"version", HF__SEVERITY_ERROR, "The file must say version: 1."},
    [HF__RULE_UNKNOWN_FIELD] = {"unknown-field", HF__SEVERITY_ERROR,
                                "Fields must be known: a misspelt one would be ignored."},
    [HF__RULE_MISSING_FIELD] = {"missing-field", HF__SEVERITY_ERROR,
                                "Every lock has name and key."},
    [HF__RULE_WRONG_TYPE] = {"wrong-type", HF__SEVERITY_ERROR,
                             "A value must be of the kind that its field takes."},
    [HF__RULE_NUMBER_AS_STRING] = {"number-as-string", HF__SEVERITY_BROKEN,
                                   "Numbers are written without quotes."},
    [HF__RULE_WRONG_VALUE] = {"wrong-value", HF__SEVERITY_ERROR,
                              "A value must be one that its field allows."},
    [HF__RULE_ID_RANGE] = {"id-range", HF__SEVERITY_ERROR,
                           "A number must fit where PostgreSQL takes it."},
    [HF__RULE_DUPLICATE_NAME] = {"duplicate-name", HF__SEVERITY_ERROR,
                                 "A name stands for one lock."},
    [HF__RULE_PATTERN] = {"pattern", HF__SEVERITY_ERROR,
                          "A pattern is text with {placeholders}, each of them once."},
    [HF__RULE_PLACEHOLDER] = {"placeholder", HF__SEVERITY_ERROR,
                              "placeholders: describes those of the pattern."},
    [HF__RULE_EXPRESSION] = {"expression", HF__SEVERITY_ERROR,
                             "A placeholder's expression must be regular."},
    [HF__RULE_EXPRESSION_LIMIT] = {"expression-limit", HF__SEVERITY_BROKEN,
                                   "A placeholder's expression may not grow without bounds."},
    {0},
};
