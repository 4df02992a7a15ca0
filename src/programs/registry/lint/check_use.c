#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "programs/registry/lint/check.h"

/* Where SQL is not passed to a function: whoever runs it may look at the result. */
#define NO_PROGRAM (HF__LANG_SQL | HF__LANG_TEXT | HF__LANG_XML | HF__LANG_SHELL)

enum { STATEMENT_REACH = 500, FOLLOWING = 240 };

const char *const hf__check_patterns[HF__CHECK_PATTERNS] = {
    [HF__CALL_WITHOUT_ROWS] =
        "(?:\\bExec(?:Context)?|\\bMustExec|\\$?executeRaw\\w*|ExecuteNonQuery\\w*|executeUpdate|"
        "batch_execute|exec_update|exec_delete)\\s*[(`<]",
    [HF__BARE_CALL] = "\\A\\s*(?:await\\s+|yield\\s+|defer\\s+|\\(void\\)\\s*|@)?"
                      "(?!(?:return|if|while|unless|elsif|elif|else|case|switch|assert\\w*|"
                      "expect\\w*|raise|throw|"
                      "let|const|var|val|for|not|when|with|match|puts|print\\w*|echo|log\\w*|"
                      "static|private|public|"
                      "final|def|define|format|sprintf)\\b)"
                      "(?!\\S*\\bassert_)" /* of a mock */
                      "[\\w.$@:!&*>-]+\\s*\\([\\w\\s.,()&*$@:>!-]*\\z",
    [HF__VALUE_USED] =
        "(?:\\.|->|::|\\|>)\\s*(?:then|rows?|fetch\\w*|scalar\\w*|first\\w*|one\\w*|"
        "get\\w*|scan|single\\w*|collect|map|all|values?|data|subscribe|block\\w*)\\b"
        "|\\[",
    [HF__FETCHED] =
        "\\bfetch\\w*|getBoolean|\\bPQgetvalue|\\.Scan\\b|\\brs\\.next|->fetch|\\.next\\(",
    [HF__POOL_CALLED] =
        "(?:\\b\\w*pool\\w*\\s*(?:\\.|->)\\s*(?:query|exec|fetch|run|select|raw)\\w*|"
        "\\bprisma(?:client|service)?\\.\\$(?:query|execute)raw\\w*|\\bengine\\.execute|"
        "\\bknex\\.raw|\\bsequelize\\.query|\\bdatasource\\.query|"
        "\\bjdbctemplate\\.\\w+|\\brepo\\.query!?|\\bPostgrex\\.query!?\\(\\s*\\w*pool)"
        "\\s*(?:[(`<][^;]*)?\\z",
    [HF__POOL_PASSED] =
        "\\.(?:execute|fetch_\\w+)\\(\\s*&?(?:\\w+\\.)*\\w*pool\\w*(?:\\(\\))?\\s*\\)",
    [HF__MAYBE_POOL_CALLED] =
        "(\\w+)\\.(?:Exec|Query|QueryRow|Get|Select|Raw)(?:x|Context)?\\([^;]*\\z",
};

/* ---- Locks and their unlocks ----------------------------------------------------------------- */

static bool needs_unlock(const hf__use *use)
{
    return !use->unlocks && use->kind->in_sql + use->kind->in_code > 0 && !use->kind->releases &&
           use->lifetime_known && use->lifetime == HF_SESSION;
}

/* Is there a lock of the same key that the unlock is for? */
static bool gives_back_another(const hf__uses *uses, const hf__use *unlock)
{
    for (size_t i = 0; i < uses->count; i++)
        if (!uses->items[i].unlocks && uses->items[i].shared == unlock->shared &&
            hf__lock_key_may_equal(&uses->items[i].key, &unlock->key))
            return true;
    return false;
}

/* The unlock that releases this lock, as far as we can tell. *other_mode: one of the wrong mode. */
static const hf__use *find_unlock(const hf__uses *uses, const hf__use *taken,
                                  const hf__use **other_mode)
{
    for (size_t i = 0; i < uses->count; i++) {
        const hf__use *use = &uses->items[i];
        if (!use->unlocks || (!use->unlocks_all && !hf__lock_key_may_equal(&use->key, &taken->key)))
            continue;
        if (use->unlocks_all || use->shared == taken->shared)
            return use;
        if (use->key.kind != HF__KEY_UNKNOWN && taken->key.kind != HF__KEY_UNKNOWN &&
            !gives_back_another(uses, use))
            *other_mode = use;
    }
    return NULL;
}

static void check_is_unlocked(hf__check *check, const hf__use *taken)
{
    const hf__use *other_mode = NULL;
    char call[HF__CALL_SHOWN];

    if (find_unlock(check->uses, taken, &other_mode) != NULL)
        return;
    if (other_mode != NULL) {
        hf__check_report(
            check, HF__UNLOCK_OF_OTHER_MODE, other_mode->at, HF__CERTAIN,
            taken->shared ? "use pg_advisory_unlock_shared" : "use pg_advisory_unlock",
            "%s does not give back the %s lock of line %u", hf__show_call(check, other_mode, call),
            taken->shared ? "shared" : "exclusive", hf__unit_line(check->unit, taken->at));
        return;
    }
    hf__check_report(check, HF__SESSION_LOCK_WITHOUT_UNLOCK, taken->at, HF__CERTAIN,
                     "unlock it on every path, or use pg_advisory_xact_lock, which ends with the "
                     "transaction",
                     "%s takes a session lock that nothing in this file gives back",
                     hf__show_call(check, taken, call));
}

static bool is_known_and_equal(const hf__use *a, const hf__use *b)
{
    return a->key.kind != HF__KEY_UNKNOWN && b->key.kind != HF__KEY_UNKNOWN && !a->key.has_holes &&
           !b->key.has_holes && hf__lock_key_may_equal(&a->key, &b->key);
}

static void check_has_session_lock(hf__check *check, const hf__use *unlock)
{
    const hf__uses *uses = check->uses;
    const hf__use *in_transaction = NULL;
    char call[HF__CALL_SHOWN];

    for (size_t i = 0; i < uses->count; i++) {
        const hf__use *use = &uses->items[i];
        if (use->unlocks || !use->lifetime_known)
            continue;
        if (use->lifetime == HF_SESSION && hf__lock_key_may_equal(&use->key, &unlock->key))
            return;
        if (use->lifetime == HF_TRANSACTION && is_known_and_equal(use, unlock))
            in_transaction = use;
    }
    if (in_transaction != NULL)
        hf__check_report(check, HF__UNLOCK_OF_TRANSACTION_LOCK, unlock->at, HF__CERTAIN,
                         "remove the unlock: COMMIT and ROLLBACK give the lock back",
                         "%s cannot give back the transaction lock of line %u",
                         hf__show_call(check, unlock, call),
                         hf__unit_line(check->unit, in_transaction->at));
}

/* ---- An unlock's result that nobody looks at ------------------------------------------------- */

static bool is_code(const hf__unit *unit, size_t at)
{
    return unit->classes[at] == HF__CODE;
}

static char code_before(const hf__unit *unit, size_t at)
{
    while (at > 0 &&
           (unit->classes[at - 1] == HF__COMMENT || isspace((unsigned char)unit->text[at - 1])))
        at--;
    return at > 0 ? unit->text[at - 1] : '\0';
}

/* Does the statement continue after this newline? */
static bool goes_on(const hf__unit *unit, size_t newline)
{
    char before = code_before(unit, newline);
    size_t next = newline + 1;

    while (next < unit->size && isspace((unsigned char)unit->text[next]))
        next++;
    return (before != '\0' && strchr("(,[+.\\=&|<", before) != NULL) || unit->text[next] == '.' ||
           (unit->text[next] == '|' && unit->text[next + 1] == '>');
}

/* Where the statement around a string begins. False: the string is part of a literal object. */
static bool statement_start(const hf__unit *unit, size_t string, size_t *start)
{
    size_t lowest = string > STATEMENT_REACH ? string - STATEMENT_REACH : 0;
    size_t at = string;

    for (; at > lowest; at--) {
        char c = unit->text[at - 1];
        if (!is_code(unit, at - 1))
            continue;
        if (c == ';' || c == '}')
            break;
        if (c == '{') {
            char before = code_before(unit, at - 1);
            if (before != '\0' && strchr("(=,:[", before) != NULL)
                return false;
            break;
        }
        if (c == '\n' && unit->syntax->newline_ends && !goes_on(unit, at - 1))
            break;
    }
    *start = at;
    return at > lowest || at == 0;
}

static size_t statement_end(const hf__unit *unit, size_t string_end)
{
    size_t highest =
        unit->size - string_end > STATEMENT_REACH ? string_end + STATEMENT_REACH : unit->size;
    size_t at = string_end;

    for (; at < highest; at++) {
        char c = unit->text[at];
        if (is_code(unit, at) &&
            (c == ';' || (c == '\n' && unit->syntax->newline_ends && !goes_on(unit, at))))
            break;
    }
    return at;
}

static bool finds(const hf__check *check, enum hf__check_pattern which, size_t start, size_t end)
{
    hf__pcre_match match;

    return hf__pcre_find(check->patterns[which], check->unit->text + start, end - start, 0,
                         &match) == HF__PCRE_FOUND;
}

/* The place after the parenthesis that closes the call. */
static size_t behind_call(const hf__unit *unit, size_t at, size_t end)
{
    long depth = 0;

    for (; at < end; at++) {
        if (!is_code(unit, at))
            continue;
        depth += unit->text[at] == '(' || unit->text[at] == '[';
        depth -= unit->text[at] == ')' || unit->text[at] == ']';
        if (depth < 0)
            return at + 1;
    }
    return end;
}

/* The last expression of a method is its value, so the caller can look at it. */
static bool is_returned(const hf__unit *unit, size_t end)
{
    while (end < unit->size &&
           (unit->classes[end] == HF__COMMENT || isspace((unsigned char)unit->text[end])))
        end++;
    switch (unit->syntax->id) {
    case HF__LANG_RUBY:
    case HF__LANG_ELIXIR: return strncmp(unit->text + end, "end", 3) == 0;
    case HF__LANG_RUST:
    case HF__LANG_KOTLIN: return unit->text[end] == '}';
    default: return false;
    }
}

/*
 * Does a variable get what the call gives? exec() of Ruby and Kotlin gives rows. In JavaScript the
 * statement may begin behind the type in query<{ locked: boolean }>(.
 */
static bool is_kept(const hf__unit *unit, size_t start, size_t string)
{
    if ((unit->syntax->id & (HF__LANG_RUBY | HF__LANG_KOTLIN | HF__LANG_JS)) == 0)
        return false;
    if (unit->syntax->id == HF__LANG_JS)
        return start + 1 < string && unit->text[start] == '>' && unit->text[start + 1] == '(';
    for (size_t at = start + 1; at + 1 < string; at++)
        if (unit->classes[at] == HF__CODE && unit->text[at] == '=' &&
            strchr("=!<>", unit->text[at - 1]) == NULL && strchr("=>", unit->text[at + 1]) == NULL)
            return true;
    return false;
}

static int ignored_by_program(const hf__check *check, const hf__use *use)
{
    const hf__unit *unit = check->unit;
    size_t string = hf__unit_run_start(unit, use->at);
    size_t string_end = hf__unit_run_end(unit, use->at);
    size_t start = 0;
    size_t end = statement_end(unit, string_end);
    size_t following = unit->size - end > FOLLOWING ? end + FOLLOWING : unit->size;

    while (string > 0 && unit->classes[string - 1] == HF__QUOTE)
        string--;
    if (!statement_start(unit, string, &start) || is_kept(unit, start, string))
        return HF__CERTAIN;
    if (finds(check, HF__CALL_WITHOUT_ROWS, start, string) ||
        finds(check, HF__CALL_WITHOUT_ROWS, string_end, end))
        return HF__HIGH;
    if (!finds(check, HF__BARE_CALL, start, string) ||
        finds(check, HF__VALUE_USED, behind_call(unit, string_end, end), end) ||
        finds(check, HF__FETCHED, end, following) || is_returned(unit, end))
        return HF__CERTAIN;
    return HF__MEDIUM;
}

static bool follows_perform(const hf__unit *unit, size_t at)
{
    while (at > 0 && isspace((unsigned char)unit->text[at - 1]))
        at--;
    return at >= 7 && strncasecmp(unit->text + at - 7, "perform", 7) == 0;
}

/* ---- A session lock on a pool ---------------------------------------------------------------- */

/* In Go the type tells: db *sql.DB is a pool, conn *sql.Conn and tx *sql.Tx are not. */
static bool is_pool_by_type(const hf__unit *unit, const char *name, size_t size)
{
    static const char *const types[] = {"*sql.DB",  "*sqlx.DB", "*pgxpool.Pool",
                                        "*gorm.DB", "*bun.DB",  "*pg.DB"};
    bool found = false;

    for (const char *at = unit->text;
         (at = memmem(at, unit->size - (size_t)(at - unit->text), name, size)) != NULL; at++) {
        const char *type = at + size;
        if ((at > unit->text && (isalnum((unsigned char)at[-1]) || at[-1] == '_')) ||
            (*type != ' ' && *type != '\t'))
            continue;
        type += strspn(type, " \t");
        bool pool = false;
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
            pool = pool || strncmp(type, types[i], strlen(types[i])) == 0;
        if (!pool && *type == '*')
            return false; /* another one of that name */
        found = found || pool;
    }
    return found;
}

/* A connection that is reserved around the call makes it right. */
static bool is_pinned(const hf__check *check, const hf__use *use)
{
    const hf__unit *unit = check->unit;
    size_t block = use->block;

    while (block != HF__NO_BLOCK && unit->blocks[block].parent != HF__NO_BLOCK)
        block = unit->blocks[block].parent;
    size_t start = block != HF__NO_BLOCK ? unit->blocks[block].start : use->at;
    return memmem(unit->text + start, use->at - start, ".checkout(", 10) != NULL ||
           memmem(unit->text + start, use->at - start, "Repo.transaction(", 17) != NULL;
}

/* A JdbcTemplate that is not Spring's, as Flyway has one, may hold a single connection. */
static bool is_other_template(const hf__unit *unit, size_t start, size_t string)
{
    return strcasestr(unit->text, "jdbctemplate") != NULL &&
           memmem(unit->text, unit->size, "org.springframework", 19) == NULL &&
           memmem(unit->text + start, string - start, "pool", 4) == NULL;
}

static bool is_on_pool(const hf__check *check, size_t start, size_t string, size_t string_end,
                       size_t end)
{
    const hf__unit *unit = check->unit;
    hf__pcre_match match;

    if ((finds(check, HF__POOL_CALLED, start, string) && !is_other_template(unit, start, string)) ||
        (unit->syntax->id == HF__LANG_RUST && finds(check, HF__POOL_PASSED, string_end, end)))
        return true;
    return unit->syntax->id == HF__LANG_GO &&
           hf__pcre_find(check->patterns[HF__MAYBE_POOL_CALLED], unit->text + start, string - start,
                         0, &match) == HF__PCRE_FOUND &&
           is_pool_by_type(unit, unit->text + start + match.start[1],
                           match.end[1] - match.start[1]);
}

static void check_pool(hf__check *check, const hf__use *use)
{
    const hf__unit *unit = check->unit;
    size_t string = hf__unit_run_start(unit, use->at);
    size_t string_end = hf__unit_run_end(unit, use->at);
    size_t start = 0;
    char call[HF__CALL_SHOWN];

    if (!use->in_text || use->calls != NULL || use->lifetime != HF_SESSION ||
        (unit->syntax->id & NO_PROGRAM) != 0)
        return;
    while (string > 0 && unit->classes[string - 1] == HF__QUOTE)
        string--;
    if (!statement_start(unit, string, &start) ||
        !is_on_pool(check, start, string, string_end, statement_end(unit, string_end)) ||
        is_pinned(check, use))
        return;
    hf__check_report(
        check, HF__LOCK_ON_POOL, use->at, HF__HIGH,
        "reserve one connection for the lock, what it protects and the unlock, or use "
        "pg_advisory_xact_lock in a transaction",
        "%s is called on a pool: the lock stays on a connection that goes to somebody else, and "
        "the unlock may go to another one",
        hf__show_call(check, use, call));
}

static void check_result(hf__check *check, const hf__use *use)
{
    int confidence = HF__CERTAIN;
    char call[HF__CALL_SHOWN];

    if (follows_perform(check->unit, use->start))
        confidence = HF__HIGH;
    else if (use->in_text && (check->unit->syntax->id & NO_PROGRAM) == 0)
        confidence = ignored_by_program(check, use);
    if (confidence == HF__CERTAIN)
        return;
    if (use->tries) {
        hf__check_report(check, HF__TRY_RESULT_IGNORED, use->at, confidence,
                         "read the boolean, or wait with pg_advisory_lock or "
                         "pg_advisory_xact_lock",
                         "the result of %s is ignored: the code goes on without the lock",
                         hf__show_call(check, use, call));
        return;
    }
    hf__check_report(
        check, HF__UNLOCK_RESULT_IGNORED, use->at, confidence,
        "read the boolean: false means that the lock had been lost, and with it what it "
        "protected",
        "the result of %s is ignored", hf__show_call(check, use, call));
}

static void check_unlock(hf__check *check, const hf__use *use)
{
    if (use->unlocks_all) {
        hf__check_report(
            check, HF__UNLOCK_ALL, use->at, HF__CERTAIN,
            "unlock the key that was taken; where a pooled connection is cleaned, ignore "
            "this rule with a reason",
            "pg_advisory_unlock_all() gives back the locks of other code on this "
            "connection too");
        return;
    }
    check_has_session_lock(check, use);
    if (!use->kind->ours) /* holdfast.unlock fails instead */
        check_result(check, use);
}

void hf__check_unlocks(hf__check *check)
{
    for (size_t i = 0; i < check->uses->count; i++) {
        const hf__use *use = &check->uses->items[i];
        if (use->again)
            continue;
        if (use->unlocks) {
            check_unlock(check, use);
            continue;
        }
        if (use->tries && use->calls == NULL)
            check_result(check, use);
        if (needs_unlock(use)) {
            check_is_unlocked(check, use);
            check_pool(check, use);
        }
    }
}

/* ---- Keys ------------------------------------------------------------------------------------ */

enum { COMMON_BELOW = 1000, STATEMENT_MAX = 1500 };

static void check_number(hf__check *check, const hf__use *use)
{
    const hf__lock_key *key = &use->key;
    char call[HF__CALL_SHOWN];

    /* With a registry another rule reports such a number when it is not registered. */
    if (check->options->registry != NULL || key->kind != HF__KEY_NUMBER ||
        key->number >= COMMON_BELOW || key->number <= -COMMON_BELOW)
        return;
    hf__check_report(check, HF__COMMON_ID, use->at, HF__CERTAIN,
                     "take a number of many digits, or a label, and register it in locks.yaml",
                     "%s: a number this small is likely to be somebody else's lock too",
                     hf__show_call(check, use, call));
}

static void check_label(hf__check *check, const hf__use *use)
{
    const hf__lock_key *key = &use->key;
    char shown[96];

    if (key->kind != HF__KEY_LABEL || key->has_holes ||
        !hf__registry_is_generic(check->options->registry, key->label, key->label_size))
        return;
    hf__check_report(check, HF__GENERIC_LABEL, use->at, HF__CERTAIN,
                     "name the operation and what it works on, such as 'Invoice:close'",
                     "the label %s does not say what it protects",
                     hf__lock_key_show(key, shown, sizeof shown));
}

static bool word_at(const hf__unit *unit, size_t at, const char *word)
{
    size_t size = strlen(word);

    return unit->size - at > size && strncasecmp(unit->text + at, word, size) == 0 &&
           strchr(" \t\r\n(", unit->text[at + size]) != NULL &&
           strchr(" \t\r\n)", unit->text[at - 1]) != NULL;
}

/* In an SQL file a statement may contain strings; elsewhere it ends with its string. */
static bool is_end_of_statement(const hf__unit *unit, size_t at)
{
    if (unit->syntax->id == HF__LANG_SQL)
        return unit->classes[at] == HF__CODE && unit->text[at] == ';';
    return unit->classes[at] != HF__TEXT || unit->text[at] == ';';
}

/* SELECT pg_advisory_lock(id) FROM t … LIMIT n, with LIMIT in the same parentheses as the call. */
static void check_limit(hf__check *check, const hf__use *use)
{
    const hf__unit *unit = check->unit;
    size_t end = unit->size - use->end > STATEMENT_MAX ? use->end + STATEMENT_MAX : unit->size;
    long depth = 0;
    bool from = false;
    char call[HF__CALL_SHOWN];

    if (!use->kind->in_sql)
        return;
    for (size_t at = use->end; at < end && depth >= 0; at++) {
        char c = unit->text[at];
        if (unit->classes[at] == HF__COMMENT)
            continue;
        if (is_end_of_statement(unit, at))
            return;
        if (!hf__unit_is_sql(unit, at))
            continue;
        depth += c == '(';
        depth -= c == ')';
        from = from || (depth == 0 && word_at(unit, at, "from"));
        if (from && depth == 0 && word_at(unit, at, "limit")) {
            hf__check_report(
                check, HF__LOCK_WITH_LIMIT, use->at, HF__CERTAIN,
                "choose the rows in a subquery with the LIMIT, and lock what it returns",
                "%s may be called for rows that LIMIT leaves out: they stay locked",
                hf__show_call(check, use, call));
            return;
        }
    }
}

void hf__check_keys(hf__check *check)
{
    for (size_t i = 0; i < check->uses->count; i++) {
        const hf__use *use = &check->uses->items[i];
        if (use->unlocks)
            continue;
        check_number(check, use);
        check_label(check, use);
        if (!use->again)
            check_limit(check, use);
    }
}
