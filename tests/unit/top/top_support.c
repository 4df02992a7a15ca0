#include "top_support.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "unit.h"

#include "programs/top/list.h"

struct scene *stage;
hf__top screen;

void look_at(hf__top *top, const struct scene *scene)
{
    assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
    hf__top_init(top);
    top->now_ms = scene->seen.taken_ms;
    hf__top_see(top, &scene->seen);
}

int look_away(void **state)
{
    (void)state;
    hf__top_free(&screen);
    scene_free(stage);
    return 0;
}

/* Not as the frame counts them, but as the C library does. */
static size_t terminal_cells(const char *text)
{
    wchar_t wide[4096];
    size_t count = mbstowcs(wide, text, 4096);

    assert_true(count < 4096);
    int cells = wcswidth(wide, count);
    assert_true(cells >= 0);
    return (size_t)cells;
}

static char *text_of(hf__frame *frame)
{
    hf__buf text = {0};

    assert_false(frame->broken);
    for (size_t i = 0; i < frame->count; i++) {
        const hf__frame_line *line = &frame->lines[i];
        size_t length = line->text.length, spans = 0;
        for (size_t j = 0; j < line->span_count; j++)
            spans += line->spans[j].size;
        assert_int_equal(spans, line->text.length);
        if (line->text.length > 0)
            assert_int_equal(line->cells, terminal_cells(line->text.data));
        assert_true(line->cells <= frame->width);
        while (length > 0 && line->text.data[length - 1] == ' ')
            length--;
        hf__buf_add(&text, length > 0 ? line->text.data : "", length);
        hf__buf_puts(&text, "\n");
    }
    hf__frame_free(frame);
    assert_false(text.broken);
    return text.data != NULL ? text.data : strdup("");
}

char *drawn(hf__top *top, size_t width, size_t height)
{
    hf__frame frame = {0};

    hf__top_draw(top, width, height, &frame);
    assert_true(frame.count <= height);
    return text_of(&frame);
}

char *printed(hf__top *top, size_t width)
{
    hf__frame frame = {0};

    hf__top_print(top, width, &frame);
    return text_of(&frame);
}

char *rows_of(const hf__top *top)
{
    hf__buf text = {0}, row = {0};

    hf__buf_puts(&text, "");
    for (size_t i = 0; i < top->row_count; i++) {
        hf__list_show(top, &hf__list_of(top)->columns[0], top->rows[i], &row);
        hf__buf_printf(&text, "%s%s", i > 0 ? "|" : "", row.data);
    }
    hf__buf_free(&row);
    return text.data;
}

void expect_text(char *text, const char *wanted)
{
    if (strstr(text, wanted) == NULL)
        fail_msg("no '%s' in:\n%s", wanted, text);
    free(text);
}

void expect_no_text(char *text, const char *unwanted)
{
    if (strstr(text, unwanted) != NULL)
        fail_msg("'%s' in:\n%s", unwanted, text);
    free(text);
}

void press(hf__top *top, const char *keys)
{
    for (; *keys != '\0'; keys++)
        (void)hf__top_press(top, *keys);
}
