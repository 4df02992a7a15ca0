/* What constants and functions of one file are worth to the keys of others. */
#include <stdlib.h>
#include <string.h>

#include "programs/registry/lint/wrappers.h"

static bool is_fully_known(const hf__worth *value)
{
    return value->kind == HF__VALUE_NUMBER ||
           ((value->kind == HF__VALUE_TEXT || value->kind == HF__VALUE_HASHED) &&
            value->text.length > 0 &&
            memchr(value->text.data, HF__LABEL_HOLE, value->text.length) == NULL &&
            memchr(value->text.data, HF__LABEL_PARAM, value->text.length) == NULL);
}

static bool depends_on_params(const hf__worth *value)
{
    return value->text.length > 0 &&
           memchr(value->text.data, HF__LABEL_PARAM, value->text.length) != NULL;
}

static void learn_constant(const hf__scope *scope, const char *wanted)
{
    const char *dot = strchr(wanted, '.');
    const char *name = dot != NULL ? dot + 1 : wanted;
    bool field = dot == wanted; /* .lockKey: of any object */
    const hf__assignment *assigned =
        dot != NULL && !field
            ? hf__assignments_find_in(scope->names, scope->unit, wanted, (size_t)(dot - wanted),
                                      name, strlen(name))
            : hf__assignments_find(scope->names, scope->unit, 0, true, name, strlen(name));
    hf__scope there = *scope;
    hf__worth value = {0};
    size_t block = HF__NO_BLOCK;

    if (assigned == NULL)
        return;
    there.at = assigned->name;
    there.code = scope->unit->syntax->id != HF__LANG_SQL;
    if (assigned->counted)
        value = (hf__worth){.kind = HF__VALUE_NUMBER, .number = assigned->number};
    else
        hf__value_read(&there,
                       (hf__piece){scope->unit->text + assigned->value, assigned->value_size},
                       &value, &block);
    bool told =
        field ? block == HF__NO_BLOCK || !depends_on_params(&value) : is_fully_known(&value);
    if (field && !told)
        hf__value_free(&value); /* with it the field has no value in this folder */
    if (told || field)
        hf__project_define(scope->project, scope->unit->path, wanted, false, NULL, &value);
    hf__value_free(&value);
}

static void learn_function(const hf__scope *scope, const char *wanted)
{
    hf__lambda lambda;

    if (hf__lambda_find(scope->unit, (hf__piece){wanted, strlen(wanted)}, &lambda)) {
        hf__worth value = {0};
        hf__buf params = {0};
        hf__value_of_lambda(scope, &lambda, &value);
        hf__lambda_params(&lambda, &params);
        if (value.kind != HF__VALUE_UNKNOWN && !params.broken)
            hf__project_define(scope->project, scope->unit->path, wanted, true, params.data,
                               &value);
        hf__buf_free(&params);
        hf__value_free(&value);
        return;
    }
    hf__worth all = {0};
    hf__buf params = {0};
    for (size_t i = 0; i < scope->unit->block_count; i++) {
        const hf__function *function = &scope->functions[i];
        hf__worth value = {0};
        if (function->name_size != strlen(wanted) ||
            memcmp(scope->unit->text + function->name, wanted, function->name_size) != 0)
            continue;
        hf__value_of_function(scope, i, &value);
        if (params.length == 0)
            hf__function_params(scope->unit, function, &params);
        if (all.kind == HF__VALUE_UNKNOWN)
            all = value;
        else if (value.kind != HF__VALUE_UNKNOWN)
            hf__value_join(&all, &value); /* that of another class */
    }
    if (all.kind != HF__VALUE_UNKNOWN && !params.broken)
        hf__project_define(scope->project, scope->unit->path, wanted, true, params.data, &all);
    hf__buf_free(&params);
    hf__value_free(&all);
}

void hf__definitions_learn(const hf__scope *scope)
{
    scope->project->defining = true;
    for (size_t i = 0; i < scope->project->wanted_count; i++) {
        const char *wanted = scope->project->wanted[i];
        const char *dot = strchr(wanted, '.');
        const char *name = dot != NULL ? dot + 1 : wanted;
        if (memmem(scope->unit->text, scope->unit->size, name, strlen(name)) == NULL)
            continue;
        learn_constant(scope, wanted);
        if (dot == NULL)
            learn_function(scope, wanted);
    }
    scope->project->defining = false;
}
