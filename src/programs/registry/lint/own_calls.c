#include "programs/registry/lint/own_calls.h"

#include <ctype.h>
#include <string.h>

const char *const hf__own_import =
    "\\b(?:import|from)\\s+holdfast\\b|[\"'](?:[\\w./-]*/)?holdfast(?:/\\w+)?[\"']|"
    "\\bholdfast/holdfast\\.h\\b";

/* What one label, number or pair is written as. */
struct target {
    hf__piece values[2];
    bool pair;
    hf__piece how; /* the derivation; size 0: it is not given */
};

static bool starts_with(hf__piece piece, const char *text)
{
    size_t size = strlen(text);

    return piece.size >= size && memcmp(piece.text, text, size) == 0;
}

/* ---- Derivations ----------------------------------------------------------------------------- */

/* Letters and digits alone: 'fnv1a32-js', HF_FNV1A32_JS and holdfast.FNV1a32JS are the same. */
static size_t letters_of(const char *text, size_t size, char *out, size_t room)
{
    size_t count = 0;

    for (size_t i = 0; i < size && count + 1 < room; i++)
        if (isalnum((unsigned char)text[i]))
            out[count++] = (char)tolower((unsigned char)text[i]);
    out[count] = '\0';
    return count;
}

static bool find_derivation(hf__piece how, hf_derivation *found)
{
    char wanted[40];
    char name[40];
    size_t start = how.size;

    while (start > 0 && how.text[start - 1] != '.')
        start--;
    letters_of(how.text + start, how.size - start, wanted, sizeof wanted);
    const char *bare = strncmp(wanted, "hf", 2) == 0 ? wanted + 2 : wanted;
    for (int i = 0; hf_derivation_name((hf_derivation)i) != NULL; i++) {
        const char *known = hf_derivation_name((hf_derivation)i);
        letters_of(known, strlen(known), name, sizeof name);
        if (strcmp(name, bare) == 0) {
            *found = (hf_derivation)i;
            return true;
        }
    }
    return false;
}

/* ---- Targets --------------------------------------------------------------------------------- */

/* The arguments of Label(…), holdfast.LabelAs(…), Key(…), Pair(…); false: it is none of these. */
static bool read_maker(hf__piece piece, struct target *target)
{
    static const char *const makers[] = {"Label", "LabelAs", "Key", "Pair"};
    size_t open = hf__piece_last_call(piece, false);
    size_t start = open;
    hf__pieces args = {0};
    bool known = false;

    while (start > 0 && isalnum((unsigned char)piece.text[start - 1]))
        start--;
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++)
        known = known || (open - start == strlen(makers[i]) &&
                          memcmp(piece.text + start, makers[i], open - start) == 0);
    if (!known)
        return false;
    target->pair = piece.text[start] == 'P';
    hf__piece_split((hf__piece){piece.text + open + 1, piece.size - open - 2}, false, &args);
    args.count = hf__pieces_by_name(args.items, args.count, HF__PIECES_MAX,
                                    target->pair ? "" : "label,derivation,");
    if (args.count > 0)
        target->values[0] = args.items[0];
    if (args.count > 1)
        *(target->pair ? &target->values[1] : &target->how) = args.items[1];
    return true;
}

/* What is between the brackets of a list: [a, b], []holdfast.Target{a, b}, Labels(a, b). */
static bool read_list(hf__piece piece, hf__pieces *items)
{
    size_t open = 0;
    bool labels = false;

    if (starts_with(piece, "[]"))
        open = 2;
    while (open < piece.size &&
           (isalnum((unsigned char)piece.text[open]) || piece.text[open] == '.'))
        open++;
    labels = open >= 6 && memcmp(piece.text + open - 6, "Labels", 6) == 0;
    hf__piece rest = {piece.text + open, piece.size - open};
    if (rest.size < 2 || hf__piece_close(rest, false) != rest.size ||
        !((rest.text[0] == '[' && open == 0) || (rest.text[0] == '(' && labels) ||
          (rest.text[0] == '{' && starts_with(piece, "[]"))))
        return false;
    hf__piece_split((hf__piece){rest.text + 1, rest.size - 2}, false, items);
    return true;
}

static struct target read_target(hf__piece piece, bool python)
{
    struct target target = {.values = {piece}};
    hf__piece field;
    hf__pieces items = {0};

    if (read_maker(piece, &target))
        return target;
    if (python && piece.size > 2 && piece.text[0] == '(' &&
        hf__piece_close(piece, false) == piece.size) {
        hf__piece_split((hf__piece){piece.text + 1, piece.size - 2}, false, &items);
        if (items.count == 2)
            target = (struct target){.values = {items.items[0], items.items[1]}, .pair = true};
    } else if (hf__piece_field(piece, "pair", &field) && field.size > 0 &&
               read_list(field, &items) && items.count == 2) {
        target = (struct target){.values = {items.items[0], items.items[1]}, .pair = true};
    } else if (hf__piece_field(piece, "label", &field) && field.size > 0) {
        target.values[0] = field;
        hf__piece_field(piece, "as", &target.how);
    }
    return target;
}

static hf_status read_one(const hf__scope *scope, const hf__use_kind *kind, struct target target,
                          hf__lock_key *key, hf_error *err)
{
    hf__worth values[2] = {{0}};
    size_t block = HF__NO_BLOCK;
    hf_derivation given = HF_SHA256;

    hf__value_read(scope, target.values[0], &values[0], &block);
    if (target.pair)
        hf__value_read(scope, target.values[1], &values[1], &block);
    hf_status status = hf__lock_key_make(values, target.pair, true, block, key, err);
    if (status != HF_OK || key->kind != HF__KEY_LABEL)
        return status;
    if (target.how.size > 0) {
        key->derivation_known = find_derivation(target.how, &given);
        key->hash_unsure = !key->derivation_known;
        key->derivation = given;
    } else if (kind->derivation != NULL) {
        key->derivation_known = hf_derivation_parse(kind->derivation, &key->derivation, NULL) == 0;
    }
    return HF_OK;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* A name that stands for a list is that list; the body of a lambda is what it returns. */
static hf__piece look_through(const hf__scope *scope, hf__piece piece)
{
    size_t size = 0;

    if (starts_with(piece, "lambda")) {
        hf__piece head = hf__piece_until(piece, ":");
        return head.size < piece.size ? hf__piece_trim((hf__piece){piece.text + head.size + 1,
                                                                   piece.size - head.size - 1})
                                      : piece;
    }
    while (size < piece.size &&
           (isalnum((unsigned char)piece.text[size]) || piece.text[size] == '_'))
        size++;
    if (size < piece.size || !scope->code)
        return piece;
    const hf__assignment *assigned =
        hf__assignments_find(scope->names, scope->unit, scope->at, false, piece.text, piece.size);
    hf__pieces items = {0};
    hf__piece value = assigned != NULL && !assigned->counted
                          ? (hf__piece){scope->unit->text + assigned->value, assigned->value_size}
                          : piece;
    return read_list(value, &items) ? value : piece;
}

/* lock.transact(fn) has no labels: what stands in their place is the function. */
static bool is_no_target(hf__piece piece)
{
    static const char *const words[] = {"func(", "async ", "function", "nil",  "None",
                                        "null",  "(tx",    "()",       "tx =>"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (starts_with(piece, words[i]))
            return true;
    return piece.size == 0;
}

/* holdfast.As(how) may stand among the options of Go. */
static hf__piece option_as(const hf__piece *args, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (starts_with(args[i], "holdfast.As(") && args[i].text[args[i].size - 1] == ')')
            return (hf__piece){args[i].text + 12, args[i].size - 13};
    return (hf__piece){"", 0};
}

hf_status hf__own_keys_read(const hf__scope *scope, const hf__use_kind *kind, const hf__args *args,
                            hf__lock_key *keys, size_t *count, hf_error *err)
{
    hf__piece pieces[HF__ARGS_MAX] = {{0}};
    hf__pieces items = {0};
    size_t given = args->count < HF__ARGS_MAX ? args->count : HF__ARGS_MAX;
    bool python = scope->code && scope->unit->syntax->id == HF__LANG_PYTHON;
    hf_status status = HF_OK;

    *count = 0;
    if (args->text.broken)
        return hf__no_memory(err);
    for (size_t i = 0; i < given && args->text.data != NULL; i++)
        pieces[i] = hf__piece_trim((hf__piece){args->text.data + args->start[i], args->size[i]});
    given = hf__pieces_by_name(pieces, given, HF__ARGS_MAX, kind->params);
    if (given <= kind->argument || is_no_target(pieces[kind->argument]))
        return HF_OK;
    hf__piece wanted = look_through(scope, pieces[kind->argument]);
    if (!scope->code || !read_list(wanted, &items))
        items = (hf__pieces){.items = {wanted}, .count = 1};
    hf__piece how =
        kind->how > 0 && kind->how < given ? pieces[kind->how] : option_as(pieces, given);
    for (size_t i = 0; status == HF_OK && i < items.count; i++) {
        struct target target = scope->code ? read_target(items.items[i], python)
                                           : (struct target){.values = {items.items[i]}};
        if (target.how.size == 0)
            target.how = how;
        status = read_one(scope, kind, target, &keys[*count], err);
        *count += status == HF_OK;
    }
    return status;
}
