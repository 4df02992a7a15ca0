#include "programs/registry/lint/rules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

const hf__rule hf__lint_rules[] = {
    [HF__UNREGISTERED_ID] = {"unregistered-id", HF__SEVERITY_WARNING,
                             "A number is locked that the registry does not know."},
    [HF__UNREGISTERED_LABEL] = {"unregistered-label", HF__SEVERITY_WARNING,
                                "A label is locked that no entry of the registry matches."},
    [HF__WRONG_LIFETIME] = {"wrong-lifetime", HF__SEVERITY_ERROR,
                            "A registered lock is taken for the session instead of the "
                            "transaction, or the other way round."},
    [HF__WRONG_DERIVATION] = {"wrong-derivation", HF__SEVERITY_ERROR,
                              "A registered label is turned into a key in another way than the "
                              "registry says: it is another lock."},
    [HF__LOCK_ORDER] = {"lock-order", HF__SEVERITY_ERROR,
                        "Two locks are taken in another order than the registry says."},
    [HF__UNRESOLVED_KEY] = {"unresolved-key", HF__SEVERITY_WARNING,
                            "The key of a lock cannot be told from the source, so nobody knows "
                            "whether the registry has it."},
    [HF__COMMON_ID] = {"common-id", HF__SEVERITY_WARNING,
                       "A number is locked that other programs are likely to use too."},
    [HF__GENERIC_LABEL] =
        {"generic-label", HF__SEVERITY_WARNING,
         "A label says nothing about what it protects, so others may use it too."},
    [HF__RULE_HASHTEXT] = {"hashtext", HF__SEVERITY_WARNING,
                           "A label is hashed to 32 bits by hashtext()."},
    [HF__SESSION_LOCK_WITHOUT_UNLOCK] = {"session-lock-without-unlock", HF__SEVERITY_NOTE,
                                         "A session lock is taken and not given back in the file."},
    [HF__UNLOCK_OF_OTHER_MODE] = {"unlock-of-other-mode", HF__SEVERITY_ERROR,
                                  "A shared lock is given back as an exclusive one, or the other "
                                  "way round, which does nothing."},
    [HF__UNLOCK_OF_TRANSACTION_LOCK] = {"unlock-of-transaction-lock", HF__SEVERITY_ERROR,
                                        "A transaction lock is given back by hand, which does "
                                        "nothing."},
    [HF__UNLOCK_RESULT_IGNORED] = {"unlock-result-ignored", HF__SEVERITY_WARNING,
                                   "Nobody looks whether an unlock found its lock."},
    [HF__TRY_RESULT_IGNORED] = {"try-result-ignored", HF__SEVERITY_ERROR,
                                "Nobody looks whether a lock that was only tried has been "
                                "acquired."},
    [HF__LOCK_ON_POOL] = {"lock-on-pool", HF__SEVERITY_ERROR,
                          "A session lock is taken through a pool, so that it stays on a "
                          "connection that others get."},
    [HF__UNLOCK_ALL] = {"unlock-all", HF__SEVERITY_WARNING,
                        "All locks of the session are given back, those of other code too."},
    [HF__SNAPSHOT_TRAP] = {"snapshot-trap", HF__SEVERITY_ERROR,
                           "A lock is waited for in a SERIALIZABLE or REPEATABLE READ transaction, "
                           "whose snapshot is older than the wait."},
    [HF__LOCK_AFTER_READ] = {"lock-after-read", HF__SEVERITY_WARNING,
                             "What a lock protects is read before it is taken."},
    [HF__LOCK_WITH_LIMIT] = {"lock-with-limit", HF__SEVERITY_ERROR,
                             "A lock is taken for each row of a query with LIMIT, which may lock "
                             "rows that it does not return."},
    [HF__IGNORE_WITHOUT_REASON] = {"ignore-without-reason", HF__SEVERITY_WARNING,
                                   "A holdfast-ignore comment gives no reason."},
    [HF__UNKNOWN_RULE] = {"unknown-rule", HF__SEVERITY_WARNING,
                          "A holdfast-ignore comment names a rule that is none."},
    [HF__UNUSED_IGNORE] = {"unused-ignore", HF__SEVERITY_WARNING,
                           "A holdfast-ignore comment has nothing to ignore."},
    [HF__RULE_MATCH_LIMIT] = {"match-limit", HF__SEVERITY_WARNING,
                              "A file is too hard to search, and was not searched to its end."},
    [HF__LINT_RULES] = {0},
};

hf__lint_rule hf__lint_rule_find(const char *id, size_t size)
{
    size_t rule = 0;

    while (rule < HF__LINT_RULES && (strlen(hf__lint_rules[rule].id) != size ||
                                     memcmp(hf__lint_rules[rule].id, id, size) != 0))
        rule++;
    return (hf__lint_rule)rule;
}

bool hf__lint_rule_needs_registry(hf__lint_rule rule)
{
    return rule <= HF__UNRESOLVED_KEY;
}

/* ---- Ignore comments ------------------------------------------------------------------------- */

enum { IGNORES_MAX = 2000, COMMENT_LINES_MAX = 40 };

/* Group 1 has the rules, group 2 the reason up to the end of the line. */
const char hf__ignore_pattern[] =
    "holdfast-ignore:[ \\t]*([a-z0-9-]*(?:[ \\t]*,[ \\t]*[a-z0-9-]+)*)([^\\r\\n]*)";

static bool only_comments(const hf__unit *unit, size_t line)
{
    size_t end = line + 1 < unit->line_count ? unit->lines[line + 1] : unit->size;
    bool any = false;

    for (size_t at = unit->lines[line]; at < end; at++) {
        if (isspace((unsigned char)unit->text[at]))
            continue;
        if (unit->classes[at] != HF__COMMENT)
            return false;
        any = true;
    }
    return any;
}

/* A comment alone on its line is about the next line that has code. */
static unsigned line_meant(const hf__unit *unit, unsigned own)
{
    size_t line = own - 1;
    size_t last = line + COMMENT_LINES_MAX;

    while (line < last && line + 1 < unit->line_count && only_comments(unit, line))
        line++;
    return (unsigned)line + 1;
}

/* Does anything remain besides the characters that end a comment? */
static bool has_reason(const hf__unit *unit, size_t start, size_t end)
{
    size_t letters = 0;

    for (size_t at = start; at < end && unit->classes[at] == HF__COMMENT; at++)
        letters += isalnum((unsigned char)unit->text[at]) || (unsigned char)unit->text[at] >= 0x80;
    return letters >= 3;
}

static hf_status add_rules(hf__ignores *ignores, const hf__unit *unit, const hf__pcre_match *match,
                           hf_error *err)
{
    unsigned own = hf__unit_line(unit, match->start[0]);
    unsigned meant = line_meant(unit, own);
    size_t at = match->start[1];

    while (at < match->end[1] || at == match->start[1]) {
        size_t size = 0;
        while (at + size < match->end[1] && strchr(", \t", unit->text[at + size]) == NULL)
            size++;
        if (!hf__grow(&ignores->items, &ignores->capacity, ignores->count + 1,
                      sizeof *ignores->items))
            return hf__no_memory(err);
        ignores->items[ignores->count++] = (hf__ignored_rule){
            .at = at,
            .size = size,
            .rule = hf__lint_rule_find(unit->text + at, size),
            .line = meant,
            .own_line = own,
        };
        at += size + 1;
        while (at < match->end[1] && strchr(", \t", unit->text[at]) != NULL)
            at++;
    }
    return HF_OK;
}

/* A comment may also mention ignore comments: only one that begins so counts. */
static bool begins_comment(const hf__unit *unit, size_t at)
{
    while (at > 0 && unit->classes[at - 1] == HF__COMMENT &&
           strchr("/*#-!<%; \t", unit->text[at - 1]) != NULL)
        at--;
    return at == 0 || unit->classes[at - 1] != HF__COMMENT || unit->text[at - 1] == '\n';
}

static hf_status add_comment(hf__ignores *ignores, const hf__unit *unit,
                             const hf__pcre_match *match, hf_error *err)
{
    if (!has_reason(unit, match->start[2], match->end[2])) {
        if (!hf__grow(&ignores->without_reason, &ignores->without_reason_capacity,
                      ignores->without_reason_count + 1, sizeof *ignores->without_reason))
            return hf__no_memory(err);
        ignores->without_reason[ignores->without_reason_count++] = match->start[0];
    }
    return add_rules(ignores, unit, match, err);
}

hf_status hf__ignores_read(hf__ignores *ignores, const hf__unit *unit, hf__pcre *pattern,
                           hf_error *err)
{
    hf_status status = HF_OK;
    hf__pcre_match match;

    *ignores = (hf__ignores){0};
    for (size_t at = 0;
         status == HF_OK && ignores->count < IGNORES_MAX &&
         hf__pcre_find(pattern, unit->text, unit->size, at, &match) == HF__PCRE_FOUND;
         at = match.end[0])
        if (unit->classes[match.start[0]] == HF__COMMENT && begins_comment(unit, match.start[0]))
            status = add_comment(ignores, unit, &match, err);
    if (status != HF_OK)
        hf__ignores_free(ignores);
    return status;
}

void hf__ignores_free(hf__ignores *ignores)
{
    free(ignores->items);
    free(ignores->without_reason);
    *ignores = (hf__ignores){0};
}

bool hf__ignores_cover(hf__ignores *ignores, hf__lint_rule rule, unsigned line)
{
    bool covered = false;

    for (size_t i = 0; i < ignores->count; i++) {
        hf__ignored_rule *item = &ignores->items[i];
        if (item->rule == rule && (item->line == line || item->own_line == line)) {
            item->used = true;
            covered = true;
        }
    }
    return covered;
}
