#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

struct values {
    bool all;
    const char *name;
    struct number count;
    struct number wait;
    struct texts files;
};

static const struct option options[] = {
    {.letter = 'a', .name = "all", .help = "", .offset = offsetof(struct values, all)},
    {.letter = 'n',
     .name = "name",
     .value = "NAME",
     .help = "",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct values, name)},
    {.name = "count",
     .value = "N",
     .help = "",
     .kind = OPTION_NUMBER,
     .offset = offsetof(struct values, count),
     .low = 1,
     .high = 9},
    {.name = "wait",
     .value = "TIME",
     .help = "",
     .kind = OPTION_DURATION,
     .offset = offsetof(struct values, wait)},
    {.name = "file",
     .value = "FILE",
     .help = "",
     .kind = OPTION_TEXTS,
     .offset = offsetof(struct values, files)},
    {0},
};

static const struct command command = {
    .name = "try",
    .summary = "",
    .usage = "[OPTION...] [OPERAND...]",
    .options = options,
    .takes_operands = true,
};

/* The words of a command line, the command's own first. */
#define PARSE(values, in, code, ...)                                                               \
    parse((char *[]){"try", __VA_ARGS__, NULL}, (values), (in), (code))

static bool parse(char **argv, struct values *values, struct invocation *in, int *code)
{
    static char *kept[16]; /* operands point into it */
    int argc = 0;

    for (; argv[argc] != NULL; argc++)
        kept[argc] = argv[argc];
    kept[argc] = NULL;
    *values = (struct values){0};
    return parse_options(&command, argc, kept, values, in, code);
}

static void test_options_stand_between_operands(void **state)
{
    struct values values;
    struct invocation in;
    int code = -1;

    (void)state;
    assert_true(PARSE(&values, &in, &code, "one", "--count=3", "-an", "x", "two", "--wait", "1.5",
                      "--file", "f", "--file=g", "--", "--all"));
    assert_int_equal(code, EXIT_OK);
    assert_true(values.all);
    assert_string_equal(values.name, "x");
    assert_true(values.count.given && values.count.value == 3);
    assert_true(values.wait.given && values.wait.value == 1500);
    assert_int_equal(values.files.count, 2);
    assert_string_equal(values.files.items[1], "g");
    assert_int_equal(in.count, 3);
    assert_string_equal(in.operands[1], "two");
    assert_string_equal(in.operands[2], "--all");
    free(values.files.items);
}

static void test_what_is_wrong_is_a_usage_error(void **state)
{
    struct values values;
    struct invocation in;
    int code;

    (void)state;
    assert_false(PARSE(&values, &in, &code, "--bogus"));
    assert_int_equal(code, EXIT_USAGE);
    assert_false(PARSE(&values, &in, &code, "-z"));
    assert_int_equal(code, EXIT_USAGE);
    assert_false(PARSE(&values, &in, &code, "--all=yes"));
    assert_int_equal(code, EXIT_USAGE);
    assert_false(PARSE(&values, &in, &code, "--name"));
    assert_int_equal(code, EXIT_USAGE);
    assert_false(PARSE(&values, &in, &code, "--count", "10"));
    assert_int_equal(code, EXIT_USAGE);
    assert_false(PARSE(&values, &in, &code, "--wait", "soon"));
    assert_int_equal(code, EXIT_USAGE);
}

static const struct verb {
    struct action action;
    int number;
} verbs[] = {
    {{"list", 0, "list"}, 1},
    {{"ref", 2, "ref TABLE CONTEXT"}, 2},
};

static const struct verb *choose(struct invocation *in, int *code)
{
    return choose_action(&command, in, "what to do is missing", verbs, sizeof verbs / sizeof *verbs,
                         sizeof *verbs, code);
}

static void test_the_first_operand_chooses_the_action(void **state)
{
    struct values values;
    struct invocation in;
    int code = -1;

    (void)state;
    assert_true(PARSE(&values, &in, &code, "ref", "db.t", "app"));
    const struct verb *verb = choose(&in, &code);
    assert_non_null(verb);
    assert_int_equal(verb->number, 2);
    assert_int_equal(code, EXIT_OK);
}

static void test_no_action_or_other_operands_are_refused(void **state)
{
    struct values values;
    struct invocation in;
    int code;

    (void)state;
    assert_true(PARSE(&values, &in, &code, "-a"));
    assert_null(choose(&in, &code));
    assert_int_equal(code, EXIT_USAGE);
    assert_true(PARSE(&values, &in, &code, "lost"));
    assert_null(choose(&in, &code));
    assert_int_equal(code, EXIT_USAGE);
    assert_true(PARSE(&values, &in, &code, "list", "db.t"));
    assert_null(choose(&in, &code));
    assert_int_equal(code, EXIT_USAGE);
}

static void test_only_a_near_word_is_suggested(void **state)
{
    struct suggestion near = {.word = "cuont"};
    struct suggestion far = {.word = "cuont"};

    (void)state;
    suggest(&near, "all");
    suggest(&near, "count");
    suggest(&near, "name");
    assert_string_equal(near.nearest, "count");
    suggest(&far, "session-pool");
    assert_null(far.nearest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_stand_between_operands),
        cmocka_unit_test(test_what_is_wrong_is_a_usage_error),
        cmocka_unit_test(test_the_first_operand_chooses_the_action),
        cmocka_unit_test(test_no_action_or_other_operands_are_refused),
        cmocka_unit_test(test_only_a_near_word_is_suggested),
    };
    return RUN(tests);
}
