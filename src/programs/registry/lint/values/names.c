#include "programs/registry/lint/values/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum { ASSIGNMENTS_MAX = 50000, EXPRESSION_REACH = 800, BRACKET_REACH = 4000 };

/* Places in hf__assignment_patterns. */
enum { FIELDS = 2, NAMED_FIELDS = 3, EXPRESSIONS = 4, LOOPS = 7, LISTS = 8, MEMBERS = 9 };

#define NAME "([A-Za-z_]\\w*)"
#define TYPE                                                                                       \
    "(?:[ \\t]*:[ \\t]*(?:&(?:'static )?)?(?:[\\w.:<>]+(?:\\[\\])?|\\[\\w+; ?\\d+\\])|"            \
    "\\s+(?:constant\\s+)?(?:u?int(?:eger)?\\d*|bigint|long|string|text|varchar))?"

const char *const hf__assignment_patterns[HF__ASSIGNMENT_PATTERNS] = {
    /* x = 42; X: i64 = 42; x := int64(42). Also x++, which shows that x is no constant. */
    "\\b" NAME TYPE "\\s*(?:(:=|(?<![-+*/%|&^=!<>:])=(?![=>~]))|\\+\\+|--|[-+*/|&^]=)",
    /* #define X 42, define('X', 42), use constant X => 42, @x 42 */
    "(?:#[ \\t]*define[ \\t]+|\\bdefine\\(\\s*['\"]|\\buse constant |^[ \\t]*@)" NAME
    "(?:['\"]\\s*,|\\s*=>)?[ \\t]+(?=[-\"'(\\d]|0x|~s)()",
    /* { report: 42 } of JavaScript, { 'report': 42 } of Python */
    "(?:[\\[({,]|^)\\s*[\"':]?([A-Za-z_][\\w-]*)[\"']?\\s*(:|=>)\\s*(?=[-\\d\"']|self::|static::)",
    /* { id: LOCK_ID }, but not { id: number } */
    "(?:[{,]|^)[ \\t]*" NAME
    "[ \\t]*:[ \\t]*(?!(?:number|string|boolean|bigint|any|unknown|[iu](?:64|32|16|8|"
    "size)|str|bool|int|float|(?-i:(?:[A-Z]\\w*::)*[A-Z]\\w*[a-z]\\w*)\\s*[,;}<|\\n])\\b)(?=[A-Za-"
    "z_])()",
    /* A function without parameters that is one expression: of Kotlin, Elixir and C# */
    "(?|\\bfun[ \\t]+" NAME "[ \\t]*\\([ \\t]*\\)[^={\\n]*=|\\bdefp?[ \\t]+" NAME
    "(?:\\(\\))?,[ \\t]*do:|\\w[?>\\]]*[ \\t]+" NAME
    "(?:\\(\\))?[ \\t]*=>)[ \\t]*(?=[-\\w\"'$@(])()",
    /* <<key::64, _::binary>> = f(x) of Elixir, and key, err := f(x) of Go */
    "(?|<<\\s*" NAME "::[^>\\n]*>>|\\b" NAME
    "\\s*,\\s*(?:err\\w*|ok|_)(?=\\s*:?=))\\s*:?=(?![=>~])()",
    /* reportLock lockID = 2, of a type of Go */
    "^[ \\t]*(?:const[ \\t]+|var[ \\t]+)?" NAME
    "[ \\t]+[A-Za-z][\\w.]*[ \\t]*=(?=[ \\t]*[-\\d\"])()",
    /* Loops: for x in list, for (const x of list), for (var x : list) */
    "(?|\\bfor[ \\t]+(?:\\w+[ \\t]*,[ \\t]*)?" NAME
    "[ \\t]+in[ \\t]+|\\bfor\\s*(?:await\\s*)?\\(\\s*(?:const|let|var)\\s+" NAME
    "\\s+of\\s+|\\bfor(?:each)?\\s*\\(\\s*(?:final\\s+)?[\\w<>.]+\\s+" NAME
    "\\s*(?::|\\bin\\b)\\s*)()",
    /* The same with the list first: foreach ($list as $x), list.each do |x| */
    "(?|\\bforeach\\s*\\(\\s*([^()\\n]+?)\\s+as\\s+(?:&|\\$\\w+\\s*=>\\s*)?\\$" NAME
    "|(?<![@\\w.:])([@\\w.:]{1,80}|%[wi]\\[[^\\]\\n]*\\]|\\[[^\\]]{0,400}\\])\\.each\\s*(?:do|\\{)"
    "\\s*\\|" NAME ")",
    /* REPORT(42), of an enumeration of Java or Kotlin */
    "^[ \\t]*(?-i:([A-Z][A-Z0-9_]*))\\((?=[-\\d\"])()",
};

static bool is_code(const hf__unit *unit, size_t at)
{
    return unit->classes[at] == HF__CODE;
}

/* ---- Expressions ----------------------------------------------------------------------------- */

static bool line_goes_on(const hf__unit *unit, size_t start, size_t newline)
{
    size_t before = newline;
    size_t next = newline + 1;

    while (before > start && isspace((unsigned char)unit->text[before - 1]))
        before--;
    while (next < unit->size && isspace((unsigned char)unit->text[next]))
        next++;
    return before == start ||
           (is_code(unit, before - 1) && strchr("(,[+.\\=&|<%", unit->text[before - 1]) != NULL) ||
           (next < unit->size && is_code(unit, next) && strchr(".+|<?:", unit->text[next]) != NULL);
}

size_t hf__expression_end(const hf__unit *unit, size_t at)
{
    size_t limit = unit->size - at > EXPRESSION_REACH ? at + EXPRESSION_REACH : unit->size;
    size_t start = at;
    size_t depth = 0;

    for (; at < limit; at++) {
        char c = unit->text[at];
        if (unit->classes[at] == HF__COMMENT && depth == 0 && at > start)
            break; /* KEY = 42  # why */
        if (!is_code(unit, at))
            continue;
        if (depth == 0 &&
            (strchr(",)]};", c) != NULL ||
             (c == '\n' && (unit->syntax->newline_ends || unit->syntax->id == HF__LANG_C) &&
              !line_goes_on(unit, start, at))))
            break;
        depth += c == '(' || c == '[' || c == '{';
        depth -= (c == ')' || c == ']' || c == '}') && depth > 0;
    }
    if (at == limit && limit < unit->size)
        return start;
    while (at > start && isspace((unsigned char)unit->text[at - 1]))
        at--;
    return at;
}

/* `long key` and `?int $key` of a declaration begin there. */
static size_t behind_type(const hf__unit *unit, size_t at)
{
    bool typed = (unit->syntax->id & (HF__LANG_CSHARP | HF__LANG_PHP | HF__LANG_C)) != 0;

    while (at > 0 && is_code(unit, at - 1) &&
           (isspace((unsigned char)unit->text[at - 1]) ||
            (typed && (isalnum((unsigned char)unit->text[at - 1]) ||
                       strchr("_$?&*<>:[]", unit->text[at - 1]) != NULL))))
        at--;
    return at;
}

/* ({ key = 5 }) and const { key = 5 } = options of JavaScript: callers may pass another. */
static bool is_pattern(const hf__unit *unit, size_t brace)
{
    static const char *const words[] = {"const", "let", "var", NULL};
    size_t before = brace;

    if (unit->syntax->id != HF__LANG_JS)
        return false;
    while (before > 0 && isspace((unsigned char)unit->text[before - 1]))
        before--;
    if (before > 0 && strchr("(,", unit->text[before - 1]) != NULL)
        return true;
    for (const char *const *word = words; *word != NULL; word++)
        if (before >= strlen(*word) &&
            memcmp(unit->text + before - strlen(*word), *word, strlen(*word)) == 0)
            return true;
    return false;
}

enum argument { NO_ARGUMENT, OF_CALL, OF_OBJECT };

/* Task(lock_id=5): is what stands before the parenthesis a class that is not declared here? */
static bool makes_object(const hf__unit *unit, size_t open)
{
    size_t start = open;

    while (start > 0 && (isalnum((unsigned char)unit->text[start - 1]) ||
                         strchr("_.", unit->text[start - 1]) != NULL))
        start--;
    const char *name = memrchr(unit->text + start, '.', open - start);
    name = name != NULL ? name + 1 : unit->text + start;
    while (*name == '_')
        name++;
    return unit->syntax->id == HF__LANG_PYTHON && isupper((unsigned char)*name) &&
           !(start >= 6 && memcmp(unit->text + start - 6, "class ", 6) == 0);
}

/* Is the name inside of parentheses: a named argument, or a parameter with a default? */
static enum argument is_argument(const hf__unit *unit, size_t at)
{
    size_t lowest = at > BRACKET_REACH ? at - BRACKET_REACH : 0;
    size_t depth = 0;
    size_t before = at;

    if ((unit->syntax->id & (HF__LANG_GO | HF__LANG_RUST)) != 0) /* they have none */
        return NO_ARGUMENT;
    before = behind_type(unit, before);
    if (before == 0 || !is_code(unit, before - 1) || strchr("(,{", unit->text[before - 1]) == NULL)
        return NO_ARGUMENT;
    for (at = before; at > lowest; at--) {
        char c = unit->text[at - 1];
        if (!is_code(unit, at - 1))
            continue;
        if (c == ')' || c == ']' || c == '}')
            depth++;
        else if ((c == '(' || c == '[' || c == '{') && depth-- == 0)
            return c == '(' ? (makes_object(unit, at - 1) ? OF_OBJECT : OF_CALL)
                   : c == '{' && is_pattern(unit, at - 1) ? OF_CALL
                                                          : NO_ARGUMENT;
    }
    return NO_ARGUMENT;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);

    return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

static int by_name(const void *a, const void *b, void *text)
{
    const hf__assignment *x = a;
    const hf__assignment *y = b;
    int order = compare((const char *)text + x->name, x->name_size, (const char *)text + y->name,
                        y->name_size);

    return order != 0 ? order : (x->name > y->name) - (x->name < y->name);
}

/* Where the list of a loop ends: before its body. */
static size_t list_end(const hf__unit *unit, size_t at)
{
    size_t limit = unit->size - at > EXPRESSION_REACH ? at + EXPRESSION_REACH : unit->size;
    size_t depth = 0;

    for (; at < limit; at++) {
        char c = unit->text[at];
        if (!is_code(unit, at))
            continue;
        if (depth == 0 && (strchr(";:)]}\n", c) != NULL ||
                           (c == '{' && isblank((unsigned char)unit->text[at - 1]))))
            break;
        depth += c == '(' || c == '[' || c == '{';
        depth -= (c == ')' || c == ']' || c == '}') && depth > 0;
    }
    return at;
}

static hf_status add(hf__assignments *assignments, const hf__unit *unit, size_t pattern,
                     const hf__pcre_match *match, bool field, hf_error *err)
{
    unsigned group = pattern == LISTS ? 2 : 1;
    hf__assignment made = {.name = match->start[group],
                           .name_size = match->end[group] - match->start[group],
                           .field = field,
                           .each = pattern == LOOPS || pattern == LISTS};

    if (pattern == LISTS) {
        made.value = match->start[1];
        made.value_size = match->end[1] - match->start[1];
    } else if (hf__pcre_match_has(match, 2)) {
        made.value = match->end[0];
        while (made.value < unit->size && isspace((unsigned char)unit->text[made.value]))
            made.value++;
        made.value_size = hf__expression_end(unit, made.value) - made.value;
        if (made.value_size > 6 && memcmp(unit->text + made.value, "range ", 6) == 0) { /* of Go */
            made.each = true;
            made.value += 6;
            made.value_size -= 6;
        }
    }
    if (made.each && pattern != LISTS)
        made.value_size = list_end(unit, made.value) - made.value;
    made.block = hf__unit_block(unit, made.name);
    if (!hf__grow(&assignments->items, &assignments->capacity, assignments->count + 1,
                  sizeof *assignments->items))
        return hf__no_memory(err);
    assignments->items[assignments->count++] = made;
    return HF_OK;
}

/* ---- Enumerations ---------------------------------------------------------------------------- */

static hf_status add_counted(hf__assignments *assignments, size_t name, size_t size, size_t block,
                             int64_t number, hf_error *err)
{
    if (!hf__grow(&assignments->items, &assignments->capacity, assignments->count + 1,
                  sizeof *assignments->items))
        return hf__no_memory(err);
    assignments->items[assignments->count++] = (hf__assignment){
        .name = name,
        .name_size = size,
        .value = name,
        .value_size = size,
        .block = block,
        .counted = true,
        .number = number,
    };
    return HF_OK;
}

/*
 * `A = iota + 1` of Go, and the names below it up to the parenthesis: each is one more. The first
 * was added already, with an expression that means nothing by itself.
 */
static hf_status add_iota(hf__assignments *assignments, const hf__unit *unit, hf_error *err)
{
    hf__assignment *first = &assignments->items[assignments->count - 1];
    const char *plus = memchr(unit->text + first->value, '+', first->value_size);
    int64_t number = plus != NULL ? strtoll(plus + 1, NULL, 10) : 0;
    size_t block = first->block;
    size_t at = first->value + first->value_size;
    hf_status status = HF_OK;

    first->counted = true;
    first->number = number;
    while (status == HF_OK && at < unit->size && unit->text[at] != ')') {
        if (!is_code(unit, at) || isspace((unsigned char)unit->text[at])) {
            at++;
            continue;
        }
        size_t size = 0;
        while (isalnum((unsigned char)unit->text[at + size]) || unit->text[at + size] == '_')
            size++;
        size_t next = at + size;
        while (unit->text[next] == ' ' || unit->text[next] == '\t')
            next++;
        if (size == 0 || (unit->text[next] != '\n' && unit->classes[next] != HF__COMMENT))
            break;
        status = add_counted(assignments, at, size, block, ++number, err);
        at = next;
    }
    return status;
}

/* NAME = auto() of Python: one more than the member before it. */
static void count_auto(hf__assignments *assignments, const hf__unit *unit)
{
    hf__assignment *last = &assignments->items[assignments->count - 1];
    const hf__assignment *before =
        assignments->count > 1 ? &assignments->items[assignments->count - 2] : NULL;

    last->counted = true;
    last->number = 1;
    if (before != NULL && before->counted && last->name - before->name < 400 &&
        memmem(unit->text + before->name, last->name - before->name, "class ", 6) == NULL)
        last->number = before->number + 1;
}

static hf_status add_enumeration(hf__assignments *assignments, const hf__unit *unit, hf_error *err)
{
    const hf__assignment *last = &assignments->items[assignments->count - 1];
    const char *value = unit->text + last->value;

    if (unit->syntax->id == HF__LANG_GO && last->value_size >= 4 && memcmp(value, "iota", 4) == 0)
        return add_iota(assignments, unit, err);
    if (unit->syntax->id == HF__LANG_PYTHON && last->value_size >= 6 &&
        memcmp(value + last->value_size - 6, "auto()", 6) == 0)
        count_auto(assignments, unit);
    return HF_OK;
}

static bool is_meant(const hf__unit *unit, size_t pattern, const hf__pcre_match *match)
{
    switch (pattern) {
    case 0: return is_code(unit, match->start[1]);
    case 1: return unit->classes[match->start[1]] != HF__COMMENT;
    case NAMED_FIELDS:
        return (unit->syntax->id & (HF__LANG_GO | HF__LANG_RUST | HF__LANG_JS)) != 0 &&
               is_code(unit, match->start[1]);
    case EXPRESSIONS:
        return (unit->syntax->id & (HF__LANG_KOTLIN | HF__LANG_ELIXIR | HF__LANG_CSHARP)) != 0 &&
               is_code(unit, match->start[1]);
    case 5:
        return (unit->syntax->id & (HF__LANG_GO | HF__LANG_ELIXIR)) != 0 &&
               is_code(unit, match->start[1]);
    case 6: return unit->syntax->id == HF__LANG_GO && is_code(unit, match->start[1]);
    case MEMBERS:
        return (unit->syntax->id & (HF__LANG_JAVA | HF__LANG_KOTLIN)) != 0 &&
               is_code(unit, match->start[1]);
    case LOOPS:
    case LISTS: return is_code(unit, match->start[pattern == LISTS ? 2 : 1]);
    default:
        return (unit->syntax->id &
                (unit->text[match->start[2]] == ':'
                     ? (HF__LANG_JS | HF__LANG_PYTHON | HF__LANG_GO | HF__LANG_RUST |
                        HF__LANG_RUBY | HF__LANG_ELIXIR)
                     : (HF__LANG_RUBY | HF__LANG_ELIXIR | HF__LANG_PHP | HF__LANG_PERL))) != 0 &&
               unit->classes[match->start[0]] != HF__TEXT &&
               unit->classes[match->start[1]] != HF__COMMENT;
    }
}

static bool find_classes(hf__assignments *assignments)
{
    const hf__unit *unit = assignments->unit;
    const char *word = unit->syntax->id == HF__LANG_RUST ? "impl " : "class ";

    for (const char *at = unit->text;
         (at = memmem(at, unit->size - (size_t)(at - unit->text), word, strlen(word))) != NULL;
         at++) {
        size_t place = (size_t)(at - unit->text);
        if (!is_code(unit, place) ||
            (place > 0 && (isalnum((unsigned char)at[-1]) || at[-1] == '_')))
            continue;
        if (!hf__grow(&assignments->classes, &assignments->class_capacity,
                      assignments->class_count + 1, sizeof *assignments->classes))
            return false;
        assignments->classes[assignments->class_count++] = place;
    }
    return true;
}

size_t hf__class_of(const hf__assignments *assignments, size_t at)
{
    size_t low = 0;
    size_t high = assignments->class_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (assignments->classes[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? assignments->classes[low - 1] : 0;
}

void hf__assignments_read(hf__assignments *assignments)
{
    const hf__unit *unit = assignments->unit;
    hf_status status = HF_OK;
    hf__pcre_match match;

    if (assignments->read)
        return;
    assignments->read = true;
    for (size_t i = 0; i < HF__ASSIGNMENT_PATTERNS; i++) {
        for (size_t at = 0; status == HF_OK && assignments->count < ASSIGNMENTS_MAX &&
                            hf__pcre_find(assignments->patterns[i], unit->text, unit->size, at,
                                          &match) == HF__PCRE_FOUND;
             at = match.end[0] > at ? match.end[0] : at + 1) {
            if (!is_meant(unit, i, &match))
                continue;
            enum argument argument = i == 0 ? is_argument(unit, match.start[1]) : NO_ARGUMENT;
            if (argument == OF_CALL)
                continue;
            status = add(assignments, unit, i, &match,
                         i == FIELDS || i == NAMED_FIELDS || argument == OF_OBJECT, NULL);
            if (status == HF_OK && i == 0)
                status = add_enumeration(assignments, unit, NULL);
        }
    }
    if (assignments->count > 1)
        qsort_r(assignments->items, assignments->count, sizeof *assignments->items, by_name,
                (void *)unit->text);
    assignments->broken = !find_classes(assignments) || status != HF_OK;
}

void hf__assignments_free(hf__assignments *assignments)
{
    free(assignments->items);
    free(assignments->classes);
    *assignments = (hf__assignments){0};
}

/* ---- Looking up ------------------------------------------------------------------------------ */

size_t hf__assignments_first(const hf__assignments *assignments, const hf__unit *unit,
                             const char *name, size_t size)
{
    size_t low = 0;
    size_t high = assignments->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const hf__assignment *item = &assignments->items[middle];
        if (compare(unit->text + item->name, item->name_size, name, size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool hf__assignments_is_named(const hf__assignments *assignments, const hf__unit *unit,
                              size_t index, const char *name, size_t size)
{
    return index < assignments->count &&
           compare(unit->text + assignments->items[index].name, assignments->items[index].name_size,
                   name, size) == 0;
}

const hf__assignment *hf__assignments_around(const hf__assignments *assignments,
                                             const hf__unit *unit, size_t at)
{
    for (size_t i = 0; i < assignments->count; i++) {
        const hf__assignment *item = &assignments->items[i];
        if (item->block == HF__NO_BLOCK && item->value <= at &&
            at < item->value + item->value_size && unit->classes[item->value] == HF__QUOTE)
            return item;
    }
    return NULL;
}

static bool follows_word(const hf__unit *unit, size_t at, const char *word)
{
    size_t size = strlen(word);

    while (at > 0 && unit->text[at - 1] == ' ')
        at--;
    return at >= size && memcmp(unit->text + at - size, word, size) == 0;
}

/* Is it declared here: enum Locks, class Locks, LOCKS = {? */
static bool is_owner(const hf__unit *unit, size_t at, size_t size)
{
    static const char *const words[] = {"enum",      "class", "module", "object",    "struct",
                                        "trait",     "type",  "const",  "interface", "namespace",
                                        "defmodule", "impl",  "var",    "val",       NULL};
    size_t next = at + size;

    for (const char *const *word = words; *word != NULL; word++)
        if (follows_word(unit, at, *word))
            return true;
    while (next < unit->size && strchr(" :=%", unit->text[next]) != NULL &&
           unit->text[next] != '\0')
        next++;
    return next > at + size && next < unit->size && unit->text[next] == '{';
}

static size_t owner_end(const hf__unit *unit, size_t at)
{
    size_t depth = 0;

    for (size_t end = at; end < unit->size; end++) {
        if (!is_code(unit, end))
            continue;
        if (unit->text[end] == '{')
            depth++;
        else if (unit->text[end] == '}' && depth > 0 && --depth == 0)
            return end;
        else if (depth == 0 && end > at && unit->text[end] == '\n' && end + 1 < unit->size &&
                 isalpha((unsigned char)unit->text[end + 1]) && unit->syntax->id != HF__LANG_C)
            return end; /* indented members of Python and Ruby end with the next line that is not */
    }
    return unit->size;
}

const hf__assignment *hf__assignments_find_in(hf__assignments *assignments, const hf__unit *unit,
                                              const char *owner, size_t owner_size,
                                              const char *name, size_t size)
{
    hf__assignments_read(assignments);
    for (const char *at = unit->text;
         (at = memmem(at, unit->size - (size_t)(at - unit->text), owner, owner_size)) != NULL;
         at++) {
        size_t place = (size_t)(at - unit->text);
        if (!is_code(unit, place) ||
            (place > 0 && (isalnum((unsigned char)at[-1]) || at[-1] == '_')) ||
            isalnum((unsigned char)at[owner_size]) || at[owner_size] == '_' ||
            !is_owner(unit, place, owner_size))
            continue;
        size_t end = owner_end(unit, place);
        for (size_t i = hf__assignments_first(assignments, unit, name, size);
             hf__assignments_is_named(assignments, unit, i, name, size); i++)
            if (assignments->items[i].name > place && assignments->items[i].name < end &&
                assignments->items[i].value_size > 0)
                return &assignments->items[i];
    }
    return NULL;
}
