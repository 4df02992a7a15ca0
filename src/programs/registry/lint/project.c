#include "programs/registry/lint/project.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"

/* A hostile tree must not make us look for every word there is. */
enum { WRAPPERS_MAX = 300, WANTED_MAX = 600, DEFINITIONS_MAX = 2000, NAME_SIZE_MAX = 100 };

/* ---- Values ---------------------------------------------------------------------------------- */

void hf__value_free(hf__worth *value)
{
    hf__buf_free(&value->text);
    *value = (hf__worth){0};
}

bool hf__value_copy(hf__worth *to, const hf__worth *from)
{
    *to = *from;
    to->text = (hf__buf){0};
    hf__buf_add(&to->text, from->text.data, from->text.length);
    return !to->text.broken;
}

static bool worth_equals(const hf__worth *a, const hf__worth *b)
{
    return a->kind == b->kind && a->number == b->number && a->derivation == b->derivation &&
           a->derivation_known == b->derivation_known && a->text.length == b->text.length &&
           (a->text.length == 0 || memcmp(a->text.data, b->text.data, a->text.length) == 0);
}

int hf__value_param(const hf__worth *value)
{
    return value->kind == HF__VALUE_TEXT && value->text.length == 2 &&
                   value->text.data[0] == HF__LABEL_PARAM
               ? value->text.data[1] - '0'
               : -1;
}

/* ---- Wrappers -------------------------------------------------------------------------------- */

static bool is_named(const char *name, const char *text, size_t size)
{
    return strlen(name) == size && memcmp(name, text, size) == 0;
}

hf__wrapper *hf__project_wrapper(hf__project *project, const char *name, size_t size,
                                 unsigned language)
{
    for (size_t i = 0; i < project->wrapper_count; i++)
        if ((project->wrappers[i].languages & language) != 0 &&
            is_named(project->wrappers[i].name, name, size))
            return &project->wrappers[i];
    return NULL;
}

static void free_wrapper(hf__wrapper *wrapper)
{
    free(wrapper->name);
    free(wrapper->file);
    hf__value_free(&wrapper->key[0]);
    hf__value_free(&wrapper->key[1]);
}

bool hf__project_add_wrapper(hf__project *project, hf__wrapper *wrapper)
{
    bool good = wrapper->name != NULL && wrapper->file != NULL && !wrapper->key[0].text.broken &&
                !wrapper->key[1].text.broken;

    if (good && project->wrapper_count < WRAPPERS_MAX &&
        hf__project_wrapper(project, wrapper->name, strlen(wrapper->name), wrapper->languages) ==
            NULL &&
        hf__grow(&project->wrappers, &project->wrapper_room, WRAPPERS_MAX, /* they never move */
                 sizeof *project->wrappers)) {
        project->wrappers[project->wrapper_count++] = *wrapper;
        project->grown = true;
        return true;
    }
    project->broken = project->broken || !good;
    free_wrapper(wrapper);
    return false;
}

/* ---- Definitions ----------------------------------------------------------------------------- */

static hf__definition *find_definition(const hf__project *project, const char *name, size_t size,
                                       bool function)
{
    for (size_t i = 0; i < project->definition_count; i++)
        if (project->definitions[i].function == function &&
            is_named(project->definitions[i].name, name, size))
            return &project->definitions[i];
    return NULL;
}

const hf__definition *hf__project_find(const hf__project *project, const char *name, size_t size,
                                       bool function)
{
    const hf__definition *found = find_definition(project, name, size, function);

    return found != NULL && !found->ambiguous ? found : NULL;
}

void hf__project_define(hf__project *project, const char *name, size_t size, bool function,
                        const hf__worth *value)
{
    hf__definition made = {.function = function};
    hf__definition *known = find_definition(project, name, size, function);

    if (known != NULL) {
        bool equal = worth_equals(&known->value, value);
        project->grown = project->grown || (!equal && !known->ambiguous);
        known->ambiguous = known->ambiguous || !equal;
        return;
    }
    if (project->definition_count == DEFINITIONS_MAX)
        return;
    made.name = strndup(name, size);
    if (made.name == NULL || !hf__value_copy(&made.value, value) ||
        !hf__grow(&project->definitions, &project->definition_room, project->definition_count + 1,
                  sizeof *project->definitions)) {
        free(made.name);
        hf__value_free(&made.value);
        project->broken = true;
        return;
    }
    project->definitions[project->definition_count++] = made;
    project->grown = true;
}

/* ---- Wanted names ---------------------------------------------------------------------------- */

static bool is_wanted(const hf__project *project, const char *name, size_t size)
{
    for (size_t i = 0; i < project->wanted_count; i++)
        if (is_named(project->wanted[i], name, size))
            return true;
    return false;
}

void hf__project_want(hf__project *project, const char *name, size_t size)
{
    char *copy;

    if (size < 3 || size > NAME_SIZE_MAX || project->wanted_count == WANTED_MAX ||
        is_wanted(project, name, size))
        return;
    copy = strndup(name, size);
    if (copy == NULL || !hf__grow(&project->wanted, &project->wanted_room,
                                  project->wanted_count + 1, sizeof(char *))) {
        free(copy);
        project->broken = true;
        return;
    }
    project->wanted[project->wanted_count++] = copy;
    project->grown = true;
}

/* ---- The expression that finds them ---------------------------------------------------------- */

static void add_name(hf__buf *pattern, const char *name)
{
    for (const char *at = name; *at != '\0'; at++) /* Locks.REPORT: without its owner */
        if (*at == '.')
            name = at + 1;
    hf__buf_puts(pattern, pattern->length == 0 ? "(?<!\\w)(?:" : "|");
    for (; *name != '\0'; name++) {
        if (!isalnum((unsigned char)*name) && *name != '_')
            hf__buf_puts(pattern, "\\");
        hf__buf_add(pattern, name, 1);
    }
}

hf_status hf__project_compile(hf__project *project, hf_error *err)
{
    hf__buf pattern = {0};
    hf_status status = HF_OK;

    project->grown = false;
    hf__pcre_free(project->names);
    project->names = NULL;
    for (size_t i = 0; i < project->wrapper_count; i++)
        add_name(&pattern, project->wrappers[i].name);
    for (size_t i = 0; i < project->wanted_count; i++)
        add_name(&pattern, project->wanted[i]);
    if (pattern.length > 0)
        hf__buf_puts(&pattern, ")(?!\\w)");
    if (pattern.broken || project->broken)
        status = hf__no_memory(err);
    else if (pattern.length > 0)
        status = hf__pcre_compile_exact(pattern.data, &project->names, err);
    hf__buf_free(&pattern);
    return status;
}

void hf__project_free(hf__project *project)
{
    for (size_t i = 0; i < project->wrapper_count; i++)
        free_wrapper(&project->wrappers[i]);
    for (size_t i = 0; i < project->definition_count; i++) {
        free(project->definitions[i].name);
        hf__value_free(&project->definitions[i].value);
    }
    for (size_t i = 0; i < project->wanted_count; i++)
        free(project->wanted[i]);
    free(project->wrappers);
    free(project->definitions);
    free(project->wanted);
    hf__pcre_free(project->names);
    *project = (hf__project){0};
}
