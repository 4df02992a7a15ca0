#include "programs/registry/lint/text/args.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { REACH = 3000, EXPRESSION_MAX = 300 };

struct reader {
    const hf__unit *unit;
    size_t at;
    size_t limit;
    size_t depth;
    bool in_literal; /* inside of an SQL literal */
    bool stuck;
    hf__args *args;
};

static char peek(const struct reader *in, size_t ahead)
{
    size_t at = in->at + ahead;

    return at < in->limit && in->unit->classes[at] == HF__TEXT ? in->unit->text[at] : '\0';
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static void put(struct reader *in, char c)
{
    if (c == HF__HOLE_OPEN || c == HF__HOLE_CLOSE || c == '\0')
        c = ' ';
    hf__buf_add(&in->args->text, &c, 1);
}

static void put_hole(struct reader *in, const char *text, size_t size)
{
    hf__buf_add(&in->args->text, (char[]){HF__HOLE_OPEN}, 1);
    hf__buf_add(&in->args->text, text, size);
    hf__buf_add(&in->args->text, (char[]){HF__HOLE_CLOSE}, 1);
}

static void finish_argument(struct reader *in)
{
    hf__args *args = in->args;

    if (args->count < HF__ARGS_MAX)
        args->size[args->count] = args->text.length - args->start[args->count];
    args->count++;
    if (args->count < HF__ARGS_MAX)
        args->start[args->count] = args->text.length;
}

/* Counts a parenthesis or a comma, of SQL or of code. True: it closed the call. */
static bool punctuate(struct reader *in, char c)
{
    if (c == '(' || c == '[' || c == '{') {
        in->depth++;
    } else if (c == ')' || c == ']' || c == '}') {
        if (--in->depth == 0) {
            finish_argument(in);
            in->args->complete = true;
            return true;
        }
    } else if (c == ',' && in->depth == 1) {
        finish_argument(in);
        in->at++;
        return false;
    }
    put(in, c);
    in->at++;
    return false;
}

/* ---- Inside of a string ---------------------------------------------------------------------- */

static bool has_brace_holes(const hf__unit *unit)
{
    return (unit->syntax->id &
            (HF__LANG_PYTHON | HF__LANG_CSHARP | HF__LANG_RUST | HF__LANG_PHP)) != 0;
}

/* The size of %s, %d, %lld or %v; 0 when it is none of these. */
static size_t format_size(const char *text, size_t left)
{
    size_t size = 1;

    while (size < left && strchr("0123456789.-+lhzjIL", text[size]) != NULL && text[size] != '\0')
        size++;
    return text[0] == '%' && size < left && strchr("sdvuiqx", text[size]) != NULL ? size + 1 : 0;
}

/* The number of this '?' or '%s' in its string, from 1. */
static unsigned ordinal(const struct reader *in)
{
    const hf__unit *unit = in->unit;
    unsigned number = 1;

    for (size_t at = hf__unit_run_start(unit, in->at); at < in->at; at++)
        number += unit->text[at] == '?' || format_size(unit->text + at, in->at - at) > 0 ||
                  (has_brace_holes(unit) && memcmp(unit->text + at, "{}", 2) == 0);
    return number;
}

static bool take_counted(struct reader *in, size_t size)
{
    hf__buf mark = {0};

    hf__buf_printf(&mark, "?%u", ordinal(in));
    if (!mark.broken)
        put_hole(in, mark.data, mark.length);
    hf__buf_free(&mark);
    in->at += size;
    return true;
}

/* Reads ${…}, #{…} or {…}; the brace is at `ahead`. */
static bool take_braced(struct reader *in, size_t ahead)
{
    size_t depth = 0;
    size_t size = 0;

    do {
        char c = peek(in, ahead + size);
        if (c == '\0' || size > EXPRESSION_MAX)
            return false;
        depth += c == '{';
        depth -= c == '}';
        size++;
    } while (depth > 0);
    const char *inner = in->unit->text + in->at + ahead + 1;
    if (size == 2 && ahead == 0) /* {}: the next that is passed */
        return take_counted(in, size);
    if (size > 2 && strspn(inner, "0123456789") == size - 2) { /* {0}: what is passed first */
        hf__buf mark = {0};
        hf__buf_printf(&mark, "$%lu", strtoul(inner, NULL, 10) + 1);
        if (!mark.broken)
            put_hole(in, mark.data, mark.length);
        hf__buf_free(&mark);
    } else {
        put_hole(in, inner, size - 2);
    }
    in->at += ahead + size;
    return true;
}

static bool take_interpolation(struct reader *in)
{
    char c = peek(in, 0);
    char next = peek(in, 1);
    size_t size = 1;

    if ((c == '$' || c == '#') && next == '{')
        return take_braced(in, 1);
    if (c == '{' && has_brace_holes(in->unit))
        return take_braced(in, 0);
    if (c != '$' || !(isalpha((unsigned char)next) || next == '_') ||
        (in->unit->syntax->id & (HF__LANG_KOTLIN | HF__LANG_PHP)) == 0)
        return false;
    while (is_name(peek(in, size)))
        size++;
    put_hole(in, in->unit->text + in->at + 1, size - 1);
    in->at += size;
    return true;
}

static bool take_named(struct reader *in, size_t start)
{
    size_t size = 0;

    while (is_name(peek(in, start + size)))
        size++;
    if (size == 0 || isdigit((unsigned char)peek(in, start)))
        return false;
    hf__buf name = {0};
    hf__buf_puts(&name, ":");
    hf__buf_add(&name, in->unit->text + in->at + start, size);
    if (!name.broken)
        put_hole(in, name.data, name.length);
    hf__buf_free(&name);
    in->at += start + size;
    if (start == 2) /* %(name)s */
        in->at += 2;
    return true;
}

static bool take_placeholder(struct reader *in)
{
    char c = peek(in, 0);
    char next = peek(in, 1);
    char before = in->at > 0 ? in->unit->text[in->at - 1] : '\0';
    size_t size = 1;

    if (c == '$' && isdigit((unsigned char)next)) {
        while (isdigit((unsigned char)peek(in, size)))
            size++;
        put_hole(in, in->unit->text + in->at, size);
        in->at += size;
        return true;
    }
    if (c == '?')
        return take_counted(in, 1);
    if (c == '%' && next == '(')
        return take_named(in, 2);
    size = format_size(in->unit->text + in->at, in->limit - in->at);
    if (size > 0)
        return take_counted(in, size);
    return (c == ':' || c == '@') && before != ':' && next != ':' && take_named(in, 1);
}

/* A backslash before a quote belongs to the string, not to SQL. */
static bool take_escape(struct reader *in)
{
    char next = peek(in, 1);

    if (peek(in, 0) != '\\' || next == '\0')
        return false;
    if (next == '"' || next == '\'' || next == '`') {
        in->at++;
        return false;
    }
    put(in, ' ');
    in->at += 2;
    return true;
}

static bool take_text(struct reader *in)
{
    if (take_escape(in) || take_interpolation(in))
        return false;

    char c = peek(in, 0);
    /* In an SQL file, a quote inside of a literal is written twice. */
    if (in->unit->syntax->id == HF__LANG_SQL && c == '\'' && peek(in, 1) == '\'')
        in->at++;
    if (c == '\'')
        in->in_literal = !in->in_literal;
    if (c != '\'' && !in->in_literal) {
        if (take_placeholder(in))
            return false;
        return punctuate(in, c);
    }
    if (in->in_literal && c == '%' && format_size(in->unit->text + in->at, in->limit - in->at) > 0)
        return take_placeholder(in), false;
    put(in, c);
    in->at++;
    return false;
}

/* ---- Between two strings --------------------------------------------------------------------- */

static bool is_glue(char c)
{
    return isspace((unsigned char)c) || strchr("+.&\\<>", c) != NULL;
}

/* The code between two strings: an operator alone, or an expression between two operators. */
static void put_expression(struct reader *in, size_t start, size_t end)
{
    const char *text = in->unit->text;

    while (start < end && is_glue(text[start]))
        start++;
    while (end > start && is_glue(text[end - 1]))
        end--;
    /* The prefix of the next string, as in f"…" and L"…", is no expression. */
    if (end - start <= 2 && end > start && end < in->limit && in->unit->classes[end] == HF__QUOTE)
        end = start;
    if (end > start && end - start <= EXPRESSION_MAX)
        put_hole(in, text + start, end - start);
}

static void cross_code(struct reader *in)
{
    const hf__unit *unit = in->unit;
    size_t depth = 0;

    while (in->at < in->limit && unit->classes[in->at] == HF__QUOTE)
        in->at++;
    size_t start = in->at;
    for (; in->at < in->limit && unit->classes[in->at] != HF__TEXT; in->at++) {
        char c = unit->text[in->at];
        if (unit->classes[in->at] != HF__CODE)
            continue;
        depth += c == '(' || c == '[';
        if (c == ';' || (depth == 0 && (c == ',' || c == ')' || c == ']' || c == '}')))
            break;
        depth -= (c == ')' || c == ']') && depth > 0;
    }
    if (in->at >= in->limit || unit->classes[in->at] != HF__TEXT) {
        in->stuck = true;
        return;
    }
    size_t end = in->at;
    while (end > start && unit->classes[end - 1] == HF__QUOTE)
        end--;
    put_expression(in, start, end);
}

static void read_text(struct reader *in)
{
    while (in->at < in->limit && !in->stuck) {
        unsigned char kind = in->unit->classes[in->at];
        if (kind == HF__COMMENT)
            in->at++;
        else if (kind != HF__TEXT)
            cross_code(in);
        else if (take_text(in))
            return;
    }
}

/* ---- Code ------------------------------------------------------------------------------------ */

/* A call without parentheses ends with its line, or where a block begins. */
static bool ends_bare_call(const struct reader *in)
{
    const char *text = in->unit->text + in->at;

    return in->depth == 1 &&
           (*text == '\n' || (in->limit - in->at > 3 &&
                              (memcmp(text, " do ", 4) == 0 || memcmp(text, " do\n", 4) == 0)));
}

static void read_code(struct reader *in, bool bare)
{
    while (in->at < in->limit) {
        unsigned char kind = in->unit->classes[in->at];
        if (bare && kind == HF__CODE && ends_bare_call(in)) {
            finish_argument(in);
            in->args->complete = true;
            return;
        }
        if (kind == HF__COMMENT) {
            in->at++;
        } else if (kind != HF__CODE) {
            put(in, in->unit->text[in->at]);
            in->at++;
        } else if (punctuate(in, in->unit->text[in->at])) {
            return;
        }
    }
}

static bool is_bare(const hf__unit *unit, size_t at)
{
    while (at > 0 && isspace((unsigned char)unit->text[at - 1]))
        at--;
    return at > 0 && unit->text[at - 1] != '(' && unit->text[at - 1] != ',';
}

void hf__args_read(const hf__unit *unit, size_t at, hf__args *args)
{
    struct reader in = {.unit = unit, .at = at, .depth = 1, .args = args};

    *args = (hf__args){0};
    in.limit = unit->size - at > REACH ? at + REACH : unit->size;
    if (at > 0 && unit->classes[at - 1] == HF__TEXT)
        read_text(&in);
    else
        read_code(&in, is_bare(unit, at));
    args->end = in.at < unit->size ? in.at + args->complete : unit->size;
}

void hf__args_free(hf__args *args)
{
    hf__buf_free(&args->text);
}
