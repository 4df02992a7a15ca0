#include "base/json_read.h"

#include <string.h>

/* Strings are searched eight bytes at a time. This is a word with `byte` in all of them. */
#define EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The first byte is the lowest of the word, on every machine. */
static uint64_t load_word(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/*
 * Sets the high bit of bytes that are zero. Bytes behind the first zero may be marked by mistake,
 * so only the first mark counts.
 */
static uint64_t mark_zero(uint64_t word)
{
    return (word - EACH_BYTE(1)) & ~word & EACH_BYTE(0x80);
}

static size_t first_marked(uint64_t marks)
{
    return (size_t)__builtin_ctzll(marks) / 8;
}

static bool is_plain(char byte)
{
    return byte >= 0x20 && byte != '"' && byte != '\\' && (unsigned char)byte < 0x80;
}

const char *hf__json_plain_end(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t word = load_word(at);
        uint64_t below_space = (word - EACH_BYTE(0x20)) & ~word & EACH_BYTE(0x80);
        uint64_t marks = mark_zero(word ^ EACH_BYTE('"')) | mark_zero(word ^ EACH_BYTE('\\')) |
                         below_space | (word & EACH_BYTE(0x80));
        if (marks != 0)
            return at + first_marked(marks);
        at += 8;
    }
    while (at < end && is_plain(*at))
        at++;
    return at;
}

/* Finds the first quote or backslash. */
static const char *find_quote(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t word = load_word(at);
        uint64_t marks = mark_zero(word ^ EACH_BYTE('"')) | mark_zero(word ^ EACH_BYTE('\\'));
        if (marks != 0)
            return at + first_marked(marks);
        at += 8;
    }
    while (at < end && *at != '"' && *at != '\\')
        at++;
    return at;
}

/* Finds the first quote or bracket. [ ] and { } differ in bit 5 only, so setting it finds both. */
static const char *find_structure(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t word = load_word(at);
        uint64_t folded = word | EACH_BYTE(0x20);
        uint64_t marks = mark_zero(word ^ EACH_BYTE('"')) | mark_zero(folded ^ EACH_BYTE('{')) |
                         mark_zero(folded ^ EACH_BYTE('}'));
        if (marks != 0)
            return at + first_marked(marks);
        at += 8;
    }
    while (at < end && *at != '"' && (*at | 0x20) != '{' && (*at | 0x20) != '}')
        at++;
    return at;
}

/* Begins behind the opening quote. Returns where the closing one is. */
static const char *string_end(const char *at, const char *end, bool *escaped)
{
    *escaped = false;
    for (;;) {
        at = find_quote(at, end);
        if (at >= end || *at == '"')
            return at;
        *escaped = true;
        at = end - at > 2 ? at + 2 : end;
    }
}

/* Begins at the opening bracket. Returns what is behind the closing one. */
static const char *brackets_end(const char *at, const char *end)
{
    size_t depth = 0;
    bool escaped = false;

    while ((at = find_structure(at, end)) < end) {
        if (*at == '"') {
            at = string_end(at + 1, end, &escaped);
            if (at == end)
                return end;
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (--depth == 0) {
            return at + 1;
        }
        at++;
    }
    return end;
}

static const char *word_end(const char *at, const char *end)
{
    while (at < end && *at != ',' && *at != ']' && *at != '}' && (unsigned char)*at > ' ')
        at++;
    return at;
}

hf__json_kind hf__json_kind_of(char first)
{
    switch (first) {
    case '{': return HF__JSON_OBJECT;
    case '[': return HF__JSON_ARRAY;
    case '"': return HF__JSON_STRING;
    case 't':
    case 'f': return HF__JSON_BOOLEAN;
    case 'n': return HF__JSON_NULL;
    default: return HF__JSON_NUMBER;
    }
}

/* Reads the value at `at` < end, in text that was checked. Returns its end, never beyond `end`. */
static const char *read_value(const char *at, const char *end, hf__json_value *value)
{
    const char *start = at;

    value->kind = hf__json_kind_of(*at);
    value->escaped = false;
    if (value->kind == HF__JSON_STRING) {
        at = string_end(++start, end, &value->escaped);
        value->text = (hf__slice){start, (size_t)(at - start)};
        return at < end ? at + 1 : end;
    }
    at = value->kind == HF__JSON_OBJECT || value->kind == HF__JSON_ARRAY ? brackets_end(at, end)
                                                                         : word_end(at, end);
    value->text = (hf__slice){start, (size_t)(at - start)};
    return at;
}

/* Skips commas and colons like space: hf__json_parse has checked that they are in place. */
static const char *next_token(const char *at, const char *end)
{
    while (at < end && ((unsigned char)*at <= ' ' || *at == ',' || *at == ':'))
        at++;
    return at;
}

void hf__json_walk_begin(hf__json_walk *walk, const hf__json_value *value)
{
    bool has_items = value->kind == HF__JSON_OBJECT || value->kind == HF__JSON_ARRAY;

    walk->is_object = value->kind == HF__JSON_OBJECT;
    walk->at = value->text.text;
    walk->end = walk->at;
    if (has_items && value->text.size >= 2) {
        walk->at++;
        walk->end += value->text.size - 1;
    }
}

bool hf__json_walk_next(hf__json_walk *walk, hf__slice *key, hf__json_value *value)
{
    hf__json_value name = {0};

    walk->at = next_token(walk->at, walk->end);
    if (walk->is_object && walk->at < walk->end) {
        if (*walk->at != '"')
            return false;
        walk->at = read_value(walk->at, walk->end, &name);
        walk->at = next_token(walk->at, walk->end);
    }
    if (walk->at >= walk->end)
        return false;
    const char *start = walk->at;
    walk->at = read_value(walk->at, walk->end, value);
    if (walk->at == start) /* a misplaced bracket in unchecked text: do not loop for ever */
        return false;
    if (key != NULL)
        *key = name.text;
    return true;
}

bool hf__json_get(const hf__json_value *object, const char *key, hf__json_value *value)
{
    hf__json_walk walk;
    hf__json_value each;
    hf__slice name;
    bool found = false;

    if (object->kind != HF__JSON_OBJECT)
        return false;
    hf__json_walk_begin(&walk, object);
    while (hf__json_walk_next(&walk, &name, &each)) {
        if (!hf__slice_is(name, key))
            continue;
        *value = each;
        found = true;
    }
    return found;
}

static bool read_digits(hf__slice digits, bool negative, int64_t *number)
{
    int64_t sum = 0;

    if (digits.size == 0)
        return false;
    for (size_t i = 0; i < digits.size; i++) {
        int digit = digits.text[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, negative ? -digit : digit, &sum))
            return false;
    }
    *number = sum;
    return true;
}

bool hf__json_integer(const hf__json_value *value, bool strings, int64_t low, int64_t high,
                      int64_t *number)
{
    hf__slice digits = value->text;
    int64_t sum = 0;

    if (value->kind != HF__JSON_NUMBER && !(strings && value->kind == HF__JSON_STRING))
        return false;
    bool negative = digits.size > 0 && digits.text[0] == '-';
    if (negative) {
        digits.text++;
        digits.size--;
    }
    if (!read_digits(digits, negative, &sum) || sum < low || sum > high)
        return false;
    *number = sum;
    return true;
}
