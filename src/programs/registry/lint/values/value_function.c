/* What functions return. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "programs/registry/lint/values/value_eval.h"

/* What stands behind the last semicolon of a function of Rust. */
static hf__piece last_expression(const hf__scope *scope, size_t block, size_t *at)
{
    const hf__unit *unit = scope->unit;
    size_t body = scope->functions[block].body;
    size_t end = unit->blocks[block].end;
    size_t depth = 0;

    while (body < end && !(unit->classes[body] == HF__CODE && unit->text[body] == '{'))
        body++;
    size_t start = ++body;
    for (size_t i = body; i + 1 < end; i++) {
        if (unit->classes[i] != HF__CODE)
            continue;
        char c = unit->text[i];
        depth += c == '(' || c == '[' || c == '{';
        depth -= (c == ')' || c == ']' || c == '}') && depth > 0;
        if (depth == 0 && (c == ';' || c == '}'))
            start = i + 1;
    }
    if (start + 1 >= end)
        return (hf__piece){"", 0};
    *at = start;
    return hf__piece_trim((hf__piece){unit->text + start, end - 1 - start});
}

/* What the only statement of a function of SQL selects: $$ SELECT 4711 $$. */
static hf__piece selected(const hf__scope *scope, size_t block, size_t *at)
{
    const hf__unit *unit = scope->unit;
    size_t body = scope->functions[block].body;
    size_t end = unit->blocks[block].end;

    while (body < end && (isspace((unsigned char)unit->text[body]) || unit->text[body] == '$' ||
                          unit->classes[body] == HF__COMMENT))
        body++;
    if (end - body < 8 || strncasecmp(unit->text + body, "select", 6) != 0 ||
        !isspace((unsigned char)unit->text[body + 6]))
        return (hf__piece){"", 0};
    *at = body + 7;
    hf__piece rest = {unit->text + *at, end - *at};
    hf__piece piece = hf__piece_trim(hf__piece_until(rest, ";$"));
    return memmem(piece.text, piece.size, " from ", 6) == NULL &&
                   memmem(piece.text, piece.size, " FROM ", 6) == NULL
               ? piece
               : (hf__piece){"", 0};
}

/*
 * The next expression that a function returns, at or after *at, where it is put; size 0: there is
 * none.
 */
static hf__piece next_return(const hf__scope *scope, size_t block, size_t *at)
{
    const hf__unit *unit = scope->unit;
    size_t end = unit->blocks[block].end;

    for (size_t i = *at; i + 7 < end; i++) {
        if (unit->classes[i] != HF__CODE || strncasecmp(unit->text + i, "return", 6) != 0 ||
            isalnum((unsigned char)unit->text[i - 1]) || unit->text[i - 1] == '_' ||
            strchr(" (", unit->text[i + 6]) == NULL || hf__unit_block(unit, i) != block)
            continue;
        *at = i;
        return (hf__piece){unit->text + i + 6, hf__expression_end(unit, i + 6) - i - 6};
    }
    return (hf__piece){"", 0};
}

/* What a function returns without saying so: its last expression. */
static hf__piece last_value(const hf__scope *scope, size_t block, size_t *at)
{
    const hf__unit *unit = scope->unit;
    size_t end = unit->blocks[block].end;

    if (unit->syntax->id == HF__LANG_SQL)
        return selected(scope, block, at);
    if (unit->syntax->id == HF__LANG_RUST)
        return last_expression(scope, block, at);
    if ((unit->syntax->id & (HF__LANG_RUBY | HF__LANG_ELIXIR)) == 0)
        return (hf__piece){"", 0};
    while (end > 0 && isspace((unsigned char)unit->text[end - 1])) /* the line before `end` */
        end--;
    while (end > 0 && unit->text[end - 1] != '\n')
        end--;
    size_t line = end > 0 ? end - 1 : 0;
    while (line > scope->functions[block].body && unit->text[line - 1] != '\n')
        line--;
    *at = line;
    return line > scope->functions[block].body
               ? (hf__piece){unit->text + line, hf__expression_end(unit, line) - line}
               : (hf__piece){"", 0};
}

/* Any of the values that a function returns; an error, and nothing, are none of them. */
static void evaluate_returned(struct hf__eval *in, const hf__scope *inside, size_t block,
                              unsigned depth, hf__worth *out)
{
    hf__scope there = *inside;
    bool first = true;
    hf__piece piece;

    for (size_t from = inside->functions[block].body;
         (piece = next_return(inside, block, &from)).size > 0; from += 6) {
        hf__worth value = {0};
        piece = hf__piece_trim(piece);
        there.at = from;
        if (hf__is_nothing(piece) || (piece.size == 1 && piece.text[0] == '0'))
            continue;
        hf__evaluate(in, &there, piece, depth + 1, &value);
        if (first)
            *out = value;
        else
            hf__value_join(out, &value);
        first = false;
    }
    if (!first)
        return;
    piece = last_value(inside, block, &there.at);
    if (piece.size > 0)
        hf__evaluate(in, &there, piece, depth + 1, out);
}

void hf__lambda_value(struct hf__eval *in, const hf__scope *scope, const hf__lambda *lambda,
                      unsigned depth, hf__worth *out)
{
    hf__scope inside = *scope;
    size_t depends = HF__NO_BLOCK;
    struct hf__eval inner = {
        .visits = in->visits, .steps = in->steps, .block = &depends, .lambda = lambda};

    if (depth > HF__EVAL_DEPTH_MAX)
        return;
    inside.at = lambda->at;
    inside.code = scope->unit->syntax->id != HF__LANG_SQL;
    inside.string_end = SIZE_MAX;
    hf__evaluate(&inner, &inside, lambda->body, depth + 1, out);
    in->steps = inner.steps;
    if (depends != HF__NO_BLOCK)
        hf__value_free(out); /* of a function around it */
}

void hf__function_value(struct hf__eval *in, const hf__scope *scope, size_t block, unsigned depth,
                        hf__worth *out)
{
    hf__scope inside = *scope;
    size_t depends = HF__NO_BLOCK;
    struct hf__eval inner = {.visits = in->visits, .steps = in->steps, .block = &depends};

    if (depth > HF__EVAL_DEPTH_MAX || hf__evaluate_hasher(&inner, scope, block, depth, out))
        return;
    inside.code = scope->unit->syntax->id != HF__LANG_SQL;
    inside.string_end = SIZE_MAX;
    evaluate_returned(&inner, &inside, block, depth, out);
    in->steps = inner.steps;
    if (depends != HF__NO_BLOCK && depends != block)
        hf__value_free(out);
}
