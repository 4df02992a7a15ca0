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
    hf__piece value = {scope->unit->text + assigned->value, assigned->value_size};
    hf__scope there = *scope;

    if (assigned->counted) {
        *out = (hf__worth){.kind = HF__VALUE_NUMBER, .number = assigned->number};
        return;
    }
    for (const struct hf__visit *visit = in->visits; visit != NULL; visit = visit->outer)
        if (visit->assigned == assigned)
            return; /* key = key + x: it adds nothing */
    in->visits = &(struct hf__visit){assigned, in->visits};
    there.at = assigned->name;
    there.code = scope->unit->syntax->id != HF__LANG_SQL;
    there.string_end = SIZE_MAX;
    if (assigned->each)
        hf__evaluate_items(in, &there, value, depth + 1, out);
    else
        hf__evaluate(in, &there, value, depth + 1, out);
    in->visits = in->visits->outer;
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

bool hf__is_constant(hf__piece piece)
{
    size_t start = piece.size;

    while (start > 0 &&
           (isupper((unsigned char)piece.text[start - 1]) ||
            isdigit((unsigned char)piece.text[start - 1]) || piece.text[start - 1] == '_'))
        start--;
    return piece.size - start > 1 && start > 1 && isupper((unsigned char)piece.text[0]) &&
           strchr(".:", piece.text[start - 1]) != NULL;
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

/* What a map has by this name, or else what the file gives any map by it: config['lock_id']. */
static void evaluate_entry(struct hf__eval *in, const hf__scope *scope, hf__piece map,
                           hf__piece name, unsigned depth, hf__worth *out)
{
    evaluate_member(in, scope, map, name, depth, out);
    if (out->kind != HF__VALUE_UNKNOWN || !hf__speaks_of_locks(name))
        return;
    const hf__assignment *assigned =
        hf__assignments_find(scope->names, scope->unit, scope->at, true, name.text, name.size);
    if (assigned != NULL && assigned->field)
        hf__evaluate_assigned(in, scope, assigned, depth, out);
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
        evaluate_entry(in, scope, map, (hf__piece){text->data, text->length}, depth, out);
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

/* options.LockKey, of a variable: a constant of that name in another file is not meant. */
static bool is_variable(const hf__scope *scope, hf__piece chain)
{
    hf__piece owner = hf__piece_until(hf__piece_owner(chain), ".:-?");
    hf__reaching found;
    size_t index;

    while (owner.size > 0 && strchr("$@&*", owner.text[0]) != NULL)
        owner = (hf__piece){owner.text + 1, owner.size - 1};
    hf__assignments_reaching(scope->names, scope->unit, scope->at, false, owner.text, owner.size,
                             &found);
    return found.count > 0 || found.untold || find_param(scope, owner, &index) != HF__NO_BLOCK;
}

/* key = options.key: what is given instead of a default. A call computes it. */
static bool is_option(const hf__scope *scope, const hf__assignment *assigned)
{
    hf__pcre_match match;
    hf__piece value = {scope->unit->text + assigned->value, assigned->value_size};

    return hf__eval_matches(scope, HF__VALUE_IS_NAME, value, &match);
}

/* 0, -1 and "" stand for nothing where a name gets something better, too. */
static bool is_empty(const hf__worth *value)
{
    return value->also == NULL &&
           ((value->kind == HF__VALUE_NUMBER && (value->number == 0 || value->number == -1)) ||
            (value->kind == HF__VALUE_TEXT && value->text.length == 0));
}

/*
 * The value of a name that several assignments may have given it: any of theirs. What callers pass
 * counts where the function around has it as a parameter, with the others as what is meant
 * otherwise; as a parameter of another function it is an option that may replace them.
 */
static void evaluate_reaching(struct hf__eval *in, const hf__scope *scope,
                              const hf__reaching *found, hf__piece name, size_t around,
                              unsigned depth, hf__worth *out)
{
    const hf__unit *unit = scope->unit;
    size_t before = *in->block;
    bool first = true;
    bool computed = found->untold;
    hf__worth passed = {0};
    size_t passed_block = HF__NO_BLOCK;

    for (size_t i = 0; i < found->count; i++) {
        hf__worth value = {0};
        *in->block = before;
        hf__evaluate_assigned(in, scope, found->items[i], depth, &value);
        bool asks = *in->block != before;
        if (asks && around == HF__NO_BLOCK && !may_be_key(scope, name) &&
            !hf__unit_encloses(unit, *in->block, hf__unit_block(unit, scope->at)))
            hf__value_free(&value); /* a field as others: its constructor is no wrapper */
        if (asks && found->count > 1 &&
            !hf__unit_encloses(unit, *in->block, hf__unit_block(unit, scope->at))) {
            hf__value_free(&value); /* one of several functions sets it: an option */
            continue;
        }
        if (value.kind == HF__VALUE_UNKNOWN) {
            computed = computed || !is_option(scope, found->items[i]);
        } else if (found->count > 1 && is_empty(&value)) {
            hf__value_free(&value);
        } else if (asks && passed.kind == HF__VALUE_UNKNOWN) {
            passed = value;
            passed_block = *in->block;
        } else if (asks) {
            hf__value_free(&value);
        } else if (first) {
            *out = value;
            first = false;
        } else {
            hf__value_join(out, &value);
        }
    }
    *in->block = before;
    if (passed.kind == HF__VALUE_UNKNOWN && around != HF__NO_BLOCK && found->conditional)
        (void)evaluate_param(in, scope, name, (hf__piece){"", 0}, &passed);
    else if (passed.kind != HF__VALUE_UNKNOWN)
        *in->block = passed_block;
    bool own = passed.kind != HF__VALUE_UNKNOWN &&
               hf__unit_encloses(unit, *in->block, hf__unit_block(unit, scope->at));
    if (own && !first)
        hf__note_otherwise(out, &passed);
    if (own || first) {
        hf__value_free(out);
        *out = passed;
    } else {
        hf__value_free(&passed);
        *in->block = before;
        if (computed)
            hf__value_join(out, &(hf__worth){0});
    }
    if (hf__value_count(out) > HF__VALUES_MAX)
        hf__value_free(out);
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
        if (out->kind == HF__VALUE_UNKNOWN && hf__is_constant(hf__piece_owner(chain)))
            hf__evaluate(in, scope, hf__piece_owner(chain), depth + 1, out);
        return;
    }
    if (chain.size == 0 && in->lambda != NULL && evaluate_param(in, scope, name, none, out))
        return;
    bool member = chain.size > 0 || (hf__eval_language(scope) == HF__LANG_RUBY &&
                                     memchr(piece.text, '@', piece.size) != NULL);
    if (chain.size > 0 && evaluate_param(in, scope, hf__piece_owner(chain), name, out))
        return;
    hf__reaching found;
    hf__assignments_reaching(scope->names, scope->unit, scope->at, member, name.text, name.size,
                             &found);
    size_t index = 0;
    size_t around = member ? HF__NO_BLOCK : find_param(scope, name, &index);
    if (around != HF__NO_BLOCK && found.count > 0 &&
        (found.items[0]->block == HF__NO_BLOCK ||
         !hf__unit_encloses(scope->unit, around, found.items[0]->block)))
        found = (hf__reaching){0}; /* the parameter hides it */
    if (found.count == 0 && around == HF__NO_BLOCK &&
        (hf__eval_language(scope) & IMPLICIT_THIS) != 0)
        hf__assignments_reaching(scope->names, scope->unit, scope->at, true, name.text, name.size,
                                 &found);
    if (found.count > 1 && member && !may_be_key(scope, name))
        found = (hf__reaching){.untold = true};
    bool assigned = found.count > 0 || found.untold;
    evaluate_reaching(in, scope, &found, name, around, depth, out);
    if (out->kind == HF__VALUE_UNKNOWN && hf__eval_language(scope) == HF__LANG_C && !member &&
        evaluate_printed(in, scope, name, depth, out))
        return;
    if (out->kind == HF__VALUE_UNKNOWN && member && evaluate_promoted(in, scope, chain, name, out))
        return;
    if (out->kind != HF__VALUE_UNKNOWN || (!member && evaluate_param(in, scope, name, none, out)))
        return;
    if (!assigned && chain.size > 0 && evaluate_far_field(scope, name, out))
        return;
    if (!assigned && !member && hf__eval_language(scope) == HF__LANG_RUBY &&
        (hf__evaluate_method(in, scope, name, depth, out) ||
         evaluate_read_field(in, scope, name, depth, out)))
        return;
    const hf__definition *known =
        hf__project_find(scope->project, scope->unit->path, name.text, name.size, false,
                         hf__eval_language(scope) == HF__LANG_GO && !is_capital(name));
    if (known != NULL && chain.size > 0 && is_variable(scope, chain))
        return;
    bool method = !assigned && !member && hf__eval_language(scope) == HF__LANG_RUBY &&
                  hf__speaks_of_locks(name) && scope->code;
    if (known != NULL)
        scope->project->broken = !hf__value_copy(out, &known->value) || scope->project->broken;
    else if (method) { /* of a class that is derived from this one */
        hf__project_want(scope->project, name.text, name.size);
        hf__project_find_all(scope->project, scope->unit->path, name.text, name.size, out);
    } else if (!assigned && may_be_elsewhere(scope, name) && scope->code) {
        hf__project_want(scope->project, name.text, name.size);
    }
}
