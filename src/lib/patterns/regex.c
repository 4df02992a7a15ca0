/*
 * Reads the regular part of the syntax that PCRE, Python, JavaScript and others share. What is not
 * regular, or does not mean the same to all of them, is refused by name.
 */
#include "lib/patterns/regex.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { EXPRESSION_MAX = HF_LABEL_MAX };

static const char no_repetition[] =
    "write {n}, {n,} or {n,m} behind what is to be repeated, or \\{ for the character";

size_t hf__regex_position(const char *text, size_t at)
{
    size_t position = 1;

    for (size_t i = 0; i < at; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80)
            position++;
    return position;
}

bool hf__regex_refuse(hf__regex *regex, size_t at, hf_status code, const char *hint,
                      const char *format, ...)
{
    char what[256];
    va_list args;

    if (regex->status != HF_OK)
        return false;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    size_t position = hf__regex_position(regex->text, at);
    regex->status =
        hf__fail(regex->err, code, "%s at character %zu of the expression", what, position);
    hf__hint(regex->err, "%s", hint);
    if (regex->err != NULL)
        regex->err->position = (int)position;
    return false;
}

bool hf__regex_refuse_construct(hf__regex *regex, size_t at, const char *what, const char *hint)
{
    char shown[64];

    return hf__regex_refuse(regex, at, HF_INVALID, hint, "%s is not allowed in a placeholder: %s",
                            what, hf__show(shown, sizeof shown, regex->text + at, regex->at - at));
}

bool hf__regex_ahead(const hf__regex *regex, const char *text)
{
    size_t size = strlen(text);

    return size <= regex->size - regex->at && memcmp(regex->text + regex->at, text, size) == 0;
}

bool hf__regex_eat(hf__regex *regex, const char *text)
{
    if (!hf__regex_ahead(regex, text))
        return false;
    regex->at += strlen(text);
    return true;
}

/* False when the draft got too large, or ran out of memory, with what stands at `at`. */
static bool check_draft(hf__regex *regex, size_t at)
{
    if (regex->draft->status == HF_OK)
        return true;
    if (regex->draft->status == HF_QUOTA)
        return hf__regex_refuse(regex, at, HF_QUOTA,
                                "repeat less: + and * cost one state, {1000} a thousand copies",
                                "the pattern has more than %d states", HF__STATES_MAX);
    return hf__regex_refuse(regex, at, HF_NO_MEMORY, "", "out of memory");
}

/* ---- Groups ---- */

static bool choice(hf__regex *regex, hf__fragment *fragment);

static const struct refused_group {
    const char *opening;
    const char *what;
    const char *hint;
} refused_groups[] = {
    {"(?=", "lookahead", "say what the value is, character by character"},
    {"(?!", "negative lookahead", "say what the value is, character by character"},
    {"(?<=", "lookbehind", "say what the value is, character by character"},
    {"(?<!", "negative lookbehind", "say what the value is, character by character"},
    {"(?>", "an atomic group", "write (?:...), which allows the same values or more"},
    {"(?P=", "a backreference", "only regular expressions can be compared"},
    {"(?P>", "recursion", "only regular expressions can be compared"},
    {"(?R", "recursion", "only regular expressions can be compared"},
    {"(?&", "recursion", "only regular expressions can be compared"},
    {"(?(", "a conditional", "write the alternatives out: (?:...|...)"},
    {"(?#", "a comment", "write it in the registry, behind a #"},
    {"(?|", "a branch reset", "write (?:...)"},
    {"(?'", "a group named with '", "write (?<name>...)"},
    {"(?C", "a callout", "leave it out"},
    {"(*", "a verb", "leave it out, or write \\* for the character"},
};

static bool is_recursion(const hf__regex *regex)
{
    const char *next = regex->text + regex->at + 2;
    size_t left = regex->size - regex->at - 2;

    if (left > 0 && (*next == '+' || *next == '-')) {
        next++;
        left--;
    }
    return left > 0 && hf__is_digit((unsigned char)*next);
}

static bool refuse_group(hf__regex *regex)
{
    size_t start = regex->at;

    for (size_t i = 0; i < sizeof refused_groups / sizeof refused_groups[0]; i++)
        if (hf__regex_eat(regex, refused_groups[i].opening))
            return hf__regex_refuse_construct(regex, start, refused_groups[i].what,
                                              refused_groups[i].hint);
    if (is_recursion(regex)) {
        regex->at += 3;
        return hf__regex_refuse_construct(regex, start, "recursion",
                                          "only regular expressions can be compared");
    }
    regex->at += 2;
    return hf__regex_refuse_construct(
        regex, start, "an inline flag or unknown group",
        "write it without: [Aa] for either case, (?:...) for a group without a name");
}

static bool is_word(unsigned char byte)
{
    return hf__is_letter(byte) || hf__is_digit(byte) || byte == '_';
}

/* Behind "(?<" or "(?P<". */
static bool group_name(hf__regex *regex)
{
    size_t start = regex->at;

    while (regex->at < regex->size && is_word((unsigned char)regex->text[regex->at]))
        regex->at++;
    if (regex->at > start && !hf__is_digit((unsigned char)regex->text[start]) &&
        hf__regex_eat(regex, ">"))
        return true;
    return hf__regex_refuse(regex, start, HF_INVALID,
                            "write (?<name>...) with letters, digits and _, or (?:...)",
                            "the name of a group is not well-formed");
}

static bool group_opening(hf__regex *regex)
{
    if (!hf__regex_ahead(regex, "(?") && !hf__regex_ahead(regex, "(*"))
        return hf__regex_eat(regex, "(");
    if (hf__regex_eat(regex, "(?:"))
        return true;
    if (hf__regex_ahead(regex, "(?<=") || hf__regex_ahead(regex, "(?<!"))
        return refuse_group(regex);
    if (hf__regex_eat(regex, "(?<") || hf__regex_eat(regex, "(?P<"))
        return group_name(regex);
    return refuse_group(regex);
}

static bool group(hf__regex *regex, hf__fragment *fragment)
{
    size_t start = regex->at;

    if (regex->depth == HF__NESTING_MAX)
        return hf__regex_refuse(regex, start, HF_QUOTA, "write it with fewer groups",
                                "groups nest deeper than %d", HF__NESTING_MAX);
    if (!group_opening(regex))
        return false;
    regex->depth++;
    if (!choice(regex, fragment))
        return false;
    regex->depth--;
    if (hf__regex_eat(regex, ")"))
        return true;
    return hf__regex_refuse(regex, start, HF_INVALID,
                            "close it with ')', or write \\( for the character",
                            "a group is not closed: it begins");
}

/* ---- Repetitions ---- */

/* A number that is too large stays at its maximum. False without a digit. */
static bool number(hf__regex *regex, uint32_t *value)
{
    size_t start = regex->at;

    for (*value = 0; regex->at < regex->size; regex->at++) {
        unsigned char byte = (unsigned char)regex->text[regex->at];
        if (!hf__is_digit(byte))
            break;
        if (*value < 1000000)
            *value = *value * 10 + (uint32_t)(byte - '0');
    }
    return regex->at > start;
}

/* Reads what is behind '{'. False, with the reader anywhere, when it is not a repetition. */
static bool counts(hf__regex *regex, uint32_t *least, uint32_t *most)
{
    if (!number(regex, least))
        return false;
    *most = *least;
    if (hf__regex_eat(regex, ",") && !number(regex, most))
        *most = HF__WITHOUT_END;
    return hf__regex_eat(regex, "}");
}

/* *is_there: a repetition was read. */
static bool repetition(hf__regex *regex, bool *is_there, uint32_t *least, uint32_t *most)
{
    size_t start = regex->at;

    *is_there = true;
    *least = hf__regex_ahead(regex, "+") ? 1 : 0;
    *most = hf__regex_ahead(regex, "?") ? 1 : HF__WITHOUT_END;
    if (hf__regex_eat(regex, "*") || hf__regex_eat(regex, "+") || hf__regex_eat(regex, "?"))
        return true;
    *is_there = hf__regex_eat(regex, "{");
    if (!*is_there)
        return true;
    if (!counts(regex, least, most))
        return hf__regex_refuse(regex, start, HF_INVALID, no_repetition,
                                "'{' begins no repetition");
    if (*least > *most)
        return hf__regex_refuse(regex, start, HF_INVALID, "write the smaller number first",
                                "a repetition of at least %u and at most %u", *least, *most);
    return true;
}

/* A lazy repetition has the same words. A possessive one is not regular; a second one is a slip. */
static bool repetition_suffix(hf__regex *regex, size_t start)
{
    if (hf__regex_eat(regex, "+"))
        return hf__regex_refuse_construct(regex, start, "a possessive repetition",
                                          "leave out the last +");
    (void)hf__regex_eat(regex, "?");
    if (hf__regex_ahead(regex, "*") || hf__regex_ahead(regex, "+") || hf__regex_ahead(regex, "?") ||
        hf__regex_ahead(regex, "{"))
        return hf__regex_refuse(regex, regex->at, HF_INVALID,
                                "put the first in a group, (?:...), or escape the second",
                                "a repetition is repeated");
    return true;
}

static bool repeated(hf__regex *regex, hf__fragment *fragment)
{
    size_t start = regex->at;
    uint32_t least = 0;
    uint32_t most = 0;
    bool is_there = false;

    if (!repetition(regex, &is_there, &least, &most))
        return false;
    if (!is_there)
        return true;
    if (!repetition_suffix(regex, start))
        return false;
    *fragment = hf__draft_repeat(regex->draft, *fragment, least, most);
    return check_draft(regex, start);
}

/* ---- Characters ---- */

static bool from_class(hf__regex *regex, size_t start, hf__fragment *fragment)
{
    if (regex->chars.broken)
        return hf__regex_refuse(regex, start, HF_NO_MEMORY, "", "out of memory");
    *fragment = hf__draft_one_of(regex->draft, regex->chars.ranges, regex->chars.count);
    return true;
}

static bool any_character(hf__regex *regex, hf__fragment *fragment)
{
    size_t start = regex->at++;

    hf__charset_clear(&regex->chars);
    hf__charset_add(&regex->chars, '\n', '\n');
    hf__charset_negate(&regex->chars);
    return from_class(regex, start, fragment);
}

static bool literal(hf__regex *regex, hf__fragment *fragment)
{
    uint32_t character = hf__character_next(regex->text, regex->size, &regex->at);

    *fragment = hf__draft_one_of(regex->draft, &(hf__range){character, character}, 1);
    return true;
}

static bool anchor(hf__regex *regex)
{
    size_t start = regex->at++;

    return hf__regex_refuse_construct(
        regex, start, "an anchor",
        "leave it out: a placeholder always matches the whole value; escape it for the character");
}

static bool nothing_to_repeat(hf__regex *regex)
{
    size_t start = regex->at;
    uint32_t least = 0;
    uint32_t most = 0;
    bool is_there = false;

    if (!repetition(regex, &is_there, &least, &most))
        return false;
    return hf__regex_refuse(regex, start, HF_INVALID,
                            "put it behind what it repeats, or write it with a backslash",
                            "there is nothing to repeat");
}

static bool atom(hf__regex *regex, hf__fragment *fragment)
{
    size_t start = regex->at;

    switch (regex->text[regex->at]) {
    case '(': return group(regex, fragment);
    case '[': return hf__regex_class(regex) && from_class(regex, start, fragment);
    case '\\': return hf__regex_escape(regex) && from_class(regex, start, fragment);
    case '.': return any_character(regex, fragment);
    case '^':
    case '$': return anchor(regex);
    case '*':
    case '+':
    case '?':
    case '{': return nothing_to_repeat(regex);
    default: return literal(regex, fragment);
    }
}

/* Up to a '|', a ')' or the end. */
static bool sequence(hf__regex *regex, hf__fragment *fragment)
{
    bool is_empty = true;

    while (regex->at < regex->size && !hf__regex_ahead(regex, "|") &&
           !hf__regex_ahead(regex, ")")) {
        size_t start = regex->at;
        hf__fragment next = {0};
        if (!atom(regex, &next) || !check_draft(regex, start) || !repeated(regex, &next))
            return false;
        *fragment = is_empty ? next : hf__draft_then(regex->draft, *fragment, next);
        is_empty = false;
    }
    if (is_empty)
        *fragment = hf__draft_nothing(regex->draft);
    return check_draft(regex, regex->at);
}

static bool choice(hf__regex *regex, hf__fragment *fragment)
{
    bool is_choice = false;

    if (!sequence(regex, fragment))
        return false;
    for (size_t start = regex->at; hf__regex_eat(regex, "|"); start = regex->at) {
        hf__fragment other = {0};
        if (!sequence(regex, &other))
            return false;
        *fragment = hf__draft_or(regex->draft, *fragment, is_choice, other);
        is_choice = true;
        if (!check_draft(regex, start))
            return false;
    }
    return true;
}

static bool check_text(hf__regex *regex)
{
    for (size_t at = 0; at < regex->size;) {
        size_t start = at;
        if (hf__character_next(regex->text, regex->size, &at) == HF__STRAY_BYTE)
            return hf__regex_refuse(regex, start, HF_INVALID, "write it in UTF-8",
                                    "a byte that is no UTF-8");
    }
    if (regex->size > EXPRESSION_MAX)
        return hf__regex_refuse(regex, EXPRESSION_MAX, HF_QUOTA, "shorten it", "more than %d bytes",
                                EXPRESSION_MAX);
    return true;
}

static bool whole(hf__regex *regex, hf__fragment *fragment)
{
    if (!check_text(regex) || !choice(regex, fragment))
        return false;
    if (regex->at == regex->size)
        return true;
    return hf__regex_refuse(regex, regex->at, HF_INVALID,
                            "open it with '(', or write \\) for the character",
                            "a ')' without its '('");
}

hf_status hf__regex_read(hf__draft *draft, const char *text, size_t size, hf__fragment *fragment,
                         hf_error *err)
{
    hf__regex regex = {.text = size > 0 ? text : "", .size = size, .draft = draft, .err = err};

    (void)whole(&regex, fragment);
    hf__charset_free(&regex.chars);
    return regex.status;
}
