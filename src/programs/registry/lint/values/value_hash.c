#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "programs/registry/lint/values/value_eval.h"

/* ---- Calls that hash ------------------------------------------------------------------------- */

static bool is_name(hf__piece name, const char *text)
{
    return name.size == strlen(text) && strncasecmp(name.text, text, name.size) == 0;
}

static void set_hashed(hf__worth *out, hf_derivation like)
{
    out->kind = HF__VALUE_HASHED;
    out->derivation = like;
    out->derivation_known = false;
    out->unsure = true;
}

/* The algorithm that the source names; HF_FIXED: one of which no derivation of ours is made. */
static hf_derivation algorithm(hf__piece source)
{
    for (size_t i = 0; i + 6 <= source.size; i++) {
        if (strncasecmp(source.text + i, "sha256", 6) == 0 ||
            strncasecmp(source.text + i, "sum256", 6) == 0)
            return HF_SHA256;
        if (strncasecmp(source.text + i, "md5", 3) == 0)
            return HF_MD5;
    }
    return HF_FIXED;
}

static bool evaluate_object(struct hf__eval *in, const hf__scope *scope, hf__piece receiver,
                            hf__piece name, unsigned depth, hf__worth *out);

/*
 * sha256(x), crc32(x), hash('sha256', x), createHash('sha256').update(x), x.hashCode(): the label
 * is what is hashed. Which bits of the hash make the key is seen further out, if at all.
 */
bool hf__evaluate_digest(struct hf__eval *in, const hf__scope *scope, hf__piece receiver,
                         hf__piece name, const hf__pieces *args, unsigned depth, hf__worth *out)
{
    hf__pcre_match match;
    hf__piece label = args->count > 0 ? args->items[0] : (hf__piece){"", 0};
    hf__piece source = {receiver.size > 0 ? receiver.text : name.text, receiver.size + name.size};

    if ((args->count == 0 || is_name(name, "sum")) &&
        evaluate_object(in, scope, receiver, name, depth, out))
        return true;
    if (!hf__eval_matches(scope, HF__VALUE_IS_DIGEST, name, &match))
        return false;
    if (is_name(name, "hash") || is_name(name, "phash2")) {
        if (args->count > 1 && !is_name(name, "phash2")) {
            source = args->items[0];
            label = args->items[1];
        } else if (hf__eval_language(scope) != HF__LANG_PYTHON && !is_name(name, "phash2") &&
                   !(receiver.size > 2 &&
                     memcmp(receiver.text + receiver.size - 2, "::", 2) == 0)) {
            return false;
        }
    } else if (is_name(name, "hashcode") || is_name(name, "gethashcode")) {
        if (args->count > 0)
            return false;
        label = hf__piece_owner(receiver);
    } else if (is_name(name, "update") &&
               memmem(receiver.text, receiver.size, "Hash(", 5) == NULL) {
        return false;
    } else if (args->count == 0 || /* digest('hex') */
               (hf__eval_language(scope) == HF__LANG_JS && is_name(name, "digest"))) {
        return false;
    }
    set_hashed(out, algorithm(source));
    hf__add_hashed(in, scope, label, depth, out);
    if (is_name(name, "hashcode") &&
        (hf__eval_language(scope) & (HF__LANG_JAVA | HF__LANG_KOTLIN)) != 0) {
        out->derivation = HF_JAVA_HASHCODE;
        out->derivation_known = true;
        out->unsure = false;
    }
    return true;
}

/* ---- What is made of a hash ------------------------------------------------------------------ */

static bool has(hf__piece piece, const char *text)
{
    return memmem(piece.text, piece.size, text, strlen(text)) != NULL;
}

/* Are the first 8 bytes taken as a signed number, the highest first? As the languages write it. */
static bool takes_first_eight(hf__piece piece)
{
    static const char *const ways[][3] = {
        {"from_bytes", "[:8]", "signed=True"},
        {"unpack", ">q", "[:8]"},
        {"readBigInt64BE(", "", ""},
        {"BigEndian.Uint64(", "", ""},
        {"unpack1(", "q>", ""},
        {"ByteBuffer.wrap(", "getLong(", ""},
        {"ReadInt64BigEndian(", "", ""},
        {"i64::from_be_bytes(", "", ""},
    };

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (has(piece, ways[i][0]) && has(piece, ways[i][1]) && has(piece, ways[i][2]))
            return i != 0 || has(piece, "\"big\"") || has(piece, "'big'");
    return false;
}

/* Takes the first of the parts that is a hash. */
static bool take_hashed(struct hf__eval *in, const hf__scope *scope, hf__piece part, unsigned depth,
                        hf__worth *out)
{
    hf__worth value = {0};
    size_t block = *in->block;

    part = hf__piece_trim(part);
    if (part.size > 0 && !isdigit((unsigned char)part.text[0]) &&
        !hf__piece_is_literal(part, false))
        hf__evaluate(in, scope, part, depth + 1, &value);
    if (value.kind == HF__VALUE_HASHED) {
        *out = value;
        return true;
    }
    *in->block = block; /* what is left aside does not matter to the key */
    hf__value_free(&value);
    return false;
}

/* The parts of an arithmetic expression, or of x[…], x.f(a, b). */
static bool take_from_parts(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                            unsigned depth, hf__worth *out)
{
    hf__pieces args = {0};
    size_t start = 0;
    size_t last = 0; /* the bracket that ends the piece */

    for (size_t at = 0; at < piece.size;) {
        hf__piece rest = {piece.text + at, piece.size - at};
        size_t step = hf__piece_step(rest, false);
        if (strchr("%&^|+-*<>/", rest.text[0]) != NULL && at > start) {
            if (take_hashed(in, scope, (hf__piece){piece.text + start, at - start}, depth, out))
                return true;
            start = at + 1;
        }
        if (step > 1 && at + step == piece.size && strchr("([", rest.text[0]) != NULL)
            last = at;
        at += step;
    }
    if (start > 0)
        return take_hashed(in, scope, (hf__piece){piece.text + start, piece.size - start}, depth,
                           out);
    if (last == 0)
        return false;
    hf__piece callee = hf__piece_trim((hf__piece){piece.text, last});
    size_t name = callee.size;
    while (name > 0 && (isalnum((unsigned char)callee.text[name - 1]) ||
                        strchr("_!?", callee.text[name - 1]) != NULL))
        name--;
    hf__piece owner =
        piece.text[last] == '[' ? callee : hf__piece_owner((hf__piece){callee.text, name});
    if (take_hashed(in, scope, owner, depth, out))
        return true;
    hf__piece_split((hf__piece){piece.text + last + 1, piece.size - last - 2}, false, &args);
    for (size_t i = 0; piece.text[last] == '(' && i < args.count; i++)
        if (take_hashed(in, scope, args.items[i], depth, out))
            return true;
    return false;
}

void hf__evaluate_around_hash(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                              unsigned depth, hf__worth *out)
{
    if (!take_from_parts(in, scope, piece, depth, out))
        return;
    out->derivation_known = out->unsure &&
                            (out->derivation == HF_SHA256 || out->derivation == HF_MD5) &&
                            takes_first_eight(piece);
    out->unsure = !out->derivation_known;
}

/* ---- Functions that hash --------------------------------------------------------------------- */

static bool body_has(const hf__scope *scope, size_t block, const char *text)
{
    const hf__function *function = &scope->functions[block];
    const hf__unit *unit = scope->unit;
    const char *end = unit->text + unit->blocks[block].end;

    for (const char *at = unit->text + function->body;
         (at = memmem(at, (size_t)(end - at), text, strlen(text))) != NULL; at++)
        if (unit->classes[(size_t)(at - unit->text)] == HF__CODE)
            return true;
    return false;
}

static bool body_has_any(const hf__scope *scope, size_t block, const char *const *texts)
{
    while (*texts != NULL && !body_has(scope, block, *texts))
        texts++;
    return *texts != NULL;
}

/* Calls that give a hash what it hashes. The label is the argument, or what stands before. */
static const struct {
    const char *call;
    unsigned languages;
    bool before;       /* x.hash(&mut h) */
    bool object_first; /* io.WriteString(h, x) */
} writes[] = {
    {".Write(", HF__LANG_GO, false, false},
    {".WriteString(", HF__LANG_GO, false, false},
    {"io.WriteString(", HF__LANG_GO, false, true},
    {".hash(&mut", HF__LANG_RUST, true, false},
    {".update(", HF__LANG_ANY & ~(unsigned)HF__LANG_GO, false, false},
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* What the call at this place writes into the object, of which a size of 0 means any. */
static hf__piece written(const hf__unit *unit, size_t at, hf__piece object)
{
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        size_t size = strlen(writes[i].call);
        hf__pieces args = {0};
        if ((writes[i].languages & (unsigned)unit->syntax->id) == 0 || unit->size - at < size + 1 ||
            memcmp(unit->text + at, writes[i].call, size) != 0)
            continue;
        size_t start = at;
        while (start > 0 && (is_word(unit->text[start - 1]) ||
                             (writes[i].before && strchr(".&", unit->text[start - 1]) != NULL)))
            start--;
        hf__piece left = {unit->text + start, at - start};
        if (writes[i].before)
            return left;
        hf__piece call = {unit->text + at + size - 1, unit->size - at - size + 1};
        size_t close = hf__piece_close(call, false);
        if (close > call.size || close < 3)
            continue;
        hf__piece_split((hf__piece){call.text + 1, close - 2}, false, &args);
        hf__piece into = writes[i].object_first ? args.items[0] : left;
        size_t which = writes[i].object_first;
        if (args.count <= which ||
            (object.size > 0 &&
             (into.size != object.size || memcmp(into.text, object.text, into.size) != 0)))
            continue;
        return args.items[which];
    }
    return (hf__piece){"", 0};
}

/* Adds all that is written into a hash between two places. False: nothing is. */
static bool add_written(struct hf__eval *in, const hf__scope *scope, size_t from, size_t to,
                        hf__piece object, unsigned depth, hf__buf *text)
{
    hf__scope inside = *scope;
    bool any = false;

    inside.code = true;
    inside.string_end = SIZE_MAX;
    for (size_t at = from; at < to; at++) {
        hf__piece piece = {"", 0};
        if (scope->unit->classes[at] == HF__CODE && strchr(".i", scope->unit->text[at]) != NULL)
            piece = written(scope->unit, at, object);
        if (piece.size == 0)
            continue;
        inside.at = at;
        hf__add_operand(in, &inside, piece, depth, text);
        any = true;
    }
    return any;
}

/* id := h.Sum32(), where h was written to before: the label is what was written. */
static bool evaluate_object(struct hf__eval *in, const hf__scope *scope, hf__piece receiver,
                            hf__piece name, unsigned depth, hf__worth *out)
{
    static const char *const words[] = {"sum",    "sum32",     "sum64",    "sum128", "digest",
                                        "finish", "hexdigest", "finalize", NULL};
    const hf__unit *unit = scope->unit;
    hf__piece object = hf__piece_owner(receiver);
    size_t block = hf__unit_block(unit, scope->at);
    const char *const *word = words;

    while (*word != NULL && !is_name(name, *word))
        word++;
    for (size_t i = 0; i < object.size; i++)
        if (!is_word(object.text[i]))
            return false;
    if (*word == NULL || object.size == 0 || block == HF__NO_BLOCK || !scope->code)
        return false;
    set_hashed(out, HF_FIXED);
    if (add_written(in, scope, unit->blocks[block].start, scope->at, object, depth, &out->text))
        return true;
    hf__value_free(out);
    return false;
}

/* The text that is hashed: what is written, or the only parameter, over which a loop goes. */
static void add_hashed(struct hf__eval *in, const hf__scope *scope, size_t block, unsigned depth,
                       hf__buf *text)
{
    static const char *const packages[] = {"New32a(", "New64a(", "New32(",
                                           "New64(",  ".New()",  NULL};

    if (body_has_any(scope, block, packages)) {
        if (!add_written(in, scope, scope->functions[block].body, scope->unit->blocks[block].end,
                         (hf__piece){"", 0}, depth, text))
            hf__add_hole(text);
    } else if (scope->functions[block].param_count == 1) {
        hf__buf_add(text, (char[]){HF__LABEL_PARAM, '0'}, 2);
    } else {
        hf__add_hole(text);
    }
}

/*
 * FNV-1a is recognised by its constants. A hash of 32 bits is a key of ours only where the code
 * makes it a signed one, as PostgreSQL's int4 is.
 */
static bool evaluate_fnv(struct hf__eval *in, const hf__scope *scope, size_t block, unsigned depth,
                         hf__worth *out)
{
    static const char *const short_ones[] = {"16777619", "0x01000193", "0x1000193", "New32a(",
                                             NULL};
    static const char *const long_ones[] = {"1099511628211",      "0x100000001b3", "0x100000001B3",
                                            "0x00000100000001b3", "New64a(",       NULL};
    static const char *const is_signed[] = {"| 0",         "|0",         "int32(", "c_int32",
                                            "0x100000000", "1 << 32",    ">> 0",   "4294967296",
                                            "as i32",      "Int32Array", NULL};
    static const char *const is_unsigned[] = {">>> 0", ">>>0", NULL};
    const hf__function *function = &scope->functions[block];
    bool is_long = body_has_any(scope, block, long_ones);

    if ((!is_long && !body_has_any(scope, block, short_ones)) || function->param_count == 0)
        return false;
    out->kind = HF__VALUE_HASHED;
    add_hashed(in, scope, block, depth, &out->text);
    out->derivation = is_long                                ? HF_FNV1A64
                      : body_has(scope, block, "charCodeAt") ? HF_FNV1A32_JS
                                                             : HF_FNV1A32;
    out->derivation_known = is_long || (body_has_any(scope, block, is_signed) &&
                                        !body_has_any(scope, block, is_unsigned));
    return true;
}

/* h.Write([]byte(x)) of Go, x.hash(&mut h) of Rust: the function returns what its hasher says. */
static bool evaluate_hasher_object(struct hf__eval *in, const hf__scope *scope, size_t block,
                                   unsigned depth, hf__worth *out)
{
    const hf__unit *unit = scope->unit;
    size_t start = scope->functions[block].body;
    hf__piece body = {unit->text + start, unit->blocks[block].end - start};
    bool go = unit->syntax->id == HF__LANG_GO && has(body, ".Sum");
    bool rust =
        unit->syntax->id == HF__LANG_RUST && (has(body, ".finish()") || has(body, ".finalize()"));

    if ((!go && !rust) || !add_written(in, scope, start, unit->blocks[block].end,
                                       (hf__piece){"", 0}, depth, &out->text))
        return false;
    hf__buf text = out->text;
    set_hashed(out, algorithm(body));
    out->text = text;
    out->derivation_known = out->derivation != HF_FIXED && takes_first_eight(body);
    out->unsure = !out->derivation_known && out->derivation != HF_FIXED;
    return true;
}

/* A function that calls itself a hash and goes over the characters of its first parameter. */
static bool evaluate_home_made(const hf__scope *scope, size_t block, hf__worth *out)
{
    static const char *const loops[] = {
        "charCodeAt(", "codePointAt(", "charAt(",   "ord(",         "range ",
        ".bytes()",    ".chars()",     "each_byte", ".codeUnitAt(", NULL};
    const hf__function *function = &scope->functions[block];
    hf__piece name = {scope->unit->text + function->name, function->name_size};
    bool hash = false;

    for (size_t i = 0; i + 4 <= name.size; i++)
        hash = hash || strncasecmp(name.text + i, "hash", 4) == 0;
    if (!hash || function->param_count == 0 || !body_has_any(scope, block, loops))
        return false;
    out->kind = HF__VALUE_HASHED;
    out->derivation = HF_FIXED;
    out->derivation_known = false;
    hf__buf_add(&out->text, (char[]){HF__LABEL_PARAM, '0'}, 2);
    return true;
}

bool hf__evaluate_hasher(struct hf__eval *in, const hf__scope *scope, size_t block, unsigned depth,
                         hf__worth *out)
{
    return evaluate_fnv(in, scope, block, depth, out) ||
           evaluate_hasher_object(in, scope, block, depth, out) ||
           evaluate_home_made(scope, block, out);
}
