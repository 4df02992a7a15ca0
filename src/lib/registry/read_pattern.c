/* "{tenant}:{date}": literal text and placeholders, and the language that they make together. */
#include "lib/registry/read.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { PLACEHOLDERS_MAX = 32, VALUES_MAX = 1000, SHOWN = 80 };

/* Anything without a ':' and without control characters, which labels do not have. */
static const char default_expression[] = "[^:\\x00-\\x1f\\x7f]+";

struct parts {
    hf__part items[2 * PLACEHOLDERS_MAX + 1];
    size_t count;
    hf__buf literals; /* all literal text, with {{ and }} undone */
};

static void out_of_memory(hf__reading *reading)
{
    reading->no_memory = true;
}

/* ---- the text of the pattern ---- */

static hf__placeholder *find_placeholder(const hf__lock_entry *entry, const char *name, size_t size)
{
    for (size_t i = 0; i < entry->placeholder_count; i++) {
        const char *known = entry->placeholders[i].name;
        if (known && strlen(known) == size && memcmp(known, name, size) == 0)
            return &entry->placeholders[i];
    }
    return NULL;
}

static size_t name_length(const char *text)
{
    size_t size = 0;
    while (isalnum((unsigned char)text[size]) || text[size] == '_')
        size++;
    return size > 0 && !isdigit((unsigned char)text[0]) ? size : 0;
}

static bool add_placeholder(hf__reading *reading, hf__lock_entry *entry, const hf__node *node,
                            const char *name, size_t size)
{
    if (size == 0 || name[size] != '}') {
        hf__complain(reading, HF__RULE_PATTERN, node->at,
                     "write {{ for a brace that stands for itself",
                     "the pattern has a '{' that begins no {placeholder}");
        return false;
    }
    if (find_placeholder(entry, name, size)) {
        hf__complain(reading, HF__RULE_PATTERN, node->at, "name the second one differently",
                     "the pattern has {%.*s} twice", (int)size, name);
        return false;
    }
    if (entry->placeholder_count == PLACEHOLDERS_MAX) {
        hf__complain(reading, HF__RULE_PATTERN, node->at, "",
                     "the pattern has more than %d placeholders", PLACEHOLDERS_MAX);
        return false;
    }
    hf__placeholder *placeholder = &entry->placeholders[entry->placeholder_count];
    placeholder->at = node->at;
    placeholder->name = strndup(name, size);
    if (!placeholder->name) {
        out_of_memory(reading);
        return false;
    }
    entry->placeholder_count++;
    return true;
}

/* The buffer moves while it grows: until it is complete, a literal part is kept as an offset. */
static void add_literal(struct parts *parts, const char *text, size_t size)
{
    bool goes_on = parts->count > 0 && !parts->items[parts->count - 1].is_regex;
    if (!goes_on)
        parts->items[parts->count++] = (hf__part){0};
    hf__buf_add(&parts->literals, text, size);
    parts->items[parts->count - 1].size += size;
}

static bool split_pattern(hf__reading *reading, hf__lock_entry *entry, const hf__node *node,
                          struct parts *parts)
{
    for (const char *at = node->text; *at;) {
        if ((at[0] == '{' || at[0] == '}') && at[1] == at[0]) {
            add_literal(parts, at, 1);
            at += 2;
        } else if (*at == '{') {
            size_t size = name_length(at + 1);
            if (!add_placeholder(reading, entry, node, at + 1, size))
                return false;
            parts->items[parts->count++] = (hf__part){.is_regex = true};
            at += size + 2;
        } else if (*at == '}') {
            hf__complain(reading, HF__RULE_PATTERN, node->at,
                         "write }} for a brace that stands for itself",
                         "the pattern has a '}' that ends no {placeholder}");
            return false;
        } else {
            size_t size = strcspn(at, "{}");
            add_literal(parts, at, size);
            at += size;
        }
    }
    return true;
}

/* ---- what placeholders allow ---- */

static void add_escaped(hf__buf *expression, const char *text)
{
    for (; *text; text++) {
        if (ispunct((unsigned char)*text))
            hf__buf_puts(expression, "\\");
        hf__buf_add(expression, text, 1);
    }
}

static bool read_values(hf__reading *reading, hf__placeholder *placeholder, const hf__node *node)
{
    hf__buf expression = {0};
    if (node->count == 0 || node->count > VALUES_MAX) {
        hf__complain(reading, HF__RULE_PLACEHOLDER, node->at, "give an expression instead",
                     "{%s} has %zu values: a list has 1 to %d", placeholder->name, node->count,
                     VALUES_MAX);
        return false;
    }
    placeholder->values = calloc(node->count, sizeof *placeholder->values);
    if (!placeholder->values) {
        out_of_memory(reading);
        return false;
    }
    for (size_t i = 0; i < node->count; i++) {
        if (!hf__read_text(reading, node->items[i], placeholder->name, &placeholder->values[i])) {
            hf__buf_free(&expression);
            return false;
        }
        placeholder->value_count++;
        hf__buf_puts(&expression, i > 0 ? "|" : "");
        add_escaped(&expression, placeholder->values[i]);
    }
    if (expression.broken)
        out_of_memory(reading);
    placeholder->regex = expression.data;
    return !expression.broken;
}

static bool read_placeholder(hf__reading *reading, hf__lock_entry *entry, const hf__node *name,
                             const hf__node *value)
{
    hf__placeholder *placeholder = find_placeholder(entry, name->text, strlen(name->text));
    char shown[SHOWN];
    if (!placeholder) {
        hf__complain(reading, HF__RULE_PLACEHOLDER, name->at, "remove it, or mend the name",
                     "the pattern has no {%s}",
                     hf__show(shown, sizeof shown, name->text, strlen(name->text)));
        return true; /* the pattern itself can still be read */
    }
    placeholder->at = value->at;
    if (placeholder->regex)
        return true; /* given twice: reported already */
    return value->kind == HF__LIST
               ? read_values(reading, placeholder, value)
               : hf__read_text(reading, value, placeholder->name, &placeholder->regex);
}

static bool read_placeholders(hf__reading *reading, hf__lock_entry *entry, const hf__node *node)
{
    bool ok = true;
    if (!node)
        return true;
    if (node->kind != HF__MAPPING) {
        hf__complain(reading, HF__RULE_WRONG_TYPE, node->at, "write it as NAME: \"EXPRESSION\"",
                     "placeholders is %s, not a mapping", hf__node_kind_name(node));
        return false;
    }
    for (size_t i = 0; i + 1 < node->count; i += 2)
        ok = read_placeholder(reading, entry, node->items[i], node->items[i + 1]) && ok;
    return ok;
}

/* ---- languages ---- */

static const char *expression_of(const hf__placeholder *placeholder)
{
    return placeholder->regex ? placeholder->regex : default_expression;
}

static void complain_of_language(hf__reading *reading, hf__place at, const char *what,
                                 hf_status status, const hf_error *err)
{
    if (status == HF_NO_MEMORY)
        out_of_memory(reading);
    else
        hf__complain(reading, status == HF_QUOTA ? HF__RULE_EXPRESSION_LIMIT : HF__RULE_EXPRESSION,
                     at, err->hint, "%s: %s", what, err->message);
}

static bool build_placeholder(hf__reading *reading, hf__placeholder *placeholder)
{
    char what[SHOWN];
    size_t bad = 0;
    hf_error err;
    const char *expression = expression_of(placeholder);
    hf__part part = {expression, strlen(expression), true};
    hf_status status = hf__language_build(&part, 1, &placeholder->language, &bad, &err);
    hf__buf shown = {0};
    if (status == HF_OK)
        return true;
    hf__buf_printf(&shown, "{%s}", placeholder->name);
    complain_of_language(reading, placeholder->at,
                         hf__show(what, sizeof what, shown.data, shown.length), status, &err);
    hf__buf_free(&shown);
    return false;
}

static bool build_pattern(hf__reading *reading, hf__lock_entry *entry, struct parts *parts)
{
    size_t literal = 0, placeholder = 0, bad = 0;
    hf_error err;
    bool ok = true;
    for (size_t i = 0; i < entry->placeholder_count; i++)
        ok = build_placeholder(reading, &entry->placeholders[i]) && ok;
    for (size_t i = 0; i < parts->count; i++) {
        hf__part *part = &parts->items[i];
        if (part->is_regex) {
            part->text = expression_of(&entry->placeholders[placeholder++]);
            part->size = strlen(part->text);
        } else {
            part->text = parts->literals.data + literal;
            literal += part->size;
        }
    }
    if (!ok)
        return false;
    hf_status status = hf__language_build(parts->items, parts->count, &entry->language, &bad, &err);
    if (status != HF_OK)
        complain_of_language(reading, entry->key_at, "the pattern", status, &err);
    return status == HF_OK;
}

static bool keep_prefix(hf__lock_entry *entry, const struct parts *parts)
{
    bool has_prefix = parts->count > 0 && !parts->items[0].is_regex;
    entry->literal_prefix_size = has_prefix ? parts->items[0].size : 0;
    entry->literal_prefix =
        strndup(has_prefix ? parts->items[0].text : "", entry->literal_prefix_size);
    return entry->literal_prefix != NULL;
}

void hf__read_pattern(hf__reading *reading, hf__lock_entry *entry, const hf__node *pattern,
                      const hf__node *placeholders)
{
    struct parts parts = {0};
    char *text = NULL;
    if (!hf__read_text(reading, pattern, "pattern", &text))
        return;
    entry->view.pattern = text;
    if (hf__has_control(text, strlen(text))) {
        hf__complain(reading, HF__RULE_PATTERN, pattern->at, "labels are printable text",
                     "the pattern has a control character");
        return;
    }
    entry->placeholders = calloc(PLACEHOLDERS_MAX, sizeof *entry->placeholders);
    if (!entry->placeholders) {
        out_of_memory(reading);
        return;
    }
    if (split_pattern(reading, entry, pattern, &parts) &&
        read_placeholders(reading, entry, placeholders)) {
        if (parts.literals.broken)
            out_of_memory(reading);
        else if (build_pattern(reading, entry, &parts) && !keep_prefix(entry, &parts))
            out_of_memory(reading);
    }
    hf__buf_free(&parts.literals);
}
