/*
 * The page as HTML, made from the Markdown that doc.c writes: one text, so that the two cannot say
 * different things. Only what doc.c writes is understood: headings, paragraphs, tables, lists,
 * fenced code, and in a line code, links, escapes, <br> and <code>.
 */
#include <string.h>

#include "base/text.h"
#include "programs/registry/doc/doc.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>Advisory locks</title>\n<style>\n"
    "body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; "
    "padding: 0 1rem; color: #1c1e21; background: #fff }\n"
    "table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto }\n"
    "th, td { border-bottom: 1px solid #d0d5db; padding: .35rem .7rem; text-align: left; "
    "vertical-align: top }\n"
    "th { background: #f3f5f7 }\ntd.right, th.right { text-align: right }\n"
    "code { background: #f3f5f7; padding: .05rem .25rem; border-radius: .2rem; "
    "overflow-wrap: anywhere }\n"
    "pre { background: #f3f5f7; padding: .8rem; overflow-x: auto }\n"
    "input { font: inherit; padding: .4rem .6rem; width: 100%; max-width: 30rem; "
    "box-sizing: border-box }\n"
    "@media (prefers-color-scheme: dark) { body { background: #16181b; color: #e4e6ea } "
    "th, code, pre { background: #23262b } th, td { border-color: #3a3f46 } a { color: #8ab4f8 } "
    "input { background: #23262b; color: inherit; border: 1px solid #3a3f46 } }\n"
    "</style>\n</head>\n<body>\n";

static const char search[] =
    "<p><label>Search <input type=\"search\" id=\"search\" autofocus></label> "
    "<span id=\"found\" role=\"status\"></span></p>\n";

static const char tail[] =
    "<script>\n"
    "const box = document.getElementById('search'), found = document.getElementById('found');\n"
    "const rows = [...document.querySelectorAll('tbody tr')];\n"
    "function filter() {\n"
    "  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);\n"
    "  let shown = 0;\n"
    "  for (const row of rows) {\n"
    "    const text = row.textContent.toLowerCase();\n"
    "    row.hidden = !words.every(word => text.includes(word));\n"
    "    shown += row.hidden ? 0 : 1;\n"
    "  }\n"
    "  found.textContent = words.length ? shown + ' of ' + rows.length + ' rows' : '';\n"
    "}\n"
    "box.addEventListener('input', filter);\n"
    "</script>\n</body>\n</html>\n";

/* --- within a line -------------------------------------------------------------------------- */

static void put_escaped(hf__buf *out, char c)
{
    if (c == '<')
        hf__buf_puts(out, "&lt;");
    else if (c == '>')
        hf__buf_puts(out, "&gt;");
    else if (c == '&')
        hf__buf_puts(out, "&amp;");
    else
        hf__buf_add(out, &c, 1);
}

/* What is between backticks, in which only "\|" is not as it stands. */
static size_t put_code(hf__buf *out, const char *text, size_t size)
{
    const char *end = memchr(text + 1, '`', size - 1);

    if (end == NULL)
        return 0;
    hf__buf_puts(out, "<code>");
    for (const char *at = text + 1; at < end; at++)
        if (!(at[0] == '\\' && at[1] == '|'))
            put_escaped(out, *at);
    hf__buf_puts(out, "</code>");
    return (size_t)(end - text) + 1;
}

static size_t put_tag(hf__buf *out, const char *text, size_t size)
{
    static const char *const tags[] = {"<br>", "<code>", "</code>"};

    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        size_t length = strlen(tags[i]);
        if (size >= length && memcmp(text, tags[i], length) == 0) {
            hf__buf_puts(out, tags[i]);
            return length;
        }
    }
    return 0;
}

static void put_line(hf__buf *out, const char *text, size_t size);

/* [text](address); doc.c has written every character by its number that could end either. */
static size_t put_link(hf__buf *out, const char *text, size_t size)
{
    const char *middle = memmem(text, size, "](", 2);
    const char *end = middle != NULL ? memchr(middle, ')', size - (size_t)(middle - text)) : NULL;

    if (end == NULL)
        return 0;
    hf__buf_puts(out, "<a href=\"");
    hf__buf_add(out, middle + 2, (size_t)(end - middle) - 2);
    hf__buf_puts(out, "\">");
    put_line(out, text + 1, (size_t)(middle - text) - 1);
    hf__buf_puts(out, "</a>");
    return (size_t)(end - text) + 1;
}

static void put_line(hf__buf *out, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t used = 0;
        if (text[at] == '\\' && at + 1 < size) {
            put_escaped(out, text[at + 1]);
            used = 2;
        } else if (text[at] == '`') {
            used = put_code(out, text + at, size - at);
        } else if (text[at] == '[') {
            used = put_link(out, text + at, size - at);
        } else if (text[at] == '<') {
            used = put_tag(out, text + at, size - at);
        } else if (text[at] == '&') {
            hf__buf_puts(out, "&"); /* of an entity that doc.c has written */
            used = 1;
        }
        if (used == 0)
            put_escaped(out, text[at]);
        at += used > 0 ? used : 1;
    }
}

/* --- lines ---------------------------------------------------------------------------------- */

enum block { NONE, PARAGRAPH, LIST, TABLE, FENCE };

struct page {
    hf__buf *out;
    enum block block;
    size_t rows;      /* of the table, its head included */
    hf__slice titles; /* of the table, until its alignment is known */
    hf__slice alignment;
    bool has_search;
};

static void close_block(struct page *page)
{
    static const char *const ends[] = {
        [NONE] = "",
        [PARAGRAPH] = "</p>\n",
        [LIST] = "</ul>\n",
        [TABLE] = "</tbody>\n</table>\n",
        [FENCE] = "</code></pre>\n",
    };

    hf__buf_puts(page->out, ends[page->block]);
    page->block = NONE;
}

/* The next cell of a row; false at its end. An escaped '|' does not end a cell. */
static bool next_cell(hf__slice *row, hf__slice *cell)
{
    if (row->size > 0 && row->text[0] == '|') {
        row->text++;
        row->size--;
    }
    if (row->size == 0)
        return false;
    size_t end = 0;
    for (bool escaped = false; end < row->size && (row->text[end] != '|' || escaped); end++)
        escaped = row->text[end] == '\\' && !escaped;
    *cell = (hf__slice){row->text, end};
    while (cell->size > 0 && cell->text[0] == ' ') {
        cell->text++;
        cell->size--;
    }
    while (cell->size > 0 && cell->text[cell->size - 1] == ' ')
        cell->size--;
    row->text += end;
    row->size -= end;
    return true;
}

static void put_cells(struct page *page, hf__slice row, const char *tag)
{
    hf__slice alignment = page->alignment, cell, side = {0};

    hf__buf_puts(page->out, "<tr>");
    while (next_cell(&row, &cell)) {
        bool right =
            next_cell(&alignment, &side) && side.size > 0 && side.text[side.size - 1] == ':';
        hf__buf_printf(page->out, "<%s%s>", tag, right ? " class=\"right\"" : "");
        put_line(page->out, cell.text, cell.size);
        hf__buf_printf(page->out, "</%s>", tag);
    }
    hf__buf_puts(page->out, "</tr>\n");
}

static void put_row(struct page *page, hf__slice line)
{
    if (page->block != TABLE) {
        close_block(page);
        page->block = TABLE;
        page->rows = 0;
    }
    page->rows++;
    if (page->rows == 1) {
        page->titles = line;
    } else if (page->rows == 2) {
        page->alignment = line;
        hf__buf_puts(page->out, "<table>\n<thead>\n");
        put_cells(page, page->titles, "th");
        hf__buf_puts(page->out, "</thead>\n<tbody>\n");
    } else {
        put_cells(page, line, "td");
    }
}

static void put_heading(struct page *page, hf__slice line)
{
    int level = line.size > 1 && line.text[1] == '#' ? 2 : 1;

    close_block(page);
    hf__buf_printf(page->out, "<h%d>", level);
    put_line(page->out, line.text + level + 1, line.size - (size_t)level - 1);
    hf__buf_printf(page->out, "</h%d>\n", level);
    if (level == 1 && !page->has_search)
        hf__buf_puts(page->out, search);
    page->has_search = true;
}

static void put_text(struct page *page, hf__slice line, enum block block)
{
    static const char *const begins[] = {[PARAGRAPH] = "<p>", [LIST] = "<ul>\n"};

    if (page->block != block) {
        close_block(page);
        hf__buf_puts(page->out, begins[block]);
        page->block = block;
    }
    hf__buf_puts(page->out, block == LIST ? "<li>" : "");
    put_line(page->out, line.text, line.size);
    hf__buf_puts(page->out, "\n");
}

static hf__slice trimmed(hf__slice line)
{
    while (line.size > 0 && line.text[0] == ' ') {
        line.text++;
        line.size--;
    }
    return line;
}

static void read_line(struct page *page, hf__slice raw)
{
    hf__slice line = trimmed(raw);
    bool fence = line.size >= 3 && memcmp(line.text, "```", 3) == 0;

    if (page->block == FENCE && !fence) {
        for (size_t i = 0; i < raw.size; i++)
            put_escaped(page->out, raw.text[i]);
        hf__buf_puts(page->out, "\n");
    } else if (page->block == FENCE || line.size == 0) {
        close_block(page);
    } else if (fence) {
        close_block(page);
        hf__buf_puts(page->out, "<pre><code>");
        page->block = FENCE;
    } else if (line.text[0] == '#') {
        put_heading(page, line);
    } else if (line.text[0] == '|') {
        put_row(page, line);
    } else if (line.size > 2 && memcmp(line.text, "- ", 2) == 0) {
        put_text(page, (hf__slice){line.text + 2, line.size - 2}, LIST);
    } else if (line.size > 4 && memcmp(line.text, "<!--", 4) == 0) {
        hf__buf_add(page->out, line.text, line.size);
        hf__buf_puts(page->out, "\n");
    } else {
        put_text(page, line, PARAGRAPH);
    }
}

hf_status hf__doc_write_html(const hf_registry *registry, hf__buf *out, hf_error *err)
{
    hf__buf markdown = {0};
    struct page page = {.out = out};
    hf_status status = hf__doc_write(registry, &markdown, err);

    hf__buf_puts(out, head);
    const char *end = status == HF_OK ? markdown.data + markdown.length : NULL;
    for (const char *at = markdown.data; status == HF_OK && at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((newline != NULL ? newline : end) - at);
        read_line(&page, (hf__slice){at, size});
        at += size + 1;
    }
    close_block(&page);
    hf__buf_puts(out, tail);
    hf__buf_free(&markdown);
    return status == HF_OK && out->broken ? hf__no_memory(err) : status;
}
