#include "programs/registry/import/key.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct number {
    const char *start, *end;
    uint64_t magnitude;
    bool negative, hexadecimal, too_large;
    bool thousands; /* "1,234": a number, or a pair in a hurry */
};

/* Digits of this base with '_' between them. */
static const char *read_digits(const char *at, unsigned base, struct number *number)
{
    bool after_digit = false;

    for (; isxdigit((unsigned char)*at) || (*at == '_' && after_digit); at++) {
        after_digit = *at != '_';
        if (!after_digit)
            continue;
        unsigned digit = isdigit((unsigned char)*at)
                             ? (unsigned)(*at - '0')
                             : (unsigned)(tolower((unsigned char)*at) - 'a') + 10;
        if (digit >= base)
            break;
        number->too_large |= number->magnitude > (UINT64_MAX - digit) / base;
        number->magnitude = number->magnitude * base + digit;
    }
    return at;
}

static bool is_group(const char *at)
{
    return at[0] == ',' && isdigit((unsigned char)at[1]) && isdigit((unsigned char)at[2]) &&
           isdigit((unsigned char)at[3]) && !isdigit((unsigned char)at[4]);
}

/* 42n, 42L, 42LL, 42ul, 42::bigint */
static const char *skip_suffix(const char *at)
{
    static const char *const suffixes[] = {"::bigint", "::int8", "::int", "ull",
                                           "ul",       "ll",     "l",     "n"};

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        size_t size = strlen(suffixes[i]);
        if (strncasecmp(at, suffixes[i], size) == 0 && !isalnum((unsigned char)at[size]))
            return at + size;
    }
    return at;
}

static struct number read_number(const char *text, const char *at)
{
    struct number number = {.start = at};

    if (at > text && at[-1] == '-' && (at - 1 == text || !isalnum((unsigned char)at[-2]))) {
        number.negative = true;
        number.start--;
    }
    if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X') && isxdigit((unsigned char)at[2])) {
        number.hexadecimal = true;
        number.end = read_digits(at + 2, 16, &number);
    } else {
        number.end = read_digits(at, 10, &number);
        while (number.end - at <= 3 + 4 * 6 && is_group(number.end)) {
            number.thousands = true;
            number.end = read_digits(number.end + 1, 10, &number);
        }
    }
    number.end = skip_suffix(number.end);
    return number;
}

/* The numbers of the text that stand for themselves, not as part of a word. */
static size_t find_numbers(const char *text, struct number *numbers, size_t most)
{
    size_t count = 0;

    for (const char *at = text; *at != '\0' && count < most;) {
        if (!isdigit((unsigned char)*at)) {
            at++;
            continue;
        }
        bool in_word = at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
        struct number number = read_number(text, at);
        bool ends_word = isalnum((unsigned char)*number.end) || *number.end == '_';
        at = number.end;
        if (in_word || ends_word)
            while (isalnum((unsigned char)*at) || *at == '_')
                at++;
        else
            numbers[count++] = number;
    }
    return count;
}

/* Between two halves of a key: a comma or a slash, and nothing else. */
static bool is_pair(const char *text, const struct number *numbers)
{
    const char *gap = numbers[0].end + strspn(numbers[0].end, " ");
    const char *before = text + strspn(text, " ([");

    if (*gap != ',' && *gap != '/' && *gap != ';')
        return false;
    gap++;
    gap += strspn(gap, " ");
    return before == numbers[0].start && gap == numbers[1].start &&
           numbers[1].end[strspn(numbers[1].end, " )]")] == '\0';
}

/* "(1,234)" in parentheses is a pair, however it is spaced. */
static bool split_thousands(const char *text, struct number *numbers)
{
    const char *comma = strchr(text, ',');
    size_t last = strlen(text) - 1;

    if (text[0] != '(' || text[last] != ')' || comma == NULL || strchr(comma + 1, ',') != NULL)
        return false;
    numbers[0] = (struct number){.start = numbers[0].start, .negative = numbers[0].negative};
    numbers[0].end = read_digits(numbers[0].start + numbers[0].negative, 10, &numbers[0]);
    numbers[1] = read_number(text, comma + 1);
    return true;
}

/* Of `bits`: hexadecimal numbers may be the unsigned form of negative ones. */
static bool fit(const struct number *number, unsigned bits, int64_t *value, const char **doubt)
{
    uint64_t most = (UINT64_C(1) << (bits - 1)) - 1;

    if (number->too_large)
        return false;
    if (number->negative && number->magnitude <= most + 1) {
        *value = (int64_t)(0 - number->magnitude);
        return true;
    }
    if (number->negative)
        return false;
    if (number->magnitude <= most) {
        *value = (int64_t)number->magnitude;
        return true;
    }
    if (!number->hexadecimal || (bits == 32 && number->magnitude > UINT32_MAX))
        return false;
    *doubt = "the hexadecimal number is above the greatest signed one, two's complement assumed";
    *value = bits == 32 ? (int32_t)(uint32_t)number->magnitude : (int64_t)number->magnitude;
    return true;
}

static hf__id_verdict take_pair(const struct number *numbers, hf__id *id)
{
    int64_t halves[2];

    for (int i = 0; i < 2; i++) {
        if (!fit(&numbers[i], 32, &halves[i], &id->doubt))
            return HF__ID_OUT_OF_RANGE;
        id->pair[i] = (int32_t)halves[i];
    }
    id->is_pair = true;
    return HF__ID_GOOD;
}

hf__id_verdict hf__id_parse(const char *text, hf__id *id)
{
    struct number numbers[3];
    size_t count = find_numbers(text, numbers, 3);

    *id = (hf__id){0};
    if (count == 0)
        return HF__ID_NONE;
    if (count == 1 && numbers[0].thousands && split_thousands(text, numbers))
        return take_pair(numbers, id);
    if (count == 2 && is_pair(text, numbers))
        return take_pair(numbers, id);
    /* "42424242 (0x2876312)": the same number twice */
    if (count == 2 && numbers[0].magnitude == numbers[1].magnitude)
        count = 1;
    if (count > 1)
        return HF__ID_UNCLEAR;
    if (numbers[0].thousands && numbers[0].magnitude < 1000000)
        id->doubt = "the comma is taken for one between thousands";
    return fit(&numbers[0], 64, &id->key, &id->doubt) ? HF__ID_GOOD : HF__ID_OUT_OF_RANGE;
}
