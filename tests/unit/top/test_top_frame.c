#include <locale.h>
#include <string.h>

#include "unit.h"

#include "programs/top/frame.h"
#include "programs/top/top.h"

static int use_utf8(void **state)
{
    (void)state;
    return setlocale(LC_CTYPE, "C.UTF-8") != NULL ? 0 : -1;
}

static void expect_line(const hf__frame *frame, size_t line, const char *text, size_t cells)
{
    assert_false(frame->broken);
    assert_true(line < frame->count);
    assert_string_equal(frame->lines[line].text.data, text);
    assert_int_equal(frame->lines[line].cells, cells);
}

static void expect_field(const char *text, size_t cells, bool right, const char *expected)
{
    hf__frame frame = {0};

    hf__frame_begin(&frame, 80, false);
    hf__frame_add_line(&frame);
    hf__frame_field(&frame, HF__INK_PLAIN, text, cells, right);
    expect_line(&frame, 0, expected, cells);
    hf__frame_free(&frame);
}

static void a_field_has_exactly_its_cells(void **state)
{
    (void)state;
    expect_field("abc", 5, false, "abc  ");
    expect_field("abc", 5, true, "  abc");
    expect_field("abcdef", 5, false, "abcd…");
    expect_field("abcde", 5, false, "abcde");
    expect_field("", 3, false, "   ");
    expect_field("abc", 1, false, "…");
}

static void wide_characters_take_two_cells_and_are_never_halved(void **state)
{
    (void)state;
    expect_field("日本", 4, false, "日本");
    expect_field("日本語", 4, false, "日… ");
    expect_field("日本語", 5, false, "日本…");
    expect_field("日本語", 4, true, "日… ");
    expect_field("日本", 6, true, "  日本");
}

static void combining_characters_take_none(void **state)
{
    (void)state;
    expect_field("e\xCC\x81t\xC3\xA9", 4, false, "e\xCC\x81t\xC3\xA9 ");
    expect_field("ae\xCC\x81"
                 "bcd",
                 3, false, "ae\xCC\x81…");
}

static void control_bytes_and_what_is_no_text_are_escaped(void **state)
{
    (void)state;
    expect_field("a\033[2Jb", 10, false, "a\\x1b[2Jb ");
    expect_field("a\nb", 5, false, "a\\nb ");
    expect_field("a\xFF", 6, false, "a\\xff ");
    expect_field("\xE2\x80\xAE", 12, false, "\\xe2\\x80\\xae"); /* turns the line around */
    expect_field("a\xCD\xB8", 3, false, "a\xEF\xBF\xBD ");      /* nobody knows its width */
}

/* A family, a heart of a variant, a hand of a colour: one picture here, four or two there. */
static void what_terminals_join_to_pictures_of_their_own_width_is_escaped(void **state)
{
    (void)state;
    expect_field("\U0001F468\u200D\U0001F467", 16, false, "\U0001F468\\xe2\\x80\\x8d\U0001F467");
    expect_field("\u2764\uFE0F", 14, false, "\u2764\\xef\\xb8\\x8f ");
    expect_field("\U0001F44B\U0001F3FD", 18, false, "\U0001F44B\\xf0\\x9f\\x8f\\xbd");
}

static void a_label_is_cut_in_the_middle(void **state)
{
    hf__frame frame = {0};

    (void)state;
    hf__frame_begin(&frame, 40, false);
    hf__frame_add_line(&frame);
    hf__frame_label(&frame, HF__INK_PLAIN, "ingest:mainnet:2026-01", 12);
    hf__frame_label(&frame, HF__INK_PLAIN, "short", 8);
    hf__frame_label(&frame, HF__INK_PLAIN, "日本語日本語", 6);
    hf__frame_label(&frame, HF__INK_PLAIN, "日本語日本語", 9);
    expect_line(&frame, 0, "ingest…26-01short   日…語 日本…本語", 35);
    hf__frame_free(&frame);
}

static void where_there_is_only_ascii_nothing_else_is_put(void **state)
{
    hf__frame frame = {0};

    (void)state;
    hf__frame_begin(&frame, 80, true);
    hf__frame_put(&frame, HF__INK_PLAIN, "≤3s │ └─ naïve 日 ▼");
    for (const char *at = frame.lines[0].text.data; *at != '\0'; at++)
        assert_true((unsigned char)*at < 0x80);
    assert_string_equal(frame.lines[0].text.data, "<3s | `- na?ve ? v");
    hf__frame_free(&frame);
}

static void nothing_goes_beyond_the_width(void **state)
{
    hf__frame frame = {0};

    (void)state;
    hf__frame_begin(&frame, 10, false);
    hf__frame_put(&frame, HF__INK_BOLD, "12345678");
    hf__frame_put(&frame, HF__INK_DIM, "日本語");
    expect_line(&frame, 0, "12345678…", 9);
    hf__frame_add_line(&frame);
    hf__frame_field(&frame, HF__INK_DIM, "abc", 50, false);
    expect_line(&frame, 1, "abc       ", 10);
    hf__frame_add_line(&frame);
    hf__frame_pad(&frame, 100);
    assert_int_equal(frame.lines[2].cells, 10);
    hf__frame_free(&frame);
}

static void inks_are_kept_apart(void **state)
{
    hf__frame frame = {0};

    (void)state;
    hf__frame_begin(&frame, SIZE_MAX, false);
    hf__frame_put(&frame, HF__INK_BOLD, "ab");
    hf__frame_put(&frame, HF__INK_BOLD, "c");
    hf__frame_put(&frame, HF__INK_PROBLEM, "d");
    assert_int_equal(frame.lines[0].span_count, 2);
    assert_int_equal(frame.lines[0].spans[0].size, 3);
    assert_int_equal(frame.lines[0].spans[1].ink, HF__INK_PROBLEM);
    hf__frame_free(&frame);
}

static void paragraphs_break_at_spaces_and_only_then_inside_words(void **state)
{
    hf__frame frame = {0};

    (void)state;
    hf__frame_begin(&frame, 16, false);
    hf__frame_put(&frame, HF__INK_DIM, "why: ");
    hf__frame_wrap(&frame, HF__INK_PLAIN, "one two three https://example.org/x", 5);
    assert_int_equal(frame.count, 4);
    expect_line(&frame, 0, "why: one two ", 13);
    expect_line(&frame, 1, "     three ", 11);
    expect_line(&frame, 2, "     https://exa", 16);
    expect_line(&frame, 3, "     mple.org/x", 15);
    hf__frame_free(&frame);
}

static void paragraphs_end_on_any_width(void **state)
{
    (void)state;
    for (size_t width = 0; width < 40; width++) {
        hf__frame frame = {0};
        hf__frame_begin(&frame, width, false);
        hf__frame_wrap(&frame, HF__INK_PLAIN, "日本 a long sentence with 漢字 in it", 12);
        for (size_t i = 0; i < frame.count; i++)
            assert_true(frame.lines[i].cells <= width);
        hf__frame_free(&frame);
    }
}

static void a_window_of_lines_can_be_kept(void **state)
{
    static const char *const texts[] = {"head", "0", "1", "2", "3", "4"};
    hf__frame frame = {0};

    (void)state;
    hf__frame_begin(&frame, 10, false);
    for (size_t i = 0; i < 6; i++) {
        hf__frame_add_line(&frame);
        hf__frame_put(&frame, HF__INK_PLAIN, texts[i]);
    }
    hf__frame_keep(&frame, 1, 2, 2);
    assert_int_equal(frame.count, 3);
    expect_line(&frame, 0, "head", 4);
    expect_line(&frame, 1, "2", 1);
    expect_line(&frame, 2, "3", 1);
    hf__frame_keep(&frame, 1, 7, 2);
    assert_int_equal(frame.count, 1);
    hf__frame_free(&frame);
}

static void what_is_typed_is_erased_by_the_character(void **state)
{
    hf__entry entry = {0};

    (void)state;
    assert_true(hf__entry_press(&entry, 'a'));
    assert_true(hf__entry_press(&entry, 0xE9));
    assert_true(hf__entry_press(&entry, 0x65E5));
    assert_true(hf__entry_press(&entry, 0x1F512));
    assert_string_equal(entry.text, "aé日🔒");
    assert_true(hf__entry_press(&entry, HF__KEY_BACKSPACE));
    assert_true(hf__entry_press(&entry, HF__KEY_BACKSPACE));
    assert_string_equal(entry.text, "aé");
    assert_false(hf__entry_press(&entry, HF__KEY_ENTER));
    assert_false(hf__entry_press(&entry, HF__KEY_ESCAPE));
    hf__entry_set(&entry, "one two");
    assert_true(hf__entry_press(&entry, 'W' & 0x1F));
    assert_string_equal(entry.text, "one ");
    assert_true(hf__entry_press(&entry, 'U' & 0x1F));
    assert_true(hf__entry_press(&entry, HF__KEY_BACKSPACE));
    assert_string_equal(entry.text, "");
}

static void what_is_typed_never_outgrows_its_room(void **state)
{
    hf__entry entry = {0};
    char longer[2 * HF__ENTRY_ROOM];

    (void)state;
    for (int i = 0; i < 2 * HF__ENTRY_ROOM; i++)
        assert_true(hf__entry_press(&entry, 0x65E5));
    assert_true(entry.size < HF__ENTRY_ROOM && entry.size % 3 == 0);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    hf__entry_set(&entry, longer);
    assert_int_equal(strlen(entry.text), HF__ENTRY_ROOM - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_has_exactly_its_cells),
        cmocka_unit_test(wide_characters_take_two_cells_and_are_never_halved),
        cmocka_unit_test(combining_characters_take_none),
        cmocka_unit_test(control_bytes_and_what_is_no_text_are_escaped),
        cmocka_unit_test(what_terminals_join_to_pictures_of_their_own_width_is_escaped),
        cmocka_unit_test(a_label_is_cut_in_the_middle),
        cmocka_unit_test(where_there_is_only_ascii_nothing_else_is_put),
        cmocka_unit_test(nothing_goes_beyond_the_width),
        cmocka_unit_test(inks_are_kept_apart),
        cmocka_unit_test(paragraphs_break_at_spaces_and_only_then_inside_words),
        cmocka_unit_test(paragraphs_end_on_any_width),
        cmocka_unit_test(a_window_of_lines_can_be_kept),
        cmocka_unit_test(what_is_typed_is_erased_by_the_character),
        cmocka_unit_test(what_is_typed_never_outgrows_its_room),
    };

    return cmocka_run_group_tests(tests, use_utf8, NULL);
}
