#include <ctype.h>
#include <string.h>

#include "programs/registry/lint/text/scan.h"

/*
 * How far to look for an end on the same line. A file of one long line must not take quadratic
 * time.
 */
enum { LOOK_AHEAD = 500 };

/* ---- Expressions inside of strings ----------------------------------------------------------- */

/* Called after the opening quote. One that is not closed on its line was no quote. */
static void skip_inner_string(struct scanner *in, char quote)
{
    size_t at = in->at;

    for (; at < in->size && at - in->at < LOOK_AHEAD && in->text[at] != '\n'; at++) {
        if (in->text[at] == '\\')
            at++;
        else if (in->text[at] == quote)
            break;
    }
    if (at < in->size && in->text[at] == quote)
        scanner_mark(in, at + 1 - in->at, HF__TEXT);
}

void scanner_hole(struct scanner *in, size_t opening)
{
    size_t depth = 1;

    scanner_mark(in, opening, HF__TEXT);
    while (in->at < in->size && depth > 0) {
        char c = scanner_peek(in, 0);
        scanner_mark(in, 1, HF__TEXT);
        if (c == '{')
            depth++;
        else if (c == '}')
            depth--;
        else if (c == '"' || c == '\'' || c == '`')
            skip_inner_string(in, c);
    }
}

/* ---- Heredocs -------------------------------------------------------------------------------- */

/* <<~SQL, <<-SQL or <<SQL; the name may be in quotes. */
static bool open_ruby_heredoc(struct scanner *in)
{
    size_t ahead = 2;
    char quote;

    if (!scanner_is_at(in, "<<") || in->heredoc_count == HEREDOCS_MAX)
        return false;
    bool squiggly = scanner_peek(in, 2) == '~' || scanner_peek(in, 2) == '-';
    ahead += squiggly;
    quote = scanner_peek(in, ahead);
    if (quote == '\'' || quote == '"' || quote == '`')
        ahead++;
    else
        quote = '\0';

    struct heredoc heredoc = {.word = in->at + ahead};
    while (scanner_is_word(scanner_peek(in, ahead + heredoc.size)))
        heredoc.size++;
    if (heredoc.size == 0 || (quote != '\0' && scanner_peek(in, ahead + heredoc.size) != quote) ||
        (!squiggly && !isupper((unsigned char)in->text[heredoc.word])))
        return false;
    in->heredocs[in->heredoc_count++] = heredoc;
    scanner_mark(in, ahead + heredoc.size + (quote != '\0'), HF__CODE);
    return true;
}

static bool is_terminator(const struct scanner *in, const struct heredoc *heredoc)
{
    size_t at = in->at;

    while (at < in->size && (in->text[at] == ' ' || in->text[at] == '\t'))
        at++;
    return in->size - at >= heredoc->size &&
           memcmp(in->text + at, in->text + heredoc->word, heredoc->size) == 0 &&
           (at + heredoc->size == in->size || !scanner_is_word(in->text[at + heredoc->size]));
}

static void take_heredoc(struct scanner *in, const struct heredoc *heredoc)
{
    while (in->at < in->size && !is_terminator(in, heredoc)) {
        const char *end = memchr(in->text + in->at, '\n', in->size - in->at);
        scanner_mark(in, (end != NULL ? (size_t)(end - in->text) + 1 : in->size) - in->at,
                     HF__TEXT);
    }
    while (in->at < in->size && (scanner_peek(in, 0) == ' ' || scanner_peek(in, 0) == '\t'))
        scanner_mark(in, 1, HF__QUOTE);
    scanner_mark(in, heredoc->size, HF__QUOTE);
}

void scanner_heredocs(struct scanner *in)
{
    size_t count = in->heredoc_count;

    in->heredoc_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (scanner_peek(in, 0) == '\n')
            scanner_mark(in, 1, HF__QUOTE);
        take_heredoc(in, &in->heredocs[i]);
    }
}

static bool take_php_heredoc(struct scanner *in)
{
    size_t ahead = 3;

    if (!scanner_is_at(in, "<<<"))
        return false;
    while (strchr(" \t'\"", scanner_peek(in, ahead)) != NULL && scanner_peek(in, ahead) != '\0')
        ahead++;

    struct heredoc heredoc = {.word = in->at + ahead};
    while (scanner_is_word(scanner_peek(in, ahead + heredoc.size)))
        heredoc.size++;
    ahead += heredoc.size;
    ahead += scanner_peek(in, ahead) == '\'' || scanner_peek(in, ahead) == '"';
    ahead += scanner_peek(in, ahead) == '\r';
    if (heredoc.size == 0 || scanner_peek(in, ahead) != '\n')
        return false;
    scanner_mark(in, ahead + 1, HF__QUOTE);
    take_heredoc(in, &heredoc);
    return true;
}

/* ---- Strings with a delimiter of choice ------------------------------------------------------ */

static char closing_of(char open)
{
    switch (open) {
    case '(': return ')';
    case '[': return ']';
    case '{': return '}';
    case '<': return '>';
    default: return open;
    }
}

/* Called at the opening delimiter. The string may contain brackets in pairs. */
static void take_delimited(struct scanner *in)
{
    char open = scanner_peek(in, 0);
    char close = closing_of(open);
    size_t depth = 1;

    scanner_mark(in, 1, HF__QUOTE);
    while (in->at < in->size) {
        char c = scanner_peek(in, 0);
        if (c == close && --depth == 0) {
            scanner_mark(in, 1, HF__QUOTE);
            return;
        }
        if (c == open && open != close)
            depth++;
        scanner_mark(in, c == '\\' ? 2 : 1, HF__TEXT);
    }
}

static bool is_delimiter(char c)
{
    return c != '\0' && strchr("([{<|!/\"'", c) != NULL;
}

static bool is_operand(char c)
{
    return scanner_is_word(c) || c == ')' || c == ']' || c == '}' || c == '"' || c == '\'';
}

/* %q(…), %Q[…], %(…), %w[…]; but not a modulo operator. */
static bool take_ruby_percent(struct scanner *in)
{
    size_t ahead = 1;
    bool spaced = in->at > 0 && isspace((unsigned char)in->text[in->at - 1]);

    if (scanner_peek(in, 0) != '%')
        return false;
    if (scanner_peek(in, 1) != '\0' && strchr("qQwWiIx", scanner_peek(in, 1)) != NULL)
        ahead = 2;
    if (!is_delimiter(scanner_peek(in, ahead)))
        return false;
    if (is_operand(scanner_code_before(in, in->at)) && !(spaced && ahead == 2))
        return false;
    scanner_mark(in, ahead, HF__QUOTE);
    take_delimited(in);
    return true;
}

/* ~s(…), ~S"""…""". */
static bool take_elixir_sigil(struct scanner *in)
{
    if (scanner_peek(in, 0) != '~' || !isalpha((unsigned char)scanner_peek(in, 1)) ||
        !is_delimiter(scanner_peek(in, 2)))
        return false;
    scanner_mark(in, 2, HF__QUOTE);
    if (!scanner_is_at(in, "\"\"\"") && !scanner_is_at(in, "'''")) {
        take_delimited(in);
        return true;
    }
    const char *close = memmem(in->text + in->at + 3, in->size - in->at - 3, in->text + in->at, 3);
    scanner_mark(in, 3, HF__QUOTE);
    scanner_mark(in, (close != NULL ? (size_t)(close - in->text) : in->size) - in->at, HF__TEXT);
    scanner_mark(in, 3, HF__QUOTE);
    return true;
}

/* ---- Raw strings ----------------------------------------------------------------------------- */

/* Reads up to a terminator of at most 20 bytes. */
static void take_until(struct scanner *in, const char *terminator, size_t size)
{
    const char *end = memmem(in->text + in->at, in->size - in->at, terminator, size);

    scanner_mark(in, (end != NULL ? (size_t)(end - in->text) : in->size) - in->at, HF__TEXT);
    scanner_mark(in, size, HF__QUOTE);
}

/* r"…", r#"…"#, br"…". */
static bool take_rust_raw(struct scanner *in)
{
    char terminator[20] = "\"";
    size_t hashes = 0;

    if (scanner_peek(in, 0) != 'r' ||
        (in->at > 0 && scanner_is_word(in->text[in->at - 1]) && in->text[in->at - 1] != 'b'))
        return false;
    while (hashes < sizeof terminator - 2 && scanner_peek(in, 1 + hashes) == '#')
        terminator[++hashes] = '#';
    if (scanner_peek(in, 1 + hashes) != '"')
        return false;
    scanner_mark(in, hashes + 2, HF__QUOTE);
    take_until(in, terminator, hashes + 1);
    return true;
}

/* 'a' and '\n' are characters; 'a alone is a lifetime. */
static bool take_rust_quote(struct scanner *in)
{
    size_t ahead = 1;

    if (scanner_peek(in, 0) != '\'')
        return false;
    if (scanner_peek(in, 1) == '\\') {
        for (ahead = 3; ahead < 12 && scanner_peek(in, ahead) != '\''; ahead++)
            continue;
        scanner_mark(in, ahead + 1, HF__QUOTE);
        return true;
    }
    while (ahead < 5 && (unsigned char)scanner_peek(in, ahead + 1) >= 0x80)
        ahead++;
    scanner_mark(in, scanner_peek(in, ahead + 1) == '\'' ? ahead + 2 : 1, HF__QUOTE);
    return true;
}

/* R"tag(…)tag". */
static bool take_cpp_raw(struct scanner *in)
{
    char terminator[20] = ")";
    size_t size = 1;

    if (!scanner_is_at(in, "R\"") || (in->at > 0 && isalnum((unsigned char)in->text[in->at - 1]) &&
                                      strchr("uUL8", in->text[in->at - 1]) == NULL))
        return false;
    while (size < sizeof terminator - 2 && scanner_peek(in, 1 + size) != '(' &&
           scanner_peek(in, 1 + size) != '\n' && scanner_peek(in, 1 + size) != '\0') {
        terminator[size] = scanner_peek(in, 1 + size);
        size++;
    }
    if (scanner_peek(in, 1 + size) != '(')
        return false;
    terminator[size++] = '"';
    scanner_mark(in, size + 1, HF__QUOTE);
    take_until(in, terminator, size);
    return true;
}

/* ---- Dollar quotes and regex literals -------------------------------------------------------- */

/* The text between dollar quotes is code again: the body of a function. */
static bool take_dollar(struct scanner *in)
{
    size_t size = 1;

    if (scanner_peek(in, 0) != '$' || (in->at > 0 && scanner_is_word(in->text[in->at - 1])) ||
        isdigit((unsigned char)scanner_peek(in, 1)))
        return false;
    while (scanner_is_word(scanner_peek(in, size)))
        size++;
    if (scanner_peek(in, size) != '$')
        return false;
    scanner_mark(in, size + 1, HF__QUOTE);
    return true;
}

/* A slash opens a regex literal where a value may begin. */
static bool expects_value(const struct scanner *in)
{
    static const char *const words[] = {"return", "typeof", "case",   "if", "when",  "and",
                                        "or",     "not",    "unless", "in", "split", "grep"};
    size_t end = in->at;

    while (end > 0 && isspace((unsigned char)in->text[end - 1]))
        end--;
    if (end > 0 && in->text[end - 1] == '}' && in->syntax->id == HF__LANG_PERL)
        return false; /* $x{key} // 5 */
    if (end == 0 || strchr("(,=:[!&|?{};+-*%<>~^", in->text[end - 1]) != NULL)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t size = strlen(words[i]);
        if (end >= size && memcmp(in->text + end - size, words[i], size) == 0 &&
            (end == size || !scanner_is_word(in->text[end - size - 1])))
            return true;
    }
    return false;
}

static bool take_regex_literal(struct scanner *in)
{
    bool in_class = false;

    if (!in->syntax->regex_literals || scanner_peek(in, 0) != '/' || !expects_value(in))
        return false;
    for (size_t ahead = 1; in->at + ahead < in->size && ahead < LOOK_AHEAD; ahead++) {
        char c = scanner_peek(in, ahead);
        if (c == '\n')
            return false;
        if (c == '\\') {
            ahead++;
        } else if (c == '/' && !in_class) {
            scanner_mark(in, ahead + 1, HF__QUOTE);
            return true;
        } else if (c == '[' || c == ']') {
            in_class = c == '[';
        }
    }
    return false;
}

/* The size of the word that opens a string of Perl, or with regex one of its patterns; 0: none. */
static size_t perl_word(const struct scanner *in, bool regex)
{
    static const char *const strings[] = {"qq", "qw", "qx", "q", NULL};
    static const char *const patterns[] = {"qr", "tr", "m", "s", "y", NULL};

    for (const char *const *word = regex ? patterns : strings; *word != NULL; word++)
        if (scanner_is_at(in, *word) && !scanner_is_word(scanner_peek(in, strlen(*word))))
            return strlen(*word);
    return 0;
}

/* q{…}, qq(…) of Perl. */
static bool take_perl_q(struct scanner *in)
{
    size_t ahead = perl_word(in, false);

    if (ahead == 0 || (in->at > 0 && (scanner_is_word(in->text[in->at - 1]) ||
                                      strchr("$@%&>{", in->text[in->at - 1]))))
        return false;
    while (scanner_peek(in, ahead) == ' ')
        ahead++;
    if (!is_delimiter(scanner_peek(in, ahead)))
        return false;
    scanner_mark(in, ahead, HF__QUOTE);
    take_delimited(in);
    return true;
}

/* m{…}, qr/…/, s/…/…/ and tr/…/…/ of Perl: the quotes in them open no string. */
static bool take_perl_pattern(struct scanner *in)
{
    size_t start = in->at;
    size_t size = perl_word(in, true);
    bool two =
        scanner_peek(in, 0) == 's' || scanner_peek(in, 0) == 't' || scanner_peek(in, 0) == 'y';

    if (size == 0 || !is_delimiter(scanner_peek(in, size)) ||
        (in->at > 0 &&
         (scanner_is_word(in->text[in->at - 1]) || strchr("$@%&>-", in->text[in->at - 1]) != NULL)))
        return false;
    char open = scanner_peek(in, size);
    scanner_mark(in, size, HF__QUOTE);
    take_delimited(in);
    if (two && closing_of(open) == open) {
        in->at--; /* the middle slash closes the first part and opens the second */
        take_delimited(in);
    } else if (two) {
        while (isspace((unsigned char)scanner_peek(in, 0)))
            scanner_mark(in, 1, HF__QUOTE);
        take_delimited(in);
    }
    memset(in->classes + start, HF__QUOTE, in->at - start);
    return true;
}

bool scanner_special(struct scanner *in)
{
    switch (in->syntax->id) {
    case HF__LANG_PERL:
        return open_ruby_heredoc(in) || take_perl_q(in) || take_perl_pattern(in) ||
               take_regex_literal(in);
    case HF__LANG_SHELL: return !scanner_is_at(in, "<<<") && open_ruby_heredoc(in);
    case HF__LANG_RUBY:
        return open_ruby_heredoc(in) || take_ruby_percent(in) || take_regex_literal(in);
    case HF__LANG_JS: return take_regex_literal(in);
    case HF__LANG_PHP: return take_php_heredoc(in);
    case HF__LANG_ELIXIR: return take_elixir_sigil(in);
    case HF__LANG_RUST: return take_rust_raw(in) || take_rust_quote(in);
    case HF__LANG_C: return take_cpp_raw(in);
    case HF__LANG_SQL: return take_dollar(in);
    default: return false;
    }
}
