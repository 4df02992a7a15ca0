#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "programs/registry/lint/args.h"

enum { REACH = 2000 };

/* The code behind a string: what a program hands over together with it. */
struct cursor {
    const hf__unit *unit;
    size_t at;
    size_t limit;
};

static void skip_space(struct cursor *in)
{
    while (in->at < in->limit && (in->unit->classes[in->at] == HF__COMMENT ||
                                  isspace((unsigned char)in->unit->text[in->at])))
        in->at++;
}

static bool take(struct cursor *in, const char *word)
{
    skip_space(in);
    if (in->limit - in->at < strlen(word) ||
        strncmp(in->unit->text + in->at, word, strlen(word)) != 0)
        return false;
    in->at += strlen(word);
    return true;
}

/* One expression, up to a comma or a closing bracket of its own depth. */
static void read_expression(struct cursor *in, size_t *start, size_t *size)
{
    size_t depth = 0;

    skip_space(in);
    *start = in->at;
    for (; in->at < in->limit; in->at++) {
        char c = in->unit->text[in->at];
        if (in->unit->classes[in->at] != HF__CODE)
            continue;
        if (depth == 0 && strchr(",)]};", c) != NULL)
            break;
        depth += c == '(' || c == '[' || c == '{';
        depth -= c == ')' || c == ']' || c == '}';
    }
    size_t end = in->at;
    while (end > *start && isspace((unsigned char)in->unit->text[end - 1]))
        end--;
    *size = end - *start;
}

static bool take_nth(struct cursor *in, unsigned number, hf__buf *expression)
{
    size_t start = 0;
    size_t size = 0;

    for (; number > 0; number--) {
        read_expression(in, &start, &size);
        if (number > 1 && !take(in, ","))
            return false;
    }
    hf__buf_add(expression, in->unit->text + start, size);
    return true;
}

/* query(sql, [a, b]), execute(sql, (a,)), QueryRow(sql, a, b), sql % (a,). */
static void find_nth(struct cursor in, unsigned number, hf__buf *expression)
{
    static const char *const openings[] = {
        "[]interface{}{", "[]any{",       "array(", "vec![", "&[", "[", "(",
        "new Object[]{",  "new object[]{"};

    if (!take(&in, ",") && !take(&in, "%"))
        return;
    skip_space(&in);
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++)
        if (take(&in, openings[i]))
            break;
    take_nth(&in, number, expression);
}

/* sqlx: query(sql).bind(a).bind(b). */
static void find_nth_bind(struct cursor in, unsigned number, hf__buf *expression)
{
    take(&in, ")");
    for (; number > 0; number--) {
        if (!take(&in, ".bind("))
            return;
        if (number == 1) {
            take_nth(&in, 1, expression);
            return;
        }
        size_t start;
        size_t size;
        read_expression(&in, &start, &size);
        if (!take(&in, ")"))
            return;
    }
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* {"name": a}, name: a, name=a, 'name' => a, "name", a. */
static void find_named(struct cursor in, const char *name, size_t size, hf__buf *expression)
{
    const hf__unit *unit = in.unit;

    for (; in.at + size < in.limit; in.at++) {
        if (unit->text[in.at] == ';' && unit->classes[in.at] == HF__CODE)
            return;
        if (unit->classes[in.at] == HF__COMMENT || strncmp(unit->text + in.at, name, size) != 0 ||
            (in.at > 0 && is_name(unit->text[in.at - 1])) || is_name(unit->text[in.at + size]))
            continue;
        struct cursor behind = in;
        behind.at += size;
        if (unit->text[behind.at] == '"' || unit->text[behind.at] == '\'')
            behind.at++;
        if (take(&behind, "=>") || take(&behind, ":") || take(&behind, "=") || take(&behind, ",")) {
            take_nth(&behind, 1, expression);
            return;
        }
    }
}

void hf__find_bound(const hf__unit *unit, size_t string_end, const char *placeholder, size_t size,
                    hf__buf *expression)
{
    struct cursor in = {.unit = unit, .at = string_end};

    in.limit = unit->size - in.at > REACH ? in.at + REACH : unit->size;
    while (in.at < in.limit && unit->classes[in.at] == HF__QUOTE)
        in.at++;
    if (size < 2)
        return;
    if (placeholder[0] == ':') {
        find_named(in, placeholder + 1, size - 1, expression);
        return;
    }
    /* What follows the SQL in C is the count of the values, not the first of them. */
    unsigned number = (unsigned)strtoul(placeholder + 1, NULL, 10);
    if (number == 0 || number > 99 || (placeholder[0] == '$' && unit->syntax->id == HF__LANG_C))
        return;
    find_nth(in, number, expression);
    if (expression->length == 0)
        find_nth_bind(in, number, expression);
}
