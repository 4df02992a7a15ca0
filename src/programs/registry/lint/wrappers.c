#include "programs/registry/lint/wrappers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/vec.h"

enum { ENOUGH = 6 };

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* ---- Learning -------------------------------------------------------------------------------- */

/* A label such as 'booking:…' is known well enough without asking the callers; a class is not. */
static bool says_enough(const hf__use *use)
{
    const hf__lock_key *key = &use->key;
    size_t known = 0;

    if (key->kind == HF__KEY_PAIR && key->has_holes)
        return use->calls != NULL; /* its callers' callers know no more of it */
    for (size_t i = 0; key->kind == HF__KEY_LABEL && i < key->label_size; i++)
        known += key->label[i] != HF__LABEL_HOLE;
    return key->kind != HF__KEY_UNKNOWN && (key->kind != HF__KEY_LABEL || known >= ENOUGH);
}

/* The function whose parameters the key depends on, or the constant with the SQL. */
static hf__piece name_of(const hf__file_facts *facts, const hf__use *use)
{
    const hf__unit *unit = facts->unit;

    if (use->key.block == HF__STATEMENT) {
        const hf__assignment *constant = hf__assignments_around(&facts->names, unit, use->at);
        return constant != NULL ? (hf__piece){unit->text + constant->name, constant->name_size}
                                : (hf__piece){"", 0};
    }
    const hf__function *function = &facts->functions[use->key.block];
    return (hf__piece){unit->text + function->name, function->name_size};
}

static void learn_one(hf__project *project, const hf__file_facts *facts, hf__use *use,
                      hf__piece name)
{
    const hf__unit *unit = facts->unit;
    bool statement = use->key.block == HF__STATEMENT;
    const hf__function *function = statement ? NULL : &facts->functions[use->key.block];
    size_t place = statement ? use->at : function->name;
    bool sql = unit->syntax->id == HF__LANG_SQL;
    hf__wrapper made = {
        .pair = use->key.is_pair,
        .labels = use->labels,
        .shared = use->shared,
        .tries = use->tries,
        .lifetime_known = use->lifetime_known,
        .lifetime = use->lifetime,
        .languages = sql ? HF__LANG_ANY : (unsigned)unit->syntax->id,
        .in_sql = sql,
        .statement = statement,
        .line = hf__unit_line(unit, place),
        .use = use->at,
        .unsure_from = SIZE_MAX,
        .choice = use->choice,
    };
    hf__buf params = {0};
    size_t owner_size = 0;
    size_t owner = hf__class_around(unit, place, &owner_size);

    made.name = strndup(name.text, name.size);
    made.owner = owner_size > 0 ? strndup(unit->text + owner, owner_size) : NULL;
    made.file = strdup(unit->path);
    if (!statement)
        hf__function_params(unit, function, &params);
    made.params = params.data;
    if (!hf__value_copy(&made.key[0], &use->key.values[0]) ||
        !hf__value_copy(&made.key[1], &use->key.values[1]))
        project->broken = true;
    (void)hf__project_add_wrapper(project, &made);
}

/*
 * A wrapper that is known already. A later round may know more of its key; another lock in its
 * body, or in a function of the same name, means that nobody can tell which one a caller gets.
 */
static void learn_again(hf__project *project, const hf__file_facts *facts, hf__wrapper *wrapper,
                        const hf__use *use)
{
    const hf__function *function =
        use->key.block != HF__STATEMENT ? &facts->functions[use->key.block] : NULL;
    size_t from = function != NULL && hf__unit_line(facts->unit, function->name) == wrapper->line
                      ? function->param_count
                      : 0;

    if (use->key.is_pair == wrapper->pair &&
        hf__value_equals(&use->key.values[0], &wrapper->key[0]) &&
        hf__value_equals(&use->key.values[1], &wrapper->key[1]))
        return;
    if (use->at == wrapper->use) {
        for (size_t i = 0; i < 2; i++) {
            hf__value_free(&wrapper->key[i]);
            project->broken =
                !hf__value_copy(&wrapper->key[i], &use->key.values[i]) || project->broken;
        }
        project->grown = true;
    } else if (wrapper->choice.field[0] == '\0' && use->key.values[1].field[0] != '\0') {
        memcpy(wrapper->choice.field, use->key.values[1].field, HF__FIELD_MAX);
        wrapper->choice.param = (size_t)(use->key.values[1].text.data[1] - 'a');
        wrapper->choice.pair = use->key.is_pair && !wrapper->pair &&
                               hf__value_equals(&use->key.values[0], &wrapper->key[0]);
        project->grown = true;
    } else if (use->key.values[1].field[0] == '\0' && from < wrapper->unsure_from) {
        wrapper->unsure_from = from;
        project->grown = true;
    }
}

static void learn_as(hf__project *project, const hf__file_facts *facts, hf__use *use,
                     hf__piece name)
{
    const hf__unit *unit = facts->unit;
    unsigned language = (unsigned)unit->syntax->id;
    hf__wrapper *known =
        hf__project_wrapper(project, name.text, name.size, language, unit->path, false);

    if (known == NULL || (!known->declared && strcmp(known->file, unit->path) != 0))
        learn_one(project, facts, use, name);
    else if (!known->declared)
        learn_again(project, facts, known, use);
    known = hf__project_wrapper(project, name.text, name.size, language, unit->path, false);
    if (known != NULL && known != use->wraps)
        known->also = use->wraps;
}

/* A constructor is called by the name of its class, as well as by its own in super().__init__(). */
static void learn_class(hf__project *project, const hf__file_facts *facts, hf__use *use)
{
    const hf__unit *unit = facts->unit;
    const hf__function *function = &facts->functions[use->key.block];
    hf__piece name = {unit->text, 0};

    if (use->wraps == NULL || !hf__is_constructor(unit->text + function->name, function->name_size))
        return;
    name.text += hf__class_around(unit, function->name, &name.size);
    if (name.size < 3)
        return;
    learn_as(project, facts, use, name);
    if (unit->syntax->id == HF__LANG_RUBY) /* new(…) in a method of the class */
        learn_as(project, facts, use, (hf__piece){"new", 3});
}

/* A function whose lock is known, where another of its name takes that of its callers. */
static void learn_settled(hf__project *project, const hf__file_facts *facts, hf__use *use)
{
    const hf__unit *unit = facts->unit;
    size_t block = use->block;

    while (block != HF__NO_BLOCK && facts->functions[block].name_size < 3)
        block = unit->blocks[block].parent;
    if (block == HF__NO_BLOCK)
        return;
    const hf__function *function = &facts->functions[block];
    hf__piece name = {unit->text + function->name, function->name_size};
    hf__wrapper *known = hf__project_wrapper(project, name.text, name.size,
                                             (unsigned)unit->syntax->id, unit->path, false);
    if (known == NULL || known->declared || strcmp(known->file, unit->path) == 0)
        return;
    hf__wrapper made = {.name = strndup(name.text, name.size),
                        .file = strdup(unit->path),
                        .languages = (unsigned)unit->syntax->id,
                        .settled = true,
                        .line = hf__unit_line(unit, function->name),
                        .unsure_from = SIZE_MAX};
    (void)hf__project_add_wrapper(project, &made);
}

static bool is_still_asked_for(const hf__wrapper *wrapper, const hf__uses *uses)
{
    for (size_t i = 0; i < uses->count; i++)
        if (uses->items[i].at == wrapper->use && !says_enough(&uses->items[i]))
            return true;
    return false;
}

/*
 * An earlier round knew less: what it took for a wrapper has a lock that needs no callers, or
 * calls a function that turned out to have one.
 */
static void unlearn(hf__project *project, const hf__file_facts *facts, const hf__uses *uses)
{
    for (size_t i = 0; i < project->wrapper_count; i++) {
        hf__wrapper *wrapper = &project->wrappers[i];
        if (wrapper->declared || wrapper->settled || wrapper->unsure_from != SIZE_MAX ||
            strcmp(wrapper->file, facts->unit->path) != 0 || is_still_asked_for(wrapper, uses))
            continue;
        wrapper->settled = true;
        project->grown = true;
    }
}

void hf__wrappers_learn(hf__project *project, const hf__file_facts *facts, hf__uses *uses)
{
    unlearn(project, facts, uses);
    for (size_t i = 0; i < uses->count; i++) {
        hf__use *use = &uses->items[i];
        if (!use->unlocks && says_enough(use))
            learn_settled(project, facts, use);
        if (use->unlocks || use->again || use->key.block == HF__NO_BLOCK || says_enough(use))
            continue;
        hf__piece name = name_of(facts, use);
        if (name.size < 3)
            continue;
        unsigned language = (unsigned)facts->unit->syntax->id;
        const char *path = facts->unit->path;
        hf__wrapper *known =
            hf__project_wrapper(project, name.text, name.size, language, path, false);
        if (known == NULL || (!known->declared && strcmp(known->file, path) != 0))
            learn_one(project, facts, use, name);
        else if (!known->declared)
            learn_again(project, facts, known, use);
        use->wraps = hf__project_wrapper(project, name.text, name.size, language, path, false);
        if (use->key.block != HF__STATEMENT)
            learn_class(project, facts, use);
    }
}

/* ---- What the registry declares -------------------------------------------------------------- */

/* call: "Serialize(ctx, {label})"; the number of the argument that is the label. */
static bool parse_call(const char *call, size_t *name, size_t *name_size, size_t *argument)
{
    const char *open = strchr(call, '(');
    const char *mark = open != NULL ? strchr(open, '{') : NULL;
    size_t end;

    if (mark == NULL)
        return false;
    *argument = 0;
    for (const char *at = open; at < mark; at++)
        *argument += *at == ',';
    end = (size_t)(open - call);
    while (end > 0 && call[end - 1] == ' ')
        end--;
    *name = end;
    while (*name > 0 && (is_word(call[*name - 1]) || strchr("!?", call[*name - 1]) != NULL))
        --*name;
    *name_size = end - *name;
    return *name_size > 0 && *argument < HF__ARGS_MAX;
}

void hf__wrappers_declare(hf__project *project, const hf_registry *registry)
{
    for (size_t i = 0; registry != NULL && i < registry->wrapper_count; i++) {
        const hf__declared_wrapper *declared = &registry->wrappers[i];
        hf__wrapper made = {
            .lifetime_known = declared->lifetime_given,
            .lifetime = declared->lifetime,
            .languages = HF__LANG_ANY,
            .declared = true,
            .line = declared->at.line,
            .unsure_from = SIZE_MAX,
        };
        size_t name = 0;
        size_t size = 0;
        size_t argument = 0;
        if (declared->call == NULL || !parse_call(declared->call, &name, &size, &argument))
            continue;
        made.name = strndup(declared->call + name, size);
        made.file = strdup(registry->path);
        made.key[0].kind = declared->derivation == HF_FIXED ? HF__VALUE_TEXT : HF__VALUE_HASHED;
        made.key[0].derivation = declared->derivation;
        made.key[0].derivation_known = true;
        hf__buf_add(&made.key[0].text, (char[]){HF__LABEL_PARAM, (char)('0' + argument)}, 2);
        (void)hf__project_add_wrapper(project, &made);
    }
}
