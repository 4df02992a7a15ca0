/* Expressions that have one of several values: items of a list, branches of a condition. */
#include <ctype.h>
#include <string.h>

#include "programs/registry/lint/values/value_eval.h"

/* Evaluates one more expression that may be meant. */
static void join(struct hf__eval *in, const hf__scope *scope, hf__piece piece, unsigned depth,
                 bool *first, hf__worth *out)
{
    hf__worth value = {0};

    if (hf__is_nothing(hf__piece_trim(piece)))
        return;
    hf__evaluate(in, scope, piece, depth + 1, &value);
    if (*first)
        *out = value;
    else
        hf__value_join(out, &value);
    *first = false;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

/* The items of a list that is written down: [a, b], []string{a, b}, List.of(a, b), %w[a b]. */
static bool read_items(hf__piece list, hf__pieces *items)
{
    static const char *const makers[] = {"", "of", "listOf", "asList", "setOf", "array", "vec!"};
    size_t open = 0;

    if (list.size > 4 && memcmp(list.text, "%w[", 3) == 0) {
        for (size_t at = 3, size; at < list.size - 1 && items->count < HF__PIECES_MAX; at += size) {
            at += strspn(list.text + at, " \n\t");
            size = strcspn(list.text + at, " \n\t]");
            if (size > 0)
                items->items[items->count++] = (hf__piece){list.text + at, size};
            size += size == 0;
        }
        return items->count > 0;
    }
    while (open < list.size && list.text[open] == '&')
        open++;
    if (list.size - open > 2 && memcmp(list.text + open, "[]", 2) == 0) /* []string{…} */
        open += strcspn(list.text + open, "{");
    size_t name = open;
    while (open < list.size &&
           (isalnum((unsigned char)list.text[open]) || strchr("_.!", list.text[open]) != NULL))
        open++;
    if (open + 2 > list.size || strchr("[({", list.text[open]) == NULL ||
        hf__piece_close((hf__piece){list.text + open, list.size - open}, false) != list.size - open)
        return false;
    while (name < open && memchr(list.text + name, '.', open - name) != NULL)
        name++;
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++)
        if (strlen(makers[i]) == open - name &&
            memcmp(makers[i], list.text + name, open - name) == 0) {
            hf__piece_split((hf__piece){list.text + open + 1, list.size - open - 2}, false, items);
            return true;
        }
    return false;
}

void hf__evaluate_items(struct hf__eval *in, const hf__scope *scope, hf__piece list, unsigned depth,
                        hf__worth *out)
{
    hf__pieces items = {0};
    hf__pcre_match match;
    bool first = true;

    list = hf__piece_trim(list);
    if (depth > HF__EVAL_DEPTH_MAX || in->steps++ > HF__EVAL_STEPS_MAX)
        return;
    if (read_items(list, &items)) {
        for (size_t i = 0; i < items.count; i++) {
            bool word = list.text[0] == '%';
            hf__worth value = {.kind = word ? HF__VALUE_TEXT : HF__VALUE_UNKNOWN};
            if (!word) {
                join(in, scope, items.items[i], depth, &first, out);
                continue;
            }
            hf__buf_add(&value.text, items.items[i].text, items.items[i].size);
            if (first)
                *out = value;
            else
                hf__value_join(out, &value);
            first = false;
        }
        if (hf__value_count(out) > HF__VALUES_MAX || items.count == HF__PIECES_MAX)
            hf__value_free(out); /* more than are kept: nobody can list them */
        return;
    }
    if (!hf__eval_matches(scope, HF__VALUE_IS_NAME, list, &match))
        return;
    hf__piece name = hf__eval_group(list, &match, 2);
    bool member = hf__eval_group(list, &match, 1).size > 0;
    const hf__assignment *assigned =
        hf__assignments_find(scope->names, scope->unit, scope->at, member, name.text, name.size);
    if (assigned != NULL && !assigned->counted && !assigned->each) {
        hf__scope there = *scope;
        there.at = assigned->name;
        hf__evaluate_items(in, &there,
                           (hf__piece){scope->unit->text + assigned->value, assigned->value_size},
                           depth + 1, out);
        return;
    }
    hf__evaluate(in, scope, list, depth + 1, out);
    if (hf__value_param(out) < 0)
        hf__value_free(out);
    else
        out->each = true;
}

/* ---- Closures -------------------------------------------------------------------------------- */

/* LazyLock::new(|| { let x = …; f(x) }) of Rust: the last expression counts, seen from there. */
bool hf__evaluate_closure(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                          unsigned depth, hf__worth *out)
{
    const hf__unit *unit = scope->unit;
    hf__scope inside = *scope;
    size_t last = 0;

    if (!scope->code || hf__eval_language(scope) != HF__LANG_RUST || piece.size < 3 ||
        memcmp(piece.text, "||", 2) != 0)
        return false;
    hf__piece body = hf__piece_trim((hf__piece){piece.text + 2, piece.size - 2});
    if (body.size > 2 && body.text[0] == '{')
        body = (hf__piece){body.text + 1, body.size - 2};
    for (size_t at = 0; at < body.size;
         at += hf__piece_step((hf__piece){body.text + at, body.size - at}, false))
        last = body.text[at] == ';' && at + 1 < body.size ? at + 1 : last;
    body = hf__piece_trim((hf__piece){body.text + last, body.size - last});
    if (body.text >= unit->text && body.text < unit->text + unit->size)
        inside.at = (size_t)(body.text - unit->text);
    hf__evaluate(in, &inside, body, depth + 1, out);
    return true;
}

/* ---- Conditions ------------------------------------------------------------------------------ */

#define TERNARY                                                                                    \
    (HF__LANG_JS | HF__LANG_JAVA | HF__LANG_CSHARP | HF__LANG_PHP | HF__LANG_C | HF__LANG_RUBY |   \
     HF__LANG_PERL)

/* Where `word` stands in no bracket, at or after `from`; the piece's size: nowhere. */
static size_t find_word(hf__piece piece, size_t from, const char *word)
{
    size_t size = strlen(word);

    for (size_t at = from; at < piece.size;
         at += hf__piece_step((hf__piece){piece.text + at, piece.size - at}, false))
        if (piece.size - at > size && memcmp(piece.text + at, word, size) == 0)
            return at;
    return piece.size;
}

/* if c { a } else { b } of Rust, if (c) a else b of Kotlin. */
static bool read_if(hf__piece piece, bool braces, hf__piece *a, hf__piece *b)
{
    size_t otherwise = find_word(piece, 0, "else ");
    size_t open = braces ? find_word(piece, 0, "{") : find_word(piece, 0, "(");

    if (piece.size < 6 || memcmp(piece.text, "if", 2) != 0 || otherwise >= piece.size ||
        open >= otherwise)
        return false;
    size_t step = hf__piece_step((hf__piece){piece.text + open, piece.size - open}, false);
    *a = braces ? (hf__piece){piece.text + open, step}
                : (hf__piece){piece.text + open + step, otherwise - open - step};
    *b = (hf__piece){piece.text + otherwise + 5, piece.size - otherwise - 5};
    for (size_t i = 0; i < 2; i++) {
        hf__piece *side = i == 0 ? a : b;
        *side = hf__piece_trim(*side);
        if (side->size > 2 && side->text[0] == '{')
            *side = hf__piece_trim((hf__piece){side->text + 1, side->size - 2});
    }
    return true;
}

static bool read_choice(unsigned language, hf__piece piece, hf__piece *a, hf__piece *b)
{
    size_t mark;
    size_t colon;

    if (language == HF__LANG_PYTHON) {
        mark = find_word(piece, 0, " if ");
        colon = find_word(piece, mark, " else ");
        if (mark == 0 || colon >= piece.size)
            return false;
        *a = (hf__piece){piece.text, mark};
        *b = (hf__piece){piece.text + colon + 6, piece.size - colon - 6};
        return true;
    }
    if (language == HF__LANG_RUST || language == HF__LANG_KOTLIN)
        return read_if(piece, language == HF__LANG_RUST, a, b);
    if ((language & TERNARY) == 0)
        return false;
    mark = find_word(piece, 0, "?");
    if (mark == 0 || mark + 1 >= piece.size || strchr("?.:", piece.text[mark + 1]) != NULL)
        return false;
    colon = find_word(piece, mark, ":");
    while (colon + 1 < piece.size && piece.text[colon + 1] == ':') /* X::Y */
        colon = find_word(piece, colon + 2, ":");
    if (colon + 1 >= piece.size)
        return false;
    *a = (hf__piece){piece.text + mark + 1, colon - mark - 1};
    *b = (hf__piece){piece.text + colon + 1, piece.size - colon - 1};
    return true;
}

bool hf__evaluate_choice(struct hf__eval *in, const hf__scope *scope, hf__piece piece,
                         unsigned depth, hf__worth *out)
{
    hf__piece a;
    hf__piece b;
    bool first = true;

    if (!scope->code || !read_choice(hf__eval_language(scope), piece, &a, &b))
        return false;
    join(in, scope, a, depth, &first, out);
    join(in, scope, b, depth, &first, out);
    return true;
}
