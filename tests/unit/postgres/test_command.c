/* What a statement does to its transaction and its session, told by its words. */
#include "unit.h"

#include "lib/postgres/postgres.h"

static void each_is(pg_command expected, const char *const *statements)
{
    for (; *statements; statements++)
        if (hf__pg_command(*statements) != expected)
            fail_msg("%s: %d instead of %d", *statements, hf__pg_command(*statements), expected);
}

static void transaction_control_is_known_by_its_first_word(void **state)
{
    (void)state;
    each_is(PG_COMMAND_ENDS,
            (const char *const[]){"BEGIN", "begin work", "START TRANSACTION", "commit", "End",
                                  "abort", "ROLLBACK", "rollback work", "ROLLBACK PREPARED 'x'",
                                  "prepare transaction 'x'", " \t\r\n\f;;commit", "--x\ncommit",
                                  "--x\rcommit", "/* a /* b */ c */commit", "commit/**/and chain",
                                  "prepare/**/transaction 'x'", "commit;", "/* 1 / 2 * 3 */commit",
                                  NULL});
}

static void a_return_to_a_savepoint_is_no_end(void **state)
{
    (void)state;
    each_is(PG_COMMAND_ROLLS_TO,
            (const char *const[]){"rollback to a", "ROLLBACK WORK TO SAVEPOINT a",
                                  "rollback/**/transaction--\nto a", NULL});
}

static void a_part_is_found_anywhere_and_in_any_case(void **state)
{
    (void)state;
    const char *sql = "_x, TeMp, a_B, u&\"";
    assert_ptr_equal(hf__pg_mention(sql, "_x"), sql);
    assert_ptr_equal(hf__pg_mention(sql, "temp"), sql + 4);
    assert_ptr_equal(hf__pg_mention(sql, "a_b"), sql + 10);
    assert_ptr_equal(hf__pg_mention(sql, "u&\""), sql + 15);
    assert_null(hf__pg_mention(sql, "aa_b"));
    assert_null(hf__pg_mention(sql, "u&\"_"));
    assert_null(hf__pg_mention("mp", "temp"));
    assert_null(hf__pg_mention("", "temp"));
}

static void copy_is_told_apart(void **state)
{
    (void)state;
    each_is(PG_COMMAND_COPIES,
            (const char *const[]){"copy t from stdin", "COPY(select 1) TO STDOUT", NULL});
}

static void what_may_stay_in_the_session_alters_it(void **state)
{
    (void)state;
    each_is(PG_COMMAND_ALTERS, (const char *const[]){"SET work_mem = 1",
                                                     "set session work_mem = 1",
                                                     "set role a",
                                                     "reset all",
                                                     "discard all",
                                                     "deallocate all",
                                                     "prepare p as select 1",
                                                     "listen a",
                                                     "load 'x'",
                                                     "declare c cursor for select 1",
                                                     "create table t ()",
                                                     "do $$ $$",
                                                     "call p()",
                                                     "select set_config('a', 'b', false)",
                                                     "select pg_advisory_lock(1)",
                                                     "update pg_settings set setting = 1",
                                                     "select pg_try_advisory_lock_shared(1)",
                                                     "select 1 into temp t",
                                                     "select 1 into\ntemporary t",
                                                     NULL});
}

static void the_rest_is_plain(void **state)
{
    (void)state;
    each_is(PG_COMMAND_PLAIN,
            (const char *const[]){"select 1",
                                  "",
                                  "/* never closed",
                                  "--",
                                  ";",
                                  "insert into t values (1)",
                                  "with x as (select 1) select 1",
                                  "set local work_mem = 1",
                                  "SET TRANSACTION READ ONLY",
                                  "set constraints all deferred",
                                  "savepoint a",
                                  "release a",
                                  "select pg_advisory_xact_lock(1)",
                                  "select attempt, temperature, my_temp, advisory_id from t",
                                  "committed",
                                  "(select 1)",
                                  "endpoint",
                                  "begin_x",
                                  "commit$1",
                                  "commit\xc3\xa9",
                                  "- commit",
                                  "/ commit",
                                  "commit\x80",
                                  NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transaction_control_is_known_by_its_first_word),
        cmocka_unit_test(a_return_to_a_savepoint_is_no_end),
        cmocka_unit_test(a_part_is_found_anywhere_and_in_any_case),
        cmocka_unit_test(copy_is_told_apart),
        cmocka_unit_test(what_may_stay_in_the_session_alters_it),
        cmocka_unit_test(the_rest_is_plain),
    };
    return RUN(tests);
}
