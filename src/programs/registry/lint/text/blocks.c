#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/vec.h"
#include "programs/registry/lint/text/unit.h"

enum { INTRODUCTION_MAX = 600, NESTING_MAX = 4096 };

static bool add_block(hf__unit *unit, size_t start, size_t end)
{
    if (!hf__grow(&unit->blocks, &unit->block_capacity, unit->block_count + 1,
                  sizeof *unit->blocks))
        return false;
    unit->blocks[unit->block_count++] = (hf__block){start, end, HF__NO_BLOCK};
    return true;
}

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_code(const hf__unit *unit, size_t at)
{
    return unit->classes[at] == HF__CODE;
}

/* ---- Languages with braces ------------------------------------------------------------------- */

struct bracket {
    size_t at;
    char kind;
    bool takes_closure;
};

static bool word_ends_at(const hf__unit *unit, size_t end, const char *word)
{
    size_t size = strlen(word);

    return end >= size && memcmp(unit->text + end - size, word, size) == 0 &&
           (end == size || !is_word_byte(unit->text[end - size - 1]));
}

static size_t skip_spaces_back(const hf__unit *unit, size_t at)
{
    while (at > 0 &&
           (unit->classes[at - 1] == HF__COMMENT || isspace((unsigned char)unit->text[at - 1])))
        at--;
    return at;
}

/* Does the statement before this newline end with it? An annotation belongs to what follows. */
static bool ends_statement(const hf__unit *unit, size_t newline)
{
    size_t end = skip_spaces_back(unit, newline);
    size_t start = newline;

    if (!unit->syntax->newline_ends)
        return false;
    while (start > 0 && newline - start < INTRODUCTION_MAX && unit->text[start - 1] != '\n')
        start--;
    start += strspn(unit->text + start, " \t");
    if (start >= newline) /* an empty line */
        return end == 0 || strchr("=(,", unit->text[end - 1]) == NULL;
    return unit->text[start] != '@' && unit->classes[start] != HF__COMMENT && end > 0 &&
           strchr("(,[+.\\=&|<:>", unit->text[end - 1]) == NULL;
}

/* Where the statement or declaration that ends at this byte begins. */
static size_t introduction(const hf__unit *unit, size_t at)
{
    size_t lowest = at > INTRODUCTION_MAX ? at - INTRODUCTION_MAX : 0;
    size_t depth = 0;

    for (; at > lowest; at--) {
        char c = unit->text[at - 1];
        if (!is_code(unit, at - 1))
            continue;
        if (c == ')' || c == ']')
            depth++;
        else if ((c == '(' || c == '[') && depth > 0)
            depth--;
        else if (depth == 0 && (c == ';' || c == '{' || c == '}' || c == '(' || c == '[' ||
                                (c == '\n' && ends_statement(unit, at - 1))))
            break;
    }
    return at;
}

/*
 * Is this "if (…) {" or the like? Looks at the word before the parentheses that close at `close`.
 */
static bool is_control(const hf__unit *unit, size_t close)
{
    static const char *const words[] = {"if",     "for",   "while",        "switch",  "catch",
                                        "using",  "lock",  "synchronized", "foreach", "with",
                                        "elseif", "match", "try",          "when"};
    size_t lowest = close > INTRODUCTION_MAX ? close - INTRODUCTION_MAX : 0;
    size_t depth = 0;

    while (close > lowest) {
        char c = unit->text[--close];
        if (!is_code(unit, close))
            continue;
        if (c == ')')
            depth++;
        else if (c == '(' && --depth == 0)
            break;
    }
    size_t end = skip_spaces_back(unit, close);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (word_ends_at(unit, end, words[i])) /* elsewhere than in C#, lock(…) is a function */
            return strcmp(words[i], "lock") != 0 || unit->syntax->id == HF__LANG_CSHARP;
    return false;
}

static bool has_word(const hf__unit *unit, size_t from, size_t to, const char *word)
{
    for (size_t at = from; at + strlen(word) <= to; at++)
        if (is_code(unit, at) && word_ends_at(unit, at + strlen(word), word) &&
            !is_word_byte(unit->text[at + strlen(word)]))
            return true;
    return false;
}

/* As "func f(x int) (err error)", "fn f() -> T", "=> {", "f(x) throws E {", "function () {" do. */
static bool opens_function(const hf__unit *unit, size_t brace, size_t start)
{
    static const char *const introducing[] = {"func", "fn", "fun", "function", "async", "sub"};
    static const char *const others[] = {
        "class",  "struct", "interface", "enum", "namespace", "impl", "trait", "object",
        "module", "switch", "if",        "for",  "while",     "else", "match", "return"};
    size_t end = skip_spaces_back(unit, brace);
    size_t last_close = end;

    if (end == 0 || strchr("=:,([&|?+", unit->text[end - 1]) != NULL)
        return false;
    if (end >= 2 && unit->syntax->id != HF__LANG_PERL && /* there $x->{key} is a subscript */
        (memcmp(unit->text + end - 2, "=>", 2) == 0 || memcmp(unit->text + end - 2, "->", 2) == 0))
        return true;
    for (size_t i = 0; i < sizeof introducing / sizeof introducing[0]; i++)
        if (has_word(unit, start, brace, introducing[i]))
            return true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (has_word(unit, start, brace, others[i]))
            return false;
    while (last_close > start &&
           !(is_code(unit, last_close - 1) && unit->text[last_close - 1] == ')'))
        last_close--;
    if (last_close == start || memchr(unit->text + last_close, '=', end - last_close) != NULL)
        return false;
    return !is_control(unit, last_close);
}

/* A closure of Kotlin or Rust: db.transaction { … }, |tx| { … }. */
static bool opens_closure(const hf__unit *unit, size_t brace)
{
    size_t end = skip_spaces_back(unit, brace);

    if (end == 0)
        return false;
    if (unit->syntax->id == HF__LANG_RUST)
        return unit->text[end - 1] == '|' || word_ends_at(unit, end, "move");
    return unit->syntax->id == HF__LANG_KOTLIN && unit->text[end - 1] != '=' &&
           (word_ends_at(unit, end, "transaction") || word_ends_at(unit, end, "use"));
}

struct brackets {
    struct bracket items[NESTING_MAX];
    size_t count;
};

/* The block of a closure includes the call that it is passed to, with a transaction's options. */
static bool close_brace(hf__unit *unit, struct brackets *open, size_t brace, size_t end)
{
    size_t start = introduction(unit, brace);

    if (!opens_function(unit, brace, start) && !opens_closure(unit, brace))
        return true;
    if (open->count > 0 && open->items[open->count - 1].kind == '(') {
        open->items[open->count - 1].takes_closure = true;
        return true;
    }
    return add_block(unit, start, end);
}

static char opening_of(char close)
{
    return close == ')' ? '(' : close == ']' ? '[' : '{';
}

/* Also closes brackets that were left open: the code may not compile. */
static bool close_bracket(hf__unit *unit, struct brackets *open, size_t at)
{
    char kind = opening_of(unit->text[at]);
    size_t count = open->count;

    while (count > 0 && open->items[count - 1].kind != kind)
        count--;
    if (count == 0)
        return true;
    open->count = count - 1;

    const struct bracket *bracket = &open->items[count - 1];
    if (kind == '{')
        return close_brace(unit, open, bracket->at, at + 1);
    return !bracket->takes_closure || add_block(unit, bracket->at, at + 1);
}

static bool find_braces(hf__unit *unit)
{
    struct brackets *open = malloc(sizeof *open);
    bool ok = open != NULL;

    if (ok)
        open->count = 0;
    for (size_t at = 0; ok && at < unit->size; at++) {
        char c = unit->text[at];
        if (!is_code(unit, at))
            continue;
        if ((c == '(' || c == '[' || c == '{') && open->count < NESTING_MAX)
            open->items[open->count++] = (struct bracket){.at = at, .kind = c};
        else if (c == ')' || c == ']' || c == '}')
            ok = close_bracket(unit, open, at);
    }
    free(open);
    return ok;
}

/* ---- Languages with indentation -------------------------------------------------------------- */

struct indented {
    size_t start;
    size_t indent;
};

static size_t line_end(const hf__unit *unit, size_t line)
{
    return line + 1 < unit->line_count ? unit->lines[line + 1] : unit->size;
}

/*
 * The column of the first byte of code. False: a blank line, the inside of a string, or a bracket
 * that closes what an earlier line opened, as `) -> None:` does.
 */
static bool indent_of(const hf__unit *unit, size_t line, size_t *indent)
{
    size_t at = unit->lines[line];
    size_t end = line_end(unit, line);

    for (*indent = 0; at < end && (unit->text[at] == ' ' || unit->text[at] == '\t'); at++)
        *indent += unit->text[at] == '\t' ? 8 - *indent % 8 : 1;
    return at < end && unit->text[at] != '\n' && unit->text[at] != '\r' &&
           unit->classes[unit->lines[line]] == HF__CODE && unit->classes[at] != HF__COMMENT &&
           strchr(")]}", unit->text[at]) == NULL;
}

static bool starts_with_word(const char *text, const char *word)
{
    size_t size = strlen(word);

    return strncmp(text, word, size) == 0 && !is_word_byte(text[size]);
}

static bool ends_with_do(const hf__unit *unit, size_t line)
{
    size_t end = line_end(unit, line);
    size_t at = unit->lines[line];

    for (; at + 2 <= end; at++)
        if (is_code(unit, at) && word_ends_at(unit, at + 2, "do") &&
            strchr(" \n\r|", unit->text[at + 2]) != NULL)
            return true;
    return false;
}

static bool opens_indented(const hf__unit *unit, size_t line)
{
    static const char *const words[] = {"def", "defp", "async def", "defmacro"};
    static const char *const calls[] = {"it", "test", "specify", "task", "scenario", "example"};
    const char *text = unit->text + unit->lines[line];

    text += strspn(text, " \t");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (starts_with_word(text, words[i]))
            return true;
    if (unit->syntax->blocks != HF__BLOCKS_ENDED)
        return false;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (starts_with_word(text, calls[i]))
            return ends_with_do(unit, line);
    return false;
}

static bool is_end(const hf__unit *unit, size_t line)
{
    const char *text = unit->text + unit->lines[line];

    return unit->syntax->blocks == HF__BLOCKS_ENDED &&
           starts_with_word(text + strspn(text, " \t"), "end");
}

/* A decorator belongs to the function below it. */
static size_t with_decorators(const hf__unit *unit, size_t line)
{
    const char *text;

    do {
        if (line == 0)
            return 0;
        text = unit->text + unit->lines[--line];
        text += strspn(text, " \t");
    } while (*text == '@' && unit->classes[(size_t)(text - unit->text)] == HF__CODE);
    return unit->lines[line + 1];
}

static bool find_indented(hf__unit *unit)
{
    struct indented *open = malloc(NESTING_MAX * sizeof *open);
    size_t count = 0;
    size_t indent;
    bool ok = open != NULL;

    for (size_t line = 0; ok && line < unit->line_count; line++) {
        if (!indent_of(unit, line, &indent))
            continue;
        while (ok && count > 0 && indent <= open[count - 1].indent) {
            bool at_end = is_end(unit, line) && indent == open[count - 1].indent;
            ok = add_block(unit, open[--count].start,
                           at_end ? line_end(unit, line) : unit->lines[line]);
        }
        if (count < NESTING_MAX && opens_indented(unit, line))
            open[count++] = (struct indented){with_decorators(unit, line), indent};
    }
    while (ok && count > 0)
        ok = add_block(unit, open[--count].start, unit->size);
    free(open);
    return ok;
}

/* ---- SQL ------------------------------------------------------------------------------------- */

static bool word_at(const hf__unit *unit, size_t at, const char *word)
{
    size_t size = strlen(word);

    return unit->size - at >= size && strncasecmp(unit->text + at, word, size) == 0 &&
           !is_word_byte(unit->text[at + size]);
}

static bool starts_statement(const hf__unit *unit, size_t at)
{
    at = skip_spaces_back(unit, at);
    return at == 0 || unit->text[at - 1] == ';';
}

static size_t dollar_end(const hf__unit *unit, size_t at)
{
    size_t end = at + 1;

    while (end < unit->size && unit->text[end] != '$')
        end++;
    return end < unit->size ? end + 1 : unit->size;
}

/* Adds the body of a function, from its opening dollar quote, and moves *at past it. */
static bool take_body(hf__unit *unit, size_t *at)
{
    size_t inner = dollar_end(unit, *at);
    size_t quote = inner - *at;
    const char *close = memmem(unit->text + inner, unit->size - inner, unit->text + *at, quote);
    size_t end = close != NULL ? (size_t)(close - unit->text) : unit->size;

    *at = close != NULL ? end + quote : end;
    return add_block(unit, inner, end);
}

enum mark { MARK_NONE, MARK_BEGIN, MARK_END };

static bool has_any_word_at(const hf__unit *unit, size_t at, const char *const *words)
{
    while (*words != NULL && !word_at(unit, at, *words))
        words++;
    return *words != NULL;
}

static enum mark transaction_mark(const hf__unit *unit, size_t at)
{
    static const char *const opening[] = {"begin", "start transaction", NULL};
    static const char *const closing[] = {
        "commit", "rollback", "end", "abort", "prepare transaction", NULL};
    static const char *const others[] = {
        "rollback to",      "rollback prepared",       "commit prepared",
        "rollback work to", "rollback transaction to", NULL};
    bool begins = has_any_word_at(unit, at, opening);

    if ((!begins && !has_any_word_at(unit, at, closing)) || has_any_word_at(unit, at, others))
        return MARK_NONE;
    if ((at > 0 && is_word_byte(unit->text[at - 1])) || !starts_statement(unit, at))
        return MARK_NONE;
    return begins ? MARK_BEGIN : MARK_END;
}

/* Finds the bodies of functions, and between them what stands from BEGIN to COMMIT. */
static bool find_sql(hf__unit *unit)
{
    size_t begin = SIZE_MAX;
    size_t at = 0;
    bool ok = true;

    while (ok && at < unit->size) {
        if (unit->classes[at] == HF__QUOTE && unit->text[at] == '$') {
            ok = take_body(unit, &at);
            continue;
        }
        enum mark mark = is_code(unit, at) ? transaction_mark(unit, at) : MARK_NONE;
        if (mark == MARK_BEGIN && begin == SIZE_MAX) {
            begin = at;
        } else if (mark == MARK_END && begin != SIZE_MAX) {
            ok = add_block(unit, begin, at);
            begin = SIZE_MAX;
        }
        at++;
    }
    return ok && (begin == SIZE_MAX || add_block(unit, begin, unit->size));
}

/* ---- Any language ---------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
    const hf__block *x = a;
    const hf__block *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end == y->end ? 0 : x->end > y->end ? -1 : 1;
}

static void link_blocks(hf__unit *unit)
{
    if (unit->block_count > 1)
        qsort(unit->blocks, unit->block_count, sizeof *unit->blocks, by_start);
    for (size_t i = 0; i < unit->block_count; i++) {
        size_t parent = i > 0 ? i - 1 : HF__NO_BLOCK;
        while (parent != HF__NO_BLOCK && unit->blocks[parent].end <= unit->blocks[i].start)
            parent = unit->blocks[parent].parent;
        unit->blocks[i].parent = parent;
    }
}

hf_status hf__find_blocks(hf__unit *unit, hf_error *err)
{
    bool ok = true;

    switch (unit->syntax->blocks) {
    case HF__BLOCKS_BRACES: ok = find_braces(unit); break;
    case HF__BLOCKS_INDENTED:
    case HF__BLOCKS_ENDED: ok = find_indented(unit); break;
    case HF__BLOCKS_SQL: ok = find_sql(unit); break;
    }
    if (!ok)
        return hf__no_memory(err);
    link_blocks(unit);
    return HF_OK;
}
