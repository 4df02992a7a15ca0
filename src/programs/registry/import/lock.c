#include "programs/registry/import/lock.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "programs/registry/import/key.h"
#include "programs/registry/import/names.h"

enum { PATTERN_MAX_SIZE = 1024 }; /* far below what the registry can take */

void hf__found_comment(hf__found *found, const char *what, const char *text)
{
    hf__yaml_comment_text(&found->comments, what, strlen(what));
    hf__buf_puts(&found->comments, ": ");
    hf__yaml_comment_text(&found->comments, text, strlen(text));
    hf__buf_puts(&found->comments, "\n");
}

void hf__found_doubt(hf__found *found, const char *what)
{
    hf__buf_printf(&found->comments, "unknown: %s: check\n", what);
}

void hf__found_doubts(hf__found *found, const hf__buf *lines)
{
    for (const char *at = lines->data; at != NULL && *at != '\0';) {
        const char *end = strchrnul(at, '\n');
        hf__buf_printf(&found->comments, "unknown: %.*s: check\n", (int)(end - at), at);
        at = *end != '\0' ? end + 1 : end;
    }
}

/* --- the key -------------------------------------------------------------------------------------- */

/* Digits, and what people put around them. */
static bool looks_numeric(const char *text)
{
    return strpbrk(text, "0123456789") != NULL &&
           text[strspn(text, "0123456789abcdefABCDEFxX_, ()/;nNlLuU-")] == '\0';
}

static void take_id(hf__found *found, const char *text)
{
    hf__id id;

    switch (hf__id_parse(text, &id)) {
    case HF__ID_GOOD:
        found->kind = id.is_pair ? HF__FOUND_PAIR : HF__FOUND_FIXED;
        found->key = id.key;
        memcpy(found->pair, id.pair, sizeof found->pair);
        if (id.doubt != NULL)
            hf__found_doubt(found, id.doubt);
        break;
    case HF__ID_NONE: found->why = "there is no lock id in it"; break;
    case HF__ID_UNCLEAR: found->why = "it has several numbers"; break;
    case HF__ID_OUT_OF_RANGE: found->why = "its id is more than PostgreSQL takes"; break;
    }
}

static void take_pattern(hf__found *found, const char *text, size_t size, bool own_document)
{
    hf__pattern pattern = {0};

    if (size == 0 || size > PATTERN_MAX_SIZE) {
        found->why = size == 0 ? "there is no pattern in it" : "its pattern is too long";
        return;
    }
    found->kind = HF__FOUND_PATTERN;
    if (own_document) {
        hf__buf_add(&found->pattern, text, size);
        return;
    }
    hf__pattern_read(&pattern, text, size);
    hf__buf_puts(&found->pattern, pattern.text.broken ? "" : pattern.text.data);
    hf__buf_puts(&found->placeholders,
                 pattern.expressions.length > 0 ? pattern.expressions.data : "");
    if (pattern.derivation_given && !found->derivation_given) {
        found->derivation = pattern.derivation;
        found->derivation_given = true;
    }
    if (found->pattern.length == 0) {
        found->kind = HF__FOUND_NOTHING;
        found->why = "there is no pattern in it";
    }
    if (!found->pattern.broken && strncmp(found->pattern.data, text, size) != 0)
        hf__found_comment(found, "written as", text);
    hf__found_doubts(found, &pattern.doubts);
    hf__pattern_free(&pattern);
}

/* The first piece of code in the cell is the key; what else is there explains it. */
static void read_key(hf__found *found, hf__column column, const hf__inline *cell, bool own_document)
{
    hf__buf text = {0};
    bool has_code = cell->span_count > 0 && cell->spans[0].end > cell->spans[0].start;

    if (has_code)
        hf__buf_add(&text, cell->text.data + cell->spans[0].start,
                    cell->spans[0].end - cell->spans[0].start);
    else
        hf__buf_puts(&text, cell->text.data);
    if (!text.broken) {
        bool is_label = column == HF__COLUMN_PATTERN ||
                        (column == HF__COLUMN_KEY && !looks_numeric(text.data)) ||
                        strpbrk(text.data, "'\"{<$%*") != NULL;
        if (is_label)
            take_pattern(found, text.data, text.length, own_document);
        else
            take_id(found, text.data);
        if (text.length < cell->text.length || found->kind == HF__FOUND_NOTHING)
            hf__found_comment(found, "the table says", cell->text.data);
    }
    hf__buf_free(&text);
}

static void apply_class(hf__found *found, const hf__inline *cell)
{
    hf__id id;
    bool good = hf__id_parse(cell->text.data, &id) == HF__ID_GOOD && !id.is_pair &&
                id.key >= INT32_MIN && id.key <= INT32_MAX;

    if (found->kind == HF__FOUND_PATTERN && good) {
        found->has_class = true;
        found->pair[0] = (int32_t)id.key;
    } else if (found->kind == HF__FOUND_FIXED && good && found->key >= INT32_MIN &&
               found->key <= INT32_MAX) {
        found->kind = HF__FOUND_PAIR;
        found->pair[0] = (int32_t)id.key;
        found->pair[1] = (int32_t)found->key;
    } else {
        hf__found_comment(found, "class", cell->text.data);
    }
}

static bool is_key_column(hf__column column)
{
    return column == HF__COLUMN_ID || column == HF__COLUMN_PATTERN || column == HF__COLUMN_KEY;
}

struct key_cells {
    hf__inline key, class_id;
    hf__column column;
};

static void read_one(hf__found *found, const hf__table *table, const hf__row *row, size_t index,
                     bool own_document, struct key_cells *keys)
{
    hf__column column = table->columns[index];
    hf__inline cell = {0};

    hf__inline_read(&cell, row->cells[index]);
    if (cell.text.broken || cell.link.broken) {
        found->comments.broken = true;
    } else if (hf__inline_is_empty(&cell)) {
        /* nothing was said */
    } else if (is_key_column(column) && keys->column == HF__COLUMN_OTHER) {
        keys->key = cell;
        keys->column = column;
        cell = (hf__inline){0};
    } else if (column == HF__COLUMN_CLASS) {
        keys->class_id = cell;
        cell = (hf__inline){0};
    } else if (column == HF__COLUMN_PLACEHOLDERS && own_document) {
        hf__found_read_placeholders(found, &cell);
    } else if (column == HF__COLUMN_OTHER || column == HF__COLUMN_PLACEHOLDERS ||
               is_key_column(column)) {
        hf__found_comment(found, table->titles[index], cell.text.data);
    } else {
        hf__found_read_cell(found, column, &cell);
    }
    hf__inline_free(&cell);
}

void hf__found_read(hf__found *found, const hf__table *table, const hf__row *row, bool own_document)
{
    struct key_cells keys = {0};

    found->line = row->line;
    found->why = "there is no lock id or pattern in it";
    for (size_t i = 0; i < row->count && i < table->count; i++)
        read_one(found, table, row, i, own_document, &keys);
    if (keys.column != HF__COLUMN_OTHER)
        read_key(found, keys.column, &keys.key, own_document);
    if (keys.class_id.text.data != NULL)
        apply_class(found, &keys.class_id);
    hf__inline_free(&keys.key);
    hf__inline_free(&keys.class_id);
}

/* --- writing it down ------------------------------------------------------------------------------ */

static void write_text(hf__buf *yaml, const char *field, const hf__buf *text)
{
    if (text->length == 0)
        return;
    hf__buf_printf(yaml, "    %s: ", field);
    hf__yaml_text(yaml, text->data, text->length);
    hf__buf_puts(yaml, "\n");
}

static void write_key(const hf__found *found, hf__buf *yaml)
{
    if (found->kind == HF__FOUND_NOTHING)
        return;
    hf__buf_puts(yaml, "    key: { ");
    if (found->kind == HF__FOUND_FIXED) {
        hf__buf_printf(yaml, "fixed: %" PRId64, found->key);
    } else if (found->kind == HF__FOUND_PAIR) {
        hf__buf_printf(yaml, "pair: [%" PRId32 ", %" PRId32 "]", found->pair[0], found->pair[1]);
    } else {
        if (found->has_class)
            hf__buf_printf(yaml, "class: %" PRId32 ", ", found->pair[0]);
        hf__buf_puts(yaml, "pattern: ");
        hf__yaml_text(yaml, found->pattern.data, found->pattern.length);
        hf__buf_printf(yaml, ", as: %s", hf_derivation_name(found->derivation));
    }
    hf__buf_puts(yaml, " }\n");
    if (found->kind == HF__FOUND_PATTERN && found->placeholders.length > 0)
        hf__buf_printf(yaml, "    placeholders: { %s }\n", found->placeholders.data);
}

/* One of the two words, or why neither is written. */
static void write_word(const hf__found *found, hf__buf *yaml, const char *field, unsigned first_bit,
                       const char *first, unsigned second_bit, const char *second,
                       const char *otherwise)
{
    bool says_first = (found->type & first_bit) != 0;
    bool says_second = (found->type & second_bit) != 0;

    if (says_first != says_second)
        hf__buf_printf(yaml, "    %s: %s\n", field, says_first ? first : second);
    else
        hf__buf_printf(yaml, "    # unknown: %s %s, %s: check\n", field,
                       says_first ? "stated both ways" : "not stated", otherwise);
}

static void write_sources(const hf__found *found, hf__buf *yaml)
{
    if (found->sources.length == 0)
        return;
    hf__buf_puts(yaml, "    source: [");
    for (const char *at = found->sources.data; *at != '\0';) {
        const char *end = strchrnul(at, '\n');
        hf__buf_puts(yaml, at > found->sources.data ? ", " : "");
        hf__yaml_text(yaml, at, (size_t)(end - at));
        at = *end != '\0' ? end + 1 : end;
    }
    hf__buf_puts(yaml, "]\n");
}

static void write_comments(const hf__found *found, hf__buf *yaml)
{
    hf__buf_printf(yaml, "  # line %u\n", found->line);
    for (const char *at = found->comments.data; at != NULL && *at != '\0';) {
        const char *end = strchrnul(at, '\n');
        hf__buf_printf(yaml, "  # %.*s\n", (int)(end - at), at);
        at = *end != '\0' ? end + 1 : end;
    }
}

void hf__found_write(const hf__found *found, hf__buf *yaml)
{
    write_comments(found, yaml);
    hf__buf_puts(yaml, "  - name: ");
    hf__yaml_text(yaml, found->name.data, found->name.length);
    hf__buf_puts(yaml, "\n");
    write_key(found, yaml);
    write_word(found, yaml, "lifetime", HF__SAYS_SESSION, "session", HF__SAYS_TRANSACTION,
               "transaction", "session or transaction");
    write_word(found, yaml, "mode", HF__SAYS_EXCLUSIVE, "exclusive", HF__SAYS_SHARED, "shared",
               "exclusive assumed");
    write_text(yaml, "scope", &found->scope);
    write_text(yaml, "component", &found->component);
    write_text(yaml, "purpose", &found->purpose);
    write_sources(found, yaml);
    write_text(yaml, "owner", &found->owner);
    write_text(yaml, "runbook", &found->runbook);
    if (found->kind == HF__FOUND_PATTERN && found->expected > 0)
        hf__buf_printf(yaml, "    expected: %" PRId64 "\n", found->expected);
    if (found->has_order)
        hf__buf_printf(yaml, "    order: %" PRId64 "\n", found->order);
    if (found->histogram)
        hf__buf_puts(yaml, "    histogram: true\n");
}

void hf__found_free(hf__found *found)
{
    hf__buf *all[] = {&found->name,    &found->pattern, &found->component, &found->purpose,
                      &found->scope,   &found->owner,   &found->runbook,   &found->placeholders,
                      &found->sources, &found->comments};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        hf__buf_free(all[i]);
    *found = (hf__found){0};
}

bool hf__found_is_broken(const hf__found *found)
{
    return found->name.broken || found->pattern.broken || found->component.broken ||
           found->purpose.broken || found->scope.broken || found->owner.broken ||
           found->runbook.broken || found->placeholders.broken || found->sources.broken ||
           found->comments.broken;
}
