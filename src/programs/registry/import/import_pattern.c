/* ${tenantId}:${date}, tenant-<id>, {tenantId}:balance and the like → {tenant_id}… */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "programs/registry/import/key.h"

enum { NAME_MAX_SIZE = 40, NAMES_MAX = 32 };

struct conversion {
    hf__pattern *out;
    const char *at, *end;
    char names[NAMES_MAX][NAME_MAX_SIZE + 8];
    size_t no_close; /* bit by form: no closing mark is left, so none is looked for */
};

static void doubt(hf__pattern *out, const char *text)
{
    hf__buf_printf(&out->doubts, "%s\n", text);
}

/* "this.tenantId" → "tenant_id", "format(date)" → "format_date", "0" → "arg_0" */
static void name_from(const char *text, size_t size, char *out)
{
    size_t used = 0;
    bool gap = false;

    if (size > 5 && strncmp(text, "this.", 5) == 0) {
        text += 5;
        size -= 5;
    }
    for (size_t i = 0; i < size && used < NAME_MAX_SIZE - 2; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!isascii(c) || !isalnum(c)) {
            gap = used > 0;
            continue;
        }
        bool hump = isupper(c) && i > 0 &&
                    (islower((unsigned char)text[i - 1]) ||
                     (isupper((unsigned char)text[i - 1]) && i + 1 < size &&
                      islower((unsigned char)text[i + 1])));
        if (used > 0 && (gap || hump))
            out[used++] = '_';
        gap = false;
        out[used++] = (char)tolower(c);
    }
    out[used] = '\0';
}

static bool is_taken(const struct conversion *c, const char *name)
{
    for (size_t i = 0; i < c->out->placeholders; i++)
        if (strcmp(c->names[i], name) == 0)
            return true;
    return false;
}

/* False when there is no room for one more: then its text stays as it is. */
static bool put_placeholder(struct conversion *c, const char *text, size_t size,
                            const char *fallback)
{
    char base[NAME_MAX_SIZE];

    if (c->out->placeholders == NAMES_MAX)
        return false;
    char *name = c->names[c->out->placeholders];
    name_from(text, size, base);
    if (base[0] == '\0')
        strcpy(base, fallback);
    if (isdigit((unsigned char)base[0]))
        snprintf(name, sizeof c->names[0], "arg_%.38s", base);
    else
        snprintf(name, sizeof c->names[0], "%s", base);
    for (unsigned i = 2; is_taken(c, name); i++)
        snprintf(name, sizeof c->names[0], "%.38s_%u", base, i);
    c->out->placeholders++;
    hf__buf_printf(&c->out->text, "{%s}", name);
    return true;
}

static bool is_identifier(const char *text, size_t size)
{
    if (size == 0 || isdigit((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_-. ", text[i]))
            return false;
    return true;
}

static const struct form {
    const char *open, *close;
    bool identifier_only; /* otherwise it may be an expression */
} forms[] = {
    {"${", "}", false}, {"#{", "}", false}, {"{{", "}}", true},
    {"{", "}", false},  {"<", ">", true},   {"[", "]", true},
};

static bool read_form(struct conversion *c, size_t index)
{
    const struct form *form = &forms[index];
    size_t open = strlen(form->open);
    size_t left = (size_t)(c->end - c->at);

    if (c->no_close >> index & 1 || left < open || memcmp(c->at, form->open, open) != 0)
        return false;
    const char *inner = c->at + open;
    const char *close = memmem(inner, left - open, form->close, strlen(form->close));
    if (close == NULL) {
        c->no_close |= (size_t)1 << index;
        return false;
    }
    size_t size = (size_t)(close - inner);
    if (memchr(inner, '{', size) != NULL || (form->identifier_only && !is_identifier(inner, size)))
        return false;
    if (!put_placeholder(c, inner, size, "value"))
        return false;
    c->at = close + strlen(form->close);
    return true;
}

/* %s, %d, %(name)s, $1 */
static bool read_argument(struct conversion *c)
{
    size_t left = (size_t)(c->end - c->at);

    if (left >= 2 && c->at[0] == '$' && isdigit((unsigned char)c->at[1])) {
        size_t size = 1;
        while (size < left && isdigit((unsigned char)c->at[size]))
            size++;
        if (!put_placeholder(c, c->at + 1, size - 1, "value"))
            return false;
        c->at += size;
        return true;
    }
    if (left >= 2 && c->at[0] == '%' && strchr("sdvuiq", c->at[1]) != NULL && c->at[1] != '\0' &&
        (left == 2 || !isalnum((unsigned char)c->at[2]))) {
        if (!put_placeholder(c, "", 0, "value"))
            return false;
        c->at += 2;
        return true;
    }
    if (left >= 4 && c->at[0] == '%' && c->at[1] == '(') {
        const char *close = memchr(c->at, ')', left < NAME_MAX_SIZE ? left : NAME_MAX_SIZE);
        if (close == NULL || close + 1 == c->end || !isalpha((unsigned char)close[1]) ||
            !put_placeholder(c, c->at + 2, (size_t)(close - c->at) - 2, "value"))
            return false;
        c->at = close + 2;
        return true;
    }
    return false;
}

/* What stands for anything: '*', '…', '...'. It may well contain a ':'. */
static bool read_wildcard(struct conversion *c)
{
    static const char *const marks[] = {"…", "...", "*"};

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        size_t size = strlen(marks[i]);
        if ((size_t)(c->end - c->at) < size || memcmp(c->at, marks[i], size) != 0)
            continue;
        if (!put_placeholder(c, "", 0, "rest"))
            return false;
        hf__buf_printf(&c->out->expressions, "%s%s: \".+\"",
                       c->out->expressions.length > 0 ? ", " : "",
                       c->names[c->out->placeholders - 1]);
        hf__buf_printf(&c->out->doubts, "what '%s' stands for is not stated, anything assumed\n",
                       marks[i]);
        c->at += size;
        return true;
    }
    return false;
}

static void put_literal(struct conversion *c)
{
    char byte = *c->at++;
    unsigned char value = (unsigned char)byte;

    if (byte == '{' || byte == '}')
        hf__buf_printf(&c->out->text, "%c%c", byte, byte);
    else if (value < 0x20 || value == 0x7f)
        hf__buf_puts(&c->out->text, " ");
    else
        hf__buf_add(&c->out->text, &byte, 1);
}

static void convert(struct conversion *c)
{
    while (c->at < c->end) {
        bool done = read_argument(c) || read_wildcard(c);
        for (size_t i = 0; !done && i < sizeof forms / sizeof forms[0]; i++)
            done = read_form(c, i);
        if (!done)
            put_literal(c);
    }
}

/* hashtext('label'), hashtextextended('label', 0), fnv1a32("label"): the call says how. */
static bool read_call(hf__pattern *pattern, const char **text, size_t *size)
{
    char name[24];
    const char *open = memchr(*text, '(', *size < sizeof name ? *size : sizeof name);
    const char *end = *text + *size;

    if (open == NULL || open == *text || open + 3 >= end || end[-1] != ')' ||
        strchr("'\"`", open[1]) == NULL)
        return false;
    const char *close = memrchr(open + 2, open[1], (size_t)(end - open - 2));
    size_t length = (size_t)(open - *text);
    if (close == NULL || length >= sizeof name)
        return false;
    memcpy(name, *text, length);
    name[length] = '\0';
    if (hf_derivation_parse(name, &pattern->derivation, NULL) != HF_OK ||
        pattern->derivation == HF_FIXED)
        return false;
    pattern->derivation_given = true;
    *text = open + 2;
    *size = (size_t)(close - *text);
    return true;
}

/* "'a'", "`a`", "\"a\"" */
static void strip_quotes(const char **text, size_t *size)
{
    if (*size >= 2 && strchr("'\"`", **text) != NULL && (*text)[*size - 1] == **text) {
        (*text)++;
        *size -= 2;
    }
}

void hf__pattern_read(hf__pattern *pattern, const char *text, size_t size)
{
    *pattern = (hf__pattern){0};
    if (!read_call(pattern, &text, &size))
        strip_quotes(&text, &size);
    struct conversion conversion = {.out = pattern, .at = text, .end = text + size};
    hf__buf_puts(&pattern->text, "");
    convert(&conversion);
    if (pattern->placeholders == 0 && !pattern->derivation_given)
        doubt(pattern, "no placeholder is marked, so it is taken for one label");
}

void hf__pattern_free(hf__pattern *pattern)
{
    hf__buf_free(&pattern->text);
    hf__buf_free(&pattern->expressions);
    hf__buf_free(&pattern->doubts);
    *pattern = (hf__pattern){0};
}
