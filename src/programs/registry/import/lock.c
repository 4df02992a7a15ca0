#include "programs/registry/import/lock.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "programs/registry/import/key.h"

/* --- text as YAML takes it ------------------------------------------------------------------ */

/* Words that some version of YAML takes for something else than text. */
static bool is_reserved(const char *text, size_t size)
{
    static const char *const words[] = {"yes",   "no",   "on", "off", "true",
                                        "false", "null", "y",  "n"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == size && strncasecmp(words[i], text, size) == 0)
            return true;
    return false;
}

static bool can_be_plain(const char *text, size_t size)
{
    if (size == 0 || !isascii(text[0]) || !isalpha((unsigned char)text[0]) ||
        text[size - 1] == ' ' || is_reserved(text, size))
        return false;
    for (size_t i = 1; i < size; i++)
        if (!isascii(text[i]) || (!isalnum((unsigned char)text[i]) && !strchr(" _./-", text[i])))
            return false;
    return true;
}

/* What YAML does not allow as it is, and what would hide or turn text in an editor. */
static bool must_be_escaped(int32_t point)
{
    return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0xAD || point == 0x061C ||
           (point >= 0x200B && point <= 0x200F) || (point >= 0x2028 && point <= 0x202E) ||
           (point >= 0x2060 && point <= 0x206F) || point == 0xFEFF || (point & 0xFFFE) == 0xFFFE;
}

static void put_escaped(hf__buf *out, int32_t point)
{
    if (point == '\n')
        hf__buf_puts(out, "\\n");
    else if (point == '\t')
        hf__buf_puts(out, "\\t");
    else if (point <= 0xFF)
        hf__buf_printf(out, "\\x%02X", (unsigned)point);
    else if (point <= 0xFFFF)
        hf__buf_printf(out, "\\u%04X", (unsigned)point);
    else
        hf__buf_printf(out, "\\U%08X", (unsigned)point);
}

void hf__yaml_text(hf__buf *out, const char *text, size_t size)
{
    if (can_be_plain(text, size)) {
        hf__buf_add(out, text, size);
        return;
    }
    hf__buf_puts(out, "\"");
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (point < 0)
            put_escaped(out, 0xFFFD);
        else if (must_be_escaped(point))
            put_escaped(out, point);
        else if (point == '"' || point == '\\')
            hf__buf_printf(out, "\\%c", (char)point);
        else
            hf__buf_add(out, text + start, at - start);
    }
    hf__buf_puts(out, "\"");
}

void hf__yaml_comment_text(hf__buf *out, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (point < 0 || must_be_escaped(point))
            hf__buf_puts(out, " ");
        else
            hf__buf_add(out, text + start, at - start);
    }
}

/* --- comments for the person who checks the import ------------------------------------------ */

bool hf__import_line_next(const char **at, hf__slice *line)
{
    if (*at == NULL || **at == '\0')
        return false;
    const char *end = strchrnul(*at, '\n');
    *line = (hf__slice){*at, (size_t)(end - *at)};
    *at = *end != '\0' ? end + 1 : end;
    return true;
}

void hf__import_lock_comment(hf__import_lock *lock, const char *what, const char *text)
{
    hf__yaml_comment_text(&lock->comments, what, strlen(what));
    hf__buf_puts(&lock->comments, ": ");
    hf__yaml_comment_text(&lock->comments, text, strlen(text));
    hf__buf_puts(&lock->comments, "\n");
}

void hf__import_lock_doubt(hf__import_lock *lock, const char *what)
{
    hf__buf_printf(&lock->comments, "unknown: %s: check\n", what);
}

void hf__import_lock_doubts(hf__import_lock *lock, const hf__buf *lines)
{
    const char *at = lines->data;
    hf__slice line;

    while (hf__import_line_next(&at, &line))
        hf__buf_printf(&lock->comments, "unknown: %.*s: check\n", (int)line.size, line.text);
}

/* --- what a row says ------------------------------------------------------------------------ */

enum { PATTERN_MAX_SIZE = 1024 }; /* far below what the registry accepts */

/* Digits, and what people put around them. */
static bool looks_numeric(const char *text)
{
    return strpbrk(text, "0123456789") != NULL &&
           text[strspn(text, "0123456789abcdefABCDEFxX_, ()/;nNlLuU-")] == '\0';
}

static void read_id(hf__import_lock *lock, const char *text)
{
    hf__id id;

    switch (hf__id_parse(text, &id)) {
    case HF__ID_GOOD:
        lock->kind = id.is_pair ? HF__IMPORT_PAIR : HF__IMPORT_FIXED;
        lock->key = id.key;
        memcpy(lock->pair, id.pair, sizeof lock->pair);
        if (id.doubt != NULL)
            hf__import_lock_doubt(lock, id.doubt);
        break;
    case HF__ID_NONE: lock->why = "there is no lock id in it"; break;
    case HF__ID_UNCLEAR: lock->why = "it has several numbers"; break;
    case HF__ID_OUT_OF_RANGE: lock->why = "its id is more than PostgreSQL takes"; break;
    }
}

static void read_pattern(hf__import_lock *lock, const char *text, size_t size, bool own_document)
{
    hf__pattern pattern = {0};

    if (size == 0 || size > PATTERN_MAX_SIZE) {
        lock->why = size == 0 ? "there is no pattern in it" : "its pattern is too long";
        return;
    }
    if (hf__has_control(text, size)) {
        lock->why = "its pattern has a control character, which no label has";
        return;
    }
    lock->kind = HF__IMPORT_PATTERN;
    if (own_document) {
        hf__buf_add(&lock->pattern, text, size);
        return;
    }
    hf__pattern_read(&pattern, text, size);
    hf__buf_puts(&lock->pattern, pattern.text.broken ? "" : pattern.text.data);
    hf__buf_puts(&lock->placeholders,
                 pattern.expressions.length > 0 ? pattern.expressions.data : "");
    if (pattern.derivation_given && !lock->derivation_given) {
        lock->derivation = pattern.derivation;
        lock->derivation_given = true;
    }
    if (lock->pattern.length == 0) {
        lock->kind = HF__IMPORT_NOTHING;
        lock->why = "there is no pattern in it";
    }
    if (!lock->pattern.broken && strncmp(lock->pattern.data, text, size) != 0)
        hf__import_lock_comment(lock, "written as", text);
    hf__import_lock_doubts(lock, &pattern.doubts);
    hf__pattern_free(&pattern);
}

/* The first piece of code in the cell is the key; what else is there explains it. */
static void read_key(hf__import_lock *lock, hf__md_column column, const hf__inline *cell,
                     bool own_document)
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
            read_pattern(lock, text.data, text.length, own_document);
        else
            read_id(lock, text.data);
        if (text.length < cell->text.length || lock->kind == HF__IMPORT_NOTHING)
            hf__import_lock_comment(lock, "the table says", cell->text.data);
    }
    hf__buf_free(&text);
}

static void apply_class(hf__import_lock *lock, const hf__inline *cell)
{
    hf__id id;
    bool good = hf__id_parse(cell->text.data, &id) == HF__ID_GOOD && !id.is_pair &&
                id.key >= INT32_MIN && id.key <= INT32_MAX;

    if (lock->kind == HF__IMPORT_PATTERN && good) {
        lock->has_class = true;
        lock->pair[0] = (int32_t)id.key;
    } else if (lock->kind == HF__IMPORT_FIXED && good && lock->key >= INT32_MIN &&
               lock->key <= INT32_MAX) {
        lock->kind = HF__IMPORT_PAIR;
        lock->pair[0] = (int32_t)id.key;
        lock->pair[1] = (int32_t)lock->key;
    } else {
        hf__import_lock_comment(lock, "class", cell->text.data);
    }
}

static bool is_key_column(hf__md_column column)
{
    return column == HF__COLUMN_ID || column == HF__COLUMN_PATTERN || column == HF__COLUMN_KEY;
}

struct key_cells {
    hf__inline key, class_id;
    hf__md_column column;
};

static void read_one(hf__import_lock *lock, const hf__table *table, const hf__row *row,
                     size_t index, bool own_document, struct key_cells *keys)
{
    hf__md_column column = table->columns[index];
    hf__inline cell = {0};

    hf__inline_read(&cell, row->cells[index]);
    if (cell.text.broken || cell.link.broken) {
        lock->comments.broken = true;
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
        hf__import_lock_read_placeholders(lock, &cell);
    } else if (column == HF__COLUMN_OTHER || column == HF__COLUMN_PLACEHOLDERS ||
               is_key_column(column)) {
        hf__import_lock_comment(lock, table->titles[index], cell.text.data);
    } else {
        hf__import_lock_read_cell(lock, column, &cell);
    }
    hf__inline_free(&cell);
}

void hf__import_lock_read(hf__import_lock *lock, const hf__table *table, const hf__row *row,
                          bool own_document)
{
    struct key_cells keys = {0};

    lock->line = row->line;
    lock->why = "there is no lock id or pattern in it";
    for (size_t i = 0; i < row->count && i < table->count; i++)
        read_one(lock, table, row, i, own_document, &keys);
    if (keys.column != HF__COLUMN_OTHER)
        read_key(lock, keys.column, &keys.key, own_document);
    if (keys.class_id.text.data != NULL)
        apply_class(lock, &keys.class_id);
    hf__inline_free(&keys.key);
    hf__inline_free(&keys.class_id);
}

/* --- the lock as an entry of the registry --------------------------------------------------- */

static void write_text(hf__buf *yaml, const char *field, const hf__buf *text)
{
    if (text->length == 0)
        return;
    hf__buf_printf(yaml, "    %s: ", field);
    hf__yaml_text(yaml, text->data, text->length);
    hf__buf_puts(yaml, "\n");
}

static void write_key(const hf__import_lock *lock, hf__buf *yaml)
{
    if (lock->kind == HF__IMPORT_NOTHING)
        return;
    hf__buf_puts(yaml, "    key: { ");
    if (lock->kind == HF__IMPORT_FIXED) {
        hf__buf_printf(yaml, "fixed: %" PRId64, lock->key);
    } else if (lock->kind == HF__IMPORT_PAIR) {
        hf__buf_printf(yaml, "pair: [%" PRId32 ", %" PRId32 "]", lock->pair[0], lock->pair[1]);
    } else {
        if (lock->has_class)
            hf__buf_printf(yaml, "class: %" PRId32 ", ", lock->pair[0]);
        hf__buf_puts(yaml, "pattern: ");
        hf__yaml_text(yaml, lock->pattern.data, lock->pattern.length);
        hf__buf_printf(yaml, ", as: %s", hf_derivation_name(lock->derivation));
    }
    hf__buf_puts(yaml, " }\n");
    if (lock->kind == HF__IMPORT_PATTERN && lock->placeholders.length > 0)
        hf__buf_printf(yaml, "    placeholders: { %s }\n", lock->placeholders.data);
}

/* One of the two words, or why neither is written. */
static void write_word(const hf__import_lock *lock, hf__buf *yaml, const char *field,
                       unsigned first_bit, const char *first, unsigned second_bit,
                       const char *second, const char *otherwise)
{
    bool says_first = (lock->type & first_bit) != 0;
    bool says_second = (lock->type & second_bit) != 0;

    if (says_first != says_second)
        hf__buf_printf(yaml, "    %s: %s\n", field, says_first ? first : second);
    else
        hf__buf_printf(yaml, "    # unknown: %s %s, %s: check\n", field,
                       says_first ? "stated both ways" : "not stated", otherwise);
}

static void write_lifetime(const hf__import_lock *lock, hf__buf *yaml)
{
    const unsigned others = HF__SAYS_SESSION | HF__SAYS_TRANSACTION;

    if ((lock->type & HF__SAYS_LEASE) == 0)
        write_word(lock, yaml, "lifetime", HF__SAYS_SESSION, "session", HF__SAYS_TRANSACTION,
                   "transaction", "session or transaction");
    else
        write_word(lock, yaml, "lifetime", HF__SAYS_LEASE, "lease", others, "",
                   "lease, session or transaction");
    if ((lock->type & (HF__SAYS_LEASE | others)) == HF__SAYS_LEASE && lock->lease.length > 0)
        hf__buf_printf(yaml, "    lease: %s\n", lock->lease.data);
}

static void write_sources(const hf__import_lock *lock, hf__buf *yaml)
{
    const char *at = lock->sources.data;
    hf__slice line;

    if (lock->sources.length == 0)
        return;
    hf__buf_puts(yaml, "    source: [");
    while (hf__import_line_next(&at, &line)) {
        hf__buf_puts(yaml, line.text > lock->sources.data ? ", " : "");
        hf__yaml_text(yaml, line.text, line.size);
    }
    hf__buf_puts(yaml, "]\n");
}

static void write_comments(const hf__import_lock *lock, hf__buf *yaml)
{
    const char *at = lock->comments.data;
    hf__slice line;

    hf__buf_printf(yaml, "  # line %u\n", lock->line);
    while (hf__import_line_next(&at, &line))
        hf__buf_printf(yaml, "  # %.*s\n", (int)line.size, line.text);
}

void hf__import_lock_write(const hf__import_lock *lock, hf__buf *yaml)
{
    write_comments(lock, yaml);
    hf__buf_puts(yaml, "  - name: ");
    hf__yaml_text(yaml, lock->name.data, lock->name.length);
    hf__buf_puts(yaml, "\n");
    write_key(lock, yaml);
    write_lifetime(lock, yaml);
    write_word(lock, yaml, "mode", HF__SAYS_EXCLUSIVE, "exclusive", HF__SAYS_SHARED, "shared",
               "exclusive assumed");
    write_text(yaml, "scope", &lock->scope);
    write_text(yaml, "component", &lock->component);
    write_text(yaml, "purpose", &lock->purpose);
    write_sources(lock, yaml);
    write_text(yaml, "owner", &lock->owner);
    write_text(yaml, "runbook", &lock->runbook);
    if (lock->kind == HF__IMPORT_PATTERN && lock->expected > 0)
        hf__buf_printf(yaml, "    expected: %" PRId64 "\n", lock->expected);
    if (lock->has_order)
        hf__buf_printf(yaml, "    order: %" PRId64 "\n", lock->order);
    if (lock->histogram)
        hf__buf_puts(yaml, "    histogram: true\n");
}

void hf__import_lock_free(hf__import_lock *lock)
{
    hf__buf *all[] = {&lock->name,    &lock->pattern, &lock->component, &lock->purpose,
                      &lock->scope,   &lock->owner,   &lock->runbook,   &lock->placeholders,
                      &lock->sources, &lock->lease,   &lock->comments};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        hf__buf_free(all[i]);
    *lock = (hf__import_lock){0};
}

bool hf__import_lock_is_broken(const hf__import_lock *lock)
{
    return lock->name.broken || lock->pattern.broken || lock->component.broken ||
           lock->purpose.broken || lock->scope.broken || lock->owner.broken ||
           lock->runbook.broken || lock->placeholders.broken || lock->sources.broken ||
           lock->lease.broken || lock->comments.broken;
}
