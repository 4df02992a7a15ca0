/* Pieces of expressions: where strings, brackets and arguments begin and end. */
#ifndef HF_LINT_PIECES_H
#define HF_LINT_PIECES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hf__piece {
    const char *text;
    size_t size;
} hf__piece;

enum { HF__PIECES_MAX = 12 };

typedef struct hf__pieces {
    hf__piece items[HF__PIECES_MAX];
    size_t count; /* what comes after the last item is left out */
} hf__pieces;

typedef struct hf__literal {
    hf__piece content;
    size_t size; /* of all of it, with quotes and prefix */
    char quote;
    bool raw;       /* backslashes are plain */
    bool formatted; /* braces hold expressions: f"…", $"…" */
} hf__literal;

hf__piece hf__piece_trim(hf__piece piece);

/* `x` of `x.` and `x->`: what a method is called on. */
hf__piece hf__piece_owner(hf__piece receiver);

/* Up to the first of these characters that is in no bracket. */
hf__piece hf__piece_until(hf__piece piece, const char *characters);

/* Does a string literal begin here? sql: only '…', where '' is one quote. */
bool hf__piece_literal(hf__piece piece, bool sql, hf__literal *literal);
bool hf__piece_is_literal(hf__piece piece, bool sql); /* and nothing else */

/* The size of the hole, or of the braces, that begin here. */
size_t hf__piece_hole(hf__piece piece);
size_t hf__piece_braces(hf__piece piece);

/* The size of what begins here: a literal, a hole, brackets with what is in them, or a byte. */
size_t hf__piece_step(hf__piece piece, bool sql);

/* The place after the bracket that closes the one here; the piece's size + 1 when none does. */
size_t hf__piece_close(hf__piece piece, bool sql);
bool hf__piece_is_balanced(hf__piece piece, bool sql);

/* The opening parenthesis of the call that ends the piece; 0 when it does not end with a call. */
size_t hf__piece_last_call(hf__piece piece, bool sql);

/*
 * Puts arguments that are passed by name, as in f(key=5) and f(key: 5), where the parameters of
 * that name stand. params has each name with a comma behind it. Returns how many there are then.
 */
size_t hf__pieces_by_name(hf__piece *args, size_t count, size_t room, const char *params);

/* f([a, b]): the items of the only argument, when it is a list. Returns how many there are then. */
size_t hf__pieces_of_list(hf__piece *args, size_t count, size_t room);

/* Puts the defaults of params where nothing is passed. Returns how many there are then. */
size_t hf__pieces_by_default(hf__piece *args, size_t count, size_t room, const char *params);

/*
 * What a field has in { field: value }, T{field: value}, { field } and {'field': value}; size 0:
 * it has none. False: the piece is no such literal.
 */
bool hf__piece_field(hf__piece literal, const char *field, hf__piece *value);

/* Splits at commas that are in no bracket. */
void hf__piece_split(hf__piece piece, bool sql, hf__pieces *pieces);

#endif
