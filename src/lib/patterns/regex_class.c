/* Classes, "[...]", and escapes, "\...". */
#include "lib/patterns/regex.h"

#include <string.h>

enum { NAMED_RANGES = 4 };

struct named_class {
    const char *name;
    hf__range ranges[NAMED_RANGES];
    size_t count;
};

/* ASCII only, as in PCRE without its Unicode option. */
static const struct named_class posix_classes[] = {
    {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
    {"alpha", {{'A', 'Z'}, {'a', 'z'}}, 2},
    {"ascii", {{0, 0x7F}}, 1},
    {"blank", {{'\t', '\t'}, {' ', ' '}}, 2},
    {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}, 2},
    {"digit", {{'0', '9'}}, 1},
    {"graph", {{'!', '~'}}, 1},
    {"lower", {{'a', 'z'}}, 1},
    {"print", {{' ', '~'}}, 1},
    {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
    {"space", {{'\t', '\r'}, {' ', ' '}}, 2},
    {"upper", {{'A', 'Z'}}, 1},
    {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
    {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
};

static const struct named_class letter_classes[] = {
    {"d", {{'0', '9'}}, 1},
    {"s", {{'\t', '\r'}, {' ', ' '}}, 2},
    {"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
};

static const struct control {
    char letter;
    unsigned char character;
} controls[] = {
    {'a', 0x07}, {'e', 0x1B}, {'f', '\f'}, {'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'v', '\v'},
};

static const struct refused_escape {
    const char *letters;
    const char *what;
    const char *hint;
    bool in_class_too;
} refused_escapes[] = {
    {"123456789gk", "a backreference", "only regular expressions can be compared", false},
    {"bBAGzZ", "an anchor", "leave it out: a placeholder always matches the whole value", false},
    {"pP", "a Unicode property", "list the characters in a class, such as [A-Za-z]", true},
    {"QE", "quoting", "write a backslash before each character that needs one", true},
};

static const char odd_escape_hint[] =
    "write the character itself, \\xHH or \\x{H...}, or \\\\ for a backslash";

/* ---- Escapes ---- */

static bool refuse_letter(hf__regex *regex, size_t start, uint32_t letter, bool in_class)
{
    for (size_t i = 0; i < sizeof refused_escapes / sizeof refused_escapes[0]; i++) {
        const struct refused_escape *refused = &refused_escapes[i];
        if (strchr(refused->letters, (int)letter) != NULL && (!in_class || refused->in_class_too))
            return hf__regex_refuse_construct(regex, start, refused->what, refused->hint);
    }
    return hf__regex_refuse_construct(regex, start, "an unknown escape", odd_escape_hint);
}

static bool add_named(hf__regex *regex, const struct named_class *named, bool is_negated)
{
    hf__charset set = {0};

    hf__charset_add_ranges(&set, named->ranges, named->count);
    if (is_negated)
        hf__charset_negate(&set);
    hf__charset_add_ranges(&regex->chars, set.ranges, set.count);
    regex->chars.broken = regex->chars.broken || set.broken;
    hf__charset_free(&set);
    return true;
}

static int hex_value(char digit)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t lower =
        hf__is_letter((unsigned char)digit) ? (unsigned char)digit | 0x20u : (unsigned char)digit;
    const char *found = lower != '\0' ? strchr(digits, (int)lower) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

/* Up to `most` digits; returns how many there were. */
static size_t hex_digits(hf__regex *regex, size_t most, uint32_t *value)
{
    size_t count = 0;

    for (*value = 0; count < most && regex->at < regex->size; count++) {
        int digit = hex_value(regex->text[regex->at]);
        if (digit < 0)
            break;
        if (*value <= HF__CHARACTER_MAX)
            *value = *value << 4 | (uint32_t)digit;
        regex->at++;
    }
    return count;
}

/* Behind "\x" or "\u", of which the first wants two digits and the second four, or braces. */
static bool code_point(hf__regex *regex, size_t start, size_t digits, uint32_t *character)
{
    bool is_whole;

    if (hf__regex_eat(regex, "{"))
        is_whole = hex_digits(regex, regex->size, character) > 0 && hf__regex_eat(regex, "}");
    else
        is_whole = hex_digits(regex, digits, character) == digits;
    if (!is_whole)
        return hf__regex_refuse(regex, start, HF_INVALID,
                                "write \\xHH, \\uHHHH or \\x{H...} with hexadecimal digits",
                                "a code point is not well-formed");
    if (*character > HF__CHARACTER_MAX || (*character >= 0xD800 && *character <= 0xDFFF))
        return hf__regex_refuse(regex, start, HF_INVALID,
                                "write a character beyond U+FFFF as \\x{H...}, not as a pair",
                                "there is no character U+%04X", (unsigned)*character);
    return true;
}

static bool null_character(hf__regex *regex, size_t start, uint32_t *character)
{
    *character = 0;
    if (regex->at == regex->size || !hf__is_digit((unsigned char)regex->text[regex->at]))
        return true;
    regex->at++;
    return hf__regex_refuse_construct(regex, start, "an octal escape", odd_escape_hint);
}

/* A letter or digit behind the backslash: one character, or a class with *single HF__NOWHERE. */
static bool letter_escape(hf__regex *regex, size_t start, uint32_t letter, bool in_class,
                          uint32_t *single)
{
    for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        if ((uint32_t)controls[i].letter != letter)
            continue;
        *single = controls[i].character;
        return true;
    }
    for (size_t i = 0; i < sizeof letter_classes / sizeof letter_classes[0]; i++)
        if ((uint32_t)letter_classes[i].name[0] == (letter | 0x20))
            return add_named(regex, &letter_classes[i], (letter & 0x20) == 0);
    switch (letter) {
    case 'x': return code_point(regex, start, 2, single);
    case 'u': return code_point(regex, start, 4, single);
    case '0': return null_character(regex, start, single);
    default: return refuse_letter(regex, start, letter, in_class);
    }
}

/* *single is the character, or HF__NOWHERE after a class, which is then in regex->chars. */
static bool escape(hf__regex *regex, bool in_class, uint32_t *single)
{
    size_t start = regex->at++;

    *single = HF__NOWHERE;
    if (regex->at == regex->size)
        return hf__regex_refuse(regex, start, HF_INVALID, "write \\\\ for a backslash",
                                "there is nothing behind the backslash");
    uint32_t character = hf__character_next(regex->text, regex->size, &regex->at);
    if (hf__is_letter(character) || hf__is_digit(character))
        return letter_escape(regex, start, character, in_class, single);
    *single = character;
    return true;
}

bool hf__regex_escape(hf__regex *regex)
{
    uint32_t single = HF__NOWHERE;

    hf__charset_clear(&regex->chars);
    if (!escape(regex, false, &single))
        return false;
    if (single != HF__NOWHERE)
        hf__charset_add(&regex->chars, single, single);
    hf__charset_tidy(&regex->chars);
    return true;
}

/* ---- Classes ---- */

/*
 * The size of "[:name:]" where the reader is, also with '.' or '=' instead of ':', or 0 when it is
 * not there. As in PCRE, "[:" without its end is two characters.
 */
static size_t bracketed_name(const hf__regex *regex)
{
    const char *text = regex->text + regex->at;
    size_t left = regex->size - regex->at;

    if (left < 4 || text[0] != '[' || (text[1] != ':' && text[1] != '.' && text[1] != '='))
        return 0;
    for (size_t i = 2; i + 1 < left; i++) {
        if (text[i] == text[1] && text[i + 1] == ']')
            return i + 2;
        if (text[i] == ']' || text[i] == '\\' || text[i] == '[')
            return 0;
    }
    return 0;
}

static bool posix_class(hf__regex *regex, size_t size)
{
    size_t start = regex->at;
    const char *name = regex->text + start + 2;
    bool is_negated = size > 4 && *name == '^';
    size_t name_size = size - 4 - (is_negated ? 1 : 0);

    name += is_negated ? 1 : 0;
    regex->at += size;
    for (size_t i = 0;
         regex->text[start + 1] == ':' && i < sizeof posix_classes / sizeof posix_classes[0]; i++)
        if (strlen(posix_classes[i].name) == name_size &&
            memcmp(posix_classes[i].name, name, name_size) == 0)
            return add_named(regex, &posix_classes[i], is_negated);
    return hf__regex_refuse_construct(regex, start, "an unknown class",
                                      "one of alnum, alpha, ascii, blank, cntrl, digit, graph, "
                                      "lower, print, punct, space, upper, word, xdigit");
}

/* One end of a range, or a class with *single HF__NOWHERE. */
static bool member(hf__regex *regex, uint32_t *single)
{
    size_t size = bracketed_name(regex);

    *single = HF__NOWHERE;
    if (size > 0)
        return posix_class(regex, size);
    if (hf__regex_ahead(regex, "\\"))
        return escape(regex, true, single);
    *single = hf__character_next(regex->text, regex->size, &regex->at);
    return true;
}

static bool member_or_range(hf__regex *regex)
{
    size_t start = regex->at;
    uint32_t low = HF__NOWHERE;
    uint32_t high = HF__NOWHERE;

    if (!member(regex, &low))
        return false;
    bool is_range =
        hf__regex_ahead(regex, "-") && !hf__regex_ahead(regex, "-]") && regex->size - regex->at > 1;
    if (!is_range) {
        if (low != HF__NOWHERE)
            hf__charset_add(&regex->chars, low, low);
        return true;
    }
    regex->at++;
    if (!member(regex, &high))
        return false;
    if (low == HF__NOWHERE || high == HF__NOWHERE)
        return hf__regex_refuse_construct(regex, start, "a range that begins or ends with a class",
                                          "put the - last, or write \\-");
    if (low > high)
        return hf__regex_refuse_construct(regex, start, "a range from high to low",
                                          "write the lower character first, or \\-");
    hf__charset_add(&regex->chars, low, high);
    return true;
}

static bool finish_class(hf__regex *regex, size_t start, bool is_negated)
{
    hf__charset_tidy(&regex->chars);
    if (is_negated)
        hf__charset_negate(&regex->chars);
    if (regex->chars.count <= HF__CLASS_RANGES_MAX)
        return true;
    return hf__regex_refuse(regex, start, HF_QUOTA, "write wider ranges, or another class",
                            "a class of more than %d ranges", HF__CLASS_RANGES_MAX);
}

bool hf__regex_class(hf__regex *regex)
{
    size_t start = regex->at;
    size_t name = bracketed_name(regex);

    if (name > 0) {
        regex->at += name;
        return hf__regex_refuse_construct(regex, start, "a class name outside of a class",
                                          "write it inside of one, as in [[:alpha:]]");
    }
    hf__charset_clear(&regex->chars);
    regex->at++;
    bool is_negated = hf__regex_eat(regex, "^");
    for (bool is_first = true; regex->at < regex->size; is_first = false) {
        if (!is_first && hf__regex_eat(regex, "]"))
            return finish_class(regex, start, is_negated);
        if (!member_or_range(regex))
            return false;
    }
    return hf__regex_refuse(regex, start, HF_INVALID,
                            "close it with ']', or write \\[ for the character",
                            "a class is not closed: it begins");
}
