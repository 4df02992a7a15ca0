#include <string.h>
#include <strings.h>

#include "programs/registry/lint/check.h"

enum { COMMON_BELOW = 1000, STATEMENT_MAX = 1500 };

static void check_number(hf__check *check, const hf__use *use)
{
    const hf__lock_key *key = &use->key;
    char call[HF__CALL_SHOWN];

    /* With a registry, such a number is registered, or reported as unregistered. */
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

/* In an SQL file strings are part of a statement; elsewhere the statement ends with its string. */
static bool is_end_of_statement(const hf__unit *unit, size_t at)
{
    if (unit->syntax->id == HF__LANG_SQL)
        return unit->classes[at] == HF__CODE && unit->text[at] == ';';
    return unit->classes[at] != HF__TEXT || unit->text[at] == ';';
}

/* SELECT pg_advisory_lock(id) FROM t … LIMIT n: at the call's own depth of parentheses. */
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
        check_limit(check, use);
    }
}
