#include "programs/registry/lint/text/scan.h"

#include <ctype.h>
#include <string.h>

bool scanner_is_at(const struct scanner *in, const char *word)
{
    if (in->at >= in->size || in->text[in->at] != word[0]) /* the hot path: most calls end here */
        return false;

    size_t size = strlen(word);
    return in->size - in->at >= size && memcmp(in->text + in->at, word, size) == 0;
}

void scanner_mark(struct scanner *in, size_t count, hf__class kind)
{
    if (count > in->size - in->at)
        count = in->size - in->at;
    memset(in->classes + in->at, (int)kind, count);
    in->at += count;
}

bool scanner_is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

char scanner_code_before(const struct scanner *in, size_t at)
{
    while (at-- > 0)
        if (in->classes[at] != HF__COMMENT && !isspace((unsigned char)in->text[at]))
            return in->text[at];
    return '\0';
}

/* ---- Comments -------------------------------------------------------------------------------- */

static bool take_line_comment(struct scanner *in)
{
    for (size_t i = 0; i < 3 && in->syntax->line_comments[i] != NULL; i++) {
        if (!scanner_is_at(in, in->syntax->line_comments[i]))
            continue;
        if (in->syntax->id == HF__LANG_PHP && scanner_is_at(in, "#["))
            continue; /* an attribute */
        if ((in->syntax->id & (HF__LANG_SHELL | HF__LANG_PERL)) != 0 && in->at > 0 &&
            !isspace((unsigned char)in->text[in->at - 1]) && in->text[in->at - 1] != ';')
            continue; /* ${x#y}, $#x */
        const char *end = memchr(in->text + in->at, '\n', in->size - in->at);
        scanner_mark(in, (end != NULL ? (size_t)(end - in->text) : in->size) - in->at, HF__COMMENT);
        return true;
    }
    return false;
}

static bool take_block_comment(struct scanner *in)
{
    size_t depth = 0;

    if (!in->syntax->block_comments || !scanner_is_at(in, "/*"))
        return false;
    while (in->at < in->size) {
        if (scanner_is_at(in, "/*") && (depth == 0 || in->syntax->nested_comments)) {
            depth++;
            scanner_mark(in, 2, HF__COMMENT);
        } else if (scanner_is_at(in, "*/")) {
            scanner_mark(in, 2, HF__COMMENT);
            if (--depth == 0)
                return true;
        } else {
            scanner_mark(in, 1, HF__COMMENT);
        }
    }
    return true;
}

/* =begin … =end in Ruby, =head1 … =cut in Perl, each at the start of a line. */
static bool take_ruby_comment(struct scanner *in)
{
    bool perl = in->syntax->id == HF__LANG_PERL;

    if ((in->syntax->id != HF__LANG_RUBY && !perl) ||
        !(perl ? scanner_peek(in, 0) == '=' && isalpha((unsigned char)scanner_peek(in, 1))
               : scanner_is_at(in, "=begin")) ||
        (in->at > 0 && in->text[in->at - 1] != '\n'))
        return false;
    while (in->at < in->size) {
        bool last = scanner_is_at(in, perl ? "=cut" : "=end");
        const char *end = memchr(in->text + in->at, '\n', in->size - in->at);
        scanner_mark(in, (end != NULL ? (size_t)(end - in->text) + 1 : in->size) - in->at,
                     HF__COMMENT);
        if (last)
            break;
    }
    return true;
}

/* ---- Strings --------------------------------------------------------------------------------- */

/* Is the string a whole statement of Python? */
static bool is_docstring(const struct scanner *in, size_t open)
{
    if (in->depth > 0)
        return false;
    while (open > 0 && strchr("rRuU \t", in->text[open - 1]) != NULL)
        open--;
    return open == 0 || (in->text[open - 1] == '\n' && !(open > 1 && in->text[open - 2] == '\\'));
}

/* Is it the string of @doc """…""" or @moduledoc "…"? */
static bool is_elixir_doc(const struct scanner *in, size_t open)
{
    while (open > 0 && in->text[open - 1] == ' ')
        open--;
    return open >= 4 && memcmp(in->text + open - 3, "doc", 3) == 0 &&
           (in->text[open - 4] == '@' || in->text[open - 4] == 'e');
}

static bool is_documentation(const struct scanner *in, size_t open)
{
    switch (in->syntax->id) {
    case HF__LANG_PYTHON: return is_docstring(in, open);
    case HF__LANG_ELIXIR: return is_elixir_doc(in, open);
    default: return false;
    }
}

static bool ends_here(const struct scanner *in, const hf__quote *quote)
{
    return scanner_is_at(in, quote->close) || (!quote->lines && scanner_peek(in, 0) == '\n');
}

static void take_text(struct scanner *in, const hf__quote *quote)
{
    size_t close = strlen(quote->close);

    while (in->at < in->size) {
        if (quote->escapes && scanner_peek(in, 0) == '\\') {
            scanner_mark(in, 2, HF__TEXT);
        } else if (quote->hole != NULL && scanner_is_at(in, quote->hole)) {
            scanner_hole(in, strlen(quote->hole));
        } else if (quote->doubled && scanner_is_at(in, quote->close) &&
                   scanner_peek(in, close) == quote->close[0]) {
            scanner_mark(in, close + 1, HF__TEXT);
        } else if (ends_here(in, quote)) {
            if (scanner_is_at(in, quote->close))
                scanner_mark(in, close, HF__QUOTE);
            return;
        } else {
            scanner_mark(in, 1, HF__TEXT);
        }
    }
}

static bool is_no_quote(const struct scanner *in, const hf__quote *quote)
{
    char before = in->at > 0 ? in->text[in->at - 1] : '\0';

    switch (in->syntax->id) {
    case HF__LANG_C: return quote->open[0] == '\'' && isdigit((unsigned char)before); /* 1'000 */
    case HF__LANG_SQL: return quote->escapes && scanner_is_word(before); /* the e of value'… */
    case HF__LANG_RUBY: return before == '$' || before == '?';
    case HF__LANG_ELIXIR: return before == '?';
    default: return false;
    }
}

static bool take_string(struct scanner *in)
{
    for (const hf__quote *quote = in->syntax->quotes; quote->open != NULL; quote++) {
        if (!scanner_is_at(in, quote->open) || is_no_quote(in, quote))
            continue;
        size_t open = in->at;
        bool documentation = is_documentation(in, open);
        scanner_mark(in, strlen(quote->open), HF__QUOTE);
        take_text(in, quote);
        if (documentation)
            memset(in->classes + open, HF__COMMENT, in->at - open);
        return true;
    }
    return false;
}

/* ---- SQL inside of strings ------------------------------------------------------------------- */

static bool is_first_on_its_line(const struct scanner *in, size_t at)
{
    while (at > 0 && (in->text[at - 1] == ' ' || in->text[at - 1] == '\t'))
        at--;
    return at == 0 || in->text[at - 1] == '\n';
}

/* "-- why", or "--why" alone on its line, but not "--option" in a usage text. */
static bool is_sql_line_comment(const struct scanner *in, size_t at)
{
    char before = at > 0 ? in->text[at - 1] : '\n';
    char behind = at + 2 < in->size ? in->text[at + 2] : '\n';

    if (in->text[at] != '-' || at + 1 >= in->size || in->text[at + 1] != '-')
        return false;
    if (isspace((unsigned char)behind))
        return isspace((unsigned char)before) || in->classes[at - 1] != HF__TEXT;
    return is_first_on_its_line(in, at);
}

static size_t mark_sql_comment(struct scanner *in, size_t at)
{
    bool line = in->text[at] == '-';

    for (; at < in->size && in->classes[at] == HF__TEXT; at++) {
        if (line && in->text[at] == '\n')
            return at;
        in->classes[at] = HF__COMMENT;
        if (!line && in->text[at] == '/' && in->text[at - 1] == '*')
            return at + 1;
    }
    return at;
}

static void mark_sql_comments(struct scanner *in)
{
    size_t at = 0;

    while (at < in->size) {
        if (in->classes[at] != HF__TEXT) {
            at++;
        } else if (is_sql_line_comment(in, at) ||
                   (in->text[at] == '/' && at + 1 < in->size && in->text[at + 1] == '*')) {
            at = mark_sql_comment(in, at);
        } else {
            at++;
        }
    }
}

/* ---- A whole file ---------------------------------------------------------------------------- */

/* A PHP file begins as HTML, where an apostrophe opens no string. */
static void skip_html(struct scanner *in)
{
    const char *open = memmem(in->text + in->at, in->size - in->at, "<?", 2);

    scanner_mark(in, (open != NULL ? (size_t)(open - in->text) + 2 : in->size) - in->at, HF__CODE);
}

static void take_code(struct scanner *in)
{
    char c = scanner_peek(in, 0);

    if (c == '(' || c == '[' || c == '{')
        in->depth++;
    else if ((c == ')' || c == ']' || c == '}') && in->depth > 0)
        in->depth--;
    if (c == '\n' && in->heredoc_count > 0)
        scanner_heredocs(in);
    else if (in->syntax->id == HF__LANG_PHP && scanner_is_at(in, "?>"))
        skip_html(in);
    else
        scanner_mark(in, 1, HF__CODE);
}

static bool is_comment_sign(const struct scanner *in, size_t at)
{
    return in->text[at] == '#' ||
           (at + 1 < in->size && in->text[at] == '/' && in->text[at + 1] == '/');
}

/* In an unknown language we only recognise lines that begin like comments. */
static void scan_text(struct scanner *in)
{
    while (in->at < in->size) {
        const char *end = memchr(in->text + in->at, '\n', in->size - in->at);
        size_t next = end != NULL ? (size_t)(end - in->text) + 1 : in->size;
        size_t first = in->at + strspn(in->text + in->at, " \t");
        bool comment = first < next && is_comment_sign(in, first);
        scanner_mark(in, next - in->at, comment ? HF__COMMENT : HF__TEXT);
    }
}

/* In XML what is between tags is text, and so are the values of attributes. */
static void scan_xml(struct scanner *in)
{
    while (in->at < in->size) {
        const char *rest = in->text + in->at;
        size_t left = in->size - in->at;
        const char *end = memchr(rest, '<', left);
        if (end == NULL || end > rest) {
            scanner_mark(in, end != NULL ? (size_t)(end - rest) : left, HF__TEXT);
            continue;
        }
        bool comment = scanner_is_at(in, "<!--");
        if (scanner_is_at(in, "<![CDATA[")) {
            end = memmem(rest, left, "]]>", 3);
            size_t size = end != NULL ? (size_t)(end - rest) : left;
            scanner_mark(in, 9, HF__QUOTE);
            scanner_mark(in, size > 9 ? size - 9 : 0, HF__TEXT);
            scanner_mark(in, 3, HF__QUOTE);
            continue;
        }
        end = comment ? memmem(rest, left, "-->", 3) : memchr(rest, '>', left);
        scanner_mark(in, end != NULL ? (size_t)(end - rest) + (comment ? 3 : 1) : left,
                     comment ? HF__COMMENT : HF__QUOTE);
    }
}

void hf__scan(const hf__syntax *syntax, const char *text, size_t size, unsigned char *classes)
{
    struct scanner in = {.syntax = syntax, .text = text, .size = size, .classes = classes};

    if (syntax->id == HF__LANG_TEXT)
        scan_text(&in);
    if (syntax->id == HF__LANG_XML)
        scan_xml(&in);
    if (syntax->id == HF__LANG_PHP)
        skip_html(&in);
    while (in.at < size) {
        if (!take_line_comment(&in) && !take_block_comment(&in) && !take_ruby_comment(&in) &&
            !scanner_special(&in) && !take_string(&in))
            take_code(&in);
    }
    if (syntax->id != HF__LANG_SQL)
        mark_sql_comments(&in);
}
