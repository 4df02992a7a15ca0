/* Which assignments may have given a name its value at a place. */
#include <ctype.h>
#include <string.h>

#include "programs/registry/lint/values/names.h"
#include "programs/registry/lint/values/pieces.h"

/* A hostile file must not make us look far for every name. */
enum { LOOKED_AT_MAX = 32, BRANCH_REACH = 32 * 1024 };

static bool is_code(const hf__unit *unit, size_t at)
{
    return unit->classes[at] == HF__CODE;
}

/* Is a line between the two indented less than the first? */
static bool is_outdented(const hf__unit *unit, size_t from, size_t to)
{
    size_t line = from;
    size_t indent = 0;

    while (line > 0 && unit->text[line - 1] != '\n')
        line--;
    while (isblank((unsigned char)unit->text[line + indent]))
        indent++;
    for (const char *end = unit->text + from;
         (end = memchr(end, '\n', (size_t)(unit->text + to - end))) != NULL; end++) {
        size_t next = strspn(end + 1, " \t");
        if (next < indent && end[1 + next] != '\n' && end + 1 + next < unit->text + to &&
            is_code(unit, (size_t)(end + 1 + next - unit->text)))
            return true;
    }
    return false;
}

/* Is it `if (x) key = 5;`, with no braces around it? */
static bool follows_condition(const hf__unit *unit, size_t at)
{
    size_t line = at;

    while (line > 0 && strchr("\n{;", unit->text[line - 1]) == NULL)
        line--;
    size_t before = line;
    while (before > 0 && isspace((unsigned char)unit->text[before - 1]))
        before--;
    if (before > 4 && before < line && /* the condition has a line of its own */
        (unit->text[before - 1] == ')' || memcmp(unit->text + before - 4, "else", 4) == 0))
        for (line = before; line > 0 && strchr("\n{;", unit->text[line - 1]) == NULL;)
            line--;
    while (isblank((unsigned char)unit->text[line]) || unit->text[line] == '}')
        line++;
    return strncmp(unit->text + line, "if", 2) == 0 || strncmp(unit->text + line, "else", 4) == 0;
}

/*
 * May a branch leave out what is assigned, so that the name has another value further on? Where
 * blocks have braces, the one around the assignment is closed before, or a case ends it.
 */
static bool is_left_out(const hf__unit *unit, size_t from, size_t to)
{
    long depth = 0;

    if (to - from > BRANCH_REACH)
        return true;
    if (unit->syntax->blocks == HF__BLOCKS_INDENTED || unit->syntax->blocks == HF__BLOCKS_ENDED)
        return is_outdented(unit, from, to);
    if (follows_condition(unit, from))
        return true;
    for (size_t at = from; at < to && depth >= 0; at++) {
        if (!is_code(unit, at))
            continue;
        depth += unit->text[at] == '{';
        depth -= unit->text[at] == '}';
        if (depth == 0 && isspace((unsigned char)unit->text[at]) &&
            (strncmp(unit->text + at + 1, "case ", 5) == 0 ||
             strncmp(unit->text + at + 1, "default:", 8) == 0))
            return true;
    }
    return depth < 0;
}

static bool is_same_value(const hf__unit *unit, const hf__assignment *a, const hf__assignment *b)
{
    return a->counted == b->counted && a->number == b->number && a->value_size == b->value_size &&
           memcmp(unit->text + a->value, unit->text + b->value, a->value_size) == 0;
}

static void reach(hf__reaching *reaching, const hf__unit *unit, const hf__assignment *item)
{
    for (size_t i = 0; i < reaching->count; i++)
        if (is_same_value(unit, reaching->items[i], item))
            return;
    if (item->value_size == 0 || reaching->count == HF__REACHING_MAX)
        reaching->untold = true;
    else
        reaching->items[reaching->count++] = item;
}

/* Those of one block; in a function, of what comes before. False: there is none. */
static bool reach_in_block(const hf__assignments *assignments, const hf__unit *unit, size_t block,
                           size_t before, bool member, hf__piece name, hf__reaching *reaching)
{
    size_t first = hf__assignments_first(assignments, unit, name.text, name.size);
    size_t end = first;
    bool any = false;

    while (hf__assignments_is_named(assignments, unit, end, name.text, name.size))
        end++;
    for (size_t seen = 0; end-- > first;) {
        const hf__assignment *item = &assignments->items[end];
        if ((item->field && !member) || item->block != block ||
            (block != HF__NO_BLOCK && item->name >= before))
            continue;
        if (block != HF__NO_BLOCK && ++seen > LOOKED_AT_MAX) {
            reaching->untold = true;
            break;
        }
        reach(reaching, unit, item);
        any = true;
        reaching->conditional = block != HF__NO_BLOCK && is_left_out(unit, item->name, before);
        if (block != HF__NO_BLOCK && !reaching->conditional)
            break;
    }
    return any;
}

/* Those of the whole file, or of the class around a place. */
static void reach_anywhere(const hf__assignments *assignments, const hf__unit *unit, size_t at,
                           bool in_class, hf__piece name, hf__reaching *reaching)
{
    size_t owner = in_class ? hf__class_of(assignments, at) : 0;

    *reaching = (hf__reaching){0};
    for (size_t i = hf__assignments_first(assignments, unit, name.text, name.size);
         hf__assignments_is_named(assignments, unit, i, name.text, name.size); i++) {
        if (!in_class || hf__class_of(assignments, assignments->items[i].name) == owner)
            reach(reaching, unit, &assignments->items[i]);
    }
}

void hf__assignments_reaching(hf__assignments *assignments, const hf__unit *unit, size_t at,
                              bool member, const char *name, size_t size, hf__reaching *reaching)
{
    hf__piece piece = {name, size};

    *reaching = (hf__reaching){0};
    hf__assignments_read(assignments);
    for (size_t block = hf__unit_block(unit, at);; block = unit->blocks[block].parent) {
        if (reach_in_block(assignments, unit, block, at, member, piece, reaching))
            return;
        if (block == HF__NO_BLOCK)
            break;
    }
    if (!member)
        return;
    reach_anywhere(assignments, unit, at, true, piece, reaching);
    if (reaching->count == 0 && !reaching->untold)
        reach_anywhere(assignments, unit, at, false, piece, reaching);
}

const hf__assignment *hf__assignments_find(hf__assignments *assignments, const hf__unit *unit,
                                           size_t at, bool member, const char *name, size_t size)
{
    hf__reaching reaching;

    hf__assignments_reaching(assignments, unit, at, member, name, size, &reaching);
    return reaching.count == 1 && !reaching.untold ? reaching.items[0] : NULL;
}
