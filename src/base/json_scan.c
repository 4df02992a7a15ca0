#include "base/json_read.h"

#include <string.h>

#include "base/text.h"

/* A Stellar contract's value may nest 100 deep, which makes 300 brackets in JSON. */
enum { DEPTH_MAX = 1000 };

/* The check_ functions read at text->at and move it, or set the fault and return false. */
typedef hf__json_cursor scan;

static bool refuse(scan *text, const char *fault)
{
    text->fault = fault;
    return false;
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && is_space(*at))
        at++;
    return at;
}

/* The value of the four hexadecimal digits at `at`, or -1. */
static int32_t hex4(const char *at, const char *end)
{
    int32_t number = 0;

    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char byte = at[i];
        int digit = is_digit(byte)               ? byte - '0'
                    : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
                    : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return -1;
        number = number << 4 | digit;
    }
    return number;
}

/* Begins at the u of \u. A high surrogate is read together with the low one that must follow. */
static bool check_unicode_escape(scan *text)
{
    int32_t unit = hex4(text->at + 1, text->end);

    if (unit < 0)
        return refuse(text, "\\u needs four hexadecimal digits");
    if (unit >= 0xDC00 && unit <= 0xDFFF)
        return refuse(text, "the second half of a surrogate pair stands alone");
    if (unit < 0xD800 || unit > 0xDBFF) {
        text->at += 5;
        return true;
    }

    const char *low = text->at + 5;
    int32_t second =
        text->end - low >= 2 && low[0] == '\\' && low[1] == 'u' ? hex4(low + 2, text->end) : -1;
    if (second < 0xDC00 || second > 0xDFFF)
        return refuse(text, "the first half of a surrogate pair stands alone");
    text->at += 11;
    return true;
}

/* Begins behind the backslash. */
static bool check_escape(scan *text)
{
    if (text->at == text->end)
        return refuse(text, "the text ends in a string");
    switch (*text->at) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': text->at++; return true;
    case 'u': return check_unicode_escape(text);
    default: return refuse(text, "there is no such escape");
    }
}

static bool check_utf8(scan *text)
{
    const unsigned char *bytes = (const unsigned char *)text->at;
    size_t size = (size_t)(text->end - text->at);
    size_t at = 0;

    while (at < size && bytes[at] >= 0x80) {
        size_t start = at;
        if (hf__utf8_next(bytes, size, &at) < 0) {
            text->at += start;
            return refuse(text, "invalid UTF-8");
        }
    }
    text->at += at;
    return true;
}

/* Begins at the opening quote and ends behind the closing one. */
static bool check_string(scan *text)
{
    text->at++;
    for (;;) {
        text->at = hf__json_plain_end(text->at, text->end);
        if (text->at == text->end)
            return refuse(text, "the text ends in a string");
        unsigned char byte = (unsigned char)*text->at;
        if (byte == '"') {
            text->at++;
            return true;
        }
        if (byte == '\\') {
            text->at++;
            if (!check_escape(text))
                return false;
        } else if (byte < 0x20) {
            return refuse(text, "a control character in a string");
        } else if (!check_utf8(text)) {
            return false;
        }
    }
}

static bool check_digits(scan *text)
{
    const char *start = text->at;

    while (text->at < text->end && is_digit(*text->at))
        text->at++;
    return text->at > start || refuse(text, "a digit is missing");
}

static bool check_number(scan *text)
{
    if (*text->at == '-')
        text->at++;
    if (text->at < text->end && *text->at == '0') {
        text->at++;
        if (text->at < text->end && is_digit(*text->at))
            return refuse(text, "a number begins with 0");
    } else if (!check_digits(text)) {
        return false;
    }
    if (text->at < text->end && *text->at == '.') {
        text->at++;
        if (!check_digits(text))
            return false;
    }
    if (text->at < text->end && (*text->at == 'e' || *text->at == 'E')) {
        text->at++;
        if (text->at < text->end && (*text->at == '+' || *text->at == '-'))
            text->at++;
        return check_digits(text);
    }
    return true;
}

static bool check_word(scan *text, const char *word)
{
    size_t size = strlen(word);

    if ((size_t)(text->end - text->at) < size || memcmp(text->at, word, size) != 0)
        return refuse(text, "no JSON value begins like this");
    text->at += size;
    return true;
}

/* Anything but an object or an array. */
static bool check_scalar(scan *text)
{
    switch (*text->at) {
    case '"': return check_string(text);
    case 't': return check_word(text, "true");
    case 'f': return check_word(text, "false");
    case 'n': return check_word(text, "null");
    default:
        if (*text->at == '-' || is_digit(*text->at))
            return check_number(text);
        return refuse(text, "no JSON value begins like this");
    }
}

/* Begins at a key and ends at its value. */
static bool check_key(scan *text, hf__slice *key)
{
    const char *start = text->at + 1;

    if (text->at == text->end)
        return refuse(text, "the text ends in an object");
    if (*text->at != '"')
        return refuse(text, "a key in quotes is missing");
    if (!check_string(text))
        return false;
    *key = (hf__slice){start, (size_t)(text->at - start) - 1};
    text->at = skip_space(text->at, text->end);
    if (text->at == text->end || *text->at != ':')
        return refuse(text, "a colon is missing behind the key");
    text->at = skip_space(text->at + 1, text->end);
    return true;
}

static const char *ends_inside(char closer)
{
    return closer == '}' ? "the text ends in an object" : "the text ends in an array";
}

/* Begins behind a value in brackets. Ends behind the closing bracket (*closed) or the comma. */
static bool check_separator(scan *text, char closer, bool *closed)
{
    text->at = skip_space(text->at, text->end);
    if (text->at == text->end)
        return refuse(text, ends_inside(closer));
    *closed = *text->at == closer;
    if (!*closed && *text->at != ',')
        return refuse(text, closer == '}' ? "a comma or } is missing" : "a comma or ] is missing");
    text->at++;
    if (!*closed)
        text->at = skip_space(text->at, text->end);
    return true;
}

/*
 * Begins behind a value. Leaves every object and array that is closed here, and ends at the next
 * value, or with *depth 0 when the outermost one is closed.
 */
static bool check_separators(scan *text, const char *closers, int *depth)
{
    bool closed = false;
    hf__slice key;

    for (; *depth > 0; (*depth)--) {
        char closer = closers[*depth - 1];
        if (!check_separator(text, closer, &closed))
            return false;
        if (!closed)
            return closer == ']' || check_key(text, &key);
    }
    return true;
}

/* One value with everything in it. closers[] is the stack of open brackets. */
static bool check_value(scan *text)
{
    char closers[DEPTH_MAX];
    int depth = 0;
    hf__slice key;

    do {
        if (text->at == text->end)
            return refuse(text, depth == 0 ? "there is nothing" : "a value is missing");
        if (*text->at == '{' || *text->at == '[') {
            if (depth == DEPTH_MAX)
                return refuse(text, "more than 1000 levels of brackets");
            char closer = *text->at == '{' ? '}' : ']';
            closers[depth++] = closer;
            text->at = skip_space(text->at + 1, text->end);
            if (text->at == text->end || *text->at != closer) {
                if (closer == '}' && !check_key(text, &key))
                    return false;
                continue;
            }
        } else if (!check_scalar(text)) {
            return false;
        }
        if (!check_separators(text, closers, &depth))
            return false;
    } while (depth > 0);
    return true;
}

bool hf__json_take(hf__json_cursor *cursor, hf__json_value *value)
{
    const char *start = cursor->at;

    if (!check_value(cursor))
        return false;
    value->kind = hf__json_kind_of(*start);
    value->text = (hf__slice){start, (size_t)(cursor->at - start)};
    value->escaped = false;
    if (value->kind == HF__JSON_STRING) {
        value->text = (hf__slice){start + 1, value->text.size - 2};
        value->escaped = memchr(value->text.text, '\\', value->text.size) != NULL;
    }
    return true;
}

bool hf__json_enter(hf__json_cursor *cursor, char bracket)
{
    cursor->at = skip_space(cursor->at, cursor->end);
    if (cursor->at == cursor->end)
        return refuse(cursor, "there is nothing");
    if (*cursor->at != bracket)
        return refuse(cursor, bracket == '{' ? "an object is expected" : "an array is expected");
    cursor->at++;
    cursor->fresh = true;
    return true;
}

/* Moves to the next key or item. Returns false behind the closing bracket, too. */
static bool step(hf__json_cursor *cursor, char closer)
{
    bool closed = false;

    if (!cursor->fresh)
        return check_separator(cursor, closer, &closed) && !closed;
    cursor->fresh = false;
    cursor->at = skip_space(cursor->at, cursor->end);
    if (cursor->at == cursor->end)
        return refuse(cursor, ends_inside(closer));
    if (*cursor->at != closer)
        return true;
    cursor->at++;
    return false;
}

bool hf__json_member(hf__json_cursor *cursor, hf__slice *key)
{
    return step(cursor, '}') && check_key(cursor, key);
}

bool hf__json_item(hf__json_cursor *cursor)
{
    return step(cursor, ']');
}

bool hf__json_finish(hf__json_cursor *cursor)
{
    cursor->at = skip_space(cursor->at, cursor->end);
    return cursor->at == cursor->end || refuse(cursor, "something follows the value");
}

hf_status hf__json_refuse(const hf__json_cursor *cursor, const char *start, hf_error *err)
{
    return hf__fail(err, HF_BAD_DATA, "invalid JSON at byte %zu: %s",
                    (size_t)(cursor->at - start) + 1, cursor->fault);
}

hf_status hf__json_parse(const char *text, size_t size, hf__json_value *value, hf_error *err)
{
    hf__json_cursor whole = {.at = skip_space(text, text + size), .end = text + size};

    if (!hf__json_take(&whole, value) || !hf__json_finish(&whole))
        return hf__json_refuse(&whole, text, err);
    return HF_OK;
}
