#include "programs/registry/doc/doc.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "programs/registry/risk.h"

/* --- text inside a table -------------------------------------------------------------------- */

static bool is_inside_word(const char *text, size_t at)
{
    return at > 0 && isalnum((unsigned char)text[at - 1]) && isalnum((unsigned char)text[at + 1]);
}

/* Writes a character that means something to Markdown or HTML; returns false for any other. */
static bool put_special(hf__buf *out, const char *text, size_t at)
{
    char c = text[at];

    if (c == '\n')
        hf__buf_puts(out, "<br>");
    else if (c == '\t')
        hf__buf_puts(out, " ");
    else if (c == '<' || c == '>' || c == '&')
        hf__buf_puts(out, c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;");
    else if (c != '\0' && strchr("\\|`*[]~$", c) != NULL)
        hf__buf_printf(out, "\\%c", c);
    else if (c == '_' && !is_inside_word(text, at))
        hf__buf_puts(out, "\\_");
    else
        return false;
    return true;
}

static void put_text(hf__buf *out, const char *text)
{
    size_t size = strlen(text);

    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (put_special(out, text, start))
            continue;
        if (hf__is_unsafe(point))
            hf__buf_puts(out, "\uFFFD");
        else
            hf__buf_add(out, text + start, at - start);
    }
}

/* Can the text stand between backticks in a cell? There "\|" is '|', and "\\|" has no spelling. */
static bool fits_backticks(const char *text, size_t size)
{
    if (text[0] == ' ' || text[size - 1] == ' ')
        return false;
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (point == '`' || hf__is_unsafe(point) ||
            (point == '|' && start > 0 && text[start - 1] == '\\'))
            return false;
    }
    return true;
}

void hf__doc_code(hf__buf *out, const char *text)
{
    size_t size = strlen(text);

    if (size == 0)
        return;
    bool plain = fits_backticks(text, size);
    hf__buf_puts(out, plain ? "`" : "<code>");
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int32_t point = hf__utf8_next((const unsigned char *)text, size, &at);
        if (plain && point == '|')
            hf__buf_puts(out, "\\|");
        else if (!plain && hf__is_unsafe(point))
            hf__buf_puts(out, "\uFFFD");
        else if (!plain && point < 0x80 && !isalnum((int)point))
            hf__buf_printf(out, "&#%d;", (int)point);
        else
            hf__buf_add(out, text + start, at - start);
    }
    hf__buf_puts(out, plain ? "`" : "</code>");
}

static bool is_web_address(const char *url)
{
    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return false;
    for (; *url != '\0'; url++)
        if ((unsigned char)*url <= ' ' || *url == 0x7f)
            return false;
    return true;
}

/*
 * A link if it is one to the web, else plain text. Bytes that could end the link or the cell are
 * written by their number.
 */
static void put_link(hf__buf *out, const char *url)
{
    if (!is_web_address(url)) {
        put_text(out, url);
        return;
    }
    hf__buf_puts(out, "[");
    put_text(out, url);
    hf__buf_puts(out, "](");
    for (const char *at = url; *at != '\0'; at++) {
        if (*at == '&')
            hf__buf_puts(out, "&amp;"); /* "&lt;" would be taken for '<' */
        else if (strchr("<>|()[]\\`\"'", *at) != NULL || (unsigned char)*at >= 0x80)
            hf__buf_printf(out, "%%%02X", (unsigned)(unsigned char)*at);
        else
            hf__buf_add(out, at, 1);
    }
    hf__buf_puts(out, ")");
}

/* --- cells of an entry ---------------------------------------------------------------------- */

bool hf__doc_is_fixed(const hf__lock_entry *entry)
{
    return entry->view.pattern == NULL;
}

static bool is_pattern(const hf__lock_entry *entry)
{
    return entry->view.pattern != NULL;
}

static void put_optional(hf__buf *out, const char *text)
{
    if (text != NULL)
        put_text(out, text);
}

static void write_id(hf__buf *out, const hf__lock_entry *entry)
{
    if (is_pattern(entry))
        return;
    if (entry->view.space == HF_PAIR)
        hf__buf_printf(out, "`(%" PRId32 ", %" PRId32 ")`", entry->view.pair[0],
                       entry->view.pair[1]);
    else
        hf__buf_printf(out, "`%" PRId64 "`", entry->view.key);
}

static void write_pattern(hf__buf *out, const hf__lock_entry *entry)
{
    if (is_pattern(entry))
        hf__doc_code(out, entry->view.pattern);
}

static void write_class(hf__buf *out, const hf__lock_entry *entry)
{
    if (hf__entry_has_class(entry))
        hf__buf_printf(out, "`%" PRId32 "`", entry->view.pair[0]);
}

static void write_name(hf__buf *out, const hf__lock_entry *entry)
{
    hf__doc_code(out, entry->view.name);
}

static void write_derivation(hf__buf *out, const hf__lock_entry *entry)
{
    if (is_pattern(entry))
        hf__doc_code(out, hf_derivation_name(entry->view.derivation));
}

/* All of them, however many: `holdfast registry import` reads them back. */
static void write_values(hf__buf *out, const hf__placeholder *placeholder)
{
    hf__buf_puts(out, "one of ");
    for (size_t i = 0; i < placeholder->value_count; i++) {
        hf__buf_puts(out, i > 0 ? ", " : "");
        hf__doc_code(out, placeholder->values[i]);
    }
}

static void write_placeholders(hf__buf *out, const hf__lock_entry *entry)
{
    for (size_t i = 0; i < entry->placeholder_count; i++) {
        const hf__placeholder *placeholder = &entry->placeholders[i];
        hf__buf_puts(out, i > 0 ? "<br>" : "");
        hf__doc_code(out, placeholder->name);
        hf__buf_puts(out, ": ");
        if (placeholder->values != NULL)
            write_values(out, placeholder);
        else if (placeholder->regex != NULL)
            hf__doc_code(out, placeholder->regex);
        else
            hf__buf_puts(out, "anything but `:`");
    }
}

static void write_expected(hf__buf *out, const hf__lock_entry *entry)
{
    if (is_pattern(entry) && entry->view.expected > 0)
        hf__buf_printf(out, "%" PRId64, entry->view.expected);
}

static void write_component(hf__buf *out, const hf__lock_entry *entry)
{
    put_optional(out, entry->view.component);
}

static void write_purpose(hf__buf *out, const hf__lock_entry *entry)
{
    put_optional(out, entry->view.purpose);
}

static void write_scope(hf__buf *out, const hf__lock_entry *entry)
{
    put_optional(out, entry->view.scope);
}

static void write_type(hf__buf *out, const hf__lock_entry *entry)
{
    int ms = entry->view.lease_ms;

    if (entry->view.lifetime_given)
        hf__buf_puts(out, entry->view.lifetime == HF_LEASE         ? "lease"
                          : entry->view.lifetime == HF_TRANSACTION ? "transaction"
                                                                   : "session");
    if (ms > 0) /* to the millisecond: import reads it back */
        hf__buf_printf(out, " of %d%s", ms % 1000 == 0 ? ms / 1000 : ms,
                       ms % 1000 == 0 ? "s" : "ms");
    hf__buf_puts(out, entry->view.lifetime_given ? ", " : "");
    hf__buf_puts(out, entry->view.mode == HF_SHARED ? "shared" : "exclusive");
}

static void write_histogram(hf__buf *out, const hf__lock_entry *entry)
{
    hf__buf_puts(out, entry->view.histogram ? "yes" : "");
}

static void write_sources(hf__buf *out, const hf__lock_entry *entry)
{
    for (size_t i = 0; i < entry->source_count; i++) {
        hf__buf_puts(out, i > 0 ? "<br>" : "");
        hf__doc_code(out, entry->sources[i].path);
    }
}

static void write_order(hf__buf *out, const hf__lock_entry *entry)
{
    hf__buf_printf(out, "%" PRId64, entry->view.order);
}

static void write_owner(hf__buf *out, const hf__lock_entry *entry)
{
    put_optional(out, entry->view.owner);
}

static void write_runbook(hf__buf *out, const hf__lock_entry *entry)
{
    if (entry->view.runbook != NULL)
        put_link(out, entry->view.runbook);
}

/* --- tables of entries ---------------------------------------------------------------------- */

typedef void write_cell(hf__buf *out, const hf__lock_entry *entry);

struct column {
    const char *title; /* NULL ends a table; `holdfast registry import` knows these titles */
    bool to_the_right;
    write_cell *write;
};

typedef bool choose_entry(const hf__lock_entry *entry);

struct choice {
    const hf__lock_entry *entry;
    size_t at; /* in the order of the page */
};

static void begin_table(hf__buf *out, const struct column *columns, const bool *used)
{
    for (size_t i = 0; columns[i].title != NULL; i++)
        if (used[i])
            hf__buf_printf(out, "| %s ", columns[i].title);
    hf__buf_puts(out, "|\n");
    for (size_t i = 0; columns[i].title != NULL; i++)
        if (used[i])
            hf__buf_puts(out, columns[i].to_the_right ? "|---:" : "|---");
    hf__buf_puts(out, "|\n");
}

static void write_row(hf__buf *out, const struct column *columns, const bool *used,
                      const hf__lock_entry *entry)
{
    for (size_t i = 0; columns[i].title != NULL; i++) {
        if (!used[i])
            continue;
        hf__buf_puts(out, "| ");
        columns[i].write(out, entry);
        hf__buf_puts(out, " ");
    }
    hf__buf_puts(out, "|\n");
}

enum { COLUMNS_MAX = 16 };

/* Finds the columns in which some row has something to say. The others are not written. */
static void find_used(const struct choice *chosen, size_t count, const struct column *columns,
                      bool used[COLUMNS_MAX])
{
    hf__buf cell = {0};

    for (size_t i = 0; columns[i].title != NULL; i++) {
        used[i] = false;
        for (size_t row = 0; !used[i] && row < count; row++) {
            hf__buf_clear(&cell);
            columns[i].write(&cell, chosen[row].entry);
            used[i] = cell.length > 0;
        }
    }
    hf__buf_free(&cell);
}

static void write_table(hf__buf *out, const struct column *columns, const struct choice *chosen,
                        size_t count)
{
    bool used[COLUMNS_MAX] = {false};

    find_used(chosen, count, columns, used);
    begin_table(out, columns, used);
    for (size_t i = 0; i < count; i++)
        write_row(out, columns, used, chosen[i].entry);
}

/* --- sections of the page ------------------------------------------------------------------- */

struct doc {
    const hf_registry *registry;
    hf__buf *out;
    struct choice *chosen; /* has room for all entries */
    size_t count;
};

/*
 * Everywhere on the page ids come before patterns, each in the order of the file. A registry that
 * `holdfast registry import` makes of the page has them in this order, and gives the same page.
 */
static void choose(struct doc *doc, choose_entry *wanted)
{
    doc->count = 0;
    for (int patterns = 0; patterns <= 1; patterns++)
        for (size_t i = 0; i < doc->registry->count; i++) {
            const hf__lock_entry *entry = &doc->registry->entries[i];
            if (is_pattern(entry) == (patterns == 1) && wanted(entry)) {
                doc->chosen[doc->count] = (struct choice){entry, doc->count};
                doc->count++;
            }
        }
}

static void write_chosen(struct doc *doc, const char *heading, const struct column *columns)
{
    if (doc->count == 0)
        return;
    hf__buf_printf(doc->out, "\n%s\n\n", heading);
    write_table(doc->out, columns, doc->chosen, doc->count);
}

/* Of ids and of patterns: each table has the columns that its entries say something in. */
static const struct column lock_columns[] = {
    {"Lock ID", true, write_id},
    {"Hash Input Pattern", false, write_pattern},
    {"Name", false, write_name},
    {"Class", true, write_class},
    {"Derivation", false, write_derivation},
    {"Placeholders", false, write_placeholders},
    {"Expected", true, write_expected},
    {"Component", false, write_component},
    {"Purpose", false, write_purpose},
    {"Scope", false, write_scope},
    {"Lock Type", false, write_type},
    {"Histogram", false, write_histogram},
    {"File Reference", false, write_sources},
    {0},
};

static const struct column order_columns[] = {
    {"Order", true, write_order},
    {"Name", false, write_name},
    {0},
};

static const struct column owner_columns[] = {
    {"Name", false, write_name},
    {"Owner", false, write_owner},
    {"Runbook", false, write_runbook},
    {0},
};

/* A lifetime and a mode, how PostgreSQL acquires such locks, and when it releases them. */
static const struct {
    bool given;
    hf_lifetime lifetime;
    hf_mode mode;
    const char *cells;
} kinds[] = {
    {true, HF_SESSION, HF_EXCLUSIVE,
     "| session | exclusive | `pg_advisory_lock` | with `pg_advisory_unlock` or the session |"},
    {true, HF_SESSION, HF_SHARED,
     "| session | shared | `pg_advisory_lock_shared` | with `pg_advisory_unlock_shared` or the "
     "session |"},
    {true, HF_TRANSACTION, HF_EXCLUSIVE,
     "| transaction | exclusive | `pg_advisory_xact_lock` | with the transaction |"},
    {true, HF_TRANSACTION, HF_SHARED,
     "| transaction | shared | `pg_advisory_xact_lock_shared` | with the transaction |"},
    {true, HF_LEASE, HF_EXCLUSIVE,
     "| lease | exclusive | `holdfast run --lease` | when it is over |"},
    {true, HF_LEASE, HF_SHARED, "| lease | shared | `holdfast run --lease -s` | when it is over |"},
    {false, HF_SESSION, HF_EXCLUSIVE, "| not stated | exclusive | | |"},
    {false, HF_SESSION, HF_SHARED, "| not stated | shared | | |"},
};

static bool is_any(const hf__lock_entry *entry)
{
    (void)entry;
    return true;
}

static void write_kind(struct doc *doc, size_t kind)
{
    size_t count = 0;

    choose(doc, is_any);
    for (size_t i = 0; i < doc->count; i++) {
        const hf__lock_entry *entry = doc->chosen[i].entry;
        bool given = entry->view.lifetime_given;
        if (given != kinds[kind].given || entry->view.mode != kinds[kind].mode ||
            (given && entry->view.lifetime != kinds[kind].lifetime))
            continue;
        hf__buf_printf(doc->out, "%s ", count++ == 0 ? kinds[kind].cells : ",");
        write_name(doc->out, entry);
    }
    if (count > 0)
        hf__buf_puts(doc->out, " |\n");
}

static void write_lifetimes(struct doc *doc)
{
    if (doc->registry->count == 0)
        return;
    hf__buf_puts(doc->out,
                 "\n## Lifetimes and modes\n\n"
                 "| Lifetime | Mode | Taken with | Ends | Locks |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        write_kind(doc, i);
}

static bool has_order(const hf__lock_entry *entry)
{
    return entry->view.has_order;
}

static int compare_order(const void *a, const void *b)
{
    const struct choice *one = a, *other = b;

    if (one->entry->view.order != other->entry->view.order)
        return one->entry->view.order < other->entry->view.order ? -1 : 1;
    return (one->at > other->at) - (one->at < other->at);
}

static void write_orders(struct doc *doc)
{
    choose(doc, has_order);
    qsort(doc->chosen, doc->count, sizeof *doc->chosen, compare_order);
    write_chosen(doc,
                 "## Order\n\nWhoever holds several locks takes them in this order, those of one "
                 "entry by their keys.",
                 order_columns);
}

static bool has_owner(const hf__lock_entry *entry)
{
    return entry->view.owner != NULL || entry->view.runbook != NULL;
}

/* --- the section on risk -------------------------------------------------------------------- */

static void write_risk_row(hf__buf *out, const struct hf__risk_row *row)
{
    char words[HF__WORDS_MAX], fixed[32], labels[32], few[32], many[32];

    hf__buf_printf(out, "| %s | %u | %s | %s%s | %s | ", row->name, row->bits,
                   hf__risk_count(fixed, sizeof fixed, row->fixed),
                   hf__risk_count(labels, sizeof labels, row->labels),
                   row->unknown > 0 ? " + ?" : "", hf__risk_row_words(words, sizeof words, row));
    hf__buf_printf(out, "%s | %s |\n",
                   row->count_1pc > 0 ? hf__risk_count(few, sizeof few, row->count_1pc) : "",
                   row->count_50pc > 0 ? hf__risk_count(many, sizeof many, row->count_50pc) : "");
}

static void write_advice(hf__buf *out, const struct hf__risk_advice *advice)
{
    hf__buf_puts(out, "- ");
    write_name(out, advice->entry);
    hf__buf_printf(out, " has too many labels for `%s`: %s%s.\n",
                   hf_derivation_name(advice->entry->view.derivation),
                   advice->instead == HF_MINTED ? "use `minted` keys"
                                                : "use `sha256`, or `minted` keys",
                   advice->leaves_class ? ", without a class" : "");
}

static hf_status write_risk(struct doc *doc, hf_error *err)
{
    struct hf__risk risk = {0};
    hf_status status =
        hf__risk_assess(doc->registry, doc->registry->conventions.max_risk, &risk, err);

    if (status != HF_OK)
        return status;
    if (risk.row_count > 0)
        hf__buf_puts(doc->out,
                     "\n## Collision risk\n\nHow likely two of the expected labels get the same "
                     "key.\n");
    if (risk.row_count > 0 && doc->registry->conventions.max_risk != HF__DEFAULT_MAX_RISK)
        hf__buf_printf(doc->out, "\n" HF__DOC_MAX_RISK "%.15g.\n",
                       doc->registry->conventions.max_risk);
    if (risk.row_count > 0)
        hf__buf_puts(doc->out, "\n| Keys | Bits | Fixed | Labels | Collision | 1 % at | 50 % at |\n"
                               "|---|---:|---:|---:|---|---:|---:|\n");
    for (size_t i = 0; i < risk.row_count; i++)
        write_risk_row(doc->out, &risk.rows[i]);
    if (risk.advice_count + risk.unknown_count > 0)
        hf__buf_puts(doc->out, "\n");
    for (size_t i = 0; i < risk.advice_count; i++)
        write_advice(doc->out, &risk.advice[i]);
    for (size_t i = 0; i < risk.unknown_count; i++) {
        hf__buf_puts(doc->out, "- ");
        write_name(doc->out, risk.unknown[i]);
        hf__buf_puts(doc->out, " does not say how many labels are expected.\n");
    }
    hf__risk_free(&risk);
    return HF_OK;
}

/* --- the page ------------------------------------------------------------------------------- */

/* `holdfast registry import` knows a page of this command by its first line. */
static void write_beginning(struct doc *doc)
{
    size_t patterns;

    choose(doc, is_pattern);
    patterns = doc->count;
    hf__buf_puts(doc->out,
                 "<!-- Made by `holdfast registry doc` from the lock registry. Do not edit "
                 "it: edit the registry. -->\n\n# Advisory locks\n\n");
    hf__buf_printf(doc->out, "The registry has %zu fixed id%s and %zu pattern%s.\n",
                   doc->registry->count - patterns, doc->registry->count - patterns == 1 ? "" : "s",
                   patterns, patterns == 1 ? "" : "s");
}

hf_status hf__doc_write(const hf_registry *registry, hf__buf *out, hf_error *err)
{
    struct doc doc = {.registry = registry, .out = out};

    doc.chosen = calloc(registry->count + 1, sizeof *doc.chosen);
    if (doc.chosen == NULL)
        return hf__no_memory(err);
    write_beginning(&doc);
    choose(&doc, hf__doc_is_fixed);
    write_chosen(&doc, "## Fixed ids", lock_columns);
    choose(&doc, is_pattern);
    write_chosen(&doc, "## Patterns", lock_columns);
    write_lifetimes(&doc);
    write_orders(&doc);
    hf_status status = write_risk(&doc, err);
    choose(&doc, has_owner);
    write_chosen(&doc, "## Owners and runbooks", owner_columns);
    hf__doc_write_inspection(registry, out);
    free(doc.chosen);
    if (status == HF_OK && out->broken)
        status = hf__no_memory(err);
    return status;
}
