/* What the cells of a row say that are not about the key. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/time.h"
#include "programs/registry/import/key.h"
#include "programs/registry/import/lock.h"

static void put_line(hf__buf *out, const char *text)
{
    hf__buf_clear(out);
    for (; *text != '\0'; text++)
        hf__buf_add(out, *text == '\n' ? " " : text, 1);
}

/* --- lifetime and mode ---------------------------------------------------------------------- */

static bool has_word(const char *text, const char *word)
{
    size_t size = strlen(word);

    for (const char *at = strcasestr(text, word); at != NULL; at = strcasestr(at + 1, word))
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[size]))
            return true;
    return false;
}

static unsigned type_words(const char *text)
{
    bool transaction = strcasestr(text, "xact") != NULL ||
                       strcasestr(text, "transaction") != NULL || has_word(text, "tx");
    bool session_call = strcasestr(text, "advisory_lock") != NULL;
    bool function = session_call || strcasestr(text, "advisory_xact_lock") != NULL;
    bool shared = strcasestr(text, "shared") != NULL;
    bool exclusive = strcasestr(text, "exclusive") != NULL || (function && !shared);
    bool session = strcasestr(text, "session") != NULL || session_call;

    return (session ? HF__SAYS_SESSION : 0U) | (transaction ? HF__SAYS_TRANSACTION : 0U) |
           (exclusive ? HF__SAYS_EXCLUSIVE : 0U) | (shared ? HF__SAYS_SHARED : 0U) |
           (has_word(text, "lease") ? HF__SAYS_LEASE : 0U);
}

/* "lease of 45s", as doc writes it. */
static void read_lease_length(hf__import_lock *lock, const char *text)
{
    static const char before[] = "lease of ";
    const char *at = strcasestr(text, before);
    int64_t ms = 0;
    char length[32];

    if (at == NULL)
        return;
    at += strlen(before);
    size_t size = strspn(at, "0123456789.mshd");
    snprintf(length, sizeof length, "%.*s", (int)size, at);
    if (hf__parse_duration(length, &ms, NULL) == HF_OK && ms >= HF_LEASE_MIN_MS &&
        ms <= HF_LEASE_MAX_MS)
        put_line(&lock->lease, length);
    else
        hf__import_lock_comment(lock, "lock type", text);
}

static void read_type(hf__import_lock *lock, const hf__inline *cell)
{
    unsigned words = type_words(cell->text.data);

    if (words == 0)
        hf__import_lock_comment(lock, "lock type", cell->text.data);
    else if (strcasestr(cell->text.data, "try") != NULL) /* the registry has no field for it */
        hf__import_lock_comment(lock, "acquired without waiting", cell->text.data);
    if ((words & HF__SAYS_LEASE) != 0)
        read_lease_length(lock, cell->text.data);
    lock->type |= words;
}

/* --- file references ------------------------------------------------------------------------ */

/* "a.ts:12-14", "a.ts#L12", "a.ts:12:3": where the path ends. */
static size_t path_size(const char *text, size_t size)
{
    size_t end = size;

    while (end > 0 && strchr("0123456789-:,L#", text[end - 1]) != NULL)
        end--;
    while (end < size && text[end] != ':' && text[end] != '#')
        end++;
    bool has_line = end + 1 < size && strpbrk(text + end, "0123456789") != NULL;
    return has_line ? end : size;
}

static bool looks_like_path(const char *text, size_t size)
{
    const char *dot = memrchr(text, '.', size);
    size_t extension = dot != NULL ? (size_t)(text + size - dot) - 1 : 0;
    bool has_extension = dot > text && extension >= 1 && extension <= 6;

    for (size_t i = 0; has_extension && i < extension; i++)
        has_extension = isalnum((unsigned char)dot[1 + i]) != 0;
    if (size == 0 || memmem(text, size, "://", 3) != NULL || memchr(text, '(', size) != NULL)
        return false;
    return has_extension || (memchr(text, '/', size) != NULL && text[size - 1] != '/');
}

static bool is_javascript(const char *text, size_t size)
{
    static const char *const ends[] = {".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".vue"};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t length = strlen(ends[i]);
        if (size > length && strncasecmp(text + size - length, ends[i], length) == 0)
            return true;
    }
    return false;
}

static bool has_line(const hf__buf *lines, const char *text, size_t size)
{
    const char *at = lines->data;
    hf__slice line;

    while (hf__import_line_next(&at, &line))
        if (line.size == size && memcmp(line.text, text, size) == 0)
            return true;
    return false;
}

/* https://github.com/team/project/blob/main/src/a.ts → src/a.ts */
static const char *path_in_url(const char *text)
{
    const char *blob = strstr(text, "/blob/");
    const char *path = blob != NULL ? strchr(blob + 6, '/') : NULL;

    return strstr(text, "://") == NULL ? text : path != NULL ? path + 1 : "";
}

static bool add_source(hf__import_lock *lock, const char *text)
{
    while (strncmp(text, "./", 2) == 0)
        text += 2;
    size_t whole = strlen(text);
    size_t size = path_size(text, whole);

    if (!looks_like_path(text, size))
        return false;
    if (size < whole)
        hf__import_lock_comment(lock, "file reference", text);
    if (!has_line(&lock->sources, text, size)) {
        hf__buf_add(&lock->sources, text, size);
        hf__buf_puts(&lock->sources, "\n");
    }
    lock->from_javascript |= is_javascript(text, size);
    return true;
}

/* Adds the pieces between the separators. False when one of them is no path. */
static bool add_sources(hf__import_lock *lock, char *text, const char *separators)
{
    char *rest = text;
    bool all = true;

    for (char *piece = strsep(&rest, separators); piece; piece = strsep(&rest, separators)) {
        size_t size = strlen(piece);
        while (size > 0 && strchr(".,:()\"' ", piece[size - 1]) != NULL)
            piece[--size] = '\0';
        piece += strspn(piece, "(\"' ");
        if (*piece != '\0' && strcmp(piece, "and") != 0)
            all = add_source(lock, piece) && all;
    }
    return all;
}

/* "[lock.ts](server/src/lock.ts#L17)": where one link leads says more than what it shows. */
static bool read_file_link(hf__import_lock *lock, const hf__inline *cell)
{
    return cell->link.length > 0 && strpbrk(cell->text.data, ",; \n") == NULL &&
           add_source(lock, path_in_url(cell->link.data));
}

static void read_files(hf__import_lock *lock, const hf__inline *cell)
{
    hf__buf copy = {0};
    bool all = true;

    if (read_file_link(lock, cell))
        return;
    if (cell->span_count > 0) {
        for (size_t i = 0; i < cell->span_count; i++) {
            hf__buf_clear(&copy);
            hf__buf_add(&copy, cell->text.data + cell->spans[i].start,
                        cell->spans[i].end - cell->spans[i].start);
            all = (copy.broken || add_sources(lock, copy.data, "\n")) && all;
        }
    } else {
        hf__buf_puts(&copy, cell->text.data);
        all = copy.broken || add_sources(lock, copy.data, ",;\n ");
    }
    if (lock->sources.length == 0 && cell->link.length > 0)
        all = add_source(lock, path_in_url(cell->link.data)) && all;
    if (!all)
        hf__import_lock_comment(lock, "file reference", cell->text.data);
    hf__buf_free(&copy);
}

/* --- placeholders, on a page that `holdfast registry doc` wrote ----------------------------- */

static void put_span(hf__buf *out, const hf__inline *cell, size_t index)
{
    hf__yaml_text(out, cell->text.data + cell->spans[index].start,
                  cell->spans[index].end - cell->spans[index].start);
}

/* `date`: `\d{4}`, `kind`: one of `a`, `b`, or `tenant`: anything but `:` */
static void read_placeholder(hf__import_lock *lock, const hf__inline *cell, size_t first,
                             size_t last)
{
    hf__buf *out = &lock->placeholders;
    const char *between = cell->text.data + cell->spans[first].end;

    if (last - first < 2 || strncmp(between, ": anything", 10) == 0)
        return;
    if (strncmp(between, ": some of", 9) == 0) {
        hf__import_lock_doubt(lock,
                              "not all values of a placeholder are in the table, any assumed");
        return;
    }
    hf__buf_puts(out, out->length > 0 ? ", " : "");
    put_span(out, cell, first);
    hf__buf_puts(out, ": ");
    if (strncmp(between, ": one of", 8) != 0) {
        put_span(out, cell, first + 1);
        return;
    }
    for (size_t i = first + 1; i < last; i++) {
        hf__buf_puts(out, i == first + 1 ? "[" : ", ");
        put_span(out, cell, i);
    }
    hf__buf_puts(out, "]");
}

void hf__import_lock_read_placeholders(hf__import_lock *lock, const hf__inline *cell)
{
    for (size_t first = 0; first < cell->span_count;) {
        const char *line_end = strchrnul(cell->text.data + cell->spans[first].start, '\n');
        size_t end = (size_t)(line_end - cell->text.data);
        size_t last = first + 1;
        while (last < cell->span_count && cell->spans[last].start < end)
            last++;
        read_placeholder(lock, cell, first, last);
        first = last;
    }
}

/* --- a cell by its column ------------------------------------------------------------------- */

static void read_count(hf__import_lock *lock, const hf__inline *cell, const char *what, int64_t low,
                       int64_t high, int64_t *value, bool *given)
{
    hf__id id;
    bool good = hf__id_parse(cell->text.data, &id) == HF__ID_GOOD && !id.is_pair && id.key >= low &&
                id.key <= high;

    if (good) {
        *value = id.key;
        *given = true;
    } else {
        hf__import_lock_comment(lock, what, cell->text.data);
    }
}

static void read_derivation(hf__import_lock *lock, const hf__inline *cell)
{
    hf_derivation derivation;

    if (hf_derivation_parse(cell->text.data, &derivation, NULL) == HF_OK &&
        derivation != HF_FIXED) {
        lock->derivation = derivation;
        lock->derivation_given = true;
    } else {
        hf__mentions_add(&lock->mentions, lock->line,
                         (hf__slice){cell->text.data, cell->text.length});
    }
}

void hf__import_lock_read_cell(hf__import_lock *lock, hf__md_column column, const hf__inline *cell)
{
    const char *text = cell->text.data;
    bool given = false;

    switch (column) {
    case HF__COLUMN_NAME:
    case HF__COLUMN_SYMBOL:
        put_line(&lock->name, text);
        lock->name_is_final = column == HF__COLUMN_NAME;
        break;
    case HF__COLUMN_COMPONENT: put_line(&lock->component, text); break;
    case HF__COLUMN_PURPOSE: put_line(&lock->purpose, text); break;
    case HF__COLUMN_SCOPE: put_line(&lock->scope, text); break;
    case HF__COLUMN_OWNER: put_line(&lock->owner, text); break;
    case HF__COLUMN_RUNBOOK:
        put_line(&lock->runbook, cell->link.length > 0 && strncasecmp(text, "http", 4) != 0
                                     ? cell->link.data
                                     : text);
        break;
    case HF__COLUMN_TYPE: read_type(lock, cell); break;
    case HF__COLUMN_FILE: read_files(lock, cell); break;
    case HF__COLUMN_DERIVATION: read_derivation(lock, cell); break;
    case HF__COLUMN_ORDER:
        read_count(lock, cell, "order", INT32_MIN, INT32_MAX, &lock->order, &lock->has_order);
        break;
    case HF__COLUMN_EXPECTED:
        read_count(lock, cell, "expected", 1, INT64_MAX, &lock->expected, &given);
        break;
    case HF__COLUMN_HISTOGRAM: lock->histogram = strcasecmp(text, "yes") == 0; break;
    default: break;
    }
}
