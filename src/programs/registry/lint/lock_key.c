#include "programs/registry/lint/lock_key.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { STEPS_MAX = 12, LABEL_SHOWN = 80 };

const char *const hf__key_patterns[HF__KEY_PATTERNS] = {
    [HF__KEY_IS_NUMBER] = "\\A'?([-+]?(?:0x[0-9a-f_]+|\\d[\\d_]*+))(?:[uln]+|_?i64)?'?\\z",
    [HF__KEY_IS_CAST] = "\\Acast\\s*\\(([\\s\\S]+)\\s+as\\s+[\\w ]+\\)\\z",
    [HF__KEY_IS_TYPED] = "\\A(?:bigint|int8|int4|integer|int)\\s*('[^']*')\\z",
    [HF__KEY_IS_SUFFIXED] =
        "\\A([\\s\\S]+?)\\s*::\\s*(?:bigint|int8|int4|integer|int|text|varchar)\\z",
    [HF__KEY_IS_CONVERTED] = ("\\A(?:(?:[a-z_]\\w*\\.)*(?:int|int32|int64|int8|int4|long|bigint|"
                              "number|str|text|literal|valueof|"
                              "parselong|int_|longlong|bytes|c_longlong))\\s*\\(([\\s\\S]*)\\)\\z"),
    [HF__KEY_IS_HASHED] =
        "\\A(?:[a-z_]\\w*\\.)*(hashtext|hashtextextended)\\s*\\(([\\s\\S]*)\\)\\z",
    [HF__KEY_IS_SHA256] = ("\\bsha256\\s*\\(\\s*(?:convert_to\\s*\\(\\s*)?"
                           "('(?:[^']|'')*'(?:\\s*::\\s*bytea)?|\\x01[^\\x02]*\\x02)"),
    [HF__KEY_IS_OURS] =
        ("'x'\\s*\\|\\|\\s*left\\s*\\(\\s*encode\\s*\\(\\s*sha256\\b[\\s\\S]*,\\s*'hex'"
         "\\s*\\)\\s*,\\s*16\\s*\\)[\\s\\S]*\\bbit\\s*\\(\\s*64\\s*\\)"),
    [HF__KEY_IS_NAME] =
        "\\A(?:[&*]?[@$]?[a-z_]\\w*(?:\\.|::|->|\\?\\.))*[@$]?([a-z_]\\w*)(?:\\.value)?\\z",
    [HF__KEY_IS_STRING] = "\\A[furb@$]{0,2}([\"'`])([\\s\\S]*)\\1\\z",
};

/* ---- Pieces of text -------------------------------------------------------------------------- */

struct piece {
    const char *text;
    size_t size;
};

static struct piece trimmed(struct piece piece)
{
    while (piece.size > 0 && isspace((unsigned char)piece.text[0])) {
        piece.text++;
        piece.size--;
    }
    while (piece.size > 0 && isspace((unsigned char)piece.text[piece.size - 1]))
        piece.size--;
    return piece;
}

static struct piece group_of(struct piece piece, const hf__pcre_match *match, unsigned group)
{
    return trimmed(
        (struct piece){piece.text + match->start[group], match->end[group] - match->start[group]});
}

/* Are its brackets in pairs? */
static bool is_balanced(struct piece piece)
{
    long depth = 0;

    for (size_t i = 0; i < piece.size && depth >= 0; i++) {
        depth += piece.text[i] == '(';
        depth -= piece.text[i] == ')';
    }
    return depth == 0;
}

static bool matches(const hf__key_source *source, enum hf__key_pattern which, struct piece piece,
                    hf__pcre_match *match)
{
    return hf__pcre_find(source->patterns[which], piece.text, piece.size, 0, match) ==
           HF__PCRE_FOUND;
}

/* Removes one layer: parentheses, a cast or a conversion. False: there is none. */
static bool unwrap(const hf__key_source *source, struct piece *piece)
{
    static const enum hf__key_pattern layers[] = {HF__KEY_IS_CAST, HF__KEY_IS_TYPED,
                                                  HF__KEY_IS_SUFFIXED, HF__KEY_IS_CONVERTED};
    hf__pcre_match match;

    if (piece->size >= 2 && piece->text[0] == '(' && piece->text[piece->size - 1] == ')') {
        struct piece inner = trimmed((struct piece){piece->text + 1, piece->size - 2});
        if (is_balanced(inner)) {
            *piece = inner;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        if (!matches(source, layers[i], *piece, &match))
            continue;
        struct piece inner = group_of(*piece, &match, 1);
        if (is_balanced(inner)) {
            *piece = inner;
            return true;
        }
    }
    return false;
}

/* ---- Names and parameters -------------------------------------------------------------------- */

/*
 * Follows a parameter to the expression that is bound to it, or a name to its literal. The result
 * may point into room.
 */
static struct piece follow(const hf__key_source *source, struct piece piece, hf__buf *room)
{
    hf__pcre_match match;
    size_t size = 0;

    if (piece.size > 1 && strchr("$?:", piece.text[0]) != NULL && source->string_end != SIZE_MAX) {
        hf__find_bound(source->unit, source->string_end, piece.text, piece.size, room);
        if (room->broken || room->length == 0)
            return (struct piece){"", 0};
        piece = trimmed((struct piece){room->data, room->length});
        for (int i = 0; i < STEPS_MAX && unwrap(source, &piece); i++)
            continue;
    }
    if (!matches(source, HF__KEY_IS_NAME, piece, &match))
        return piece;
    struct piece name = group_of(piece, &match, 1);
    const char *value =
        hf__constants_find(source->constants, source->unit, name.text, name.size, &size);
    return value != NULL ? (struct piece){value, size} : piece;
}

/* Removes layers and follows names until a literal remains, or something unknown. */
static struct piece reduce(const hf__key_source *source, struct piece piece, hf__buf *room)
{
    piece = trimmed(piece);
    for (int i = 0; i < STEPS_MAX && unwrap(source, &piece); i++)
        continue;
    if (piece.size >= 2 && piece.text[0] == HF__HOLE_OPEN &&
        memchr(piece.text, HF__HOLE_CLOSE, piece.size) == piece.text + piece.size - 1) {
        piece = follow(source, trimmed((struct piece){piece.text + 1, piece.size - 2}), room);
        for (int i = 0; i < STEPS_MAX && unwrap(source, &piece); i++)
            continue;
        return piece;
    }
    return follow(source, piece, room);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static bool parse_number(struct piece digits, int64_t *number)
{
    char text[32];
    char *end = NULL;
    size_t size = 0;

    for (size_t i = 0; i < digits.size && size < sizeof text - 1; i++)
        if (digits.text[i] != '_')
            text[size++] = digits.text[i];
    text[size] = '\0';
    errno = 0;
    *number = strtoll(text, &end, strcasestr(text, "0x") != NULL ? 16 : 10);
    return errno == 0 && *end == '\0';
}

static bool read_number(const hf__key_source *source, struct piece piece, int64_t *number)
{
    hf__pcre_match match;

    return matches(source, HF__KEY_IS_NUMBER, piece, &match) &&
           parse_number(group_of(piece, &match, 1), number);
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static void add_hole(hf__buf *label)
{
    if (label->length == 0 || label->data[label->length - 1] != HF__LABEL_HOLE)
        hf__buf_add(label, (char[]){HF__LABEL_HOLE}, 1);
}

static size_t hole_size(struct piece rest)
{
    const char *end = memchr(rest.text, HF__HOLE_CLOSE, rest.size);

    return end != NULL ? (size_t)(end - rest.text) + 1 : rest.size;
}

/* A literal of SQL: '' is one quote, and %s, of format() or of the program, is a hole. */
static void add_sql_literal(struct piece piece, hf__buf *label)
{
    for (size_t i = 0; i < piece.size; i++) {
        if (piece.text[i] == HF__HOLE_OPEN) {
            add_hole(label);
            i += hole_size((struct piece){piece.text + i, piece.size - i}) - 1;
        } else if (piece.text[i] == '%' && i + 1 < piece.size &&
                   strchr("sdIL", piece.text[i + 1])) {
            add_hole(label);
            i++;
        } else {
            hf__buf_add(label, piece.text + i, 1);
            i += piece.text[i] == '\'' && i + 1 < piece.size && piece.text[i + 1] == '\'';
        }
    }
}

static size_t braced_size(struct piece rest)
{
    size_t depth = 0;
    size_t size = 0;

    do {
        depth += rest.text[size] == '{';
        depth -= rest.text[size] == '}';
        size++;
    } while (size < rest.size && depth > 0);
    return size;
}

/* A literal of the program: it has backslashes, and ${…}, #{…}, {…} and %s are holes. */
static void add_program_literal(struct piece piece, hf__buf *label)
{
    for (size_t i = 0; i < piece.size; i++) {
        char c = piece.text[i];
        char next = i + 1 < piece.size ? piece.text[i + 1] : '\0';
        size_t opening = (c == '$' || c == '#') && next == '{' ? 1 : 0;
        if (opening > 0 || c == '{') {
            add_hole(label);
            i += opening;
            i += braced_size((struct piece){piece.text + i, piece.size - i}) - 1;
        } else if (c == '%' && (next == 's' || next == 'd' || next == 'v')) {
            add_hole(label);
            i++;
        } else {
            i += c == '\\' && next != '\0';
            hf__buf_add(label, piece.text + i, 1);
        }
    }
}

/* Adds one operand of a concatenation. */
static void add_operand(const hf__key_source *source, struct piece piece, hf__buf *label)
{
    hf__buf room = {0};
    hf__pcre_match match;
    bool from_program;

    piece = trimmed(piece);
    if (piece.size == 0)
        return;
    struct piece literal = reduce(source, piece, &room);
    from_program = source->code || literal.text != piece.text;
    if (!matches(source, HF__KEY_IS_STRING, literal, &match))
        add_hole(label);
    else if (from_program)
        add_program_literal(group_of(literal, &match, 2), label);
    else
        add_sql_literal(group_of(literal, &match, 2), label);
    hf__buf_free(&room);
}

/* Reads 'a:' || x or "a:" + x. Operators in quotes, brackets and holes do not count. */
static void read_label(const hf__key_source *source, struct piece piece, hf__buf *label)
{
    size_t start = 0;
    size_t depth = 0;
    char quote = '\0';

    for (size_t i = 0; i < piece.size; i++) {
        char c = piece.text[i];
        if (c == HF__HOLE_OPEN) {
            i += hole_size((struct piece){piece.text + i, piece.size - i}) - 1;
        } else if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '\'' || c == '"' || c == '`') {
            quote = c;
        } else if (c == '(' || c == ')') {
            depth = c == '(' ? depth + 1 : depth - (depth > 0);
        } else if (depth == 0 && (c == '|' || c == '+')) {
            add_operand(source, (struct piece){piece.text + start, i - start}, label);
            start = i + 1;
        }
    }
    add_operand(source, (struct piece){piece.text + start, piece.size - start}, label);
}

/* A label that is only a hole says nothing, so it is not kept. */
static void keep_label(hf__buf *label, hf__lock_key *key)
{
    bool known = false;

    for (size_t i = 0; i < label->length; i++)
        known = known || label->data[i] != HF__LABEL_HOLE;
    if (!known || label->length > HF_LABEL_MAX) {
        hf__buf_free(label);
        return;
    }
    key->kind = HF__KEY_LABEL;
    key->label = label->data;
    key->label_size = label->length;
    key->has_holes = memchr(label->data, HF__LABEL_HOLE, label->length) != NULL;
    *label = (hf__buf){0};
}

/* The label of hashtextextended(label, 0). With another seed it is another derivation. */
static struct piece first_argument(struct piece piece, bool *plain_seed)
{
    size_t depth = 0;
    char quote = '\0';

    for (size_t i = 0; i < piece.size; i++) {
        char c = piece.text[i];
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == '(' || c == ')') {
            depth = c == '(' ? depth + 1 : depth - (depth > 0);
        } else if (c == ',' && depth == 0) {
            struct piece seed = trimmed((struct piece){piece.text + i + 1, piece.size - i - 1});
            *plain_seed = seed.size == 1 && seed.text[0] == '0';
            return (struct piece){piece.text, i};
        }
    }
    return piece;
}

static bool read_hashed(const hf__key_source *source, struct piece piece, hf__lock_key *key,
                        hf__buf *label)
{
    hf__pcre_match match;
    bool plain_seed = true;

    if (matches(source, HF__KEY_IS_HASHED, piece, &match) &&
        is_balanced(group_of(piece, &match, 2))) {
        bool extended = match.end[1] - match.start[1] > strlen("hashtext");
        key->uses_hashtext = !extended;
        read_label(source, first_argument(group_of(piece, &match, 2), &plain_seed), label);
        key->derivation = extended ? HF_HASHTEXTEXTENDED : HF_HASHTEXT;
        key->derivation_known = plain_seed;
        return true;
    }
    if (matches(source, HF__KEY_IS_SHA256, piece, &match)) {
        read_label(source, group_of(piece, &match, 1), label);
        key->derivation = HF_SHA256;
        key->derivation_known = matches(source, HF__KEY_IS_OURS, piece, &match);
        return true;
    }
    return false;
}

static hf_status read_single(const hf__key_source *source, struct piece piece, hf__lock_key *key,
                             hf_error *err)
{
    hf__buf room = {0};
    hf__buf label = {0};
    hf__pcre_match match;
    bool broken;
    struct piece reduced = reduce(source, piece, &room);

    if (read_hashed(source, reduced, key, &label)) {
        keep_label(&label, key);
    } else if (source->labels && matches(source, HF__KEY_IS_STRING, reduced, &match)) {
        read_label(source, piece, &label);
        keep_label(&label, key);
    } else if (source->labels && strcspn(piece.text, "\"'`") < piece.size) {
        read_label(source, piece, &label);
        keep_label(&label, key);
    } else if (read_number(source, reduced, &key->number)) {
        key->kind = HF__KEY_NUMBER;
    }
    broken = room.broken || label.broken;
    hf__buf_free(&room);
    hf__buf_free(&label);
    return broken ? hf__no_memory(err) : HF_OK;
}

static struct piece argument(const hf__args *args, size_t index)
{
    return trimmed((struct piece){args->text.data + args->start[index], args->size[index]});
}

static bool fits_int4(int64_t number)
{
    return number >= INT32_MIN && number <= INT32_MAX;
}

/* Reads a key of two numbers, or of a number and a hash. */
static hf_status read_pair(const hf__key_source *source, const hf__args *args, size_t first,
                           hf__lock_key *key, hf_error *err)
{
    hf__buf room = {0};
    int64_t classid = 0;
    bool has_class = read_number(source, reduce(source, argument(args, first), &room), &classid) &&
                     fits_int4(classid);
    hf_status status = read_single(source, argument(args, first + 1), key, err);

    hf__buf_free(&room);
    if (!has_class || (key->kind == HF__KEY_NUMBER && !fits_int4(key->number))) {
        hf__lock_key unknown = {.uses_hashtext = key->uses_hashtext, .why = key->why};
        hf__lock_key_free(key);
        *key = unknown;
        return status;
    }
    key->pair[0] = (int32_t)classid;
    key->in_class = key->kind == HF__KEY_LABEL;
    if (key->kind == HF__KEY_NUMBER) {
        key->kind = HF__KEY_PAIR;
        key->pair[1] = (int32_t)key->number;
    }
    return status;
}

hf_status hf__lock_key_read(const hf__key_source *source, const hf__args *args, size_t first,
                            hf__lock_key *key, hf_error *err)
{
    *key = (hf__lock_key){.why = "its key is computed when the program runs"};
    if (args->text.broken)
        return hf__no_memory(err);
    if (!args->complete || args->text.data == NULL || args->count <= first ||
        first >= HF__ARGS_MAX) {
        key->why = "its arguments cannot be read";
        return HF_OK;
    }
    if (!source->labels && first == 0 && args->count == 2)
        return read_pair(source, args, first, key, err);
    return read_single(source, argument(args, first), key, err);
}

void hf__lock_key_free(hf__lock_key *key)
{
    free(key->label);
    *key = (hf__lock_key){0};
}

bool hf__lock_key_may_equal(const hf__lock_key *a, const hf__lock_key *b)
{
    if (a->kind == HF__KEY_UNKNOWN || b->kind == HF__KEY_UNKNOWN)
        return true;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case HF__KEY_NUMBER: return a->number == b->number;
    case HF__KEY_PAIR: return a->pair[0] == b->pair[0] && a->pair[1] == b->pair[1];
    case HF__KEY_LABEL:
        return a->has_holes || b->has_holes ||
               (a->label_size == b->label_size && memcmp(a->label, b->label, a->label_size) == 0);
    case HF__KEY_UNKNOWN: break;
    }
    return true;
}

static const char *show_label(const hf__lock_key *key, char *out, size_t out_size)
{
    hf__buf text = {0};
    char shown[LABEL_SHOWN];

    for (size_t i = 0; i < key->label_size; i++) {
        if (key->label[i] == HF__LABEL_HOLE)
            hf__buf_puts(&text, "…");
        else
            hf__buf_add(&text, key->label + i, 1);
    }
    snprintf(out, out_size, "'%s'",
             text.broken ? "" : hf__show(shown, sizeof shown, text.data, text.length));
    hf__buf_free(&text);
    return out;
}

const char *hf__lock_key_show(const hf__lock_key *key, char *out, size_t out_size)
{
    switch (key->kind) {
    case HF__KEY_NUMBER: snprintf(out, out_size, "%" PRId64, key->number); return out;
    case HF__KEY_PAIR:
        snprintf(out, out_size, "(%" PRId32 ", %" PRId32 ")", key->pair[0], key->pair[1]);
        return out;
    case HF__KEY_LABEL: return show_label(key, out, out_size);
    case HF__KEY_UNKNOWN: break;
    }
    return NULL;
}
