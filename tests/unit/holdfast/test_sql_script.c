#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "programs/holdfast/sql_lex.h"
#include "programs/holdfast/sql_script.h"

enum { MOST_VARIABLES = 4 };

/* A script that was read with the variables id=7, name=Ann and ünï=x. */
struct fixture {
    struct sql_variable variables[MOST_VARIABLES];
    struct sql_script script;
    hf_error err;
};

static hf_status read_as(bool sqlite, struct fixture *fixture, const char *text)
{
    static const char *const assignments[] = {"id=7", "name=Ann", "ünï=x"};
    size_t count = sizeof assignments / sizeof assignments[0];

    *fixture = (struct fixture){0};
    for (size_t i = 0; i < count; i++)
        assert_true(sql_variable_read(assignments[i], &fixture->variables[i]));
    return sql_script_read(text, strlen(text), sqlite, fixture->variables, count, &fixture->script,
                           &fixture->err);
}

static hf_status read_script(struct fixture *fixture, const char *text)
{
    return read_as(false, fixture, text);
}

/* The statements, each as it is sent, with a bar between them. */
static void check_split_as(bool sqlite, const char *text, const char *expected)
{
    struct fixture fixture;
    char found[1024] = "";

    if (read_as(sqlite, &fixture, text) != HF_OK)
        fail_msg("%s: %s", text, fixture.err.message);
    for (size_t i = 0; i < fixture.script.count; i++) {
        if (i > 0)
            strcat(found, "|");
        strcat(found, fixture.script.statements[i].sql);
    }
    assert_string_equal(found, expected);
    sql_script_free(&fixture.script);
}

static void check_split(const char *text, const char *expected)
{
    check_split_as(false, text, expected);
}

static void check_refused(const char *text, size_t at, const char *message)
{
    struct fixture fixture;

    if (read_script(&fixture, text) != HF_INVALID)
        fail_msg("not refused: %s", text);
    assert_string_equal(fixture.err.message, message);
    assert_int_equal(fixture.script.wrong_at, at);
    sql_script_free(&fixture.script);
}

static void test_sqlite_quotes_names_in_its_own_ways(void **state)
{
    (void)state;
    check_split_as(true, "select [a;b]; select 1", "select [a;b]|select 1");
    check_split_as(true, "select `a;``b`; select 1", "select `a;``b`|select 1");
    check_split_as(true, "select [it's]; select :id", "select [it's]|select $1");
    check_split_as(true, "select 1 /* /* ; */; select 2", "select 1 /* /* ; */|select 2");
    check_split_as(true, "select e'\\'; select 2", "select e'\\'|select 2");
    check_split_as(true, "select $a$; select $a$", "select $a$|select $a$");
    check_split_as(true, "select 1 --\r; 2\n; select 3", "select 1 --\r; 2|select 3");
    check_split_as(false, "select 1 --\r; select 3", "select 1 --|select 3");
    check_split("select a[:id]; select 1", "select a[$1]|select 1");
    check_split("select 1 /* /* ; */ ; */; select 2", "select 1 /* /* ; */ ; */|select 2");
}

static void test_sqlite_triggers_have_statements_inside(void **state)
{
    static const char *const triggers[] = {
        "create trigger t after insert on a begin insert into b values (1); delete from c; end",
        "CREATE TEMP TRIGGER t BEFORE UPDATE ON a BEGIN SELECT CASE WHEN 1 THEN 2 END; END",
        "create trigger t after insert on a begin select 'x; end;'; /* why */ end",
        "create temporary trigger [begin;] after insert on a begin select 1; end",
    };

    (void)state;
    for (size_t i = 0; i < sizeof triggers / sizeof *triggers; i++) {
        char script[256];
        char expected[256];
        (void)snprintf(script, sizeof script, "%s; select 2", triggers[i]);
        (void)snprintf(expected, sizeof expected, "%s|select 2", triggers[i]);
        check_split_as(true, script, expected);
    }
    check_split("create trigger t after insert on begin execute function f(); select 1",
                "create trigger t after insert on begin execute function f()|select 1");
}

static void test_semicolons_separate_statements(void **state)
{
    (void)state;
    check_split("select 1; select 2", "select 1|select 2");
    check_split("  select 1 ;\n\nselect 2\n;\n", "select 1|select 2");
    check_split(";; select 1;;;", "select 1");
    check_split("", "");
    check_split(" \n\t ; -- nothing\n /* at all */ ;", "");
}

static void test_semicolons_in_quotes_do_not(void **state)
{
    (void)state;
    check_split("select ';'; select 2", "select ';'|select 2");
    check_split("select 'it''s;'; select 2", "select 'it''s;'|select 2");
    check_split("select '\\'; select 2", "select '\\'|select 2");
    check_split("select \"a;\"\"b;\"; select 2", "select \"a;\"\"b;\"|select 2");
    check_split("select $$;$$; select 2", "select $$;$$|select 2");
    check_split("select $a$;$b$;$$;$a$; select 2", "select $a$;$b$;$$;$a$|select 2");
    check_split("select $ü1$;$ü1$; select 2", "select $ü1$;$ü1$|select 2");
}

static void test_backslashes_escape_in_strings_with_an_e_only(void **state)
{
    (void)state;
    check_split("select e'\\';'; select 2", "select e'\\';'|select 2");
    check_split("select E'a\\\\'; select 2", "select E'a\\\\'|select 2");
    check_split("select E'a''\\';'; select 2", "select E'a''\\';'|select 2");
    check_split("select name'\\'; select 2", "select name'\\'|select 2");
    check_split("select U&'\\'; select 2", "select U&'\\'|select 2");
    check_split("select E'a'\n -- more\n '\\';'; select 2",
                "select E'a'\n -- more\n '\\';'|select 2");
    check_split("select E'a' '\\'; select 2", "select E'a' '\\'|select 2");
}

static void test_semicolons_in_comments_do_not(void **state)
{
    (void)state;
    check_split("select 1 -- ; it's\n; select 2", "select 1 -- ; it's|select 2");
    check_split("select 1 /* ; ' \" $$ */; select 2", "select 1 /* ; ' \" $$ */|select 2");
    check_split("/* a /* b; */ c; */ select 1", "/* a /* b; */ c; */ select 1");
    check_split("/**/ select 1; /***/ select 2", "/**/ select 1|/***/ select 2");
    check_split("select 1 - -1; select 2 / 1", "select 1 - -1|select 2 / 1");
}

static void test_semicolons_in_parentheses_do_not(void **state)
{
    (void)state;
    check_split("create rule r as on insert to t do (select 1; select 2); select 3",
                "create rule r as on insert to t do (select 1; select 2)|select 3");
    check_split("select 1); select 2", "select 1)|select 2");
}

static void test_dollars_in_names_quote_nothing(void **state)
{
    (void)state;
    check_split("select a$b; select c$b", "select a$b|select c$b");
    check_split("select a$1; select 2", "select a$1|select 2");
    check_split("select $ ; select 2", "select $|select 2");
}

static void test_variables_become_parameters(void **state)
{
    struct fixture fixture;
    const struct sql_statement *statement;

    (void)state;
    check_split("select :id", "select $1");
    check_split("select :id,:name;select :name", "select $1,$2|select $1");
    check_split("select :ünï", "select $1");
    check_split("select :id::text, (:name)", "select $1::text, ($2)");
    check_split("call f(a =>:id, b:=:name)", "call f(a =>$1, b:=$2)");
    check_split("select/**/:id+:id", "select/**/$1+$2");

    assert_int_equal(read_script(&fixture, "select :name, :id, :name; select 1"), HF_OK);
    statement = &fixture.script.statements[0];
    assert_int_equal(statement->count, 3);
    assert_string_equal(statement->values[0].data, "Ann");
    assert_string_equal(statement->values[1].data, "7");
    assert_string_equal(statement->values[2].data, "Ann");
    assert_false(statement->values[0].binary);
    assert_int_equal(fixture.script.statements[1].count, 0);
    assert_true(fixture.variables[0].used && fixture.variables[1].used);
    assert_false(fixture.variables[2].used);
    sql_script_free(&fixture.script);
}

static void test_other_colons_stay(void **state)
{
    static const char *const scripts[] = {
        "select '7'::id",        "select a[1:2]",     "select a[lo:id]", "select a[f(1)1:id]",
        "select ':id', \":id\"", "select $$:id$$",    "select 1 -- :id", "select 1 /* :id */",
        "select a : id",         "call f(a := 1)",    "select e':id'",   "select a[:2]",
        "select '7' :: id",      "select ':' || ':'",
    };

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        check_split(scripts[i], scripts[i]);
}

static void test_values_are_never_in_the_text(void **state)
{
    struct sql_variable variable;
    struct sql_script script;
    const char *text = "select :x";

    (void)state;
    assert_true(sql_variable_read("x='; drop table t; --:x=", &variable));
    assert_int_equal(sql_script_read(text, strlen(text), false, &variable, 1, &script, NULL),
                     HF_OK);
    assert_string_equal(script.statements[0].sql, "select $1");
    assert_string_equal(script.statements[0].values[0].data, "'; drop table t; --:x=");
    sql_script_free(&script);
}

static void test_undefined_variables_are_refused_where_they_stand(void **state)
{
    (void)state;
    check_refused("select :id, :nome", 12, "the variable :nome has no value");
    check_refused("select :ID", 7, "the variable :ID has no value");
    check_refused("select 1; select :id2", 17, "the variable :id2 has no value");
}

static void test_numbered_parameters_are_refused(void **state)
{
    (void)state;
    check_refused("select :id, $1", 12, "$1: parameters have names here");
}

static void test_what_is_not_closed_is_refused_where_it_opens(void **state)
{
    (void)state;
    check_refused("select 1; select 'a; b", 17, "the string is not closed");
    check_refused("select e'a\\'", 7, "the string is not closed");
    check_refused("select e'a\\", 7, "the string is not closed");
    check_refused("select \"a", 7, "the quoted name is not closed");
    check_refused("select $x$ $y$", 7, "the dollar quote is not closed");
    check_refused("select $$", 7, "the dollar quote is not closed");
    check_refused("/* /* */ select 1", 0, "the comment is not closed");
    check_refused("select 1 /*", 9, "the comment is not closed");
    check_refused("select 1 /*/", 9, "the comment is not closed");
}

static void test_statements_that_end_the_transaction_are_refused(void **state)
{
    static const char *const refused[] = {
        "begin",
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "commit",
        "Commit and chain",
        "commit prepared 'x'",
        "end",
        "abort",
        "rollback",
        "rollback work",
        "rollback and chain",
        "start transaction",
        "prepare transaction 'x'",
    };
    static const char *const allowed[] = {
        "savepoint a; rollback to a; rollback to savepoint a; rollback work to a; release a",
        "rollback transaction to savepoint a",
        "prepare p as select 1; execute p",
        "select 'commit' as begin",
        "select 1 as commit",
        "\"commit\"",
        "beginning",
        "do $$ begin null; end $$",
    };
    struct fixture fixture;

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "select 1; -- hm;\n/* ; */ %s ; select 2", refused[i]);
        assert_int_equal(read_script(&fixture, text), HF_INVALID);
        assert_non_null(strstr(fixture.err.message, "has no place here"));
        assert_int_equal(fixture.script.wrong_at, strstr(text, refused[i]) - text);
        sql_script_free(&fixture.script);
    }
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        assert_int_equal(read_script(&fixture, allowed[i]), HF_OK);
        sql_script_free(&fixture.script);
    }
}

static void test_copies_from_and_to_the_client_are_refused(void **state)
{
    (void)state;
    check_refused("copy t from stdin", 12, "COPY cannot read from or write to the client here");
    check_refused("COPY t TO STDOUT csv", 10, "COPY cannot read from or write to the client here");
    check_split("copy t from '/stdin'; select stdin", "copy t from '/stdin'|select stdin");
}

static void test_writes_are_known(void **state)
{
    struct fixture fixture;

    (void)state;
    assert_int_equal(read_script(&fixture, "/* a */ INSERT into t values (1); select 1; delete "
                                           "from t; update t set a = 1; merge into t; values (1)"),
                     HF_OK);
    assert_true(fixture.script.statements[0].writes);
    assert_false(fixture.script.statements[1].writes);
    assert_true(fixture.script.statements[2].writes);
    assert_true(fixture.script.statements[3].writes);
    assert_true(fixture.script.statements[4].writes);
    assert_false(fixture.script.statements[5].writes);
    sql_script_free(&fixture.script);
}

static void test_assignments_are_read(void **state)
{
    struct sql_variable variable;

    (void)state;
    assert_true(sql_variable_read("a_1=x=y", &variable));
    assert_int_equal(variable.name_size, 3);
    assert_string_equal(variable.value, "x=y");
    assert_true(sql_variable_read("a=", &variable));
    assert_string_equal(variable.value, "");
    assert_false(sql_variable_read("a", &variable));
    assert_false(sql_variable_read("", &variable));
    assert_false(sql_variable_read("=x", &variable));
    assert_false(sql_variable_read("1a=x", &variable));
    assert_false(sql_variable_read("a b=x", &variable));
    assert_false(sql_variable_read(":a=x", &variable));
}

/* A position in what was sent leads to the word that it means in the script. */
static void check_position(const char *text, size_t index, const char *sent_word,
                           const char *script_word)
{
    struct fixture fixture;

    assert_int_equal(read_script(&fixture, text), HF_OK);
    const struct sql_statement *statement = &fixture.script.statements[index];
    const char *found = strstr(statement->sql, sent_word);
    assert_non_null(found);
    int position = 1;
    for (const char *c = statement->sql; c < found; c++)
        position += ((unsigned char)*c & 0xC0) != 0x80;
    assert_int_equal(sql_statement_offset(statement, position), strstr(text, script_word) - text);
    sql_script_free(&fixture.script);
}

static void test_positions_lead_back_to_the_script(void **state)
{
    struct fixture fixture;

    (void)state;
    check_position("select frm", 0, "frm", "frm");
    check_position("select 1; /* a */\nselect 'é', frm", 1, "frm", "frm");
    check_position("select :name, frm, :id, fram", 0, "frm", "frm");
    check_position("select :name, frm, :id, fram", 0, "fram", "fram");
    check_position("select :name, frm, :id, fram", 0, "$2", ":id");
    check_position("select :name, frm, :id, fram", 0, "1, frm", ":name");
    check_position("select :name", 0, "select", "select");

    assert_int_equal(read_script(&fixture, "select :name +\n\n"), HF_OK);
    assert_int_equal(sql_statement_offset(&fixture.script.statements[0], 12), 14);
    assert_int_equal(sql_statement_offset(&fixture.script.statements[0], 99), 14);
    sql_script_free(&fixture.script);
}

static void check_place(const char *text, size_t at, size_t line, size_t column,
                        const char *excerpt)
{
    struct sql_place place = sql_find_place(text, strlen(text), at);

    assert_int_equal(place.line, line);
    assert_int_equal(place.column, column);
    assert_string_equal(place.excerpt, excerpt);
}

static void test_places_are_shown_for_people(void **state)
{
    char text[600];

    (void)state;
    check_place("", 0, 1, 1, "");
    check_place("select 1", 8, 1, 9, "select 1");
    check_place("select 1;\n  select frm  \nx", 19, 2, 10, "select frm");
    check_place("select 1;\r\nselect 2;\r\n", 18, 2, 8, "select 2;");
    check_place("a\n\nb", 2, 2, 1, "");
    check_place("select 'é', x", 13, 1, 13, "select 'é', x");
    check_place("a\033b", 0, 1, 1, "a\\x1bb");

    memset(text, ' ', sizeof text);
    memcpy(text, "select", 6);
    strcpy(text + 500, "frm");
    check_place(text, 500, 1, 501, "frm");
    memset(text, 'x', 500);
    struct sql_place place = sql_find_place(text, strlen(text), 500);
    assert_int_equal(strlen(place.excerpt), 43);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sqlite_quotes_names_in_its_own_ways),
        cmocka_unit_test(test_sqlite_triggers_have_statements_inside),
        cmocka_unit_test(test_semicolons_separate_statements),
        cmocka_unit_test(test_semicolons_in_quotes_do_not),
        cmocka_unit_test(test_backslashes_escape_in_strings_with_an_e_only),
        cmocka_unit_test(test_semicolons_in_comments_do_not),
        cmocka_unit_test(test_semicolons_in_parentheses_do_not),
        cmocka_unit_test(test_dollars_in_names_quote_nothing),
        cmocka_unit_test(test_variables_become_parameters),
        cmocka_unit_test(test_other_colons_stay),
        cmocka_unit_test(test_values_are_never_in_the_text),
        cmocka_unit_test(test_undefined_variables_are_refused_where_they_stand),
        cmocka_unit_test(test_numbered_parameters_are_refused),
        cmocka_unit_test(test_what_is_not_closed_is_refused_where_it_opens),
        cmocka_unit_test(test_statements_that_end_the_transaction_are_refused),
        cmocka_unit_test(test_copies_from_and_to_the_client_are_refused),
        cmocka_unit_test(test_writes_are_known),
        cmocka_unit_test(test_assignments_are_read),
        cmocka_unit_test(test_positions_lead_back_to_the_script),
        cmocka_unit_test(test_places_are_shown_for_people),
    };
    return RUN(tests);
}
