#include "programs/registry/lint/values/value_eval.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "programs/registry/lint/text/args.h"

enum { LAYERS_MAX = 12 };

const char *const hf__value_patterns[HF__VALUE_PATTERNS] = {
    [HF__VALUE_IS_NUMBER] = "\\A'?([-+]?(?:0x[0-9a-f_']+|\\d[\\d_']*+))(?:[uln]+|_?[iu]64)?'?\\z",
    [HF__VALUE_IS_CAST] = "\\Acast\\s*\\(([\\s\\S]+)\\s+as\\s+[\\w ]+\\)\\z",
    [HF__VALUE_IS_TYPED] = "\\A(?:bigint|int8|int4|integer|int|text)\\s*('[^']*')\\z",
    [HF__VALUE_IS_SUFFIXED] =
        "\\A([\\s\\S]+?)\\s*(?:::\\s*(?:bigint|int8|int4|integer|int|text|varchar|bytea)|"
        "\\s(?:as|satisfies)\\s+[\\w:<>.]+)\\z",
    [HF__VALUE_IS_CONVERSION] =
        "\\A(?:u?int|u?int32|u?int64|int8|int4|long|bigint|number|str|string|text|literal|"
        "literal_column|convert_to|valueof|parselong|parseint|parse|int_|longlong|bytes|c_longlong|"
        "some|ok|"
        "to_s|from|tostring|toint64|quote_literal|lit|raw|param|bindparam|fromstring|byte|"
        "integer|of|cast|from_i64|bind|asintn|to_string|new|u?int(?:32|64)getdatum|"
        "cstringgetdatum|cstringgettextdatum|objectidgetdatum)\\z",
    [HF__VALUE_IS_METHOD] =
        "\\A(?:to_string|tostring|to_i|to_s|to_sym|string|clone|into|as_str|as_bytes|encode|"
        "value|unwrap|tolong|toint|longvalue|intvalue|freeze|as_ref|to_owned|trim|strip|"
        "getvalue|rawvalue|getid|getbytes|as_i64|bytes|hex|to_str|try_into|to_vec|expect|as_slice)"
        "\\z",
    [HF__VALUE_IS_FORMAT] = "\\A(?:sprintf|format|format!|formatted|interpolate|vsprintf|"
                            "stringformat|asprintf)\\z",
    [HF__VALUE_IS_JOIN] = "\\A(?:concat|concat_ws|join|implode)\\z",
    [HF__VALUE_IS_SQL_HASH] = "\\b(sha224|sha256|sha384|sha512|md5)\\s*\\(",
    [HF__VALUE_IS_OURS] =
        ("'x'\\s*\\|\\|\\s*(?:left|substr(?:ing)?)\\s*\\(\\s*"
         "(?:encode\\s*\\(\\s*sha256\\b[\\s\\S]*,\\s*'hex'\\s*\\)|md5\\s*\\([\\s\\S]*\\))"
         "\\s*,\\s*(?:1\\s*,\\s*)?16\\s*\\)[\\s\\S]*\\bbit\\s*\\(\\s*64\\s*\\)"),
    [HF__VALUE_IS_ITEM] = "\\A(?:[$@]?[a-z_]\\w*(?:\\.|::|->))*[@$]?([a-z_]\\w*)"
                          "\\[\\s*([\"':][\\w-]+[\"']?|[$@]?[a-z_]\\w*)\\s*\\]\\z",
    [HF__VALUE_IS_DIGEST] =
        "\\A(?:md5(?:_hex|sum)?|sha_?(?:1|224|256|384|512)(?:sum|_hex)?|sum(?:1|224|256|512|64|32|"
        "64string)|crc32c?|crc64|checksum(?:ieee)?|adler32|sum|xxh(?:ash)?(?:32|64|3)?\\w*|"
        "murmur\\w*|"
        "mmh3|"
        "blake[23]\\w*|siphash\\w*|phash2|hash|hashcode|gethashcode|hash_?string|hashdata|hash64|"
        "computehash|digest|hexdigest|update)\\z",
    [HF__VALUE_IS_NAME] =
        "\\A[&*]?((?:[@$]{0,2}[a-z_]\\w*(?:\\.|::|->|\\?\\.))*?)[@$]{0,2}([a-z_]\\w*)"
        "(?:\\.value)?\\z",
};

bool hf__eval_matches(const hf__scope *scope, enum hf__value_pattern which, hf__piece piece,
                      hf__pcre_match *match)
{
    return hf__pcre_find(scope->patterns[which], piece.text, piece.size, 0, match) ==
           HF__PCRE_FOUND;
}

hf__piece hf__eval_group(hf__piece piece, const hf__pcre_match *match, unsigned group)
{
    return hf__piece_trim(
        (hf__piece){piece.text + match->start[group], match->end[group] - match->start[group]});
}

unsigned hf__eval_language(const hf__scope *scope)
{
    return (unsigned)scope->unit->syntax->id;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static bool parse_number(hf__piece digits, int64_t *number)
{
    char text[40];
    char *end = NULL;
    size_t size = 0;

    for (size_t i = 0; i < digits.size && size < sizeof text - 1; i++)
        if (digits.text[i] != '_' && digits.text[i] != '\'')
            text[size++] = digits.text[i];
    text[size] = '\0';
    errno = 0;
    bool hex = strcasestr(text, "0x") != NULL;
    *number = strtoll(text, &end, hex ? 16 : 10);
    if (errno == ERANGE && hex && text[0] != '-') { /* the bits of a negative number */
        errno = 0;
        *number = (int64_t)strtoull(text, &end, 16);
    }
    return errno == 0 && *end == '\0';
}

static bool evaluate_number(const hf__scope *scope, hf__piece piece, hf__worth *out)
{
    hf__pcre_match match;

    if (!hf__eval_matches(scope, HF__VALUE_IS_NUMBER, piece, &match) ||
        !parse_number(hf__eval_group(piece, &match, 1), &out->number))
        return false;
    out->kind = HF__VALUE_NUMBER;
    return true;
}

/* ---- Bound values ---------------------------------------------------------------------------- */

/* The item of that number in a list, from 1. `c ? [a] : [a, b]` has those of both. */
static hf__piece item_of(hf__piece list, size_t number)
{
    static const char *const openings[] = {"[]any",        "[]interface{}", "vec!", "array",
                                           "new Object[]", "new object[]",  "&"};
    hf__piece then = hf__piece_until(list, "?");
    hf__pieces items = {0};

    if (then.size < list.size) {
        list = (hf__piece){list.text + then.size + 1, list.size - then.size - 1};
        then = hf__piece_until(list, ":");
        hf__piece other = {list.text + then.size, list.size - then.size};
        other = other.size > 1 ? (hf__piece){other.text + 1, other.size - 1} : other;
        hf__piece a = item_of(then, number);
        hf__piece b = item_of(other, number);
        bool same = a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
        return same || b.size == 0 ? a : a.size == 0 ? b : (hf__piece){"", 0};
    }
    list = hf__piece_trim(list);
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++) {
        size_t size = strlen(openings[i]);
        if (list.size > size && memcmp(list.text, openings[i], size) == 0) {
            list = (hf__piece){list.text + size, list.size - size};
            break;
        }
    }
    if (list.size == 0 || strchr("([{", list.text[0]) == NULL || /* (x) is no list, (x,) is one */
        (list.text[0] == '(' && memchr(list.text, ',', list.size) == NULL))
        return (hf__piece){"", 0};
    if (list.size < 2 || hf__piece_close(list, false) != list.size)
        return (hf__piece){"", 0};
    hf__piece_split((hf__piece){list.text + 1, list.size - 2}, false, &items);
    return number <= items.count ? hf__piece_trim(items.items[number - 1]) : (hf__piece){"", 0};
}

/* query(sql, values): the values are a list that has a name. Size 0: they are not. */
static hf__piece item_of_name(const hf__scope *scope, hf__piece list, size_t number, size_t *at)
{
    hf__pcre_match match;

    if (list.size > 3 && memcmp(list.text + list.size - 3, "...", 3) == 0)
        list.size -= 3;
    if (list.size == 0 || !hf__eval_matches(scope, HF__VALUE_IS_NAME, list, &match))
        return (hf__piece){"", 0};
    hf__piece name = hf__eval_group(list, &match, 2);
    const hf__assignment *assigned =
        hf__assignments_find(scope->names, scope->unit, *at, false, name.text, name.size);
    if (assigned == NULL || assigned->counted || assigned->each)
        return (hf__piece){"", 0};
    *at = assigned->name;
    return item_of((hf__piece){scope->unit->text + assigned->value, assigned->value_size}, number);
}

/* A constant with SQL may be executed in another file: the first placeholder is its parameter 0. */
static void evaluate_far_bound(struct hf__eval *in, const hf__scope *scope, size_t number,
                               hf__worth *out)
{
    const hf__unit *unit = scope->unit;

    if (unit->syntax->id == HF__LANG_SQL ||
        (*in->block != HF__NO_BLOCK && *in->block != HF__STATEMENT) ||
        hf__unit_block(unit, scope->at) != HF__NO_BLOCK || scope->string_end == SIZE_MAX)
        return;
    hf__assignments_read(scope->names);
    if (hf__assignments_around(scope->names, unit, scope->at) == NULL)
        return;
    *in->block = HF__STATEMENT;
    out->kind = HF__VALUE_TEXT;
    hf__buf_add(&out->text, (char[]){HF__LABEL_PARAM, (char)('0' + (int)number - 1)}, 2);
}

/* What is bound to $1, ?1 or :name. In a function of SQL, $1 is its first parameter. */
static void evaluate_bound(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                           unsigned depth, hf__worth *out)
{
    hf__buf room = {0};
    hf__scope there = *scope;
    size_t number = isdigit((unsigned char)piece.text[1]) ? strtoul(piece.text + 1, NULL, 10) : 0;

    hf__find_bound(scope->unit, scope->string_end, piece.text, piece.size, &room, &there.at);
    bool listed = number == 1 || (number > 1 && room.length == 0);
    if (number > 1 && room.length == 0)
        hf__find_bound(scope->unit, scope->string_end, "?1", 2, &room, &there.at);
    size_t at = there.at;
    hf__piece bound = {room.data, room.broken ? 0 : room.length};
    hf__piece item = listed ? item_of_name(scope, bound, number, &at) : (hf__piece){"", 0};
    if (item.size > 0) {
        bound = item;
        there.at = at;
    } else if (number > 1 && listed) {
        bound.size = 0;
    }
    there.string_end = SIZE_MAX;
    there.code = true;
    if (bound.size > 0)
        hf__evaluate(in, &there, bound, depth + 1, out);
    else if (number > 0 && number <= HF__PARAMS_MAX)
        evaluate_far_bound(in, scope, number, out);
    hf__buf_free(&room);
}

/* ---- Expressions ----------------------------------------------------------------------------- */

/* Removes one layer: parentheses, a cast, await. False: there is none. */
static bool unwrap(const hf__scope *scope, hf__piece *piece)
{
    static const enum hf__value_pattern layers[] = {HF__VALUE_IS_CAST, HF__VALUE_IS_TYPED,
                                                    HF__VALUE_IS_SUFFIXED};
    static const char *const words[] = {"await ", "return ", "new ", "my "};
    hf__pcre_match match;

    if (piece->size >= 2 && piece->text[0] == '(') {
        size_t close = hf__piece_close(*piece, !scope->code);
        if (close == piece->size) {
            *piece = hf__piece_trim((hf__piece){piece->text + 1, piece->size - 2});
            return true;
        }
        if (scope->code && close < piece->size && close <= 12 && /* (long) x */
            (isalnum((unsigned char)piece->text[close]) || piece->text[close] == ' ') &&
            (hf__eval_language(scope) &
             (HF__LANG_C | HF__LANG_JAVA | HF__LANG_CSHARP | HF__LANG_PHP)) != 0) {
            *piece = hf__piece_trim((hf__piece){piece->text + close, piece->size - close});
            return true;
        }
    }
    if (scope->code && piece->size > 1 && piece->text[0] == '&' &&
        (hf__eval_language(scope) & (HF__LANG_RUST | HF__LANG_C | HF__LANG_GO)) != 0) {
        *piece = hf__piece_trim((hf__piece){piece->text + 1, piece->size - 1});
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0] && scope->code; i++) {
        size_t size = strlen(words[i]);
        if (piece->size > size && memcmp(piece->text, words[i], size) == 0) {
            *piece = hf__piece_trim((hf__piece){piece->text + size, piece->size - size});
            return true;
        }
    }
    if (scope->code && piece->size > 1 && strchr("!;?", piece->text[piece->size - 1]) != NULL) {
        piece->size--;
        return true;
    }
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        if (!hf__eval_matches(scope, layers[i], *piece, &match))
            continue;
        hf__piece inner = hf__eval_group(*piece, &match, 1);
        if (hf__piece_is_balanced(inner, !scope->code)) {
            *piece = inner;
            return true;
        }
    }
    return false;
}

static bool evaluate_hole(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                          unsigned depth, hf__worth *out)
{
    hf__scope inside = *scope;

    if (piece.size < 2 || piece.text[0] != HF__HOLE_OPEN || hf__piece_hole(piece) != piece.size)
        return false;
    piece = hf__piece_trim((hf__piece){piece.text + 1, piece.size - 2});
    inside.code = true;
    if (piece.size > 1 && strchr("$?:", piece.text[0]) != NULL &&
        (isdigit((unsigned char)piece.text[1]) || piece.text[0] == ':'))
        evaluate_bound(in, scope, piece, depth, out);
    else
        hf__evaluate(in, &inside, piece, depth + 1, out);
    return true;
}

/* What SQL hashes: sha256(convert_to('label', 'UTF8')), md5(a || ':' || b). */
static bool evaluate_sql_hash(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                              unsigned depth, hf__worth *out)
{
    hf__pcre_match match;
    hf__pieces args = {0};

    if (scope->code || !hf__eval_matches(scope, HF__VALUE_IS_SQL_HASH, piece, &match))
        return false;
    hf__piece name = hf__eval_group(piece, &match, 1);
    hf__piece call = {piece.text + match.end[0] - 1, piece.size - match.end[0] + 1};
    size_t close = hf__piece_close(call, true);
    if (close > call.size || close < 2)
        return false;
    hf__piece_split((hf__piece){call.text + 1, close - 2}, true, &args);
    if (args.count == 0)
        return false;
    bool ours = hf__eval_matches(scope, HF__VALUE_IS_OURS, piece, &match);
    out->kind = HF__VALUE_HASHED;
    hf__add_operand(in, scope, args.items[0], depth, &out->text);
    out->derivation = name.size == 3 ? HF_MD5 : HF_SHA256;
    out->derivation_known = ours && (name.size == 3 || memcmp(name.text + 3, "256", 3) == 0);
    return true;
}

/* :nightly of Ruby and Elixir. */
static bool evaluate_symbol(const hf__scope *scope, hf__piece piece, hf__worth *out)
{
    size_t size = 1;

    if (!scope->code || (hf__eval_language(scope) & (HF__LANG_RUBY | HF__LANG_ELIXIR)) == 0 ||
        piece.size < 2 || piece.text[0] != ':')
        return false;
    while (size < piece.size &&
           (isalnum((unsigned char)piece.text[size]) || strchr("_?!", piece.text[size]) != NULL))
        size++;
    if (size < piece.size)
        return false;
    out->kind = HF__VALUE_TEXT;
    hf__buf_add(&out->text, piece.text + 1, size - 1);
    return true;
}

/* Evaluates a piece that has no layers left. */
static void evaluate_bare(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                          unsigned depth, hf__worth *out)
{
    if (piece.size == 0 || evaluate_hole(in, scope, piece, depth, out) ||
        hf__evaluate_piped(in, scope, piece, depth, out) ||
        hf__evaluate_item(in, scope, piece, depth, out) || evaluate_number(scope, piece, out) ||
        evaluate_symbol(scope, piece, out) || hf__evaluate_string(in, scope, piece, depth, out) ||
        hf__evaluate_closure(in, scope, piece, depth, out) ||
        hf__evaluate_choice(in, scope, piece, depth, out) ||
        hf__evaluate_default(in, scope, piece, depth, out) ||
        evaluate_sql_hash(in, scope, piece, depth, out) ||
        hf__evaluate_percent(in, scope, piece, depth, out) ||
        hf__evaluate_joined(in, scope, piece, depth, out) ||
        hf__evaluate_call(in, scope, piece, depth, out))
        return;
    hf__evaluate_name(in, scope, piece, depth, out);
}

void hf__evaluate(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                  hf__worth *out)
{
    if (depth > HF__EVAL_DEPTH_MAX || in->steps++ > HF__EVAL_STEPS_MAX)
        return;
    piece = hf__piece_trim(piece);
    for (int i = 0; i < LAYERS_MAX && unwrap(scope, &piece); i++)
        continue;
    evaluate_bare(in, scope, piece, depth, out);
    if (out->kind == HF__VALUE_UNKNOWN && scope->code)
        hf__evaluate_around_hash(in, scope, piece, depth, out);
}

void hf__value_read(const hf__scope *scope, hf__piece piece, hf__worth *value, size_t *block)
{
    struct hf__eval in = {.block = block};

    *value = (hf__worth){0};
    hf__evaluate(&in, scope, piece, 0, value);
    scope->project->broken = scope->project->broken || value->text.broken;
}

void hf__value_apply(const hf__scope *scope, const hf__worth *form, const hf__piece *args,
                     size_t count, hf__worth *value, size_t *block)
{
    struct hf__eval in = {.block = block};

    *value = (hf__worth){0};
    hf__eval_apply(&in, scope, form, args, count, 0, value);
    scope->project->broken = scope->project->broken || value->text.broken;
}

void hf__value_of_lambda(const hf__scope *scope, const hf__lambda *lambda, hf__worth *value)
{
    size_t none = HF__NO_BLOCK;
    struct hf__eval in = {.block = &none};

    *value = (hf__worth){0};
    hf__lambda_value(&in, scope, lambda, 0, value);
}

void hf__value_of_function(const hf__scope *scope, size_t block, hf__worth *value)
{
    size_t none = HF__NO_BLOCK;
    struct hf__eval in = {.block = &none};

    *value = (hf__worth){0};
    hf__function_value(&in, scope, block, 0, value);
}
