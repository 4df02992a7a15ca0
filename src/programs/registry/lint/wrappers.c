#include "programs/registry/lint/wrappers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/vec.h"

enum { CALLS_MAX = 5000, ENOUGH = 6 };

static const hf__use_kind wrapper_in_code = {
    .name = "wrapper",
    .languages = HF__LANG_ANY,
    .in_code = true,
    .releases = true,
};

static const hf__use_kind wrapper_in_sql = {
    .name = "wrapper of SQL",
    .languages = HF__LANG_ANY,
    .in_sql = true,
    .releases = true,
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* ---- Learning -------------------------------------------------------------------------------- */

/* Names that so many things have that only a call in the same file counts. */
static bool is_common(const char *name)
{
    static const char *const names[] = {
        "acquire", "lock",        "try_lock",  "trylock",      "unlock",     "release",
        "run",     "execute",     "query",     "call",         "with",       "new",
        "init",    "open",        "get",       "set",          "handle",     "start",
        "stop",    "main",        "do",        "constructor",  "__init__",   "close",
        "perform", "apply",       "process",   "update",       "create",     "insert",
        "delete",  "save",        "exec",      "test",         "setup",      "invoke",
        "wait",    "wrap",        "build",     "load",         "__enter__",  "initialize",
        "up",      "down",        "lockasync", "acquireasync", "tryacquire", "tryacquireasync",
        "sync",    "send",        "write",     "read",         "fetch",      "find",
        "check",   "__construct", NULL};

    for (const char *const *common = names; *common != NULL; common++)
        if (strcasecmp(*common, name) == 0)
            return true;
    return false;
}

/* A label such as 'booking:…' is known well enough without asking the callers; a class is not. */
static bool says_enough(const hf__lock_key *key)
{
    size_t known = 0;

    if (key->kind == HF__KEY_PAIR && key->has_holes)
        return false;
    for (size_t i = 0; key->kind == HF__KEY_LABEL && i < key->label_size; i++)
        known += key->label[i] != HF__LABEL_HOLE;
    return key->kind != HF__KEY_UNKNOWN && (key->kind != HF__KEY_LABEL || known >= ENOUGH);
}

/* The class around a constructor: what new X(…), X.new(…), X::new(…) and X(…) call. */
static hf__piece class_around(const hf__unit *unit, size_t at)
{
    static const char *const words[] = {"class ", "impl ", NULL};

    for (; at > 0; at--) {
        if (unit->classes[at - 1] != HF__CODE || (at > 1 && is_word(unit->text[at - 2])))
            continue;
        for (const char *const *word = words; *word != NULL; word++) {
            size_t size = strlen(*word);
            if (unit->size - at < size || memcmp(unit->text + at - 1, *word, size) != 0)
                continue;
            hf__piece name = {unit->text + at - 1 + size, 0};
            while (is_word(name.text[name.size]))
                name.size++;
            return name;
        }
    }
    return (hf__piece){"", 0};
}

static void learn_one(hf__project *project, const hf__file_facts *facts, hf__use *use,
                      hf__piece name)
{
    const hf__unit *unit = facts->unit;
    const hf__function *function = &facts->functions[use->key.block];
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
        .line = hf__unit_line(unit, function->name),
        .use = use->at,
        .unsure_from = SIZE_MAX,
        .choice = use->choice,
    };
    hf__buf params = {0};

    made.name = strndup(name.text, name.size);
    made.file = strdup(unit->path);
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
    const hf__function *function = &facts->functions[use->key.block];
    size_t from =
        hf__unit_line(facts->unit, function->name) == wrapper->line ? function->param_count : 0;

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

/* A constructor is called by the name of its class, as well as by its own in super().__init__(). */
static void learn_class(hf__project *project, const hf__file_facts *facts, hf__use *use)
{
    const hf__unit *unit = facts->unit;
    const hf__function *function = &facts->functions[use->key.block];
    unsigned language = (unsigned)unit->syntax->id;

    if (use->wraps == NULL || !hf__is_constructor(unit->text + function->name, function->name_size))
        return;
    hf__piece name = class_around(unit, function->name);
    if (name.size < 3)
        return;
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

void hf__wrappers_learn(hf__project *project, const hf__file_facts *facts, hf__uses *uses)
{
    for (size_t i = 0; i < uses->count; i++) {
        hf__use *use = &uses->items[i];
        if (use->unlocks || use->key.block == HF__NO_BLOCK || says_enough(&use->key))
            continue;
        const hf__function *function = &facts->functions[use->key.block];
        const char *name = facts->unit->text + function->name;
        if (function->name_size < 3)
            continue;
        unsigned language = (unsigned)facts->unit->syntax->id;
        const char *path = facts->unit->path;
        hf__wrapper *known =
            hf__project_wrapper(project, name, function->name_size, language, path, false);
        if (known == NULL || (!known->declared && strcmp(known->file, path) != 0))
            learn_one(project, facts, use, (hf__piece){name, function->name_size});
        else if (!known->declared)
            learn_again(project, facts, known, use);
        use->wraps = hf__project_wrapper(project, name, function->name_size, language, path, false);
        learn_class(project, facts, use);
    }
}

/* ---- Definitions ----------------------------------------------------------------------------- */

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

static bool follows_word(const hf__unit *unit, size_t at, const char *word)
{
    size_t size = strlen(word);

    while (at > 0 && unit->text[at - 1] == ' ')
        at--;
    return at >= size && memcmp(unit->text + at - size, word, size) == 0;
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
    for (size_t i = 0; i < scope->unit->block_count; i++) {
        const hf__function *function = &scope->functions[i];
        hf__worth value = {0};
        if (function->name_size != strlen(wanted) ||
            memcmp(scope->unit->text + function->name, wanted, function->name_size) != 0)
            continue;
        hf__buf params = {0};
        hf__value_of_function(scope, i, &value);
        hf__function_params(scope->unit, function, &params);
        if (value.kind != HF__VALUE_UNKNOWN && !params.broken)
            hf__project_define(scope->project, scope->unit->path, wanted, true, params.data,
                               &value);
        hf__buf_free(&params);
        hf__value_free(&value);
    }
}

void hf__definitions_learn(const hf__scope *scope)
{
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

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Is the name at this place that of a declaration? */
static bool is_declaration(const hf__scope *scope, size_t at)
{
    static const char *const words[] = {"def", "defp",      "func",   "function", "fn",    "sub",
                                        "fun", "procedure", "import", "from",     "class", NULL};

    for (size_t i = 0; i < scope->unit->block_count; i++)
        if (scope->functions[i].name == at && scope->functions[i].name_size > 0)
            return true;
    for (const char *const *word = words; *word != NULL; word++)
        if (follows_word(scope->unit, at, *word))
            return true;
    return false;
}

/* `id int64` and `id: number` are parameters of a declaration without a body. */
static bool is_parameter(hf__piece argument)
{
    size_t at = 0;

    while (at < argument.size && is_word(argument.text[at]))
        at++;
    if (at == 0 || at == argument.size)
        return false;
    size_t next = at;
    next += argument.text[next] == '?';
    next += next < argument.size && argument.text[next] == ':';
    bool colon = next > at;
    while (next < argument.size && argument.text[next] == ' ')
        next++;
    if (next == at || next >= argument.size || !isalpha((unsigned char)argument.text[next]))
        return false;
    if (colon)
        return argument.text[next - 1] == ' ';
    return !(at == 3 && memcmp(argument.text, "new", 3) == 0) &&
           !(at == 5 && memcmp(argument.text, "await", 5) == 0) &&
           memchr(argument.text, '(', argument.size) == NULL &&
           memchr(argument.text, '"', argument.size) == NULL &&
           memchr(argument.text, '\'', argument.size) == NULL;
}

/*
 * Does the call leave no doubt which lock it takes? What it passes on of its own function's
 * parameters is for that function's callers to say.
 */
static bool is_sure(const hf__scope *scope, const hf__wrapper *wrapper, const hf__piece *args,
                    size_t count, hf__choice *choice, hf__piece *second)
{
    const hf__choice *open = &wrapper->choice;
    hf__worth passed = {0};
    size_t block = HF__NO_BLOCK;

    if (count >= wrapper->unsure_from)
        return false;
    if (open->field[0] == '\0' || open->param >= count || args[open->param].size == 0)
        return true;
    if (hf__piece_field(args[open->param], open->field, second))
        return second->size == 0 || open->pair;
    hf__value_read(scope, args[open->param], &passed, &block);
    int param = hf__value_param(&passed);
    hf__value_free(&passed);
    if (param < 0 || param >= HF__PARAMS_MAX)
        return false;
    *choice = *open;
    choice->param = (size_t)param;
    return true;
}

static hf_status add_call(const hf__scope *scope, hf__wrapper *wrapper, size_t at, size_t open,
                          hf__uses *uses, hf_error *err)
{
    const hf__unit *unit = scope->unit;
    hf__scope there = *scope;
    hf__args args;
    hf__piece pieces[HF__ARGS_MAX];
    hf__worth values[2] = {{0}};
    hf__piece second = {"", 0};
    size_t block = HF__NO_BLOCK;
    hf__use use = {.kind = wrapper->in_sql ? &wrapper_in_sql : &wrapper_in_code,
                   .start = at,
                   .at = at,
                   .args = open,
                   .block = hf__unit_block(unit, at),
                   .in_text = unit->classes[at] == HF__TEXT,
                   .tries = wrapper->tries,
                   .shared = wrapper->shared,
                   .labels = wrapper->labels,
                   .lifetime_known = wrapper->lifetime_known,
                   .lifetime = wrapper->lifetime,
                   .calls = wrapper};
    hf_status status = HF_OK;
    bool declaration = true;

    hf__args_read(unit, open, &args);
    use.end = args.end;
    size_t count = args.count < HF__ARGS_MAX ? args.count : HF__ARGS_MAX;
    for (size_t i = 0; i < count; i++) {
        pieces[i] = args.text.data != NULL
                        ? hf__piece_trim((hf__piece){args.text.data + args.start[i], args.size[i]})
                        : (hf__piece){"", 0};
        declaration = declaration && is_parameter(pieces[i]);
    }
    /* A closure may be too long to be read to its end. */
    bool read = args.complete || count > 0;
    if (!(args.complete && declaration) && !args.text.broken) {
        there.at = at;
        there.code = !use.in_text && unit->syntax->id != HF__LANG_SQL;
        there.string_end = use.in_text ? hf__unit_run_end(unit, args.end - 1) : SIZE_MAX;
        if (!wrapper->declared)
            count = hf__pieces_by_name(pieces, count, HF__ARGS_MAX, wrapper->params);
        bool sure = is_sure(&there, wrapper, pieces, count, &use.choice, &second);
        bool pair = wrapper->pair || second.size > 0;
        for (size_t i = 0; i < 1 + (size_t)wrapper->pair && sure && read; i++)
            hf__value_apply(&there, &wrapper->key[i], pieces, count, &values[i], &block);
        if (second.size > 0 && sure)
            hf__value_read(&there, second, &values[1], &block);
        status = hf__lock_key_make(values, pair, wrapper->labels, block, &use.key, err);
        if (!read)
            use.key.why = "its arguments cannot be read";
        else if (!sure)
            use.key.why = "it takes one of several locks";
        bool hidden = sure &&
                      (wrapper->key[0].field[0] != '\0' || wrapper->key[1].field[0] != '\0') &&
                      block == HF__NO_BLOCK && use.key.kind == HF__KEY_UNKNOWN;
        wrapper->hidden = wrapper->hidden || hidden;
        if (status == HF_OK && !hidden &&
            !hf__grow(&uses->items, &uses->capacity, uses->count + 1, sizeof *uses->items))
            status = hf__no_memory(err);
        if (status == HF_OK && !hidden)
            uses->items[uses->count++] = use;
        else
            hf__lock_key_free(&use.key);
    }
    hf__args_free(&args);
    return status;
}

/* x.lock(key) in a function `lock`: it calls one of the same name, not itself. */
static bool is_delegated(const hf__scope *scope, size_t at, size_t size)
{
    const hf__unit *unit = scope->unit;
    size_t block = hf__unit_block(unit, at);

    for (; at > 0 && block != HF__NO_BLOCK; block = unit->blocks[block].parent) {
        const hf__function *function = &scope->functions[block];
        if (function->name_size == size &&
            memcmp(unit->text + function->name, unit->text + at, size) == 0)
            return unit->text[at - 1] == '.' || unit->text[at - 1] == '>';
    }
    return false;
}

/* Where the arguments of the call begin; 0: this is no call. */
static size_t opening(const hf__unit *unit, size_t end)
{
    size_t at = end;

    static const char *const made[] = {".new", "::new", "->new", NULL};

    if (at < unit->size && strchr("!?", unit->text[at]) != NULL)
        at++;
    for (const char *const *word = made; *word != NULL; word++) {
        size_t size = strlen(*word);
        if (unit->size - at > size && memcmp(unit->text + at, *word, size) == 0 &&
            !is_word(unit->text[at + size]))
            at += size;
    }
    while (at < unit->size && (unit->text[at] == ' ' || unit->text[at] == '\t'))
        at++;
    if (at < unit->size && unit->text[at] == '<') { /* name<T>( */
        while (at < unit->size && at - end < 80 && unit->text[at] != '>' && unit->text[at] != '\n')
            at++;
        at++;
    }
    if (at < unit->size && unit->text[at] == '(')
        return at + 1;
    return unit->syntax->id == HF__LANG_RUBY && at > end && at < unit->size &&
                   strchr("\"':", unit->text[at]) != NULL
               ? at
               : 0;
}

hf_status hf__wrapper_calls_find(const hf__scope *scope, hf__uses *uses, hf_error *err)
{
    const hf__unit *unit = scope->unit;
    hf__project *project = scope->project;
    size_t direct = uses->count;
    hf_status status = HF_OK;
    hf__pcre_match match;

    if (project->names == NULL)
        return HF_OK;
    for (size_t at = 0; status == HF_OK; at = match.end[0]) {
        hf__pcre_found found = hf__pcre_find(project->names, unit->text, unit->size, at, &match);
        uses->incomplete = uses->incomplete || found == HF__PCRE_TOO_HARD;
        if (found != HF__PCRE_FOUND || uses->count >= CALLS_MAX)
            break;
        size_t place = match.start[0];
        hf__wrapper *wrapper = hf__project_wrapper(
            project, unit->text + place, match.end[0] - place, (unsigned)unit->syntax->id,
            unit->path, is_delegated(scope, place, match.end[0] - place));
        size_t open = wrapper != NULL ? opening(unit, match.end[0]) : 0;
        for (size_t i = 0; open > 0 && i < direct; i++) /* a library's function is known anyway */
            if (place >= uses->items[i].start && place < uses->items[i].end)
                open = 0;
        if (uses->count > direct && place < uses->items[uses->count - 1].args &&
            place > uses->items[uses->count - 1].start)
            open = 0; /* `new` of X::new(…) */
        if (open == 0 || is_declaration(scope, place) ||
            (wrapper->in_sql ? !hf__unit_is_sql(unit, place) : unit->classes[place] != HF__CODE) ||
            (!wrapper->declared && is_common(wrapper->name) &&
             strcmp(wrapper->file, unit->path) != 0))
            continue;
        status = add_call(scope, wrapper, place, open, uses, err);
    }
    return status;
}
