#include "programs/registry/lint/values/value_eval.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Calls ----------------------------------------------------------------------------------- */

struct call {
    hf__piece receiver;
    hf__piece name; /* without the receiver */
    hf__pieces args;
};

/* Reads x.f(a, b): the piece must end with the call. */
static bool read_call(hf__piece piece, bool sql, struct call *call)
{
    size_t open = hf__piece_last_call(piece, sql);
    size_t start;

    *call = (struct call){0};
    if (open == 0 || open >= piece.size)
        return false;
    hf__piece callee = hf__piece_trim((hf__piece){piece.text, open});
    start = callee.size;
    while (start > 0 && (isalnum((unsigned char)callee.text[start - 1]) ||
                         strchr("_!?", callee.text[start - 1]) != NULL))
        start--;
    if (start == callee.size && callee.size >= 6 &&
        memcmp(callee.text + callee.size - 6, "[]byte", 6) == 0)
        start = callee.size - 6;
    if (start == callee.size)
        return false;
    call->name = (hf__piece){callee.text + start, callee.size - start};
    call->receiver = hf__piece_trim((hf__piece){callee.text, start});
    hf__piece_split((hf__piece){piece.text + open + 1, piece.size - open - 2}, sql, &call->args);
    return true;
}

static bool is_called(const struct call *call, const char *name)
{
    return call->name.size == strlen(name) &&
           strncasecmp(call->name.text, name, call->name.size) == 0;
}

/* holdfast.key('label') of SQL, with a derivation or without. */
static bool evaluate_own_key(struct hf__eval *in, const hf__scope *scope, const struct call *call,
                             unsigned depth, hf__worth *out)
{
    hf__literal how;
    char name[40] = "sha256";

    if (scope->code || !is_called(call, "key") || call->args.count == 0 ||
        call->receiver.size != 9 || strncasecmp(call->receiver.text, "holdfast.", 9) != 0)
        return false;
    bool given = call->args.count > 1;
    bool readable = !given || (hf__piece_literal(call->args.items[1], true, &how) &&
                               how.content.size < sizeof name);
    if (given && readable)
        *(char *)mempcpy(name, how.content.text, how.content.size) = '\0';
    out->kind = HF__VALUE_HASHED;
    out->derivation_known = readable && hf_derivation_parse(name, &out->derivation, NULL) == HF_OK;
    out->unsure = !out->derivation_known;
    hf__add_operand(in, scope, call->args.items[0], depth, &out->text);
    return true;
}

static bool evaluate_hash(struct hf__eval *in, const hf__scope *scope, const struct call *call,
                          unsigned depth, hf__worth *out)
{
    bool extended = is_called(call, "hashtextextended");

    if (evaluate_own_key(in, scope, call, depth, out))
        return true;
    if ((!extended && !is_called(call, "hashtext")) || call->args.count == 0)
        return false;
    hf__piece seed =
        hf__piece_trim(call->args.count > 1 ? call->args.items[1] : (hf__piece){"0", 1});
    out->kind = HF__VALUE_HASHED;
    out->uses_hashtext = !extended;
    out->derivation = extended ? HF_HASHTEXTEXTENDED : HF_HASHTEXT;
    out->derivation_known = seed.size == 1 && seed.text[0] == '0';
    hf__add_hashed(in, scope, call->args.items[0], depth, out);
    return true;
}

static hf__piece list_of(hf__piece piece)
{
    size_t open = 0;

    piece = hf__piece_trim(piece);
    while (open < piece.size && strchr("([{", piece.text[open]) == NULL)
        open++;
    if (open < piece.size && piece.text[open] == '[' && open + 1 < piece.size &&
        piece.text[open + 1] == ']') /* []string{…} */
        while (open < piece.size && piece.text[open] != '{')
            open++;
    return open + 2 <= piece.size ? (hf__piece){piece.text + open + 1, piece.size - open - 2}
                                  : (hf__piece){"", 0};
}

static void evaluate_join(struct hf__eval *in, const hf__scope *scope, const struct call *call,
                          unsigned depth, hf__worth *out)
{
    const hf__pieces *args = &call->args;
    hf__pieces parts = *args;
    hf__piece separator = {"", 0};

    if (is_called(call, "join") || is_called(call, "implode")) {
        bool go = args->count == 2 && is_called(call, "join");
        bool python = hf__eval_language(scope) == HF__LANG_PYTHON;
        separator = go ? args->items[1] : python ? hf__piece_owner(call->receiver) : args->items[0];
        hf__piece list = go || python ? args->items[0] : hf__piece_owner(call->receiver);
        if (is_called(call, "implode") && args->count == 2)
            list = args->items[1];
        parts = (hf__pieces){0};
        hf__piece_split(list_of(list), !scope->code, &parts);
    } else if (is_called(call, "concat_ws") && args->count > 0) {
        separator = args->items[0];
        parts.count--;
        memmove(parts.items, parts.items + 1, parts.count * sizeof *parts.items);
    }
    if (parts.count == 0)
        return;
    out->kind = HF__VALUE_TEXT;
    for (size_t i = 0; i < parts.count; i++) {
        if (i > 0 && separator.size > 0)
            hf__add_operand(in, scope, separator, depth, &out->text);
        hf__add_operand(in, scope, parts.items[i], depth, &out->text);
    }
}

/* What a field of an argument is worth: that of a literal, or of a parameter that is passed on. */
static void evaluate_field(struct hf__eval *in, const hf__scope *scope, hf__piece given,
                           const hf__worth *form, unsigned depth, hf__worth *out)
{
    const char *field = form->field;
    hf__piece arg = given;
    hf__piece value;
    hf__buf member = {0};

    const hf__assignment *assigned =
        hf__assignments_find(scope->names, scope->unit, scope->at, false, arg.text, arg.size);
    hf__scope there = *scope;
    if (assigned != NULL && assigned->block != HF__NO_BLOCK &&
        memmem(arg.text, arg.size, ".", 1) == NULL) { /* options := Options{…} */
        arg = (hf__piece){scope->unit->text + assigned->value, assigned->value_size};
        there.at = assigned->name;
        if (!hf__piece_field(arg, field, &value))
            arg = given;
        else
            scope = &there;
    }
    if (hf__piece_field(arg, field, &value)) {
        if (value.size > 0)
            hf__evaluate(in, scope, value, depth + 1, out);
        else
            (void)hf__evaluate_otherwise(form, out);
        return;
    }
    hf__buf_add(&member, arg.text, arg.size);
    hf__buf_puts(&member, ".");
    hf__buf_puts(&member, field);
    if (arg.size > 0 && !member.broken)
        hf__evaluate(in, scope, (hf__piece){member.data, member.length}, depth + 1, out);
    hf__buf_free(&member);
}

/* keys ...string, and lock([a, b]): any of what is passed. */
static void apply_each(struct hf__eval *in, const hf__scope *scope, const hf__piece *args,
                       size_t count, unsigned depth, hf__worth *out)
{
    if (count > 0)
        hf__evaluate_items(in, scope, args[0], depth + 1, out);
    if (out->kind != HF__VALUE_UNKNOWN || hf__eval_language(scope) != HF__LANG_GO)
        return;
    for (size_t i = 0; i < count; i++) {
        hf__worth value = {0};
        hf__evaluate(in, scope, args[i], depth + 1, &value);
        if (i == 0)
            *out = value;
        else
            hf__value_join(out, &value);
    }
}

static void apply_one(struct hf__eval *in, const hf__scope *scope, const hf__worth *form,
                      const hf__piece *args, size_t count, unsigned depth, hf__worth *out)
{
    int param = hf__value_param(form);
    bool field = param >= 'a' - '0';
    size_t which = (size_t)(field ? param - ('a' - '0') : param);
    hf__piece map = {form->lookup, strlen(form->lookup)};

    if (param >= 0 && (which >= count || hf__is_nothing(args[which]))) {
        (void)hf__evaluate_otherwise(form, out);
        return;
    }
    if (field) {
        evaluate_field(in, scope, args[which], form, depth, out);
        return;
    }
    if (param >= 0 && form->each) {
        apply_each(in, scope, args + which, count - which, depth, out);
        return;
    }
    if (param >= 0) {
        if (map.size > 0)
            hf__evaluate_lookup(in, scope, map, args[which], depth + 1, out);
        else
            hf__evaluate(in, scope, args[which], depth + 1, out);
        if (out->kind == HF__VALUE_TEXT && hf__value_param(out) >= 0)
            memcpy(out->otherwise, form->otherwise, sizeof out->otherwise);
        return;
    }
    *out = *form;
    out->text = (hf__buf){0};
    out->also = NULL;
    for (size_t i = 0; i < form->text.length; i++) {
        char c = form->text.data[i];
        if (c != HF__LABEL_PARAM) {
            hf__buf_add(&out->text, &c, 1);
            continue;
        }
        size_t index = (size_t)(form->text.data[++i] - '0');
        if (index < count)
            hf__add_operand(in, scope, args[index], depth, &out->text);
        else
            hf__add_hole(&out->text);
    }
}

void hf__eval_apply(struct hf__eval *in, const hf__scope *scope, const hf__worth *form,
                    const hf__piece *args, size_t count, unsigned depth, hf__worth *out)
{
    for (const hf__worth *item = form; item != NULL; item = item->also) {
        hf__worth alone = *item;
        hf__worth value = {0};
        bool list = item->each && item->kind == HF__VALUE_HASHED;
        alone.also = NULL;
        alone.kind = list ? HF__VALUE_TEXT : item->kind;
        apply_one(in, scope, &alone, args, count, depth, &value);
        if (list)
            hf__hash_all(&value, item);
        if (item == form)
            *out = value;
        else
            hf__value_join(out, &value);
    }
}

static size_t find_function(const hf__scope *scope, hf__piece name)
{
    size_t found = HF__NO_BLOCK;

    for (size_t i = 0; i < scope->unit->block_count; i++) {
        const hf__function *function = &scope->functions[i];
        if (function->name_size != name.size || name.size == 0 ||
            memcmp(scope->unit->text + function->name, name.text, name.size) != 0)
            continue;
        if (found != HF__NO_BLOCK)
            return HF__NO_BLOCK;
        found = i;
    }
    return found;
}

bool hf__evaluate_method(struct hf__eval *in, const hf__scope *scope, hf__piece name,
                         unsigned depth, hf__worth *out)
{
    size_t block = find_function(scope, name);

    if (block == HF__NO_BLOCK || scope->functions[block].param_count > 0)
        return false;
    hf__function_value(in, scope, block, depth + 1, out);
    return out->kind != HF__VALUE_UNKNOWN; /* else a class that is derived may tell */
}

/* options.get(x) says nothing about a function `get` of this project. */
static bool may_be_ours(const hf__scope *scope, const struct call *call)
{
    static const char *const own[] = {"self.",  "this.",  "cls.",     "Self::", "$this->",
                                      "this->", "self::", "static::", "@"};

    if (call->receiver.size == 0 || !scope->code) /* of SQL: it is a schema */
        return true;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (call->receiver.size == strlen(own[i]) &&
            memcmp(call->receiver.text, own[i], call->receiver.size) == 0)
            return true;
    return isupper((unsigned char)call->receiver.text[0]) || hf__speaks_of_locks(call->name) ||
           (hf__eval_language(scope) == HF__LANG_GO &&
            memchr(call->receiver.text, '.', call->receiver.size) ==
                call->receiver.text + call->receiver.size - 1 &&
            isupper((unsigned char)call->name.text[0]));
}

/* Functions of SQL that no project defines. */
static bool is_of_postgres(const struct call *call)
{
    static const char *const names[] = {
        "coalesce", "lower",        "upper",   "concat",    "nextval",    "now",       "left",
        "right",    "substr",       "replace", "length",    "random",     "greatest",  "least",
        "mod",      "to_char",      "format",  "substring", "split_part", "encode",    "decode",
        "oid",      "txid_current", "extract", "floor",     "date_part",  "array_agg", "unnest"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_called(call, names[i]))
            return true;
    return false;
}

/* A function of this file, or of another. */
static void evaluate_function(struct hf__eval *in, const hf__scope *scope, const struct call *call,
                              unsigned depth, hf__worth *out)
{
    size_t block = find_function(scope, call->name);
    hf__pieces args = call->args;
    hf__buf params = {0};
    hf__worth form = {0};

    if (!may_be_ours(scope, call))
        return;
    if (args.count == 0 || (args.count == 1 && args.items[0].size == 0)) {
        const hf__assignment *assigned = hf__assignments_find(
            scope->names, scope->unit, scope->at, true, call->name.text, call->name.size);
        if (assigned != NULL)
            hf__evaluate_assigned(in, scope, assigned, depth, out);
        if (out->kind != HF__VALUE_UNKNOWN)
            return;
    }
    if (block != HF__NO_BLOCK) {
        hf__function_params(scope->unit, &scope->functions[block], &params);
        args.count = hf__pieces_by_name(args.items, args.count, HF__PIECES_MAX, params.data);
        args.count = hf__pieces_by_default(args.items, args.count, HF__PIECES_MAX, params.data);
        hf__function_value(in, scope, block, depth + 1, &form);
        hf__eval_apply(in, scope, &form, args.items, args.count, depth, out);
        hf__value_free(&form);
        hf__buf_free(&params);
        return;
    }
    hf__lambda lambda;
    if (hf__lambda_find(scope->unit, call->name, &lambda)) {
        hf__lambda_params(&lambda, &params);
        args.count = hf__pieces_by_name(args.items, args.count, HF__PIECES_MAX, params.data);
        hf__lambda_value(in, scope, &lambda, depth + 1, &form);
        hf__eval_apply(in, scope, &form, args.items, args.count, depth, out);
        hf__value_free(&form);
        hf__buf_free(&params);
        return;
    }
    const hf__definition *known = hf__project_find(scope->project, scope->unit->path,
                                                   call->name.text, call->name.size, true, false);
    if (known != NULL) {
        args.count = hf__pieces_by_name(args.items, args.count, HF__PIECES_MAX, known->params);
        args.count = hf__pieces_by_default(args.items, args.count, HF__PIECES_MAX, known->params);
        hf__eval_apply(in, scope, &known->value, args.items, args.count, depth, out);
    } else if (scope->code || !is_of_postgres(call)) {
        hf__project_want(scope->project, call->name.text, call->name.size);
        if (hf__speaks_of_locks(call->name))
            hf__project_find_all(scope->project, scope->unit->path, call->name.text,
                                 call->name.size, out);
    }
}

static bool is_of_project(const hf__scope *scope, const struct call *call)
{
    return may_be_ours(scope, call) &&
           (find_function(scope, call->name) != HF__NO_BLOCK ||
            hf__project_find(scope->project, scope->unit->path, call->name.text, call->name.size,
                             true, false) != NULL);
}

/* a |> f(b) of Elixir is f(a, b). */
bool hf__evaluate_piped(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                        unsigned depth, hf__worth *out)
{
    size_t pipe = 0;
    hf__buf text = {0};

    if (!scope->code || hf__eval_language(scope) != HF__LANG_ELIXIR)
        return false;
    for (size_t at = 0; at + 1 < piece.size;
         at += hf__piece_step((hf__piece){piece.text + at, piece.size - at}, false))
        if (memcmp(piece.text + at, "|>", 2) == 0)
            pipe = at;
    hf__piece call = hf__piece_trim((hf__piece){piece.text + pipe, piece.size - pipe});
    const char *open = memchr(call.text, '(', call.size);
    if (pipe == 0 || call.size < 3)
        return false;
    size_t name = open != NULL ? (size_t)(open - call.text) + 1 : call.size;
    hf__buf_add(&text, call.text + 2, name - 2);
    hf__buf_puts(&text, open != NULL ? "" : "("); /* a |> to_string */
    hf__buf_add(&text, piece.text, pipe);
    hf__piece rest = hf__piece_trim((hf__piece){call.text + name, call.size - name});
    hf__buf_puts(&text, rest.size > 0 && rest.text[0] != ')' ? ", " : "");
    hf__buf_add(&text, rest.text, rest.size);
    hf__buf_puts(&text, open != NULL ? "" : ")");
    if (!text.broken)
        hf__evaluate(in, scope, (hf__piece){text.data, text.length}, depth + 1, out);
    hf__buf_free(&text);
    return true;
}

/* Map.fetch!(@locks, name) of Elixir, LOCKS.fetch(name), LOCKS.get(name). */
static bool read_lookup(const struct call *call, hf__piece *map, hf__piece *key)
{
    bool elixir = call->receiver.size == 4 && memcmp(call->receiver.text, "Map.", 4) == 0;

    if ((!is_called(call, "fetch!") && !is_called(call, "fetch") && !is_called(call, "get")) ||
        call->args.count != 1 + (size_t)elixir)
        return false;
    *map = elixir ? call->args.items[0] : hf__piece_owner(call->receiver);
    *key = call->args.items[elixir];
    if (elixir && map->size > 1 && map->text[0] == '@')
        *map = (hf__piece){map->text + 1, map->size - 1};
    else if (map->size == 0 || !isupper((unsigned char)map->text[0]))
        return false;
    return true;
}

bool hf__evaluate_call(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                       hf__worth *out)
{
    struct call call;
    hf__pcre_match match;
    hf__piece map;
    hf__piece key;

    if (!read_call(piece, !scope->code, &call))
        return false;
    if (evaluate_hash(in, scope, &call, depth, out))
        return true;
    if (!is_of_project(scope, &call) &&
        hf__evaluate_digest(in, scope, call.receiver, call.name, &call.args, depth, out)) {
        if (scope->code && call.receiver.size == 0) /* another file may have one of that name */
            hf__project_want(scope->project, call.name.text, call.name.size);
        return true;
    }
    if (hf__eval_matches(scope, HF__VALUE_IS_FORMAT, call.name, &match)) {
        hf__pieces args = call.args;
        call.receiver = hf__piece_owner(call.receiver);
        bool method = hf__piece_is_literal(call.receiver, false);
        if (!method && args.count > 0) {
            args.count--;
            memmove(args.items, args.items + 1, args.count * sizeof *args.items);
        }
        if (method || call.args.count > 0)
            hf__evaluate_format(in, scope, method ? call.receiver : call.args.items[0], &args,
                                depth, out);
    } else if (hf__eval_matches(scope, HF__VALUE_IS_JOIN, call.name, &match)) {
        evaluate_join(in, scope, &call, depth, out);
    } else if (hf__evaluate_getter(in, scope, call.receiver, call.name, &call.args, depth, out)) {
        return true;
    } else if (read_lookup(&call, &map, &key)) {
        hf__evaluate_lookup(in, scope, map, key, depth, out);
    } else if (is_called(&call, "abs") && call.args.count == 1) {
        hf__evaluate(in, scope, call.args.items[0], depth + 1, out);
        out->derivation_known = false;
    } else if (call.args.count > 0 &&
               hf__eval_matches(scope, HF__VALUE_IS_CONVERSION, call.name, &match)) {
        size_t index = is_called(&call, "asintn") && call.args.count > 1;
        hf__evaluate(in, scope, call.args.items[index], depth + 1, out);
    } else if (call.receiver.size > 0 &&
               hf__eval_matches(scope, HF__VALUE_IS_METHOD, call.name, &match)) {
        hf__evaluate(in, scope, hf__piece_owner(call.receiver), depth + 1, out);
    } else {
        evaluate_function(in, scope, &call, depth, out);
        hf__piece owner = hf__piece_owner(call.receiver);
        if (out->kind == HF__VALUE_UNKNOWN && call.args.count == 0 && hf__is_constant(owner))
            hf__evaluate(in, scope, owner, depth + 1, out); /* Locks.REPORT.id() */
    }
    return true;
}
