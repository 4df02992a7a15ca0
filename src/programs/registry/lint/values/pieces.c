#include "programs/registry/lint/values/pieces.h"

#include <ctype.h>
#include <string.h>

#include "programs/registry/lint/text/args.h"
#include "programs/registry/lint/text/functions.h"

static hf__piece from(hf__piece piece, size_t at)
{
    return (hf__piece){piece.text + at, piece.size - at};
}

hf__piece hf__piece_trim(hf__piece piece)
{
    while (piece.size > 0 && isspace((unsigned char)piece.text[0])) {
        piece.text++;
        piece.size--;
    }
    while (piece.size > 0 && isspace((unsigned char)piece.text[piece.size - 1]))
        piece.size--;
    return piece;
}

hf__piece hf__piece_owner(hf__piece receiver)
{
    while (receiver.size > 0 && strchr(".:>?-", receiver.text[receiver.size - 1]) != NULL)
        receiver.size--;
    return receiver;
}

size_t hf__piece_hole(hf__piece piece)
{
    const char *end = memchr(piece.text, HF__HOLE_CLOSE, piece.size);

    return end != NULL ? (size_t)(end - piece.text) + 1 : piece.size;
}

size_t hf__piece_braces(hf__piece piece)
{
    size_t depth = 0;
    size_t size = 0;

    do {
        depth += piece.text[size] == '{';
        depth -= piece.text[size] == '}';
        size++;
    } while (size < piece.size && depth > 0);
    return size;
}

hf__piece hf__piece_until(hf__piece piece, const char *characters)
{
    size_t at = 0;

    while (at < piece.size &&
           (piece.text[at] == '\0' || strchr(characters, piece.text[at]) == NULL))
        at += hf__piece_step(from(piece, at), false);
    return (hf__piece){piece.text, at < piece.size ? at : piece.size};
}

/* ---- Literals -------------------------------------------------------------------------------- */

/* Looks for the closing quotes; returns the place after them, or 0. */
static size_t find_close(hf__piece piece, size_t at, const char *close, size_t size, bool raw,
                         bool doubled)
{
    for (; at + size <= piece.size; at++) {
        if (piece.text[at] == HF__HOLE_OPEN) {
            at += hf__piece_hole(from(piece, at)) - 1;
        } else if (!raw && piece.text[at] == '\\') {
            at++;
        } else if (!raw && piece.text[at] == '{' && at > 0 &&
                   (piece.text[at - 1] == '$' || piece.text[at - 1] == '#')) {
            at += hf__piece_braces(from(piece, at)) - 1;
        } else if (memcmp(piece.text + at, close, size) == 0) {
            if (!doubled || at + 1 >= piece.size || piece.text[at + 1] != close[0])
                return at + size;
            at++;
        }
    }
    return 0;
}

bool hf__piece_literal(hf__piece piece, bool sql, hf__literal *literal)
{
    char close[8];
    size_t size = 1;
    size_t at = 0;
    size_t hashes = 0;

    *literal = (hf__literal){0};
    while (at < piece.size && at < 3 && strchr("fFrRbBuULE@$", piece.text[at]) != NULL) {
        literal->raw = literal->raw || strchr("rR@", piece.text[at]) != NULL;
        literal->formatted = literal->formatted || strchr("fF$", piece.text[at]) != NULL;
        at++;
    }
    while (literal->raw && hashes < 4 && at < piece.size && piece.text[at] == '#') {
        hashes++;
        at++;
    }
    if (at >= piece.size || piece.text[at] == '\0' ||
        strchr(sql ? "'" : "'\"`", piece.text[at]) == NULL)
        return false;
    literal->quote = piece.text[at];
    memset(close, literal->quote, sizeof close);
    if (!sql && piece.size - at >= 6 && piece.text[at + 1] == literal->quote &&
        piece.text[at + 2] == literal->quote && literal->quote != '`')
        size = 3;
    memset(close + size, '#', hashes);
    size_t start = at + size;
    size_t end = find_close(piece, start, close, size + hashes, sql || literal->raw, sql);
    if (end == 0)
        return false;
    literal->content = (hf__piece){piece.text + start, end - size - hashes - start};
    literal->size = end;
    return true;
}

bool hf__piece_is_literal(hf__piece piece, bool sql)
{
    hf__literal literal;

    return hf__piece_literal(piece, sql, &literal) && literal.size == piece.size;
}

/* ---- Brackets -------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The size of a literal, a hole or a byte; brackets count as bytes. */
static size_t small_step(hf__piece piece, bool sql)
{
    hf__literal literal;

    if (piece.text[0] == HF__HOLE_OPEN)
        return hf__piece_hole(piece);
    if (strchr("'\"`", piece.text[0]) != NULL && hf__piece_literal(piece, sql, &literal))
        return literal.size;
    if (is_word(piece.text[0])) { /* a word, or a literal with a prefix */
        size_t size = 0;
        while (size < piece.size && is_word(piece.text[size]))
            size++;
        if (size < 3 && hf__piece_literal(piece, sql, &literal))
            return literal.size;
        return size;
    }
    return 1;
}

size_t hf__piece_close(hf__piece piece, bool sql)
{
    size_t depth = 0;

    for (size_t at = 0; at < piece.size;) {
        char c = piece.text[at];
        if (c == '(' || c == '[' || c == '{') {
            depth++;
        } else if (c == ')' || c == ']' || c == '}') {
            if (depth == 0)
                break;
            if (--depth == 0)
                return at + 1;
        }
        at += small_step(from(piece, at), sql);
    }
    return piece.size + 1;
}

size_t hf__piece_step(hf__piece piece, bool sql)
{
    if (strchr("([{", piece.text[0]) == NULL || piece.text[0] == '\0')
        return small_step(piece, sql);
    size_t close = hf__piece_close(piece, sql);
    return close <= piece.size ? close : 1;
}

bool hf__piece_is_balanced(hf__piece piece, bool sql)
{
    long depth = 0;

    for (size_t at = 0; at < piece.size && depth >= 0; at += small_step(from(piece, at), sql)) {
        depth += piece.text[at] == '(';
        depth -= piece.text[at] == ')';
    }
    return depth == 0;
}

size_t hf__piece_last_call(hf__piece piece, bool sql)
{
    size_t last = 0;

    if (piece.size < 3 || piece.text[piece.size - 1] != ')')
        return 0;
    for (size_t at = 0; at < piece.size;) {
        size_t step = hf__piece_step(from(piece, at), sql);
        if (piece.text[at] == '(' && at + step == piece.size)
            last = at;
        if (strchr("+-*/%&|^<>=", piece.text[at]) != NULL &&
            !(piece.text[at] == '>' && at > 0 && piece.text[at - 1] == '-') &&
            !(piece.text[at] == '-' && at + 1 < piece.size && piece.text[at + 1] == '>') && at > 0)
            return 0; /* arithmetic, not one call */
        at += step;
    }
    return last;
}

void hf__piece_split(hf__piece piece, bool sql, hf__pieces *pieces)
{
    size_t start = 0;

    for (size_t at = 0; at < piece.size; at += hf__piece_step(from(piece, at), sql)) {
        if (piece.text[at] != ',' || pieces->count == HF__PIECES_MAX)
            continue;
        pieces->items[pieces->count++] =
            hf__piece_trim((hf__piece){piece.text + start, at - start});
        start = at + 1;
    }
    hf__piece last = hf__piece_trim(from(piece, start < piece.size ? start : piece.size));
    if (last.size > 0 && pieces->count < HF__PIECES_MAX)
        pieces->items[pieces->count++] = last;
}

/* The value of `name = value` and `name: value`, or size 0; *name is the name. */
static hf__piece passed_by_name(hf__piece arg, hf__piece *name)
{
    size_t at = 0;

    arg = hf__piece_trim(arg);
    while (at < arg.size && (isalnum((unsigned char)arg.text[at]) || arg.text[at] == '_'))
        at++;
    *name = (hf__piece){arg.text, at};
    while (at < arg.size && arg.text[at] == ' ')
        at++;
    if (name->size == 0 || at + 1 >= arg.size || strchr("=:", arg.text[at]) == NULL ||
        strchr("=:>~", arg.text[at + 1]) != NULL)
        return (hf__piece){"", 0};
    return hf__piece_trim((hf__piece){arg.text + at + 1, arg.size - at - 1});
}

static size_t index_of(const char *params, hf__piece name)
{
    for (size_t index = 0, size; *params != '\0'; index++, params += strcspn(params, ",") + 1) {
        size = strcspn(params, "," HF__DEFAULT_MARK);
        if (size == name.size && memcmp(params, name.text, size) == 0)
            return index;
    }
    return SIZE_MAX;
}

size_t hf__pieces_by_name(hf__piece *args, size_t count, size_t room, const char *params)
{
    hf__piece placed[HF__PIECES_MAX] = {{0}};
    size_t end = 0;

    if (room > HF__PIECES_MAX || count > room)
        return count;
    for (size_t i = 0; i < count; i++) {
        hf__piece name;
        hf__piece value = passed_by_name(args[i], &name);
        size_t index = params != NULL && value.size > 0 ? index_of(params, name) : SIZE_MAX;
        bool named = index < room;
        index = named ? index : i;
        placed[index] = named ? value : args[i];
        end = index + 1 > end ? index + 1 : end;
    }
    for (size_t i = 0; i < end; i++)
        args[i] = placed[i].text != NULL ? placed[i] : (hf__piece){"", 0};
    return end;
}

size_t hf__pieces_of_list(hf__piece *args, size_t count, size_t room)
{
    hf__pieces items = {0};
    hf__piece list = count == 1 ? hf__piece_trim(args[0]) : (hf__piece){"", 0};

    if (list.size < 2 || strchr("[(", list.text[0]) == NULL ||
        hf__piece_close(list, false) != list.size)
        return count;
    hf__piece_split((hf__piece){list.text + 1, list.size - 2}, false, &items);
    for (count = 0; count < items.count && count < room; count++)
        args[count] = items.items[count];
    return count;
}

size_t hf__pieces_by_default(hf__piece *args, size_t count, size_t room, const char *params)
{
    for (size_t i = 0; i < count; i++) /* f(*args), f(...args): nobody can tell how many */
        if (args[i].size > 0 && (args[i].text[0] == '*' || args[i].text[0] == '.'))
            return count;
    for (size_t i = 0; params != NULL && *params != '\0' && i < room; i++) {
        size_t size = strcspn(params, ",");
        size_t name = strcspn(params, "," HF__DEFAULT_MARK);
        if (name < size && (i >= count || args[i].size == 0)) {
            for (; count <= i; count++)
                args[count] = (hf__piece){"", 0};
            args[i] = hf__piece_trim((hf__piece){params + name + 1, size - name - 1});
        }
        params += size + (params[size] != '\0');
    }
    return count;
}

bool hf__piece_field(hf__piece literal, const char *field, hf__piece *value)
{
    hf__pieces items = {0};
    size_t open = 0;

    literal = hf__piece_trim(literal);
    while (open < literal.size && (isalnum((unsigned char)literal.text[open]) ||
                                   strchr("_.&:", literal.text[open]) != NULL))
        open++;
    literal = hf__piece_trim((hf__piece){literal.text + open, literal.size - open});
    *value = (hf__piece){"", 0};
    if (literal.size < 2 || literal.text[0] != '{' ||
        hf__piece_close(literal, false) != literal.size)
        return false;
    hf__piece_split((hf__piece){literal.text + 1, literal.size - 2}, false, &items);
    for (size_t i = 0; i < items.count; i++) {
        hf__piece item = hf__piece_trim(items.items[i]);
        size_t size = strlen(field);
        size_t quote = item.size > 0 && strchr("'\"", item.text[0]) != NULL;
        if (item.size < size + 2 * quote || memcmp(item.text + quote, field, size) != 0)
            continue;
        hf__piece rest = {item.text + size + 2 * quote, item.size - size - 2 * quote};
        rest = hf__piece_trim(rest);
        if (rest.size == 0) /* { field } */
            *value = item;
        else if (rest.text[0] == ':' || rest.text[0] == '=')
            *value = hf__piece_trim((hf__piece){rest.text + 1, rest.size - 1});
    }
    return true;
}
