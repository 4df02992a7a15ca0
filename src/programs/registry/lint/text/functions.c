#include "programs/registry/lint/text/functions.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEADER_MAX = 1500, SQL_HEADER_MAX = 2000, DEFAULT_MAX = 120 };

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_code(const hf__unit *unit, size_t at)
{
    return unit->classes[at] == HF__CODE;
}

static size_t skip_back(const hf__unit *unit, size_t at)
{
    while (at > 0 &&
           (unit->classes[at - 1] == HF__COMMENT || isspace((unsigned char)unit->text[at - 1])))
        at--;
    return at;
}

static size_t word_start(const hf__unit *unit, size_t end)
{
    while (end > 0 && is_code(unit, end - 1) &&
           (is_word(unit->text[end - 1]) || strchr("?!$", unit->text[end - 1]) != NULL))
        end--;
    return end;
}

static bool is_one_of(const char *word, size_t size, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strlen(*words) == size && strncasecmp(*words, word, size) == 0)
            return true;
    return false;
}

/* The place after the bracket that closes the one at `open`; limit when it is not closed. */
static size_t behind_brackets(const hf__unit *unit, size_t open, size_t limit)
{
    size_t depth = 0;

    for (size_t at = open; at < limit; at++) {
        if (!is_code(unit, at))
            continue;
        char c = unit->text[at];
        depth += c == '(' || c == '[' || c == '{';
        if ((c == ')' || c == ']' || c == '}') && --depth == 0)
            return at + 1;
    }
    return limit;
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static bool name_is_last(const hf__unit *unit)
{
    return (unit->syntax->id & (HF__LANG_C | HF__LANG_JAVA | HF__LANG_CSHARP)) != 0;
}

/* In `long key = 5` and `std::string key`, the name is the last word before the default. */
static void take_last_name(const hf__unit *unit, size_t start, size_t end, size_t *name,
                           size_t *size)
{
    const char *equals = memchr(unit->text + start, '=', end - start);
    size_t stop = skip_back(unit, equals != NULL ? (size_t)(equals - unit->text) : end);

    *name = word_start(unit, stop);
    *size = *name >= start ? stop - *name : 0;
}

static void take_first_name(const hf__unit *unit, size_t start, size_t end, size_t *name,
                            size_t *size)
{
    static const char *const modifiers[] = {"private", "public", "protected", "readonly", "mut",
                                            "val",     "var",    "in",        "out",      "inout",
                                            "vararg",  "final",  NULL};

    for (size_t at = start; at < end;) {
        if (!is_code(unit, at) || strchr(" \t\r\n&*.$@", unit->text[at]) != NULL) {
            at++;
            continue;
        }
        if (!is_word(unit->text[at]))
            return;
        size_t stop = at;
        while (stop < end && is_word(unit->text[stop]))
            stop++;
        if (!is_one_of(unit->text + at, stop - at, modifiers)) {
            *name = at;
            *size = stop - at;
            return;
        }
        at = stop;
    }
}

static void add_param(const hf__unit *unit, hf__function *function, size_t start, size_t end)
{
    static const char *const receivers[] = {"self", "cls", "this", "class", NULL};
    size_t name = start;
    size_t size = 0;

    if (function->param_count == HF__PARAMS_MAX)
        return;
    const char *dollar = memchr(unit->text + start, '$', end - start);
    if (unit->syntax->id == HF__LANG_PHP && dollar != NULL)
        take_first_name(unit, (size_t)(dollar - unit->text), end, &name, &size);
    else if (name_is_last(unit))
        take_last_name(unit, start, end, &name, &size);
    else
        take_first_name(unit, start, end, &name, &size);
    if (function->param_count == 0 && is_one_of(unit->text + name, size, receivers))
        return;
    if (skip_back(unit, end) <= start)
        return;
    function->params[function->param_count] = name;
    function->param_sizes[function->param_count++] = size;
}

static void read_params(const hf__unit *unit, hf__function *function, size_t open, size_t close)
{
    size_t start = open + 1;
    size_t depth = 0;

    for (size_t at = start; at < close; at++) {
        char c = unit->text[at];
        if (!is_code(unit, at))
            continue;
        if (strchr("([{<", c) != NULL)
            depth++;
        else if (strchr(")]}>", c) != NULL && depth > 0)
            depth -= !(c == '>' && at > 0 && strchr("-=", unit->text[at - 1]) != NULL);
        if (c == ',' && depth == 0) {
            add_param(unit, function, start, at);
            start = at + 1;
        }
    }
    add_param(unit, function, start, close);
    function->body = close < unit->size ? close + 1 : close;
}

/* ---- Declarations ---------------------------------------------------------------------------- */

/* `const name = async (x) =>`, `name: function (x)`: what stands before the parenthesis. */
static size_t assigned_name(const hf__unit *unit, size_t end, size_t lowest, size_t *size)
{
    static const char *const words[] = {"async", "function", NULL};
    size_t start = word_start(unit, end = skip_back(unit, end));

    while (start < end && is_one_of(unit->text + start, end - start, words))
        start = word_start(unit, end = skip_back(unit, start));
    *size = 0;
    if (start != end || end <= lowest || strchr("=:", unit->text[end - 1]) == NULL)
        return lowest;
    end = skip_back(unit, end - 1);
    start = word_start(unit, end);
    *size = start >= lowest ? end - start : 0;
    return start;
}

/* Languages that say so when a function begins: without the word it is a match arm or a lambda. */
static bool lacks_keyword(const hf__unit *unit, size_t start, size_t end)
{
    const char *word = unit->syntax->id == HF__LANG_GO       ? "func"
                       : unit->syntax->id == HF__LANG_RUST   ? "fn"
                       : unit->syntax->id == HF__LANG_KOTLIN ? "fun"
                       : unit->syntax->id == HF__LANG_PHP    ? "function"
                                                             : NULL;

    for (size_t at = start; word != NULL && at + strlen(word) < end; at++)
        if (is_code(unit, at) && strncmp(unit->text + at, word, strlen(word)) == 0 &&
            !is_word(unit->text[at + strlen(word)]) && (at == 0 || !is_word(unit->text[at - 1])))
            return false;
    return word != NULL;
}

/* The name before the parenthesis at `open`, which may be that of a declaration; size 0: none. */
static size_t name_before(const hf__unit *unit, size_t open, size_t lowest, size_t *size)
{
    static const char *const skipped[] = {
        "func",  "pub",   "if",      "for",    "while", "switch",  "with",  "new",
        "catch", "where", "import",  "const",  "var",   "foreach", "match", "base",
        "super", "this",  "require", "return", "await", "type",    NULL};
    static const char *const anonymous[] = {"async", "function", NULL};
    size_t end = skip_back(unit, open);

    if (end > 0 && unit->text[end - 1] == '>') { /* name<T>( */
        while (end > lowest && unit->text[end - 1] != '<')
            end--;
        end = skip_back(unit, end > 0 ? end - 1 : 0);
    }
    size_t start = word_start(unit, end);
    *size = end - start;
    if (*size == 0 || is_one_of(unit->text + start, *size, anonymous))
        start = assigned_name(unit, open, lowest, size);
    else if ((is_one_of(unit->text + start, *size, skipped) &&
              unit->syntax->id != HF__LANG_RUST) || /* fn new(…) */
             (start > 0 && strchr("@#.", unit->text[start - 1]) != NULL))
        *size = 0;
    if (start < lowest)
        *size = 0;
    return start;
}

/* Of all that looks like a declaration before the brace, the last one is it. */
static void read_braced(const hf__unit *unit, const hf__block *block, hf__function *function)
{
    size_t limit = block->end - block->start > HEADER_MAX ? block->start + HEADER_MAX : block->end;

    for (size_t at = block->start; at < limit; at++) {
        char c = unit->text[at];
        size_t size = 0;
        if (!is_code(unit, at))
            continue;
        if (c == '{')
            break;
        if (c != '(' && c != '[')
            continue;
        size_t close = behind_brackets(unit, at, limit);
        size_t start = c == '(' ? name_before(unit, at, block->start, &size) : 0;
        if (size > 0 && close < limit) {
            *function = (hf__function){.name = start, .name_size = size};
            read_params(unit, function, at, close - 1);
        }
        at = close - 1;
    }
    if (function->name_size > 0 && lacks_keyword(unit, block->start, function->body))
        *function = (hf__function){0};
}

/* sub name { my ($self, $key) = @_; … } */
static void read_sub(const hf__unit *unit, const hf__block *block, hf__function *function)
{
    size_t at = block->start;
    size_t open;

    while (at + 4 < block->end && !(is_code(unit, at) && memcmp(unit->text + at, "sub ", 4) == 0))
        at++;
    for (at += 4; at < block->end && unit->text[at] == ' '; at++)
        continue;
    size_t end = at;
    while (end < block->end && is_word(unit->text[end]))
        end++;
    if (end == at || end >= block->end)
        return;
    function->name = at;
    function->name_size = end - at;
    function->body = end;
    for (open = end; open < block->end && unit->text[open] != '{'; open++)
        continue;
    for (open++; open < block->end && isspace((unsigned char)unit->text[open]); open++)
        continue;
    if (open + 4 >= block->end || memcmp(unit->text + open, "my (", 4) != 0)
        return;
    size_t close = behind_brackets(unit, open + 3, block->end);
    size_t next = close + strspn(unit->text + close, " =");
    if (memcmp(unit->text + next, "@_", 2) == 0)
        read_params(unit, function, open + 3, close - 1);
}

/* def name(a, b), def self.name a, b. */
static void read_def(const hf__unit *unit, const hf__block *block, hf__function *function)
{
    size_t limit = block->end - block->start > HEADER_MAX ? block->start + HEADER_MAX : block->end;
    size_t at = block->start;

    while (at + 4 < limit &&
           !(is_code(unit, at) && strncmp(unit->text + at, "def", 3) == 0 &&
             (at == 0 || !is_word(unit->text[at - 1])) && unit->text[at + 3] != '\0' &&
             strchr(" pm", unit->text[at + 3]) != NULL))
        at++;
    while (at < limit && is_word(unit->text[at]))
        at++;
    while (at < limit && unit->text[at] == ' ')
        at++;
    size_t start = at;
    for (; at < limit && (is_word(unit->text[at]) || strchr("?!.", unit->text[at]) != NULL); at++)
        if (unit->text[at] == '.')
            start = at + 1;
    if (at >= limit || at == start)
        return;
    function->name = start;
    function->name_size = at - start;
    function->body = at;
    if (unit->text[at] == '(') {
        read_params(unit, function, at, behind_brackets(unit, at, limit) - 1);
    } else if (unit->syntax->id == HF__LANG_RUBY && unit->text[at] == ' ') {
        const char *newline = memchr(unit->text + at, '\n', limit - at);
        if (newline != NULL)
            read_params(unit, function, at, (size_t)(newline - unit->text));
    }
}

/* create function name(key bigint) … as $$: the block is the body, so the header is before it. */
static void read_sql(const hf__unit *unit, const hf__block *block, hf__function *function)
{
    size_t lowest = block->start > SQL_HEADER_MAX ? block->start - SQL_HEADER_MAX : 0;
    size_t at = block->start;

    for (; at > lowest; at--)
        if (is_code(unit, at - 1) && (strncasecmp(unit->text + at - 1, "function ", 9) == 0 ||
                                      strncasecmp(unit->text + at - 1, "procedure ", 10) == 0))
            break;
    if (at <= lowest)
        return;
    const char *open = memchr(unit->text + at, '(', block->start - at);
    if (open == NULL)
        return;
    size_t paren = (size_t)(open - unit->text);
    size_t end = skip_back(unit, paren);
    size_t start = word_start(unit, end);
    size_t close = behind_brackets(unit, paren, block->start);
    if (start == end || close >= block->start)
        return;
    function->name = start;
    function->name_size = end - start;
    read_params(unit, function, paren, close - 1);
    function->body = block->start;
}

hf_status hf__functions_read(const hf__unit *unit, hf__function **functions, hf_error *err)
{
    hf__function *made = calloc(unit->block_count + 1, sizeof *made);

    if (made == NULL)
        return hf__no_memory(err);
    for (size_t i = 0; i < unit->block_count; i++) {
        switch (unit->syntax->blocks) {
        case HF__BLOCKS_BRACES:
            if (unit->syntax->id == HF__LANG_PERL)
                read_sub(unit, &unit->blocks[i], &made[i]);
            else
                read_braced(unit, &unit->blocks[i], &made[i]);
            break;
        case HF__BLOCKS_INDENTED:
        case HF__BLOCKS_ENDED: read_def(unit, &unit->blocks[i], &made[i]); break;
        case HF__BLOCKS_SQL: read_sql(unit, &unit->blocks[i], &made[i]); break;
        }
    }
    *functions = made;
    return HF_OK;
}

size_t hf__function_param(const hf__unit *unit, const hf__function *function, const char *name,
                          size_t size)
{
    for (size_t i = 0; i < function->param_count; i++)
        if (function->param_sizes[i] == size && size > 0 &&
            memcmp(unit->text + function->params[i], name, size) == 0)
            return i;
    return HF__PARAMS_MAX;
}

/*
 * The default of the parameter whose name ends at `at`: key = 5, key: 5 of Ruby, key \\ 5 of
 * Elixir, key int DEFAULT 5. Only what means the same everywhere: a literal, or a name in capitals.
 */
static void add_default(const hf__unit *unit, size_t at, hf__buf *names)
{
    bool ruby = unit->syntax->id == HF__LANG_RUBY && unit->text[at] == ':';
    size_t start = 0;
    size_t depth = 0;

    for (size_t end = at; end < unit->size && end - at < DEFAULT_MAX; end++) {
        char c = unit->text[end];
        bool code = is_code(unit, end);
        depth += code && strchr("([{", c) != NULL;
        if (code && strchr(",)]}", c) != NULL && depth-- == 0) {
            while (start > 0 && start < end && isspace((unsigned char)unit->text[start]))
                start++;
            bool told = start > 0 && start < end &&
                        memchr(unit->text + start, ',', end - start) == NULL &&
                        (strchr("\"'-", unit->text[start]) != NULL ||
                         isdigit((unsigned char)unit->text[start]) ||
                         isupper((unsigned char)unit->text[start]));
            if (told) {
                hf__buf_puts(names, HF__DEFAULT_MARK);
                hf__buf_add(names, unit->text + start, end - start);
            }
            return;
        }
        if (start > 0 || !code)
            continue;
        if ((c == '=' && unit->text[end + 1] != '=') || (ruby && end == at))
            start = end + 1;
        else if (c == '\\' && unit->text[end + 1] == '\\')
            start = end + 2;
        else if (unit->syntax->id == HF__LANG_SQL &&
                 strncasecmp(unit->text + end, " default ", 9) == 0)
            start = end + 9;
    }
}

void hf__function_params(const hf__unit *unit, const hf__function *function, hf__buf *names)
{
    for (size_t i = 0; i < function->param_count; i++) {
        hf__buf_add(names, unit->text + function->params[i], function->param_sizes[i]);
        add_default(unit, function->params[i] + function->param_sizes[i], names);
        hf__buf_puts(names, ",");
    }
}

bool hf__is_constructor(const char *name, size_t size)
{
    static const char *const names[] = {"__init__",    "constructor", "initialize",
                                        "__construct", "new",         NULL};

    for (const char *const *item = names; *item != NULL; item++)
        if (strlen(*item) == size && memcmp(*item, name, size) == 0)
            return true;
    return false;
}

size_t hf__class_around(const hf__unit *unit, size_t at, size_t *size)
{
    static const char *const words[] = {"class ", "impl ", NULL};

    *size = 0;
    for (; at > 0; at--) {
        if (unit->classes[at - 1] != HF__CODE || (at > 1 && is_word(unit->text[at - 2])))
            continue;
        for (const char *const *word = words; *word != NULL; word++) {
            size_t skip = strlen(*word);
            if (unit->size - at < skip || memcmp(unit->text + at - 1, *word, skip) != 0 ||
                (**word == 'i' && unit->syntax->id != HF__LANG_RUST))
                continue;
            size_t name = at - 1 + skip;
            while (name + *size < unit->size && is_word(unit->text[name + *size]))
                ++*size;
            return name;
        }
    }
    return 0;
}
