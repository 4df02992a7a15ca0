#include "programs/registry/lint/values/value_eval.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "programs/registry/lint/text/args.h"

/* ---- Texts ----------------------------------------------------------------------------------- */

void hf__add_hole(hf__buf *text)
{
    if (text->length == 0 || text->data[text->length - 1] != HF__LABEL_HOLE)
        hf__buf_add(text, (char[]){HF__LABEL_HOLE}, 1);
}

static void add_value(hf__buf *text, const hf__worth *value)
{
    if (value->also != NULL || value->each) /* one of several */
        hf__add_hole(text);
    else if (value->kind == HF__VALUE_NUMBER)
        hf__buf_printf(text, "%" PRId64, value->number);
    else if (value->kind == HF__VALUE_TEXT && value->field[0] == '\0' && value->lookup[0] == '\0')
        hf__buf_add(text, value->text.data, value->text.length);
    else
        hf__add_hole(text);
}

void hf__add_operand(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                     hf__buf *text)
{
    hf__worth value = {0};

    hf__evaluate(in, scope, piece, depth + 1, &value);
    add_value(text, &value);
    hf__value_free(&value);
}

void hf__hash_all(hf__worth *value, const hf__worth *like)
{
    for (hf__worth *item = value; item != NULL; item = item->also) {
        hf__buf text = {0};
        bool each = item->each;
        hf__worth *also = item->also;
        item->also = NULL;
        item->each = false;
        add_value(&text, item);
        hf__value_free(item);
        *item = *like;
        item->text = text;
        item->each = each;
        item->also = also;
    }
}

void hf__add_hashed(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                    hf__worth *out)
{
    hf__worth like = *out;

    *out = (hf__worth){0};
    hf__evaluate(in, scope, piece, depth + 1, out);
    hf__hash_all(out, &like);
}

static bool is_known(const hf__worth *value)
{
    if (value->kind != HF__VALUE_TEXT)
        return false;
    for (size_t i = 0; i < value->text.length; i++) {
        if (value->text.data[i] == HF__LABEL_PARAM)
            i++;
        else if (value->text.data[i] != HF__LABEL_HOLE)
            return true;
    }
    return value->text.length == 0;
}

/* ---- Literals -------------------------------------------------------------------------------- */

/* A literal of SQL: '' is one quote, and %s, of format() or of the program, is a hole. */
static void add_sql_literal(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                            unsigned depth, hf__buf *text)
{
    for (size_t i = 0; i < piece.size; i++) {
        hf__piece rest = {piece.text + i, piece.size - i};
        if (piece.text[i] == HF__HOLE_OPEN) {
            size_t size = hf__piece_hole(rest);
            hf__add_operand(in, scope, (hf__piece){rest.text, size}, depth, text);
            i += size - 1;
        } else if (piece.text[i] == '%' && i + 1 < piece.size &&
                   strchr("sdIL", piece.text[i + 1])) {
            hf__add_hole(text);
            i++;
        } else {
            hf__buf_add(text, piece.text + i, 1);
            i += piece.text[i] == '\'' && i + 1 < piece.size && piece.text[i + 1] == '\'';
        }
    }
}

/* Does a brace or a dollar in this literal open an expression? */
static size_t opens_expression(const hf__scope *scope, const hf__literal *literal, size_t at)
{
    hf__piece rest = {literal->content.text + at, literal->content.size - at};
    char next = rest.size > 1 ? rest.text[1] : '\0';

    if ((rest.text[0] == '$' || rest.text[0] == '#') && next == '{')
        return 1;
    if (rest.text[0] == '{' && hf__eval_language(scope) != HF__LANG_JS)
        return literal->formatted ||
                       (hf__eval_language(scope) & (HF__LANG_PHP | HF__LANG_RUST)) != 0 ||
                       hf__eval_language(scope) == HF__LANG_PYTHON ||
                       hf__eval_language(scope) == HF__LANG_CSHARP
                   ? SIZE_MAX
                   : 0;
    return 0;
}

/* $name inside of a string of PHP, Perl, Kotlin or the shell. */
static size_t dollar_name(const hf__scope *scope, const hf__literal *literal, size_t at)
{
    size_t size = 1;

    if (literal->content.text[at] != '$' || literal->quote == '\'' ||
        (hf__eval_language(scope) &
         (HF__LANG_PHP | HF__LANG_KOTLIN | HF__LANG_JAVA | HF__LANG_PERL | HF__LANG_SHELL)) == 0)
        return 0;
    while (at + size < literal->content.size &&
           (isalnum((unsigned char)literal->content.text[at + size]) ||
            literal->content.text[at + size] == '_'))
        size++;
    return size > 1 ? size : 0;
}

static bool is_percent(char c, char next)
{
    return c == '%' && next != '\0' && strchr("sdvqxu", next) != NULL;
}

/* A literal of the program: it has backslashes, and ${…}, #{…}, {…} and %s are holes. */
static void add_program_literal(struct hf__eval *in, const hf__scope *scope,
                                const hf__literal *literal, unsigned depth, hf__buf *text)
{
    hf__piece piece = literal->content;

    for (size_t i = 0; i < piece.size; i++) {
        char c = piece.text[i];
        char next = i + 1 < piece.size ? piece.text[i + 1] : '\0';
        size_t opening = opens_expression(scope, literal, i);
        size_t name = dollar_name(scope, literal, i);
        if (opening > 0) {
            i += opening == SIZE_MAX ? 0 : opening;
            size_t size = hf__piece_braces((hf__piece){piece.text + i, piece.size - i});
            hf__piece inner = {piece.text + i + 1, size >= 2 ? size - 2 : 0};
            if (literal->formatted || opening == 1 || hf__eval_language(scope) == HF__LANG_PHP)
                hf__add_operand(in, scope, hf__piece_until(inner, literal->formatted ? ":!" : ""),
                                depth, text);
            else
                hf__add_hole(text);
            i += size - 1;
        } else if (name > 0) {
            hf__add_operand(in, scope, (hf__piece){piece.text + i, name}, depth, text);
            i += name - 1;
        } else if (is_percent(c, next)) {
            hf__add_hole(text);
            i++;
        } else {
            i += !literal->raw && c == '\\' && next != '\0';
            hf__buf_add(text, piece.text + i, 1);
        }
    }
}

bool hf__evaluate_string(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                         unsigned depth, hf__worth *out)
{
    hf__literal literal;

    if (!hf__piece_literal(piece, !scope->code, &literal) || literal.size != piece.size)
        return false;
    out->kind = HF__VALUE_TEXT;
    if (scope->code)
        add_program_literal(in, scope, &literal, depth, &out->text);
    else
        add_sql_literal(in, scope, literal.content, depth, &out->text);
    return true;
}

/* ---- Operators ------------------------------------------------------------------------------- */

/* How long the operator that joins texts is here; 0: there is none. */
static size_t joins(const hf__scope *scope, hf__piece rest, char before)
{
    char next = rest.size > 1 ? rest.text[1] : '\0';

    if (!scope->code)
        return rest.text[0] == '|' && next == '|' ? 2 : 0;
    if (rest.text[0] == '<' && next == '>' && hf__eval_language(scope) == HF__LANG_ELIXIR)
        return 2;
    if (rest.text[0] == '.' && (hf__eval_language(scope) & (HF__LANG_PHP | HF__LANG_PERL)) != 0)
        return !isdigit((unsigned char)next) && next != '=' && next != '.' && before != '.';
    return rest.text[0] == '+' && next != '+' && next != '=' && before != '+' && before != '\0';
}

/* "a:" + x, 'a:' || x, and two literals beside each other. */
bool hf__evaluate_joined(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                         unsigned depth, hf__worth *out)
{
    hf__pieces parts = {0};
    size_t start = 0;
    bool text = false;
    int64_t sum = 0;
    bool numbers = true;

    for (size_t i = 0; i < piece.size && parts.count < HF__PIECES_MAX;) {
        hf__piece rest = {piece.text + i, piece.size - i};
        size_t joint = joins(scope, rest, i > start ? piece.text[i - 1] : '\0');
        if (joint > 0) {
            parts.items[parts.count++] = (hf__piece){piece.text + start, i - start};
            start = i + joint;
            i = start;
            continue;
        }
        size_t step = hf__piece_step(rest, !scope->code);
        hf__literal literal;
        if (step > 1 && scope->code && i > start && parts.count + 1 < HF__PIECES_MAX &&
            hf__piece_literal(rest, false, &literal) &&
            hf__piece_is_literal(hf__piece_trim((hf__piece){piece.text + start, i - start}),
                                 false)) {
            parts.items[parts.count++] = (hf__piece){piece.text + start, i - start};
            start = i;
        }
        i += step;
    }
    if (parts.count == 0 || parts.count == HF__PIECES_MAX)
        return false;
    parts.items[parts.count++] = (hf__piece){piece.text + start, piece.size - start};
    for (size_t i = 0; i < parts.count; i++) {
        hf__worth value = {0};
        hf__evaluate(in, scope, parts.items[i], depth + 1, &value);
        text = text || (value.kind == HF__VALUE_TEXT && is_known(&value)) || !scope->code;
        numbers = numbers && value.kind == HF__VALUE_NUMBER;
        sum = (int64_t)((uint64_t)sum + (uint64_t)value.number);
        add_value(&out->text, &value);
        hf__value_free(&value);
    }
    if (numbers && scope->code) {
        hf__buf_free(&out->text);
        *out = (hf__worth){.kind = HF__VALUE_NUMBER, .number = sum};
    } else if (text) {
        out->kind = HF__VALUE_TEXT;
    } else {
        hf__buf_free(&out->text); /* arithmetic with something unknown */
    }
    return true;
}

/* ---- Formats --------------------------------------------------------------------------------- */

static hf__piece named_argument(const hf__pieces *args, hf__piece name)
{
    for (size_t i = 0; i < args->count; i++) {
        hf__piece arg = hf__piece_trim(args->items[i]);
        if (arg.size > name.size && memcmp(arg.text, name.text, name.size) == 0) {
            hf__piece rest =
                hf__piece_trim((hf__piece){arg.text + name.size, arg.size - name.size});
            if (rest.size > 1 && (rest.text[0] == '=' || rest.text[0] == ':'))
                return (hf__piece){rest.text + 1, rest.size - 1};
        }
    }
    return name;
}

/* {}, {0}, {name}, {name:x}. Returns its size. */
static size_t add_braced(struct hf__eval *in, const hf__scope *scope, hf__piece rest,
                         const hf__pieces *args, size_t *next, unsigned depth, hf__buf *text)
{
    size_t size = hf__piece_braces(rest);
    hf__piece inner = hf__piece_until((hf__piece){rest.text + 1, size >= 2 ? size - 2 : 0}, ":!");
    size_t index = *next;

    if (inner.size > 0 && isdigit((unsigned char)inner.text[0]))
        index = (size_t)strtoul(inner.text, NULL, 10);
    else if (inner.size > 0) {
        hf__add_operand(in, scope, named_argument(args, inner), depth, text);
        return size;
    } else
        ++*next;
    if (index < args->count)
        hf__add_operand(in, scope, args->items[index], depth, text);
    else
        hf__add_hole(text);
    return size;
}

static size_t percent_size(hf__piece rest)
{
    size_t size = 1;

    if (rest.size > 1 && rest.text[1] == '(') /* %(name)s */
        while (size < rest.size && rest.text[size] != ')')
            size++;
    while (size < rest.size && strchr("0123456789.-+lhzj#$)", rest.text[size]) != NULL)
        size++;
    return size < rest.size && isalpha((unsigned char)rest.text[size]) ? size + 1 : 0;
}

/* A format and its arguments. */
void hf__evaluate_format(struct hf__eval *in, const hf__scope *scope, hf__piece format,
                         const hf__pieces *args, unsigned depth, hf__worth *out)
{
    hf__literal literal;
    size_t next = 0;
    bool braces = (hf__eval_language(scope) & (HF__LANG_GO | HF__LANG_JAVA | HF__LANG_C |
                                               HF__LANG_SQL | HF__LANG_PERL | HF__LANG_PHP)) == 0 &&
                  scope->code;

    if (!hf__piece_literal(hf__piece_trim(format), !scope->code, &literal))
        return;
    out->kind = HF__VALUE_TEXT;
    for (size_t i = 0; i < literal.content.size;) {
        hf__piece rest = {literal.content.text + i, literal.content.size - i};
        char ahead = rest.size > 1 ? rest.text[1] : '\0';
        size_t size = rest.text[0] == '%' ? percent_size(rest) : 0;
        if ((rest.text[0] == '%' && ahead == '%') ||
            (braces && rest.text[0] == '{' && ahead == '{')) {
            hf__buf_add(&out->text, rest.text, 1);
            i += 2;
        } else if (braces && rest.text[0] == '{') {
            i += add_braced(in, scope, rest, args, &next, depth, &out->text);
        } else if (size > 0) {
            if (ahead != '(' && next < args->count)
                hf__add_operand(in, scope, args->items[next], depth, &out->text);
            else
                hf__add_hole(&out->text);
            next++;
            i += size;
        } else {
            hf__buf_add(&out->text, rest.text, 1);
            i++;
        }
    }
}

/* '…%s' % x and '…%s' % (x, y) of Python and Ruby. */
bool hf__evaluate_percent(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                          unsigned depth, hf__worth *out)
{
    hf__literal literal;
    hf__pieces args = {0};

    if (!scope->code || (hf__eval_language(scope) & (HF__LANG_PYTHON | HF__LANG_RUBY)) == 0 ||
        !hf__piece_literal(piece, false, &literal))
        return false;
    hf__piece rest =
        hf__piece_trim((hf__piece){piece.text + literal.size, piece.size - literal.size});
    if (rest.size < 2 || rest.text[0] != '%')
        return false;
    rest = hf__piece_trim((hf__piece){rest.text + 1, rest.size - 1});
    if (strchr("([", rest.text[0]) != NULL && hf__piece_close(rest, false) == rest.size)
        hf__piece_split((hf__piece){rest.text + 1, rest.size - 2}, false, &args);
    else
        args.items[args.count++] = rest;
    hf__evaluate_format(in, scope, piece, &args, depth, out);
    return true;
}
