/* Values that a program binds to the placeholders of a string. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "programs/registry/lint/text/args.h"

enum { BIND_REACH = 2000, NAME_REACH = 20000 };

static bool is_bound_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* A place in the code after a string, where a program passes the string's parameters. */
struct cursor {
    const hf__unit *unit;
    size_t at;
    size_t limit;
    size_t *place; /* where the expression was found */
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

/* Reads one expression, up to a comma or a closing bracket at its own depth. */
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

/* queryForObject(sql, Boolean.class, key) has a type, and do(sql, undef, key) options. */
static bool is_no_value(const hf__unit *unit, size_t start, size_t size)
{
    return (size > 6 && memcmp(unit->text + start + size - 6, ".class", 6) == 0) ||
           (unit->syntax->id == HF__LANG_PERL && size == 5 &&
            memcmp(unit->text + start, "undef", 5) == 0);
}

static bool take_nth(struct cursor *in, unsigned number, hf__buf *expression)
{
    size_t start = 0;
    size_t size = 0;

    for (; number > 0; number--) {
        do {
            read_expression(in, &start, &size);
        } while (is_no_value(in->unit, start, size) && take(in, ","));
        if (number > 1 && !take(in, ","))
            return false;
    }
    hf__buf_add(expression, in->unit->text + start, size);
    *in->place = start;
    return true;
}

/* As in query(sql, [a, b]), execute(sql, (a,)), QueryRow(sql, a, b), sql % (a,). */
static void find_nth(struct cursor in, unsigned number, hf__buf *expression)
{
    static const char *const openings[] = {
        "[]interface{}{", "[]any{",       "array(", "vec![", "&[", "[", "(",
        "new Object[]{",  "new object[]{"};

    static const char *const names[] = {
        "values:", "params:", "parameters:", "bind:", "bindings:", "replacements:"};

    if (!take(&in, ",") && !take(&in, "%") && !take(&in, ".format("))
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (take(&in, names[i])) /* { text: sql, values: [a] } */
            break;
    skip_space(&in);
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++)
        if (take(&in, openings[i]))
            break;
    take_nth(&in, number, expression);
}

/* As in sqlx: query(sql).bind(a).bind(b). */
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

/* As in JDBC: statement.setLong(1, a), in the function that has the SQL. */
static void find_nth_set(struct cursor in, unsigned number, hf__buf *expression)
{
    static const char *const setters[] = {".setLong(", ".setInt(", ".setString(", ".setObject("};
    const hf__unit *unit = in.unit;
    size_t block = hf__unit_block(unit, in.at);

    if ((unit->syntax->id & (HF__LANG_JAVA | HF__LANG_KOTLIN)) == 0 || block == HF__NO_BLOCK)
        return;
    for (; in.at < in.limit && in.at < unit->blocks[block].end; in.at++) {
        for (size_t i = 0; i < sizeof setters / sizeof setters[0]; i++) {
            struct cursor call = in;
            char *end = NULL;
            if (unit->text[in.at] != '.' || !take(&call, setters[i]) ||
                strtoul(unit->text + call.at, &end, 10) != number)
                continue;
            call.at = (size_t)(end - unit->text);
            if (take(&call, ","))
                take_nth(&call, 1, expression);
            return;
        }
    }
}

/* ---- Prepared statements --------------------------------------------------------------------- */

/* Reads the name of a method, `.name(` or `->name(`, up to behind the parenthesis; size 0: none. */
static size_t take_method(struct cursor *in, size_t *size)
{
    const hf__unit *unit = in->unit;

    *size = 0;
    while (take(in, ")") || take(in, "?") || take(in, "!"))
        continue;
    if (!take(in, "->") && !take(in, "."))
        return in->at;
    size_t name = in->at;
    while (in->at < in->limit && is_bound_name(unit->text[in->at]))
        in->at++;
    size_t end = in->at;
    if (take(in, "("))
        *size = end - name;
    return name;
}

static bool runs_statement(const char *name, size_t size)
{
    static const char *const words[] = {"execute", "exec", "query", "fetch", "run"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (size >= strlen(words[i]) && strncasecmp(name, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* The value of that number in execute([a, b]), execute(Tuple.of(a, b)), QueryRow(ctx, a, b). */
static void take_executed(struct cursor in, unsigned number, hf__buf *expression)
{
    static const char *const openings[] = {"Tuple.of(", "array(", "&[", "[", "("};
    struct cursor first = in;
    size_t start;
    size_t size;

    read_expression(&first, &start, &size);
    bool context = size >= 3 && size < 40 &&
                   (strncasecmp(in.unit->text + start + size - 3, "ctx", 3) == 0 ||
                    memcmp(in.unit->text + start, "context.", size < 8 ? size : 8) == 0);
    if (context && take(&first, ","))
        in = first;
    skip_space(&in);
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++)
        if (take(&in, openings[i]))
            break;
    take_nth(&in, number, expression);
}

/* prepare(sql).execute([a]), and preparedQuery(sql).execute(Tuple.of(a)) of Vert.x. */
static void find_executed(struct cursor in, unsigned number, hf__buf *expression)
{
    if (!take(&in, ")"))
        return;
    for (int hops = 0; hops < 4; hops++) {
        size_t size;
        size_t name = take_method(&in, &size);
        size_t start;
        if (size == 0)
            return;
        if (runs_statement(in.unit->text + name, size)) {
            take_executed(in, number, expression);
            return;
        }
        read_expression(&in, &start, &size);
    }
}

/* The name that prepare("…") is given to: `s = db.prepare(`, `lock: p.P(`. Size 0: none. */
static size_t name_of_statement(const hf__unit *unit, size_t string, size_t *size)
{
    size_t at = string;

    *size = 0;
    while (at > 0 && unit->classes[at - 1] == HF__QUOTE)
        at--;
    if (at == 0 || unit->text[at - 1] != '(')
        return 0;
    at--;
    while (at > 0 && unit->classes[at - 1] == HF__CODE &&
           (is_bound_name(unit->text[at - 1]) || strchr(".->$ (", unit->text[at - 1]) != NULL))
        at--;
    if (at == 0 || strchr("=:", unit->text[at - 1]) == NULL)
        return 0;
    while (at > 0 && strchr("=: \t", unit->text[at - 1]) != NULL)
        at--;
    size_t end = at;
    while (at > 0 && is_bound_name(unit->text[at - 1]))
        at--;
    if (at > 1 && end - at <= 4 && unit->text[at - 1] == ' ' && unit->text[at - 2] == ',') {
        end = at - 2; /* stmt, err := db.Prepare( */
        for (at = end; at > 0 && is_bound_name(unit->text[at - 1]); at--)
            continue;
    }
    *size = end - at;
    return at;
}

/* s.execute([a]) and s->execute([a]), where s was prepared with the string. */
static void find_executed_later(struct cursor in, unsigned number, hf__buf *expression)
{
    const hf__unit *unit = in.unit;
    size_t size = 0;
    size_t name = name_of_statement(unit, hf__unit_run_start(unit, in.at - 1), &size);
    size_t limit = unit->size - in.at > NAME_REACH ? in.at + NAME_REACH : unit->size;

    for (size_t at = in.at; size > 2 && at + size < limit && expression->length == 0; at++) {
        if (unit->classes[at] != HF__CODE || is_bound_name(unit->text[at - 1]) ||
            memcmp(unit->text + at, unit->text + name, size) != 0 ||
            is_bound_name(unit->text[at + size]))
            continue;
        struct cursor there = in;
        there.at = at + size;
        there.limit = unit->size - there.at > BIND_REACH ? there.at + BIND_REACH : unit->size;
        size_t method_size;
        size_t method = take_method(&there, &method_size);
        if (method_size > 0 && runs_statement(unit->text + method, method_size))
            take_executed(there, number, expression);
    }
}

/* ---- Arrays of C ----------------------------------------------------------------------------- */

/* The item of an array: values[0] = a; and values[] = {a, b}. */
static void find_item(struct cursor in, size_t array, size_t size, unsigned number,
                      hf__buf *expression)
{
    const hf__unit *unit = in.unit;
    size_t limit = in.at;

    in.at = in.at > NAME_REACH ? in.at - NAME_REACH : 0;
    in.limit = unit->size;
    for (; in.at + size < limit; in.at++) {
        if (unit->classes[in.at] != HF__CODE ||
            memcmp(unit->text + in.at, unit->text + array, size) != 0 ||
            (in.at > 0 && is_bound_name(unit->text[in.at - 1])) ||
            is_bound_name(unit->text[in.at + size]))
            continue;
        struct cursor behind = in;
        char *end = NULL;
        behind.at += size;
        if (!take(&behind, "["))
            continue;
        bool one =
            strtoul(unit->text + behind.at, &end, 10) == number - 1 && end > unit->text + behind.at;
        while (behind.at < limit && unit->text[behind.at] != ']')
            behind.at++;
        if (!take(&behind, "]") || !take(&behind, "="))
            continue;
        bool all = take(&behind, "{");
        if (!all && !one)
            continue;
        expression->length = 0; /* the last one before the call counts */
        take_nth(&behind, all ? number : 1, expression);
    }
}

/* PQexecParams(conn, sql, 1, NULL, values, …): one of the arguments is the array. */
static void find_in_arrays(struct cursor in, unsigned number, hf__buf *expression)
{
    const hf__unit *unit = in.unit;
    size_t call = in.at;

    for (int argument = 0; argument < 6 && take(&in, ",") && expression->length == 0; argument++) {
        size_t start;
        size_t size;
        read_expression(&in, &start, &size);
        while (size > 0 && !is_bound_name(unit->text[start])) {
            start++; /* &values, (const char *const *) values */
            size--;
        }
        if (size > 0 && isalpha((unsigned char)unit->text[start]) &&
            memchr(unit->text + start, '(', size) == NULL) {
            struct cursor back = in;
            back.at = call;
            find_item(back, start, size, number, expression);
        }
    }
}

/* As in {"name": a}, name: a, name=a, 'name' => a, and "name", a. */
static void find_named(struct cursor in, const char *name, size_t size, hf__buf *expression)
{
    const hf__unit *unit = in.unit;

    for (; in.at + size < in.limit; in.at++) {
        if (unit->text[in.at] == ';' && unit->classes[in.at] == HF__CODE)
            return;
        if (unit->classes[in.at] == HF__COMMENT || strncmp(unit->text + in.at, name, size) != 0 ||
            (in.at > 0 && is_bound_name(unit->text[in.at - 1])) ||
            is_bound_name(unit->text[in.at + size]))
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

/* The name in `name = "SELECT …"` or `const name = …`, before the string. */
static size_t name_of_string(const hf__unit *unit, size_t string, size_t *size)
{
    size_t end = string;

    while (end > 0 && string - end < NAME_REACH && unit->classes[end - 1] != HF__QUOTE &&
           unit->classes[end - 1] != HF__CODE)
        end--;
    while (end > 0 && unit->classes[end - 1] == HF__QUOTE)
        end--;
    while (end > 0 && isspace((unsigned char)unit->text[end - 1]))
        end--;
    if (end == 0 || unit->text[end - 1] != '=' || unit->classes[end - 1] != HF__CODE)
        return 0;
    end--;
    while (end > 0 && strchr(": \t$", unit->text[end - 1]) != NULL)
        end--;
    size_t start = end;
    while (start > 0 && is_bound_name(unit->text[start - 1]))
        start--;
    *size = end - start;
    return start;
}

/* Moves to the first use of the name between two places. */
static bool move_to_name(struct cursor *in, size_t name, size_t size, size_t from, size_t to)
{
    const hf__unit *unit = in->unit;

    for (size_t at = from; size > 0 && at + size < to; at++) {
        if (unit->classes[at] != HF__CODE || at == name ||
            (at > 0 && is_bound_name(unit->text[at - 1])) ||
            memcmp(unit->text + at, unit->text + name, size) != 0 ||
            is_bound_name(unit->text[at + size]))
            continue;
        in->at = at + size;
        in->limit = unit->size - in->at > BIND_REACH ? in->at + BIND_REACH : unit->size;
        return true;
    }
    return false;
}

/* Moves to where the program uses the name that it gave to the string: behind it, or before. */
static bool follow_name(struct cursor *in)
{
    const hf__unit *unit = in->unit;
    size_t size = 0;
    size_t string = in->at;
    size_t name = name_of_string(unit, hf__unit_run_start(unit, string - 1), &size);
    size_t limit = unit->size - string > NAME_REACH ? string + NAME_REACH : unit->size;

    return move_to_name(in, name, size, string, limit) ||
           move_to_name(in, name, size, name > NAME_REACH ? name - NAME_REACH : 0, name);
}

/* `? 'SELECT …' : 'SELECT …', values`: what is bound stands behind the other string too. */
static void skip_alternative(struct cursor *in)
{
    size_t start;
    size_t size;

    if (in->unit->syntax->id != HF__LANG_PYTHON && take(in, ":"))
        read_expression(in, &start, &size);
}

static void find_bound(struct cursor in, const char *placeholder, size_t size, hf__buf *expression)
{
    skip_alternative(&in);
    if (placeholder[0] == ':') {
        find_named(in, placeholder + 1, size - 1, expression);
        return;
    }
    /* In C the argument after the SQL is the number of values, not the first of them. */
    unsigned number = (unsigned)strtoul(placeholder + 1, NULL, 10);
    if (number == 0 || number > 99)
        return;
    if (placeholder[0] == '$' && in.unit->syntax->id == HF__LANG_C) {
        find_in_arrays(in, number, expression);
        return;
    }
    find_nth(in, number, expression);
    if (expression->length == 0)
        find_nth_bind(in, number, expression);
    if (expression->length == 0)
        find_nth_set(in, number, expression);
    if (expression->length == 0)
        find_executed(in, number, expression);
}

void hf__find_bound(const hf__unit *unit, size_t string_end, const char *placeholder, size_t size,
                    hf__buf *expression, size_t *place)
{
    struct cursor in = {.unit = unit, .at = string_end, .place = place};

    if (size < 2 || string_end == 0 || string_end > unit->size)
        return;
    in.limit = unit->size - in.at > BIND_REACH ? in.at + BIND_REACH : unit->size;
    struct cursor named = in;
    while (in.at < in.limit && unit->classes[in.at] == HF__QUOTE)
        in.at++;
    find_bound(in, placeholder, size, expression);
    struct cursor prepared = named;
    if (expression->length == 0 && follow_name(&named))
        find_bound(named, placeholder, size, expression);
    if (expression->length == 0 && placeholder[0] != ':')
        find_executed_later(prepared, (unsigned)strtoul(placeholder + 1, NULL, 10), expression);
}
