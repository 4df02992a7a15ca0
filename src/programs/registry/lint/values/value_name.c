#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "programs/registry/lint/values/value_eval.h"

/* ---- Names ----------------------------------------------------------------------------------- */

/* The innermost function around that has a parameter of this name, or HF__NO_BLOCK. */
static size_t find_param(const hf__scope *scope, hf__piece name, size_t *index)
{
    const hf__unit *unit = scope->unit;
    size_t block = hf__unit_block(unit, scope->at);

    while (block != HF__NO_BLOCK) {
        *index = hf__function_param(unit, &scope->functions[block], name.text, name.size);
        if (*index < HF__PARAMS_MAX)
            break;
        block = unit->blocks[block].parent;
    }
    return block;
}

/* A parameter of the function around, or a field of one. */
static bool evaluate_param(struct hf__eval *in, const hf__scope *scope, hf__piece name,
                           hf__piece field, hf__worth *out)
{
    size_t index = in->lambda != NULL ? hf__lambda_param(in->lambda, name) : HF__PARAMS_MAX;
    bool lambda = index < HF__PARAMS_MAX;
    size_t block = lambda ? HF__NO_BLOCK : find_param(scope, name, &index);

    if (lambda && field.size == 0) {
        out->kind = HF__VALUE_TEXT;
        hf__buf_add(&out->text, (char[]){HF__LABEL_PARAM, (char)('0' + (int)index)}, 2);
    }
    if (block == HF__NO_BLOCK)
        return lambda;
    if (scope->functions[block].name_size == 0 || field.size >= HF__FIELD_MAX ||
        (*in->block != HF__NO_BLOCK && *in->block != block))
        return true;
    *in->block = block;
    out->kind = HF__VALUE_TEXT;
    char mark = (char)((field.size > 0 ? 'a' : '0') + (int)index);
    hf__buf_add(&out->text, (char[]){HF__LABEL_PARAM, mark}, 2);
    memcpy(out->field, field.text, field.size);
    return true;
}

/* Evaluates what a name was given. */
void hf__evaluate_assigned(struct hf__eval *in, const hf__scope *scope,
                           const hf__assignment *assigned, unsigned depth, hf__worth *out)
{
    hf__scope there = *scope;

    if (assigned->counted) {
        *out = (hf__worth){.kind = HF__VALUE_NUMBER, .number = assigned->number};
        return;
    }
    there.at = assigned->name;
    there.code = scope->unit->syntax->id != HF__LANG_SQL;
    there.string_end = SIZE_MAX;
    hf__evaluate(in, &there, (hf__piece){scope->unit->text + assigned->value, assigned->value_size},
                 depth + 1, out);
}

static bool is_capital(hf__piece piece)
{
    return piece.size > 0 && isupper((unsigned char)piece.text[0]);
}

/* A name that another file may define. In Go those of the same package are small letters. */
static bool may_be_elsewhere(const hf__scope *scope, hf__piece name)
{
    if (is_capital(name) || hf__eval_language(scope) != HF__LANG_GO)
        return is_capital(name);
    for (size_t i = 1; i < name.size; i++)
        if (isupper((unsigned char)name.text[i]))
            return true;
    return false;
}

/* The owner of Locks.REPORT; a package or a module is none. */
static hf__piece owner_of(hf__piece chain)
{
    size_t start;

    chain = hf__piece_owner(chain);
    start = chain.size;
    while (start > 0 &&
           (isalnum((unsigned char)chain.text[start - 1]) || chain.text[start - 1] == '_'))
        start--;
    hf__piece owner = {chain.text + start, chain.size - start};
    bool own = owner.size == 4 && memcmp(owner.text, "Self", 4) == 0;
    return is_capital(owner) && !own ? owner : (hf__piece){"", 0};
}

/* A member of an owner that this file, or another, declares. */
static void evaluate_member(struct hf__eval *in, const hf__scope *scope, hf__piece owner,
                            hf__piece name, unsigned depth, hf__worth *out)
{
    const hf__assignment *assigned = hf__assignments_find_in(scope->names, scope->unit, owner.text,
                                                             owner.size, name.text, name.size);
    hf__buf whole = {0};

    if (assigned != NULL) {
        hf__evaluate_assigned(in, scope, assigned, depth, out);
        return;
    }
    hf__buf_add(&whole, owner.text, owner.size);
    hf__buf_puts(&whole, ".");
    hf__buf_add(&whole, name.text, name.size);
    const hf__definition *known = whole.broken
                                      ? NULL
                                      : hf__project_find(scope->project, scope->unit->path,
                                                         whole.data, whole.length, false, false);
    if (known != NULL)
        scope->project->broken = !hf__value_copy(out, &known->value) || scope->project->broken;
    else if (!whole.broken)
        hf__project_want(scope->project, whole.data, whole.length);
    hf__buf_free(&whole);
}

void hf__evaluate_lookup(struct hf__eval *in, const hf__scope *scope, hf__piece map, hf__piece key,
                         unsigned depth, hf__worth *out)
{
    hf__worth name = {0};

    hf__evaluate(in, scope, key, depth + 1, &name);
    const hf__buf *text = &name.text;
    if (hf__value_param(&name) >= 0 && name.field[0] == '\0' && map.size < HF__FIELD_MAX) {
        *out = name;
        memcpy(out->lookup, map.text, map.size);
        out->lookup[map.size] = '\0';
        return;
    }
    if (name.kind == HF__VALUE_TEXT && text->length > 0 &&
        memchr(text->data, HF__LABEL_HOLE, text->length) == NULL &&
        memchr(text->data, HF__LABEL_PARAM, text->length) == NULL)
        evaluate_member(in, scope, map, (hf__piece){text->data, text->length}, depth, out);
    hf__value_free(&name);
}

/* LOCKS['report'] is a member too. */
bool hf__evaluate_item(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                       hf__worth *out)
{
    hf__pcre_match match;

    if (!scope->code || !hf__eval_matches(scope, HF__VALUE_IS_ITEM, piece, &match))
        return false;
    hf__evaluate_lookup(in, scope, hf__eval_group(piece, &match, 1),
                        hf__eval_group(piece, &match, 2), depth, out);
    return true;
}

/* Only what such a field is set to is followed to other functions and files. */
bool hf__speaks_of_locks(hf__piece name)
{
    bool speaks = false;

    for (size_t i = 0; i + 3 <= name.size; i++)
        speaks = speaks || strncasecmp(name.text + i, "key", 3) == 0 ||
                 (i + 4 <= name.size && strncasecmp(name.text + i, "lock", 4) == 0) ||
                 (i + 5 <= name.size && strncasecmp(name.text + i, "mutex", 5) == 0);
    return speaks;
}

/* Any field of a class Mutex may be its key; of other classes only one that speaks of locks. */
static bool may_be_key(const hf__scope *scope, hf__piece name)
{
    hf__piece owner = {scope->unit->text, 0};

    if (hf__speaks_of_locks(name))
        return true;
    owner.text += hf__class_around(scope->unit, scope->at, &owner.size);
    return hf__speaks_of_locks(owner);
}

/* this.key where the constructor has a parameter `private readonly key`, or makes Self { key }. */
static bool evaluate_promoted(struct hf__eval *in, const hf__scope *scope, hf__piece chain,
                              hf__piece name, hf__worth *out)
{
    const hf__unit *unit = scope->unit;
    hf__piece owner = hf__piece_owner(chain);

    if ((hf__eval_language(scope) & (HF__LANG_JS | HF__LANG_PHP | HF__LANG_RUST)) == 0 ||
        owner.size < 4 || !may_be_key(scope, name) ||
        (memcmp(owner.text + owner.size - 4, "this", 4) != 0 &&
         memcmp(owner.text + owner.size - 4, "self", 4) != 0))
        return false;
    for (size_t i = 0; i < unit->block_count; i++) {
        const hf__function *function = &scope->functions[i];
        hf__piece called = {unit->text + function->name, function->name_size};
        size_t index = hf__function_param(unit, function, name.text, name.size);
        if (index == HF__PARAMS_MAX || !hf__is_constructor(called.text, called.size) ||
            (*in->block != HF__NO_BLOCK && *in->block != i))
            continue;
        *in->block = i;
        out->kind = HF__VALUE_TEXT;
        hf__buf_add(&out->text, (char[]){HF__LABEL_PARAM, (char)('0' + (int)index)}, 2);
        return true;
    }
    return false;
}

/* name of Ruby, where attr_reader makes a method of @name. */
static bool evaluate_read_field(struct hf__eval *in, const hf__scope *scope, hf__piece name,
                                unsigned depth, hf__worth *out)
{
    const hf__assignment *assigned =
        hf__assignments_find(scope->names, scope->unit, scope->at, true, name.text, name.size);

    if (assigned == NULL || assigned->name == 0 || scope->unit->text[assigned->name - 1] != '@' ||
        !may_be_key(scope, name))
        return false;
    hf__evaluate_assigned(in, scope, assigned, depth, out);
    return true;
}

/* A field that another file of the folder sets. Only names that speak of locks are looked for. */
static bool evaluate_far_field(const hf__scope *scope, hf__piece name, hf__worth *out)
{
    hf__buf field = {0};
    const hf__definition *known = NULL;

    if (!hf__speaks_of_locks(name) || !scope->code)
        return false;
    hf__buf_puts(&field, ".");
    hf__buf_add(&field, name.text, name.size);
    if (!field.broken)
        known = hf__project_find(scope->project, scope->unit->path, field.data, field.length, false,
                                 true);
    if (known != NULL)
        scope->project->broken = !hf__value_copy(out, &known->value) || scope->project->broken;
    else if (!field.broken)
        hf__project_want(scope->project, field.data, field.length);
    hf__buf_free(&field);
    return known != NULL;
}

/* Where a plain name may be a field of the object. */
#define IMPLICIT_THIS (HF__LANG_JAVA | HF__LANG_CSHARP | HF__LANG_KOTLIN | HF__LANG_C)

/* snprintf(text, sizeof text, "%d", key) of C: what was printed into the name before. */
static bool evaluate_printed(struct hf__eval *in, const hf__scope *scope, hf__piece name,
                             unsigned depth, hf__worth *out)
{
    const hf__unit *unit = scope->unit;
    size_t block = hf__unit_block(unit, scope->at);
    size_t lowest = block != HF__NO_BLOCK ? unit->blocks[block].start : 0;

    for (size_t at = scope->at; at > lowest + 7; at--) {
        hf__pieces args = {0};
        if (unit->classes[at] != HF__CODE || memcmp(unit->text + at - 7, "printf(", 7) != 0)
            continue;
        hf__piece call = {unit->text + at - 1, unit->size - at + 1};
        size_t close = hf__piece_close(call, false);
        if (close > call.size || close < 2)
            continue;
        hf__piece_split((hf__piece){call.text + 1, close - 2}, false, &args);
        size_t format = args.count > 1 && hf__piece_is_literal(args.items[1], false) ? 1 : 2;
        if (args.count <= format || args.items[0].size != name.size ||
            memcmp(args.items[0].text, name.text, name.size) != 0)
            continue;
        hf__piece text = args.items[format];
        args.count -= format + 1;
        memmove(args.items, args.items + format + 1, args.count * sizeof *args.items);
        hf__evaluate_format(in, scope, text, &args, depth, out);
        return true;
    }
    return false;
}

static bool names_function_around(const hf__scope *scope, hf__piece chain)
{
    size_t block = hf__unit_block(scope->unit, scope->at);
    hf__piece owner = hf__piece_owner(chain);

    return hf__eval_language(scope) == HF__LANG_SQL && chain.size > 0 && block != HF__NO_BLOCK &&
           scope->functions[block].name_size == owner.size && owner.size > 0 &&
           memcmp(scope->unit->text + scope->functions[block].name, owner.text, owner.size) == 0;
}

void hf__evaluate_name(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                       hf__worth *out)
{
    hf__pcre_match match;

    if (!hf__eval_matches(scope, HF__VALUE_IS_NAME, piece, &match))
        return;
    hf__piece chain = hf__eval_group(piece, &match, 1);
    hf__piece name = hf__eval_group(piece, &match, 2);
    hf__piece owner = owner_of(chain);
    hf__piece none = {"", 0};
    if (names_function_around(scope, chain)) /* f.value in the function f of SQL */
        chain = none;
    if (owner.size > 0) {
        evaluate_member(in, scope, owner, name, depth, out);
        return;
    }
    if (chain.size == 0 && in->lambda != NULL && evaluate_param(in, scope, name, none, out))
        return;
    bool member = chain.size > 0 || (hf__eval_language(scope) == HF__LANG_RUBY &&
                                     memchr(piece.text, '@', piece.size) != NULL);
    if (chain.size > 0 && evaluate_param(in, scope, hf__piece_owner(chain), name, out))
        return;
    const hf__assignment *assigned =
        hf__assignments_find(scope->names, scope->unit, scope->at, member, name.text, name.size);
    size_t index = 0;
    size_t around = member ? HF__NO_BLOCK : find_param(scope, name, &index);
    if (around != HF__NO_BLOCK && assigned != NULL &&
        (assigned->block == HF__NO_BLOCK ||
         !hf__unit_encloses(scope->unit, around, assigned->block)))
        assigned = NULL; /* the parameter hides it */
    if (assigned == NULL && around == HF__NO_BLOCK &&
        (hf__eval_language(scope) & IMPLICIT_THIS) != 0)
        assigned =
            hf__assignments_find(scope->names, scope->unit, scope->at, true, name.text, name.size);
    size_t before = *in->block;
    if (assigned != NULL)
        hf__evaluate_assigned(in, scope, assigned, depth, out);
    if (assigned != NULL && assigned->block == around && around != HF__NO_BLOCK &&
        (out->text.length == 0 ||
         memchr(out->text.data, HF__LABEL_PARAM, out->text.length) == NULL))
        hf__value_free(out); /* if (!key) key = 5: its callers may pass another */
    if (*in->block != before && around == HF__NO_BLOCK && !may_be_key(scope, name) &&
        !hf__unit_encloses(scope->unit, *in->block, hf__unit_block(scope->unit, scope->at))) {
        hf__value_free(out); /* a field as others: its constructor is no wrapper */
        *in->block = before;
    }
    if (out->kind == HF__VALUE_UNKNOWN && hf__eval_language(scope) == HF__LANG_C && !member &&
        evaluate_printed(in, scope, name, depth, out))
        return;
    if (out->kind == HF__VALUE_UNKNOWN && member && evaluate_promoted(in, scope, chain, name, out))
        return;
    if (out->kind != HF__VALUE_UNKNOWN || (!member && evaluate_param(in, scope, name, none, out)))
        return;
    if (assigned == NULL && chain.size > 0 && evaluate_far_field(scope, name, out))
        return;
    if (assigned == NULL && !member && hf__eval_language(scope) == HF__LANG_RUBY &&
        (hf__evaluate_method(in, scope, name, depth, out) ||
         evaluate_read_field(in, scope, name, depth, out)))
        return;
    const hf__definition *known =
        hf__project_find(scope->project, scope->unit->path, name.text, name.size, false,
                         hf__eval_language(scope) == HF__LANG_GO && !is_capital(name));
    if (known != NULL)
        scope->project->broken = !hf__value_copy(out, &known->value) || scope->project->broken;
    else if (assigned == NULL && may_be_elsewhere(scope, name) && scope->code)
        hf__project_want(scope->project, name.text, name.size);
}
