#include "programs/registry/import/key.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- lock ids ------------------------------------------------------------------------------- */

struct number {
    const char *start, *end;
    uint64_t magnitude;
    bool negative, hexadecimal, too_large;
    bool thousands; /* "1,234": one number, or a pair without a space */
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

/* Finds the numbers that are not part of a word. */
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

/* Two halves of a key have a comma, slash or semicolon between them, and nothing else. */
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

/* "(1,234)" is a pair, also without a space. */
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

/* The number as a key of so many bits. A hexadecimal one may be the unsigned form of a negative. */
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

static hf__id_verdict read_pair(const struct number *numbers, hf__id *id)
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

/* Typographers write a negative number with U+2212, or by mistake with an en dash. */
static void put_plain_minus(hf__buf *out, const char *text, bool *doubtful)
{
    static const char *const minus[] = {"\u2212", "\uFE63", "\uFF0D", "\u2013", "\u2014"};

    hf__buf_puts(out, "");
    while (*text != '\0') {
        size_t i = 0, count = sizeof minus / sizeof minus[0];
        for (; i < count && strncmp(text, minus[i], 3) != 0; i++)
            ;
        hf__buf_add(out, i < count ? "-" : text, 1);
        *doubtful |= i >= 3 && i < count;
        text += i < count ? 3 : 1;
    }
}

static hf__id_verdict parse_id(const char *text, hf__id *id)
{
    struct number numbers[3];
    size_t count = find_numbers(text, numbers, 3);

    *id = (hf__id){0};
    if (count == 0)
        return HF__ID_NONE;
    if (count == 1 && numbers[0].thousands && split_thousands(text, numbers))
        return read_pair(numbers, id);
    if (count == 2 && is_pair(text, numbers))
        return read_pair(numbers, id);
    /* "42424242 (0x2876312)": the same number twice */
    if (count == 2 && numbers[0].magnitude == numbers[1].magnitude)
        count = 1;
    if (count > 1)
        return HF__ID_UNCLEAR;
    if (numbers[0].thousands && numbers[0].magnitude < 1000000)
        id->doubt = "the comma is taken for one between thousands";
    return fit(&numbers[0], 64, &id->key, &id->doubt) ? HF__ID_GOOD : HF__ID_OUT_OF_RANGE;
}

hf__id_verdict hf__id_parse(const char *text, hf__id *id)
{
    hf__buf plain = {0};
    bool doubtful = false;
    put_plain_minus(&plain, text, &doubtful);
    hf__id_verdict verdict = plain.broken ? HF__ID_UNCLEAR : parse_id(plain.data, id);
    if (verdict == HF__ID_GOOD && doubtful && id->doubt == NULL)
        id->doubt = "the dash is taken for a minus";
    hf__buf_free(&plain);
    return verdict;
}

/* --- label patterns ------------------------------------------------------------------------- */

/* ${tenantId}:${date}, tenant-<id>, {tenantId}:balance and the like → {tenant_id}… */

enum { NAME_MAX_SIZE = 40, NAMES_MAX = 32 };

struct conversion {
    hf__pattern *out;
    const char *at, *end;
    char names[NAMES_MAX][NAME_MAX_SIZE + 12];
    size_t no_close; /* forms whose closing mark does not come any more, one bit each */
};

static void doubt(hf__pattern *out, const char *text)
{
    hf__buf_printf(&out->doubts, "%s\n", text);
}

/* "this.tenantId" → "tenant_id", "format(date)" → "format_date", "0" → "arg_0" */
static void name_from(const char *text, size_t size, char *out)
{
    size_t used = 0;
    bool gap = false;

    if (size > 5 && strncmp(text, "this.", 5) == 0) {
        text += 5;
        size -= 5;
    }
    for (size_t i = 0; i < size && used < NAME_MAX_SIZE - 2; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!isascii(c) || !isalnum(c)) {
            gap = used > 0;
            continue;
        }
        bool hump = isupper(c) && i > 0 &&
                    (islower((unsigned char)text[i - 1]) ||
                     (isupper((unsigned char)text[i - 1]) && i + 1 < size &&
                      islower((unsigned char)text[i + 1])));
        if (used > 0 && (gap || hump))
            out[used++] = '_';
        gap = false;
        out[used++] = (char)tolower(c);
    }
    out[used] = '\0';
}

static bool is_taken(const struct conversion *c, const char *name)
{
    for (size_t i = 0; i < c->out->placeholders; i++)
        if (strcmp(c->names[i], name) == 0)
            return true;
    return false;
}

/* Returns false when there are too many already: the text then stays as it is. */
static bool put_placeholder(struct conversion *c, const char *text, size_t size,
                            const char *fallback)
{
    char base[NAME_MAX_SIZE];

    if (c->out->placeholders == NAMES_MAX)
        return false;
    char *name = c->names[c->out->placeholders];
    name_from(text, size, base);
    if (base[0] == '\0')
        strcpy(base, fallback);
    const char *before = isdigit((unsigned char)base[0]) ? "arg_" : "";
    snprintf(name, sizeof c->names[0], "%s%.38s", before, base);
    for (unsigned i = 2; is_taken(c, name); i++)
        snprintf(name, sizeof c->names[0], "%s%.38s_%u", before, base, i);
    c->out->placeholders++;
    hf__buf_printf(&c->out->text, "{%s}", name);
    return true;
}

static bool is_identifier(const char *text, size_t size)
{
    if (size == 0 || isdigit((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_-. ", text[i]))
            return false;
    return true;
}

static const struct form {
    const char *open, *close;
    bool identifier_only; /* else it may have an expression in it */
} forms[] = {
    {"${", "}", false}, {"#{", "}", false}, {"{{", "}}", true},
    {"{", "}", false},  {"<", ">", true},   {"[", "]", true},
};

static bool read_form(struct conversion *c, size_t index)
{
    const struct form *form = &forms[index];
    size_t open = strlen(form->open);
    size_t left = (size_t)(c->end - c->at);

    if (c->no_close >> index & 1 || left < open || memcmp(c->at, form->open, open) != 0)
        return false;
    const char *inner = c->at + open;
    const char *close = memmem(inner, left - open, form->close, strlen(form->close));
    if (close == NULL) {
        c->no_close |= (size_t)1 << index;
        return false;
    }
    size_t size = (size_t)(close - inner);
    if (memchr(inner, '{', size) != NULL || (form->identifier_only && !is_identifier(inner, size)))
        return false;
    if (!put_placeholder(c, inner, size, "value"))
        return false;
    c->at = close + strlen(form->close);
    return true;
}

/* %s, %d, %(name)s, $1 */
static bool read_argument(struct conversion *c)
{
    size_t left = (size_t)(c->end - c->at);

    if (left >= 2 && c->at[0] == '$' && isdigit((unsigned char)c->at[1])) {
        size_t size = 1;
        while (size < left && isdigit((unsigned char)c->at[size]))
            size++;
        if (!put_placeholder(c, c->at + 1, size - 1, "value"))
            return false;
        c->at += size;
        return true;
    }
    if (left >= 2 && c->at[0] == '%' && strchr("sdvuiq", c->at[1]) != NULL && c->at[1] != '\0' &&
        (left == 2 || !isalnum((unsigned char)c->at[2]))) {
        if (!put_placeholder(c, "", 0, "value"))
            return false;
        c->at += 2;
        return true;
    }
    if (left >= 4 && c->at[0] == '%' && c->at[1] == '(') {
        const char *close = memchr(c->at, ')', left < NAME_MAX_SIZE ? left : NAME_MAX_SIZE);
        if (close == NULL || close + 1 == c->end || !isalpha((unsigned char)close[1]) ||
            !put_placeholder(c, c->at + 2, (size_t)(close - c->at) - 2, "value"))
            return false;
        c->at = close + 2;
        return true;
    }
    return false;
}

/* '*', '…' and '...' stand for anything, also with a ':' in it. */
static bool read_wildcard(struct conversion *c)
{
    static const char *const marks[] = {"…", "...", "*"};

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        size_t size = strlen(marks[i]);
        if ((size_t)(c->end - c->at) < size || memcmp(c->at, marks[i], size) != 0)
            continue;
        if (!put_placeholder(c, "", 0, "rest"))
            return false;
        hf__buf_printf(&c->out->expressions, "%s%s: \".+\"",
                       c->out->expressions.length > 0 ? ", " : "",
                       c->names[c->out->placeholders - 1]);
        hf__buf_printf(&c->out->doubts, "what '%s' stands for is not stated, anything assumed\n",
                       marks[i]);
        c->at += size;
        return true;
    }
    return false;
}

static void put_literal(struct conversion *c)
{
    char byte = *c->at++;
    unsigned char value = (unsigned char)byte;

    if (byte == '{' || byte == '}')
        hf__buf_printf(&c->out->text, "%c%c", byte, byte);
    else if (value < 0x20 || value == 0x7f)
        hf__buf_puts(&c->out->text, " ");
    else
        hf__buf_add(&c->out->text, &byte, 1);
}

static void convert(struct conversion *c)
{
    while (c->at < c->end) {
        bool done = read_argument(c) || read_wildcard(c);
        for (size_t i = 0; !done && i < sizeof forms / sizeof forms[0]; i++)
            done = read_form(c, i);
        if (!done)
            put_literal(c);
    }
}

/* A call such as hashtext('label') or hashtextextended('label', 0) names the derivation. */
static bool read_call(hf__pattern *pattern, const char **text, size_t *size)
{
    char name[24];
    const char *open = memchr(*text, '(', *size < sizeof name ? *size : sizeof name);
    const char *end = *text + *size;

    if (open == NULL || open == *text || open + 3 >= end || end[-1] != ')' ||
        strchr("'\"`", open[1]) == NULL)
        return false;
    const char *close = memrchr(open + 2, open[1], (size_t)(end - open - 2));
    size_t length = (size_t)(open - *text);
    if (close == NULL || length >= sizeof name)
        return false;
    memcpy(name, *text, length);
    name[length] = '\0';
    if (hf_derivation_parse(name, &pattern->derivation, NULL) != HF_OK ||
        pattern->derivation == HF_FIXED)
        return false;
    pattern->derivation_given = true;
    *text = open + 2;
    *size = (size_t)(close - *text);
    return true;
}

/* "'a'", "`a`", "\"a\"" */
static void strip_quotes(const char **text, size_t *size)
{
    if (*size >= 2 && strchr("'\"`", **text) != NULL && (*text)[*size - 1] == **text) {
        (*text)++;
        *size -= 2;
    }
}

void hf__pattern_read(hf__pattern *pattern, const char *text, size_t size)
{
    *pattern = (hf__pattern){0};
    if (!read_call(pattern, &text, &size))
        strip_quotes(&text, &size);
    struct conversion conversion = {.out = pattern, .at = text, .end = text + size};
    hf__buf_puts(&pattern->text, "");
    convert(&conversion);
    if (pattern->placeholders == 0 && !pattern->derivation_given)
        doubt(pattern, "no placeholder is marked, so it is taken for one label");
}

void hf__pattern_free(hf__pattern *pattern)
{
    hf__buf_free(&pattern->text);
    hf__buf_free(&pattern->expressions);
    hf__buf_free(&pattern->doubts);
    *pattern = (hf__pattern){0};
}
