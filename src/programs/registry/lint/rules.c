#include "programs/registry/lint/rules.h"

#include <string.h>

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
    [HF__COMMON_ID] = {"common-id", HF__SEVERITY_WARNING,
                       "A number is locked that other programs are likely to use too."},
    [HF__GENERIC_LABEL] =
        {"generic-label", HF__SEVERITY_WARNING,
         "A label says nothing about what it protects, so others may use it too."},
    [HF__RULE_HASHTEXT] = {"hashtext", HF__SEVERITY_WARNING,
                           "A label is hashed to 32 bits by hashtext()."},
    [HF__SESSION_LOCK_WITHOUT_UNLOCK] = {"session-lock-without-unlock", HF__SEVERITY_WARNING,
                                         "A session lock is taken and not given back in the file."},
    [HF__UNLOCK_OF_OTHER_MODE] = {"unlock-of-other-mode", HF__SEVERITY_ERROR,
                                  "A shared lock is given back as an exclusive one, or the other "
                                  "way round, which does nothing."},
    [HF__UNLOCK_OF_TRANSACTION_LOCK] = {"unlock-of-transaction-lock", HF__SEVERITY_ERROR,
                                        "A transaction lock is given back by hand, which does "
                                        "nothing."},
    [HF__UNLOCK_RESULT_IGNORED] = {"unlock-result-ignored", HF__SEVERITY_WARNING,
                                   "Nobody looks whether an unlock found its lock."},
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
    return rule <= HF__LOCK_ORDER;
}
