#include "programs/registry/import/import.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/vec.h"
#include "lib/registry/registry.h"
#include "programs/registry/doc/doc.h"
#include "programs/registry/import/lock.h"
#include "programs/registry/import/names.h"

static const hf__rule rule_skipped = {"import-skipped", HF__SEVERITY_NOTE,
                                      "A table that is not about locks is left out."};
static const hf__rule rule_left_out = {"import-left-out", HF__SEVERITY_WARNING,
                                       "A row without a usable key is left out."};

static const char own_mark[] = "Made by `holdfast registry doc`";

enum { LEVELS = 7, SHOWN = 80 };

struct heading {
    int level;
    bool about_locks;
    hf__mentions mentions; /* of the text before the next heading */
};

/* A section with locks in it: the hashes that its own text speaks of, and the text above it. */
struct section {
    hf__mentions own, above;
};

struct lock_list {
    hf__import_lock *items;
    size_t count, room;
};

struct import {
    const char *name;
    hf__findings *notes;
    bool own_document;
    double max_risk;                 /* that the page tells; 0: none */
    struct heading headings[LEVELS]; /* from the file itself down to the current one */
    size_t depth;
    hf__mentions everywhere;
    struct section *sections;
    size_t section_count, section_room;
    bool in_section;
    hf__table table;
    hf__mentions header_mentions;
    size_t lock_tables;
    struct lock_list locks; /* in the order of the file, with those that will be left out */
    struct lock_list more;  /* rows that say more about a lock, by its name */
    hf_status status;
    hf_error *err;
};

static bool out_of_memory(struct import *import)
{
    import->status = hf__no_memory(import->err);
    return false;
}

/* --- sections: which text a table belongs to ------------------------------------------------ */

static void end_section(struct import *import)
{
    if (import->in_section)
        import->sections[import->section_count - 1].own = import->headings[import->depth].mentions;
    import->in_section = false;
}

static void mention(struct import *import, unsigned line, hf__slice text)
{
    hf__mentions_add(&import->headings[import->depth].mentions, line, text);
    hf__mentions_add(&import->everywhere, line, text);
}

static bool speaks_of_locks(hf__slice title)
{
    for (size_t i = 0; i + 4 <= title.size; i++)
        if (strncasecmp(title.text + i, "lock", 4) == 0)
            return true;
    return false;
}

static bool on_heading(void *arg, unsigned line, int level, hf__slice title)
{
    struct import *import = arg;

    end_section(import);
    while (import->depth > 0 && import->headings[import->depth].level >= level)
        import->depth--;
    bool above = import->headings[import->depth].about_locks;
    import->headings[++import->depth] =
        (struct heading){.level = level, .about_locks = above || speaks_of_locks(title)};
    mention(import, line, title);
    return true;
}

static bool begins_with(hf__slice text, const char *word)
{
    return text.size >= strlen(word) && strncasecmp(text.text, word, strlen(word)) == 0;
}

/* An item that looks like a lock: a number of four digits, a pattern, or a call. */
static bool lists_a_lock(hf__slice text)
{
    size_t digits = 0;

    if (text.size < 3 || text.text[1] != ' ' || strchr("-*+", text.text[0]) == NULL)
        return false;
    for (size_t i = 2; i < text.size; i++) {
        digits = text.text[i] >= '0' && text.text[i] <= '9' ? digits + 1 : 0;
        if (digits >= 4)
            return true;
    }
    return memmem(text.text, text.size, "`", 1) != NULL &&
           memmem(text.text, text.size, "{", 1) != NULL;
}

/* Only tables of Markdown are read. What is lost of other locks must not be lost in silence. */
static void warn_of_unread(const struct import *import, unsigned line, hf__slice text)
{
    char shown[SHOWN];
    bool html = begins_with(text, "<table");

    if (import->own_document || !import->headings[import->depth].about_locks ||
        (!html && !lists_a_lock(text)))
        return;
    (void)hf__findings_add(import->notes, &rule_left_out, import->name, line, 1,
                           "write it as a table of Markdown", "not read: %s, '%s'",
                           html ? "a table in HTML" : "an item of a list",
                           hf__show(shown, sizeof shown, text.text, text.size));
}

static bool on_prose(void *arg, unsigned line, hf__slice text)
{
    warn_of_unread(arg, line, text);
    mention(arg, line, text);
    return true;
}

static bool begin_section(struct import *import)
{
    if (import->in_section)
        return true;
    if (!hf__grow(&import->sections, &import->section_room, import->section_count + 1,
                  sizeof *import->sections))
        return out_of_memory(import);
    struct section *section = &import->sections[import->section_count++];
    *section = (struct section){0};
    for (size_t i = 0; i < import->depth; i++)
        if (import->headings[i].mentions.kinds != 0)
            section->above = import->headings[i].mentions;
    import->in_section = true;
    return true;
}

/* --- tables and their rows ------------------------------------------------------------------ */

static bool check_cells(struct import *import, const hf__row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        if (row->cells[i].size <= HF__IMPORT_CELL_MAX)
            continue;
        import->status = hf__fail(import->err, HF_BAD_DATA,
                                  "%s:%u: a cell of the table has %zu bytes, more than %d",
                                  import->name, row->line, row->cells[i].size, HF__IMPORT_CELL_MAX);
        return false;
    }
    return true;
}

static void note_skipped(struct import *import)
{
    char shown[SHOWN];
    hf__buf titles = {0};

    for (size_t i = 0; i < import->table.count && titles.length < SHOWN; i++)
        hf__buf_printf(&titles, "%s%s", i > 0 ? " | " : "", import->table.titles[i]);
    (void)hf__findings_add(import->notes, &rule_skipped, import->name, import->table.line, 1, "",
                           "skipped the table '%s': it is not about locks",
                           hf__show(shown, sizeof shown, titles.data, titles.length));
    hf__buf_free(&titles);
}

static bool on_header(void *arg, const hf__row *row)
{
    struct import *import = arg;

    hf__table_free(&import->table);
    if (!check_cells(import, row))
        return false;
    if (!hf__table_read(&import->table, row, import->headings[import->depth].about_locks))
        return out_of_memory(import);
    import->header_mentions = (hf__mentions){0};
    if (import->table.kind == HF__TABLE_STRANGE && !import->own_document)
        note_skipped(import);
    if (import->table.kind != HF__TABLE_LOCKS)
        return true;
    for (size_t i = 0; i < row->count; i++)
        hf__mentions_add(&import->header_mentions, row->line, row->cells[i]);
    import->lock_tables++;
    return begin_section(import);
}

static bool is_empty_row(const hf__row *row)
{
    for (size_t i = 0; i < row->count; i++)
        if (row->cells[i].size > 0)
            return false;
    return true;
}

static bool is_struck_out(hf__slice cell)
{
    return cell.size >= 5 && memcmp(cell.text, "~~", 2) == 0 &&
           memcmp(cell.text + cell.size - 2, "~~", 2) == 0;
}

/* A lock that the team has crossed out is none any more. */
static bool is_crossed_out(const struct import *import, const hf__row *row)
{
    for (size_t i = 0; i < row->count && i < import->table.count; i++) {
        hf__md_column column = import->table.columns[i];
        bool is_key =
            column == HF__COLUMN_ID || column == HF__COLUMN_PATTERN || column == HF__COLUMN_KEY;
        if (is_key && is_struck_out(row->cells[i]))
            return true;
    }
    return false;
}

/* Adds what the row says to a list. Returns NULL, with the status set, without memory. */
static hf__import_lock *read_row(struct import *import, struct lock_list *list, const hf__row *row)
{
    hf__import_lock *lock = NULL;

    if (hf__grow(&list->items, &list->room, list->count + 1, sizeof *list->items)) {
        lock = &list->items[list->count++];
        *lock = (hf__import_lock){0};
        hf__import_lock_read(lock, &import->table, row, import->own_document);
    }
    if (lock == NULL || hf__import_lock_is_broken(lock)) {
        (void)out_of_memory(import);
        return NULL;
    }
    return lock;
}

static bool add_lock(struct import *import, const hf__row *row)
{
    if (import->locks.count == HF__IMPORT_LOCKS_MAX) {
        import->status = hf__fail(import->err, HF_BAD_DATA, "%s:%u: more than %d locks",
                                  import->name, row->line, HF__IMPORT_LOCKS_MAX);
        return false;
    }
    hf__import_lock *lock = read_row(import, &import->locks, row);
    if (lock == NULL)
        return false;
    lock->section = import->section_count - 1;
    if (lock->mentions.kinds == 0)
        lock->mentions = import->header_mentions;
    return true;
}

static bool add_more(struct import *import, const hf__row *row)
{
    return import->more.count == HF__IMPORT_LOCKS_MAX ||
           read_row(import, &import->more, row) != NULL;
}

static bool on_row(void *arg, const hf__row *row)
{
    struct import *import = arg;

    if (import->table.kind == HF__TABLE_STRANGE || is_empty_row(row))
        return true;
    if (!check_cells(import, row))
        return false;
    if (import->table.kind == HF__TABLE_LOCKS && is_crossed_out(import, row)) {
        (void)hf__findings_add(import->notes, &rule_left_out, import->name, row->line, 1, "",
                               "left out: the key is crossed out");
        return true;
    }
    return import->table.kind == HF__TABLE_LOCKS ? add_lock(import, row) : add_more(import, row);
}

/* --- which derivation a pattern has --------------------------------------------------------- */

static const hf__mentions *nearest_mentions(const struct import *import,
                                            const hf__import_lock *lock)
{
    const struct section *section = &import->sections[lock->section];

    return lock->mentions.kinds != 0   ? &lock->mentions
           : section->own.kinds != 0   ? &section->own
           : section->above.kinds != 0 ? &section->above
                                       : &import->everywhere;
}

/* Uses what the text says, else an assumption, and writes a comment that tells which. */
static void decide_hash(const struct import *import, hf__import_lock *lock)
{
    const hf__mentions *mentions = nearest_mentions(import, lock);
    hf__buf doubts = {0};

    lock->derivation = lock->has_class ? HF_HASHTEXT : HF_SHA256;
    const char *assumed = hf_derivation_name(lock->derivation);
    switch (hf__mentions_decide(mentions, lock->from_javascript, &lock->derivation, &doubts)) {
    case HF__HASH_NONE:
        hf__buf_printf(&doubts, "derivation not stated, %s assumed\n", assumed);
        break;
    case HF__HASH_UNCLEAR:
        hf__buf_printf(&doubts, "several hashes are spoken of in lines %u to %u, %s assumed\n",
                       mentions->first_line, mentions->last_line, assumed);
        break;
    case HF__HASH_FOREIGN:
        hf__buf_printf(&doubts,
                       "line %u speaks of %s, which is no derivation here, %s put instead\n",
                       mentions->first_line, mentions->foreign, assumed);
        break;
    case HF__HASH_KNOWN:
        if (mentions != &lock->mentions)
            hf__buf_printf(&lock->comments, "derivation from line %u%s\n", mentions->first_line,
                           mentions == &import->everywhere ? ", in another section: check" : "");
        break;
    }
    hf__import_lock_doubts(lock, &doubts);
    lock->comments.broken |= doubts.broken;
    hf__buf_free(&doubts);
}

static void decide_derivation(const struct import *import, hf__import_lock *lock)
{
    if (lock->kind != HF__IMPORT_PATTERN)
        return;
    if (!lock->derivation_given)
        decide_hash(import, lock);
    if (lock->has_class && !hf__has_32_bits(lock->derivation)) {
        hf__buf_printf(&lock->comments,
                       "unknown: class %d left out, for beside it %s has too many "
                       "bits: check\n",
                       lock->pair[0], hf_derivation_name(lock->derivation));
        lock->has_class = false;
    }
}

/* --- keys that stand in two rows ------------------------------------------------------------ */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_keys(const void *one, const void *other)
{
    const hf__import_lock *a = one;
    const hf__import_lock *b = other;
    int order = compare_numbers(a->kind, b->kind);

    order = order != 0 ? order : compare_numbers(a->key, b->key);
    order = order != 0 ? order : compare_numbers(a->pair[0], b->pair[0]);
    order = order != 0 ? order : compare_numbers(a->pair[1], b->pair[1]);
    if (order != 0 || a->kind != HF__IMPORT_PATTERN)
        return order;
    order = compare_numbers(a->has_class, b->has_class);
    order = order != 0 ? order : compare_numbers(a->derivation, b->derivation);
    return order != 0 ? order : strcmp(a->pattern.data, b->pattern.data);
}

static void keep_node(void *node)
{
    (void)node; /* the import owns the locks */
}

static bool find_repeated(struct import *import)
{
    void *tree = NULL;
    bool ok = true;

    for (size_t i = 0; ok && i < import->locks.count; i++) {
        hf__import_lock *lock = &import->locks.items[i];
        if (lock->kind == HF__IMPORT_NOTHING)
            continue;
        hf__import_lock **first = tsearch(lock, &tree, compare_keys);
        ok = first != NULL;
        if (ok && *first != lock)
            lock->repeats = (*first)->line;
    }
    tdestroy(tree, keep_node);
    return ok || out_of_memory(import);
}

/* --- tables that say more about a lock, by its name ----------------------------------------- */

static int compare_by_name(const void *a, const void *b)
{
    return strcmp(((const hf__import_lock *)a)->name.data, ((const hf__import_lock *)b)->name.data);
}

static void move_text(hf__buf *to, hf__buf *from)
{
    if (to->length > 0 || from->length == 0)
        return;
    hf__buf_free(to);
    *to = *from;
    *from = (hf__buf){0};
}

static void merge(hf__import_lock *lock, hf__import_lock *more)
{
    move_text(&lock->owner, &more->owner);
    move_text(&lock->runbook, &more->runbook);
    if (!lock->has_order && more->has_order) {
        lock->has_order = true;
        lock->order = more->order;
    }
}

static bool merge_more(struct import *import)
{
    void *tree = NULL;
    bool ok = true;

    for (size_t i = 0; ok && i < import->locks.count; i++)
        ok = tsearch(&import->locks.items[i], &tree, compare_by_name) != NULL;
    for (size_t i = 0; ok && i < import->more.count; i++) {
        hf__import_lock *more = &import->more.items[i];
        hf__import_lock **lock = more->name.length > 0 ? tfind(more, &tree, compare_by_name) : NULL;
        char shown[SHOWN];
        if (lock != NULL)
            merge(*lock, more);
        else
            (void)hf__findings_add(
                import->notes, &rule_skipped, import->name, more->line, 1, "",
                "skipped the row of '%s': no table has a lock of that name",
                hf__show(shown, sizeof shown, more->name.data, more->name.length));
    }
    tdestroy(tree, keep_node);
    return ok || out_of_memory(import);
}

/* --- the registry that comes out ------------------------------------------------------------ */

static void warn_left_out(struct import *import, const hf__import_lock *lock)
{
    if (lock->repeats > 0)
        (void)hf__findings_add(import->notes, &rule_left_out, import->name, lock->line, 1, "",
                               "left out %s: its key stands in line %u already", lock->name.data,
                               lock->repeats);
    else
        (void)hf__findings_add(import->notes, &rule_left_out, import->name, lock->line, 1, "",
                               "left out a row: %s", lock->why);
}

/* Writes the row as a comment, so that nothing of the table is lost. */
static void write_left_out(const hf__import_lock *lock, hf__buf *yaml)
{
    hf__buf entry = {0};
    hf__slice line;

    if (lock->repeats > 0)
        hf__buf_printf(yaml, "  # left out: its key stands in line %u already: the same lock?\n",
                       lock->repeats);
    else
        hf__buf_printf(yaml, "  # left out: %s: check\n", lock->why);
    hf__import_lock_write(lock, &entry);
    yaml->broken |= entry.broken;
    for (const char *at = entry.data; hf__import_line_next(&at, &line);) {
        bool is_comment = line.text[2] == '#';
        hf__buf_printf(yaml, "  %s%.*s\n", is_comment ? "" : "# ", (int)line.size - 2,
                       line.text + 2);
    }
    hf__buf_free(&entry);
}

static void write_all(struct import *import, hf__buf *yaml)
{
    const char *slash = strrchr(import->name, '/');
    const char *file = slash != NULL ? slash + 1 : import->name;
    size_t written = 0;

    hf__buf_puts(yaml, "# Made by `holdfast registry import` from ");
    hf__yaml_comment_text(yaml, file, strlen(file));
    hf__buf_puts(yaml, ": check what is marked, then run\n# `holdfast registry check`.\n"
                       "version: 1\n");
    if (import->max_risk > 0)
        hf__buf_printf(yaml, "conventions: { max_risk: %.15g }\n", import->max_risk);
    for (size_t i = 0; i < import->locks.count; i++)
        written += import->locks.items[i].kind != HF__IMPORT_NOTHING &&
                   import->locks.items[i].repeats == 0;
    hf__buf_puts(yaml, written > 0 ? "locks:\n" : "locks: []\n");
    for (size_t i = 0; i < import->locks.count; i++) {
        const hf__import_lock *lock = &import->locks.items[i];
        hf__buf_puts(yaml, i > 0 ? "\n" : "");
        if (lock->kind != HF__IMPORT_NOTHING && lock->repeats == 0) {
            hf__import_lock_write(lock, yaml);
        } else {
            warn_left_out(import, lock);
            write_left_out(lock, yaml);
        }
    }
}

static hf_status finish(struct import *import, hf__buf *yaml, hf_error *err)
{
    end_section(import);
    if (import->lock_tables == 0) {
        hf_status status = hf__fail(err, HF_BAD_DATA, "%s has no table of locks", import->name);
        hf__hint(err, "a table needs a column named 'Lock ID' or 'Hash Input Pattern'");
        return status;
    }
    for (size_t i = 0; i < import->locks.count; i++)
        decide_derivation(import, &import->locks.items[i]);
    if (!hf__name_all(import->locks.items, import->locks.count))
        return hf__no_memory(err);
    if (!merge_more(import) || !find_repeated(import))
        return import->status;
    write_all(import, yaml);
    for (size_t i = 0; i < import->locks.count; i++)
        yaml->broken |= hf__import_lock_is_broken(&import->locks.items[i]);
    if (yaml->broken || import->notes->broken)
        return hf__no_memory(err);
    if (yaml->length > HF__IMPORT_MAX)
        return hf__fail(err, HF_BAD_DATA, "%s is too large: its registry would have %zu bytes",
                        import->name, yaml->length);
    return HF_OK;
}

/* --- the text that goes in ------------------------------------------------------------------ */

static hf_status check_text(const char *name, const char *text, size_t size, hf_error *err)
{
    unsigned line = 1;

    if (size > HF__IMPORT_MAX)
        return hf__fail(err, HF_BAD_DATA, "%s has more than %d bytes", name, HF__IMPORT_MAX);
    for (size_t at = 0; at < size;) {
        unsigned char byte = (unsigned char)text[at];
        if (byte == '\0')
            return hf__fail(err, HF_BAD_DATA, "%s:%u: a NUL byte: this is no text", name, line);
        line += byte == '\n';
        if (hf__utf8_next((const unsigned char *)text, size, &at) < 0)
            return hf__fail(err, HF_BAD_DATA, "%s:%u: byte 0x%02x is no UTF-8", name, line, byte);
    }
    return HF_OK;
}

static void free_import(struct import *import)
{
    for (size_t i = 0; i < import->locks.count; i++)
        hf__import_lock_free(&import->locks.items[i]);
    for (size_t i = 0; i < import->more.count; i++)
        hf__import_lock_free(&import->more.items[i]);
    free(import->locks.items);
    free(import->more.items);
    free(import->sections);
    hf__table_free(&import->table);
}

hf_status hf__import_markdown(const char *name, const char *text, size_t size, hf__buf *yaml,
                              hf__findings *notes, hf_error *err)
{
    static const char bom[] = "\xEF\xBB\xBF";
    struct import import = {.name = name, .notes = notes, .err = err};
    const hf__markdown_reader reader = {on_heading, on_prose, on_header, on_row, &import};
    hf_status status = check_text(name, text, size, err);

    if (status != HF_OK)
        return status;
    if (size >= 3 && memcmp(text, bom, 3) == 0) {
        text += 3;
        size -= 3;
    }
    const char *first_end = memchr(text, '\n', size);
    import.own_document = first_end != NULL && memmem(text, (size_t)(first_end - text), own_mark,
                                                      sizeof own_mark - 1) != NULL;
    const char *allowed = import.own_document
                              ? memmem(text, size, HF__DOC_MAX_RISK, sizeof HF__DOC_MAX_RISK - 1)
                              : NULL;
    if (allowed != NULL)
        import.max_risk = strtod(allowed + sizeof HF__DOC_MAX_RISK - 1, NULL);
    status = hf__markdown_read(text, size, &reader) ? finish(&import, yaml, err) : import.status;
    free_import(&import);
    return status;
}
