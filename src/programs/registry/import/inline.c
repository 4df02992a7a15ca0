#include "programs/registry/import/inline.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

enum { DEPTH_MAX = 8 }; /* of emphasis in a link in emphasis; deeper marks are plain text */

/* One stretch of a cell. It remembers which ends are missing, so that time stays linear. */
struct scan {
    hf__inline *out;
    const char *start, *at, *end;
    int depth;
    bool no_close[3][4]; /* emphasis without an end, by mark and length */
    uint32_t no_tag;     /* tags without an end, one bit by place in known_tags */
};

static void read_stretch(hf__inline *out, const char *start, const char *end, int depth);

/* --- the text that comes out ---------------------------------------------------------------- */

static void put_space(hf__buf *text, char space)
{
    char last = text->length > 0 ? text->data[text->length - 1] : '\n';

    if (space == '\n' && last == ' ')
        text->data[text->length - 1] = '\n';
    else if (last != ' ' && last != '\n')
        hf__buf_add(text, &space, 1);
}

static void put_point(hf__buf *text, uint32_t point)
{
    char bytes[4];
    bool is_character = point > 0 && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);

    hf__buf_add(text, bytes, hf__utf8_write(bytes, is_character ? point : 0xFFFD));
}

static void begin_span(hf__inline *out)
{
    if (out->span_count < HF__SPANS_MAX)
        out->spans[out->span_count].start = out->text.length;
}

static void end_span(hf__inline *out)
{
    if (out->span_count < HF__SPANS_MAX)
        out->spans[out->span_count++].end = out->text.length;
}

static void note_link(hf__inline *out, const char *start, const char *end)
{
    if (out->link.length == 0)
        hf__buf_add(&out->link, start, (size_t)(end - start));
}

/* --- `code` --------------------------------------------------------------------------------- */

static size_t run_of(const char *at, const char *end)
{
    size_t length = 1;

    while (at + length < end && at[length] == at[0])
        length++;
    return length;
}

/* Where the run of backticks that ends the one at `at` begins, or NULL. */
static const char *code_end(const char *at, const char *end, size_t length)
{
    for (const char *close = at + length; close < end;) {
        close = memchr(close, '`', (size_t)(end - close));
        if (close == NULL)
            return NULL;
        size_t found = run_of(close, end);
        if (found == length)
            return close;
        close += found;
    }
    return NULL;
}

static void put_code(hf__inline *out, const char *start, const char *end)
{
    if (end - start > 2 && start[0] == ' ' && end[-1] == ' ') {
        start++;
        end--;
    }
    begin_span(out);
    for (const char *at = start; at < end; at++) {
        if (*at == '\\' && at + 1 < end && at[1] == '|')
            at++; /* the only escape inside code, and only in a table */
        hf__buf_add(&out->text, at, 1);
    }
    end_span(out);
}

static bool read_code(struct scan *scan)
{
    size_t length = run_of(scan->at, scan->end);
    const char *close = code_end(scan->at, scan->end, length);

    if (close == NULL) {
        hf__buf_add(&scan->out->text, scan->at, length);
        scan->at += length;
        return true;
    }
    put_code(scan->out, scan->at + length, close);
    scan->at = close + length;
    return true;
}

/* --- <br>, <https://…> and tags ------------------------------------------------------------- */

static const char *const known_tags[] = {"code",  "b",   "i",  "em",  "strong", "sup",
                                         "sub",   "kbd", "tt", "del", "ins",    "span",
                                         "small", "p",   "s",  "u"};

enum { TAGS = sizeof known_tags / sizeof known_tags[0] };

static bool starts_with(const char *at, const char *end, const char *word)
{
    size_t size = strlen(word);

    return (size_t)(end - at) >= size && strncasecmp(at, word, size) == 0;
}

static const char *find_tag(const char *at, const char *end, const char *tag)
{
    for (; at < end; at++)
        if (*at == '<' && starts_with(at, end, tag))
            return at;
    return NULL;
}

static bool read_break(struct scan *scan)
{
    static const char *const forms[] = {"<br>", "<br/>", "<br />"};

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (!starts_with(scan->at, scan->end, forms[i]))
            continue;
        put_space(&scan->out->text, '\n');
        scan->at += strlen(forms[i]);
        return true;
    }
    return false;
}

/* A tag counts only with its end: '<s>' alone is more likely a placeholder. */
static bool read_tag(struct scan *scan, size_t index)
{
    char close[16];
    size_t size = strlen(known_tags[index]);

    if (scan->no_tag >> index & 1 || scan->depth >= DEPTH_MAX)
        return false;
    if ((size_t)(scan->end - scan->at) < size + 2 ||
        strncasecmp(scan->at + 1, known_tags[index], size) != 0 || scan->at[size + 1] != '>')
        return false;
    close[0] = '<';
    close[1] = '/';
    memcpy(close + 2, known_tags[index], size);
    memcpy(close + 2 + size, ">", 2);
    const char *inner = scan->at + size + 2;
    const char *end = find_tag(inner, scan->end, close);
    if (end == NULL) {
        scan->no_tag |= 1U << index;
        return false;
    }
    if (index == 0)
        begin_span(scan->out);
    read_stretch(scan->out, inner, end, scan->depth + 1);
    if (index == 0)
        end_span(scan->out);
    scan->at = end + strlen(close);
    return true;
}

static bool read_autolink(struct scan *scan)
{
    const char *start = scan->at + 1;
    const char *close = start;

    if (!starts_with(start, scan->end, "http"))
        return false;
    while (close < scan->end && *close != '>' && *close != '<' && *close != ' ')
        close++;
    if (close == scan->end || *close != '>')
        return false;
    note_link(scan->out, start, close);
    hf__buf_add(&scan->out->text, start, (size_t)(close - start));
    scan->at = close + 1;
    return true;
}

static bool read_angle(struct scan *scan)
{
    if (read_break(scan) || read_autolink(scan))
        return true;
    for (size_t i = 0; i < TAGS; i++)
        if (read_tag(scan, i))
            return true;
    return false;
}

/* --- [links](…) ----------------------------------------------------------------------------- */

/* Finds the mark, but stops at another '[', so that time stays linear. */
static const char *find_mark(const char *at, const char *end, char mark)
{
    for (; at < end && *at != '['; at++) {
        if (*at == '\\' && at + 1 < end)
            at++;
        else if (*at == mark)
            return at;
    }
    return NULL;
}

static bool read_link(struct scan *scan)
{
    const char *close = find_mark(scan->at + 1, scan->end, ']');

    if (close == NULL || close + 1 >= scan->end || scan->depth >= DEPTH_MAX)
        return false;
    char open = close[1];
    const char *target = close + 2;
    const char *last = open == '('   ? find_mark(target, scan->end, ')')
                       : open == '[' ? find_mark(target, scan->end, ']')
                                     : NULL;
    if (last == NULL)
        return false;
    if (open == '(') {
        const char *space = memchr(target, ' ', (size_t)(last - target)); /* before a title */
        note_link(scan->out, target, space != NULL ? space : last);
    }
    read_stretch(scan->out, scan->at + 1, close, scan->depth + 1);
    scan->at = last + 1;
    return true;
}

/* --- &entities; ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t point;
} entities[] = {
    {"lt", '<'},   {"gt", '>'},     {"amp", '&'},     {"quot", '"'},     {"apos", '\''},
    {"nbsp", ' '}, {"vert", '|'},   {"verbar", '|'},  {"lbrace", '{'},   {"rbrace", '}'},
    {"lcub", '{'}, {"rcub", '}'},   {"lsqb", '['},    {"rsqb", ']'},     {"grave", '`'},
    {"ast", '*'},  {"lowbar", '_'}, {"bsol", '\\'},   {"num", '#'},      {"colon", ':'},
    {"sol", '/'},  {"dollar", '$'}, {"hellip", 8230}, {"mdash", 0x2014}, {"ndash", 0x2013},
};

static bool parse_number_entity(const char *at, const char *end, uint32_t *point)
{
    uint32_t base = 10;

    if (at < end && (*at == 'x' || *at == 'X')) {
        base = 16;
        at++;
    }
    if (at == end || end - at > 7)
        return false;
    for (*point = 0; at < end; at++) {
        if (base == 10 ? !isdigit((unsigned char)*at) : !isxdigit((unsigned char)*at))
            return false;
        uint32_t digit = isdigit((unsigned char)*at)
                             ? (uint32_t)(*at - '0')
                             : (uint32_t)(tolower((unsigned char)*at) - 'a') + 10;
        *point = *point * base + digit;
    }
    return true;
}

static bool read_entity(struct scan *scan)
{
    size_t left = (size_t)(scan->end - scan->at);
    const char *start = scan->at + 1;
    const char *close = memchr(start, ';', left - 1 < 12 ? left - 1 : 12);
    uint32_t point = 0;
    bool known = false;

    if (close == NULL)
        return false;
    if (start < close && *start == '#')
        known = parse_number_entity(start + 1, close, &point);
    for (size_t i = 0; !known && i < sizeof entities / sizeof entities[0]; i++) {
        known = strlen(entities[i].name) == (size_t)(close - start) &&
                memcmp(entities[i].name, start, (size_t)(close - start)) == 0;
        point = entities[i].point;
    }
    if (!known)
        return false;
    if (point == ' ')
        put_space(&scan->out->text, ' ');
    else
        put_point(&scan->out->text, point);
    scan->at = close + 1;
    return true;
}

/* --- *emphasis* ----------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static bool can_close(const struct scan *scan, const char *run, size_t length)
{
    bool after_text = run > scan->start && run[-1] != ' ' && run[-1] != '\t';

    return after_text && (run + length == scan->end || !is_word(run[length]));
}

static const char *emphasis_end(const struct scan *scan, size_t length)
{
    char mark = scan->at[0];
    const char *at = scan->at + length;

    while (at < scan->end) {
        size_t run = *at == mark || *at == '`' ? run_of(at, scan->end) : 1;
        if (*at == mark && run == length && at > scan->at + length && can_close(scan, at, length))
            return at;
        if (*at == '\\' && at + 1 < scan->end) {
            run = 2;
        } else if (*at == '`') {
            const char *close = code_end(at, scan->end, run);
            run = close != NULL ? (size_t)(close - at) + run : run;
        }
        at += run;
    }
    return NULL;
}

static bool read_emphasis(struct scan *scan)
{
    size_t mark = *scan->at == '*' ? 0 : *scan->at == '_' ? 1 : 2;
    size_t length = run_of(scan->at, scan->end);
    const char *inner = scan->at + length;
    bool opens = length <= 3 && (mark != 2 || length == 2) && inner < scan->end && *inner != ' ' &&
                 (scan->at == scan->start || !is_word(scan->at[-1])) && scan->depth < DEPTH_MAX;
    const char *close = NULL;

    if (opens && !scan->no_close[mark][length]) {
        close = emphasis_end(scan, length);
        scan->no_close[mark][length] = close == NULL;
    }
    if (close == NULL) {
        hf__buf_add(&scan->out->text, scan->at, length);
        scan->at += length;
        return true;
    }
    read_stretch(scan->out, inner, close, scan->depth + 1);
    scan->at = close + length;
    return true;
}

/* --- a whole cell --------------------------------------------------------------------------- */

static bool read_mark(struct scan *scan)
{
    switch (*scan->at) {
    case '\\':
        if (scan->at + 1 == scan->end || !ispunct((unsigned char)scan->at[1]))
            return false;
        hf__buf_add(&scan->out->text, scan->at + 1, 1);
        scan->at += 2;
        return true;
    case '`': return read_code(scan);
    case '<': return read_angle(scan);
    case '!':
        if (scan->at + 1 < scan->end && scan->at[1] == '[') {
            scan->at++;
            if (read_link(scan))
                return true;
            scan->at--;
        }
        return false;
    case '[': return read_link(scan);
    case '&': return read_entity(scan);
    case '*':
    case '_':
    case '~': return read_emphasis(scan);
    case ' ':
    case '\t':
        put_space(&scan->out->text, ' ');
        scan->at++;
        return true;
    default: return false;
    }
}

static void read_stretch(hf__inline *out, const char *start, const char *end, int depth)
{
    struct scan scan = {.out = out, .start = start, .at = start, .end = end, .depth = depth};

    while (scan.at < scan.end)
        if (!read_mark(&scan))
            hf__buf_add(&out->text, scan.at++, 1);
}

void hf__inline_read(hf__inline *out, hf__slice cell)
{
    hf__buf_clear(&out->text);
    hf__buf_clear(&out->link);
    out->span_count = 0;
    hf__buf_puts(&out->text, "");
    hf__buf_puts(&out->link, "");
    read_stretch(out, cell.text, cell.text + cell.size, 0);
    while (out->text.length > 0 && strchr(" \n", out->text.data[out->text.length - 1]) != NULL)
        out->text.data[--out->text.length] = '\0';
    for (size_t i = 0; i < out->span_count; i++) {
        if (out->spans[i].end > out->text.length)
            out->spans[i].end = out->text.length;
        if (out->spans[i].start > out->spans[i].end)
            out->spans[i].start = out->spans[i].end;
    }
}

void hf__inline_free(hf__inline *out)
{
    hf__buf_free(&out->text);
    hf__buf_free(&out->link);
    *out = (hf__inline){0};
}

bool hf__inline_is_empty(const hf__inline *in)
{
    static const char *const nothing[] = {"",   "-",   "--",   "–", "—",  "n/a",
                                          "na", "tbd", "todo", "?", "??", "none"};

    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++)
        if (in->text.data != NULL && strcasecmp(in->text.data, nothing[i]) == 0)
            return true;
    return in->text.data == NULL;
}
